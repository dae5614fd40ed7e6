"""What a suite computes: the CPU seconds of its commands, with all processes that these have waited for. On a busy
machine they say what the clock does not. Processes that outlive their parents (daemons, orphans) are not counted."""

import threading

_of_thread = threading.local()


class Account:
    def __init__(self):
        self.seconds = 0.0
        self.lock = threading.Lock()

    def add(self, seconds):
        with self.lock:
            self.seconds += seconds


def use(account):
    """From now on, what commands of this thread compute goes there."""
    _of_thread.account = account
    return account


def current():
    """Where it goes now; each thread begins with an account that nobody reads."""
    if not hasattr(_of_thread, "account"):
        use(Account())
    return _of_thread.account

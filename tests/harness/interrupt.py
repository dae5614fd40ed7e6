"""What an interrupted run leaves: nothing. Every process that a run starts inherits a mark in its environment,
whatever group, session or parent it moves to; an interruption ends all that carry it."""

import os
import signal
import time

MARK = "GSHMEM_TEST_RUNNER"
GRACE = 5  # seconds between SIGTERM, upon which launchers tidy up, and SIGKILL


class Interrupted(BaseException):
    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


def watch():
    """From now on SIGINT, SIGTERM and SIGHUP raise Interrupted in the main thread. What the caller has ignored
    (nohup) stays ignored."""
    os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


_under_way = False


def is_under_way():
    """What a test says from then on means nothing: it may have been ended."""
    return _under_way


def _interrupt(number, _frame):
    global _under_way
    _under_way = True
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the end is under way; a second one must not cut it short
    raise Interrupted(number)


def marked():
    """The processes that this run has started, directly or not."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        yield int(name)
            except OSError:  # it has ended, or belongs to somebody else
                pass


def end_all():
    """Asks all of them to end, and makes them after a while. Says how many would not."""
    deadline = time.monotonic() + GRACE
    number, left = signal.SIGTERM, list(marked())
    while left and time.monotonic() < deadline + GRACE:
        for pid in left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
        if time.monotonic() > deadline:
            number = signal.SIGKILL
        left = list(marked())
    return len(left)

#!/usr/bin/env python3
"""Ctrl-C at a terminal ends a job of hanging PEs, which leave it to gshmemrun, whatever comes between.

    keys.py PROGRAM"""

import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from hangs import BUILD, process_of  # noqa: E402

INTERRUPT, QUIT = b"\x03", b"\x1c"


class Terminal:
    """gshmemrun as the foreground job of a terminal of its own."""

    def __init__(self, *arguments):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execv(f"{BUILD}/bootstrap/run/gshmemrun", ["gshmemrun", *arguments])
        self.text = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        try:
            while more := os.read(self.master, 65536):
                self.text += more
        except OSError:
            pass

    def key(self, character):
        os.write(self.master, character)

    def wait_text(self, text):
        limit = time.monotonic() + 100
        while text not in self.text:
            if time.monotonic() > limit:
                raise SystemExit(f"expected {text}, have\n{self.text.decode(errors='replace')}")
            time.sleep(0.01)

    def is_reported(self):
        """Whether a process puts a report together; Ctrl-C asks for no other one meanwhile."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    name, _, rest = file.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "gshmem-report" and int(rest.split()[3]) == self.pid:
                return True
        return False

    def end(self, seconds):
        """Its exit status; None: it goes on, and is killed."""
        status, limit = None, time.monotonic() + seconds
        while status is None and time.monotonic() < limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(status) if pid else None
            time.sleep(0.02)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.reader.join()
        os.close(self.master)
        return status


def hangs(program, way, directory, n=2):
    own = f"{directory}/{way}-{n}"
    os.mkdir(own)
    t = Terminal("-n", str(n), program, way, own)
    return t, [process_of(own, pe) for pe in range(n)]


def expect_end(t, what):
    status = t.end(100)
    if status is None:
        raise SystemExit(f"{what}: the job goes on after Ctrl-C\n{t.text.decode(errors='replace')}")
    if status == 0:
        raise SystemExit(f"{what}: the exit status is 0")


def during_report(program, directory):
    """A report that SIGQUIT has asked for is being put together: a PE that is stopped makes it long."""
    t, pids = hangs(program, "loop", directory)
    os.kill(pids[1], signal.SIGSTOP)
    t.key(QUIT)
    time.sleep(0.1)  # so that the report has mostly begun; it passes either way
    t.key(INTERRUPT)
    os.kill(pids[1], signal.SIGCONT)
    expect_end(t, "during a report")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    while open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.01)


def ask_again(t, line):
    """A report is cut after 3 s, and a busy machine may need more: asks until a report has the line, and is over."""
    limit = time.monotonic() + 200
    while line not in t.text or t.is_reported():
        if time.monotonic() > limit:
            raise SystemExit(f"no report has {line}\n{t.text.decode(errors='replace')}")
        if not t.is_reported():
            t.key(QUIT)
        time.sleep(0.5)


def all_stopped(program, directory):
    """No PE says where it is; what is said of them is true all the same."""
    t, pids = hangs(program, "sleep", directory)
    for pid in pids:
        stop(pid)
    ask_again(t, b"no PE says where it is: they are stopped,")
    ask_again(t, f"PE 1 (process {pids[1]}) is stopped, by a signal or a debugger, and has met the others".encode())
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    t.key(INTERRUPT)
    expect_end(t, "PEs that were stopped")


def without_answers(program, directory):
    t, _ = hangs(program, "closes_all", directory)
    time.sleep(1)  # its thread notices within 0.6 s that the socket has gone; it passes either way
    t.key(INTERRUPT)
    expect_end(t, "a PE that does not answer")


def many(program, directory):
    """Of 64 PEs. A report is cut after 3 s, so that a whole one has taken less; a busy machine is asked again until it
    has had the time for one, and may cut that of Ctrl-C."""
    t, _ = hangs(program, "sleep", directory, 64)
    line = b"outside of calls that wait, in sleep_for_ever"
    ask_again(t, line)
    said = len(t.text)
    t.key(INTERRUPT)
    expect_end(t, "64 PEs")
    if not any(text in t.text[said:] for text in (line, b"was left out", b"this machine is too busy")):
        raise SystemExit(f"64 PEs: no report at Ctrl-C\n{t.text.decode(errors='replace')}")


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        during_report(program, directory)
        all_stopped(program, directory)
        without_answers(program, directory)
        many(program, directory)


main(*sys.argv[1:])

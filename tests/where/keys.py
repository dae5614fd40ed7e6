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
        limit = time.monotonic() + 20
        while text not in self.text:
            if time.monotonic() > limit:
                raise SystemExit(f"expected {text}, have\n{self.text.decode(errors='replace')}")
            time.sleep(0.01)

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


def hangs(program, way, directory):
    os.mkdir(f"{directory}/{way}")
    t = Terminal("-n", "2", program, way, f"{directory}/{way}")
    return t, [process_of(f"{directory}/{way}", pe) for pe in range(2)]


def expect_end(t, what):
    status = t.end(20)
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


def without_answers(program, directory):
    t, _ = hangs(program, "closes_all", directory)
    time.sleep(1)  # its thread notices within 0.6 s that the socket has gone; it passes either way
    t.key(INTERRUPT)
    expect_end(t, "a PE that does not answer")


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        during_report(program, directory)
        without_answers(program, directory)


main(*sys.argv[1:])

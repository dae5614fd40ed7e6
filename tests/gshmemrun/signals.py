#!/usr/bin/env python3
"""Signals reach PEs, the terminal's keys work, and stopped jobs go on."""

import os
import pty
import signal
import sys
import termios
import time

sys.dont_write_bytecode = True
from jobs import Job, check, check_end, finish  # noqa: E402

# Says what it is sent, in a file of its own; ends on TERM.
TRAP = """
for s in INT HUP QUIT USR1 USR2; do trap "echo $s >>$0.$GSHMEM_RUN_PE" $s; done
trap "echo TERM >>$0.$GSHMEM_RUN_PE; exit 0" TERM
: >$0.$GSHMEM_RUN_PE
while :; do sleep 0.02; done
"""


def lines(directory, pe):
    try:
        with open(f"{directory}/log.{pe}") as f:
            return f.read().split()
    except FileNotFoundError:
        return None


def wait_lines(job, directory, pe, expected):
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if lines(directory, pe) == expected:
            return
        time.sleep(0.01)
    check(False, f"PE {pe} was sent {lines(directory, pe)}, expected {expected}")


def handed_on(directory):
    """Each signal that a process sends to gshmemrun, once, to every PE; QUIT asks gshmemrun itself."""
    job = Job("-n", 2, "bash", "-c", TRAP, f"{directory}/log")
    for pe in range(2):
        wait_lines(job, directory, pe, [])
    sent = []
    for name in ("USR1", "USR2", "QUIT", "INT", "HUP"):
        job.process.send_signal(getattr(signal, "SIG" + name))
        if name != "QUIT":
            sent.append(name)
        for pe in range(2):
            wait_lines(job, directory, pe, sent)
    job.process.send_signal(signal.SIGTERM)
    check_end(job, 0, "PEs that end well on TERM")
    for pe in range(2):
        check(lines(directory, pe) == sent + ["TERM"], f"PE {pe}: TERM")


def ended_by(number):
    job = Job("-n", 2, "sleep", 60)
    job.wait_for(lambda ps: sum(p.name == "sleep" for p in ps) == 2, "PEs")
    job.process.send_signal(number)
    check_end(job, 128 + number, f"a job sent signal {number}", "was killed by signal")


class Cats:
    """Two PEs that end well when they are told to, whenever that is."""

    def __init__(self, directory, preexec_fn):
        fifo = f"{directory}/fifo-{preexec_fn.__name__}"
        os.mkfifo(fifo)
        self.open = os.open(fifo, os.O_RDWR)
        self.job = Job("-n", 2, "sh", "-c", 'exec cat <"$0"', fifo, preexec_fn=preexec_fn)
        self.job.wait_for(lambda ps: sum(p.name == "cat" for p in ps) == 2, "PEs")

    def end(self):
        os.close(self.open)


def ignore_hangup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def ignored_stays_ignored(directory):
    """Under nohup, a hang-up is nobody's business."""
    cats = Cats(directory, ignore_hangup)
    cats.job.process.send_signal(signal.SIGHUP)
    time.sleep(1)  # by then it has mostly come to who should not care
    cats.end()
    check_end(cats.job, 0, "a job under nohup")


def stopped_and_continued(directory):
    # As a shell does it, in a process group of its own: SIGTSTP stops nobody in an orphaned one.
    cats = Cats(directory, os.setpgrp)
    job = cats.job
    job.process.send_signal(signal.SIGTSTP)
    job.wait_for(lambda ps: [p.state for p in ps if p.name in ("cat", "gshmemrun")] == ["T"] * 3,
                 "the job stopped")
    pid, status = os.waitpid(job.process.pid, os.WUNTRACED | os.WNOHANG)
    check(pid and os.WIFSTOPPED(status), "gshmemrun is seen to be stopped")
    job.process.send_signal(signal.SIGCONT)
    job.wait_for(lambda ps: not any(p.state == "T" for p in ps), "the job continued")
    cats.end()
    check_end(job, 0, "a job that was stopped and continued")


class Terminal:
    """gshmemrun as the foreground job of a terminal of its own."""

    def __init__(self, *arguments):
        self.master, slave = pty.openpty()

        def take_terminal():
            os.setsid()
            import fcntl
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.job = Job(*arguments, stdin=slave, preexec_fn=take_terminal)
        os.close(slave)

    def key(self, character):
        os.write(self.master, character)


def keys(directory):
    """Ctrl-C comes once to each PE, from the terminal; PE 0 reads the terminal."""
    t = Terminal("-n", 2, "bash", "-c", TRAP, f"{directory}/log")
    for pe in range(2):
        wait_lines(t.job, directory, pe, [])
    t.key(b"\x03")
    for pe in range(2):
        wait_lines(t.job, directory, pe, ["INT"])
    time.sleep(0.2)  # a second one has mostly come by then
    for pe in range(2):
        check(lines(directory, pe) == ["INT"], f"PE {pe}: Ctrl-C came {lines(directory, pe)}")
    t.job.process.send_signal(signal.SIGTERM)
    check_end(t.job, 0, "a job in a terminal")

    t = Terminal("-n", 2, "sleep", 60)
    t.job.wait_for(lambda ps: sum(p.name == "sleep" for p in ps) == 2, "PEs")
    t.key(b"\x03")
    check_end(t.job, 130, "Ctrl-C", "was killed by signal 2")

    for group in ("setsid", "timeout 60"):
        t = Terminal("-n", 2, *group.split(), "sleep", 60)
        t.job.wait_for(lambda ps: sum(p.name == "sleep" for p in ps) == 2, "PEs in groups of their own")
        t.key(b"\x03")
        t.job.process.wait(60)
        check(t.job.process.returncode not in (0, None), f"{group}: Ctrl-C ended with {t.job.process.returncode}")
        check(not t.job.left(), f"{group}: something is left")

    t = Terminal("-n", 2, "sh", "-c", "read line && echo got $line || echo nothing")
    t.key(b"hello\n")
    out, _ = check_end(t.job, 0, "standard input from a terminal")
    check(sorted(out.split("\n")) == ["", "got hello", "nothing"], f"stdin: {out!r}")


def hang_up(directory):
    """A terminal that goes sends its signal to who leads the session, gshmemrun, which hands it on, once."""
    t = Terminal("-n", 2, "bash", "-c", TRAP, f"{directory}/log")
    for pe in range(2):
        wait_lines(t.job, directory, pe, [])
    os.close(t.master)
    for pe in range(2):
        wait_lines(t.job, directory, pe, ["HUP"])
    t.job.process.send_signal(signal.SIGTERM)
    check_end(t.job, 0, "a job without its terminal")
    for pe in range(2):
        check(lines(directory, pe) == ["HUP", "TERM"], f"PE {pe} was sent {lines(directory, pe)}")


def main():
    import tempfile
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # nohup and jobs of shells hand on that some are ignored
    with tempfile.TemporaryDirectory() as directory:
        handed_on(directory)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        ended_by(number)
    with tempfile.TemporaryDirectory() as directory:
        ignored_stays_ignored(directory)
        stopped_and_continued(directory)
    with tempfile.TemporaryDirectory() as directory:
        keys(directory)
    with tempfile.TemporaryDirectory() as directory:
        hang_up(directory)
    finish()


main()

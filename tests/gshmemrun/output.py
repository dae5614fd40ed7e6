#!/usr/bin/env python3
"""Standard input, output and error of PEs, with and without tags."""

import subprocess
import sys
import time

sys.dont_write_bytecode = True
from jobs import GSHMEMRUN, Job, check, check_end, finish  # noqa: E402

PYTHON = sys.executable

# Writes lines in pieces, so that those of many PEs would mix if they could.
PIECES = """
import os, sys
pe = os.environ["GSHMEM_RUN_PE"]
for i in range(200):
    line = f"{pe}:{i}:" + "x" * (i * 7 % 300) + "\\n"
    for at in range(0, len(line), 50):
        os.write(1 + i % 2, line[at:at + 50].encode())
"""


# Without tags the program itself sees that the disk is full.
WRITES = """
import sys
try:
    for i in range(10000): sys.stdout.write("a line of a program\\n")
    sys.stdout.flush()
except OSError as e:
    sys.stderr.write(str(e)); sys.stderr.flush(); import os; os._exit(1)
"""


def lines_are_whole():
    job = Job("-n", 4, "--tag-output", PYTHON, "-c", PIECES)
    out, err = check_end(job, 0, "tagged lines")
    for stream, text in enumerate((out, err)):
        got = text.splitlines()
        for pe in range(4):
            mine = [f"[{pe}] {pe}:{i}:" + "x" * (i * 7 % 300) for i in range(200) if i % 2 == stream]
            check([line for line in got if line.startswith(f"[{pe}] ")] == mine,
                  f"the lines of PE {pe}, stream {stream}")
        check(len(got) == 400, f"{len(got)} lines, expected 400")


def odd_lines():
    """The last without an end, an empty one, a very long one, and bytes that are no text."""
    job = Job("-n", 1, "--tag-output", PYTHON, "-c",
              "import os; os.write(1, b'\\n' + b'y' * 70000 + b'\\n' + b'no end')")
    out, _ = check_end(job, 0, "odd lines")
    got = out.splitlines()
    check(got[0] == "[0] " and got[-1] == "[0] no end", f"odd lines: {got[0]!r}, {got[-1]!r}")
    check("".join(line[4:] for line in got[1:-1]) == "y" * 70000, "a long line is complete")
    check(all(line.startswith("[0] ") for line in got), "every piece has its tag")


def input_is_for_the_first():
    for tag in ([], ["--tag-output"]):
        job = Job("-n", 3, *tag, "wc", "-c", stdin=subprocess.PIPE)
        job.process.stdin.write("x" * 100000)
        job.process.stdin.close()
        job.process.stdin = None
        out, _ = check_end(job, 0, "standard input")
        counts = sorted(int(line.split()[-1]) for line in out.splitlines())
        check(counts == [0, 0, 100000], f"bytes that PEs read: {counts}")


def closed_streams():
    """A shell may start us without standard streams; PEs have /dev/null, and nothing is mixed up."""
    done = subprocess.run(["sh", "-c", f"exec <&- >&-; exec {GSHMEMRUN} -n 2 sh -c "
                           "'cat; echo out; echo err >&2'"], stderr=subprocess.PIPE, text=True,
                          timeout=100)
    check(done.returncode == 0 and done.stderr == "err\nerr\n",
          f"closed streams: {done.returncode}, {done.stderr!r}")


def reader_that_leaves():
    """`gshmemrun ... | head` ends: PEs are told by SIGPIPE, with tags and without."""
    for tag in ("", "--tag-output"):
        done = subprocess.run(["bash", "-c", f"{GSHMEMRUN} -n 2 {tag} yes | head -n 3; "
                               "echo ${PIPESTATUS[0]}"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=100)
        check(done.stdout.split("\n")[-2] == "141", f"{tag}: status {done.stdout!r}")


def reader_that_is_stuck():
    """Who does not read our output cannot keep a job alive that is told to end."""
    for tag in ([], ["--tag-output"]):
        job = Job("-n", 2, *tag, "--timeout", 1, "yes")
        limit = time.monotonic() + 60
        while job.process.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        check(job.process.poll() == 124, f"{tag}: {job.process.poll()} after its --timeout")
        check(not job.left(), f"{tag}: something is left")
        job.clean_up()
        job.process.communicate()


def help_to_a_disk_that_is_full():
    for option in ("--help", "--version"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([GSHMEMRUN, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
        check(done.returncode == 1 and "gshmemrun: writing standard output: No space" in done.stderr,
              f"{option}: {done.returncode}, {done.stderr!r}")


def disk_that_is_full():
    """What cannot be written is said, and no reason to kill PEs."""
    for tag in ([], ["--tag-output"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([GSHMEMRUN, "-n", "2", *tag, PYTHON, "-c", WRITES], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=100)
        check(done.returncode == 1, f"{tag}: status {done.returncode} with a full disk")
        check("No space left on device" in done.stderr, f"{tag}: {done.stderr!r}")
        check("signal" not in done.stderr, f"{tag}: {done.stderr!r}")


def main():
    lines_are_whole()
    odd_lines()
    input_is_for_the_first()
    closed_streams()
    reader_that_leaves()
    reader_that_is_stuck()
    disk_that_is_full()
    help_to_a_disk_that_is_full()
    finish()


main()

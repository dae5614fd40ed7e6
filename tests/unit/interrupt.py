#!/usr/bin/env python3
"""A run of the tests that is interrupted ends all that it has started: processes in sessions of their own, those
that ignore SIGTERM, and those whose parents are gone. The real tests/run, on a build tree whose two tests wait for
ever: one of a suite that is run beside what compiles, and one of a suite that compiles."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import time

PROJECT = """project('forever')
foreach suite : ['hosts', 'nvcc']
  test('forever-' + suite, find_program('forever.sh'), args: suite, suite: suite, is_parallel: false, timeout: 600)
endforeach
"""
# Writes the process ids: itself, one in a session of its own, and an orphan that ignores SIGTERM.
FOREVER = """#!/bin/sh
at=$0.$1
setsid sleep 1000 &
first=$!
(setsid sh -c 'trap "" TERM; echo $$ >"$0.orphan"; while :; do sleep 1; done' "$at" &)
while [ ! -s "$at.orphan" ]; do sleep 0.05; done
echo $$ $first $(cat "$at.orphan") >"$at.new"
mv "$at.new" "$at.pids"
wait
"""


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"interrupt: {what} took longer than {seconds} s")
        time.sleep(0.05)


def make(folder):
    source = os.path.join(folder, "source")
    os.mkdir(source)
    for name, text in (("meson.build", PROJECT), ("forever.sh", FOREVER)):
        with open(os.path.join(source, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(os.path.join(source, "forever.sh"), 0o755)
    subprocess.run(["meson", "setup", os.path.join(folder, "build"), source], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def attempt(run, folder, number):
    folder = os.path.join(folder, str(number))
    os.mkdir(folder)
    make(folder)
    files = [os.path.join(folder, "source", f"forever.sh.{suite}.pids") for suite in ("hosts", "nvcc")]
    environment = dict(os.environ, GSHMEM_TEST_NO_SLURM="not for this")
    with subprocess.Popen([sys.executable, run, "--build", os.path.join(folder, "build"), "hosts", "nvcc"],
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, start_new_session=True) as runner:
        pids = []
        try:
            wait_for(lambda: all(map(os.path.exists, files)), "the start of the tests, side by side,")
            for name in files:
                with open(name, encoding="utf-8") as file:
                    pids += [int(word) for word in file.read().split()]
            runner.send_signal(number)
            said, _ = runner.communicate(timeout=300)
        finally:
            if runner.poll() is None:  # it has not ended: what it left is ended here
                for pid in filter(lives, pids):
                    os.kill(pid, signal.SIGKILL)
                os.killpg(runner.pid, signal.SIGKILL)
    end = time.monotonic() + 60  # one that was killed may be on its way
    while (left := [pid for pid in pids if lives(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    name = signal.Signals(number).name
    if len(pids) != 6 or left:
        sys.exit(f"interrupt: {name} left {len(left)} of {len(pids)} processes")
    if runner.returncode != 128 + number:
        sys.exit(f"interrupt: exit status {runner.returncode} after {name}, not {128 + number}")
    if f"interrupted by {name}" not in said or "1 failed" not in said.splitlines()[-1]:
        sys.exit(f"interrupt: {name} is not reported:\n{said}")


def main():
    run = os.path.abspath(sys.argv[1])
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in signals:
        signal.signal(number, signal.SIG_DFL)  # below nohup, or in the background of a script, it is ignored
    with tempfile.TemporaryDirectory(prefix="gshmem-interrupt-") as folder, \
            concurrent.futures.ThreadPoolExecutor() as side_by_side:
        for done in [side_by_side.submit(attempt, run, folder, number) for number in signals]:
            done.result()


main()

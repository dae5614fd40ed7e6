#!/usr/bin/env python3
"""Kills a launcher with SIGKILL: its PEs end soon, whether they wait or compute.

    launcher.py LAUNCH mpirun|hydra|run N ORPHAN

How soon is printed; it is tenths of a second where there is a CPU for it."""

import os
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 30  # PEs that live on for so long never look


def lives(pid):
    """Not one that has ended and waits for its parent to notice."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as names:
            found = [int(name) for name in names.read().split()]
    except OSError:
        return []
    return found + [below for child in found for below in children(child)]


def name(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
            return comm.read().strip()
    except OSError:
        return ""


def launcher_below(pid):
    """The launcher that tests/launch and its time limit have started."""
    names = ("mpirun", "mpiexec", "orterun", "gshmem-launcher", "gshmemrun")
    found = [child for child in [pid] + children(pid) if name(child).startswith(names)]
    return found[-1] if found else None


def main():
    launch, launcher, n, orphan = sys.argv[1:]
    with tempfile.TemporaryFile("w+") as said:
        job = subprocess.Popen([launch, launcher, n, orphan], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        pes, limit = [], time.monotonic() + 60
        while len(pes) < int(n) and job.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
            said.seek(0)
            lines = said.read().split("\n")[:-1]  # those that are whole
            pes = [int(line.split()[-1]) for line in lines if "PE is " in line and line[-1].isdigit()]
        if job.poll() == 77:
            said.seek(0)
            print(said.read().splitlines()[-1])
            sys.exit(77)
        victim = launcher_below(job.pid)
        if len(pes) < int(n) or victim is None:
            sys.exit(f"the job has not begun: PEs {pes}, launcher {victim}: {lines}")
        time.sleep(0.3)
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        while any(map(lives, pes)) and time.monotonic() < killed + SECONDS:
            time.sleep(0.01)
        took = time.monotonic() - killed
        left = [pid for pid in pes if lives(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        job.wait()
        said.seek(0)
        if left:
            sys.exit(f"PEs {left} of {pes} live on without their launcher; it said: {said.read()}")
        if job.returncode == 0:
            sys.exit("the job ended with status 0")
        print(f"all {n} PEs ended after {took * 1000:.0f} ms")


main()

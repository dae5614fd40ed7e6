#!/usr/bin/env python3
"""Lines that PEs have alike are written once, with a count; what one PE alone has is never held back, and is not lost
when it dies.

    alike.py PROGRAM LAUNCH
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from jobs import Job, check, check_end, finish  # noqa: E402

PROGRAM, LAUNCH = sys.argv[1:3]
BAD = "GSHMEM_LOG=loud: expected none|error|warn|info|debug"
OTHERS = "PE 1 made the same call with other arguments"
SELF = "PE 0 made the same call with other arguments"


def lines(text, part, more=False):
    return [line for line in text.splitlines() if part in line and line.startswith("gshmemrun: ") == more]


def bad_setting():
    for tag in ([], ["--tag-output"]):
        _, err = check_end(Job("-n", 4, *tag, PROGRAM, "differ", environment={"GSHMEM_LOG": "loud"}), 3, "a bad setting")
        check(len(lines(err, BAD)) == 1, f"the line of four PEs is there once:\n{err}")
        told = sum(int(line.split()[2]) for line in lines(err, "GSHMEM_LOG=loud", more=True))
        check(told <= 3, f"{told} of three others are counted:\n{err}")  # who was ended first says nothing


def differing_calls():
    _, err = check_end(Job("-n", 4, PROGRAM, "differ"), 0, "calls that differ")
    check(len(lines(err, OTHERS)) == 1 and len(lines(err, SELF)) == 1, f"each of two lines is there once:\n{err}")
    told = sum(int(line.split()[2]) for line in lines(err, "gshmem_reduce on team 0: PE 1", more=True))
    check(told == 2, f"two more PEs are counted:\n{err}")


def one_alone():
    _, err = check_end(Job("-n", 3, "sh", "-c", '[ $GSHMEM_RUN_PE = 2 ] && export GSHMEM_LOG=loud; exec "$@"', "-",
                           PROGRAM, "differ"), 3, "one PE's setting")
    check(len(lines(err, BAD)) == 1, f"the line of one PE is there:\n{err}")
    check(not lines(err, "GSHMEM_LOG=loud", more=True), f"and not counted:\n{err}")


def dies_at_once():
    _, err = check_end(Job("-n", 2, PROGRAM, "die"), 137, "a PE that dies")
    check(len(lines(err, OTHERS)) == 1, f"the last line of who died is there:\n{err}")


def goes_to_a_file():
    with tempfile.TemporaryDirectory() as folder:
        _, err = check_end(Job("-n", 2, "sh", "-c", f'exec "$@" 2>{folder}/$GSHMEM_RUN_PE', "-", PROGRAM, "differ"), 0,
                           "standard error of a PE's own")
        check(not lines(err, "other arguments"), f"nothing of it is gshmemrun's:\n{err}")
        for pe, part in enumerate((OTHERS, SELF)):
            with open(os.path.join(folder, str(pe)), encoding="utf-8") as file:
                check(part in file.read(), f"PE {pe} has its line in its file")


def other_launchers():
    for launcher, how, times in (("mpirun", "differ", 1), ("hydra", "differ", 1), ("mpirun", "again", 2),
                                 ("hydra", "again", 2)):
        done = subprocess.run([LAUNCH, launcher, "4", PROGRAM, how], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            continue
        err = done.stderr + done.stdout
        check(done.returncode == 0, f"{launcher}: exit status {done.returncode}:\n{err}")
        check(len(lines(err, OTHERS)) == times and len(lines(err, SELF)) == times,
              f"{launcher} {how}: each of two lines is there once for each time:\n{err}")


bad_setting()
differing_calls()
one_alone()
dies_at_once()
goes_to_a_file()
other_launchers()
finish()

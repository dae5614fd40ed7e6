#!/usr/bin/env python3
"""Two jobs of a user at a time whose names are the same: each is reported without the other's PEs.

    two_jobs.py LAUNCHER PROGRAM    the program's ways loop and sleep, with 3 and 2 PEs"""

import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from hangs import BUILD, HERE, SECONDS, end, process_of, where  # noqa: E402

EXPECTED = {"loop": (3, "loop_for_ever"), "sleep": (2, "sleep_for_ever")}


def begin(launcher, program, way, directory):
    os.mkdir(f"{directory}/{way}")
    return subprocess.Popen([f"{HERE}/../launch", launcher, str(EXPECTED[way][0]), program, way, f"{directory}/{way}"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)


def report(way, pids):
    n, function = EXPECTED[way]
    limit = time.monotonic() + SECONDS
    while True:
        text = where(str(pids[0]))
        lines = text.rstrip("\n").split("\n")
        if re.search(rf", {n} PEs on", lines[0]) and re.search(f"PE 1, which is outside.*{function}", lines[-1]):
            return
        if time.monotonic() > limit:
            raise SystemExit(f"{way}: expected {n} PEs and {function}, the report is\n{text}")
        time.sleep(0.1)


def main(launcher, program):
    with tempfile.TemporaryDirectory() as directory:
        jobs = {way: begin(launcher, program, way, directory) for way in EXPECTED}
        pids = {way: [] for way in EXPECTED}
        try:
            for way, (n, _) in EXPECTED.items():
                pids[way] = [process_of(f"{directory}/{way}", pe) for pe in range(n)]
            for way in EXPECTED:
                report(way, pids[way])
            for arguments in ((), ("mpi",)):
                asked = subprocess.run([f"{BUILD}/runtime/where/gshmem-where", *arguments], capture_output=True, text=True,
                                       timeout=SECONDS, check=False)
                named = re.findall(r"^  mpi: .* process (\d+)$", asked.stderr, re.M)  # others may run here, too
                if asked.returncode == 0 or any(len({*named} & {*map(str, of)}) != 1 for of in pids.values()):
                    raise SystemExit(f"expected a list with two jobs:\n{asked.stdout}{asked.stderr}")
        finally:
            for way in EXPECTED:
                end(jobs[way], pids[way])


main(*sys.argv[1:])

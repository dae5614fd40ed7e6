#!/usr/bin/env python3
"""The report of counts with which a job ends: GSHMEM_STATS=1 and =FILE.

    check.py PROGRAM"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("GSHMEM_TEST_BUILD", os.path.join(HERE, "../../build"))
RUN = os.path.join(BUILD, "bootstrap/run/gshmemrun")
# What counts.c makes for each of its PE's steps, by kind, and the bytes of its puts.
MADE = {"put": 4, "get": 2, "atomic": 2, "fetch": 1, "signal": 2}
PUT_BYTES = 8 + 9 + 20000 + 8


CUT = "a name of 39 bytes, cut off within it \ufffd"  # of counts.c: 39 bytes are kept, of which the last is half a character


class Wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def run(program, pes, *options, only="", way="work", **env):
    """only: the PE that has the settings."""
    command = [program, way]
    if only:
        settings = " ".join(f"{name}='{value}'" for name, value in env.items())
        command = ["sh", "-c", f'if [ "$GSHMEM_RUN_PE" = {only} ]; then export {settings}; fi; exec "$0" work', program]
    done = subprocess.run([RUN, "-n", str(pes), *options, *command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=100, env=dict(os.environ, **({} if only else env)))
    expect(done.returncode == 0, f"it ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stderr


def counts(path, pes, reported, counted):
    with open(path, encoding="utf-8") as file:
        read = json.load(file)
    expect(read["gshmem_stats"] == 1 and read["n_pes"] == pes, f"{path} is of {read['n_pes']} PEs")
    expect([p["pe"] for p in read["PEs"]] == reported, f"{path} has {[p['pe'] for p in read['PEs']]}")
    expect([p["pe"] for p in read["PEs"] if p["counts_all"]] == counted, f"{path}: who has counted all")
    return read


def value(pe, kind, what):
    return sum(v for name, v in pe["values"].items() if re.fullmatch(rf"{kind}\.\w+\.{what}", name))


def check_pe(pe, pes):
    n, right = pe["pe"] + 1, (pe["pe"] + 1) % pes
    for kind, of_step in MADE.items():
        made = value(pe, kind, "operations")
        expect(made == n * of_step, f"PE {pe['pe']}: {made} of {kind}, and {n * of_step} were made")
        by_size = value(pe, kind, "(to_.*|larger)")
        expect(by_size == made, f"PE {pe['pe']}: {kind}: {by_size} by sizes")
    expect(value(pe, "put", "bytes") == n * PUT_BYTES, f"PE {pe['pe']}: {value(pe, 'put', 'bytes')} bytes were put")
    names = [call["name"] for call in pe["calls"]]
    expect(CUT in names, f"PE {pe['pe']}: no name that was cut within a character: {names}")
    row = {p["pe"]: p for p in pe["peers"]}[right]
    internal = value(pe, "internal", "operations")
    expect(n * sum(MADE.values()) <= row["operations"] <= n * sum(MADE.values()) + internal,
           f"PE {pe['pe']}: {row['operations']} operations on PE {right}, and {internal} internal ones")
    expect(sum(p["operations"] for p in pe["peers"]) == n * sum(MADE.values()) + internal, f"the row of PE {pe['pe']}")


def check_file(program, folder):
    path = os.path.join(folder, "one.json")
    run(program, 4, "--hosts", "2", GSHMEM_STATS=path)
    first = counts(path, 4, [0, 1, 2, 3], [0, 1, 2, 3])
    expect(first["network"] == "tcp", f"the network is {first['network']}")
    for pe in first["PEs"]:
        check_pe(pe, 4)
        calls = {c["name"]: c["calls"] for c in pe["calls"]}
        expect(calls["gshmem_barrier_all"] == 1, f"the calls are {calls}")
    expect([name for name in os.listdir(folder) if name.startswith("one")] == ["one.json"], "other files were written")


def check_table(program):
    said = run(program, 3, GSHMEM_STATS="1")
    expect(said.count("gshmem: counts of 3 PEs, of all operations") == 1, f"not one table: {said}")
    expect(re.search(r"^  put\.mapped +24 +117 K +12 +6 +0 +0 +6 +0 +0 +0$", said, re.M), said)
    expect(re.search(r"^  signal\.mapped +12 +96 +12 ", said, re.M), said)
    expect(re.search(r"^  gshmem_barrier_all +3 ", said, re.M), said)
    expect(re.search(r"operations of each PE.*\n.*\n +0 +0 +11 +0\n +1 +0 +0 +22\n +2 +33 +0 +0\n", said), said)
    expect("several" in said, said)
    said = run(program, 2, GSHMEM_STATS="off")
    expect("counts" not in said, said)


def check_some(program, folder):
    """PE 0 decides whether there is one report; another PE that wants one writes its own."""
    path = os.path.join(folder, "some.json")
    run(program, 3, only="0", GSHMEM_STATS=path)
    counts(path, 3, [0, 1, 2], [0])
    os.unlink(path)
    run(program, 3, only="1", GSHMEM_STATS=path)
    expect(not os.path.exists(path), "there is a file of the job")
    counts(path + ".1", 3, [1], [1])
    said = run(program, 2, GSHMEM_STATS=os.path.join(folder, "nowhere", "x.json"))
    expect(said.count("warning: GSHMEM_STATS: the counts cannot be written to") == 2 and "No such file" in said,
           f"not at the start and at the end: {said}")


def check_away(program, folder):
    """A relative name is of the folder in which the job began, also if its PEs go elsewhere."""
    here = os.path.relpath(folder)
    run(program, 2, way="away", GSHMEM_STATS=os.path.join(here, "away.json"))
    counts(os.path.join(folder, "away.json"), 2, [0, 1], [0, 1])


def main():
    folder = tempfile.mkdtemp(prefix="gshmem-test-stats-")
    try:
        check_file(sys.argv[1], folder)
        check_table(sys.argv[1])
        check_some(sys.argv[1], folder)
        check_away(sys.argv[1], folder)
    except Wrong as wrong:
        print(wrong)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Kills one process of a job, with SIGKILL, at a random moment, again and again.

    kill.py [--rounds N] [--seed N] [--victim WHO] BUSY

The victim is a PE, the launcher or the guard, of a job whose PEs run BUSY directly, below a script, or
below a script with children of its own. Whoever it is, soon the job has ended with a status other than
0, no process of it lives, and nothing is left in /dev/shm or /tmp. How soon is printed; it is tenths of a
second where there is a CPU for it."""

import argparse
import os
import random
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gshmemrun"))
from jobs import Job  # noqa: E402

SECONDS = 30  # a job that has not ended by then never will

FORMS = {
    "program": ["BUSY"],
    "script": ["sh", "-c", '"$0"; exit $?', "BUSY"],
    "family": ["sh", "-c", 'sleep 60 & (setsid sleep 60 &); "$0" & wait $!', "BUSY"],
}


def names():
    """What GSHMEM might have left where names last. Others use them too: tools name files after what they
    compile, and tests their own."""
    return {entry.path for place in ("/dev/shm", "/tmp") for entry in os.scandir(place)
            if entry.name.lower().startswith("gshmem") and not entry.name.startswith("gshmem-test-")
            and not entry.is_dir(follow_symlinks=False)}


def choose(job, victim, random):
    """A process to kill, or None if it has not begun to live yet."""
    found = job.processes()
    guard = job.process.pid
    launcher = [p.pid for p in found if p.name.startswith("gshmem-launcher")]
    if victim == "guard":
        return guard
    if victim == "launcher":
        return launcher[0] if launcher else None
    # A PE is BUSY, or the script that runs it; the rest of its family is the script's business.
    busy = [p for p in found if p.name == "busy"]
    pes = [p.pid for p in busy] + [p.parent for p in busy if p.parent not in launcher + [guard]]
    return random.choice(pes) if pes else None


def run(number, busy, random, victims):
    form = random.choice(list(FORMS))
    victim = random.choice(victims)
    n_pes = random.choice([2, 3, 4])
    tag = random.choice([[], ["--tag-output"]])
    delay = random.choice([0.003, 0.03, 0.3]) * random.random()
    program = [busy if word == "BUSY" else word for word in FORMS[form]]
    what = (f"round {number}: {victim} of {n_pes} killed after {delay * 1000:.1f} ms, "
            f"{form} {' '.join(tag)}")

    job = Job("-n", n_pes, *tag, *program)
    time.sleep(delay)
    limit = time.monotonic() + 60
    pid = None
    while pid is None and time.monotonic() < limit:
        pid = choose(job, victim, random)
    if pid in (None, 1):
        job.give_up(f"{what}: there is no victim")
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        job.give_up(f"{what}: it had ended before")
    killed = time.monotonic()

    status, _, errors = job.end(SECONDS)
    left = job.left(max(0, SECONDS - (time.monotonic() - killed)))
    took = time.monotonic() - killed
    job.clean_up()
    problems = []
    if status == 0:
        problems.append("status 0")
    if took > SECONDS:
        problems.append(f"it took {took:.1f} s")
    if left:
        problems.append(f"left {[(p.pid, p.name) for p in left]}")
    if victim != "guard" and "gshmemrun: " not in errors:
        problems.append(f"it did not say why: {errors!r}")
    for problem in problems:
        print(f"{what}: {problem}")
    return took, not problems


def main():
    p = argparse.ArgumentParser()
    p.add_argument("busy")
    p.add_argument("--rounds", type=int, default=50)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--victim", choices=["PE", "launcher", "guard"])
    args = p.parse_args()
    rng = random.Random(args.seed)
    print(f"seed {args.seed}")
    victims = [args.victim] if args.victim else ["PE", "PE", "launcher", "guard"]
    before = names()

    with tempfile.TemporaryDirectory(prefix="kill-test-") as directory:
        os.environ["TMPDIR"] = directory
        results = [run(i, args.busy, rng, victims) for i in range(args.rounds)]
        left = os.listdir(directory)
    new = names() - before
    if left or new:
        print(f"left in TMPDIR: {left}, elsewhere: {sorted(new)}")
    took = sorted(t for t, _ in results)
    good = sum(ok for _, ok in results)
    print(f"{good} of {len(results)} rounds as they should be; the end came after "
          f"{took[len(took) // 2] * 1000:.0f} ms in the middle, {took[-1] * 1000:.0f} ms at most")
    sys.exit(0 if good == len(results) and not left and not new else 1)


main()

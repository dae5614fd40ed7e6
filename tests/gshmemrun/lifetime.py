#!/usr/bin/env python3
"""How jobs end, and that nothing outlives them: scripts with children of their own, daemons, processes
that ignore SIGTERM, and gshmemrun's own processes killed."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from jobs import GSHMEMRUN, Job, Process, check, check_end, finish  # noqa: E402

# A script whose children do as they like: one in the background, one in a session of its own, one
# that ignores SIGTERM, and one that has lost its parents.
FAMILY = """
sleep 61 &
setsid sleep 62 &
(trap '' TERM; sleep 63; sleep 64) &
(setsid sh -c 'sleep 65 & sleep 66 &' &)
sleep 0.1
"""
# PE 0 fails when the others are ready, which end well some time after they were told to end.
ENDS_WELL = """
import os, signal, sys, time
def end(number, frame):
    time.sleep(0.05)
    os.write(1, b"ended well\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
pe = os.environ["GSHMEM_RUN_PE"]
open(f"{sys.argv[1]}/{pe}", "w").close()
while pe != "0" or len(os.listdir(sys.argv[1])) < 3:
    time.sleep(0.02)
os._exit(3)
"""
MEMBERS = ["61", "62", "63", "65", "66"]  # the times of those below a PE that sleep


def is_there(processes):
    """Whether two PEs have all of theirs."""
    times = []
    for p in processes:
        with contextlib.suppress(OSError), open(f"/proc/{p.pid}/cmdline") as f:
            words = f.read().split("\0")
            times += words[1:2] if words[0] == "sleep" and words[1] in MEMBERS else []
    return sorted(times) == sorted(2 * MEMBERS)


def family(then, **more):
    job = Job("-n", 2, "sh", "-c", FAMILY + then, **more)
    job.wait_for(is_there, "the family")
    return job


def normal_end():
    """Who leaves children behind has them ended."""
    job = Job("-n", 2, "sh", "-c", FAMILY)
    check_end(job, 0, "PEs that leave children behind")


def one_dies():
    job = family("[ $GSHMEM_RUN_PE = 0 ] && { read go; exit 9; }; sleep 67", stdin=subprocess.PIPE)
    job.process.stdin.write("go\n")
    job.process.stdin.flush()
    check_end(job, 9, "a PE that fails", "PE 0 (pid ")


def killed(which, status, text):
    job = family("sleep 67")
    guard = job.process.pid
    launcher = job.named("gshmem-launcher")
    check(len(launcher) == 1, "one launcher")
    os.kill(guard if which == "guard" else launcher[0].pid, signal.SIGKILL)
    check_end(job, status, f"the {which} killed", text)


def both_killed(launched):
    """Nobody is left to clean up: PEs below a script hold on to the lifeline."""
    job = Job("-n", 2, "sh", "-c", '"$0" run absent; exit', launched)
    job.wait_for(lambda ps: sum(p.name == "launched" for p in ps) == 2, "PEs")
    time.sleep(0.3)  # by now they have mostly said hello; if not, they are refused
    both = [job.process.pid, job.named("gshmem-launcher")[0].pid]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in both:
            os.kill(pid, number)
    check_end(job, -9, "guard and launcher killed at once")


def output_killed():
    job = Job("-n", 2, "--tag-output", "sleep", 60)
    job.wait_for(lambda ps: sum(p.name == "sleep" for p in ps) == 2, "PEs")
    os.kill(job.named("gshmem-output")[0].pid, signal.SIGKILL)
    got, _, err = job.end()
    check(got > 0 and "the process that tags output has died" in err, f"{got}, {err!r}")
    check(not job.left(), "something is left of a job whose output process was killed")


def strangers_orphans_are_spared():
    """Nor is what such a child leaves behind when it ends during the job."""
    script = (f"sh -c 'sleep 61 & echo $!; exec 1>&-; sleep 0.3' & exec {GSHMEMRUN} -n 1 sleep 1")
    shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    stranger = int(shell.stdout.readline())
    check(shell.wait(60) == 0, f"the job ended with {shell.returncode}")
    try:
        check(Process(stranger).state not in "ZX", "what a stranger left behind was killed")
        os.kill(stranger, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        check(False, "what a stranger left behind was killed")
    shell.stdout.close()


def strangers_are_spared():
    """Children of who became gshmemrun by exec are none of its business."""
    job = Job("-n", 1, "true")
    job.end()
    shell = subprocess.Popen(["sh", "-c", f"sleep 60 & echo $!; exec {GSHMEMRUN} -n 2 sleep 60"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stranger = int(shell.stdout.readline())
    children = []
    while not children and shell.poll() is None:
        children = subprocess.run(["pgrep", "-P", str(shell.pid), "gshmem-launcher"],
                                  stdout=subprocess.PIPE, text=True).stdout.split()
    check(len(children) == 1, "one launcher")
    os.kill(int(children[0]), signal.SIGKILL)
    check(shell.wait(60) == 137, "the launcher killed")
    try:
        os.kill(stranger, signal.SIGKILL)
    except ProcessLookupError:
        check(False, "a stranger was killed")


def stubborn():
    """Who ignores SIGTERM is killed all the same, also when stopped."""
    job = Job("-n", 2, "sh", "-c", "trap '' TERM; [ $GSHMEM_RUN_PE = 0 ] && exit 3; kill -STOP $$")
    check_end(job, 3, "a stubborn PE")


def told_first():
    """Those who can end by themselves are given the time, half a second. They need little of it, and start no process
    for it, but on a busy machine they may not get the CPU in that time: one job of five has to show it."""
    for _ in range(5):
        with tempfile.TemporaryDirectory(prefix="gshmem-test-") as directory:
            job = Job("-n", 3, sys.executable, "-c", ENDS_WELL, directory)
            out, _ = check_end(job, 3, "PEs that end well on SIGTERM")
        if out == "ended well\n" * 2:
            return
    check(False, f"they said {out!r}")


def main():
    normal_end()
    one_dies()
    killed("launcher", 137, "the launcher was killed by signal 9")
    killed("guard", -9, "gshmemrun itself was killed")
    both_killed(sys.argv[1])
    output_killed()
    strangers_orphans_are_spared()
    strangers_are_spared()
    stubborn()
    told_first()
    finish()


main()

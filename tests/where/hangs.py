#!/usr/bin/env python3
"""Jobs that hang, and what is said of them: which PE blocks the job, and where.

    hangs.py LAUNCHER PROGRAM WAY…    run, hosts2, hosts3, mpirun or hydra, with 3 PEs; emulated: mpirun on
                                      3 emulated hosts, asked on that of PE 0; clocks: hosts3, and PE 1 has
                                      another clock

Each way is started, asked by gshmem-where until the last line is the one that is expected, and ended."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("GSHMEM_TEST_BUILD", os.path.join(HERE, "../../build"))
SECONDS = 100  # until a report is right, on a busy machine too
# While a PE is stopped the others wait for it: one that is given up ends that.
os.environ["GSHMEM_PEER_TIMEOUT"] = "1000"

OUTSIDE = "wait for PE 1, which is outside of calls that wait"
STOPPED = "because of PE 1, which is stopped"
# Way: what the last line has to have, and what some line has to have.
WAYS = {
    "loop": (OUTSIDE + r", in loop_for_ever \(hangs.c:\d+\)", r"gshmem_barrier_all on team 0, for PE 1"),
    "sleep": (OUTSIDE + r".*sleep_for_ever \(hangs.c:\d+\)", r"PE 1: outside of calls that wait, sleeping"),
    "read": (OUTSIDE + r".*read_for_ever \(hangs.c:\d+\)", r"called by way_read \(hangs.c:\d+\)"),
    "signal_nobody": (r"PEs 0-2 wait in signal_wait_until for an update that no PE is left to make",
                      r"the variable signal_word, which is 0 and has to be == 1"),
    "signal_loop": (r"only PE 1 can make the update.*loop_for_ever", r"which is 0 and has to be >= 3"),
    "any": (r"PEs 0-2 wait in wait_until_any.* for an update that no PE is left", r"the variable flags"),
    "variable_heap": (r"only PE 1 can make the update", r"PEs 0,2: in wait_until, the variable that is \d+ bytes into the heap, which is 0"),
    "lock": (OUTSIDE + r".*loop_for_ever.*; it holds the lock lock", r"gshmem_set_lock, the lock lock, for PE \d"),
    "lock_cycle": (r"deadlock: PE 0 waits for PE 1 .*, PE 1 for PE 2 .*, PE 2 for PE 0", r"the lock locks"),
    "lock_barrier": (r"deadlock: PE [012] waits for PE", r"gshmem_set_lock, the lock lock"),
    "wrong_team": (r"deadlock: PE [012] waits for PE", r"gshmem_team_sync on team"),
    "team": (OUTSIDE, r"gshmem_team_sync on team \d+, for PE 1"),
    "reduce": (OUTSIDE, r"reduce on team 0, for PE 1"),
    "broadcast": (OUTSIDE, r"broadcast\w* on team 0, for PE 1"),
    "alltoall": (OUTSIDE, r"for PE 1"),
    "malloc": (OUTSIDE, r"gshmem_malloc on team 0, for PE 1"),
    "split": (OUTSIDE, r"gshmem_team_split_strided on team 0, for PE 1"),
    "finalize": (OUTSIDE, r"gshmem_finalize on team 0, for PE 1"),
    "test_lock": (OUTSIDE + r".*way_test_lock", r"gshmem_barrier_all on team 0, for PE 1"),
    "chain": (r"deadlock: PE 0 waits for PE 2 \(in gshmem_barrier_all\), PE 2 for PE 0", r"gshmem_set_lock"),
    "thread": (r"wait for PE 1, which waits in gshmem_set_lock: another thread of this PE has it", r"PE 1: in gshmem_set_lock, the lock lock, another thread of this PE has it"),
    "kernel_wait": (r"only PE 1 can make the update.*loop_for_ever", r"kernel kernel_that_waits, block \(0,0,0\)"),
    "kernel_meet": (OUTSIDE + r".*loop_for_ever", r"in a collective in a kernel on team 0, kernel kernel_that_meets"),
    "kernel_warps": (OUTSIDE + r".*loop_for_ever", r"in a collective in a kernel on team 0, kernel kernel_of_warps, "
                                                  r"block \(0,0,0\), thread \(32,0,0\)"),
    "kernel_over": (OUTSIDE + r".*sleep_for_ever", r"PE 1: outside of calls that wait, sleeping"),
    "kernel_loop": (r"PE 1 waits in a wait in a kernel for an update that no other PE is left to make; beside it, a "
                    r"thread of PE 1 runs in .*kernels.cu:\d+",
                    r"PEs 0,2: in gshmem_barrier_all on team 0.*called by [^.]*\(kernels.cu:\d+\)[\s\S]*"
                    r"kernel kernel_that_loops, block \(0,0,0\)"),
    "stream_teams": (r"deadlock(, unless another thread ends it)?: PE \d waits for PE \d \(in gshmem_team_sync\)", r"PEs 0,2: on a stream: in gshmem_team_sync on team 13\d\d, for PE 1"),
    "kernel_teams": (r"deadlock(, unless another thread ends it)?: PE \d waits for PE \d \(in a collective in a kernel\), PE \d for PE \d",
                     r"in a collective in a kernel on team 13\d\d, kernel kernel_that_syncs, block \(0,0,0\)"),
    "stopped_kernel": (STOPPED, r"PE 0: in an operation in a kernel.*channel \d+: put in a kernel, to PE 1, .*for PE 1"),
    "wrong_address": (r"PE 1 waits in signal_wait_until for memory that is not symmetric: no other PE can update it",
                      r"PE 1: .*0x[0-9a-f]+ \(not symmetric: no other PE reaches it\), which is 0 and has to be == 1"),
    "wrong_flag": (r"PE 1 waits in signal_wait_until for an update that no PE is left to make",
                   r"the variable other_flag, which is 0 and has to be == 1"),
    "order_of_teams": (r"deadlock: PE 0 waits for PE 1 \(in gshmem_reduce\), PE 1 for PE 0", r"gshmem_reduce on team \d+, for PE 1"),
    "mutex": (r"only PE 1 can make the update that PE 0 waits for, and is outside.*take_mutex",
              r"PE 1: outside.*take_mutex.*another thread: in gshmem_barrier_all on team 0, for PE 0"),
    "cancelled": (r"the others wait for PE 0, which is outside.*loop_for_ever",
                  r"PE 1: outside of calls that wait.*another thread: in gshmem_barrier_all on team 0, for PE 0"),
    "stdout_full": (OUTSIDE + r".*print_for_ever", r"PE 1: outside of calls that wait, sleeping in print_for_ever"),
    "child": (OUTSIDE + r".*way_child", r"PE 1: outside of calls that wait, sleeping"),
    "handler": (OUTSIDE + r".*loop_for_ever.*handle_for_ever", r"PE 1: .*running in loop_for_ever"),
    "signal_handler": (OUTSIDE + r".*loop_for_ever.*interrupt_for_ever", r"for PE 1"),
    "atexit": (OUTSIDE + r".*loop_for_ever", r"for PE 1"),
    "main_ended": (OUTSIDE + r".*loop_for_ever.* < compute", r"for PE 1"),
    "worker": (r"PE 1 waits in signal_wait_until for an update that no other PE is left to make; beside it, a thread of "
               r"PE 1 runs in loop_for_ever.* < compute", r"the variable flag"),
    "nobody_waits": (r"no PE waits in a call of GSHMEM, and none computes.*take_mutex", r"PEs 0-2: outside.*sleeping in take_mutex"),
    "last": (r"wait for PE 2, which is outside.*loop_for_ever", r"PEs 0,1: in gshmem_barrier_all on team 0, for PE 2"),
    "computes": (r"no PE waits: the job computes", r"PEs 0-2: outside of calls that wait, sleeping in way_computes \(odd.c:\d+\) < "
                 r"main \(odd.c:\d+\); beside it, a thread runs in loop_for_ever"),
    "many": (OUTSIDE + r".*loop_for_ever", r"PE 0: in gshmem_barrier_all on team 0, for PE 1; .*; \d+ other threads: in signal_wait_until"),
    "joined": (OUTSIDE + r".*loop_for_ever", r"PEs 0,2: outside.*another thread: in gshmem_barrier_all on team 0, for PE 1"),
    "stopped_barrier": (STOPPED, r"gshmem_barrier_all on team 0, for PE 1"),
    "stopped_signal": (STOPPED, r"PE 1: is stopped.*in signal_wait_until"),
    "stopped_get": (STOPPED, r"answer.* over tcp, for PE 1"),
    "stopped_add": (STOPPED, r"answer.* over tcp, for PE 1"),
    "stopped_quiet": (STOPPED, r"gshmem_quiet, .* over tcp, for PE 1|gshmem_\w*put_nbi"),
    "stopped_room": (STOPPED, r"for PE 1"),
}


# What the report has to say before PE 1 is stopped, if the others would not wait for it otherwise.
BEFORE = {"stopped_signal": r"PEs? (1|0,1|1,2|0-2): in signal_wait_until"}

# Of a PE of another host nobody here has the stack, nor knows whether its process is stopped.
EMULATED = {
    "loop": OUTSIDE + "$",
    "sleep": OUTSIDE + "$",
    "lock": OUTSIDE + "; it holds the lock lock$",
    "signal_loop": "only PE 1 can make the update that PE [02] waits for, and is outside of calls that wait$",
    "stopped_barrier": "because of PE 1, which does not answer, nor does any other PE of its node",
}


def where(pid, enter=()):
    result = subprocess.run([*enter, f"{BUILD}/runtime/where/gshmem-where", pid], capture_output=True, text=True, timeout=SECONDS)
    return result.stdout


def command_of(launcher):
    if launcher == "emulated":
        return [f"{HERE}/../hosts/launch", "mpirun", "3", "1"]
    if launcher == "clocks":
        other = ["unshare", "--time", "--monotonic=100000"]
        if os.geteuid() or subprocess.run([*other, "true"], capture_output=True, check=False).returncode:
            print("SKIP: another clock needs root")
            sys.exit(77)
        return [f"{HERE}/../launch", "hosts3", "3", f"{HERE}/other_clock"]
    return [f"{HERE}/../launch", launcher, "3"]


def process_of(directory, pe, job=None):
    limit = time.monotonic() + SECONDS
    while time.monotonic() < limit:
        if job and job.poll() == 77:
            print(job.stdout.read())
            sys.exit(77)
        try:
            with open(f"{directory}/{pe}") as f:
                text = f.read()
            if text.endswith("\n"):
                return int(text)
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    raise SystemExit(f"PE {pe} has not begun")


def is_right(text, last, some, launcher):
    lines = text.rstrip("\n").split("\n")
    if not re.search(last, lines[-1]):
        return False
    if launcher == "clocks":
        return re.search(r"PE 1: .* \(for \d\d? s\)", text) is not None
    if launcher.startswith(("hosts", "emulated")) and not some.startswith("PE 0: in an operation in a kernel"):
        return True
    return re.search(some, text) is not None


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def end(job, pids, launcher=""):
    """Over emulated hosts the PEs' end ends the launcher, and then what emulates them ends by itself."""
    if launcher == "emulated":
        send(pids, signal.SIGKILL)
        try:
            job.communicate(timeout=30)
            return
        except subprocess.TimeoutExpired:
            pass
    send(pids, signal.SIGCONT)
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(job.pid, number)
        except ProcessLookupError:
            pass
        try:
            job.wait(5)
            return
        except subprocess.TimeoutExpired:
            pass


def stop(pid, before, ask):
    """Stops PE 1, once the report says that it is where it has to be."""
    time.sleep(0.3)  # so that PEs mostly wait by then; it passes either way
    limit = time.monotonic() + SECONDS
    while before and not re.search(before, ask()) and time.monotonic() < limit:
        time.sleep(0.1)
    os.kill(pid, signal.SIGSTOP)


def hang(launcher, program, way):
    last, some = WAYS[way]
    if launcher == "emulated":
        last = EMULATED.get(way, last)
    text = ""
    with tempfile.TemporaryDirectory() as directory:
        job = subprocess.Popen([*command_of(launcher), program, way, directory],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        pids = [process_of(directory, pe, job) for pe in range(3)]
        enter = ["nsenter", f"--net=/proc/{pids[0]}/ns/net"] if launcher == "emulated" else []
        try:
            if way.startswith("stopped"):
                stop(pids[1], BEFORE.get(way), lambda: where(str(pids[0]), enter))
            limit = time.monotonic() + SECONDS
            while time.monotonic() < limit and not is_right(text, last, some, launcher):
                time.sleep(0.1)
                text = where(str(pids[0]), enter)
            for _ in range(10):  # on a loaded machine lines may not be found in time
                time.sleep(0.3)  # the first one may be right by chance, while PEs are on their way
                text = where(str(pids[0]), enter)
                if is_right(text, last, some, launcher):
                    break
        finally:
            end(job, pids, launcher)
    if is_right(text, last, some, launcher):
        return True
    print(f"{way} under {launcher}: expected a last line with\n  {last}\nand a line with\n  {some}\nbut the report is\n{text}")
    return False


def main(launcher, program, *ways):
    good = [hang(launcher, program, way) for way in ways]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

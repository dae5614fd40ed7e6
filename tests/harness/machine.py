"""What this machine has, and a Slurm for the time of the tests."""

import contextlib
import os
import re
import shutil
import subprocess

# program, how to ask for its version, what it is called
PROGRAMS = [
    ("gcc", ["--version"], "gcc"),
    ("clang", ["--version"], "clang"),
    ("meson", ["--version"], "meson"),
    ("mpirun.openmpi", ["--version"], "Open MPI"),
    ("mpiexec.hydra", ["--version"], "hydra"),
    ("srun", ["--version"], "Slurm"),
    ("nvcc", ["--version"], "nvcc"),
]


def version(program, arguments):
    try:
        text = subprocess.run([program] + arguments, capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"(?:release |^|\s)v?(\d+\.[\d.]*\d)", text)
    return found.group(1) if found else ""


def describe():
    have = [f"{name} {version(program, arguments)}".rstrip() for program, arguments, name in PROGRAMS
            if shutil.which(program)]
    return f"{len(os.sched_getaffinity(0))} CPUs, {', '.join(have)}"


@contextlib.contextmanager
def slurm(root, wanted):
    """One Slurm and one allocation of it for all tests; tests/launch finds it in the environment, or
    why there is none."""
    given = os.environ.keys() & {"GSHMEM_TEST_SLURM_JOB", "GSHMEM_TEST_NO_SLURM"}  # by a run around this one
    if not wanted or given or not shutil.which("srun"):
        yield
        return
    keeper = subprocess.Popen(
        [os.path.join(root, "tests", "slurm"),
         "sh", "-c", 'echo "$SLURM_JOB_ID $SLURM_CONF"; read -r end'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = keeper.stdout.readline().strip()
        job, _, conf = line.partition(" ")
        if job.isdigit():
            os.environ.update(SLURM_CONF=conf, GSHMEM_TEST_SLURM_JOB=job)
        else:
            os.environ["GSHMEM_TEST_NO_SLURM"] = line.removeprefix("SKIP: ") or "it did not start"
        yield
    finally:
        keeper.stdin.close()
        try:
            keeper.wait(timeout=20)
        except subprocess.TimeoutExpired:
            keeper.terminate()

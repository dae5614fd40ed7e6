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
    """One Slurm for all tests that want it; tests/launch finds it by SLURM_CONF, or why there is none
    by GSHMEM_TEST_NO_SLURM."""
    if not wanted or "SLURM_CONF" in os.environ or not shutil.which("srun"):
        yield
        return
    keeper = subprocess.Popen(
        [os.path.join(root, "tests", "slurm"), "sh", "-c", 'echo "$SLURM_CONF"; read -r end'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = keeper.stdout.readline().strip()
        if line.startswith("/"):
            os.environ["SLURM_CONF"] = line
        else:
            os.environ["GSHMEM_TEST_NO_SLURM"] = line.removeprefix("SKIP: ") or "Slurm did not start"
        yield
    finally:
        os.environ.pop("SLURM_CONF", None)
        keeper.stdin.close()
        try:
            keeper.wait(timeout=20)
        except subprocess.TimeoutExpired:
            keeper.terminate()

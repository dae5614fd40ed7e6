"""What this machine has: GPUs, a compiler for them, NVIDIA's tools and libraries."""

import functools
import glob
import os
import shutil
import subprocess


def output(*command):
    """What it prints; None if it is not there or fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.lru_cache(None)
def gpus():
    """[(name, driver, memory, compute capability)]"""
    found = output("nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap",
                   "--format=csv,noheader")
    rows = [[field.strip() for field in line.split(",")] for line in (found or "").splitlines()]
    return [row for row in rows if len(row) == 4]


def architecture(found):
    """Of the GPUs, as nvcc's -arch takes it."""
    capabilities = {row[3].replace(".", "") for row in found}
    return f"sm_{capabilities.pop()}" if len(capabilities) == 1 else "native"


def device_of_rehearsal():
    """nvcc's code, where there is an nvcc."""
    return "ptx" if shutil.which("nvcc") else "host"


def missing(rehearsal):
    """Why nothing can be run here; "" if it can."""
    for tool in ["meson", "ninja", "c++"] + ([] if rehearsal else ["nvcc"]):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    if not rehearsal and not gpus():
        return "nvidia-smi finds no GPU"
    return ""


def package(name):
    """The folder of NVIDIA's library `name`: $NAME_HOME, or that of its Python package."""
    found = os.environ.get(name.upper() + "_HOME")
    if not found:
        found = output("python3", "-c", f"import nvidia.{name} as p; print(list(p.__path__)[0])")
    return found if found and os.path.isdir(os.path.join(found, "include")) else None


def library(folder, name):
    """The file of lib`name`.so.N in its package, which has no link without a number."""
    found = sorted(glob.glob(os.path.join(folder, "lib", f"lib{name}.so*")))
    return found[0] if found else None


class Mps:
    """NVIDIA's multi-process service for as long as this lives: kernels of PEs that share a GPU then
    run at the same time. It is asked for with --mps, and has its files below `folder`."""

    def __init__(self, folder):
        self.env = {}
        if not shutil.which("nvidia-cuda-mps-control"):
            raise RuntimeError("nvidia-cuda-mps-control is not installed")
        for variable in "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY":
            self.env[variable] = os.path.join(folder, variable.lower())
            os.makedirs(self.env[variable], exist_ok=True)
        os.environ.update(self.env)
        if output("nvidia-cuda-mps-control", "-d") is None:
            raise RuntimeError("nvidia-cuda-mps-control -d failed")

    def end(self):
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, timeout=30,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

"""How C made from PTX is compiled."""

import os
import subprocess

# What it relies on, whoever compiles it.
DIALECT = [
    "-std=gnu11",
    "-w",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-math-errno",
]
# More instructions than that are compiled with -O1, which takes a third less time: README.md.
LARGE = 4000


def c_flags(instructions):
    """For a module of so many instructions."""
    level = "-O1" if instructions > LARGE else "-O2"
    return ["-x", "c", *DIALECT, level, "-fPIC"]


def include_folder():
    """Where gshmem/host_device/ptx.h is: in the sources, or in the prefix that this was installed
    in."""
    folder = os.path.dirname(os.path.realpath(__file__))
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, "include/gshmem/host_device/ptx.h")):
            return os.path.join(folder, "include")
    return ""


def build_library(source, output, host, loaded=True, instructions=0):
    """A shared library of a file in C, linked with `host`; true if that went well. loaded: by
    cuModuleLoadData, else a part of a program, whose host code finds it by its PTX."""
    compiler = os.environ.get("CC", "cc").split()
    flags = [*c_flags(instructions), "-shared", "-I" + include_folder()]
    if loaded:
        flags.append("-DGSHMEM_PTX_LIBRARY")
    return (
        subprocess.run(
            compiler + flags + [source, "-x", "none", host, "-o", output, "-lm"], check=False
        ).returncode
        == 0
    )

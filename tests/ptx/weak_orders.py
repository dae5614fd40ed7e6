#!/usr/bin/env python3
"""Programs on weak memory (GSHMEM_PTX_MEMORY=weak): they pass as they are, and fail where an order,
a fence or a scope of the device headers is missing.

weak_orders.py GSHMEMCC GSHMEMRUN ROUNDS PROGRAM...     -v: what was found, and how soon

A program is orders, or one of tests/litmus. A defect is a replacement in the PTX that nvcc makes of
the headers. A program is compiled once: where the C of a defect differs, a variable of the
environment chooses.
"""

import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from machine import translator

HERE = os.path.dirname(os.path.realpath(__file__))
PATIENCE = 60  # seconds, for a run with a defect; it may hang
LONG = 7200  # for one without
TRIES = 12  # for each defect, with seeds of their own, and more rounds from time to time
NOTHING = "fence.proxy.alias;"  # orders nothing here
MAPPED, LOCAL, HOSTS = "mapped", "local", "hosts2"  # paths, as in tests/kernel
MESSAGES = {"orders": [MAPPED], "message": [MAPPED]}
COMMANDS = {"orders": [LOCAL], "message": [LOCAL]}


@dataclass
class Defect:
    """found: on which paths, by which programs."""

    name: str
    old: str
    new: str
    found: dict = field(default_factory=lambda: MESSAGES)




WAIT, SIGNAL = r"ld\.acquire\.sys\.global\.u64", r"st\.release\.sys\.global\.u64"
COMMAND, FENCE, QUIET = r"st\.release\.sys\.global\.v2", r"fence\.acq_rel\.sys;", r"membar\.sys;"
BOTH = {"orders": [MAPPED, LOCAL], "message": [MAPPED, LOCAL], "signals": [MAPPED]}
CROSS = {"orders": [MAPPED], "quiet": [MAPPED]}

DEFECTS = [
    Defect("a wait is no acquire", WAIT, "ld.relaxed.sys.global.u64", BOTH),
    Defect("a wait acquires in the block", WAIT, "ld.acquire.cta.global.u64", BOTH),
    Defect("a wait acquires on the GPU", WAIT, "ld.acquire.gpu.global.u64"),
    Defect("a signal is no release", SIGNAL, "st.relaxed.sys.global.u64"),
    Defect("a signal releases in the block", SIGNAL, "st.release.cta.global.u64"),
    Defect("a signal releases on the GPU", SIGNAL, "st.release.gpu.global.u64"),
    Defect(
        "a signal's addition is no release",
        r"red\.release\.sys\.",
        "red.relaxed.sys.",
        {"orders": [MAPPED], "signals": [MAPPED]},
    ),
    Defect(
        "a signal's addition releases in the block",
        r"red\.release\.sys\.",
        "red.release.cta.",
        {"orders": [MAPPED], "signals": [MAPPED]},
    ),
    Defect("a fence is missing", FENCE, NOTHING),
    Defect("a fence is for the block", FENCE, "fence.acq_rel.cta;"),
    Defect("a fence is for the GPU", FENCE, "fence.acq_rel.gpu;"),
    Defect("quiet has no fence", QUIET, NOTHING, CROSS),
    Defect("quiet does not order loads after stores", QUIET, "fence.acq_rel.sys;", CROSS),
    Defect("quiet is for the block", QUIET, "membar.cta;", CROSS),
    Defect("a command is no release", COMMAND, "st.relaxed.sys.global.v2", COMMANDS),
    Defect("a command releases in the block", COMMAND, "st.release.cta.global.v2", COMMANDS),
    Defect("a command releases on the GPU", COMMAND, "st.release.gpu.global.v2", COMMANDS),
    Defect(
        "a thread does not acquire what another of the GPU has waited for",
        r"ld\.acquire\.gpu\.global\.u64",
        "ld.relaxed.gpu.global.u64",
        {"quiet": [LOCAL]},
    ),
]

CHOOSE = """
#include <stdlib.h>
static int planted_defect;
__attribute__((constructor)) static void planted_choose(void)
{
    const char *text = getenv("PLANTED_DEFECT");
    planted_defect = text ? atoi(text) : -1;
}
"""


def compiler_module():
    """gshmem-ptxcc as a module of Python."""
    path = os.path.join(translator(), "gshmem-ptxcc")
    loader = importlib.machinery.SourceFileLoader("ptxcc", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ptxcc", loader))
    loader.exec_module(module)
    return module


def with_defects(translate, data, file):
    """The C of a module, in which PLANTED_DEFECT chooses one of DEFECTS; and which are there."""
    text = data.decode().split("\n")
    code, *rest = translate(data, file)
    lines, chosen, there = code.split("\n"), {}, set()
    by_line = [[n for n, d in enumerate(DEFECTS) if re.search(d.old, line)] for line in text]
    for layer in range(max(len(found) for found in by_line)):
        planted = [
            (
                re.sub(DEFECTS[found[layer]].old, DEFECTS[found[layer]].new, line)
                if layer < len(found)
                else line
            )
            for line, found in zip(text, by_line)
        ]
        changed = translate("\n".join(planted).encode(), file)[0].split("\n")
        at_line = 0  # of the PTX: each instruction has one
        for at, (one, other) in enumerate(zip(lines, changed)):
            if one.startswith("#line"):
                at_line = int(one.split()[1]) - 1
            elif one != other and not one.startswith("PTX_MODULE"):
                number = by_line[at_line][layer]
                there.add(number)
                chosen.setdefault(at, []).append(f"case {number}: {{ {other} }} break;")
    for at, cases in chosen.items():
        lines[at] = f'switch (planted_defect) {{ {" ".join(cases)} default: {{ {lines[at]} }} }}'
    return (CHOOSE + "\n".join(lines), *rest), there


def compile_program(gshmemcc, name, folder):
    """The program with all defects; which of them it has."""
    source = os.path.join(HERE, f'{"." if name == "orders" else "../litmus"}/{name}.cu')
    output = os.path.join(folder, name)
    show = [gshmemcc, "--show", "--device=ptx", "-O2", "-arch=sm_90", "-I" + os.path.dirname(HERE)]
    arguments = subprocess.check_output([*show, source, "-o", output], text=True)
    compiler, there = compiler_module(), set()
    plain = compiler.translate

    def planted(data, file):
        made, found = with_defects(plain, data, file)
        there.update(found)
        return made

    compiler.translate = planted
    if compiler.main(shlex.split(arguments)):
        sys.exit(f"{name} cannot be compiled")
    return output, there


def run(gshmemrun, program, rounds, path, defect=None, seed="auto"):
    """Whether it passed, and its output."""
    environment = dict(
        os.environ,
        GSHMEM_MAPPED="off" if path == LOCAL else "on",
        GSHMEM_HOST_THREADS="2",
        GSHMEM_PTX_SEED=str(seed),
        GSHMEM_LOG="info" if defect is None else "error",
    )
    if defect is not None:
        environment["PLANTED_DEFECT"] = str(defect)
    patience = LONG if defect is None else PATIENCE
    hosts = ["--hosts", "2"] if path == HOSTS else []
    done = subprocess.run(
        [gshmemrun, *hosts, "-n", "2", "--timeout", str(patience), program, str(rounds)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.returncode == 0, done.stdout + done.stderr


def is_found(gshmemrun, program, rounds, path, defect):
    """In words."""
    for attempt in range(TRIES):
        more = rounds << attempt // 3
        if not run(gshmemrun, program, more, path, defect, attempt)[0]:
            return f"found by try {attempt + 1}"
    return "is not found"


def try_program(tools, name, rounds, folder, verbose):
    """How many mistakes."""
    gshmemcc, gshmemrun = tools
    program, there = compile_program(gshmemcc, name, folder)
    wrong = 0
    for path in (MAPPED, LOCAL) if name == "orders" else (MAPPED, LOCAL, HOSTS):
        passed, output = run(gshmemrun, program, rounds, path)
        if not passed or "GSHMEM_PTX_SEED" not in output:
            print(f"{name}, {path}: fails as it is, or not on weak memory\n{output}")
            wrong += 1
    for number, defect in enumerate(DEFECTS):
        for path in defect.found.get(name, []):
            begin = time.monotonic()
            found = "is not there"
            if number in there:
                found = is_found(gshmemrun, program, min(rounds, 1000), path, number)
            if found.startswith("is"):
                wrong += 1
            if verbose or found.startswith("is"):
                seconds = time.monotonic() - begin
                print(f"{name}, {path}, {seconds:.1f} s: {defect.name}: {found}", flush=True)
    return wrong


def main(gshmemcc, gshmemrun, rounds, *names):
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    if not (shutil.which("nvcc") or shutil.which("nvcc", path=cuda + "/bin")):
        print("SKIP: nvcc is not installed")
        return 77
    os.environ["GSHMEM_PTX_MEMORY"] = "weak"
    verbose = "-v" in names
    with tempfile.TemporaryDirectory() as folder:
        wrong = sum(
            try_program((gshmemcc, gshmemrun), name, int(rounds), folder, verbose)
            for name in names
            if name != "-v"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

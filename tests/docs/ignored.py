#!/usr/bin/env python3
"""Compilers warn where a program ignores a status, and nowhere else: each ignored call warns, with
GSHMEM_NO_WARN_UNUSED none does, a status that is looked at does not; and the programs in README.md
compile without a warning, in C, in C++ and as CUDA source for the host device.

Usage: ignored.py ROOT BUILD GSHMEMCC"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMPILERS = {"gcc": "c", "clang": "c", "g++": "c++", "clang++": "c++"}
BLOCK = re.compile(r"^```(c|cuda)\n(.*?)^```", re.M | re.S)
CALLS = (
    "gshmem_init()", "gshmem_free(x)", "gshmem_barrier_all()", "gshmem_quiet()", "gshmem_set_lock(x)",
    "gshmem_putmem(x, y, 8, 1)", "gshmem_long_put(x, y, 1, 1)", "gshmem_long_p(x, 1, 1)",
    "gshmem_long_get_nbi(x, y, 1, 1)", "gshmem_long_atomic_add(x, 1, 1)",
    "gshmem_long_wait_until(x, GSHMEM_CMP_EQ, 1)", "gshmem_long_sum_reduce(0, x, y, 1)",
    "gshmem_signal_set((uint64_t *)x, 1, 1)", "gshmem_team_destroy(1)", "gshmem_ctx_quiet(c)",
    "gshmem_barrier_all_on_stream(NULL)", "gshmem_long_put_on_stream(x, y, 1, 1, NULL)", "gshmem_finalize()",
)
# Ignored without a warning: nothing that can fail is lost.
FREE = ("gshmem_last_error(NULL)", "gshmem_my_pe()", "gshmem_long_g(x, 1)", "gshmem_raise(gshmem_quiet())")


def program(statements):
    body = "".join(f"    {s};\n" for s in statements)
    return ('#include <gshmem.h>\n#include <gshmem/stream.h>\n'
            'void f(long *x, long *y, gshmem_ctx_t c);\nvoid f(long *x, long *y, gshmem_ctx_t c)\n{\n'
            f'    (void)x, (void)y, (void)c;\n{body}}}\n')


def warnings(command, text, suffix):
    """How many lines of the compiler's are warnings or errors, and all it says."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "program." + suffix)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        result = subprocess.run([*command, source, "-o", os.path.join(folder, "program")], capture_output=True,
                                text=True, check=False)
    said = result.stdout + result.stderr
    return len(re.findall(r"(?:warning|error):", said)), said


def wrong_in(name, language, flags, blocks):
    command = [name, "-x", language, "-Wall", "-Wextra", "-c", *flags]
    cases = [("ignored calls", command, program(CALLS), len(CALLS)),
             ("the same with GSHMEM_NO_WARN_UNUSED, and calls that may be ignored",
              [*command, "-DGSHMEM_NO_WARN_UNUSED"], program(CALLS + FREE), 0)]
    if name == "gcc":
        cases.append(("calls that may be ignored", command, program(FREE), 0))
    cases += [("a program of README.md", command, text, 0) for kind, text in blocks if kind == "c"]
    for what, line, text, due in cases:
        count, said = warnings(line, text, "c")
        if count != due:
            yield f"{name}: {what}: {count} warnings, {due} are due\n{said}"


def main(root, build, gshmemcc):
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    flags = [f"-I{root}/include", f"-I{build}/include"]
    found = [name for name in COMPILERS if shutil.which(name)]
    wrong = [line for name in found for line in wrong_in(name, COMPILERS[name], flags, blocks)]
    for kind, text in blocks:
        if kind == "cuda" and "g++" in found:
            count, said = warnings([gshmemcc, "--device=host", "-Wall", "-Wextra"], text, "cu")
            if count:
                wrong.append(f"gshmemcc: a program of README.md: {count} warnings\n{said}")
    if not found or {kind for kind, _ in blocks} != {"c", "cuda"}:
        wrong.append("no compiler, or no program of each kind in README.md")
    print("\n".join(wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

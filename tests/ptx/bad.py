#!/usr/bin/env python3
"""PTX that cannot be translated: one line with file, line and what is wrong; and no output.

bad.py
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile

from machine import HEADER, run_translator, translator

BODY = ".visible .entry k()\n{\n    .reg .b32 %r<4>;\n"
CASES = {
    "truncated": (HEADER + BODY + "    add.s32 %r1, %r2", ":7: error: .*it is truncated"),
    "newer": (".version 99.1\n.target sm_90\n", ":1: error: PTX of version 99.1"),
    "nothing": ("hello\n", ":1: error: "),
    "unknown": (
        HEADER + BODY + "    frob.s32 %r1, %r2;\n" * 3 + "}\n",
        ":7: error: frob.s32: .*it has none of this name; it is there 3 times, first here",
    ),
    "another form": (
        HEADER + BODY + "    cvt.rs.f16x2.f32 %r1, %r2;\n}\n",
        ":7: error: cvt.rs.f16x2.f32: .*it knows cvt.r",
    ),
    "a family": (
        HEADER + BODY + "    wgmma.fence.sync.aligned;\n}\n",
        ":7: error: wgmma.fence.sync.aligned: .*of matrices there are mma.sync m16n8",
    ),
    "copy by a tensor map": (
        HEADER + BODY + "    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%r1], [%r2];\n}\n",
        ":7: error: cp.async.bulk.tensor.2d.global.shared::cta.bulk_group: .*without tensor maps",
    ),
    "modifier": (
        HEADER + BODY + "    add.rn.s32 %r1, %r2, %r3;\n}\n",
        ":7: error: add.rn.s32: .*there once",
    ),
    "guarded": (
        HEADER + BODY + "    .reg .pred %p;\n    @!%p frob %r1;\n}\n",
        ":8: error: frob: ",
    ),
    "texture": (HEADER + ".global .texref t;\n", ":4: error: .*textures"),
    "type": (HEADER + ".global .b33 x;\n", ':4: error: ".b33" is no type'),
    "undeclared": (
        HEADER + BODY + "    add.s32 %r1, %r2, %x;\n}\n",
        ':7: error: .*"%x" is not declared',
    ),
    "label": (HEADER + BODY + "    bra L;\n}\n", ":7: error: bra: .*no label L"),
    "shared": (
        HEADER + ".shared .b8 a[300000];\n" + BODY + "    mov.u32 %r1, a;\n}\n",
        ":5: error: k: 300000 B of shared memory; a block can have 232448",
    ),
    "cluster": (
        HEADER + ".visible .entry k() .reqnctapercluster 2, 1, 1\n{\n}\n",
        "error: k: clusters",
    ),
    "parameter twice": (
        HEADER + ".visible .entry k(.param .u32 a, .param .u32 a)\n{\n    ret;\n}\n",
        ":4: error: the parameter a is declared twice",
    ),
    "library of NVSHMEM": (
        HEADER + ".visible .const .align 8 .b8 nvshmemi_device_state_d[1024];\n" + BODY + "    ret;\n}\n",
        ":4: error: nvshmemi_device_state_d: NVSHMEM's own device library is inside",
    ),
    "arguments": (
        HEADER + ".func f(.param .b32 a)\n{\n    ret;\n}\n" + BODY + "    call f;\n}\n",
        ":11: error: .*f has 0 results and 1 parameters, not 0 and 0",
    ),
    "short address": (
        HEADER + ".global .b32 x;\n" + BODY + "    mov.b32 %r1, x;\n}\n",
        ":8: error: .*the address of x, which has 64 bits, in 32",
    ),
    "vector of two": (
        HEADER + BODY + "    .reg .b64 %d;\n    ld.global.b32 {%r1, %r2}, [%d];\n}\n",
        ":8: error: ld.global.b32",
    ),
    "external": (HEADER + ".extern .global .b32 x;\n", ":4: error: x: a variable of another"),
}

# Operands of a wrong number or kind, and what is said of each.
OPERANDS = {
    "mov.u32 %r1": "1 operand instead of 2",
    "mov.u32 %r1, %r2, %r3": "3 operands instead of 2",
    "cvt.s64.s7 %r1, %r2": "",
    "bra": "0 operands instead of 1",
    "bra {%r1}": "",
    "call": "0 operands instead of 1",
    "call (%r1)": "",
    "bar.sync": "0 operands instead of 1 to 2",
    "bar.red.popc.u32 %r1, 0": "2 operands instead of 3 to 4",
    "barrier.cluster.wait %r1": "1 operand instead of 0",
    "shfl.sync.idx.b32 %r1, %r2": "2 operands instead of 5",
    "vote.sync.any.pred %p": "1 operand instead of 3",
    "brx.idx %r1, nosuch": "",
    "brx.idx %r1": "1 operand instead of 2",
    "add.s32 %r1, 08, %r2": '"08" is not declared',
    "cvt.rn.f16x2.f32 %r1, %r2, %r3, %r3": "4 operands instead of 3",
    "setp.eq.s32 %p, %r1, %r2, %p": "4 operands instead of 3",
    "setp.eq.and.s32 %p, %r1, %r2": "3 operands instead of 4",
    "set.eq.u32.s32 %r1, %r2, %r3, %p": "",
    "prmt.b32 %r1, %r2, %r3": "3 operands instead of 4",
    "fence.sc.gpu %r1": "1 operand instead of 0",
    "ld.global.u32 %r1": "1 operand instead of 2",
    "ld.global.u32 [%r1], %r1": "",
    "ld.global.v2.u32 %r1, [%r2]": "",
    "st.global.u32 %r1, [%r2]": "",
    "atom.global.add.u32 %r1, [%r2]": "",
    "red.global.add.u32 [%r1], %r2, %r3": "",
    "red.global.add.u32 [%r1], %r2, %r3, %r3": "4 operands instead of 2 to 3",
    "elect.sync %r1": "1 operand instead of 2",
    "match.all.sync.b32 %r1|%p, %r2": "2 operands instead of 3",
    "mov.b32 {%r1}, [%r2]": "",
    "trap %r1": "1 operand instead of 0",
}
for TEXT, SAID in OPERANDS.items():
    CASES[TEXT] = (
        f"{HEADER}{BODY}    .reg .pred %p;\n    {TEXT};\n}}\n",
        f":8: error: .*{SAID}",
    )


def program():
    """main() of the translator, for it starts slowly."""
    path = os.path.join(translator(), "gshmem-ptx")
    loader = importlib.machinery.SourceFileLoader("gshmem_ptx", path)
    found = importlib.util.module_from_spec(importlib.util.spec_from_loader("gshmem_ptx", loader))
    loader.exec_module(found)
    return found.main


def run_here(main_of, path, output):
    """Its status, and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main_of(["gshmem-ptx", path, output])
    return status, said.getvalue().strip()


def main():
    wrong, main_of = 0, program()
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, line) in CASES.items():
            path, output = os.path.join(folder, "bad.ptx"), os.path.join(folder, "bad.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            if name in OPERANDS:
                status, said = run_here(main_of, path, output)
            else:
                done = run_translator(path, output)
                status, said = done.returncode, done.stderr.strip()
            first, _, part = line.partition(".*")
            if status != 1 or first not in said or part not in said:
                print(f"{name}: status {status}, and it says: {said}")
                wrong += 1
            elif "\n" in said or os.path.exists(output):
                print(f"{name}: more than one line, or an output: {said}")
                wrong += 1
    print(f"{len(CASES)} texts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

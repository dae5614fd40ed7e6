"""What is said of instructions that the table does not have."""

import difflib
import sys

from module import TABLE

# What there is in the place of whole families.
INSTEAD = {
    "wgmma": "of matrices there are mma.sync m16n8, ldmatrix and stmatrix",
    "tcgen05": "of matrices there are mma.sync m16n8, ldmatrix and stmatrix",
    "wmma": "of matrices there are mma.sync m16n8, ldmatrix and stmatrix",
    "mma": "there is m16n8 row.col of f16, bf16, tf32, e4m3, e5m2, s8 and u8, without sparsity",
    "cp.async.bulk.tensor": "of bulk copies there are those without tensor maps",
    "cp.async.bulk.prefetch.tensor": "of bulk copies there are those without tensor maps",
    "cp.reduce.async.bulk.tensor": "of bulk copies there are those without tensor maps",
    "tensormap": "of bulk copies there are those without tensor maps",
    "fence.proxy.tensormap": "of bulk copies there are those without tensor maps",
    "clusterlaunchcontrol": "a block is a cluster of its own",
    "tex": "textures and surfaces are not supported",
    "tld4": "textures and surfaces are not supported",
    "suld": "textures and surfaces are not supported",
    "sust": "textures and surfaces are not supported",
    "sured": "textures and surfaces are not supported",
    "alloca": "of memory whose size is known late there is malloc",
}


def reason(opcode, why):
    """In words: what is wrong, or what there is instead."""
    family = max((name for name in INSTEAD if opcode.startswith(name)), key=len, default="")
    rows = TABLE.rows.get(opcode.split(".")[0], [])
    if family and (not rows or "." in family or not why):
        return INSTEAD[family]
    if why:
        return why
    if not rows:
        return "it has none of this name"
    like = difflib.get_close_matches(opcode, [row.pattern for row in rows], 2, 0)
    return "it knows " + " and ".join(like)


def report_unknown(name, unknown, behind=""):
    """A line for each opcode: where it is first, and how often."""
    by_opcode = {}
    for line, opcode, why in unknown:
        by_opcode.setdefault((opcode, why), []).append(line)
    for (opcode, why), lines in by_opcode.items():
        times = "once" if len(lines) == 1 else f"{len(lines)} times, first here"
        print(
            f"{name}:{lines[0]}: error: {opcode}: the host device does not know this instruction: "
            f"{reason(opcode, why)}; it is there {times}{behind}",
            file=sys.stderr,
        )

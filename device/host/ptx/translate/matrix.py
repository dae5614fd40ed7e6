"""The table of instructions by which a warp works on matrices that its lanes hold parts of: products
of 16 rows and 8 columns, and loads and stores of matrices of 8 rows."""

import re

from memory import sort
from patterns import Row

HERE = "__FILE__, __LINE__"
# Elements of a and b, and how many columns a may have; of c and d.
FACTORS = {
    "f16": (8, 16),
    "bf16": (8, 16),
    "tf32": (4, 8),
    "e4m3": (32,),
    "e5m2": (32,),
    "s8": (16, 32),
    "u8": (16, 32),
}
BYTES, INTEGERS = ("e4m3", "e5m2"), ("s8", "u8")
BITS = {"f16": 16, "bf16": 16, "tf32": 32}


def is_product(a, b, c):
    """Whether the elements of the factors and of the sum go together."""
    if a in INTEGERS:
        return b in INTEGERS and c == "s32"
    if a in BYTES:
        return b in BYTES and c == "f32"
    return a == b and c in (("f32", "f16") if a == "f16" else ("f32",))


def registers(emitter, op, count):
    """C texts of the registers of a part; None: they are not so many."""
    parts = op.parts if op.kind == "vector" else [op]
    return [emitter.read(part, "b32") for part in parts] if len(parts) == count else None


def product(emitter, statement, found):
    """mma.sync: d = a * b + c."""
    parts, ops = found["parts"][2:], statement.operands
    shape = re.fullmatch(r"m16n8k(\d+)", parts.pop(0)) if parts else None
    if not shape or parts[:2] != ["row", "col"]:
        return None
    satfinite = parts[2:3] == ["satfinite"]
    types = parts[2 + satfinite :]
    if len(types) != 4:
        return None
    d, a, b, c = types
    k = int(shape.group(1))
    if c != d or k not in FACTORS.get(a, ()) or not is_product(a, b, c):
        return None
    if satfinite and c != "s32":
        return None
    count = k // (4 * (32 // BITS.get(a, 8)))
    sums = 2 if c == "f16" else 4
    texts = [registers(emitter, op, n) for op, n in zip(ops[1:], (2 * count, count, sums))]
    if None in texts or ops[0].kind != "vector" or len(ops[0].parts) != sums:
        return None
    first, second, third = (", ".join(text) for text in texts)
    kinds = ", ".join(f"PTX_NUMBER_{type_.upper()}" for type_ in (a, b, c))
    text = (
        f"{{ const u32 a[] = {{{first}}}, b[] = {{{second}}}; u32 c[] = {{{third}}}; "
        f"gshmem_host_ptx_product((struct ptx_product){{{kinds}, {k}, {int(satfinite)}}}, "
        f"a, b, c, {HERE});"
    )
    return text + written(emitter, ops[0].parts, "c") + " }"


def written(emitter, parts, name):
    return "".join(" " + emitter.write(part, "b32", f"{name}[{i}]") for i, part in enumerate(parts))


def shape_of(found, rest):
    """How many matrices, and whether they are transposed; None: another form."""
    how = sort(
        found["parts"][2:-1],
        shape=("m8n8",),
        count=("x1", "x2", "x4"),
        trans=("trans",),
        space=("shared", "shared::cta"),
    )
    if not how or not how["shape"] or not how["count"] or found["T"] != "b16":
        return None
    count = int(how["count"][1])
    if rest.kind != "vector" or len(rest.parts) != count:
        return None
    return count, int(bool(how["trans"])), how["space"]


def load(emitter, statement, found):
    """ldmatrix."""
    ops = statement.operands
    shape = shape_of(found, ops[0])
    if not shape:
        return None
    count, transposed, space = shape
    text = (
        f"{{ u32 all[{count}]; gshmem_host_ptx_matrix_load({emitter.address(ops[1], space)}, "
        f"{count}, {transposed}, all, {HERE});"
    )
    return text + written(emitter, ops[0].parts, "all") + " }"


def store(emitter, statement, found):
    """stmatrix."""
    ops = statement.operands
    shape = shape_of(found, ops[1])
    if not shape:
        return None
    count, transposed, space = shape
    values = ", ".join(registers(emitter, ops[1], count))
    return (
        f"{{ const u32 all[] = {{{values}}}; "
        f"gshmem_host_ptx_matrix_store({emitter.address(ops[0], space)}, {count}, {transposed}, "
        f"all, {HERE}); }}"
    )


def transpose(emitter, statement, _):
    """movmatrix."""
    part = emitter.read(statement.operands[1], "b32")
    return emitter.write(
        statement.operands[0], "b32", f"gshmem_host_ptx_matrix_transpose({part}, {HERE})"
    )


ROWS = [
    Row("mma.sync.aligned.*", "d a b c", product),
    Row("ldmatrix.sync.aligned.*", "d at", load),
    Row("stmatrix.sync.aligned.*", "at a", store),
    Row("movmatrix.sync.aligned.m8n8.trans.b16", "d a", transpose),
]

"""What rows of the table need that is more than one expression: comparisons, conversions, moves of
parts.

Each function gets the emitter, the statement and what the pattern has matched; it returns C
text, or None for a form that is not known.
"""

import re

from patterns import SETS, bits_of

OPERATORS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
REAL_TYPES = ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")
ROUNDING = ("rn", "rz", "rm", "rp", "rna")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")
INTEGER = re.compile(r"[us](8|16|32|64)")
COMBINE = {"and": "&", "or": "|", "xor": "^"}


def comparison(kind, type_, a, b):
    """C text that is 1 where a and b compare so, or None."""
    if type_ in REAL_TYPES:
        if kind in ("lo", "ls", "hi", "hs"):
            return None
        return f"ptx_{kind}(({a}), ({b}))"
    operator = OPERATORS.get(kind)
    if not operator or (kind in ("lo", "ls", "hi", "hs") and type_[0] == "s"):
        return None
    return f"({a} {operator} {b})"


def flushed(type_, text, ftz):
    return f"ptx_ftz_{type_}({text})" if ftz else text


def as_number(type_, text):
    """A half as f32, for comparisons; all else as it is."""
    return f"ptx_f32_of_{type_}({text})" if type_ in ("f16", "bf16") else text


def compare(emitter, statement, found):
    """setp: one or two predicates, combined with a third."""
    type_, ops = found["T"], statement.operands
    if len(ops) < 3:
        return None
    if type_ in ("f16x2", "bf16x2"):
        return compare_halves(emitter, ops, found)
    a = as_number(type_, flushed(type_, emitter.read(ops[1], type_), found.get("ftz")))
    b = as_number(type_, flushed(type_, emitter.read(ops[2], type_), found.get("ftz")))
    result = comparison(found["cmp"], type_, a, b)
    if result is None:
        return None
    first, second = ops[0].parts if ops[0].kind == "pair" else (ops[0], None)
    text = f"{{ const u8 is = {result};"
    with_ = emitter.read(ops[3], "pred") if found.get("bool") else ""
    combine = f' {COMBINE[found["bool"]]} with' if with_ else ""
    if with_:
        text += f" const u8 with = {with_};"
    text += " " + emitter.write(first, "pred", "is" + combine)
    if second:
        text += " " + emitter.write(second, "pred", f"(u8)!is{combine}")
    return text + " }"


def compare_halves(emitter, ops, found):
    """setp on two halves: a predicate for each."""
    if ops[0].kind != "pair":
        return None
    type_ = found["T"][:-2]
    text = ""
    for shift, target in zip((0, 16), ops[0].parts):
        a, b = (
            as_number(
                type_,
                flushed(type_, f'(u16)({emitter.read(op, "b32")} >> {shift})', found.get("ftz")),
            )
            for op in ops[1:3]
        )
        result = comparison(found["cmp"], type_, a, b)
        if found.get("bool"):
            result = f'{result} {COMBINE[found["bool"]]} {emitter.read(ops[3], "pred")}'
        text += f" const u8 is{shift} = {result};"
    writes = " ".join(
        emitter.write(target, "pred", f"is{shift}") for shift, target in zip((0, 16), ops[0].parts)
    )
    return f"{{{text} {writes} }}"


def compare_set(emitter, statement, found):
    """set: a number that says whether the comparison holds."""
    parts, ops = list(found["parts"]), statement.operands
    if len(parts) < 3 or parts[0] not in SETS["CMP"]:
        return None
    kind = parts.pop(0)
    combine = COMBINE[parts.pop(0)] if parts[0] in COMBINE else ""
    ftz = parts[0] == "ftz" and parts.pop(0)
    if len(parts) != 2 or parts[0] not in (
        "u32",
        "s32",
        "f32",
        "f16",
        "bf16",
        "u16",
        "s16",
        "f16x2",
        "bf16x2",
    ):
        return None
    to, from_ = parts
    if len(ops) != (4 if combine else 3):
        return None
    if from_ in ("f16x2", "bf16x2") or to in ("f16x2", "bf16x2"):
        return set_halves(emitter, ops, (kind, combine, ftz), to, from_)
    a, b = (as_number(from_, flushed(from_, emitter.read(op, from_), ftz)) for op in ops[1:3])
    result = comparison(kind, from_, a, b)
    if result is None:
        return None
    if combine:
        result = f'({result} {combine} {emitter.read(ops[3], "pred")})'
    one = {"f32": "1.0f", "f16": "(u16)0x3c00", "bf16": "(u16)0x3f80"}.get(to, "-1")
    return emitter.write(ops[0], to, f"{result} ? {one} : 0")


def set_halves(emitter, ops, how, to, from_):
    """set on two halves: for each 1.0, or all bits."""
    kind, combine, ftz = how
    one = {"f16x2": "0x3c00", "bf16x2": "0x3f80"}.get(to, "0xffff")
    type_, terms = from_[:-2], []
    if from_ not in ("f16x2", "bf16x2"):
        return None
    for shift in (0, 16):
        a, b = (
            as_number(type_, flushed(type_, f'(u16)({emitter.read(op, "b32")} >> {shift})', ftz))
            for op in ops[1:3]
        )
        result = comparison(kind, type_, a, b)
        if combine:
            result = f'({result} {combine} {emitter.read(ops[3], "pred")})'
        terms.append(f"(u32)({result} ? {one} : 0) << {shift}")
    return emitter.write(ops[0], "b32", " | ".join(terms))


def select(emitter, statement, found):
    """slct: by the sign of c."""
    ops, type_, by = statement.operands, found["value"], found["T"]
    if by == "u32":
        return None
    c = flushed(by, emitter.read(ops[3], by), found.get("ftz") and by == "f32")
    return emitter.write(
        ops[0], type_, f"{c} >= 0 ? {emitter.read(ops[1], type_)} : {emitter.read(ops[2], type_)}"
    )


def permute(emitter, statement, found):
    """prmt: bytes of two words, by selectors or by a mode."""
    ops = statement.operands
    a, b, c = (emitter.read(op, "b32") for op in ops[1:4])
    mode = found.get("mode", "")
    name = f"ptx_prmt_{mode}" if mode else "ptx_prmt"
    return emitter.write(ops[0], "b32", f"{name}({a}, {b}, {c})")


# ---- Moves ----


def move(emitter, statement, found):
    """mov: a value or an address; or a register to parts, and parts to a register."""
    ops, type_ = statement.operands, found["T"]
    if ops[0].kind == "vector":
        return unpack(emitter, ops, type_)
    if ops[1].kind == "vector":
        return pack(emitter, ops, type_)
    return emitter.write(ops[0], type_, emitter.read(ops[1], type_, address=True))


def unpack(emitter, ops, type_):
    parts = ops[0].parts
    bits = bits_of(type_) // len(parts)
    whole = emitter.read(ops[1], emitter.bits(type_))
    text = f"{{ const {emitter.unsigned(bits_of(type_))} all = {whole};"
    for i, part in enumerate(parts):
        text += " " + emitter.write(part, f"b{bits}", f"(u{bits})(all >> {bits * i})")
    return text + " }"


def pack(emitter, ops, type_):
    parts = ops[1].parts
    whole, bits = bits_of(type_), bits_of(type_) // len(parts)
    terms = (
        f'({emitter.unsigned(whole)})(u{bits}){emitter.read(part, f"b{bits}")} << {bits * i}'
        for i, part in enumerate(parts)
    )
    return emitter.write(ops[0], emitter.bits(type_), " | ".join(terms))


# ---- Conversions ----


def convert(emitter, statement, found):
    """cvt between single values: cvt{.rounding}{.ftz}{.sat}{.relu}.to.from."""
    parts, ops = list(found["parts"]), statement.operands
    if len(parts) < 2 or len(ops) != 2:
        return None
    to, from_ = parts[-2:]
    if not all(type_ in REAL_TYPES + ("tf32",) or INTEGER.fullmatch(type_) for type_ in parts[-2:]):
        return None
    options = set(parts[:-2])
    rounding = next((p for p in parts[:-2] if p in ROUNDING + INTEGRAL), None)
    if not options <= set(ROUNDING + INTEGRAL + ("ftz", "sat", "relu", "satfinite")):
        return None
    if "satfinite" in options and (to not in ("f16", "bf16", "tf32") or from_ != "f32"):
        return None
    text = converted(emitter.read(ops[1], from_), to, from_, rounding, options)
    return text and emitter.write(ops[0], "b32" if to == "tf32" else to, text)


def converted(value, to, from_, rounding, options):
    """The C text of a conversion, or None."""
    integer_to, integer_from = to[0] in "us", from_[0] in "us"
    if integer_to and integer_from:
        return f"ptx_sat_{to}_of_{from_}({value})" if "sat" in options else value
    if integer_to:
        if rounding not in INTEGRAL or from_ not in ("f16", "bf16", "f32", "f64"):
            return None
        value = as_number(from_, flushed(from_, value, "ftz" in options and from_ == "f32"))
        return f'ptx_{to}_of_{"f64" if from_ == "f64" else "f32"}_{rounding}({value})'
    if from_ not in ("f16", "bf16", "f32", "f64") and not integer_from:
        return None
    return to_real(value, to, from_, rounding, options)


def to_real(value, to, from_, rounding, options):
    """To f16, bf16, f32, f64 or tf32."""
    if to not in ("f16", "bf16", "f32", "f64", "tf32") or (to == "tf32" and from_ != "f32"):
        return None
    if from_ in ("f16", "bf16") and to == from_:
        if rounding:
            value = f"ptx_{to}_of_f32_rn(ptx_round_f32_{rounding}(ptx_f32_of_{from_}({value})))"
    elif from_ == to and to in ("f32", "f64"):
        value = flushed(from_, value, "ftz" in options)
        if rounding in INTEGRAL:
            value = f"ptx_round_{to}_{rounding}({value})"
        elif rounding:
            return None
    elif from_ in ("f16", "bf16"):
        value = f"ptx_f32_of_{from_}({value})"  # exact; then to the type that is wanted
        if to in ("f16", "bf16"):
            value = f'ptx_{to}_of_f32_{rounding or "rn"}({value})'
    elif from_ == "f32" and to == "f64":
        value = flushed(from_, value, "ftz" in options)
    else:
        if not rounding or rounding in INTEGRAL or (rounding == "rna" and to != "tf32"):
            return None
        if from_ == "f32":
            value = flushed(from_, value, "ftz" in options)
        value = f"ptx_{to}_of_{from_}_{rounding}({value})"
        if to == "f32":
            value = flushed(to, value, "ftz" in options)
    for option in ("sat", "satfinite", "relu"):
        if option in options:
            value = f"ptx_{option}_{to}({value})"
    return value


def convert_pair(emitter, statement, _):
    """cvt of two f32 to a pair of halves: the first operand is the upper one."""
    parts, ops = statement.opcode.split(".")[1:], statement.operands
    to = parts[-2][:-2]
    high, low = (f'ptx_{to}_of_f32_{parts[0]}({emitter.read(op, "f32")})' for op in ops[1:3])
    for option in ("satfinite", "relu"):
        if option in parts:
            high, low = (f"ptx_{option}_{to}({text})" for text in (high, low))
    return emitter.write(ops[0], "b32", f"(u32){high} << 16 | {low}")


def convert_to_bytes(emitter, statement, found):
    """cvt of two f32, or of a pair of halves, to two numbers of 8 bits: the first operand is the
    upper one."""
    ops, to = statement.operands, found["bytes2"][:-2]
    if found["T"] == "f32":
        texts = [emitter.read(op, "f32") for op in ops[1:3]]
    else:
        pair = emitter.read(ops[1], "b32")
        texts = [f"ptx_f32_of_f16((u16)({pair} >> {shift}))" for shift in (16, 0)]
    texts = [f"ptx_{to}_of_f64({text})" for text in texts]
    if "relu" in found:
        texts = [f"ptx_relu_byte({text})" for text in texts]
    return emitter.write(ops[0], "b16", f"{texts[0]} << 8 | {texts[1]}")


def convert_from_bytes(emitter, statement, found):
    """cvt of two numbers of 8 bits to a pair of halves."""
    ops, from_ = statement.operands, found["T"][:-2]
    pair = emitter.read(ops[1], "b16")
    high, low = (f"ptx_f16_of_{from_}((u16)({text}))" for text in (f"{pair} >> 8", f"{pair} & 0xff"))
    if "relu" in found:
        high, low = (f"ptx_relu_f16({text})" for text in (high, low))
    return emitter.write(ops[0], "b32", f"(u32){high} << 16 | {low}")


def logic(emitter, statement, found):
    """lop3 with a predicate: whether the result is not 0, combined with another predicate."""
    ops = statement.operands
    if ops[0].kind != "pair":
        return None
    first, second = ops[0].parts
    values = ", ".join(emitter.read(op, "b32") for op in ops[1:4])
    text = f'{{ const u32 all = ptx_lop3({values}, {emitter.read(ops[4], "u32")}); '
    text += f'const u8 with = {emitter.read(ops[5], "pred")}; ' + emitter.write(first, "b32", "all")
    return text + " " + emitter.write(second, "pred", f'(all != 0) {COMBINE[found["bool"]]} with') + " }"

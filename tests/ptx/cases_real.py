"""Floating point: expected values are exact fractions, rounded once (exact.py); functions that are
approximate on GPUs are compared with Python's within the manual's error."""

import math
import struct
from fractions import Fraction

from case import Case, bits_of, combinations, integers, number
from exact import BF16, F16, F32, F64, FORMATS, square_root

CASES = []
VALUES = {
    "f32": (
        0,
        0x80000000,
        1,
        0x80000001,
        0x007FFFFF,
        0x00800000,
        0x3F800000,
        0xBF800000,
        0x3F800001,
        0x40490FDB,
        0x4B7FFFFF,
        0x4B800001,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x3EAAAAAB,
        0xC2F6E979,
        0x33800000,
        0x1A2B3C4D,
    ),
    "f64": (
        0,
        1 << 63,
        1,
        0x000FFFFFFFFFFFFF,
        0x0010000000000000,
        0x3FF0000000000000,
        0xBFF0000000000000,
        0x3FF0000000000001,
        0x400921FB54442D18,
        0x433FFFFFFFFFFFFF,
        0x7FEFFFFFFFFFFFFF,
        0xFFEFFFFFFFFFFFFF,
        0x7FF0000000000000,
        0xFFF0000000000000,
        0x7FF8000000000000,
        0x3FD5555555555555,
        0xC05EDD2F1A9FBE77,
        0x3CA0000000000000,
    ),
    "f16": (
        0,
        0x8000,
        1,
        0x03FF,
        0x0400,
        0x3C00,
        0xBC00,
        0x3C01,
        0x4248,
        0x6BFF,
        0x7BFF,
        0xFBFF,
        0x7C00,
        0xFC00,
        0x7E00,
        0x3555,
        0xD7B7,
        0x1000,
        0x8001,
        0x2E66,
    ),
    "bf16": (
        0,
        0x8000,
        1,
        0x007F,
        0x0080,
        0x3F80,
        0xBF80,
        0x3F81,
        0x4049,
        0x4B7F,
        0x7F7F,
        0xFF7F,
        0x7F80,
        0xFF80,
        0x7FC0,
        0x3EAB,
        0xC2F7,
        0x3380,
        0x8001,
        0x1234,
    ),
}
ONE = {"f32": 0x3F800000, "f64": 0x3FF0000000000000, "f16": 0x3C00, "bf16": 0x3F80}


def arithmetic(name, form, mode, values):
    """Bits of the result, or 'nan'."""
    if any(form.is_nan(v) for v in values):
        return "nan"
    if name == "sub":
        return arithmetic("add", form, mode, (values[0], values[1] ^ form.sign))
    if name == "fma":
        return fused(form, mode, *values)
    a, b = values
    sign = (a ^ b) & form.sign
    inf_a, inf_b = form.is_infinite(a), form.is_infinite(b)
    if name == "add":
        if inf_a or inf_b:
            return "nan" if inf_a and inf_b and sign else a if inf_a else b
        both_negative = a & b & form.sign
        exact = form.value(a) + form.value(b)
        zero = both_negative or (mode == "rm" and (sign or exact != 0 or form.value(a) != 0))
        return form.round(exact, mode, zero)
    zero_a, zero_b = not a & ~form.sign, not b & ~form.sign
    if name == "mul":
        if inf_a or inf_b:
            return "nan" if zero_a or zero_b else sign | form.infinity
        return form.round(form.value(a) * form.value(b), mode, sign)
    if (inf_a and inf_b) or (zero_a and zero_b):
        return "nan"
    if inf_a or zero_b:
        return sign | form.infinity
    return sign if inf_b else form.round(form.value(a) / form.value(b), mode, sign)


def fused(form, mode, a, b, c):
    sign = (a ^ b) & form.sign
    infinite = form.is_infinite(a) or form.is_infinite(b)
    if infinite and (not a & ~form.sign or not b & ~form.sign):
        return "nan"
    if infinite:
        return "nan" if form.is_infinite(c) and (sign ^ c) & form.sign else sign | form.infinity
    if form.is_infinite(c):
        return c
    product, addend = form.value(a) * form.value(b), form.value(c)
    zero = (sign and c & form.sign) or (mode == "rm" and ((sign ^ c) & form.sign or product != 0))
    return form.round(product + addend, mode, zero)


def saturate(form, bits, one):
    if bits == "nan" or bits & form.sign or form.is_nan(bits):
        return 0
    return one if bits > one else bits


def is_nan(form):
    """Any NaN is as good as another."""
    return lambda result, wanted: form.is_nan(result) and (wanted == "nan" or form.is_nan(wanted))


def want_of(T, compute, ftz=False, sat=False, relu=False):
    form = FORMATS[T]

    def want(*values):
        if ftz:
            values = [form.flush(v) for v in values]
        result = compute(*values)
        if result != "nan" and ftz:
            result = form.flush(result)
        if sat:
            result = saturate(form, result, ONE[T])
        if relu and result != "nan" and not form.is_nan(result) and result & form.sign:
            result = 0
        return form.nan if result == "nan" else result

    return want


def add(text, T, operands, compute, output=None, data=None, close=None, **how):
    form = FORMATS[T]
    CASES.append(
        Case(
            text,
            [form.bits] * operands,
            output or form.bits,
            want_of(T, compute, **how),
            data or combinations([VALUES[T]] * operands),
            close or is_nan(form),
        )
    )


LETTERS = ["{a}", "{a}, {b}", "{a}, {b}, {c}"]
FLAGS = {"f32": ({}, {"ftz": True}, {"sat": True}, {"ftz": True, "sat": True}), "f64": ({},)}

for T in ("f32", "f64"):
    FORM = FORMATS[T]
    for how in FLAGS[T]:
        flags = "".join("." + flag for flag in how)
        for mode in ("", "rn", "rz", "rm", "rp"):
            dotted = "." + mode if mode else ""
            for name in ("add", "sub", "mul") if T == "f32" or mode else ("add", "sub", "mul"):
                add(
                    f"{name}{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}",
                    T,
                    2,
                    lambda a, b, n=name, m=mode or "rn", F=FORM: arithmetic(n, F, m, (a, b)),
                    **how,
                )
            if not mode:
                continue
            for name in ("fma", "mad"):
                add(
                    f"{name}{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}, {{c}}",
                    T,
                    3,
                    lambda a, b, c, m=mode, F=FORM: arithmetic("fma", F, m, (a, b, c)),
                    **how,
                )
            if how.get("sat"):
                continue
            add(
                f"div{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}",
                T,
                2,
                lambda a, b, m=mode, F=FORM: arithmetic("div", F, m, (a, b)),
                **how,
            )
            add(
                f"rcp{dotted}{flags}.{T} {{d}}, {{a}}",
                T,
                1,
                lambda a, m=mode, F=FORM, T=T: arithmetic("div", F, m, (ONE[T], a)),
                **how,
            )

            def root(a, m=mode, F=FORM):
                if F.is_nan(a) or (a & F.sign and a != F.sign):
                    return "nan"
                return a if F.is_infinite(a) else square_root(F, a, m)

            add(f"sqrt{dotted}{flags}.{T} {{d}}, {{a}}", T, 1, root, **how)


def extreme(name, form, a, b, nan=False):
    """min and max: a NaN loses, -0 is below +0."""
    if form.is_nan(a) or form.is_nan(b):
        if nan or (form.is_nan(a) and form.is_nan(b)):
            return "nan"
        return b if form.is_nan(a) else a
    order = {v: (-(v & ~form.sign), 0) if v & form.sign else (v, 1) for v in (a, b)}
    return {"min": min, "max": max}[name]((a, b), key=order.get)


for T in ("f32", "f64", "f16", "bf16"):
    FORM = FORMATS[T]
    for flag in ("", ".ftz") if T in ("f32", "f16") else ("",):
        how = {"ftz": bool(flag)}
        add(f"neg{flag}.{T} {{d}}, {{a}}", T, 1, lambda a, F=FORM: a ^ F.sign, **how)
        add(f"abs{flag}.{T} {{d}}, {{a}}", T, 1, lambda a, F=FORM: a & ~F.sign, **how)
        for name in ("min", "max"):
            add(
                f"{name}{flag}.{T} {{d}}, {{a}}, {{b}}",
                T,
                2,
                lambda a, b, n=name, F=FORM: extreme(n, F, a, b),
                **how,
            )
            if T != "f64":
                add(
                    f"{name}{flag}.NaN.{T} {{d}}, {{a}}, {{b}}",
                    T,
                    2,
                    lambda a, b, n=name, F=FORM: extreme(n, F, a, b, True),
                    **how,
                )
            if T == "f32":

                def signed_by_product(a, b, n=name):
                    size = extreme(n, F32, a & ~F32.sign, b & ~F32.sign)
                    return size if size == "nan" else size | (a ^ b) & F32.sign

                add(
                    f"{name}{flag}.xorsign.abs.f32 {{d}}, {{a}}, {{b}}",
                    T,
                    2,
                    signed_by_product,
                    **how,
                )

for T in ("f32", "f64"):
    FORM = FORMATS[T]
    add(f"copysign.{T} {{d}}, {{a}}, {{b}}", T, 2, lambda a, b, F=FORM: a & F.sign | b & ~F.sign)
    KINDS = {
        "finite": lambda v, F: not F.is_nan(v) and not F.is_infinite(v),
        "infinite": lambda v, F: F.is_infinite(v),
        "number": lambda v, F: not F.is_nan(v),
        "notanumber": lambda v, F: F.is_nan(v),
        "normal": lambda v, F: v & ~F.sign == 0  # zeros are normal numbers, by the PTX manual
        or 0 < (v & ~F.sign) >> F.fraction < (F.infinity >> F.fraction),
        "subnormal": lambda v, F: 0 < v & ~F.sign < 1 << F.fraction,
    }
    for name, f in KINDS.items():
        CASES.append(
            Case(
                f"testp.{name}.{T} {{d}}, {{a}}",
                [FORM.bits],
                1,
                lambda a, f=f, F=FORM: int(f(a, F)),
                combinations([VALUES[T]]),
            )
        )

# ---- Halves: alone, and in pairs ----


def half(name, T, operands, compute, flags=("",)):
    form = FORMATS[T]
    for flag in flags:
        how = {word: True for word in flag.split(".") if word}
        text = f"{name}{flag}.{T} {{d}}, {LETTERS[operands - 1]}"
        add(text, T, operands, compute, **how)
        single = want_of(T, compute, **how)
        rows = combinations([VALUES[T]] * operands)
        both = [
            tuple(h << 16 | l for h, l in zip(high, low))
            for high, low in zip(rows, rows[1:] + rows[:1])
        ]

        def pair(*values, single=single):
            return single(*(v >> 16 for v in values)) << 16 | single(*(v & 0xFFFF for v in values))

        def close(result, wanted, form=form):
            return all(
                r == w or (form.is_nan(r) and form.is_nan(w))
                for r, w in ((result >> 16, wanted >> 16), (result & 0xFFFF, wanted & 0xFFFF))
            )

        CASES.append(
            Case(text.replace(f".{T} ", f".{T}x2 "), [32] * operands, 32, pair, both, close)
        )


for T in ("f16", "bf16"):
    FORM = FORMATS[T]
    SETS = ("", ".ftz", ".sat", ".ftz.sat") if T == "f16" else ("",)
    for name in ("add", "sub", "mul"):
        half(name, T, 2, lambda a, b, n=name, F=FORM: arithmetic(n, F, "rn", (a, b)), SETS)
        half(name + ".rn", T, 2, lambda a, b, n=name, F=FORM: arithmetic(n, F, "rn", (a, b)))
    half(
        "fma.rn",
        T,
        3,
        lambda a, b, c, F=FORM: arithmetic("fma", F, "rn", (a, b, c)),
        SETS[:3] + (".relu",) if T == "f16" else ("", ".relu"),
    )
    half("neg", T, 1, lambda a, F=FORM: a ^ F.sign)
    half("abs", T, 1, lambda a, F=FORM: a & ~F.sign)
    for name in ("min", "max"):
        half(name, T, 2, lambda a, b, n=name, F=FORM: extreme(n, F, a, b))
        half(name + ".NaN", T, 2, lambda a, b, n=name, F=FORM: extreme(n, F, a, b, True))

# ---- Functions that are approximate ----


def real(T, bits):
    """Bits as Python's float."""
    form = FORMATS[T]
    if form.is_nan(bits):
        return math.nan
    if form.is_infinite(bits):
        return -math.inf if bits & form.sign else math.inf
    return float(form.value(bits)) * (-1.0 if bits == form.sign else 1.0)


def near(T, relative, absolute=0.0):
    def close(result, wanted):
        got, due = real(T, result), real(T, wanted)
        if math.isnan(due) or math.isinf(due) or due == 0:
            return (
                (math.isnan(got) and math.isnan(due)) or abs(got - due) <= absolute
                if due == due
                else got != got
            )
        return abs(got - due) <= max(relative * abs(due), absolute)

    return close


def to_bits(T, value):
    form = FORMATS[T]
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return form.infinity | (form.sign if value < 0 else 0)
    return form.round(Fraction(value), "rn", math.copysign(1, value) < 0)


def guarded(f):
    """Infinite where Python refuses."""

    def of(x):
        try:
            return f(x)
        except OverflowError:
            return math.inf
        except ZeroDivisionError:
            return math.copysign(math.inf, x)
        except ValueError:
            return -math.inf if x == 0 else math.nan

    return of


APPROXIMATE = {
    "rcp": lambda x: 1 / x,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x) if x else math.copysign(math.inf, x),
    "sin": math.sin,
    "cos": math.cos,
    "lg2": math.log2,
    "ex2": lambda x: 2.0**x,
    "tanh": math.tanh,
}
for name, f in APPROXIMATE.items():
    for flag in ("", ".ftz") if name != "tanh" else ("",):
        add(
            f"{name}.approx{flag}.f32 {{d}}, {{a}}",
            "f32",
            1,
            lambda a, f=guarded(f): to_bits("f32", f(real("f32", a))),
            close=near("f32", 2e-6, 1e-45),
            ftz=bool(flag),
        )
for name in ("rcp", "rsqrt"):
    for flag in (".ftz",) if name == "rcp" else ("", ".ftz"):
        add(
            f"{name}.approx{flag}.f64 {{d}}, {{a}}",
            "f64",
            1,
            lambda a, f=guarded(APPROXIMATE[name]): to_bits("f64", f(real("f64", a))),
            close=near("f64", 1e-6),
            ftz=bool(flag),
        )
for kind in ("approx", "full"):
    for flag in ("", ".ftz"):
        add(
            f"div.{kind}{flag}.f32 {{d}}, {{a}}, {{b}}",
            "f32",
            2,
            lambda a, b: arithmetic("div", F32, "rn", (a, b)),
            ftz=bool(flag),
        )
for T in ("f16", "bf16"):
    for name, flag in (("ex2", ".ftz" if T == "bf16" else ""), ("tanh", "")):
        add(
            f"{name}.approx{flag}.{T} {{d}}, {{a}}",
            T,
            1,
            lambda a, T=T, f=guarded(APPROXIMATE[name]): to_bits(T, f(real(T, a))),
            close=near(T, 2e-2, 1e-7),
            ftz=bool(flag),
        )

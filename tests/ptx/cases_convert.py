"""Comparisons and conversions of floating-point numbers."""

import math
import struct
from fractions import Fraction

from case import Case, bits_of, combinations, integers, number
from cases_real import CASES, ONE, VALUES, add, arithmetic, is_nan, real, want_of
from exact import BF16, F16, F32, F64, FORMATS

# ---- Comparisons ----

ORDERED = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
for T in ("f32", "f64", "f16", "bf16"):
    FORM = FORMATS[T]
    ROWS = combinations([VALUES[T]] * 2)
    for name, f in (
        list(ORDERED.items())
        + [(n + "u", f) for n, f in ORDERED.items()]
        + [("num", None), ("nan", None)]
    ):

        def compared(a, b, f=f, name=name, T=T):
            x, y = real(T, a), real(T, b)
            unordered = math.isnan(x) or math.isnan(y)
            if f is None:
                return int(unordered == (name == "nan"))
            return int(f(x, y)) if not unordered else int(name.endswith("u"))

        for flag in ("", ".ftz") if T == "f32" else ("",):

            def flushed(a, b, compared=compared, F=FORM, flag=flag):
                return compared(F.flush(a), F.flush(b)) if flag else compared(a, b)

            CASES.append(
                Case(
                    f"setp.{name}{flag}.{T} {{d}}, {{a}}, {{b}}", [FORM.bits] * 2, 1, flushed, ROWS
                )
            )
    if T == "f32":
        CASES.append(
            Case(
                "set.ltu.f32.f32 {d}, {a}, {b}",
                [32, 32],
                32,
                lambda a, b: 0 if real("f32", a) >= real("f32", b) else 0x3F800000,
                ROWS,
            )
        )
        CASES.append(
            Case(
                "slct.b32.f32 {d}, {a}, {b}, {c}",
                [32] * 3,
                32,
                lambda a, b, c: a if real("f32", c) >= 0 else b,
                combinations([VALUES["f32"]] * 3),
            )
        )
        CASES.append(
            Case(
                "setp.gt.and.f32 {d}, {a}, {b}, {c}",
                [32, 32, 1],
                1,
                lambda a, b, c: int(real("f32", a) > real("f32", b)) & c,
                combinations([VALUES["f32"], VALUES["f32"], (0, 1)]),
            )
        )

for T in ("f16", "bf16"):  # in pairs: a predicate for each half
    for shift, target in ((0, "{d}|_"), (16, "_|{d}")):
        ROWS = [
            tuple(h << 16 | l for h, l in zip(x, y))
            for x, y in zip(combinations([VALUES[T]] * 2), combinations([VALUES[T]] * 2)[5:])
        ]
        CASES.append(
            Case(
                f"setp.lt.{T}x2 {target}, {{a}}, {{b}}",
                [32, 32],
                1,
                lambda a, b, T=T, s=shift: int(real(T, a >> s & 0xFFFF) < real(T, b >> s & 0xFFFF)),
                ROWS,
            )
        )
CASES.append(
    Case(
        "selp.f32 {d}, {a}, {b}, {c}",
        [32, 32, 1],
        32,
        lambda a, b, c: a if c else b,
        combinations([VALUES["f32"], VALUES["f32"], (0, 1)]),
    )
)
for T in ("f32", "f64"):
    add(f"mov.{T} {{d}}, {{a}}", T, 1, lambda a: a)
add("mov.f32 {d}, 0f40490FDB", "f32", 1, lambda a: 0x40490FDB)
add(
    "add.f32 {d}, {a}, 0fBF800000",
    "f32",
    1,
    lambda a: arithmetic("add", F32, "rn", (a, ONE["f32"] | F32.sign)),
)
add("mov.f64 {d}, 0d400921FB54442D18", "f64", 1, lambda a: 0x400921FB54442D18)

for T in ("f16", "bf16"):
    CASES.append(
        Case(
            f"setp.ge.or.{T} {{d}}, {{a}}, {{b}}, {{c}}",
            [16, 16, 1],
            1,
            lambda a, b, c, T=T: int(real(T, a) >= real(T, b)) | c,
            combinations([VALUES[T], VALUES[T], (0, 1)]),
        )
    )

# ---- Conversions ----

MODES = ("rn", "rz", "rm", "rp")


def integral(value, mode):
    """A fraction to an integer."""
    low = value.numerator // value.denominator
    if value == low:
        return low
    rest = value - low
    return {
        "rni": low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2)),
        "rmi": low,
        "rpi": low + 1,
        "rzi": low if value > 0 else low + 1,
    }[mode]


MORE = {
    "f32": VALUES["f32"]
    + (
        0x3F000000,
        0x3FC00000,
        0xBF000000,
        0xC0200000,
        0x4F000000,
        0x4EFFFFFF,
        0xCF000000,
        0x4F7FFFFF,
        0x437F8000,
        0x5F000000,
        0xDF000000,
        0x5F800000,
        0x42FE0000,
        0xC3000000,
    ),
    "f64": VALUES["f64"]
    + (
        0x3FE0000000000000,
        0xC004000000000000,
        0x41DFFFFFFFC00000,
        0x41E0000000000000,
        0xC1E0000000200000,
        0x43E0000000000000,
        0xC3E0000000000000,
        0x43F0000000000000,
    ),
    "f16": VALUES["f16"] + (0x3800, 0x3E00, 0xC100, 0x5C00),
    "bf16": VALUES["bf16"] + (0x3F00, 0x3FC0, 0xC020, 0x4F00),
}
for FROM in ("f32", "f64", "f16", "bf16"):
    FORM = FORMATS[FROM]
    for TO in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            N = bits_of(TO)
            LEAST, MOST = (-(1 << N - 1), (1 << N - 1) - 1) if TO[0] == "s" else (0, (1 << N) - 1)

            def to_integer(a, mode=mode, F=FORM, least=LEAST, most=MOST, N=N, TO=TO):
                if F.is_nan(a):  # by the manual
                    highest = 1 << N - 1 if N == 64 or F is F64 else 0
                    return number(highest, TO) & (1 << max(N, 16)) - 1
                if F.is_infinite(a):
                    value = least if a & F.sign else most
                else:
                    value = min(max(integral(F.value(a), mode), least), most)
                return value & (1 << max(N, 16)) - 1

            CASES.append(
                Case(
                    f"cvt.{mode}.{TO}.{FROM} {{d}}, {{a}}",
                    [FORM.bits],
                    max(N, 16),
                    to_integer,
                    combinations([MORE[FROM]]),
                )
            )
for TO in ("f32", "f64", "f16", "bf16"):
    FORM = FORMATS[TO]
    for FROM in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        for mode in MODES:

            def to_real(a, FROM=FROM, F=FORM, mode=mode):
                return F.round(Fraction(number(a & (1 << bits_of(FROM)) - 1, FROM)), mode)

            BITS = max(bits_of(FROM), 16)
            CASES.append(
                Case(
                    f"cvt.{mode}.{TO}.{FROM} {{d}}, {{a}}",
                    [BITS],
                    FORM.bits,
                    to_real,
                    combinations(
                        [
                            integers(BITS)
                            + [
                                v & (1 << BITS) - 1
                                for v in (0x1000001, 0x1000003, 0x801, 0x20000000000001, 0x101)
                            ]
                        ]
                    ),
                )
            )


def between(TO, FROM, mode):
    """One format to another."""
    to, from_ = FORMATS[TO], FORMATS[FROM]

    def of(a):
        sign = to.sign if a & from_.sign else 0
        if from_.is_nan(a):
            return to.nan
        return sign | to.infinity if from_.is_infinite(a) else to.round(from_.value(a), mode, sign)

    return of


for TO, FROM, MODE in [
    (t, f, m)
    for t, f in (("f32", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"))
    for m in MODES
] + [
    ("f64", "f32", ""),
    ("f32", "f16", ""),
    ("f32", "bf16", ""),
    ("f64", "f16", ""),
    ("f64", "bf16", ""),
]:
    CASES.append(
        Case(
            f'cvt{"." + MODE if MODE else ""}.{TO}.{FROM} {{d}}, {{a}}',
            [FORMATS[FROM].bits],
            FORMATS[TO].bits,
            between(TO, FROM, MODE or "rn"),
            combinations([MORE[FROM]]),
            is_nan(FORMATS[TO]),
        )
    )
for T in ("f32", "f64"):
    for mode in ("rni", "rzi", "rmi", "rpi"):
        add(
            f"cvt.{mode}.{T}.{T} {{d}}, {{a}}",
            T,
            1,
            lambda a, F=FORMATS[T], m=mode: (
                a
                if F.is_nan(a) or F.is_infinite(a)
                else F.round(Fraction(integral(F.value(a), m)), "rn", a & F.sign)
            ),
            data=combinations([MORE[T]]),
        )
    add(f"cvt.sat.{T}.{T} {{d}}, {{a}}", T, 1, lambda a: a, sat=True)
add("cvt.ftz.f32.f32 {d}, {a}", "f32", 1, lambda a: a, ftz=True)
for T in ("f16", "bf16"):
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):

            def pair(a, b, T=T, mode=mode, relu=relu):
                values = [between(T, "f32", mode)(x) for x in (a, b)]
                form = FORMATS[T]
                if relu:
                    values = [0 if v & form.sign and not form.is_nan(v) else v for v in values]
                return values[0] << 16 | values[1]

            CASES.append(
                Case(
                    f"cvt.{mode}{relu}.{T}x2.f32 {{d}}, {{a}}, {{b}}",
                    [32, 32],
                    32,
                    pair,
                    combinations([MORE["f32"]] * 2),
                )
            )
    CASES.append(
        Case(
            f"cvt.rn.relu.{T}.f32 {{d}}, {{a}}",
            [32],
            16,
            want_of(T, lambda a: a, relu=True)
            and (
                lambda a, T=T: (lambda v: 0 if v & 0x8000 and not FORMATS[T].is_nan(v) else v)(
                    between(T, "f32", "rn")(a)
                )
            ),
            combinations([MORE["f32"]]),
            is_nan(FORMATS[T]),
        )
    )
for mode, half_up in (("rna", True), ("rn", False)):

    def tf32(a, half_up=half_up):
        if F32.is_nan(a):
            return F32.nan
        if F32.is_infinite(a):
            return a
        low, rest = a & ~0x1FFF, a & 0x1FFF
        up = rest >= 0x1000 if half_up else rest > 0x1000 or (rest == 0x1000 and low >> 13 & 1)
        return low + 0x2000 * up

    CASES.append(
        Case(
            f"cvt.{mode}.tf32.f32 {{d}}, {{a}}",
            [32],
            32,
            tf32,
            combinations([MORE["f32"] + (0x3F801000, 0x3F803000)]),
        )
    )
CHECKED = struct.unpack("<f", struct.pack("<I", 0x40490FDB))[0]  # exact.py against Python's own
assert (
    F32.round(Fraction(CHECKED)) == 0x40490FDB
    and F64.round(Fraction(math.pi)) == 0x400921FB54442D18
)
assert F16.round(Fraction(1, 3)) == 0x3555 and BF16.round(Fraction(1, 3)) == 0x3EAB

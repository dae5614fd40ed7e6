"""Floating point of 8 bits, conversions that give the largest number instead of infinity, f32 in
pairs, and lop3 with a predicate."""

from fractions import Fraction

from case import Case, combinations
from cases_real import VALUES, arithmetic, extreme
from exact import BF16, F16, F32, Format

# Values by the exponent that e4m3 would have if its largest one were not for NaN, too: rounded with
# an exponent more. (format, the largest number, where f16 has no such value)
BYTES = {"e4m3": (Format(3, -6, 8), 0x7E), "e5m2": (Format(2, -14, 15), 0x7B)}
EDGES = (0x43E80000, 0x43E00001, 0x43EFFFFF, 0x43F00000, 0x47600000, 0x47600001, 0x47700000,
         0x3A800000, 0x3A7FFFFF, 0x3B000001, 0xBA800000, 0x37800000, 0x37000000, 0x36FFFFFF,
         0x3F880000, 0x3F900000, 0x3F980000, 0xC3D00000, 0x3DCCCCCD)
SINGLE = VALUES["f32"] + EDGES
HALVES = VALUES["f16"] + (0x5F40, 0x5F00, 0x5F81, 0x7B80, 0x1400, 0x13FF, 0x0C00, 0x3C40, 0x3CC0)
CASES = []


def byte_of(type_, form, bits, relu=False):
    """A number of another format, rounded to 8 bits."""
    small, most = BYTES[type_]
    if form.is_nan(bits):
        return 0x7F
    negative = bool(bits & form.sign)
    if negative and relu:
        return 0
    if form.is_infinite(bits):
        size = most
    else:
        size = min(small.round(abs(form.value(bits))) & 0xFF, most)
    return size | negative << 7


def half_of(type_, byte, relu=False):
    """The f16 of 8 bits."""
    sign, size = byte & 0x80, byte & 0x7F
    if size > BYTES[type_][1] and not (type_ == "e5m2" and size == 0x7C):
        return F16.nan
    if sign and relu:
        return 0
    if type_ == "e5m2" and size == 0x7C:
        return F16.infinity | sign << 8
    fraction, least = (3, -6) if type_ == "e4m3" else (2, -14)
    exponent, rest = size >> fraction, size & (1 << fraction) - 1
    number = (rest + (1 << fraction if exponent else 0)) * Fraction(2) ** (
        max(exponent, 1) - 1 + least - fraction
    )
    return F16.round(number) | sign << 8


def shifted(values, by):
    return values[by:] + values[:by]


for TYPE in BYTES:
    for RELU in (False, True):
        FLAG = ".relu" if RELU else ""

        def of_two(a, b, t=TYPE, relu=RELU):
            return byte_of(t, F32, a, relu) << 8 | byte_of(t, F32, b, relu)

        def of_pair(a, t=TYPE, relu=RELU):
            return byte_of(t, F16, a >> 16, relu) << 8 | byte_of(t, F16, a & 0xFFFF, relu)

        def to_pair(a, t=TYPE, relu=RELU):
            return half_of(t, a >> 8, relu) << 16 | half_of(t, a & 0xFF, relu)

        CASES += [
            Case(
                f"cvt.rn.satfinite{FLAG}.{TYPE}x2.f32 {{d}}, {{a}}, {{b}}",
                [32, 32],
                16,
                of_two,
                list(zip(SINGLE, shifted(SINGLE, 3))),
            ),
            Case(
                f"cvt.rn.satfinite{FLAG}.{TYPE}x2.f16x2 {{d}}, {{a}}",
                [32],
                16,
                of_pair,
                [(h << 16 | l,) for h, l in zip(HALVES, shifted(HALVES, 5))],
            ),
            Case(
                f"cvt.rn{FLAG}.f16x2.{TYPE}x2 {{d}}, {{a}}",
                [16],
                32,
                to_pair,
                [(i << 8 | (i * 37 & 0xFF),) for i in range(256)],
            ),
        ]


def finite(form, bits, mode, relu):
    """f32 to another format, of which there is no infinity."""
    if F32.is_nan(bits):
        return form.nan
    sign = form.sign if bits & F32.sign else 0
    if F32.is_infinite(bits):
        result = sign | form.infinity
    else:
        result = form.round(F32.value(bits), mode, sign)
    if form.is_infinite(result):
        result -= 1
    return 0 if relu and sign else result


BEYOND = SINGLE + (0x477FE000, 0x477FF000, 0x47800000, 0x7F7F8000, 0xC77FF000)
for NAME, FORM in (("f16", F16), ("bf16", BF16)):
    for MODE in ("rn", "rz"):
        for RELU in (False, True):
            FLAG = ".relu" if RELU else ""

            def one(a, form=FORM, mode=MODE, relu=RELU):
                return finite(form, a, mode, relu)

            def two(a, b, of=one):
                return of(a) << 16 | of(b)

            CASES += [
                Case(
                    f"cvt.{MODE}{FLAG}.satfinite.{NAME}.f32 {{d}}, {{a}}",
                    [32],
                    16,
                    one,
                    [(a,) for a in BEYOND],
                ),
                Case(
                    f"cvt.{MODE}{FLAG}.satfinite.{NAME}x2.f32 {{d}}, {{a}}, {{b}}",
                    [32, 32],
                    32,
                    two,
                    list(zip(BEYOND, shifted(BEYOND, 7))),
                ),
            ]
CASES.append(
    Case(
        "cvt.rn.satfinite.tf32.f32 {d}, {a}",
        [32],
        32,
        lambda a: 0x7FFFFFFF if F32.is_nan(a) else finite(Format(10, -126, 127), a, "rn", False) << 13,
        [(a,) for a in BEYOND],
    )
)


def in_pairs(of_one):
    """For each half of 64 bits."""
    return lambda *values: of_one(*(v >> 32 for v in values)) << 32 | of_one(
        *(v & 0xFFFFFFFF for v in values)
    )


def is_close(result, wanted):
    """Any NaN is as good as another."""
    return all(
        r == w or (F32.is_nan(r) and F32.is_nan(w))
        for r, w in ((result >> 32, wanted >> 32), (result & 0xFFFFFFFF, wanted & 0xFFFFFFFF))
    )


for NAME, COUNT in {"add": 2, "sub": 2, "mul": 2, "fma": 3}.items():
    for MODE in ("rn", "rz", "rm", "rp"):
        for FTZ in (False, True):

            def computed(*values, name=NAME, mode=MODE, ftz=FTZ):
                values = [F32.flush(v) for v in values] if ftz else values
                result = arithmetic(name, F32, mode, values)
                return F32.nan if result == "nan" else F32.flush(result) if ftz else result

            ROWS = combinations([VALUES["f32"]] * COUNT)
            CASES.append(
                Case(
                    f"{NAME}.{MODE}{'.ftz' if FTZ else ''}.f32x2 {{d}}, "
                    + ", ".join(("{a}", "{b}", "{c}")[:COUNT]),
                    [64] * COUNT,
                    64,
                    in_pairs(computed),
                    [
                        tuple(h << 32 | l for h, l in zip(*two))
                        for two in zip(ROWS, shifted(ROWS, 11))
                    ],
                    is_close,
                )
            )
for NAME in ("min", "max"):

    def with_sign(a, b, name=NAME):
        size = extreme(name, F32, a & ~F32.sign, b & ~F32.sign, True)
        return F32.nan if size == "nan" else size | (a ^ b) & F32.sign

    CASES.append(
        Case(
            f"{NAME}.NaN.xorsign.abs.f32 {{d}}, {{a}}, {{b}}",
            [32, 32],
            32,
            with_sign,
            combinations([VALUES["f32"]] * 2),
            lambda r, w: F32.is_nan(r) and F32.is_nan(w),
        )
    )

COMBINED = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
FEW = (0, 1, 0x80000000, 0xFFFFFFFF, 0x12345678)
for NAME, FUNCTION in COMBINED.items():
    for TARGET, BITS in (("{d}|_", 32), ("_|{d}", 1)):

        def looked_up(a, b, c, e, f=FUNCTION, bits=BITS):
            found = sum(
                (0x86 >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
                for i in range(32)
            )
            return found if bits == 32 else f(int(found != 0), e)

        if BITS == 1 or NAME == "and":
            CASES.append(
                Case(
                    f"lop3.{NAME}.b32 {TARGET}, {{a}}, {{b}}, {{c}}, 0x86, {{e}}",
                    [32, 32, 32, 1],
                    BITS,
                    looked_up,
                    combinations([FEW, FEW, FEW, (0, 1)]),
                )
            )

"""Bits, logic, comparisons and conversions of integers."""

from case import SMALL, bits_of, integers, number, signed
from cases_integer import ALL, CASES, WORDS, add, clamp

# ---- Bits ----


def highest(value, T):
    """bfind: the highest bit that differs from the sign."""
    bits = (~value if value < 0 else value) & (1 << bits_of(T)) - 1
    return bits.bit_length() - 1


for T in WORDS:
    N = bits_of(T)
    add(f"bfind.{T} {{d}}, {{a}}", [T], "u32", lambda a, T=T: highest(a, T))
    add(
        f"bfind.shiftamt.{T} {{d}}, {{a}}",
        [T],
        "u32",
        lambda a, T=T, N=N: -1 if highest(a, T) < 0 else N - 1 - highest(a, T),
    )

    def extract(a, position, length, T=T, N=N):
        """bfe, by the manual's own loop."""
        position, length = position & 0xFF, length & 0xFF
        bits = a & (1 << N) - 1
        if T[0] == "u" or length == 0:
            sign = 0
        else:
            sign = bits >> min(position + length - 1, N - 1) & 1
        result = 0
        for i in range(N):
            bit = bits >> position + i & 1 if i < length and position + i < N else sign
            result |= bit << i
        return result

    add(
        f"bfe.{T} {{d}}, {{a}}, {{b}}, {{c}}",
        [T, "u32", "u32"],
        T,
        extract,
        [integers(N)[::3] + [0xDEADBEEF], SMALL, SMALL],
    )

for N in (32, 64):
    T, B = f"u{N}", f"b{N}"
    add(f"popc.{B} {{d}}, {{a}}", [T], "u32", lambda a: bin(a).count("1"))
    add(f"clz.{B} {{d}}, {{a}}", [T], "u32", lambda a, N=N: N - a.bit_length())
    add(f"brev.{B} {{d}}, {{a}}", [T], T, lambda a, N=N: int(f"{a:0{N}b}"[::-1], 2))

    def insert(a, b, position, length, N=N):
        position, length = position & 0xFF, length & 0xFF
        for i in range(length):
            if position + i >= N:
                break
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
        return b

    add(
        f"bfi.{B} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}",
        [T, T, "u32", "u32"],
        T,
        insert,
        [[0, 0xDEADBEEF, (1 << N) - 1], [0, 0x12345678, (1 << N) - 1], SMALL, SMALL],
    )


def nth_set(mask, base, offset):
    """fns, by the manual's own loop."""
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else -1
    step, left, at = (1, offset, base) if offset > 0 else (-1, -offset, base)
    while 0 <= at < 32:
        if mask >> at & 1:
            left -= 1
            if left == 0:
                return at
        at += step
    return -1


add(
    "fns.b32 {d}, {a}, {b}, {c}",
    ["u32", "u32", "s32"],
    "u32",
    nth_set,
    [[0, 1, 0x80000000, 0xDEADBEEF, 0xFFFFFFFF], [0, 1, 15, 31], [-33, -5, -1, 0, 1, 2, 5, 32, 33]],
)
add(
    "bmsk.clamp.b32 {d}, {a}, {b}",
    ["u32", "u32"],
    "u32",
    lambda a, b: 0 if a >= 32 else (1 << min(b, 32)) - 1 << a,
    [SMALL, SMALL],
)
add(
    "bmsk.wrap.b32 {d}, {a}, {b}",
    ["u32", "u32"],
    "u32",
    lambda a, b: (1 << b % 32) - 1 << a % 32,
    [SMALL, SMALL],
)


def dot(A, B, elements):
    """dp4a and dp2a: elements gives (shift, bits) of a and of b."""

    def of(a, b, c):
        for (sa, na), (sb, nb) in elements:
            x, y = a >> sa & (1 << na) - 1, b >> sb & (1 << nb) - 1
            c += (signed(x, na) if A == "s32" else x) * (signed(y, nb) if B == "s32" else y)
        return c

    return of


for A in ("u32", "s32"):
    for B in ("u32", "s32"):
        C = "u32" if A == B == "u32" else "s32"
        add(
            f"dp4a.{A}.{B} {{d}}, {{a}}, {{b}}, {{c}}",
            ["u32", "u32", C],
            C,
            dot(A, B, [((i, 8), (i, 8)) for i in (0, 8, 16, 24)]),
        )
        for part, base in (("lo", 0), ("hi", 16)):
            add(
                f"dp2a.{part}.{A}.{B} {{d}}, {{a}}, {{b}}, {{c}}",
                ["u32", "u32", C],
                C,
                dot(A, B, [((16 * i, 16), (8 * i + base, 8)) for i in (0, 1)]),
            )

MODES = {
    "f4e": ["0123", "1234", "2345", "3456"],
    "b4e": ["0765", "1076", "2107", "3210"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["0123", "1123", "2223", "3333"],
    "ecr": ["0000", "0111", "0122", "0123"],
    "rc16": ["0101", "2323", "0101", "2323"],
}  # bytes from the lowest up
add(
    "prmt.b32 {d}, {a}, {b}, {c}",
    ["u32"] * 3,
    "u32",
    lambda a, b, c: sum(
        (
            0xFF * ((b << 32 | a) >> 8 * (c >> 4 * i & 7) + 7 & 1)
            if c >> 4 * i & 8
            else (b << 32 | a) >> 8 * (c >> 4 * i & 7) & 0xFF
        )
        << 8 * i
        for i in range(4)
    ),
    [[0x80117F22, 0xFFFFFFFF], [0x33C444F5, 0], [0x3210, 0x7654, 0xFEDC, 0x8421, 0x0F0E]],
)
for mode, rows in MODES.items():
    add(
        f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}",
        ["u32"] * 3,
        "u32",
        lambda a, b, c, rows=rows: sum(
            ((b << 32 | a) >> 8 * int(rows[c & 3][i]) & 0xFF) << 8 * i for i in range(4)
        ),
        [[0x03020100, 0xA3B2C1D0], [0x07060504], [0, 1, 2, 3, 4]],
    )

# ---- Logic ----

for N in (16, 32, 64):
    T = f"u{N}"
    for name, f in {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
    }.items():
        add(f"{name}.b{N} {{d}}, {{a}}, {{b}}", [T, T], T, f)
    add(f"not.b{N} {{d}}, {{a}}", [T], T, lambda a: ~a)
    add(f"cnot.b{N} {{d}}, {{a}}", [T], T, lambda a: a == 0)
    add(f"shl.b{N} {{d}}, {{a}}, {{b}}", [T, "u32"], T, lambda a, b: a << b, [integers(N), SMALL])
    add(f"shr.b{N} {{d}}, {{a}}, {{b}}", [T, "u32"], T, lambda a, b: a >> b, [integers(N), SMALL])
for name, f in {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}.items():
    add(f"{name}.pred {{d}}, {{a}}, {{b}}", ["pred", "pred"], "pred", f)
add("not.pred {d}, {a}", ["pred"], "pred", lambda a: 1 - a)
for table in (0x80, 0xE8, 0x96, 0xCA, 0x1D):
    add(
        f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}",
        ["u32"] * 3,
        "u32",
        lambda a, b, c, t=table: sum(
            (t >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
            for i in range(32)
        ),
    )
for mode, f in {"wrap": lambda n: n & 31, "clamp": lambda n: min(n, 32)}.items():
    add(
        f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        ["u32"] * 3,
        "u32",
        lambda a, b, c, f=f: (b << 32 | a) << f(c) >> 32,
        [integers(32)[::3], integers(32)[::4], SMALL],
    )
    add(
        f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        ["u32"] * 3,
        "u32",
        lambda a, b, c, f=f: (b << 32 | a) >> f(c),
        [integers(32)[::3], integers(32)[::4], SMALL],
    )

# ---- Comparisons and choices of integers ----

COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
for T in ALL:
    for name, f in COMPARE.items():
        add(f"setp.{name}.{T} {{d}}, {{a}}, {{b}}", [T, T], "pred", f)
for name, f in {
    "lo": COMPARE["lt"],
    "ls": COMPARE["le"],
    "hi": COMPARE["gt"],
    "hs": COMPARE["ge"],
}.items():
    add(f"setp.{name}.u32 {{d}}, {{a}}, {{b}}", ["u32", "u32"], "pred", f)
for name, f in {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}.items():
    add(
        f"setp.lt.{name}.s32 {{d}}, {{a}}, {{b}}, {{c}}",
        ["s32", "s32", "pred"],
        "pred",
        lambda a, b, c, f=f: f(a < b, c),
    )
    add(
        f"setp.lt.{name}.s32 {{d}}, {{a}}, {{b}}, !{{c}}",
        ["s32", "s32", "pred"],
        "pred",
        lambda a, b, c, f=f: f(a < b, 1 - c),
    )
    add(
        f"setp.lt.{name}.s32 _|{{d}}, {{a}}, {{b}}, {{c}}",
        ["s32", "s32", "pred"],
        "pred",
        lambda a, b, c, f=f: f(a >= b, c),
    )
    add(
        f"set.ge.{name}.u32.s32 {{d}}, {{a}}, {{b}}, {{c}}",
        ["s32", "s32", "pred"],
        "u32",
        lambda a, b, c, f=f: -1 if f(a >= b, c) else 0,
    )
add("set.lt.u32.s32 {d}, {a}, {b}", ["s32", "s32"], "u32", lambda a, b: -(a < b))
add("set.hi.f32.u32 {d}, {a}, {b}", ["u32", "u32"], "u32", lambda a, b: 0x3F800000 if a > b else 0)
for N in (16, 32, 64):
    for K in "bus":
        add(
            f"selp.{K}{N} {{d}}, {{a}}, {{b}}, {{c}}",
            [f"u{N}", f"u{N}", "pred"],
            f"u{N}",
            lambda a, b, c: a if c else b,
        )
    add(
        f"slct.b{N}.s32 {{d}}, {{a}}, {{b}}, {{c}}",
        [f"u{N}", f"u{N}", "s32"],
        f"u{N}",
        lambda a, b, c: a if c >= 0 else b,
    )
add("mov.pred {d}, {a}", ["pred"], "pred", lambda a: a)

# ---- Moves and conversions of integers ----

for N in (16, 32, 64):
    for K in "bus":
        add(f"mov.{K}{N} {{d}}, {{a}}", [f"u{N}"], f"u{N}", lambda a: a)
add("mov.b32 {d}, {{{a}, {b}}}", ["u16", "u16"], "u32", lambda a, b: b << 16 | a)
add("mov.b64 {d}, {{{a}, {b}}}", ["u32", "u32"], "u64", lambda a, b: b << 32 | a)
add("mov.b64 {{{d}, _}}, {a}", ["u64"], "u32", lambda a: a)
add("mov.b64 {{_, {d}}}, {a}", ["u64"], "u32", lambda a: a >> 32)
for TO in ("u8", "s8") + ALL:
    for FROM in ("u8", "s8") + ALL:
        OUT, IN = max(16, bits_of(TO)), max(16, bits_of(FROM))
        for sat in ("", ".sat"):

            def converted(a, TO=TO, FROM=FROM, sat=sat):
                value = number(a & (1 << bits_of(FROM)) - 1, FROM)
                value = clamp(value, TO) if sat else value & (1 << bits_of(TO)) - 1
                return number(value & (1 << bits_of(TO)) - 1, TO)

            add(f"cvt{sat}.{TO}.{FROM} {{d}}, {{a}}", [f"u{IN}"], f"u{OUT}", converted)
for TO in ("s16", "u16"):
    add(
        f"cvt.pack.sat.{TO}.s32 {{d}}, {{a}}, {{b}}",
        ["s32", "s32"],
        "u32",
        lambda a, b, T=TO: (clamp(a, T) & 0xFFFF) << 16 | clamp(b, T) & 0xFFFF,
    )
for TO in ("s8", "u8"):
    add(
        f"cvt.pack.sat.{TO}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}",
        ["s32", "s32", "u32"],
        "u32",
        lambda a, b, c, T=TO: c << 16 | (clamp(a, T) & 0xFF) << 8 | clamp(b, T) & 0xFF,
    )

"""Integers and bits: expected values by Python's integers, and by the words of the PTX manual."""

from case import Case, SMALL, bits_of, combinations, integers, number, signed

CASES = []
ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
WORDS = ("u32", "s32", "u64", "s64")


def add(text, types, output, want, choices=None):
    """types: of operands; want gets them as integers of these types, and returns one."""
    bits = [bits_of(t) if t != "pred" else 1 for t in types]
    columns = choices or [(0, 1) if b == 1 else integers(b) for b in bits]
    columns = [[value & (1 << b) - 1 for value in column] for column, b in zip(columns, bits)]
    out = 1 if output == "pred" else bits_of(output)

    def wanted(*values):
        typed = [v if t == "pred" else number(v, t) for v, t in zip(values, types)]
        result = want(*typed)
        return None if result is None else int(result) & (1 << out) - 1

    CASES.append(Case(text, bits, out, wanted, combinations(columns)))


def clamp(value, type_):
    bits = bits_of(type_)
    least, most = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    )
    return min(max(value, least), most)


def quotient(a, b):
    """Towards zero."""
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return None if b == 0 else a - b * quotient(a, b)


for T in ALL:
    N = bits_of(T)
    for name, want in {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b, N=N: a * b >> N,
        "div": quotient,
        "rem": remainder,
        "min": min,
        "max": max,
    }.items():
        add(f"{name}.{T} {{d}}, {{a}}, {{b}}", [T, T], T, want)
    add(f"mad.lo.{T} {{d}}, {{a}}, {{b}}, {{c}}", [T] * 3, T, lambda a, b, c: a * b + c)
    add(f"mad.hi.{T} {{d}}, {{a}}, {{b}}, {{c}}", [T] * 3, T, lambda a, b, c, N=N: (a * b >> N) + c)
    add(f"sad.{T} {{d}}, {{a}}, {{b}}, {{c}}", [T] * 3, T, lambda a, b, c: c + abs(a - b))
    add(
        f"shr.{T} {{d}}, {{a}}, {{b}}",
        [T, "u32"],
        T,
        lambda a, b, N=N: a >> min(b, N) if a >= 0 or b < N else -1,
        [integers(N), SMALL],
    )
    if T[0] == "s":
        add(f"abs.{T} {{d}}, {{a}}", [T], T, abs)
        add(f"neg.{T} {{d}}, {{a}}", [T], T, lambda a: -a)
    if N < 64:
        W = f"{T[0]}{2 * N}"
        add(f"mul.wide.{T} {{d}}, {{a}}, {{b}}", [T, T], W, lambda a, b: a * b)
        add(f"mad.wide.{T} {{d}}, {{a}}, {{b}}, {{c}}", [T, T, W], W, lambda a, b, c: a * b + c)

add("add.sat.s32 {d}, {a}, {b}", ["s32", "s32"], "s32", lambda a, b: clamp(a + b, "s32"))
add("sub.sat.s32 {d}, {a}, {b}", ["s32", "s32"], "s32", lambda a, b: clamp(a - b, "s32"))
add(
    "mad.hi.sat.s32 {d}, {a}, {b}, {c}",
    ["s32"] * 3,
    "s32",
    lambda a, b, c: clamp((a * b >> 32) + c, "s32"),
)
for name in ("min", "max"):
    for order in ("relu.s32", "s32.relu"):  # nvcc's headers have the second
        add(
            f"{name}.{order} {{d}}, {{a}}, {{b}}",
            ["s32", "s32"],
            "s32",
            lambda a, b, f={"min": min, "max": max}[name]: max(0, f(a, b)),
        )


def differences(a, b):
    """Of each byte."""
    return [abs((a >> i & 255) - (b >> i & 255)) for i in (0, 8, 16, 24)]


add(
    "vabsdiff4.u32.u32.u32 {d}, {a}, {b}, {c}",
    ["u32"] * 3,
    "u32",
    lambda a, b, c: sum(byte << 8 * i for i, byte in enumerate(differences(a, b))),
)
add(
    "vabsdiff4.u32.u32.u32.add {d}, {a}, {b}, {c}",
    ["u32"] * 3,
    "u32",
    lambda a, b, c: c + sum(differences(a, b)),
)


def halves(f, T):
    """On both halves of two words."""

    def of(a, b):
        low, high = (
            (number(x & 0xFFFF, T), number(y & 0xFFFF, T)) for x, y in ((a, b), (a >> 16, b >> 16))
        )
        return f(*high) % 65536 << 16 | f(*low) % 65536

    return of


PAIRS = [0, 0x00010002, 0x7FFF8000, 0x80007FFF, 0xFFFF0001, 0x1234FEDC, 0xFFFFFFFF]
for T in ("u16", "s16"):
    for name, f in {"add": lambda a, b: a + b, "min": min, "max": max}.items():
        add(
            f"{name}.{T}x2 {{d}}, {{a}}, {{b}}", ["u32", "u32"], "u32", halves(f, T), [PAIRS, PAIRS]
        )
for name, f in {"min": min, "max": max}.items():
    for order in ("relu.s16x2", "s16x2.relu"):
        add(
            f"{name}.{order} {{d}}, {{a}}, {{b}}",
            ["u32", "u32"],
            "u32",
            halves(lambda a, b, f=f: max(0, f(a, b)), "s16"),
            [PAIRS, PAIRS],
        )

# Carry: the result and, in a second instruction, what was carried.
for T in WORDS:
    N = bits_of(T)
    U = f"u{N}"
    MASK = (1 << N) - 1
    for name, f in {"add": lambda a, b: a + b, "sub": lambda a, b: a - b}.items():
        add(f"{name}.cc.{T} {{d}}, {{a}}, {{b}}", [U, U], U, f)
        add(
            f"{name}.cc.{T} {{d}}, {{a}}, {{b}};\n    {name}c.{T} {{d}}, {{c}}, {{e}}",
            [U] * 4,
            U,
            lambda a, b, c, e, f=f, N=N: f(f(c, e), f(a, b) >> N & 1),
        )
        add(
            f"{name}.cc.{T} {{d}}, {{a}}, {{b}};\n    {name}c.cc.{T} {{d}}, {{c}}, {{e}};\n"
            f"    {name}c.{T} {{d}}, {{a}}, {{e}}",
            [U] * 4,
            U,
            lambda a, b, c, e, f=f, N=N: f(f(a, e), f(f(c, e), f(a, b) >> N & 1) >> N & 1),
        )
    # Sums and differences have one flag, which is 1 after a difference that has borrowed nothing,
    # as nvcc's own division of 128 bits takes it.
    add(
        f"sub.cc.{T} {{d}}, {{a}}, {{b}};\n    addc.{T} {{d}}, {{c}}, {{e}}",
        [U] * 4,
        U,
        lambda a, b, c, e: c + e + (a >= b),
    )
    add(
        f"add.cc.{T} {{d}}, {{a}}, {{b}};\n    subc.{T} {{d}}, {{c}}, {{e}}",
        [U] * 4,
        U,
        lambda a, b, c, e, N=N: c - e - 1 + (a + b >> N),
    )
    for part, of in {"lo": lambda p, N=N: p, "hi": lambda p, N=N: p >> N}.items():
        add(
            f"mad.{part}.cc.{T} {{d}}, {{a}}, {{b}}, {{c}};\n    addc.{T} {{d}}, {{d}}, {{e}}",
            [T] * 3 + [U],
            U,
            lambda a, b, c, e, of=of, M=MASK, N=N: ((of(a * b) & M) + (c & M) & M)
            + e
            + ((of(a * b) & M) + (c & M) >> N),
        )
        add(
            f"add.cc.{T} {{d}}, {{a}}, {{a}};\n    madc.{part}.{T} {{d}}, {{b}}, {{c}}, {{e}}",
            [U, T, T, U],
            U,
            lambda a, b, c, e, of=of, N=N: of(b * c) + e + (2 * a >> N),
        )
        add(
            f"add.cc.{T} {{d}}, {{a}}, {{a}};\n    madc.{part}.cc.{T} {{d}}, {{b}}, {{c}}, {{e}};\n"
            f"    addc.{T} {{d}}, {{d}}, {{a}}",
            [U, T, T, U],
            U,
            lambda a, b, c, e, of=of, M=MASK, N=N: ((of(b * c) & M) + e + (2 * a >> N) & M)
            + a
            + ((of(b * c) & M) + e + (2 * a >> N) >> N),
        )


def low24(value, T):
    return signed(value & 0xFFFFFF, 24) if T[0] == "s" else value & 0xFFFFFF


for T in ("u32", "s32"):
    for part, shift in (("lo", 0), ("hi", 16)):
        add(
            f"mul24.{part}.{T} {{d}}, {{a}}, {{b}}",
            [T, T],
            T,
            lambda a, b, T=T, s=shift: low24(a, T) * low24(b, T) >> s,
        )
        add(
            f"mad24.{part}.{T} {{d}}, {{a}}, {{b}}, {{c}}",
            [T] * 3,
            T,
            lambda a, b, c, T=T, s=shift: signed((low24(a, T) * low24(b, T) >> s) & 0xFFFFFFFF, 32)
            + c,
        )
    add(
        f"szext.clamp.{T} {{d}}, {{a}}, {{b}}",
        [T, "u32"],
        T,
        lambda a, b, T=T: (
            a
            if b >= 32
            else 0 if b == 0 else signed(a & (1 << b) - 1, b) if T == "s32" else a & (1 << b) - 1
        ),
        [integers(32), SMALL],
    )
    add(
        f"szext.wrap.{T} {{d}}, {{a}}, {{b}}",
        [T, "u32"],
        T,
        lambda a, b, T=T: (
            0
            if b % 32 == 0
            else signed(a & (1 << b % 32) - 1, b % 32) if T == "s32" else a & (1 << b % 32) - 1
        ),
        [integers(32), SMALL],
    )
add(
    "mad24.hi.sat.s32 {d}, {a}, {b}, {c}",
    ["s32"] * 3,
    "s32",
    lambda a, b, c: clamp((low24(a, "s") * low24(b, "s") >> 16) + c, "s32"),
)

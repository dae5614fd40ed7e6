"""Atomics of each operation and type, in each space; loads and stores of each width."""

import struct

from kernel import Kernel

FORMS = {"f32": "<f", "f64": "<d", "f16": "<e"}
ORDERS = ("", ".relaxed.gpu", ".acquire.cta", ".release.sys", ".acq_rel.cluster")
INTEGERS = [(5, 7), (0, 1), (0xFFFFFFFF, 3), (0x80000000, 0x7FFFFFFF), (6, 6), (9, 2)]
REALS = [(1.5, 2.25), (-3.0, 0.5), (0.0, -8.0)]


def bits_of(type_):
    return 32 if type_.endswith("x2") else int("".join(c for c in type_ if c.isdigit()))


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


def combine(operation, a, b):
    """The PTX manual's words."""
    return {
        "add": lambda: a + b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "exch": lambda: b,
        "inc": lambda: 0 if a >= b else a + 1,
        "dec": lambda: b if a == 0 or a > b else a - 1,
    }[operation]()


def integer_pairs(operation, type_):
    bits, found = bits_of(type_), []
    for a, b in INTEGERS:
        if bits == 64:
            a, b = a << 32 | 1, b << 32 | 1
        x, y = (signed(v, bits) if type_[0] == "s" else v for v in (a, b))
        found.append((a, b, combine(operation, x, y) & (1 << bits) - 1))
    return found


def real_bits(value, type_):
    if type_ == "bf16":
        return int.from_bytes(struct.pack("<f", value), "little") >> 16
    data = struct.pack(FORMS[type_], value)
    return int.from_bytes(data, "little")


def real_pairs(operation, type_):
    pairs = [(a, b, combine(operation, a, b)) for a, b in REALS]
    one = type_.removesuffix("x2")
    found = [tuple(real_bits(v, one) for v in row) for row in pairs]
    if one == type_:
        return found
    return [tuple(h << 16 | l for h, l in zip(*two)) for two in zip(found, found[1:] + found[:1])]


REGISTERS = {16: "%h", 32: "%a", 64: "%l"}


def put(register, value, bits):
    return f"    mov.b{bits} {register}, {value:#x};\n"


def atomic_text(opcode, pairs, bits, space, compare):
    """So many times: the old value, and the new one."""
    r, text, where = REGISTERS[bits], "", "memory_" + (space or "global")
    at = f"[{where}]" if space else "[%l9]"
    if not space:
        text += f"    mov.u64 %l9, {where};\n"
    for a, b, new in pairs:
        text += put(r + "1", a, bits) + put(r + "2", b, bits)
        text += f"    st.{space or 'global'}.b{bits} [{where}], {r}1;\n"
        operands = f"{r}1, {r}2" if compare else f"{r}2"
        if opcode.startswith("red"):
            text += f"    {opcode} {at}, {operands};\n    mov.b{bits} {r}3, {r}1;\n"
        else:
            text += f"    {opcode} {r}3, {at}, {operands};\n"
        text += f"    ld.{space or 'global'}.b{bits} {r}4, [{where}];\n"
        text += put(r + "5", new, bits)
        for got, wanted, mistake in ((3, 1, 1), (4, 5, 100)):
            text += f"    setp.ne.b{bits} %p1, {r}{got}, {r}{wanted};\n"
            text += f"    @%p1 add.u32 %d, %d, {mistake};\n"
    return text


OUTSIDE = ".global .align 16 .b64 memory_global[4];\n.shared .align 16 .b64 memory_shared[4];\n"
TYPES = {
    "add": "u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2",
    "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64",
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64",
    "inc": "u32",
    "dec": "u32",
}
KERNELS, NUMBER = [], 0


def add_atomic(operation, type_, pairs, compare=False):
    """By atom and by red, each in another space and with another order than the one before."""
    global NUMBER  # pylint: disable=global-statement
    for name in ("atom",) if operation in ("exch", "cas") else ("atom", "red"):
        text = ""
        for space in ("global", "shared", ""):
            orders = ORDERS if name == "atom" else (ORDERS[0], ORDERS[1], ORDERS[3])
            order, NUMBER = orders[NUMBER % len(orders)], NUMBER + 1
            ftz = ".noftz" if "f16" in type_ else ""
            opcode = f"{name}{order}{'.' + space if space else ''}.{operation}{ftz}.{type_}"
            text += atomic_text(opcode, pairs, bits_of(type_), space, compare)
        KERNELS.append(Kernel(f"{name}_{operation}_{type_}", lambda t: 0, text, 1))


for OPERATION, NAMES in TYPES.items():
    for TYPE in NAMES.split():
        PAIRS = real_pairs if "f" in TYPE else integer_pairs
        add_atomic(OPERATION, TYPE, PAIRS(OPERATION, TYPE))
for TYPE, SMALL in (("b16", True), ("b32", False), ("b64", False)):
    CAS = [(5, 7, 7), (0x1234, 9, 9)] if SMALL else [(0x12345678, 9, 9), (0, 1, 1)]
    add_atomic("cas", TYPE, CAS, True)
KERNELS[0].outside = OUTSIDE

# A comparison that fails leaves the value; 16 bytes; vectors, each element for itself.
KERNELS += [
    Kernel(
        "atom_cas_fails",
        lambda t: 5 + 500,
        """
    mov.u32 %a1, 5;
    st.global.u32 [memory_global], %a1;
    atom.global.cas.b32 %a2, [memory_global], 6, 7;
    ld.global.u32 %a3, [memory_global];
    mad.lo.u32 %d, %a3, 100, %a2;
""",
        1,
    ),
    Kernel(
        "atom_b128",
        lambda t: 1 + 20 + 300 + 4000 + 50000,
        """
    .reg .b128 %q<5>;
    mov.u64 %l1, 1;
    mov.u64 %l2, 20;
    st.global.v2.u64 [memory_global], {%l1, %l2};
    mov.u64 %l3, 300;
    mov.u64 %l4, 4000;
    mov.b128 %q1, {%l3, %l4};
    atom.global.exch.b128 %q2, [memory_global], %q1;
    mov.b128 {%l5, %l6}, %q2;
    add.u64 %l7, %l5, %l6;
    atom.acq_rel.sys.global.cas.b128 %q3, [memory_global], %q2, %q2;
    ld.global.v2.u64 {%l5, %l6}, [memory_global];
    add.u64 %l7, %l7, %l5;
    add.u64 %l7, %l7, %l6;
    mov.u64 %l5, 49979;
    mov.u64 %l6, 0;
    mov.b128 %q3, {%l5, %l6};
    atom.global.cas.b128 %q4, [memory_global], %q1, %q3;
    ld.global.u64 %l5, [memory_global];
    add.u64 %l7, %l7, %l5;
    add.u64 %l7, %l7, 21;
    cvt.u32.u64 %d, %l7;
""",
        1,
    ),
    Kernel(
        "atom_vectors",
        lambda t: 0,
        """
    mov.b32 %a1, 0f3F800000;
    mov.b32 %a2, 0f40000000;
    st.global.v2.b32 [memory_global], {%a1, %a2};
    atom.global.add.v2.f32 {%a3, %a4}, [memory_global], {%a2, %a2};
    xor.b32 %a5, %a3, %a1;
    or.b32 %d, %d, %a5;
    xor.b32 %a5, %a4, %a2;
    or.b32 %d, %d, %a5;
    ld.global.v2.b32 {%a3, %a4}, [memory_global];
    xor.b32 %a5, %a3, 0x40400000;
    or.b32 %d, %d, %a5;
    xor.b32 %a5, %a4, 0x40800000;
    or.b32 %d, %d, %a5;
    mov.b32 %a6, 0x3c004000;
    mov.b32 %a7, 0x40003c00;
    st.global.v2.b32 [memory_global], {%a6, %a6};
    red.global.v2.f16x2.max.noftz [memory_global], {%a7, %a6};
    ld.global.v2.b32 {%a3, %a4}, [memory_global];
    xor.b32 %a5, %a3, 0x40004000;
    or.b32 %d, %d, %a5;
    xor.b32 %a5, %a4, %a6;
    or.b32 %d, %d, %a5;
""",
        1,
    ),
]


# Where an address is: each is in its own space alone. A block is a cluster of its own.
KERNELS += [
    Kernel(
        "spaces",
        lambda t: 0b100_010_001 | 7 << 9 | 5 << 12,
        """
    .local .b32 own;
    mov.u64 %l1, memory_global;
    mov.u64 %l2, own;
    cvta.local.u64 %l2, %l2;
    mov.u64 %l3, memory_shared;
    cvta.shared.u64 %l3, %l3;
"""
        + "".join(
            f"    isspacep.{space} %p1, %l{i};\n    selp.u32 %a1, {bit}, 0, %p1;\n"
            "    or.b32 %d, %d, %a1;\n"
            for i, (space, bit) in enumerate(
                (name, 1 << 8 - 3 * number - place)
                for place in range(3)
                for number, name in enumerate(("global", "local", "shared"))
            )
            for i in (i // 3 + 1,)
        )
        + """
    mov.u32 %a1, 5;
    st.shared.u32 [memory_shared+4], %a1;
    mov.u32 %a2, memory_shared;
    mapa.shared::cluster.u32 %a3, %a2, 0;
    ld.shared::cluster.u32 %a4, [%a3+4];
    shl.b32 %a4, %a4, 12;
    or.b32 %d, %d, %a4;
    getctarank.shared::cluster.u32 %a5, %a3;
    add.u32 %a5, %a5, 7;
    shl.b32 %a5, %a5, 9;
    or.b32 %d, %d, %a5;
""",
        1,
    ),
    Kernel(  # through caches that are not coherent
        "ldu",
        lambda t: 0x1234,
        """
    mov.u32 %a1, 0x1234;
    st.global.u32 [memory_global], %a1;
    membar.gl;
    ldu.global.u32 %d, [memory_global];
""",
        1,
    ),
]


def access(name, store, load, want):
    KERNELS.append(Kernel(name, lambda t: want, store + load, 1))


# What is loaded is extended by the sign of its type; what is stored is the lower part.
BEGIN = "    mov.u32 %a1, 0x8182f3f4;\n    st.global.u32 [memory_global], %a1;\n"
for TYPE, WANT in {
    "u8": 0xF4,
    "s8": 0xFFFFFFF4,
    "b8": 0xF4,
    "u16": 0xF3F4,
    "s16": 0xFFFFF3F4,
    "b32": 0x8182F3F4,
}.items():
    for HOW in ("", ".volatile", ".relaxed.sys", ".acquire.gpu", ".mmio.relaxed.sys"):
        access(
            f"ld_{TYPE}{HOW}".replace(".", "_"),
            BEGIN,
            f"    ld{HOW}.global.{TYPE} %d, [memory_global];\n",
            WANT,
        )
for TYPE, WANT in {"u8": 0x818200F4, "b16": 0x8182FFF4, "u32": 0x00FFFFF4}.items():
    for HOW in ("", ".volatile", ".relaxed.cta", ".release.sys", ".mmio.relaxed.sys"):
        AT = "memory_global" if TYPE != "u8" else "memory_global+1"
        access(
            f"st_{TYPE}{HOW}".replace(".", "_"),
            BEGIN + "    mov.u32 %a2, 0x00fffff4;\n".replace("f4", "00" if TYPE == "u8" else "f4"),
            f"    st{HOW}.global.{TYPE} [{AT}], %a2;\n    ld.global.u32 %d, [memory_global];\n",
            WANT,
        )
for TYPE, COUNT in (("u8", 4), ("u16", 2), ("u16", 4), ("u32", 2), ("u32", 4)):
    TO = ", ".join(f"%a{i}" for i in range(1, COUNT + 1))
    FROM = "".join(f"    mov.u32 %a{i}, {i * 17};\n" for i in range(1, COUNT + 1))
    SUM = "".join(f"    mad.lo.u32 %d, %a{i}, {i}, %d;\n" for i in range(1, COUNT + 1))
    access(
        f"v{COUNT}_{TYPE}",
        FROM + f"    st.shared.v{COUNT}.{TYPE} [memory_shared], {{{TO}}};\n",
        f"    ld.shared.v{COUNT}.{TYPE} {{{TO}}}, [memory_shared];\n" + SUM,
        sum(17 * i * i for i in range(1, COUNT + 1)),
    )

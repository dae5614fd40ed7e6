"""Matrices that the lanes of a warp hold parts of. Where an element is, each case says in the PTX
manual's words for its shape; the products are Python's."""

import struct

from kernel import Kernel

LANES = 32


def word(values, encode, bits):
    """Elements in a register: the first is the lowest."""
    return sum((encode(v) & (1 << bits) - 1) << i * bits for i, v in enumerate(values))


def f16(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def f32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bf16(value):
    return f32(value) >> 16


def small(value, fraction, bias):
    """Of a whole number that is 0, or of few bits."""
    if value == 0:
        return 0
    size = abs(value)
    exponent = size.bit_length() - 1
    return (
        (value < 0) << 7
        | exponent + bias << fraction
        | (size << fraction >> exponent & (1 << fraction) - 1)
    )


# How an element becomes bits, and how many; numbers that it can be.
ELEMENTS = {
    "f16": (f16, 16, range(-3, 4)),
    "bf16": (bf16, 16, range(-3, 4)),
    "tf32": (f32, 32, range(-3, 4)),
    "e4m3": (lambda v: small(v, 3, 7), 8, range(-3, 4)),
    "e5m2": (lambda v: small(v, 2, 15), 8, range(-3, 4)),
    "s8": (lambda v: v, 8, range(-128, 128)),
    "u8": (lambda v: v, 8, range(256)),
}


def element(kind, row, column, seed):
    numbers = ELEMENTS[kind][2]
    return numbers[(row * 37 + column * 101 + row * column * 7 + seed) % len(numbers)]


def place_a(bits, k, lane, i):
    """Row and column of element i of a lane's part of a."""
    group, within = lane // 4, lane % 4
    if bits == 32:  # m16n8k4: a0, a1; m16n8k8: a0 to a3
        return group + 8 * (i % 2), within + (4 if i >= 2 else 0)
    if bits == 16 and k == 8:  # a0 and a1 in the upper rows
        return group + (8 if i >= 2 else 0), within * 2 + (i & 1)
    if bits == 16:
        row = group if i < 2 or 4 <= i < 6 else group + 8
        return row, within * 2 + (i & 1) + (8 if i >= 4 else 0)
    if k == 16:
        return group + (8 if i >= 4 else 0), within * 4 + (i & 3)
    row = group if i < 4 or 8 <= i < 12 else group + 8
    return row, within * 4 + (i & 3) + (16 if i >= 8 else 0)


def place_b(bits, lane, i):
    """Row and column of element i of a lane's part of b."""
    group, within = lane // 4, lane % 4
    if bits == 32:
        return within + 4 * i, group
    if bits == 16:
        return within * 2 + (i & 1) + (8 if i >= 2 else 0), group
    return within * 4 + (i & 3) + (16 if i >= 4 else 0), group


def registers_of(kind, places, seed):
    """A register for each few elements."""
    encode, bits, _ = ELEMENTS[kind]
    values = [element(kind, *place, seed) for place in places]
    count = 32 // bits
    return [word(values[i : i + count], encode, bits) for i in range(0, len(values), count)]


def table(name, rows):
    """A variable with so many words for each lane; so many in a row are read as a vector."""
    words = ", ".join(str(value) for row in rows for value in row)
    return f".global .align 16 .b32 {name}[{len(rows) * len(rows[0])}] = {{{words}}};\n"


def read(name, count, first):
    """Loads the lane's words to %a registers."""
    text = f"    mov.u64 %l1, {name};\n    mad.wide.u32 %l2, %t, {4 * count}, %l1;\n"
    return text + "".join(
        f"    ld.global.u32 %a{first + i}, [%l2+{4 * i}];\n" for i in range(count)
    )


def initial(row, column):
    """Of the matrix that is added to."""
    return (row * 8 + column) % 13 - 6


def sum_kernel(a, b, c, k, satfinite=False, high=0):
    bits = ELEMENTS[a][1]
    count = k * bits // 128  # registers of b
    a_rows = [
        registers_of(a, [place_a(bits, k, lane, i) for i in range(2 * count * 32 // bits)], 1)
        for lane in range(LANES)
    ]
    b_rows = [
        registers_of(b, [place_b(bits, lane, i) for i in range(count * 32 // bits)], 5)
        for lane in range(LANES)
    ]
    encode = {"f32": f32, "f16": f16, "s32": lambda v: v & 0xFFFFFFFF}[c]

    def sums(lane):
        found = []
        for i in range(4):
            row, column = lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)
            total = initial(row, column) + high + sum(
                element(a, row, j, 1) * element(b, j, column, 5) for j in range(k)
            )
            found.append(min(total, 2**31 - 1) if satfinite else total)
        return found

    def start(lane):
        return [
            initial(lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)) + high
            for i in range(4)
        ]

    def packed(values):
        words = [encode(v) for v in values]
        return words if c != "f16" else [words[0] | words[1] << 16, words[2] | words[3] << 16]

    n = 2 if c == "f16" else 4
    name = f"mma_{a}_{b}_{c}_{k}" + ("_sat" if satfinite else "")
    c_names = ", ".join(f"%a{i}" for i in range(n))
    a_names = ", ".join(f"%a{4 + i}" for i in range(2 * count))
    b_names = ", ".join(f"%a{8 + i}" for i in range(count))
    opcode = f"mma.sync.aligned.m16n8k{k}.row.col{'.satfinite' if satfinite else ''}.{c}.{a}.{b}.{c}"
    body = read(name + "_c", n, 0) + read(name + "_a", 2 * count, 4) + read(name + "_b", count, 8)
    body += f"    {opcode} {{{c_names}}}, {{{a_names}}}, {{{b_names}}}, {{{c_names}}};\n"
    body += "".join(f"    mad.lo.u32 %d, %d, 31, %a{i};\n" for i in range(n))

    def want(lane):
        result = 0
        for value in packed(sums(lane)):
            result = (result * 31 + value) & 0xFFFFFFFF
        return result

    outside = (
        table(name + "_a", a_rows)
        + table(name + "_b", b_rows)
        + table(name + "_c", [packed(start(lane)) for lane in range(LANES)])
    )
    return Kernel(name, want, body, LANES, outside)


KERNELS = [
    sum_kernel(*how)
    for how in (
        ("f16", "f16", "f32", 16),
        ("f16", "f16", "f32", 8),
        ("f16", "f16", "f16", 16),
        ("bf16", "bf16", "f32", 16),
        ("bf16", "bf16", "f32", 8),
        ("tf32", "tf32", "f32", 8),
        ("tf32", "tf32", "f32", 4),
        ("e4m3", "e5m2", "f32", 32),
        ("s8", "u8", "s32", 32),
        ("u8", "s8", "s32", 16),
        ("u8", "u8", "s32", 32, True, 2**31 - 300000),
    )
]

# Four matrices of 8 rows, a row of 16 bytes for each lane: element (m, r, c) is 1000 m + 10 r + c.
ROWS = "\n".join(
    f"    mad.lo.u32 %a2, %a0, 1000, {i};\n    mad.lo.u32 %a2, %a1, 10, %a2;\n"
    f"    st.shared.u16 [%a3+{2 * i}], %a2;"
    for i in range(8)
)
FILL = f"""
    shr.u32 %a0, %t, 3;
    and.b32 %a1, %t, 7;
    mul.lo.u32 %a3, %t, 48;
    mov.u32 %a4, matrix_rows;
    add.u32 %a3, %a3, %a4;
{ROWS}
    bar.sync 0;
"""


def loaded(lane, count, transposed):
    result = 0
    for m in range(count):
        pair = [
            1000 * m + 10 * r + c
            for r, c in (
                (lane % 4 * 2 + i, lane // 4) if transposed else (lane // 4, lane % 4 * 2 + i)
                for i in (0, 1)
            )
        ]
        result = (result * 31 + (pair[0] | pair[1] << 16)) & 0xFFFFFFFF
    return result


for COUNT in (1, 2, 4):
    for TRANS in (False, True):
        NAMES = ", ".join(f"%a{8 + i}" for i in range(COUNT))
        KERNELS.append(
            Kernel(
                f"ldmatrix_{COUNT}{'_trans' if TRANS else ''}",
                lambda t, n=COUNT, trans=TRANS: loaded(t, n, trans),
                FILL
                + f"    ldmatrix.sync.aligned.m8n8.x{COUNT}{'.trans' if TRANS else ''}.shared.b16"
                f" {{{NAMES}}}, [%a3];\n"
                + "".join(f"    mad.lo.u32 %d, %d, 31, %a{8 + i};\n" for i in range(COUNT)),
            )
        )
KERNELS[-6].outside = ".shared .align 16 .b8 matrix_rows[1536];\n"
for TRANS in (False, True):  # stored as they were loaded, or turned: matrix 1, row 3, column 5

    def stored(t, trans=TRANS):
        m, r = t // 8, t % 8
        row = [1000 * m + (10 * i + r if trans else 10 * r + i) for i in range(8)]
        return (row[0] + 3 * row[5] + 7 * row[6]) & 0xFFFFFFFF

    KERNELS.append(
        Kernel(
            f"stmatrix{'_trans' if TRANS else ''}",
            stored,
            FILL
            + f"""
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a8, %a9, %a10, %a11}}, [%a3];
    stmatrix.sync.aligned.m8n8.x4{'.trans' if TRANS else ''}.shared::cta.b16
        [%a3], {{%a8, %a9, %a10, %a11}};
    bar.sync 0;
    ld.shared.u16 %a5, [%a3];
    ld.shared.u16 %a6, [%a3+10];
    ld.shared.u16 %a7, [%a3+12];
    mad.lo.u32 %d, %a6, 3, %a5;
    mad.lo.u32 %d, %a7, 7, %d;
""",
        )
    )
KERNELS += [
    Kernel(
        "movmatrix",
        lambda t: loaded(t, 1, True),
        FILL
        + """
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a8}, [%a3];
    movmatrix.sync.aligned.m8n8.trans.b16 %d, %a8;
""",
    ),
    Kernel(
        "mma_of_16_lanes",
        None,
        "    movmatrix.sync.aligned.m8n8.trans.b16 %d, %t;\n",
        16,
    ),
]

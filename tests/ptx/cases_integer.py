"""Integers and bits: expected values by Python's integers, and by the words of the PTX manual."""
from case import Case, SMALL, bits_of, combinations, integers, number, signed

CASES = []
ALL = ('u16', 'u32', 'u64', 's16', 's32', 's64')
WORDS = ('u32', 's32', 'u64', 's64')


def add(text, types, output, want, choices=None):
    """types: of operands; want gets them as integers of these types, and returns one."""
    bits = [bits_of(t) if t != 'pred' else 1 for t in types]
    columns = choices or [(0, 1) if b == 1 else integers(b) for b in bits]
    columns = [[value & (1 << b) - 1 for value in column] for column, b in zip(columns, bits)]
    out = 1 if output == 'pred' else bits_of(output)

    def wanted(*values):
        typed = [v if t == 'pred' else number(v, t) for v, t in zip(values, types)]
        result = want(*typed)
        return None if result is None else int(result) & (1 << out) - 1

    CASES.append(Case(text, bits, out, wanted, combinations(columns)))


def clamp(value, type_):
    bits = bits_of(type_)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == 's' else (0, (1 << bits) - 1)
    return min(max(value, least), most)


def quotient(a, b):
    """Towards zero."""
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return None if b == 0 else a - b * quotient(a, b)


for T in ALL:
    N = bits_of(T)
    for name, want in {'add': lambda a, b: a + b, 'sub': lambda a, b: a - b, 'mul.lo': lambda a, b: a * b,
                       'mul.hi': lambda a, b, N=N: a * b >> N, 'div': quotient, 'rem': remainder,
                       'min': min, 'max': max}.items():
        add(f'{name}.{T} {{d}}, {{a}}, {{b}}', [T, T], T, want)
    add(f'mad.lo.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T] * 3, T, lambda a, b, c: a * b + c)
    add(f'mad.hi.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T] * 3, T, lambda a, b, c, N=N: (a * b >> N) + c)
    add(f'sad.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T] * 3, T, lambda a, b, c: c + abs(a - b))
    add(f'shr.{T} {{d}}, {{a}}, {{b}}', [T, 'u32'], T, lambda a, b, N=N: a >> min(b, N) if a >= 0 or b < N else -1,
        [integers(N), SMALL])
    if T[0] == 's':
        add(f'abs.{T} {{d}}, {{a}}', [T], T, abs)
        add(f'neg.{T} {{d}}, {{a}}', [T], T, lambda a: -a)
    if N < 64:
        W = f'{T[0]}{2 * N}'
        add(f'mul.wide.{T} {{d}}, {{a}}, {{b}}', [T, T], W, lambda a, b: a * b)
        add(f'mad.wide.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T, T, W], W, lambda a, b, c: a * b + c)

add('add.sat.s32 {d}, {a}, {b}', ['s32', 's32'], 's32', lambda a, b: clamp(a + b, 's32'))
add('sub.sat.s32 {d}, {a}, {b}', ['s32', 's32'], 's32', lambda a, b: clamp(a - b, 's32'))
add('mad.hi.sat.s32 {d}, {a}, {b}, {c}', ['s32'] * 3, 's32', lambda a, b, c: clamp((a * b >> 32) + c, 's32'))
for name in ('min', 'max'):
    add(f'{name}.relu.s32 {{d}}, {{a}}, {{b}}', ['s32', 's32'], 's32',
        lambda a, b, f={'min': min, 'max': max}[name]: max(0, f(a, b)))


def halves(f, T):
    """On both halves of two words."""
    def of(a, b):
        low, high = ((number(x & 0xffff, T), number(y & 0xffff, T)) for x, y in ((a, b), (a >> 16, b >> 16)))
        return f(*high) % 65536 << 16 | f(*low) % 65536
    return of


PAIRS = [0, 0x00010002, 0x7fff8000, 0x80007fff, 0xffff0001, 0x1234fedc, 0xffffffff]
for T in ('u16', 's16'):
    for name, f in {'add': lambda a, b: a + b, 'min': min, 'max': max}.items():
        add(f'{name}.{T}x2 {{d}}, {{a}}, {{b}}', ['u32', 'u32'], 'u32', halves(f, T), [PAIRS, PAIRS])
for name, f in {'min': min, 'max': max}.items():
    add(f'{name}.relu.s16x2 {{d}}, {{a}}, {{b}}', ['u32', 'u32'], 'u32',
        halves(lambda a, b, f=f: max(0, f(a, b)), 's16'), [PAIRS, PAIRS])

# Carry: the result and, in a second instruction, what was carried.
for T in WORDS:
    N = bits_of(T)
    U = f'u{N}'
    MASK = (1 << N) - 1
    for name, f in {'add': lambda a, b: a + b, 'sub': lambda a, b: a - b}.items():
        add(f'{name}.cc.{T} {{d}}, {{a}}, {{b}}', [U, U], U, f)
        add(f'{name}.cc.{T} {{d}}, {{a}}, {{b}};\n    {name}c.{T} {{d}}, {{c}}, {{e}}', [U] * 4, U,
            lambda a, b, c, e, f=f, N=N: f(f(c, e), f(a, b) >> N & 1))
        add(f'{name}.cc.{T} {{d}}, {{a}}, {{b}};\n    {name}c.cc.{T} {{d}}, {{c}}, {{e}};\n    {name}c.{T} {{d}}, {{a}}, {{e}}',
            [U] * 4, U, lambda a, b, c, e, f=f, N=N: f(f(a, e), f(f(c, e), f(a, b) >> N & 1) >> N & 1))
    for part, of in {'lo': lambda p, N=N: p, 'hi': lambda p, N=N: p >> N}.items():
        add(f'mad.{part}.cc.{T} {{d}}, {{a}}, {{b}}, {{c}};\n    addc.{T} {{d}}, {{d}}, {{e}}', [T] * 3 + [U], U,
            lambda a, b, c, e, of=of, M=MASK, N=N:
            ((of(a * b) & M) + (c & M) & M) + e + ((of(a * b) & M) + (c & M) >> N))
        add(f'add.cc.{T} {{d}}, {{a}}, {{a}};\n    madc.{part}.{T} {{d}}, {{b}}, {{c}}, {{e}}', [U, T, T, U], U,
            lambda a, b, c, e, of=of, N=N: of(b * c) + e + (2 * a >> N))
        add(f'add.cc.{T} {{d}}, {{a}}, {{a}};\n    madc.{part}.cc.{T} {{d}}, {{b}}, {{c}}, {{e}};\n'
            f'    addc.{T} {{d}}, {{d}}, {{a}}', [U, T, T, U], U,
            lambda a, b, c, e, of=of, M=MASK, N=N:
            ((of(b * c) & M) + e + (2 * a >> N) & M) + a + ((of(b * c) & M) + e + (2 * a >> N) >> N))


def low24(value, T):
    return signed(value & 0xffffff, 24) if T[0] == 's' else value & 0xffffff


for T in ('u32', 's32'):
    for part, shift in (('lo', 0), ('hi', 16)):
        add(f'mul24.{part}.{T} {{d}}, {{a}}, {{b}}', [T, T], T,
            lambda a, b, T=T, s=shift: low24(a, T) * low24(b, T) >> s)
        add(f'mad24.{part}.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T] * 3, T,
            lambda a, b, c, T=T, s=shift: signed((low24(a, T) * low24(b, T) >> s) & 0xffffffff, 32) + c)
    add(f'szext.clamp.{T} {{d}}, {{a}}, {{b}}', [T, 'u32'], T,
        lambda a, b, T=T: a if b >= 32 else 0 if b == 0 else
        signed(a & (1 << b) - 1, b) if T == 's32' else a & (1 << b) - 1, [integers(32), SMALL])
    add(f'szext.wrap.{T} {{d}}, {{a}}, {{b}}', [T, 'u32'], T,
        lambda a, b, T=T: 0 if b % 32 == 0 else signed(a & (1 << b % 32) - 1, b % 32) if T == 's32' else
        a & (1 << b % 32) - 1, [integers(32), SMALL])
add('mad24.hi.sat.s32 {d}, {a}, {b}, {c}', ['s32'] * 3, 's32',
    lambda a, b, c: clamp((low24(a, 's') * low24(b, 's') >> 16) + c, 's32'))

# ---- Bits ----


def highest(value, T):
    """bfind: the highest bit that differs from the sign."""
    bits = (~value if value < 0 else value) & (1 << bits_of(T)) - 1
    return bits.bit_length() - 1


for T in WORDS:
    N = bits_of(T)
    add(f'bfind.{T} {{d}}, {{a}}', [T], 'u32', lambda a, T=T: highest(a, T))
    add(f'bfind.shiftamt.{T} {{d}}, {{a}}', [T], 'u32',
        lambda a, T=T, N=N: -1 if highest(a, T) < 0 else N - 1 - highest(a, T))

    def extract(a, position, length, T=T, N=N):
        """bfe, by the manual's own loop."""
        position, length = position & 0xff, length & 0xff
        bits = a & (1 << N) - 1
        if T[0] == 'u' or length == 0:
            sign = 0
        else:
            sign = bits >> min(position + length - 1, N - 1) & 1
        result = 0
        for i in range(N):
            bit = bits >> position + i & 1 if i < length and position + i < N else sign
            result |= bit << i
        return result
    add(f'bfe.{T} {{d}}, {{a}}, {{b}}, {{c}}', [T, 'u32', 'u32'], T, extract, [integers(N)[::3] + [0xdeadbeef], SMALL, SMALL])

for N in (32, 64):
    T, B = f'u{N}', f'b{N}'
    add(f'popc.{B} {{d}}, {{a}}', [T], 'u32', lambda a: bin(a).count('1'))
    add(f'clz.{B} {{d}}, {{a}}', [T], 'u32', lambda a, N=N: N - a.bit_length())
    add(f'brev.{B} {{d}}, {{a}}', [T], T, lambda a, N=N: int(f'{a:0{N}b}'[::-1], 2))

    def insert(a, b, position, length, N=N):
        position, length = position & 0xff, length & 0xff
        for i in range(length):
            if position + i >= N:
                break
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
        return b
    add(f'bfi.{B} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}', [T, T, 'u32', 'u32'], T, insert,
        [[0, 0xdeadbeef, (1 << N) - 1], [0, 0x12345678, (1 << N) - 1], SMALL, SMALL])


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


add('fns.b32 {d}, {a}, {b}, {c}', ['u32', 'u32', 's32'], 'u32', nth_set,
    [[0, 1, 0x80000000, 0xdeadbeef, 0xffffffff], [0, 1, 15, 31], [-33, -5, -1, 0, 1, 2, 5, 32, 33]])
add('bmsk.clamp.b32 {d}, {a}, {b}', ['u32', 'u32'], 'u32',
    lambda a, b: 0 if a >= 32 else (1 << min(b, 32)) - 1 << a, [SMALL, SMALL])
add('bmsk.wrap.b32 {d}, {a}, {b}', ['u32', 'u32'], 'u32', lambda a, b: (1 << b % 32) - 1 << a % 32, [SMALL, SMALL])


def dot(A, B, elements):
    """dp4a and dp2a: elements gives (shift, bits) of a and of b."""
    def of(a, b, c):
        for (sa, na), (sb, nb) in elements:
            x, y = a >> sa & (1 << na) - 1, b >> sb & (1 << nb) - 1
            c += (signed(x, na) if A == 's32' else x) * (signed(y, nb) if B == 's32' else y)
        return c
    return of


for A in ('u32', 's32'):
    for B in ('u32', 's32'):
        C = 'u32' if A == B == 'u32' else 's32'
        add(f'dp4a.{A}.{B} {{d}}, {{a}}, {{b}}, {{c}}', ['u32', 'u32', C], C,
            dot(A, B, [((i, 8), (i, 8)) for i in (0, 8, 16, 24)]))
        for part, base in (('lo', 0), ('hi', 16)):
            add(f'dp2a.{part}.{A}.{B} {{d}}, {{a}}, {{b}}, {{c}}', ['u32', 'u32', C], C,
                dot(A, B, [((16 * i, 16), (8 * i + base, 8)) for i in (0, 1)]))

MODES = {'f4e': ['0123', '1234', '2345', '3456'], 'b4e': ['0765', '1076', '2107', '3210'],
         'rc8': ['0000', '1111', '2222', '3333'], 'ecl': ['0123', '1123', '2223', '3333'],
         'ecr': ['0000', '0111', '0122', '0123'], 'rc16': ['0101', '2323', '0101', '2323']} # bytes from the lowest up
add('prmt.b32 {d}, {a}, {b}, {c}', ['u32'] * 3, 'u32',
    lambda a, b, c: sum((0xff * ((b << 32 | a) >> 8 * (c >> 4 * i & 7) + 7 & 1) if c >> 4 * i & 8 else
                         (b << 32 | a) >> 8 * (c >> 4 * i & 7) & 0xff) << 8 * i for i in range(4)),
    [[0x80117f22, 0xffffffff], [0x33c444f5, 0], [0x3210, 0x7654, 0xfedc, 0x8421, 0x0f0e]])
for mode, rows in MODES.items():
    add(f'prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}', ['u32'] * 3, 'u32',
        lambda a, b, c, rows=rows: sum(((b << 32 | a) >> 8 * int(rows[c & 3][i]) & 0xff) << 8 * i for i in range(4)),
        [[0x03020100, 0xa3b2c1d0], [0x07060504], [0, 1, 2, 3, 4]])

# ---- Logic ----

for N in (16, 32, 64):
    T = f'u{N}'
    for name, f in {'and': lambda a, b: a & b, 'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b}.items():
        add(f'{name}.b{N} {{d}}, {{a}}, {{b}}', [T, T], T, f)
    add(f'not.b{N} {{d}}, {{a}}', [T], T, lambda a: ~a)
    add(f'cnot.b{N} {{d}}, {{a}}', [T], T, lambda a: a == 0)
    add(f'shl.b{N} {{d}}, {{a}}, {{b}}', [T, 'u32'], T, lambda a, b: a << b, [integers(N), SMALL])
    add(f'shr.b{N} {{d}}, {{a}}, {{b}}', [T, 'u32'], T, lambda a, b: a >> b, [integers(N), SMALL])
for name, f in {'and': lambda a, b: a & b, 'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b}.items():
    add(f'{name}.pred {{d}}, {{a}}, {{b}}', ['pred', 'pred'], 'pred', f)
add('not.pred {d}, {a}', ['pred'], 'pred', lambda a: 1 - a)
for table in (0x80, 0xe8, 0x96, 0xca, 0x1d):
    add(f'lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}', ['u32'] * 3, 'u32',
        lambda a, b, c, t=table: sum((t >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
                                     for i in range(32)))
for mode, f in {'wrap': lambda n: n & 31, 'clamp': lambda n: min(n, 32)}.items():
    add(f'shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}', ['u32'] * 3, 'u32',
        lambda a, b, c, f=f: (b << 32 | a) << f(c) >> 32, [integers(32)[::3], integers(32)[::4], SMALL])
    add(f'shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}', ['u32'] * 3, 'u32',
        lambda a, b, c, f=f: (b << 32 | a) >> f(c), [integers(32)[::3], integers(32)[::4], SMALL])

# ---- Comparisons and choices of integers ----

COMPARE = {'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'lt': lambda a, b: a < b, 'le': lambda a, b: a <= b,
           'gt': lambda a, b: a > b, 'ge': lambda a, b: a >= b}
for T in ALL:
    for name, f in COMPARE.items():
        add(f'setp.{name}.{T} {{d}}, {{a}}, {{b}}', [T, T], 'pred', f)
for name, f in {'lo': COMPARE['lt'], 'ls': COMPARE['le'], 'hi': COMPARE['gt'], 'hs': COMPARE['ge']}.items():
    add(f'setp.{name}.u32 {{d}}, {{a}}, {{b}}', ['u32', 'u32'], 'pred', f)
for name, f in {'and': lambda x, y: x & y, 'or': lambda x, y: x | y, 'xor': lambda x, y: x ^ y}.items():
    add(f'setp.lt.{name}.s32 {{d}}, {{a}}, {{b}}, {{c}}', ['s32', 's32', 'pred'], 'pred', lambda a, b, c, f=f: f(a < b, c))
    add(f'setp.lt.{name}.s32 {{d}}, {{a}}, {{b}}, !{{c}}', ['s32', 's32', 'pred'], 'pred',
        lambda a, b, c, f=f: f(a < b, 1 - c))
    add(f'setp.lt.{name}.s32 _|{{d}}, {{a}}, {{b}}, {{c}}', ['s32', 's32', 'pred'], 'pred',
        lambda a, b, c, f=f: f(a >= b, c))
    add(f'set.ge.{name}.u32.s32 {{d}}, {{a}}, {{b}}, {{c}}', ['s32', 's32', 'pred'], 'u32',
        lambda a, b, c, f=f: -1 if f(a >= b, c) else 0)
add('set.lt.u32.s32 {d}, {a}, {b}', ['s32', 's32'], 'u32', lambda a, b: -(a < b))
add('set.hi.f32.u32 {d}, {a}, {b}', ['u32', 'u32'], 'u32', lambda a, b: 0x3f800000 if a > b else 0)
for N in (16, 32, 64):
    for K in 'bus':
        add(f'selp.{K}{N} {{d}}, {{a}}, {{b}}, {{c}}', [f'u{N}', f'u{N}', 'pred'], f'u{N}', lambda a, b, c: a if c else b)
    add(f'slct.b{N}.s32 {{d}}, {{a}}, {{b}}, {{c}}', [f'u{N}', f'u{N}', 's32'], f'u{N}', lambda a, b, c: a if c >= 0 else b)
add('mov.pred {d}, {a}', ['pred'], 'pred', lambda a: a)

# ---- Moves and conversions of integers ----

for N in (16, 32, 64):
    for K in 'bus':
        add(f'mov.{K}{N} {{d}}, {{a}}', [f'u{N}'], f'u{N}', lambda a: a)
add('mov.b32 {d}, {{{a}, {b}}}', ['u16', 'u16'], 'u32', lambda a, b: b << 16 | a)
add('mov.b64 {d}, {{{a}, {b}}}', ['u32', 'u32'], 'u64', lambda a, b: b << 32 | a)
add('mov.b64 {{{d}, _}}, {a}', ['u64'], 'u32', lambda a: a)
add('mov.b64 {{_, {d}}}, {a}', ['u64'], 'u32', lambda a: a >> 32)
for TO in ('u8', 's8') + ALL:
    for FROM in ('u8', 's8') + ALL:
        OUT, IN = max(16, bits_of(TO)), max(16, bits_of(FROM))
        for sat in ('', '.sat'):
            def converted(a, TO=TO, FROM=FROM, sat=sat):
                value = number(a & (1 << bits_of(FROM)) - 1, FROM)
                value = clamp(value, TO) if sat else value & (1 << bits_of(TO)) - 1
                return number(value & (1 << bits_of(TO)) - 1, TO)
            add(f'cvt{sat}.{TO}.{FROM} {{d}}, {{a}}', [f'u{IN}'], f'u{OUT}', converted)
for TO in ('s16', 'u16'):
    add(f'cvt.pack.sat.{TO}.s32 {{d}}, {{a}}, {{b}}', ['s32', 's32'], 'u32',
        lambda a, b, T=TO: (clamp(a, T) & 0xffff) << 16 | clamp(b, T) & 0xffff)
for TO in ('s8', 'u8'):
    add(f'cvt.pack.sat.{TO}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}', ['s32', 's32', 'u32'], 'u32',
        lambda a, b, c, T=TO: c << 16 | (clamp(a, T) & 0xff) << 8 | clamp(b, T) & 0xff)

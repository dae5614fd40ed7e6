"""Floating point: expected values are exact fractions, rounded once (exact.py); functions that are approximate on GPUs are
compared with Python's within the manual's error."""
import math
import struct
from fractions import Fraction

from case import Case, bits_of, combinations, integers, number
from exact import BF16, F16, F32, F64, FORMATS, square_root

CASES = []
VALUES = {
    'f32': (0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x40490fdb,
            0x4b7fffff, 0x4b800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3eaaaaab, 0xc2f6e979,
            0x33800000, 0x1a2b3c4d),
    'f64': (0, 1 << 63, 1, 0x000fffffffffffff, 0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000,
            0x3ff0000000000001, 0x400921fb54442d18, 0x433fffffffffffff, 0x7fefffffffffffff, 0xffefffffffffffff,
            0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3fd5555555555555, 0xc05edd2f1a9fbe77,
            0x3ca0000000000000),
    'f16': (0, 0x8000, 1, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x3c01, 0x4248, 0x6bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
            0x3555, 0xd7b7, 0x1000, 0x8001, 0x2e66),
    'bf16': (0, 0x8000, 1, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x3f81, 0x4049, 0x4b7f, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
             0x3eab, 0xc2f7, 0x3380, 0x8001, 0x1234),
}
ONE = {'f32': 0x3f800000, 'f64': 0x3ff0000000000000, 'f16': 0x3c00, 'bf16': 0x3f80}


def arithmetic(name, form, mode, values):
    """Bits of the result, or 'nan'."""
    if any(form.is_nan(v) for v in values):
        return 'nan'
    if name == 'sub':
        return arithmetic('add', form, mode, (values[0], values[1] ^ form.sign))
    if name == 'fma':
        return fused(form, mode, *values)
    a, b = values
    sign = (a ^ b) & form.sign
    inf_a, inf_b = form.is_infinite(a), form.is_infinite(b)
    if name == 'add':
        if inf_a or inf_b:
            return 'nan' if inf_a and inf_b and sign else a if inf_a else b
        both_negative = a & b & form.sign
        exact = form.value(a) + form.value(b)
        zero = both_negative or (mode == 'rm' and (sign or exact != 0 or form.value(a) != 0))
        return form.round(exact, mode, zero)
    zero_a, zero_b = not a & ~form.sign, not b & ~form.sign
    if name == 'mul':
        if inf_a or inf_b:
            return 'nan' if zero_a or zero_b else sign | form.infinity
        return form.round(form.value(a) * form.value(b), mode, sign)
    if (inf_a and inf_b) or (zero_a and zero_b):
        return 'nan'
    if inf_a or zero_b:
        return sign | form.infinity
    return sign if inf_b else form.round(form.value(a) / form.value(b), mode, sign)


def fused(form, mode, a, b, c):
    sign = (a ^ b) & form.sign
    infinite = form.is_infinite(a) or form.is_infinite(b)
    if infinite and (not a & ~form.sign or not b & ~form.sign):
        return 'nan'
    if infinite:
        return 'nan' if form.is_infinite(c) and (sign ^ c) & form.sign else sign | form.infinity
    if form.is_infinite(c):
        return c
    product, addend = form.value(a) * form.value(b), form.value(c)
    zero = (sign and c & form.sign) or (mode == 'rm' and ((sign ^ c) & form.sign or product != 0))
    return form.round(product + addend, mode, zero)


def saturate(form, bits, one):
    if bits == 'nan' or bits & form.sign or form.is_nan(bits):
        return 0
    return one if bits > one else bits


def is_nan(form):
    """Any NaN is as good as another."""
    return lambda result, wanted: form.is_nan(result) and (wanted == 'nan' or form.is_nan(wanted))


def want_of(T, compute, ftz=False, sat=False, relu=False):
    form = FORMATS[T]

    def want(*values):
        if ftz:
            values = [form.flush(v) for v in values]
        result = compute(*values)
        if result != 'nan' and ftz:
            result = form.flush(result)
        if sat:
            result = saturate(form, result, ONE[T])
        if relu and result != 'nan' and not form.is_nan(result) and result & form.sign:
            result = 0
        return form.nan if result == 'nan' else result
    return want


def add(text, T, operands, compute, output=None, data=None, close=None, **how):
    form = FORMATS[T]
    CASES.append(Case(text, [form.bits] * operands, output or form.bits, want_of(T, compute, **how),
                      data or combinations([VALUES[T]] * operands), close or is_nan(form)))


LETTERS = ['{a}', '{a}, {b}', '{a}, {b}, {c}']
FLAGS = {'f32': ({}, {'ftz': True}, {'sat': True}, {'ftz': True, 'sat': True}), 'f64': ({},)}

for T in ('f32', 'f64'):
    FORM = FORMATS[T]
    for how in FLAGS[T]:
        flags = ''.join('.' + flag for flag in how)
        for mode in ('', 'rn', 'rz', 'rm', 'rp'):
            dotted = '.' + mode if mode else ''
            for name in ('add', 'sub', 'mul') if T == 'f32' or mode else ('add', 'sub', 'mul'):
                add(f'{name}{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}', T, 2,
                    lambda a, b, n=name, m=mode or 'rn', F=FORM: arithmetic(n, F, m, (a, b)), **how)
            if not mode:
                continue
            for name in ('fma', 'mad'):
                add(f'{name}{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}, {{c}}', T, 3,
                    lambda a, b, c, m=mode, F=FORM: arithmetic('fma', F, m, (a, b, c)), **how)
            if how.get('sat'):
                continue
            add(f'div{dotted}{flags}.{T} {{d}}, {{a}}, {{b}}', T, 2,
                lambda a, b, m=mode, F=FORM: arithmetic('div', F, m, (a, b)), **how)
            add(f'rcp{dotted}{flags}.{T} {{d}}, {{a}}', T, 1,
                lambda a, m=mode, F=FORM, T=T: arithmetic('div', F, m, (ONE[T], a)), **how)

            def root(a, m=mode, F=FORM):
                if F.is_nan(a) or (a & F.sign and a != F.sign):
                    return 'nan'
                return a if F.is_infinite(a) else square_root(F, a, m)
            add(f'sqrt{dotted}{flags}.{T} {{d}}, {{a}}', T, 1, root, **how)


def extreme(name, form, a, b, nan=False):
    """min and max: a NaN loses, -0 is below +0."""
    if form.is_nan(a) or form.is_nan(b):
        if nan or (form.is_nan(a) and form.is_nan(b)):
            return 'nan'
        return b if form.is_nan(a) else a
    order = {v: (-(v & ~form.sign), 0) if v & form.sign else (v, 1) for v in (a, b)}
    return {'min': min, 'max': max}[name]((a, b), key=order.get)


for T in ('f32', 'f64', 'f16', 'bf16'):
    FORM = FORMATS[T]
    for flag in ('', '.ftz') if T in ('f32', 'f16') else ('',):
        how = {'ftz': bool(flag)}
        add(f'neg{flag}.{T} {{d}}, {{a}}', T, 1, lambda a, F=FORM: a ^ F.sign, **how)
        add(f'abs{flag}.{T} {{d}}, {{a}}', T, 1, lambda a, F=FORM: a & ~F.sign, **how)
        for name in ('min', 'max'):
            add(f'{name}{flag}.{T} {{d}}, {{a}}, {{b}}', T, 2, lambda a, b, n=name, F=FORM: extreme(n, F, a, b), **how)
            if T != 'f64':
                add(f'{name}{flag}.NaN.{T} {{d}}, {{a}}, {{b}}', T, 2,
                    lambda a, b, n=name, F=FORM: extreme(n, F, a, b, True), **how)
            if T == 'f32':
                def signed_by_product(a, b, n=name):
                    size = extreme(n, F32, a & ~F32.sign, b & ~F32.sign)
                    return size if size == 'nan' else size | (a ^ b) & F32.sign
                add(f'{name}{flag}.xorsign.abs.f32 {{d}}, {{a}}, {{b}}', T, 2, signed_by_product, **how)

for T in ('f32', 'f64'):
    FORM = FORMATS[T]
    add(f'copysign.{T} {{d}}, {{a}}, {{b}}', T, 2, lambda a, b, F=FORM: a & F.sign | b & ~F.sign)
    KINDS = {'finite': lambda v, F: not F.is_nan(v) and not F.is_infinite(v), 'infinite': lambda v, F: F.is_infinite(v),
             'number': lambda v, F: not F.is_nan(v), 'notanumber': lambda v, F: F.is_nan(v),
             'normal': lambda v, F: 0 < (v & ~F.sign) >> F.fraction < (F.infinity >> F.fraction),
             'subnormal': lambda v, F: 0 < v & ~F.sign < 1 << F.fraction}
    for name, f in KINDS.items():
        CASES.append(Case(f'testp.{name}.{T} {{d}}, {{a}}', [FORM.bits], 1, lambda a, f=f, F=FORM: int(f(a, F)),
                          combinations([VALUES[T]])))

# ---- Halves: alone, and in pairs ----


def half(name, T, operands, compute, flags=('',)):
    form = FORMATS[T]
    for flag in flags:
        how = {word: True for word in flag.split('.') if word}
        text = f'{name}{flag}.{T} {{d}}, {LETTERS[operands - 1]}'
        add(text, T, operands, compute, **how)
        single = want_of(T, compute, **how)
        rows = combinations([VALUES[T]] * operands)
        both = [tuple(h << 16 | l for h, l in zip(high, low)) for high, low in zip(rows, rows[1:] + rows[:1])]

        def pair(*values, single=single):
            return single(*(v >> 16 for v in values)) << 16 | single(*(v & 0xffff for v in values))

        def close(result, wanted, form=form):
            return all(r == w or (form.is_nan(r) and form.is_nan(w))
                       for r, w in ((result >> 16, wanted >> 16), (result & 0xffff, wanted & 0xffff)))
        CASES.append(Case(text.replace(f'.{T} ', f'.{T}x2 '), [32] * operands, 32, pair, both, close))


for T in ('f16', 'bf16'):
    FORM = FORMATS[T]
    SETS = ('', '.ftz', '.sat', '.ftz.sat') if T == 'f16' else ('',)
    for name in ('add', 'sub', 'mul'):
        half(name, T, 2, lambda a, b, n=name, F=FORM: arithmetic(n, F, 'rn', (a, b)), SETS)
        half(name + '.rn', T, 2, lambda a, b, n=name, F=FORM: arithmetic(n, F, 'rn', (a, b)))
    half('fma.rn', T, 3, lambda a, b, c, F=FORM: arithmetic('fma', F, 'rn', (a, b, c)),
         SETS[:3] + ('.relu',) if T == 'f16' else ('', '.relu'))
    half('neg', T, 1, lambda a, F=FORM: a ^ F.sign)
    half('abs', T, 1, lambda a, F=FORM: a & ~F.sign)
    for name in ('min', 'max'):
        half(name, T, 2, lambda a, b, n=name, F=FORM: extreme(n, F, a, b))
        half(name + '.NaN', T, 2, lambda a, b, n=name, F=FORM: extreme(n, F, a, b, True))

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
            return (math.isnan(got) and math.isnan(due)) or abs(got - due) <= absolute if due == due else got != got
        return abs(got - due) <= max(relative * abs(due), absolute)
    return close


def to_bits(T, value):
    form = FORMATS[T]
    if math.isnan(value):
        return 'nan'
    if math.isinf(value):
        return form.infinity | (form.sign if value < 0 else 0)
    return form.round(Fraction(value), 'rn', math.copysign(1, value) < 0)


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


APPROXIMATE = {'rcp': lambda x: 1 / x, 'sqrt': math.sqrt, 'rsqrt': lambda x: 1 / math.sqrt(x) if x else
               math.copysign(math.inf, x), 'sin': math.sin, 'cos': math.cos, 'lg2': math.log2, 'ex2': lambda x: 2.0 ** x,
               'tanh': math.tanh}
for name, f in APPROXIMATE.items():
    for flag in ('', '.ftz') if name != 'tanh' else ('',):
        add(f'{name}.approx{flag}.f32 {{d}}, {{a}}', 'f32', 1, lambda a, f=guarded(f): to_bits('f32', f(real('f32', a))),
            close=near('f32', 2e-6, 1e-45), ftz=bool(flag))
for name in ('rcp', 'rsqrt'):
    for flag in ('.ftz',) if name == 'rcp' else ('', '.ftz'):
        add(f'{name}.approx{flag}.f64 {{d}}, {{a}}', 'f64', 1,
            lambda a, f=guarded(APPROXIMATE[name]): to_bits('f64', f(real('f64', a))), close=near('f64', 1e-6),
            ftz=bool(flag))
for kind in ('approx', 'full'):
    for flag in ('', '.ftz'):
        add(f'div.{kind}{flag}.f32 {{d}}, {{a}}, {{b}}', 'f32', 2, lambda a, b: arithmetic('div', F32, 'rn', (a, b)),
            ftz=bool(flag))
for T in ('f16', 'bf16'):
    for name, flag in (('ex2', '.ftz' if T == 'bf16' else ''), ('tanh', '')):
        add(f'{name}.approx{flag}.{T} {{d}}, {{a}}', T, 1,
            lambda a, T=T, f=guarded(APPROXIMATE[name]): to_bits(T, f(real(T, a))), close=near(T, 2e-2, 1e-7),
            ftz=bool(flag))

# ---- Comparisons ----

ORDERED = {'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'lt': lambda a, b: a < b, 'le': lambda a, b: a <= b,
           'gt': lambda a, b: a > b, 'ge': lambda a, b: a >= b}
for T in ('f32', 'f64', 'f16', 'bf16'):
    FORM = FORMATS[T]
    ROWS = combinations([VALUES[T]] * 2)
    for name, f in list(ORDERED.items()) + [(n + 'u', f) for n, f in ORDERED.items()] + [('num', None), ('nan', None)]:
        def compared(a, b, f=f, name=name, T=T):
            x, y = real(T, a), real(T, b)
            unordered = math.isnan(x) or math.isnan(y)
            if f is None:
                return int(unordered == (name == 'nan'))
            return int(f(x, y)) if not unordered else int(name.endswith('u'))
        for flag in ('', '.ftz') if T == 'f32' else ('',):
            def flushed(a, b, compared=compared, F=FORM, flag=flag):
                return compared(F.flush(a), F.flush(b)) if flag else compared(a, b)
            CASES.append(Case(f'setp.{name}{flag}.{T} {{d}}, {{a}}, {{b}}', [FORM.bits] * 2, 1, flushed, ROWS))
    if T == 'f32':
        CASES.append(Case('set.ltu.f32.f32 {d}, {a}, {b}', [32, 32], 32,
                          lambda a, b: 0 if real('f32', a) >= real('f32', b) else 0x3f800000, ROWS))
        CASES.append(Case('slct.b32.f32 {d}, {a}, {b}, {c}', [32] * 3, 32,
                          lambda a, b, c: a if real('f32', c) >= 0 else b, combinations([VALUES['f32']] * 3)))
        CASES.append(Case('setp.gt.and.f32 {d}, {a}, {b}, {c}', [32, 32, 1], 1,
                          lambda a, b, c: int(real('f32', a) > real('f32', b)) & c,
                          combinations([VALUES['f32'], VALUES['f32'], (0, 1)])))

for T in ('f16', 'bf16'): # in pairs: a predicate for each half
    for shift, target in ((0, '{d}|_'), (16, '_|{d}')):
        ROWS = [tuple(h << 16 | l for h, l in zip(x, y))
                for x, y in zip(combinations([VALUES[T]] * 2), combinations([VALUES[T]] * 2)[5:])]
        CASES.append(Case(f'setp.lt.{T}x2 {target}, {{a}}, {{b}}', [32, 32], 1,
                          lambda a, b, T=T, s=shift: int(real(T, a >> s & 0xffff) < real(T, b >> s & 0xffff)), ROWS))
CASES.append(Case('selp.f32 {d}, {a}, {b}, {c}', [32, 32, 1], 32, lambda a, b, c: a if c else b,
                  combinations([VALUES['f32'], VALUES['f32'], (0, 1)])))
for T in ('f32', 'f64'):
    add(f'mov.{T} {{d}}, {{a}}', T, 1, lambda a: a)
add('mov.f32 {d}, 0f40490FDB', 'f32', 1, lambda a: 0x40490fdb)
add('add.f32 {d}, {a}, 0fBF800000', 'f32', 1, lambda a: arithmetic('add', F32, 'rn', (a, ONE['f32'] | F32.sign)))
add('mov.f64 {d}, 0d400921FB54442D18', 'f64', 1, lambda a: 0x400921fb54442d18)

for T in ('f16', 'bf16'):
    CASES.append(Case(f'setp.ge.or.{T} {{d}}, {{a}}, {{b}}, {{c}}', [16, 16, 1], 1,
                      lambda a, b, c, T=T: int(real(T, a) >= real(T, b)) | c,
                      combinations([VALUES[T], VALUES[T], (0, 1)])))

# ---- Conversions ----

MODES = ('rn', 'rz', 'rm', 'rp')


def integral(value, mode):
    """A fraction to an integer."""
    low = value.numerator // value.denominator
    if value == low:
        return low
    rest = value - low
    return {'rni': low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2)), 'rmi': low, 'rpi': low + 1,
            'rzi': low if value > 0 else low + 1}[mode]


MORE = {'f32': VALUES['f32'] + (0x3f000000, 0x3fc00000, 0xbf000000, 0xc0200000, 0x4f000000, 0x4effffff, 0xcf000000, 0x4f7fffff,
                                0x437f8000, 0x5f000000, 0xdf000000, 0x5f800000, 0x42fe0000, 0xc3000000),
        'f64': VALUES['f64'] + (0x3fe0000000000000, 0xc004000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
                                0xc1e0000000200000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000),
        'f16': VALUES['f16'] + (0x3800, 0x3e00, 0xc100, 0x5c00), 'bf16': VALUES['bf16'] + (0x3f00, 0x3fc0, 0xc020, 0x4f00)}
for FROM in ('f32', 'f64', 'f16', 'bf16'):
    FORM = FORMATS[FROM]
    for TO in ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64'):
        for mode in ('rni', 'rzi', 'rmi', 'rpi'):
            N = bits_of(TO)
            LEAST, MOST = (-(1 << N - 1), (1 << N - 1) - 1) if TO[0] == 's' else (0, (1 << N) - 1)

            def to_integer(a, mode=mode, F=FORM, least=LEAST, most=MOST, N=N, TO=TO):
                if F.is_nan(a): # by the manual
                    highest = 1 << N - 1 if N == 64 or F is F64 else 0
                    return number(highest, TO) & (1 << max(N, 16)) - 1
                if F.is_infinite(a):
                    value = least if a & F.sign else most
                else:
                    value = min(max(integral(F.value(a), mode), least), most)
                return value & (1 << max(N, 16)) - 1
            CASES.append(Case(f'cvt.{mode}.{TO}.{FROM} {{d}}, {{a}}', [FORM.bits], max(N, 16), to_integer,
                              combinations([MORE[FROM]])))
for TO in ('f32', 'f64', 'f16', 'bf16'):
    FORM = FORMATS[TO]
    for FROM in ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64'):
        for mode in MODES:
            def to_real(a, FROM=FROM, F=FORM, mode=mode):
                return F.round(Fraction(number(a & (1 << bits_of(FROM)) - 1, FROM)), mode)
            BITS = max(bits_of(FROM), 16)
            CASES.append(Case(f'cvt.{mode}.{TO}.{FROM} {{d}}, {{a}}', [BITS], FORM.bits, to_real,
                              combinations([integers(BITS) + [v & (1 << BITS) - 1 for v in (0x1000001, 0x1000003, 0x801,
                                                                                           0x20000000000001, 0x101)]])))


def between(TO, FROM, mode):
    """One format to another."""
    to, from_ = FORMATS[TO], FORMATS[FROM]

    def of(a):
        sign = to.sign if a & from_.sign else 0
        if from_.is_nan(a):
            return to.nan
        return sign | to.infinity if from_.is_infinite(a) else to.round(from_.value(a), mode, sign)
    return of


for TO, FROM, MODE in [(t, f, m) for t, f in (('f32', 'f64'), ('f16', 'f32'), ('bf16', 'f32'), ('f16', 'f64'), ('bf16', 'f64'))
                       for m in MODES] + [('f64', 'f32', ''), ('f32', 'f16', ''), ('f32', 'bf16', ''), ('f64', 'f16', ''),
                                          ('f64', 'bf16', '')]:
    CASES.append(Case(f'cvt{"." + MODE if MODE else ""}.{TO}.{FROM} {{d}}, {{a}}', [FORMATS[FROM].bits], FORMATS[TO].bits,
                      between(TO, FROM, MODE or 'rn'), combinations([MORE[FROM]]), is_nan(FORMATS[TO])))
for T in ('f32', 'f64'):
    for mode in ('rni', 'rzi', 'rmi', 'rpi'):
        add(f'cvt.{mode}.{T}.{T} {{d}}, {{a}}', T, 1, lambda a, F=FORMATS[T], m=mode:
            a if F.is_nan(a) or F.is_infinite(a) else F.round(Fraction(integral(F.value(a), m)), 'rn', a & F.sign),
            data=combinations([MORE[T]]))
    add(f'cvt.sat.{T}.{T} {{d}}, {{a}}', T, 1, lambda a: a, sat=True)
add('cvt.ftz.f32.f32 {d}, {a}', 'f32', 1, lambda a: a, ftz=True)
for T in ('f16', 'bf16'):
    for mode in ('rn', 'rz'):
        for relu in ('', '.relu'):
            def pair(a, b, T=T, mode=mode, relu=relu):
                values = [between(T, 'f32', mode)(x) for x in (a, b)]
                form = FORMATS[T]
                if relu:
                    values = [0 if v & form.sign and not form.is_nan(v) else v for v in values]
                return values[0] << 16 | values[1]
            CASES.append(Case(f'cvt.{mode}{relu}.{T}x2.f32 {{d}}, {{a}}, {{b}}', [32, 32], 32, pair,
                              combinations([MORE['f32']] * 2)))
    CASES.append(Case(f'cvt.rn.relu.{T}.f32 {{d}}, {{a}}', [32], 16, want_of(T, lambda a: a, relu=True) and
                      (lambda a, T=T: (lambda v: 0 if v & 0x8000 and not FORMATS[T].is_nan(v) else v)(between(T, 'f32', 'rn')(a))),
                      combinations([MORE['f32']]), is_nan(FORMATS[T])))
for mode, half_up in (('rna', True), ('rn', False)):
    def tf32(a, half_up=half_up):
        if F32.is_nan(a):
            return F32.nan
        if F32.is_infinite(a):
            return a
        low, rest = a & ~0x1fff, a & 0x1fff
        up = rest >= 0x1000 if half_up else rest > 0x1000 or (rest == 0x1000 and low >> 13 & 1)
        return low + 0x2000 * up
    CASES.append(Case(f'cvt.{mode}.tf32.f32 {{d}}, {{a}}', [32], 32, tf32, combinations([MORE['f32'] + (0x3f801000, 0x3f803000)])))
CHECKED = struct.unpack('<f', struct.pack('<I', 0x40490fdb))[0] # exact.py against Python's own
assert F32.round(Fraction(CHECKED)) == 0x40490fdb and F64.round(Fraction(math.pi)) == 0x400921fb54442d18
assert F16.round(Fraction(1, 3)) == 0x3555 and BF16.round(Fraction(1, 3)) == 0x3eab

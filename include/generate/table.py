"""Types by their names, and operations: the one table that every typed name of GSHMEM comes from.

typed.h and generic.h are made from it, and so is whatever else has one function per type: other
spellings of the same API, and functions that run elsewhere. What a function is called, which types
it exists for, its arguments and what it returns are said here and nowhere else; what it does is in
native.py. Which elements there are, and which reductions, is read from the tables in gshmem/type.h.
Names of types, and which operations have them, are OpenSHMEM 1.6's tables; where GSHMEM has more
than the standard, the line says so.
"""

import pathlib
import re
from typing import NamedTuple

# ---- The tables of gshmem/type.h: what is told of at run time ----

TYPE_H = pathlib.Path(__file__).resolve().parent.parent / 'gshmem' / 'type.h'


class Element(NamedTuple):
    """A row of GSHMEM_TYPE_TABLE."""
    name: str
    number: str
    text: str
    c: str
    in_kernels: str
    kind: str       # its class
    atomics: str
    waits: str


class Reduction(NamedTuple):
    """A row of GSHMEM_OP_TABLE."""
    name: str
    number: str
    text: str
    integers: str
    reals: str
    pairs: str
    how: str
    result: str


def _rows(table, row):
    """The rows of a table; each has all its columns, and numbers go up from 0."""
    text = TYPE_H.read_text(encoding='utf-8')
    body = re.search(r'#define %s\(X.*?\)\s*\\\n((?:.*\\\n)*.*\n)' % table, text).group(1)
    rows = [row(*(column.strip().strip('"') for column in line.split(',')[:len(row._fields)]))
            for line in re.findall(r'X\((.*)\)', body)]
    if [int(r.number) for r in rows] != list(range(len(rows))):
        raise ValueError('%s in %s: numbers are not 0, 1, 2 …' % (table, TYPE_H))
    return rows


ELEMENTS = {e.name: e for e in _rows('GSHMEM_TYPE_TABLE', Element)}
OPS = _rows('GSHMEM_OP_TABLE', Reduction)


# ---- Types by their names ----

class Type(NamedTuple):
    name: str      # as in gshmem_NAME_put
    c: str         # as C spells it
    size: int      # bytes, on the 64-bit systems GSHMEM runs on; typed.h asserts it
    kind: str      # signed, unsigned, real, complex; plain: char, which may be either
    same_as: str = ''  # another name of this type, which type-generic code cannot tell apart
    sets: str = ''     # of a type that the standard does not have: the TYPE_SETS that it belongs to


TYPES = [
    #    name          C type                size  kind        same as
    Type('float',      'float',                 4, 'real'),
    Type('double',     'double',                8, 'real'),
    Type('longdouble', 'long double',          16, 'real'),
    Type('char',       'char',                  1, 'plain'),
    Type('schar',      'signed char',           1, 'signed'),
    Type('short',      'short',                 2, 'signed'),
    Type('int',        'int',                   4, 'signed'),
    Type('long',       'long',                  8, 'signed'),
    Type('longlong',   'long long',             8, 'signed'),
    Type('uchar',      'unsigned char',         1, 'unsigned'),
    Type('ushort',     'unsigned short',        2, 'unsigned'),
    Type('uint',       'unsigned int',          4, 'unsigned'),
    Type('ulong',      'unsigned long',         8, 'unsigned'),
    Type('ulonglong',  'unsigned long long',    8, 'unsigned'),
    Type('int8',       'int8_t',                1, 'signed', 'schar'),
    Type('int16',      'int16_t',               2, 'signed', 'short'),
    Type('int32',      'int32_t',               4, 'signed', 'int'),
    Type('int64',      'int64_t',               8, 'signed', 'long'),
    Type('uint8',      'uint8_t',               1, 'unsigned', 'uchar'),
    Type('uint16',     'uint16_t',              2, 'unsigned', 'ushort'),
    Type('uint32',     'uint32_t',              4, 'unsigned', 'uint'),
    Type('uint64',     'uint64_t',              8, 'unsigned', 'ulong'),
    Type('size',       'size_t',                8, 'unsigned', 'ulong'),
    Type('ptrdiff',    'ptrdiff_t',             8, 'signed', 'long'),
    Type('complexf',   'gshmem_complexf_t',     8, 'complex'),
    Type('complexd',   'gshmem_complexd_t',    16, 'complex'),
]

BY_NAME = {t.name: t for t in TYPES}


def element(t):
    """The name of a type's row in GSHMEM_TYPE_TABLE; CHAR stands for that of char."""
    if t.kind == 'plain':
        return 'CHAR'
    if t.kind in ('signed', 'unsigned'):
        name = '%sINT%d' % ('U' if t.kind == 'unsigned' else '', 8 * t.size)
    else:
        name = t.name.upper()
    if name not in ELEMENTS:
        raise ValueError('%s has no row GSHMEM_TYPE_%s in %s' % (t.name, name, TYPE_H))
    return name


def in_kernels(t):
    """Whether programs' kernels have the type."""
    return t.kind == 'plain' or ELEMENTS[element(t)].kind in ('sint', 'uint', 'real')


# Sizes of put8 … get128, in bits.
SIZES = [8, 16, 32, 64, 128]

# Sets of types, as the standard has them; `x` marks what it does not have.
_INTEGERS_BY_WIDTH = 'int8 int16 int32 int64 uint8 uint16 uint32 uint64 size'
_RMA = ('float double longdouble char schar short int long longlong uchar ushort uint ulong '
        'ulonglong ' + _INTEGERS_BY_WIDTH + ' ptrdiff')
_AMO = 'int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff'

TYPE_SETS = {name: types.split() for name, types in {
    'rma':          _RMA,                       # standard RMA types; also broadcast … alltoalls
    'amo':          _AMO + ' float double',     # standard AMO types; x float and double
    'amo_extended': _AMO + ' float double',     # extended AMO types
    'amo_bitwise':  'uint ulong ulonglong int32 int64 uint32 uint64',
    'wait':         _AMO + ' short ushort',     # the last two are deprecated there since 1.5
    'reduce_bits':  'uchar ushort uint ulong ulonglong ' + _INTEGERS_BY_WIDTH,
    'reduce_order': _RMA,
    'reduce_sum':   _RMA + ' complexf complexd',
}.items()}
for _t in TYPES:
    for _set in _t.sets.split():
        TYPE_SETS[_set].append(_t.name)


class Operation(NamedTuple):
    name: str        # without its type
    types: str       # one of TYPE_SETS
    returns: str     # status, T (a value of the type), int, size
    parameters: str  # T is the type; without the context, which comes first
    context: bool = False  # also exists as gshmem_ctx_…
    sized: bool = False    # also exists by size, for any type: gshmem_put64
    kernels: str = ''      # in kernels: thread, group (thread, _warp and _block), or not at all
    stream: bool = False   # also exists as …_on_stream


class Family(NamedTuple):
    name: str
    comment: str  # what typed.h says of all of them
    operations: list


def _rma(name, parameters, returns='status', sized=True, kernels='group', stream=True):
    return Operation(name, 'rma', returns, parameters, True, sized, kernels, stream)


_COPY = 'T *dest, const T *source, size_t nelems, '
_STRIDED = 'T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, '
_BLOCKS = ('T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, '
           'size_t nblocks, ')
_SIGNAL = 'uint64_t *sig_addr, uint64_t signal, int sig_op, '


def _indexed(name, nbi='', types='rma'):
    """An indexed operation: of one PE, and of a PE for each element."""
    return [Operation(name + form + nbi, types, 'status',
                      'T *dest, const T *source, const size_t *index, ' + which, True, types == 'rma',
                      kernels='group')
            for form, which in (('', 'size_t nelems, int pe'),
                                ('_pes', 'const int *pes, size_t nelems'))]


def _atomic(name, types, parameters, fetches=False):
    """An atomic update; those that fetch the old value also exist as nbi, through a pointer."""
    forms = [Operation('atomic_' + name, types, 'T' if fetches else 'status', parameters, True,
                       kernels='thread')]
    if fetches:
        forms.append(Operation('atomic_' + name + '_nbi', types, 'status',
                               'T *fetch, ' + parameters, True, kernels='thread'))
    return forms


_ARRAY = 'T *ivars, size_t nelems, '
_INDICES = 'size_t *indices, '
_MASK = 'const int *status, int cmp, '


def _waits(verb, one, every):
    """wait_until or test: of one variable, and of arrays against one value or a vector of them."""
    forms = [(verb, one, 'T *ivar, int cmp, T cmp_value')]
    for suffix, values in ('', 'T cmp_value'), ('_vector', 'const T *cmp_values'):
        forms += [
            (verb + '_all' + suffix, every, _ARRAY + _MASK + values),
            (verb + '_any' + suffix, 'size', _ARRAY + _MASK + values),
            (verb + '_some' + suffix, 'size', _ARRAY + _INDICES + _MASK + values),
        ]
    return [Operation(name, 'wait', returns, parameters, kernels='thread',
                      stream=returns == 'status')
            for name, returns, parameters in forms]


def _collective(name, parameters, types='rma', kernels='group'):
    return Operation(name, types, 'status',
                     'gshmem_team_t team, T *dest, const T *source, ' + parameters,
                     kernels=kernels, stream=kernels == 'group')


def _set_of(op):
    """The set of types that a reduction is defined for."""
    kinds = tuple(column != 'no' for column in (op.integers, op.reals, op.pairs))
    standard = {(True, False, False): 'reduce_bits', (True, True, False): 'reduce_order',
                (True, True, True): 'reduce_sum'}
    if kinds in standard:
        return standard[kinds]
    of_kind = {'real': op.reals, 'complex': op.pairs}
    name = 'reduce_' + op.text
    TYPE_SETS[name] = [t for t in TYPE_SETS['reduce_sum']
                       if of_kind.get(BY_NAME[t].kind, op.integers) != 'no']
    return name


REDUCTIONS = {op.text: _set_of(op) for op in OPS}  # operation: its types

FAMILIES = [
    Family('Put and get',
           'Like gshmem_putmem, gshmem_getmem and their nbi forms, for nelems elements: put copies them\n'
           'from source to dest on pe, get from source on pe to dest.',
           [_rma('put', _COPY + 'int pe'), _rma('get', _COPY + 'int pe'),
            _rma('put_nbi', _COPY + 'int pe'), _rma('get_nbi', _COPY + 'int pe')]),

    Family('Single elements',
           'p stores one value at dest on pe, g returns the value at source on pe. Each is one access\n'
           'and never torn, except for long double, which no CPU moves in one access.',
           [_rma('p', 'T *dest, T value, int pe', sized=False, kernels='thread'),
            _rma('g', 'const T *source, int pe', 'T', sized=False, kernels='thread', stream=False)]),

    Family('Strided',
           'Like gshmem_ctx_iputmem and gshmem_ctx_ibputmem: nelems elements, or nelems blocks of bsize\n'
           'elements. Their beginnings are dst elements apart in dest, and sst elements in source.',
           [_rma('iput', _STRIDED + 'int pe'), _rma('iget', _STRIDED + 'int pe'),
            _rma('ibput', _BLOCKS + 'int pe', kernels='thread', stream=False),
            _rma('ibget', _BLOCKS + 'int pe', kernels='thread', stream=False)]),

    Family('Indexed',
           'Elements of one object by their numbers: gshmem/indexed.h. Element i of the local array belongs\n'
           'to element index[i] of the object on pe, or on pes[i].',
           _indexed('ixput') + _indexed('ixget') + _indexed('ixput', '_nbi')
           + _indexed('ixget', '_nbi')),

    Family('Indexed sums',
           'Like ixput, but source[i] is added to the element, atomically: gshmem/indexed.h.',
           _indexed('ix_add', types='amo')),

    Family('Put with signal',
           'Like gshmem_putmem_signal: a PE that sees the signal sees the data.',
           [_rma('put_signal', _COPY + _SIGNAL + 'int pe'),
            _rma('put_signal_nbi', _COPY + _SIGNAL + 'int pe')]),

    Family('Atomics',
           'Read or update one element on pe, atomically with regard to all PEs, and in relaxed order.\n'
           'Fetching forms return the old value; their nbi forms store it in *fetch by the next\n'
           'gshmem_quiet. Elements must be aligned to their size. compare_swap stores value if the\n'
           'element equals cond; it compares float and double by their bits.',
           _atomic('fetch', 'amo_extended', 'const T *source, int pe', True)
           + _atomic('set', 'amo_extended', 'T *dest, T value, int pe')
           + _atomic('swap', 'amo_extended', 'T *dest, T value, int pe', True)
           + _atomic('compare_swap', 'amo', 'T *dest, T cond, T value, int pe', True)
           + _atomic('fetch_inc', 'amo', 'T *dest, int pe', True)
           + _atomic('inc', 'amo', 'T *dest, int pe')
           + _atomic('fetch_add', 'amo', 'T *dest, T value, int pe', True)
           + _atomic('add', 'amo', 'T *dest, T value, int pe')
           + _atomic('fetch_and', 'amo_bitwise', 'T *dest, T value, int pe', True)
           + _atomic('and', 'amo_bitwise', 'T *dest, T value, int pe')
           + _atomic('fetch_or', 'amo_bitwise', 'T *dest, T value, int pe', True)
           + _atomic('or', 'amo_bitwise', 'T *dest, T value, int pe')
           + _atomic('fetch_xor', 'amo_bitwise', 'T *dest, T value, int pe', True)
           + _atomic('xor', 'amo_bitwise', 'T *dest, T value, int pe')),

    Family('Waits and tests',
           'For variables of this PE that other PEs update. Data that a PE stored before the update is\n'
           'visible after the wait. cmp is one of GSHMEM_CMP_…, with the variable on its left side.\n'
           'For an array there are three forms: all waits until every element has satisfied the\n'
           'comparison; any waits until one does, and returns its index; some waits until at least\n'
           'one does, stores the indices of those that do, and returns their number. Elements whose\n'
           'status is not 0 are left out; status may be NULL. If no element is left, all returns at\n'
           'once, any returns SIZE_MAX, and some returns 0. Successive calls of any begin at different\n'
           'elements, so that none is starved. vector: element i is compared to cmp_values[i]. Tests\n'
           'poll once; if no element satisfies the comparison, any returns SIZE_MAX and some 0.\n'
           'A call fails if cmp is bad, and a wait for the reasons that gshmem_signal_wait_until\n'
           'names. A function that returns a number then calls the error policy. If that returns, the\n'
           'function returns the same as when no element satisfies the comparison.',
           _waits('wait_until', 'status', 'status') + _waits('test', 'int', 'int')),

    Family('Data movement of teams',
           'Like gshmem_broadcastmem, …, with sizes counted in elements.',
           [_collective('broadcast', 'size_t nelems, int PE_root'),
            _collective('collect', 'size_t nelems', kernels=''),
            _collective('fcollect', 'size_t nelems'),
            _collective('alltoall', 'size_t nelems'),
            _collective('alltoalls', 'ptrdiff_t dst, ptrdiff_t sst, size_t nelems', kernels='')]),

    Family('Reductions',
           'Like gshmem_reduce and gshmem_reducescatter, element by element over the PEs of the team.',
           [_collective(op + form, 'size_t nreduce', types)
            for op, types in REDUCTIONS.items() for form in ('_reduce', '_reducescatter')]),

    Family('Scans',
           'Like gshmem_inscan and gshmem_exscan: sums over the PEs up to this one; exscan leaves out\n'
           'this PE itself.',
           [_collective('sum_inscan', 'size_t nelems', 'reduce_sum', ''),
            _collective('sum_exscan', 'size_t nelems', 'reduce_sum', '')]),
]



def types_of(operation):
    return [BY_NAME[name] for name in TYPE_SETS[operation.types]]


SCOPES = ['', '_warp', '_block']


def scopes_of(operation, t=None):
    """The endings of its names in kernels, for a type or (None) for a size or for bytes."""
    if t and not in_kernels(t):
        return []
    return {'': [], 'thread': SCOPES[:1], 'group': SCOPES}[operation.kernels]


def distinct_types_of(operation):
    """One of the operation's types for each that a compiler tells apart."""
    chosen = {}
    for t in types_of(operation):
        chosen.setdefault(t.same_as or t.name, t)
    return list(chosen.values())


def function_name(operation, type_name, context=False, prefix='gshmem_'):
    """gshmem_[ctx_]long_put"""
    return prefix + ('ctx_' if context else '') + type_name + '_' + operation.name


def sized_name(operation, bits, context=False, prefix='gshmem_'):
    """gshmem_[ctx_]iput64, gshmem_[ctx_]put64_signal: the size, or mem, follows put or get."""
    head, verb, tail = operation.name.partition('put' if 'put' in operation.name else 'get')
    return '%s%s%s%s%s%s' % (prefix, 'ctx_' if context else '', head, verb, bits, tail)


def parameters_for(operation, c_type):
    """[(declaration, name)], T replaced by the C type."""
    result = []
    for parameter in operation.parameters.split(', '):
        words = [c_type if word == 'T' else word for word in parameter.split(' ')]
        result.append((' '.join(words), words[-1].lstrip('*')))
    return result

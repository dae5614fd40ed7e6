"""nvshmem/typed.h, nvshmem/device/typed.h and nvshmem/qp.h: NVSHMEM's typed names over GSHMEM's.

What NVSHMEM has of the table, for which types, and how its names and answers differ: nvshmem_ for what
one thread does, nvshmemx_ for what a warp or block does or a stream takes; void where GSHMEM has a
status, int where the status of a collective is to be tested for 0.
"""

from string import Template

import native
from table import (BY_NAME, ELEMENTS, FAMILIES, SIZES, Type, function_name, parameters_for, scopes_of,
                   sized_name, types_of)
from text import comment, function, section

HALF = [Type(ELEMENTS[name].text, ELEMENTS[name].in_kernels, 2, 'half') for name in ('HALF', 'BFLOAT16')]

_LACKS = {'longdouble', 'complexf', 'complexd'}
_LACKS_OPERATIONS = {'ibput', 'ibget', 'collect', 'alltoalls', 'sum_inscan', 'sum_exscan'}
_REDUCTIONS = {'and', 'or', 'xor', 'max', 'min', 'sum', 'prod'}  # and no other that GSHMEM may have
COLLECTIVES = ('broadcast', 'fcollect', 'alltoall', '_reduce', '_reducescatter')


def _has(operation):
    """Whether it is a reduction that NVSHMEM has, or none at all."""
    op, _, form = operation.name.rpartition('_')
    return form not in ('reduce', 'reducescatter') or op in _REDUCTIONS


def operations():
    """[(family, its operations)]: the table, less what NVSHMEM lacks."""
    result = []
    for family in FAMILIES:
        chosen = [operation for operation in family.operations
                  if operation.name not in _LACKS_OPERATIONS and _has(operation)
                  and not operation.name.startswith('ix')
                  and not (operation.name.startswith('atomic') and operation.name.endswith('_nbi'))]
        if chosen:
            result.append((family, chosen))
    return result


def types(operation):
    """Its types that NVSHMEM has: the table's, and half and bfloat16 where those are copied or
    compared and added as numbers."""
    chosen = [t for t in types_of(operation) if t.name not in _LACKS and not t.sets]
    if operation.types in ('rma', 'reduce_order', 'reduce_sum'):
        chosen += HALF
    return chosen


def is_collective(operation):
    return operation.name.endswith(COLLECTIVES)


def returned(operation, c_type):
    if operation.returns == 'status':
        return 'int' if is_collective(operation) else 'void'
    return native.returned(operation, c_type)


def parameters(operation, c_type):
    """GSHMEM's, but that arrays of values to compare to are not const."""
    return [(declaration.replace('const ' + c_type + ' *cmp_values', c_type + ' *cmp_values'), name)
            for declaration, name in parameters_for(operation, c_type)]


def _sizes(operation):
    """[(in its name, bytes)]"""
    if not operation.sized:
        return []
    sizes = [(bits, bits // 8) for bits in SIZES]
    return sizes + [('mem', 1)] * operation.parameters.startswith('T *dest, const T *source, size_t')


def prefix(ending):
    return 'nvshmemx_' if ending else 'nvshmem_'


def _call(operation, name, arguments, raise_by='gshmem_raise'):
    """Statement that calls GSHMEM's function and answers as NVSHMEM does."""
    call = '%s(%s)' % (name, ', '.join(arguments))
    kind = returned(operation, 'T')
    if kind == 'void':
        return '%s(%s);' % (raise_by, call)
    return 'return (int)%s;' % call if operation.returns == 'status' else 'return %s;' % call


def _form(operation, name, target, c_type, before, ending, raise_by='gshmem_raise'):
    """One function."""
    declared = parameters(operation, c_type)
    if ending == '_on_stream':
        declared.append(('cudaStream_t stream', 'stream'))
    return function(returned(operation, c_type), name + ending, [d for d, _ in declared],
                    [_call(operation, target + ending, [n for _, n in declared], raise_by)],
                    before) + '\n'


# ---- Sums of real numbers, to which NVSHMEM gives other names than to those of integers; those of
# half are in nvshmem/half_atomic.h ----

_REAL_SUMS = ('atomic_add', 'atomic_fetch_add')


def _real_sums(operation):
    """[their types]"""
    return [t for t in types(operation) if t.kind == 'real'] * (operation.name in _REAL_SUMS)


# ---- nvshmemx_TYPE_signal, which NVSHMEM had once: an atomic set ----

_SIGNAL = 'atomic_set'


def _signals(operation):
    """Its functions in C."""
    return ''.join(_form(operation, 'nvshmemx_%s_signal' % t.name,
                         function_name(operation, t.name), t.c, 'static inline ', '')
                   for t in types(operation))


def _cuda_signals(operation):
    names = ''.join('#define nvshmemx_%s_signal nvshmemx_typed_signal<%s>\n' % (t.name, t.c)
                    for t in types(operation))
    return 'template <class T>\n' + _form(
        operation, 'nvshmemx_typed_signal', _native(operation, 'typed', ''), 'T',
        'GSHMEM_EITHER ', '') + names + '\n'


# ---- C, and C++ that is not CUDA ----

C_TOP = '''\
/* NVSHMEM's typed names in C, and in C++ that is not CUDA: the host's. Generated from the same table as
 * gshmem/typed.h (include/generate in the sources); not to be edited. gshmem/typed.h says what each
 * does, by the name with gshmem_ for nvshmem_ and nvshmemx_.
 *
 * Functions for half and bfloat16 exist where CUDA's headers of these types are included. */
#ifndef NVSHMEM_TYPED_H
#define NVSHMEM_TYPED_H

'''


def _c_half(operation, t, ending):
    """A function for a type that GSHMEM's typed.h does not have: on bytes, or told the type."""
    text = (native.stream_template if ending else native.template)(operation, t)
    body = Template(text).substitute(T=t.c, NAME=t.name, SIZE='sizeof *dest',
                                     TYPE='GSHMEM_TYPE_' + t.name.upper())
    lines = [line.replace('(ctx, ', '(GSHMEM_CTX_DEFAULT, ') for line in body.strip().split('\n')]
    kind = returned(operation, t.c)
    if operation.name == 'p' and not ending:
        lines = ['gshmem_raise(gshmem_putmem(dest, &value, sizeof value, pe));']
    elif kind == 'void':
        lines = [line.replace('return ', 'gshmem_raise(').replace(');', '));') for line in lines]
    elif kind == 'int':
        lines = [line.replace('return ', 'return (int)') for line in lines]
    declared = [d for d, _ in parameters(operation, t.c)] + ['cudaStream_t stream'] * bool(ending)
    return function(kind, prefix(ending) + t.name + '_' + operation.name + ending, declared,
                    lines) + '\n'


_SYNCHRONIZED = ['nvshmem_synchronize(stream);']


def _c_g_on_stream(operation):
    """A value is there when the stream has come so far, and this waits for it."""
    def one(t):
        return function(t.c, 'nvshmemx_%s_g_on_stream' % t.name,
                        ['const %s *source' % t.c, 'int pe', 'cudaStream_t stream'],
                        _SYNCHRONIZED + ['return nvshmem_%s_g(source, pe);' % t.name]) + '\n'
    out = ''.join(one(t) for t in types(operation) if t not in HALF)
    return out + '#ifdef NVSHMEM_HALF\n' + '\n'.join(
        one(t).rstrip('\n') + '\n' for t in HALF) + '#endif\n\n'


def _c_operation(operation):
    out = half = ''
    for ending in [''] + ['_on_stream'] * operation.stream:
        for t in types(operation):
            if t in HALF:
                half += _c_half(operation, t, ending)
            else:
                out += _form(operation, function_name(operation, t.name, prefix=prefix(ending)),
                             function_name(operation, t.name), t.c, 'static inline ', ending)
        for bits, _ in _sizes(operation):
            out += _form(operation, sized_name(operation, bits, prefix=prefix(ending)),
                         sized_name(operation, bits), 'void', 'static inline ', ending)
    out += half and '#ifdef NVSHMEM_HALF\n' + half.rstrip('\n') + '\n#endif\n\n'
    for t in _real_sums(operation):
        out += _form(operation, function_name(operation, t.name, prefix='nvshmemx_'),
                     function_name(operation, t.name), t.c, 'static inline ', '')
    if operation.name == _SIGNAL:
        out += _signals(operation)
    return out + (_c_g_on_stream(operation) if operation.name == 'g' else '')


def typed():
    out = C_TOP
    for family, chosen in operations():
        out += section(family.name) + ''.join(map(_c_operation, chosen))
    return out + '#endif\n'


# ---- CUDA ----

CUDA_TOP = '''\
/* NVSHMEM's typed names in CUDA sources, for host code and for kernels: generated from the same table
 * as gshmem/device/typed.h (include/generate in the sources); not to be edited. That header says what
 * each does, by the name with gshmem_ for nvshmem_ and nvshmemx_. As there, an operation is a
 * template and its names are macros, which keeps this header cheap to include. */
#ifndef NVSHMEM_DEVICE_TYPED_H
#define NVSHMEM_DEVICE_TYPED_H

'''

_BEFORE = {'': 'GSHMEM_EITHER ', '_warp': 'GSHMEM_KERNEL ', '_block': 'GSHMEM_KERNEL ',
           '_on_stream': 'static inline __host__ '}
_RAISE = {'': 'gshmem_raise', '_on_stream': 'gshmem_raise',
          '_warp': 'gshmem_kernel_raise_once<GSHMEM_SCOPE_WARP>',
          '_block': 'gshmem_kernel_raise_once<GSHMEM_SCOPE_BLOCK>'}


def _native(operation, kind, ending):
    """GSHMEM's template, its argument between the name and the ending's call."""
    argument = '<T>' if kind == 'typed' else '<size>'
    return function_name(operation, kind) + ending + argument


def _cuda_form(operation, kind, over, c_type, ending):
    """A template of NVSHMEM's name; GSHMEM's has its argument behind the ending."""
    declared = parameters(operation, c_type)
    if ending == '_on_stream':
        declared.append(('cudaStream_t stream', 'stream'))
    call = _call(operation, _native(operation, kind, ending), [n for _, n in declared],
                 _RAISE[ending])
    return 'template <%s>\n' % over + function(
        returned(operation, c_type),
        function_name(operation, kind, prefix=prefix(ending)) + ending,
        [d for d, _ in declared], [call], _BEFORE[ending]) + '\n'


def _macro(name, operation, kind, argument, ending):
    return '#define %s %s<%s>\n' % (
        name + ending, function_name(operation, kind, prefix=prefix(ending)) + ending, argument)


def _cuda_operation(operation):
    out = names = ''
    for ending in scopes_of(operation) + ['_on_stream'] * operation.stream:
        out += _cuda_form(operation, 'typed', 'class T', 'T', ending)
        for t in types(operation):
            names += _macro(function_name(operation, t.name, prefix=prefix(ending)), operation,
                            'typed', t.c, ending)
        if not operation.sized:
            continue
        out += _cuda_form(operation, 'sized', 'size_t size', 'void', ending)
        for bits, size in _sizes(operation):
            names += _macro(sized_name(operation, bits, prefix=prefix(ending)), operation, 'sized',
                            size, ending)
    if operation.name == 'g':
        out += 'template <class T>\n' + function(
            'T', 'nvshmemx_typed_g_on_stream', ['const T *source', 'int pe', 'cudaStream_t stream'],
            _SYNCHRONIZED + ['return gshmem_typed_g<T>(source, pe);'], _BEFORE['_on_stream']) + '\n'
        names += ''.join('#define nvshmemx_%s_g_on_stream nvshmemx_typed_g_on_stream<%s>\n' % (
            t.name, t.c) for t in types(operation))
    names += ''.join('#define %s %s<%s>\n' % (
        function_name(operation, t.name, prefix='nvshmemx_'),
        function_name(operation, 'typed', prefix='nvshmem_'), t.c) for t in _real_sums(operation))
    if operation.name == _SIGNAL:
        names += '\n' + _cuda_signals(operation)
    return out + names + '\n'


def device():
    out = CUDA_TOP
    for family, chosen in operations():
        out += section(family.name) + ''.join(map(_cuda_operation, chosen))
    return out + '#endif\n'


# ---- Operations on queue pairs, in kernels ----

QP_TOP = '''\
/* NVSHMEM's operations on queue pairs, for kernels: as those without, on the context that a handle
 * names (nvshmem/device/queue_pair.h). Elsewhere they do not compile (nvshmem/missing.h). Generated,
 * as nvshmem/device/typed.h is. */
#ifndef NVSHMEM_QP_H
#define NVSHMEM_QP_H

#ifdef GSHMEM_CUDA

'''
_QP = 'put get put_nbi get_nbi put_signal put_signal_nbi p g'.split()
_QP_PREFIX = 'nvshmemx_qp_'


def _qp_form(operation, ending, before, c_type, name, target):
    declared = parameters(operation, c_type)
    call = _call(operation, target, ['nvshmem_qp_ctx(qp_index)'] + [n for _, n in declared],
                 _RAISE[ending])
    return before + function(
        returned(operation, c_type), name + ending,
        [d for d, _ in declared] + ['nvshmemx_qp_handle_t qp_index'], [call],
        'GSHMEM_KERNEL ') + '\n'


def _qp_operation(operation, ending):
    """A template over an element's type, and what copies bytes."""
    name = function_name(operation, 'typed', prefix=_QP_PREFIX)
    out = _qp_form(operation, ending, 'template <class T>\n', 'T', name,
                   function_name(operation, 'typed', True) + ending + '<T>')
    for _, size in _sizes(operation)[-1:]:
        out += _qp_form(operation, ending, '', 'void',
                        sized_name(operation, 'mem', prefix=_QP_PREFIX),
                        function_name(operation, 'sized', True) + ending + '<%d>' % size)
    return out + ''.join('#define %s%s %s<%s>\n' % (
        function_name(operation, t.name, prefix=_QP_PREFIX), ending, name + ending, t.c)
        for t in types(operation)) + '\n'


def qp():
    chosen = [operation for _, family in operations() for operation in family
              if operation.name in _QP]
    out = QP_TOP
    for operation in chosen:
        for ending in scopes_of(operation):
            out += _qp_operation(operation, ending)
    out += '#else\n\n'
    for operation in chosen:
        for t in types(operation):
            name = function_name(operation, t.name, prefix=_QP_PREFIX)
            out += 'NVSHMEM_FOR_KERNELS(%s)\n' % name
            out += ''.join('#define %s%s %s\n' % (name, ending, name)
                           for ending in scopes_of(operation) if ending)
    return out + '\n#endif\n#endif\n'

"""gshmem/device/typed.h: the typed names in CUDA sources, for host code and for kernels.

An operation is one template, and its names are macros for it: three thousand functions would cost a
CUDA compiler, which reads everything two or three times, a third of a second. A body calls what host
and kernels share by one name, or says with GSHMEM_RETURN(in kernels, on the host) what either does.
Operations and types that kernels do not have are the host's alone, and functions.
"""

import re
from string import Template

import native
from table import FAMILIES, SIZES, function_name, parameters_for, scopes_of, sized_name, types_of
from text import comment, function, section

TOP = '''\
/* The typed names of GSHMEM in CUDA sources, for host code and for kernels, where there are also
 * forms that a warp or a block performs together: generated from one table of types and operations
 * (include/generate/table.py in the sources); not to be edited. gshmem/typed.h says the same in C.
 *
 * Each operation is a template, over an element's type (typed) or its bytes (sized). The names that
 * programs call are macros for these templates, which keeps this header cheap to include.
 *
 * Kernels have no long double and no complex types: functions for these types exist on the host
 * alone, and so do a few operations. */
#ifndef GSHMEM_DEVICE_TYPED_H
#define GSHMEM_DEVICE_TYPED_H

#include "gshmem/device/atomic.h"
#include "gshmem/device/indexed.h"
#include "gshmem/device/wait_until.h"
#include "gshmem/device/reduce.h"
#include "gshmem/stream.h"

/* The host's g, by the path out of line, which also serves mapped peers. */
template <class T> static inline T gshmem_host_g(gshmem_ctx_t ctx, const T *source, int pe)
{
    T value;

    gshmem_path_g(ctx, &value, source, sizeof value, pe);
    return value;
}

'''

KERNEL, EITHER, HOST = 'GSHMEM_KERNEL ', 'GSHMEM_EITHER ', 'static inline __host__ '
MEMORY = 'T *dest, const T *source, size_t nelems, '  # what makes sense for bytes, too
SCOPE = {'': 'GSHMEM_SCOPE_THREAD', '_warp': 'GSHMEM_SCOPE_WARP', '_block': 'GSHMEM_SCOPE_BLOCK'}

# ---- Bodies ----

_BYTES = 'gshmem_bytes(nelems, $SIZE)'


def _group_rma(name):
    """By a warp or block, together."""
    verb = re.search('put|get', name).group()
    nbi = 'true' if name.endswith('_nbi') else 'false'
    if name[0] == 'i':
        return ('return gshmem_kernel_strided<$SCOPE, %s>(ctx, dest, source, dst, sst, 1, $SIZE, '
                'nelems, pe);' % ('true' if verb == 'put' else 'false'))
    if '_signal' in name:
        return ('return gshmem_kernel_put_signal<$SCOPE, %s>(ctx, dest, source, %s, sig_addr, '
                'signal, sig_op, pe);' % (nbi, _BYTES))
    return 'return gshmem_kernel_%s<$SCOPE, %s>(ctx, dest, source, %s, pe);' % (verb, nbi, _BYTES)


SINGLE = {
    'p': 'GSHMEM_RETURN(gshmem_kernel_p(ctx, dest, value, pe),\n'
         '              gshmem_on_host::gshmem_ctx_putmem(ctx, dest, &value, sizeof value, pe));',
    'g': 'GSHMEM_RETURN(gshmem_kernel_g(ctx, source, pe), gshmem_host_g(ctx, source, pe));',
}


def _atomic(operation):
    name = operation.name[len('atomic_'):]
    nbi = name.endswith('_nbi')
    name = name[:-len('_nbi')] if nbi else name
    amo, operand, compare = native.INTEGER[name][:3]
    form = '_fetch_nbi' if nbi else '_fetch' if operation.returns == 'T' else ''
    arguments = ['ctx'] + ['fetch'] * nbi + ['source' if name == 'fetch' else 'dest']
    arguments += [value if value.isalpha() else '($T)' + value
                  for value in ([operand, compare] if form else [operand])]
    return 'return gshmem_either_atomic%s<GSHMEM_AMO_%s>(%s, pe);' % (
        form, amo, ', '.join(arguments))


def _wait(operation):
    """What kernels do."""
    verb = 'test' if operation.name.startswith('test') else 'wait'
    form = re.sub('^(wait_until|test)_?', '', operation.name)
    if not form:
        return 'gshmem_kernel_%s(ivar, cmp, cmp_value)' % operation.name
    values = 'cmp_values, 1' if form.endswith('_vector') else '&cmp_value, 0'
    return 'gshmem_kernel_%s_%s<$T>({ivars, nelems, status, cmp, %s}%s)' % (
        verb, form.replace('_vector', ''), values, ', indices' if 'some' in form else '')


def _indexed(operation):
    """In kernels, by the threads of a scope."""
    pe = 'pes, GSHMEM_PE_OF_EACH' if '_pes' in operation.name else 'NULL, pe'
    if operation.name.startswith('ix_add'):
        return 'gshmem_kernel_ix_add<$SCOPE>(ctx, dest, source, index, %s, nelems)' % pe
    verb = operation.name[:len('ixput')]
    options = '$SCOPE, $SIZE' + (
        ', %s' % str(operation.name.endswith('_nbi')).lower() if verb == 'ixget' else '')
    return '(gshmem_kernel_%s<%s>(ctx, dest, source, index, %s, nelems))' % (verb, options, pe)


_COLLECTIVES = {
    'broadcast': 'gshmem_kernel_broadcast<$SCOPE>(team, dest, source, ' + _BYTES + ', PE_root)',
    'fcollect':  'gshmem_kernel_fcollect<$SCOPE>(team, dest, source, ' + _BYTES + ')',
    'alltoall':  'gshmem_kernel_alltoall<$SCOPE>(team, dest, source, ' + _BYTES + ')',
}


def _collective(operation):
    """What kernels do."""
    if operation.name in _COLLECTIVES:
        return _COLLECTIVES[operation.name]
    op, form = operation.name.split('_')
    return 'gshmem_kernel_%s<$SCOPE, $T, GSHMEM_OP_%s>(team, dest, source, nreduce)' % (
        form, op.upper())


# Where kernels have the untyped function too, the host's is in a namespace.
_SHARED = re.compile(r'\bgshmem_(?=(broadcastmem|fcollectmem|alltoallmem|reduce|reducescatter)\()')


def _on_host(operation, t):
    return _SHARED.sub('gshmem_on_host::gshmem_', native.template(operation, t)).strip()


def _template(operation, t, scope):
    """Of a body, which is the same for all types of kernels."""
    name = operation.name
    if name in native.RMA:
        return _group_rma(name) if scope else native.RMA[name]
    if name in SINGLE:
        return SINGLE[name]
    if name.startswith('ix'):
        in_kernel = _indexed(operation)
        if scope:
            return 'return %s;' % in_kernel
        return 'GSHMEM_RETURN(%s,\n              %s);' % (
            in_kernel, native.indexed(operation)[len('return '):-1])
    if name.startswith('atomic_'):
        return _atomic(operation)
    in_kernel = (_wait if name.startswith(('wait_until', 'test')) else _collective)(operation)
    if scope:
        return 'return %s;' % in_kernel
    if ',' in in_kernel.split('(')[0]:
        in_kernel = '(%s)' % in_kernel
    return 'GSHMEM_RETURN(%s,\n              %s);' % (
        in_kernel, _on_host(operation, t)[len('return '):-1])


# ---- Functions ----

def _both_forms(prefix, operation, returns, parameters, body, name, explicit=''):
    """On a context and on the default one, or the only one there is."""
    declarations = [declaration for declaration, _ in parameters]
    if not operation.context:
        return prefix[0] + function(returns, name(False), declarations, body, prefix[1]) + '\n'
    arguments = ', '.join(['GSHMEM_CTX_DEFAULT'] + [argument for _, argument in parameters])
    return (prefix[0] + function(returns, name(True), ['gshmem_ctx_t ctx'] + declarations, body,
                                 prefix[1]) + '\n'
            + prefix[0] + function(returns, name(False), declarations,
                                   ['return %s%s(%s);' % (name(True), explicit, arguments)],
                                   prefix[1]) + '\n')


def _template_of(operation, t, over, explicit, c_type, size, scope):
    """The template of an operation for an ending, over types or sizes."""
    body = Template(_template(operation, t, scope)).substitute(
        T='T', TYPE='gshmem_type_of<T>()', SIZE=size, SCOPE=SCOPE[scope])
    return _both_forms(('template <%s>\n' % over, KERNEL if scope else EITHER), operation,
                       native.returned(operation, c_type), parameters_for(operation, c_type),
                       body.split('\n'),
                       lambda ctx: function_name(operation, explicit, ctx) + scope,
                       '<T>' if explicit == 'typed' else '<size>')


def _host_prefix(operation):
    return ('GSHMEM_NODISCARD ' if operation.returns == 'status' else '') + HOST


def _host_function(operation, t):
    body = Template(_on_host(operation, t)).substitute(SIZE='sizeof *dest', **native.names(t))
    return _both_forms(('', _host_prefix(operation)), operation, native.returned(operation, t.c),
                       parameters_for(operation, t.c), body.split('\n'),
                       lambda ctx: function_name(operation, t.name, ctx))


def _stream_templates(operation, t):
    """What the host puts on streams; over types or sizes."""
    def form(kind, over, c_type, size):
        body = Template(native.stream_template(operation, t)).substitute(
            T='T', TYPE='gshmem_type_of<T>()', SIZE=size)
        return 'template <%s>\n' % over + native.stream_function(
            function_name(operation, kind), operation, c_type, body.split('\n'),
            _host_prefix(operation))
    out = form('typed', 'class T', 'T', 'sizeof(T)')
    return out + (form('sized', 'size_t size', 'void', 'size') if operation.sized else '')


def _stream_names(operation):
    names = [(function_name(operation, t.name), 'typed', t.c)
             for t in types_of(operation) if scopes_of(operation, t)]
    names += [(sized_name(operation, bits), 'sized', bits // 8)
              for bits in (SIZES if operation.sized else [])]
    return ''.join(_name(name + '_on_stream', function_name(operation, kind) + '_on_stream', argument)
                   for name, kind, argument in names)


def _name(name, template, argument):
    return '#define %s %s<%s>\n' % (name, template, argument)


def _operation(operation):
    """Templates, names for them, and what is the host's alone."""
    out, names, alone = '', '', ''
    common = next((t for t in types_of(operation) if scopes_of(operation, t)), None)
    contexts = (True, False) if operation.context else (False,)
    for scope in scopes_of(operation):
        def template(kind, ctx):
            return function_name(operation, kind, ctx) + scope
        out += _template_of(operation, common, 'class T', 'typed', 'T', 'sizeof(T)', scope)
        names += ''.join(_name(function_name(operation, t.name, ctx) + scope,
                               template('typed', ctx), t.c)
                         for t in types_of(operation) if scopes_of(operation, t)
                         for ctx in contexts)
        if not operation.sized:
            continue
        out += _template_of(operation, None, 'size_t size', 'sized', 'void', 'size', scope)
        sizes = [(bits, bits // 8) for bits in SIZES]
        if scope and operation.parameters.startswith(MEMORY):  # of one thread: in rma.h
            sizes.append(('mem', 1))
        names += ''.join(_name(sized_name(operation, bits, ctx) + scope, template('sized', ctx), size)
                         for bits, size in sizes for ctx in contexts)
    for t in types_of(operation):
        if not scopes_of(operation, t):
            alone += _host_function(operation, t)
    if operation.stream:
        out += _stream_templates(operation, common)
        names += _stream_names(operation)
        alone += ''.join(
            native.stream_function(function_name(operation, t.name), operation, t.c,
                                   native.stream_body(operation, t), _host_prefix(operation))
            for t in types_of(operation) if not scopes_of(operation, t))
    return out + (names and names + '\n') + alone


def device():
    out = TOP
    for family in FAMILIES:
        out += section(family.name) + comment(family.comment) + '\n'
        out += ''.join(map(_operation, family.operations))
    return out + '#endif\n'

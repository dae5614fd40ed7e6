"""gshmem/generic.h: one name for all types, by C11 generic selection or C++ overloading."""

import native
from table import FAMILIES, distinct_types_of, function_name, parameters_for, scopes_of
from text import function, section

TOP = '''\
/* Names without a type: gshmem_put(dest, source, n, pe) is gshmem_long_put for a long *dest, and
 * gshmem_put(ctx, dest, source, n, pe) is gshmem_ctx_long_put. In C the names are generic selections
 * on the first pointer (after the context or team). In C++ they are overloads, in CUDA sources also
 * for kernels. Generated, as gshmem/typed.h is. gshmem.h does not include this header: programs that
 * want these names do. */
#ifndef GSHMEM_GENERIC_H
#define GSHMEM_GENERIC_H

#include "gshmem.h"

'''

C_TOP = '''\
#define GSHMEM_FIRST(a, ...)     a
#define GSHMEM_SECOND(a, b, ...) b

/* Compilers print this name if no function exists for a type. */
enum { gshmem_no_function_for_this_type };

'''


CPP_TOP = '''\
#ifdef GSHMEM_CUDA
#define GSHMEM_GENERIC GSHMEM_EITHER /* kernels have them, too */
#define GSHMEM_GENERIC_STATUS GSHMEM_EITHER
#else
#define GSHMEM_GENERIC static inline
#define GSHMEM_GENERIC_STATUS GSHMEM_NODISCARD static inline
#endif

'''


def _backslashed(lines):
    """A macro of several lines."""
    return ''.join(line.ljust(99) + '\\\n' for line in lines[:-1]) + lines[-1] + '\n'


def _list_name(operation):
    const = operation.parameters.startswith('const T *')
    return 'GSHMEM_OVER_' + operation.types.upper() + ('_CONST' if const else '')


def _c_list(operation):
    """The associations of a set of types: GSHMEM_OVER_RMA(gshmem_, _put) ends in no comma."""
    const = ['', 'const '] if operation.parameters.startswith('const T *') else ['']
    lines = ['    %s%s *: before##%s##after,' % (c, t.c, t.name)
             for t in distinct_types_of(operation) for c in const]
    lines[-1] = lines[-1].rstrip(',')
    return _backslashed(['#define %s(before, after)' % _list_name(operation)] + lines) + '\n'


def _c_macro(operation):
    over = '%s(%%s, _%s)' % (_list_name(operation), operation.name)
    head = '#define gshmem_%s(...)' % operation.name
    if operation.parameters.startswith('gshmem_team_t'):
        return _backslashed([head, '    _Generic(GSHMEM_SECOND(__VA_ARGS__, 0),',
                             '        ' + over % 'gshmem_' + ')(__VA_ARGS__)'])
    if not operation.context:
        return _backslashed([head, '    _Generic(GSHMEM_FIRST(__VA_ARGS__, 0),',
                             '        ' + over % 'gshmem_' + ')(__VA_ARGS__)'])
    return _backslashed([
        head, '    _Generic(GSHMEM_FIRST(__VA_ARGS__, 0),',
        '        gshmem_ctx_t: _Generic(GSHMEM_SECOND(__VA_ARGS__, 0),',
        '            ' + over % 'gshmem_ctx_' + ',',
        '            default: gshmem_no_function_for_this_type),',
        '        ' + over % 'gshmem_' + ')(__VA_ARGS__)'])


def _overload(operation, t, c_type, context, cast):
    parameters = parameters_for(operation, c_type)
    declarations = [declaration for declaration, _ in parameters]
    arguments = [cast(declaration, name) for declaration, name in parameters]
    if context:
        declarations.insert(0, 'gshmem_ctx_t ctx')
        arguments.insert(0, 'ctx')
    returns = {'status': 'gshmem_status_t', 'size': 'size_t', 'int': 'int', 'T': c_type}
    call = 'return %s(%s);' % (function_name(operation, t.name, context), ', '.join(arguments))
    prefix = native.prefix(operation)
    if scopes_of(operation, t):
        prefix = 'GSHMEM_GENERIC_STATUS ' if operation.returns == 'status' else 'GSHMEM_GENERIC '
    return function(returns[operation.returns], 'gshmem_' + operation.name, declarations,
                    [call], prefix) + '\n'


def _overloads(operation):
    out = ''
    for t in distinct_types_of(operation):
        out += _overload(operation, t, t.c, False, lambda _, name: name)
        if operation.context:
            out += _overload(operation, t, t.c, True, lambda _, name: name)
        if t.kind == 'complex':  # C++ has the same numbers under a name of its own
            real = 'float' if t.size == 8 else 'double'

            def cast(declaration, name):
                if '*' not in declaration:
                    return name
                const = 'const ' if declaration.startswith('const') else ''
                return '(%s%s *)%s' % (const, t.c, name)

            out += _overload(operation, t, 'std::complex<%s>' % real, False, cast)
    return out


def generic():
    operations = [operation for family in FAMILIES for operation in family.operations]
    lists = {}
    for operation in operations:
        lists.setdefault(_list_name(operation), _c_list(operation))
    out = TOP + '#ifndef __cplusplus\n\n' + C_TOP + ''.join(lists.values())
    for family in FAMILIES:
        out += section(family.name) + '\n'.join(map(_c_macro, family.operations)) + '\n'
    out += '#else /* __cplusplus */\n\n#include <complex>\n\n' + CPP_TOP
    for family in FAMILIES:
        out += section(family.name) + ''.join(map(_overloads, family.operations))
    return out + '#undef GSHMEM_GENERIC\n#undef GSHMEM_GENERIC_STATUS\n#endif\n#endif\n'

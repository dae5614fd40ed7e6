"""shmem/generic.h: OpenSHMEM's names without a type, by C11 generic selection or C++ overloading."""

from generic import _backslashed
from openshmem_table import (distinct, families, is_collective, old_atomics, parameters, returned,
                             to_all_functions, typed_functions, types)
from table import function_name
from text import function, section

TOP = '''\
/* Names without a type, for shmem.h: shmem_put(dest, source, n, pe) is shmem_long_put for a long *dest,
 * and shmem_put(ctx, dest, source, n, pe) is shmem_ctx_long_put. Generic selections on a pointer in
 * C11, overloads in C++. Generated as shmem/functions.h is; not to be edited. */

'''

C_TOP = '''\
#define SHMEM_FIRST(a, ...)     a
#define SHMEM_SECOND(a, b, ...) b

/* What the compiler calls the function that does not exist. */
enum { shmem_no_function_for_this_type };

'''

C_SYNC = '''\
/* shmem_sync(team); with four arguments, the deprecated one of an active set. */
#define SHMEM_SYNC_OF(a, b, c, d, name, ...) name
#define shmem_sync(...)                                                                            \\
    SHMEM_SYNC_OF(__VA_ARGS__, shmem_sync, shmem_sync, shmem_sync, shmem_team_sync, 0)(__VA_ARGS__)

'''


def _operations():
    """[(title, [(operation, types)])]"""
    return ([(f.name, [(o, types(o)) for o in f.operations]) for f in families()]
            + [('Deprecated: atomics', old_atomics())])


def _key(operation, kinds):
    return (operation.parameters.startswith('const T *'), tuple(t.name for t in distinct(kinds)))


def _c_list(name, kinds, const):
    lines = ['    %s%s *: before##%s##after,' % (c, t.c, t.name)
             for t in distinct(kinds) for c in (['', 'const '] if const else [''])]
    lines[-1] = lines[-1].rstrip(',')
    return _backslashed(['#define %s(before, after)' % name] + lines) + '\n'


def _c_macro(operation, list_name):
    over = '%s(%%s, _%s)' % (list_name, operation.name)
    head = '#define shmem_%s(...)' % operation.name
    which = 'SHMEM_SECOND' if is_collective(operation) else 'SHMEM_FIRST'
    if not operation.context:
        return _backslashed([head, '    _Generic(%s(__VA_ARGS__, 0),' % which,
                             '        ' + over % 'shmem_' + ')(__VA_ARGS__)'])
    return _backslashed([
        head, '    _Generic(SHMEM_FIRST(__VA_ARGS__, 0),',
        '        shmem_ctx_t: _Generic(SHMEM_SECOND(__VA_ARGS__, 0),',
        '            ' + over % 'shmem_ctx_' + ',',
        '            default: shmem_no_function_for_this_type),',
        '        ' + over % 'shmem_' + ')(__VA_ARGS__)'])


def _c():
    lists, out, macros = {}, '', ''
    for title, rows in _operations():
        macros += section(title)
        for operation, kinds in rows:
            key = _key(operation, kinds)
            if key not in lists:
                lists[key] = 'SHMEM_OVER_%d' % len(lists)
                out += _c_list(lists[key], kinds, key[0])
            macros += _c_macro(operation, lists[key]) + '\n'
    return C_TOP + out + macros + C_SYNC


def _overload(operation, t, context):
    listed = parameters(operation, t.c, context)
    returns = returned(operation, t.c)
    call = '%s(%s);' % (function_name(operation, t.name, context, 'shmem_'),
                        ', '.join(name for _, name in listed))
    return function(returns, 'shmem_' + operation.name, [d for d, _ in listed],
                    [('' if returns == 'void' else 'return ') + call]) + '\n'


def _of_cpp_complex(names, f):
    """The function f for std::complex, by all of names."""
    real = 'float' if f.type.size == 8 else 'double'
    listed = [(d.replace(f.type.c, 'Complex<%s>' % real), name) for d, name in f.parameters]
    arguments = ', '.join(
        '(%s%s *)%s' % ('const ' * d.startswith('const'), f.type.c, name) if 'Complex' in d else name
        for d, name in listed)
    body = ['static_assert(sizeof(Complex<%s>) == sizeof(%s), "complex numbers");' % (real, f.type.c),
            '%s%s(%s);' % ('' if f.returns == 'void' else 'return ', f.name, arguments)]
    return ''.join('template <template <class> class Complex>\n'
                   + function(f.returns, name, [d for d, _ in listed], body) + '\n' for name in names)


def _cpp_complex():
    listed = [f for family in families() for o in family.operations for f in typed_functions(o)]
    out = ''
    for f in listed + to_all_functions():
        if f.type and f.type.kind == 'complex':
            of_team = f.parameters[0][0].startswith('shmem_team_t')
            out += _of_cpp_complex(['shmem_' + f.operation.name] * of_team + [f.name], f)
    return out


def _cpp():
    out = ''
    for title, rows in _operations():
        out += section(title)
        for operation, kinds in rows:
            for t in distinct(kinds):
                if operation.name == 'wait_until' and t.name == 'long':
                    continue  # is a C function by this name
                for context in (False, True) if operation.context else (False,):
                    out += _overload(operation, t, context)
    return (out + '''\
static inline int shmem_sync(shmem_team_t team)
{
    return shmem_team_sync(team);
}

/* C++ has complex numbers under a name of its own, std::complex; <complex> would cost 0.25 s to know it. */
#if __cplusplus >= 201103L

''' + _cpp_complex() + '#endif\n')


def generic():
    return (TOP + '#if !defined __cplusplus\n\n' + _c() + '#else /* __cplusplus */\n\n' + _cpp()
            + '#endif\n')

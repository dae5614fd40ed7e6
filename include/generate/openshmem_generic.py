"""shmem/generic.h: OpenSHMEM's names without a type, by C11 generic selection or C++ overloading."""

from generic import _backslashed
from openshmem_table import distinct, families, is_collective, old_atomics, parameters, returned, types
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


def _overload(operation, t, c_type, context, cast):
    listed = parameters(operation, c_type, context)
    arguments = ', '.join(cast(declaration, name) for declaration, name in listed)
    returns = returned(operation, c_type)
    call = '%s(%s);' % (function_name(operation, t.name, context, 'shmem_'), arguments)
    return function(returns, 'shmem_' + operation.name, [d for d, _ in listed],
                    [('' if returns == 'void' else 'return ') + call]) + '\n'


def _cast(t):
    def cast(declaration, name):
        if '*' not in declaration:
            return name
        return '(%s%s *)%s' % ('const ' * declaration.startswith('const'), t.c, name)
    return cast


def _cpp():
    out = std = ''
    for title, rows in _operations():
        out += section(title)
        for operation, kinds in rows:
            for t in distinct(kinds):
                if operation.name == 'wait_until' and t.name == 'long':
                    continue  # is a C function by this name
                for context in (False, True) if operation.context else (False,):
                    out += _overload(operation, t, t.c, context, lambda _, name: name)
                if t.kind == 'complex':
                    real = 'float' if t.size == 8 else 'double'
                    std += _overload(operation, t, 'std::complex<%s>' % real, False, _cast(t))
    return (out + '''\
static inline int shmem_sync(shmem_team_t team)
{
    return shmem_team_sync(team);
}

/* C++ has complex numbers under a name of its own; for programs that know it. */
#if defined _GLIBCXX_COMPLEX || defined _LIBCPP_COMPLEX
''' + std + '#endif\n')


def generic():
    return (TOP + '#if !defined __cplusplus\n\n' + _c() + '#else /* __cplusplus */\n\n' + _cpp()
            + '#endif\n')

"""shmem/generic.h: OpenSHMEM's names without a type, by C11 generic selection or C++ overloading."""

from generic import _backslashed
from openshmem_table import (BY_CONTEXT, UNTYPED, atomics_by_old_names, distinct, families,
                             is_collective, parameters, parse, returned, to_all_functions, typed_functions, types)
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

/* Compilers print this name if no function exists for a type. */
enum { shmem_no_function_for_this_type };

'''

C_SYNC = '''\
/* shmem_sync(team); with four arguments, the deprecated function for an active set. */
#define SHMEM_SYNC_OF(a, b, c, d, name, ...) name
#define shmem_sync(...)                                                                            \\
    SHMEM_SYNC_OF(__VA_ARGS__, shmem_sync, shmem_sync, shmem_sync, shmem_team_sync, 0)(__VA_ARGS__)

'''


OLD_ATOMICS_TITLE = 'Deprecated: atomics'


def _operations():
    """[(title, [(operation, types)])]"""
    return [(f.name, [(o, types(o)) for o in f.operations]) for f in families()]


def _one_variable(operation):
    """Waits and tests that programs give the address of a volatile variable."""
    return operation.name in ('wait_until', 'test')


def _more(operation, kinds):
    """[(pointer, its name in functions)] of what programs pass beyond the standard's types."""
    if _one_variable(operation):
        return [('volatile %s *' % t.c, 'volatile_' + t.name) for t in distinct(kinds)]
    if operation.types == 'reduce_bits':
        return [('long long *', 'longlong')]
    return []


def _key(operation, kinds):
    return (operation.parameters.startswith('const T *'), tuple(t.name for t in distinct(kinds)),
            tuple(_more(operation, kinds)))


def _c_list(name, kinds, const, more):
    lines = ['    %s%s *: before##%s##after,' % (c, t.c, t.name)
             for t in distinct(kinds) for c in (['', 'const '] if const else [''])]
    lines += ['    %s: before##%s##after,' % row for row in more]
    lines[-1] = lines[-1].rstrip(',')
    return _backslashed(['#define %s(before, after)' % name] + lines) + '\n'


def _call(operation, t, listed, cast):
    """A body that calls the function for t with its pointers of another type."""
    call = '%s(%s);' % (function_name(operation, t.name, prefix='shmem_'),
                        ', '.join(cast(d) + name for d, name in listed))
    return [('' if returned(operation, t.c) == 'void' else 'return ') + call]


def _of_volatile(operation, t, name):
    listed = parameters(operation, t.c, False)
    declarations = ['volatile ' + d if '*' in d else d for d, _ in listed]
    return function(returned(operation, t.c), name, declarations,
                    _call(operation, t, listed, lambda d: '(%s *)' % t.c if '*' in d else '')) + '\n'


def _of_long_long(operation, kinds, name):
    """A reduction of long long, which is an int64_t that compilers tell from long."""
    t = next(t for t in kinds if t.name == 'int64')
    listed = parameters(operation, 'long long', False)

    def cast(declaration):
        if '*' not in declaration:
            return ''
        return '(const int64_t *)' if declaration.startswith('const') else '(int64_t *)'

    return function('int', name, [d for d, _ in listed], _call(operation, t, listed, cast)) + '\n'


def _c_more():
    out = '/* What programs pass beyond the standard: volatile variables, and the bits of long long. */\n'
    for _, rows in _operations():
        for operation, kinds in rows:
            if _one_variable(operation):
                for t in distinct(kinds):
                    name = 'shmem_volatile_%s_%s' % (t.name, operation.name)
                    out += _of_volatile(operation, t, name)
            elif operation.types == 'reduce_bits':
                out += _of_long_long(operation, kinds, 'shmem_longlong_' + operation.name)
    return out


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


def _c_by_context(name):
    return _backslashed(['#define %s(...)' % name, '    _Generic(SHMEM_FIRST(__VA_ARGS__, 0),',
                         '        shmem_ctx_t: %s,' % name.replace('shmem_', 'shmem_ctx_', 1),
                         '        default: %s)(__VA_ARGS__)' % name])


def _c():
    lists, out, macros = {}, '', ''
    for title, rows in _operations():
        macros += section(title)
        for operation, kinds in rows:
            key = _key(operation, kinds)
            if key not in lists:
                lists[key] = 'SHMEM_OVER_%d' % len(lists)
                out += _c_list(lists[key], kinds, key[0], key[2])
            macros += _c_macro(operation, lists[key]) + '\n'
    macros += section('Signals') + ''.join(_c_by_context(name) + '\n' for name in BY_CONTEXT)
    macros += section(OLD_ATOMICS_TITLE) + ''.join(
        '#define shmem_%s(...) shmem_%s(__VA_ARGS__)\n' % (old.name, new.name)
        for old, new, _ in atomics_by_old_names()) + '\n'
    return C_TOP + _c_more() + out + macros + C_SYNC


def _overload(operation, t, context, name=None):
    listed = parameters(operation, t.c, context)
    returns = returned(operation, t.c)
    call = '%s(%s);' % (function_name(operation, t.name, context, 'shmem_'),
                        ', '.join(name for _, name in listed))
    return function(returns, 'shmem_' + (name or operation.name), [d for d, _ in listed],
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


def _cpp_by_context():
    """Overloads whose first argument is a context."""
    out = ''
    for text in (text for _, _, listed in UNTYPED for text in listed):
        returns, name, declarations = parse(text)
        plain = name.replace('shmem_ctx_', 'shmem_', 1)
        if name != plain and plain in BY_CONTEXT:
            names = ', '.join(d.split()[-1].lstrip('*') for d in declarations)
            out += function(returns, plain, declarations, ['%s(%s);' % (name, names)]) + '\n'
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
            if _one_variable(operation):
                out += ''.join(_of_volatile(operation, t, 'shmem_' + operation.name)
                               for t in distinct(kinds))
                out += ''.join(_of_volatile(operation, t, 'shmem_%s_%s' % (t.name, operation.name))
                               for t in kinds)
            elif operation.types == 'reduce_bits':
                out += _of_long_long(operation, kinds, 'shmem_' + operation.name)
    out += section('Signals') + _cpp_by_context()
    out += section(OLD_ATOMICS_TITLE) + ''.join(
        _overload(new, t, False, old.name) for old, new, kinds in atomics_by_old_names()
        for t in distinct(kinds))
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

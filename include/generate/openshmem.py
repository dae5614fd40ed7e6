"""shmem/functions.h, shmem/inline.h, shmem/profiling.h and the sources of libgshmem_shmem: OpenSHMEM's
typed functions over the native ones.

A function is defined once, in the library, as pshmem_NAME, with shmem_NAME as a weak alias. Put, get,
p, g and atomics exist inline, too: where the peer is mapped they are carried out in place, else they
call the function of the library, by a name that tools can take the place of.
"""

from string import Template

import native
from generic import _backslashed
from openshmem_table import (ATTRIBUTES, UNTYPED, OLD_ATOMICS, Function, atomics_by_old_names,
                             families, is_collective, old_atomic_functions, parse, to_all_functions,
                             typed_functions, types, wait_functions)
from table import function_name, sized_name
from text import comment, function, section, wrap_list

INLINE = ('put', 'get', 'put_nbi', 'get_nbi', 'p', 'g')


def is_inline(f):
    name = f.operation.name
    return name in INLINE or name.startswith('atomic_')


def old_families():
    return [('Deprecated: atomics', 'Like the functions with atomic_ in their names.', old_atomic_functions()),
            ('Deprecated: waits', 'Each waits until the variable is no longer cmp_value.', wait_functions()),
            ('Deprecated: reductions of active sets', '', to_all_functions())]


def typed_families():
    """[(title, comment, its functions)]"""
    return ([(f.name, '', [g for o in f.operations for g in typed_functions(o)])
             for f in families()] + old_families())


# ---- Prototypes ----

def prototype(returns, name, declarations, attribute=''):
    space = '' if returns.endswith('*') else ' '
    tail = (' ' + attribute if attribute else '') + ';'
    return wrap_list('SHMEM_API ' + returns + space + name + '(', declarations, ')' + tail)


def _prototypes(rename):
    out = ''
    for title, text, listed in UNTYPED:
        out += section(title) + (comment(text) if text else '')
        for returns, name, declarations in map(parse, listed):
            out += prototype(returns, rename(name), declarations, ATTRIBUTES.get(name, ''))
        out += '\n'
    for title, text, functions in typed_families():
        out += section(title) + (comment(text) if text else '')
        out += ''.join(prototype(f.returns, rename(f.name), [d for d, _ in f.parameters])
                       for f in functions) + '\n'
    return out


def functions():
    return ('''\
/* OpenSHMEM 1.6's functions, without a type and with, for shmem.h. Generated from the table that
 * gshmem/typed.h is made from (include/generate in the sources); not to be edited. */

''' + _prototypes(lambda name: name) + _old_names() + _each_type())


def _old_names():
    """Old names of atomics that the standard gave a few types, and other libraries all."""
    return ('/* Deprecated atomics, for types for which the standard never had them. */\n'
            + ''.join('#define shmem_%s_%s shmem_%s_%s\n' % (t.name, old.name, t.name, new.name)
                      for old, new, kinds in atomics_by_old_names() for t in kinds
                      if t.name not in OLD_ATOMICS[old.name][1].split()) + '\n')


def _each_type():
    """A list of types for programs, by the name that suites know it by and where they ask for it."""
    put = families()[0].operations[0]
    lines = ['    each(%s, %s);' % (t.name, t.c) for t in types(put)]
    lines[-1] = lines[-1].rstrip(';')
    return ('/* each(NAME, TYPE) of the types that put and get have, with semicolons between. */\n'
            '#ifdef SHMEM_INTERNAL_INCLUDE\n'
            + _backslashed(['#define SHMEM_DECLARE_FOR_RMA(each)'] + lines) + '#endif\n')


def profiling():
    return ('''\
/* The same functions by their second names, which tools call, for pshmem.h. Generated as
 * shmem/functions.h is; not to be edited. */

''' + _prototypes(lambda name: 'p' + name))


# ---- Names that other libraries gave what the standard has since ----

EXTENSIONS_TOP = '''\
/* Names that other libraries have for functions that are standard since, for shmemx.h. Generated as
 * shmem/functions.h is; not to be edited. */

'''
_STANDARDISED = ('Put with signal', 'Waits and tests', 'Data movement of teams', 'Reductions', 'Scans')


def _was_an_extension(family, name):
    return family in _STANDARDISED or name.startswith('ib') or \
        (name.startswith('atomic') and name.endswith(('_nbi', '_and', '_or', '_xor')))


def extensions():
    chosen = [o.name for family in families() for o in family.operations
              if _was_an_extension(family.name, o.name)]
    names = ['shmem_' + name for name in chosen]
    for _, _, listed in typed_families():
        names += [f.name for f in listed if f.operation.name in chosen]
    return EXTENSIONS_TOP + ''.join('#define %s %s\n' % (name.replace('shmem_', 'shmemx_', 1), name)
                                    for name in names)


# ---- Inline ----

INLINE_TOP = '''\
/* Operations that are loads and stores where the peer is mapped, for shmem.h. Generated as
 * shmem/functions.h is; not to be edited.
 *
 * These bodies are only inlined. The function itself, for a call or its address, is in the library.
 * An operation that cannot be done inline calls that function by a second name. Once a tool has
 * replaced one of the functions, all operations do so (shmem/reach.h). */

'''

PUT = '''
void *there = gshmem_shmem_reach($CTX, dest, $BYTES, pe);

if (GSHMEM_UNLIKELY(!there || !source))
    $SLOW;
else
    gshmem_shmem_copy(there, source, $BYTES);
'''
GET = '''
const void *there = gshmem_shmem_reach($CTX, source, $BYTES, pe);

if (GSHMEM_UNLIKELY(!there || !dest))
    $SLOW;
else
    gshmem_shmem_copy(dest, there, $BYTES);
'''
P = '''
$T *there = ($T *)gshmem_shmem_reach($CTX, dest, sizeof *dest, pe);

if (GSHMEM_UNLIKELY(!there))
    $SLOW;
else
    $STORE
'''
G = '''
$T *there = ($T *)gshmem_shmem_reach($CTX, source, sizeof *source, pe);
$T value;

if (GSHMEM_UNLIKELY(!there))
    return $SLOW;
$LOAD
return value;
'''
ATOMIC = '''
$T *there = ($T *)gshmem_shmem_reach_atomic($CTX, $TARGET, sizeof *$TARGET, pe);

if (GSHMEM_UNLIKELY($REFUSED)) {
    $SLOW;
    return;
}
$STATEMENTS$FINISH
'''
ATOMIC_VALUE = '''
$T *there = ($T *)gshmem_shmem_reach_atomic($CTX, $TARGET, sizeof *$TARGET, pe);

if (GSHMEM_UNLIKELY(!there))
    return $SLOW;
$STATEMENTS$FINISH
'''


def _slow_name(f):
    return 'gshmem_shmem_out_of_line' + f.name[len('shmem'):]


def _atomic(f):
    name = f.operation.name[len('atomic_'):]
    nbi = name.endswith('_nbi')
    name = name[:-len('_nbi')] if nbi else name
    rows = native.REAL if f.type.kind == 'real' else native.INTEGER
    _, _, _, statements, old = rows[name]
    finish = '*fetch = %s;' % old if nbi else 'return %s;' % old if f.operation.returns == 'T' else ''
    text = ATOMIC_VALUE if f.operation.returns == 'T' else ATOMIC
    return Template(text).safe_substitute(
        TARGET='source' if name == 'fetch' else 'dest', REFUSED='!there || !fetch' if nbi else '!there',
        STATEMENTS=statements and statements + '\n',
        FINISH=finish)


def _inline_template(f):
    name = f.operation.name
    if name.startswith('atomic_'):
        return _atomic(f)
    if name in ('p', 'g'):
        one = f.type.size <= 8  # no CPU moves more in one access that C can name
        return Template(P if name == 'p' else G).safe_substitute(
            STORE=native._STORE if one else '*there = value;',
            LOAD=native._LOAD if one else 'value = *there;')
    return PUT if name.startswith('put') else GET


def _element(f):
    if f.bits == 'mem':
        return 'nelems'
    return 'gshmem_shmem_bytes(nelems, %s)' % (f.bits // 8 if f.bits else 'sizeof *dest')


def _inline_body(f):
    arguments = ', '.join(name for _, name in f.parameters)
    text = Template(_inline_template(f)).substitute(
        CTX='ctx' if f.context else 'SHMEM_CTX_DEFAULT', BYTES=_element(f),
        SLOW='%s(%s)' % (_slow_name(f), arguments), **(native.names(f.type) if f.type else {}))
    return text.strip('\n').split('\n')


def inline():
    out = INLINE_TOP
    for title, _, listed in typed_families():
        chosen = [f for f in listed if is_inline(f)]
        if not chosen:
            continue
        out += section(title)
        for f in chosen:
            declarations = [d for d, _ in f.parameters]
            out += prototype(f.returns, _slow_name(f), declarations, '__asm__("%s")' % f.name)
            out += function(f.returns, f.name, declarations, _inline_body(f), 'SHMEM_INLINE ') + '\n'
    return out


# ---- Definitions ----

SOURCE_TOP = '''\
/* OpenSHMEM's typed functions: %s. Generated by include/generate/openshmem.py; not to be edited. */
#include "runtime/facades/openshmem/openshmem.h"

'''


def _native_name(f):
    if f.bits:
        return sized_name(f.operation, f.bits, f.context)
    return function_name(f.operation, f.type.name, f.context)


def _definition_body(f):
    arguments = ['team_number(team)' if name == 'team' else name for _, name in f.parameters]
    name = f.operation.name
    if name == 'wait':
        return ['settle(gshmem_%s_wait_until(ivar, GSHMEM_CMP_NE, cmp_value));' % f.type.name]
    if name.endswith('_to_all'):
        op = name[:-len('_to_all')].upper()
        return ['gshmem_team_t team = active_set("%s", PE_start, logPE_stride, PE_size, pSync);' % f.name,
                '', '(void)pWrk;', 'if (team != GSHMEM_TEAM_INVALID)',
                '    settle_set(team, gshmem_reduce(team, %s, GSHMEM_OP_%s, dest, source, (size_t)nreduce));' % (
                    native.type_constant(f.type), op)]
    if name in OLD_ATOMICS:
        call = 'gshmem_%s_atomic_%s(%s)' % (f.type.name, OLD_ATOMICS[name][0], ', '.join(arguments))
    else:
        call = '%s(%s)' % (_native_name(f), ', '.join(arguments))
    if f.returns == 'void':
        return ['settle(%s);' % call]
    return ['return %s%s;' % ('(int)' if is_collective(f.operation) else '', call)]


def definition(f):
    return (function(f.returns, 'p' + f.name, [d for d, _ in f.parameters], _definition_body(f), '')
            + 'WEAK(%s)\n\n' % f.name)


PARTS = {
    'rma': ('Put and get', 'Single elements', 'Strided', 'Put with signal'),
    'atomic': ('Atomics', 'Deprecated: atomics'),
    'wait': ('Waits and tests', 'Deprecated: waits'),
    'collective': ('Data movement of teams', 'Reductions', 'Scans',
                   'Deprecated: reductions of active sets'),
}


def source(part):
    chosen = [(title, listed) for title, _, listed in typed_families() if title in PARTS[part]]
    return SOURCE_TOP % ', '.join(title for title, _ in chosen) + ''.join(
        section(title) + ''.join(map(definition, listed)) for title, listed in chosen)


INLINED_TOP = '''\
/* Whether a tool has taken the place of a function that programs have inline: then that function's name
 * leads elsewhere than to the library's own. Generated by include/generate/openshmem.py. */
#include "runtime/facades/openshmem/openshmem.h"

#define SAME(name) same &= name == p##name

bool openshmem_is_own(void)
{
    bool same = true;

'''


def inlined():
    """A source that compares all names that exist inline to the library's own functions."""
    out = INLINED_TOP
    for _, _, listed in typed_families():
        out += ''.join('    SAME(%s);\n' % f.name for f in listed if is_inline(f))
    return out + '    return same;\n}\n'

"""Atomics: old and new values of one element, with its neighbours untouched; and all PEs at once."""

import re

from values import extremes

FAMILIES = ['Atomics']

# Of each operation, cases: (value before, arguments after dest, value after); T is the type.
PLAIN = {
    'fetch':        [('12', '', '12')],
    'set':          [('12', '9', '9')],
    'swap':         [('12', '9', '9')],
    'compare_swap': [('12', '12, 9', '9'), ('12', '9, 12', '12')],
    'inc':          [('12', '', '13')],
    'add':          [('12', '7', '19')],
    'and':          [('12', '10', '8')],
    'or':           [('12', '10', '14')],
    'xor':          [('12', '10', '6')],
}
# Every byte has a share in it: 0xF0F0… and 0xCCCC….
F0, CC = '(T)0xf0f0f0f0f0f0f0f0u', '(T)0xccccccccccccccccu'
INTEGER = {
    'fetch':        [('MIN', '', 'MIN')],
    'set':          [('12', 'MAX', 'MAX')],
    'swap':         [('MAX', 'MIN', 'MIN')],
    'compare_swap': [('MIN', 'MIN, MAX', 'MAX'), ('MAX', 'MIN, 12', 'MAX')],
    'inc':          [('MAX', '', 'MIN')],
    'add':          [('MAX', '1', 'MIN'), ('MIN', 'MAX', '(T)(MIN + MAX)')],
    'and':          [(F0, CC, '(T)0xc0c0c0c0c0c0c0c0u')],
    'or':           [(F0, CC, '(T)0xfcfcfcfcfcfcfcfcu')],
    'xor':          [(F0, CC, '(T)0x3c3c3c3c3c3c3c3cu')],
}
REAL = {
    'fetch':        [('-0.5', '', '-0.5')],
    'set':          [('12', 'MAX', 'MAX')],
    'swap':         [('0.25', '-8.5', '-8.5')],
    'compare_swap': [('0.25', '0.25, -1', '-1'), ('0.25', '-0.25, 1', '0.25')],
    'inc':          [('0.25', '', '1.25')],
    'add':          [('0.25', '-1.5', '-1.25')],
}


def _cases(name, t):
    return PLAIN[name] + (REAL if t.kind == 'real' else INTEGER).get(name, [])


def _plain_name(operation):
    """(what it does, whether it answers the old value, whether through a pointer)"""
    name = operation.name[len('atomic_'):]
    nbi = name.endswith('_nbi')
    name = name[:-len('_nbi')] if nbi else name
    fetches = nbi or operation.returns == 'T'
    return name.replace('fetch_', ''), fetches, nbi


def _one_call(o, t, spelling, cell, case, ctx):
    """The call on the middle one of three elements, and the check of what it answered."""
    before, arguments, after = case
    _, fetches, nbi = _plain_name(o)
    at = 'cell + %d' % (3 * cell + 1)
    call = spelling.call(o, t, ('&old, ' if nbi else '') + at
                         + (', ' + arguments if arguments else '') + ', to', ctx)
    what = '"%s"' % call.split('(')[0]
    if not fetches:
        return '    CHECK_OK(%s);\n' % call
    if not nbi:
        return '    EXPECT(%s, %d, %s, (T)%s);\n' % (what, cell, call, before)
    return ('    old = %s_mark;\n    CHECK_OK(%s);\n    CHECK_OK(gshmem_quiet());\n'
            '    CHECK_OK(gshmem_ctx_quiet(ctx));\n    EXPECT(%s, %d, old, (T)%s);\n' % (
                t.name, call, what, cell, before))


CONTENTION = '''
    /* All PEs at once on PE 0: none is lost, and no two fetch the same. */
    cell = (T *)area + %(cells)d * 3;
    cell[0] = cell[1] = cell[2] = 0;
    sync_all();
    T sum = 0, expected = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum = (T)(sum + %(fetch_inc)s);
        CHECK_OK(%(inc)s);
        CHECK_OK(%(add)s);
    }
    CHECK_OK(%(add_sum)s);
    sync_all();
    if (me == 0) {
        for (int i = 0; i < ROUNDS * n_pes; i++)
            expected = (T)(expected + (T)i);
        EXPECT("fetch_inc by all", 0, cell[0], (T)(ROUNDS * n_pes));
        EXPECT("inc and add by all", 1, cell[1], (T)(ROUNDS * n_pes * 4));
        EXPECT("sum of what was fetched", 2, cell[2], expected);
    }
'''


def _type(t, operations, spelling):
    least, greatest = extremes(t)
    by_name = {o.name: o for o in operations if t in spelling.types(o)}
    forms = [(o, case, ctx) for o in by_name.values() for ctx in (False, True)
             for case in _cases(_plain_name(o)[0], t)]
    before, calls, after = '', '', ''
    for cell, (o, case, ctx) in enumerate(forms):
        before += '    cell[%d] = (T)%s;\n' % (3 * cell + 1, case[0])
        calls += _one_call(o, t, spelling, cell, case, ctx)
        after += '    EXPECT("%s", %d, cell[%d], (T)%s);\n' % (o.name, cell, 3 * cell + 1, case[2])
    text = ('    T *cell = (T *)area, old;\n\n'
            '    for (int i = 0; i < %d * 3; i++)\n        cell[i] = NAME_mark;\n%s'
            '    old = NAME_mark;\n    (void)old;\n    (void)from;\n    sync_all();\n\n%s\n'
            '    CHECK_OK(gshmem_ctx_quiet(ctx));\n    sync_all();\n%s'
            '    for (int i = 0; i < %d * 3; i++) {\n        if (i %% 3 != 1)\n'
            '            EXPECT("neighbour", i, cell[i], NAME_mark);\n    }\n'
            % (len(forms), before, calls, after, len(forms)))
    if 'atomic_inc' in by_name:
        def call(name, arguments):
            return spelling.call(by_name['atomic_' + name], t, arguments + ', 0')
        text += CONTENTION % {'cells': len(forms), 'fetch_inc': call('fetch_inc', 'cell'),
                              'inc': call('inc', 'cell + 1'), 'add': call('add', 'cell + 1, 3'),
                              'add_sum': call('add', 'cell + 2, sum')}
    text += '    sync_all();\n'
    text = text.replace('(T)MIN', 'MIN').replace('(T)MAX', 'MAX').replace('(T)(T)', '(T)')
    text = re.sub(r'\bMIN\b', least, re.sub(r'\bMAX\b', greatest, text))
    text = ('\nstatic const T NAME_mark = 120;\n'
            '\nstatic void NAME_exercise(void *area, int to, int from)\n{\n%s}\n' % text)
    return re.sub(r'\bT\b', t.c, text.replace('NAME', t.name))


def write(operations, spelling):
    types = {t.name: t for o in operations for t in spelling.types(o)}
    return ('enum { ROUNDS = 50 };\n' + ''.join(_type(t, operations, spelling)
                                                 for t in types.values())
            + '\nstatic void exercise(void *area, int to, int from)\n{\n'
            + ''.join('    %s_exercise(area, to, from);\n' % name for name in types) + '}\n')

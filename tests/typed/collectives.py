"""Collectives over all PEs: results against loops over what every PE is known to have given."""

import re

from table import OPS
from values import value_function_of

FAMILIES = ['Data movement of teams', 'Reductions', 'Scans']

TOP = 'enum { N = 5 };\n'

MOVEMENT = '''
static void NAME_movement(void *area)
{
    enum { ROOM = 8 * 8 * 2 * N };
    T *dest = (T *)area, *source = dest + ROOM;

    for (int i = 0; i < ROOM; i++) {
        source[i] = NAME_value(me, i);
        dest[i] = NAME_mark;
    }
    sync_all();
    CHECK_OK(@broadcast(GSHMEM_TEAM_WORLD, dest, source, N, n_pes - 1));
    for (int i = 0; i < N; i++)
        EXPECT("broadcast", i, dest[i], NAME_value(n_pes - 1, i));
    EXPECT("broadcast", N, dest[N], NAME_mark);
    sync_all();

    CHECK_OK(@fcollect(GSHMEM_TEAM_WORLD, dest, source, N));
    for (int i = 0; i < N * n_pes; i++)
        EXPECT("fcollect", i, dest[i], NAME_value(i / N, i % N));
    EXPECT("fcollect", N * n_pes, dest[N * n_pes], NAME_mark);
    sync_all();

    CHECK_OK(@collect(GSHMEM_TEAM_WORLD, dest, source, (size_t)(me % 3)));
    int at = 0;
    for (int pe = 0; pe < n_pes; pe++) {
        for (int i = 0; i < pe % 3; i++, at++)
            EXPECT("collect", at, dest[at], NAME_value(pe, i));
    }
    sync_all();

    CHECK_OK(@alltoall(GSHMEM_TEAM_WORLD, dest, source, N));
    for (int i = 0; i < N * n_pes; i++)
        EXPECT("alltoall", i, dest[i], NAME_value(i / N, me * N + i % N));
    sync_all();

    for (int i = 0; i < ROOM; i++)
        dest[i] = NAME_mark;
    sync_all();
    CHECK_OK(@alltoalls(GSHMEM_TEAM_WORLD, dest, source, 2, 1, N));
    for (int pe = 0; pe < n_pes; pe++) {
        for (int i = 0; i < N; i++) {
            EXPECT("alltoalls", i, dest[pe * 2 * N + 2 * i], NAME_value(pe, me * N + i));
            EXPECT("alltoalls between", i, dest[pe * 2 * N + 2 * i + 1], NAME_mark);
        }
    }
    sync_all();
'''

# STEP combines what PE `pe` gives into `expected`.
REDUCTION = '''
static void NAME_OP(void *area)
{
    T *dest = (T *)area, *source = dest + 8 * N, expected;

    for (int i = 0; i < 8 * N; i++)
        source[i] = NAME_give_OP(me, i);
    sync_all();
    CHECK_OK(@OP_reduce(GSHMEM_TEAM_WORLD, dest, source, N));
    for (int i = 0; i < N; i++) {
        expected = NAME_give_OP(0, i);
        for (int pe = 1; pe < n_pes; pe++)
            STEP
        SAME("OP_reduce", i, dest[i], expected);
    }
    sync_all();
SCATTER    SCANS
}
'''
SCATTER = '''\
    CHECK_OK(@OP_reducescatter(GSHMEM_TEAM_WORLD, dest, source, N));
    for (int i = 0; i < N; i++) {
        expected = NAME_give_OP(0, me * N + i);
        for (int pe = 1; pe < n_pes; pe++)
            STEP
        SAME("OP_reducescatter", i, dest[i], expected);
    }
    sync_all();
'''
STEPS = {
    'and': 'expected = (T)(expected & GIVE);',
    'or': 'expected = (T)(expected | GIVE);',
    'xor': 'expected = (T)(expected ^ GIVE);',
    'max': 'expected = GIVE > expected ? GIVE : expected;',
    'min': 'expected = GIVE < expected ? GIVE : expected;',
    'sum': 'expected = (T)(expected + GIVE);',
    'prod': 'expected = (T)(expected * GIVE);',
}
for _op in OPS:  # one that is not written down above is taken from its row
    _x_y = re.sub(r'\by\b', 'GIVE', re.sub(r'\bx\b', 'expected', _op.result))
    STEPS.setdefault(_op.text, 'expected = (T)(%s);' % _x_y if _op.how == 'computes' else
                     'expected = %s ? expected : GIVE;' % _x_y)
# What PE pe gives for element i: exact in every type, whatever the order.
GIVES = {
    'and': '(T)~(1ull << (pe + i) % (8 * sizeof(T)))',
    'or': '(T)(1ull << (pe * 3 + i) % (8 * sizeof(T)))',
    'xor': '(T)(0x9e3779b97f4a7c15ull >> (pe + i) % 8)',
    'max': 'NAME_value(pe, pe == i % 5 ? i % 4 : i + pe)',
    'min': 'NAME_value(pe, pe == i % 5 ? i % 4 : i + pe)',
    'sum': '(T)((pe * 5 + i) % 11 + 1)',
    'prod': '(T)(pe == i % 4 || pe == 5 ? 3 : 1)',
}
for _op in OPS:
    GIVES.setdefault(_op.text, '(T)((pe * 5 + i) % 11 + 1)')

SCAN = '''
    for (int inclusive = 0; inclusive < 2; inclusive++) {
        CHECK_OK(inclusive ? @sum_inscan(GSHMEM_TEAM_WORLD, dest, source, N)
                           : @sum_exscan(GSHMEM_TEAM_WORLD, dest, source, N));
        for (int i = 0; i < N; i++) {
            expected = 0;
            for (int pe = 0; pe < me + inclusive; pe++)
                expected = (T)(expected + NAME_give_sum(pe, i));
            SAME(inclusive ? "sum_inscan" : "sum_exscan", i, dest[i], expected);
        }
        sync_all();
    }'''

# Complex numbers, which EXPECT cannot print; their imaginary part is 1 more than the real one.
SAME = '''
#define SAME(what, index, got, expected)                                                           \\
    do {                                                                                           \\
        if (!((got) == (expected)))                                                                \\
            CHECK_FAIL("%s: element %d differs", what, (int)(index));                              \\
    } while (0)
'''


def _type(t, operations, spelling):
    by_name = {o.name: o for o in operations if t in spelling.types(o)}
    text, calls = '', []
    if 'broadcast' in by_name:
        text += value_function_of(t) + '\n\n'.join(
            part for part in MOVEMENT.split('\n\n')
            if all(name in by_name for name in re.findall(r'@(\w+)\(', part))) + '}\n'
        calls.append('NAME_movement')
    for op in STEPS:
        if op + '_reduce' not in by_name:
            continue
        text += '\nstatic T NAME_give_%s(int pe, int i)\n{\n' % op
        if t.kind == 'complex':
            text += ('    T z = %s;\n    __imag__ z = __real__ z + 1;\n    return z;\n}\n' % GIVES[op])
        else:
            text += '    return %s;\n}\n' % GIVES[op]
        step = STEPS[op].replace('GIVE', 'NAME_give_%s(pe, INDEX)' % op)
        scatter = SCATTER if op + '_reducescatter' in by_name else ''
        scans = SCAN.strip() if op == 'sum' and 'sum_inscan' in by_name else ''
        text += (REDUCTION.replace('STEP', step.replace('INDEX', 'i'))
                 .replace('SCATTER', scatter.replace('STEP', step.replace('INDEX', 'me * N + i')))
                 .replace('SCANS', scans).replace('OP', op))
        calls.append('NAME_' + op)
    text = text.replace('NAME', t.name)
    text = re.sub(r'@(\w+)\(', lambda m: spelling.call(by_name[m.group(1)], t, '')[:-1], text)
    return re.sub(r'\bT\b', t.c, text), [c.replace('NAME', t.name) for c in calls]


def write(operations, spelling):
    types = {t.name: t for o in operations for t in spelling.types(o)}
    text, called = TOP + SAME, []
    for t in types.values():
        functions, calls = _type(t, operations, spelling)
        text += functions
        called += calls
    return text + ('\nstatic void exercise(void *area, int to, int from)\n{\n    (void)to;\n'
                   '    (void)from;\n' + ''.join('    %s(area);\n' % name for name in called) + '}\n')

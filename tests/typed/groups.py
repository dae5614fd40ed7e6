"""Put, get and their relatives by a warp, the second of its block, and by a block, in kernels."""

import sums
from rma import GETS, INDICES, PUTS, SIGNAL_AFTER, SIGNAL_BEFORE, _
from table import SIZES
from values import value_function, value_function_of

FAMILIES = ['Put and get', 'Strided', 'Indexed', 'Indexed sums', 'Put with signal']  # and in them, what has such forms

HEAD = '''
static void NAME_expect(const char *what, const T *at, int from, const signed char *pattern)
{
    for (int i = 0; i < 16; i++)
        EXPECT(what, i, at[i], pattern[i] < 0 ? NAME_mark : NAME_value(from, pattern[i]));
}

static void NAME_exercise(void *area, int to, int from)
{
    T *in = (T *)area, *shared = in + REGIONS * 16, *out = shared + 16;
    const int to_pes[5] = {to, to, to, to, to};

    (void)to_pes; /* not in names by bytes */
    if (threadIdx.x == 0) {
        for (int i = 0; i < 16; i++)
            shared[i] = out[i] = NAME_value(me, i);
        for (int i = 0; i < REGIONS * 16; i++)
            in[i] = NAME_mark;
        for (int i = 0; i < SIGNALS; i++)
            sig[i] = SIGNAL;
    }
    sync_all();
'''


def _exercise(name, c, operations, spelling, t):
    """Each into a region of its own."""
    by_warps, by_blocks, after = '', '', ''
    forms = [(o, scope, ctx) for o in operations if not sums.is_sum(o) for scope in spelling.scopes(o, t)[1:]
             for ctx in (False, True)]
    for region, (o, scope, ctx) in enumerate(forms):
        put = o.name in PUTS
        arguments = (PUTS if put else GETS)[o.name][0].replace('%d', str(region))
        at = '(in + %d * 16)' % region
        call = spelling.call(o, t, arguments.replace('at', at, 1) if put else
                             arguments.replace('got', at, 1), ctx, scope)
        if scope == '_warp':
            by_warps += '        CHECK_OK(%s);\n' % call
        else:
            by_blocks += '    CHECK_OK(%s);\n' % call
        after += '        NAME_expect("%s", %s, %s, p_%s);\n' % (
            call.split('(')[0], at, 'from' if put else 'to', o.name)
        if o.name in SIGNAL_AFTER:
            after += '        CHECK_EQ(sig[%d], %d);\n' % (region, SIGNAL_AFTER[o.name])
    text = (HEAD.replace('REGIONS', str(len(forms))).replace('SIGNAL;', '%d;' % SIGNAL_BEFORE)
            + '    if (threadIdx.x >= 32) {\n' + by_warps + '    }\n' + by_blocks + '    sync_all();\n'
            + '    if (threadIdx.x == 0) {\n' + after + '    }\n    sync_all();\n}\n')
    return text.replace('NAME', name).replace('T *', c + ' *')


def write(operations, spelling):
    text = INDICES
    for name, (_arguments, pattern) in list(PUTS.items()) + list(GETS.items()):
        if any(o.name == name and o.kernels == 'group' for o in operations):
            text += 'static const signed char p_%s[16] = {%s};\n' % (
                name, ', '.join(str(i) for i in pattern + [_] * (16 - len(pattern))))
    called = []
    for t in spelling.types(operations[0]):
        text += value_function_of(t) + _exercise(t.name, t.c, operations, spelling, t)
        called.append(t.name)
    for bits in SIZES + ['mem']:
        name = 'bits%s' % bits
        c = {128: 'uint128', 'mem': 'uint8_t'}.get(bits) or 'uint%d_t' % bits
        sized = [o for o in operations if o.sized and (bits != 'mem' or o.name[0] != 'i')]
        text += value_function(name, c, '(%s)0' % c, '~(%s)0' % c, '') + _exercise(
            name, c, sized, spelling, bits)
        called.append(name)
    more, functions = sums.write(operations, spelling,
                                 {'_warp': 'if (threadIdx.x >= 32)\n        ', '_block': ''})
    functions = [name + '_exercise' for name in called] + functions
    return text + more + ('\nstatic void exercise(void *area, int to, int from)\n{\n'
                          + ''.join('    %s(area, to, from);\n' % name for name in functions) + '}\n')

"""Put, get and their relatives: which elements arrive where."""

from table import SIZES
import sums
from values import value_function, value_function_of

FAMILIES = ['Put and get', 'Single elements', 'Strided', 'Indexed', 'Indexed sums', 'Put with signal']

# The first 16 elements of where an operation writes afterwards: the index of the element of its source
# that has come there, or `_`: untouched. All sources are elements 0 … 15 of a PE's values.
_ = -1
FIVE = [_, 0, 1, 2, 3, 4]
SPREAD = [0, _, 3, _, 6, _, 9]             # dst 2, sst 3, 4 elements
BLOCKS = [0, 1, _, 4, 5, _, 8, 9]          # dst 3, sst 4, 3 blocks of 2
CHOSEN = [4, 0, 9, 2, 7]                   # got by their numbers,
PLACED = [1, _, 3, _, 0, _, _, 4, _, 2]    # and put there
PUTS = {
    'put':            ('at + 1, out, 5, to', FIVE),
    'put_nbi':        ('at + 1, out, 5, to', FIVE),
    'p':              ('at + 2, out[1], to', [_, _, 1]),
    'iput':           ('at, out, 2, 3, 4, to', SPREAD),
    'ibput':          ('at, out, 3, 4, 2, 3, to', BLOCKS),
    'ixput':          ('at, out, chosen, 5, to', PLACED),
    'ixput_pes':      ('at, out, chosen, to_pes, 5', PLACED),
    'ixput_nbi':      ('at, out, chosen, 5, to', PLACED),
    'ixput_pes_nbi':  ('at, out, chosen, to_pes, 5', PLACED),
    'put_signal':     ('at + 1, out, 5, &sig[%d], 7, GSHMEM_SIGNAL_SET, to', FIVE),
    'put_signal_nbi': ('at + 1, out, 5, &sig[%d], 7, GSHMEM_SIGNAL_ADD, to', FIVE),
}
GETS = {
    'get':     ('got + 1, shared + 2, 5, to', [_, 2, 3, 4, 5, 6]),
    'get_nbi': ('got + 1, shared + 2, 5, to', [_, 2, 3, 4, 5, 6]),
    'iget':    ('got, shared, 2, 3, 4, to', SPREAD),
    'ibget':   ('got, shared, 3, 4, 2, 3, to', BLOCKS),
    'ixget':         ('got, shared, chosen, 5, to', CHOSEN),
    'ixget_pes':     ('got, shared, chosen, to_pes, 5', CHOSEN),
    'ixget_nbi':     ('got, shared, chosen, 5, to', CHOSEN),
    'ixget_pes_nbi': ('got, shared, chosen, to_pes, 5', CHOSEN),
}
SIGNAL_BEFORE = 100
QUIET = '    CHECK_OK(gshmem_quiet());\n    CHECK_OK(gshmem_ctx_quiet(ctx));\n'
TO_PES = '    const int to_pes[5] = {to, to, to, to, to};\n'
INDICES = 'static const size_t chosen[5] = {%s};\n' % ', '.join(map(str, CHOSEN))
SIGNAL_AFTER = {'put_signal': 7, 'put_signal_nbi': 107}

HEAD = '''
static void %(name)s_expect(const char *what, const %(c)s *at, int from, const signed char *pattern)
{
    for (int i = 0; i < 16; i++)
        EXPECT(what, i, at[i], pattern[i] < 0 ? %(name)s_mark : %(name)s_value(from, pattern[i]));
}

static void %(name)s_exercise(void *area, int to, int from)
{
    %(c)s *in = (%(c)s *)area, *shared = in + %(regions)d * 16, out[16], got[16], *at;
%(pes)s
    for (int i = 0; i < 16; i++)
        shared[i] = out[i] = %(name)s_value(me, i);
    for (int i = 0; i < %(regions)d * 16; i++)
        in[i] = %(name)s_mark;
    for (int i = 0; i < SIGNALS; i++)
        sig[i] = %(signal)d;
    sync_all();

'''


def _exercise(name, c, operations, write_call):
    """One function: all puts into regions of their own, then what arrived; then all gets."""
    put_forms = [(o, ctx) for o in operations if o.name in PUTS for ctx in (False, True)]
    text = HEAD % {'name': name, 'c': c, 'regions': len(put_forms), 'signal': SIGNAL_BEFORE,
                   'pes': TO_PES * any('_pes' in o.name for o in operations)}
    puts, after = '', ''
    for region, (o, ctx) in enumerate(put_forms):
        arguments = PUTS[o.name][0].replace('%d', str(region))
        call = write_call(o, arguments, ctx)
        puts += '    at = in + %d * 16;\n    CHECK_OK(%s);\n' % (region, call)
        after += '    %s_expect("%s", in + %d * 16, from, %s);\n' % (
            name, call.split('(')[0] + (' on ctx' if ctx else ''), region, 'p_' + o.name)
        if o.name in SIGNAL_AFTER:
            after += '    CHECK_EQ(sig[%d], %d);\n' % (region, SIGNAL_AFTER[o.name])
    gets = ''
    for o in operations:
        for ctx in (False, True) if o.name in GETS else ():
            call = write_call(o, GETS[o.name][0], ctx)
            gets += ('    for (int i = 0; i < 16; i++)\n        got[i] = %s_mark;\n'
                     '    CHECK_OK(%s);\n%s'
                     '    %s_expect("%s", got, to, p_%s);\n' % (
                         name, call, QUIET * o.name.endswith('_nbi'), name, call.split('(')[0], o.name))
        for ctx in (False, True) if o.name == 'g' else ():
            gets += '    for (int i = 0; i < 16; i++)\n        EXPECT("g", i, %s, %s_value(to, i));\n' % (
                write_call(o, 'shared + i, to', ctx), name)
    return (text + puts
            + '\n    CHECK_OK(gshmem_ctx_quiet(ctx));\n    sync_all();\n' + after + '\n' + gets
            + '    sync_all();\n}\n')


def write(operations, spelling):
    names = {o.name for o in operations}
    text = INDICES * ('ixput' in names)
    for name, (arguments, pattern) in list(PUTS.items()) + list(GETS.items()):
        if name not in names:
            continue
        values = ', '.join(str(i) for i in pattern + [_] * (16 - len(pattern)))
        text += 'static const signed char p_%s[16] = {%s};\n' % (name, values)
    called = []
    for t in spelling.types(operations[0]):
        text += value_function_of(t) + _exercise(
            t.name, t.c, operations, lambda o, a, ctx, t=t: spelling.call(o, t, a, ctx))
        called.append(t.name)
    sized = [o for o in operations if o.sized]
    for bits in () if spelling.generic else SIZES:
        name, c = 'bits%d' % bits, 'uint%d' % bits + ('' if bits == 128 else '_t')
        text += value_function(name, c, '(%s)0' % c, '~(%s)0' % c, '') + _exercise(
            name, c, sized, lambda o, a, ctx, b=bits: spelling.call(o, b, a, ctx))
        called.append(name)
    more, functions = sums.write(operations, spelling)
    functions = [name + '_exercise' for name in called] + functions
    return text + more + ('\nstatic void exercise(void *area, int to, int from)\n{\n'
                          + ''.join('    %s(area, to, from);\n' % name for name in functions) + '}\n')

"""Sums of elements by their numbers: each call adds the same to the same elements of one PE."""

INDEX = 'static const size_t summed[5] = {4, 0, 4, 2, 7}; /* the addends are 1 to 5 */\n'
GIVES = 'static const signed char each_adds[16] = {2, 0, 4, 0, 4, 0, 0, 5};\n'

SUMS = '''
static void NAME_sums(void *area, int to, int from)
{
    const int to_pes[5] = {to, to, to, to, to};
    const T addends[5] = {1, 2, 3, 4, 5};
    T *in = (T *)area;

    (void)from;
    if (FIRST) {
        for (int i = 0; i < 16; i++)
            in[i] = (T)(i + 1);
    }
    sync_all();
CALLS    sync_all();
    if (FIRST) {
        for (int i = 0; i < 16; i++)
            EXPECT("ix_add", i, in[i], (T)(i + 1 + TIMES * each_adds[i]));
    }
    sync_all();
}
'''


def is_sum(operation):
    return operation.name.startswith('ix_add')


def write(operations, spelling, scopes=None):
    """(text, names of functions to call), of what is no OpenSHMEM; scopes: for groups, who calls what."""
    sums = [o for o in operations if is_sum(o)]
    if not sums:
        return '', []
    text, called = INDEX + GIVES, []
    for t in spelling.types(sums[0]):
        calls, times = '', 0
        for o in sums:
            arguments = 'in, addends, summed, ' + ('to_pes, 5' if '_pes' in o.name else '5, to')
            for ctx in (False, True):
                for scope, condition in (scopes or {None: ''}).items():
                    calls += '    %sCHECK_OK(%s);\n' % (
                        condition, spelling.call(o, t, arguments, ctx, scope))
                    times += 1
        calls += '    CHECK_OK(gshmem_ctx_quiet(ctx));\n'
        text += (SUMS.replace('CALLS', calls).replace('TIMES', str(times))
                 .replace('FIRST', 'threadIdx.x == 0' if scopes else '1')
                 .replace('NAME', t.name).replace('(T)', '(%s)' % t.c)
                 .replace('const T ', 'const %s ' % t.c).replace('T *', t.c + ' *'))
        called.append(t.name + '_sums')
    return text, called

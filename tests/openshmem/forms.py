"""OpenSHMEM 1.6's 216 forms of routines, copied by hand from its synopses and tables of types: what the
conformance report asks for. Owes nothing to the table that GSHMEM's headers are made from.

A form is (how it is written, what it returns, the function's name, its arguments); TYPE stands for a C
type, NAME for its name in functions, BITS for a size. Each form of communication is there without and
with a context.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'typed'))
from standard import AMO, BITS as BIT_REDUCE, BITWISE, C, EXTENDED, RMA, SIZES  # noqa: E402
from standard import SUMS as SUM_REDUCE, WAIT  # noqa: E402

OLD = 'float double int long longlong'
OLD_AMO = 'int long longlong'
OLD_BITS = 'short int long longlong'
OLD_WAIT = OLD_BITS + ' ushort uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff'
OLD_ORDER = OLD_BITS + ' float double longdouble'
OLD_SUM = OLD_ORDER + ' complexf complexd'

COPY = 'TYPE *dest, const TYPE *source, size_t nelems, int pe'
STRIDED = 'TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe'
BLOCKS = ('TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, '
          'size_t nblocks, int pe')
SIGNAL = ('TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, '
          'int sig_op, int pe')
ONE = 'TYPE *dest, TYPE value, int pe'
FETCH = 'TYPE *fetch, '
SET = 'int, int, int, long *'
TEAM = 'shmem_team_t team, TYPE *dest, const TYPE *source, '
MASK = 'TYPE *, size_t, const int *, int, '
SOME = 'TYPE *, size_t, size_t *, const int *, int, '


def plain(*rows):
    """Forms of one function each: 'what it returns name(arguments)'."""
    forms = []
    for row in rows:
        head, arguments = row.rstrip(')').split('(', 1)
        returns, name = head.rsplit(' ', 1)
        while name.startswith('*'):
            returns, name = returns + ' *', name[1:]
        forms.append((name, [(returns, name, arguments)]))
    return forms


def typed(name, kinds, returns, arguments, contexts=False):
    """One form over types: NAME in name; with contexts, two forms."""
    forms = []
    for ctx in ('', 'ctx_') if contexts else ('',):
        functions = []
        for kind in kinds.split():
            c = C.get(kind, 'void')
            functions.append((returns.replace('TYPE', c),
                              name.replace('shmem_', 'shmem_' + ctx, 1).replace('NAME', kind)
                              .replace('BITS', kind),
                              ('shmem_ctx_t ctx, ' if ctx else '') + arguments.replace('TYPE', c)))
        forms.append((name.replace('shmem_', 'shmem_' + ctx, 1), functions))
    return forms


def mem(name, arguments):
    """Two forms of one function each: without a context, and with one."""
    arguments = arguments.replace('TYPE', 'void')
    first = 'shmem_ctx_t ctx' + ('' if arguments == 'void' else ', ' + arguments)
    return plain('void %s(%s)' % (name, arguments),
                 'void %s(%s)' % (name.replace('shmem_', 'shmem_ctx_'), first))


def moved(verb):
    """put or get: 11 forms, each with a context, too."""
    forms = []
    for nbi in '', '_nbi':
        forms += typed('shmem_NAME_%s%s' % (verb, nbi), RMA, 'void', COPY, True)
        forms += typed('shmem_%sBITS%s' % (verb, nbi), SIZES, 'void', COPY, True)
        forms += mem('shmem_%smem%s' % (verb, nbi), COPY)
    for strided, arguments in ('i', STRIDED), ('ib', BLOCKS):
        forms += typed('shmem_NAME_%s%s' % (strided, verb), RMA, 'void', arguments, True)
        forms += typed('shmem_%s%sBITS' % (strided, verb), SIZES, 'void', arguments, True)
    return forms


def atomics():
    rows = [('fetch', EXTENDED, 'TYPE', 'const TYPE *source, int pe'), ('set', EXTENDED, 'void', ONE),
            ('compare_swap', AMO, 'TYPE', 'TYPE *dest, TYPE cond, TYPE value, int pe'),
            ('swap', EXTENDED, 'TYPE', ONE), ('fetch_inc', AMO, 'TYPE', 'TYPE *dest, int pe'),
            ('inc', AMO, 'void', 'TYPE *dest, int pe'), ('fetch_add', AMO, 'TYPE', ONE),
            ('add', AMO, 'void', ONE)]
    for op in 'and', 'or', 'xor':
        rows += [('fetch_' + op, BITWISE, 'TYPE', ONE), (op, BITWISE, 'void', ONE)]
    forms = []
    for op, kinds, returns, arguments in rows:
        forms += typed('shmem_NAME_atomic_' + op, kinds, returns, arguments, True)
        if returns == 'TYPE':
            forms += typed('shmem_NAME_atomic_%s_nbi' % op, kinds, 'void', FETCH + arguments, True)
    for old, kinds, returns, arguments in (
            ('fetch', OLD, 'TYPE', 'const TYPE *source, int pe'), ('set', OLD, 'void', ONE),
            ('cswap', OLD_AMO, 'TYPE', 'TYPE *dest, TYPE cond, TYPE value, int pe'),
            ('swap', OLD, 'TYPE', ONE), ('finc', OLD_AMO, 'TYPE', 'TYPE *dest, int pe'),
            ('inc', OLD_AMO, 'void', 'TYPE *dest, int pe'), ('fadd', OLD_AMO, 'TYPE', ONE),
            ('add', OLD_AMO, 'void', ONE)):
        forms += typed('shmem_NAME_' + old, kinds, returns, arguments)
    return forms


def signals():
    forms = []
    for nbi in '', '_nbi':
        forms += typed('shmem_NAME_put_signal' + nbi, RMA, 'void', SIGNAL, True)
        forms += typed('shmem_putBITS_signal' + nbi, SIZES, 'void', SIGNAL, True)
        forms += mem('shmem_putmem_signal' + nbi, SIGNAL)
    for op in 'add', 'set':
        forms += mem('shmem_signal_' + op, 'uint64_t *sig_addr, uint64_t signal, int pe')
    return forms + plain('uint64_t shmem_signal_fetch(const uint64_t *sig_addr)')


def collectives():
    forms = plain('void shmem_barrier_all(void)', 'void shmem_barrier(%s)' % SET,
                  'int shmem_team_sync(shmem_team_t team)', 'void shmem_sync(%s)' % SET,
                  'void shmem_sync_all(void)')
    strides = 'ptrdiff_t dst, ptrdiff_t sst, '
    for name, before, after in (('alltoall', '', ''), ('alltoalls', strides, ''),
                                ('broadcast', '', ', int root'), ('collect', '', ''),
                                ('fcollect', '', '')):
        arguments = TEAM + before + 'size_t nelems' + after
        forms += typed('shmem_NAME_' + name, RMA, 'int', arguments)
        forms += plain('int shmem_%smem(%s)' % (name, arguments.replace('TYPE', 'void')))
        for bits in '32', '64':
            forms += plain('void shmem_%s%s(void *, const void *, %ssize_t nelems%s, %s)' % (
                name, bits, before, after, SET))
    for op, kinds, old in (('and', BIT_REDUCE, OLD_BITS), ('or', BIT_REDUCE, OLD_BITS),
                           ('xor', BIT_REDUCE, OLD_BITS), ('max', RMA, OLD_ORDER),
                           ('min', RMA, OLD_ORDER), ('sum', SUM_REDUCE, OLD_SUM),
                           ('prod', SUM_REDUCE, OLD_SUM)):
        forms += typed('shmem_NAME_%s_reduce' % op, kinds, 'int', TEAM + 'size_t nreduce')
        forms += typed('shmem_NAME_%s_to_all' % op, old, 'void',
                       'TYPE *, const TYPE *, int, int, int, int, TYPE *pWrk, long *pSync')
    for scan in 'inscan', 'exscan':
        forms += typed('shmem_NAME_sum_' + scan, SUM_REDUCE, 'int', TEAM + 'size_t nelems')
    return forms


def waits():
    forms = []
    for verb, one, every in ('wait_until', 'void', 'void'), ('test', 'int', 'int'):
        forms += typed('shmem_NAME_' + verb, WAIT, one, 'TYPE *, int cmp, TYPE')
        for ending, value in ('', 'TYPE'), ('_vector', 'const TYPE *'):
            for what, returns, arguments in (('_all', every, MASK), ('_any', 'size_t', MASK),
                                             ('_some', 'size_t', SOME)):
                forms += typed('shmem_NAME_' + verb + what + ending, WAIT, returns,
                               arguments + value)
    return (forms
            + plain('uint64_t shmem_signal_wait_until(uint64_t *, int, uint64_t)',
                    'void shmem_wait_until(long *, int, long)', 'void shmem_wait(long *, long)')
            + typed('shmem_NAME_wait', OLD_WAIT, 'void', 'TYPE *, TYPE'))


SECTIONS = [
    ('Setup', plain(
        'void shmem_init(void)', 'int shmem_my_pe(void)', 'int shmem_n_pes(void)',
        'void shmem_finalize(void)', 'void shmem_query_initialized(int *)',
        'void shmem_global_exit(int)', 'int shmem_pe_accessible(int)',
        'int shmem_addr_accessible(const void *, int)', 'void *shmem_ptr(const void *, int)',
        'void *shmem_team_ptr(shmem_team_t, const void *, int)',
        'void shmem_info_get_version(int *, int *)', 'void shmem_info_get_name(char *)',
        'void start_pes(int)')),
    ('Threads', plain('int shmem_init_thread(int, int *)', 'void shmem_query_thread(int *)')),
    ('Memory', plain(
        'void *shmem_malloc(size_t)', 'void shmem_free(void *)', 'void *shmem_realloc(void *, size_t)',
        'void *shmem_align(size_t, size_t)', 'void *shmem_malloc_with_hints(size_t, long)',
        'void *shmem_calloc(size_t, size_t)')),
    ('Teams', plain(
        'int shmem_team_my_pe(shmem_team_t)', 'int shmem_team_n_pes(shmem_team_t)',
        'int shmem_team_get_config(shmem_team_t, long, shmem_team_config_t *)',
        'int shmem_team_translate_pe(shmem_team_t, int, shmem_team_t)',
        'int shmem_team_split_strided(shmem_team_t, int, int, int, const shmem_team_config_t *, long, '
        'shmem_team_t *)',
        'int shmem_team_split_2d(shmem_team_t, int, const shmem_team_config_t *, long, shmem_team_t *, '
        'const shmem_team_config_t *, long, shmem_team_t *)',
        'void shmem_team_destroy(shmem_team_t)')),
    ('Contexts', plain(
        'int shmem_ctx_create(long, shmem_ctx_t *)',
        'int shmem_team_create_ctx(shmem_team_t, long, shmem_ctx_t *)',
        'void shmem_ctx_destroy(shmem_ctx_t)', 'int shmem_ctx_get_team(shmem_ctx_t, shmem_team_t *)')),
    ('Remote memory access',
     moved('put') + typed('shmem_NAME_p', RMA, 'void', ONE, True) + moved('get')
     + typed('shmem_NAME_g', RMA, 'TYPE', 'const TYPE *source, int pe', True)),
    ('Atomics', atomics()),
    ('Signals', signals()),
    ('Sessions', plain(
        'void shmem_ctx_session_start(shmem_ctx_t, long, const shmem_ctx_session_config_t *, long)',
        'void shmem_ctx_session_stop(shmem_ctx_t)')),
    ('Collectives', collectives()),
    ('Point to point', waits()),
    ('Order', mem('shmem_fence', 'void') + mem('shmem_quiet', 'void')
     + mem('shmem_pe_quiet', 'const int *, size_t')),
    ('Locks', plain('void shmem_set_lock(long *)', 'void shmem_clear_lock(long *)',
                    'int shmem_test_lock(long *)')),
    ('Profiling', plain('void shmem_pcontrol(int, ...)')),
]

# Names of before 1.2, which are no forms of their own.
OLDER = plain('int _my_pe(void)', 'int _num_pes(void)', 'void *shmalloc(size_t)', 'void shfree(void *)',
              'void *shrealloc(void *, size_t)', 'void *shmemalign(size_t, size_t)')

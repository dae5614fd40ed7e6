"""What OpenSHMEM 1.6 has: the table's operations as it names and types them, those it has beside them,
and its functions without a type.

From these lists come the prototypes in shmem/functions.h and pshmem's, the inline forms, the names
without a type, and the definitions in runtime/facades/openshmem.
"""

import re
from typing import NamedTuple

from table import (BY_NAME, FAMILIES, REDUCTIONS, SIZES, Family, Operation, function_name,
                   parameters_for, sized_name, types_of)


class Function(NamedTuple):
    """One C function as the program sees it, and what it calls here."""
    name: str
    returns: str
    parameters: list   # [(declaration, name)]
    operation: object  # of the table; None: written by hand
    type: object       # of the table; None for those by size
    bits: object       # 8 … 128 or 'mem' for those by size
    context: bool


# ---- Operations of the table ----

_LACKS = ('_reducescatter',)
_REDUCTIONS = ('and', 'or', 'xor', 'max', 'min', 'sum', 'prod')  # and no other that GSHMEM may have
_NO_REAL = {'amo'}  # standard AMO types are integers; the native API adds reals

COLLECTIVES = ('Data movement of teams', 'Reductions', 'Scans')


def _has(operation):
    op, _, form = operation.name.rpartition('_')
    if operation.name.startswith('ix'):  # indexed operations are GSHMEM's
        return False
    return not operation.name.endswith(_LACKS) and (form != 'reduce' or op in _REDUCTIONS)


def families():
    result = []
    for family in FAMILIES:
        chosen = [operation for operation in family.operations if _has(operation)]
        if chosen:
            result.append(Family(family.name, family.comment, chosen))
    return result


def types(operation):
    return [t for t in types_of(operation)
            if not t.sets and not (operation.types in _NO_REAL and t.kind == 'real')]


def distinct(kinds):
    """One type for each that a compiler tells apart."""
    chosen = {}
    for t in kinds:
        chosen.setdefault(t.same_as or t.name, t)
    return list(chosen.values())


def is_collective(operation):
    return operation.parameters.startswith('gshmem_team_t')


def returned(operation, c_type):
    if operation.returns == 'status':
        return 'int' if is_collective(operation) else 'void'
    return {'int': 'int', 'size': 'size_t', 'T': c_type}[operation.returns]


def parameters(operation, c_type, context):
    listed = [(declaration.replace('gshmem_team_t', 'shmem_team_t'), name)
              for declaration, name in parameters_for(operation, c_type)]
    return [('shmem_ctx_t ctx', 'ctx')] * context + listed


def bit_sizes(operation):
    """What follows put or get in the names by size."""
    if not operation.sized:
        return []
    plain = operation.parameters.startswith('T *dest, const T *source, size_t')
    return SIZES + ['mem'] * plain


def typed_functions(operation):
    """All its functions: with and without context, for each type and size."""
    result = []
    for context in (False, True) if operation.context else (False,):
        for t in types(operation):
            result.append(Function(function_name(operation, t.name, context, 'shmem_'),
                                   returned(operation, t.c), parameters(operation, t.c, context),
                                   operation, t, None, context))
        for bits in bit_sizes(operation):
            result.append(Function(sized_name(operation, bits, context, 'shmem_'), 'void',
                                   parameters(operation, 'void', context), operation, None, bits,
                                   context))
    return result


# ---- Deprecated ones that have types ----

_OLD = 'float double int long longlong'
_OLD_INTEGERS = 'int long longlong'

# old name: (new name, types)
OLD_ATOMICS = {
    'fetch': ('fetch', _OLD), 'set': ('set', _OLD), 'swap': ('swap', _OLD),
    'cswap': ('compare_swap', _OLD_INTEGERS), 'finc': ('fetch_inc', _OLD_INTEGERS),
    'inc': ('inc', _OLD_INTEGERS), 'fadd': ('fetch_add', _OLD_INTEGERS),
    'add': ('add', _OLD_INTEGERS),
}
_ACTIVE = 'int PE_start, int logPE_stride, int PE_size, '
_TO_ALL_BITS = 'short int long longlong'
_TO_ALL_ORDER = _TO_ALL_BITS + ' float double longdouble'
_TO_ALL_SUM = _TO_ALL_ORDER + ' complexf complexd'
_TO_ALL = {'reduce_bits': _TO_ALL_BITS, 'reduce_order': _TO_ALL_ORDER, 'reduce_sum': _TO_ALL_SUM}

_ATOMICS = {o.name: o for f in FAMILIES if f.name == 'Atomics' for o in f.operations}


def old_atomics():
    """[(operation under its old name, its types)]"""
    return [(_ATOMICS['atomic_' + new]._replace(name=old, context=False),
             [BY_NAME[name] for name in kinds.split()])
            for old, (new, kinds) in OLD_ATOMICS.items()]


def old_atomic_functions():
    return [Function(function_name(o, t.name, prefix='shmem_'), returned(o, t.c),
                     parameters(o, t.c, False), o, t, None, False)
            for o, kinds in old_atomics() for t in kinds]


def atomics_by_old_names():
    """[(operation under its old name, operation, types of the latter)]: without a type the old names take
    what the new ones do."""
    rows = [(old, _ATOMICS['atomic_' + new]) for old, (new, _) in OLD_ATOMICS.items()]
    return [(o._replace(name=old, context=False), o, types(o)) for old, o in rows]


def wait_functions():
    operation = Operation('wait', 'wait', 'status', 'T *ivar, T cmp_value')
    return [Function('shmem_%s_wait' % t.name, 'void', parameters(operation, t.c, False),
                     operation, t, None, False) for t in types(operation)]


def to_all_functions():
    result = []
    for op in _REDUCTIONS:
        kinds = REDUCTIONS[op]
        operation = Operation(op + '_to_all', kinds, 'status', 'T *dest, const T *source, int nreduce, '
                              + _ACTIVE + 'T *pWrk, long *pSync')
        for name in _TO_ALL[kinds].split():
            t = BY_NAME[name]
            result.append(Function(function_name(operation, name, prefix='shmem_'), 'void',
                                   parameters(operation, t.c, False), operation, t, None, False))
    return result


# ---- Without types: written by hand in runtime/facades/openshmem ----

_SET = _ACTIVE + 'long *pSync'

UNTYPED = [
    ('Setup',
     'Calls of init nest; only the last finalize ends the job. finalize without init does nothing. A\n'
     'return from main finalizes, too.',
     ['void shmem_init(void)', 'int shmem_init_thread(int requested, int *provided)',
      'void shmem_query_thread(int *provided)', 'void shmem_query_initialized(int *initialized)',
      'void shmem_finalize(void)', 'void shmem_global_exit(int status)',
      'int shmem_my_pe(void)', 'int shmem_n_pes(void)',
      'int shmem_pe_accessible(int pe)', 'int shmem_addr_accessible(const void *addr, int pe)',
      'void *shmem_ptr(const void *dest, int pe)',
      'void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)',
      'void shmem_info_get_version(int *major, int *minor)', 'void shmem_info_get_name(char *name)']),
    ('Symmetric memory',
     'Collective over all PEs, with the same arguments on each. NULL if nothing was allocated.',
     ['void *shmem_malloc(size_t size)', 'void *shmem_calloc(size_t count, size_t size)',
      'void *shmem_align(size_t alignment, size_t size)',
      'void *shmem_realloc(void *ptr, size_t size)',
      'void *shmem_malloc_with_hints(size_t size, long hints)', 'void shmem_free(void *ptr)']),
    ('Teams',
     'split and get_config return 0 on success.',
     ['int shmem_team_my_pe(shmem_team_t team)', 'int shmem_team_n_pes(shmem_team_t team)',
      'int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)',
      'int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)',
      'int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, '
      'const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)',
      'int shmem_team_split_2d(shmem_team_t parent_team, int xrange, '
      'const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, '
      'const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team)',
      'void shmem_team_destroy(shmem_team_t team)']),
    ('Contexts',
     'A session says which operations follow; it does not change their meaning.',
     ['int shmem_ctx_create(long options, shmem_ctx_t *ctx)',
      'int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)',
      'void shmem_ctx_destroy(shmem_ctx_t ctx)',
      'int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)',
      'void shmem_ctx_session_start(shmem_ctx_t ctx, long options, '
      'const shmem_ctx_session_config_t *config, long config_mask)',
      'void shmem_ctx_session_stop(shmem_ctx_t ctx)']),
    ('Signals',
     'Updates of a signal on pe; reads of, and waits for, a signal of this PE.',
     ['void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe)',
      'void shmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe)',
      'void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)',
      'void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)',
      'uint64_t shmem_signal_fetch(const uint64_t *sig_addr)',
      'uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)']),
    ('Order',
     'fence orders operations before it before those after it; quiet completes operations.',
     ['void shmem_fence(void)', 'void shmem_ctx_fence(shmem_ctx_t ctx)',
      'void shmem_quiet(void)', 'void shmem_ctx_quiet(shmem_ctx_t ctx)',
      'void shmem_pe_quiet(const int *target_pes, size_t npes)',
      'void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes)']),
    ('Collectives on bytes',
     '',
     ['void shmem_barrier_all(void)', 'void shmem_sync_all(void)',
      'int shmem_team_sync(shmem_team_t team)',
      'int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source, size_t nelems, '
      'int PE_root)',
      'int shmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)',
      'int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)',
      'int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t nelems)',
      'int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, '
      'ptrdiff_t sst, size_t nelems)']),
    ('Locks', '',
     ['void shmem_set_lock(long *lock)', 'void shmem_clear_lock(long *lock)',
      'int shmem_test_lock(long *lock)']),
    ('Profiling',
     'Does nothing; profiling tools replace it.',
     ['void shmem_pcontrol(int level, ...)']),
    ('Deprecated: active sets',
     'An active set is PE_size PEs from PE_start on, 2 to the power of logPE_stride apart. pSync\n'
     'contains SHMEM_SYNC_VALUE before and after each call. The first call makes a team of the set.',
     ['void shmem_barrier(' + _SET + ')', 'void shmem_sync(' + _SET + ')']
     + ['void shmem_broadcast%d(void *dest, const void *source, size_t nelems, int PE_root, %s)'
        % (bits, _SET) for bits in (32, 64)]
     + ['void shmem_%s%d(void *dest, const void *source, size_t nelems, %s)' % (name, bits, _SET)
        for name in ('collect', 'fcollect', 'alltoall') for bits in (32, 64)]
     + ['void shmem_alltoalls%d(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, '
        'size_t nelems, %s)' % (bits, _SET) for bits in (32, 64)]),
    ('Deprecated: other names',
     'Older names. Functions for caches do nothing, since caches are coherent.',
     ['void start_pes(int npes)', 'int _my_pe(void)', 'int _num_pes(void)',
      'void *shmalloc(size_t size)', 'void shfree(void *ptr)',
      'void *shrealloc(void *ptr, size_t size)', 'void *shmemalign(size_t alignment, size_t size)',
      'void shmem_wait(long *ivar, long cmp_value)',
      'void shmem_wait_until(long *ivar, int cmp, long cmp_value)',
      'void shmem_set_cache_inv(void)', 'void shmem_clear_cache_inv(void)',
      'void shmem_set_cache_line_inv(void *dest)', 'void shmem_clear_cache_line_inv(void *dest)',
      'void shmem_udcflush(void)', 'void shmem_udcflush_line(void *dest)']),
]


def parse(text):
    """Of 'int shmem_f(int a, long b)': what it returns, its name, its declarations."""
    head, declarations = text[:-1].split('(', 1)
    returns, name = re.match(r'(.*?)(\w+)$', head).groups()
    return returns.strip(), name, declarations.split(', ')


# Functions of no type that a name without ctx_ selects by whether the first argument is a context.
BY_CONTEXT = ['shmem_signal_add', 'shmem_signal_set']

ATTRIBUTES = {'shmem_global_exit': '__attribute__((noreturn))'}

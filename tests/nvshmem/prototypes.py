#!/usr/bin/env python3
"""Writes a program that compiles if every name of NVSHMEM's documentation exists with its prototype.

    prototypes.py host|cuda FILE

The lists below are the documentation's families, and know nothing of the table that the headers are
generated from. The file compiles with NVSHMEM's own headers just as well, but for what is marked
"documented" (it is in the documentation, and not in the headers of release 3.4)."""

import sys

C = {'float': 'float', 'double': 'double', 'char': 'char', 'schar': 'signed char', 'short': 'short',
     'int': 'int', 'long': 'long', 'longlong': 'long long', 'uchar': 'unsigned char',
     'ushort': 'unsigned short', 'uint': 'unsigned int', 'ulong': 'unsigned long',
     'ulonglong': 'unsigned long long', 'size': 'size_t', 'ptrdiff': 'ptrdiff_t',
     'half': '__half', 'bfloat16': '__nv_bfloat16'}
C.update({'%s%d' % (name, bits): '%s%d_t' % (name, bits)
          for name in ('int', 'uint') for bits in (8, 16, 32, 64)})

HALF = 'half bfloat16'.split()
WIDTHS = 'int8 int16 int32 int64 uint8 uint16 uint32 uint64 size'.split()
RMA = ('float double char schar short int long longlong uchar ushort uint ulong ulonglong ptrdiff'
       .split() + WIDTHS + HALF)
AMO = 'uint ulong ulonglong int32 uint32 int64 uint64 int long longlong size ptrdiff'.split()
AMO_EXTENDED = AMO + ['float', 'double']
AMO_BITWISE = 'uint ulong ulonglong int32 uint32 int64 uint64'.split()
WAIT = AMO + ['short', 'ushort']
REDUCE_BITS = 'uchar ushort uint ulong ulonglong'.split() + WIDTHS
REDUCE = [name for name in RMA if name != 'ptrdiff']
SIZES = '8 16 32 64 128'.split()

COPY = 'T *, const T *, size_t, int'
STRIDED = 'T *, const T *, ptrdiff_t, ptrdiff_t, size_t, int'
SIGNAL = 'T *, const T *, size_t, uint64_t *, uint64_t, int, int'
TEAM = 'nvshmem_team_t, T *, const T *, size_t'
ARRAY = 'T *, size_t, const int *, int, '
SOME = 'T *, size_t, size_t *, const int *, int, '

# (types, returns, name, arguments): * stands for the type, or for the size and the place of it. Each
# is there for one thread and, after nvshmemx_, with the endings.
WARP, BLOCK, STREAM = '_warp', '_block', '_on_stream'
ALL, THREAD, ONE_AND_STREAM = [WARP, BLOCK, STREAM], [], [STREAM]
TYPED = [
    (RMA, 'void', '*_put', COPY, ALL), (RMA, 'void', '*_get', COPY, ALL),
    (RMA, 'void', '*_put_nbi', COPY, ALL), (RMA, 'void', '*_get_nbi', COPY, ALL),
    (RMA, 'void', '*_iput', STRIDED, ALL), (RMA, 'void', '*_iget', STRIDED, ALL),
    (RMA, 'void', '*_p', 'T *, T, int', ONE_AND_STREAM),
    (RMA, 'T', '*_g', 'const T *, int', ONE_AND_STREAM),
    (RMA, 'void', '*_put_signal', SIGNAL, ALL), (RMA, 'void', '*_put_signal_nbi', SIGNAL, ALL),
    (SIZES, 'void', 'put*', COPY, ALL), (SIZES, 'void', 'get*', COPY, ALL),
    (SIZES, 'void', 'put*_nbi', COPY, ALL), (SIZES, 'void', 'get*_nbi', COPY, ALL),
    (SIZES, 'void', 'iput*', STRIDED, ALL), (SIZES, 'void', 'iget*', STRIDED, ALL),
    (SIZES, 'void', 'put*_signal', SIGNAL, ALL), (SIZES, 'void', 'put*_signal_nbi', SIGNAL, ALL),
    (['mem'], 'void', 'put*', COPY, ALL), (['mem'], 'void', 'get*', COPY, ALL),
    (['mem'], 'void', 'put*_nbi', COPY, ALL), (['mem'], 'void', 'get*_nbi', COPY, ALL),
    (['mem'], 'void', 'put*_signal', SIGNAL, ALL), (['mem'], 'void', 'put*_signal_nbi', SIGNAL, ALL),

    (AMO_EXTENDED, 'T', '*_atomic_fetch', 'const T *, int', THREAD),
    (AMO_EXTENDED, 'void', '*_atomic_set', 'T *, T, int', THREAD),
    (['half'], 'T', '*_atomic_fetch', 'const T *, int', THREAD),
    (['half'], 'void', '*_atomic_set', 'T *, T, int', THREAD),
    (['half'], 'T', '*_atomic_swap', 'T *, T, int', THREAD),
    (['half', 'float', 'double'], 'void', 'x_*_atomic_add', 'T *, T, int', THREAD),
    (['half', 'float', 'double'], 'T', 'x_*_atomic_fetch_add', 'T *, T, int', THREAD),
    (AMO_EXTENDED, 'void', 'x_*_signal', 'T *, T, int', THREAD),
    (AMO_EXTENDED, 'T', '*_atomic_swap', 'T *, T, int', THREAD),
    (AMO, 'T', '*_atomic_compare_swap', 'T *, T, T, int', THREAD),
    (AMO, 'T', '*_atomic_fetch_inc', 'T *, int', THREAD),
    (AMO, 'void', '*_atomic_inc', 'T *, int', THREAD),
    (AMO, 'T', '*_atomic_fetch_add', 'T *, T, int', THREAD),
    (AMO, 'void', '*_atomic_add', 'T *, T, int', THREAD),
] + [(AMO_BITWISE, returns, '*_atomic_' + fetch + op, 'T *, T, int', THREAD)
     for op in ('and', 'or', 'xor') for fetch, returns in (('fetch_', 'T'), ('', 'void'))] + [

    (WAIT, 'void', '*_wait_until', 'T *, int, T', ONE_AND_STREAM),
    (WAIT, 'void', '*_wait_until_all', ARRAY + 'T', ONE_AND_STREAM),
    (WAIT, 'size_t', '*_wait_until_any', ARRAY + 'T', THREAD),
    (WAIT, 'size_t', '*_wait_until_some', SOME + 'T', THREAD),
    (WAIT, 'void', '*_wait_until_all_vector', ARRAY + 'T *', ONE_AND_STREAM),
    (WAIT, 'size_t', '*_wait_until_any_vector', ARRAY + 'T *', THREAD),
    (WAIT, 'size_t', '*_wait_until_some_vector', SOME + 'T *', THREAD),
    (WAIT, 'int', '*_test', 'T *, int, T', THREAD),
    (WAIT, 'int', '*_test_all', ARRAY + 'T', THREAD),
    (WAIT, 'size_t', '*_test_any', ARRAY + 'T', THREAD),
    (WAIT, 'size_t', '*_test_some', SOME + 'T', THREAD),
    (WAIT, 'int', '*_test_all_vector', ARRAY + 'T *', THREAD),
    (WAIT, 'size_t', '*_test_any_vector', ARRAY + 'T *', THREAD),
    (WAIT, 'size_t', '*_test_some_vector', SOME + 'T *', THREAD),

    (RMA, 'int', '*_broadcast', TEAM + ', int', ALL), (RMA, 'int', '*_fcollect', TEAM, ALL),
    (RMA, 'int', '*_alltoall', TEAM, ALL),
    (['mem'], 'int', 'broadcast*', TEAM + ', int', ALL), (['mem'], 'int', 'fcollect*', TEAM, ALL),
    (['mem'], 'int', 'alltoall*', TEAM, ALL),
] + [(REDUCE, 'int', '*_' + op + form, TEAM, ALL)
     for op in ('sum', 'prod', 'min', 'max') for form in ('_reduce', '_reducescatter')
] + [(REDUCE_BITS, 'int', '*_' + op + form, TEAM, ALL)
     for op in ('and', 'or', 'xor') for form in ('_reduce', '_reducescatter')]

# Of kernels alone.
GROUPS = [WARP, BLOCK]
QP = ', nvshmemx_qp_handle_t'
TYPED_KERNELS = [
    (RMA, 'void', 'qp_*_put', COPY + QP, GROUPS), (RMA, 'void', 'qp_*_get', COPY + QP, GROUPS),
    (RMA, 'void', 'qp_*_put_nbi', COPY + QP, GROUPS), (RMA, 'void', 'qp_*_get_nbi', COPY + QP, GROUPS),
    (RMA, 'void', 'qp_*_p', 'T *, T, int' + QP, THREAD), (RMA, 'T', 'qp_*_g', 'const T *, int' + QP, THREAD),
    (RMA, 'void', 'qp_*_put_signal', SIGNAL + QP, GROUPS),
    (RMA, 'void', 'qp_*_put_signal_nbi', SIGNAL + QP, GROUPS),
]

# (name, returns, arguments): of the host alone; of the host and of kernels; of kernels alone.
HOST = '''
nvshmem_init | void | void
nvshmem_init_thread | int | int, int *
nvshmem_query_thread | void | int *
nvshmem_finalize | void | void
nvshmem_global_exit | void | int
nvshmem_malloc | void * | size_t
nvshmem_calloc | void * | size_t, size_t
nvshmem_align | void * | size_t, size_t
nvshmem_free | void | void *
nvshmem_team_get_config | void | nvshmem_team_t, nvshmem_team_config_t *
nvshmem_team_split_strided | int | nvshmem_team_t, int, int, int, const nvshmem_team_config_t *, long, nvshmem_team_t *
nvshmem_team_split_2d | int | nvshmem_team_t, int, const nvshmem_team_config_t *, long, nvshmem_team_t *, const nvshmem_team_config_t *, long, nvshmem_team_t *
nvshmem_team_destroy | void | nvshmem_team_t
nvshmemx_team_get_uniqueid | int | nvshmemx_team_uniqueid_t *
nvshmemx_team_init | int | nvshmem_team_t *, nvshmem_team_config_t *, long, int, int
nvshmemx_init_attr | int | unsigned int, nvshmemx_init_attr_t *
nvshmemx_hostlib_init_attr | int | unsigned int, nvshmemx_init_attr_t *
nvshmemx_hostlib_finalize | void | void
nvshmemx_init_status | int | void
nvshmemx_get_uniqueid | int | nvshmemx_uniqueid_t *
nvshmemx_set_attr_uniqueid_args | int | int, int, const nvshmemx_uniqueid_t *, nvshmemx_init_attr_t *
nvshmemx_set_attr_mpi_comm_args | int | void *, nvshmemx_init_attr_t *
nvshmemx_buffer_register_symmetric | void * | void *, size_t, int
nvshmemx_buffer_register_symmetric_at_preferred_address | void * | void *, size_t, void *, int
nvshmemx_buffer_unregister_symmetric | int | void *, size_t
nvshmemx_buffer_register | int | void *, size_t
nvshmemx_buffer_unregister | int | void *
nvshmemx_buffer_unregister_all | void | void
nvshmemx_collective_launch_attr | int | const nvshmemx_collective_launch_attr_t *, const void *, void **
nvshmemx_status_string | const char * | int
nvshmemx_qp_create | int | int, nvshmemx_qp_handle_t **
nvshmemx_cumodule_init | int | CUmodule
nvshmemx_cumodule_finalize | int | CUmodule
nvshmemx_culibrary_init | int | CUlibrary
nvshmemx_culibrary_finalize | int | CUlibrary
nvshmemx_collective_launch | int | const void *, dim3, dim3, void **, size_t, cudaStream_t
nvshmemx_collective_launch_query_gridsize | int | const void *, dim3, void **, size_t, int *
nvshmemx_barrier_on_stream | int | nvshmem_team_t, cudaStream_t
nvshmemx_barrier_all_on_stream | void | cudaStream_t
nvshmemx_sync_on_stream | int | nvshmem_team_t, cudaStream_t | documented
nvshmemx_team_sync_on_stream | int | nvshmem_team_t, cudaStream_t
nvshmemx_sync_all_on_stream | void | cudaStream_t
nvshmemx_quiet_on_stream | void | cudaStream_t
nvshmemx_flush_on_stream | void | cudaStream_t
nvshmemx_region_start | int | nvshmemx_region_handle_t *, const nvshmemx_region_attrs_t *
nvshmemx_region_stop | int | nvshmemx_region_handle_t
nvshmemx_signal_op_on_stream | void | uint64_t *, uint64_t, int, int, cudaStream_t
nvshmemx_signal_wait_until_on_stream | void | uint64_t *, int, uint64_t, cudaStream_t
'''
BOTH = '''
nvshmem_my_pe | int | void
nvshmem_n_pes | int | void
nvshmem_ptr | void * | const void *, int
nvshmemx_mc_ptr | void * | nvshmem_team_t, const void *
nvshmem_info_get_version | void | int *, int *
nvshmem_info_get_name | void | char *
nvshmemx_vendor_get_version_info | void | int *, int *, int *
nvshmem_team_my_pe | int | nvshmem_team_t
nvshmem_team_n_pes | int | nvshmem_team_t
nvshmem_team_translate_pe | int | nvshmem_team_t, int, nvshmem_team_t
nvshmem_fence | void | void
nvshmem_quiet | void | void
nvshmem_barrier | int | nvshmem_team_t
nvshmem_barrier_all | void | void
nvshmem_sync | int | nvshmem_team_t | documented
nvshmem_team_sync | int | nvshmem_team_t
nvshmem_sync_all | void | void
nvshmem_signal_fetch | uint64_t | uint64_t *
nvshmem_signal_wait_until | uint64_t | uint64_t *, int, uint64_t
nvshmemx_signal_op | void | uint64_t *, uint64_t, int, int
nvshmemx_flush | void | void
nvshmemx_signal_counted_reset | void | uint64_t *
nvshmemx_signal_counted_load | uint64_t | const uint64_t *
nvshmemx_signal_counted_wait_until | void | const uint64_t *, uint64_t
nvshmemx_region_is_active | int | uint32_t, int *
nvshmemx_ask_smem | int | nvshmemx_smem_amount_t
'''
KERNELS = '\n'.join(
    'nvshmemx_barrier{0} | int | nvshmem_team_t\nnvshmemx_barrier_all{0} | void | void\n'
    'nvshmemx_sync{0} | int | nvshmem_team_t | documented\n'
    'nvshmemx_team_sync{0} | int | nvshmem_team_t\nnvshmemx_sync_all{0} | void | void'.format(ending)
    for ending in (WARP, BLOCK)) + '\n' + '\n'.join(
    'nvshmemx_qp_%s%s | void | int, nvshmemx_qp_handle_t *, int' % (what, ending)
    for what in ('quiet', 'fence') for ending in ('', WARP, BLOCK)) + '''
nvshmemx_flush_warp | void | void
nvshmemx_putmem_signal_counted_nbi_block | int | void *, const void *, size_t, uint64_t *, int
nvshmemx_region_start_block | int | nvshmemx_region_handle_t *, const nvshmemx_region_attrs_t *
nvshmemx_region_stop_block | int | nvshmemx_region_handle_t
nvshmemx_flush_block | void | void
nvshmemx_barrier_warpgroup | int | nvshmem_team_t
nvshmemx_double2_maxloc_reduce_block | int | nvshmem_team_t, double2 *, const double2 *, size_t
nvshmemx_give_smem | void | void *, size_t
nvshmemx_release_smem | void | void
nvshmemx_qp_signal_op | void | uint64_t *, uint64_t, int, int, nvshmemx_qp_handle_t
'''

# Constants: that they exist, and which differ.
CONSTANTS = [
    'NVSHMEM_CMP_EQ NVSHMEM_CMP_NE NVSHMEM_CMP_GT NVSHMEM_CMP_GE NVSHMEM_CMP_LT NVSHMEM_CMP_LE',
    'NVSHMEM_SIGNAL_SET NVSHMEM_SIGNAL_ADD',
    'NVSHMEM_THREAD_SINGLE NVSHMEM_THREAD_FUNNELED NVSHMEM_THREAD_SERIALIZED NVSHMEM_THREAD_MULTIPLE',
    'NVSHMEM_TEAM_INVALID NVSHMEM_TEAM_WORLD NVSHMEM_TEAM_SHARED NVSHMEMX_TEAM_NODE NVSHMEMX_TEAM_SAME_MYPE_NODE',
    'NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID',
    'NVSHMEMX_INIT_THREAD_PES NVSHMEMX_INIT_WITH_MPI_COMM NVSHMEMX_INIT_WITH_SHMEM '
    'NVSHMEMX_INIT_WITH_UNIQUEID',
    'NVSHMEM_STATUS_NOT_INITIALIZED NVSHMEM_STATUS_IS_BOOTSTRAPPED NVSHMEM_STATUS_IS_INITIALIZED '
    'NVSHMEM_STATUS_LIMITED_MPG NVSHMEM_STATUS_FULL_MPG NVSHMEM_STATUS_INVALID',
    'NVSHMEM_TEAM_WORLD NVSHMEM_TEAM_MC_SHARED', 'NVSHMEM_TEAM_WORLD_INDEX NVSHMEM_TEAM_MC_SHARED_INDEX',
    'NVSHMEMX_REGION_HINT_NONE NVSHMEMX_REGION_HINT_BATCH_RMA',
    'NVSHMEM_TEAM_WORLD_INDEX NVSHMEM_TEAM_SHARED_INDEX NVSHMEM_TEAM_NODE_INDEX NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX '
    'NVSHMEM_TEAM_INDEX_MAX',
    'NVSHMEMX_SUCCESS NVSHMEMX_ERROR_INVALID_VALUE NVSHMEMX_ERROR_OUT_OF_MEMORY NVSHMEMX_ERROR_NOT_SUPPORTED '
    'NVSHMEMX_ERROR_SYMMETRY NVSHMEMX_ERROR_GPU_NOT_SELECTED NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED '
    'NVSHMEMX_ERROR_INTERNAL NVSHMEMX_ERROR_SENTINEL',
    'NVSHMEMX_QP_HOST NVSHMEMX_QP_DEFAULT NVSHMEMX_QP_ANY', 'NVSHMEMX_QP_HOST NVSHMEMX_QP_ALL',
    'NVSHMEMX_PE_INVALID NVSHMEMX_PE_ANY', 'NVSHMEMX_PE_INVALID NVSHMEMX_PE_ALL',
    'NVSHMEM_MAJOR_VERSION NVSHMEM_MINOR_VERSION', 'NVSHMEM_MAX_NAME_LEN',
    'NVSHMEM_VENDOR_MAJOR_VERSION NVSHMEM_VENDOR_PATCH_VERSION', 'NVSHMEM_VENDOR_MINOR_VERSION',
]


def typed(cuda):
    """[(name, returns, arguments)]"""
    for types, returns, name, arguments, endings in TYPED + (TYPED_KERNELS if cuda else []):
        for ending in [''] + endings:
            if ending in (WARP, BLOCK) and not cuda:
                continue
            for t in types:
                c = C.get(t, 'void')
                prefix = 'nvshmemx_' if ending or QP in arguments else 'nvshmem_'
                full = (prefix + name.replace('*', t) + ending).replace('nvshmem_x_', 'nvshmemx_')
                told = arguments + (', cudaStream_t' if ending == STREAM else '')
                yield full, c if returns == 'T' else returns, told.replace('T *', c + ' *').replace(
                    ' T,', ' %s,' % c) if 'T' not in told.replace('T *', '').replace(
                        ' T,', '') else ', '.join(
                            c if part == 'T' else part.replace('T *', c + ' *')
                            for part in told.split(', ')), t


def untyped(cuda):
    for line in (HOST + BOTH + (KERNELS if cuda else '')).strip().split('\n'):
        parts = [part.strip() for part in line.split('|')]
        if len(parts) > 1:
            yield parts[0], parts[1], parts[2], parts[3:] == ['documented']


C_MACROS = '''#define FITS(function, ...) _Static_assert(_Generic(&(function), __VA_ARGS__: 1, default: 0), \\
                                           "the prototype of " #function)
#define DIFFER(a, b) _Static_assert((a) != (b), #a " and " #b)
'''
CPP_MACROS = '''#include <type_traits>
#define FITS(function, ...) static_assert(std::is_same<decltype(&function), __VA_ARGS__>::value, \\
                                          "the prototype of " #function)
#define DIFFER(a, b) static_assert((long)(a) != (long)(b), #a " and " #b)
'''


def program(cuda):
    out = ['/* Generated by tests/nvshmem/prototypes.py. */', '#include <nvshmem.h>',
           '#include <nvshmemx.h>', '#ifdef __cplusplus', CPP_MACROS + '#else', C_MACROS + '#endif']
    half = []
    for name, returns, arguments, t in typed(cuda):
        line = 'FITS(%s, %s (*)(%s));' % (name, returns, arguments)
        (half if t in HALF else out).append(line)
    out += ['#ifdef __cplusplus'] * (not cuda) + half + ['#endif'] * (not cuda)
    for name, returns, arguments, documented in untyped(cuda):
        line = 'FITS(%s, %s (*)(%s));' % (name, returns, arguments)
        out += ['#ifndef NVSHMEM_OWN_HEADERS', line, '#endif'] if documented else [line]
    for group in CONSTANTS:
        names = group.split()
        out += ['DIFFER(%s, %s);' % (a, b) for i, a in enumerate(names) for b in names[i + 1:]]
        out += ['DIFFER(%s, -1000);' % a for a in names]
    out += ['int main(void)', '{',
            '    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;',
            '    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;',
            '    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;',
            '    attr.mpi_comm = &id;', '    config.num_contexts = 1;',
            '    return sizeof NVSHMEM_VENDOR_STRING == 0 || !attr.mpi_comm || !config.num_contexts;', '}']
    return '\n'.join(out) + '\n'


if __name__ == '__main__':
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write(program(sys.argv[1] == 'cuda'))

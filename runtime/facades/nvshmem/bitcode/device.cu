/* libnvshmem_device.bc: the functions of NVSHMEM's device library that Triton's kernels call, by
 * the names and types with which torch and Triton declare them. Compiled by clang to LLVM's
 * bitcode, for the oldest GPU, so that one file serves all.
 *
 * Triton calls a function in every thread of a block, and declares each with a result of 32 bits.
 * Therefore all of these return one: a status, 0 where it is good. A function that NVSHMEM has for
 * one thread and that is collective (barrier_all, sync_all, TYPE_OP_reduce) is here one call of the
 * block: all its threads call it together.
 *
 * The state of the job is a variable of the module that a program loads: gshmem_cumodule_init
 * (nvshmemx_cumodule_init) fills it in. Its first value says which version it is, because the
 * kernel may have been compiled long ago. */
#include "cuda.h"

#include "gshmem/device/state.h"

extern "C" __constant__ __attribute__((used)) struct gshmem_device_state gshmem_device_here = {
    sizeof(struct gshmem_device_state), GSHMEM_DEVICE_STATE_VERSION, {}, 0, 0};

#include "gshmem_device.h"

/* The numbers of NVSHMEM (9 and 10), those that torch's documentation has (0 and 5), and those of
 * GSHMEM. Another number is left as it is: the call refuses it. */
BITCODE_DEVICE int signal_operation(int number)
{
    if (number == 9 || number == 0)
        return GSHMEM_SIGNAL_SET;
    return number == 10 || number == 5 ? GSHMEM_SIGNAL_ADD : number;
}

#define FUNCTION extern "C" __device__ int

FUNCTION nvshmem_my_pe(void)
{
    return gshmem_my_pe();
}

FUNCTION nvshmem_n_pes(void)
{
    return gshmem_n_pes();
}

extern "C" __device__ void *nvshmem_ptr(const void *dest, int pe)
{
    return gshmem_ptr(dest, pe);
}

extern "C" __device__ void *nvshmem_mc_ptr(gshmem_team_t team, const void *ptr)
{
    return gshmem_mc_ptr(team, ptr);
}

extern "C" __device__ void *nvshmemx_mc_ptr(gshmem_team_t team, const void *ptr)
{
    return gshmem_mc_ptr(team, ptr);
}

/* ---- Order, and all PEs ---- */

FUNCTION nvshmem_fence(void)
{
    return gshmem_fence();
}

FUNCTION nvshmem_quiet(void)
{
    return gshmem_quiet();
}

FUNCTION nvshmem_barrier_all(void)
{
    return gshmem_barrier_all_block();
}

FUNCTION nvshmem_sync_all(void)
{
    return gshmem_sync_all_block();
}

/* ---- Waits: as NVSHMEM's, but for the result ---- */

FUNCTION nvshmem_int_wait_until(int *ivar, int cmp, int value)
{
    return gshmem_int_wait_until(ivar, cmp, value);
}

FUNCTION nvshmem_longlong_wait_until(long long *ivar, int cmp, long long value)
{
    return gshmem_longlong_wait_until(ivar, cmp, value);
}

FUNCTION nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value)
{
    return (int)gshmem_signal_wait_until(sig_addr, cmp, value);
}

/* ---- Data ---- */

FUNCTION nvshmemx_putmem_block(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_putmem_block(dest, source, bytes, pe);
}

FUNCTION nvshmemx_getmem_block(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_getmem_block(dest, source, bytes, pe);
}

FUNCTION nvshmemx_getmem_nbi_block(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_getmem_nbi_block(dest, source, bytes, pe);
}

FUNCTION nvshmem_putmem_block(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_putmem_block(dest, source, bytes, pe);
}

FUNCTION nvshmem_getmem_block(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_getmem_block(dest, source, bytes, pe);
}

FUNCTION nvshmemx_putmem_signal_block(void *dest, const void *source, size_t bytes,
                                      uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
{
    return gshmem_putmem_signal_block(dest, source, bytes, sig_addr, signal,
                                      signal_operation(sig_op), pe);
}

/* By each thread that calls it, as NVSHMEM's. */
FUNCTION nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
{
    return gshmem_signal_op(sig_addr, signal, signal_operation(sig_op), pe);
}

FUNCTION nvshmemx_alltoallmem_block(gshmem_team_t team, void *dest, const void *source,
                                    size_t bytes)
{
    return gshmem_alltoallmem_block(team, dest, source, bytes);
}

FUNCTION nvshmemx_broadcastmem_block(gshmem_team_t team, void *dest, const void *source,
                                     size_t bytes, int root)
{
    return gshmem_broadcastmem_block(team, dest, source, bytes, root);
}

/* ---- Reductions: nvshmem_TYPE_OP_reduce ---- */

#define SMALL(type, number)                                                                        \
    template <> __host__ __device__ constexpr enum gshmem_type gshmem_type_of<type>(void)          \
    {                                                                                              \
        return number;                                                                             \
    }
SMALL(__half, GSHMEM_TYPE_HALF)
SMALL(__nv_bfloat16, GSHMEM_TYPE_BFLOAT16)

#define REDUCE(name, type, operation)                                                              \
    FUNCTION nvshmem_##name##_##operation##_reduce(gshmem_team_t team, type *dest,                 \
                                                   const type *source, size_t n)                   \
    {                                                                                              \
        return gshmem_typed_##operation##_reduce_block<type>(team, dest, source, n);               \
    }                                                                                              \
    FUNCTION nvshmemx_##name##_##operation##_reduce_block(gshmem_team_t team, type *dest,          \
                                                          const type *source, size_t n)            \
    {                                                                                              \
        return gshmem_typed_##operation##_reduce_block<type>(team, dest, source, n);               \
    }
#define REDUCES(name, type)                                                                        \
    REDUCE(name, type, sum)                                                                        \
    REDUCE(name, type, prod)                                                                       \
    REDUCE(name, type, min)                                                                        \
    REDUCE(name, type, max)
REDUCES(int8, int8_t)
REDUCES(int16, int16_t)
REDUCES(int32, int32_t)
REDUCES(int64, int64_t)
REDUCES(uint8, uint8_t)
REDUCES(uint16, uint16_t)
REDUCES(uint32, uint32_t)
REDUCES(uint64, uint64_t)
REDUCES(half, __half)
REDUCES(bfloat16, __nv_bfloat16)
REDUCES(float, float)
REDUCES(double, double)

/* Collectives of blocks that a switch between GPUs takes a part in; for tests/sass/multicast. */
#include <gshmem/device/half.h>
#include <cuda_bf16.h>

#define REDUCE(name, type, operation)                                                              \
    __global__ void name(gshmem_status_t *status, type *dest, const type *source, size_t n)        \
    {                                                                                              \
        *status = gshmem_typed_##operation##_block(GSHMEM_TEAM_WORLD, dest, source, n);            \
    }

#ifndef WITHOUT_SWITCH
REDUCE(sum_float, float, sum_reduce)
REDUCE(sum_double, double, sum_reduce)
REDUCE(sum_half, __half, sum_reduce)
REDUCE(min_half, __half, min_reduce)
REDUCE(max_bfloat16, __nv_bfloat16, max_reduce)
REDUCE(sum_bfloat16, __nv_bfloat16, sum_reducescatter)
REDUCE(sum_int, int, sum_reduce)
REDUCE(min_int, int, min_reduce)
REDUCE(max_uint, unsigned, max_reduce)
REDUCE(and_uint, unsigned, and_reduce)
REDUCE(sum_long, long long, sum_reducescatter)
REDUCE(min_long, long long, min_reduce)
REDUCE(max_ulong, unsigned long long, max_reduce)
REDUCE(xor_ulong, unsigned long long, xor_reduce)

__global__ void spread(gshmem_status_t *status, void *dest, const void *source, size_t bytes)
{
    status[0] = gshmem_broadcastmem_block(GSHMEM_TEAM_WORLD, dest, source, bytes, 0);
    status[1] = gshmem_fcollectmem_block(GSHMEM_TEAM_WORLD, dest, source, bytes);
}
#endif

/* What the switch does not know, or for whom it is not. */
REDUCE(prod_float, float, prod_reduce)
REDUCE(min_float, float, min_reduce)
REDUCE(sum_short, short, sum_reduce)

__global__ void alone(gshmem_status_t *status, float *dest, const float *source, size_t n, void *to)
{
    status[0] = gshmem_typed_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, n);
    status[1] = gshmem_typed_sum_reduce_warp(GSHMEM_TEAM_WORLD, dest, source, n);
    status[2] = gshmem_broadcastmem_warp(GSHMEM_TEAM_WORLD, to, source, n, 0);
    *(void **)to = gshmem_mc_ptr(GSHMEM_TEAM_WORLD, dest);
}

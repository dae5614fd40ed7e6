/* A kernel that calls each function of libnvshmem_device.bc, declared as Triton declares it: with a
 * result of 32 bits, by all threads of a block. clang compiles it, without CUDA's headers. What it
 * finds is in `out`, for foreign.cu to look at. */
#include "runtime/facades/nvshmem/bitcode/cuda.h"

#include "functions.h"

typedef long long pointer; /* Triton has numbers */

#define FUNCTION extern "C" __device__ int
FUNCTION nvshmem_my_pe(void);
FUNCTION nvshmem_n_pes(void);
FUNCTION nvshmem_fence(void);
FUNCTION nvshmem_quiet(void);
FUNCTION nvshmem_barrier_all(void);
FUNCTION nvshmem_sync_all(void);
extern "C" __device__ pointer nvshmem_ptr(pointer, int);
extern "C" __device__ pointer nvshmem_mc_ptr(int, pointer);
FUNCTION nvshmem_int_wait_until(pointer, int, int);
FUNCTION nvshmem_longlong_wait_until(pointer, int, long long);
FUNCTION nvshmem_signal_wait_until(pointer, int, unsigned long long);
FUNCTION nvshmem_putmem_block(pointer, pointer, long long, int);
FUNCTION nvshmem_getmem_block(pointer, pointer, long long, int);
FUNCTION nvshmemx_putmem_block(pointer, pointer, long long, int);
FUNCTION nvshmemx_getmem_block(pointer, pointer, long long, int);
FUNCTION nvshmemx_getmem_nbi_block(pointer, pointer, long long, int);
FUNCTION nvshmemx_putmem_signal_block(pointer, pointer, long long, pointer, unsigned long long, int,
                                      int);
FUNCTION nvshmemx_signal_op(pointer, unsigned long long, int, int);
FUNCTION nvshmemx_alltoallmem_block(int, pointer, pointer, long long);
FUNCTION nvshmemx_broadcastmem_block(int, pointer, pointer, long long, int);
#define X(name, type)                                                                              \
    FUNCTION nvshmem_##name##_sum_reduce(int, pointer, pointer, long long);                        \
    FUNCTION nvshmem_##name##_prod_reduce(int, pointer, pointer, long long);                       \
    FUNCTION nvshmem_##name##_min_reduce(int, pointer, pointer, long long);                        \
    FUNCTION nvshmem_##name##_max_reduce(int, pointer, pointer, long long);
REDUCED(X)
#undef X

enum { SET = 9, ADD = 10, EQ = 0, GE = 5 };

extern "C" __global__ void functions(char *heap, int *out)
{
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n;
    const int left = (me + n - 1) % n, thread = (int)threadIdx.x;
    const pointer at = (pointer)heap;
    int wrong = 0, *const mine = (int *)(heap + SOURCE);

    for (int i = thread; i < INTS; i += (int)blockDim.x)
        mine[i] = me * 1000 + i;
    if (thread == 0) {
        out[ME] = me;
        out[ALL] = n;
        out[OWN] = nvshmem_ptr(at, me) == at;
        out[OUTSIDE] = nvshmem_ptr(at, n) == 0 && nvshmem_ptr(at, -1) == 0;
        out[MULTICAST] = nvshmem_mc_ptr(0, at) == 0;
    }
    wrong |= nvshmemx_putmem_block(at + PUT, at + SOURCE, 4 * INTS, right);
    wrong |= nvshmem_fence();
    wrong |= nvshmem_putmem_block(at + PUT_AGAIN, at + SOURCE, 4 * INTS, right);
    wrong |= nvshmem_barrier_all();
    wrong |= nvshmemx_getmem_block(at + GOT, at + SOURCE, 4 * INTS, left);
    wrong |= nvshmem_getmem_block(at + GOT_AGAIN, at + SOURCE, 4 * INTS, left);
    wrong |= nvshmemx_getmem_nbi_block(at + GOT_LATER, at + SOURCE, 4 * INTS, right);
    wrong |= nvshmem_quiet();
    wrong |= nvshmem_sync_all();

    wrong |= nvshmemx_putmem_signal_block(at + SIGNALLED, at + SOURCE, 4 * INTS, at + SIGNAL, 5,
                                          SET, right);
    wrong |= nvshmem_fence();
    wrong |= nvshmemx_putmem_signal_block(at + SIGNALLED, at + SOURCE, 4 * INTS, at + SIGNAL, 2,
                                          ADD, right);
    if (nvshmem_signal_wait_until(at + SIGNAL, GE, 7) != 7)
        wrong |= 256;
    wrong |= nvshmemx_signal_op(at + COUNT, 1, ADD, right); /* by each thread */
    if (nvshmem_signal_wait_until(at + COUNT, EQ, blockDim.x) != (int)blockDim.x)
        wrong |= 512;
    wrong |= nvshmemx_putmem_block(at + INT, at + SOURCE + 4, 4, right);
    wrong |= nvshmem_int_wait_until(at + INT, EQ, left * 1000 + 1);
    wrong |= nvshmemx_putmem_block(at + LONGLONG, at + MINUS, 8, right);
    wrong |= nvshmem_longlong_wait_until(at + LONGLONG, EQ, -1 - (1LL << 40));

    wrong |= nvshmemx_alltoallmem_block(0, at + EXCHANGED, at + SOURCE, 4);
    wrong |= nvshmemx_broadcastmem_block(0, at + BROADCAST, at + SOURCE, 4 * INTS, n - 1);
    pointer next = at + REDUCTIONS;
#define X(name, type)                                                                              \
    wrong |= nvshmem_##name##_sum_reduce(0, next + 8 * REDUCE, next, REDUCE);                      \
    wrong |= nvshmem_##name##_prod_reduce(0, next + 16 * REDUCE, next, REDUCE);                    \
    wrong |= nvshmem_##name##_min_reduce(0, next + 24 * REDUCE, next, REDUCE);                     \
    wrong |= nvshmem_##name##_max_reduce(0, next + 32 * REDUCE, next, REDUCE);                     \
    next += 40 * REDUCE;
    REDUCED(X)
#undef X
    if (wrong)
        out[WRONG] = wrong;
}

/* One operation each, whose machine code tests/sass/count goes through. -DPLANT=… puts a mistake
 * before it, which has to be found. */
#include <gshmem.h>

enum plant { NOTHING, FENCE, HOST_LOAD, HOST_LOAD_WEAK, SPILL };
#ifndef PLANT
#define PLANT NOTHING
#endif

__device__ int sink[32];

static __device__ __forceinline__ void plant(int pe)
{
    if (PLANT == FENCE)
        __threadfence_system();
    if (PLANT == HOST_LOAD && gshmem_load_relaxed(gshmem_device_here.ctx.job->failure))
        sink[0] = 1;
    if (PLANT == HOST_LOAD_WEAK && *gshmem_device_here.ctx.channel->ring.tail)
        sink[0] = 1;
    if (PLANT == SPILL) {
        volatile int local[32];
        local[pe & 31] = pe;
        sink[0] = local[pe >> 1 & 31];
    }
}

extern "C" __global__ void put_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    plant(pe);
    gshmem_putmem_nbi(dest, source, bytes, pe);
}

extern "C" __global__ void put_8_nbi(void *dest, const void *source, int pe)
{
    plant(pe);
    gshmem_putmem_nbi(dest, source, 8, pe);
}

extern "C" __global__ void put_nbi_block(void *dest, const void *source, size_t bytes, int pe)
{
    plant(pe);
    gshmem_putmem_nbi_block(dest, source, bytes, pe);
}

extern "C" __global__ void put_signal_nbi(void *dest, const void *source, size_t bytes,
                                          uint64_t *flag, int pe)
{
    plant(pe);
    gshmem_putmem_signal_nbi(dest, source, bytes, flag, 1, GSHMEM_SIGNAL_ADD, pe);
}

extern "C" __global__ void get_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    plant(pe);
    gshmem_getmem_nbi(dest, source, bytes, pe);
}

extern "C" __global__ void p(long *dest, long value, int pe)
{
    plant(pe);
    gshmem_long_p(dest, value, pe);
}

extern "C" __global__ void signal(uint64_t *flag, int pe)
{
    plant(pe);
    gshmem_signal_set(flag, 1, pe);
}

extern "C" __global__ void atomic_add(long *dest, long value, int pe)
{
    plant(pe);
    gshmem_long_atomic_add(dest, value, pe);
}

extern "C" __global__ void fence(int pe)
{
    plant(pe);
    gshmem_fence();
}

extern "C" __global__ void quiet(int pe)
{
    plant(pe);
    gshmem_quiet();
}

extern "C" __global__ void g(long *out, const long *source, int pe)
{
    plant(pe);
    *out = gshmem_long_g(source, pe);
}

extern "C" __global__ void fetch_add(long *out, long *dest, long value, int pe)
{
    plant(pe);
    *out = gshmem_long_atomic_fetch_add(dest, value, pe);
}

extern "C" __global__ void wait(uint64_t *flag, uint64_t value, int pe)
{
    plant(pe);
    gshmem_signal_wait_until(flag, GSHMEM_CMP_GE, value);
}

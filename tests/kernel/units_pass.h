/* The body of each unit: UNITS_PASS is what its function is called. The kernel is static, and so is
 * what it knows of the job. */
#include "kernel.h"
#include "units.h"

static __global__ void units_pass_kernel(uint64_t *words, uint64_t *signal, int which, uint64_t value,
                                         struct found *found)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes();

    EXPECT(found, gshmem_uint64_p(&words[which], value + me, (me + 1) % n), GSHMEM_OK);
    EXPECT(found, gshmem_fence(), GSHMEM_OK);
    EXPECT(found, gshmem_signal_add(&signal[which], 1, (me + 1) % n), GSHMEM_OK);
    EXPECT(found, gshmem_signal_wait_until(&signal[which], GSHMEM_CMP_EQ, 1), 1);
    EXPECT(found, words[which], value + (me + n - 1) % n);
}

void UNITS_PASS(uint64_t *words, uint64_t *signal, int which, uint64_t value)
{
    struct found *found = shared_array<struct found>(1);

    units_pass_kernel<<<1, 1>>>(words, signal, which, value, found);
    CHECK_FOUND(found);
    CHECK_CUDA(cudaFree(found));
}

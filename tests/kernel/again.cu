/* Kernels before a job, in it, after it, and in the next one: they find the job that there is, or say
 * that there is none. */
#include "kernel.h"

__global__ void without_job(uint64_t *word, struct found *found)
{
    EXPECT(found, gshmem_my_pe(), -1);
    EXPECT(found, gshmem_n_pes(), -1);
    EXPECT(found, gshmem_ptr(word, 0) == NULL, true);
    EXPECT(found, gshmem_putmem(word, word, sizeof *word, 0), GSHMEM_ERR_STATE);
    EXPECT(found, gshmem_getmem_nbi(word, word, sizeof *word, 0), GSHMEM_ERR_STATE);
    EXPECT(found, gshmem_putmem_block(word, word, sizeof *word, 0), GSHMEM_ERR_STATE);
    EXPECT(found, gshmem_signal_set(word, 1, 0), GSHMEM_ERR_STATE);
    EXPECT(found, gshmem_quiet(), GSHMEM_ERR_STATE);
}

__global__ void with_job(uint64_t *words, uint64_t *draft, uint64_t *signal, int job,
                         struct found *found)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes();

    draft[threadIdx.x] = mixed2(job, me * 100 + threadIdx.x);
    EXPECT(found, gshmem_putmem_signal_nbi(&words[threadIdx.x], &draft[threadIdx.x], sizeof *words,
                                           signal, 1, GSHMEM_SIGNAL_ADD, (me + 1) % n),
           GSHMEM_OK);
    EXPECT(found, gshmem_signal_wait_until(signal, GSHMEM_CMP_GE, blockDim.x), blockDim.x);
    EXPECT(found, words[threadIdx.x], mixed2(job, (me + n - 1) % n * 100 + threadIdx.x));
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

int main()
{
    struct found *found = shared_array<struct found>(1);
    uint64_t *own = shared_array<uint64_t>(32);

    for (int job = 1; job <= 3; job++) {
        without_job<<<2, 4>>>(own, found);
        CHECK_FOUND(found);
        CHECK_OK(gshmem_init());
        uint64_t *words = symmetric_array<uint64_t>(32), *signal = symmetric_array<uint64_t>(1);
        with_job<<<1, 32>>>(words, own, signal, job, found);
        CHECK_FOUND(found);
        CHECK_OK(gshmem_free(words));
        CHECK_OK(gshmem_free(signal));
        CHECK_OK(gshmem_finalize());
    }
    without_job<<<2, 4>>>(own, found);
    CHECK_FOUND(found);
    CHECK_CUDA(cudaFree(found));
    CHECK_CUDA(cudaFree(own));
    return 0;
}

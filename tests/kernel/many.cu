/* Many at once: more commands than a channel has slots, more threads that wait than there are
 * responses, several kernels in streams, and gets after puts among all of it. */
#include "kernel.h"

/* ---- A channel that is full -------------------------------------------------------------------- */

/* Each thread issues more than all slots there are, without waiting for any. */
__global__ void fill(uint64_t *words, const uint64_t *source, int each, int pe, struct found *found)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;

    for (int i = 0; i < each; i++)
        EXPECT(found, gshmem_putmem_nbi(&words[thread * each + i], &source[thread * each + i],
                                        sizeof *words, pe),
               GSHMEM_OK);
}

__global__ void complete(struct found *found)
{
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static void test_full(struct found *found)
{
    const int blocks = 6, threads = 8, each = FEW ? 1100 : 3000, n = blocks * threads * each;
    uint64_t *words = symmetric_array<uint64_t>(n), *source = shared_array<uint64_t>(n);
    int me = gshmem_my_pe(), pes = gshmem_n_pes(), from = (me + pes - 1) % pes;

    for (int i = 0; i < n; i++)
        source[i] = mixed2(me, i);
    fill<<<blocks, threads>>>(words, source, each, (me + 1) % pes, found);
    complete<<<1, 1>>>(found); /* in the same stream: what another kernel had issued */
    CHECK_FOUND(found);
    CHECK_OK(gshmem_barrier_all());
    copy_out(source, words, n);
    for (int i = 0; i < n; i++)
        CHECK_EQ(source[i], mixed2(from, i));
    CHECK_OK(gshmem_free(words));
    CHECK_CUDA(cudaFree(source));
}

/* ---- More that wait than there are responses --------------------------------------------------- */

/* All threads get at once, and each has to have what is its own. */
__global__ void get_all(const uint64_t *words, int n, uint64_t *own, int rounds, struct found *found)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int pes = gshmem_n_pes();

    for (int r = 0; r < rounds; r++) {
        int pe = (thread + r) % pes;
        uint64_t at = mixed2(thread, r) % n;

        own[thread] = 0;
        if (r % 2)
            own[thread] = gshmem_uint64_g(&words[at], pe);
        else
            EXPECT(found, gshmem_getmem(&own[thread], &words[at], sizeof *own, pe), GSHMEM_OK);
        EXPECT(found, own[thread], mixed2(pe, at));
    }
}

static void test_responses(struct found *found)
{
    const int n = 1000, blocks = 8, threads = 256;
    uint64_t *words = symmetric_array<uint64_t>(n);
    uint64_t *own = shared_array<uint64_t>(blocks * threads);

    for (int i = 0; i < n; i++)
        own[i] = mixed2(gshmem_my_pe(), i);
    copy_in(words, own, n);
    CHECK_OK(gshmem_barrier_all());
    get_all<<<blocks, threads>>>(words, n, own, FEW ? 2 : 6, found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
    CHECK_CUDA(cudaFree(own));
}

/* ---- Streams ----------------------------------------------------------------------------------- */

#define STREAMS 4

/* Puts a block of data, reads it back, and goes on to the next, each stream in its own part. */
__global__ void back_and_forth(uint64_t *part, uint64_t *own, uint64_t salt, int rounds, int pe,
                               struct found *found)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t *at = part + thread * 8, *mine = own + thread * 16, *back = mine + 8;

    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < 8; i++)
            mine[i] = mixed2(salt + r, i);
        EXPECT(found, gshmem_putmem(at, mine, 8 * sizeof *mine, pe), GSHMEM_OK);
        EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        EXPECT(found, gshmem_getmem(back, at, 8 * sizeof *back, pe), GSHMEM_OK);
        for (int i = 0; i < 8; i++)
            EXPECT(found, back[i], mine[i]);
    }
}

static void test_streams(struct found *found)
{
    const int blocks = 2, threads = 16, part = blocks * threads * 8;
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    uint64_t *words = symmetric_array<uint64_t>((size_t)n * STREAMS * part);
    uint64_t *own = shared_array<uint64_t>(2 * STREAMS * part);
    cudaStream_t stream[STREAMS];

    for (int i = 0; i < STREAMS; i++) {
        CHECK_CUDA(cudaStreamCreate(&stream[i]));
        back_and_forth<<<blocks, threads, 0, stream[i]>>>(words + (me * STREAMS + i) * part,
                                                          own + 2 * i * part, i, FEW ? 10 : 50, (me + i) % n,
                                                          found);
    }
    /* The host has its own part in it meanwhile. */
    for (int i = 0; i < 200; i++) {
        uint64_t word = 0;
        CHECK_OK(gshmem_getmem(&word, words, sizeof word, (me + 1) % n));
    }
    CHECK_FOUND(found);
    for (int i = 0; i < STREAMS; i++)
        CHECK_CUDA(cudaStreamDestroy(stream[i]));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
    CHECK_CUDA(cudaFree(own));
}

/* ---- Signals to all ---------------------------------------------------------------------------- */

/* Each thread of each PE puts a word with a signal to each PE; block 0 there waits for all. */
__global__ void all_to_all(uint64_t *words, uint64_t *signal, uint64_t *source, struct found *found)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const int n = gshmem_n_pes(), me = gshmem_my_pe();

    source[thread] = mixed2(me, thread);
    for (int pe = 0; pe < n; pe++)
        EXPECT(found, gshmem_putmem_signal_nbi(&words[me * threads + thread], &source[thread],
                                               sizeof *words, signal, 1, GSHMEM_SIGNAL_ADD, pe),
               GSHMEM_OK);
    uint64_t all = (uint64_t)n * threads;
    EXPECT(found, gshmem_signal_wait_until(signal, GSHMEM_CMP_GE, all), all);
    for (int pe = 0; pe < n; pe++)
        EXPECT(found, words[pe * threads + thread], mixed2(pe, thread));
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static void test_all_to_all(struct found *found)
{
    const int blocks = 3, threads = 40;
    uint64_t *words = symmetric_array<uint64_t>((size_t)gshmem_n_pes() * blocks * threads);
    uint64_t *signal = symmetric_array<uint64_t>(1);
    uint64_t *source = shared_array<uint64_t>(blocks * threads);

    all_to_all<<<blocks, threads>>>(words, signal, source, found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_free(words));
    CHECK_OK(gshmem_free(signal));
    CHECK_CUDA(cudaFree(source));
}

int main()
{
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);

    test_full(found);
    test_responses(found);
    test_streams(found);
    test_all_to_all(found);
    CHECK_CUDA(cudaFree(found));
    CHECK_OK(gshmem_finalize());
    return 0;
}

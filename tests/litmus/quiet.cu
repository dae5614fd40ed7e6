/* What a quiet completes: all that its PE had issued before, from whichever thread.
 *
 *  - Another block quiets: A puts, tells B through a flag of the device, B quiets, B signals. Now and
 *    then A puts more than a proxy takes from a channel before it looks at others.
 *  - Another block fences: the same, with what a fence promises.
 *  - Store buffering: two PEs write to each other, quiet, and read: one of them sees the other's.
 *  - Get after put: what was put and quieted is what a get brings back; and many at once, each on a
 *    context of its own or on the one they share. */
#include "litmus.h"

#define SLOTS 8u
#define SPACE 512u
#define MANY  400u /* puts of one round, at most */

/* ---- Another block quiets --------------------------------------------------------------------- */

struct relay {
    char *box;       /* symmetric: [SLOTS] of SPACE */
    uint64_t *flag;  /* symmetric: [SLOTS] */
    uint64_t *taken; /* symmetric */
    char *draft;     /* [SLOTS] of SPACE */
    int *told;       /* of the device: rounds that A has issued, and that B has quieted; that these
                      * are over A knows from the other PE, but ThreadSanitizer only from here */
    int to, from;
};

static __device__ size_t relay_bytes(uint64_t seed, int r)
{
    return 1 + mixed2(seed, r) % (SPACE - 1);
}

static __device__ char relay_byte(uint64_t seed, int r, size_t i)
{
    return (char)(mixed2(seed, r) + i * 7);
}

/* A: many threads put, each its own byte range, and then one of them tells B. */
template <bool fences>
static __device__ void relay_put(struct relay m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        size_t bytes = relay_bytes(seed, r), at = r % SLOTS * SPACE;
        size_t puts = r % 64 == 0 ? MANY : blockDim.x, each = (bytes + puts - 1) / puts;

        if (threadIdx.x == 0 && r > (int)SLOTS)
            gshmem_signal_wait_until(m.taken, GSHMEM_CMP_GE, r - SLOTS);
        while (threadIdx.x == 0 && atomicAdd(m.told + 1, 0) < r - (int)SLOTS)
            ;
        if (fences && threadIdx.x == 0 && r % SLOTS == 0) /* the draft is free: for ThreadSanitizer */
            EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        __threadfence();
        __syncthreads();
        for (size_t mine = threadIdx.x * each; mine < bytes; mine += blockDim.x * each) {
            size_t n = each < bytes - mine ? each : bytes - mine;
            for (size_t i = mine; i < mine + n; i++)
                m.draft[at + i] = relay_byte(seed, r, i);
            EXPECT(found, gshmem_putmem_nbi(m.box + at + mine, m.draft + at + mine, n, m.to),
                   GSHMEM_OK);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(m.told, r);
        }
    }
}

template <bool fences>
static __device__ void relay_order(struct relay m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        while (atomicAdd(m.told, 0) < r)
            ;
        __threadfence();
        litmus_delay(seed, r);
        EXPECT(found, fences ? gshmem_fence() : gshmem_quiet(), GSHMEM_OK);
        __threadfence();
        atomicExch(m.told + 1, r);
        EXPECT(found, gshmem_signal_set(m.flag + r % SLOTS, r, m.to), GSHMEM_OK);
    }
}

static __device__ void relay_check(struct relay m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        size_t bytes = relay_bytes(seed, r), at = r % SLOTS * SPACE;

        EXPECT(found, gshmem_signal_wait_until(m.flag + r % SLOTS, GSHMEM_CMP_EQ, r), r);
        for (size_t i = 0; i < bytes; i++)
            EXPECT(found, m.box[at + i], relay_byte(seed, r, i));
        EXPECT(found, gshmem_signal_set(m.taken, r, m.from), GSHMEM_OK);
    }
}

template <bool fences>
__global__ void relay(struct relay m, uint64_t seed, int rounds, struct found *found)
{
    if (blockIdx.x == 0)
        relay_put<fences>(m, seed, rounds, found);
    else if (blockIdx.x == 1 && threadIdx.x == 0)
        relay_order<fences>(m, seed, rounds, found);
    else if (blockIdx.x == 2 && threadIdx.x == 0)
        relay_check(m, seed, rounds, found);
}

template <bool fences> static void test_relay(const struct litmus *l)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    struct relay m;

    m.box = symmetric_array<char>(SLOTS * SPACE);
    m.flag = symmetric_array<uint64_t>(SLOTS);
    m.taken = symmetric_array<uint64_t>(1);
    m.draft = shared_array<char>(SLOTS * SPACE);
    m.told = shared_array<int>(2);
    m.to = (me + 1) % n;
    m.from = (me + n - 1) % n;
    relay<fences><<<3, 4>>>(m, l->seed, l->rounds, l->found);
    litmus_check(l, fences ? "another block fences" : "another block quiets");
    CHECK_OK(gshmem_free(m.box));
    CHECK_OK(gshmem_free(m.flag));
    CHECK_OK(gshmem_free(m.taken));
    CHECK_CUDA(cudaFree(m.draft));
    CHECK_CUDA(cudaFree(m.told));
}

/* ---- Store buffering -------------------------------------------------------------------------- */

/* Both begin a round together; then there is nothing between write and read but the quiet. */
__global__ void store_buffer(uint64_t *x, uint64_t *ready, uint64_t *seen, int other, uint64_t seed,
                             int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        EXPECT(found, gshmem_signal_set(ready, r, other), GSHMEM_OK);
        gshmem_signal_wait_until(ready, GSHMEM_CMP_GE, r);
        litmus_delay(seed + gshmem_my_pe(), r);
        EXPECT(found, gshmem_uint64_p(&x[r], 1, other), GSHMEM_OK);
        EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        seen[r] = gshmem_uint64_g(&x[r], gshmem_my_pe());
    }
}

static void test_store_buffer(const struct litmus *l)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes(), other = me ^ 1;
    uint64_t *x = symmetric_array<uint64_t>(l->rounds + 1);
    uint64_t *seen = symmetric_array<uint64_t>(l->rounds + 1);
    uint64_t *theirs = shared_array<uint64_t>(l->rounds + 1), *mine = shared_array<uint64_t>(l->rounds + 1);
    uint64_t *ready = symmetric_array<uint64_t>(1);

    if (other < n) {
        store_buffer<<<1, 1>>>(x, ready, seen, other, l->seed, l->rounds, l->found);
        CHECK_LAUNCH();
    }
    litmus_check(l, "store buffering");
    if (other < n) {
        CHECK_OK(gshmem_getmem(theirs, seen, (l->rounds + 1) * sizeof *seen, other));
        copy_out(mine, seen, l->rounds + 1);
        for (int r = 1; r <= l->rounds; r++)
            EXPECT(l->found, mine[r] | theirs[r], 1);
    }
    litmus_check(l, "store buffering: neither saw the other's");
    CHECK_OK(gshmem_free(x));
    CHECK_OK(gshmem_free(seen));
    CHECK_OK(gshmem_free(ready));
    CHECK_CUDA(cudaFree(theirs));
    CHECK_CUDA(cudaFree(mine));
}

/* ---- Get after put ---------------------------------------------------------------------------- */

#define BLOCKS 4

/* Each block has a cell at each PE, and goes on to others with each round. Of the 48 words in it
 * some are put, and all are read back: those, and the ones put in rounds before. */
__global__ void get_after_put(gshmem_ctx_t ctx, uint64_t *cells, uint64_t *own, uint64_t seed,
                              int rounds, struct found *found)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    uint64_t *draft = own + (size_t)blockIdx.x * (2 + n) * 48, *back = draft + 48;
    uint64_t *cell = cells + ((size_t)me * BLOCKS + blockIdx.x) * 48;

    for (int r = blockIdx.x; r < rounds; r += gridDim.x) {
        uint64_t random = mixed2(seed, r);
        unsigned first = random % 48, words = 1 + (random >> 8) % (48 - first);
        int pe = (int)((random >> 32) % n);
        uint64_t *expected = draft + (2 + pe) * 48;

        for (unsigned i = 0; i < words; i++)
            draft[i] = expected[first + i] = random + i;
        EXPECT(found, gshmem_ctx_putmem_nbi(ctx, cell + first, draft, words * sizeof *draft, pe),
               GSHMEM_OK);
        EXPECT(found, gshmem_ctx_quiet(ctx), GSHMEM_OK);
        for (unsigned i = 0; i < words; i++)
            draft[i] = 0;
        if (r % 2) {
            EXPECT(found, gshmem_ctx_getmem(ctx, back, cell, 48 * sizeof *back, pe), GSHMEM_OK);
        } else {
            EXPECT(found, gshmem_ctx_getmem_nbi(ctx, back, cell, 48 * sizeof *back, pe), GSHMEM_OK);
            EXPECT(found, gshmem_ctx_quiet(ctx), GSHMEM_OK);
        }
        for (unsigned i = 0; i < 48; i++)
            EXPECT(found, back[i], expected[i]);
    }
}

static void test_get_after_put(const struct litmus *l)
{
    const int n = gshmem_n_pes();
    uint64_t *cells = symmetric_array<uint64_t>((size_t)n * BLOCKS * 48);
    uint64_t *own = shared_array<uint64_t>((size_t)BLOCKS * (2 + n) * 48);
    gshmem_ctx_t ctx;

    get_after_put<<<BLOCKS, 1>>>(GSHMEM_CTX_DEFAULT, cells, own, l->seed, l->rounds, l->found);
    litmus_check(l, "get after put");
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    get_after_put<<<BLOCKS, 1>>>(ctx, cells, own, l->seed, l->rounds, l->found);
    litmus_check(l, "get after put on a context");
    CHECK_OK(gshmem_ctx_destroy(ctx));
    CHECK_OK(gshmem_free(cells));
    CHECK_CUDA(cudaFree(own));
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);

    test_relay<false>(&l);
    test_relay<true>(&l);
    test_store_buffer(&l);
    test_get_after_put(&l);
    litmus_end(&l);
    return 0;
}

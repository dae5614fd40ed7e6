/* Contexts that kernels are given: whom their numbers name, which operations a quiet of one waits for,
 * and handles that cannot be used.
 *
 *     contexts          all of that
 *     contexts stopped  on PEs that share no memory: a PE is stopped while puts to it are under way on
 *                       one context; a quiet of another returns, and that of the first when it goes on
 */
#include <signal.h>

#include "kernel.h"

/* ---- Numbers ---------------------------------------------------------------------------------- */

/* Says to each PE of the context's team which number it has there, in all ways. */
__global__ void number(gshmem_ctx_t ctx, int n, int *mine, int *draft, uint64_t *signal,
                       struct found *found)
{
    int pe = threadIdx.x;

    if (pe < n) {
        draft[pe] = pe;
        EXPECT(found, gshmem_ctx_int_p(ctx, &mine[0], pe, pe), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_putmem(ctx, &mine[1], &draft[pe], sizeof *mine, pe), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_putmem_signal(ctx, &mine[2], &draft[pe], sizeof *mine, &signal[0], pe,
                                               GSHMEM_SIGNAL_SET, pe),
               GSHMEM_OK);
        EXPECT(found, gshmem_ctx_signal_set(ctx, &signal[1], pe, pe), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_int_atomic_set(ctx, &mine[3], pe, pe), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_quiet(ctx), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_int_g(ctx, &mine[0], pe), pe);
        EXPECT(found, gshmem_ctx_int_atomic_fetch(ctx, &mine[3], pe), pe);
    }
}

/* All members do, and each then has been given its number by all of them. */
static void test_numbers(gshmem_team_t team, struct found *found)
{
    int *mine = symmetric_array<int>(4), *draft = shared_array<int>(64);
    uint64_t *signal = symmetric_array<uint64_t>(2);
    uint64_t signals[2];
    int expected = -1, seen[4];

    set_bytes(mine, 0xff, 4 * sizeof *mine); /* -1 */
    set_bytes(signal, 0xff, 2 * sizeof *signal);
    CHECK_OK(gshmem_barrier_all());
    if (team != GSHMEM_TEAM_INVALID) {
        gshmem_ctx_t ctx;
        CHECK_OK(gshmem_team_create_ctx(team, 0, &ctx));
        expected = gshmem_team_my_pe(team);
        number<<<1, 32>>>(ctx, gshmem_team_n_pes(team), mine, draft, signal, found);
        CHECK_FOUND(found);
        CHECK_OK(gshmem_ctx_destroy(ctx));
    }
    CHECK_OK(gshmem_barrier_all());
    copy_out(seen, mine, 4);
    copy_out(signals, signal, 2);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(seen[i], expected);
    CHECK_EQ((int64_t)signals[0], expected);
    CHECK_EQ((int64_t)signals[1], expected);
    CHECK_OK(gshmem_free(mine));
    CHECK_OK(gshmem_free(signal));
    CHECK_CUDA(cudaFree(draft));
}

static void test_teams(struct found *found)
{
    int n = gshmem_n_pes();
    gshmem_team_t backwards, even, list;
    int members[] = {n - 1, 0, n / 2};

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0,
                                       &backwards));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even));
    CHECK_OK(gshmem_team_split_list(GSHMEM_TEAM_WORLD, members, n < 3 ? 1 : 3, NULL, 0, &list));
    test_numbers(GSHMEM_TEAM_WORLD, found);
    test_numbers(GSHMEM_TEAM_HOST, found);
    const gshmem_team_t made[] = {backwards, even, list};
    for (gshmem_team_t team : made) {
        test_numbers(team, found);
        if (team != GSHMEM_TEAM_INVALID)
            CHECK_OK(gshmem_team_destroy(team));
    }
}

/* ---- Many, and none --------------------------------------------------------------------------- */

#define CONTEXTS 12

struct contexts {
    gshmem_ctx_t ctx[CONTEXTS];
};

/* Each block has a context to itself, and each of its operations is complete when it is quiet. */
__global__ void own(struct contexts all, uint64_t *words, uint64_t *draft, int rounds, int pe,
                    struct found *found)
{
    gshmem_ctx_t ctx = all.ctx[blockIdx.x];
    uint64_t *word = &words[gshmem_my_pe() * CONTEXTS + blockIdx.x], *mine = &draft[blockIdx.x];

    for (int r = 0; r < rounds; r++) {
        *mine = r;
        EXPECT(found, gshmem_ctx_putmem_nbi(ctx, word, mine, sizeof *word, pe), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_quiet(ctx), GSHMEM_OK);
        EXPECT(found, gshmem_ctx_uint64_g(ctx, word, pe), r);
        EXPECT(found, gshmem_ctx_fence(ctx), GSHMEM_OK);
    }
}

static void test_many(struct found *found)
{
    uint64_t *words = symmetric_array<uint64_t>((size_t)gshmem_n_pes() * CONTEXTS);
    uint64_t *draft = shared_array<uint64_t>(CONTEXTS);
    struct contexts all;

    for (int again = 0; again < 3; again++) { /* what was destroyed can be made again */
        for (int i = 0; i < CONTEXTS; i++)
            CHECK_OK(gshmem_ctx_create(i % 2 ? GSHMEM_CTX_SERIALIZED : 0, &all.ctx[i]));
        own<<<CONTEXTS, 1>>>(all, words, draft, 30, (gshmem_my_pe() + again) % gshmem_n_pes(), found);
        CHECK_FOUND(found);
        for (int i = 0; i < CONTEXTS; i++)
            CHECK_OK(gshmem_ctx_destroy(all.ctx[i]));
        CHECK_OK(gshmem_barrier_all());
    }
    CHECK_OK(gshmem_free(words));
    CHECK_CUDA(cudaFree(draft));
}

__global__ void invalid(uint64_t *word, struct found *found)
{
    uint64_t own = 0;

    EXPECT(found, gshmem_ctx_putmem(GSHMEM_CTX_INVALID, word, &own, sizeof own, 0), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_getmem(GSHMEM_CTX_INVALID, &own, word, sizeof own, 0) != GSHMEM_OK, true);
    EXPECT(found, gshmem_ctx_signal_add(GSHMEM_CTX_INVALID, word, 1, 0) != GSHMEM_OK, true);
    EXPECT(found, gshmem_ctx_fence(GSHMEM_CTX_INVALID), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_quiet(GSHMEM_CTX_INVALID), GSHMEM_ERR_ARGUMENT);
}

static void test_invalid(struct found *found)
{
    uint64_t *word = symmetric_array<uint64_t>(1);

    invalid<<<1, 1>>>(word, found);
    CHECK_FOUND(found);
    CHECK_EQ(value_at(word), 0);
    CHECK_OK(gshmem_free(word));
}

/* ---- A context that cannot be quiet yet ------------------------------------------------------- */

__global__ void put_on(gshmem_ctx_t ctx, char *dest, const char *source, size_t bytes, int pe,
                       struct found *found)
{
    EXPECT(found, gshmem_ctx_putmem_nbi(ctx, dest, source, bytes, pe), GSHMEM_OK);
}

__global__ void quiet_on(gshmem_ctx_t ctx, volatile int *done, struct found *found)
{
    EXPECT(found, gshmem_ctx_quiet(ctx), GSHMEM_OK);
    __threadfence_system();
    *done = 1;
}

/* PE 0 puts to the last PE, which is stopped, more than any socket takes, on `slow`; and a little to
 * itself or another on `quick`. */
static void test_stopped(struct found *found)
{
    const size_t bytes = (size_t)64 << 20;
    int n = gshmem_n_pes(), last = n - 1;
    char *dest = (char *)gshmem_malloc(bytes), *source = shared_array<char>(bytes);
    int64_t *pid = symmetric_array<int64_t>(1);
    volatile int *done = (volatile int *)shared_array<int>(2);
    gshmem_ctx_t slow, quick;
    cudaStream_t stream[2];

    CHECK(dest);
    set_value(pid, (int64_t)getpid());
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 0) {
        int64_t theirs;
        CHECK_OK(gshmem_getmem(&theirs, pid, sizeof theirs, last));
        CHECK_OK(gshmem_ctx_create(0, &slow));
        CHECK_OK(gshmem_ctx_create(0, &quick));
        CHECK_CUDA(cudaStreamCreate(&stream[0]));
        CHECK_CUDA(cudaStreamCreate(&stream[1]));

        CHECK(kill((pid_t)theirs, SIGSTOP) == 0);
        put_on<<<1, 1, 0, stream[0]>>>(slow, dest, source, bytes, last, found);
        quiet_on<<<1, 1, 0, stream[0]>>>(slow, done, found);
        put_on<<<1, 1, 0, stream[1]>>>(quick, dest, source, 100, n > 2 ? 1 : 0, found);
        quiet_on<<<1, 1, 0, stream[1]>>>(quick, done + 1, found);
        CHECK_CUDA(cudaStreamSynchronize(stream[1]));
        CHECK_EQ(done[1], 1);
        CHECK_EQ(done[0], 0);
        CHECK(kill((pid_t)theirs, SIGCONT) == 0);
        CHECK_FOUND(found);
        CHECK_EQ(done[0], 1);
        CHECK_CUDA(cudaStreamDestroy(stream[0]));
        CHECK_CUDA(cudaStreamDestroy(stream[1]));
        CHECK_OK(gshmem_ctx_destroy(slow));
        CHECK_OK(gshmem_ctx_destroy(quick));
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(dest));
    CHECK_OK(gshmem_free(pid));
    CHECK_CUDA(cudaFree(source));
    CHECK_CUDA(cudaFree((void *)done));
}

int main(int argc, char **argv)
{
    const bool stopped = argc > 1 && strcmp(argv[1], "stopped") == 0;

    if (stopped) /* a PE that is given up ends what is tried */
        setenv("GSHMEM_PEER_TIMEOUT", "1000", 1);
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);

    if (stopped) {
        test_stopped(found);
    } else {
        test_teams(found);
        test_many(found);
        test_invalid(found);
    }
    CHECK_CUDA(cudaFree(found));
    CHECK_OK(gshmem_finalize());
    return 0;
}

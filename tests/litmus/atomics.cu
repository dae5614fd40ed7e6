/* Atomics on one location from all PEs, mapped ones and remote ones, and from many blocks of each: no
 * update is lost, no value is handed out twice; and a lock made of them protects plain data.
 *
 * The location is on each PE in turn. Updates that bring back the old value and those that do not go
 * to the same one, as do the host's own. */
#include "litmus.h"

#define BLOCKS  4
#define THREADS 8

/* ---- Sums, and numbers that are given once ---------------------------------------------------- */

struct places {
    uint64_t *sum;    /* symmetric */
    uint64_t *ticket; /* symmetric */
    uint64_t *given;  /* symmetric: how often each ticket was given; counted on the owner */
    uint64_t *cas;    /* symmetric: incremented by compare and swap */
    uint64_t *token;  /* symmetric: tokens are swapped in and out */
    uint64_t *out;    /* of this PE: the sum of tokens that came out */
    uint64_t *flips;  /* symmetric: bits that are changed an even number of times */
    uint64_t *start;  /* symmetric */
};

static __device__ void cas_increment(uint64_t *at, int pe)
{
    uint64_t seen = gshmem_uint64_atomic_fetch(at, pe), was;

    while ((was = gshmem_uint64_atomic_compare_swap(at, seen, seen + 1, pe)) != seen)
        seen = was;
}

__global__ void update(struct places p, int owner, uint64_t seed, int each, struct found *found)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t me = (uint64_t)gshmem_my_pe() * gridDim.x * blockDim.x + thread;
    uint64_t out = 0;

    litmus_start(p.start, found);
    for (int r = 0; r < each; r++) {
        litmus_delay(seed + me, r);
        EXPECT(found, gshmem_uint64_atomic_add(p.sum, me + 1, owner), GSHMEM_OK);
        uint64_t ticket = gshmem_uint64_atomic_fetch_add(p.ticket, 1, owner);
        EXPECT(found, gshmem_uint64_atomic_add(&p.given[ticket], 1, owner), GSHMEM_OK);
        EXPECT(found, gshmem_uint64_atomic_inc(p.sum, owner), GSHMEM_OK);
        out += gshmem_uint64_atomic_swap(p.token, me * each + r + 1, owner);
        EXPECT(found, gshmem_uint64_atomic_xor(p.flips, mixed2(me, r / 2), owner), GSHMEM_OK);
        if (r % 8 == 0)
            cas_increment(p.cas, owner);
    }
    if (each % 2) /* every pattern went in twice */
        EXPECT(found, gshmem_uint64_atomic_xor(p.flips, mixed2(me, each / 2), owner), GSHMEM_OK);
    atomicAdd((unsigned long long *)p.out, (unsigned long long)out);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

/* The host's threads have a part in it. */
static void update_by_host(struct places p, int owner, int each)
{
    for (int r = 0; r < each; r++) {
        CHECK_OK(gshmem_uint64_atomic_add(p.sum, 3, owner));
        uint64_t ticket = gshmem_uint64_atomic_fetch_add(p.ticket, 1, owner);
        CHECK_OK(gshmem_uint64_atomic_add(&p.given[ticket], 1, owner));
    }
    CHECK_OK(gshmem_quiet());
}

static void clear(struct places p, uint64_t tickets)
{
    for (uint64_t *word : {p.sum, p.ticket, p.cas, p.token, p.flips, p.start, p.out})
        set_value(word, (uint64_t)0);
    set_bytes(p.given, 0, tickets * sizeof *p.given);
    CHECK_OK(gshmem_barrier_all());
}

static void check_sums(const struct litmus *l, struct places p, uint64_t *all_out, int owner,
                       int each, int by_host)
{
    const uint64_t n = gshmem_n_pes(), threads = n * BLOCKS * THREADS, total = threads * each;
    uint64_t tokens = 0;

    set_value(all_out, *p.out);
    litmus_check(l, "atomics on one location");
    if (gshmem_my_pe() != owner)
        return;
    EXPECT(l->found, value_at(p.sum), (threads * (threads + 1) / 2 + threads) * each + 3 * n * by_host);
    EXPECT(l->found, value_at(p.ticket), total + n * by_host);
    uint64_t *given = shared_array<uint64_t>(total + n * by_host);
    copy_out(given, p.given, total + n * by_host);
    for (uint64_t i = 0; i < total + n * by_host; i++)
        EXPECT(l->found, given[i], 1);
    CHECK_CUDA(cudaFree(given));
    EXPECT(l->found, value_at(p.cas), threads * ((each + 7) / 8));
    EXPECT(l->found, value_at(p.flips), 0);
    /* What was swapped in came out once, or is still there. */
    tokens = value_at(p.token);
    for (int pe = 0; pe < (int)n; pe++) {
        uint64_t out;
        CHECK_OK(gshmem_getmem(&out, all_out, sizeof out, pe));
        tokens += out;
    }
    EXPECT(l->found, tokens, total * (total + 1) / 2);
}

static void test_sums(const struct litmus *l)
{
    const int n = gshmem_n_pes(), each = l->rounds / (BLOCKS * THREADS * n) + 1;
    const int by_host = HOST_TAKES_PART ? each : 0;
    const uint64_t tickets = (uint64_t)n * (BLOCKS * THREADS * each + by_host);
    uint64_t *words = symmetric_array<uint64_t>(7), *out = shared_array<uint64_t>(1);
    uint64_t *given = symmetric_array<uint64_t>(tickets);
    struct places p = {words, words + 1, given, words + 2, words + 3, out, words + 4,
                       words + 5};

    for (int owner = 0; owner < n; owner += n > 1 ? n - 1 : 1) { /* the first and the last */
        clear(p, tickets);
        update<<<BLOCKS, THREADS>>>(p, owner, l->seed, each, l->found);
        update_by_host(p, owner, by_host);
        CHECK_LAUNCH();
        CHECK_OK(gshmem_barrier_all());
        check_sums(l, p, words + 6, owner, each, by_host);
        litmus_check(l, "sums of atomics on one location");
    }
    CHECK_OK(gshmem_free(words));
    CHECK_OK(gshmem_free(given));
    CHECK_CUDA(cudaFree(out));
}

/* ---- A lock ----------------------------------------------------------------------------------- */

#define WORDS 9 /* of plain data; more than one access, and not all in one cache line */

struct lock {
    uint64_t *next, *serving; /* symmetric */
    uint64_t *data;           /* symmetric: [WORDS], all the same while nobody is at it */
    uint64_t *own;            /* [BLOCKS][WORDS] */
};

__global__ void locked(struct lock lock, int owner, uint64_t seed, int each, struct found *found)
{
    uint64_t *own = lock.own + blockIdx.x * WORDS;

    for (int r = 0; r < each; r++) {
        uint64_t ticket = gshmem_uint64_atomic_fetch_add(lock.next, 1, owner);

        while (gshmem_uint64_atomic_fetch(lock.serving, owner) != ticket)
            __nanosleep(100);
        __threadfence_system(); /* atomics order nothing by themselves */
        EXPECT(found, gshmem_getmem(own, lock.data, WORDS * sizeof *own, owner), GSHMEM_OK);
        for (int i = 0; i < WORDS; i++) {
            EXPECT(found, own[i], ticket);
            own[i]++;
        }
        litmus_delay(seed, r);
        EXPECT(found, gshmem_putmem_nbi(lock.data, own, WORDS * sizeof *own, owner), GSHMEM_OK);
        EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        EXPECT(found, gshmem_uint64_atomic_add(lock.serving, 1, owner), GSHMEM_OK);
    }
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static void test_lock(const struct litmus *l)
{
    const int n = gshmem_n_pes(), each = l->rounds / (BLOCKS * n) + 1, owner = n - 1;
    struct lock lock;

    lock.next = symmetric_array<uint64_t>(1);
    lock.serving = symmetric_array<uint64_t>(1);
    lock.data = symmetric_array<uint64_t>(WORDS);
    lock.own = shared_array<uint64_t>(BLOCKS * WORDS);
    locked<<<BLOCKS, 1>>>(lock, owner, l->seed, each, l->found);
    litmus_check(l, "a lock of fetch-adds");
    for (int i = 0; gshmem_my_pe() == owner && i < WORDS; i++)
        EXPECT(l->found, value_at(&lock.data[i]), (uint64_t)each * BLOCKS * n);
    litmus_check(l, "what a lock protects");
    CHECK_OK(gshmem_free(lock.next));
    CHECK_OK(gshmem_free(lock.serving));
    CHECK_OK(gshmem_free(lock.data));
    CHECK_CUDA(cudaFree(lock.own));
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);

    test_sums(&l);
    test_lock(&l);
    litmus_end(&l);
    return 0;
}

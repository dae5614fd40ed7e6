/* Memory of (simulated) GPUs of PEs on several pretended hosts: what is put there is found there, in the
 * order that was asked for, through a staging pool of any size. */
#include "gshmem.h"
#include "../check.h"

enum { MIB = 1 << 20, MOST = 5 * MIB + 3 };

static int me, n, left, right;
static int domain; /* the GPUs of all hosts are in one of NVLink, and mapped */
static char *gpu, *host;   /* MOST bytes each, symmetric: what others put */
static char *own;          /* MOST bytes in GPU memory, which nobody else touches */
static char *mine, *found; /* the same in this process */
static uint64_t *flag, *gpu_flag;

static char mark(int pe, int round, size_t i)
{
    return (char)(pe * 31 + round * 17 + i / 4096 * 7 + i % 251);
}

static void fill(char *at, int pe, int round, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = mark(pe, round, i);
}

static void check(const char *at, int pe, int round, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != mark(pe, round, i))
            CHECK_FAIL("round %d: byte %zu of %zu is %d, expected %d of PE %d", round, i, bytes, at[i],
                       mark(pe, round, i), pe);
    }
}

/* What is in this PE's GPU memory. */
static void check_gpu(const char *at, int pe, int round, size_t bytes)
{
    memset(found, 0x77, bytes);
    CHECK_OK(gshmem_getmem(found, at, bytes, me));
    check(found, pe, round, bytes);
}

static void prepare(int round, size_t bytes)
{
    fill(mine, me, round, bytes);
    CHECK_OK(gshmem_putmem(own, mine, bytes, me));
}

/* What goes to or comes from host memory of a PE of this host is host memory: the CPU copies it. */
static char *beside(int pe)
{
    return gshmem_ptr(host, pe) ? mine : own;
}

/* Every pair of GPU and host memory, both ways. */
static void sizes(void)
{
    static const size_t size[] = {1,     2,      7,      8,      9,       255,        4095,      4096,
                                  4097,  65536,  70001,  262144, 262149,  2 * MIB + 1, MOST};

    for (int s = 0; s < (int)(sizeof size / sizeof size[0]); s++) {
        size_t bytes = size[s];
        prepare(s, bytes);
        CHECK_OK(gshmem_putmem(gpu, own, bytes, right));
        CHECK_OK(gshmem_putmem(host, beside(right), bytes, right));
        CHECK_OK(gshmem_barrier_all());
        check_gpu(gpu, left, s, bytes);
        check(host, left, s, bytes);
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_putmem_nbi(gpu, mine, bytes, left));
        CHECK_OK(gshmem_barrier_all());
        check_gpu(gpu, right, s, bytes);
        memset(found, 0, bytes);
        CHECK_OK(gshmem_getmem(found, gpu, bytes, left)); /* which is what this PE put */
        check(found, me, s, bytes);
        CHECK_OK(gshmem_getmem(own, gpu, bytes, right));
        check_gpu(own, (right + 1) % n, s, bytes);
        char *to = beside(right);
        CHECK_OK(gshmem_getmem_nbi(to, host, bytes, right));
        CHECK_OK(gshmem_quiet());
        if (to == own)
            check_gpu(own, me, s, bytes);
        else
            check(mine, me, s, bytes);
        CHECK_OK(gshmem_barrier_all());
    }
}

/* Who sees the signal sees the data: in host memory and in GPU memory. */
static void signals(void)
{
    for (int round = 1; round <= 6; round++) {
        size_t bytes = round % 2 ? MIB + 13 : 1000;
        prepare(round, bytes);
        CHECK_OK(gshmem_putmem_signal_nbi(gpu, own, bytes, flag, (uint64_t)round, GSHMEM_SIGNAL_SET, right));
        CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, (uint64_t)round));
        check_gpu(gpu, left, round, bytes);
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_putmem_signal(gpu, mine, bytes, gpu_flag, (uint64_t)round, GSHMEM_SIGNAL_SET, left));
        while (gshmem_uint64_g(gpu_flag, me) != (uint64_t)round)
            ;
        check_gpu(gpu, right, round, bytes);
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_putmem_signal(host, beside(right), bytes, flag, 100, GSHMEM_SIGNAL_ADD, right));
        CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, (uint64_t)round + 100));
        check(host, left, round, bytes);
        CHECK_OK(gshmem_barrier_all());
    }
}

/* A put to host memory, which needs no copy, is not seen before those to GPU memory that it follows. */
static void fences(void)
{
    for (int round = 1; round <= 5; round++) {
        prepare(round, 2 * MIB);
        CHECK_OK(gshmem_putmem_nbi(gpu, own, 2 * MIB, right));
        CHECK_OK(gshmem_fence());
        CHECK_OK(gshmem_uint64_p(flag + 1, (uint64_t)round, right));
        CHECK_OK(gshmem_uint64_wait_until(flag + 1, GSHMEM_CMP_EQ, (uint64_t)round));
        check_gpu(gpu, left, round, 2 * MIB);
        CHECK_OK(gshmem_barrier_all());
    }
}

/* Of puts to one place the last stays; and what is got behind a put is what it put. */
static void order(void)
{
    enum { WORDS = 5000 };
    uint64_t value = 0, *words = (uint64_t *)(void *)gpu;

    for (uint64_t i = 1; i <= 300; i++)
        CHECK_OK(gshmem_uint64_p(words, i, right));
    CHECK_OK(gshmem_getmem(&value, words, sizeof value, right));
    CHECK_EQ(value, 300);
    for (int i = 1; i <= 20; i++) { /* the long ones and the short in turn */
        prepare(i, WORDS * 8);
        CHECK_OK(gshmem_putmem_nbi(words, own, WORDS * 8, right));
        CHECK_OK(gshmem_uint64_p(words + WORDS - 1, (uint64_t)i, right));
        CHECK_EQ(gshmem_uint64_g(words + WORDS - 1, right), i);
        CHECK_OK(gshmem_quiet());
    }
    CHECK_OK(gshmem_barrier_all());
    check_gpu(gpu, left, 20, WORDS * 8 - 8);
    CHECK_OK(gshmem_barrier_all());
}

/* All PEs send and ask for all they have, at once. */
static void both_ways(void)
{
    enum { PIECES = 16, BYTES = MOST / PIECES };

    prepare(1, MOST);
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < PIECES; i++)
        CHECK_OK(gshmem_putmem_nbi(gpu + i * BYTES, own + i * BYTES, BYTES, right));
    for (int i = 0; i < PIECES; i++)
        CHECK_OK(gshmem_getmem_nbi(found + i * BYTES, own + i * BYTES, BYTES, left));
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_getmem_nbi(mine, own, 1000, pe));
    CHECK_OK(gshmem_quiet());
    check(found, left, 1, PIECES * BYTES);
    CHECK_OK(gshmem_barrier_all());
    check_gpu(gpu, left, 1, PIECES * BYTES);
    CHECK_OK(gshmem_barrier_all());
}

/* A source of a blocking put is free at once. */
static void sources(void)
{
    for (int i = 0; i < 20; i++) {
        size_t bytes = i % 2 ? 1000 : 300000;
        prepare(i, bytes);
        CHECK_OK(gshmem_putmem(gpu + i * 300000 % (4 * MIB), own, bytes, right));
        memset(mine, 0xee, bytes);
        CHECK_OK(gshmem_putmem(own, mine, bytes, me));
        CHECK_OK(gshmem_barrier_all());
        check_gpu(gpu + i * 300000 % (4 * MIB), left, i, bytes);
        CHECK_OK(gshmem_barrier_all());
    }
}

static void strided(void)
{
    long block[60], got[60];

    for (int i = 0; i < 60; i++)
        block[i] = 1000 * me + i;
    CHECK_OK(gshmem_putmem(own, block, sizeof block, me));
    CHECK_OK(gshmem_long_iput((long *)(void *)gpu, (long *)(void *)own, 3, 2, 20, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_iget(got, (long *)(void *)gpu, 1, 3, 20, me));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(got[i], 1000 * left + 2 * i);
    CHECK_OK(gshmem_long_iget((long *)(void *)own, (long *)(void *)gpu, 1, 3, 20, right));
    CHECK_OK(gshmem_getmem(got, own, sizeof got, me));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(got[i], 1000 * me + 2 * i);
    CHECK_OK(gshmem_barrier_all());
}

/* All kinds, by the GPU that has the memory. */
static void atomics(void)
{
    enum { EACH = 20 };
    long *word = (long *)(void *)gpu;
    float *real = (float *)(void *)(gpu + 64);
    unsigned *small = (unsigned *)(void *)(gpu + 128);
    double *twice = (double *)(void *)(gpu + 192);

    memset(mine, 0, 256);
    CHECK_OK(gshmem_putmem(gpu, mine, 256, me));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_atomic_set(word, 40, right));
    CHECK_EQ(gshmem_long_atomic_fetch_add(word, 2, right), 40);
    CHECK_EQ(gshmem_long_atomic_swap(word, 7, right), 42);
    CHECK_EQ(gshmem_long_atomic_compare_swap(word, 8, 9, right), 7);
    CHECK_EQ(gshmem_long_atomic_compare_swap(word, 7, 9, right), 7);
    CHECK_OK(gshmem_long_atomic_inc(word, right));
    CHECK_EQ(gshmem_long_atomic_fetch(word, right), 10);
    CHECK_OK(gshmem_uint_atomic_or(small, 0xf0, right));
    CHECK_OK(gshmem_uint_atomic_xor(small, 0x11, right));
    CHECK_EQ(gshmem_uint_atomic_fetch_and(small, 0x0f, right), 0xe1);
    CHECK_EQ(gshmem_uint_atomic_fetch(small, right), 1);
    CHECK(gshmem_float_atomic_swap(real, 2.5f, right) == 0.0f);
    CHECK(gshmem_double_atomic_swap(twice, -0.125, right) == 0.0);
    CHECK(gshmem_float_atomic_fetch(real, right) == 2.5f);
    CHECK(gshmem_double_atomic_fetch(twice, right) == -0.125);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(word, me), 10);
    CHECK_OK(gshmem_barrier_all());
    /* One counter for all PEs, from the network and from the GPU's own host, and signals that add to it. */
    uint64_t sum = 0;
    for (int i = 0; i < EACH; i++) {
        sum += gshmem_uint64_atomic_fetch_add(gpu_flag + 1, 1, 0) < (uint64_t)(2 * n * EACH);
        CHECK_OK(gshmem_ctx_signal_add(GSHMEM_CTX_DEFAULT, gpu_flag + 1, 1, 0));
    }
    CHECK_EQ(sum, EACH);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_uint64_g(gpu_flag + 1, 0), 2 * n * EACH);
    CHECK_OK(gshmem_putmem_signal(gpu, own, MIB, gpu_flag + 2, 3, GSHMEM_SIGNAL_ADD, right));
    while (gshmem_uint64_g(gpu_flag + 2, me) != 3)
        ;
    CHECK_OK(gshmem_barrier_all());
}

static void the_rest(void)
{
    long *words = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);

    CHECK(words);
    if (!domain)
        CHECK(!gshmem_ptr(gpu, right) == !gshmem_ptr(host, right)); /* of another host: neither */
    else
        CHECK(gshmem_ptr(gpu, right));
    CHECK_EQ(gshmem_addr_accessible(gpu, right), 1);
    words[0] = me;
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words + 1, words, 1));
    CHECK_EQ(words[1], n * (n - 1) / 2);
    CHECK_FAILS(gshmem_putmem(gpu, mine, (size_t)4 << 30, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "past the end");
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
}

int main(int argc, char **argv)
{
    (void)argv;
    domain = argc > 1;
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    left = (me + n - 1) % n;
    right = (me + 1) % n;
    gpu = gshmem_malloc(MOST);
    own = gshmem_malloc(MOST);
    gpu_flag = gshmem_calloc(8, sizeof *gpu_flag);
    host = gshmem_malloc_with_hints(MOST, GSHMEM_MALLOC_HOST);
    flag = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);
    mine = malloc(MOST);
    found = malloc(MOST);
    CHECK(gpu && own && gpu_flag && host && flag && mine && found);
    memset(flag, 0, 64);
    CHECK_OK(gshmem_barrier_all());
    sizes();
    signals();
    fences();
    order();
    both_ways();
    sources();
    strided();
    atomics();
    the_rest();
    free(mine);
    free(found);
    return gshmem_finalize();
}

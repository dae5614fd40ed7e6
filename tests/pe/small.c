/* Small puts and updates, of which the library sends many to another node as one request: all of
 * them arrive, once, in the order that fences ask for; a quiet completes them; they arrive when the
 * program calls nothing more; contexts, sessions and threads. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pe.h"

enum { LANE = 2048, OPERATIONS = 4000, VALUES = 1000, THREADS = 3 };

/* What one PE writes of another one's memory, and nobody else does. */
struct lane {
    unsigned char bytes[LANE];
    int64_t sum64;
    int32_t sum32;
    uint32_t set_bits, left_bits;
    uint64_t changed_bits, value;
    double real;
    uint64_t values[VALUES];
    uint64_t signal, flag;
};

static struct lane *lanes; /* symmetric: [PE] */
static struct lane *model; /* what each PE's lane of this PE has to be */
static long *shared;       /* symmetric: everybody adds to it */
static uint64_t seed;

static unsigned random_below(unsigned most)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % most;
}

/* ---- Everything that may be together in a batch, and what may not ---- */

/* A put into the next bytes of the lane. At its end the next put overwrites earlier ones. */
static void put_somewhere(gshmem_ctx_t ctx, int pe, size_t *next)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 3, 24, 65, 8, 8, 4};
    const size_t bytes = sizes[random_below(sizeof sizes / sizeof sizes[0])];
    unsigned char source[80];
    size_t at = (next[pe] + bytes - 1) / bytes * bytes + (random_below(8) == 0);

    if (at + bytes > LANE) {
        CHECK_OK(gshmem_ctx_fence(ctx));
        at = 0;
    }
    fill(source, bytes, me, random_below(1000));
    memcpy(model[pe].bytes + at, source, bytes);
    if (random_below(2))
        CHECK_OK(gshmem_ctx_putmem(ctx, lanes[me].bytes + at, source, bytes, pe));
    else
        CHECK_OK(gshmem_ctx_putmem_nbi(ctx, lanes[me].bytes + at, source, bytes, pe));
    if (bytes <= 64)
        memset(source, 0xee, sizeof source); /* the library has copied it */
    else
        CHECK_OK(gshmem_ctx_quiet(ctx));
    next[pe] = at + bytes;
}

static void update_something(gshmem_ctx_t ctx, int pe)
{
    struct lane *lane = &lanes[me], *m = &model[pe];
    const unsigned bit = random_below(32), value = random_below(100);

    switch (random_below(8)) {
    case 0:
        CHECK_OK(gshmem_ctx_int32_atomic_add(ctx, &lane->sum32, (int)value, pe));
        m->sum32 += (int)value;
        break;
    case 1:
        CHECK_OK(gshmem_ctx_uint32_atomic_or(ctx, &lane->set_bits, 1u << bit, pe));
        m->set_bits |= 1u << bit;
        break;
    case 2:
        CHECK_OK(gshmem_ctx_uint32_atomic_and(ctx, &lane->left_bits, ~(1u << bit), pe));
        m->left_bits &= ~(1u << bit);
        break;
    case 3:
        CHECK_OK(gshmem_ctx_uint64_atomic_xor(ctx, &lane->changed_bits, 1ull << bit, pe));
        m->changed_bits ^= 1ull << bit;
        break;
    case 4:
        CHECK_OK(gshmem_ctx_uint64_atomic_set(ctx, &lane->value, value, pe));
        CHECK_OK(gshmem_ctx_fence(ctx));
        m->value = value;
        break;
    case 5:
        CHECK_OK(gshmem_ctx_double_atomic_add(ctx, &lane->real, value, pe));
        m->real += value;
        break;
    default:
        CHECK_OK(gshmem_ctx_int64_atomic_add(ctx, &lane->sum64, -(int64_t)value, pe));
        m->sum64 -= value;
    }
}

static void check_lanes(const char *what)
{
    struct lane got;

    for (int pe = 0; pe < n; pe++) {
        CHECK_OK(gshmem_getmem(&got, &lanes[me], sizeof got, pe));
        if (memcmp(got.bytes, model[pe].bytes, LANE))
            CHECK_FAIL("%s: puts to PE %d", what, pe);
        CHECK_EQ(got.sum64, model[pe].sum64);
        CHECK_EQ(got.sum32, model[pe].sum32);
        CHECK_EQ(got.set_bits, model[pe].set_bits);
        CHECK_EQ(got.left_bits, model[pe].left_bits);
        CHECK_EQ(got.changed_bits, model[pe].changed_bits);
        CHECK_EQ(got.value, model[pe].value);
        CHECK(got.real == model[pe].real);
    }
}

/* runs: how many operations of one kind follow each other. */
static void all_kinds(gshmem_ctx_t ctx, unsigned runs)
{
    size_t *next = calloc((size_t)n, sizeof *next);

    CHECK(next);
    for (unsigned i = 0, put = 0; i < OPERATIONS; i++) {
        const int pe = (int)random_below((unsigned)n);
        if (i % runs == 0)
            put = random_below(2);
        if (put)
            put_somewhere(ctx, pe, next);
        else
            update_something(ctx, pe);
    }
    CHECK_OK(gshmem_ctx_quiet(ctx));
    check_lanes(runs == 1 ? "one after the other" : "in runs");
    free(next);
    barrier();
}

/* ---- Order ---- */

/* What a fence has put behind small operations comes after them, whichever way it goes. */
static void behind_a_fence(unsigned round)
{
    struct lane *mine = &lanes[left()];
    const unsigned k = 1 + random_below(VALUES - 1);
    const int to = right();

    lanes[me].flag = 0; /* of a run with one PE */
    barrier();
    for (unsigned i = 0; i < k; i++)
        CHECK_OK(gshmem_uint64_p(&lanes[me].values[i], round * VALUES + i, to));
    CHECK_OK(gshmem_uint64_atomic_set(&lanes[me].values[k], round * VALUES + k, to));
    CHECK_OK(gshmem_fence());
    switch (round % 3) {
    case 0:
        CHECK_OK(gshmem_uint64_p(&lanes[me].signal, k, to));
        break;
    case 1:
        CHECK_OK(gshmem_signal_set(&lanes[me].signal, k, to));
        break;
    default:
        CHECK_OK(gshmem_uint64_atomic_add(&lanes[me].signal, k, to));
    }
    const uint64_t theirs = gshmem_signal_wait_until(&mine->signal, GSHMEM_CMP_NE, 0);
    for (unsigned i = 0; i <= theirs; i++)
        CHECK_EQ(mine->values[i], round * VALUES + i);
    mine->signal = 0;
    barrier();
}

/* A get is carried out behind what this thread has sent to that PE before it. The standard asks for
 * a quiet; here requests to a PE keep their order also where some of them wait in a batch. */
static void before_a_get(uint64_t round)
{
    barrier();
    for (uint64_t i = 0; i < VALUES; i++) {
        const unsigned at = random_below(VALUES);
        CHECK_OK(gshmem_uint64_p(&lanes[me].values[at], round + i, right()));
        CHECK_OK(gshmem_uint64_p(&lanes[me].flag, i, right()));
        if (i % 7 == 0)
            CHECK_EQ(gshmem_uint64_g(&lanes[me].values[at], right()), round + i);
        if (i % 31 == 0)
            CHECK_EQ(gshmem_uint64_atomic_fetch(&lanes[me].flag, right()), i);
    }
    CHECK_OK(gshmem_quiet());
    barrier();
}

/* After a quiet any PE sees them: PE 0 tells each PE, which then looks at the memory of those that
 * are mapped to it. */
static void complete_after_quiet(uint64_t round)
{
    barrier();
    if (me == 0) {
        for (uint64_t i = 0; i < VALUES; i += 9)
            for (int pe = 0; pe < n; pe++)
                CHECK_OK(gshmem_uint64_p(&lanes[0].values[i], round + i, pe));
        CHECK_OK(gshmem_quiet());
        for (int pe = 0; pe < n; pe++)
            CHECK_OK(gshmem_signal_set(&lanes[0].signal, round, pe));
    }
    CHECK_EQ(gshmem_signal_wait_until(&lanes[0].signal, GSHMEM_CMP_NE, 0), round);
    for (int pe = 0; pe < n; pe++) {
        const struct lane *there = gshmem_ptr(&lanes[0], pe);
        for (uint64_t i = 0; there && i < VALUES; i += 9)
            CHECK_EQ(there->values[i], round + i);
    }
    barrier();
    lanes[0].signal = 0;
}

/* ---- No call follows ---- */

/* They arrive though this PE calls nothing any more: it looks at its own memory alone. */
static void no_call_follows(unsigned k, uint64_t round)
{
    const _Atomic uint64_t *flag = (const _Atomic uint64_t *)&lanes[left()].flag;

    round += 1000000000; /* another value than there was */
    barrier();
    for (unsigned i = 0; i < k; i++)
        CHECK_OK(gshmem_uint64_p(&lanes[me].values[i % VALUES], round, right()));
    CHECK_OK(gshmem_uint64_p(&lanes[me].flag, round, right()));
    while (atomic_load_explicit(flag, memory_order_acquire) != round)
        sched_yield();
}

/* ---- Contexts, sessions, threads ---- */

/* A context that is destroyed has completed its operations, and no other one need have. */
static void of_contexts(void)
{
    gshmem_ctx_t ctx[3];
    long sum = 0;

    *shared = 0;
    barrier();
    for (int c = 0; c < 3; c++)
        CHECK_OK(gshmem_ctx_create(c ? 0 : GSHMEM_CTX_PRIVATE, &ctx[c]));
    for (int i = 0; i < 3000; i++) {
        for (int pe = 0; pe < n; pe++)
            CHECK_OK(gshmem_ctx_long_atomic_add(ctx[(i + pe) % 3], shared, i, pe));
        sum += i;
    }
    for (int c = 0; c < 3; c++)
        CHECK_OK(gshmem_ctx_destroy(ctx[c]));
    barrier();
    CHECK_EQ(*shared, sum * n);
    barrier();
}

static void of_a_session(void)
{
    *shared = 0;
    barrier();
    gshmem_ctx_session_start(GSHMEM_CTX_DEFAULT, 0);
    for (int i = 0; i < 1000; i++)
        CHECK_OK(gshmem_long_atomic_inc(shared, right()));
    gshmem_ctx_session_stop(GSHMEM_CTX_DEFAULT);
    while (atomic_load_explicit((_Atomic long *)shared, memory_order_acquire) != 1000)
        sched_yield();
    barrier();
}

/* A context whose PEs have other numbers than those of the job. */
static void of_a_team(void)
{
    const int first = n > 1, members = n - first;
    gshmem_team_t team;
    gshmem_ctx_t ctx;

    *shared = 0;
    barrier();
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, first, 1, members, NULL, 0, &team));
    if (me >= first) {
        CHECK_OK(gshmem_team_create_ctx(team, 0, &ctx));
        for (int i = 0; i < 1000 * members; i++)
            CHECK_OK(gshmem_ctx_long_atomic_inc(ctx, shared, i % members));
        CHECK_OK(gshmem_ctx_destroy(ctx));
    }
    barrier();
    CHECK_EQ(*shared, me >= first ? 1000 * members : 0);
    if (me >= first)
        CHECK_OK(gshmem_team_destroy(team));
    barrier();
}

/* Each has a context of its own, whose batches it owns while the others' quiets post them; and they
 * share the default one. */
static void *one_thread(void *argument)
{
    const int thread = (int)(intptr_t)argument;
    gshmem_ctx_t ctx;

    CHECK_OK(gshmem_ctx_create(0, &ctx));
    for (int i = 0; i < OPERATIONS; i++) {
        CHECK_OK(gshmem_ctx_long_atomic_add(i / 100 % 2 ? ctx : GSHMEM_CTX_DEFAULT, shared, 1,
                                            i % n));
        CHECK_OK(gshmem_uint64_p(&lanes[me].values[thread], (uint64_t)i, (i + 1) % n));
        if (i % 500 == 0)
            CHECK_OK(gshmem_quiet());
    }
    CHECK_OK(gshmem_ctx_destroy(ctx));
    return NULL;
}

static void of_threads(void)
{
    pthread_t thread[THREADS];

    *shared = 0;
    barrier();
    for (int t = 0; t < THREADS; t++)
        CHECK(!pthread_create(&thread[t], NULL, one_thread, (void *)(intptr_t)t));
    for (int t = 0; t < THREADS; t++)
        CHECK(!pthread_join(thread[t], NULL));
    barrier();
    for (int pe = 0, mine = 0; pe < n; pe++, mine = 0) {
        for (int i = 0; i < OPERATIONS; i++)
            mine += i % n == me;
        if (pe == me)
            CHECK_EQ(*shared, (long)mine * THREADS * n);
    }
    barrier();
}

/* A size that is wrong is refused, also while a batch is open to which it could belong by its low bits or as the number
 * of no call. */
static void of_wrong_sizes(void)
{
    static long variable;
    const size_t wrong[] = {(size_t)1 << 63 | sizeof(long), SIZE_MAX};
    const int pe = (me + 1) % n;
    long value = 1, *object = gshmem_malloc(sizeof *object);

    CHECK(object);
    for (int i = 0; i < 60; i++) {
        CHECK_OK(gshmem_putmem_nbi(i % 2 ? &variable : object, &value, sizeof value, pe));
        CHECK(gshmem_putmem(object, &value, wrong[i / 2 % 2], pe) != GSHMEM_OK);
        CHECK(gshmem_putmem(&variable, &value, wrong[i / 2 % 2], pe) != GSHMEM_OK);
    }
    CHECK_OK(gshmem_free(object));
}

int main(int argc, char **argv)
{
    int level;

    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &level));
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 + (uint64_t)me;
    lanes = gshmem_calloc((size_t)n, sizeof *lanes);
    shared = gshmem_calloc(1, sizeof *shared);
    model = calloc((size_t)n, sizeof *model);
    CHECK(lanes && shared && model);
    for (int pe = 0; pe < n; pe++)
        lanes[pe].left_bits = model[pe].left_bits = UINT32_MAX;
    barrier();
    all_kinds(GSHMEM_CTX_DEFAULT, 1);
    all_kinds(GSHMEM_CTX_DEFAULT, 700);
    for (unsigned round = 1; round <= 60; round++)
        behind_a_fence(round);
    before_a_get(1000000);
    for (uint64_t round = 1; round <= 40; round++)
        complete_after_quiet(round * VALUES);
    for (uint64_t round = 1; round <= 60; round++)
        no_call_follows(round % 4 ? (unsigned)round % 4 : random_below(3000), round);
    of_contexts();
    of_a_team();
    of_a_session();
    of_wrong_sizes();
    if (level == GSHMEM_THREAD_MULTIPLE)
        of_threads();
    free(model);
    end();
    return 0;
}

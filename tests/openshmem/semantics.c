/* What OpenSHMEM's functions mean beyond moving the right bytes: who may call what when, what is returned
 * for handles that are none, which operations are complete after what. */
#include <pthread.h>
#include <shmemx.h>

#include "check.h"

/* What programs ask the headers of other libraries. */
#if OSHMEM_SPEC_VERSION < 10600 || !defined SHMEM_DEF_H || !defined SHMEM_FUNCTION_ATTRIBUTES
#error a program takes this library for an old or an unknown one
#endif

enum { THREADS = 4, ROUNDS = 100 };

static int me, n_pes, next, before;

/* ---- Setup ---- */

static void try_setup(void)
{
    int major, minor, level, initialized;
    char name[SHMEM_MAX_NAME_LEN];
    static long here;
    long local;

    shmem_query_initialized(&initialized);
    CHECK(initialized);
    shmem_query_thread(&level);
    CHECK_EQ(level, SHMEM_THREAD_MULTIPLE);
    shmem_info_get_version(&major, &minor);
    CHECK_EQ(major, 1);
    CHECK_EQ(minor, 6);
    shmem_info_get_name(name);
    CHECK_STR(name, SHMEM_VENDOR_STRING);

    CHECK(shmem_pe_accessible(next) && !shmem_pe_accessible(-1) && !shmem_pe_accessible(n_pes));
    CHECK(shmem_addr_accessible(&here, next) && !shmem_addr_accessible(&local, next));
    CHECK(shmem_ptr(&here, me) == &here && !shmem_ptr(&local, me));
    CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, &here, me) == &here);
    CHECK(!shmem_team_ptr(SHMEM_TEAM_INVALID, &here, me));
    long *there = shmem_ptr(&here, next); /* NULL on another host */
    if (there)
        *there = 100 + me;
    else
        shmem_long_p(&here, 100 + me, next);
    shmem_barrier_all();
    CHECK_EQ(here, 100 + before);
    double then = shmemx_wtime();
    CHECK(shmemx_wtime() >= then);
    shmem_pcontrol(0);
    shmem_pcontrol(2, "anything", 1.0);
}

static void try_memory(void)
{
    CHECK(!shmem_malloc(0) && !shmem_calloc(0, 8) && !shmem_align(64, 0) && !shmem_realloc(NULL, 0));
    CHECK(!shmem_malloc_with_hints(0, 0));
    shmem_free(NULL);
    for (int round = 0; round < 3; round++) {
        unsigned char *a = shmem_malloc(5000);
        memset(a, 0xff, 5000);
        shmem_free(a);
        a = shmem_calloc(50, 100); /* where it was */
        for (int i = 0; i < 5000; i++)
            CHECK_EQ(a[i], 0);
        a[4999] = 7;
        a = shmem_realloc(a, 1 << 20);
        CHECK_EQ(a[4999], 7);
        CHECK(!shmem_realloc(a, 0));
        for (size_t alignment = 1; alignment <= 32u << 20; alignment *= 4) {
            a = shmem_align(alignment, 100);
            CHECK(a && (uintptr_t)a % alignment == 0);
            shmem_free(a);
        }
        uint64_t *s = shmem_malloc_with_hints(
            8, SHMEM_MALLOC_SIGNAL_REMOTE | SHMEM_MALLOC_ATOMICS_REMOTE | 0x10000L);
        *s = 0;
        shmem_barrier_all();
        shmem_signal_set(s, (uint64_t)me + 1, next);
        CHECK_EQ(shmem_signal_wait_until(s, SHMEM_CMP_NE, 0), before + 1);
        shmem_free(s);
    }
    /* As 1.1 had it, PEs may ask for different sizes. */
    unsigned char *mine = shmem_malloc(10u + 100u * (unsigned)me), *yours;
    memset(mine, 0xff, 10u + 100u * (unsigned)me);
    CHECK((yours = malloc(10u + 100u * (unsigned)next)));
    memset(yours, me, 10u + 100u * (unsigned)next);
    shmem_barrier_all();
    shmem_putmem(mine, yours, 10u + 100u * (unsigned)next, next);
    shmem_barrier_all();
    CHECK(mine[0] == before && mine[9 + 100 * me] == before);
    free(yours);
    shmem_free(mine);
    /* What is under way when free is called arrives before the memory is gone. */
    long *a = shmem_malloc(8), *b = shmem_calloc(1, 8);
    *a = me;
    shmem_barrier_all();
    shmem_long_put_nbi(b, a, 1, next);
    shmem_free(a);
    CHECK_EQ(*b, before);
    shmem_free(b);
}

/* ---- Teams and contexts ---- */

static void try_invalid(void)
{
    shmem_team_t team = (shmem_team_t)77, other = team;
    shmem_team_config_t config = {3};
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;

    /* bindings of other languages pass handles as pointers, garbage too */
    CHECK_EQ(sizeof(shmem_team_t), sizeof(void *));
    CHECK_EQ(shmem_team_n_pes((shmem_team_t)&me), -1);
    CHECK_EQ(shmem_team_n_pes((shmem_team_t)((uintptr_t)SHMEM_TEAM_WORLD + ((uintptr_t)1 << 32))), -1);
    CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD), -1);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID), -1);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    team = (shmem_team_t)77;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &team, NULL, 0, &other) != 0);
    CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &me, 1);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
}

/* Nothing may come from anywhere, and go there. */
static void try_nothing(void)
{
    static uint64_t signal;
    long *none = NULL;
    void *volatile nowhere = NULL; /* for compilers that see a NULL and warn */

    shmem_putmem(nowhere, nowhere, 0, next);
    shmem_getmem(nowhere, nowhere, 0, next);
    shmem_putmem_nbi(nowhere, nowhere, 0, next);
    shmem_getmem_nbi(nowhere, nowhere, 0, next);
    shmem_long_put(none, none, 0, me);
    shmem_long_iput(none, none, 1, 1, 0, next);
    shmem_long_iget(none, none, 1, 1, 0, next);
    shmem_long_ibput(none, none, 1, 1, 1, 0, next);
    shmem_long_ibget(none, none, 1, 1, 1, 0, next);
    shmem_long_put_signal(none, none, 0, &signal, 1, SHMEM_SIGNAL_ADD, next);
    CHECK_EQ(shmem_signal_wait_until(&signal, SHMEM_CMP_GE, 1), 1);
    CHECK_ZERO(shmem_broadcastmem(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0));
    CHECK_ZERO(shmem_long_fcollect(SHMEM_TEAM_WORLD, NULL, NULL, 0));
    CHECK_ZERO(shmem_long_alltoalls(SHMEM_TEAM_WORLD, NULL, NULL, 1, 1, 0));
    CHECK_ZERO(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, NULL, NULL, 0));
}

/* Each PE asks for a team of its own; and all make more teams than they keep. */
static void try_many_teams(void)
{
    enum { TEAMS = 100 };
    static long one[2] = {7, 0};
    shmem_team_t alone, team[TEAMS];

    CHECK_ZERO(shmem_team_split_strided(SHMEM_TEAM_WORLD, me, 1, 1, NULL, 0, &alone));
    CHECK_EQ(shmem_team_n_pes(alone), 1);
    CHECK_EQ(shmem_team_translate_pe(alone, 0, SHMEM_TEAM_WORLD), me);
    CHECK_ZERO(shmem_long_sum_reduce(alone, &one[1], &one[0], 1));
    CHECK_EQ(one[1], 7);
    shmem_team_destroy(alone);
    for (int i = 0; i < TEAMS; i++) {
        CHECK_ZERO(
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1 + i % n_pes, NULL, 0, &team[i]));
        CHECK_EQ(team[i] != SHMEM_TEAM_INVALID, me <= i % n_pes);
    }
    for (int i = 0; i < TEAMS; i++)
        shmem_team_destroy(team[i]);
}

static void try_context(shmem_team_t team, long options)
{
    static long cell, got;
    int n = shmem_team_n_pes(team), my = shmem_team_my_pe(team);
    const shmem_ctx_session_config_t expected = {16};
    shmem_ctx_t ctx;
    shmem_team_t of;

    CHECK_ZERO(shmem_team_create_ctx(team, options, &ctx));
    CHECK_ZERO(shmem_ctx_get_team(ctx, &of));
    CHECK(of == team);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &expected, SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_SAME_AMO, NULL, 0);
    cell = -1;
    shmem_team_sync(team);
    shmem_ctx_long_p(ctx, &cell, my, (my + 1) % n); /* numbers are the team's */
    shmem_ctx_fence(ctx);
    shmem_ctx_quiet(ctx);
    shmem_ctx_session_stop(ctx);
    shmem_team_sync(team);
    CHECK_EQ(cell, (my + n - 1) % n);
    shmem_ctx_long_get_nbi(ctx, &got, &cell, 1, (my + 1) % n);
    int whom = (my + 1) % n;
    shmem_ctx_pe_quiet(ctx, &whom, 1);
    CHECK_EQ(got, my);
    shmem_team_sync(team);
    if (options & SHMEM_CTX_PRIVATE)
        shmem_ctx_destroy(ctx); /* others go with their team */
}

static void try_teams(void)
{
    shmem_team_t odd, row, column;
    shmem_team_config_t config = {5};
    int size = n_pes / 2;

    if (size > 0) {
        CHECK_ZERO(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, size, &config,
                                            SHMEM_TEAM_NUM_CONTEXTS, &odd));
        CHECK_EQ(odd != SHMEM_TEAM_INVALID, me % 2);
        if (me % 2) {
            CHECK_EQ(shmem_team_my_pe(odd), me / 2);
            CHECK_EQ(shmem_team_n_pes(odd), size);
            CHECK_EQ(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD), 1);
            CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd), -1);
            config.num_contexts = 0;
            CHECK_ZERO(shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &config));
            CHECK_EQ(config.num_contexts, 5);
            for (long options = 0; options < 8; options++)
                try_context(odd, options);
            shmem_team_destroy(odd);
        }
    }
    CHECK_ZERO(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column));
    CHECK_EQ(shmem_team_my_pe(row), me % 2);
    CHECK_EQ(shmem_team_my_pe(column), me / 2);
    try_context(row, 0);
    try_context(column, SHMEM_CTX_NOSTORE);
    shmem_team_destroy(column);
    shmem_team_destroy(row);
    CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1 && shmem_team_n_pes(SHMEMX_TEAM_NODE) >= 1);
}

/* ---- Order and signals ---- */

static void try_order(void)
{
    static long data[64], flag;
    static uint64_t signal;

    for (int round = 1; round <= ROUNDS; round++) {
        long out[64];
        for (int i = 0; i < 64; i++)
            out[i] = round * 64 + i;
        shmem_long_put(data, out, 64, next);
        shmem_fence();
        shmem_long_atomic_set(&flag, round, next);
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
        for (int i = 0; i < 64; i++)
            CHECK_EQ(data[i], round * 64 + i);
        shmem_sync_all();
        shmem_putmem_signal_nbi(data, data, 0, &signal, 1, SHMEM_SIGNAL_ADD, next);
        shmem_ctx_putmem_signal(SHMEM_CTX_DEFAULT, data, out, sizeof out, &signal, 1,
                                SHMEM_SIGNAL_ADD, next);
        CHECK_EQ(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 2), 2);
        CHECK_EQ(shmem_signal_fetch(&signal), 2);
        signal = 0;
        shmem_sync_all();
    }
    /* quiet: seen by all */
    shmem_long_p(&flag, -5, next);
    shmem_quiet();
    CHECK_EQ(shmem_long_g(&flag, next), -5);
    int all[64];
    for (int i = 0; i < n_pes; i++)
        all[i] = i;
    shmem_long_put_nbi(data + 5, &flag, 1, next);
    shmem_pe_quiet(all, (size_t)n_pes);
    shmem_pe_quiet(NULL, 0);
    shmem_barrier_all();
}

/* ---- Bytes ---- */

static void try_bytes(void)
{
    static unsigned char there[9][40];
    unsigned char here[40], got[4][40];
    static uint64_t signal[5];
    shmem_ctx_t ctx;

    CHECK_ZERO(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx));
    for (size_t size = 1; size <= 40; size += 13) {
        for (int i = 0; i < 40; i++)
            here[i] = (unsigned char)(me * 40 + i);
        memset(there, 0, sizeof there);
        memset(got, 0, sizeof got);
        memset(signal, 0, sizeof signal);
        shmem_barrier_all();
        shmem_putmem(there[0], here, size, next);
        shmem_putmem_nbi(there[1], here, size, next);
        shmem_ctx_putmem(ctx, there[2], here, size, next);
        shmem_ctx_putmem_nbi(ctx, there[3], here, size, next);
        shmem_putmem_signal(there[4], here, size, &signal[0], 5, SHMEM_SIGNAL_SET, next);
        shmem_putmem_signal_nbi(there[5], here, size, &signal[1], 5, SHMEM_SIGNAL_ADD, next);
        shmem_ctx_putmem_signal(ctx, there[6], here, size, &signal[2], 5, SHMEM_SIGNAL_SET, next);
        shmem_ctx_putmem_signal_nbi(ctx, there[7], here, size, &signal[3], 5, SHMEM_SIGNAL_ADD, next);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(shmem_signal_wait_until(&signal[i], SHMEM_CMP_NE, 0), 5);
        shmem_sync_all();
        shmem_signal_add(&signal[4], 1, next);
        shmem_ctx_signal_add(ctx, &signal[4], 2, next);
        shmem_ctx_signal_set(ctx, &signal[0], 77, next);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
        CHECK_EQ(signal[4], 3);
        CHECK_EQ(signal[0], 77);
        for (int k = 0; k < 8; k++) {
            for (size_t i = 0; i < 40; i++)
                CHECK_EQ(there[k][i], i < size ? (unsigned char)(before * 40 + (int)i) : 0);
        }
        shmem_getmem(got[0], there[0], size, next);
        shmem_getmem_nbi(got[1], there[1], size, next);
        shmem_ctx_getmem(ctx, got[2], there[2], size, next);
        shmem_ctx_getmem_nbi(ctx, got[3], there[3], size, next);
        shmem_quiet();
        shmem_ctx_quiet(ctx);
        for (int k = 0; k < 4; k++) {
            CHECK(memcmp(got[k], here, size) == 0);
            CHECK(size == 40 || got[k][size] == 0);
        }
        shmem_barrier_all();
    }
    shmem_ctx_destroy(ctx);
}

/* ---- Collectives on bytes ---- */

static void try_collectives(void)
{
    static char source[4096], dest[8 * 4096];
    size_t mine = (size_t)(me % 4) * 3, at = 0;

    for (int i = 0; i < 4096; i++)
        source[i] = (char)(me * 31 + i);
    shmem_barrier_all();
    CHECK_ZERO(shmem_collectmem(SHMEM_TEAM_WORLD, dest, source, mine));
    for (int pe = 0; pe < n_pes; pe++) {
        for (int i = 0; i < pe % 4 * 3; i++)
            CHECK_EQ(dest[at++], (char)(pe * 31 + i));
    }
    shmem_sync_all();
    for (size_t size = 1; size <= 4096; size *= 16) {
        CHECK_ZERO(shmem_fcollectmem(SHMEM_TEAM_WORLD, dest, source, size));
        for (size_t i = 0; i < size * (size_t)n_pes; i++)
            CHECK_EQ(dest[i], (char)((int)(i / size) * 31 + (int)(i % size)));
        shmem_sync_all();
    }
    CHECK_ZERO(shmem_alltoallmem(SHMEM_TEAM_WORLD, dest, source, 100));
    for (int i = 0; i < 100 * n_pes; i++)
        CHECK_EQ(dest[i], (char)(i / 100 * 31 + me * 100 + i % 100));
    shmem_sync_all();
    CHECK_ZERO(shmem_alltoallsmem(SHMEM_TEAM_WORLD, dest, source, 3, 2, 7));
    for (int i = 0; i < 7 * n_pes; i++)
        CHECK_EQ(dest[3 * i], (char)(i / 7 * 31 + 2 * (me * 7 + i % 7)));
    shmem_sync_all();
    /* a team's broadcast reaches the root's dest, too, also in place */
    CHECK_ZERO(shmem_broadcastmem(SHMEM_TEAM_WORLD, dest, source, 3000, n_pes - 1));
    for (int i = 0; i < 3000; i++)
        CHECK_EQ(dest[i], (char)((n_pes - 1) * 31 + i));
    CHECK_ZERO(shmem_broadcastmem(SHMEM_TEAM_WORLD, source, source, 4096, 0));
    CHECK_EQ(source[4095], (char)4095);
    CHECK_ZERO(shmem_broadcastmem(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0));
    shmem_barrier_all();
}

/* ---- Locks ---- */

static void try_locks(void)
{
    static long lock, counter;

    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock))
                ;
        long value = shmem_long_g(&counter, 0); /* not atomic: the lock has to do it */
        shmem_long_p(&counter, value + 1, 0);
        shmem_clear_lock(&lock); /* which completes the put */
    }
    shmem_barrier_all();
    CHECK_EQ(shmem_long_g(&counter, 0), (long)ROUNDS * n_pes);
    shmem_barrier_all();
}

/* ---- Threads ---- */

static long total, slot[THREADS];

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    shmem_ctx_t ctx;

    CHECK_ZERO(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx));
    for (long i = 1; i <= ROUNDS; i++) {
        shmem_ctx_long_atomic_inc(ctx, &total, next);
        shmem_ctx_long_p(ctx, &slot[thread], i, next);
        shmem_ctx_quiet(ctx);
        shmem_long_wait_until(&slot[thread], SHMEM_CMP_GE, i);
    }
    shmem_ctx_destroy(ctx);
    return NULL;
}

static void try_threads(void)
{
    pthread_t threads[THREADS];

    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    CHECK_EQ(total, THREADS * ROUNDS);
}

int main(void)
{
    int initialized = 1, provided;

    shmem_query_initialized(&initialized);
    CHECK(!initialized);
    shmem_finalize(); /* nothing to end */
    for (int level = SHMEM_THREAD_SINGLE; level <= SHMEM_THREAD_MULTIPLE; level++) {
        CHECK_ZERO(shmem_init_thread(level, &provided)); /* once more after each end */
        CHECK_EQ(provided, level);
        shmem_init(); /* nests */
        shmem_finalize();
        if (level < SHMEM_THREAD_MULTIPLE)
            shmem_finalize();
    }
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    next = (me + 1) % n_pes;
    before = (me + n_pes - 1) % n_pes;
    try_setup();
    try_memory();
    try_invalid();
    try_nothing();
    try_many_teams();
    try_teams();
    try_order();
    try_bytes();
    try_collectives();
    try_locks();
    try_threads();
    shmem_finalize();
    shmem_finalize(); /* once too often */
    shmem_query_initialized(&initialized);
    CHECK(!initialized);
    return 0;
}

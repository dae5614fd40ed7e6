/* Mistakes: every one is answered by a status and a line that says what was wrong, on all PEs that
 * are concerned, nobody hangs, and the team works afterwards. */
#include <stdbool.h>

#include "groups.h"

static char *object; /* 64 KiB, symmetric */
static char *heap_begin; /* 8 KiB, at the very beginning of the heap */

/* The team still works: everyone hears of everyone. */
static void check_alive(gshmem_team_t team)
{
    int n = gshmem_team_n_pes(team);

    memset(object, 0, (size_t)n + 64);
    object[0] = (char)(gshmem_team_my_pe(team) + 1);
    CHECK_OK(gshmem_fcollectmem(team, object + 64, object, 1));
    for (int i = 0; i < n; i++)
        CHECK_EQ(object[64 + i], i + 1);
}

static void try_handles(void)
{
    gshmem_team_t team;

    CHECK_FAILS(gshmem_team_sync(GSHMEM_TEAM_INVALID), GSHMEM_ERR_ARGUMENT, "GSHMEM_TEAM_INVALID");
    CHECK_FAILS(gshmem_team_sync(-7), GSHMEM_ERR_ARGUMENT, "-7 is not a team handle");
    CHECK_FAILS(gshmem_barrier(100000), GSHMEM_ERR_ARGUMENT, "100000 is not a team handle");
    CHECK_FAILS(gshmem_team_sync(99), GSHMEM_ERR_ARGUMENT, "never made");
    CHECK_FAILS(gshmem_team_destroy(GSHMEM_TEAM_HOST), GSHMEM_ERR_ARGUMENT, "predefined");
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &team));
    CHECK_OK(gshmem_team_destroy(team));
    CHECK_FAILS(gshmem_team_destroy(team), GSHMEM_ERR_ARGUMENT, "destroyed");
    CHECK_FAILS(gshmem_team_sync(team), GSHMEM_ERR_ARGUMENT, "destroyed");
}

static void try_splits(void)
{
    int n = gshmem_n_pes(), list[GROUP_PES + 1] = {0};
    gshmem_team_config_t config = {.num_contexts = -1};
    gshmem_team_t team = 5, other;

#define STRIDED(start, stride, size)                                                               \
    gshmem_team_split_strided(GSHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team)
    CHECK_FAILS(STRIDED(-1, 1, 1), GSHMEM_ERR_ARGUMENT, "from -1");
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    CHECK_FAILS(STRIDED(n, 1, 1), GSHMEM_ERR_ARGUMENT, "parent team has PEs 0..");
    CHECK_FAILS(STRIDED(0, 1, n + 1), GSHMEM_ERR_ARGUMENT, "parent team");
    CHECK_FAILS(STRIDED(0, 1, 0), GSHMEM_ERR_ARGUMENT, "0 PEs");
    CHECK_FAILS(STRIDED(0, 0, 2), GSHMEM_ERR_ARGUMENT, "stride 0");
    CHECK_FAILS(STRIDED(0, -1, 2), GSHMEM_ERR_ARGUMENT, "stride -1");
    CHECK_FAILS(STRIDED(0, 0x7fffffff, 0x7fffffff), GSHMEM_ERR_ARGUMENT, "stride");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, NULL),
                GSHMEM_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL,
                                          GSHMEM_TEAM_NUM_CONTEXTS, &team),
                GSHMEM_ERR_ARGUMENT, "config is NULL");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, &config,
                                          GSHMEM_TEAM_NUM_CONTEXTS, &team),
                GSHMEM_ERR_ARGUMENT, "negative");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, &config, 0x10, &team),
                GSHMEM_ERR_ARGUMENT, "config_mask");
    CHECK_FAILS(gshmem_team_split_2d(GSHMEM_TEAM_WORLD, 0, NULL, 0, &team, NULL, 0, &other),
                GSHMEM_ERR_ARGUMENT, "xrange is 0");
    CHECK_FAILS(gshmem_team_split_2d(GSHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, NULL),
                GSHMEM_ERR_ARGUMENT, "NULL");
#define LIST(n) gshmem_team_split_list(GSHMEM_TEAM_WORLD, list, n, NULL, 0, &team)
    CHECK_FAILS(LIST(0), GSHMEM_ERR_ARGUMENT, "0 members");
    CHECK_FAILS(LIST(n + 1), GSHMEM_ERR_ARGUMENT, "members");
    list[0] = n;
    CHECK_FAILS(LIST(1), GSHMEM_ERR_ARGUMENT, "members[0] is");
    list[0] = list[1] = 0;
    if (n > 1)
        CHECK_FAILS(LIST(2), GSHMEM_ERR_ARGUMENT, "twice");
    check_alive(GSHMEM_TEAM_WORLD);
}

/* Two PEs think that they are the root. Where the data is small a root does not wait, but now and
 * then, so that all learn of it in their next round at the latest. The members of another node get
 * what both have sent, and may fail at once. */
static void try_two_roots(size_t bytes)
{
    const gshmem_status_t status = gshmem_broadcastmem(GSHMEM_TEAM_WORLD, object, object, bytes,
                                                       gshmem_my_pe() == 1);
    const bool nodes = gshmem_team_n_pes(GSHMEM_TEAM_HOST) < gshmem_n_pes();
    const bool waits = bytes > (nodes ? 3056 : 120);

    if (status || waits)
        CHECK_EQ(status, GSHMEM_ERR_MISMATCH);
    if (nodes && !waits) {
        const gshmem_status_t next = gshmem_team_sync(GSHMEM_TEAM_WORLD);
        CHECK(status || next);
        CHECK(next == GSHMEM_OK || next == GSHMEM_ERR_MISMATCH);
    } else if (!status) {
        CHECK_FAILS(gshmem_team_sync(GSHMEM_TEAM_WORLD), GSHMEM_ERR_MISMATCH, "an earlier broadcast of PE");
    }
    check_alive(GSHMEM_TEAM_WORLD);
}

/* A small broadcast, and another call of one PE after the other: who differs from the root fails at
 * once, all others at the latest in their next round, and then the team can be used further. */
static void try_small_disagreement(void)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    char on_stack[8];

    for (int which = 0; which < 4 * 16; which++) {
        const int odd = which % n, root = which / 4 % n;
        const bool mine = odd == me;
        gshmem_status_t status;
        if (mine && which % 4 == 0)
            status = gshmem_team_sync(GSHMEM_TEAM_WORLD);
        else if (mine && which % 4 == 1)
            status = gshmem_fcollectmem(GSHMEM_TEAM_WORLD, object + 64, object, 8);
        else if (mine && which % 4 == 2)
            status = gshmem_broadcastmem(GSHMEM_TEAM_WORLD, object, on_stack, 8, root);
        else
            status = gshmem_broadcastmem(GSHMEM_TEAM_WORLD, object, object, mine ? 5000 : 8, root);
        if (mine)
            CHECK_EQ(status, which % 4 == 2 ? GSHMEM_ERR_NOT_SYMMETRIC : GSHMEM_ERR_MISMATCH);
        else if (odd == root)
            CHECK_EQ(status, GSHMEM_ERR_MISMATCH);
        else
            CHECK(status == GSHMEM_OK || status == GSHMEM_ERR_MISMATCH);
        status = gshmem_team_sync(GSHMEM_TEAM_WORLD);
        CHECK(status == GSHMEM_OK || status == GSHMEM_ERR_MISMATCH);
        check_alive(GSHMEM_TEAM_WORLD);
    }
}

/* PEs that do not do the same. */
static void try_disagreement(void)
{
    int n = gshmem_n_pes(), me = gshmem_my_pe();
    gshmem_team_t team;
    char on_stack[64];

    if (n == 1)
        return;
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, me == 0, me == 0 ? -1 : 1, 2, NULL, 0,
                                          &team),
                GSHMEM_ERR_MISMATCH, "other arguments");
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    if (me == n - 1)
        CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, -3, NULL, 0, &team),
                    GSHMEM_ERR_ARGUMENT, "-3 PEs");
    else
        CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team),
                    GSHMEM_ERR_MISMATCH, "bad arguments");
    CHECK_FAILS(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, object, object, me ? 8 : 16000, 0),
                GSHMEM_ERR_MISMATCH, "gshmem_broadcastmem on team 0: PE");
    for (int i = 0; i < 40; i++)
        try_two_roots(8);
    try_two_roots(2000);
    CHECK_FAILS(
        gshmem_fcollectmem(GSHMEM_TEAM_WORLD, object + 32768 + 64 * (me == 0), object, 4100),
        GSHMEM_ERR_MISMATCH, "other arguments");
    /* Small or large, it takes place on all or on none; that objects overlap shows when all sizes are known. */
    for (size_t bytes = 8; bytes <= 4100; bytes *= 8) {
        memset(object, 1, 49152);
        memset(object + 49152, 2, 4100);
        if (me == 0)
            CHECK_FAILS(gshmem_collectmem(GSHMEM_TEAM_WORLD, object, object + 1, bytes), GSHMEM_ERR_ARGUMENT, "overlap");
        else
            CHECK_FAILS(gshmem_collectmem(GSHMEM_TEAM_WORLD, object, object + 49152, bytes), GSHMEM_ERR_MISMATCH,
                        "of PE 0 overlap");
        for (int i = 0; i < 49152; i++)
            CHECK_EQ(object[i], 1);
    }
    if (me == 0)
        CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_MISMATCH, "called reduce");
    else
        CHECK_FAILS(
            gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT8, GSHMEM_OP_SUM, object, object, 1),
            GSHMEM_ERR_MISMATCH, "called sync or barrier");
    if (me == 0)
        CHECK_FAILS(gshmem_fcollectmem(GSHMEM_TEAM_WORLD, object, on_stack, 8),
                    GSHMEM_ERR_NOT_SYMMETRIC, "source");
    else
        CHECK_FAILS(gshmem_fcollectmem(GSHMEM_TEAM_WORLD, object, object + 4096, 8),
                    GSHMEM_ERR_MISMATCH, "bad arguments");
    check_alive(GSHMEM_TEAM_WORLD);
    try_small_disagreement();
}

enum { LARGE = 6000 }; /* elements of what no note carries */

static int64_t *to, *from;

/* The same call with n elements, or with another source that is not symmetric. */
static gshmem_status_t call_large(int which, size_t n, void *source)
{
    const gshmem_team_t w = GSHMEM_TEAM_WORLD;
    void *s = source ? source : from;

    switch (which) {
    case 0:
        return gshmem_broadcastmem(w, to, s, n * 8, 0);
    case 1:
        return gshmem_fcollectmem(w, to, s, n * 8);
    case 2:
        return gshmem_alltoallmem(w, to, s, n * 8);
    case 3:
        return gshmem_alltoallsmem(w, to, s, 1, 1, 8, n);
    case 4:
        return gshmem_reduce(w, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, to, s, n);
    case 5:
        return gshmem_reducescatter(w, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, to, s, n);
    case 6:
        return gshmem_inscan(w, GSHMEM_TYPE_INT64, to, s, n);
    default:
        return gshmem_exscan(w, GSHMEM_TYPE_INT64, to, s, n);
    }
}

/* Of a large call, which takes several meetings, one PE after the other makes another one: nobody meets more
 * often than the others, and all fail. */
static void try_large_disagreement(void)
{
    int n = gshmem_n_pes(), me = gshmem_my_pe();
    int64_t on_stack[1];
    gshmem_team_t team;

    if (n == 1)
        return;
    CHECK((to = gshmem_malloc((size_t)n * LARGE * 8)));
    CHECK((from = gshmem_calloc((size_t)n, LARGE * 8)));
    for (int which = 0; which < 8; which++) {
        for (int odd = 0; odd < n; odd++) {
            bool mine = odd == me;
            CHECK_EQ(call_large(which, LARGE, mine ? on_stack : NULL),
                     mine ? GSHMEM_ERR_NOT_SYMMETRIC : GSHMEM_ERR_MISMATCH);
            CHECK_EQ(call_large(which, mine ? LARGE / 2 : LARGE, NULL), GSHMEM_ERR_MISMATCH);
            CHECK_EQ(mine ? gshmem_sync_all() : call_large(which, LARGE, NULL), GSHMEM_ERR_MISMATCH);
            CHECK_EQ(mine ? gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team)
                          : call_large(which, LARGE, NULL),
                     GSHMEM_ERR_MISMATCH);
            CHECK_OK(call_large(which, LARGE, NULL));
        }
        check_alive(GSHMEM_TEAM_WORLD);
    }
    CHECK_OK(gshmem_free(from));
    CHECK_OK(gshmem_free(to));
}

static void try_arguments(void)
{
    gshmem_team_t w = GSHMEM_TEAM_WORLD;
    int n = gshmem_n_pes(), me = gshmem_my_pe();
    char on_stack[64] = {0};

    CHECK_FAILS(gshmem_broadcastmem(w, object, object, 8, n), GSHMEM_ERR_ARGUMENT, "root");
    CHECK_FAILS(gshmem_broadcastmem(w, object, object, 8, -1), GSHMEM_ERR_ARGUMENT, "root");
    CHECK_FAILS(gshmem_broadcastmem(w, on_stack, object, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, "dest");
    CHECK_FAILS(gshmem_broadcastmem(w, object, NULL, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, "source");
    CHECK_FAILS(gshmem_broadcastmem(w, object, object + 4, 8, 0), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(gshmem_fcollectmem(w, object, object, 8), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(gshmem_alltoallsmem(w, object, object + 16, 2, 2, 8, 2), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(gshmem_alltoallsmem(w, object, object + 12, 2, 3, 8, 9), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(gshmem_fcollectmem(w, object, object, SIZE_MAX / 2 + 1),
                n == 1 ? GSHMEM_ERR_NOT_SYMMETRIC : GSHMEM_ERR_ARGUMENT, n == 1 ? "end" : "more");
    CHECK_FAILS(gshmem_alltoallmem(w, object, object + (n * 8 - 1), 8), GSHMEM_ERR_ARGUMENT,
                "overlap");
    CHECK_FAILS(gshmem_alltoallsmem(w, object, object + 32768, 0, 1, 8, 1), GSHMEM_ERR_ARGUMENT,
                "strides");
    /* extents that are 2^64 elements, or as many bytes */
    if (n == 3)
        CHECK_FAILS(gshmem_alltoallsmem(w, object, object + 32768, SIZE_MAX / 5, 1, 8, 2), GSHMEM_ERR_ARGUMENT,
                    "stride of 3689348814741910323");
    CHECK_FAILS(gshmem_alltoallsmem(w, object, object + 32768, (ptrdiff_t)1 << 62, 1, 8, 2), GSHMEM_ERR_ARGUMENT,
                "more than");
    CHECK_FAILS(gshmem_collectmem(w, on_stack, object, 8), GSHMEM_ERR_NOT_SYMMETRIC, "dest");
    CHECK_FAILS(gshmem_collectmem(w, object, object + n * 8 - 1, 8), GSHMEM_ERR_ARGUMENT,
                "overlap");
    CHECK_FAILS(gshmem_collectmem(w, object, object + 1, 4100), GSHMEM_ERR_ARGUMENT, "overlap");
#define REDUCE(type, op, dest, source, n)                                                          \
    gshmem_reduce(w, GSHMEM_TYPE_##type, GSHMEM_OP_##op, dest, source, n)
    CHECK_FAILS(REDUCE(DOUBLE, XOR, object, object, 1), GSHMEM_ERR_ARGUMENT,
                "xor is not defined for double");
    CHECK_FAILS(REDUCE(COMPLEXD, MAX, object, object, 1), GSHMEM_ERR_ARGUMENT, "max");
    CHECK_FAILS(REDUCE(COUNT, SUM, object, object, 1), GSHMEM_ERR_ARGUMENT, "no type");
    CHECK_FAILS(REDUCE(INT8, COUNT, object, object, 1), GSHMEM_ERR_ARGUMENT, "no operation");
    for (int outside = -40; outside < 40; outside++) {
        const enum gshmem_type type = (enum gshmem_type)outside;
        const enum gshmem_op op = (enum gshmem_op)outside;
        if (outside < 0 || outside >= GSHMEM_TYPE_COUNT) {
            CHECK_EQ(gshmem_reduce(w, type, GSHMEM_OP_SUM, object, object, 1), GSHMEM_ERR_ARGUMENT);
            CHECK_EQ(gshmem_reducescatter(w, type, GSHMEM_OP_SUM, object, object, 1),
                     GSHMEM_ERR_ARGUMENT);
            CHECK_EQ(gshmem_inscan(w, type, object, object, 1), GSHMEM_ERR_ARGUMENT);
            CHECK_EQ(gshmem_exscan(w, type, object, object, 1), GSHMEM_ERR_ARGUMENT);
        }
        if (outside < 0 || outside >= GSHMEM_OP_COUNT) {
            CHECK_EQ(gshmem_reduce(w, GSHMEM_TYPE_INT8, op, object, object, 1), GSHMEM_ERR_ARGUMENT);
            CHECK_EQ(gshmem_reducescatter(w, GSHMEM_TYPE_INT8, op, object, object, 1),
                     GSHMEM_ERR_ARGUMENT);
        }
    }
    CHECK_FAILS(REDUCE(INT64, SUM, object, object + 8, 2), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(REDUCE(INT64, SUM, object, object, SIZE_MAX / 4), GSHMEM_ERR_ARGUMENT, "more than");
    CHECK_FAILS(REDUCE(INT64, SUM, object, object, SIZE_MAX / 8), GSHMEM_ERR_NOT_SYMMETRIC, "end");
    /* nothing moves: any addresses will do */
    CHECK_OK(REDUCE(INT64, SUM, NULL, on_stack, 0));
    CHECK_OK(gshmem_alltoallmem(w, NULL, NULL, 0));
    CHECK_OK(gshmem_collectmem(w, NULL, NULL, 0));
    /* One PE gives nothing, and nowhere; the others where the heap begins: all fail, and go on together. */
    if (n > 1)
        CHECK_FAILS(gshmem_collectmem(w, me == 1 ? NULL : heap_begin, object, me == 1 ? 0 : 64), GSHMEM_ERR_MISMATCH, "collect");
    check_alive(w);
}

static void try_contexts(void)
{
    gshmem_team_t team;
    gshmem_ctx_t ctx;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &team));
    CHECK_OK(gshmem_team_create_ctx(team, 0, &ctx));
    CHECK_FAILS(gshmem_team_destroy(team), GSHMEM_ERR_STATE, "contexts");
    check_alive(team);
    CHECK_OK(gshmem_ctx_destroy(ctx));
    CHECK_OK(gshmem_team_destroy(team));
}

int main(void)
{
    CHECK_FAILS(gshmem_team_sync(GSHMEM_TEAM_WORLD), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_EQ(gshmem_team_my_pe(GSHMEM_TEAM_WORLD), -1);
    CHECK_OK(gshmem_init());
    heap_begin = gshmem_malloc(8192);
    object = gshmem_malloc(65536);
    CHECK(object != NULL);
    try_handles();
    try_splits();
    try_disagreement();
    try_large_disagreement();
    try_arguments();
    try_contexts();
    CHECK_OK(gshmem_free(object));
    CHECK_OK(gshmem_free(heap_begin));
    CHECK_OK(gshmem_finalize());
    return 0;
}

/* Joining and leaving a job: before, nested, at every thread level, again and again, and after. */
#include "pe.h"

static long cell;

static void check_outside(void)
{
    const char *text;
    long value = 1;
    uint64_t signal = 0;

    CHECK_EQ(gshmem_initialized(), 0);
    CHECK_EQ(gshmem_my_pe(), -1);
    CHECK_EQ(gshmem_n_pes(), -1);
    CHECK_EQ(gshmem_pe_accessible(0), 0);
    CHECK_EQ(gshmem_addr_accessible(&cell, 0), 0);
    CHECK(!gshmem_ptr(&cell, 0));
    CHECK_EQ(gshmem_team_my_pe(GSHMEM_TEAM_WORLD), -1);
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_WORLD), -1);

    CHECK_FAILS(gshmem_putmem(&cell, &value, sizeof cell, 0), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_getmem(&value, &cell, sizeof cell, 0), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_putmem_nbi(&cell, &value, 0, 0), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, &cell, &value, 1, 1, 8, 1, 0),
                GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_signal_add(&signal, 1, 0), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_putmem_signal(&cell, &value, 8, &signal, 1, GSHMEM_SIGNAL_SET, 0),
                GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_STATE, "barrier_all");
    CHECK_FAILS(gshmem_sync_all(), GSHMEM_ERR_STATE, "sync_all");
    CHECK_FAILS(gshmem_quiet(), GSHMEM_ERR_STATE, "quiet");
    CHECK_FAILS(gshmem_fence(), GSHMEM_ERR_STATE, "fence");
    CHECK_FAILS(gshmem_set_lock(&cell), GSHMEM_ERR_STATE, "set_lock");
    CHECK_FAILS(gshmem_finalize(), GSHMEM_ERR_STATE, "finalize");

    gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;
    CHECK_FAILS(gshmem_ctx_create(0, &ctx), GSHMEM_ERR_STATE, "ctx_create");
    gshmem_team_t team = GSHMEM_TEAM_INVALID;
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team),
                GSHMEM_ERR_STATE, "team_split_strided");

    CHECK(!gshmem_malloc(8));
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_STATE);
    CHECK_HAS(text, "malloc");
}

static void check_inside(void)
{
    CHECK_EQ(gshmem_initialized(), 1);
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    CHECK(me >= 0 && me < n);
    CHECK_EQ(gshmem_team_my_pe(GSHMEM_TEAM_WORLD), me);
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_WORLD), n);
}

/* Both kinds of symmetric memory work in this round. */
static void exchange(long round)
{
    long *heap = take(sizeof *heap);
    long mine = round * 1000 + me, got = -1;

    *heap = -1;
    cell = -1;
    barrier();
    CHECK_OK(gshmem_putmem(heap, &mine, sizeof mine, right()));
    CHECK_OK(gshmem_putmem(&cell, &mine, sizeof mine, right()));
    barrier();
    CHECK_EQ(*heap, round * 1000 + left());
    CHECK_EQ(cell, round * 1000 + left());
    CHECK_OK(gshmem_getmem(&got, heap, sizeof got, right()));
    CHECK_EQ(got, mine);
    CHECK_OK(gshmem_free(heap));
}

static void test_nested(void)
{
    for (int i = 0; i < 3; i++)
        CHECK_OK(gshmem_init());
    check_inside();
    for (int i = 0; i < 2; i++) {
        CHECK_OK(gshmem_finalize());
        check_inside();
    }
    exchange(1);
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(gshmem_initialized(), 0);
}

static void test_levels(void)
{
    for (int level = GSHMEM_THREAD_SINGLE; level <= GSHMEM_THREAD_MULTIPLE; level++) {
        int provided = -1;
        CHECK_OK(gshmem_init_thread(level, &provided));
        CHECK_EQ(provided, level);
        CHECK_EQ(gshmem_query_thread(), level);
        CHECK_OK(gshmem_init_thread(level, NULL)); /* nobody has to want to know */
        CHECK_OK(gshmem_finalize());
        CHECK_OK(gshmem_finalize());
    }

    int provided = -7;
    CHECK_FAILS(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE + 1, &provided), GSHMEM_ERR_ARGUMENT,
                "4");
    CHECK_FAILS(gshmem_init_thread(-1, &provided), GSHMEM_ERR_ARGUMENT, "-1");
    CHECK_EQ(provided, -7);
    CHECK_EQ(gshmem_initialized(), 0);
}

static void test_again(void)
{
    for (long round = 0; round < 5; round++) {
        CHECK_OK(gshmem_init());
        check_inside();
        exchange(round);
        CHECK_OK(gshmem_finalize());
        CHECK_EQ(gshmem_initialized(), 0);
        CHECK_EQ(gshmem_my_pe(), -1);
    }
}

static void test_attr(void)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};

    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_EQ(gshmem_query_thread(), GSHMEM_THREAD_MULTIPLE);
    CHECK_OK(gshmem_finalize());
    CHECK_FAILS(gshmem_init_attr(NULL), GSHMEM_ERR_ARGUMENT, "gshmem_init_attr");
}

static void test_info(void)
{
    int major = -1, minor = -1;
    char name[64], expected[64];

    gshmem_info_get_version(&major, &minor);
    CHECK_EQ(major, GSHMEM_MAJOR_VERSION);
    CHECK_EQ(minor, GSHMEM_MINOR_VERSION);
    gshmem_info_get_name(name);
    snprintf(expected, sizeof expected, "GSHMEM %d.%d.%d", GSHMEM_MAJOR_VERSION,
             GSHMEM_MINOR_VERSION, GSHMEM_PATCH_VERSION);
    CHECK_STR(name, expected);

    CHECK_STR(gshmem_status_name(GSHMEM_OK), "GSHMEM_OK");
    CHECK_STR(gshmem_status_name(GSHMEM_ERR_PEER_DEAD), "GSHMEM_ERR_PEER_DEAD");
    CHECK_STR(gshmem_status_text(GSHMEM_ERR_TIMEOUT), "timed out");
    CHECK(gshmem_status_name((gshmem_status_t)999)[0]);
    CHECK(gshmem_status_text((gshmem_status_t)-1)[0]);
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    test_info();
    check_outside();
    test_nested();
    check_outside();
    test_levels();
    test_again();
    test_attr();
    check_outside();
    return 0;
}

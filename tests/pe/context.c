/* Contexts: made, used and destroyed; of teams, with the team's numbers; and wrong handles. */
#include "pe.h"

static uint64_t cell[16];

static void test_create(void)
{
    static const long options[] = {0, GSHMEM_CTX_SERIALIZED, GSHMEM_CTX_PRIVATE, GSHMEM_CTX_NOSTORE,
                                   GSHMEM_CTX_SERIALIZED | GSHMEM_CTX_NOSTORE};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;
        gshmem_team_t team = GSHMEM_TEAM_INVALID;
        uint64_t value = i * 100 + (uint64_t)me, got = 0;

        CHECK_OK(gshmem_ctx_create(options[i], &ctx));
        CHECK(ctx != GSHMEM_CTX_INVALID && ctx != GSHMEM_CTX_DEFAULT);
        CHECK_OK(gshmem_ctx_get_team(ctx, &team));
        CHECK_EQ(team, GSHMEM_TEAM_WORLD);
        gshmem_ctx_session_start(ctx, 0);
        CHECK_OK(gshmem_ctx_putmem_nbi(ctx, &cell[i], &value, 8, right()));
        gshmem_ctx_session_stop(ctx);
        CHECK_OK(gshmem_ctx_fence(ctx));
        CHECK_OK(gshmem_ctx_quiet(ctx));
        CHECK_OK(gshmem_ctx_getmem(ctx, &got, &cell[i], 8, right()));
        CHECK_EQ(got, value);
        CHECK_OK(gshmem_ctx_destroy(ctx));
        barrier();
        CHECK_EQ(cell[i], i * 100 + (uint64_t)left());
    }

    gshmem_team_t team = GSHMEM_TEAM_INVALID;
    CHECK_OK(gshmem_ctx_get_team(GSHMEM_CTX_DEFAULT, &team));
    CHECK_EQ(team, GSHMEM_TEAM_WORLD);
}

/* Many live at once, and their places are used again. */
static void test_many(void)
{
    enum { MANY = 100 };
    gshmem_ctx_t ctx[MANY];

    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < MANY; i++) {
            CHECK_OK(gshmem_ctx_create(0, &ctx[i]));
            for (uint64_t j = 0; j < i; j++)
                CHECK(ctx[j] != ctx[i]);
            CHECK_OK(gshmem_ctx_putmem(ctx[i], &cell[0], &i, 8, me));
        }
        CHECK_EQ(cell[0], MANY - 1);
        for (int i = 0; i < MANY; i++)
            CHECK_OK(gshmem_ctx_destroy(ctx[i]));
    }
    barrier();
}

/* What is under way on a context is complete when it is destroyed. */
static void test_destroy_completes(void)
{
    enum { BYTES = 1 << 20, ROUNDS = 10 };
    unsigned char *there = gshmem_malloc(BYTES), *here = malloc(BYTES);
    gshmem_ctx_t ctx;

    CHECK(there && here);
    for (int round = 1; round <= ROUNDS; round++) {
        memset(there, round, BYTES);
        memset(here, 0, BYTES);
        barrier();
        CHECK_OK(gshmem_ctx_create(0, &ctx));
        CHECK_OK(gshmem_ctx_getmem_nbi(ctx, here, there, BYTES, right()));
        CHECK_OK(gshmem_ctx_destroy(ctx));
        CHECK_EQ(here[0], round);
        CHECK_EQ(here[BYTES - 1], round);
        barrier();
    }
    free(here);
    CHECK_OK(gshmem_free(there));
}

/* The last PE first: number i of the team is PE n-1-i. */
static void test_team(void)
{
    gshmem_team_t backwards = GSHMEM_TEAM_INVALID, team = GSHMEM_TEAM_INVALID;
    gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;
    uint64_t value = 500 + (uint64_t)me, got;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &backwards));
    CHECK_EQ(gshmem_team_my_pe(backwards), n - 1 - me);
    CHECK_OK(gshmem_team_create_ctx(backwards, 0, &ctx));
    CHECK_OK(gshmem_ctx_get_team(ctx, &team));
    CHECK_EQ(team, backwards);

    memset(cell, 0, sizeof cell);
    barrier();
    for (int i = 0; i < n; i++)
        CHECK_OK(gshmem_ctx_putmem(ctx, &cell[me], &value, 8, i));
    CHECK_OK(gshmem_ctx_signal_add(ctx, &cell[15], 1, n - 1 - right()));
    CHECK_OK(gshmem_ctx_quiet(ctx));
    barrier();
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(cell[pe], 500 + pe);
    CHECK_EQ(cell[15], 1);
    cell[14] = 900 + (uint64_t)me;
    barrier();
    for (int i = 0; i < n; i++) {
        CHECK_OK(gshmem_ctx_getmem(ctx, &got, &cell[14], 8, i));
        CHECK_EQ(got, 900 + n - 1 - i);
    }
    CHECK_OK(gshmem_ctx_destroy(ctx));
    CHECK_OK(gshmem_team_destroy(backwards));
    barrier();
}

/* A team of fewer PEs has no number for the others. */
static void test_smaller_team(void)
{
    gshmem_team_t first = GSHMEM_TEAM_INVALID;
    uint64_t value = 1;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &first));
    if (me == 0) {
        gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;
        CHECK_OK(gshmem_team_create_ctx(first, 0, &ctx));
        CHECK_OK(gshmem_ctx_putmem(ctx, &cell[0], &value, 8, 0));
        CHECK_FAILS(gshmem_ctx_putmem(ctx, &cell[0], &value, 8, 1), GSHMEM_ERR_ARGUMENT, "PE 1");
        CHECK_OK(gshmem_ctx_destroy(ctx));
        CHECK_OK(gshmem_team_destroy(first));
    } else {
        CHECK_EQ(first, GSHMEM_TEAM_INVALID);
    }
    barrier();
}

static void test_invalid(void)
{
    gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;
    gshmem_team_t team = GSHMEM_TEAM_INVALID;
    uint64_t value = 0;

    CHECK_FAILS(gshmem_ctx_destroy(GSHMEM_CTX_DEFAULT), GSHMEM_ERR_ARGUMENT, "default");
    CHECK_FAILS(gshmem_ctx_destroy((gshmem_ctx_t)(void *)cell), GSHMEM_ERR_ARGUMENT, "no context");
    CHECK_OK(gshmem_ctx_destroy(GSHMEM_CTX_INVALID)); /* as the standard has it: nothing to do */
    CHECK_FAILS(gshmem_ctx_quiet(GSHMEM_CTX_INVALID), GSHMEM_ERR_ARGUMENT, "GSHMEM_CTX_INVALID");
    CHECK_FAILS(gshmem_ctx_fence(GSHMEM_CTX_INVALID), GSHMEM_ERR_ARGUMENT, "GSHMEM_CTX_INVALID");
    CHECK_FAILS(gshmem_ctx_putmem(GSHMEM_CTX_INVALID, cell, &value, 8, 0), GSHMEM_ERR_ARGUMENT,
                "GSHMEM_CTX_INVALID");
    CHECK_FAILS(gshmem_ctx_getmem(GSHMEM_CTX_INVALID, &value, cell, 8, 0), GSHMEM_ERR_ARGUMENT,
                "GSHMEM_CTX_INVALID");
    CHECK_FAILS(gshmem_ctx_signal_set(GSHMEM_CTX_INVALID, cell, 8, 0), GSHMEM_ERR_ARGUMENT,
                "GSHMEM_CTX_INVALID");
    team = GSHMEM_TEAM_WORLD;
    CHECK_OK(gshmem_ctx_get_team(GSHMEM_CTX_INVALID, &team));
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    CHECK_FAILS(gshmem_ctx_get_team(GSHMEM_CTX_DEFAULT, NULL), GSHMEM_ERR_ARGUMENT, "NULL");

    CHECK_FAILS(gshmem_ctx_create(0, NULL), GSHMEM_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(gshmem_ctx_create(0x4000, &ctx), GSHMEM_ERR_ARGUMENT, "0x4000");
    CHECK_FAILS(gshmem_team_create_ctx(GSHMEM_TEAM_INVALID, 0, &ctx), GSHMEM_ERR_ARGUMENT,
                "team_create_ctx");
    CHECK_FAILS(gshmem_team_create_ctx((gshmem_team_t)77, 0, &ctx), GSHMEM_ERR_ARGUMENT, "77");
    CHECK(ctx == GSHMEM_CTX_INVALID);
    barrier();
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    begin();
    test_create();
    test_many();
    test_destroy_completes();
    test_team();
    test_smaller_team();
    test_invalid();
    end();
    return 0;
}

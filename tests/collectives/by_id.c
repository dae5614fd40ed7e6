/* Teams that their members make by an id, without the others: who is in them, that nobody else is
 * needed, slots and ids that are used again, and that each mistake fails on all members. */
#include <stdbool.h>

#include "groups.h"

static gshmem_team_uniqueid_t shared_id; /* symmetric: a variable of the program */
static long arrived, in, out;

/* The PE `maker` makes an id, and all PEs get it. */
static gshmem_team_uniqueid_t id_of(int maker)
{
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == maker) {
        gshmem_team_uniqueid_t id;
        CHECK_OK(gshmem_team_get_uniqueid(&id));
        for (int pe = 0; pe < gshmem_n_pes(); pe++)
            CHECK_OK(gshmem_putmem(&shared_id, &id, sizeof id, pe));
    }
    CHECK_OK(gshmem_barrier_all());
    return shared_id;
}

static gshmem_team_t make(gshmem_team_uniqueid_t id, int n, int my)
{
    gshmem_team_t team = 1234;

    CHECK_OK(gshmem_team_create(id, n, my, NULL, 0, &team));
    CHECK(team > GSHMEM_TEAM_SAME_INDEX);
    return team;
}

/* The team's PEs are pe[0 … n-1], and its collectives work. */
static void try_team(gshmem_team_t team, const int *pe, int n, int my)
{
    long sum = 0;

    CHECK_EQ(gshmem_team_n_pes(team), n);
    CHECK_EQ(gshmem_team_my_pe(team), my);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(gshmem_team_translate_pe(team, i, GSHMEM_TEAM_WORLD), pe[i]);
        sum += 1L << pe[i];
    }
    in = 1L << gshmem_my_pe();
    CHECK_OK(gshmem_reduce(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &out, &in, 1));
    CHECK_EQ(out, sum);
    CHECK_OK(gshmem_barrier(team));
}

/* Teams of all kinds, by ids that any PE may have made. */
static void try_kinds(const struct members *m, int maker)
{
    const gshmem_team_uniqueid_t id = id_of(maker);

    if (m->my < 0)
        return;
    const gshmem_team_t team = make(id, m->n, m->my);
    try_team(team, m->pe, m->n, m->my);
    CHECK_OK(gshmem_team_destroy(team));
}

/* The last PE takes part in nothing until the team of the others has been made and used. */
static void try_without_the_last(void)
{
    const int n = gshmem_n_pes() - 1, me = gshmem_my_pe();
    const gshmem_team_uniqueid_t id = id_of(n);
    int pe[GROUP_PES];

    arrived = 0;
    CHECK_OK(gshmem_barrier_all());
    if (n == 0)
        return;
    for (int i = 0; i < n; i++)
        pe[i] = n - 1 - i;
    if (me < n) {
        const gshmem_team_t team = make(id, n, n - 1 - me);
        try_team(team, pe, n, n - 1 - me);
        CHECK_OK(gshmem_team_destroy(team));
        CHECK_OK(gshmem_long_atomic_add(&arrived, 1, n));
    } else {
        CHECK_OK(gshmem_long_wait_until(&arrived, GSHMEM_CMP_EQ, n));
    }
}

/* Both halves of the job at once, forty times: records and slots are used again. */
static void try_halves(void)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    static gshmem_team_uniqueid_t ids[2];
    int pe[GROUP_PES];

    for (int round = 0; round < 40; round++) {
        const int half = me % 2, size = (n + 1 - half) / 2;
        if (me < 2) { /* PE 0 for the even ones, PE 1 for the odd ones */
            gshmem_team_uniqueid_t id;
            CHECK_OK(gshmem_team_get_uniqueid(&id));
            for (int to = half; to < n; to += 2)
                CHECK_OK(gshmem_putmem(&ids[round % 2], &id, sizeof id, to));
        }
        CHECK_OK(gshmem_barrier_all());
        skew((uint64_t)round);
        for (int i = 0; i < size; i++)
            pe[i] = half + 2 * ((i + round) % size);
        const int my = (me / 2 + size * 40 - round) % size;
        const gshmem_team_t team = make(ids[round % 2], size, my);
        if (round % 10 == 0)
            try_team(team, pe, size, my);
        CHECK_OK(gshmem_team_destroy(team));
    }
}

/* Ids that are not used are forgotten, the oldest first; those in use are not. */
static void try_unused(void)
{
    gshmem_team_uniqueid_t old, id;
    gshmem_team_t team;

    CHECK_OK(gshmem_team_get_uniqueid(&old));
    CHECK_OK(gshmem_team_get_uniqueid(&id));
    team = make(id, 1, 0);
    CHECK_OK(gshmem_team_destroy(team));
    for (int i = 0; i < 32; i++) {
        CHECK_OK(gshmem_team_get_uniqueid(&id));
        CHECK(id != old && id != 0);
    }
    CHECK_FAILS(gshmem_team_create(old, 1, 0, NULL, 0, &team), GSHMEM_ERR_ARGUMENT,
                "has made others since");
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    team = make(id, 1, 0);
    CHECK_OK(gshmem_team_destroy(team));
    CHECK_FAILS(gshmem_team_create(id, 1, 0, NULL, 0, &team), GSHMEM_ERR_ARGUMENT,
                "good for one team");
}

/* ---- Mistakes ---- */

static void try_garbage(void)
{
    const gshmem_team_uniqueid_t id = id_of(0);
    gshmem_team_t team;

    CHECK_FAILS(gshmem_team_get_uniqueid(NULL), GSHMEM_ERR_ARGUMENT, "id is NULL");
    for (int bit = 0; bit < 64; bit++)
        CHECK_FAILS(gshmem_team_create(id ^ (uint64_t)1 << bit, 1, 0, NULL, 0, &team),
                    GSHMEM_ERR_ARGUMENT, "is no id");
    CHECK_FAILS(gshmem_team_create(0, 1, 0, NULL, 0, &team), GSHMEM_ERR_ARGUMENT, "is no id");
    CHECK_FAILS(gshmem_team_create(~(uint64_t)0, 1, 0, NULL, 0, &team), GSHMEM_ERR_ARGUMENT,
                "is no id");
}

/* PE 0 makes the mistake before, or after, the others have come: all fail. */
struct mistake {
    int n, my; /* of PE 0: how many more than there are, and its number */
    int contexts;
    long mask;
    const char *own, *theirs; /* what PE 0 and the others say */
    gshmem_status_t status;
};

static void try_mistake(const struct mistake *m, bool first)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    const gshmem_team_uniqueid_t id = id_of(n - 1);
    const gshmem_team_config_t config = {.num_contexts = m->contexts};
    gshmem_team_t team = 77;

    arrived = 0;
    CHECK_OK(gshmem_barrier_all());
    if (me != 0) {
        if (first)
            CHECK_OK(gshmem_long_wait_until(&arrived, GSHMEM_CMP_EQ, 1));
        const gshmem_status_t status = gshmem_team_create(id, n, me, NULL, 0, &team);
        const char *line;
        CHECK_EQ(status, GSHMEM_ERR_MISMATCH);
        gshmem_last_error(&line);
        CHECK(strstr(line, m->theirs) || strstr(line, m->own));
    } else {
        if (!first)
            skew(1);
        const gshmem_status_t status =
            gshmem_team_create(id, n + m->n, m->my, &config, m->mask, &team);
        const char *line;
        if (status != m->status && status != GSHMEM_ERR_MISMATCH)
            CHECK_EQ(status, m->status);
        gshmem_last_error(&line);
        CHECK(strstr(line, m->theirs) || strstr(line, m->own));
        for (int pe = 1; pe < n; pe++)
            CHECK_OK(gshmem_long_atomic_add(&arrived, 1, pe));
    }
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    /* and nobody gets a team by it later */
    CHECK_OK(gshmem_barrier_all());
    CHECK(gshmem_team_create(id, n, me, NULL, 0, &team) != GSHMEM_OK);
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
}

/* Where PE 0 is first it waits for the others, unless its own arguments are refused: only refusals
 * are tried so. */
static void try_mistakes(void)
{
    static const struct mistake refused[] = {
        {0, -1, 0, 0, "PE -1 of a team", "has passed bad arguments", GSHMEM_ERR_ARGUMENT},
        {0, 64, 0, 0, "PE 64 of a team", "has passed bad arguments", GSHMEM_ERR_ARGUMENT},
        {1, 0, 0, 0, "PE 0 of a team of", "has passed bad arguments", GSHMEM_ERR_ARGUMENT},
        {0, 0, 0, 2, "config_mask", "has passed bad arguments", GSHMEM_ERR_ARGUMENT},
        {0, 0, -1, 1, "is negative", "has passed bad arguments", GSHMEM_ERR_ARGUMENT},
    };
    static const struct mistake differs[] = {
        {-1, 0, 0, 0, "a team of", "another size of the team", GSHMEM_ERR_MISMATCH},
        {0, 1, 0, 0, "has the number 1", "the same number in the team", GSHMEM_ERR_MISMATCH},
        {0, 0, 3, 1, "another configuration", "another configuration", GSHMEM_ERR_MISMATCH},
    };

    if (gshmem_n_pes() < 3) /* a team of one PE would be complete */
        return;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        try_mistake(&refused[i], false);
        try_mistake(&refused[i], true);
    }
    for (size_t i = 0; i < sizeof differs / sizeof *differs; i++)
        try_mistake(&differs[i], false);
}

/* All slots of one PE are taken: no member gets the team, and all do once there is one. */
static void try_full(void)
{
    enum { ALL = 4076 };
    static gshmem_team_t taken[ALL];
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    gshmem_team_t team;
    int made = 0;

    for (; me == 0 && made < ALL; made++) {
        gshmem_team_uniqueid_t own;
        CHECK_OK(gshmem_team_get_uniqueid(&own));
        taken[made] = make(own, 1, 0);
    }
    gshmem_team_uniqueid_t id = id_of(0);
    CHECK_FAILS(gshmem_team_create(id, n, me, NULL, 0, &team), GSHMEM_ERR_MEMORY,
                "no team slot is free");
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    if (me == 0)
        CHECK_OK(gshmem_team_destroy(taken[--made]));
    id = id_of(0);
    team = make(id, n, me);
    CHECK_OK(gshmem_team_destroy(team));
    while (made > 0)
        CHECK_OK(gshmem_team_destroy(taken[--made]));
}

static void try_config(void)
{
    gshmem_team_config_t config = {.num_contexts = 5}, got = {.num_contexts = -1};
    const gshmem_team_uniqueid_t id = id_of(0);
    gshmem_team_t team;
    gshmem_ctx_t ctx;

    CHECK_OK(gshmem_team_create(id, gshmem_n_pes(), gshmem_my_pe(), &config,
                                GSHMEM_TEAM_NUM_CONTEXTS, &team));
    CHECK_OK(gshmem_team_get_config(team, GSHMEM_TEAM_NUM_CONTEXTS, &got));
    CHECK_EQ(got.num_contexts, 5);
    CHECK_OK(gshmem_team_create_ctx(team, 0, &ctx));
    CHECK_OK(gshmem_ctx_destroy(ctx));
    CHECK_OK(gshmem_team_destroy(team));
}

int main(void)
{
    struct members teams[8];

    for (int again = 0; again < 2; again++) {
        CHECK_OK(gshmem_init());
        const int count = members_make(teams), n = gshmem_n_pes();
        for (int i = 0; i < count; i++) {
            /* the members of `row` and its like differ between PEs: one id is for one team */
            if (teams[i].n == n || strcmp(teams[i].name, "every second") == 0)
                try_kinds(&teams[i], i % n);
        }
        members_free(teams, count);
        try_without_the_last();
        try_config();
        try_halves();
        try_unused();
        try_garbage();
        try_mistakes();
        try_full();
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}

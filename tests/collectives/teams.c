/* Teams: membership, numbers, configuration, slots and their reuse. */
#include <stdbool.h>

#include "groups.h"

/* One PE of each node, in the order of PEs, each with the same number there. */
static void try_same_index(bool one_host)
{
    const int n = gshmem_team_n_pes(GSHMEM_TEAM_SAME_INDEX), me = gshmem_my_pe();
    const int index = gshmem_team_my_pe(GSHMEM_TEAM_HOST);
    static long all, here, mine;

    if (one_host)
        CHECK_EQ(n, 1);
    for (int i = 0; i + 1 < n; i++)
        CHECK(gshmem_team_translate_pe(GSHMEM_TEAM_SAME_INDEX, i, GSHMEM_TEAM_WORLD) <
              gshmem_team_translate_pe(GSHMEM_TEAM_SAME_INDEX, i + 1, GSHMEM_TEAM_WORLD));
    for (int i = 0; i < n; i++) {
        const int pe = gshmem_team_translate_pe(GSHMEM_TEAM_SAME_INDEX, i, GSHMEM_TEAM_WORLD);
        CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, GSHMEM_TEAM_HOST),
                 pe == me ? index : -1);
    }
    /* all have the same number on their nodes, and every PE is in one such team */
    mine = index;
    CHECK_OK(gshmem_reduce(GSHMEM_TEAM_SAME_INDEX, GSHMEM_TYPE_INT64, GSHMEM_OP_MAX, &all, &mine,
                           1));
    CHECK_EQ(all, index);
    CHECK_OK(gshmem_reduce(GSHMEM_TEAM_SAME_INDEX, GSHMEM_TYPE_INT64, GSHMEM_OP_MIN, &all, &mine,
                           1));
    CHECK_EQ(all, index);
    mine = gshmem_team_my_pe(GSHMEM_TEAM_SAME_INDEX) == 0 ? n : 0;
    CHECK_OK(gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &here, &mine, 1));
    CHECK_EQ(here, gshmem_n_pes());
}

static void try_predefined(void)
{
    static const gshmem_team_t predefined[] = {GSHMEM_TEAM_WORLD, GSHMEM_TEAM_SHARED,
                                               GSHMEM_TEAM_HOST, GSHMEM_TEAM_SAME_INDEX};
    int n = gshmem_n_pes(), me = gshmem_my_pe();
    bool one_host = gshmem_team_n_pes(GSHMEM_TEAM_HOST) == n;

    for (int i = 0; i < 4; i++) {
        if (i == 0 || (one_host && i < 3)) {
            CHECK_EQ(gshmem_team_n_pes(predefined[i]), n);
            CHECK_EQ(gshmem_team_my_pe(predefined[i]), me);
        }
        CHECK_EQ(gshmem_team_translate_pe(predefined[i], gshmem_team_my_pe(predefined[i]),
                                          GSHMEM_TEAM_WORLD),
                 me);
        CHECK_OK(gshmem_team_sync(predefined[i]));
        CHECK_OK(gshmem_barrier(predefined[i]));
    }
    try_same_index(one_host);
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_INVALID), -1);
    CHECK_EQ(gshmem_team_my_pe(GSHMEM_TEAM_INVALID), -1);
    CHECK_EQ(gshmem_team_n_pes(200), -1);
}

static void try_members(const struct members *m)
{
    if (m->my < 0) {
        CHECK_EQ(m->team, GSHMEM_TEAM_INVALID);
        return;
    }
    CHECK_EQ(gshmem_team_n_pes(m->team), m->n);
    CHECK_EQ(gshmem_team_my_pe(m->team), m->my);
    for (int i = 0; i < m->n; i++)
        CHECK_EQ(gshmem_team_translate_pe(m->team, i, GSHMEM_TEAM_WORLD), m->pe[i]);
    CHECK_EQ(gshmem_team_translate_pe(m->team, -1, GSHMEM_TEAM_WORLD), -1);
    CHECK_EQ(gshmem_team_translate_pe(m->team, m->n, GSHMEM_TEAM_WORLD), -1);
    CHECK_EQ(gshmem_team_translate_pe(m->team, 0, GSHMEM_TEAM_INVALID), -1);
    for (int pe = 0; pe < gshmem_n_pes(); pe++) {
        int number = -1;
        for (int i = 0; i < m->n; i++) {
            if (m->pe[i] == pe)
                number = i;
        }
        CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, m->team), number);
    }
}

static void try_config(void)
{
    gshmem_team_config_t config = {.num_contexts = 3}, got = {.num_contexts = -1};
    int n = gshmem_n_pes();
    gshmem_team_t team;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, &config,
                                       GSHMEM_TEAM_NUM_CONTEXTS, &team));
    CHECK_OK(gshmem_team_get_config(team, 0, &got));
    CHECK_EQ(got.num_contexts, -1);
    CHECK_OK(gshmem_team_get_config(team, GSHMEM_TEAM_NUM_CONTEXTS, &got));
    CHECK_EQ(got.num_contexts, 3);
    CHECK_FAILS(gshmem_team_get_config(team, 2, &got), GSHMEM_ERR_ARGUMENT, "config_mask");
    CHECK_OK(gshmem_team_destroy(team));
}

/* More teams than there are slots of the first kind, and all of them again. */
static void try_many_slots(void)
{
    enum { TEAMS = 270 };
    static gshmem_team_t team[TEAMS];
    int n = gshmem_n_pes();

    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < TEAMS; i++) {
            CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[i]));
            CHECK_OK(gshmem_team_sync(team[i]));
        }
        for (int i = TEAMS; i-- > 0;)
            CHECK_OK(gshmem_team_destroy(team[i]));
    }
}

/* Slots are used again at once, by other sets of PEs, while slow members of the old team may still
 * be leaving it. */
static void try_reuse(void)
{
    int n = gshmem_n_pes(), me = gshmem_my_pe();
    static long in, out;

    for (int i = 0; i < 400; i++) {
        int stride = 1 + i % 2, first = (int)(random_of((uint64_t)i) % (uint64_t)n);
        int size = (n - first + stride - 1) / stride, members = 0;
        gshmem_team_t half, inner;

        skew((uint64_t)i);
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, first, stride, size, NULL, 0, &half));
        if (half == GSHMEM_TEAM_INVALID)
            continue;
        members = gshmem_team_n_pes(half);
        in = me;
        CHECK_OK(gshmem_reduce(half, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &out, &in, 1));
        CHECK_EQ(out, (long)members * first + (long)stride * members * (members - 1) / 2);
        /* a team of a team that not all are in */
        CHECK_OK(gshmem_team_split_strided(half, 0, 1, 1 + members / 2, NULL, 0, &inner));
        if (inner != GSHMEM_TEAM_INVALID) {
            in = 1;
            CHECK_OK(gshmem_reduce(inner, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &out, &in, 1));
            CHECK_EQ(out, 1 + members / 2);
            CHECK_OK(gshmem_team_destroy(inner));
        }
        skew((uint64_t)i + 1000);
        CHECK_OK(gshmem_team_destroy(half));
    }
}

int main(void)
{
    struct members teams[8];

    for (int again = 0; again < 2; again++) { /* the second job finds nothing of the first */
        CHECK_OK(gshmem_init());
        try_predefined();
        int count = members_make(teams);
        for (int i = 0; i < count; i++)
            try_members(&teams[i]);
        members_free(teams, count);
        try_config();
        try_many_slots();
        try_reuse();
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}

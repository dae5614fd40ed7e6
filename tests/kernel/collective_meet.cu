/* sync and barrier in kernels: nobody leaves before all have come, what was written before is seen,
 * and what was put is there; teams that meet at the same time, each in a block of its own; and who
 * is in a team, as the host says. */
#include "kernel/collective.h"

enum { ROUNDS = 200, TEAMS = 8, WORDS = 100 };

struct meeting {
    uint64_t *come;   /* symmetric; [team]: how often this PE has come */
    uint64_t *box;    /* symmetric; [team][PE][WORDS]: what others put */
    uint64_t *letter; /* this PE's own; [team][WORDS] */
    struct found *found;
};

static __device__ uint64_t *box_of(const struct meeting *t, int team, int pe)
{
    return t->box + (size_t)(team * GROUP_PES + pe) * WORDS;
}

/* A store before a sync is what a get after it brings. It is atomic, as others may still read that of
 * the round before. */
template <int scope>
static __device__ void try_sync(const struct meeting *t, const struct members *m, int team,
                                uint64_t round)
{
    if (rank_of(scope) == callers(scope) - 1) {
        late(round);
        atomicExch((unsigned long long *)&t->come[team], (unsigned long long)round);
    }
    EXPECT(t->found, sync_team<scope>(m->team), GSHMEM_OK);
    for (int i = (int)rank_of(scope); i < m->n; i += (int)callers(scope)) {
        uint64_t there = 0;
        EXPECT(t->found, gshmem_getmem(&there, &t->come[team], sizeof there, m->pe[i]), GSHMEM_OK);
        EXPECT(t->found, there == round || there == round + 1, 1);
    }
}

/* Puts of any thread before a barrier have arrived after it. */
template <int scope>
static __device__ void try_barrier(const struct meeting *t, const struct members *m, int team,
                                   uint64_t round)
{
    const int me = gshmem_my_pe();
    uint64_t *letter = t->letter + team * WORDS;

    for (int i = (int)rank_of(scope); i < WORDS; i += (int)callers(scope))
        letter[i] = round * 1000 + (unsigned)i + (uint64_t)me * 1000000000;
    together(scope);
    for (int i = (int)rank_of(scope); i < m->n; i += (int)callers(scope))
        EXPECT(t->found,
               gshmem_putmem_nbi(box_of(t, team, me), letter, WORDS * sizeof *letter, m->pe[i]), 0);
    EXPECT(t->found, barrier<scope>(m->team), GSHMEM_OK);
    for (int i = (int)rank_of(scope); i < m->n * WORDS; i += (int)callers(scope)) {
        int from = m->pe[i / WORDS], word = i % WORDS;
        EXPECT(t->found, box_of(t, team, from)[word],
               round * 1000 + (unsigned)word + (uint64_t)from * 1000000000);
    }
    EXPECT(t->found, sync_team<scope>(m->team), GSHMEM_OK); /* it has been read */
}

template <int scope>
static __global__ void meet(struct meeting t, struct members m, int team, uint64_t first)
{
    if (!calls(scope))
        return;
    for (uint64_t round = first; round < first + ROUNDS; round++)
        try_sync<scope>(&t, &m, team, round);
    for (uint64_t round = first; round < first + ROUNDS / 4; round++)
        try_barrier<scope>(&t, &m, team, round);
}

/* Block b is of the team b. */
static __global__ void meet_at_once(struct meeting t, const struct members *m, uint64_t first)
{
    const int team = (int)blockIdx.x;

    if (m[team].my < 0)
        return;
    for (uint64_t round = first; round < first + ROUNDS; round++)
        try_sync<BLOCK>(&t, &m[team], team, round);
    for (uint64_t round = first; round < first + ROUNDS / 4; round++)
        try_barrier<BLOCK>(&t, &m[team], team, round);
}

/* The block's other threads come to a call while one or some are still in the one before. */
static __global__ void meet_all(struct found *found)
{
    for (int i = 0; i < 10; i++) {
        if (threadIdx.x == 0) {
            EXPECT(found, gshmem_sync_all(), 0);
            EXPECT(found, gshmem_barrier_all(), 0);
        }
        if (threadIdx.x < 32) {
            EXPECT(found, gshmem_sync_all_warp(), 0);
            EXPECT(found, gshmem_barrier_all_warp(), 0);
        }
        EXPECT(found, gshmem_sync_all_block(), 0);
        EXPECT(found, gshmem_barrier_all_block(), 0);
    }
}

/* ---- Who is in a team
 * ---------------------------------------------------------------------------- */

static __global__ void ask(struct found *found, const struct members *m, int n, void *symmetric)
{
    EXPECT(found, gshmem_team_my_pe(GSHMEM_TEAM_INVALID), -1);
    EXPECT(found, gshmem_team_n_pes(12345), -1);
    EXPECT(found, gshmem_team_my_pe(GSHMEM_TEAM_WORLD), gshmem_my_pe());
    EXPECT(found, gshmem_team_n_pes(GSHMEM_TEAM_WORLD), gshmem_n_pes());
    EXPECT(found, gshmem_ptr(symmetric, gshmem_n_pes()) == NULL, 1);
    EXPECT(found, gshmem_ptr(symmetric, -1) == NULL, 1);
    EXPECT(found, gshmem_ptr(&found->wrong, gshmem_my_pe()) == NULL, 1);
    EXPECT(found, gshmem_ptr(symmetric, gshmem_my_pe()) == symmetric, 1);
    for (int i = 0; i < n; i++) {
        const gshmem_team_t team = m[i].team;
        EXPECT(found, gshmem_team_my_pe(team), m[i].my);
        EXPECT(found, gshmem_team_n_pes(team), m[i].my < 0 ? -1 : m[i].n);
        EXPECT(found, gshmem_team_translate_pe(team, m[i].n, GSHMEM_TEAM_WORLD), -1);
        for (int j = 0; j < m[i].n; j++) {
            bool in = m[i].my >= 0;
            EXPECT(found, gshmem_team_translate_pe(team, j, GSHMEM_TEAM_WORLD),
                   in ? m[i].pe[j] : -1);
            EXPECT(found, gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, m[i].pe[j], team),
                   in ? j : -1);
            EXPECT(found,
                   gshmem_team_ptr(team, symmetric, j) ==
                       (in ? gshmem_ptr(symmetric, m[i].pe[j]) : NULL),
                   1);
        }
    }
}

int main(void)
{
    struct members *teams = shared_array<struct members>(TEAMS);
    struct meeting t;

    CHECK_OK(gshmem_init());
    t.come = symmetric_array<uint64_t>(TEAMS);
    t.box = symmetric_array<uint64_t>((size_t)TEAMS * GROUP_PES * WORDS);
    t.letter = shared_array<uint64_t>(TEAMS * WORDS);
    t.found = shared_array<struct found>(1);
    int count = members_make(teams);
    ask<<<1, 1>>>(t.found, teams, count, t.come);
    CHECK_FOUND(t.found);
    for (int i = 0; i < count; i++) {
        if (teams[i].my < 0)
            continue;
        meet<THREAD><<<BLOCKS, THREADS>>>(t, teams[i], i, 1);
        CHECK_FOUND(t.found);
        meet<WARP><<<BLOCKS, THREADS>>>(t, teams[i], i, 1 + ROUNDS);
        CHECK_FOUND(t.found);
        meet<BLOCK><<<BLOCKS, THREADS>>>(t, teams[i], i, 1 + 2 * ROUNDS);
        CHECK_FOUND(t.found);
    }
    meet_at_once<<<count, THREADS>>>(t, teams, 1 + 3 * ROUNDS);
    CHECK_FOUND(t.found);
    meet_all<<<1, THREADS>>>(t.found);
    CHECK_FOUND(t.found);
    members_free(teams, count);
    CHECK_OK(gshmem_finalize());
    return 0;
}

/* Teams to try collectives on, with their members worked out by the test itself; small helpers. For
 * C and CUDA sources. */
#ifndef GSHMEM_TESTS_COLLECTIVES_GROUPS_H
#define GSHMEM_TESTS_COLLECTIVES_GROUPS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gshmem.h"

#include "check.h"

enum { GROUP_PES = 64 };

struct members {
    const char *name;
    gshmem_team_t team; /* GSHMEM_TEAM_INVALID on those that are not in it */
    int n, my;          /* my: -1 if this PE is not in it */
    int pe[GROUP_PES];
};

static inline void members_add(struct members *m, int pe)
{
    if (pe == gshmem_my_pe())
        m->my = m->n;
    m->pe[m->n++] = pe;
}

/* All kinds of teams; fills in at most 8 of them and returns how many. */
static inline int members_make(struct members *all)
{
    int n = gshmem_n_pes(), me = gshmem_my_pe(), count = 0, list[GROUP_PES];
    struct members *m;

    memset(all, 0, 8 * sizeof *all);
    for (int i = 0; i < 8; i++)
        all[i].my = -1;

    m = &all[count++];
    m->name = "world";
    m->team = GSHMEM_TEAM_WORLD;
    for (int i = 0; i < n; i++)
        members_add(m, i);

    m = &all[count++];
    m->name = "every second";
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &m->team));
    for (int i = 0; i < n; i += 2)
        members_add(m, i);

    m = &all[count++];
    m->name = "reversed";
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &m->team));
    for (int i = n - 1; i >= 0; i--)
        members_add(m, i);

    m = &all[count];
    m[0].name = "row";
    m[1].name = "column";
    CHECK_OK(gshmem_team_split_2d(GSHMEM_TEAM_WORLD, 3, NULL, 0, &m[0].team, NULL, 0, &m[1].team));
    for (int i = 0; i < n; i++) {
        if (i / 3 == me / 3)
            members_add(&m[0], i);
        if (i % 3 == me % 3)
            members_add(&m[1], i);
    }
    count += 2;

    m = &all[count++];
    m->name = "odd ones, then even ones, of the reversed";
    for (int i = 1; i < n; i += 2)
        list[m->n] = i, members_add(m, n - 1 - i);
    for (int i = 0; i < n; i += 2)
        list[m->n] = i, members_add(m, n - 1 - i);
    CHECK_OK(gshmem_team_split_list(all[2].team, list, m->n, NULL, 0, &m->team));

    m = &all[count++];
    m->name = "the last alone";
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, 0, 1, NULL, 0, &m->team));
    members_add(m, n - 1);
    return count;
}

static inline void members_free(struct members *all, int count)
{
    for (int i = count - 1; i > 0; i--) {
        if (all[i].my >= 0)
            CHECK_OK(gshmem_team_destroy(all[i].team));
    }
}

/* A small generator of its own, so that every PE can work out what others drew. */
static inline uint64_t random_of(uint64_t seed)
{
    seed = (seed + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

/* Now and then some PE comes late. */
static inline void skew(uint64_t call)
{
    uint64_t draw = random_of(call * 64 + (uint64_t)gshmem_my_pe());

    if (draw % 16 == 0) {
        struct timespec late = {0, (long)(draw >> 32) % 100000};
        nanosleep(&late, NULL);
    }
}

#endif

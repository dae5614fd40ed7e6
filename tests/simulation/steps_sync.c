/* Steps in which PEs wait for each other: atomics, locks, collectives, teams, memory. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "gpu.h"
#include "program.h"
#include "record.h"
#include "runtime/base/clock.h"

static int some_pe(struct program *p)
{
    return (int)chance_below(&p->chance, (uint64_t)p->n);
}

/* Each increment returns a number of its own, and each token that is swapped in comes out once. */
bool step_atomics(struct program *p)
{
    uint64_t got;

    for (uint64_t n = 1 + chance_below(&p->chance, 12); n; n--) {
        const int target = some_pe(p), counter = (int)chance_below(&p->chance, COUNTERS);
        if (!TRY_VALUE(p, &got,
                       gshmem_uint64_atomic_fetch_inc(&p->area->counter[counter], target)))
            return false;
        if (!model_number(p, target, counter, got))
            return false;
        if (chance_one_in(&p->chance, 3)) {
            const uint64_t token = model_new_token(p);
            if (!TRY_VALUE(p, &got, gshmem_uint64_atomic_swap(&p->area->chain, token, 0)))
                return false;
            if (!model_token(p, 0, got))
                return false;
        }
    }
    return true;
}

/* Atomics that return nothing: their sum is looked at when all are complete. */
bool step_sums(struct program *p)
{
    for (uint64_t n = 1 + chance_below(&p->chance, 20); n; n--) {
        const int target = some_pe(p);
        const uint64_t value = chance_next(&p->chance);
        if (chance_one_in(&p->chance, 2)) {
            if (!TRY(p, gshmem_uint64_atomic_add(&p->area->sum, value, target)))
                return false;
            model_added(target, value);
        } else {
            if (!TRY(p, gshmem_uint64_atomic_xor(&p->area->bits, value, target)))
                return false;
            model_set_bit(target, value);
        }
    }
    return true;
}

static bool take_lock(struct program *p)
{
    int taken = 1;

    if (chance_one_in(&p->chance, 4)) {
        program_enter(p, "gshmem_test_lock", false);
        taken = gshmem_test_lock(&p->area->lock);
        program_leave(p, taken < 0 ? gshmem_last_error(NULL) : GSHMEM_OK);
        if (taken < 0)
            return false;
    }
    return taken == 0 || TRY(p, gshmem_set_lock(&p->area->lock));
}

bool step_lock(struct program *p)
{
    uint64_t count;

    for (uint64_t n = 1 + chance_below(&p->chance, 4); n; n--) {
        if (!take_lock(p) || !model_lock_enters(p))
            return false;
        if (!TRY_VALUE(p, &count, gshmem_uint64_g(&p->area->guarded, 0)))
            return false;
        if (chance_one_in(&p->chance, 3))
            clock_sleep(chance_below(&p->chance, 100 * US));
        if (!TRY(p, gshmem_uint64_p(&p->area->guarded, count + 1, 0)))
            return false;
        /* clear completes the put, and nobody enters before that */
        if (!model_lock_leaves(p) || !TRY(p, gshmem_clear_lock(&p->area->lock)))
            return false;
    }
    return true;
}

bool step_barriers(struct program *p)
{
    for (uint64_t n = 1 + chance_below(&p->common, 6); n; n--) {
        const int barrier = p->barriers++;
        const bool completes = chance_one_in(&p->common, 2);
        model_arrive(barrier);
        if (!(completes ? TRY_ALL(p, gshmem_barrier(GSHMEM_TEAM_WORLD))
                        : TRY_ALL(p, gshmem_team_sync(GSHMEM_TEAM_WORLD))) ||
            !model_all_came(p, barrier) || (completes && !model_check_written(p, "barrier")))
            return false;
    }
    return true;
}

/* ---- Collectives ---- */

/* What PE `pe` of the job contributes at i. */
static uint64_t contribution(const struct program *p, int pe, size_t i)
{
    struct chance c = chance_begin(world.seed, (uint64_t)(p->step + 1) << 40 |
                                                   (uint64_t)pe << 20 | i);

    return chance_next(&c);
}

static bool check_value(struct program *p, const char *what, size_t i, uint64_t is, uint64_t due)
{
    if (is == due)
        return true;
    world_fail("PE %d: element %zu of %s is %llx, not %llx", p->me, i, what,
               (unsigned long long)is, (unsigned long long)due);
    return false;
}

static uint64_t reduced(const struct program *p, const int *pe, int n, enum gshmem_op op, size_t i)
{
    uint64_t value = contribution(p, pe[0], i);

    for (int k = 1; k < n; k++) {
        const uint64_t next = contribution(p, pe[k], i);
        value = op == GSHMEM_OP_SUM   ? value + next
                : op == GSHMEM_OP_XOR ? value ^ next
                : op == GSHMEM_OP_MAX ? (value > next ? value : next)
                                      : (value < next ? value : next);
    }
    return value;
}

static bool do_reduce(struct program *p, gshmem_team_t team, const int *pe, int n, size_t values)
{
    static const enum gshmem_op ops[] = {GSHMEM_OP_SUM, GSHMEM_OP_XOR, GSHMEM_OP_MAX,
                                         GSHMEM_OP_MIN};
    const enum gshmem_op op = ops[chance_below(&p->common, 4)];

    for (size_t i = 0; i < values; i++)
        p->from[i] = contribution(p, p->me, i);
    if (!TRY_ALL(p, gshmem_reduce(team, GSHMEM_TYPE_UINT64, op, p->to, p->from, values)))
        return false;
    for (size_t i = 0; i < values; i++) {
        if (!check_value(p, "a reduction", i, p->to[i], reduced(p, pe, n, op, i)))
            return false;
    }
    return true;
}

static bool do_scan(struct program *p, gshmem_team_t team, const int *pe, int mine, size_t values)
{
    const bool own = chance_one_in(&p->common, 2);

    for (size_t i = 0; i < values; i++)
        p->from[i] = contribution(p, p->me, i);
    if (!(own ? TRY_ALL(p, gshmem_inscan(team, GSHMEM_TYPE_UINT64, p->to, p->from, values))
              : TRY_ALL(p, gshmem_exscan(team, GSHMEM_TYPE_UINT64, p->to, p->from, values))))
        return false;
    for (size_t i = 0; i < values; i++) {
        uint64_t due = 0;
        for (int k = 0; k < mine + own; k++)
            due += contribution(p, pe[k], i);
        if (!check_value(p, "a scan", i, p->to[i], due))
            return false;
    }
    return true;
}

static bool do_gather(struct program *p, gshmem_team_t team, const int *pe, int n, size_t values)
{
    for (size_t i = 0; i < values; i++)
        p->from[i] = contribution(p, p->me, i);
    if (!TRY_ALL(p, gshmem_fcollectmem(team, p->to, p->from, values * 8)))
        return false;
    for (size_t i = 0; i < values * (size_t)n; i++) {
        if (!check_value(p, "an fcollect", i, p->to[i],
                         contribution(p, pe[i / values], i % values)))
            return false;
    }
    return true;
}

static bool do_alltoall(struct program *p, gshmem_team_t team, const int *pe, int n, int mine,
                        size_t values)
{
    for (size_t i = 0; i < values * (size_t)n; i++)
        p->from[i] = contribution(p, p->me, i);
    if (!TRY_ALL(p, gshmem_alltoallmem(team, p->to, p->from, values * 8)))
        return false;
    for (size_t i = 0; i < values * (size_t)n; i++) {
        if (!check_value(p, "an alltoall", i, p->to[i],
                         contribution(p, pe[i / values], (size_t)mine * values + i % values)))
            return false;
    }
    return true;
}

static bool do_broadcast(struct program *p, gshmem_team_t team, const int *pe, int n,
                         size_t values)
{
    const int root = (int)chance_below(&p->common, (uint64_t)n);

    for (size_t i = 0; i < values; i++)
        p->from[i] = contribution(p, p->me, i);
    if (!TRY_ALL(p, gshmem_broadcastmem(team, p->to, p->from, values * 8, root)))
        return false;
    for (size_t i = 0; i < values; i++) {
        if (!check_value(p, "a broadcast", i, p->to[i], contribution(p, pe[root], i)))
            return false;
    }
    return true;
}

static bool do_collect(struct program *p, gshmem_team_t team, const int *pe, int n)
{
    size_t at = 0;

    for (size_t i = 0; i < VALUES; i++)
        p->from[i] = contribution(p, p->me, i);
    /* each PE gives as many as its first value says */
    if (!TRY_ALL(p, gshmem_collectmem(team, p->to, p->from,
                                      contribution(p, p->me, 0) % VALUES * 8)))
        return false;
    for (int k = 0; k < n; k++) {
        for (size_t i = 0; i < contribution(p, pe[k], 0) % VALUES; i++) {
            if (!check_value(p, "a collect", at, p->to[at], contribution(p, pe[k], i)))
                return false;
            at++;
        }
    }
    return true;
}

static bool collective_on(struct program *p, gshmem_team_t team)
{
    const int n = gshmem_team_n_pes(team), mine = gshmem_team_my_pe(team);
    const size_t values = chance_between(&p->common, 1, VALUES);
    int pe[1024];

    for (int i = 0; i < n; i++)
        pe[i] = gshmem_team_translate_pe(team, i, GSHMEM_TEAM_WORLD);
    switch (chance_below(&p->common, 6)) {
    case 0:
        return do_reduce(p, team, pe, n, values);
    case 1:
        return do_gather(p, team, pe, n, values);
    case 2:
        return do_alltoall(p, team, pe, n, mine, values);
    case 3:
        return do_broadcast(p, team, pe, n, values);
    case 4:
        return do_collect(p, team, pe, n);
    default:
        return do_scan(p, team, pe, mine, values);
    }
}

bool step_collective(struct program *p)
{
    for (uint64_t n = 1 + chance_below(&p->common, 4); n; n--) {
        if (!collective_on(p, GSHMEM_TEAM_WORLD))
            return false;
    }
    return true;
}

/* The even and the odd PEs; who is in a team uses it, and all give it back. */
bool step_team(struct program *p)
{
    gshmem_team_t team[2] = {GSHMEM_TEAM_INVALID, GSHMEM_TEAM_INVALID};
    const int stride = (int)chance_between(&p->common, 1, 3);
    const int start = (int)chance_below(&p->common, (uint64_t)p->n);
    const int size = 1 + (p->n - 1 - start) / stride;
    const bool grid = chance_one_in(&p->common, 2);
    bool fine;

    if (grid)
        fine = TRY_ALL(p, gshmem_team_split_2d(GSHMEM_TEAM_WORLD, stride, NULL, 0, &team[0], NULL,
                                               0, &team[1]));
    else
        fine = TRY_ALL(p, gshmem_team_split_strided(GSHMEM_TEAM_WORLD, start, stride, size, NULL, 0,
                                                    &team[0]));
    const struct chance common = p->common;
    for (int i = 0; i < 2; i++) {
        p->common = common;
        if (fine && team[i] != GSHMEM_TEAM_INVALID)
            fine = collective_on(p, team[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (fine && team[i] != GSHMEM_TEAM_INVALID)
            fine = TRY(p, gshmem_team_destroy(team[i]));
    }
    return fine;
}

/* ---- Memory ---- */

static bool is_symmetric(struct program *p, const char *at, int kind)
{
    if (plan.gpu) /* which are apart from the area, and from each other */
        return true;
    for (int i = 0; i < p->n; i++) {
        const struct program *peer = &programs[i];
        const ptrdiff_t offset = at - (const char *)p->area;
        if (peer->begun && peer->allocated[kind] && peer->allocated_step == p->step &&
            peer->allocated[kind] != offset) {
            world_fail("PE %d: an allocation is at %td, and at %td on PE %d", p->me, offset,
                       peer->allocated[kind], i);
            return false;
        }
    }
    p->allocated[kind] = at - (const char *)p->area;
    return true;
}

bool step_memory(struct program *p)
{
    char *at[3] = {NULL};

    p->allocated_step = p->step;
    memset(p->allocated, 0, sizeof p->allocated);
    for (int i = 0; i < 3; i++) {
        const size_t bytes = 1 + chance_below(&p->common, i ? 1000 : 300000);
        program_enter(p, "gshmem_malloc", true);
        at[i] = chance_one_in(&p->common, 2) ? gshmem_malloc(bytes) : gshmem_align(256, bytes);
        if (!program_leave(p, at[i] ? GSHMEM_OK : gshmem_last_error(NULL)) ||
            !is_symmetric(p, at[i], i))
            return false;
        *(char *)gpu_bytes(at[i] + bytes - 1) = 1;
    }
    program_enter(p, "gshmem_realloc", true);
    at[0] = gshmem_realloc(at[0], 1 + chance_below(&p->common, 600000));
    if (!program_leave(p, at[0] ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!TRY_ALL(p, gshmem_free(at[i])))
            return false;
    }
    return true;
}

/* Waits for several values of the PE before, in any order, and reads its own by g. */
bool step_values(struct program *p)
{
    const int next = (p->me + 1) % p->n;
    const uint64_t round = ++p->values;
    uint64_t got;

    for (int i = 0; i < VALUE_WORDS; i++) {
        if (!TRY(p, gshmem_uint64_p(&p->area->value[i], round, next)))
            return false;
        if (chance_one_in(&p->chance, 3) && !TRY(p, gshmem_quiet()))
            return false;
    }
    if (!TRY(p, gshmem_quiet()))
        return false;
    if (!TRY(p, gshmem_uint64_wait_until_all(p->area->value, VALUE_WORDS, NULL, GSHMEM_CMP_GE,
                                             round)))
        return false;
    if (!TRY_VALUE(p, &got, gshmem_uint64_g(&p->area->value[0], next)))
        return false;
    return got >= round || !model_can_get(p, next) || (world_fail("PE %d: value %llu at PE %d after its quiet of %llu", p->me,
                                       (unsigned long long)got, next, (unsigned long long)round),
                            false);
}

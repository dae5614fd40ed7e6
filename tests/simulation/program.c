#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "fiber.h"
#include "network.h"
#include "nth.h"
#include "record.h"
#include "runtime/base/clock.h"

enum {
    DEATH_NS = 2 * 1000 * MS,  /* how long it may take that a death is noticed where a system says so, */
    SILENCE_NS = 1000 * MS,    /* or beyond GSHMEM_PEER_TIMEOUT where none does; */
    SLACK_NS = 500 * MS,       /* and what slow packets may add */
    SLOT_MOST = 1 << 18,
};

struct judge judge;
struct program *programs;

static struct {
    gshmem_uniqueid_t id;
    bool known;
} unique;

/* What a step may be, and how often. */
static const struct kind {
    const char *name;
    step_fn *run;
    int weight;
} kinds[] = {
    {"put", step_put, 12},
    {"get", step_get, 5},
    {"strided", step_strided, 4},
    {"letters", step_letters, 6},
    {"ordered", step_ordered, 5},
    {"atomics", step_atomics, 6},
    {"sums", step_sums, 5},
    {"lock", step_lock, 6},
    {"collective", step_collective, 12},
    {"team", step_team, 5},
    {"memory", step_memory, 4},
    {"context", step_context, 4},
    {"compute", step_compute, 3},
    {"values", step_values, 4},
    {"threads", step_threads, 4},
    {"barriers", step_barriers, 4},
};

/* Of a wide workload. */
static const struct kind wide_kinds[] = {
    {"waits", step_waits, 4},
    {"amos", step_amos, 3},
    {"blocks", step_blocks, 2},
    {"elements", step_elements, 3},
    {"team context", step_team_context, 3},
    {"queries", step_queries, 1},
    {"typed", step_typed, 6},
    {"sets", step_sets, 2},
    {"growth", step_growth, 3},
    {"register", step_register, 2},
    {"streams", step_streams, 3},
    {"mistakes", step_mistakes, 1},
    {"kernel", step_kernel, 9},
    {"gpu", step_gpu, 9},
};

enum {
    KINDS = sizeof kinds / sizeof kinds[0],
    WIDE_KINDS = sizeof wide_kinds / sizeof wide_kinds[0],
};

/* ---- Calls ---- */

void program_enter(struct program *p, const char *call, bool waits_for_all)
{
    p->call = call;
    p->since = fiber_time();
    p->raised = GSHMEM_OK;
    p->waits_for_all = waits_for_all;
}

bool program_leave(struct program *p, gshmem_status_t status)
{
    const char *text;

    if (!status) {
        p->waits_for_all = false;
        return true;
    }
    gshmem_last_error(&text);
    record("PE %d: %.60s: %s (%s)", p->me, p->call, gshmem_status_name(status), text);
    if (!judge.allowed)
        world_fail("PE %d: %.60s: %s, though no fault allows it: %s", p->me, p->call,
                   gshmem_status_name(status), text);
    p->failed = status;
    p->waits_for_all = false;
    return false;
}

static void program_raised(gshmem_status_t status, const char *text, void *context)
{
    struct program *p = context;

    (void)text;
    p->raised = status;
}

/* ---- Failures ---- */

/* For how long faults without effect can keep news of a death from PEs. */
static uint64_t most_delay(void)
{
    uint64_t most = 0;

    for (int i = 0; i < plan.faults; i++) {
        if (plan.happens[i] && plan.fault[i].kind <= FAULT_CLOG && plan.fault[i].lasts > most)
            most = plan.fault[i].lasts;
    }
    return most;
}

static uint64_t limit_of(enum fault_kind kind)
{
    if (kind == FAULT_KILL || kind == FAULT_CUT)
        return DEATH_NS + most_delay();
    return (uint64_t)plan.peer_timeout * SECOND + SILENCE_NS + SLACK_NS;
}

/* Who was in a call that waits for all PEs when one of them died must have been told by now. A PE
 * that starts learns of it from its launcher, or by GSHMEM_INIT_TIMEOUT. */
static void judge_waits(void *unused, uint64_t number)
{
    (void)unused, (void)number;
    for (int i = 0; i < world.n_pes && !network_is_opening(judge.victim); i++) {
        const struct program *p = &programs[i];
        if (!p->pe->dead && p->begun && !p->ended && p->waits_for_all && p->since < judge.since &&
            p->pe != judge.victim)
            world_fail("PE %d: %.60s: still waits %llu ms after the %s of PE %d", i, p->call,
                       (unsigned long long)((world.now - judge.since) / MS),
                       fault_name(judge.kind), judge.victim->number);
    }
}

void program_allow_failures(enum fault_kind kind, struct pe *victim)
{
    if (judge.allowed)
        return;
    judge = (struct judge){true, judge.by_call, world.now, kind, victim};
    if (kind == FAULT_KILL || kind == FAULT_CRASH)
        events_add(world.now + limit_of(kind), judge_waits, NULL, 0);
}

/* ---- A PE's life ---- */

static bool program_allocate(struct program *p)
{
    const size_t n = (size_t)p->n;

    p->slot_bytes = SLOT_MOST / n / n * 8 < 4096 ? 4096 : SLOT_MOST / n / n * 8;
    const size_t bytes =
        sizeof *p->area + n * p->slot_bytes + 2 * n * VALUES * sizeof *p->to;
    program_enter(p, "gshmem_calloc", true);
    p->area = plan.gpu ? gshmem_malloc_with_hints(bytes, GSHMEM_MALLOC_HOST)
                       : gshmem_calloc(1, bytes);
    if (!program_leave(p, p->area ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    if (plan.gpu)
        memset(p->area, 0, bytes);
    p->to = (uint64_t *)(p->area + 1);
    p->from = p->to + n * VALUES;
    p->slots = (unsigned char *)(p->from + n * VALUES);
    p->expected = calloc(n, p->slot_bytes);
    p->written = calloc(n, sizeof *p->written);
    p->checked = calloc(n, sizeof *p->checked);
    model_fill(p->area->constant, sizeof p->area->constant, (uint64_t)p->me);
    p->team[p->teams++] = GSHMEM_TEAM_WORLD;
    return TRY_ALL(p, gshmem_barrier_all());
}

static bool program_init(struct program *p)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};

    if (plan.uid) {
        if (p->me == 0) {
            if (!TRY(p, gshmem_get_uniqueid(&unique.id)))
                return false;
            unique.known = true;
        }
        while (!unique.known && !world.pe[0].dead && !programs[0].ended)
            clock_sleep(100 * US);
        if (!unique.known)
            return false;
        attr.uid = &unique.id;
        attr.pe = p->me;
        attr.n_pes = p->n;
    }
    return TRY_ALL(p, gshmem_init_attr(&attr));
}

static const struct kind *choose_kind(struct chance *c, const struct kind *from, int n)
{
    int total = 0;

    for (int i = 0; i < n; i++)
        total += from[i].weight;
    for (int left = (int)chance_below(c, (uint64_t)total); left >= from->weight; from++)
        left -= from->weight;
    return from;
}

static void program_step(struct program *p, int step)
{
    p->step = step;
    p->common = chance_begin(world.seed, 1u << 20 | (unsigned)step);
    p->chance = chance_begin(world.seed, (uint64_t)(step + 1) << 32 | (unsigned)p->me);
    const bool wide = plan.wide && chance_one_in(&p->common, 2);
    const struct kind *kind =
        choose_kind(&p->common, wide ? wide_kinds : kinds, wide ? WIDE_KINDS : KINDS);
    record("PE %d begins step %d: %s", p->me, step, kind->name);
    if (!kind->run(p) && !p->failed)
        p->failed = GSHMEM_ERR_STATE;
}

static void *program_main(void *argument)
{
    struct program *p = argument;

    plan_step(p->me, -1);
    gshmem_set_error_handler(program_raised, p);
    if (plan.kernels)
        kernel_register(p);
    if (program_init(p)) {
        p->begun = true;
        record("PE %d has begun", p->me);
        if (program_allocate(p)) {
            for (int step = 0; step < plan.steps && !p->failed; step++) {
                plan_step(p->me, step);
                if (plan.step[step])
                    program_step(p, step);
            }
            if (!p->failed && TRY(p, gshmem_quiet()) && TRY_ALL(p, gshmem_barrier_all()))
                model_check_sums(p);
        }
        if (p->failed)
            p->area = NULL; /* the model looks no more into its memory */
        TRY_ALL(p, gshmem_finalize());
    }
    record("PE %d has ended", p->me);
    p->ended = p->pe->ended = true;
    return NULL;
}

void programs_begin(void)
{
    programs = calloc((size_t)world.n_pes, sizeof *programs);
    for (int i = 0; i < world.n_pes; i++) {
        programs[i] = (struct program){.pe = &world.pe[i], .me = i, .n = world.n_pes};
        world.pe[i].program = &programs[i];
        struct chance c = chance_begin(world.seed, 2000 + (uint64_t)i);
        fiber_new(&world.pe[i], chance_below(&c, chance_one_in(&c, 4) ? 20 * MS : 200 * US),
                  program_main, &programs[i]);
    }
}

/* Whether several PEs wait for updates: a PE that has failed in its step sends no signal, and its
 * neighbours wait for each other's then. Only the last one that waits can be told so. */
static bool wait_for_each_other(void)
{
    int n = 0;

    for (int i = 0; i < world.n_pes; i++)
        n += !programs[i].pe->dead && !programs[i].ended && programs[i].call &&
             strstr(programs[i].call, "wait_until");
    return n > 1;
}

void programs_end(void)
{
    for (int i = 0; i < world.n_pes; i++) {
        const struct program *p = &programs[i];
        if (p->area && !p->pe->dead && !p->ended)
            record("PE %d is in %.40s since %llu us, step %d; its lock is %016lx", i, p->call,
                   (unsigned long long)(p->since / US), p->step, (unsigned long)p->area->lock);
    }
    for (int i = 0; i < world.n_pes; i++) {
        const struct program *p = &programs[i];
        if (!p->ended && !p->pe->dead && !(judge.by_call && wait_for_each_other()) &&
            !nth_is_said((uint64_t)(plan.peer_timeout + 2) * SECOND))
            world_fail("PE %d: %.60s: waits without end, since %llu us; step %d", i,
                       p->call ? p->call : "-", (unsigned long long)(p->since / US), p->step);
    }
}

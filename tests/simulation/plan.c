#define _GNU_SOURCE
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "fiber.h"
#include "network.h"
#include "program.h"
#include "record.h"

enum {
    WIDTH = 17, /* seeds that found a defect are not wide by it */
    LEFT_LEAST = 2 * 16 + 1, /* two full rounds, whatever the calls: ROOTED_EVERY */
    STEPS_OF_MANY = 8, /* of more than 8 PEs: a step of theirs takes a second of CPU */
};

struct plan plan;

const char *fault_name(enum fault_kind kind)
{
    static const char *const names[] = {"pause", "partition", "clog",     "cut",
                                        "kill",  "crash",     "separate", "stop"};

    return names[kind];
}

/* ---- Making it ---- */

static uint64_t one_of(struct chance *c, const uint64_t *values, size_t n)
{
    return values[chance_below(c, n)];
}

#define ONE_OF(c, ...)                                                                             \
    one_of(c, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

static void plan_weather(struct chance *c)
{
    weather = (struct weather){
        .latency_ns = ONE_OF(c, 2000, 10000, 30000, 200000, 5000000),
        .byte_ps = ONE_OF(c, 0, 80, 800, 80000),
        .capacity = ONE_OF(c, 2048, 16384, 262144, 4 << 20),
        .partial = ONE_OF(c, 0, 2, 10, 100),
        .slow = ONE_OF(c, 0, 10, 100),
        .slow_ns = ONE_OF(c, 100000, 3000000, 250000000),
    };
    weather.jitter_ns = weather.latency_ns * ONE_OF(c, 0, 1, 4);
}

static void plan_pace(struct chance *c)
{
    world.pace = (struct pace){
        .call_ns = ONE_OF(c, 100, 400, 2000),
        .pause_ns = ONE_OF(c, 10, 40, 200),
        .yield_ns = ONE_OF(c, 300, 2000, 10000),
        .wake_ns = ONE_OF(c, 1000, 5000, 60000),
        .yields_count = chance_one_in(c, 2),
    };
    /* Many PEs that poll are most of what a run costs. */
    if (world.n_pes > 8 && world.pace.yield_ns < 2000)
        world.pace.yield_ns = 2000;
}

static void plan_fault(struct chance *c, struct fault *f, bool fatal)
{
    f->kind = (enum fault_kind)(fatal ? chance_between(c, FAULT_CUT, FAULT_STOP)
                                      : chance_between(c, FAULT_PAUSE, FAULT_CLOG));
    f->pe = (int)chance_below(c, (uint64_t)world.n_pes);
    f->step = (int)chance_below(c, (uint64_t)plan.steps + 1) - 1;
    f->delay = chance_below(c, ONE_OF(c, 1, 50 * US, 2 * MS, 100 * MS));
    f->lasts = chance_below(c, ONE_OF(c, 1 * MS, 300 * MS, (uint64_t)plan.peer_timeout * 400 * MS));
    f->both = chance_one_in(c, 2);
    f->from =
        chance_one_in(c, 2) ? UINT64_C(1) << f->pe / plan.pes_of_node % 64 : chance_next(c);
    f->to = ~f->from;
}

/* By numbers of its own: plans that are not wide are as they were before there were such. */
static void plan_width(uint64_t seed)
{
    struct chance c = chance_begin(seed, WIDTH);

    plan.wide = chance_one_in(&c, 2);
    plan.kernels = plan.wide && !chance_one_in(&c, 4);
    plan.gpu = plan.wide && chance_one_in(&c, 4);
    if (plan.gpu)
        plan.pes_of_node = 1; /* pieces of a heap go to others of a node by Unix sockets */
}

/* In two of three runs counters wrap within the first hundreds of counts: at 32 bits, or at 31,
 * which is what a team's generation has. */
static void plan_first_count(uint64_t seed)
{
    struct chance c = chance_begin(seed, WIDTH + 1);
    const uint32_t before = LEFT_LEAST + (uint32_t)chance_below(&c, ONE_OF(&c, 1, 30, 300));

    world.first_count = (uint32_t)ONE_OF(&c, before, -(uint64_t)before, 0x80000000u - before);
    if (world.first_count == before)
        world.first_count = 0;
}

void plan_make(uint64_t seed, int pes, bool may_be_wide)
{
    struct chance c = chance_begin(seed, 5);

    plan = (struct plan){.peer_timeout = (int)ONE_OF(&c, 3, 5, 10)};
    const int n = (int)ONE_OF(&c, 2, 2, 3, 3, 4, 5, 6, 8, 11, 16);
    world.n_pes = pes ? pes : n;
    plan.steps = (int)chance_between(&c, 4, 24);
    if (world.n_pes > 8 && plan.steps > STEPS_OF_MANY)
        plan.steps = STEPS_OF_MANY;
    plan_weather(&c);
    plan_pace(&c);
    plan.uid = chance_one_in(&c, 3);
    plan.pes_of_node = (int)ONE_OF(&c, 1, 1, 2, 3);
    world.cpus = (int)ONE_OF(&c, 64, 64, 2);
    plan.faults = (int)ONE_OF(&c, 0, 1, 2, 4, 6);
    const bool fatal = chance_one_in(&c, 2);
    for (int i = 0; i < plan.faults; i++)
        plan_fault(&c, &plan.fault[i], fatal && i == plan.faults - 1);
    memset(plan.step, true, sizeof plan.step);
    memset(plan.happens, true, sizeof plan.happens);
    if (may_be_wide)
        plan_width(seed);
    plan_first_count(seed);
}

bool plan_keep(const char *list, bool *kept, int n)
{
    memset(kept, false, (size_t)n);
    for (const char *at = list; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            return false;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
        }
        for (long i = first; i <= last && i < n; i++)
            kept[i] = true;
        at = *end == ',' ? end + 1 : end;
        if (at == end && *end)
            return false;
    }
    return true;
}

/* ---- What happens ---- */

static void pause_until(struct pe *pe, uint64_t until)
{
    if (until > pe->paused_until)
        pe->paused_until = until;
}

static void happen(void *object, uint64_t unused)
{
    const struct fault *f = object;
    struct pe *pe = &world.pe[f->pe], *other = &world.pe[(f->pe + 1) % world.n_pes];
    const uint64_t until = world.now + f->lasts;

    (void)unused;
    if (pe->dead || pe->ended)
        return;
    record("fault %d: %s of PE %d, %llu us", (int)(f - plan.fault), fault_name(f->kind), f->pe,
           (unsigned long long)(f->lasts / US));
    if (f->kind >= FAULT_CUT)
        program_allow_failures(f->kind, pe);
    switch (f->kind) {
    case FAULT_PAUSE:
        pause_until(pe, until);
        break;
    case FAULT_STOP:
        pause_until(pe, world.now + (uint64_t)plan.peer_timeout * 4 * SECOND);
        break;
    case FAULT_PARTITION:
        network_part(f->from, f->to, f->both, until);
        break;
    case FAULT_SEPARATE:
        network_part(f->from, f->to, f->both, NEVER);
        break;
    case FAULT_CLOG:
        weather.clogged_until = until;
        weather.clog_ns = f->lasts;
        break;
    case FAULT_CUT:
        if (!network_cut(pe, other))
            record("there is no connection to cut");
        break;
    default:
        process_kill(pe, f->kind == FAULT_CRASH, "a fault");
    }
}

void plan_step(int pe, int step)
{
    for (int i = 0; i < plan.faults; i++) {
        if (plan.happens[i] && plan.fault[i].pe == pe && plan.fault[i].step == step)
            events_add(fiber_time() + plan.fault[i].delay, happen, &plan.fault[i], 0);
    }
}

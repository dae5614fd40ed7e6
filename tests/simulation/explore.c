#define _GNU_SOURCE
#include "explore.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "fiber.h"
#include "network.h"
#include "record.h"
#include "stream.h"

/* Who can do a step. */
enum {
    FIBERS_OF_PE = 4, /* PE 0: 0 … 3, PE 1: 4 … 7 */
    ARRIVALS = 8,     /* of three streams, at their two sides */
    DEATH = 14,
    TIME = 15, /* passes where nothing else can happen */
    AGENTS,
    NOBODY = AGENTS,
};

enum {
    STEPS_MOST = 20000,
    FOOT_MOST = 24,
    OBJECTS_MOST = 4096,
    POINTS_MOST = 2000, /* of a thread, until it pauses or sleeps */
    SHORT_NS = 1 * MS,
    WAITS_MOST = 4000, /* as often time may pass in a row: then a wait has no end */
};

struct footprint {
    unsigned n;
    uint64_t key[FOOT_MOST]; /* bit 0: it writes */
};

/* A step, and what else could have been done in its place. */
struct step {
    uint8_t agent, preemptions;
    uint8_t last[2]; /* the fiber of each PE that ran last */
    uint16_t enabled, wanted, done, asleep;
    uint16_t vain; /* of done: a round that found nothing */
    uint32_t clock[AGENTS];        /* of each agent, its last step that came before this one */
    struct footprint foot[AGENTS]; /* known of those that are done or asleep */
};

static struct shared {
    uint32_t steps; /* of the execution */
    bool redundant, vain; /* vain: its last choice led to a round that found nothing */
    struct explored out;
    struct step step[STEPS_MOST + 1]; /* from 1 on */
} * shared;

/* An object of footprints: each agent's last steps that have read and written it. */
struct object_history {
    uint64_t key;
    uint32_t read[AGENTS], written[AGENTS];
};

static struct {
    const struct exploration *what;
    struct step *now;
    uint32_t after[4]; /* steps that must come before this one */
    int afters;
    uint32_t passed[AGENTS]; /* what came before time passed last */
    uint32_t latest[AGENTS]; /* each agent's last step */
    bool killed;
    int waits, timeouts;
    struct footprint seen[2 * FIBERS_OF_PE]; /* what each fiber has looked at since it has polled */
    uint16_t object_at[2 * OBJECTS_MOST];    /* a hash table of numbers + 1 */
    int objects;
    struct object_history object[OBJECTS_MOST];
} run;

uint32_t explore_step;
struct explored_memory explored_memory;

static inline unsigned bit(int agent)
{
    return 1u << agent;
}

static inline int pe_of(int agent)
{
    return agent / FIBERS_OF_PE;
}

/* ---- Footprints ---- */

static void add(struct footprint *f, uint64_t key)
{
    for (unsigned i = 0; i < f->n && i < FOOT_MOST; i++) {
        if (f->key[i] >> 1 == key >> 1) {
            f->key[i] |= key;
            return;
        }
    }
    if (f->n < FOOT_MOST)
        f->key[f->n] = key;
    f->n++;
}

static struct footprint *seen_by(const struct fiber *f)
{
    return &run.seen[f->pe->number * FIBERS_OF_PE + f->number];
}

static bool awaits(const struct fiber *f)
{
    return f->idle && f->seen == f->pe->progress - f->own;
}

/* A fiber that makes progress writes what others have looked at: they may look again. */
static void show(const struct fiber *by, uint64_t key)
{
    for (struct fiber *f = by->pe->fibers; f; f = f->next) {
        const struct footprint *seen = seen_by(f);
        bool looked = seen->n > FOOT_MOST;
        for (unsigned i = 0; f != by && awaits(f) && i < seen->n && !looked; i++)
            looked = seen->key[i] >> 1 == key >> 1;
        if (f != by && awaits(f) && looked) {
            f->after = explore_step;
            f->seen--;
        }
    }
}

void explore_touch(const struct pe *pe, const void *object, bool writes)
{
    const uint64_t key = (uint64_t)pe->number << 56 | (uintptr_t)object >> 3 << 1 | writes;
    const struct fiber *f = fiber_current;

    if (!explore_step)
        return;
    add(&run.now->foot[run.now->agent], key);
    if (f)
        add(seen_by(f), key);
    if (f && writes && f->productive)
        show(f, key);
}

void explore_stored(const void *at, size_t bytes)
{
    const struct pe *pe = fiber_current->pe;

    for (size_t i = 0; explore_step && i < bytes; i += 8) {
        if ((uintptr_t)at + i - explored_memory.at[pe->number] < explored_memory.bytes)
            explore_touch(pe, (const char *)at + i, true);
    }
}

static bool conflict(const struct footprint *a, const struct footprint *b)
{
    if (a->n > FOOT_MOST || b->n > FOOT_MOST)
        return true;
    for (unsigned i = 0; i < a->n; i++) {
        for (unsigned k = 0; k < b->n; k++) {
            if (a->key[i] >> 1 == b->key[k] >> 1 && (a->key[i] | b->key[k]) & 1)
                return true;
        }
    }
    return false;
}

static struct object_history *history_of(uint64_t key)
{
    unsigned at = (unsigned)(key * 0x9e3779b97f4a7c15 >> 51) % (2 * OBJECTS_MOST);

    for (; run.object_at[at]; at = (at + 1) % (2 * OBJECTS_MOST)) {
        if (run.object[run.object_at[at] - 1].key == key)
            return &run.object[run.object_at[at] - 1];
    }
    if (run.objects == OBJECTS_MOST) {
        world_fail("the exploration has no room for more than %d objects", OBJECTS_MOST);
        return &run.object[0];
    }
    run.object_at[at] = (uint16_t)++run.objects;
    run.object[run.objects - 1].key = key;
    return &run.object[run.objects - 1];
}

/* ---- Progress ---- */

static void progress(struct pe *pe, struct fiber *by)
{
    for (struct fiber *f = pe->fibers; f; f = f->next) {
        if (f != by && awaits(f))
            f->after = explore_step;
    }
    pe->progress++;
    if (by)
        by->own++;
    run.waits = 0;
}

void explore_advances(void)
{
    if (fiber_current)
        fiber_current->productive = true;
}

bool explore_round_ends(struct fiber *f)
{
    const bool productive = f->productive;

    if (explore_step && productive)
        progress(f->pe, f);
    f->productive = false;
    return productive;
}

static void comes_after(uint32_t step)
{
    if (step && run.afters < 4)
        run.after[run.afters++] = step;
}

void explore_arrival(struct pe *to, uint32_t sent_in)
{
    if (!explore_step)
        return;
    comes_after(sent_in);
    progress(to, NULL);
}

/* ---- Order ---- */

static void join(uint32_t *clock, const uint32_t *other)
{
    for (int a = 0; a < AGENTS; a++) {
        if (clock[a] < other[a])
            clock[a] = other[a];
    }
}

static bool came_before(uint32_t first, uint32_t second)
{
    return shared->step[second].clock[shared->step[first].agent] >= first;
}

/* Of the steps between two that have raced, those that need not come after the first, and then the
 * second: an agent of which one of them is the first can begin in place of the first one. */
static unsigned find_initials(uint32_t first, uint32_t second)
{
    unsigned found = 0, seen = 0;

    for (uint32_t i = first + 1; i <= second; i++) {
        const unsigned agent = bit(shared->step[i].agent);
        bool initial = !(seen & agent);
        if (i != second && came_before(first, i))
            continue;
        for (uint32_t k = first + 1; k < i && initial; k++) {
            if (!came_before(first, k) && came_before(k, i))
                initial = false;
        }
        if (initial)
            found |= agent;
        seen |= agent;
    }
    return found;
}

static void race(uint32_t first, uint32_t second)
{
    struct step *s = &shared->step[first];
    const unsigned initials = find_initials(first, second);

    shared->out.races++;
    if ((s->wanted | s->done | bit(s->agent)) & initials)
        return;
    const unsigned own = bit(shared->step[second].agent), possible = initials & s->enabled;
    if (possible & own)
        s->wanted |= (uint16_t)own;
    else if (possible)
        s->wanted |= (uint16_t)(possible & -possible);
    else /* it could not run there: another has to run first, and any may be the one */
        s->wanted |= s->enabled;
}

/* The latest step of another agent that conflicts and is not known to come before; 0: none. */
static uint32_t latest_conflict(const struct step *s)
{
    uint32_t latest = 0;

    for (unsigned i = 0; i < s->foot[s->agent].n; i++) {
        const uint64_t key = s->foot[s->agent].key[i];
        const struct object_history *h = history_of(key & ~UINT64_C(1));
        for (int a = 0; a < AGENTS; a++) {
            uint32_t other = h->written[a];
            if (key & 1 && h->read[a] > other)
                other = h->read[a];
            if (other > s->clock[a] && other > latest)
                latest = other;
        }
    }
    return latest;
}

/* Notes what the step did, and which orders it shows to be possible. */
static void step_end(uint32_t number)
{
    struct step *s = run.now;
    struct footprint *foot = &s->foot[s->agent];
    const bool wide = foot->n > FOOT_MOST;

    memcpy(s->clock, run.passed, sizeof s->clock);
    if (run.latest[s->agent])
        join(s->clock, shared->step[run.latest[s->agent]].clock);
    for (int i = 0; i < run.afters; i++)
        join(s->clock, shared->step[run.after[i]].clock);
    run.afters = 0;
    if (s->agent == TIME || wide) {
        shared->out.wide += wide;
        join(s->clock, run.latest);
        memcpy(run.passed, s->clock, sizeof run.passed);
        run.passed[s->agent] = number;
    }
    for (uint32_t first; !wide && (first = latest_conflict(s));) {
        s->clock[s->agent] = number;
        if (run.what->reduces)
            race(first, number);
        join(s->clock, shared->step[first].clock);
    }
    s->clock[s->agent] = number;
    run.latest[s->agent] = number;
    for (unsigned i = 0; i < foot->n && !wide; i++) {
        struct object_history *h = history_of(foot->key[i] & ~UINT64_C(1));
        *(foot->key[i] & 1 ? &h->written[s->agent] : &h->read[s->agent]) = number;
    }
}

/* ---- What can happen ---- */

static int agent_of(const struct event *e)
{
    bool by_time;
    int side;
    const struct fiber *f = fiber_of_event(e->fire, e->object, e->number, &by_time);
    const struct stream *s = f ? NULL : stream_of_event(e->fire, e->object, e->number, &side);

    if (s)
        return ARRIVALS + (int)((s->number - 1) % 3) * 2 + side;
    if (!f || by_time || f->number >= FIBERS_OF_PE)
        return TIME;
    if (awaits(f))
        return TIME;
    return f->pe->number * FIBERS_OF_PE + f->number;
}

/* at: the place of each agent's event. The earliest is the one for which time passes. */
static unsigned find_enabled(size_t at[AGENTS])
{
    size_t n;
    const struct event *all = events_all(&n);
    unsigned enabled = 0;

    for (size_t i = 0; i < n; i++) {
        const int agent = agent_of(&all[i]);
        if (!(enabled & bit(agent)) || all[i].at < all[at[agent]].at)
            at[agent] = i;
        enabled |= bit(agent);
    }
    if (enabled & ~bit(TIME))
        enabled &= ~bit(TIME);
    if (run.what->victim >= 0 && !run.killed)
        enabled |= bit(DEATH);
    return enabled;
}

/* Whether it takes the CPU from another fiber of its PE that could go on. */
static int preempts(const struct step *s, int agent)
{
    if (agent >= ARRIVALS)
        return 0;
    const uint8_t last = s->last[pe_of(agent)];
    return last != NOBODY && last != agent && s->enabled & bit(last);
}

static bool may_run(const struct step *s, int agent)
{
    const int most = run.what->preemptions;

    return most < 0 || s->preemptions + preempts(s, agent) <= most;
}

/* Who is asleep, and how often others were preempted, after the step before. */
static void step_follow(struct step *s, const struct step *before)
{
    const unsigned tried = before->done & ~(unsigned)before->vain;
    const unsigned slept = run.what->reduces ? before->asleep | tried : 0;
    const int agent = before->agent;

    s->preemptions = (uint8_t)(before->preemptions + preempts(before, agent));
    memcpy(s->last, before->last, sizeof s->last);
    if (agent < ARRIVALS)
        s->last[pe_of(agent)] = (uint8_t)agent;
    for (int a = 0; a < TIME; a++) {
        if (a == agent || !(slept & bit(a)) || conflict(&before->foot[a], &before->foot[agent]))
            continue;
        s->asleep |= (uint16_t)bit(a);
        s->foot[a] = before->foot[a];
    }
}

/* A new step. What was sent arrives at once, so that no round finds nothing where another one could
 * find something: fewer executions are all of them. Late arrivals show more in the first ones. Then
 * the agent of the step before goes on. It goes on first if it runs alone since a choice (see
 * found_nothing). NOBODY: this order has been seen. */
static int choose(struct step *s, int before, bool alone)
{
    unsigned some = s->enabled & ~s->asleep;

    for (int a = 0; a < AGENTS; a++) {
        if (some & bit(a) && !may_run(s, a)) {
            some &= ~bit(a);
            shared->out.refused++;
        }
    }
    if (!run.what->reduces || some & bit(TIME))
        s->wanted = (uint16_t)some;
    if (run.what->ended())
        return some & bit(DEATH) ? DEATH : NOBODY;
    if (some & ~bit(DEATH))
        some &= ~bit(DEATH);
    const unsigned arrivals = some & (bit(DEATH) - bit(ARRIVALS));
    if (alone && some & bit(before))
        return before;
    if (arrivals && run.what->reduces && !run.what->late)
        return __builtin_ctz(arrivals);
    if (before < DEATH && some & bit(before))
        return before;
    for (int pe = 0; pe < 2; pe++) {
        if (s->last[pe] != NOBODY && some & bit(s->last[pe]))
            return s->last[pe];
    }
    return some ? __builtin_ctz(some) : NOBODY;
}

static void kill_victim(void)
{
    struct pe *pe = &world.pe[run.what->victim];

    run.killed = true;
    world.now = pe->fibers->now;
    progress(&world.pe[!run.what->victim], NULL);
    process_kill(pe, false, "the exploration says so");
}

/* Time passes: it may end a sleep that something should have ended before. The program's thread may
 * sleep for a moment after the proxy has taken what it waits for: nobody wakes it then. */
static void note_wait(const struct event *e)
{
    bool by_time = false;
    const struct fiber *f = fiber_of_event(e->fire, e->object, e->number, &by_time);

    run.waits++;
    if (!f || !by_time || (f->number == 0 && e->at - f->now <= SHORT_NS))
        return;
    run.timeouts++;
    record("PE %d: a sleep of thread %d ends by its time", f->pe->number, f->number);
}

static void step_run(const struct step *s, const size_t at[AGENTS])
{
    const char *life = "life";
    size_t n;

    if (s->agent == DEATH) {
        explore_touch(&world.pe[run.what->victim], life, true);
        explore_touch(&world.pe[0], world.pe[0].object, true);
        explore_touch(&world.pe[1], world.pe[1].object, true);
        kill_victim();
        return;
    }
    const struct event e = events_all(&n)[at[s->agent]];
    events_remove(at[s->agent]);
    if (s->agent == TIME)
        note_wait(&e);
    if (s->agent < ARRIVALS) {
        struct fiber *f = e.object;
        comes_after(f->after);
        f->after = 0;
        if (f->idle || f->blocked)
            seen_by(f)->n = 0;
        if (f->points > POINTS_MOST)
            world_fail("PE %d: thread %d spins, and neither pauses nor sleeps", f->pe->number,
                       f->number);
    }
    if (run.what->victim >= 0 && (s->agent < ARRIVALS ? pe_of(s->agent) == run.what->victim : true))
        explore_touch(&world.pe[run.what->victim], life, false);
    world.now = e.at;
    e.fire(e.object, e.number);
}

/* ---- Rounds that find nothing ---- */

/* Whether the steps from the one that was chosen on are a round of one thread in which it has
 * found nothing, and nothing else has run. The state is then as it was before, and what can happen
 * from there is tried in other executions. */
static bool found_nothing(const struct fiber *f, uint32_t chosen, bool alone)
{
    return alone && chosen && run.what->reduces && f && awaits(f);
}

static bool looks_for_arrivals(const struct footprint *f)
{
    for (int pe = 0; pe < 2; pe++) {
        const struct footprint sockets = {
            .n = 1, .key = {(uint64_t)pe << 56 | (uintptr_t)world.pe[pe].object >> 3 << 1 | 1}};
        if (conflict(f, &sockets))
            return true;
    }
    return false;
}

/* The round may have looked twice: what could happen between the two is still to be tried. */
static void want_between(uint32_t chosen, uint32_t last)
{
    const struct step *first = &shared->step[chosen];
    const unsigned arrivals = bit(DEATH) - bit(ARRIVALS);
    unsigned seen = 0;

    for (uint32_t i = chosen; i <= last; i++) {
        struct step *s = &shared->step[i];
        const struct footprint *foot = &s->foot[s->agent];
        unsigned now = looks_for_arrivals(foot) ? s->enabled & arrivals : 0;
        for (int a = 0; a < TIME; a++) {
            if (a != s->agent && first->done & bit(a) && conflict(&first->foot[a], foot))
                now |= bit(a);
        }
        if (i > chosen)
            s->wanted |= (uint16_t)(now & seen & s->enabled);
        seen |= now;
    }
}

static void write_schedule(uint32_t steps)
{
    static const char *const fibers[] = {"main", "proxy", "kernel", "thread"};
    char *out = shared->out.schedule, *end = out + sizeof shared->out.schedule;

    for (uint32_t i = 1, first = 1; i <= steps && end - out > 40; i++) {
        const int a = shared->step[i].agent;
        if (i < steps && shared->step[i + 1].agent == a)
            continue;
        if (a < ARRIVALS)
            out += sprintf(out, "PE %d %s", pe_of(a), fibers[a % FIBERS_OF_PE]);
        else
            out += a < DEATH ? sprintf(out, "arrival %d", a - ARRIVALS)
                             : sprintf(out, "%s", a == DEATH ? "death" : "time");
        out += sprintf(out, " %u, ", i - first + 1);
        first = i + 1;
    }
}

/* ---- One execution, in a child ---- */

/* prefix: so many choices are made. */
static void execute(uint32_t prefix)
{
    size_t at[AGENTS];
    uint32_t i;
    bool alone = false;

    world.explored = true;
    run.what->begin();
    for (i = 1; !world.over && !(run.what->ended() && (run.killed || run.what->victim < 0)); i++) {
        struct step *s = run.now = &shared->step[i];
        if (i == STEPS_MOST || run.waits > WAITS_MOST) {
            world_fail("a wait without end");
            break;
        }
        const unsigned enabled = find_enabled(at);
        if (i > prefix) {
            *s = (struct step){.enabled = (uint16_t)enabled, .last = {NOBODY, NOBODY}};
            if (i > 1)
                step_follow(s, s - 1);
            if (!enabled) {
                world_fail("nothing can happen any more");
                break;
            }
            s->agent = (uint8_t)choose(s, i > 1 ? s[-1].agent : NOBODY, alone);
            if (s->agent == NOBODY) {
                shared->redundant = true;
                break;
            }
        } else if (!(enabled & bit(s->agent)) || s->enabled != enabled) {
            world_fail("step %u is not what it was in another execution", i);
            break;
        }
        s->foot[s->agent].n = 0;
        explore_step = i;
        alone = i == prefix ? s->agent < ARRIVALS : alone && s->agent == s[-1].agent;
        const struct fiber *f = alone ? events_all(&(size_t){0})[at[s->agent]].object : NULL;
        step_run(s, at);
        step_end(i);
        run.what->check();
        if (found_nothing(f, prefix, alone)) {
            want_between(prefix, i);
            shared->redundant = shared->vain = true;
            i++;
            break;
        }
    }
    shared->steps = i - 1;
    if (shared->out.timeouts < (uint64_t)run.timeouts)
        shared->out.timeouts = (uint64_t)run.timeouts;
    if (run.timeouts && run.what->victim < 0)
        world_fail("%d sleeps end by their time: nothing has woken these threads", run.timeouts);
    memcpy(shared->out.failure, world.failure, sizeof world.failure);
    if (world.failure[0] || run.what->most == 1)
        write_schedule(shared->steps);
}

static bool execute_in_child(uint32_t prefix, const char *log)
{
    int status;

    shared->redundant = shared->vain = false;
    const pid_t child = fork();
    if (child < 0) {
        perror("schedules: fork");
        exit(2);
    }
    if (child == 0) {
        char digest[65];
        /* at once, as each page would cost a fault; where the system has no such call, it does */
        madvise(shared, sizeof *shared - (STEPS_MOST - shared->out.deepest) * sizeof *shared->step,
                MADV_POPULATE_WRITE);
        if (log && !record_begin(log))
            _exit(2);
        execute(prefix);
        if (log)
            record_end(digest);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status)) {
        snprintf(shared->out.failure, sizeof shared->out.failure, "the process has died of %d",
                 status);
        return false;
    }
    return !shared->out.failure[0];
}

/* ---- All of them ---- */

/* The next choice that was found to matter and is not made yet: how many choices it has before it
 * and with it. 0: there is none. */
static uint32_t next_choice(uint32_t steps)
{
    for (uint32_t i = steps; i; i--) {
        struct step *s = &shared->step[i];
        s->done |= (uint16_t)bit(s->agent);
        for (unsigned left; (left = s->wanted & ~(unsigned)(s->done | s->asleep));) {
            const int agent = __builtin_ctz(left);
            if (may_run(s, agent)) {
                s->agent = (uint8_t)agent;
                return i;
            }
            s->done |= (uint16_t)bit(agent);
            shared->out.refused++;
        }
    }
    return 0;
}

static double log_of_interleavings(uint32_t steps)
{
    double sum = 0;

    for (uint32_t i = 1; i <= steps; i++)
        sum += log10(__builtin_popcount(shared->step[i].enabled));
    return sum;
}

bool explore(const struct exploration *what, struct explored *out)
{
    uint32_t prefix = 0;
    bool good;

    if (!shared)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("schedules: memory");
        exit(2);
    }
    shared->out = (struct explored){0};
    run.what = what;
    do {
        good = execute_in_child(prefix, NULL);
        if (shared->vain)
            shared->step[prefix].vain |= (uint16_t)bit(shared->step[prefix].agent);
        if (!shared->out.executions)
            shared->out.plain = log_of_interleavings(shared->steps);
        shared->out.executions += !shared->redundant;
        shared->out.redundant += shared->redundant;
        shared->out.states += shared->steps - (prefix ? prefix - 1 : 0);
        if (shared->steps > shared->out.deepest)
            shared->out.deepest = shared->steps;
        if (what->most && shared->out.executions + shared->out.redundant >= what->most)
            shared->out.incomplete = true;
    } while (good && !shared->out.incomplete && (prefix = next_choice(shared->steps)));
    if (!good && what->log)
        execute_in_child(shared->steps, what->log);
    *out = shared->out;
    return good;
}

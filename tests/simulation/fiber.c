#define _GNU_SOURCE
#include "fiber.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "events.h"
#include "explore.h"
#include "fence.h"
#include "image.h"
#include "network.h"
#include "record.h"

enum {
    STACK_BYTES = 256 << 10,
    GUARDED = 16384, /* stacks with a page below that faults: more than all threads of 1,024 PEs */
};

struct world world;
struct fiber *fiber_current;

static struct {
    struct stack_pool stacks;
    struct stack home; /* where events fire */
    struct pe *loaded; /* whose variables are in place */
    struct fiber *thread;
} fibers;

void world_fail(const char *format, ...)
{
    va_list args;

    if (world.failure[0])
        return;
    va_start(args, format);
    vsnprintf(world.failure, sizeof world.failure, format, args);
    va_end(args);
    record("FAILED: %s", world.failure);
    world.over = true;
}

void fibers_begin(void)
{
    stack_pool_init(&fibers.stacks, STACK_BYTES, GUARDED);
    context_adopt(&fibers.home);
    world.schedule = chance_begin(world.seed, 2);
}

void fibers_spare(int stacks)
{
    const size_t page = 4096; /* below each, one that faults */

    for (struct stack *s = fibers.stacks.first; s; s = s->next) {
        if (stacks-- <= 0)
            madvise(s->low - page, s->size + page, MADV_DONTFORK);
    }
}

uint64_t fiber_time(void)
{
    return fiber_current ? fiber_current->now : world.now;
}

/* ---- Switching ---- */

static void load(struct fiber *f)
{
    if (fibers.loaded != f->pe) {
        if (fibers.loaded)
            image_save_process(fibers.loaded->image);
        image_load_process(f->pe->image);
        fibers.loaded = f->pe;
    }
    if (fibers.thread != f) {
        if (fibers.thread)
            image_save_thread(fibers.thread->image);
        image_load_thread(f->image);
        fibers.thread = f;
    }
}

static void go_home(void)
{
    struct fiber *f = fiber_current;

    f->error = errno;
    fiber_current = NULL;
    context_switch(f->stack, &fibers.home);
    errno = f->error;
}

static void resume(void *object, uint64_t turn)
{
    struct fiber *f = object;

    if (f->pe->dead || f->ended || f->turn != turn >> 1)
        return;
    if (f->pe->paused_until > world.now) {
        events_add(f->pe->paused_until, resume, f, turn);
        return;
    }
    if (f->blocked)
        f->timed_out = turn & 1;
    if (f->blocked || f->idle)
        f->seen = f->pe->progress - f->own;
    f->points = f->blocked || f->idle ? 0 : f->points + 1;
    f->blocked = f->idle = false;
    f->now = world.now;
    load(f);
    fiber_current = f;
    context_switch(&fibers.home, f->stack);
}

/* Its next turn is at that time. */
static void resume_at(struct fiber *f, uint64_t at, bool by_time)
{
    events_add(at, resume, f, f->turn << 1 | by_time);
}

static void fiber_entry(void *argument)
{
    struct fiber *f = argument;

    context_entered(f->stack);
    f->result = f->main(f->argument);
    fiber_end();
}

struct fiber *fiber_new(struct pe *pe, uint64_t at, void *(*main)(void *), void *argument)
{
    struct fiber *f = calloc(1, sizeof *f), **end = &pe->fibers;

    if (!f || !stack_reserve(&fibers.stacks, 1)) {
        perror("simulation: fibers");
        exit(2);
    }
    *f = (struct fiber){.pe = pe,
                        .number = pe->n_fibers++,
                        .stack = stack_take(&fibers.stacks),
                        .image = image_new_thread(),
                        .now = at,
                        .main = main,
                        .argument = argument};
    while (*end)
        end = &(*end)->next;
    *end = f;
    context_prepare(f->stack, fiber_entry, f);
    resume_at(f, at, false);
    return f;
}

void fibers_run(uint64_t until)
{
    struct event e;

    while (!world.over && events_next() <= until && events_take(&e)) {
        if (e.at > world.now)
            world.now = e.at;
        e.fire(e.object, e.number);
    }
    if (!world.over && world.now < until)
        world.now = until;
}

/* ---- For the fiber that runs ---- */

void fiber_pass(uint64_t ns)
{
    struct fiber *f = fiber_current;

    f->now += ns;
    if (world.explored || (events_next() > f->now && !world.over))
        return;
    f->turn++;
    resume_at(f, f->now, false);
    go_home();
}

struct fiber *fiber_of_event(void (*fire)(void *, uint64_t), void *object, uint64_t number,
                             bool *by_time)
{
    struct fiber *f = object;

    if (fire != resume || f->pe->dead || f->ended || f->turn != number >> 1)
        return NULL;
    *by_time = number & 1;
    return f;
}

void fiber_point(void)
{
    struct fiber *f = fiber_current;

    if (!world.explored || !f)
        return;
    f->turn++;
    resume_at(f, f->now, false);
    go_home();
}

void fiber_pause(uint64_t ns)
{
    struct fiber *f = fiber_current;

    if (!world.explored) {
        fiber_pass(ns);
        return;
    }
    f->idle = !explore_round_ends(f);
    f->now += ns;
    f->points = 0;
    fiber_point();
}

void fiber_call(void)
{
    fiber_point();
    fiber_pass(chance_between(&world.schedule, world.pace.call_ns, 2 * world.pace.call_ns));
}

bool fiber_block(uint64_t until)
{
    struct fiber *f = fiber_current;

    explore_round_ends(f);
    f->turn++;
    f->blocked = true;
    f->timed_out = false;
    if (until != NEVER)
        resume_at(f, until > f->now ? until : f->now, true);
    go_home();
    return !f->timed_out;
}

void fiber_wake(struct fiber *f)
{
    const uint64_t at = fiber_time() > f->now ? fiber_time() : f->now;

    if (!f->blocked)
        return;
    f->turn++;
    f->blocked = f->timed_out = false;
    f->word = NULL;
    f->points = 0;
    f->after = explore_step;
    f->seen = f->pe->progress - f->own;
    resume_at(f, at + chance_between(&world.schedule, world.pace.wake_ns, 2 * world.pace.wake_ns),
              false);
}

static int count_waiting(const struct pe *pe, const void *word)
{
    int n = 0;

    for (const struct fiber *f = pe->fibers; f; f = f->next)
        n += f->blocked && f->word == word;
    return n;
}

int fiber_wake_word(struct pe *pe, const void *word, int most)
{
    int woken = 0;

    for (int n; woken < most && (n = count_waiting(pe, word)); woken++) {
        uint64_t skip = chance_below(&world.schedule, (uint64_t)n);
        struct fiber *f = pe->fibers;
        while (!(f->blocked && f->word == word) || skip--)
            f = f->next;
        fiber_wake(f);
    }
    return woken;
}

void fiber_end(void)
{
    struct fiber *f = fiber_current;

    explore_round_ends(f);
    f->ended = true;
    if (f->joiner)
        fiber_wake(f->joiner);
    for (;;)
        go_home();
}

/* ---- Processes ---- */

static void process_end(struct pe *pe, bool machine)
{
    pe->dead = true;
    pe->machine_dead = machine;
    pe->died_at = fiber_time();
    network_process_ended(pe);
    fence_lose(pe->number);
}

void fiber_exit(int status)
{
    struct pe *pe = fiber_current->pe;

    record("PE %d exits with status %d", pe->number, status);
    pe->exit_status = status;
    process_end(pe, false);
    for (;;)
        go_home();
}

void process_kill(struct pe *pe, bool machine, const char *why)
{
    if (pe->dead || pe->ended)
        return;
    record("PE %d is killed%s: %s", pe->number, machine ? " with its machine" : "", why);
    process_end(pe, machine);
    for (int i = 0; machine && i < world.n_pes; i++) {
        if (world.pe[i].node == pe->node)
            process_kill(&world.pe[i], true, "it is on that machine");
    }
}

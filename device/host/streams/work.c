#define _GNU_SOURCE
#include "device/host/streams/work.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "device/host/blocks/events.h"
#include "device/host/blocks/pool.h"
#include "device/host/calling_thread.h"
#include "device/host/fibers/sanitizer.h"
#include "device/host/forks.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum {
    WAIT_SPIN_NS = 30000,
    HELPER_AGAIN_NS = 10000000, /* until a thread is asked for again that could not be started */
};

#define HELPER_NAME "gshmem-helper"

/* One lock, one list of helpers for the process: CUDA calls name no object that they could hang
 * from. */
pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    pthread_cond_t finished; /* some work is done */
    unsigned waiters;        /* threads that wait for it */
    atomic_uint_fast64_t calls; /* of gshmem_host_call, under way */

    /* Helpers are threads for what must not hold up a worker: calls, and copies that had to wait. A
     * call may wait for work of another stream, of this PE or another, so each call under way has a
     * thread of its own. There are never more helpers than streams. */
    struct {
        pthread_cond_t work;
        struct work *first, **end;
        unsigned threads, idle, queued;
    } helpers;
} works = {.finished = PTHREAD_COND_INITIALIZER,
           .helpers = {.work = PTHREAD_COND_INITIALIZER, .end = &works.helpers.first}};

bool work_may_wait(void)
{
    return !calling_thread.in_host_function && !thread_self();
}

static void work_finish(struct work *w);

/* A worker has ended the last block of a launch. */
static void work_grid_done(struct grid *grid)
{
    struct work *w = (struct work *)((char *)grid - offsetof(struct work, launch.grid));

    order_acquire(&grid->ended);
    if (atomic_load_explicit(&grid->failed, memory_order_relaxed))
        device_failed((cudaError_t)atomic_load_explicit(&grid->why, memory_order_relaxed));
    if (!w->borrows)
        w->launch.release(grid->closure);
    work_finish(w);
}

struct work *work_new(enum work_kind kind)
{
    struct work *w = calloc(1, sizeof *w);

    if (w) {
        w->kind = kind;
        w->references = 1;
        if (kind == WORK_GRID)
            w->launch.grid.done = work_grid_done;
    }
    return w;
}

void work_drop_locked(struct work *w)
{
    if (!w || --w->references)
        return;
    if (w->kind == WORK_COPY)
        free(w->move.staged);
    free(w->dependents);
    free(w);
}

void work_drop(struct work *w)
{
    pthread_mutex_lock(&work_lock);
    work_drop_locked(w);
    pthread_mutex_unlock(&work_lock);
}

bool work_is_done(const struct work *w)
{
    /* Acquire: with the release in work_mark_done(). */
    return atomic_load_explicit(&w->done, memory_order_acquire);
}

/* --- Lenders and counts --- */

struct lender *lender_keep(struct lender *l)
{
    pthread_mutex_lock(&work_lock);
    l->references++;
    pthread_mutex_unlock(&work_lock);
    return l;
}

void lender_drop(struct lender *l)
{
    pthread_mutex_lock(&work_lock);
    bool last = --l->references == 0;
    pthread_mutex_unlock(&work_lock);
    if (last)
        l->free(l);
}

void call_begins(struct work *w)
{
    w->call.counted = true;
    atomic_fetch_add_explicit(&works.calls, 1, memory_order_relaxed);
}

void call_ends(struct work *w)
{
    if (!w->call.counted)
        return;
    w->call.counted = false;
    /* Release: with the acquire in gshmem_host_calls_under_way(). */
    atomic_fetch_sub_explicit(&works.calls, 1, memory_order_release);
}

int gshmem_host_calls_under_way(void)
{
    /* Acquire: whoever sees that there are none sees what they did. */
    return atomic_load_explicit(&works.calls, memory_order_acquire) != 0;
}

/* --- Performing it --- */

static void work_move(const struct work *w)
{
    if (device_error())
        return;
    for (size_t row = 0; row < w->move.rows; row++) {
        char *to = w->move.to + row * w->move.to_pitch;

        if (w->kind == WORK_COPY)
            memmove(to, w->move.from + row * w->move.from_pitch, w->move.bytes);
        else
            memset(to, w->move.value, w->move.bytes);
    }
}

/* A helper runs the program's function under the name of the thread that submitted it: threads
 * that the function starts inherit the name, and are not the library's
 * (runtime/network/left_alone.h). */
static void work_call(struct work *w)
{
    if (!device_error() || w->call.after_failure) {
        prctl(PR_SET_NAME, w->call.thread_name, 0, 0, 0);
        w->call.function(w->call.argument);
        prctl(PR_SET_NAME, HELPER_NAME, 0, 0, 0);
    }
    if (w->call.release && !w->borrows)
        w->call.release(w->call.argument);
    call_ends(w);
}

static void *helper_main(void *unused)
{
    (void)unused;
    calling_thread.in_host_function = true;
    prctl(PR_SET_NAME, HELPER_NAME, 0, 0, 0);
    for (;;) {
        pthread_mutex_lock(&work_lock);
        while (!works.helpers.first) {
            works.helpers.idle++;
            pthread_cond_wait(&works.helpers.work, &work_lock);
            works.helpers.idle--;
        }
        struct work *w = works.helpers.first;
        works.helpers.first = w->next;
        works.helpers.queued--;
        if (!works.helpers.first)
            works.helpers.end = &works.helpers.first;
        pthread_mutex_unlock(&work_lock);

        if (w->kind == WORK_CALL)
            work_call(w);
        else
            work_move(w);
        work_finish(w);
    }
    return NULL;
}

/* In a child made by fork: a thread that is not there may be on its way out of a wait, which a
 * broadcast would wait for. What the parent has under way stays the parent's. */
static void work_leave_parent(void)
{
    works.finished = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    works.helpers.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    atomic_store_explicit(&works.calls, 0, memory_order_relaxed); /* the child is alone */
}

__attribute__((constructor)) static void work_watch_forks(void)
{
    static struct fork_part part = {.leave_parent =
                                        work_leave_parent}; /* an entry of the list in forks.c */
    static struct fork_lock lock = {.lock = &work_lock};

    forks_hold(&lock);
    forks_add(&part);
}

/* Another helper, where more work is queued than helpers are idle: an idle one may already have
 * been woken for work that was queued before. Call with the lock held. False: one is needed, and
 * there is no thread. */
static bool work_add_helper(void)
{
    pthread_t id;

    if (works.helpers.queued <= works.helpers.idle)
        return true;
    if (pthread_create(&id, NULL, helper_main, NULL) != 0)
        return false;
    pthread_detach(id);
    works.helpers.threads++;
    return true;
}

static void work_give_to_helper(struct work *w)
{
    forks_watch();
    pthread_mutex_lock(&work_lock);
    w->next = NULL;
    *works.helpers.end = w;
    works.helpers.end = &w->next;
    works.helpers.queued++;
    if (!work_add_helper()) {
        if (works.helpers.threads == 0)
            log_error("starting a thread for host functions and copies of the host device failed; "
                      "threads that wait for these try it again");
        pthread_cond_broadcast(&works.finished); /* they do from now on */
    }
    pthread_cond_signal(&works.helpers.work);
    pthread_mutex_unlock(&work_lock);
}

/* Marks w as done, and the points in streams that waited for it alone; returns the other work that
 * can start now. */
static struct work *work_mark_done(struct work *w)
{
    struct work *points = w, *ready = NULL;

    w->next = NULL;
    pthread_mutex_lock(&work_lock);
    while (points) {
        w = points;
        points = w->next;
        w->finished_ns = clock_ns();
        order_release(&w->clock);
        /* Release: what the work did, to those who see that it is done. */
        atomic_store_explicit(&w->done, true, memory_order_release);
        for (unsigned i = 0; i < w->dependents_count; i++) {
            struct work *d = w->dependents[i];
            if (--d->blockers)
                continue;
            struct work **list = d->kind == WORK_NOTHING ? &points : &ready;
            d->next = *list;
            *list = d;
        }
        work_drop_locked(w);
    }
    if (works.waiters)
        pthread_cond_broadcast(&works.finished);
    pthread_mutex_unlock(&work_lock);
    return ready;
}

static void work_start(struct work *w, bool here)
{
    if (w->kind == WORK_GRID) {
        grid_submit(&w->launch.grid);
    } else if (w->kind == WORK_CALL || !here) {
        work_give_to_helper(w);
    } else {
        if (w->kind != WORK_NOTHING)
            work_move(w);
        work_finish(w);
    }
}

/* w is done; returns the other work that can start now. */
static struct work *work_end(struct work *w)
{
    struct code *code = w->kind == WORK_GRID ? w->launch.code : NULL;
    struct lender *lender = w->borrows;
    struct work *ready = work_mark_done(w);

    if (lender)
        lender_drop(lender);
    if (code)
        code_ends(code);
    return ready;
}

/* A kernel behind one that has failed is not run. Many may be in line, so there is no recursion
 * here. */
static struct work *work_skip(struct work *w)
{
    if (!w->borrows)
        w->launch.release(w->launch.grid.closure);
    return work_end(w);
}

static void work_start_all(struct work *ready)
{
    while (ready) {
        struct work *w = ready;
        ready = w->next;
        if (w->kind != WORK_GRID || !device_error()) {
            work_start(w, false);
            continue;
        }
        struct work *more = work_skip(w);
        if (more) {
            struct work *last = more;
            while (last->next)
                last = last->next;
            last->next = ready;
            ready = more;
        }
    }
}

static void work_finish(struct work *w)
{
    work_start_all(work_end(w));
}

void work_start_here(struct work *w)
{
    w->next = NULL;
    if (w->kind == WORK_GRID)
        work_start_all(w); /* a kernel may have failed since the launch was checked */
    else
        work_start(w, true);
}

bool work_depend(struct work *w, struct work *on)
{
    if (!on || on == w || work_is_done(on)) {
        if (on)
            order_acquire(&on->clock);
        return true;
    }
    if (on->dependents_count == on->dependents_room) {
        unsigned room = on->dependents_room ? 2 * on->dependents_room : 4;
        struct work **more = realloc(on->dependents, room * sizeof *more);
        if (!more)
            return false;
        on->dependents = more;
        on->dependents_room = room;
    }
    on->dependents[on->dependents_count++] = w;
    w->blockers++;
    return true;
}

/* --- Waiting --- */

/* With the lock held: until some work has finished, or for a moment if no helper can be started for
 * what is queued. */
static void work_wait_for_some(void)
{
    struct timespec until;

    if (work_add_helper()) {
        pthread_cond_wait(&works.finished, &work_lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += HELPER_AGAIN_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&works.finished, &work_lock, &until);
}

static void work_wait_until_done(struct work *w)
{
    const uint64_t until = clock_ns() + WAIT_SPIN_NS;

    while (!work_is_done(w) && clock_ns() < until)
        sched_yield();
    if (!work_is_done(w)) {
        pthread_mutex_lock(&work_lock);
        works.waiters++;
        while (!work_is_done(w))
            work_wait_for_some();
        works.waiters--;
        pthread_mutex_unlock(&work_lock);
    }
}

void work_wait(struct work *w)
{
    if (forks_is_child())
        return;
    if (!work_is_done(w)) {
        events_host_waits();
        work_wait_until_done(w);
        events_host_goes_on();
    }
    order_acquire(&w->clock);
}

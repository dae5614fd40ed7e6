#define _GNU_SOURCE
#include "device/host/work.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "device/host/graph.h"
#include "device/host/sanitizer.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { WAIT_SPIN_NS = 30000 };

#define HELPER_NAME "gshmem-helper"

pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static unsigned waiters;
static bool forked; /* this process is a child of one whose threads did the device's work */

static struct CUstream_st legacy = {.blocking = true};
static struct CUstream_st *streams;

/* Threads for what must not hold up a worker: calls, and copies that had to wait. A call may wait for
 * what is done on another stream, of this PE or another, so there is a thread for each that is under
 * way; there are no more of these than streams. */
static struct {
    pthread_cond_t work;
    struct work *first, **end;
    unsigned threads, idle, queued;
} helpers = {.work = PTHREAD_COND_INITIALIZER, .end = &helpers.first};

static __thread bool in_host_function;

bool work_may_wait(void)
{
    return !in_host_function && !thread_self();
}

struct work *work_new(enum work_kind kind)
{
    struct work *w = calloc(1, sizeof *w);

    if (w) {
        w->kind = kind;
        w->references = 1;
    }
    return w;
}

static void drop_locked(struct work *w)
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
    drop_locked(w);
    pthread_mutex_unlock(&work_lock);
}

bool work_is_done(const struct work *w)
{
    /* Acquire: with the release in finish(). */
    return atomic_load_explicit(&w->done, memory_order_acquire);
}

/* --- Doing it --- */

static void do_move(const struct work *w)
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

/* Under the name of the thread that made this one: threads that the program's function starts have it, too, and are
 * none of the library's (runtime/network/left_alone.h). */
static _Thread_local char program_name[16];

static void do_call(struct work *w)
{
    if (!device_error() || w->call.after_failure) {
        prctl(PR_SET_NAME, program_name, 0, 0, 0);
        w->call.function(w->call.argument);
        prctl(PR_SET_NAME, HELPER_NAME, 0, 0, 0);
    }
    if (w->call.release && !w->borrows)
        w->call.release(w->call.argument);
    call_ends(w);
}

static void work_finish(struct work *w);

static void *helper_main(void *unused)
{
    (void)unused;
    in_host_function = true;
    prctl(PR_GET_NAME, program_name, 0, 0, 0);
    prctl(PR_SET_NAME, HELPER_NAME, 0, 0, 0);
    for (;;) {
        pthread_mutex_lock(&work_lock);
        while (!helpers.first) {
            helpers.idle++;
            pthread_cond_wait(&helpers.work, &work_lock);
            helpers.idle--;
        }
        struct work *w = helpers.first;
        helpers.first = w->next;
        helpers.queued--;
        if (!helpers.first)
            helpers.end = &helpers.first;
        pthread_mutex_unlock(&work_lock);

        if (w->kind == WORK_CALL)
            do_call(w);
        else
            do_move(w);
        work_finish(w);
    }
    return NULL;
}

/* A child has none of these threads: as on a GPU the device has failed for it, and waits find nothing. What its
 * parent has under way stays its parent's. */
static void work_leave_parent(void)
{
    forked = true;
    work_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* a thread that is gone may hold it, */
    finished = (pthread_cond_t)PTHREAD_COND_INITIALIZER;    /* or be on its way out of a wait, for which a broadcast waits */
    helpers.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    kernels_leave_parent();
    watch_leave_parent();
    workers_leave_parent();
    device_failed(cudaErrorInitializationError);
}

static void register_child(void)
{
    pthread_atfork(NULL, NULL, work_leave_parent);
}

void work_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_child);
}

bool work_is_parents(void)
{
    return forked;
}

static void give_to_helper(struct work *w)
{
    pthread_t id;

    work_watch_forks();
    pthread_mutex_lock(&work_lock);
    w->next = NULL;
    *helpers.end = w;
    helpers.end = &w->next;
    helpers.queued++;
    /* Those idle may have been woken already, for what was queued before. */
    bool more = helpers.queued > helpers.idle;
    if (more && pthread_create(&id, NULL, helper_main, NULL) == 0) {
        pthread_detach(id);
        helpers.threads++;
    } else if (helpers.threads == 0) {
        log_error("starting a thread for host functions and copies of the host device failed");
    }
    pthread_cond_signal(&helpers.work);
    pthread_mutex_unlock(&work_lock);
}

static void grid_done(struct grid *grid)
{
    struct work *w = (struct work *)((char *)grid - offsetof(struct work, launch.grid));

    order_acquire(&grid->ended);
    if (atomic_load_explicit(&grid->failed, memory_order_relaxed))
        device_failed((cudaError_t)atomic_load_explicit(&grid->why, memory_order_relaxed));
    if (!w->borrows)
        w->launch.release(grid->closure);
    work_finish(w);
}

/* Marks w and what ends with it as done; returns the other work that can start now. */
static struct work *mark_done(struct work *w)
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
        drop_locked(w);
    }
    if (waiters)
        pthread_cond_broadcast(&finished);
    pthread_mutex_unlock(&work_lock);
    return ready;
}

static void work_start(struct work *w, bool here)
{
    if (w->kind == WORK_GRID) {
        grid_submit(&w->launch.grid);
    } else if (w->kind == WORK_CALL || !here) {
        give_to_helper(w);
    } else {
        if (w->kind != WORK_NOTHING)
            do_move(w);
        work_finish(w);
    }
}

/* w is over; returns what can start now. */
static struct work *work_end(struct work *w)
{
    struct code *code = w->kind == WORK_GRID ? w->launch.code : NULL;
    struct graph *borrowed = w->borrows;
    struct work *ready = mark_done(w);

    if (borrowed)
        graph_drop(borrowed);
    if (code)
        code_ends(code);
    return ready;
}

/* A kernel behind one that has failed: it only ends. Many may be in line, so this goes without recursion. */
static struct work *skip(struct work *w)
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
        struct work *more = skip(w);
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

/* What was submitted, and waits for nothing. */
static void start_here(struct work *w)
{
    w->next = NULL;
    if (w->kind == WORK_GRID)
        work_start_all(w); /* a kernel may have failed since the launch was looked at */
    else
        work_start(w, true);
}

/* --- Order --- */

static bool depend(struct work *w, struct work *on)
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

/* Streams that were destroyed with work under way are kept until it is done. */
static void reap_streams(void)
{
    struct CUstream_st **link = &streams;

    while (*link) {
        struct CUstream_st *s = *link;
        if (s->destroyed && (!s->last || work_is_done(s->last))) {
            *link = s->next;
            drop_locked(s->last);
            free(s);
        } else {
            link = &s->next;
        }
    }
}

/* After the stream's latest, and the default stream's; the default stream after everybody's. */
static bool depend_on_streams(struct work *w, const struct CUstream_st *stream)
{
    bool ok = depend(w, stream->last);

    if (stream != &legacy)
        return ok && (!stream->blocking || depend(w, legacy.last));
    for (struct CUstream_st *s = streams; ok && s; s = s->next)
        ok = !s->blocking || depend(w, s->last);
    return ok;
}

/* Whether it can start; the caller keeps its reference, and there is one more until it is done. */
static bool order(struct work *w, const struct CUstream_st *stream, struct work *const after[2])
{
    if (w->kind == WORK_GRID)
        w->launch.grid.done = grid_done;
    w->blockers = 1;
    w->references++;
    bool ok = depend(w, after[0]) && depend(w, after[1]);
    ok = ok && (!stream || depend_on_streams(w, stream));
    /* Without memory to note an order, it has to be kept by waiting. */
    if (!ok) {
        pthread_mutex_unlock(&work_lock);
        if (stream)
            work_wait_all();
        for (int i = 0; i < 2; i++) {
            if (after[i])
                work_wait(after[i]);
        }
        pthread_mutex_lock(&work_lock);
    }
    return --w->blockers == 0;
}

/* Streams that are being captured do nothing that the default stream could wait for, and the other
 * way round. */
static cudaError_t work_note(struct work *w, struct CUstream_st *stream, struct work *also)
{
    if (stream->capture || (also && also->capture))
        return graph_capture(w, stream, also);
    return stream == &legacy && streams_captured(false) ? cudaErrorStreamCaptureImplicit
                                                        : cudaSuccess;
}

cudaError_t work_submit(struct work *w, struct CUstream_st *stream, struct work *also)
{
    struct work *const after[2] = {also, NULL};

    pthread_mutex_lock(&work_lock);
    cudaError_t error = work_note(w, stream, also);
    if (error || w->capture) {
        pthread_mutex_unlock(&work_lock);
        return error;
    }
    bool ready = order(w, stream, after);
    drop_locked(stream->last);
    stream->last = w;
    w->references++;
    pthread_mutex_unlock(&work_lock);
    if (ready)
        start_here(w);
    return cudaSuccess;
}

void work_submit_after(struct work *w, struct work *first, struct work *second)
{
    struct work *const after[2] = {first, second};

    pthread_mutex_lock(&work_lock);
    bool ready = order(w, NULL, after);
    pthread_mutex_unlock(&work_lock);
    if (ready)
        start_here(w);
}

/* --- Streams --- */

struct CUstream_st *stream_new(bool blocking)
{
    struct CUstream_st *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->blocking = blocking;
    pthread_mutex_lock(&work_lock);
    reap_streams();
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&work_lock);
    return s;
}

void stream_destroy(struct CUstream_st *s)
{
    pthread_mutex_lock(&work_lock);
    s->destroyed = true;
    struct graph *lost = graph_forget_stream(s);
    reap_streams();
    pthread_mutex_unlock(&work_lock);
    if (lost)
        graph_drop(lost);
}

struct CUstream_st *stream_legacy(void)
{
    return &legacy;
}

struct graph *graph_capturing(uint64_t number)
{
    struct CUstream_st *s = streams;

    while (s && (!s->capture || graph_number(s->capture) != number))
        s = s->next;
    return s ? s->capture : NULL;
}

bool streams_captured(bool any)
{
    bool found = false;

    for (struct CUstream_st *s = streams; s; s = s->next) {
        if (s->capture && (any || s->blocking)) {
            graph_break(s->capture);
            found = true;
        }
    }
    return found;
}

bool stream_is_captured(struct CUstream_st *stream)
{
    pthread_mutex_lock(&work_lock);
    bool captured = stream->capture != NULL;
    pthread_mutex_unlock(&work_lock);
    return captured;
}

/* ---- A thread's own stream, which goes when the thread does and its work is done ---- */

static __thread struct CUstream_st *mine;
static pthread_key_t thread_ends;
static bool hears_of_ends;

static void destroy_mine(void *stream)
{
    mine = NULL;
    stream_destroy(stream);
}

static void hear_of_ends(void)
{
    hears_of_ends = pthread_key_create(&thread_ends, destroy_mine) == 0;
}

static struct CUstream_st *per_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (mine)
        return mine;
    pthread_once(&once, hear_of_ends);
    mine = stream_new(true);
    if (mine && hears_of_ends)
        pthread_setspecific(thread_ends, mine);
    return mine;
}

struct CUstream_st *stream_find(cudaStream_t handle)
{
    if (!handle || handle == cudaStreamLegacy)
        return &legacy;
    if (handle == cudaStreamPerThread)
        return per_thread();
    pthread_mutex_lock(&work_lock);
    struct CUstream_st *s = streams;
    while (s && (s != handle || s->destroyed))
        s = s->next;
    pthread_mutex_unlock(&work_lock);
    return s;
}

/* --- Waiting --- */

void work_wait(struct work *w)
{
    uint64_t until = clock_ns() + WAIT_SPIN_NS;

    if (forked)
        return;
    while (!work_is_done(w) && clock_ns() < until)
        sched_yield();
    if (!work_is_done(w)) {
        pthread_mutex_lock(&work_lock);
        waiters++;
        while (!work_is_done(w))
            pthread_cond_wait(&finished, &work_lock);
        waiters--;
        pthread_mutex_unlock(&work_lock);
    }
    order_acquire(&w->clock);
}

struct work *work_last(struct CUstream_st *stream)
{
    pthread_mutex_lock(&work_lock);
    struct work *w = stream->last;
    if (w)
        w->references++;
    pthread_mutex_unlock(&work_lock);
    return w;
}

/* A point in the default stream would not wait for streams that go their own way. */
cudaError_t work_wait_all(void)
{
    for (;;) {
        struct work *w = NULL;

        pthread_mutex_lock(&work_lock);
        reap_streams();
        if (legacy.last && !work_is_done(legacy.last))
            w = legacy.last;
        for (struct CUstream_st *s = streams; !w && s; s = s->next) {
            if (s->last && !work_is_done(s->last))
                w = s->last;
        }
        if (w)
            w->references++;
        pthread_mutex_unlock(&work_lock);
        if (!w || forked)
            return device_error();
        work_wait(w);
        work_drop(w);
    }
}

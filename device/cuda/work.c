/* The library's own work on the GPU that is waited for later, or for some time: copies that are
 * started and looked after, on one stream and in the order in which they come; and updates on
 * another, each behind the copies that were started before it. An update takes a place for a block
 * on the GPU, which a kernel of the program's may fill for long: copies, which need none, do not
 * wait for it. */
#include "device/cuda/streams.h"

#include <stdlib.h>
#include <time.h>

#include "gshmem/atomic.h"

/* ---- Tickets: the number of each piece of work, whose event is in a ring ---- */

static cuda_event *event_of(struct cuda_work *w, uint64_t ticket)
{
    return &w->event[ticket % DEVICE_COPIES_MOST];
}

/* With the lock. Work that is older than the ring is waited for, so that its event may be used
 * again. */
static cuda_result take_ticket(struct cuda *c, uint64_t *ticket)
{
    struct cuda_work *w = &c->work;
    cuda_event *event = event_of(w, w->last + 1);
    cuda_result result = CUDA_OK;

    if (!*event)
        result = c->driver.event_create(event, CUDA_EVENT_NO_TIMING);
    else if (w->done + DEVICE_COPIES_MOST <= w->last && !(result = c->driver.event_wait(*event)))
        w->done = w->last + 1 - DEVICE_COPIES_MOST;
    *ticket = w->last + 1;
    return result;
}

/* With the lock: what has been put on the stream has that ticket now. */
static cuda_result give_ticket(struct cuda *c, uint64_t ticket)
{
    cuda_result result = c->driver.event_record(*event_of(&c->work, ticket), c->work.stream);

    if (!result)
        c->work.last = ticket;
    return result;
}

/* ---- Copies ---- */

gshmem_status_t cuda_copy_start(struct device *base, void *to, const void *from, size_t bytes,
                                uint64_t *ticket)
{
    struct cuda *c = cuda_of(base);
    cuda_result result;
    gshmem_status_t status;
    uint64_t mine;

    if ((status = cuda_enter(c)))
        return status;
    pthread_mutex_lock(&c->work.lock);
    if (!(result = take_ticket(c, &mine)) && bytes)
        result = c->driver.copy_async((cuda_address)(uintptr_t)to, (cuda_address)(uintptr_t)from,
                                      bytes, c->work.stream);
    if (!result)
        result = give_ticket(c, mine);
    pthread_mutex_unlock(&c->work.lock);
    cuda_leave(c);
    if (result)
        return cuda_fail(c, result, "copying %zu B to %p on GPU %d", bytes, to, c->gpu);
    *ticket = mine;
    return GSHMEM_OK;
}

bool cuda_copy_done(struct device *base, uint64_t ticket, gshmem_status_t *status)
{
    struct cuda *c = cuda_of(base);
    cuda_result result = CUDA_OK;

    if ((*status = cuda_enter(
             c))) /* for a thread that captures a stream while it makes progress on the network */
        return true;
    pthread_mutex_lock(&c->work.lock);
    if (ticket > c->work.done && !(result = c->driver.event_query(*event_of(&c->work, ticket))))
        c->work.done = ticket; /* and all before it */
    pthread_mutex_unlock(&c->work.lock);
    cuda_leave(c);
    if (result == CUDA_NOT_READY)
        return false;
    if (result)
        *status = cuda_fail(c, result, "a copy on GPU %d", c->gpu);
    return true;
}

/* ---- Updates: a ticket is the number of a place for an answer, and one more ---- */

static uint64_t work_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* With the lock. Made by this GPU, or by the one that reaches the memory. */
static gshmem_status_t launch_update(struct cuda *c, const struct device_request *r,
                                     struct cuda_updating *u)
{
    struct cuda_work *w = &c->work;
    cuda_event before = w->last > w->done ? *event_of(w, w->last) : NULL;
    gshmem_status_t status;
    cuda_result result;

    if (!u->event && (result = c->driver.event_create(&u->event, CUDA_EVENT_NO_TIMING)))
        return cuda_fail(c, result, "an event on GPU %d", c->gpu);
    if (u->gpu != c->gpu) {
        status = cuda_update_elsewhere(c, u->gpu, r, before);
    } else {
        if (before && (result = c->driver.stream_wait_event(w->updates, before, 0)))
            return cuda_fail(c, result, "putting an update behind copies of GPU %d", c->gpu);
        status = cuda_kernel_launch(c, r, w->updates);
    }
    if (status)
        return status;
    result = c->driver.event_record(u->event, w->updates);
    return result ? cuda_fail(c, result, "an event on GPU %d", c->gpu) : GSHMEM_OK;
}

/* With the lock: those that nobody asks for any more, and that are over. */
static void collect_forgotten(struct cuda *c)
{
    struct cuda_work *w = &c->work;

    for (int i = 0; i < CUDA_UPDATES_MOST; i++) {
        if (!w->updating[i].forgotten ||
            c->driver.event_query(w->updating[i].event) == CUDA_NOT_READY)
            continue;
        w->updating[i].forgotten = false;
        w->answers_free |= UINT64_C(1) << i;
    }
}

gshmem_status_t cuda_update_start(struct device *base, const struct device_update *u,
                                  uint64_t *ticket)
{
    struct cuda *c = cuda_of(base);
    struct cuda_work *w = &c->work;
    struct device_request r = {
        .call = DEVICE_UPDATE,
        .type = u->type,
        .op = u->op,
        .dest = (uintptr_t)u->at,
        .value = {u->operand, u->compare},
    };
    gshmem_status_t status;

    *ticket = 0;
    if ((unsigned)u->op >= GSHMEM_AMO_COUNT)
        return c->config.fail(GSHMEM_ERR_ARGUMENT,
                              "cuda: an update at %p: no atomic has the number %d", u->at,
                              (int)u->op);
    if ((status = cuda_enter(c)))
        return status;
    pthread_mutex_lock(&w->lock);
    if (!w->answers_free)
        collect_forgotten(c);
    if (w->answers_free) {
        const int mine = __builtin_ctzll(w->answers_free);
        struct cuda_updating *place = &w->updating[mine];
        place->gpu = cuda_heap_reader(c, r.dest);
        place->at = r.dest;
        place->begun = work_now_ns();
        r.answer = (uintptr_t)&w->answer[mine];
        if (!(status = launch_update(c, &r, place))) {
            w->answers_free &= ~(UINT64_C(1) << mine);
            *ticket = (uint64_t)mine + 1;
        }
    }
    pthread_mutex_unlock(&w->lock);
    cuda_leave(c);
    return status;
}

/* Nothing that waits in here can make room; it can be said, once. */
static void warn_of_long_wait(struct cuda *c, const struct cuda_updating *u)
{
    if (work_now_ns() - u->begun < c->config.stall_seconds * UINT64_C(1000000000) ||
        __atomic_exchange_n(&c->work.warned, true, __ATOMIC_RELAXED))
        return;
    c->config.warn(
        "cuda: an update at %#llx has been waiting for %u s for GPU %d: a kernel of one block "
        "makes it, and finds no room beside those that run there. If they wait for it, they "
        "wait for ever: launch fewer blocks, so that one more fits, or take the object from "
        "host memory (GSHMEM_MALLOC_HOST)",
        (unsigned long long)u->at, c->config.stall_seconds, u->gpu);
}

bool cuda_update_done(struct device *base, uint64_t ticket, uint64_t *old, gshmem_status_t *status)
{
    struct cuda *c = cuda_of(base);
    struct cuda_work *w = &c->work;
    const int mine = (int)ticket - 1;
    cuda_result result;

    if ((*status = cuda_enter(c))) /* as in cuda_copy_done */
        return true;
    result = c->driver.event_query(w->updating[mine].event);
    cuda_leave(c);
    if (result == CUDA_NOT_READY) {
        warn_of_long_wait(c, &w->updating[mine]);
        return false;
    }
    if (result)
        *status = cuda_fail(c, result, "an update on GPU %d", w->updating[mine].gpu);
    else if (old)
        *old = w->answer[mine].old;
    pthread_mutex_lock(&w->lock);
    w->answers_free |= UINT64_C(1) << mine;
    pthread_mutex_unlock(&w->lock);
    return true;
}

void cuda_update_forget(struct device *base, uint64_t ticket)
{
    struct cuda_work *w = &cuda_of(base)->work;

    pthread_mutex_lock(&w->lock);
    w->updating[ticket - 1].forgotten = true;
    pthread_mutex_unlock(&w->lock);
}

/* A place that is taken again meanwhile is waited for once more: nothing is held. */
void cuda_work_await_forgotten(struct cuda *c)
{
    struct cuda_work *w = &c->work;

    for (int i = 0; i < CUDA_UPDATES_MOST; i++) {
        pthread_mutex_lock(&w->lock);
        const bool forgotten = w->updating[i].forgotten;
        pthread_mutex_unlock(&w->lock);
        if (forgotten)
            c->driver.event_wait(w->updating[i].event);
    }
}

enum { SPIN_NS = 200 * 1000, MOMENT_NS = 20 * 1000 };

/* For threads that may wait, and have nothing to drive. Nothing is held meanwhile: others copy and
 * update. */
gshmem_status_t cuda_update(struct device *base, const struct device_update *u, uint64_t *old)
{
    const struct timespec moment = {.tv_nsec = MOMENT_NS};
    const uint64_t begun = work_now_ns();
    gshmem_status_t status;
    uint64_t ticket;

    while (!(status = cuda_update_start(base, u, &ticket)) && !ticket)
        nanosleep(&moment, NULL);
    while (!status && !cuda_update_done(base, ticket, old, &status)) {
        if (work_now_ns() - begun >= SPIN_NS)
            nanosleep(&moment, NULL);
    }
    return status;
}

/* ---- Life: with the GPU ours ---- */

gshmem_status_t cuda_work_open(struct cuda *c)
{
    struct cuda_work *w = &c->work;
    cuda_result result;
    void *answer;

    if ((result = c->driver.stream_create(&w->stream, CUDA_STREAM_NON_BLOCKING)))
        return cuda_fail(c, result, "a stream for the library's work on GPU %d", c->gpu);
    if ((result = c->driver.stream_create(&w->updates, CUDA_STREAM_NON_BLOCKING))) {
        c->driver.stream_destroy(w->stream);
        return cuda_fail(c, result, "a stream for updates on GPU %d", c->gpu);
    }
    if ((result = c->driver.host_allocate(&answer, CUDA_UPDATES_MOST * sizeof *w->answer,
                                          CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP))) {
        c->driver.stream_destroy(w->updates);
        c->driver.stream_destroy(w->stream);
        return cuda_fail(c, result, "pinned memory for answers of GPU %d", c->gpu);
    }
    w->answer = answer;
    w->answers_free = UINT64_MAX;
    return GSHMEM_OK;
}

void cuda_work_await(struct cuda *c)
{
    c->driver.stream_wait(c->work.stream);
    c->driver.stream_wait(c->work.updates);
}

void cuda_work_close(struct cuda *c)
{
    struct cuda_work *w = &c->work;

    cuda_elsewhere_close(c);
    for (int i = 0; i < DEVICE_COPIES_MOST; i++) {
        if (w->event[i])
            c->driver.event_destroy(w->event[i]);
    }
    for (int i = 0; i < CUDA_UPDATES_MOST; i++) {
        if (w->updating[i].event)
            c->driver.event_destroy(w->updating[i].event);
    }
    c->driver.stream_destroy(w->updates);
    c->driver.stream_destroy(w->stream);
    c->driver.host_free(w->answer);
}

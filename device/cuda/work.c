/* The library's own work on the GPU that is waited for later, or for some time: copies that are
 * started and looked after, and updates, on one stream and in the order in which they come. */
#include "device/cuda/cuda.h"

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

    *status = GSHMEM_OK;
    pthread_mutex_lock(&c->work.lock);
    if (ticket > c->work.done && !(result = c->driver.event_query(*event_of(&c->work, ticket))))
        c->work.done = ticket; /* and all before it */
    pthread_mutex_unlock(&c->work.lock);
    if (result == CUDA_NOT_READY)
        return false;
    if (result)
        *status = cuda_fail(c, result, "a copy or an update on GPU %d", c->gpu);
    return true;
}

/* ---- Updates ---- */

/* With the lock. Made by this GPU, or by the one that reaches the memory. */
static gshmem_status_t start_update(struct cuda *c, const struct device_request *r, cuda_gpu gpu,
                                    uint64_t *ticket)
{
    struct cuda_work *w = &c->work;
    gshmem_status_t status;
    cuda_result result;

    if ((result = take_ticket(c, ticket)))
        return cuda_fail(c, result, "an event on GPU %d", c->gpu);
    status = gpu == c->gpu ? cuda_kernel_launch(c, r, w->stream)
                           : cuda_update_elsewhere(c, gpu, r,
                                                   w->last > w->done ? *event_of(w, w->last) : NULL);
    if (status)
        return status;
    result = give_ticket(c, *ticket);
    return result ? cuda_fail(c, result, "an event on GPU %d", c->gpu) : GSHMEM_OK;
}

/* Nothing that waits in here can make room; it can be said, once. */
static void warn_of_long_wait(struct cuda *c, const struct device_request *r, cuda_gpu gpu)
{
    if (__atomic_exchange_n(&c->work.warned, true, __ATOMIC_RELAXED))
        return;
    c->config.warn("cuda: an update at %#llx has been waiting for %u s for GPU %d: a kernel of one block "
                   "makes it, and finds no room beside those that run there. If they wait for it, they "
                   "wait for ever: launch fewer blocks, so that one more fits, or take the object from "
                   "host memory (GSHMEM_MALLOC_HOST)",
                   (unsigned long long)r->dest, c->config.patience, gpu);
}

enum { SPIN_NS = 200 * 1000, NAP_NS = 20 * 1000 };

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Without the lock: others may copy and update meanwhile. */
static gshmem_status_t finish_update(struct cuda *c, const struct device_request *r, cuda_gpu gpu,
                                     uint64_t ticket)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    const uint64_t begun = now_ns();
    gshmem_status_t status;

    while (!cuda_copy_done(&c->base, ticket, &status)) {
        uint64_t waited = now_ns() - begun;
        if (waited >= c->config.patience * UINT64_C(1000000000))
            warn_of_long_wait(c, r, gpu);
        if (waited >= SPIN_NS)
            nanosleep(&nap, NULL);
    }
    return status;
}

/* With the lock, which it gives up while none is free. */
static int take_answer(struct cuda_work *w)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    while (!w->answers_free) {
        pthread_mutex_unlock(&w->lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&w->lock);
    }
    int mine = __builtin_ctzll(w->answers_free);
    w->answers_free &= ~(UINT64_C(1) << mine);
    return mine;
}

/* Who updates again and again, such as those that wait for a lock, must not keep the proxy from its turn:
 * nothing is held while an update is waited for. */
static gshmem_status_t update(struct cuda *c, struct device_request *r, uint64_t *old)
{
    struct cuda_work *w = &c->work;
    gshmem_status_t status;
    uint64_t ticket = 0;

    pthread_mutex_lock(&w->lock);
    const cuda_gpu gpu = cuda_heap_reader(c, r->dest);
    const int mine = take_answer(w);
    r->answer = (uintptr_t)&w->answer[mine];
    status = start_update(c, r, gpu, &ticket);
    pthread_mutex_unlock(&w->lock);
    if (!status && !(status = finish_update(c, r, gpu, ticket)) && old)
        *old = w->answer[mine].old;
    pthread_mutex_lock(&w->lock);
    w->answers_free |= UINT64_C(1) << mine;
    pthread_mutex_unlock(&w->lock);
    return status;
}

gshmem_status_t cuda_update(struct device *base, const struct device_update *u, uint64_t *old)
{
    struct cuda *c = cuda_of(base);
    struct device_request r = {
        .call = DEVICE_UPDATE,
        .type = u->type,
        .op = u->op,
        .dest = (uintptr_t)u->at,
        .value = {u->operand, u->compare},
    };
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    status = update(c, &r, old);
    cuda_leave(c);
    return status;
}

/* ---- Life: both with the GPU ours ---- */

gshmem_status_t cuda_work_open(struct cuda *c)
{
    struct cuda_work *w = &c->work;
    cuda_result result;
    void *answer;

    if ((result = c->driver.stream_create(&w->stream, CUDA_STREAM_NON_BLOCKING)))
        return cuda_fail(c, result, "a stream for the library's work on GPU %d", c->gpu);
    if ((result = c->driver.host_allocate(&answer, CUDA_UPDATES_MOST * sizeof *w->answer,
                                          CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP))) {
        c->driver.stream_destroy(w->stream);
        return cuda_fail(c, result, "pinned memory for answers of GPU %d", c->gpu);
    }
    w->answer = answer;
    w->answers_free = UINT64_MAX;
    return GSHMEM_OK;
}

void cuda_work_close(struct cuda *c)
{
    struct cuda_work *w = &c->work;

    c->driver.stream_wait(w->stream);
    cuda_elsewhere_close(c);
    for (int i = 0; i < DEVICE_COPIES_MOST; i++) {
        if (w->event[i])
            c->driver.event_destroy(w->event[i]);
    }
    c->driver.stream_destroy(w->stream);
    c->driver.host_free(w->answer);
}

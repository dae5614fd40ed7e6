#include "runtime/memory/registration.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/pages.h"
#include "runtime/stats/stats.h"

struct buffer {
    uintptr_t at;
    size_t bytes;
    bool pinned; /* the device must be notified when it is unregistered */
};

/* There are few buffers, which are looked up more often than changed: an array in the order of
 * addresses. */
struct registrations {
    pthread_mutex_t lock; /* held by the proxy during a look-up, and by a thread that changes the
                             table */
    struct buffer *buffer;
    int n, room;
};

/* ---- The table, with the lock held ---- */

/* How many buffers begin at or before an address: only the last of them can contain it. */
static int registration_count_to(const struct registrations *r, uintptr_t address)
{
    int low = 0, high = r->n;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (r->buffer[middle].at <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct buffer *find_overlap(const struct registrations *r, uintptr_t at, size_t bytes)
{
    int i = registration_count_to(r, at + bytes - 1) - 1;

    return i >= 0 && at - r->buffer[i].at < r->buffer[i].bytes ? &r->buffer[i]
           : i >= 0 && r->buffer[i].at >= at                   ? &r->buffer[i]
                                                               : NULL;
}

static bool registration_make_room(struct registrations *r)
{
    int room = r->room ? 2 * r->room : 16;
    struct buffer *more;

    if (r->n < r->room)
        return true;
    if (!(more = realloc(r->buffer, (size_t)room * sizeof *more)))
        return false;
    r->buffer = more;
    r->room = room;
    return true;
}

static void registration_insert(struct registrations *r, struct buffer b)
{
    int i = registration_count_to(r, b.at);

    memmove(&r->buffer[i + 1], &r->buffer[i], (size_t)(r->n - i) * sizeof b);
    r->buffer[i] = b;
    r->n++;
}

static struct buffer registration_take_out(struct registrations *r, int i)
{
    struct buffer b = r->buffer[i];

    memmove(&r->buffer[i], &r->buffer[i + 1], (size_t)(r->n - i - 1) * sizeof b);
    r->n--;
    return b;
}

bool registration_holds(struct registrations *r, uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    int i = registration_count_to(r, (uintptr_t)address) - 1;
    bool holds = i >= 0 && address - r->buffer[i].at < r->buffer[i].bytes &&
                 bytes <= r->buffer[i].bytes - (address - r->buffer[i].at);
    pthread_mutex_unlock(&r->lock);
    return holds;
}

bool registration_overlaps(struct registrations *r, uintptr_t at, size_t bytes)
{
    pthread_mutex_lock(&r->lock);
    bool any = find_overlap(r, at, bytes) != NULL;
    pthread_mutex_unlock(&r->lock);
    return any;
}

/* ---- What may be registered ---- */

static bool registration_exists(struct job *j, void *at, size_t bytes, bool *of_device)
{
    struct pages fresh = {.known = {0}};

    *of_device = j->device->ops->owns(j->device, at, bytes);
    return *of_device || pages_exist(&fresh, (uintptr_t)at, bytes);
}

/* With the lock held. */
static gshmem_status_t registration_refuse_overlap(uintptr_t at, size_t bytes,
                                                   const struct buffer *other)
{
    if (other->at == at && other->bytes == bytes)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_buffer_register: %zu B at %p are registered already", bytes,
                    (void *)at);
    return fail(GSHMEM_ERR_ARGUMENT,
                "gshmem_buffer_register: %zu B at %p overlap the %zu B at %p that are registered: "
                "unregister those first",
                bytes, (void *)at, other->bytes, (void *)other->at);
}

static gshmem_status_t registration_check(struct job *j, void *addr, size_t bytes, bool *of_device)
{
    uintptr_t at = (uintptr_t)addr;

    if (!addr || bytes == 0 || bytes > UINTPTR_MAX - at)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_buffer_register: %zu B at %p are no buffer", bytes,
                    addr);
    if (map_overlaps_heap(j->map, at, bytes))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_buffer_register: %zu B at %p overlap the symmetric heap, which is "
                    "registered by itself",
                    bytes, addr);
    if (!registration_exists(j, addr, bytes, of_device))
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "gshmem_buffer_register: this process has no memory at %p, or less than %zu B of "
            "it",
            addr, bytes);
    return GSHMEM_OK;
}

/* ---- Calls ---- */

static gshmem_status_t registration_add(struct registrations *r, struct buffer b)
{
    gshmem_status_t status = GSHMEM_OK;
    const struct buffer *other;

    pthread_mutex_lock(&r->lock);
    if ((other = find_overlap(r, b.at, b.bytes)))
        status = registration_refuse_overlap(b.at, b.bytes, other);
    else if (!registration_make_room(r))
        status = fail(GSHMEM_ERR_MEMORY, "gshmem_buffer_register: out of memory for %d buffers",
                      r->n + 1);
    else
        registration_insert(r, b);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* The device takes time, so the proxy must not be kept from the table. No other thread changes this
 * entry: a thread that registers a buffer does not unregister it meanwhile. */
static gshmem_status_t registration_pin(struct job *j, struct buffer b)
{
    struct registrations *r = j->registered;
    gshmem_status_t status = j->device->ops->pin(j->device, (void *)b.at, b.bytes, &b.pinned);

    pthread_mutex_lock(&r->lock);
    int i = registration_count_to(r, b.at) - 1;
    if (status)
        registration_take_out(r, i);
    else
        r->buffer[i].pinned = b.pinned;
    pthread_mutex_unlock(&r->lock);
    return status;
}

static void registration_count(const struct job *j, size_t bytes)
{
    struct stats_block *counts = stats_mine(j->stats);

    if (!counts)
        return;
    stats_add(counts, STATS_REGISTRATIONS, 1);
    stats_add(counts, STATS_REGISTERED_BYTES, bytes);
}

gshmem_status_t gshmem_buffer_register(void *addr, size_t bytes)
{
    const struct buffer b = {(uintptr_t)addr, bytes, false};
    gshmem_status_t status = job_require("gshmem_buffer_register");
    bool of_device;

    if (status || (status = registration_check(job, addr, bytes, &of_device)) ||
        (status = registration_add(job->registered, b)))
        return status;
    if (!of_device)
        status = registration_pin(job, b);
    if (!status)
        registration_count(job, bytes);
    return status;
}

static void registration_unpin(struct job *j, struct buffer b)
{
    if (b.pinned)
        j->device->ops->unpin(j->device, (void *)b.at);
}

gshmem_status_t gshmem_buffer_unregister(void *addr)
{
    gshmem_status_t status = job_require("gshmem_buffer_unregister");
    struct buffer b = {.pinned = false};

    if (status)
        return status;
    struct registrations *r = job->registered;
    pthread_mutex_lock(&r->lock);
    int i = registration_count_to(r, (uintptr_t)addr) - 1;
    size_t inside = i >= 0 ? (uintptr_t)addr - r->buffer[i].at : SIZE_MAX;
    if (inside == 0)
        b = registration_take_out(r, i);
    else if (i >= 0 && inside < r->buffer[i].bytes)
        status =
            fail(GSHMEM_ERR_ARGUMENT,
                 "gshmem_buffer_unregister: %p is %zu bytes inside the buffer of %zu B that was "
                 "registered at %p: pass that",
                 addr, inside, r->buffer[i].bytes, (void *)r->buffer[i].at);
    else
        status = fail(GSHMEM_ERR_ARGUMENT,
                      "gshmem_buffer_unregister: no buffer is registered at %p (%d are elsewhere)",
                      addr, r->n);
    pthread_mutex_unlock(&r->lock);
    registration_unpin(job, b);
    return status;
}

/* Removes one that is left; false: there is none. */
static bool take_last(struct registrations *r, struct buffer *b)
{
    pthread_mutex_lock(&r->lock);
    bool any = r->n > 0;
    if (any)
        *b = registration_take_out(r, r->n - 1);
    pthread_mutex_unlock(&r->lock);
    return any;
}

static void drop_all(struct job *j)
{
    struct buffer b;

    while (take_last(j->registered, &b))
        registration_unpin(j, b);
}

gshmem_status_t gshmem_buffer_unregister_all(void)
{
    gshmem_status_t status = job_require("gshmem_buffer_unregister_all");

    if (!status)
        drop_all(job);
    return status;
}

/* ---- Start and stop ---- */

gshmem_status_t registration_start(struct job *j)
{
    if (!(j->registered = calloc(1, sizeof *j->registered)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    pthread_mutex_init(&j->registered->lock, NULL);
    return GSHMEM_OK;
}

void registration_stop(struct job *j)
{
    struct registrations *r = j->registered;

    if (!r)
        return;
    if (r->n)
        log_info("finalize: the program has left %d buffers registered", r->n);
    drop_all(j);
    pthread_mutex_destroy(&r->lock);
    free(r->buffer);
    free(r);
    j->registered = NULL;
}

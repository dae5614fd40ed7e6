/* gshmem_malloc and its family: every PE makes the same calls to its own allocator (memory/heap.c),
 * so that all get the same offsets. One agreement of all PEs per call verifies it, and is the
 * barrier that the call has to contain. A PE undoes what it did before the agreement if the call
 * fails. */
#include "runtime/operations/malloc.h"

#include <stdio.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/collectives/collectives.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/symmetric.h"
#include "runtime/network/network.h"
#include "runtime/operations/heap_agreement.h"
#include "runtime/proxy/kernels.h"
#include "runtime/races/races.h"
#include "runtime/teams/multicast.h"

/* ---- The first call ---- */

/* What this PE reports of its NICs, and in `why` the reason, for people; 0: objects that NICs would
 * update are placed in the ordinary heap. */
static uint64_t offer_nics(char *why, size_t why_size)
{
    if (!job->device_objects && job->nic_objects)
        return (uint64_t)network_nics_update(job->network, why, why_size);
    snprintf(why, why_size,
             job->device_objects ? "the heap is in memory of a GPU"
                                 : "no NIC is to be used (GSHMEM_TRANSPORT)");
    return 0;
}

/* Either all PEs can, for each other, or none does. */
static gshmem_status_t decide_on_nics(uint64_t least, uint64_t most, uint64_t mine, size_t limit,
                                      const char *why)
{
    struct heap *h = job->nic_objects;
    const bool can = least && least == most;

    log_info("objects for remote atomics (GSHMEM_MALLOC_ATOMICS_REMOTE) are updated by %s: %s",
             can ? "NICs" : "their owners' CPUs",
             can || !mine ? why : "NICs of other PEs do not make atomics, or are of another kind");
    if (h)
        h->of_nics = can;
    return can ? heap_lower_limit(h, limit) : GSHMEM_OK;
}

/* An object is there, for GSHMEM_CHECK=memory and =races. Its red zone comes to exist with it. */
static void malloc_enter_object(struct heap *h, const struct request *r, size_t offset,
                                size_t bytes)
{
    if (job->races)
        races_enter(h->base + offset, bytes);
    if (!job->checked)
        return;
    heap_touch(h, offset, bytes + CHECKED_ZONE);
    checked_enter(job->checked, h->base + offset, bytes, request_name(r), !h->device);
}

/* The first objects of all are the PEs' letters to each other. */
static gshmem_status_t malloc_start_domain(const char *call)
{
    struct request r = {.word = {[REQUEST_CALL] = HEAP_MALLOC}};
    const size_t bytes = domain_room(job), offset = heap_take(job->heap, &r, bytes, 64);
    gshmem_status_t status;

    if (offset == HEAP_NOWHERE)
        return fail(GSHMEM_ERR_MEMORY,
                    "%s: no room in host memory for what %d PEs tell of their GPU memory", call,
                    job->n_pes);
    heap_touch(job->heap, offset, bytes);
    malloc_enter_object(job->heap, &r, offset, bytes);
    status = domain_start(job, gshmem_fcollectmem, job->heap->base + offset);
    return status ? status : kernels_show_domain(job);
}

/* Limits differ from node to node, and the same call must return the same offset on all PEs: before
 * the first object, the PEs of all nodes agree on the least. The device heap is used by all or
 * none, and so is the NIC heap. */
static gshmem_status_t malloc_meet(struct heap *in_host, struct heap *device, const char *call)
{
    char why[300];
    const uint64_t mine[7] = {in_host->limit, device ? device->limit : 0,
                              device ? device_heap_addresses(device->device) : 0,
                              device && domain_possible(job), offer_nics(why, sizeof why),
                              job->nic_objects ? job->nic_objects->limit : 0,
                              (uintptr_t)job->placed};
    uint64_t least[7], most[7];
    gshmem_status_t status;

    if ((status = collective_agree(job->team[GSHMEM_TEAM_WORLD], call, mine, least, most, 7)))
        return status;
    if (least[6] != most[6])
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: GSHMEM_HEAP_BASE asks for another address here than on other PEs, or for "
                    "none: set it alike for "
                    "all (%#llx..%#llx, here %#llx)",
                    call, (unsigned long long)least[6], (unsigned long long)most[6],
                    (unsigned long long)mine[6]);
    if (most[1] && !least[1])
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: this PE has its heap in %s memory, PEs of another node have theirs in %s "
                    "memory: GSHMEM_DEVICE=cuda, or =host, for all PEs",
                    call, device ? "GPU" : "host", device ? "host" : "GPU");
    if (!(status = heap_lower_limit(in_host, least[0])))
        status = decide_on_nics(least[4], most[4], mine[4], least[5], why);
    if (!status && device) {
        status = heap_lower_limit(device, least[1]);
        device_heap_meet(device->device, least[1], most[1], least[2]);
        if (!status && most[3])
            status = malloc_start_domain(call);
    }
    in_host->met = status == GSHMEM_OK;
    return status;
}

/* ---- Calls ---- */

/* The heap, locked, and a request to fill in; NULL if there is no job, or after a failure. */
struct heap *malloc_enter(struct request *r, enum heap_call call, size_t bytes)
{
    if (job_require(heap_call_name[call]))
        return NULL;
    pthread_mutex_lock(&job->heap->calls);
    if (!job->heap->met && malloc_meet(job->heap, job->device_objects, heap_call_name[call])) {
        pthread_mutex_unlock(&job->heap->calls);
        return NULL;
    }
    *r = (struct request){.word = {[REQUEST_CALL] = call, [REQUEST_BYTES] = bytes}};
    return job->device_objects ? job->device_objects : job->heap;
}

void malloc_end(void)
{
    pthread_mutex_unlock(&job->heap->calls);
}

/* The end of every call that returns an object. */
static void *malloc_leave(struct heap *h, size_t offset)
{
    malloc_end();
    return offset == HEAP_NOWHERE ? NULL : h->base + offset;
}

/* Makes sure that there is memory up to that offset, on all PEs. Host memory is allocated by the
 * first touch. */
static gshmem_status_t malloc_reach(struct heap *h, size_t end, struct request *r)
{
    gshmem_status_t status;

    if (!h->device)
        return GSHMEM_OK;
    uint64_t before = device_heap_everywhere(h->device);
    status = device_heap_reach(h->device, end, request_name(r));
    if (network_is_needed(job->network) && status != GSHMEM_ERR_PEER_DEAD &&
        status != GSHMEM_ERR_ABORTED) {
        /* Other nodes grow their heaps by themselves, and may have failed. */
        if (status)
            request_refuse_failed(r, status);
        status = request_agree(r);
        if (!status && domain_exists(h->device)) {
            if ((status = domain_follow(h->device, false, request_name(r))))
                request_refuse_failed(r, status);
            status = request_agree(r);
        }
        if (status)
            device_heap_cut(h->device, before);
    }
    if (!status && device_heap_everywhere(h->device) > before)
        multicast_follow(job, request_name(r));
    return status;
}

/* An object was freed, or has shrunk. */
static void malloc_give_back(struct heap *h, size_t offset, size_t bytes)
{
    const uint64_t end = allocator_top(h->objects);

    if (!h->device) {
        heap_return_pages(h, offset, bytes);
        return;
    }
    const uint64_t there = device_heap_everywhere(h->device);
    if (there > end)
        network_forget(job->network, h->base + end, there - end);
    multicast_cut(job, end);
    device_heap_cut(h->device, end);
}

static void malloc_release(struct heap *h, const struct request *r, size_t offset, size_t bytes)
{
    checked_leave(job->checked, h->base + offset, request_name(r));
    if (job->races)
        races_forget(h->base + offset, bytes);
    allocator_give(h->objects, offset);
    malloc_give_back(h, offset, bytes);
}

/* Memory of a device can be filled only now; the second agreement is the barrier at the end. */
static gshmem_status_t zero_on_device(struct heap *h, struct request *r, size_t offset,
                                      size_t bytes)
{
    gshmem_status_t status = heap_make_zero(h, offset, bytes);

    if (status)
        request_refuse_failed(r, status);
    return request_agree(r);
}

/* Allocates what the request asks for, unless it is refused already. */
static void *malloc_allocate(struct heap *h, struct request *r)
{
    size_t bytes = r->word[REQUEST_BYTES], offset = HEAP_NOWHERE;

    if (bytes && !r->word[REQUEST_MISUSE])
        offset = heap_take(h, r, bytes, r->word[REQUEST_ALIGNMENT]);
    bool zero = offset != HEAP_NOWHERE && r->word[REQUEST_CALL] == HEAP_CALLOC;
    if (zero && !h->device)
        heap_make_zero(h, offset, bytes);
    if ((request_agree(r) || (offset != HEAP_NOWHERE && malloc_reach(h, offset + bytes, r)) ||
         (zero && h->device && zero_on_device(h, r, offset, bytes))) &&
        offset != HEAP_NOWHERE) {
        allocator_give(h->objects, offset);
        offset = HEAP_NOWHERE;
    }
    if (offset != HEAP_NOWHERE) {
        heap_touch(h, offset, bytes);
        malloc_enter_object(h, r, offset, bytes);
    }
    return malloc_leave(h, offset);
}

void *gshmem_malloc(size_t bytes)
{
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_MALLOC, bytes);

    return h ? malloc_allocate(h, &r) : NULL;
}

void *gshmem_path_malloc(size_t bytes)
{
    uint64_t largest = 0;
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_MALLOC, bytes);

    if (!h)
        return NULL;
    r.largest = &largest;
    void *object = malloc_allocate(h, &r);
    return largest ? gshmem_malloc(largest) : object;
}

void *gshmem_calloc(size_t count, size_t bytes)
{
    struct request r;
    size_t product;
    bool overflow = __builtin_mul_overflow(count, bytes, &product);
    struct heap *h = malloc_enter(&r, HEAP_CALLOC, overflow ? SIZE_MAX : product);

    if (!h)
        return NULL;
    if (overflow)
        request_refuse(&r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu times %zu B is more than can be addressed", count, bytes);
    return malloc_allocate(h, &r);
}

static size_t most_alignment(const struct heap *h)
{
    return h->device ? HEAP_HUGE_PAGE : DEVICE_ARENA_ALIGNMENT;
}

void *gshmem_align(size_t alignment, size_t bytes)
{
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_ALIGN, bytes);

    if (!h)
        return NULL;
    r.word[REQUEST_ALIGNMENT] = alignment;
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
        request_refuse(&r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "alignment %zu is not a power of two of at least %zu", alignment,
                       sizeof(void *));
    else if (alignment > most_alignment(h))
        request_refuse(&r, REQUEST_MISUSE, GSHMEM_ERR_UNSUPPORTED,
                       "alignment %zu: at most %zu is possible, which is how heaps are aligned",
                       alignment, most_alignment(h));
    return malloc_allocate(h, &r);
}

void *gshmem_malloc_with_hints(size_t bytes, long hints)
{
    const long known =
        GSHMEM_MALLOC_ATOMICS_REMOTE | GSHMEM_MALLOC_SIGNAL_REMOTE | GSHMEM_MALLOC_HOST;
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_MALLOC_WITH_HINTS, bytes);

    if (!h)
        return NULL;
    r.word[REQUEST_HINTS] = (uint64_t)hints;
    if (hints & ~known)
        request_refuse(&r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "hints %#lx: only %#lx are known",
                       (unsigned long)hints, (unsigned long)known);
    if (hints & GSHMEM_MALLOC_HOST)
        h = job->heap;
    if (hints & GSHMEM_MALLOC_ATOMICS_REMOTE && job->nic_objects && job->nic_objects->of_nics)
        h = job->nic_objects;
    return malloc_allocate(h, &r);
}

/* As heap_find, but refuses what the program has registered. */
static size_t malloc_find(const struct heap *h, struct request *r, const void *ptr, size_t *bytes)
{
    size_t offset = heap_find(h, r, ptr, bytes);

    if (offset == HEAP_NOWHERE || !symmetric_is_at(ptr))
        return offset;
    request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                   "%p is memory of the program's own that it has registered: "
                   "gshmem_buffer_unregister_symmetric gives it back",
                   ptr);
    return HEAP_NOWHERE;
}

gshmem_status_t gshmem_free(void *ptr)
{
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_FREE, 0);
    size_t bytes = 0;

    if (!h)
        return last_error_status();
    h = heap_of(h, ptr);
    size_t offset = malloc_find(h, &r, ptr, &bytes);
    gshmem_status_t status = request_agree(&r);
    if (!status && offset != HEAP_NOWHERE)
        malloc_release(h, &r, offset, bytes);
    malloc_leave(h, HEAP_NOWHERE);
    return status;
}

/* In place; true on success. */
static bool malloc_resize(struct heap *h, struct request *r, size_t offset, size_t before,
                          size_t bytes)
{
    r->word[REQUEST_RESULT] = 1 + offset;
    /* before the others go on, and use the object */
    if (job->races)
        races_forget(h->base + offset, before);
    if (request_agree(r) || malloc_reach(h, offset + bytes, r)) {
        allocator_resize(h->objects, offset, before);
        if (job->races)
            races_enter(h->base + offset, before);
        return false;
    }
    checked_leave(job->checked, h->base + offset, request_name(r));
    if (bytes < before)
        malloc_give_back(h, offset + bytes, before - bytes);
    else
        heap_touch(h, offset, bytes);
    malloc_enter_object(h, r, offset, bytes);
    return true;
}

/* Moves to another place. The new object is filled before the others learn that it exists. */
static size_t malloc_move(struct heap *h, struct request *r, size_t offset, size_t before,
                        size_t bytes)
{
    size_t to = heap_take(h, r, bytes, 1);

    /* Host memory needs no growing, so that one agreement is enough for both. */
    if (h->device && (request_agree(r) || (to != HEAP_NOWHERE && malloc_reach(h, to + bytes, r)))) {
        if (to != HEAP_NOWHERE)
            allocator_give(h->objects, to);
        return HEAP_NOWHERE;
    }
    gshmem_status_t status = GSHMEM_OK;
    if (to != HEAP_NOWHERE) {
        heap_touch(h, to, bytes); /* The copy has written there: the contents are no longer zero,
                                whatever the others decide. */
        status = heap_copy(h, to, offset, before < bytes ? before : bytes);
    }
    if (status)
        request_refuse_failed(r, status);
    if (request_agree(r) != GSHMEM_OK) {
        if (to != HEAP_NOWHERE)
            malloc_release(h, r, to, bytes);
        return HEAP_NOWHERE;
    }
    malloc_release(h, r, offset, before);
    if (to != HEAP_NOWHERE)
        malloc_enter_object(h, r, to, bytes);
    return to;
}

void *gshmem_realloc(void *ptr, size_t bytes)
{
    struct request r;
    struct heap *h = malloc_enter(&r, HEAP_REALLOC, bytes);
    size_t before = 0;

    if (!h)
        return NULL;
    h = heap_of(h, ptr);
    size_t offset = malloc_find(h, &r, ptr, &before);
    if (!ptr)
        return malloc_allocate(h, &r);
    /* The barrier at the beginning: what others have put into the object must arrive before it is
     * copied. */
    if (request_agree(&r) != GSHMEM_OK)
        return malloc_leave(h, HEAP_NOWHERE);
    if (bytes == 0) {
        malloc_release(h, &r, offset, before);
        return malloc_leave(h, HEAP_NOWHERE);
    }
    if (offset % heap_natural_alignment(bytes) == 0 && allocator_resize(h->objects, offset, bytes))
        return malloc_leave(h, malloc_resize(h, &r, offset, before, bytes) ? offset : HEAP_NOWHERE);
    return malloc_leave(h, malloc_move(h, &r, offset, before, bytes));
}

void malloc_stop(struct job *j)
{
    char *room = domain_stop(j);

    if (!room)
        return;
    checked_leave(j->checked, room, "gshmem_finalize");
    heap_give(j->heap, (size_t)(room - j->heap->base), domain_room(j));
}

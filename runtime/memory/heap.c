/* gshmem_malloc and its family.
 *
 * Every PE makes the same calls to its own allocator, so that all get the same offsets. One
 * agreement of all PEs per call verifies it, and is the barrier that the call has to contain. A PE
 * undoes what it did before the agreement if the call fails.
 *
 * A PE manages the memory of its own heap alone. Memory above `touched` was never allocated, or was
 * returned to the system, and reads as zero.
 *
 * Where the device has a heap of its own there are two heaps: that one, and the one in host memory
 * for objects that request it (GSHMEM_MALLOC_HOST). Where NICs make atomics there is one more, for
 * objects that request that (GSHMEM_MALLOC_ATOMICS_REMOTE), directly behind the one in host
 * memory. */
#define _GNU_SOURCE
#include "runtime/memory/heap.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/collectives/collectives.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/request.h"
#include "runtime/memory/symmetric.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"
#include "runtime/teams/multicast.h"

enum {
    SMALL_ALIGNMENT = 16,
    LINE = 64,               /* objects of a cache line or more begin at a line */
    HUGE_PAGE = 2 << 20,     /* objects of a huge page or more begin at a huge page */
    GIVE_BACK_MIN = 1 << 20, /* a smaller range is not worth the system call and the later page
                                faults */
    DUMP_MAX = 64 << 20      /* of the heap that goes into a core dump */
};

struct heap {
    pthread_mutex_t calls; /* one call at a time, also while it waits for other PEs; only the host
                              heap's is used */
    struct allocator *objects;
    struct device_heap *device; /* where the memory is; NULL: the host's, and the fields below are
                                   for that */
    const struct node *node; /* the node whose file holds the memory */
    size_t in_file; /* the offset in the file */
    char *base;
    size_t limit;
    size_t touched;
    size_t page;
    size_t dumped; /* up to here, memory is part of core dumps */
    bool met;      /* all nodes have agreed on the limit */
    bool huge;     /* huge pages are wanted and not requested yet */
    bool of_nics;  /* the heap that NICs update, and whether they can, once all PEs have agreed */
};

/* ---- The memory under the objects ---- */

/* Once the heap grows beyond its first huge page; small jobs are better off with small pages. */
static void ask_for_huge_pages(struct heap *h)
{
    const struct node *node = h->node;

    h->huge = false;
    /* The PE that touches a page first allocates it, so this requests huge pages for all heaps
     * mapped here. If the system has none, nothing changes. */
    for (int i = 0; i < node->n; i++) {
        char *heap = i == node->index ? h->base : node->arena + node_heap_offset(&node->layout, i);
        if (madvise(heap + HUGE_PAGE, h->limit - HUGE_PAGE, MADV_HUGEPAGE) != 0) {
            log_info("huge pages: this system offers none for shared memory");
            return;
        }
    }
}

/* The end of the pages that may exist: a huge page extends beyond the part that was touched. */
static size_t touched_end(const struct heap *h)
{
    return (h->touched + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* A core dump without the program's objects would be useless, and one with all of a large heap too
 * large: pages that were never touched come to exist when they are dumped. */
static void put_into_dumps(struct heap *h)
{
    size_t end = touched_end(h) < DUMP_MAX ? touched_end(h) : DUMP_MAX;

    if (end > h->dumped) {
        madvise(h->base + h->dumped, end - h->dumped, MADV_DODUMP);
        h->dumped = end;
    }
}

static void touch(struct heap *h, size_t offset, size_t bytes)
{
    if (h->device || offset + bytes <= h->touched)
        return;
    h->touched = offset + bytes;
    put_into_dumps(h);
    if (h->huge && h->touched > HUGE_PAGE)
        ask_for_huge_pages(h);
}

/* Returns the whole pages in this range to the system; they read as zero then. Not pages that a NIC
 * holds: it would continue to use pages that are no longer the heap's. */
static bool discard(const struct heap *h, size_t begin, size_t end)
{
    size_t first = (begin + h->page - 1) / h->page * h->page, last = end / h->page * h->page;

    if (first >= last)
        return true;
    return !(job && network_pins(job->network, h->base + first, last - first)) &&
           device_arena_discard(h->node->fd, h->in_file + first, last - first) == GSHMEM_OK;
}

/* After an object was freed: returns the unused end of the heap to the system, and large objects
 * wherever they were. */
static void memory_heap_give_back(struct heap *h, size_t offset, size_t bytes)
{
    if (h->device) {
        const uint64_t end = allocator_top(h->objects), there = device_heap_everywhere(h->device);
        if (there > end)
            network_forget(job->network, h->base + end, there - end);
        multicast_cut(job, allocator_top(h->objects));
        device_heap_cut(h->device, allocator_top(h->objects));
        return;
    }
    size_t top = (allocator_top(h->objects) + h->page - 1) / h->page * h->page;
    size_t end = touched_end(h);

    if (h->touched > top && h->touched - top >= GIVE_BACK_MIN && discard(h, top, end))
        h->touched = top;
    if (bytes >= HUGE_PAGE && offset < h->touched)
        discard(h, offset, offset + bytes < h->touched ? offset + bytes : h->touched);
}

static gshmem_status_t make_zero(const struct heap *h, size_t offset, size_t bytes)
{
    if (h->device) /* its contents from before this job are not known */
        return device_heap_fill(h->device, h->base + offset, 0, bytes);
    size_t end = offset + bytes < h->touched ? offset + bytes : h->touched;

    if (offset >= end)
        return GSHMEM_OK;
    /* Much of a large array may never be used: its pages are returned, rather than all touched. */
    if (end - offset >= HUGE_PAGE && discard(h, offset, end)) {
        size_t first = (offset + h->page - 1) / h->page * h->page, last = end / h->page * h->page;
        memset(h->base + offset, 0, first - offset);
        memset(h->base + last, 0, end - last);
        return GSHMEM_OK;
    }
    memset(h->base + offset, 0, end - offset);
    return GSHMEM_OK;
}

static gshmem_status_t heap_copy(const struct heap *h, size_t to, size_t from, size_t bytes)
{
    if (h->device)
        return device_heap_copy(h->device, h->base + to, h->base + from, bytes);
    memcpy(h->base + to, h->base + from, bytes);
    return GSHMEM_OK;
}

/* Makes sure that there is memory up to that offset, on all PEs. Host memory is allocated by the
 * first touch. */
static gshmem_status_t reach(struct heap *h, size_t end, struct request *r)
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

/* Before the first object. */
static gshmem_status_t lower_limit(struct heap *h, size_t limit)
{
    struct allocator *objects;

    if (limit >= h->limit)
        return GSHMEM_OK;
    if (!(objects = allocator_create(limit)))
        return fail(GSHMEM_ERR_MEMORY, "out of memory for the symmetric heap");
    allocator_destroy(h->objects);
    h->objects = objects;
    h->limit = limit;
    return GSHMEM_OK;
}

/* ---- One PE's part of a call ---- */

struct amount {
    char text[32];
};

/* For messages: exact where that is short. */
static struct amount amount(size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    struct amount a;
    double value = (double)bytes;
    int unit = -1;

    while (value >= 1024 && unit < 3) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(a.text, sizeof a.text, "%zu B", bytes);
    else
        snprintf(a.text, sizeof a.text, "%.4g %s", value, units[unit]);
    return a;
}

static void refuse_size(const struct heap *h, struct request *r, size_t bytes, size_t alignment)
{
    size_t largest = allocator_largest(h->objects);

    if (largest > alignment && bytes <= largest - alignment)
        request_refuse(r, REQUEST_MEMORY, GSHMEM_ERR_MEMORY,
                       "this process has no memory left to keep account of one more object");
    else
        request_refuse(r, REQUEST_MEMORY, GSHMEM_ERR_MEMORY,
                       "no room for %zu B (%s) aligned to %zu: of the symmetric heap of %s, %s are "
                       "used by %zu objects, and the largest free range is %s; GSHMEM_HEAP_MAX "
                       "sets the limit",
                       bytes, amount(bytes).text, alignment, amount(h->limit).text,
                       amount(allocator_used(h->objects)).text, allocator_objects(h->objects),
                       amount(largest).text);
}

/* The alignment of an object of that size, whatever alignment was requested, and wherever it
 * grew. */
static size_t natural_alignment(size_t bytes)
{
    return bytes < LINE ? SMALL_ALIGNMENT : LINE;
}

/* Allocates the new object; returns its offset, or HEAP_NOWHERE. */
static size_t memory_heap_take(struct heap *h, struct request *r, size_t bytes, size_t alignment)
{
    size_t welcome, offset;

    if (alignment < natural_alignment(bytes))
        alignment = natural_alignment(bytes);
    /* A huge page boundary is preferred, but its absence is no failure. */
    welcome = alignment < HUGE_PAGE ? HUGE_PAGE : alignment;
    if ((bytes < HUGE_PAGE || !allocator_take(h->objects, bytes, welcome, &offset)) &&
        !allocator_take(h->objects, bytes, alignment, &offset)) {
        refuse_size(h, r, bytes, alignment);
        return HEAP_NOWHERE;
    }
    r->word[REQUEST_RESULT] = 1 + offset;
    return offset;
}

/* Says why ptr cannot be an object of this heap, if it is not even inside it. */
static void refuse_outside(const struct heap *h, struct request *r, const void *ptr)
{
    struct location l;

    for (int pe = 0; pe < job->n_pes; pe++) {
        const uintptr_t base = map_mapped(job->map, SEGMENT_HEAP, pe);
        if (base && (uintptr_t)ptr - base < h->limit) {
            request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_NOT_SYMMETRIC,
                           "%p is PE %d's copy of an object: pass this PE's own address of it", ptr,
                           pe);
            return;
        }
    }
    if (map_find(job->map, ptr, 0, &l) && job->map->segment[l.segment].variables)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_NOT_SYMMETRIC,
                       "%p is a variable of the program, not from gshmem_malloc", ptr);
    else
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_NOT_SYMMETRIC,
                       "%p is not in the symmetric heap, which is at %p..%p", ptr, (void *)h->base,
                       (void *)(h->base + h->limit));
}

/* The object at ptr and its size; HEAP_NOWHERE if ptr is NULL or is refused. */
static size_t heap_find(const struct heap *h, struct request *r, const void *ptr, size_t *bytes)
{
    size_t offset = (uintptr_t)ptr - (uintptr_t)h->base, object;

    if (!ptr)
        return HEAP_NOWHERE;
    r->word[REQUEST_OBJECT] =
        (1 + offset) | (h->device ? REQUEST_OF_DEVICE : h->of_nics ? REQUEST_OF_NICS : 0);
    if (offset >= h->limit) {
        refuse_outside(h, r, ptr);
        return HEAP_NOWHERE;
    }
    switch (allocator_look(h->objects, offset, &object, bytes)) {
    case ALLOCATOR_OK:
        if (!symmetric_is_at(ptr))
            return offset;
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%p is memory of the program's own that it has registered: "
                       "gshmem_buffer_unregister_symmetric gives it back",
                       ptr);
        break;
    case ALLOCATOR_FREED:
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "the object at %p was freed before",
                       ptr);
        break;
    case ALLOCATOR_INSIDE:
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%p is %zu bytes inside the object of %zu bytes at %p: pass its start", ptr,
                       offset - object, *bytes, (void *)(h->base + object));
        break;
    case ALLOCATOR_FOREIGN:
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%p is in the symmetric heap, but no object begins there", ptr);
    }
    return HEAP_NOWHERE;
}

/* ---- Calls ---- */

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
    return can ? lower_limit(h, limit) : GSHMEM_OK;
}

/* Limits differ from node to node, and the same call must return the same offset on all PEs: before
 * the first object, the PEs of all nodes agree on the least. The device heap is used by all or
 * none, and so is the NIC heap. */
static gshmem_status_t heap_meet(struct heap *in_host, struct heap *device, const char *call)
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
                    "%s: GSHMEM_HEAP_BASE asks for another address here than on other PEs, or for none: set it alike for "
                    "all (%#llx..%#llx, here %#llx)",
                    call, (unsigned long long)least[6], (unsigned long long)most[6], (unsigned long long)mine[6]);
    if (most[1] && !least[1])
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: this PE has its heap in %s memory, PEs of another host have theirs in %s "
                    "memory: GSHMEM_DEVICE=cuda, or =host, for all PEs",
                    call, device ? "GPU" : "host", device ? "host" : "GPU");
    if (!(status = lower_limit(in_host, least[0])))
        status = decide_on_nics(least[4], most[4], mine[4], least[5], why);
    if (!status && device) {
        status = lower_limit(device, least[1]);
        device_heap_meet(device->device, least[1], most[1], least[2]);
        if (!status && most[3])
            status = domain_start(job, call);
    }
    in_host->met = status == GSHMEM_OK;
    return status;
}

/* The heap, locked, and a request to fill in; NULL if there is no job, or after a failure. */
struct heap *heap_enter(struct request *r, enum heap_call call, size_t bytes)
{
    if (job_require(heap_call_name[call]))
        return NULL;
    pthread_mutex_lock(&job->heap->calls);
    if (!job->heap->met && heap_meet(job->heap, job->device_objects, heap_call_name[call])) {
        pthread_mutex_unlock(&job->heap->calls);
        return NULL;
    }
    *r = (struct request){.word = {[REQUEST_CALL] = call, [REQUEST_BYTES] = bytes}};
    return job->device_objects ? job->device_objects : job->heap;
}

/* The heap that ptr is in. */
static struct heap *heap_of(struct heap *h, const void *ptr)
{
    struct location l;

    map_find(job->map, ptr, 0, &l);
    if (l.segment == SEGMENT_NIC && job->nic_objects)
        return job->nic_objects;
    return l.segment == SEGMENT_HEAP ? job->heap : h;
}

void heap_leave(void)
{
    pthread_mutex_unlock(&job->heap->calls);
}

/* The end of every call that returns an object. */
static void *memory_heap_leave(struct heap *h, size_t offset)
{
    heap_leave();
    return offset == HEAP_NOWHERE ? NULL : h->base + offset;
}

/* Memory of a device can be filled only now; the second agreement is the barrier at the end. */
static gshmem_status_t zero_on_device(struct heap *h, struct request *r, size_t offset, size_t bytes)
{
    gshmem_status_t status = make_zero(h, offset, bytes);

    if (status)
        request_refuse_failed(r, status);
    return request_agree(r);
}

/* Allocates what the request asks for, unless it is refused already. */
static void *heap_allocate(struct heap *h, struct request *r)
{
    size_t bytes = r->word[REQUEST_BYTES], offset = HEAP_NOWHERE;

    if (bytes && !r->word[REQUEST_MISUSE])
        offset = memory_heap_take(h, r, bytes, r->word[REQUEST_ALIGNMENT]);
    bool zero = offset != HEAP_NOWHERE && r->word[REQUEST_CALL] == HEAP_CALLOC;
    if (zero && !h->device)
        make_zero(h, offset, bytes);
    if ((request_agree(r) || (offset != HEAP_NOWHERE && reach(h, offset + bytes, r)) ||
         (zero && h->device && zero_on_device(h, r, offset, bytes))) &&
        offset != HEAP_NOWHERE) {
        allocator_give(h->objects, offset);
        offset = HEAP_NOWHERE;
    }
    if (offset != HEAP_NOWHERE)
        touch(h, offset, bytes);
    return memory_heap_leave(h, offset);
}

void *gshmem_malloc(size_t bytes)
{
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_MALLOC, bytes);

    return h ? heap_allocate(h, &r) : NULL;
}

void *gshmem_path_malloc(size_t bytes)
{
    uint64_t largest = 0;
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_MALLOC, bytes);

    if (!h)
        return NULL;
    r.largest = &largest;
    void *object = heap_allocate(h, &r);
    return largest ? gshmem_malloc(largest) : object;
}

void *gshmem_calloc(size_t count, size_t bytes)
{
    struct request r;
    size_t product;
    bool overflow = __builtin_mul_overflow(count, bytes, &product);
    struct heap *h = heap_enter(&r, HEAP_CALLOC, overflow ? SIZE_MAX : product);

    if (!h)
        return NULL;
    if (overflow)
        request_refuse(&r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu times %zu B is more than can be addressed", count, bytes);
    return heap_allocate(h, &r);
}

static size_t most_alignment(const struct heap *h)
{
    return h->device ? HUGE_PAGE : DEVICE_ARENA_ALIGNMENT;
}

void *gshmem_align(size_t alignment, size_t bytes)
{
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_ALIGN, bytes);

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
    return heap_allocate(h, &r);
}

void *gshmem_malloc_with_hints(size_t bytes, long hints)
{
    const long known =
        GSHMEM_MALLOC_ATOMICS_REMOTE | GSHMEM_MALLOC_SIGNAL_REMOTE | GSHMEM_MALLOC_HOST;
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_MALLOC_WITH_HINTS, bytes);

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
    return heap_allocate(h, &r);
}

static void memory_heap_release(struct heap *h, size_t offset, size_t bytes)
{
    allocator_give(h->objects, offset);
    memory_heap_give_back(h, offset, bytes);
}

gshmem_status_t gshmem_free(void *ptr)
{
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_FREE, 0);
    size_t bytes = 0;

    if (!h)
        return last_error_status();
    h = heap_of(h, ptr);
    size_t offset = heap_find(h, &r, ptr, &bytes);
    gshmem_status_t status = request_agree(&r);
    if (!status && offset != HEAP_NOWHERE)
        memory_heap_release(h, offset, bytes);
    memory_heap_leave(h, HEAP_NOWHERE);
    return status;
}

/* In place; true on success. */
static bool resize(struct heap *h, struct request *r, size_t offset, size_t before, size_t bytes)
{
    r->word[REQUEST_RESULT] = 1 + offset;
    if (request_agree(r) || reach(h, offset + bytes, r)) {
        allocator_resize(h->objects, offset, before);
        return false;
    }
    if (bytes < before)
        memory_heap_give_back(h, offset + bytes, before - bytes);
    else
        touch(h, offset, bytes);
    return true;
}

/* Moves to another place. The new object is filled before the others learn that it exists. */
static size_t heap_move(struct heap *h, struct request *r, size_t offset, size_t before,
                        size_t bytes)
{
    size_t to = memory_heap_take(h, r, bytes, SMALL_ALIGNMENT);

    /* Host memory needs no growing, so that one agreement is enough for both. */
    if (h->device && (request_agree(r) || (to != HEAP_NOWHERE && reach(h, to + bytes, r)))) {
        if (to != HEAP_NOWHERE)
            allocator_give(h->objects, to);
        return HEAP_NOWHERE;
    }
    gshmem_status_t status = GSHMEM_OK;
    if (to != HEAP_NOWHERE) {
        touch(h, to, bytes); /* The copy has written there: the contents are no longer zero,
                                whatever the others decide. */
        status = heap_copy(h, to, offset, before < bytes ? before : bytes);
    }
    if (status)
        request_refuse_failed(r, status);
    if (request_agree(r) != GSHMEM_OK) {
        if (to != HEAP_NOWHERE)
            memory_heap_release(h, to, bytes);
        return HEAP_NOWHERE;
    }
    memory_heap_release(h, offset, before);
    return to;
}

void *gshmem_realloc(void *ptr, size_t bytes)
{
    struct request r;
    struct heap *h = heap_enter(&r, HEAP_REALLOC, bytes);
    size_t before = 0;

    if (!h)
        return NULL;
    h = heap_of(h, ptr);
    size_t offset = heap_find(h, &r, ptr, &before);
    if (!ptr)
        return heap_allocate(h, &r);
    /* The barrier at the beginning: what others have put into the object must arrive before it is
     * copied. */
    if (request_agree(&r) != GSHMEM_OK)
        return memory_heap_leave(h, HEAP_NOWHERE);
    if (bytes == 0) {
        memory_heap_release(h, offset, before);
        return memory_heap_leave(h, HEAP_NOWHERE);
    }
    if (offset % natural_alignment(bytes) == 0 && allocator_resize(h->objects, offset, bytes))
        return memory_heap_leave(h, resize(h, &r, offset, before, bytes) ? offset : HEAP_NOWHERE);
    return memory_heap_leave(h, heap_move(h, &r, offset, before, bytes));
}

/* ---- For symmetric.c ---- */

size_t heap_take(struct request *r, size_t bytes, size_t alignment)
{
    struct heap *h = job->heap;
    size_t offset = memory_heap_take(h, r, bytes, alignment);

    if (offset != HEAP_NOWHERE)
        touch(h, offset, bytes);
    return offset;
}

void heap_release(struct job *j, size_t offset, size_t bytes)
{
    memory_heap_release(j->heap, offset, bytes);
}

char *heap_base(void)
{
    return job->heap->base;
}

/* ---- Start and stop ---- */

static struct heap *new_heap(struct heap values)
{
    struct heap *h = malloc(sizeof *h);

    values.objects = allocator_create(values.limit);
    if (!h || !values.objects) {
        free(h);
        allocator_destroy(values.objects);
        fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for the symmetric heap");
        return NULL;
    }
    *h = values;
    pthread_mutex_init(&h->calls, NULL);
    return h;
}

gshmem_status_t heap_start(struct job *j)
{
    j->heap = new_heap((struct heap){
        .node = j->node,
        .in_file = node_heap_offset(&j->node->layout, j->node->index),
        .base = (char *)j->map->segment[SEGMENT_HEAP].base,
        .limit = j->node->layout.heap_bytes,
        .page = (size_t)sysconf(_SC_PAGESIZE),
        .met = !network_is_needed(j->network),
        .huge = settings_number(SETTING_HUGE_PAGES) == 0 && j->node->layout.heap_bytes > HUGE_PAGE,
    });
    if (!j->heap)
        return GSHMEM_ERR_MEMORY;
    if (j->node->layout.nic_bytes && !(j->nic_objects = new_heap((struct heap){
                                          .node = j->node,
                                          .in_file = node_nic_offset(&j->node->layout, j->node->index),
                                          .base = (char *)j->map->segment[SEGMENT_NIC].base,
                                          .limit = j->node->layout.nic_bytes,
                                          .page = j->heap->page,
                                      })))
        return GSHMEM_ERR_MEMORY;
    if (!j->device_heap)
        return GSHMEM_OK;
    j->device_objects = new_heap((struct heap){
        .device = j->device_heap,
        .base = device_heap_base(j->device_heap),
        .limit = device_heap_limit(j->device_heap),
    });
    return j->device_objects ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

static void end_heap(const struct job *j, struct heap *h)
{
    if (!h)
        return;
    if (allocator_objects(h->objects) && j->pe == 0)
        log_info("finalize: the program has not freed %zu symmetric objects, %s",
                 allocator_objects(h->objects), amount(allocator_used(h->objects)).text);
    /* The program's variables keep the file alive, and with it the heap's pages. */
    if (!h->device)
        discard(h, 0, touched_end(h));
    pthread_mutex_destroy(&h->calls);
    allocator_destroy(h->objects);
    free(h);
}

void heap_stop(struct job *j)
{
    end_heap(j, j->device_objects);
    end_heap(j, j->nic_objects);
    end_heap(j, j->heap);
    j->heap = j->nic_objects = j->device_objects = NULL;
}

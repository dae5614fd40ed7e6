/* A heap, and what one PE does to it for a call: takes, finds and gives objects (heap.h says how
 * heaps are kept alike). */
#include "runtime/memory/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/request.h"
#include "runtime/node/node.h"

enum {
    SMALL_ALIGNMENT = 16,
    LINE = 64, /* objects of a cache line or more begin at a line */
};

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
size_t heap_natural_alignment(size_t bytes)
{
    return bytes < LINE ? SMALL_ALIGNMENT : LINE;
}

/* Allocates the new object; returns its offset, or HEAP_NOWHERE. */
size_t heap_take(struct heap *h, struct request *r, size_t bytes, size_t alignment)
{
    size_t welcome, offset;

    if (alignment < heap_natural_alignment(bytes))
        alignment = heap_natural_alignment(bytes);
    /* A huge page boundary is preferred, but its absence is no failure. */
    welcome = alignment < HEAP_HUGE_PAGE ? HEAP_HUGE_PAGE : alignment;
    if ((bytes < HEAP_HUGE_PAGE || !allocator_take(h->objects, bytes, welcome, &offset)) &&
        !allocator_take(h->objects, bytes, alignment, &offset)) {
        refuse_size(h, r, bytes, alignment);
        return HEAP_NOWHERE;
    }
    r->word[REQUEST_RESULT] = 1 + offset;
    return offset;
}

size_t heap_take_at(struct heap *h, struct request *r, size_t bytes, size_t offset)
{
    if (offset % heap_natural_alignment(bytes) || !allocator_take_at(h->objects, offset, bytes))
        return HEAP_NOWHERE;
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
size_t heap_find(const struct heap *h, struct request *r, const void *ptr, size_t *bytes)
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
        return offset;
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

/* Before the first object. */
gshmem_status_t heap_lower_limit(struct heap *h, size_t limit)
{
    struct allocator *objects;

    if (limit >= h->limit)
        return GSHMEM_OK;
    if (!(objects = allocator_create(limit)))
        return fail(GSHMEM_ERR_MEMORY, "out of memory for the symmetric heap");
    if (job->checked)
        allocator_keep_apart(objects, CHECKED_ZONE);
    allocator_destroy(h->objects);
    h->objects = objects;
    h->limit = limit;
    return GSHMEM_OK;
}

/* The heap that ptr is in. */
struct heap *heap_of(struct heap *h, const void *ptr)
{
    struct location l;

    map_find(job->map, ptr, 0, &l);
    if (l.segment == SEGMENT_NIC && job->nic_objects)
        return job->nic_objects;
    return l.segment == SEGMENT_HEAP ? job->heap : h;
}

void heap_give(struct heap *h, size_t offset, size_t bytes)
{
    allocator_give(h->objects, offset);
    if (!h->device)
        heap_return_pages(h, offset, bytes);
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
    if (job->checked)
        allocator_keep_apart(values.objects, CHECKED_ZONE);
    *h = values;
    pthread_mutex_init(&h->calls, NULL);
    return h;
}

/* A limit that the program's user has set may be more than the machine has. A page that is written
 * when no memory is left ends the process, or another one. */
static size_t find_affordable(const struct node *node)
{
    const uint64_t each = node_memory_bytes() / (uint64_t)node->n;

    return node->layout.heap_bytes > each ? (size_t)each : SIZE_MAX;
}

static size_t find_keep(const struct node *node)
{
    const uint64_t wanted = (uint64_t)settings_number(SETTING_HEAP_KEEP);
    const uint64_t most = node_memory_bytes() / (uint64_t)node->n / 16;

    return wanted < most ? wanted : most;
}

gshmem_status_t heap_start(struct job *j, heap_pins_fn *pins)
{
    j->heap = new_heap((struct heap){
        .node = j->node,
        .in_file = node_heap_offset(&j->node->layout, j->node->index),
        .base = (char *)j->map->segment[SEGMENT_HEAP].base,
        .limit = j->node->layout.heap_bytes,
        .page = (size_t)sysconf(_SC_PAGESIZE),
        .affordable = find_affordable(j->node),
        .keep = find_keep(j->node),
        .met = j->bootstrap->n_hosts == 1,
        .pins = pins,
        .huge = settings_number(SETTING_HUGE_PAGES) == CHOICE_HUGE_PAGES_AUTO &&
                j->node->layout.heap_bytes > HEAP_HUGE_PAGE,
    });
    if (!j->heap)
        return GSHMEM_ERR_MEMORY;
    if (j->node->layout.nic_bytes &&
        !(j->nic_objects = new_heap((struct heap){
              .node = j->node,
              .in_file = node_nic_offset(&j->node->layout, j->node->index),
              .base = (char *)j->map->segment[SEGMENT_NIC].base,
              .limit = j->node->layout.nic_bytes,
              .pins = pins,
              .keep = j->heap->keep,
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
    /* The program's variables keep the file alive, and with it the heap's pages. Where this PE has
     * not synchronized with the others in gshmem_finalize, PEs of its node may still read them, and
     * zero would say that a lock is free. */
    if (!h->device && !node_has_failed(j->node))
        heap_discard_all(h);
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
    checked_stop(j->checked);
    j->checked = NULL;
}

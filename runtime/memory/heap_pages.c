/* The memory under the objects of a heap in host memory: what is touched, what goes back to the
 * system, what a core dump has of it.
 *
 * A PE manages the memory of its own heap alone. Invariant: memory above `touched` was never
 * allocated, or was returned to the system, and reads as zero. */
#include <string.h>
#include <sys/mman.h>

#include "device/device.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/heap.h"
#include "runtime/node/node.h"

enum {
    GIVE_BACK_MIN = HEAP_HUGE_PAGE, /* a smaller range is not worth the system call and the later
                                       page faults, and alignment may have skipped as much in front
                                       of an object */
    DUMP_MAX = 64 << 20             /* of the heap that goes into a core dump */
};

/* Once the heap grows beyond its first huge page; small jobs are better off with small pages. */
static void ask_for_huge_pages(struct heap *h)
{
    const struct node *node = h->node;

    h->huge = false;
    /* The PE that touches a page first allocates it, so this requests huge pages for all heaps
     * mapped here. If the system has none, nothing changes. */
    for (int i = 0; i < node->n; i++) {
        char *heap = i == node->index ? h->base : node->arena + node_heap_offset(&node->layout, i);
        if (madvise(heap + HEAP_HUGE_PAGE, h->limit - HEAP_HUGE_PAGE, MADV_HUGEPAGE) != 0) {
            log_info("huge pages: this system offers none for shared memory");
            return;
        }
    }
}

/* The end of the pages that may exist: a huge page extends beyond the part that was touched. */
static size_t touched_end(const struct heap *h)
{
    return (h->touched + HEAP_HUGE_PAGE - 1) / HEAP_HUGE_PAGE * HEAP_HUGE_PAGE;
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

static void warn_of_memory(struct heap *h)
{
    const int n = h->node->n;

    if (h->touched <= h->affordable)
        return;
    h->affordable = SIZE_MAX;
    if (h->node->index == 0)
        log_warn("the symmetric heap has grown to %zu MiB, %zu MiB on the %d PEs of this node, and "
                 "this machine has %zu MiB of memory: when it is used up, the system ends a "
                 "process",
                 h->touched >> 20, (h->touched >> 20) * (size_t)n, n,
                 (size_t)(node_memory_bytes() >> 20));
}

void heap_touch(struct heap *h, size_t offset, size_t bytes)
{
    if (h->device || offset + bytes <= h->touched)
        return;
    h->touched = offset + bytes;
    warn_of_memory(h);
    put_into_dumps(h);
    if (h->huge && h->touched > HEAP_HUGE_PAGE)
        ask_for_huge_pages(h);
}

/* Returns the whole pages in this range to the system; they read as zero then. Not pages that a NIC
 * holds: it would continue to use pages that are no longer the heap's. */
static bool discard(const struct heap *h, size_t begin, size_t end)
{
    size_t first = (begin + h->page - 1) / h->page * h->page, last = end / h->page * h->page;

    if (first >= last)
        return true;
    return !(job && h->pins(job->network, h->base + first, last - first)) &&
           device_arena_discard(h->node->fd, h->in_file + first, last - first) == GSHMEM_OK;
}

/* After an object was freed: returns the unused end of the heap beyond what is kept to the system,
 * and large objects wherever they were. */
void heap_return_pages(struct heap *h, size_t offset, size_t bytes)
{
    const size_t last = allocator_top(h->objects);
    const size_t kept = (last + h->keep + h->page - 1) / h->page * h->page;

    if (h->touched >= kept + GIVE_BACK_MIN && discard(h, kept, touched_end(h)))
        h->touched = kept;
    /* What is free in front of the last object is the most that can have stayed there. */
    if (bytes >= HEAP_HUGE_PAGE && offset < last && last - allocator_used(h->objects) > h->keep)
        discard(h, offset, offset + bytes);
}

gshmem_status_t heap_make_zero(const struct heap *h, size_t offset, size_t bytes)
{
    if (h->device) /* its contents from before this job are not known */
        return device_heap_fill(h->device, h->base + offset, 0, bytes);
    size_t end = offset + bytes < h->touched ? offset + bytes : h->touched;

    if (offset >= end)
        return GSHMEM_OK;
    /* Much of a large array may never be used: its pages are returned, rather than all touched.
     * Those of a smaller one were probably kept. */
    if (end - offset >= HEAP_HUGE_PAGE && end - offset > h->keep && discard(h, offset, end)) {
        size_t first = (offset + h->page - 1) / h->page * h->page, last = end / h->page * h->page;
        memset(h->base + offset, 0, first - offset);
        memset(h->base + last, 0, end - last);
        return GSHMEM_OK;
    }
    memset(h->base + offset, 0, end - offset);
    return GSHMEM_OK;
}

gshmem_status_t heap_copy(const struct heap *h, size_t to, size_t from, size_t bytes)
{
    if (h->device)
        return device_heap_copy(h->device, h->base + to, h->base + from, bytes);
    memcpy(h->base + to, h->base + from, bytes);
    return GSHMEM_OK;
}

void heap_discard_all(const struct heap *h)
{
    discard(h, 0, touched_end(h));
}

/* gshmem_buffer_register_symmetric and its end: all PEs agree that memory of the program's own is
 * part of the symmetric heap (memory/symmetric.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/symmetric.h"
#include "runtime/memory/symmetric_host.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"
#include "runtime/operations/heap_agreement.h"
#include "runtime/operations/malloc.h"

/* Where the program prefers its buffer, as an offset from `base`, the same on all PEs;
 * HEAP_NOWHERE: it prefers no place, or one outside of `limit`, or where no buffer begins. */
static size_t register_preferred(struct request *r, const void *preferred, uintptr_t base,
                                 size_t limit, size_t alignment)
{
    const size_t offset = (uintptr_t)preferred - base;

    if (!preferred || offset >= limit || offset % alignment)
        return HEAP_NOWHERE;
    r->word[REQUEST_OBJECT] = 1 + offset;
    return offset;
}

static size_t register_take(struct request *r, const struct imported *l, const void *preferred)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t wanted =
        register_preferred(r, preferred, (uintptr_t)job->heap->base, job->heap->limit, page);
    size_t offset = HEAP_NOWHERE;

    if (wanted != HEAP_NOWHERE)
        offset = heap_take_at(job->heap, r, l->bytes, wanted);
    return offset != HEAP_NOWHERE ? offset : heap_take(job->heap, r, l->bytes, page);
}

/* Two agreements: that there is room, and that all PEs have placed their pages there. */
static bool lend_to_host(struct request *r, struct imported *l, const void *preferred)
{
    bool shared = false;

    l->offset = HEAP_NOWHERE;
    if (!r->word[REQUEST_MISUSE])
        l->offset = register_take(r, l, preferred);
    if (l->offset != HEAP_NOWHERE)
        heap_touch(job->heap, l->offset, l->bytes);
    if (request_agree(r))
        goto release;
    l->at = (uintptr_t)job->heap->base + l->offset;
    shared = symmetric_host_share((void *)l->mine, l->bytes, (char *)l->at, job->node->fd,
                                   symmetric_file_offset(job, l));
    if (!shared)
        request_refuse(r, REQUEST_MEMORY, GSHMEM_ERR_SYSTEM, "mapping %zu B of the heap at %p: %s",
                       l->bytes, (void *)l->mine, strerror(errno));
    if (shared)
        symmetric_insert(job->symmetric, *l); /* before the agreement ends, since a PE that leaves
                                                 it may put at once */
    if (!request_agree(r)) {
        checked_enter(job->checked, (void *)l->at, l->bytes, request_name(r), false);
        return true;
    }
    if (shared) {
        symmetric_take_out(job->symmetric, l->at);
        symmetric_unshare(job, l);
    }
release:
    if (l->offset != HEAP_NOWHERE)
        heap_give(job->heap, l->offset, l->bytes);
    return false;
}

static bool register_take_room(struct request *r, struct imported *l, const void *preferred)
{
    uint64_t room, window = device_heap_window(job->device_heap, &room);
    const uintptr_t base = (uintptr_t)device_heap_base(job->device_heap) + window;

    l->offset = register_preferred(r, preferred, base, room, IMPORT_ALIGNMENT);
    if ((l->offset == HEAP_NOWHERE ||
         !allocator_take_at(job->symmetric->window, l->offset, l->bytes)) &&
        !allocator_take(job->symmetric->window, l->bytes, IMPORT_ALIGNMENT, &l->offset)) {
        request_refuse(
            r, REQUEST_MEMORY, GSHMEM_ERR_MEMORY,
            "no room for %zu B: the heap has addresses for as much of the program's memory as the "
            "GPU has, and the largest free range of them is %zu B",
            l->bytes, allocator_largest(job->symmetric->window));
        return false;
    }
    r->word[REQUEST_RESULT] = 1 + l->offset;
    return true;
}

/* Among the PEs of the node, then among nodes. */
static bool lend_to_device(struct request *r, struct imported *l, const void *preferred)
{
    struct device_heap *d = job->device_heap;
    uint64_t unused, window = device_heap_window(d, &unused);
    bool taken = !r->word[REQUEST_MISUSE] && register_take_room(r, l, preferred);
    gshmem_status_t status = request_agree(r);

    l->at = (uintptr_t)device_heap_base(d) + window + l->offset;
    if (!status) {
        status =
            device_heap_lend(d, (void *)l->mine, l->bytes, window + l->offset, request_name(r));
        const bool here = !status;
        if (here)
            symmetric_insert(job->symmetric, *l); /* as on the host device */
        if (network_is_needed(job->network) && status != GSHMEM_ERR_PEER_DEAD &&
            status != GSHMEM_ERR_ABORTED) {
            if (!here)
                request_refuse_failed(r, status);
            status = request_agree(r);
            if (!status && domain_exists(d)) {
                if ((status = domain_follow(d, true, request_name(r))))
                    request_refuse_failed(r, status);
                status = request_agree(r);
            }
            if (status && here)
                device_heap_return(d, window + l->offset, l->bytes);
        }
        if (status && here)
            symmetric_take_out(job->symmetric, l->at);
    }
    if (status && taken)
        allocator_give(job->symmetric->window, l->offset);
    return !status;
}

void *gshmem_buffer_register_symmetric_at(void *addr, size_t bytes, void *preferred, int flags)
{
    struct imported l = {.mine = (uintptr_t)addr, .bytes = bytes};
    struct request r;

    if (!malloc_enter(&r, HEAP_REGISTER, bytes))
        return NULL;
    symmetric_check(addr, bytes, flags, &r);
    bool done = job->device_heap ? lend_to_device(&r, &l, preferred)
                                 : lend_to_host(&r, &l, preferred);
    malloc_end();
    return done ? (void *)l.at : NULL;
}

void *gshmem_buffer_register_symmetric(void *addr, size_t bytes, int flags)
{
    return gshmem_buffer_register_symmetric_at(addr, bytes, NULL, flags);
}

/* All PEs have agreed on it. */
static void register_give_back(const struct imported *l)
{
    symmetric_take_out(job->symmetric, l->at);
    if (job->device_heap) {
        uint64_t unused;
        network_forget(job->network, (void *)l->at, l->bytes);
        device_heap_return(job->device_heap,
                           device_heap_window(job->device_heap, &unused) + l->offset, l->bytes);
        allocator_give(job->symmetric->window, l->offset);
    } else {
        checked_leave(job->checked, (void *)l->at, heap_call_name[HEAP_UNREGISTER]);
        symmetric_unshare(job, l);
        heap_give(job->heap, l->offset, l->bytes);
    }
}

/* The buffer to unregister; if there is none, the request is refused. */
static void register_find(const void *addr, size_t bytes, struct request *r, struct imported *l)
{
    size_t inside;

    if (symmetric_find(job->symmetric, (uintptr_t)addr, l, &inside)) {
        r->word[REQUEST_OBJECT] = 1 + l->offset + inside;
        if (inside)
            request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                           "%p is %zu bytes inside the buffer of %zu B at %p: pass its start", addr,
                           inside, l->bytes, (void *)l->at);
        else if (l->bytes != bytes)
            request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                           "the buffer at %p was registered with %zu B, not %zu", addr, l->bytes,
                           bytes);
    } else if (symmetric_find_mine(job->symmetric, (uintptr_t)addr, 1, l)) {
        request_refuse(
            r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
            "%p is the program's own address of the buffer: pass %p, which its registration "
            "returned",
            addr, (void *)l->at);
    } else {
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "no buffer is registered as symmetric at %p (%d are elsewhere)", addr,
                       job->symmetric->n);
    }
}

gshmem_status_t gshmem_buffer_unregister_symmetric(void *addr, size_t bytes)
{
    struct imported l = {.bytes = 0};
    gshmem_status_t status;
    struct request r;

    if (!malloc_enter(&r, HEAP_UNREGISTER, bytes))
        return last_error_status();
    register_find(addr, bytes, &r, &l);
    if (!(status = request_agree(&r)))
        register_give_back(&l);
    malloc_end();
    return status;
}

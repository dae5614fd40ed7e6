#include "runtime/memory/symmetric.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/registration.h"
#include "runtime/memory/symmetric_host.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"

struct lent {
    uintptr_t at;   /* in this PE's heap */
    size_t offset;  /* of that, in the node's heap, or in the device heap's addresses for imported
                       memory */
    uintptr_t mine; /* the program's own address */
    size_t bytes;
};

/* Pieces are multiples of the device's granularity, which is less. What NICs register at once
 * (transport/verbs) begins at such a multiple, and must not contain two buffers. */
enum { LENT_ALIGNMENT = DEVICE_HEAP_WINDOW_ALIGNMENT };

struct symmetric {
    pthread_mutex_t lock; /* held by the proxy during a look-up, and by a thread that changes the
                             table */
    struct lent *lent;    /* in the order of addresses */
    int n, room;
    struct allocator *window; /* addresses for memory imported into a device's heap; NULL: none
                                 yet */
};

/* ---- The table ---- */

/* How many begin at or before an address: only the last of them can contain it. With the lock
 * held. */
static int symmetric_count_to(const struct symmetric *s, uintptr_t address)
{
    int low = 0, high = s->n;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->lent[middle].at <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The buffer that contains that address, and the offset in it; false: none. */
static bool symmetric_find(struct symmetric *s, uintptr_t address, struct lent *found,
                           size_t *inside)
{
    if (!s) /* the job has not begun */
        return false;
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, address) - 1;
    bool any = i >= 0 && address - s->lent[i].at < s->lent[i].bytes;
    if (any) {
        *found = s->lent[i];
        *inside = address - found->at;
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

/* The buffer whose own addresses in the program are among these; false: none. */
static bool find_mine(struct symmetric *s, uintptr_t mine, size_t bytes, struct lent *found)
{
    bool any = false;

    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n && !any; i++) {
        any = s->lent[i].mine < mine + bytes && mine < s->lent[i].mine + s->lent[i].bytes;
        if (any)
            *found = s->lent[i];
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

bool symmetric_imported(const void *context, uint64_t offset, uint64_t bytes)
{
    const struct job *j = context;
    const uintptr_t address = j->map->segment[SEGMENT_DEVICE].base + offset;
    struct lent l;
    size_t inside;

    return symmetric_find(j->symmetric, address, &l, &inside) && bytes <= l.bytes - inside;
}

bool symmetric_is_at(const void *address)
{
    struct lent l;
    size_t inside;

    return symmetric_find(job->symmetric, (uintptr_t)address, &l, &inside) && inside == 0;
}

static bool symmetric_make_room(struct symmetric *s)
{
    int room = s->room ? 2 * s->room : 16;
    struct lent *more;

    if (s->n < s->room)
        return true;
    pthread_mutex_lock(&s->lock);
    if ((more = realloc(s->lent, (size_t)room * sizeof *more))) {
        s->lent = more;
        s->room = room;
    }
    pthread_mutex_unlock(&s->lock);
    return more != NULL;
}

static void symmetric_insert(struct symmetric *s, struct lent l)
{
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, l.at);
    memmove(&s->lent[i + 1], &s->lent[i], (size_t)(s->n - i) * sizeof l);
    s->lent[i] = l;
    s->n++;
    pthread_mutex_unlock(&s->lock);
}

static void symmetric_take_out(struct symmetric *s, uintptr_t at)
{
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, at) - 1;
    memmove(&s->lent[i], &s->lent[i + 1], (size_t)(s->n - i - 1) * sizeof *s->lent);
    s->n--;
    pthread_mutex_unlock(&s->lock);
}

/* ---- What may be registered ---- */

/* On the host device. */
static bool can_be_shared(const void *addr, size_t bytes, struct request *r)
{
    char why[120];

    if (registration_overlaps(job->registered, (uintptr_t)addr, bytes)) {
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p are registered by gshmem_buffer_register: unregister them first",
                       bytes, addr);
        return false;
    }
    if (!symmetric_host_can(addr, bytes, why, sizeof why)) {
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p cannot become shared memory: %s; what can are whole pages of the "
                       "process's own, as mmap(MAP_PRIVATE | MAP_ANONYMOUS), aligned_alloc or cuMemMap "
                       "give them",
                       bytes, addr, why);
        return false;
    }
    return true;
}

/* On a device with memory of its own. Whether it can be imported is found out piece by piece. */
static bool can_be_lent(const void *addr, size_t bytes, struct request *r)
{
    struct symmetric *s = job->symmetric;
    uint64_t room;

    device_heap_window(job->device_heap, &room);
    if (!room)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_UNSUPPORTED,
                       "the heap takes memory of the program's where GPU and driver have virtual memory "
                       "management, and go by it (GSHMEM_CUDA_SHARE): take the buffer from gshmem_malloc");
    else if (!job->device->ops->owns(job->device, addr, bytes))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p are not all memory of a GPU: what the heap takes is made by cuMemCreate "
                       "and mapped by cuMemMap; symmetric host memory is from "
                       "gshmem_malloc_with_hints(…, GSHMEM_MALLOC_HOST)",
                       bytes, addr);
    else if (!s->window && !(s->window = allocator_create(room)))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_MEMORY, "out of memory");
    else
        return true;
    return false;
}

static bool symmetric_check(const void *addr, size_t bytes, int flags, struct request *r)
{
    uintptr_t at = (uintptr_t)addr;
    struct lent l;

    r->word[REQUEST_HINTS] = (uint64_t)(unsigned)flags;
    if (!addr || bytes == 0 || bytes > UINTPTR_MAX - at)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "%zu B at %p are no buffer", bytes, addr);
    else if (flags)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "flags %#x: none is known, pass 0",
                       (unsigned)flags);
    else if (find_mine(job->symmetric, at, bytes, &l))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p overlap the %zu B at %p that are registered already", bytes, addr,
                       l.bytes, (void *)l.mine);
    else if (map_overlaps_heap(job->map, at, bytes))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p overlap the symmetric heap, which is symmetric by itself", bytes,
                       addr);
    else if (!symmetric_make_room(job->symmetric))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_MEMORY, "out of memory for %d buffers",
                       job->symmetric->n + 1);
    else
        return job->device_heap ? can_be_lent(addr, bytes, r) : can_be_shared(addr, bytes, r);
    return false;
}

/* ---- On the host device ---- */

static size_t file_offset(const struct job *j, const struct lent *l)
{
    return node_heap_offset(&j->node->layout, j->node->index) + l->offset;
}

static void unshare(const struct job *j, const struct lent *l)
{
    if (!symmetric_host_unshare((void *)l->mine, l->bytes, j->node->fd, file_offset(j, l)))
        log_info("the %zu B at %p that were registered as symmetric are no longer there, or cannot be made "
                 "private again: they are left as they are",
                 l->bytes, (void *)l->mine);
}

/* Two agreements: that there is room, and that all PEs have placed their pages there. */
static bool lend_to_host(struct request *r, struct lent *l)
{
    bool shared = false;

    l->offset = HEAP_NOWHERE;
    if (!r->word[REQUEST_MISUSE])
        l->offset = heap_take(r, l->bytes, (size_t)sysconf(_SC_PAGESIZE));
    if (request_agree(r))
        goto release;
    l->at = (uintptr_t)heap_base() + l->offset;
    shared = symmetric_host_share((void *)l->mine, l->bytes, (char *)l->at, job->node->fd,
                                   file_offset(job, l));
    if (!shared)
        request_refuse(r, REQUEST_MEMORY, GSHMEM_ERR_SYSTEM, "mapping %zu B of the heap at %p: %s",
                       l->bytes, (void *)l->mine, strerror(errno));
    if (shared)
        symmetric_insert(job->symmetric, *l); /* before the agreement ends, since a PE that leaves
                                                 it may put at once */
    if (!request_agree(r))
        return true;
    if (shared) {
        symmetric_take_out(job->symmetric, l->at);
        unshare(job, l);
    }
release:
    if (l->offset != HEAP_NOWHERE)
        heap_release(job, l->offset, l->bytes);
    return false;
}

/* ---- On a device with memory of its own ---- */

static bool symmetric_take_room(struct request *r, struct lent *l)
{
    if (!allocator_take(job->symmetric->window, l->bytes, LENT_ALIGNMENT, &l->offset)) {
        request_refuse(r, REQUEST_MEMORY, GSHMEM_ERR_MEMORY,
                       "no room for %zu B: the heap has addresses for as much of the program's memory as the "
                       "GPU has, and the largest free range of them is %zu B",
                       l->bytes, allocator_largest(job->symmetric->window));
        return false;
    }
    r->word[REQUEST_RESULT] = 1 + l->offset;
    return true;
}

/* Among the PEs of the node, then among nodes. */
static bool lend_to_device(struct request *r, struct lent *l)
{
    struct device_heap *d = job->device_heap;
    uint64_t unused, window = device_heap_window(d, &unused);
    bool taken = !r->word[REQUEST_MISUSE] && symmetric_take_room(r, l);
    gshmem_status_t status = request_agree(r);

    l->at = (uintptr_t)device_heap_base(d) + window + l->offset;
    if (!status) {
        status = device_heap_lend(d, (void *)l->mine, l->bytes, window + l->offset, request_name(r));
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

/* ---- Calls ---- */

void *gshmem_buffer_register_symmetric(void *addr, size_t bytes, int flags)
{
    struct lent l = {.mine = (uintptr_t)addr, .bytes = bytes};
    struct request r;

    if (!heap_enter(&r, HEAP_REGISTER, bytes))
        return NULL;
    symmetric_check(addr, bytes, flags, &r);
    bool done = job->device_heap ? lend_to_device(&r, &l) : lend_to_host(&r, &l);
    heap_leave();
    return done ? (void *)l.at : NULL;
}

/* All PEs have agreed on it. */
static void symmetric_give_back(const struct lent *l)
{
    symmetric_take_out(job->symmetric, l->at);
    if (job->device_heap) {
        uint64_t unused;
        network_forget(job->network, (void *)l->at, l->bytes);
        device_heap_return(job->device_heap, device_heap_window(job->device_heap, &unused) + l->offset,
                           l->bytes);
        allocator_give(job->symmetric->window, l->offset);
    } else {
        unshare(job, l);
        heap_release(job, l->offset, l->bytes);
    }
}

/* The buffer to unregister; if there is none, the request is refused. */
static void find_for_return(const void *addr, size_t bytes, struct request *r, struct lent *l)
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
                           "the buffer at %p was registered with %zu B, not %zu", addr, l->bytes, bytes);
    } else if (find_mine(job->symmetric, (uintptr_t)addr, 1, l)) {
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
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
    struct lent l = {.bytes = 0};
    gshmem_status_t status;
    struct request r;

    if (!heap_enter(&r, HEAP_UNREGISTER, bytes))
        return last_error_status();
    find_for_return(addr, bytes, &r, &l);
    if (!(status = request_agree(&r)))
        symmetric_give_back(&l);
    heap_leave();
    return status;
}

/* ---- Start and stop ---- */

gshmem_status_t symmetric_start(struct job *j)
{
    if (!(j->symmetric = calloc(1, sizeof *j->symmetric)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    pthread_mutex_init(&j->symmetric->lock, NULL);
    return GSHMEM_OK;
}

void symmetric_stop(struct job *j)
{
    struct symmetric *s = j->symmetric;

    if (!s)
        return;
    if (s->n)
        log_info("finalize: the program has left %d buffers registered as symmetric", s->n);
    /* Buffers that were imported into a device's heap are released with it. */
    for (int i = 0; i < s->n && !j->device_heap; i++) {
        unshare(j, &s->lent[i]);
        heap_release(j, s->lent[i].offset, s->lent[i].bytes);
    }
    allocator_destroy(s->window);
    pthread_mutex_destroy(&s->lock);
    free(s->lent);
    free(s);
    j->symmetric = NULL;
}

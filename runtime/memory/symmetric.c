#include "runtime/memory/symmetric.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
#include "runtime/node/node.h"

/* ---- The table ---- */

/* How many begin at or before an address: only the last of them can contain it. With the lock
 * held. */
static int symmetric_count_to(const struct symmetric *s, uintptr_t address)
{
    int low = 0, high = s->n;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->imported[middle].at <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The buffer that contains that address, and the offset in it; false: none. */
bool symmetric_find(struct symmetric *s, uintptr_t address, struct imported *found,
                           size_t *inside)
{
    if (!s) /* the job has not begun */
        return false;
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, address) - 1;
    bool any = i >= 0 && address - s->imported[i].at < s->imported[i].bytes;
    if (any) {
        *found = s->imported[i];
        *inside = address - found->at;
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

/* The buffer whose own addresses in the program are among these; false: none. */
bool symmetric_find_mine(struct symmetric *s, uintptr_t mine, size_t bytes, struct imported *found)
{
    bool any = false;

    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n && !any; i++) {
        any =
            s->imported[i].mine < mine + bytes && mine < s->imported[i].mine + s->imported[i].bytes;
        if (any)
            *found = s->imported[i];
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

bool symmetric_imported(const void *context, uint64_t offset, uint64_t bytes)
{
    const struct job *j = context;
    const uintptr_t address = j->map->segment[SEGMENT_DEVICE].base + offset;
    struct imported l;
    size_t inside;

    return symmetric_find(j->symmetric, address, &l, &inside) && bytes <= l.bytes - inside;
}

bool symmetric_is_at(const void *address)
{
    struct imported l;
    size_t inside;

    return symmetric_find(job->symmetric, (uintptr_t)address, &l, &inside) && inside == 0;
}

static bool symmetric_make_room(struct symmetric *s)
{
    int room = s->room ? 2 * s->room : 16;
    struct imported *more;

    if (s->n < s->room)
        return true;
    pthread_mutex_lock(&s->lock);
    if ((more = realloc(s->imported, (size_t)room * sizeof *more))) {
        s->imported = more;
        s->room = room;
    }
    pthread_mutex_unlock(&s->lock);
    return more != NULL;
}

void symmetric_insert(struct symmetric *s, struct imported l)
{
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, l.at);
    memmove(&s->imported[i + 1], &s->imported[i], (size_t)(s->n - i) * sizeof l);
    s->imported[i] = l;
    s->n++;
    pthread_mutex_unlock(&s->lock);
}

void symmetric_take_out(struct symmetric *s, uintptr_t at)
{
    pthread_mutex_lock(&s->lock);
    int i = symmetric_count_to(s, at) - 1;
    memmove(&s->imported[i], &s->imported[i + 1], (size_t)(s->n - i - 1) * sizeof *s->imported);
    s->n--;
    pthread_mutex_unlock(&s->lock);
}

/* ---- What may be registered ---- */

/* On the host device. */
static bool can_be_shared(const void *addr, size_t bytes, struct request *r)
{
    char why[120];

    if (registration_overlaps(job->registered, (uintptr_t)addr, bytes)) {
        request_refuse(
            r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
            "%zu B at %p are registered by gshmem_buffer_register: unregister them first", bytes,
            addr);
        return false;
    }
    if (!symmetric_host_can(addr, bytes, why, sizeof why)) {
        request_refuse(
            r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
            "%zu B at %p cannot become shared memory: %s; what can are whole pages of the "
            "process's own, as mmap(MAP_PRIVATE | MAP_ANONYMOUS), aligned_alloc or cuMemMap "
            "give them",
            bytes, addr, why);
        return false;
    }
    return true;
}

/* On a device with memory of its own. Whether it can be imported is found out piece by piece. */
static bool can_be_imported(const void *addr, size_t bytes, struct request *r)
{
    struct symmetric *s = job->symmetric;
    uint64_t room;

    device_heap_window(job->device_heap, &room);
    if (!room)
        request_refuse(
            r, REQUEST_MISUSE, GSHMEM_ERR_UNSUPPORTED,
            "the heap takes memory of the program's where GPU and driver have virtual memory "
            "management, and go by it (GSHMEM_CUDA_SHARE): take the buffer from gshmem_malloc");
    else if (!job->device->ops->owns(job->device, addr, bytes))
        request_refuse(
            r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
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

bool symmetric_check(const void *addr, size_t bytes, int flags, struct request *r)
{
    uintptr_t at = (uintptr_t)addr;
    struct imported l;

    r->word[REQUEST_HINTS] = (uint64_t)(unsigned)flags;
    if (!addr || bytes == 0 || bytes > UINTPTR_MAX - at)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "%zu B at %p are no buffer", bytes,
                       addr);
    else if (flags)
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT, "flags %#x: none is known, pass 0",
                       (unsigned)flags);
    else if (symmetric_find_mine(job->symmetric, at, bytes, &l))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p overlap the %zu B at %p that are registered already", bytes,
                       addr, l.bytes, (void *)l.mine);
    else if (map_overlaps_heap(job->map, at, bytes))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_ARGUMENT,
                       "%zu B at %p overlap the symmetric heap, which is symmetric by itself",
                       bytes, addr);
    else if (!symmetric_make_room(job->symmetric))
        request_refuse(r, REQUEST_MISUSE, GSHMEM_ERR_MEMORY, "out of memory for %d buffers",
                       job->symmetric->n + 1);
    else
        return job->device_heap ? can_be_imported(addr, bytes, r) : can_be_shared(addr, bytes, r);
    return false;
}

/* ---- On the host device ---- */

size_t symmetric_file_offset(const struct job *j, const struct imported *l)
{
    return node_heap_offset(&j->node->layout, j->node->index) + l->offset;
}

void symmetric_unshare(const struct job *j, const struct imported *l)
{
    if (!symmetric_host_unshare((void *)l->mine, l->bytes, j->node->fd,
                                symmetric_file_offset(j, l)))
        log_info("the %zu B at %p that were registered as symmetric are no longer there, or cannot "
                 "be made "
                 "private again: they are left as they are",
                 l->bytes, (void *)l->mine);
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
        symmetric_unshare(j, &s->imported[i]);
        heap_give(j->heap, s->imported[i].offset, s->imported[i].bytes);
    }
    allocator_destroy(s->window);
    pthread_mutex_destroy(&s->lock);
    free(s->imported);
    free(s);
    j->symmetric = NULL;
}

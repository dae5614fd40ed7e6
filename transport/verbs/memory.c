/* Registration: each chunk of a symmetric segment is registered with a NIC when that NIC first
 * uses it, for this PE or a peer. So a heap that grows needs nothing, and what no PE uses is
 * never pinned.
 *
 * A registration holds its pages for as long as the transport is open: the heap does not give
 * them back meanwhile (`pins`). The heap of a GPU does, and tells all PEs (`forget`).
 *
 * Memory of a GPU is registered by a dma-buf, which is the kernel's own way, or by its address,
 * which the module nvidia_peermem knows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/device.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/verbs.h"

enum {
    ACCESS_OF_PEERS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

/* ---- Registering ---- */

/* libibverbs has it since version 34. */
static register_dma_buf *find_register_dma_buf(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    register_dma_buf *found =
        (register_dma_buf *)dlsym(library ? library : RTLD_DEFAULT, "ibv_reg_dmabuf_mr");

    if (library)
        dlclose(library); /* it stays loaded: this module needs it */
    return found;
}

static struct ibv_mr *register_by_dma_buf(struct verbs *v, struct nic *nic, void *at,
                                          uint64_t bytes, int access)
{
    struct device *d = v->config.device;
    struct ibv_mr *mr = NULL;
    uint64_t offset;
    int fd;

    if (!v->register_dma_buf)
        errno = EOPNOTSUPP;
    else if (d->ops->export_range(d, at, bytes, &fd, &offset))
        errno = EINVAL; /* logged already */
    else {
        mr = v->register_dma_buf(nic->pd, offset, bytes, (uintptr_t)at, fd, access);
        int error = errno;
        close(fd); /* the registration holds the memory */
        errno = error;
    }
    return mr;
}

void *memory_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return aligned_alloc(page, (bytes + page - 1) & ~(page - 1));
}

struct ibv_mr *memory_register(struct verbs *v, struct nic *nic, void *at, uint64_t bytes,
                               bool of_device, int access)
{
    if (of_device && v->way == TRANSPORT_BY_DMA_BUF)
        return register_by_dma_buf(v, nic, at, bytes, access);
    return ibv_reg_mr(nic->pd, at, bytes, access);
}

/* How many bytes of a chunk are present. A device's heap grows by whole chunks, except at its end;
 * imported memory begins chunks of its own. */
static uint64_t memory_present(const struct transport_segment *s, uint64_t begin)
{
    uint64_t most = s->bytes - begin < CHUNK_BYTES ? s->bytes - begin : CHUNK_BYTES, least = 0;

    if (!s->there)
        return most;
    uint64_t there = __atomic_load_n(s->there, __ATOMIC_RELAXED); /* as in segment.h */
    if (there > begin)
        return there - begin < most ? there - begin : most;
    while (s->imported && least < most) {
        uint64_t middle = least + (most - least + 1) / 2;
        if (s->imported(s->context, begin, middle))
            least = middle;
        else
            most = middle - 1;
    }
    return least;
}

/* The most that is registered of the CPU's memory at a time. */
static uint64_t memory_largest_chunk(const struct verbs *v)
{
    uint64_t largest = 0;

    for (int i = 0; i < v->config.segments; i++) {
        const struct transport_segment *s = &v->config.segment[i];
        if (!s->of_device && s->bytes > largest)
            largest = s->bytes;
    }
    return largest < CHUNK_BYTES ? largest : CHUNK_BYTES;
}

/* Registers it with all NICs at once, as each counts its own. The NIC that refuses; NULL: none. */
static const struct nic *memory_try_all(struct verbs *v, void *at, uint64_t bytes, int *error)
{
    struct ibv_mr *mr[NICS_MOST];
    int n = 0;

    while (n < v->nics && (mr[n] = ibv_reg_mr(v->nic[n].pd, at, bytes, ACCESS_OF_PEERS)))
        n++;
    *error = errno;
    for (int i = 0; i < n; i++)
        ibv_dereg_mr(mr[i]);
    return n < v->nics ? &v->nic[n] : NULL;
}

bool memory_can_be_registered(struct verbs *v)
{
    const uint64_t bytes = memory_largest_chunk(v);
    struct rlimit limit;
    int error;

    if (!bytes || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return true; /* nothing is known */
    const struct nic *refuses = memory_try_all(v, at, bytes, &error);
    munmap(at, bytes);
    if (!refuses) {
        v->config.info("verbs: %llu KiB could be registered with each NIC, which is as much as is "
                       "registered at a time; "
                       "whether all that peers will use can be was not tried: the limit is %llu "
                       "KiB (ulimit -l), and "
                       "a peer for which it is too little is reached by %s",
                       (unsigned long long)bytes >> 10, (unsigned long long)limit.rlim_cur >> 10,
                       v->below->ops->name);
        return true;
    }
    v->config.fail_handled(GSHMEM_ERR_TRANSPORT,
                   "verbs: %s: %llu KiB of memory cannot be registered, which is what is "
                   "registered at a time: %s; the "
                   "limit is %llu KiB (ulimit -l): this PE uses %s alone. Raise it, or set "
                   "GSHMEM_TRANSPORT=tcp",
                   refuses->name, (unsigned long long)bytes >> 10, strerror(error),
                   (unsigned long long)limit.rlim_cur >> 10, v->below->ops->name);
    return false;
}

/* Whether all NICs register the first bytes of this PE's heap in device memory that way. */
static bool memory_can_go_by(struct verbs *v, enum transport_way way)
{
    v->way = way;
    for (int s = 0; s < v->config.segments; s++) {
        for (int i = 0; v->config.segment[s].of_device && i < v->nics; i++) {
            const uint64_t bytes = memory_present(&v->config.segment[s], 0);
            struct ibv_mr *mr = bytes ? memory_register(v, &v->nic[i], v->config.segment[s].base,
                                                        bytes, true, ACCESS_OF_PEERS)
                                      : NULL;
            if (bytes && !mr)
                return false;
            if (mr)
                ibv_dereg_mr(mr);
        }
    }
    return true;
}

bool memory_of_device(struct verbs *v, char *why, size_t why_size)
{
    const char *tried = "";
    int error = 0;

    v->register_dma_buf = find_register_dma_buf();
    if (v->config.way == TRANSPORT_BY_STAGING) {
        snprintf(why, why_size, "NICs do not reach it (nvidia_peermem, GSHMEM_IB_GPU)");
        return false;
    }
    if (v->config.way == TRANSPORT_BY_DMA_BUF) {
        if (memory_can_go_by(v, TRANSPORT_BY_DMA_BUF)) {
            snprintf(why, why_size, "by dma-buf");
            return true;
        }
        error = errno;
        tried = "a dma-buf, nor ";
    }
    if (memory_can_go_by(v, TRANSPORT_BY_PEERMEM)) {
        snprintf(why, why_size, "by nvidia_peermem");
        return true;
    }
    snprintf(why, why_size, "no NIC registers %sits address: %s (modprobe nvidia_peermem)", tried,
             strerror(error ? error : errno));
    return false;
}

/* ---- Chunks ---- */

struct ibv_mr *memory_of_chunk(struct verbs *v, struct nic *nic, unsigned segment, uint64_t chunk)
{
    const struct transport_segment *s = &v->config.segment[segment];
    const uint64_t begin = chunk * CHUNK_BYTES, chunks = (s->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;

    if (chunk >= chunks || (s->of_device && v->gpu_below))
        return NULL;
    if (!nic->chunk[segment] &&
        !(nic->chunk[segment] = calloc(chunks, sizeof *nic->chunk[segment]))) {
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for %llu registrations",
                       (unsigned long long)chunks);
        return NULL;
    }
    struct ibv_mr **mr = &nic->chunk[segment][chunk];
    if (*mr)
        return *mr;
    const uint64_t bytes = memory_present(s, begin);
    if (!bytes)
        return NULL;
    const int updates = s->by_nic && nic->updates ? IBV_ACCESS_REMOTE_ATOMIC : 0;
    *mr = memory_register(v, nic, s->base + begin, bytes, s->of_device, ACCESS_OF_PEERS | updates);
    if (!*mr && !v->refusal_said)
        v->config.fail_handled(GSHMEM_ERR_TRANSPORT,
                       "verbs: %s: registering %llu KiB of symmetric memory%s: %s%s", nic->name,
                       (unsigned long long)bytes >> 10, s->of_device ? " of a GPU's" : "",
                       strerror(errno),
                       errno == ENOMEM && !s->of_device
                           ? " (ulimit -l limits what may be pinned: raise it, or "
                             "GSHMEM_TRANSPORT=tcp)"
                           : "");
    v->refusal_said |= !*mr;
    return *mr;
}

struct ibv_mr *memory_of(struct verbs *v, struct nic *nic, const void *at, uint64_t *bytes)
{
    for (int i = 0; i < v->config.segments; i++) {
        const struct transport_segment *s = &v->config.segment[i];
        uint64_t offset = (uintptr_t)at - (uintptr_t)s->base, to_end;
        if (offset >= s->bytes)
            continue;
        to_end = (offset / CHUNK_BYTES + 1) * CHUNK_BYTES;
        to_end = (to_end < s->bytes ? to_end : s->bytes) - offset;
        *bytes = *bytes < to_end ? *bytes : to_end;
        struct ibv_mr *mr = memory_of_chunk(v, nic, (unsigned)i, offset / CHUNK_BYTES);
        if (mr && *bytes > (uintptr_t)mr->addr + mr->length - (uintptr_t)at)
            *bytes = (uintptr_t)mr->addr + mr->length - (uintptr_t)at;
        return mr;
    }
    *bytes = 0;
    return NULL;
}

static bool memory_is_held(const struct verbs *v, const struct nic *nic, int segment,
                           uint64_t offset, uint64_t bytes)
{
    if (!nic->chunk[segment] || !bytes)
        return false;
    for (uint64_t c = offset / CHUNK_BYTES; c <= (offset + bytes - 1) / CHUNK_BYTES; c++) {
        if (c * CHUNK_BYTES < v->config.segment[segment].bytes && nic->chunk[segment][c])
            return true;
    }
    return false;
}

bool memory_is_pinned(const struct verbs *v, int segment, uint64_t offset, uint64_t bytes)
{
    for (int i = 0; i < v->opened; i++) {
        if (memory_is_held(v, &v->nic[i], segment, offset, bytes))
            return true;
    }
    return false;
}

void memory_forget(struct verbs *v, int segment, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = (offset + CHUNK_BYTES - 1) / CHUNK_BYTES;
    const uint64_t end = (offset + bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;

    for (int i = 0; i < v->opened; i++) {
        for (uint64_t c = first; v->nic[i].chunk[segment] && c < end; c++) {
            if (v->nic[i].chunk[segment][c])
                ibv_dereg_mr(v->nic[i].chunk[segment][c]);
            v->nic[i].chunk[segment][c] = NULL;
        }
    }
}

void memory_release(struct verbs *v, struct nic *nic)
{
    for (int i = 0; i < v->config.segments; i++) {
        uint64_t chunks = (v->config.segment[i].bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        for (uint64_t c = 0; nic->chunk[i] && c < chunks; c++) {
            if (nic->chunk[i][c])
                ibv_dereg_mr(nic->chunk[i][c]);
        }
        free(nic->chunk[i]);
        nic->chunk[i] = NULL;
    }
}

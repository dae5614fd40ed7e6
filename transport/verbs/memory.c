/* What NICs may reach: chunks of the symmetric segments, each registered with a NIC when it is first
 * used there, here or by a peer. So a heap that grows needs nothing, and what is never talked about is never
 * pinned.
 *
 * A registration holds its pages for as long as the transport is open: the heap does not give them
 * back meanwhile (`pins`). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/verbs.h"

struct ibv_mr *memory_of_chunk(struct verbs *v, struct nic *nic, unsigned segment, uint64_t chunk)
{
    const struct transport_segment *s = &v->config.segment[segment];
    const uint64_t begin = chunk * CHUNK_BYTES, chunks = (s->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;

    if (chunk >= chunks)
        return NULL;
    if (!nic->chunk[segment] && !(nic->chunk[segment] = calloc(chunks, sizeof *nic->chunk[segment]))) {
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for %llu registrations",
                       (unsigned long long)chunks);
        return NULL;
    }
    struct ibv_mr **mr = &nic->chunk[segment][chunk];
    if (*mr)
        return *mr;
    uint64_t bytes = s->bytes - begin < CHUNK_BYTES ? s->bytes - begin : CHUNK_BYTES;
    *mr = ibv_reg_mr(nic->pd, s->base + begin, bytes,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!*mr)
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: %s: registering %llu KiB of symmetric memory: %s%s", nic->name,
                       (unsigned long long)bytes >> 10, strerror(errno),
                       errno == ENOMEM ? " (ulimit -l limits what may be pinned: raise it, or "
                                         "GSHMEM_TRANSPORT=tcp)"
                                       : "");
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
        return memory_of_chunk(v, nic, (unsigned)i, offset / CHUNK_BYTES);
    }
    *bytes = 0;
    return NULL;
}

static bool is_held(const struct verbs *v, const struct nic *nic, int segment, uint64_t offset,
                    uint64_t bytes)
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
        if (is_held(v, &v->nic[i], segment, offset, bytes))
            return true;
    }
    return false;
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

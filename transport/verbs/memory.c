/* What the NIC may reach: chunks of the symmetric segments, each registered when it is first used,
 * here or by a peer. So a heap that grows needs nothing, and what is never talked about is never
 * pinned.
 *
 * A registration holds its pages for as long as the transport is open: the heap does not give them
 * back meanwhile (`pins`). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/verbs.h"

struct ibv_mr *memory_of_chunk(struct verbs *v, unsigned segment, uint64_t chunk)
{
    const struct transport_segment *s = &v->config.segment[segment];
    const uint64_t begin = chunk * CHUNK_BYTES, chunks = (s->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;

    if (chunk >= chunks)
        return NULL;
    if (!v->chunk[segment] && !(v->chunk[segment] = calloc(chunks, sizeof *v->chunk[segment]))) {
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for %llu registrations",
                       (unsigned long long)chunks);
        return NULL;
    }
    struct ibv_mr **mr = &v->chunk[segment][chunk];
    if (*mr)
        return *mr;
    uint64_t bytes = s->bytes - begin < CHUNK_BYTES ? s->bytes - begin : CHUNK_BYTES;
    *mr = ibv_reg_mr(v->nic.pd, s->base + begin, bytes,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!*mr)
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: %s: registering %llu KiB of symmetric memory: %s%s", v->nic.name,
                       (unsigned long long)bytes >> 10, strerror(errno),
                       errno == ENOMEM ? " (ulimit -l limits what may be pinned: raise it, or "
                                         "GSHMEM_TRANSPORT=tcp)"
                                       : "");
    return *mr;
}

struct ibv_mr *memory_of(struct verbs *v, const void *at, uint64_t *bytes)
{
    for (int i = 0; i < v->config.segments; i++) {
        const struct transport_segment *s = &v->config.segment[i];
        uint64_t offset = (uintptr_t)at - (uintptr_t)s->base, to_end;
        if (offset >= s->bytes)
            continue;
        to_end = (offset / CHUNK_BYTES + 1) * CHUNK_BYTES;
        to_end = (to_end < s->bytes ? to_end : s->bytes) - offset;
        *bytes = *bytes < to_end ? *bytes : to_end;
        return memory_of_chunk(v, (unsigned)i, offset / CHUNK_BYTES);
    }
    *bytes = 0;
    return NULL;
}

bool memory_is_pinned(const struct verbs *v, int segment, uint64_t offset, uint64_t bytes)
{
    if (!v->chunk[segment] || !bytes)
        return false;
    for (uint64_t c = offset / CHUNK_BYTES; c <= (offset + bytes - 1) / CHUNK_BYTES; c++) {
        if (c * CHUNK_BYTES < v->config.segment[segment].bytes && v->chunk[segment][c])
            return true;
    }
    return false;
}

void memory_release(struct verbs *v)
{
    for (int i = 0; i < v->config.segments; i++) {
        uint64_t chunks = (v->config.segment[i].bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        for (uint64_t c = 0; v->chunk[i] && c < chunks; c++) {
            if (v->chunk[i][c])
                ibv_dereg_mr(v->chunk[i][c]);
        }
        free(v->chunk[i]);
        v->chunk[i] = NULL;
    }
}

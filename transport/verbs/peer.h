/* What is known of a peer's memory: its segments, by its offer, and the key of each chunk for each
 * pair of NICs, without which no NIC writes or reads it. */
#ifndef GSHMEM_TRANSPORT_VERBS_PEER_H
#define GSHMEM_TRANSPORT_VERBS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/link.h"
#include "transport/verbs/memory.h"

struct control;

/* Takes what the peer's offer says of its memory; false: out of memory, or it makes no sense. */
bool peer_take_offer(struct link *l, const struct control *offer);
/* The key of that path's NIC for an offset of the peer's segment, and how far it reaches; false: it
 * has been requested. */
bool peer_find_key(struct verbs *v, struct link *l, const struct path *p, int segment,
                   uint64_t offset, uint64_t *bytes, uint32_t *key);
/* Requests the keys of a chunk of a segment, or of the eager buffers (MESSAGE_EAGER), if none are
 * being requested. */
void peer_request_key(struct verbs *v, struct link *l, int segment, uint64_t chunk);
/* There is other memory in the peer's segment from here on. */
void peer_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes);

/* Whether l->cached has the key for these bytes. */
static inline bool peer_key_is_cached(const struct link *l, int segment, uint64_t offset,
                                      uint64_t bytes)
{
    const uint64_t at = offset - l->cached.from;

    return at < l->cached.bytes && bytes <= l->cached.bytes - at && segment == l->cached.segment;
}

/* The key for all of those bytes, of a path's NIC; 0: it is not known, or there is none for all. */
static inline uint64_t peer_known_key(const struct link *l, const struct path *p, int segment,
                                      uint64_t offset, uint64_t bytes)
{
    const bool known = segment < TRANSPORT_SEGMENT_MAX;
    const uint64_t *key = known ? l->peer.key[segment] : NULL,
                   all = known ? l->peer.bytes[segment] : 0;

    if (!key || offset >= all || bytes > all - offset || offset % CHUNK_BYTES + bytes > CHUNK_BYTES)
        return 0;
    return key[offset / CHUNK_BYTES * (uint64_t)l->peer.rails + p->number % RAILS_MOST];
}

#endif

/* What a peer's offer says of its memory, and its keys, which are requested chunk by chunk when
 * they are first needed. */
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/control.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/send.h"
#include "transport/verbs/verbs.h"

bool peer_take_offer(struct link *l, const struct control *o)
{
    l->peer.gpu_below = o->gpu_below;
    if (!l->peer.rails) {
        l->peer.rails = o->nics < (uint32_t)l->peer.pairs ? (int)o->nics : l->peer.pairs;
        l->messages.window = o->window < WINDOW ? o->window : WINDOW;
        if (l->messages.window > (l->verbs->share - 4) / 2)
            l->messages.window = (l->verbs->share - 4) / 2;
    }
    for (uint32_t i = 0; i < o->segments; i++) {
        uint64_t chunks = (o->bytes[i] + CHUNK_BYTES - 1) / CHUNK_BYTES;
        if (!l->peer.key[i] &&
            !(l->peer.key[i] =
                  calloc(chunks ? chunks * (size_t)l->peer.rails : 1, sizeof *l->peer.key[i])))
            return false;
        if (l->peer.bytes[i] && l->peer.bytes[i] != o->bytes[i])
            return false;
        l->peer.base[i] = o->base[i];
        l->peer.bytes[i] = o->bytes[i];
    }
    return true;
}

void peer_request_key(struct verbs *v, struct link *l, int segment, uint64_t chunk)
{
    struct message m = {.kind = MESSAGE_KEY,
                        .segment = (uint8_t)segment,
                        .amo = (uint8_t)l->peer.rails,
                        .offset = chunk};

    if (l->key_request.pending || !send_request(v, l, WORK_OTHER, 0, &m, l->messages.window + 1))
        return;
    l->key_request.pending = true;
    l->key_request.segment = segment;
    l->key_request.chunk = chunk;
    l->key_request.number = l->messages.sent;
}

bool peer_find_key(struct verbs *v, struct link *l, const struct path *p, int segment,
                   uint64_t offset, uint64_t *bytes, uint32_t *key)
{
    const uint64_t chunk = offset / CHUNK_BYTES, to_end = (chunk + 1) * CHUNK_BYTES - offset;

    if (!l->peer.key[segment] || offset >= l->peer.bytes[segment] ||
        *bytes > l->peer.bytes[segment] - offset) {
        v->report->link_failed(v, l, GSHMEM_ERR_TRANSPORT,
                               "verbs: its symmetric memory ends before this address");
        return false;
    }
    const uint64_t found =
        l->peer.key[segment][chunk * (uint64_t)l->peer.rails + p->number % RAILS_MOST];
    *bytes = *bytes < to_end ? *bytes : to_end;
    *key = (uint32_t)found;
    if (!found)
        peer_request_key(v, l, segment, chunk);
    return found != 0;
}

void peer_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes)
{
    l->cached.bytes = 0;
    for (uint64_t c = (offset + CHUNK_BYTES - 1) / CHUNK_BYTES;
         l->peer.key[segment] && c * CHUNK_BYTES < offset + bytes; c++)
        memset(&l->peer.key[segment][c * (uint64_t)l->peer.rails], 0,
               (size_t)l->peer.rails * sizeof *l->peer.key[segment]);
}

/* Unordered puts: puts with a signal of this PE that travel on a stream that the peer opened.
 *
 * PEs that exchange signals round by round would send on two streams, each with data one way only,
 * and the system would acknowledge the data with segments of their own. On one stream the
 * acknowledgement travels with the next data of the other direction (docs/decisions/0010).
 *
 *     the PE with the greater number                 the PE with the smaller number, which opened
 *     unordered_post ── FRAME_PUT ─────────────────► unordered_begin, unordered_apply
 *     unordered_complete ◄───────────── FRAME_ACK ── unordered_acknowledge, now and then
 *
 * Unordered puts are numbered by their place on the stream, apart from requests. */
#include "gshmem/rma.h"
#include "transport/tcp/target.h"

/* Both PEs use the stream that the smaller one opened. Before it is open each uses its own. */
struct target *unordered_stream(const struct tcp *t, const struct transport_request *r)
{
    struct target *from =
        r->flags & TRANSPORT_UNORDERED && r->pe < t->config.pe ? t->from[r->pe] : NULL;

    return from && !from->goodbye ? from : NULL;
}

/* A stream that fails here is ended by its next event, or because the peer is unresponsive. */
gshmem_status_t unordered_post(struct tcp *t, struct target *from,
                               const struct transport_request *r)
{
    bool copied = r->bytes <= TRANSPORT_COPIED;
    struct request_frame f = request_of_put(r);
    unsigned char frame[REQUEST_BYTES];

    if (from->unordered_sent - from->unordered_done == UNORDERED_MOST ||
        !queue_has_room(&from->out, REQUEST_BYTES + (copied ? r->bytes : 0), 2))
        return TRANSPORT_FULL;
    from->unordered[from->unordered_sent++ % UNORDERED_MOST] =
        (struct unordered_put){r->done, r->tag};
    request_encode(frame, &f);
    queue_add_copy(&from->out, frame, sizeof frame);
    if (copied)
        queue_add_copy(&from->out, r->local, r->bytes);
    else
        queue_add_reference(&from->out, r->local, r->bytes, r->sent, r->tag);
    tcp_start_ticking(t);
    /* If responses had no room in the queue, this event continues with them. */
    if (!queue_send(&from->out, from->stream.fd) || !queue_empty(&from->out))
        poller_want_out(&t->poller, &from->stream, true);
    return GSHMEM_OK;
}

void unordered_complete(struct tcp *t, struct target *from, uint64_t number, gshmem_status_t status)
{
    while (from->unordered_done < number) {
        struct unordered_put put = from->unordered[from->unordered_done++ % UNORDERED_MOST];
        t->events++;
        put.done(put.tag, status);
    }
}

/* Words: puts with a signal that go the other way, on a stream that the other PE has opened.
 *
 * Two PEs that tell each other something, round for round, would do so on two streams, each of them
 * with data one way only; the system then acknowledges what comes with segments of their own. On one
 * stream the acknowledgement rides on the other's word: a third of the time between two hosts.
 *
 * Words are numbered by their place, and carried out as puts are; that they have been heard is said
 * as it is of puts whose answers nobody waits for: now and then. What comes is trusted no more than
 * requests are. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "gshmem/rma.h"
#include "runtime/base/sanitizer.h"
#include "transport/segment.h"
#include "transport/tcp/target.h"
#include "transport/tcp/initiator.h"

enum { UNACKED_MOST = 64 }; /* words heard that the other PE has not been told of, while more come */

/* ---- Who says them ---- */

/* Both find the same stream: that of the smaller PE. Until that has come each has its own. */
struct target *unordered_stream(const struct tcp *t, const struct transport_request *r)
{
    struct target *from =
        r->flags & TRANSPORT_UNORDERED && r->pe < t->config.pe ? t->from[r->pe] : NULL;

    return from && !from->goodbye ? from : NULL;
}

/* A stream that breaks here is told by its next event, or by the silence that follows. */
gshmem_status_t unordered_post(struct tcp *t, struct target *from, const struct transport_request *r)
{
    bool copied = r->bytes <= TRANSPORT_COPIED;
    struct request_frame f = request_of_put(r);
    unsigned char frame[REQUEST_BYTES];

    if (from->unordered_sent - from->unordered_done == UNORDERED_MOST ||
        !queue_has_room(&from->out, REQUEST_BYTES + (copied ? r->bytes : 0), 2))
        return TRANSPORT_FULL;
    from->unordered[from->unordered_sent++ % UNORDERED_MOST] = (struct unordered_put){r->done, r->tag};
    request_encode(frame, &f);
    queue_add_copy(&from->out, frame, sizeof frame);
    if (copied)
        queue_add_copy(&from->out, r->local, r->bytes);
    else
        queue_add_reference(&from->out, r->local, r->bytes, r->sent, r->tag);
    tcp_start_ticking(t);
    /* Where there was no room for answers, the event that is wanted says that there is again. */
    if (!queue_send(&from->out, from->stream.fd) || !queue_empty(&from->out))
        tcp_want_out(t, &from->stream, true);
    return GSHMEM_OK;
}

void unordered_complete(struct tcp *t, struct target *from, uint64_t number, gshmem_status_t status)
{
    while (from->unordered_done < number) {
        struct unordered_put w = from->unordered[from->unordered_done++ % UNORDERED_MOST];
        t->events++;
        w.done(w.tag, status);
    }
}

/* ---- Who hears them ---- */

bool unordered_begin(struct tcp *t, struct initiator *to, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at || !f->signal_op || f->signal_op > GSHMEM_SIGNAL_ADD ||
        !segment_at_aligned(&t->config, f->signal_segment, f->a, 8) ||
        t->config.segment[f->segment].of_device || t->config.segment[f->signal_segment].of_device)
        return false;
    to->unordered = *f;
    to->in_unordered = true;
    to->data_at = at;
    to->data_left = f->bytes;
    to->data_of_device = false;
    tcp_start_ticking(t);
    if (!f->bytes)
        unordered_apply(t, to);
    return true;
}

/* Its data is in its place: the signal may be seen. */
void unordered_apply(struct tcp *t, struct initiator *to)
{
    const struct request_frame *f = &to->unordered;

    for_another_pe_begin();
    segment_signal((uint64_t *)(void *)segment_at(&t->config, f->signal_segment, f->a, 8), f->signal_op,
                   f->b);
    for_another_pe_end();
    to->in_unordered = false;
    to->unordered_received++;
    t->events++;
    t->unawaited_since = t->unawaited || t->unacknowledged ? t->unawaited_since : t->round;
    t->unacknowledged = true;
    tcp_note_arrival(t, &to->stream);
    if (to->unordered_received - to->unordered_acked >= UNACKED_MOST)
        unordered_acknowledge(t, to);
}

/* Sent with the next that goes there, or with the next round. Also while one still comes, to show
 * that somebody takes it. */
void unordered_acknowledge(struct tcp *t, struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    if (to->failed || (to->unordered_received == to->unordered_acked && !to->in_unordered) ||
        !queue_has_room(&to->out, sizeof frame, 1))
        return;
    request_encode(frame, &(struct request_frame){.kind = FRAME_ACK, .offset = to->unordered_received});
    queue_add_copy(&to->out, frame, sizeof frame);
    to->unordered_acked = to->unordered_received;
    t->held_back = true;
}

/* Unordered puts of the peer, which arrive on a stream that this PE opened: see target_unordered.c,
 * the side that sends them. They are checked as requests are. */
#include "gshmem/rma.h"
#include "runtime/base/sanitizer.h"
#include "transport/segment.h"
#include "transport/tcp/initiator.h"

enum { UNACKED_MOST = 64 }; /* unordered puts received and not acknowledged, while more arrive */

bool unordered_begin(struct tcp *t, struct initiator *to, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at || !f->signal_op || f->signal_op > GSHMEM_SIGNAL_ADD ||
        !segment_at_aligned(&t->config, f->signal_segment, f->a, 8) ||
        t->config.segment[f->segment].of_device || t->config.segment[f->signal_segment].of_device)
        return false;
    to->unordered_put = *f;
    to->data.unordered = true;
    to->data.at = at;
    to->data.left = f->bytes;
    to->data.of_device = false;
    tcp_start_ticking(t);
    if (!f->bytes)
        unordered_apply(t, to);
    return true;
}

void unordered_apply(struct tcp *t, struct initiator *to)
{
    const struct request_frame *f = &to->unordered_put;

    for_another_pe_begin();
    segment_signal((uint64_t *)(void *)segment_at(&t->config, f->signal_segment, f->a, 8),
                   f->signal_op, f->b);
    for_another_pe_end();
    to->data.unordered = false;
    to->unordered_received++;
    t->events++;
    tcp_put_off(t);
    t->initiators.unacknowledged = true;
    poller_note_arrival(&t->poller, &to->stream);
    if (to->unordered_received - to->unordered_acked >= UNACKED_MOST)
        unordered_acknowledge(t, to);
}

/* It is sent with the next request to that PE, or in the next round. While the data of a put
 * arrives, it repeats the last acknowledgement, which shows the peer that this PE is alive. */
void unordered_acknowledge(struct tcp *t, struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    if (to->failed || (to->unordered_received == to->unordered_acked && !to->data.unordered) ||
        !queue_has_room(&to->out, sizeof frame, 1))
        return;
    request_encode(frame,
                   &(struct request_frame){.kind = FRAME_ACK, .offset = to->unordered_received});
    queue_add_copy(&to->out, frame, sizeof frame);
    to->unordered_acked = to->unordered_received;
    t->initiators.held_back = true;
}

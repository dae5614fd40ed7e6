/* Small puts and updates that wait in the queue travel as one batch: a record of 8 or 12 bytes
 * takes the place of a frame and its data. Each stays a request of its own, with its number, and
 * the batch is carried out as they would have been, in their order. */
#define _GNU_SOURCE
#include "runtime/base/atomic_type.h"
#include "transport/tcp/initiator.h"

/* The bytes of its element; 0: the request is none that can be a record. */
static size_t initiator_record_bytes(const struct tcp *t, const struct transport_request *r)
{
    const bool put = r->kind == TRANSPORT_PUT && !r->signal_op,
               update = r->kind == TRANSPORT_ATOMIC && !r->old && r->amo != GSHMEM_AMO_COMPARE_SWAP;
    const uint64_t bytes = put ? r->bytes : update ? atomic_type_bytes(r->type) : 0;

    if ((bytes != 4 && bytes != 8) || r->offset % bytes || r->offset / bytes > UINT32_MAX ||
        r->flags & TRANSPORT_UNASKED || r->segment >= t->config.segments ||
        t->config.segment[r->segment].of_device)
        return 0;
    return bytes;
}

static bool initiator_joins_batch(const struct initiator *to, const struct transport_request *r,
                                  size_t bytes)
{
    const struct coalescing *c = &to->coalescing;

    return c->open && c->kind == r->kind && c->segment == r->segment && c->bytes == bytes &&
           (r->kind == TRANSPORT_PUT || (c->amo == r->amo && c->type == r->type)) &&
           c->elements < BATCH_ELEMENTS_MOST && c->end == to->out.ring_end &&
           to->out.ring_first <= c->frame && !queue_empty(&to->out);
}

static void initiator_begin_batch(struct initiator *to, const struct transport_request *r,
                                  size_t bytes)
{
    const struct request_frame f = {
        .kind = FRAME_BATCH,
        .signal_op = 1,
        .segment = r->segment,
        .signal_segment = r->kind,
        .amo = r->amo,
        .type = r->type,
        .b = bytes,
    };
    unsigned char frame[REQUEST_BYTES];

    to->coalescing = (struct coalescing){.open = true,
                                         .kind = r->kind,
                                         .segment = r->segment,
                                         .amo = r->amo,
                                         .type = r->type,
                                         .bytes = (uint32_t)bytes,
                                         .frame = to->out.ring_end};
    request_encode(frame, &f);
    queue_add_copy(&to->out, frame, sizeof frame);
}

bool initiator_coalesce(struct tcp *t, struct initiator *to, const struct transport_request *r)
{
    const size_t bytes = initiator_record_bytes(t, r);
    struct coalescing *c = &to->coalescing;
    char record[COALESCED_RECORD_MOST];
    unsigned char counts[16];

    if (!bytes)
        return false;
    if (!initiator_joins_batch(to, r, bytes))
        initiator_begin_batch(to, r, bytes);
    batch_put_number(record, (uint32_t)(r->offset / bytes));
    if (r->kind == TRANSPORT_PUT)
        memcpy(record + BATCH_NUMBER_BYTES, r->local, bytes);
    else /* the low bytes of the operand: all machines of a job are little-endian */
        memcpy(record + BATCH_NUMBER_BYTES, &r->operand, bytes);
    queue_add_copy(&to->out, record, BATCH_NUMBER_BYTES + bytes);
    c->end = to->out.ring_end;
    c->elements++;
    frame_put64(counts, c->elements * (BATCH_NUMBER_BYTES + bytes));
    frame_put64(counts + 8, c->elements);
    queue_change_copy(&to->out, c->frame + FRAME_BATCH_BYTES_AT, counts, sizeof counts);
    return true;
}

/* Small puts, gets and updates that wait in the queue travel as one batch: a record of 4 to 20
 * bytes takes the place of a frame and its data, and what they fetch comes back behind one
 * response. Each stays a request of its own, with its number, and the batch is carried out as they
 * would have been, in their order. */
#define _GNU_SOURCE
#include "runtime/base/atomic_type.h"
#include "transport/tcp/initiator.h"

/* What a record of it would be, with the bytes of its element in *bytes; RECORDS_OF_ONE: it can be
 * none. */
static inline enum frame_records initiator_records(const struct tcp *t,
                                                   const struct transport_request *r,
                                                   uint64_t *bytes)
{
    switch (r->kind) {
    case TRANSPORT_PUT:
        *bytes = r->bytes;
        return r->signal_op || (r->bytes != 4 && r->bytes != 8) ? RECORDS_OF_ONE : RECORDS_EACH;
    case TRANSPORT_GET:
        *bytes = r->bytes;
        return r->bytes - 1 >= BATCH_ELEMENT_MOST || (r->bytes & (r->bytes - 1)) ||
                       (t->config.device && pending_is_for_device(t, r))
                   ? RECORDS_OF_ONE
                   : RECORDS_FETCH;
    case TRANSPORT_ATOMIC:
        *bytes = atomic_type_bytes(r->type);
        return r->old                                ? RECORDS_FETCH
               : r->amo != GSHMEM_AMO_COMPARE_SWAP ? RECORDS_EACH
                                                   : RECORDS_OF_ONE;
    default:
        return RECORDS_OF_ONE;
    }
}

/* Elements are numbered from the segment's start, and a segment of device memory takes no batch. */
static inline bool initiator_has_number(const struct tcp *t, const struct transport_request *r,
                                        uint64_t bytes)
{
    return bytes && r->offset % bytes == 0 && r->offset / bytes <= UINT32_MAX &&
           !(r->flags & TRANSPORT_UNASKED) && r->segment < t->config.segments &&
           !t->config.segment[r->segment].of_device;
}

static inline bool initiator_joins_batch(const struct initiator *to,
                                         const struct transport_request *r,
                                         enum frame_records records, uint64_t bytes)
{
    const struct coalescing *c = &to->coalescing;

    return c->open && c->kind == r->kind && c->records == records && c->segment == r->segment &&
           c->bytes == bytes &&
           (r->kind != TRANSPORT_ATOMIC || (c->amo == r->amo && c->type == r->type)) &&
           c->elements < BATCH_ELEMENTS_MOST && c->end == to->out.ring_end &&
           to->out.ring_first <= c->frame && !queue_empty(&to->out);
}

static void initiator_begin_batch(struct initiator *to, const struct transport_request *r,
                                  enum frame_records records, uint64_t bytes)
{
    const struct request_frame f = {
        .kind = FRAME_BATCH,
        .signal_op = (uint8_t)records,
        .segment = r->segment,
        .signal_segment = r->kind,
        .amo = r->kind == TRANSPORT_ATOMIC ? r->amo : 0,
        .type = r->kind == TRANSPORT_ATOMIC ? r->type : 0,
        .b = bytes,
    };
    unsigned char frame[REQUEST_BYTES];

    to->coalescing = (struct coalescing){.open = true,
                                         .kind = r->kind,
                                         .records = (uint8_t)records,
                                         .segment = r->segment,
                                         .amo = f.amo,
                                         .type = f.type,
                                         .bytes = (uint32_t)bytes,
                                         .record = (uint32_t)frame_record_bytes(&f),
                                         .frame = to->out.ring_end};
    request_encode(frame, &f);
    queue_add_copy(&to->out, frame, sizeof frame);
}

/* Operands take their low bytes: all machines of a job are little-endian. */
static inline void initiator_fill_record(char *record, const struct transport_request *r,
                                         uint64_t bytes)
{
    batch_put_number(record, (uint32_t)(r->offset / bytes));
    record += BATCH_NUMBER_BYTES;
    if (r->kind == TRANSPORT_PUT) {
        memcpy(record, r->local, bytes);
    } else if (r->kind == TRANSPORT_ATOMIC) {
        memcpy(record, &r->operand, bytes);
        memcpy(record + bytes, &r->compare, bytes); /* sent where the record has it */
    }
}

bool initiator_coalesce(struct tcp *t, struct initiator *to, const struct transport_request *r,
                        struct pending *w)
{
    uint64_t bytes = 0;
    const enum frame_records records = initiator_records(t, r, &bytes);
    struct coalescing *c = &to->coalescing;
    char record[COALESCED_RECORD_MOST];
    unsigned char counts[16];

    if (records == RECORDS_OF_ONE || !initiator_has_number(t, r, bytes))
        return false;
    if (!initiator_joins_batch(to, r, records, bytes))
        initiator_begin_batch(to, r, records, bytes);
    initiator_fill_record(record, r, bytes);
    queue_add_copy(&to->out, record, c->record);
    c->end = to->out.ring_end;
    c->elements++;
    frame_put64(counts, c->elements * (uint64_t)c->record);
    frame_put64(counts + 8, c->elements);
    queue_change_copy(&to->out, c->frame + FRAME_BATCH_BYTES_AT, counts, sizeof counts);
    if (records == RECORDS_FETCH) {
        w->due = RESPONSE_FETCHED;
        w->local = r->kind == TRANSPORT_GET ? r->local : r->old;
        w->bytes = r->kind == TRANSPORT_GET ? bytes : FETCHED_VALUE_BYTES;
    }
    return true;
}

/* Requests of other PEs: received, checked, and carried out or deferred.
 *
 * What arrives is not trusted. Until a stream has proven the key of the PE that it names, only a
 * greeting is taken from it; and a range is checked against the symmetric segments before a byte
 * of it is changed. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "transport/tcp/target.h"

enum { VISIT_BYTES = 4 << 20 }; /* received from one PE, then other streams have their turn */

/* ---- Requests ---- */

/* Whether the request touches device memory, or follows one that is deferred. */
static bool target_is_staged(const struct tcp *t, const struct target *from, unsigned segment)
{
    return t->config.device && (deferred_any(from) || t->config.segment[segment].of_device);
}

static bool target_defer(struct tcp *t, struct target *from, const struct request_frame *f,
                         gshmem_status_t failure)
{
    return deferred_add(t, from, f, failure) == GSHMEM_OK ||
           target_refuse(t, from, "more than there is memory for");
}

static bool end_put(struct tcp *t, struct target *from)
{
    const struct request_frame *f = &from->put;

    if (from->data.of_device ||
        target_is_staged(t, from, f->signal_op ? f->signal_segment : f->segment))
        return target_defer(t, from, f, from->data.put_failure);
    target_end_put(t, from, f);
    return true;
}

static bool begin_put(struct tcp *t, struct target *from, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at)
        return target_refuse(t, from, "a put to memory that is not symmetric");
    if (f->signal_op > GSHMEM_SIGNAL_ADD ||
        (f->signal_op && !segment_at_aligned(&t->config, f->signal_segment, f->a, 8)))
        return target_refuse(t, from, "a put with a signal that does not exist");
    from->put = *f;
    from->data.at = at;
    from->data.left = f->bytes;
    from->data.of_device = t->config.segment[f->segment].of_device && f->bytes;
    from->data.put_failure =
        from->data.of_device && !staging_ready(&t->staging) ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
    return f->bytes || end_put(t, from);
}

static bool take_get(struct tcp *t, struct target *from, const struct request_frame *f)
{
    if (!segment_at(&t->config, f->segment, f->offset, f->bytes))
        return target_refuse(t, from, "a get from memory that is not symmetric");
    if (target_is_staged(t, from, f->segment))
        return target_defer(t, from, f, GSHMEM_OK);
    target_execute_get(t, from, f);
    return true;
}

static bool take_atomic(struct tcp *t, struct target *from, const struct request_frame *f)
{
    uint64_t bytes = atomic_type_bytes(f->type);

    if (!bytes || !segment_at_aligned(&t->config, f->segment, f->offset, bytes) ||
        f->amo >= GSHMEM_AMO_COUNT)
        return target_refuse(t, from, "an atomic that does not exist, or not on symmetric memory");
    if (target_is_staged(t, from, f->segment))
        return target_defer(t, from, f, GSHMEM_OK);
    target_execute_atomic(t, from, f);
    return true;
}

/* A message is taken as a whole: until all of it has arrived, nothing is taken. */
static bool target_take_message(struct tcp *t, struct target *from, const struct request_frame *f)
{
    if (f->bytes > TRANSPORT_NOTE_MAX)
        return target_refuse(t, from, "a message that is too long");
    if (receive_buffer_has(&from->in) < REQUEST_BYTES + f->bytes)
        return true;
    from->in.first += REQUEST_BYTES + f->bytes;
    t->events++;
    t->config.received(t->config.context, from->pe, receive_buffer_next(&from->in) - f->bytes,
                    f->bytes);
    return true;
}

/* Data for host memory, and batches, are stored as they arrive, and must not be stored before what
 * is deferred. */
static bool overtakes_copies(const struct tcp *t, const struct request_frame *f)
{
    return (f->kind == FRAME_PUT && f->bytes &&
            !(f->segment < t->config.segments && t->config.segment[f->segment].of_device)) ||
           f->kind == FRAME_BATCH;
}

/* The peer acknowledges unordered puts. It does so when it has nothing else to do, and may wait
 * for the responses to its own requests: they are sent. */
static bool unordered_take_ack(struct tcp *t, struct target *from, uint64_t number)
{
    if (number < from->unordered_done || number > from->unordered_sent)
        return target_refuse(t, from, "an acknowledgement of a put that was not made");
    unordered_complete(t, from, number, GSHMEM_OK);
    from->awaited = from->executed;
    return true;
}

/* The peer has given this PE up, and ends its streams. It has not failed for other PEs. */
static bool target_take_refusal(struct tcp *t, struct target *from)
{
    t->peer[from->pe].refuses = true;
    t->config.refused(t->config.context, from->pe);
    return true;
}

static bool take_request(struct tcp *t, struct target *from)
{
    struct request_frame f;

    if (!request_decode(receive_buffer_next(&from->in), &f))
        return target_refuse(t, from, "a request that is none of this version's");
    if (f.kind == FRAME_MESSAGE && !from->goodbye)
        return target_take_message(t, from, &f);
    f.trace = from->traced;
    if ((deferred_any(from) && overtakes_copies(t, &f)) || target_must_wait(t, from, &f))
        return true; /* it stays in the buffer */
    from->in.first += REQUEST_BYTES;
    if (from->goodbye)
        return target_refuse(t, from, "a request after its goodbye");
    from->traced = f.kind == FRAME_TRACE ? f.offset : 0;
    switch (f.kind) {
    case FRAME_PUT:
        return begin_put(t, from, &f);
    case FRAME_GET:
        return take_get(t, from, &f);
    case FRAME_ATOMIC:
        return take_atomic(t, from, &f);
    case FRAME_BATCH:
        return batch_begin(t, from, &f) ||
               target_refuse(t, from, "a batch that does not exist, or not on symmetric memory");
    case FRAME_TRACE:
        return true;
    case FRAME_ACK:
        return unordered_take_ack(t, from, f.offset);
    case FRAME_FAILED:
        if (f.offset >= (uint64_t)t->config.n_pes)
            return target_refuse(t, from, "the failure of a PE that does not exist");
        if (f.offset == (uint64_t)t->config.pe)
            return target_take_refusal(t, from);
        t->config.notified(t->config.context, from->pe, (int)f.offset);
        return true;
    default:
        from->goodbye = true;
        return true;
    }
}

/* ---- Data ---- */

/* So many bytes of a put's data are in their place. */
static bool target_data_arrived(struct tcp *t, struct target *from, size_t bytes)
{
    from->data.at += bytes;
    from->data.left -= bytes;
    return from->data.left || end_put(t, from);
}

/* Moves data to a staging buffer. The data of a put that has failed is thrown away; without a
 * buffer nothing is taken. */
static bool take_data_for_device(struct tcp *t, struct target *from, size_t part)
{
    struct staged *b = NULL;

    if (!from->data.put_failure) {
        if (!(b = deferred_buffer(t, from)))
            return true;
        part = part < b->room ? part : b->room;
        memcpy(b->at, receive_buffer_next(&from->in), part);
        deferred_push(t, from, b, part);
    }
    from->in.first += part;
    return target_data_arrived(t, from, part);
}

static bool target_take_data(struct tcp *t, struct target *from, size_t have)
{
    size_t part = have < from->data.left ? have : (size_t)from->data.left;

    if (from->data.left <= 8 && have < from->data.left)
        return true; /* up to 8 bytes are stored at once, when all have arrived */
    if (from->data.of_device)
        return take_data_for_device(t, from, part);
    if (from->data.left <= 8)
        segment_store(from->data.at, receive_buffer_next(&from->in), part);
    else
        memcpy(from->data.at, receive_buffer_next(&from->in), part);
    from->in.first += part;
    return target_data_arrived(t, from, part);
}

/* ---- The stream ---- */

bool target_parse(struct tcp *t, struct target *from)
{
    bool fine = true;

    while (fine) {
        size_t have = receive_buffer_has(&from->in);
        size_t before = from->in.first;
        if (from->pe < 0)
            fine = admission_take_greeting(t, from, have);
        else if (from->data.left && have)
            fine = target_take_data(t, from, have);
        else if (from->batch.left)
            fine = batch_take(t, from);
        else if (!from->data.left && have >= REQUEST_BYTES && target_has_room(from) &&
                 deferred_has_room(from))
            fine = take_request(t, from);
        if (from->in.first == before)
            break;
    }
    receive_buffer_compact(&from->in);
    return fine;
}

/* How much of a put's data is received straight to its place, or into the staging buffer *b.
 * False: it has to wait for a buffer. */
static bool target_find_location(struct tcp *t, struct target *from, size_t have, size_t *straight,
                                 struct staged **b)
{
    *straight = from->data.left > 8 && have == 0 ? (size_t)from->data.left : 0;
    *b = NULL;
    if (!from->data.of_device || !*straight || from->data.put_failure) {
        *straight = from->data.put_failure ? 0 : *straight;
        return true;
    }
    if (!(*b = deferred_buffer(t, from)))
        return false;
    *straight = *straight < (*b)->room ? *straight : (*b)->room;
    return true;
}

bool target_receive(struct tcp *t, struct target *from)
{
    size_t visit = 0;

    while (visit < VISIT_BYTES) {
        size_t have = receive_buffer_has(&from->in), straight;
        size_t room =
            from->put.bytes >= SOCKET_LARGE && have < REQUEST_BYTES && !from->data.put_failure
                ? REQUEST_BYTES - have
                : RECEIVE_BUFFER_BYTES - from->in.end;
        struct staged *b;
        if (!target_find_location(t, from, have, &straight, &b))
            return true; /* until a staging buffer is given back */
        if (b && straight < from->data.left)
            room = 0; /* what follows is still data */
        if (straight + room == 0)
            return true; /* the buffer is full of requests whose responses have no room */
        ssize_t n = socket_receive(from->stream.fd, b ? b->at : from->data.at, straight,
                                   from->in.bytes + from->in.end, room);
        size_t placed = n <= 0 ? 0 : (size_t)n < straight ? (size_t)n : straight;

        if (b && placed)
            deferred_push(t, from, b, placed);
        else if (b)
            staging_give(b);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0)
            return target_ended(t, from, n < 0 ? errno : 0);
        t->events++;
        from->received = true;
        if (from->is_small) {
            from->is_small = false;
            tcp_start_ticking(t);
        }
        visit += (size_t)n;
        if (placed && !target_data_arrived(t, from, placed))
            return false;
        from->in.end += (size_t)n - placed;
        if (!target_parse(t, from))
            return false;
        if ((size_t)n < straight + room)
            return true; /* the socket is empty: this saves a call that would say so */
    }
    return true;
}

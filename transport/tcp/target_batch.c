/* Carries out a batch of a peer: elements of one object, each put, got or updated
 * (batch_target.h).
 *
 * The records are carried out as they arrive, and what gets and fetching updates bring is sent as
 * it is read. So a batch needs no memory of its own here, whatever its size. */
#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "transport/tcp/target.h"

/* How many of the n records come before one whose element a get before the batch has yet to send
 * from its place. */
static size_t batch_before_get(const struct target *from, const struct target_batch *b,
                               const char *record, size_t n)
{
    const size_t bytes = b->f.b, step = frame_record_bytes(&b->f);

    if (b->f.signal_segment == TRANSPORT_GET || queue_empty(&from->out) ||
        !queue_refers_to(&from->out, b->object.at,
                         bytes << 32)) /* imported memory is behind the heap */
        return n;
    for (size_t k = 0; k < n; k++, record += step) {
        const uint32_t number = batch_number(record);
        if (queue_refers_to(&from->out, b->object.at + number * bytes, bytes))
            return k;
    }
    return n;
}

bool batch_begin(struct tcp *t, struct target *from, const struct request_frame *f)
{
    struct batch_object object = {.config = &t->config,
                                  .offset = f->offset,
                                  .segment = f->segment,
                                  .each = f->signal_segment,
                                  .amo = f->amo,
                                  .type = f->type,
                                  .bytes = (uint32_t)f->b};

    if (!frame_batch_is_sound(f) || !batch_find_object(&object))
        return false;
    from->batch = (struct target_batch){.f = *f, .object = object, .left = f->a};
    from->put.bytes = 0; /* what follows is small: it is received as a whole */
    return true;
}

/* `bytes` is a constant where this is inlined, and each element one access. */
static inline __attribute__((always_inline)) bool
batch_read(const struct batch_object *o, const char *record, char *to, size_t n, size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES, to += bytes) {
        const char *at = batch_element(o, batch_number(record), bytes);
        if (!at)
            return false;
        memcpy(to, at, bytes);
    }
    return true;
}

/* Updates that bring their old values. */
static bool batch_fetch_update(const struct tcp *t, const struct target_batch *b,
                               const char *record, char *to, size_t n)
{
    const size_t bytes = b->f.b, step = frame_record_bytes(&b->f);
    const bool compares = step > BATCH_NUMBER_BYTES + bytes;

    for (; n; n--, record += step, to += FETCHED_VALUE_BYTES) {
        char *at = batch_element(&b->object, batch_number(record), bytes);
        const char *operands = record + BATCH_NUMBER_BYTES;
        if (!at)
            return false;
        const uint64_t old = t->config.apply(t->config.context, (enum gshmem_amo)b->f.amo,
                                             b->f.type, at, batch_operand(operands, bytes),
                                             compares ? batch_operand(operands + bytes, bytes) : 0);
        frame_put64((unsigned char *)to, old);
    }
    return true;
}

/* The most frequent one. */
static bool batch_fetch_add(const struct batch_object *o, const char *record, char *to, size_t n)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + 8, to += FETCHED_VALUE_BYTES) {
        char *at = batch_element(o, batch_number(record), 8);
        if (!at)
            return false;
        frame_put64((unsigned char *)to,
                    __atomic_fetch_add((uint64_t *)(void *)at,
                                       batch_operand(record + BATCH_NUMBER_BYTES, 8),
                                       __ATOMIC_ACQ_REL));
    }
    return true;
}

static bool batch_get(const struct batch_object *o, const char *record, char *to, size_t n)
{
#define READ(size) batch_read(o, record, to, n, size)
    BATCH_BY_SIZE(o->bytes, READ)
#undef READ
}

static bool batch_fetch(const struct tcp *t, const struct target_batch *b, const char *record,
                        char *to, size_t n)
{
    if (b->f.signal_segment == TRANSPORT_GET)
        return batch_get(&b->object, record, to, n);
    if (b->f.amo == GSHMEM_AMO_ADD && b->f.b == 8 && !atomic_type_is_real(b->f.type))
        return batch_fetch_add(&b->object, record, to, n);
    return batch_fetch_update(t, b, record, to, n);
}

/* Whether its records bring something back. */
static bool batch_fetches(const struct target_batch *b)
{
    return b->f.signal_segment == TRANSPORT_GET || b->f.signal_op == RECORDS_FETCH;
}

/* Carries out so many records that bring something back, as long as the peer takes it; *done: how
 * many. */
static bool batch_respond(const struct tcp *t, struct target *from, size_t n, size_t *done)
{
    const struct target_batch *b = &from->batch;
    const bool each = b->f.signal_op == RECORDS_FETCH;
    const size_t step = frame_record_bytes(&b->f),
                 bytes = b->f.signal_segment == TRANSPORT_GET ? b->f.b : FETCHED_VALUE_BYTES,
                 most = COPY_MOST / bytes;
    char data[COPY_MOST];

    for (*done = 0; *done < n && target_has_room(from);) {
        const size_t part = n - *done < most ? n - *done : most;
        if (!batch_fetch(t, b, (const char *)receive_buffer_next(&from->in) + *done * step, data,
                         part))
            return false;
        target_respond(from, each ? RESPONSE_FETCHED : RESPONSE_DATA, from->executed + 1,
                       part * bytes);
        queue_add_copy(&from->out, data, part * bytes);
        from->executed += each ? part : 0;
        from->responded = from->executed;
        *done += part;
    }
    return true;
}

static void batch_end(struct target *from)
{
    if (from->batch.f.signal_op == RECORDS_OF_ONE)
        from->executed++;
    else if (from->batch.f.signal_op == RECORDS_EACH)
        from->executed += from->batch.f.a;
    from->awaited = from->executed;
    from->signalled = false;
    from->updated = true;
    if (batch_fetches(&from->batch))
        from->responded = from->executed;
    if (trace_is_on())
        target_trace(from, &from->batch.f);
}

bool batch_take(struct tcp *t, struct target *from)
{
    struct target_batch *b = &from->batch;
    const char *record = (const char *)receive_buffer_next(&from->in);
    const size_t bytes = target_takes_least(from), have = receive_buffer_has(&from->in) / bytes;
    size_t n = batch_before_get(from, b, record, have < b->left ? have : (size_t)b->left);
    bool fine = true;

    if (n == 0)
        return true;
    if (batch_fetches(b))
        fine = batch_respond(t, from, n, &n);
    else
        fine = batch_carry_out(&b->object, record, n);
    if (!fine)
        return target_refuse(t, from, "an element of a batch that is not in symmetric memory");
    from->in.first += n * bytes;
    b->left -= n;
    t->events++;
    if (!b->left)
        batch_end(from);
    return true;
}

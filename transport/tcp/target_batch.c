/* Carries out a batch of a peer: elements of one object, each put, got or updated (batch.h).
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
        !queue_refers_to(&from->out, b->at, bytes << 32)) /* imported memory is behind the heap */
        return n;
    for (size_t k = 0; k < n; k++, record += step) {
        const uint32_t number = batch_number(record);
        if (queue_refers_to(&from->out, b->at + number * bytes, bytes))
            return k;
    }
    return n;
}

bool batch_begin(struct tcp *t, struct target *from, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, 0);
    const bool updates = f->signal_segment == TRANSPORT_ATOMIC;

    if (!at || !frame_batch_is_sound(f) || t->config.segment[f->segment].of_device)
        return false;
    if (updates &&
        (f->amo >= GSHMEM_AMO_COUNT || atomic_type_bytes(f->type) != f->b || (uintptr_t)at % f->b))
        return false;
    const struct transport_segment *s = &t->config.segment[f->segment];
    const uint64_t there = s->there ? __atomic_load_n(s->there, __ATOMIC_RELAXED) : s->bytes;
    from->batch = (struct target_batch){
        .f = *f,
        .at = at,
        .elements = f->offset < there ? (there - f->offset) / f->b : 0,
        .left = f->a,
    };
    from->put.bytes = 0; /* what follows is small: it is received as a whole */
    return true;
}

/* Where an element is, or NULL. Elements of imported memory are behind those that the segment has
 * of its own. */
static inline char *batch_element(const struct tcp *t, const struct target_batch *b,
                                  uint32_t number, size_t bytes)
{
    if (GSHMEM_LIKELY(number < b->elements))
        return b->at + number * bytes;
    return segment_at(&t->config, b->f.segment, b->f.offset + number * (uint64_t)bytes, bytes);
}

/* `bytes` is a constant where this is inlined, and each element one access. */
static inline __attribute__((always_inline)) bool batch_read(const struct tcp *t,
                                                             const struct target_batch *b,
                                                             const char *record, char *to, size_t n,
                                                             size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES, to += bytes) {
        const char *at = batch_element(t, b, batch_number(record), bytes);
        if (!at)
            return false;
        memcpy(to, at, bytes);
    }
    return true;
}

static inline __attribute__((always_inline)) bool batch_write(const struct tcp *t,
                                                              const struct target_batch *b,
                                                              const char *record, size_t n,
                                                              size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(t, b, batch_number(record), bytes);
        if (!at)
            return false;
        if (bytes > 8)
            memcpy(at, record + BATCH_NUMBER_BYTES, bytes);
        else
            segment_store(at, (const unsigned char *)record + BATCH_NUMBER_BYTES, bytes);
    }
    return true;
}

static inline __attribute__((always_inline)) uint64_t batch_operand(const char *value,
                                                                    size_t bytes)
{
    uint64_t operand = 0;
    uint32_t half;

    if (bytes == sizeof operand) {
        memcpy(&operand, value, sizeof operand);
        return operand;
    }
    memcpy(&half, value, sizeof half);
    return half;
}

static bool batch_update(const struct tcp *t, const struct target_batch *b, const char *record,
                         size_t n)
{
    const size_t bytes = b->f.b;

    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(t, b, batch_number(record), bytes);
        if (!at)
            return false;
        t->config.apply(t->config.context, (enum gshmem_amo)b->f.amo, b->f.type, at,
                        batch_operand(record + BATCH_NUMBER_BYTES, bytes), 0);
    }
    return true;
}

/* An update waits for its element, and the CPU begins no other access meanwhile: elements are
 * fetched some records ahead. */
enum { RECORDS_AHEAD = 8 };

static inline __attribute__((always_inline)) void batch_fetch_ahead(const struct target_batch *b,
                                                                    const char *record, size_t n,
                                                                    size_t bytes)
{
    const char *ahead = record + RECORDS_AHEAD * (BATCH_NUMBER_BYTES + bytes);

    /* any number: an address without memory is not fetched */
    if (GSHMEM_LIKELY(n > RECORDS_AHEAD))
        __builtin_prefetch((void *)((uintptr_t)b->at + batch_number(ahead) * bytes), 1);
}

/* The most frequent update: it costs half of config.apply. acq_rel as there. */
static inline __attribute__((always_inline)) bool batch_add_by_size(const struct tcp *t,
                                                                      const struct target_batch *b,
                                                                      const char *record, size_t n,
                                                                      size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(t, b, batch_number(record), bytes);
        const uint64_t operand = batch_operand(record + BATCH_NUMBER_BYTES, bytes);
        if (!at)
            return false;
        batch_fetch_ahead(b, record, n, bytes);
        if (bytes == sizeof operand)
            __atomic_fetch_add((uint64_t *)(void *)at, operand, __ATOMIC_ACQ_REL);
        else
            __atomic_fetch_add((uint32_t *)(void *)at, (uint32_t)operand, __ATOMIC_ACQ_REL);
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
        char *at = batch_element(t, b, batch_number(record), bytes);
        const char *operands = record + BATCH_NUMBER_BYTES;
        if (!at)
            return false;
        const uint64_t old = t->config.apply(
            t->config.context, (enum gshmem_amo)b->f.amo, b->f.type, at,
            batch_operand(operands, bytes), compares ? batch_operand(operands + bytes, bytes) : 0);
        frame_put64((unsigned char *)to, old);
    }
    return true;
}

/* The most frequent one, as batch_add. */
static bool batch_fetch_add(const struct tcp *t, const struct target_batch *b, const char *record,
                            char *to, size_t n)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + 8, to += FETCHED_VALUE_BYTES) {
        char *at = batch_element(t, b, batch_number(record), 8);
        if (!at)
            return false;
        frame_put64((unsigned char *)to,
                    __atomic_fetch_add((uint64_t *)(void *)at,
                                       batch_operand(record + BATCH_NUMBER_BYTES, 8),
                                       __ATOMIC_ACQ_REL));
    }
    return true;
}

static bool batch_add(const struct tcp *t, const struct target_batch *b, const char *record,
                      size_t n)
{
    return b->f.b == sizeof(uint64_t) ? batch_add_by_size(t, b, record, n, sizeof(uint64_t))
                                      : batch_add_by_size(t, b, record, n, sizeof(uint32_t));
}

/* A case for each size that elements may have. */
#define BATCH_BY_SIZE(bytes, call)                                                                 \
    switch (bytes) {                                                                               \
    case 1:                                                                                        \
        return call(1);                                                                            \
    case 2:                                                                                        \
        return call(2);                                                                            \
    case 4:                                                                                        \
        return call(4);                                                                            \
    case 8:                                                                                        \
        return call(8);                                                                            \
    case 16:                                                                                       \
        return call(16);                                                                           \
    case 32:                                                                                       \
        return call(32);                                                                           \
    default:                                                                                       \
        return call(64);                                                                           \
    }

static bool batch_get(const struct tcp *t, const struct target_batch *b, const char *record,
                      char *to, size_t n)
{
#define READ(size) batch_read(t, b, record, to, n, size)
    BATCH_BY_SIZE(b->f.b, READ)
#undef READ
}

static bool batch_put(const struct tcp *t, const struct target_batch *b, const char *record,
                      size_t n)
{
#define WRITE(size) batch_write(t, b, record, n, size)
    BATCH_BY_SIZE(b->f.b, WRITE)
#undef WRITE
}

static bool batch_fetch(const struct tcp *t, const struct target_batch *b, const char *record,
                        char *to, size_t n)
{
    if (b->f.signal_segment == TRANSPORT_GET)
        return batch_get(t, b, record, to, n);
    if (b->f.amo == GSHMEM_AMO_ADD && b->f.b == 8 && !atomic_type_is_real(b->f.type))
        return batch_fetch_add(t, b, record, to, n);
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
    else if (b->f.signal_segment == TRANSPORT_PUT)
        fine = batch_put(t, b, record, n);
    else if (b->f.amo == GSHMEM_AMO_ADD && !atomic_type_is_real(b->f.type))
        fine = batch_add(t, b, record, n);
    else
        fine = batch_update(t, b, record, n);
    if (!fine)
        return target_refuse(t, from, "an element of a batch that is not in symmetric memory");
    from->in.first += n * bytes;
    b->left -= n;
    t->events++;
    if (!b->left)
        batch_end(from);
    return true;
}

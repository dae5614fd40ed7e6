#include "transport/batch_target.h"

#include "runtime/base/atomic_type.h"

bool batch_find_object(struct batch_object *o)
{
    o->at = segment_at(o->config, o->segment, o->offset, 0);
    if (!o->at || o->config->segment[o->segment].of_device)
        return false;
    if (o->each == TRANSPORT_ATOMIC &&
        (o->amo >= GSHMEM_AMO_COUNT || atomic_type_bytes(o->type) != o->bytes ||
         (uintptr_t)o->at % o->bytes))
        return false;
    const struct transport_segment *s = &o->config->segment[o->segment];
    const uint64_t there = s->there ? __atomic_load_n(s->there, __ATOMIC_RELAXED) : s->bytes;
    o->elements = o->offset < there ? (there - o->offset) / o->bytes : 0;
    return true;
}

/* `bytes` is a constant where this is inlined, and each element one access. */
static inline __attribute__((always_inline)) bool
batch_write(const struct batch_object *o, const char *record, size_t n, size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(o, batch_number(record), bytes);
        if (!at)
            return false;
        if (bytes > 8)
            memcpy(at, record + BATCH_NUMBER_BYTES, bytes);
        else
            segment_store(at, (const unsigned char *)record + BATCH_NUMBER_BYTES, bytes);
    }
    return true;
}

static bool batch_update(const struct batch_object *o, const char *record, size_t n)
{
    const size_t bytes = o->bytes;

    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(o, batch_number(record), bytes);
        if (!at)
            return false;
        o->config->apply(o->config->context, (enum gshmem_amo)o->amo, o->type, at,
                         batch_operand(record + BATCH_NUMBER_BYTES, bytes), 0);
    }
    return true;
}

/* An update waits for its element, and the CPU begins no other access meanwhile: elements are
 * fetched some records ahead. */
enum { RECORDS_AHEAD = 8 };

static inline __attribute__((always_inline)) void
batch_fetch_ahead(const struct batch_object *o, const char *record, size_t n, size_t bytes)
{
    const char *ahead = record + RECORDS_AHEAD * (BATCH_NUMBER_BYTES + bytes);

    /* any number: an address without memory is not fetched */
    if (GSHMEM_LIKELY(n > RECORDS_AHEAD))
        __builtin_prefetch((void *)((uintptr_t)o->at + batch_number(ahead) * bytes), 1);
}

/* The most frequent update: it costs half of config.apply. acq_rel as there. */
static inline __attribute__((always_inline)) bool
batch_add_by_size(const struct batch_object *o, const char *record, size_t n, size_t bytes)
{
    for (; n; n--, record += BATCH_NUMBER_BYTES + bytes) {
        char *at = batch_element(o, batch_number(record), bytes);
        const uint64_t operand = batch_operand(record + BATCH_NUMBER_BYTES, bytes);
        if (!at)
            return false;
        batch_fetch_ahead(o, record, n, bytes);
        if (bytes == sizeof operand)
            __atomic_fetch_add((uint64_t *)(void *)at, operand, __ATOMIC_ACQ_REL);
        else
            __atomic_fetch_add((uint32_t *)(void *)at, (uint32_t)operand, __ATOMIC_ACQ_REL);
    }
    return true;
}

static bool batch_add(const struct batch_object *o, const char *record, size_t n)
{
    return o->bytes == sizeof(uint64_t) ? batch_add_by_size(o, record, n, sizeof(uint64_t))
                                        : batch_add_by_size(o, record, n, sizeof(uint32_t));
}

static bool batch_put(const struct batch_object *o, const char *record, size_t n)
{
#define WRITE(size) batch_write(o, record, n, size)
    BATCH_BY_SIZE(o->bytes, WRITE)
#undef WRITE
}

bool batch_carry_out(const struct batch_object *o, const char *record, size_t n)
{
    if (o->each == TRANSPORT_PUT)
        return batch_put(o, record, n);
    return o->amo == GSHMEM_AMO_ADD && !atomic_type_is_real(o->type) ? batch_add(o, record, n)
                                                                     : batch_update(o, record, n);
}

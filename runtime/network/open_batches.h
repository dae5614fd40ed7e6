/* Open batches: small puts and updates of a context that wait, for each PE, to be posted as one
 * request (transport/batch.h).
 *
 *     the first one to a PE is posted at once
 *     while it is in flight, the next ones are records of the PE's open batch
 *     the batch is posted when it is full; when what was in flight to that PE has completed; when a
 *     thread waits for anything; and before any other request to that PE
 *
 * Therefore, where the queue to the PE has room, no record waits longer than one round trip, and
 * the order of a context's requests to a PE is the order of its calls. Nothing waits by the clock.
 *
 * The fast path is inline: it takes the batch's own lock, writes a record and returns. An open
 * batch has a flight of its context since its first record, so that a quiet, of a kernel too, waits
 * for it. */
#ifndef GSHMEM_RUNTIME_NETWORK_OPEN_BATCHES_H
#define GSHMEM_RUNTIME_NETWORK_OPEN_BATCHES_H

#include <string.h>

#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "transport/batch.h"

enum {
    OPEN_BATCH_BYTES = TRANSPORT_COPIED, /* of records: the transport copies them */
    OPEN_BATCHES_MOST = 1024,            /* of all contexts, which take 4 MiB */
    OPEN_BATCH_ELEMENT_MOST = BATCH_ELEMENT_MOST,
};

/* What all records of a batch have in common. */
union batch_kind {
    struct {
        uint8_t each; /* TRANSPORT_PUT or TRANSPORT_ATOMIC */
        uint8_t segment;
        uint8_t amo, type; /* of an update */
        uint8_t element;   /* bytes, a power of two */
        uint8_t rest;      /* of each offset, divided by that */
        uint8_t unused[2];
    };
    uint64_t bits; /* all of it, to be compared */
};

struct open_batch {
    _Atomic bool locked; /* covers the fields of the first group. A thread that has it waits for
                            nothing; the network's lock is taken before it */
    uint32_t n;          /* records; 0: it is not open. Only the holder of the network's lock makes
                            it 0, or more than 0 */
    uint32_t most;       /* for how many there is room */
    union batch_kind kind;
    char *records;       /* while it is open */

    struct network *network;
    /* These belong to the holder of the network's lock. */
    struct landing landing; /* of all requests that are in flight */
    struct pending *pending;
    int pe;
    uint32_t flying;       /* requests in flight, posted because of this record */
    bool is_due;           /* it is in the list network.due */
    uint32_t epoch;        /* the fences before its first record */
    struct flight *flight; /* of the records, while it is open */
    struct open_batch *next_of_pe;      /* open batches to the same PE, of other contexts */
    struct open_batch *next, *previous; /* all that are open */
    struct open_batch *next_due;        /* all that are open, and of which nothing is in flight */
};

/* Of a context: each PE that it has sent small operations to. */
struct open_batch_table {
    int n_pes;
    _Atomic(struct open_batch *) of[]; /* [PE] */
};

static inline union batch_kind batch_kind_of(int each, unsigned segment, unsigned amo,
                                             unsigned type, uint64_t offset, size_t bytes)
{
    return (union batch_kind){.each = (uint8_t)each,
                              .segment = (uint8_t)segment,
                              .amo = (uint8_t)amo,
                              .type = (uint8_t)type,
                              .element = (uint8_t)bytes,
                              .rest = (uint8_t)(offset & (bytes - 1))};
}

void open_batch_wait_to_enter(struct open_batch *b);

static inline void open_batch_enter(struct open_batch *b)
{
    /* acquire: pairs with the release below */
    if (GSHMEM_UNLIKELY(atomic_exchange_explicit(&b->locked, true, memory_order_acquire)))
        open_batch_wait_to_enter(b);
}

static inline void open_batch_leave(struct open_batch *b)
{
    atomic_store_explicit(&b->locked, false, memory_order_release);
}

/* `bytes` is a power of two. */
static inline void open_batch_write(struct open_batch *b, uint64_t offset, const void *value,
                                    size_t bytes)
{
    char *record = b->records + b->n++ * (BATCH_NUMBER_BYTES + bytes);

    batch_put_number(record, (uint32_t)(offset >> __builtin_ctzll(bytes)));
    switch (bytes) {
    case 8:
        memcpy(record + BATCH_NUMBER_BYTES, value, 8);
        break;
    case 4:
        memcpy(record + BATCH_NUMBER_BYTES, value, 4);
        break;
    default:
        memcpy(record + BATCH_NUMBER_BYTES, value, bytes);
    }
}

/* Whether an operation of so many bytes at that offset can be a record. */
static inline bool open_batch_takes(uint64_t offset, size_t bytes)
{
    return bytes - 1 < OPEN_BATCH_ELEMENT_MOST && (bytes & (bytes - 1)) == 0 &&
           offset >> __builtin_ctzll(bytes) <= UINT32_MAX;
}

/* Adds a record to the open batch to that PE, if there is one of that kind and it has room. */
static inline bool open_batch_add(struct pending *p, int pe, union batch_kind kind, uint64_t offset,
                                  const void *value, size_t bytes)
{
    /* acquire, both: pair with the releases in open_batch_make */
    struct open_batch_table *table = atomic_load_explicit(&p->batches, memory_order_acquire);
    struct open_batch *b =
        table ? atomic_load_explicit(&table->of[pe], memory_order_acquire) : NULL;

    if (!b)
        return false;
    open_batch_enter(b);
    /* n is unsigned: a batch without records fails this, too */
    const bool fits = b->n - 1 < b->most - 1 && b->kind.bits == kind.bits;
    if (fits)
        open_batch_write(b, offset, value, bytes);
    open_batch_leave(b);
    return fits;
}

/* The same of a put: its source is host memory. */
static inline bool open_batch_takes_put(const void *source, uint64_t offset, size_t bytes)
{
    return open_batch_takes(offset, bytes) && !network_is_on_device(job->network, source, bytes);
}

/* A small put, or an update without an old value: a record, or else a request of its own. `request`
 * has the fields that network_post wants. */
gshmem_status_t open_batch_post(struct network *n, struct pending *p,
                                struct transport_request *request, const char *call);

/* A small put that open_batch_takes_put: a record, if a batch is open. */
gshmem_status_t open_batch_post_put(struct pending *p, int pe, unsigned segment, uint64_t offset,
                                    const void *source, size_t bytes, const char *call);
static inline gshmem_status_t open_batch_put(struct pending *p, int pe, unsigned segment,
                                             uint64_t offset, const void *source, size_t bytes,
                                             const char *call)
{
    const union batch_kind kind = batch_kind_of(TRANSPORT_PUT, segment, 0, 0, offset, bytes);

    return GSHMEM_LIKELY(open_batch_add(p, pe, kind, offset, source, bytes))
               ? GSHMEM_OK
               : open_batch_post_put(p, pe, segment, offset, source, bytes, call);
}

/* The context ends, and has nothing in flight. */
void open_batches_free(struct pending *p);

#endif

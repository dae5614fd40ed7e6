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
 * The fast path is inline: it enters the batch, writes a record and returns. The thread that began
 * the batch owns it, and enters without an atomic step; other threads that post it, or add to it,
 * end that first (biased_lock.h). An open batch has a flight of its context since its first record,
 * so that a quiet, of a kernel too, waits for it. */
#ifndef GSHMEM_RUNTIME_NETWORK_OPEN_BATCHES_H
#define GSHMEM_RUNTIME_NETWORK_OPEN_BATCHES_H

#include <string.h>

#include "gshmem/context.h"
#include "runtime/base/biased_lock.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "transport/batch.h"

enum {
    OPEN_BATCH_BYTES = TRANSPORT_COPIED, /* of records: the transport copies them */
    OPEN_BATCHES_MOST = 1024,            /* of all contexts, which take 4 MiB */
    OPEN_BATCH_ELEMENT_MOST = BATCH_ELEMENT_MOST,
    /* After a thread has ended another one's ownership, so many records are written with the lock.
     * Then what was saved before and what it cost to end it are of the same size. */
    OPEN_BATCH_UNOWNED = 2048,
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
    /* What a thread that adds a record needs: one line of a cache. The fields behind the lock
     * belong to who has it. A thread that has it waits for nothing; the network's lock is taken
     * before it. */
    _Alignas(64) struct biased_lock lock;
    uint8_t shift;     /* 1 << shift bytes are an element */
    uint64_t call;     /* open_batch_call of operations that `object` and `last` are good for */
    char *fill, *full; /* where the next record goes, and where there is no room. They are equal
                          if the batch is not open. Only the holder of the network's lock opens
                          and closes it */
    uintptr_t object;  /* this PE's address of element 0, */
    uint64_t last;     /* and the number of the last element that there is */
    union batch_kind kind;
    char *records;     /* while it is open. It belongs to the holder of the network's lock, as: */
    struct network *network;
    struct landing landing; /* of all requests that are in flight */
    struct pending *pending;
    int pe;
    uint32_t flying;       /* requests in flight, posted because of this record */
    bool is_due;           /* it is in the list network.due */
    uint32_t epoch;        /* the fences before its first record */
    uint32_t unowned;      /* so many records are written before a thread may own it again */
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

/* Enters it as the owner, which *me is then, or else by its lock. False: another thread owns it. */
static inline bool open_batch_enter(struct open_batch *b, struct biased_thread **me)
{
    *me = biased_lock_enter(&b->lock);
    return *me || biased_lock_take(&b->lock);
}

static inline void open_batch_leave(struct open_batch *b, struct biased_thread *me)
{
    if (me)
        biased_lock_leave(me);
    else
        biased_lock_give(&b->lock);
}

/* The next record has this number; what it returns is where the value goes. There is room for 8
 * bytes more than the records take. */
static inline char *open_batch_next(struct open_batch *b, uint32_t number, size_t bytes)
{
    char *record = b->fill;

    batch_put_number(record, number);
    b->fill = record + BATCH_NUMBER_BYTES + bytes;
    return record + BATCH_NUMBER_BYTES;
}

static inline void open_batch_copy(char *to, const void *value, size_t bytes)
{
    if (GSHMEM_LIKELY(bytes == 8))
        memcpy(to, value, 8);
    else if (bytes == 4)
        memcpy(to, value, 4);
    else
        memcpy(to, value, bytes);
}

/* `bytes` is a power of two. */
static inline void open_batch_write(struct open_batch *b, uint64_t offset, const void *value,
                                    size_t bytes)
{
    const uint32_t number = (uint32_t)(offset >> __builtin_ctzll(bytes));

    open_batch_copy(open_batch_next(b, number, bytes), value, bytes);
}

/* Whether an operation of so many bytes at that offset can be a record. */
static inline bool open_batch_takes(uint64_t offset, size_t bytes)
{
    return bytes - 1 < OPEN_BATCH_ELEMENT_MOST && (bytes & (bytes - 1)) == 0 &&
           offset >> __builtin_ctzll(bytes) <= UINT32_MAX;
}

/* The batch to that PE, of those of a context; NULL: there is none yet. */
static inline struct open_batch *open_batch_of(_Atomic(struct open_batch_table *) const *batches,
                                               int pe)
{
    /* acquire, both: pair with the releases in open_batch_make */
    const struct open_batch_table *table = atomic_load_explicit(batches, memory_order_acquire);

    return table ? atomic_load_explicit(&table->of[pe], memory_order_acquire) : NULL;
}

/* Adds a record to the open batch to that PE, if there is one of that kind and it has room. */
static inline bool open_batch_add(struct pending *p, int pe, union batch_kind kind, uint64_t offset,
                                  const void *value, size_t bytes)
{
    struct open_batch *b = open_batch_of(&p->batches, pe);
    struct biased_thread *me;

    if (!b || !open_batch_enter(b, &me))
        return false;
    const bool fits = b->fill != b->full && b->kind.bits == kind.bits;
    if (fits)
        open_batch_write(b, offset, value, bytes);
    open_batch_leave(b, me);
    return fits;
}

/* ---- The shortest path: the same calls, on objects of the heap, one after the other ---- */

/* A kind of calls. What the batch's first operation was checked for holds for all calls of the same
 * kind on elements of the heap. */
static inline uint64_t open_batch_call_of_update(enum gshmem_amo op, int type)
{
    return (uint64_t)(uint32_t)type << 32 | (uint32_t)op;
}

static inline uint64_t open_batch_call_of_put(size_t bytes)
{
    return UINT64_C(1) << 63 | bytes;
}

/* Once this thread has entered the batch: where the value goes; NULL: the operation is another
 * case. One comparison tells whether the object is in the heap, and how it is aligned: what is left
 * of the division by the size becomes the highest bits. */
static inline char *open_batch_element(struct open_batch *b, uint64_t call, const void *object)
{
    const uint64_t offset = (uintptr_t)object - b->object,
                   number = offset >> b->shift | offset << (-b->shift & 63);

    if (GSHMEM_UNLIKELY(b->call != call || number > b->last || b->fill == b->full))
        return NULL;
    return open_batch_next(b, (uint32_t)number, (size_t)1 << b->shift);
}

static inline bool open_batch_write_update(struct open_batch *b, enum gshmem_amo op, int type,
                                           const void *object, uint64_t operand)
{
    char *value = open_batch_element(b, open_batch_call_of_update(op, type), object);

    if (GSHMEM_UNLIKELY(!value))
        return false;
    operand = htole64(operand);
    memcpy(value, &operand, sizeof operand); /* one of 4 bytes leaves the rest to the next record */
    return true;
}

static inline bool open_batch_write_put(struct open_batch *b, const void *object,
                                        const void *source, size_t bytes)
{
    char *value = open_batch_element(b, open_batch_call_of_put(bytes), object);

    if (GSHMEM_UNLIKELY(!value))
        return false;
    open_batch_copy(value, source, bytes);
    return true;
}

/* By the thread that owns the batch. False: it is another case. b may be NULL. */
static inline bool open_batch_add_update(struct open_batch *b, enum gshmem_amo op, int type,
                                         const void *object, uint64_t operand)
{
    struct biased_thread *me;

    if (GSHMEM_UNLIKELY(!b || !(me = biased_lock_enter(&b->lock))))
        return false;
    const bool fits = open_batch_write_update(b, op, type, object, operand);
    biased_lock_leave(me);
    return fits;
}

static inline bool open_batch_add_put(struct open_batch *b, const void *object, const void *source,
                                      size_t bytes)
{
    struct biased_thread *me;

    /* with more bytes the call would be another one's */
    if (GSHMEM_UNLIKELY(!b || !source || bytes > OPEN_BATCH_ELEMENT_MOST ||
                        !(me = biased_lock_enter(&b->lock))))
        return false;
    const bool fits = open_batch_write_put(b, object, source, bytes);
    biased_lock_leave(me);
    return fits;
}

/* The same while no thread owns it. */
static inline bool open_batch_share_update(struct open_batch *b, enum gshmem_amo op, int type,
                                           const void *object, uint64_t operand)
{
    if (!b || !biased_lock_take(&b->lock))
        return false;
    const bool fits = open_batch_write_update(b, op, type, object, operand);
    biased_lock_give(&b->lock);
    return fits;
}

static inline bool open_batch_share_put(struct open_batch *b, const void *object,
                                        const void *source, size_t bytes)
{
    if (!b || !source || bytes > OPEN_BATCH_ELEMENT_MOST || !biased_lock_take(&b->lock))
        return false;
    const bool fits = open_batch_write_put(b, object, source, bytes);
    biased_lock_give(&b->lock);
    return fits;
}

/* The same of a put: its source is host memory. */
static inline bool open_batch_takes_put(const void *source, uint64_t offset, size_t bytes)
{
    return open_batch_takes(offset, bytes) && !network_is_on_device(job->network, source, bytes);
}

/* A small put, or an update without an old value, where network_opens_batches: a record, or else a
 * request of its own. `request` has the fields that network_post wants. */
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

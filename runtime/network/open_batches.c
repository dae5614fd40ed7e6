#include "runtime/network/open_batches.h"

#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/memory/map.h"
#include "runtime/network/parts.h"

enum {
    /* A thread that fills batches makes progress itself after so many bytes of them. It leaves them
     * in the transport's queue until then, which sends them with one call of the system. */
    POSTED_BETWEEN_ROUNDS = 8 * OPEN_BATCH_BYTES / 8 * 7, /* eight that are nearly full */
};

/* ---- Lists ---- */

static void list_open(struct network *n, struct open_batch *b)
{
    b->next_of_pe = n->open_to[b->pe];
    n->open_to[b->pe] = b;
    b->previous = NULL;
    if ((b->next = n->open))
        b->next->previous = b;
    n->open = b;
}

static void unlist_open(struct network *n, struct open_batch *b)
{
    struct open_batch **at = &n->open_to[b->pe];

    while (*at != b)
        at = &(*at)->next_of_pe;
    *at = b->next_of_pe;
    if (b->next)
        b->next->previous = b->previous;
    if (b->previous)
        b->previous->next = b->next;
    else
        n->open = b->next;
    for (at = &n->due; b->is_due && *at; at = &(*at)->next_due) {
        if (*at == b) {
            *at = b->next_due;
            b->is_due = false;
            break;
        }
    }
}

/* If nothing is in flight that it waits for. Returns whether it was not in the list before. */
static bool list_due(struct network *n, struct open_batch *b)
{
    if (b->is_due || b->flying || !b->flight)
        return false;
    b->is_due = true;
    b->next_due = n->due;
    n->due = b;
    return true;
}

/* Called by the transport, with the network's lock held. The batch is not posted here, since
 * the transport may be in the middle of something. */
static void open_batch_landed(struct landing *l, gshmem_status_t status)
{
    struct open_batch *b = (struct open_batch *)((char *)l - offsetof(struct open_batch, landing));

    (void)status; /* it is the flight's */
    b->flying--;
    if (list_due(b->network, b))
        b->network->due_anew = true;
}

/* ---- Memory for records ---- */

union record_memory {
    union record_memory *next;
    char bytes[OPEN_BATCH_BYTES + sizeof(uint64_t)]; /* open_batch_next */
};

/* NULL: there is none, or as many batches are open as may be. */
static union record_memory *records_take(struct network *n)
{
    union record_memory *m = n->spare_records;

    if (m)
        n->spare_records = m->next;
    else if (n->open_batches == OPEN_BATCHES_MOST || !(m = malloc(sizeof *m)))
        return NULL;
    n->open_batches++;
    return m;
}

static void records_give(struct network *n, union record_memory *m)
{
    m->next = n->spare_records;
    n->spare_records = m;
    n->open_batches--;
}

/* ---- Posting, with the network's lock held ---- */

static uint32_t batch_record_size(const struct open_batch *b)
{
    return BATCH_NUMBER_BYTES + b->kind.element;
}

/* Returns how many records it has. */
static uint32_t close_batch(struct open_batch *b)
{
    struct biased_thread *me = batch_enter(b);
    const uint32_t records = (uint32_t)(b->fill - b->records) / batch_record_size(b);

    b->fill = b->full = NULL;
    open_batch_leave(b, me);
    b->unowned -= records < b->unowned ? records : b->unowned;
    return records;
}

static void reopen_batch(struct open_batch *b, uint32_t records)
{
    const uint32_t each = batch_record_size(b);
    struct biased_thread *me = batch_enter(b);

    b->fill = b->records + records * each;
    b->full = b->records + OPEN_BATCH_BYTES / each * each;
    open_batch_leave(b, me);
}

/* The operations are counted, and not the batch. */
static void count_records(struct network *n, const struct transport_request *batch, bool internal)
{
    const enum stats_kind kind = internal                       ? STATS_INTERNAL
                                 : batch->each == TRANSPORT_PUT ? STATS_PUT
                                                                : STATS_ATOMIC;

    stats_add_operations(n->counts, kind, STATS_NETWORK, batch->element_bytes, batch->elements);
    stats_add_peer(n->counts, batch->pe, batch->elements, batch->elements * batch->element_bytes);
}

/* Posts an open batch. TRANSPORT_FULL: it stays open, and is posted when something has completed.
 * Any other failure is its flight's. Once the batch has been posted, its flight may be over, and
 * with it the context: nothing of the batch is used any more. */
static gshmem_status_t open_batch_hand_over(struct network *n, struct open_batch *b, unsigned flags)
{
    const bool internal = b->pending->internal;
    const uint32_t records = close_batch(b),
                   fences = atomic_load_explicit(&n->fences, memory_order_relaxed);
    union record_memory *memory = (union record_memory *)(void *)b->records;
    struct flight *flight = b->flight;
    struct transport_request request = {
        .kind = TRANSPORT_BATCH,
        /* one that began before a fence stays behind what was posted before that */
        .flags = (uint8_t)((b->epoch == fences ? TRANSPORT_LOOSE : 0) | flags),
        .each = b->kind.each,
        .amo = b->kind.amo,
        .type = b->kind.type,
        .pe = b->pe,
        .segment = b->kind.segment,
        .offset = b->kind.rest,
        .local = b->records,
        .bytes = (uint64_t)records * (BATCH_NUMBER_BYTES + b->kind.element),
        .elements = records,
        .element_bytes = b->kind.element,
        .epoch = fences,
    };

    unlist_open(n, b);
    b->records = NULL;
    b->flight = NULL; /* while the transport may call open_batch_landed */
    b->flying++;
    const gshmem_status_t status = network_post_flight(n, &request, flight, &b->landing);
    if (status == TRANSPORT_FULL) {
        b->flying--;
        b->flight = flight;
        b->records = memory->bytes;
        list_open(n, b);
        reopen_batch(b, records);
        list_due(n, b);
        return TRANSPORT_FULL;
    }
    records_give(n, memory);
    if (status) {
        b->flying--;
        network_fail_flight(flight, status);
    } else {
        n->batched_bytes += request.bytes;
        count_records(n, &request, internal);
    }
    return GSHMEM_OK;
}

gshmem_status_t open_batches_post_to(struct network *n, int pe)
{
    gshmem_status_t status = GSHMEM_OK;

    while (n->open_to[pe] && !status)
        status = open_batch_hand_over(n, n->open_to[pe], TRANSPORT_MORE);
    return status;
}

void open_batches_post_due(struct network *n)
{
    struct open_batch *b, *next;

    n->due_anew = false;
    batches_disown(n, true);
    for (b = n->due; b; b = next) {
        next = b->next_due;
        open_batch_hand_over(n, b, 0);
    }
}

void open_batches_post_all(struct network *n)
{
    struct open_batch *b, *next;

    batches_disown(n, false);
    for (b = n->open; b; b = next) {
        next = b->next;
        open_batch_hand_over(n, b, 0);
    }
}

bool open_batches_are_free(const struct network *n)
{
    bool free = true;

    for (const struct open_batch *b = n->open; b; b = b->next)
        free &= biased_lock_is_free(&b->lock);
    /* This thread may be about to find out that a batch is not its own, or not open any more. */
    for (const struct biased_thread *t = n->batch_owners; t; t = t->next)
        free &= atomic_load_explicit(&t->self, memory_order_relaxed) != biased_self() ||
                !atomic_load_explicit(&t->within, memory_order_relaxed);
    return free;
}

void open_batches_end(struct network *n)
{
    while (n->open) {
        struct open_batch *b = n->open;
        struct flight *flight = b->flight;
        close_batch(b);
        b->flight = NULL;
        unlist_open(n, b);
        records_give(n, (union record_memory *)(void *)b->records);
        b->records = NULL;
        network_fail_flight(flight, GSHMEM_ERR_ABORTED);
    }
    while (n->spare_records) {
        union record_memory *m = n->spare_records;
        n->spare_records = m->next;
        free(m);
    }
    biased_threads_free(&n->batch_owners);
    free(n->open_to);
    n->open_to = NULL;
}

/* ---- Adding, by a thread of the program ---- */

/* With the network's lock held: the record of that PE; NULL: out of memory, and operations are
 * requests of their own. */
static struct open_batch *open_batch_make(struct network *n, struct pending *p, int pe)
{
    const size_t pes = (size_t)n->config.n_pes;
    struct open_batch_table *table = atomic_load_explicit(&p->batches, memory_order_relaxed);
    struct open_batch *b;

    if (!n->open_to && !(n->open_to = calloc(pes, sizeof *n->open_to)))
        return NULL;
    if (!table) {
        if (!(table = calloc(1, sizeof *table + pes * sizeof table->of[0])))
            return NULL;
        table->n_pes = n->config.n_pes;
        /* release, and below: pair with the acquires in open_batch_of */
        atomic_store_explicit(&p->batches, table, memory_order_release);
        atomic_store_explicit(p->batches_copy, table, memory_order_release);
    }
    if ((b = atomic_load_explicit(&table->of[pe], memory_order_relaxed)) ||
        !(b = aligned_alloc(_Alignof(struct open_batch), sizeof *b)))
        return b;
    *b = (struct open_batch){
        .network = n, .pending = p, .pe = pe, .landing = {.landed = open_batch_landed}};
    atomic_store_explicit(&table->of[pe], b, memory_order_release);
    return b;
}

static union batch_kind kind_of_request(const struct transport_request *r, size_t bytes)
{
    return batch_kind_of(r->kind, r->segment, r->amo, r->type, r->offset, bytes);
}

/* What the shortest path compares with, if the element is in the heap. A view without a heap makes
 * each call take the long path, where it is checked; so does a put whose source may be memory of a
 * device. */
static void batch_name_call(struct open_batch *b, const struct transport_request *r, size_t bytes)
{
    const struct gshmem_ctx *view = b->pending->view;
    const bool put = r->kind == TRANSPORT_PUT;
    const uint64_t elements = (view->heap.bytes - b->kind.rest) / bytes;

    b->shift = (uint8_t)__builtin_ctzll(bytes);
    b->call = put ? open_batch_call_of_put(bytes) : open_batch_call_of_update(r->amo, r->type);
    b->object = view->heap.base + b->kind.rest;
    b->last = elements - 1 < UINT32_MAX ? elements - 1 : UINT32_MAX;
    if (r->segment != SEGMENT_HEAP || !view->heap.bytes || (put && b->network->config.device))
        b->call = UINT64_MAX; /* that of no call */
}

/* With the network's lock held, while something is in flight to the PE: begins a batch with this
 * operation. False: there is no memory for it. */
static bool open_batch_begin(struct network *n, struct open_batch *b,
                             const struct transport_request *r, const void *value, size_t bytes)
{
    union record_memory *memory = records_take(n);

    if (!memory)
        return false;
    if (!(b->flight = network_take_off(n, b->pending, b->pe))) {
        records_give(n, memory);
        return false;
    }
    b->records = memory->bytes;
    b->epoch = atomic_load_explicit(&n->fences, memory_order_relaxed);
    struct biased_thread *me = batch_enter(b);
    b->kind = kind_of_request(r, bytes);
    batch_name_call(b, r, bytes);
    b->fill = b->records;
    b->full = b->records + OPEN_BATCH_BYTES / batch_record_size(b) * batch_record_size(b);
    open_batch_write(b, r->offset, value, bytes);
    if (!me)
        batch_own(n, b);
    open_batch_leave(b, me);
    list_open(n, b);
    return true;
}

/* Adds the operation to the open batch, if it belongs there. */
static bool open_batch_join(struct open_batch *b, const struct transport_request *r,
                            const void *value, size_t bytes)
{
    return open_batch_add(b->pending, b->pe, kind_of_request(r, bytes), r->offset, value, bytes);
}

/* An operation that is to be a record. */
struct small {
    struct open_batch *b;
    const struct transport_request *request;
    const void *value;
    size_t bytes;
    bool is_record; /* it has become one of the open batch */
    bool posted;    /* a batch was full, or of another kind, and has been posted */
};

/* With the network's lock held. TRANSPORT_FULL: it does not belong to the open batch, and there is
 * no room to post that. */
static gshmem_status_t open_batch_try(struct network *n, void *of)
{
    struct small *s = of;
    gshmem_status_t status = GSHMEM_OK;

    if (!s->b->flight)
        return GSHMEM_OK;
    batch_disown(s->b);
    s->is_record = open_batch_join(s->b, s->request, s->value, s->bytes);
    if (!s->is_record && !(status = open_batch_hand_over(n, s->b, TRANSPORT_MORE)))
        s->posted = true;
    return status;
}

/* With the network's lock held. s->is_record is false if it has to be a request of its own. */
static gshmem_status_t open_batch_make_record(struct network *n, struct small *s, const char *call)
{
    gshmem_status_t status = open_batch_try(n, s);

    if (status == TRANSPORT_FULL)
        status = network_when_there_is_room(n, s->request, call, open_batch_try, s);
    if (!status && !s->is_record && s->b->flying)
        s->is_record = open_batch_begin(n, s->b, s->request, s->value, s->bytes);
    return status;
}

gshmem_status_t open_batch_post(struct network *n, struct pending *p,
                                struct transport_request *request, const char *call)
{
    const bool put = request->kind == TRANSPORT_PUT;
    struct small s = {.request = request,
                      .value = put ? request->local : &request->operand,
                      .bytes = put ? request->bytes : atomic_type_bytes(request->type)};
    gshmem_status_t status = network_may_post(n, request->pe, call);

    if (status)
        return status;
    network_enter(n);
    if (!(s.b = open_batch_make(n, p, request->pe)))
        return network_post_held(n, p, request, NULL, call);
    status = open_batch_make_record(n, &s, call);
    if (!status && !s.is_record) {
        s.b->flying++;
        if (!(status = network_post_held(n, p, request, &s.b->landing, call)))
            return GSHMEM_OK;
        mutex_take(&n->lock);
        open_batch_landed(&s.b->landing, status); /* it was not posted */
    }
    if (n->due)
        open_batches_post_due(n);
    const bool drives = s.posted && n->batched_bytes >= POSTED_BETWEEN_ROUNDS;
    if (drives)
        n->batched_bytes = 0;
    mutex_give(&n->lock);
    if (drives)
        network_drive_on(n);
    return status;
}

gshmem_status_t open_batch_post_put(struct pending *p, int pe, unsigned segment, uint64_t offset,
                                    const void *source, size_t bytes, const char *call)
{
    struct transport_request put = {
        .kind = TRANSPORT_PUT,
        .flags = TRANSPORT_LOOSE | TRANSPORT_MORE,
        .pe = pe,
        .segment = (uint8_t)segment,
        .offset = offset,
        .local = (void *)source,
        .bytes = bytes,
    };

    return open_batch_post(job->network, p, &put, call);
}

/* ---- The end of a context ---- */

void open_batches_free(struct pending *p)
{
    struct open_batch_table *table = atomic_load_explicit(&p->batches, memory_order_relaxed);

    for (int pe = 0; table && pe < table->n_pes; pe++)
        free(atomic_load_explicit(&table->of[pe], memory_order_relaxed));
    free(table);
    atomic_store_explicit(&p->batches, NULL, memory_order_relaxed);
}

/* Elements of indexed operations on their way to other nodes and back, up to 4,096 in a request, or
 * as many as the transport takes.
 *
 * A batch takes its memory from a window: its records, and for a get the elements that come back
 * and their places. A window is used again when all its batches have landed, so that what is in
 * flight takes at most WINDOWS * WINDOW_BYTES of memory. */
#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mutex.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/operations/indexed.h"
#include "runtime/where/record.h"
#include "transport/batch.h"

enum { WINDOW_BYTES = 1 << 20, WINDOWS = 4 };

struct window {
    _Atomic uint32_t uses; /* batches that have not landed, and threads that fill one */
    size_t used;           /* bytes */
    char *memory;          /* NULL before its first use */
};

struct indexed_windows {
    struct mutex lock; /* covers `used`, and `uses` as it leaves 0 */
    unsigned open;     /* the one that batches take memory of */
    struct window window[WINDOWS];
};

struct batch {
    struct landing landing; /* first */
    struct window *window;
    uint32_t n;
    uint32_t element;
    const uint32_t *order; /* places of elements that have come, in `to`; NULL: they are there */
    char *to;
    alignas(16) char data[]; /* the elements that come, places, records */
};

static_assert(sizeof(struct batch) + (size_t)BATCH_ELEMENTS_MOST *
                                         (2 * BATCH_ELEMENT_MOST + 2 * BATCH_NUMBER_BYTES) <=
                  WINDOW_BYTES,
              "each batch fits a window");

gshmem_status_t indexed_start(struct job *j)
{
    if (!(j->indexed = calloc(1, sizeof *j->indexed)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    return GSHMEM_OK;
}

void indexed_stop(struct job *j)
{
    for (int i = 0; j->indexed && i < WINDOWS; i++)
        free(j->indexed->window[i].memory);
    free(j->indexed);
}

/* ---- Windows ---- */

static bool window_fits(struct window *w, size_t bytes)
{
    /* acquire: pairs with the release in window_give: what has landed there was read */
    if (atomic_load_explicit(&w->uses, memory_order_acquire) == 0)
        w->used = 0;
    return w->used + bytes <= WINDOW_BYTES;
}

/* With the lock held: memory of the open window, or of one that is free; *full: there is none. */
static void *windows_take(struct indexed_windows *all, size_t bytes, struct window **out,
                          bool *full)
{
    unsigned tried = 0;

    while (tried < WINDOWS && !window_fits(&all->window[all->open], bytes)) {
        all->open = (all->open + 1) % WINDOWS;
        tried++;
    }
    struct window *w = &all->window[all->open];
    if ((*full = tried == WINDOWS) || (!w->memory && !(w->memory = malloc(WINDOW_BYTES))))
        return NULL;
    void *at = w->memory + w->used;
    w->used += bytes;
    atomic_fetch_add_explicit(&w->uses, 1, memory_order_relaxed);
    *out = w;
    return at;
}

static void *indexed_window_try(struct indexed_windows *all, size_t bytes, struct window **out,
                                bool *full)
{
    mutex_take(&all->lock);
    void *at = windows_take(all, bytes, out, full);
    mutex_give(&all->lock);
    return at;
}

static void window_give(struct window *w)
{
    /* release: pairs with the acquire in window_fits */
    atomic_fetch_sub_explicit(&w->uses, 1, memory_order_release);
}

static void show_window(const struct wait *w, struct where_wait *record)
{
    record->kind = WHERE_ROOM;
    snprintf(record->text, sizeof record->text,
             "room for more elements: those of earlier indexed operations have not arrived");
    (void)w;
}

/* Memory for a batch; where there is none, waits until a window's batches have landed. */
static gshmem_status_t indexed_window_take(const char *call, size_t bytes, struct window **out,
                                           struct batch **at)
{
    struct indexed_windows *all = job->indexed;
    const size_t rounded =
        (bytes + alignof(struct batch) - 1) / alignof(struct batch) * alignof(struct batch);
    gshmem_status_t status = GSHMEM_OK;
    bool full;

    if ((*at = indexed_window_try(all, rounded, out, &full)))
        return GSHMEM_OK;
    if (full) {
        struct wait w;
        wait_begin(&w, call, WAIT_FOR_NETWORK);
        wait_for_object(&w, show_window, NULL);
        while (!status && full && !(*at = indexed_window_try(all, rounded, out, &full)))
            status = wait_slowly(&w);
        wait_end(&w);
    }
    if (!status && !*at)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for elements in flight", call);
    return status;
}

/* ---- Batches ---- */

static inline __attribute__((always_inline)) void batch_spread(const struct batch *b, size_t bytes)
{
    for (uint32_t k = 0; k < b->n; k++)
        memcpy(b->to + b->order[k] * bytes, b->data + k * bytes, bytes);
}

/* Called with the network's lock held. */
static void batch_landed(struct landing *l, gshmem_status_t status)
{
    struct batch *b = (struct batch *)l;

    if (!status && b->order) {
        switch (b->element) {
        case 4:
            batch_spread(b, 4);
            break;
        case 8:
            batch_spread(b, 8);
            break;
        default:
            batch_spread(b, b->element);
        }
    }
    window_give(b->window);
}

static inline __attribute__((always_inline)) void
fill_records(const struct indexed *ix, const struct elements *e, char *record, size_t value)
{
    for (size_t k = 0; k < e->n; k++, record += BATCH_NUMBER_BYTES + value) {
        const size_t i = elements_at(e, k);
        batch_put_number(record, (uint32_t)ix->index[i]);
        memcpy(record + BATCH_NUMBER_BYTES, ix->local + i * value, value);
    }
}

static void indexed_fill(const struct indexed *ix, const struct elements *e, char *record)
{
    switch (ix->each == TRANSPORT_GET ? 0 : ix->element) {
    case 0:
        fill_records(ix, e, record, 0);
        break;
    case 4:
        fill_records(ix, e, record, 4);
        break;
    case 8:
        fill_records(ix, e, record, 8);
        break;
    default:
        fill_records(ix, e, record, ix->element);
    }
}

/* One batch. Elements that come back in the order of dest go straight there. */
static gshmem_status_t indexed_post_one(const struct indexed *ix, const struct location *l,
                                        const struct elements *e)
{
    const size_t record = batch_record_bytes(ix->each, ix->element);
    const bool spread = ix->each == TRANSPORT_GET && e->order;
    const size_t come = spread ? e->n * ix->element : 0, places = spread ? e->n * 4 : 0;
    const size_t aligned = (come + 3) / 4 * 4;
    struct window *w;
    struct batch *b;
    gshmem_status_t status =
        indexed_window_take(ix->call, sizeof *b + aligned + places + e->n * record, &w, &b);

    if (status)
        return status;
    *b = (struct batch){.landing = {batch_landed},
                        .window = w,
                        .n = (uint32_t)e->n,
                        .element = (uint32_t)ix->element,
                        .to = ix->local + e->from * ix->element};
    if (spread)
        b->order = memcpy(b->data + aligned, e->order, places);
    char *records = b->data + aligned + places;
    indexed_fill(ix, e, records);
    struct transport_request request = {
        .kind = TRANSPORT_BATCH,
        .flags = TRANSPORT_MORE | TRANSPORT_LOOSE | TRANSPORT_KEPT,
        .each = (uint8_t)ix->each,
        .amo = GSHMEM_AMO_ADD,
        .type = (uint8_t)ix->type,
        .pe = l->pe,
        .segment = l->segment,
        .offset = l->offset,
        .local = records,
        .bytes = e->n * record,
        .elements = e->n,
        .element_bytes = ix->element,
        .old = ix->each != TRANSPORT_GET ? NULL : (uint64_t *)(void *)(spread ? b->data : b->to),
    };
    if ((status = network_post_landing(job->network, ix->pending, &request, &b->landing, ix->call)))
        window_give(w);
    return status;
}

size_t indexed_batch_most(const struct indexed *ix)
{
    const size_t most =
        network_batch_bytes(job->network, ix->each) / batch_record_bytes(ix->each, ix->element);

    if (ix->most > UINT32_MAX ||
        network_is_on_device(job->network, ix->local, gshmem_bytes(ix->n, ix->element)))
        return 0;
    return most < BATCH_ELEMENTS_MOST ? most : BATCH_ELEMENTS_MOST;
}

gshmem_status_t indexed_post(const struct indexed *ix, const struct location *l,
                             const struct elements *e)
{
    gshmem_status_t status = GSHMEM_OK;

    for (size_t at = 0; at < e->n && !status; at += ix->batch_most) {
        const size_t left = e->n - at;
        const struct elements part = {
            .from = e->order ? e->from : e->from + at,
            .order = e->order ? e->order + at : NULL,
            .n = left < ix->batch_most ? left : ix->batch_most,
        };
        status = indexed_post_one(ix, l, &part);
    }
    return status;
}

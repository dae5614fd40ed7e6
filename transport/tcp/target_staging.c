/* Requests of other PEs that device memory has a part in: they are deferred, in their order.
 *
 * The data of a put goes from the socket into a staging buffer, and from there to the device
 * while the next is received. What arrived after it (its signal, an atomic, a get, a put to host
 * memory) takes effect when those copies are done, and its response is sent then. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "transport/segment.h"
#include "transport/tcp/target.h"

struct deferred {
    struct staged *landing; /* a chunk of a put's data on its way to the device; NULL: a request */
    struct request_frame f;
    gshmem_status_t failure;
    uint64_t begun;      /* bytes of a get's data whose copies have begun, */
    uint64_t queued;     /* and that have been queued */
    struct staged *flag; /* a signal on its way to the device */
    uint64_t update;     /* the device's name for an atomic, or a signal that adds; 0: none runs */
};

struct deferred_list {
    uint32_t first, end;         /* counted for ever */
    struct staged_list reading;  /* gets' data on its way from the device, in order */
    gshmem_status_t put_failure; /* of a chunk, or part, of the put that ends next */
    bool updating;               /* the device carries out an atomic of the first */
    struct deferred deferred[DEFERRED_MOST];
};

static struct deferred *deferred_at(struct deferred_list *e, uint32_t at)
{
    return &e->deferred[at % DEFERRED_MOST];
}

static struct deferred *deferred_append(struct tcp *t, struct target *from)
{
    if (!from->deferred) {
        if (!(from->deferred = calloc(1, sizeof *from->deferred)))
            return NULL;
        from->deferred->first = from->deferred->end = count_first();
    }
    target_stage(t, from);
    from->deferred_count++;
    struct deferred *e = deferred_at(from->deferred, from->deferred->end++);
    *e = (struct deferred){.landing = NULL};
    return e;
}

gshmem_status_t deferred_add(struct tcp *t, struct target *from, const struct request_frame *f,
                             gshmem_status_t failure)
{
    struct deferred *e = deferred_append(t, from);

    if (!e)
        return t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for requests of PE %d",
                              from->pe);
    e->f = *f;
    e->failure = failure;
    return GSHMEM_OK;
}

/* ---- A put's data ---- */

struct staged *deferred_buffer(struct tcp *t, struct target *from)
{
    struct staged *b = deferred_has_room(from)
                           ? staging_take(&t->staging, STAGING_IN, from->data.left, NULL)
                           : NULL;

    target_stage(t, from); /* to continue with it, or to try again */
    return b;
}

void deferred_push(struct tcp *t, struct target *from, struct staged *b, size_t bytes)
{
    struct deferred *e = NULL;

    if (!from->data.put_failure &&
        !(from->data.put_failure = staging_begin(b, from->data.at, b->at, bytes)) &&
        !(e = deferred_append(t, from)))
        from->data.put_failure = GSHMEM_ERR_MEMORY;
    if (e) {
        e->landing = b;
        return;
    }
    struct staged_list one = {b, b};
    staging_abandon(&one);
}

/* ---- One request ---- */

static bool deferred_is_of_device(const struct tcp *t, unsigned segment)
{
    return t->config.segment[segment].of_device;
}

/* Has the device carry out an atomic. Returns whether that is done, or has failed (e->failure).
 * It may take long: progress does not wait, and serves other streams meanwhile. */
static bool deferred_update(struct tcp *t, struct target *from, struct deferred *e,
                            const struct device_update *u, uint64_t *old)
{
    struct device *d = t->config.device;

    if (!e->update) {
        if ((e->failure = d->ops->update_start(d, u, &e->update)))
            return true;
        t->updates += e->update != 0;
    }
    if (!e->update || !d->ops->update_done(d, e->update, old, &e->failure)) {
        from->deferred->updating = true;
        tcp_start_ticking(t);
        return false;
    }
    t->updates--;
    e->update = 0;
    return true;
}

bool deferred_updating(const struct target *from)
{
    return from->deferred && from->deferred->updating;
}

/* Stores a signal in device memory by a copy of its 8 bytes. False: that is under way, or waits. */
static bool set_flag(struct tcp *t, struct deferred *e, char *at)
{
    if (e->flag) {
        if (e->flag->copying)
            return false;
        e->failure = e->flag->copied;
        staging_give(e->flag);
        e->flag = NULL;
        return true;
    }
    if (!(e->flag = staging_take(&t->staging, STAGING_IN, sizeof e->f.b, NULL))) {
        e->failure = t->staging.failed ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
        return e->failure;
    }
    memcpy(e->flag->at, &e->f.b, sizeof e->f.b);
    e->failure = staging_begin(e->flag, at, e->flag->at, sizeof e->f.b);
    if (!e->failure)
        return false;
    staging_give(e->flag);
    e->flag = NULL;
    return true;
}

static bool signal_device(struct tcp *t, struct target *from, struct deferred *e)
{
    char *at = segment_at(&t->config, e->f.signal_segment, e->f.a, 8);
    const struct device_update add = {
        .op = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .at = at, .operand = e->f.b};
    uint64_t old;

    if (!at && !e->update && !e->flag) /* the heap has shrunk meanwhile */
        e->failure = GSHMEM_ERR_NOT_SYMMETRIC;
    else if (e->f.signal_op == GSHMEM_SIGNAL_SET)
        return set_flag(t, e, at);
    else
        return deferred_update(t, from, e, &add, &old);
    return true;
}

static void respond_failure(struct target *from, gshmem_status_t failure)
{
    from->responded = ++from->executed;
    target_respond(from, RESPONSE_FAILED, from->executed, failure);
}

/* All data of a put has been stored, or has failed. A part that fails takes the rest with it. */
static bool finish_put(struct tcp *t, struct target *from, struct deferred *e)
{
    struct deferred_list *all = from->deferred;

    if (!e->failure)
        e->failure = all->put_failure;
    if (!e->failure && e->f.signal_op && deferred_is_of_device(t, e->f.signal_segment)) {
        if (!signal_device(t, from, e))
            return false;
        if (!e->failure)
            e->f.signal_op = 0; /* done */
    }
    all->put_failure = e->f.more ? e->failure : GSHMEM_OK;
    if (e->failure)
        respond_failure(from, e->failure);
    else
        target_end_put(t, from, &e->f);
    return true;
}

static bool is_read_from_device(const struct tcp *t, const struct deferred *e)
{
    return !e->landing && e->f.kind == FRAME_GET && e->f.bytes &&
           deferred_is_of_device(t, e->f.segment);
}

/* Begins to copy the data of gets, as far as nothing before them changes it. */
static bool begin_reading(struct tcp *t, struct target *from)
{
    struct deferred_list *all = from->deferred;
    bool some = false;

    for (uint32_t at = all->first; at != all->end; at++) {
        struct deferred *e = deferred_at(all, at);
        if (e->landing || (e->f.kind == FRAME_PUT && !e->f.signal_op))
            continue;
        if (!is_read_from_device(t, e))
            break;
        while (!e->failure && e->begun < e->f.bytes) {
            uint64_t left = e->f.bytes - e->begun;
            const char *source = segment_at(&t->config, e->f.segment, e->f.offset, e->f.bytes);
            struct staged *b = staging_take(&t->staging, STAGING_OUT, left, &from->held);
            if (!b && !t->staging.failed)
                return some;
            e->failure = !b        ? GSHMEM_ERR_MEMORY
                         : !source ? GSHMEM_ERR_NOT_SYMMETRIC
                                   : staging_begin(b, b->at, source + e->begun,
                                                   left < b->room ? (size_t)left : b->room);
            some = true;
            if (e->failure && b)
                staging_give(b);
            if (e->failure)
                break;
            b->number = at;
            e->begun += b->bytes;
            staged_append(&all->reading, b);
        }
    }
    return some;
}

static bool fail_get(struct target *from, struct deferred *e)
{
    struct deferred_list *all = from->deferred;
    struct staged_list rest = {NULL, NULL};

    while (all->reading.first && all->reading.first->number == all->first)
        staged_append(&rest, staged_remove(&all->reading));
    staging_abandon(&rest);
    respond_failure(from, e->failure);
    return true;
}

/* Queues the next chunk of a get's data; whether it was the last one. */
static bool read_device(struct target *from, struct deferred *e)
{
    struct deferred_list *all = from->deferred;
    struct staged *b = all->reading.first;
    bool ours = b && b->number == all->first;

    if (ours && !b->copying && b->copied)
        e->failure = b->copied;
    if (e->failure)
        return fail_get(from, e);
    if (!ours || b->copying || !target_has_room(from))
        return false;
    staged_remove(&all->reading);
    target_respond(from, RESPONSE_DATA, from->executed + 1, b->bytes);
    from->responded = from->executed;
    if (b->bytes <= COPY_MOST) {
        queue_add_copy(&from->out, b->at, b->bytes);
        e->queued += b->bytes;
        staging_give(b);
    } else {
        queue_add_reference(&from->out, b->at, b->bytes, staging_give, b);
        e->queued += b->bytes;
    }
    if (e->queued < e->f.bytes)
        return read_device(from, e);
    from->responded = ++from->executed;
    return true;
}

static bool deferred_atomic(struct tcp *t, struct target *from, struct deferred *e)
{
    char *at = segment_at(&t->config, e->f.segment, e->f.offset, atomic_type_bytes(e->f.type));
    const struct device_update update = {.op = (enum gshmem_amo)e->f.amo,
                                         .type = e->f.type,
                                         .at = at,
                                         .operand = e->f.a,
                                         .compare = e->f.b};
    uint64_t old = 0;

    if (!deferred_is_of_device(t, e->f.segment)) {
        target_execute_atomic(t, from, &e->f);
        return true;
    }
    if (!at && !e->update)
        e->failure = GSHMEM_ERR_NOT_SYMMETRIC;
    else if (!deferred_update(t, from, e, &update, &old))
        return false;
    if (e->failure) {
        respond_failure(from, e->failure);
        return true;
    }
    from->responded = ++from->executed;
    target_respond(from, RESPONSE_VALUE, from->executed, old);
    return true;
}

/* Carries out the first one. False: it has to wait. */
static bool deferred_execute(struct tcp *t, struct target *from, struct deferred *e)
{
    struct deferred_list *all = from->deferred;

    if (e->landing) {
        if (e->landing->copying)
            return false;
        if (e->landing->copied)
            all->put_failure = e->landing->copied;
        staging_give(e->landing);
        return true;
    }
    if (!target_has_room(from) || target_must_wait(t, from, &e->f))
        return false;
    if (e->f.kind == FRAME_PUT)
        return finish_put(t, from, e);
    if (e->f.kind == FRAME_ATOMIC)
        return deferred_atomic(t, from, e);
    if (is_read_from_device(t, e))
        return read_device(from, e);
    target_execute_get(t, from, &e->f);
    return true;
}

bool deferred_advance(struct tcp *t, struct target *from)
{
    struct deferred_list *all = from->deferred;
    bool some = false;

    if (!all)
        return false;
    for (;;) {
        uint32_t before = all->first;
        some |= begin_reading(t, from);
        while (from->deferred_count && deferred_execute(t, from, deferred_at(all, all->first))) {
            all->first++;
            from->deferred_count--;
            all->updating = false;
        }
        if (all->first == before)
            return some;
        t->events++;
        some = true;
    }
}

void deferred_end(struct tcp *t, struct target *from)
{
    struct deferred_list *all = from->deferred;
    struct staged_list rest = {NULL, NULL};

    from->deferred = NULL;
    from->deferred_count = 0;
    if (!all)
        return;
    for (; all->first != all->end; all->first++) {
        struct deferred *e = deferred_at(all, all->first);
        if (e->landing)
            staged_append(&rest, e->landing);
        if (e->flag)
            staged_append(&rest, e->flag);
        if (e->update) {
            t->config.device->ops->update_forget(t->config.device, e->update);
            t->updates--;
        }
    }
    staging_abandon(&rest);
    staging_abandon(&all->reading);
    free(all);
}

/* Requests of this PE whose data is in device memory, which a socket cannot read.
 *
 * A put from device memory becomes several puts of a staging buffer each. They are queued as they
 * have been copied, so that the next chunks are copied while one is sent. What is posted behind
 * such a put waits in its place, and the order stays. A get's data goes from the socket into
 * staging buffers, and from there to the device; the get is complete when it has arrived there,
 * and so is what was acknowledged after it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "transport/tcp/initiator.h"

enum { BACKLOG_MOST = 64 }; /* a power of two */

struct entry {
    struct transport_request r;
    bool of_device;
    struct staged *kept; /* a copy of its small data; NULL: the data is where the request says */
    uint64_t begun;      /* bytes whose copies have been begun, */
    uint64_t queued;     /* and that have been queued */
    gshmem_status_t failure;
};

struct backlog {
    uint32_t first, end;        /* entries, counted for ever */
    uint32_t begin;             /* the copies of those before it have begun */
    struct staged_list copying; /* chunks of all entries, in order */
    struct entry entry[BACKLOG_MOST];
};

static struct entry *entry_at(struct backlog *b, uint32_t i)
{
    return &b->entry[i % BACKLOG_MOST];
}

bool backlog_empty(const struct initiator *to)
{
    return !to->backlog || to->backlog->first == to->backlog->end;
}

static bool comes_from_device(const struct tcp *t, const struct transport_request *r)
{
    return r->kind == TRANSPORT_PUT && r->bytes && !(r->flags & TRANSPORT_KEPT) &&
           t->config.on_device(t->config.context, r->local, r->bytes);
}

bool backlog_takes(struct tcp *t, const struct initiator *to, const struct transport_request *r)
{
    return !backlog_empty(to) || comes_from_device(t, r);
}

/* ---- Posting ---- */

/* The source of a small put, and the records of a small batch, may be reused when post has
 * returned: they are copied at once. */
static gshmem_status_t backlog_keep(struct tcp *t, struct initiator *to, struct entry *e)
{
    struct device *d = t->config.device;
    gshmem_status_t status = GSHMEM_OK;

    if (!(e->kept = staging_take(&t->staging, STAGING_OUT, e->r.bytes, &to->held)))
        return t->staging.failed ? GSHMEM_ERR_MEMORY : TRANSPORT_FULL;
    if (e->of_device)
        status = d->ops->copy(d, e->kept->at, e->r.local, e->r.bytes);
    else
        memcpy(e->kept->at, e->r.local, e->r.bytes);
    if (status) {
        staging_give(e->kept);
        return status;
    }
    e->r.local = e->kept->at;
    e->of_device = false;
    return GSHMEM_OK;
}

gshmem_status_t backlog_post(struct tcp *t, struct initiator *to, const struct transport_request *r)
{
    struct entry e = {.r = *r, .of_device = comes_from_device(t, r)};
    const bool small = r->bytes && pending_is_copied(r);
    gshmem_status_t status;

    struct backlog *b = to->backlog;
    if (!b) {
        if (!(b = to->backlog = calloc(1, sizeof *b)))
            return t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for requests to PE %d",
                                  to->pe);
        b->first = b->end = b->begin = count_first();
    }
    if (b->end - b->first == BACKLOG_MOST)
        return TRANSPORT_FULL;
    if (small && !(r->flags & TRANSPORT_KEPT) && (status = backlog_keep(t, to, &e)))
        return status;
    *entry_at(b, b->end++) = e;
    return GSHMEM_OK;
}

/* ---- Progress ---- */

/* Begins to copy the next chunks, as far as there are buffers. */
static bool begin_copies(struct tcp *t, struct initiator *to)
{
    struct backlog *b = to->backlog;
    bool some = false;

    for (; b->begin != b->end; b->begin++) {
        struct entry *e = entry_at(b, b->begin);
        while (e->of_device && !e->failure && e->begun < e->r.bytes) {
            uint64_t left = e->r.bytes - e->begun;
            struct staged *s = staging_take(&t->staging, STAGING_OUT, left, &to->held);
            if (!s && !t->staging.failed)
                return some;
            e->failure = s ? staging_begin(s, s->at, (char *)e->r.local + e->begun,
                                           left < s->room ? (size_t)left : s->room)
                           : GSHMEM_ERR_MEMORY;
            some = true;
            if (e->failure) {
                if (s)
                    staging_give(s);
                break;
            }
            s->number = b->begin;
            e->begun += s->bytes;
            staged_append(&b->copying, s);
        }
    }
    return some;
}

/* Queues the next chunk of a put. With the last one its source has been read. */
static void queue_part(struct tcp *t, struct initiator *to, struct entry *e, struct staged *s)
{
    struct transport_request part = e->r;
    bool last = e->queued + s->bytes == e->r.bytes;

    part.local = s->at;
    part.offset += e->queued;
    part.bytes = s->bytes;
    part.sent = staging_give;
    part.tag = s;
    part.signal_op = last ? e->r.signal_op : 0;
    struct pending *w = pending_add(t, to, &part, !last, false);
    w->tag = e->r.tag;
    e->queued += s->bytes;
    if (s->bytes <= TRANSPORT_COPIED)
        staging_give(s);
    if (last && e->r.sent)
        e->r.sent(e->r.tag);
}

static void remove_first(struct backlog *b)
{
    b->begin += b->begin == b->first;
    b->first++;
}

/* An entry that could not be copied is not sent. If parts of it were queued, an empty part
 * without a signal ends it. */
static void backlog_drop_failed(struct tcp *t, struct initiator *to, struct entry *e)
{
    struct backlog *b = to->backlog;
    struct staged_list rest = {NULL, NULL};
    struct entry failed = *e; /* `done` may post: the entry is removed before */

    while (b->copying.first && b->copying.first->number == b->first)
        staged_append(&rest, staged_remove(&b->copying));
    staging_abandon(&rest);
    remove_first(b);
    if (failed.queued) {
        failed.r.bytes = 0;
        failed.r.signal_op = 0;
        pending_add(t, to, &failed.r, false, false)->failure = (uint8_t)failed.failure;
    } else {
        failed.r.done(failed.r.tag, failed.failure);
    }
}

/* Queues the first entry, or its next chunk. False: it has to wait. */
static bool queue_first(struct tcp *t, struct initiator *to)
{
    struct backlog *b = to->backlog;
    struct entry *e = entry_at(b, b->first);
    struct staged *s = e->of_device && b->copying.first && b->copying.first->number == b->first
                           ? b->copying.first
                           : NULL;

    if (s && !s->copying && s->copied)
        e->failure = s->copied;
    if (!initiator_has_room(to, TRANSPORT_COPIED))
        return false;
    if (e->failure) {
        backlog_drop_failed(t, to, e);
        return true;
    }
    if (!e->of_device) {
        pending_add(t, to, &e->r, false, false);
        if (e->kept)
            staging_give(e->kept);
    } else if (!s || s->copying) {
        return false;
    } else {
        staged_remove(&b->copying);
        queue_part(t, to, e, s);
        if (e->queued < e->r.bytes)
            return true;
    }
    remove_first(b);
    return true;
}

bool backlog_advance(struct tcp *t, struct initiator *to, bool *some)
{
    bool queued = false;

    if (backlog_empty(to))
        return false;
    *some |= begin_copies(t, to);
    while (!backlog_empty(to) && queue_first(t, to))
        queued = true;
    *some |= queued;
    return queued;
}

void backlog_end(struct initiator *to, gshmem_status_t status)
{
    struct backlog *b = to->backlog;

    to->backlog = NULL;
    if (!b)
        return;
    staging_abandon(&b->copying);
    for (; b->first != b->end; b->first++) {
        struct entry *e = entry_at(b, b->first);
        if (e->kept)
            staging_give(e->kept);
        e->r.done(e->r.tag, status);
    }
    free(b);
}

/* ---- Landing ---- */

struct staged *landing_buffer(struct tcp *t, struct initiator *to)
{
    struct staged *s = staging_take(&t->staging, STAGING_IN, to->data.left, NULL);

    pending_stage(t, to); /* to continue with it, or to try again */
    return s;
}

void landing_push(struct initiator *to, struct staged *s, size_t bytes)
{
    struct pending *w = pending_of(to, to->data.number);

    if (!w->failure)
        w->failure = (uint8_t)staging_begin(s, to->data.at, s->at, bytes);
    s->number = to->data.number;
    if (w->failure)
        staging_give(s);
    else
        staged_append(&to->landing, s);
}

bool landing_advance(struct tcp *t, struct initiator *to)
{
    struct staged *s;
    bool some = false;

    for (; (s = to->landing.first) && !s->copying; some = true) {
        uint64_t then = s->then;
        staged_remove(&to->landing);
        if (s->copied)
            pending_of(to, s->number)->failure = (uint8_t)s->copied;
        staging_give(s);
        if (then)
            pending_complete(t, to, then, GSHMEM_OK);
    }
    return some;
}

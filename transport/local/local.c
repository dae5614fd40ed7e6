/* The transport to PEs of this node: loads and stores on mapped memory, made by the thread that
 * posts.
 *
 * It carries out requests of kernels, which may be kept from mapping peers (GSHMEM_MAPPED=0), and
 * requests whose address only the CPU can resolve. A request is done when post returns. One of
 * more than 1 MiB, for which others would wait long for the lock, is carried on by progress, 1
 * MiB in a round, and nothing else is taken until it is done. Atomics are the CPU's own, the same
 * that PEs use which have the location mapped.
 *
 * Device memory is copied by the device: copies.c. */
#include <stdlib.h>

#include "gshmem/base.h"
#include "runtime/base/clock.h"
#include "transport/local/copies.h"

enum { ROUND_BYTES = 1 << 20 }; /* takes some 0.1 ms */

static int local_usable(const struct transport_config *config, char *why, size_t why_size)
{
    (void)config;
    if (why_size)
        why[0] = 0;
    return 1;
}

static gshmem_status_t local_open(const struct transport_config *config, struct transport **out)
{
    struct local *t = calloc(1, sizeof *t);

    if (!t)
        return config->fail(GSHMEM_ERR_MEMORY, "local: out of memory");
    t->base.ops = &transport_local;
    t->config = *config;
    *out = &t->base;
    return GSHMEM_OK;
}

/* The PEs of a node find each other without an address. */
static gshmem_status_t local_address(struct transport *base, void *address, size_t capacity,
                                     size_t *bytes)
{
    (void)base;
    (void)address;
    (void)capacity;
    *bytes = 0;
    return GSHMEM_OK;
}

static void local_begin(struct transport *base, const struct transport_config *config)
{
    ((struct local *)base)->config = *config;
}

/* ---- Requests ---- */

static gshmem_status_t local_put(struct local *t, const struct transport_request *r)
{
    uint64_t *flag = NULL;
    char *to = NULL;

    if (r->bytes && !(to = local_resolve(t, r->pe, r->segment, r->offset)))
        return local_unmapped(t, r->pe);
    if (r->signal_op && to && r->signal_segment == r->segment)
        flag = (uint64_t *)(void *)(to - r->offset + r->signal_offset);
    else if (r->signal_op && !(flag = (uint64_t *)local_resolve(t, r->pe, r->signal_segment,
                                                                r->signal_offset)))
        return local_unmapped(t, r->pe);
    if (to)
        local_store(to, r->local, r->bytes);
    if (flag)
        local_signal(flag, r->signal_op, r->signal_value);
    return GSHMEM_OK;
}

static gshmem_status_t local_get(struct local *t, const struct transport_request *r)
{
    const char *from = local_resolve(t, r->pe, r->segment, r->offset);

    if (!from)
        return local_unmapped(t, r->pe);
    local_load(r->local, from, r->bytes);
    return GSHMEM_OK;
}

static gshmem_status_t local_update(struct local *t, const struct transport_request *r)
{
    void *at = local_resolve(t, r->pe, r->segment, r->offset);

    if (!at)
        return local_unmapped(t, r->pe);
    atomic_thread_fence(memory_order_release); /* the atomic comes after what was posted before */
    uint64_t old = t->config.apply(t->config.context, r->amo, r->type, at, r->operand, r->compare);
    if (r->old)
        *r->old = old;
    return GSHMEM_OK;
}

/* Carries out the next part of the request that takes several rounds. */
static void local_continue(struct local *t)
{
    struct transport_request part = t->rest;
    bool last = part.bytes <= ROUND_BYTES;

    if (!last) {
        part.bytes = ROUND_BYTES;
        part.signal_op = 0;
    }
    gshmem_status_t status = part.kind == TRANSPORT_PUT ? local_put(t, &part) : local_get(t, &part);
    if (!status && !last) {
        t->rest.bytes -= part.bytes;
        t->rest.offset += part.bytes;
        t->rest.local = (char *)t->rest.local + part.bytes;
        return;
    }
    t->rest.bytes = 0;
    part.done(part.tag, status);
}

static gshmem_status_t local_post(struct transport *base, const struct transport_request *r)
{
    struct local *t = (struct local *)base;
    gshmem_status_t status = GSHMEM_OK;

    if (t->rest.bytes)
        return TRANSPORT_FULL;
    if (copies_take(t, r))
        return copies_post(t, r);
    if (r->bytes > ROUND_BYTES) {
        t->rest = *r;
        local_continue(t);
        return GSHMEM_OK;
    }
    switch (r->kind) {
    case TRANSPORT_PUT:
        status = local_put(t, r);
        break;
    case TRANSPORT_GET:
        status = local_get(t, r);
        break;
    case TRANSPORT_ATOMIC:
        status = local_update(t, r);
        break;
    }
    if (!status)
        r->done(r->tag, GSHMEM_OK);
    return status;
}

/* ---- Progress and the end ---- */

static gshmem_status_t local_progress(struct transport *base, int *events)
{
    struct local *t = (struct local *)base;

    *events = t->rest.bytes > 0 || copies_any(t);
    if (t->rest.bytes)
        local_continue(t);
    if (copies_any(t))
        copies_advance(t);
    return GSHMEM_OK;
}

static int local_busy(struct transport *base)
{
    const struct local *t = (struct local *)base;

    return t->rest.bytes > 0 || copies_any(t);
}

static void local_close(struct transport *base)
{
    struct local *t = (struct local *)base;

    if (t->rest.bytes)
        t->rest.done(t->rest.tag, GSHMEM_ERR_ABORTED);
    while (copies_any(t)) { /* their memory may be freed soon */
        if (!copies_advance(t))
            clock_pause();
    }
    free(t);
}

const struct transport_ops transport_local = {
    .size = sizeof(struct transport_ops),
    .version = TRANSPORT_VERSION,
    .name = "local",
    .usable = local_usable,
    .open = local_open,
    .address = local_address,
    .begin = local_begin,
    .post = local_post,
    .progress = local_progress,
    .busy = local_busy, /* no .lose: the memory of a PE that has failed can still be copied */
    .close = local_close,
};

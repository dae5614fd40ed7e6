/* The transport to PEs of this host: loads and stores on memory that is mapped, made by whoever
 * posts.
 *
 * It is for requests that come from kernels, which may be kept from mapping peers
 * (GSHMEM_MAPPED=0), and for addresses that only the CPU can translate. A request is over when post
 * returns, unless it is so large that others would wait long for the lock meanwhile: that one is
 * carried on by progress, turn by turn, and nothing else is taken until it is over. Atomics are the
 * CPU's own, the same that PEs use which have the location mapped.
 *
 * Memory that is a device's own is copied by the device: copies.c. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "gshmem/base.h"
#include "runtime/base/clock.h"
#include "transport/local/local.h"

enum { TURN_BYTES = 1 << 20 }; /* some 0.1 ms */

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

/* Nobody needs to be told how to reach this host from itself. */
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

/* Objects of the sizes that others wait for are stored whole, and after all that was posted before:
 * release, which pairs with the acquire of gshmem_wait_until and of those who look by themselves.
 */
void local_store(void *to, const void *from, size_t bytes)
{
    union {
        uint8_t b1;
        uint16_t b2;
        uint32_t b4;
        uint64_t b8;
    } word;

    if (bytes > sizeof word || bytes & (bytes - 1) || (uintptr_t)to & (bytes - 1)) {
        atomic_thread_fence(memory_order_release);
        memcpy(to, from, bytes);
        return;
    }
    memcpy(&word, from, bytes);
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)to, word.b1, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)to, word.b2, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)to, word.b4, __ATOMIC_RELEASE);
        break;
    case 8:
        __atomic_store_n((uint64_t *)to, word.b8, __ATOMIC_RELEASE);
        break;
    }
}

static void local_load(void *to, const void *from, size_t bytes)
{
    if (bytes == 8 && (uintptr_t)from % 8 == 0) {
        uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, 8);
    } else if (bytes == 4 && (uintptr_t)from % 4 == 0) {
        uint32_t word = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, 4);
    } else {
        memcpy(to, from, bytes);
    }
}

/* release: who sees the signal with acquire sees the data. */
void local_signal(uint64_t *there, int op, uint64_t value)
{
    if (op == GSHMEM_SIGNAL_SET)
        __atomic_store_n(there, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(there, value, __ATOMIC_RELEASE);
}

char *local_reach(struct local *t, int pe, int segment, uint64_t offset)
{
    char *base = t->config.mapped(t->config.context, pe, segment);

    return base ? base + offset : NULL;
}

gshmem_status_t local_refuse(struct local *t, int pe)
{
    return t->config.fail(GSHMEM_ERR_UNREACHABLE, "local: memory of PE %d is not mapped here", pe);
}

static gshmem_status_t put(struct local *t, const struct transport_request *r)
{
    uint64_t *flag = NULL;
    char *to = NULL;

    if (r->bytes && !(to = local_reach(t, r->pe, r->segment, r->offset)))
        return local_refuse(t, r->pe);
    if (r->signal_op &&
        !(flag = (uint64_t *)local_reach(t, r->pe, r->signal_segment, r->signal_offset)))
        return local_refuse(t, r->pe);
    if (to)
        local_store(to, r->local, r->bytes);
    if (flag)
        local_signal(flag, r->signal_op, r->signal_value);
    return GSHMEM_OK;
}

static gshmem_status_t local_get(struct local *t, const struct transport_request *r)
{
    const char *from = local_reach(t, r->pe, r->segment, r->offset);

    if (!from)
        return local_refuse(t, r->pe);
    local_load(r->local, from, r->bytes);
    return GSHMEM_OK;
}

static gshmem_status_t local_update(struct local *t, const struct transport_request *r)
{
    void *at = local_reach(t, r->pe, r->segment, r->offset);

    if (!at)
        return local_refuse(t, r->pe);
    atomic_thread_fence(memory_order_release); /* not before what was posted before it */
    uint64_t old = t->config.apply(t->config.context, r->amo, r->type, at, r->operand, r->compare);
    if (r->old)
        *r->old = old;
    return GSHMEM_OK;
}

/* The next part of the one that takes several turns; then it is done. */
static void local_take_turn(struct local *t)
{
    struct transport_request part = t->rest;
    bool last = part.bytes <= TURN_BYTES;

    if (!last) {
        part.bytes = TURN_BYTES;
        part.signal_op = 0;
    }
    gshmem_status_t status = part.kind == TRANSPORT_PUT ? put(t, &part) : local_get(t, &part);
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
    if (r->bytes > TURN_BYTES) {
        t->rest = *r;
        local_take_turn(t);
        return GSHMEM_OK;
    }
    switch (r->kind) {
    case TRANSPORT_PUT:
        status = put(t, r);
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

/* ---- What is on its way: the rest of that one, and what the device is at ---- */

static gshmem_status_t local_progress(struct transport *base, int *events)
{
    struct local *t = (struct local *)base;

    *events = t->rest.bytes > 0 || copies_any(t);
    if (t->rest.bytes)
        local_take_turn(t);
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
    while (copies_any(t)) { /* from and to memory that may be gone soon */
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
    .busy = local_busy, /* no .lose: memory of the dead can still be copied */
    .close = local_close,
};

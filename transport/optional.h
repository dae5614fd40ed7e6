/* The slots of transport_ops that a transport may leave NULL, and the default of each.
 *
 * Everybody calls these slots through the functions below, so that the defaults stand here and
 * nowhere else. A request does not need them: post and progress always exist, and are called
 * directly. */
#ifndef GSHMEM_TRANSPORT_OPTIONAL_H
#define GSHMEM_TRANSPORT_OPTIONAL_H

#include <stdbool.h>
#include <stdio.h>

#include "transport/transport.h"

/* The slots that have no default. */
static inline bool transport_is_complete(const struct transport_ops *ops)
{
    return ops->name && ops->open && ops->begin && ops->post && ops->progress && ops->close;
}

/* It can be used everywhere. */
static inline int transport_usable(const struct transport_ops *ops,
                                   const struct transport_config *config, char *why,
                                   size_t why_size)
{
    if (ops->usable)
        return ops->usable(config, why, why_size);
    snprintf(why, why_size, "%s needs nothing of the machine", ops->name);
    return 1;
}

/* Peers find it without an address. */
static inline gshmem_status_t transport_address(struct transport *t, void *address, size_t capacity,
                                                size_t *bytes)
{
    *bytes = 0;
    return t->ops->address ? t->ops->address(t, address, capacity, bytes) : GSHMEM_OK;
}

/* It sends no failure notifications. The PEs that it reaches learn of failures by other means. */
static inline void transport_tell(struct transport *t, int lost)
{
    if (t->ops->tell)
        t->ops->tell(t, lost);
}

/* It has no descriptor: a thread that sleeps polls again after a while. */
static inline int transport_wait_fd(struct transport *t)
{
    return t->ops->wait_fd ? t->ops->wait_fd(t) : -1;
}

/* Its descriptor is enough. */
static inline int transport_arm(struct transport *t)
{
    return t->ops->arm ? t->ops->arm(t) : 0;
}

/* It carries no control messages, so that no transport can be above it. */
static inline gshmem_status_t transport_say(struct transport *t, int pe, const void *note,
                                            size_t bytes)
{
    return t->ops->say ? t->ops->say(t, pe, note, bytes) : GSHMEM_ERR_UNSUPPORTED;
}

/* It sends no control messages, and so receives none. */
static inline void transport_receive(struct transport *t, int from, const void *note, size_t bytes)
{
    if (t->ops->receive)
        t->ops->receive(t, from, note, bytes);
}

/* Requests to a PE end by themselves, whatever becomes of the PE. */
static inline void transport_lose(struct transport *t, int pe, gshmem_status_t status)
{
    if (t->ops->lose)
        t->ops->lose(t, pe, status);
}

/* It registers no memory. */
static inline int transport_pins(struct transport *t, int segment, uint64_t offset, uint64_t bytes)
{
    return t->ops->pins ? t->ops->pins(t, segment, offset, bytes) : 0;
}

/* Nothing is in flight when post has returned. */
static inline int transport_busy(struct transport *t)
{
    return t->ops->busy ? t->ops->busy(t) : 0;
}

/* `usable` says all. */
static inline void transport_report(const struct transport_ops *ops,
                                    const struct transport_config *config, transport_line *line,
                                    void *to)
{
    if (ops->report)
        ops->report(config, line, to);
}

/* It has no registrations. */
static inline void transport_forget(struct transport *t, int segment, uint64_t offset,
                                    uint64_t bytes)
{
    if (t->ops->forget)
        t->ops->forget(t, segment, offset, bytes);
}

/* No NIC makes its atomics. */
static inline int transport_updates(struct transport *t, char *why, size_t why_size)
{
    if (t->ops->updates)
        return t->ops->updates(t, why, why_size);
    snprintf(why, why_size, "%s has no NIC for it", t->ops->name);
    return 0;
}

/* Peers do not watch its descriptors. */
static inline void transport_leave_parent(struct transport *t)
{
    if (t->ops->leave_parent)
        t->ops->leave_parent(t);
}

#endif

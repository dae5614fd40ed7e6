/* Updates that a NIC of the target makes. */
#ifndef GSHMEM_TRANSPORT_VERBS_ATOMICS_H
#define GSHMEM_TRANSPORT_VERBS_ATOMICS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/atomic_type.h"
#include "transport/verbs/link.h"
#include "transport/verbs/verbs.h"

/* An update of one word. */
struct update {
    enum gshmem_amo amo;
    int type;
    int segment;
    uint64_t operand, compare;
    uint64_t word;   /* its offset */
    unsigned within; /* where in it the object begins */
    bool half;       /* and whether it is half of it */
};

/* Whether a request has a part that only the target's NIC may do. */
static inline bool atomics_have(const struct verbs *v, const struct transport_request *r)
{
    if (r->kind == TRANSPORT_ATOMIC)
        return v->config.segment[r->segment].by_nic;
    return r->signal_op && v->config.segment[r->signal_segment].by_nic;
}

/* What transport_ops.updates returns. */
int atomics_possible(const struct verbs *v, char *why, size_t why_size);
static inline struct update atomics_update(const struct op *op)
{
    const struct transport_request *r = &op->request;

    if (r->kind == TRANSPORT_ATOMIC)
        return (struct update){.amo = (enum gshmem_amo)r->amo,
                               .type = r->type,
                               .segment = r->segment,
                               .operand = r->operand,
                               .compare = r->compare,
                               .word = r->offset & ~7ull,
                               .within = r->offset & 7,
                               .half = atomic_type_bytes(r->type) == 4};
    return (struct update){.amo =
                               r->signal_op == GSHMEM_SIGNAL_ADD ? GSHMEM_AMO_ADD : GSHMEM_AMO_SET,
                           .type = GSHMEM_TYPE_UINT64,
                           .segment = r->signal_segment,
                           .operand = r->signal_value,
                           .word = r->signal_offset};
}

/* Makes room for the results of a link's updates, before the first; false: op->failure says why. */
bool atomics_make_room(struct verbs *v, struct op *op);
/* Fills in the work request of an update, the last one of the link's updater. It holds the op if
 * the update may have to be tried again. */
void atomics_fill_in(struct verbs *v, struct op *op, const struct update *u, uint32_t key,
                     struct ibv_send_wr *wr);
/* The link's updater is not active; false: the op waits for it, true: it has failed. */
bool atomics_wait(struct verbs *v, struct op *op);
/* Looks at results that operations are held for. */
void atomics_poll(struct verbs *v, struct link *l);
/* Stores the result where the program wants it. */
void atomics_deliver(struct link *l, const struct op *op);
/* A NIC has made the update, and the path failed before its result came. */
void atomics_lost_result(struct verbs *v, struct link *l, const struct work *w);
void atomics_free(struct link *l);
/* Gives the target's NIC an operation's update; false: not now. */
bool atomics_issue(struct verbs *v, struct link *l, struct op *op);

#endif

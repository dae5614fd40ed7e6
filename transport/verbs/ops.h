/* The list of a link's operations. */
#ifndef GSHMEM_TRANSPORT_VERBS_OPS_H
#define GSHMEM_TRANSPORT_VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/link.h"

/* ---- The list ---- */

/* Room for more operations than there is; they lie elsewhere after this. False: not now. */
bool op_make_room(struct verbs *v, struct link *l);
/* Whether the link takes one more operation. */
static inline bool op_has_room(struct verbs *v, struct link *l)
{
    return l->posted - l->done < l->depth || op_make_room(v, l);
}

/* Copies the data of a put that is small, or finds a slot for a get's; TRANSPORT_FULL: there is
 * none. Only of what op_copies. */
gshmem_status_t op_keep_data(struct verbs *v, struct op *op);
static inline bool op_copies(const struct transport_request *r)
{
    return r->kind != TRANSPORT_ATOMIC && r->bytes <= SLOT_BYTES && r->bytes > 0;
}
/* Where a request's data is: in its copy, or in the program's memory. */
void *op_data(const struct verbs *v, const struct op *op);
/* Gives back the slot and registrations of an operation that is done and has some (op_holds), */
void op_release(struct verbs *v, struct op *op);
static inline bool op_holds(const struct op *op)
{
    return op->slot >= 0 || op->registered;
}
void op_free_holes(struct op *op); /* and the holes of one that failed */
/* Registers the program's memory for this operation alone; NULL: reported. */
struct ibv_mr *op_register(struct verbs *v, struct nic *nic, struct op *op);

/* ---- Which bytes are issued ---- */

/* The bytes that a path is to be given next; false: none are left. */
bool op_next_range(const struct op *op, uint64_t *at, uint64_t *bytes);
/* So many of them were given to a path. */
void op_took_range(struct op *op, uint64_t bytes);
/* The work has not arrived: it is issued again. False: out of memory. */
bool op_issue_again(struct link *l, const struct work *w);

#endif

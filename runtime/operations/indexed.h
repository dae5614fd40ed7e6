/* Indexed operations: what a call is, and how its elements are carried out, by three ways: loads
 * and stores (indexed_mapped.c), one request for each element (indexed.c), and batches
 * (indexed_batches.c). */
#ifndef GSHMEM_RUNTIME_OPERATIONS_INDEXED_H
#define GSHMEM_RUNTIME_OPERATIONS_INDEXED_H

#include <stdint.h>

#include "runtime/teams/context.h"
#include "transport/transport.h"

struct indexed {
    const char *call;
    gshmem_ctx_t ctx;
    struct context *c;
    int each;       /* TRANSPORT_PUT, TRANSPORT_GET, or TRANSPORT_ATOMIC: an add */
    int type;       /* of an add */
    size_t element; /* bytes */
    char *object;   /* this PE's copy */
    char *local;    /* source of a put or an add, dest of a get */
    const size_t *index;
    const int *pes; /* NULL: all elements are of `pe` */
    int pe;
    bool nbi; /* a get */
    size_t n;
    size_t most;           /* the largest index */
    size_t span;           /* bytes of the object up to the end of that element */
    const uintptr_t *peer; /* [PE]: where its copy of the segment is mapped, or 0; NULL: none is */
    size_t offset;         /* of the object in that segment */
    struct pending *pending; /* where requests are counted */
    size_t batch_most;       /* so many to another node may travel together; 0: each goes alone */
};

/* Some of its elements: from + order[0], from + order[1] …; order NULL: from, from + 1 … */
struct elements {
    size_t from;
    const uint32_t *order;
    size_t n;
};

static inline size_t elements_at(const struct elements *e, size_t k)
{
    return e->from + (e->order ? e->order[k] : k);
}

/* Finds what gshmem_ctx_reach finds for the object: the table of mapped copies, or NULL. */
void indexed_find_peers(struct indexed *ix);

/* NULL: pe's copy is not mapped. */
static inline char *indexed_reach(const struct indexed *ix, int pe)
{
    return ix->peer && ix->peer[pe] ? (char *)ix->peer[pe] + ix->offset : NULL;
}

/* Whether all PEs' copies are mapped; false also where there are more PEs than elements. */
bool indexed_is_all_mapped(const struct indexed *ix);
/* Moves elements of one PE, whose copy is mapped at `there`. */
void indexed_move(const struct indexed *ix, char *there, const struct elements *e);
/* Moves elements with a PE each, whose copies are mapped. */
void indexed_move_mapped(const struct indexed *ix, const struct elements *e);

/* So many elements may travel together to another node; 0: they may not. */
size_t indexed_batch_most(const struct indexed *ix);
/* Posts elements of one PE in batches of so many. */
gshmem_status_t indexed_post(const struct indexed *ix, const struct location *l,
                             const struct elements *e);

/* The memory of batches in flight. */
gshmem_status_t indexed_start(struct job *j);
/* After the network: no batch is in flight any more. */
void indexed_stop(struct job *j);

#endif

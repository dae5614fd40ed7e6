/* Memory of GPUs that NICs do not reach: chunks in pinned buffers. The initiator's side is
 * staged_out.c; the target's is pending.c, as chunks are messages there. */
#ifndef GSHMEM_TRANSPORT_VERBS_STAGED_H
#define GSHMEM_TRANSPORT_VERBS_STAGED_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/staging.h"
#include "transport/verbs/link.h"
#include "transport/verbs/message.h"
#include "transport/verbs/serve.h"

struct nic;

enum { STAGED_CHUNKS = 32, PENDING = 64, STAGED_MOST = STAGING_LARGE };
_Static_assert((int)STAGED_CHUNKS > (int)WINDOW && (int)PENDING > (int)WINDOW + 1,
               "as many as can be without reply");

enum staged_state { STAGED_COPIED, STAGED_READY, STAGED_REQUESTED, STAGED_LANDS, STAGED_DONE };

/* A chunk of a request of this PE's. */
struct staged_chunk {
    uint32_t op, number; /* of the message that requests it */
    enum staged_state state;
    uint64_t at, bytes;
    struct staged *buffer; /* NULL: the data is where NICs reach it */
};

enum pending_state { PENDING_WAITS, PENDING_MOVES, PENDING_COPIED, PENDING_DONE };

/* A message of the peer's that is not carried out yet. */
struct pending {
    struct message m;
    struct serving serving;   /* of one without data to move, */
    enum pending_state state; /* and of one with such: */
    uint64_t moved, bytes;    /* bytes that have moved, and that move now */
    uint32_t end;             /* the work request that moves them */
    struct staged *buffer;
    unsigned char data[MESSAGE_HEAD + MESSAGE_DATA];
};

struct link_staging {
    struct staged_chunk chunk[STAGED_CHUNKS];
    uint32_t first, next; /* counted for ever */
    uint32_t held;        /* buffers for what goes out */
    struct pending pending[PENDING];
    uint32_t pending_first, pending_next;
    uint64_t alive_ns; /* when the peer was last told that this PE lives, or the wait for an update
                          began; 0: there is none */
};

static inline uint64_t staged_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- staged.c: both sides ---- */

struct link_staging *staged_of(struct verbs *v, struct link *l); /* NULL: out of memory, logged */
/* The pool of buffers, as a NIC knows it; NULL: it cannot be registered. */
struct ibv_mr *staged_pool(struct verbs *v, struct nic *nic);
void staged_let_go(struct staged **buffer);
/* Whether a segment of the peer's is out of reach of its NICs. */
bool staged_is_remote(const struct verbs *v, const struct link *l, int segment);
/* Whether the program's memory is out of reach of this PE's NICs. */
bool staged_is_local(const struct verbs *v, const struct op *op);
bool staged_is_needed(const struct verbs *v, const struct link *l, const struct op *op);

/* ---- staged_out.c ---- */

/* Requests all of an operation's data, the signal excepted; false: not now. */
bool staged_issue(struct verbs *v, struct link *l, struct op *op);
/* Before the transport below carries the rest of an operation; false: some chunks have no reply. */
bool staged_may_go_below(struct link *l, struct op *op);
/* Goes on with chunks that have their reply; l->staging is set. */
void staged_go_on(struct verbs *v, struct link *l);
/* The peer has not received the messages behind `received`: they are sent again. */
void staged_repeat(struct link *l, uint32_t received);
void staged_end(struct link *l);

#endif

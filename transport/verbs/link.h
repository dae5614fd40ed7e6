/* A link: everything that leads to one PE. */
#ifndef GSHMEM_TRANSPORT_VERBS_LINK_H
#define GSHMEM_TRANSPORT_VERBS_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"
#include "transport/verbs/message.h"
#include "transport/verbs/op.h"
#include "transport/verbs/path.h"
#include "transport/verbs/rails.h"

struct eager;
struct joined;
struct link_staging;
struct updates;

enum {
    WINDOW = 24, /* messages to one PE that have no reply yet */
    /* what a peer can have in flight to this PE: messages, replies and two requests for keys */
    RECEIVES = 2 * WINDOW + 4,
    RECEIVES_LEAST = 8,
    REPLIES = 64, /* a power of two, above 2 * WINDOW */
};

#define NONE_ALONE UINT64_MAX /* no work request's wr_id */

enum link_state {
    LINK_WAITING, /* for its first path, or until it is known what arrived by one that failed */
    LINK_ACTIVE,
    LINK_BELOW, /* no path is active: requests go to the transport below */
    LINK_FAILED,
};

struct link {
    struct link *next;
    struct verbs *verbs;
    int pe;
    enum link_state state;
    gshmem_status_t failure;

    struct path *path[PATHS_MOST];
    int paths;
    struct path *active[PATHS_MOST]; /* the first takes what is small, and messages */
    int actives;
    struct path *direct; /* the first, where a put of the CPU's memory is a plain write; or NULL */
    struct path *messenger; /* the first, until it is known what came by it; NULL: none is active */
    struct path *updater;   /* to the NIC that makes the peer's atomics; or NULL */
    uint8_t receiving;      /* NICs that have receives for this link, a bit each */

    /* The list of operations: all before `done` are done, all before `issuing` are issued. */
    struct op *op; /* [depth]: see op_of */
    uint32_t depth;
    uint32_t posted, issuing, done; /* counted for ever */
    uint32_t below_left;            /* parts that the transport below carries */
    uint32_t held;                  /* operations whose signal or update waits; */
    uint32_t held_from;             /* none is before this one */
    int slots;                      /* of the transport's, that its operations hold */

    /* Short way: the one work request of the first operation, if its completion is all that is
     * waited for. */
    struct {
        uint64_t id; /* its wr_id, or NONE_ALONE */
        struct path *path;
    } alone;

    /* The piece of the peer's memory that the last lone put went to. */
    struct cached_key {
        uint64_t from, bytes; /* 0: none */
        uint64_t base;        /* the peer's address of offset 0 */
        uint32_t key;
        int segment;
    } cached;

    /* Small requests that are parts of an operation (coalesce.h). */
    struct {
        struct joined *joined; /* [JOINED]; NULL until something is coalesced, as is */
        uint32_t joined_first, joined_next;
        struct coalesced *list; /* [COALESCED_MOST] */
        uint32_t first, next;
        struct coalesced *open; /* the last, while puts of the CPU's memory may join it; or NULL */
    } coalesce;

    /* Eager buffers in the peer's memory, which records of batches are written to (batches.c). */
    struct {
        uint64_t address;         /* of the first, */
        uint64_t key[RAILS_MOST]; /* and their keys for each pair of NICs; 0: not known */
        uint32_t next,
            done; /* operations that have been given one, and those of them that are done */
    } batches;

    /* Signals that wait for others to go with (signals.c): so many of the operations that are held,
     * so many when the last round ended (0: they could not go, and are tried again at a completion
     * or a reply), and the bytes of their puts. */
    struct {
        uint32_t waiting, then;
        uint64_t weight;
    } signals;

    /* Order: what the last issued operation was. */
    struct {
        uint32_t epoch;
        bool strict; /* it was not to be overtaken */
    } order;

    /* Messages to the peer. */
    struct {
        uint32_t sent, replied; /* those sent, and those that have their reply */
        uint32_t last_update;   /* the last of those sent that changes memory, */
        uint32_t fence_update;  /* and the last such before the fence */
        uint32_t last_set;      /* the last that sets signals */
        uint32_t window;        /* messages without reply that the peer has room for */
    } messages;

    /* The peer's memory, by its offer. */
    struct {
        struct rail rail[RAILS_MOST];          /* pairs of NICs, */
        int pairs;                             /* so many, */
        int rails;                             /* and for so many of them there are keys */
        uint64_t *key[TRANSPORT_SEGMENT_MAX];  /* [chunk][rails] */
        uint64_t bytes[TRANSPORT_SEGMENT_MAX]; /* of its segments */
        uint64_t base[TRANSPORT_SEGMENT_MAX];
        bool gpu_below; /* the peer's NICs do not reach its GPU's memory */
    } peer;

    /* The request for a key that the next operation lacks. */
    struct {
        bool pending;
        int segment;
        uint64_t chunk;
        uint32_t number; /* of its message */
    } key_request;

    /* Messages of the peer, of which this PE is the target. */
    struct {
        uint32_t received;              /* the last that came, */
        uint32_t served;                /* and the last that has been carried out */
        struct path *by;                /* where the last came from */
        bool owes_reply;                /* to `served` */
        struct message reply[REPLIES];  /* the last ones; */
        uint32_t reply_next, reply_end; /* those from reply_next on are to be sent */
    } target;

    /* Whether the peer lives (watch.c). */
    struct {
        bool received, ever; /* control messages: since the last look, and at all */
        bool owed_then;      /* the peer owed something at the last look */
        uint32_t replied_then, received_then; /* counts at the last look */
        uint64_t silent_ns; /* for so long it has owed something and sent nothing */
    } watch;

    /* Failure and recovery. */
    struct {
        bool begun;          /* messages may come twice from here on */
        bool below_for_good; /* some memory cannot be registered: no path is tried again */
        bool broken_unsent;  /* the link has failed, and the peer has not been told */
        uint16_t lacks;      /* paths of the peer's that this side has not, not answered yet */
        uint64_t retry_at;   /* ns: when paths that are down are tried again */
        unsigned retries;
        char refused[400]; /* what the peer's NIC refused; "": nothing */
    } recovery;

    struct link_staging *staging; /* staged.h; NULL until something is staged or waits */
    struct updates *updates;      /* atomics.c; NULL until there are some */
    struct eager *eager;          /* eager.h; NULL until the peer sends batches */
};

/* What those below report to who is above: a path, a link or a message of control changes. Each
 * transport has the table from its creation on (verbs.c), so that those below know nobody above. */
struct link_reports {
    /* The queue pair failed, or a call for it did: failover begins. */
    void (*path_failed)(struct verbs *v, struct path *p, const char *why);
    /* A path came, went, or is drained of what the transport below carried: the link looks anew at
     * which paths it uses. */
    void (*link_changed)(struct verbs *v, struct link *l);
    /* Memory cannot be registered: the link uses the transport below from here on. */
    void (*memory_refused)(struct verbs *v, struct link *l, const char *why);
    /* The peer did what makes no sense, or something failed that no other path does better. */
    void (*link_failed)(struct verbs *v, struct link *l, gshmem_status_t status, const char *why);
    /* A control message that this PE sent to itself. */
    void (*control_to_self)(struct verbs *v, int from, const unsigned char *text, size_t bytes);
};

static inline bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* The operation with this number, which is not done, or is the next one. */
static inline struct op *op_of(const struct link *l, uint32_t number)
{
    return &l->op[number & (l->depth - 1)];
}

/* An operation's number among its link's. */
static inline uint32_t op_number(const struct link *l, const struct op *op)
{
    return l->done + (((uint32_t)(op - l->op) - l->done) & (l->depth - 1));
}

/* The next work request of a path was for this operation. */
static inline void op_sent_by(struct op *op, const struct path *p)
{
    op->end[p->index] = p->sends;
    op->used |= (uint16_t)(1u << p->index);
}

static inline void op_hold(struct link *l, struct op *op)
{
    const uint32_t number = op_number(l, op);

    if (!l->held++ || is_after(l->held_from, number))
        l->held_from = number;
    op->held = true;
}

/* An operation behind the last, that is not posted yet; there is room for it (op_has_room). */
static inline struct op *op_open(struct link *l, const struct transport_request *request)
{
    struct op *op = op_of(l, l->posted);

    l->coalesce.open = NULL;
    op->request = *request;
    op->link = l;
    op->slot = -1;
    op->joined_end = l->coalesce.joined_next;
    memset((char *)op + offsetof(struct op, at), 0,
           offsetof(struct op, small) - offsetof(struct op, at));
    return op;
}

#endif

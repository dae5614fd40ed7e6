/* A path: one queue pair, from one of this PE's NICs to one of the peer's. */
#ifndef GSHMEM_TRANSPORT_VERBS_PATH_H
#define GSHMEM_TRANSPORT_VERBS_PATH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/message.h"
#include "transport/verbs/rails.h"

struct cm_connection;
struct control;
struct link;
struct nic;
struct resolving;
struct verbs;

enum {
    QUEUE_PAIRS_MOST = 4, /* between two NICs */
    PATHS_MOST = RAILS_MOST * QUEUE_PAIRS_MOST,
    SEND_DEPTH = 128,       /* work requests of a path; a power of two */
    BATCH = 16,             /* work requests posted at once */
    PACKETS_MOST = 1 << 22, /* in flight by one path: packets have numbers of 24 bits */
};

enum path_state {
    PATH_NONE,     /* one of the two PEs has no NIC for it */
    PATH_OFFERED,  /* this side has made its queue pair and offers it; nothing can be sent yet */
    PATH_READY,    /* this side can receive; the peer has not said that it can */
    PATH_PROBED,   /* an empty write is in flight, as the path has failed before */
    PATH_ACTIVE,   /* requests use it */
    PATH_STOPPING, /* it has failed, and both sides find out what has arrived by it */
    PATH_DOWN,     /* it has no queue pair, and may get a new one */
};

/* Control messages that are due, a bit each: the transport below was full. */
enum unsent { UNSENT_OFFER = 1, UNSENT_READY = 2, UNSENT_NONE = 4, UNSENT_STOPPED = 8 };

/* What a work request that is not known to be done was for. */
enum work_kind {
    WORK_WRITE,
    WORK_READ,
    WORK_SIGNAL,
    WORK_MESSAGE,
    WORK_OTHER, /* a reply, a request for keys, a read or write for the peer */
    WORK_UPDATE,
    WORK_RECORDS, /* a write to an eager buffer, which a message follows */
};

/* Whether it is not issued again by itself: what it was for is known by messages. */
static inline bool work_is_of_messages(uint8_t kind)
{
    return kind == WORK_OTHER || kind == WORK_RECORDS;
}

struct work {
    uint64_t at; /* where its bytes begin within the op's; of a signal, the first op whose it is, */
    uint32_t op; /* and the last */
    uint32_t packet_end; /* the number of the packet behind its last */
    uint8_t kind;        /* an enum work_kind */
    bool behind_reads;   /* the NIC held it back until all reads before it had completed */
    uint32_t bytes;      /* of the op's */
};

struct path {
    struct link *link;
    struct nic *nic;
    int index;       /* among its link's */
    uint32_t number; /* the same on both sides: rail and queue pair */
    enum path_state state;
    uint32_t generation; /* of its queue pair, counted alike on both sides */
    uint64_t mark;       /* the upper half of the wr_id of this generation's work requests */
    bool tried;          /* it has been active, or could not be made: no request waits for it */
    bool reorders;       /* a NIC of the two may place writes in another order than posted */
    unsigned unsent;     /* enum unsent, a bit each */
    struct ibv_qp *qp;
    int packet_shift;     /* log2 of a packet's bytes */
    uint32_t inline_most; /* bytes that a work request of this queue pair carries itself */

    uint32_t sends, done;         /* work requests posted and completed, counted for ever */
    uint32_t packet, packet_done; /* the numbers of the next packet of either kind */

    /* Order: a request behind a fence waits for what comes before these marks. */
    struct {
        uint32_t all;       /* work requests before the last fence */
        uint32_t read;      /* the last read before the last fence */
        uint32_t last_read; /* the last read */
    } fence;

    /* A batch: work requests that the queue pair has not been given, [first, end). */
    struct {
        uint32_t first, end;
        struct ibv_send_wr wr[BATCH];
        struct ibv_sge sge[BATCH];
        struct message_bytes text[BATCH];
    } batch;

    /* Short way: a work request whose fields are filled in but for those of each put. */
    struct {
        struct ibv_send_wr wr;
        struct ibv_sge sge;
        uint32_t most; /* bytes of such a put; 0: none goes this way */
    } lone;

    /* Data that the NIC does not take inline stays here until its work request is done. */
    struct {
        struct message_bytes *text; /* [SEND_DEPTH] */
        struct ibv_mr *mr;
    } kept;

    /* Set-up of this generation. */
    struct {
        uint32_t first_packet;       /* the number of this side's first packet */
        bool offered;                /* the peer's offer has come */
        bool peer_ready;             /* the peer has said that it can receive */
        bool receives;               /* this side's queue pair can receive */
        struct resolving *resolving; /* a thread of resolve.c has the queue pair; or NULL */
    } setup;

    /* Connection of an iWARP queue pair (cm.c). */
    struct {
        struct rdma_cm_id *connection;
        bool connecting, connected;
        uint64_t connecting_ns; /* for so long */
        uint32_t peer_queue, peer_packet;
    } iwarp;

    /* Failure of this generation: see the steps in failover.c. */
    struct {
        bool drained, stopped_here, stopped_there;
        uint32_t given;          /* the last work request that the queue pair had then */
        uint32_t last;           /* the last work request that completed with an error */
        uint64_t at;             /* ns */
        struct control *stopped; /* [2], while it stops: this side's state, and the peer's */
    } failure;

    /* Its place among the paths that wait until their NIC may have more in flight (post.c). */
    struct {
        bool waits;
        unsigned round; /* when it last tried */
        struct path *next;
    } flight;

    struct work work[SEND_DEPTH];
};

#endif

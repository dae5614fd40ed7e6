/* The verbs transport's own parts, and what they know of each other.
 *
 * It stands on TCP (config.below): there each PE has proved to be of the job, addresses of queue
 * pairs are exchanged, deaths are noticed, and there go the requests to PEs that have no NIC. */
#ifndef GSHMEM_TRANSPORT_VERBS_VERBS_H
#define GSHMEM_TRANSPORT_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomic_type.h"
#include "transport/transport.h"
#include "transport/staging.h"
#include "transport/verbs/choose.h"
#include "transport/verbs/message.h"
#include "transport/verbs/rails.h"

enum {
    OPS = 256,         /* requests at a time to one PE; a power of two, as is */
    OPS_FIRST = 8,     /* the room for them until more are under way at once */
    SMALL_BYTES = 128, /* a put's data up to here travels in the work request */
    SLOT_BYTES = TRANSPORT_COPIED,
    SLOTS = 512,      /* for what is copied on its way, of all links */
    SLOTS_LEAST = 4,  /* of one link, when few are left */
    SEND_DEPTH = 128, /* work requests of a path; a power of two */
    SEND_LEAST = 64,  /* and no NIC takes fewer */
    BATCH = 16,       /* work requests posted at once */
    WINDOW = 24,      /* messages to one PE that have no reply yet */
    /* what a peer can have on its way to this PE: messages, replies, and two questions for keys */
    RECEIVES = 2 * WINDOW + 4,
    RECEIVES_LEAST = 8,
    INBOX_BLOCK = 1024, /* places that are registered at once */
    REPLIES = 64,       /* a power of two, above 2 * WINDOW */
    POLL = 32,
    QUEUE_PAIRS_MOST = 4, /* between two NICs */
    PATHS_MOST = RAILS_MOST * QUEUE_PAIRS_MOST,
    STRIPE_BYTES = 64 << 10, /* at least so much goes by each path, or all by one */
    PACKETS_MOST = 1 << 22,  /* on their way by one path: their numbers have 24 bits */
    JOINED = 1024,           /* requests that are part of others, of a link; a power of two */
    COALESCED_MOST = 32, /* collections of what is small that are not done, of a link; a power of two */
    BELOW_ROUNDS =
        64, /* from one look at the transport below to the next, while it has nothing to do */
    RETRY_ROUNDS = 1024, /* and at paths that are down */
};

#define CHUNK_BYTES (16ull << 20) /* of a segment: registered, and its key asked for, at once */

#define RECEIVED (1ull << 63) /* in wr_id: the rest is the number of the place in the inbox */
#define NONE_ALONE UINT64_MAX /* no work request's */

struct verbs;
struct link;
struct note; /* note.h */
struct updates; /* atomics.c */
struct cm;   /* cm.c */
struct resolver;  /* resolve.c: threads, */
struct resolving; /* and a queue pair that they are at */
struct stage; /* stage.c */
struct rdma_cm_id;
struct device_update; /* device/device.h */

/* ---- One request on its way to one PE ---- */

enum op_below { BELOW_NOT, BELOW_CARRIES, BELOW_DONE };

struct op {
    struct transport_request request;
    struct link *link;
    uint32_t end[PATHS_MOST]; /* done when so many work requests of those paths are, */
    uint32_t number;          /* and when the reply to this message has come, if `wants_reply` */
    int slot;                 /* for its data; -1: none */
    struct ibv_mr *mr[NICS_MOST]; /* of memory that was registered for it alone */
    bool registered;              /* some of them are there */
    uint64_t value;               /* a signal's, on its way */
    uint32_t joined_end;          /* those that are part of it come before this one of the link's */

    struct {         /* all of it zero at first: */
        uint64_t at; /* bytes that have been given to queue pairs, but for */
        struct hole *hole; /* these; NULL: none */
        struct coalesced
            *coalesced;     /* what is small, this and all that is part of it; NULL: it is alone */
        uint64_t expected; /* what the NIC is to find where it updates */
        uint64_t waits_since;    /* ns, for the path to that NIC; 0: it does not */
        gshmem_status_t failure; /* its own, not the link's */
        uint16_t used;           /* paths, a bit each: see `end` */
        uint16_t parts;          /* of those coalesced in it, that the transport below carries */
        uint16_t pieces;         /* those that are not done, where it is staged */
        uint8_t below;           /* an enum op_below */
        bool wants_reply;
        bool issued;
        bool fenced;  /* what must be before it has been marked */
        bool held;    /* all but its signal, which waits for stripes on other paths */
        bool updates; /* it has given a NIC something to update; held: which has to succeed */
        bool behind;  /* a fence */
        bool staged;  /* through buffers, by pieces */
    };
    unsigned char small[SMALL_BYTES];
};

/* Bytes of a request that a path was given and that did not arrive by it, while what lies behind them was
 * given to others. */
struct hole {
    struct hole *next; /* further behind, and not adjacent */
    uint64_t at, bytes;
};

/* A request that has become part of the one before it. */
struct joined {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

/* Small puts and updates that travel together, as in a message of them (message.h). */
struct coalesced {
    struct op *op; /* the first, whose parts the others are */
    struct message_change last;
    uint32_t bytes, changes; /* of text, and as many in it */
    uint32_t head;           /* where the last begins */
    bool updates;            /* there are such */
    bool of_device; /* some are puts to memory that only the owner's device can touch */
    bool closed;    /* nothing joins them any more */
    unsigned round;       /* when it was last asked for, */
    uint32_t then;        /* and how many requests were joined to others by then */
    unsigned char text[MESSAGE_CHANGES_DATA];
};

/* ---- One queue pair, from one of this PE's NICs to one of the peer's ---- */

enum path_state {
    PATH_NONE,     /* one of the two has no NIC for it */
    PATH_ASKED,    /* an offer is on its way; nothing can be sent yet */
    PATH_READY,    /* this side can receive, the other has not said so */
    PATH_TRIED,    /* with an empty write, since it has been down */
    PATH_UP,
    PATH_STOPPING, /* it broke: what has arrived by it is being found out */
    PATH_DOWN,     /* and it may be made anew */
};

/* What a work request that is not known to be done was for. */
enum work_kind { WORK_WRITE, WORK_READ, WORK_SIGNAL, WORK_MESSAGE, WORK_OTHER, WORK_UPDATE };

struct work {
    uint64_t at; /* of the op's bytes, where this piece of them begins */
    uint32_t op;
    uint32_t packet_end; /* the number of the packet behind its last */
    uint8_t kind;
    bool behind_reads; /* the NIC held it back until all reads before it had come */
    uint32_t bytes;    /* of the op's */
};

struct path {
    struct link *link;
    struct nic *nic;
    int index;       /* among its link's */
    uint32_t number; /* the same on both sides: rail and queue pair */
    enum path_state state;
    uint32_t life;
    uint64_t mark;   /* of its work requests of this life: the upper half of their wr_id */
    bool tried;      /* it has been up, or could not be made: no request waits for it any more */
    unsigned unsaid; /* enum say */
    struct ibv_qp *qp;
    uint32_t first_packet; /* its number */
    int packet_shift;      /* log2 of a packet's bytes */
    bool receives;         /* it knows which packet it would take */
    bool reorders;         /* one of its two NICs does: its writes are in no order until they are done */
    bool peer_ready;       /* it said so before its offer was heard */

    bool drained, stopped_here, stopped_there;
    uint32_t given, failed; /* the last work request of its queue pair when it broke; the last that has failed */
    uint64_t broke_at;     /* ns */
    struct rdma_cm_id *connection; /* of iWARP's, which is made beside the queue pair: */
    bool connecting, connected;
    uint64_t connecting_ns;            /* for how long */
    uint32_t peer_queue, peer_packet;
    bool heard;                  /* the other's offer, in this life */
    struct resolving *resolving; /* its queue pair is being told of that; or NULL */
    struct note *stopped; /* [2], while it stops: what this side says then, and the other */

    uint32_t sends, done; /* work requests, counted for ever */
    uint32_t fence;       /* those before the last fence */
    uint32_t last_read, fence_read; /* the last that reads, and the last before the fence */
    uint32_t packet, packet_done;
    uint32_t batch_first, batched;  /* of wr: not given to the queue pair yet */
    struct work work[SEND_DEPTH];
    struct ibv_send_wr wr[BATCH];
    struct ibv_sge sge[BATCH];
    struct ibv_send_wr lone; /* a small put's that goes alone, but for what each has of its own */
    struct ibv_sge lone_sge;
    uint32_t inline_most; /* bytes within a work request of its queue pair */
    uint32_t lone_most;   /* of `lone`; 0: none go within it */
    struct message_bytes text[BATCH];
    struct message_bytes *kept; /* [SEND_DEPTH]: what NICs cannot take inline, until it is done */
    struct ibv_mr *kept_mr;
};

/* ---- All that leads to one PE ---- */

enum link_state {
    LINK_WAITS, /* for its first path, or to know what has arrived by one that broke */
    LINK_UP,
    LINK_BELOW, /* there is no path: requests go to the transport below */
    LINK_FAILED,
};

/* What is said on the way, and has not been taken by the transport below yet. */
enum say { SAY_OFFER = 1, SAY_READY = 2, SAY_NONE = 4, SAY_STOPPED = 8 };

/* A piece of one of the peer's segments, and what it takes to write there. */
struct near {
    uint64_t from, bytes; /* 0: none */
    uint64_t base;        /* the peer's address of offset 0 */
    uint32_t key;
    int segment;
};

struct link {
    struct link *next;
    struct verbs *verbs;
    int pe;
    enum link_state state;
    gshmem_status_t failure;
    struct path *path[PATHS_MOST];
    int paths;
    struct path *up[PATHS_MOST]; /* those that are up; the first takes what is small, and messages */
    int ups;
    struct path *direct; /* that one, where puts of the CPU's memory can be plain writes; or NULL */
    uint64_t alone; /* wr_id of the first request's one work request, if nothing is to be done for it
                       but to hear that it is done; or NONE_ALONE */
    struct path *alone_by;
    struct near near; /* where the last small put went that was alone */
    struct path *messenger; /* that one, until what came by it is known; NULL: none is up */
    uint16_t lacks;         /* paths of the peer's that this side has not, and has not said so yet */
    uint8_t receiving;      /* NICs that have receives for it */
    bool recovered;            /* messages may have come twice */
    bool below_for_good;    /* some memory cannot be registered: no path is tried again */
    char refused[400];      /* what the peer would not do; "": nothing */
    uint64_t retry_at;    /* ns: when paths that are down are tried again */
    unsigned retries;

    struct op *op;                  /* [depth]: see op_of */
    uint32_t depth;
    uint32_t posted, issuing, done; /* requests, counted for ever */
    struct joined *joined;          /* [JOINED]; NULL until something is coalesced, as is */
    uint32_t joined_first, joined_next;
    struct coalesced *coalesced;      /* [COALESCED_MOST] */
    uint32_t coalesced_first, coalesced_next;
    struct coalesced *collecting; /* the last, while more of the CPU's memory may join it; or NULL */
    uint32_t below_left;            /* that the transport below carries */
    int slots;                      /* of the transport's, that its requests hold */
    uint32_t held;                  /* whose signals wait, or updates */
    struct path *updater; /* the path to that NIC of the peer's which makes its updates; or NULL */
    struct updates *updates;        /* NULL until there are some */
    uint32_t epoch;                 /* of the last that was issued */
    bool ordered;                   /* that one was not to be overtaken */

    uint32_t said, replied;      /* messages, and those that have their reply */
    uint32_t last_update;        /* the last of those said that changes memory */
    uint32_t fence_update;       /* and the last before the fence */
    uint32_t heard_number;       /* of the other's messages, */
    uint32_t served_number;      /* and of those that have been carried out */
    struct path *heard_by;       /* where the last came from */
    struct stage *stage;         /* NULL until something is staged */
    bool gpu_below;              /* the other's NICs do not get at its GPU's memory */
    bool heard_now, heard_any; /* notes: since it was last listened to, and ever */
    bool broken_unsaid;        /* it has failed, and the peer has not been told */
    bool owed_then;            /* the peer owed something when it was last listened to */
    uint32_t replied_then, heard_then; /* when it was last listened to, */
    uint64_t silent_ns;                /* and for how long it has owed something and sent nothing */
    uint32_t window;             /* messages without reply that the other has room for */
    uint64_t *key[TRANSPORT_SEGMENT_MAX]; /* [chunk][rails] of the peer's */
    struct rail rail[RAILS_MOST];         /* pairs of NICs, */
    int pairs;                            /* how many, */
    int rails;                            /* and for how many of them there are keys */
    uint64_t bytes[TRANSPORT_SEGMENT_MAX]; /* of its segments */
    uint64_t base[TRANSPORT_SEGMENT_MAX];
    bool asking; /* for the keys that the next request lacks: */
    int asked_segment;
    uint64_t asked_chunk;
    uint32_t asked_number;

    bool owes_reply;               /* to served_number */
    struct message reply[REPLIES]; /* the last ones; those from reply_next on are yet to be sent */
    uint32_t reply_next, reply_end;
};

/* ---- A message of the other's that this PE carries out ---- */

enum served {
    SERVED,
    SERVED_LATER, /* not to its end: the device is at an update */
    SERVED_NEVER, /* it makes no sense, or has failed */
};

/* How far it has got; all of it zero at first. */
struct serving {
    uint64_t update;            /* the device's ticket for one that is under way; 0: none is */
    uint32_t taken;             /* bytes of its changes that are made, */
    struct message_change last; /* the last of those, */
    bool stored;                /* or a put's data is in its place */
};

/* ---- A NIC that this PE uses ---- */

struct nic {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    int port;
    uint16_t pkey_index;
    struct port_address address[ADDRESSES_MOST]; /* the best first */
    int addresses;
    uint16_t lid;
    bool ethernet, iwarp;
    bool updates; /* it makes atomics */
    bool cannot_fence; /* work behind reads is held back here */
    bool reorders;     /* it may place writes of a queue pair in another order than theirs */
    bool tells_packet; /* which packet a queue pair would take next */
    enum ibv_mtu mtu;
    uint32_t reads, reads_asked; /* at a time, of one queue pair: by others here, and by this side */
    bool needs_grh; /* InfiniBand's port takes nothing without a global header */
    uint32_t receives_most, sends_most, completions_most;
    uint32_t sends_free;  /* of sends_most, for requests: the rest is for replies and questions */
    uint32_t inline_most; /* bytes within a work request of the next queue pair, as far as is known */
    uint8_t place, distance; /* as in struct rail_end */
    char name[120];       /* for people: device, port, address; */
    char chosen[80];      /* and why it was */
    bool armed;           /* its next completion will make the channel readable */
    bool down;            /* its port is, as it has said */
    bool gone;            /* it has been taken away */

    struct cm *cm; /* iWARP's */
    struct ibv_mr **chunk[TRANSPORT_SEGMENT_MAX]; /* of this PE's segments, NULL until asked for */
    struct ibv_mr *slots_mr, *stage_mr; /* NULL until something is staged */
    struct message_bytes **inbox; /* where messages arrive: blocks, made as links are */
    struct ibv_mr **inbox_mr;
    uint32_t inbox_room, inbox_posted;
    uint32_t works_left; /* work requests for whose completions the queue still has room */
};

/* ibv_reg_dmabuf_mr */
typedef struct ibv_mr *register_dma_buf(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                        uint64_t address, int fd, int access);

struct verbs {
    struct transport base;
    struct transport_config config;
    struct transport *below;
    struct nic nic[NICS_MOST];
    int opened, nics; /* of them those in use; 0: everything goes below */
    enum transport_way way;             /* to memory of a device's own */
    register_dma_buf *register_dma_buf; /* NULL: this libibverbs has none */
    bool gpu_below;                     /* NICs do not get at it: it is staged */
    bool refusal_said;                  /* that some memory cannot be registered: once is enough */
    struct staging staging;
    struct link **to;  /* [PE]: NULL until it is first talked to */
    bool *gone;        /* [PE]: it is lost to the job */
    struct link *links; /* list of those */
    char *slots;        /* SLOTS of SLOT_BYTES */
    int slot_free[SLOTS], slots_left;
    uint32_t coalesce_from; /* so many small puts that wait for each other go as one message */
    uint32_t share;     /* receives for each peer, of what each NIC has */
    int queue_pairs;    /* between two NICs */
    int wait_fd;        /* epoll: that of the transport below, and the NICs' channels */
    bool held_back;     /* some link has batched requests, or something unsaid */
    int connecting;     /* paths of iWARP's */
    struct resolver *resolver; /* NULL until one is needed */
    int resolving;      /* queue pairs that it was given, and that have not been taken back */
    int stopping;       /* paths that wait for their completions to be drained */
    unsigned rounds;
    uint64_t listened_at; /* ns */
    bool settled;       /* it had nothing to do for any link when that was last looked at */
    int events;
};

static inline bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* Of a number that has been given to a request which is not done, or to the next one. */
static inline struct op *op_of(const struct link *l, uint32_t number)
{
    return &l->op[number & (l->depth - 1)];
}

static inline bool is_near(const struct link *l, int segment, uint64_t offset, uint64_t bytes)
{
    const uint64_t at = offset - l->near.from;

    return at < l->near.bytes && bytes <= l->near.bytes - at && segment == l->near.segment;
}

extern const struct transport_ops gshmem_transport __attribute__((visibility("default")));

/* ---- nic.c ---- */

/* The NICs and ports that the settings and what is active allow, best first, opened; how many. 0,
 * with the reason: there is none; -1: as a setting asks for what is not there. */
int nics_find(const struct transport_config *config, struct nic nic[NICS_MOST], char *why,
              size_t why_size);
gshmem_status_t nic_open(struct verbs *v, struct nic *nic);
void nic_close(struct verbs *v, struct nic *nic);
/* Its addresses, which have another place in the port's table, or are others, after its link was down. */
void nic_ask_again(const struct verbs *v, struct nic *nic);
int nic_reads_into(const struct nic *nic); /* the rights that memory needs for it */
/* Room in the queue of receives for one more peer; false: there is none left. */
bool nic_add_receives(struct verbs *v, struct nic *nic);
bool nic_receive_again(struct nic *nic, uint32_t index);
struct message_bytes *nic_inbox(const struct nic *nic, uint64_t index);

/* ---- memory.c ---- */

/* The registration with a NIC that covers this address of a segment of this PE's, made at first use,
 * and how many bytes from there on. NULL: it cannot be, or it is none of a segment (*bytes is 0
 * then). */
struct ibv_mr *memory_of(struct verbs *v, struct nic *nic, const void *at, uint64_t *bytes);
struct ibv_mr *memory_of_chunk(struct verbs *v, struct nic *nic, unsigned segment, uint64_t chunk);
/* Whether any NIC holds some of these bytes. */
bool memory_is_pinned(const struct verbs *v, int segment, uint64_t offset, uint64_t bytes);
void memory_forget(struct verbs *v, int segment, uint64_t offset, uint64_t bytes);
void memory_release(struct verbs *v, struct nic *nic);
/* Whole pages for what NICs read and write, to be freed: on kernels before 5.12 a child of fork does not get the pages
 * that are registered, and would miss what else lay there (see ibv_fork_init). */
void *memory_pages(size_t bytes);
/* Any memory of this process. */
struct ibv_mr *memory_register(struct verbs *v, struct nic *nic, void *at, uint64_t bytes,
                               bool of_device, int access);
/* Tries whether a limit of the process leaves room for what is registered at a time; if not, that has been said. */
bool memory_can_be_registered(struct verbs *v);
/* Whether all NICs get at memory of the device's, and how, or why not. */
bool memory_of_device(struct verbs *v, char *why, size_t why_size);

/* ---- gpu.c: where the CPU's loads and stores will not do, the device's copies and updates ---- */

bool gpu_has(const struct verbs *v, const void *at, uint64_t bytes);
/* From any memory of this process to the CPU's, and back. */
gshmem_status_t gpu_fetch(struct verbs *v, void *to, const void *from, uint64_t bytes);
gshmem_status_t gpu_deliver(struct verbs *v, void *to, const void *from, uint64_t bytes);
/* What NICs have written to its memory is seen by kernels that run. */
gshmem_status_t gpu_flush(struct verbs *v);
/* In a segment of this PE's, for a peer. */
gshmem_status_t gpu_store(struct verbs *v, unsigned segment, char *at, const void *data, uint64_t bytes);
/* Updates. SERVED_LATER: the device is at it, or at too many others, and the same call with the same
 * *ticket, 0 at first, is to come again. */
enum served gpu_signal(struct verbs *v, unsigned segment, uint64_t *at, int op, uint64_t value,
                       uint64_t *ticket);
enum served gpu_apply(struct verbs *v, unsigned segment, const struct device_update *u,
                      uint64_t *ticket, uint64_t *old);
void gpu_forget(struct verbs *v, uint64_t *ticket); /* nobody asks for it again */

/* ---- reach.c ---- */

/* Says behind the address of the transport below, of *bytes bytes, that this PE uses verbs. */
gshmem_status_t reach_publish(const struct verbs *v, void *address, size_t capacity, size_t *bytes);
/* Which of this PE's NICs could talk to which of that one's, the best pair first; 0: none, and why.
 * `here`: it is of this host, or this one. *updater: the pair whose other end makes updates there,
 * or -1. Less than 0: the starter is being asked for what that one published. */
int reach_find(const struct verbs *v, int pe, bool here, struct rail rail[RAILS_MOST], int *updater,
               char *why, size_t why_size);

/* Which of this PE's NICs makes updates of its memory; and what PEs have in common whose such NICs
 * can be taken to reach each other: they are the only ones, or of one network and rail. */
int reach_updater(const struct verbs *v, uint32_t *fabric);

/* ---- path.c ---- */

/* Both NULL where there is no memory for it. */
struct path *path_create(struct verbs *v, struct link *l, uint32_t number);
/* Makes its queue pair, and offers it; false, with the reason: it cannot be made. */
bool path_begin(struct verbs *v, struct path *p, char *why, size_t why_size);
void path_hear(struct verbs *v, struct path *p, const struct note *n);
void path_say_rest(struct verbs *v, struct path *p);
/* It can be used from here on. */
void path_come_up(struct verbs *v, struct path *p);
/* It finds no way, and the other is told. */
void path_refuse(struct verbs *v, struct path *p, const char *why);
void path_connected(struct verbs *v, struct path *p); /* of iWARP's */
/* Its queue pair has been told of its peer, or cannot be. */
void path_resolved(struct verbs *v, struct path *p, int error);
void path_end(struct path *p); /* nothing is read or written for it any more */
void path_free(struct path *p);

/* ---- failover.c ---- */

/* It has broken: what has arrived by it is found out, and the rest goes by others. */
void failover_break(struct verbs *v, struct path *p, const char *why);
void failover_hear(struct verbs *v, struct path *p, const struct note *n);
/* Ends it, if both sides have said what came. */
void failover_go_on(struct verbs *v, struct path *p);
/* All completions of a NIC's have been taken. */
void failover_drained(struct verbs *v, const struct nic *nic);
/* What the NICs say of themselves, and peers that say nothing. */
void failover_watch(struct verbs *v);
/* To be called now and then: tries paths that are down again. */
void failover_retry(struct verbs *v);

/* ---- link.c ---- */

gshmem_status_t link_open(struct verbs *v, int pe, struct link **out);
void link_heard(struct verbs *v, int from, const unsigned char *note, size_t bytes);
void link_say_rest(struct verbs *v, struct link *l);
/* false: later */
bool link_say(struct verbs *v, struct link *l, const struct note *n);
/* A path of it has come, or gone: which are used now, and whether any. */
void link_settle(struct verbs *v, struct link *l);
/* Memory that it takes cannot be registered: what has not arrived, and all that follows, goes by the transport
 * below. */
void link_go_below(struct verbs *v, struct link *l, const char *why);
/* All its requests end with that; the transport's user is told why, unless why is NULL. */
void link_fail(struct verbs *v, struct link *l, gshmem_status_t status, const char *why);
void link_close(struct verbs *v, struct link *l);
bool link_is_busy(const struct link *l);
/* There is other memory in the peer's segment from here on. */
void link_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes);
/* Bytes that a peer takes at first with so many queue pairs: of this PE's, and within a NIC or beside it. */
static inline void link_cost(int queue_pairs, uint64_t *here, uint64_t *of_nic)
{
    enum { WORK_BYTES = 64 + sizeof(struct message_bytes) }; /* as ConnectX has it: what is within it, and its head */

    *here = sizeof(struct link) + OPS_FIRST * sizeof(struct op) + RECEIVES * sizeof(struct message_bytes) +
            (unsigned)queue_pairs * sizeof(struct path);
    *of_nic = (unsigned)queue_pairs * (SEND_DEPTH * WORK_BYTES + RECEIVES * 64);
}

/* Room for the keys of the peer's chunks. */
bool link_remember(struct link *l, const struct note *offer);

/* ---- post.c; the rest of it is inline in post.h ---- */

bool post_message(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                  const struct message *m); /* false: no room */
/* Gives the queue pair what has been collected; false: not all of it, yet. */
bool post_batch(struct verbs *v, struct path *p);

/* ---- issue.c ---- */

gshmem_status_t issue_post(struct verbs *v, struct link *l,
                           const struct transport_request *request);
/* The general way for any. */
gshmem_status_t issue_in_turn(struct verbs *v, struct link *l,
                              const struct transport_request *request);
/* Gives queue pairs what they can take. */
void issue_more(struct verbs *v, struct link *l);
static inline void issue_batched(struct verbs *v, struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->batched)
            post_batch(v, l->path[i]);
    }
}

/* To be called now and then: marks of what is long done would seem to lie ahead when 2^31 work
 * requests have followed, which may be some minutes. */
void issue_move_marks(struct link *l);
/* Which bytes of an op a path is to be given next; false: none are left. And so many of them were. */
bool issue_next_piece(const struct op *op, uint64_t *at, uint64_t *bytes);
void issue_took_piece(struct op *op, uint64_t bytes);
/* Work that did not arrive is to be issued again (false: out of memory); so are messages behind that
 * number. */
bool issue_again(struct link *l, const struct work *w);
void issue_unheard(struct link *l, uint32_t heard);
uint32_t issue_number(const struct link *l, const struct op *op); /* a request's, of its link's */
/* Registers the program's own memory for this request alone. */
struct ibv_mr *issue_register_alone(struct verbs *v, struct nic *nic, struct op *op);
/* Whether there is room for one more; ops may lie elsewhere then. */
bool issue_has_room(struct verbs *v, struct link *l);
/* An op that is not posted yet, behind the last; there is one. */
struct op *issue_open(struct link *l, const struct transport_request *request);
/* Parts of an op; false: not now. A message that changes memory, */
bool issue_update(struct verbs *v, struct link *l, struct op *op, struct message *m);
/* and a write within a chunk, of what stays where it is until then; `at`: of the op's bytes. */
bool issue_small(struct verbs *v, struct link *l, struct op *op, uint64_t at,
                 const struct message_change *put);
/* Whether what changes memory as a message may not have done so, which a fence wants done. */
bool issue_has_unapplied(const struct link *l);
/* Before the transport below carries a request: whether all messages before its fence have been applied. What they
 * update may take its time, while other requests overtake them. */
bool issue_may_go_below(struct link *l, struct op *op);
/* Whether the next write would have to wait for others, as its path reorders; a message would not. */
bool issue_waits_for_writes(const struct link *l);

/* ---- coalesce.c ---- */

/* What comes while some are collected. */
gshmem_status_t coalesce_more(struct verbs *v, struct link *l,
                            const struct transport_request *request);
/* Whether a request may wait for more of its kind, and */
bool coalesce_takes(const struct link *l, const struct transport_request *request);
/* lets it; TRANSPORT_FULL: there is no room. */
gshmem_status_t coalesce_post(struct verbs *v, struct link *l,
                            const struct transport_request *request);
bool coalesce_waits(struct verbs *v, struct link *l, const struct op *op);
bool coalesce_issue(struct verbs *v, struct link *l, struct op *op);
/* Hands them to the transport below; false: not all of them, yet. */
bool coalesce_carry(struct verbs *v, struct link *l, struct op *op);

/* ---- atomics.c: what NICs update ---- */

/* What a request wants of one word. */
struct update {
    enum gshmem_amo amo;
    int type;
    int segment;
    uint64_t operand, compare;
    uint64_t word;   /* its offset */
    unsigned within; /* where in it the object begins */
    bool half;       /* and whether it is half of it */
};

/* Whether a request has a part that the owner's NIC alone may do. */
static inline bool atomics_have(const struct verbs *v, const struct transport_request *r)
{
    if (r->kind == TRANSPORT_ATOMIC)
        return v->config.segment[r->segment].by_nic;
    return r->signal_op && v->config.segment[r->signal_segment].by_nic;
}

/* What transport_ops.updates answers. */
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
    return (struct update){.amo = r->signal_op == GSHMEM_SIGNAL_ADD ? GSHMEM_AMO_ADD : GSHMEM_AMO_SET,
                           .type = GSHMEM_TYPE_UINT64,
                           .segment = r->signal_segment,
                           .operand = r->signal_value,
                           .word = r->signal_offset};
}

/* For the results of a link's updates, before the first; false: op->failure says why not. */
bool atomics_make_room(struct verbs *v, struct op *op);
/* The work request for an update, the last one of the link's updater. It holds the op, if the NIC
 * may find what makes it try again. */
void atomics_fill_in(struct verbs *v, struct op *op, const struct update *u, uint32_t key,
                     struct ibv_send_wr *wr);
/* The link's updater is not up; false: it is waited for, true: the request has failed. */
bool atomics_wait(struct verbs *v, struct op *op);
/* What has come back, to requests that are held for it. */
void atomics_look(struct verbs *v, struct link *l);
/* The result, to whom it is for. */
void atomics_deliver(struct link *l, const struct op *op);
/* A NIC has made the update, and the path broke before its answer came. */
void atomics_unanswered(struct verbs *v, struct link *l, const struct work *w);
void atomics_free(struct link *l);

/* ---- finish.c ---- */

/* Ends the requests that are done, in order. */
void finish_some(struct verbs *v, struct link *l);
/* Hands all requests to the transport below. */
void finish_below(struct verbs *v, struct link *l);
/* A part of an op for that transport (its end is filled in here); false: it is full. */
bool finish_part_below(struct verbs *v, struct link *l, struct op *op, struct transport_request *r);
/* The last part has been handed to it. */
void finish_all_below(struct op *op);
/* Where a request's data is: here, or in its copy. */
void *finish_data(const struct verbs *v, const struct op *op);

/* ---- complete.c ---- */

int complete_some(struct verbs *v); /* how much happened */
/* All that can be done for a link: ends what is done, replies, and gives the queue pair more. */
void complete_go_on(struct verbs *v, struct link *l);

/* ---- stage.c: through pinned buffers, where NICs do not get at a GPU's memory; and what waits for a GPU ---- */

/* Whether a segment of the other's is such memory. */
bool stage_is_far(const struct verbs *v, const struct link *l, int segment);
bool stage_needs(const struct verbs *v, const struct link *l, const struct op *op);
/* Asks for all of a request's data, the signal excepted; false: not now. */
bool stage_issue(struct verbs *v, struct link *l, struct op *op);
/* Before the transport below carries the rest of a request; false: some of it is still to be
 * answered. */
bool stage_to_below(struct link *l, struct op *op);
/* What the other has not heard up to there is to be asked again. */
void stage_forget(struct link *l, uint32_t heard);
/* Whether a message waits for those before it, or for data; and to take such. */
bool stage_hears(const struct link *l, const struct message *m);
bool stage_hear(struct verbs *v, struct link *l, const struct message *m, const struct serving *begun);
/* The path by which they came has broken: the first whose data that path was to move has not come, nor what is
 * behind it. What is before it stays. */
void stage_unhear(struct link *l);
void stage_go_on(struct verbs *v, struct link *l);
bool stage_is_busy(const struct link *l);
void stage_end(struct link *l);

/* ---- serve.c ---- */

/* Goes on with a message, in its turn. */
enum served serve_do(struct verbs *v, struct link *l, const struct message *m, struct serving *s);

/* Carries out a message; false: it makes no sense. */
bool serve_message(struct verbs *v, struct link *l, const struct message *m);
void serve_replies(struct verbs *v, struct link *l);
bool serve_take_reply(struct verbs *v, struct link *l, const struct message *m);

#endif

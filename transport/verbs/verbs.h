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

#include "transport/transport.h"
#include "transport/verbs/message.h"

enum {
    OPS = 256,         /* requests at a time to one PE; a power of two */
    SMALL_BYTES = 128, /* a put's data up to here travels in the work request */
    SLOT_BYTES = TRANSPORT_COPIED,
    SLOTS = 512,      /* for what is copied on its way, of all links */
    SEND_DEPTH = 512, /* work requests of a link */
    SEND_KEPT = 64,   /* of which so many are kept for replies and questions */
    BATCH = 32,       /* work requests posted at once */
    WINDOW = 24,      /* messages to one PE that have no reply yet */
    RECEIVES =
        2 * WINDOW + 16, /* what a peer can have on its way to this PE: messages, and replies */
    REPLIES = 64,        /* a power of two, above WINDOW */
    POLL = 32,
    NICS_MOST = 4, /* of one PE */
};

#define CHUNK_BYTES (16ull << 20) /* of a segment: registered, and its key asked for, at once */
#define PIECE_BYTES (1ull << 30)  /* at most in one work request; ports allow 2^31 */

#define RECEIVED (1ull << 63) /* in wr_id: the rest is the number of the place in the inbox */

struct verbs;

/* ---- One request on its way to one PE ---- */

struct op {
    struct transport_request request;
    uint64_t at;             /* bytes that have been given to the queue pair */
    uint32_t sends_end;      /* done when so many work requests of its link are, */
    bool wants_reply;        /* and, as a message went out, when its reply has come */
    uint32_t number;         /* of that message */
    gshmem_status_t failure; /* its own, not the link's */
    int slot;                /* for its data; -1: none */
    struct ibv_mr *mr;       /* of memory that was registered for it alone */
    uint64_t value;          /* a signal's, on its way */
    unsigned char small[SMALL_BYTES];
};

enum link_state {
    LINK_ASKED, /* an offer is on its way; nothing can be sent yet */
    LINK_READY, /* this side can receive, the other has not said so */
    LINK_TRIED, /* both can; whether their networks carry it shows with the first message each way */
    LINK_UP,
    LINK_BELOW, /* one of the two has no NIC for it: requests go to the transport below */
    LINK_FAILED,
};

/* What is said on the way to LINK_UP, and has not been taken by the transport below yet. */
enum { SAY_OFFER = 1, SAY_READY = 2, SAY_NONE = 4 };

struct link {
    struct link *next;
    int pe;
    enum link_state state;
    gshmem_status_t failure;
    unsigned unsaid;
    struct ibv_qp *qp;
    uint32_t first_packet; /* its number */
    bool peer_ready;       /* it said so before its offer was heard */
    bool greeted;          /* its first message has come */

    struct op *op;                  /* [OPS] */
    uint32_t posted, issuing, done; /* requests, counted for ever */

    uint32_t sends, sends_done; /* work requests likewise */
    uint32_t batched;           /* of them, not given to the queue pair yet */
    struct ibv_send_wr wr[BATCH];
    struct ibv_sge sge[BATCH];
    struct message_bytes text[BATCH];

    uint32_t said, replied;                /* messages, and those that have their reply */
    uint32_t last_update;                  /* the last of those said that nothing may overtake */
    uint32_t last_read;                    /* the last work request that reads */
    uint32_t heard_number;                 /* of the other's messages */
    uint64_t *key[TRANSPORT_SEGMENT_MAX];  /* [chunk] of the peer's; 0: unknown */
    uint64_t bytes[TRANSPORT_SEGMENT_MAX]; /* of its segments */
    uint64_t base[TRANSPORT_SEGMENT_MAX];
    bool asking; /* for the key that the next request lacks: */
    int asked_segment;
    uint64_t asked_chunk;
    uint32_t asked_number;

    bool owes_reply;               /* to heard_number */
    struct message reply[REPLIES]; /* those that found no room; counted for ever */
    uint32_t reply_first, reply_end;
};

/* ---- A NIC that this PE uses ---- */

struct nic {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    int port, gid_index;
    uint16_t pkey_index;
    union ibv_gid gid;
    uint16_t lid;
    bool ethernet, iwarp;
    enum ibv_mtu mtu;
    uint32_t reads; /* at a time, of one queue pair */
    uint32_t receives_most;
    char name[120]; /* for people: device, port, address */
    bool armed;     /* its next completion will make the channel readable */

    struct ibv_mr **chunk[TRANSPORT_SEGMENT_MAX]; /* of this PE's segments, NULL until asked for */
    struct ibv_mr *slots_mr;
    struct message_bytes *inbox; /* where messages arrive */
    struct ibv_mr *inbox_mr;
    uint32_t inbox_room, inbox_posted;
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
    struct link **to;                             /* [PE]: NULL until it is first talked to */
    struct link *links;                           /* list of those */
    char *slots;                                  /* SLOTS of SLOT_BYTES */
    int slot_free[SLOTS], slots_left;
    int wait_fd;    /* epoll: that of the transport below, and the NICs' channels */
    bool held_back; /* some link has batched requests, or something unsaid */
    int events;
};

extern const struct transport_ops gshmem_transport __attribute__((visibility("default")));

/* ---- nic.c ---- */

/* The NICs and ports that the settings and what is active allow, best first, opened; how many. 0,
 * with the reason: there is none; -1: as a setting asks for what is not there. */
int nics_find(const struct transport_config *config, struct nic nic[NICS_MOST], char *why,
              size_t why_size);
gshmem_status_t nic_open(struct verbs *v, struct nic *nic);
void nic_close(struct verbs *v, struct nic *nic);
/* Room in the queue of receives for one more queue pair. */
gshmem_status_t nic_add_receives(struct verbs *v, struct nic *nic, int pe);
bool nic_receive_again(struct nic *nic, uint32_t index);

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
/* Any memory of this process. */
struct ibv_mr *memory_register(struct verbs *v, struct nic *nic, void *at, uint64_t bytes,
                               bool of_device, int access);
/* Whether all NICs get at memory of the device's, and how, or why not. */
bool memory_of_device(struct verbs *v, char *why, size_t why_size);

/* ---- gpu.c: where the CPU's loads and stores will not do, the device's copies and updates ---- */

bool gpu_has(const struct verbs *v, const void *at, uint64_t bytes);
/* From any memory of this process to the CPU's, and back. */
gshmem_status_t gpu_fetch(struct verbs *v, void *to, const void *from, uint64_t bytes);
gshmem_status_t gpu_deliver(struct verbs *v, void *to, const void *from, uint64_t bytes);
/* In a segment of this PE's, for a peer. */
gshmem_status_t gpu_store(struct verbs *v, unsigned segment, char *at, const void *data, uint64_t bytes);
gshmem_status_t gpu_signal(struct verbs *v, unsigned segment, uint64_t *at, int op, uint64_t value);
gshmem_status_t gpu_apply(struct verbs *v, unsigned segment, enum gshmem_amo amo, int type, void *at,
                          uint64_t operand, uint64_t compare, uint64_t *old);

/* ---- reach.c ---- */

/* Says behind the address of the transport below, of *bytes bytes, that this PE uses verbs. */
gshmem_status_t reach_publish(const struct verbs *v, void *address, size_t capacity, size_t *bytes);
/* Whether that PE has a NIC which could talk to one of this PE's; false: why not. */
bool reach_might(const struct verbs *v, int pe, char *why, size_t why_size);

/* ---- link.c ---- */

gshmem_status_t link_open(struct verbs *v, int pe, struct link **out);
void link_heard(struct verbs *v, int from, const unsigned char *note, size_t bytes);
void link_say_rest(struct verbs *v, struct link *l);
/* Whether it is up by now: its first message has arrived there, and the other's here. */
void link_try(struct verbs *v, struct link *l);
/* There is no way for it by NICs, as has just been found out: its requests go below. */
void link_give_up(struct verbs *v, struct link *l, const char *why);
/* All its requests end with that; the transport's user is told why, unless why is NULL. */
void link_fail(struct verbs *v, struct link *l, gshmem_status_t status, const char *why);
void link_close(struct verbs *v, struct link *l);
/* There is other memory in the peer's segment from here on. */
void link_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes);

/* ---- issue.c ---- */

gshmem_status_t issue_post(struct verbs *v, struct link *l,
                           const struct transport_request *request);
/* Gives the queue pair what it can take, in order. */
void issue_more(struct verbs *v, struct link *l);
void issue_batched(struct verbs *v, struct link *l);
bool issue_message(struct verbs *v, struct link *l, const struct message *m); /* false: no room */
/* Ends the requests that are done, in order. */
void issue_finish(struct verbs *v, struct link *l);
/* Hands all requests to the transport below. */
void issue_below(struct verbs *v, struct link *l);

/* ---- complete.c ---- */

int complete_some(struct verbs *v); /* how much happened */
/* All that can be done for a link: ends what is done, replies, and gives the queue pair more. */
void complete_go_on(struct verbs *v, struct link *l);

#endif

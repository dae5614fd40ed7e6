/* A stream that this PE opened, as initiator.c (the stream) and initiator_staging.c (requests whose data is in
 * memory of the device's) know it. */
#ifndef GSHMEM_TRANSPORT_TCP_OUTBOUND_H
#define GSHMEM_TRANSPORT_TCP_OUTBOUND_H

#include "transport/tcp/address.h"
#include "transport/tcp/tcp.h"

enum {
    PENDING_MOST = 4096,     /* requests without an answer, per peer; a power of two */
    BATCH_BYTES = 16 * 1024, /* held back at most while answers are due */
    INITIATOR_READ = 64 * 1024,
};

/* A request whose answer is due. */
struct pending {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
    void *local; /* a get's destination, so far; an atomic's old value */
    uint64_t bytes; /* of a get, that have not come */
    enum response_kind due; /* RESPONSE_DONE where it brings nothing, so that any answer will do */
    uint8_t failure;      /* a status, where it has failed */
    bool part;            /* the next request is the rest of this put */
    bool of_device;       /* `local` is memory of the device's */
};

struct backlog;

/* Why a connection has not become a stream. */
enum trouble {
    TROUBLE_CONNECTING, /* it was not made */
    TROUBLE_ENDED,      /* it ended before both had greeted */
    TROUBLE_TIMEOUT,     /* the other side said nothing */
    TROUBLE_STRANGER,   /* the other side is not of the job */
};

struct initiator {
    struct stream stream;
    struct initiator *next;
    int pe;
    bool connected;
    bool proven;              /* the peer has proved that it is of the job, and been sent our proof */
    bool active;             /* the peer has said that ours is good */
    bool goodbye;             /* the peer has left in good order */
    bool failed;
    bool refused;             /* the peer has given this PE up */
    gshmem_status_t failure;
    struct address address;   /* the peer's, and how far down its list this is */
    int candidate;
    bool is_idle;             /* nothing is under way: the next request opens the stream */
    bool may_recover;         /* one of the addresses may lead to the peer if it is tried again */
    bool was_connected;
    bool has_messages;               /* some wait for the stream to be opened */
    int shortage;             /* errno, where this system had too little of something; else 0 */
    enum trouble trouble;     /* what came of the last attempt, */
    int error;                /* and its errno; 0: the other side closed the connection */
    int limit_s;             /* seconds for the opening, */
    int ticks;              /* and ticks that it has taken, */
    int attempt_ticks;              /* those at this address among them */
    int pause_ms;             /* between the last two rounds of all addresses */
    uint64_t retry_at;        /* ns, when the next begins; 0: not waiting */
    bool received;               /* something has come since the last tick */
    int silent_ticks;               /* ticks, while it initiator_awaits an answer */
    int notified;                 /* how many of the losses it has been told */
    uint64_t posted;          /* requests, the number of the last */
    uint64_t awaited;           /* the last whose answer somebody waits for */
    uint64_t completed;
    uint64_t responded;        /* what has been answered, and may still be on its way to the device */
    struct backlog *backlog;  /* NULL until a put comes from memory of the device's */
    struct staged_list landing; /* gets' data on its way to such memory */
    uint32_t held;            /* buffers of the staging pool */
    uint64_t unordered_received;           /* that the other PE has said on this stream, */
    uint64_t unordered_acked;      /* and how many it has been told to have been heard */
    struct request_frame unordered; /* one that comes */
    bool in_unordered;               /* `data_left` is of that */
    bool is_staging;             /* is in the list of those with something staged */
    struct initiator *next_staging;
    struct queue out;
    struct pending pending[PENDING_MOST]; /* by number */

    /* Answers: frames gather in `in`; a get's data goes from there, then from the socket, to where
     * it belongs. */
    unsigned char hello[HELLO_BYTES + PROOF_BYTES];
    unsigned char key[TRANSPORT_KEY_BYTES]; /* that the peer and this PE have */
    char *data_at;
    uint64_t data_left;       /* of those bytes that the last answer announced */
    uint64_t data_number;
    bool data_of_device;
    size_t in_first, in_end;
    unsigned char in[INITIATOR_READ];
};

static inline struct pending *pending_of(struct initiator *to, uint64_t number)
{
    return &to->pending[number % PENDING_MOST];
}

/* ---- initiator.c ---- */

/* Puts a request into the queue, which has room for it; its record, for what else is to be known. */
struct pending *initiator_enqueue(struct tcp *t, struct initiator *to, const struct transport_request *r,
                                 bool part);
static inline bool initiator_has_room(const struct initiator *to, uint64_t copied)
{
    return to->posted - to->completed < PENDING_MOST &&
           queue_has_room(&to->out, REQUEST_BYTES + copied, 2);
}
/* All requests up to `number` are over. */
void initiator_complete(struct tcp *t, struct initiator *to, uint64_t number, gshmem_status_t status);
/* Sends what the socket takes. False: the stream has ended. */
bool initiator_flush(struct tcp *t, struct initiator *to);
/* Has it looked after by initiator_advance, until nothing of it is staged any more. */
void initiator_stage(struct tcp *t, struct initiator *to);

/* Ends the stream and all requests. The peer is lost to the job, */
void initiator_fail(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why);
/* or not: the reason is here, and later requests try again; */
void initiator_fail_here(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why);
/* or this PE is lost to the peer. Returns false, as its users do. */
bool initiator_refused(struct tcp *t, struct initiator *to);

/* ---- initiator_connect.c ---- */

/* Begins to open a stream that is resting. It may have failed on return. */
void connect_begin(struct tcp *t, struct initiator *to);
/* Its socket says how connecting has ended. False: not well. */
bool connect_established(struct tcp *t, struct initiator *to);
/* Takes the next part of the greeting from the buffer, if all of it is there. False: the connection is over. */
bool connect_take_greeting(struct tcp *t, struct initiator *to, size_t have);
/* The connection has come to nothing: goes on with the next address, or later. False: nothing is under
 * way now. */
bool connect_failed(struct tcp *t, struct initiator *to, enum trouble trouble, int error);
/* At each tick while a stream is being opened. */
void connect_tick(struct tcp *t, struct initiator *to);

/* ---- initiator_staging.c ---- */

/* Whether a request must wait for its data, or behind others that do. */
bool backlog_takes(struct tcp *t, const struct initiator *to, const struct transport_request *r);
gshmem_status_t backlog_post(struct tcp *t, struct initiator *to, const struct transport_request *r);
/* Goes on with what can go on; whether anything did. */
bool backlog_advance(struct tcp *t, struct initiator *to);
bool backlog_empty(const struct initiator *to);
/* Ends all of it; the stream has ended. */
void backlog_end(struct initiator *to, gshmem_status_t status);

/* A buffer for what comes next of a get's data, or NULL: not now. */
struct staged *landing_buffer(struct tcp *t, struct initiator *to);
/* So many bytes of it are in the buffer. */
void landing_push(struct initiator *to, struct staged *b, size_t bytes);
/* Ends the gets whose data has reached the device; whether any. */
bool landing_advance(struct tcp *t, struct initiator *to);

#endif

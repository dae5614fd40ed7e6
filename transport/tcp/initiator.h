/* The initiator's direction: a stream that this PE opened. Requests go out, responses come in.
 *
 *     initiator.c             posts, sends, ticks
 *       ▼
 *     initiator_responses.c   receives and parses responses
 *       ▼                           ▼
 *     initiator_connect.c     initiator_unordered.c   makes the stream; the peer's unordered puts
 *       ▼
 *     initiator_end.c         how a stream ends
 *       ▼
 *     initiator_staging.c     device memory
 *       ▼
 *     initiator_pending.c     requests that await a response
 *       ▼
 *     initiator_coalesce.c    small requests that travel in one frame
 *
 * A file calls only files below it. */
#ifndef GSHMEM_TRANSPORT_TCP_INITIATOR_H
#define GSHMEM_TRANSPORT_TCP_INITIATOR_H

#include "runtime/trace/trace.h"
#include "transport/batch.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/state.h"

enum {
    PENDING_MOST = 4096,     /* requests to one PE that await a response; a power of two */
    BATCH_BYTES = 16 * 1024, /* at most so many are held back while responses are due */
    COALESCED_RECORD_MOST = BATCH_NUMBER_BYTES + 2 * 8,
};

/* A request that awaits a response. */
struct pending {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
    void *local;            /* a get's destination, so far; where an atomic's old value goes */
    uint64_t bytes;         /* of a get, or of a record that fetches, that have not arrived */
    enum response_kind due; /* RESPONSE_DONE: it brings nothing, and any response will do */
    uint8_t failure;        /* a status, where it has failed */
    bool part;              /* the next request is the rest of this put */
    bool of_device;         /* `local` is device memory */
};

/* The batch to which more small puts, gets or updates may be added: the last frame of the queue. */
struct coalescing {
    bool open;
    uint8_t kind, segment, amo, type;
    uint8_t records;   /* an enum frame_records */
    uint32_t bytes;    /* of an element, */
    uint32_t record;   /* and of a record */
    uint32_t elements;
    size_t frame;      /* positions in the queue's ring: where its frame begins, */
    size_t end;        /* and its records end */
};

struct backlog;

/* Why a connection has not become a stream. */
enum trouble {
    TROUBLE_CONNECTING, /* it was not made */
    TROUBLE_ENDED,      /* it ended before both sides had proven their key */
    TROUBLE_TIMEOUT,    /* the other side sent nothing */
    TROUBLE_STRANGER,   /* the other side is not of the job */
};

/* A stream that is being opened: the peer's addresses are tried in turn, again and again. */
struct connecting {
    struct address address; /* the peer's */
    int candidate;          /* the next of them to try */
    bool may_recover;       /* one of the addresses may lead to the peer if it is tried again */
    bool was_connected;     /* a connection was made to one of them */
    bool has_messages;      /* messages are queued, which must not be lost while the peer lives */
    int shortage;           /* errno, where this system had too little of something; else 0 */
    enum trouble trouble;   /* what became of the last attempt, */
    int error;              /* and its errno; 0: the other side closed the connection */
    int limit_s;            /* seconds until the peer is given up */
    int ticks;              /* since the opening began, or the peer proved its key */
    int attempt_ticks;      /* since this address was tried */
    int pause_ms;           /* between the last two rounds of all addresses */
    uint64_t retry_at;      /* ns, when the next round begins; 0: it does not wait for that */
    unsigned char hello[HELLO_BYTES + PROOF_BYTES];
    unsigned char key[TRANSPORT_KEY_BYTES]; /* of the peer and this PE */
};

/* Data that is arriving: a get's, or an unordered put's of the peer. */
struct initiator_data {
    char *at;
    uint64_t left;   /* bytes of those that the last frame announced */
    uint64_t number; /* of the get */
    bool of_device;  /* `at` is device memory */
    bool unordered;  /* it belongs to the peer's put in `unordered_put` */
};

struct initiator {
    struct stream stream;
    struct initiator *next;
    int pe;
    bool is_idle;   /* nothing is under way: the next request opens the stream */
    bool connected; /* the socket is */
    bool proven;    /* the peer has proven its key, and has been sent our proof */
    bool active;    /* the peer has accepted our proof: requests are sent */
    bool goodbye;   /* the peer has left in good order */
    bool failed;
    gshmem_status_t failure;
    struct connecting connecting;

    /* Invariant: completed <= responded <= posted; awaited <= posted. */
    uint64_t posted;    /* number of the last request */
    uint64_t awaited;   /* number of the last one whose response somebody waits for */
    uint64_t responded; /* the peer has carried out all up to here */
    uint64_t completed; /* `done` was called for all up to here: data has reached the device */

    bool received;    /* something has arrived since the last tick */
    bool is_small;    /* the buffers' pages were given back, and nothing has passed since */
    uint64_t ticked;  /* `posted` at the last tick */
    int silent_ticks; /* ticks without an arrival while the peer owes a response */
    int notified;     /* of how many failed PEs the peer has been notified */

    struct backlog *backlog;    /* NULL before the first put from device memory */
    struct staged_list landing; /* gets' data on its way to device memory */
    uint32_t held;              /* staging buffers of this stream */
    bool is_staging;            /* it is in the list initiators.staging */
    struct initiator *next_staging;

    uint64_t unordered_received;        /* unordered puts of the peer, */
    uint64_t unordered_acked;           /* and how many of them have been acknowledged */
    struct request_frame unordered_put; /* the one whose data is arriving */
    struct initiator_data data;
    uint64_t fetched; /* bytes of a RESPONSE_FETCHED that have not been taken; they belong to the
                         requests behind `responded` */

    /* Buffers: all zero is empty (initiator_shrink). */
    struct coalescing coalescing;
    struct queue out;
    struct pending pending[PENDING_MOST]; /* by number */
    struct receive_buffer in;
};

static inline struct pending *pending_of(struct initiator *to, uint64_t number)
{
    return &to->pending[number % PENDING_MOST];
}

/* Whether the queue has room for a request with so many bytes of copied data. */
static inline bool initiator_has_room(const struct initiator *to, uint64_t copied)
{
    const uint64_t frames = trace_is_on() ? 2 * REQUEST_BYTES : REQUEST_BYTES;

    return to->posted - to->completed < PENDING_MOST &&
           queue_has_room(&to->out, frames + COALESCED_RECORD_MOST + copied, 2);
}

/* ---- initiator_pending.c ---- */

/* Whether the request is a get into device memory. */
bool pending_is_for_device(const struct tcp *t, const struct transport_request *r);
/* Whether the queue copies what the request sends. */
static inline bool pending_is_copied(const struct transport_request *r)
{
    return r->bytes <= TRANSPORT_COPIED &&
           (r->kind == TRANSPORT_PUT ||
            (r->kind == TRANSPORT_BATCH && !(r->flags & TRANSPORT_KEPT)));
}

/* Queues a request, for which there is room. Returns its record. `part`: the next one is its rest.
 * held: it waits in the queue for more, and may travel in one frame with them. */
struct pending *pending_add(struct tcp *t, struct initiator *to, const struct transport_request *r,
                            bool part, bool held);
/* Calls `done` of all requests up to `number`. */
void pending_complete(struct tcp *t, struct initiator *to, uint64_t number, gshmem_status_t status);
/* The peer has carried out all requests up to `number`. They complete when the data of the gets
 * before them has reached the device. */
static inline void pending_respond(struct tcp *t, struct initiator *to, uint64_t number)
{
    to->responded = number;
    if (to->landing.first)
        to->landing.last->then = number;
    else
        pending_complete(t, to, number, GSHMEM_OK);
}
/* initiator_advance looks after the stream until nothing of it is staged any more. */
void pending_stage(struct tcp *t, struct initiator *to);

/* ---- initiator_coalesce.c ---- */

/* Queues a small put or get, or an update, as a record of a batch, together with those before and
 * behind it, and enters in its record what comes back. False: it has to be a frame of its own. */
bool initiator_coalesce(struct tcp *t, struct initiator *to, const struct transport_request *r,
                        struct pending *w);

/* ---- initiator_staging.c ---- */

/* Whether a request must wait for its data, or behind others that do. */
bool backlog_takes(struct tcp *t, const struct initiator *to, const struct transport_request *r);
gshmem_status_t backlog_post(struct tcp *t, struct initiator *to,
                             const struct transport_request *r);
/* Begins copies and queues what has been copied. *some: whether anything could go on. Returns
 * whether anything was queued: then it is to be flushed, and this called again. */
bool backlog_advance(struct tcp *t, struct initiator *to, bool *some);
bool backlog_empty(const struct initiator *to);
/* Ends all of it; the stream has ended. */
void backlog_end(struct initiator *to, gshmem_status_t status);

/* A buffer for what arrives next of a get's data, or NULL: not now. */
struct staged *landing_buffer(struct tcp *t, struct initiator *to);
/* So many bytes of it are in the buffer. */
void landing_push(struct initiator *to, struct staged *b, size_t bytes);
/* Completes the gets whose data has reached the device; whether there were any. */
bool landing_advance(struct tcp *t, struct initiator *to);

/* ---- initiator_unordered.c ---- */

/* An unordered put of the peer begins. False: it is against the rules. */
bool unordered_begin(struct tcp *t, struct initiator *to, const struct request_frame *f);
/* Its data has arrived. */
void unordered_apply(struct tcp *t, struct initiator *to);
/* Queues an acknowledgement of the unordered puts that have arrived. */
void unordered_acknowledge(struct tcp *t, struct initiator *to);

/* ---- initiator_end.c ---- */

/* Ends the stream and all its requests. The peer has failed, */
void initiator_fail(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why);
/* or it has not: the reason lies with this PE, and later requests try again; */
void initiator_fail_here(struct tcp *t, struct initiator *to, gshmem_status_t status,
                         const char *why);
/* or the peer has given this PE up (returns false); */
bool initiator_refused(struct tcp *t, struct initiator *to);
/* or the peer has sent something that breaks the rules (returns false). */
bool initiator_refuse(struct tcp *t, struct initiator *to, const char *what);
/* Ends them for transport close; the caller frees the stream. */
void initiator_abort(struct tcp *t, struct initiator *to);

/* ---- initiator_connect.c ---- */

/* Begins to open an idle stream. It may have failed on return. */
void connect_begin(struct tcp *t, struct initiator *to);
/* The socket says how connecting has ended. False: the stream is not connected. */
bool connect_established(struct tcp *t, struct initiator *to);
/* Takes the next part of the greeting from the receive buffer, if all of it is there. False: the
 * connection is over. */
bool connect_take_greeting(struct tcp *t, struct initiator *to, size_t have);
/* The connection came to nothing: continues with the next address, or later. False: nothing is
 * under way now. */
bool connect_failed(struct tcp *t, struct initiator *to, enum trouble trouble, int error);
/* The connection has ended, by that errno (0: the peer closed it): the attempt has failed, or,
 * where the stream was active, the peer. */
void connect_ended(struct tcp *t, struct initiator *to, int error);
/* At each tick while the stream is being opened. */
void connect_tick(struct tcp *t, struct initiator *to);
/* The retry timer has expired: connects again where that is due. */
void connect_retry(struct tcp *t);

/* ---- initiator_responses.c ---- */

/* Takes what is in the receive buffer. False: the stream has ended. */
bool initiator_parse(struct tcp *t, struct initiator *to);
/* Receives and takes what has arrived. False: the stream has ended. */
bool initiator_receive(struct tcp *t, struct initiator *to);

/* ---- initiator.c ---- */

gshmem_status_t initiator_post(struct tcp *t, const struct transport_request *request);
gshmem_status_t initiator_send_message(struct tcp *t, int pe, const void *message, size_t bytes);
/* Sends what was held back. */
void initiator_send_held(struct tcp *t);
/* Notifies all peers, now or when their stream is opened, that a PE has failed. */
void initiator_notify_failure(struct tcp *t, int failed);
/* Acknowledges all unordered puts that have arrived. */
void initiator_acknowledge(struct tcp *t);
/* Goes on with what is staged, or waits for a buffer; whether anything could. */
bool initiator_advance(struct tcp *t);
/* At each tick: gives up the peers that owe a response and are unresponsive. Whether any owes
 * one. */
bool initiator_tick(struct tcp *t);
/* Ends the stream to a PE that was given up; the PE is told so where that needs no waiting. */
void initiator_cut_off(struct tcp *t, int pe);
bool initiator_busy(const struct tcp *t);
/* Sends a goodbye on all active streams, and waits at most so long for each. */
void initiator_say_goodbye(struct tcp *t, int milliseconds);
void initiator_close_all(struct tcp *t);

#endif

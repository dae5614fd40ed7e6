/* A stream that this PE opened, as outbound.c (the stream) and backlog.c (requests whose data is in
 * memory of the device's) know it. */
#ifndef GSHMEM_TRANSPORT_TCP_OUTBOUND_H
#define GSHMEM_TRANSPORT_TCP_OUTBOUND_H

#include "transport/tcp/address.h"
#include "transport/tcp/tcp.h"

enum {
    WAITING_MOST = 4096,     /* requests without an answer, per peer; a power of two */
    BATCH_BYTES = 16 * 1024, /* held back at most while answers are due */
    OUTBOUND_READ = 64 * 1024,
};

/* A request whose answer is due. */
struct waiting {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
    void *local; /* a get's destination, so far; an atomic's old value */
    uint64_t bytes; /* of a get, that have not come */
    enum answer_kind due; /* ANSWER_DONE where it brings nothing, so that any answer will do */
    uint8_t failure;      /* a status, where it has failed */
    bool part;            /* the next request is the rest of this put */
    bool of_device;       /* `local` is memory of the device's */
};

struct backlog;

struct outbound {
    struct stream stream;
    struct outbound *next;
    int pe;
    bool connected;
    bool greeted;             /* each has proved to the other that it is of the job */
    bool goodbye;             /* the peer has left in good order */
    bool failed;
    gshmem_status_t failure;
    struct address address;   /* the peer's, and how far down its list this is */
    int candidate;
    bool heard;               /* something has come since the last tick */
    int silent;               /* ticks, while it owes an answer */
    int told;                 /* how many of the losses it has been told */
    uint64_t posted;          /* requests, the number of the last */
    uint64_t asked;           /* the last whose answer somebody waits for */
    uint64_t answered;
    uint64_t accepted;        /* what has been answered, and may still be on its way to the device */
    struct backlog *backlog;  /* NULL until a put comes from memory of the device's */
    struct staged_list landing; /* gets' data on its way to such memory */
    uint32_t held;            /* buffers of the staging pool */
    uint64_t words;           /* that the other PE has said on this stream, */
    uint64_t words_said;      /* and how many it has been told to have been heard */
    struct request_frame word; /* one that comes */
    bool hears;               /* `data_left` is of that */
    bool staging;             /* is in the list of those with something staged */
    struct outbound *next_staging;
    struct queue out;
    struct waiting waiting[WAITING_MOST]; /* by number */

    /* Answers: frames gather in `in`; a get's data goes from there, then from the socket, to where
     * it belongs. */
    unsigned char hello[HELLO_BYTES];
    char *data_at;
    uint64_t data_left;       /* of those bytes that the last answer announced */
    uint64_t data_number;
    bool data_of_device;
    size_t in_first, in_end;
    unsigned char in[OUTBOUND_READ];
};

static inline struct waiting *waiting_of(struct outbound *o, uint64_t number)
{
    return &o->waiting[number % WAITING_MOST];
}

/* ---- outbound.c ---- */

/* Puts a request into the queue, which has room for it; its record, for what else is to be known. */
struct waiting *outbound_enqueue(struct tcp *t, struct outbound *o, const struct transport_request *r,
                                 bool part);
static inline bool outbound_has_room(const struct outbound *o, uint64_t copied)
{
    return o->posted - o->answered < WAITING_MOST &&
           queue_has_room(&o->out, REQUEST_BYTES + copied, 2);
}
/* All requests up to `number` are over. */
void outbound_complete(struct tcp *t, struct outbound *o, uint64_t number, gshmem_status_t status);
/* Sends what the socket takes. False: the stream has ended. */
bool outbound_flush(struct tcp *t, struct outbound *o);
/* Has it looked after by outbound_advance, until nothing of it is staged any more. */
void outbound_stage(struct tcp *t, struct outbound *o);

/* ---- backlog.c ---- */

/* Whether a request must wait for its data, or behind others that do. */
bool backlog_takes(struct tcp *t, const struct outbound *o, const struct transport_request *r);
gshmem_status_t backlog_post(struct tcp *t, struct outbound *o, const struct transport_request *r);
/* Goes on with what can go on; whether anything did. */
bool backlog_advance(struct tcp *t, struct outbound *o);
bool backlog_empty(const struct outbound *o);
/* Ends all of it; the stream has ended. */
void backlog_end(struct outbound *o, gshmem_status_t status);

/* A buffer for what comes next of a get's data, or NULL: not now. */
struct staged *landing_take(struct tcp *t, struct outbound *o);
/* So many bytes of it are in the buffer. */
void landing_push(struct outbound *o, struct staged *b, size_t bytes);
/* Ends the gets whose data has reached the device; whether any. */
bool landing_advance(struct tcp *t, struct outbound *o);

#endif

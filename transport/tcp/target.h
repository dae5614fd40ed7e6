/* A stream that another PE opened, as target.c (the stream) and target_staging.c (requests that memory of the
 * device's has a part in) know it. */
#ifndef GSHMEM_TRANSPORT_TCP_INBOUND_H
#define GSHMEM_TRANSPORT_TCP_INBOUND_H

#include "transport/tcp/tcp.h"

enum {
    TARGET_READ = 64 * 1024,
    UNORDERED_MOST = 256,   /* on their way to one PE; a power of two */
    DEFERRED_MOST = 128, /* that wait, of one stream; a power of two */
    COPY_MOST = 4096,  /* a get's data, larger is sent from where it is */
};

struct deferred_list;

/* A word that the other PE has not said to have heard. */
struct unordered_put {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

struct target {
    struct stream stream;
    struct target *next;
    int pe;                 /* -1: a stranger, it has not proved to be one */
    int claimed;            /* the PE it says it is; -1: it has not said hello, */
    unsigned char proof[PROOF_BYTES]; /* and what shows that it belongs to the job */
    int age;                /* of a stranger, in ticks since it came, or said hello */
    bool awaits_key;           /* its hello stays in the buffer until the starter has told of the PE that it says it is */
    bool is_closing;            /* nothing more is read of it */
    uint64_t shown_alive;         /* ns, when it was last told that we live */
    bool goodbye;
    bool refused;           /* the other PE has given this one up */
    uint64_t executed;        /* of requests carried out */
    uint64_t responded;      /* the last number that an answer told */
    uint64_t awaited;         /* the last one whose answer somebody waits for */
    bool signalled;         /* the last of them set a signal */
    bool is_delayed;              /* is in the list of those whose answer may wait */
    struct target *next_delayed;
    bool is_unawaited;           /* is in the list of those whose answers nobody waits for */
    struct target *next_unawaited;
    struct request_frame put; /* whose data is arriving */
    char *data_at;
    uint64_t data_left;
    bool data_of_device;
    gshmem_status_t put_failure; /* what is left of its data is thrown away, and its signal is not set */
    struct deferred_list *deferred;  /* what has been taken and waits for copies; NULL: there never was any */
    uint32_t deferred_count;         /* how many of these there are */
    uint32_t held;            /* buffers of the staging pool */
    uint64_t unordered_sent;           /* that this PE has said to the other on this stream, */
    uint64_t unordered_done;     /* and how many of them are known to have come */
    bool received;               /* something has come since the last tick */
    int silent_ticks;               /* ticks, while an answer to words is due */
    bool is_staging;             /* is in the list of those with something staged */
    struct target *next_staging;
    struct queue out;
    size_t in_first, in_end;
    struct unordered_put unordered[UNORDERED_MOST]; /* by number */
    unsigned char in[TARGET_READ];
};

/* ---- target.c ---- */

void target_respond(struct target *from, enum response_kind kind, uint64_t number, uint64_t value);
/* Room for the answers to one more request; who reads none gets none until it does. */
bool target_has_room(const struct target *from);
/* Whether that request would change what a get before it has yet to send from its place: it has to wait. */
bool target_must_wait(const struct tcp *t, const struct target *from, const struct request_frame *f);
void target_execute_get(struct tcp *t, struct target *from, const struct request_frame *f);
void target_execute_atomic(struct tcp *t, struct target *from, const struct request_frame *f);
void target_end_put(struct tcp *t, struct target *from, const struct request_frame *f);
void target_stage(struct tcp *t, struct target *from);

/* ---- target_staging.c ---- */

static inline bool deferred_any(const struct target *from)
{
    return from->deferred_count;
}
/* Whether there is room for what one more request, or one more piece of data, needs. False: not now. */
static inline bool deferred_has_room(const struct target *from)
{
    return from->deferred_count + 2 <= DEFERRED_MOST;
}
/* What has been checked takes effect after all that was taken before. GSHMEM_OK: it will. */
gshmem_status_t deferred_add(struct tcp *t, struct target *from, const struct request_frame *f,
                            gshmem_status_t failure);
/* A buffer for what comes next of a put's data, or NULL: not now; and so many bytes of it are there. */
struct staged *deferred_buffer(struct tcp *t, struct target *from);
void deferred_push(struct tcp *t, struct target *from, struct staged *b, size_t bytes);
/* Goes on with what can go on; whether anything did. */
bool deferred_advance(struct tcp *t, struct target *from);
/* The stream has ended: nothing more takes effect. */
/* Whether the device is at an update for it, which may take long. */
bool deferred_updating(const struct target *from);
void deferred_end(struct tcp *t, struct target *from);

#endif

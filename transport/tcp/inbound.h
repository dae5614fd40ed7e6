/* A stream that another PE opened, as inbound.c (the stream) and effects.c (requests that memory of the
 * device's has a part in) know it. */
#ifndef GSHMEM_TRANSPORT_TCP_INBOUND_H
#define GSHMEM_TRANSPORT_TCP_INBOUND_H

#include "transport/tcp/tcp.h"

enum {
    INBOUND_READ = 64 * 1024,
    WORDS_MOST = 256,   /* on their way to one PE; a power of two */
    EFFECTS_MOST = 128, /* that wait, of one stream; a power of two */
    COPY_MOST = 4096,  /* a get's data, larger is sent from where it is */
};

struct effects;

/* A word that the other PE has not said to have heard. */
struct word {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

struct inbound {
    struct stream stream;
    struct inbound *next;
    int pe;                 /* -1: a stranger, it has not proved to be one */
    int claimed;            /* the PE it says it is; -1: it has not said hello, */
    unsigned char proof[PROOF_BYTES]; /* and what shows that it belongs to the job */
    int age;                /* of a stranger, in ticks since it came, or said hello */
    bool unkeyed;           /* its hello stays in the buffer until the starter has told of the PE that it says it is */
    bool doomed;            /* nothing more is read of it */
    uint64_t since;         /* ns, when it was last told that we live */
    bool goodbye;
    bool refused;           /* the other PE has given this one up */
    uint64_t number;        /* of requests carried out */
    uint64_t answered;      /* the last number that an answer told */
    uint64_t asked;         /* the last one whose answer somebody waits for */
    bool signalled;         /* the last of them set a signal */
    bool owes;              /* is in the list of those whose answer may wait */
    struct inbound *next_owed;
    bool unasked;           /* is in the list of those whose answers nobody waits for */
    struct inbound *next_unasked;
    struct request_frame put; /* whose data is arriving */
    char *data_at;
    uint64_t data_left;
    bool data_of_device;
    gshmem_status_t put_failure; /* what is left of its data is thrown away, and its signal is not set */
    struct effects *effects;  /* what has been taken and waits for copies; NULL: there never was any */
    uint32_t waiting;         /* how many of these there are */
    uint32_t held;            /* buffers of the staging pool */
    uint64_t words;           /* that this PE has said to the other on this stream, */
    uint64_t words_heard;     /* and how many of them are known to have come */
    bool heard;               /* something has come since the last tick */
    int silent;               /* ticks, while an answer to words is due */
    bool staging;             /* is in the list of those with something staged */
    struct inbound *next_staging;
    struct queue out;
    size_t in_first, in_end;
    struct word word[WORDS_MOST]; /* by number */
    unsigned char in[INBOUND_READ];
};

/* ---- inbound.c ---- */

void inbound_answer(struct inbound *i, enum answer_kind kind, uint64_t number, uint64_t value);
/* Room for the answers to one more request; who reads none gets none until it does. */
bool inbound_has_room(const struct inbound *i);
/* Whether that request would change what a get before it has yet to send from its place: it has to wait. */
bool inbound_changes_what_is_sent(const struct tcp *t, const struct inbound *i, const struct request_frame *f);
void inbound_serve_get(struct tcp *t, struct inbound *i, const struct request_frame *f);
void inbound_serve_atomic(struct tcp *t, struct inbound *i, const struct request_frame *f);
void inbound_end_put(struct tcp *t, struct inbound *i, const struct request_frame *f);
void inbound_stage(struct tcp *t, struct inbound *i);

/* ---- effects.c ---- */

static inline bool effects_any(const struct inbound *i)
{
    return i->waiting;
}
/* Whether there is room for what one more request, or one more piece of data, needs. False: not now. */
static inline bool effects_have_room(const struct inbound *i)
{
    return i->waiting + 2 <= EFFECTS_MOST;
}
/* What has been checked takes effect after all that was taken before. GSHMEM_OK: it will. */
gshmem_status_t effects_add(struct tcp *t, struct inbound *i, const struct request_frame *f,
                            gshmem_status_t failure);
/* A buffer for what comes next of a put's data, or NULL: not now; and so many bytes of it are there. */
struct staged *effects_take(struct tcp *t, struct inbound *i);
void effects_push(struct tcp *t, struct inbound *i, struct staged *b, size_t bytes);
/* Goes on with what can go on; whether anything did. */
bool effects_advance(struct tcp *t, struct inbound *i);
/* The stream has ended: nothing more takes effect. */
/* Whether the device is at an update for it, which may take long. */
bool effects_updating(const struct inbound *i);
void effects_end(struct tcp *t, struct inbound *i);

#endif

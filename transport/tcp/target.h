/* The target's direction: a stream that another PE opened. Requests come in, responses go out.
 *
 *     target.c             lists of streams, ticks
 *       ▼
 *     target_serve.c       serves a stream; when are responses sent?
 *       ▼
 *     target_requests.c    receives and parses requests
 *       ▼
 *     target_admission.c   who is it?
 *       ▼
 *     target_end.c         how a stream ends
 *       ▼                        ▼
 *     target_staging.c     target_unordered.c   device memory; this PE's own unordered puts
 *       ▼
 *     target_batch.c       carries out a batch of elements
 *       ▼
 *     target_execute.c     carries a request out
 *
 * A file calls only files below it. */
#ifndef GSHMEM_TRANSPORT_TCP_TARGET_H
#define GSHMEM_TRANSPORT_TCP_TARGET_H

#include "runtime/trace/trace.h"
#include "transport/batch_target.h"
#include "transport/segment.h"
#include "transport/tcp/state.h"

enum {
    UNORDERED_MOST = 256, /* unordered puts to one PE that are not acknowledged; a power of two */
    DEFERRED_MOST = 128,  /* requests and chunks of one stream that are deferred; a power of two */
    COPY_MOST = 4096,     /* a get's data; larger data is sent from its place */
};

struct deferred_list;

/* An unordered put of this PE that the peer has not acknowledged. */
struct unordered_put {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

/* A stream whose PE is not proven. */
struct stranger {
    int claimed;     /* the PE that it names; -1: it has not sent a valid hello */
    int age;         /* ticks since it connected, or sent its hello */
    bool awaits_key; /* its hello stays in the buffer until the key of that PE is known */
    unsigned char proof[PROOF_BYTES]; /* it belongs to the job if it sends this */
};

/* A put whose data is arriving. */
struct target_data {
    char *at;
    uint64_t left;
    bool of_device;              /* `at` is device memory */
    gshmem_status_t put_failure; /* the rest of the data is thrown away, and no signal is stored */
};

/* A batch whose records are arriving. */
struct target_batch {
    struct request_frame f;
    struct batch_object object;
    uint64_t left; /* records that have not been carried out */
};

struct target {
    struct stream stream;
    struct target *next;
    int pe; /* -1: a stranger */
    struct stranger stranger;
    bool is_closing; /* nothing more is read; target_drop_closing ends it */
    bool goodbye;    /* the peer has left in good order */

    /* Invariant: responded <= executed; awaited <= executed. */
    uint64_t executed;  /* requests carried out */
    uint64_t responded; /* the last number that a response named */
    uint64_t awaited;   /* the last request whose response somebody waits for */
    bool signalled;     /* the last request stored a signal, */
    bool updated;       /* or may have changed a variable for which a thread waits */
    bool is_delayed;    /* it is in the list delay.delayed */
    struct target *next_delayed;
    bool is_unawaited; /* it is in the list delay.unawaited */
    struct target *next_unawaited;
    uint64_t shown_alive; /* ns, when the peer last got a response while its put arrives */

    bool received;    /* something has arrived since the last tick */
    bool is_small;    /* the buffers' pages were given back, and nothing has passed since */
    int silent_ticks; /* ticks without an arrival while the peer owes an acknowledgement */

    struct request_frame put;
    struct target_data data;
    struct target_batch batch;

    struct deferred_list *deferred; /* what waits for copies; NULL before the first */
    uint32_t deferred_count;
    uint32_t held;   /* staging buffers of this stream */
    bool is_staging; /* it is in the list targets.staging */
    struct target *next_staging;

    uint64_t traced;         /* the id of the operation whose request comes next; 0: not known */
    uint64_t unordered_sent; /* unordered puts that this PE has sent on this stream, */
    uint64_t unordered_done; /* and how many of them the peer has acknowledged */

    /* Buffers: all zero is empty (target_shrink). */
    struct queue out;
    struct unordered_put unordered[UNORDERED_MOST]; /* by number */
    struct receive_buffer in;
};

/* Queues a response. */
static inline void target_respond(struct target *from, enum response_kind kind, uint64_t number,
                                  uint64_t value)
{
    unsigned char frame[RESPONSE_BYTES];

    response_encode(frame, &(struct response_frame){kind, number, value});
    queue_add_copy(&from->out, frame, sizeof frame);
}

/* The same to all that has been carried out. */
static inline void target_respond_last(struct target *from, enum response_kind kind, uint64_t value)
{
    target_respond(from, kind, from->executed, value);
    from->responded = from->executed;
}

/* Room for the responses to one more request. A peer that takes no responses is not served. */
static inline bool target_has_room(const struct target *from)
{
    return queue_has_room(&from->out, 2 * RESPONSE_BYTES + COPY_MOST, 3);
}

/* ---- target_execute.c ---- */

/* What is carried out now goes into the trace. */
void target_trace(const struct target *from, const struct request_frame *f);
/* The data of a put is in its place: stores its signal, if it has one. */
static inline void target_end_put(struct tcp *t, struct target *from, const struct request_frame *f)
{
    from->executed++;
    if (!f->unasked)
        from->awaited = from->executed;
    from->signalled = f->signal_op;
    from->updated = f->bytes <= sizeof(uint64_t);
    t->events++;
    if (trace_is_on())
        target_trace(from, f);
    if (f->signal_op)
        segment_signal(
            (uint64_t *)(void *)segment_at_aligned(&t->config, f->signal_segment, f->a, 8),
            f->signal_op, f->b);
}
void target_execute_get(struct tcp *t, struct target *from, const struct request_frame *f);
void target_execute_atomic(struct tcp *t, struct target *from, const struct request_frame *f);
/* Whether the request would change data that a get before it has yet to send from its place. */
bool target_must_wait(const struct tcp *t, const struct target *from,
                      const struct request_frame *f);
/* target_advance looks after the stream until nothing of it is staged any more. */
void target_stage(struct tcp *t, struct target *from);

/* ---- target_batch.c ---- */

/* A batch begins. False: it is against the rules. */
bool batch_begin(struct tcp *t, struct target *from, const struct request_frame *f);
/* Carries out the records that have arrived, as far as there is room for their responses. False:
 * one of them is against the rules. */
bool batch_take(struct tcp *t, struct target *from);
/* How many bytes have to arrive before anything can be taken, where no data is arriving. */
static inline size_t target_takes_least(const struct target *from)
{
    return from->batch.left ? frame_record_bytes(&from->batch.f) : REQUEST_BYTES;
}

/* ---- target_unordered.c ---- */

/* The stream on which the request can go as an unordered put, or NULL. */
struct target *unordered_stream(const struct tcp *t, const struct transport_request *request);
gshmem_status_t unordered_post(struct tcp *t, struct target *from,
                               const struct transport_request *request);
/* Calls `done` of those up to `number`. */
void unordered_complete(struct tcp *t, struct target *from, uint64_t number,
                        gshmem_status_t status);

/* ---- target_staging.c ---- */

static inline bool deferred_any(const struct target *from)
{
    return from->deferred_count;
}
/* Whether there is room for what one more request, or one more chunk of data, needs. */
static inline bool deferred_has_room(const struct target *from)
{
    return from->deferred_count + 2 <= DEFERRED_MOST;
}
/* A request that has been checked takes effect after all that was deferred before. */
gshmem_status_t deferred_add(struct tcp *t, struct target *from, const struct request_frame *f,
                             gshmem_status_t failure);
/* A buffer for what arrives next of a put's data, or NULL: not now. */
struct staged *deferred_buffer(struct tcp *t, struct target *from);
/* So many bytes of it are in the buffer. */
void deferred_push(struct tcp *t, struct target *from, struct staged *b, size_t bytes);
/* Goes on with what can go on; whether anything did. */
bool deferred_advance(struct tcp *t, struct target *from);
/* Whether the device is carrying out an atomic for it, which may take long. */
bool deferred_updating(const struct target *from);
/* The stream has ended: nothing more takes effect. */
void deferred_end(struct tcp *t, struct target *from);

/* ---- target_end.c ---- */

/* Ends the stream and frees it. */
void target_drop(struct tcp *t, struct target *from);
/* The stream is dropped at the end of the round: an event of it may be in the same batch. */
void target_close_later(struct tcp *t, struct target *from);
void target_drop_closing(struct tcp *t);
/* The stream has broken the rules. Logs it, or reports the PE as failed. Returns false. */
bool target_refuse(struct tcp *t, struct target *from, const char *what);
/* The connection has ended, by that errno (0: the peer closed it). Returns false. */
bool target_ended(struct tcp *t, struct target *from, int error);

/* ---- target_admission.c ---- */

/* Takes the next part of the greeting from the receive buffer. False: the stream is over. */
bool admission_take_greeting(struct tcp *t, struct target *from, size_t have);
/* Makes room for one more stranger. */
void admission_make_room(struct tcp *t);
/* At each tick: drops the strangers whose time is over. */
void admission_tick(struct tcp *t);

/* ---- target_requests.c ---- */

/* Takes what is in the receive buffer. False: the stream is over. */
bool target_parse(struct tcp *t, struct target *from);
/* Receives and takes what has arrived. False: the stream is over. */
bool target_receive(struct tcp *t, struct target *from);

/* ---- target_serve.c ---- */

/* Serves the stream, which has these events of epoll. False: it is over and was dropped. */
bool target_serve(struct tcp *t, struct target *from, uint32_t events);
/* The same as a stream's `ready`. */
bool target_ready(struct tcp *t, struct stream *s, uint32_t events);
/* Sends the queue. False: the stream is over. */
bool target_flush(struct tcp *t, struct target *from);
/* One response for all that has been carried out, then sends. `may_put_off`: it may be delayed. */
bool target_send_responses(struct tcp *t, struct target *from, bool may_put_off);
/* The same, and then carries out what waited for room in the queue. */
bool target_respond_and_advance(struct tcp *t, struct target *from, bool may_put_off);
/* The peer is told that it was given up, where that needs no waiting. */
void target_send_refusal(struct target *from);

/* ---- target.c ---- */

void target_accept(struct tcp *t, int fd);
/* Sends the responses that were delayed. */
void target_send_delayed(struct tcp *t);
/* Whether one was delayed for long, though requests arrive in every round. */
bool target_delays_long(struct tcp *t);
/* A thread calls while responses are delayed: decides whether it has computed for so long that they
 * are late. What the call itself takes, to send a request above all, does not count: it has ended
 * by target_end_call. */
void target_judge_delay(struct tcp *t);
void target_end_call(struct tcp *t);
/* Sends the responses that nobody waits for. */
void target_send_unawaited(struct tcp *t);
/* Goes on with what is staged, or waits for a buffer; whether anything could. */
bool target_advance(struct tcp *t);
/* At each tick: gives up the peers that owe an acknowledgement and are unresponsive. Whether any
 * owes one. */
bool target_tick(struct tcp *t);
/* Parses the hellos that waited for a key. */
void target_try_keys(struct tcp *t);
/* Ends the stream of a PE that was given up. */
void target_cut_off(struct tcp *t, int pe);
bool target_busy(const struct tcp *t);
void target_close_all(struct tcp *t);

#endif

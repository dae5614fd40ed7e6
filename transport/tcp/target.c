/* The streams that other PEs opened: their requests come in, the answers go out.
 *
 * What arrives is not trusted: until a stream has shown that it has the key of the PE that it says it is, it may greet and
 * nothing else, and what a peer asks for is checked against the symmetric segments before a byte is moved. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/sanitizer.h"
#include "transport/segment.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/target.h"

enum {
    DELAYED_MOST = 32,    /* requests without an answer, while that may wait; */
    UNAWAITED_MOST = 128, /* and while nobody waits for it */
    VISIT_BYTES = 4 << 20, /* are received from one PE, then others have their turn */
    LATE_NS = 20000,   /* an answer waits no longer for a round in which nothing comes; one that did, since
                          nobody drove meanwhile, makes that many prompt: */
    PROMPT_RESPONSES = 256,
    SILENT_MOST = 128, /* connections at a time without a right hello */
    SILENT_MS = 5000,  /* that each has for it, where no others want its place */
    CLAIMS_MOST = 4,   /* with a right hello of the same PE, and no proof yet */
};

static void target_drop(struct tcp *t, struct target *from)
{
    struct target **at = &t->served;

    while (*at != from)
        at = &(*at)->next;
    *at = from->next;
    if (t->last == &from->stream)
        t->last = t->regular = NULL;
    for (struct target **o = &t->delayed; *o; o = &(*o)->next_delayed) {
        if (*o == from) {
            *o = from->next_delayed;
            break;
        }
    }
    for (struct target **o = &t->unawaited; *o; o = &(*o)->next_unawaited) {
        if (*o == from) {
            *o = from->next_unawaited;
            break;
        }
    }
    for (struct target **o = &t->staging_in; *o; o = &(*o)->next_staging) {
        if (*o == from) {
            *o = from->next_staging;
            break;
        }
    }
    if (from->pe >= 0)
        t->from[from->pe] = NULL;
    unordered_complete(t, from, from->unordered_sent, GSHMEM_ERR_PEER_DEAD);
    deferred_end(t, from);
    queue_abandon(&from->out, staging_give);
    t->strangers -= from->pe < 0;
    t->without_hello -= from->claimed < 0;
    tcp_end_stream(t, &from->stream);
    free(from);
}

/* To be dropped when nobody is in the middle of anything: there may be an event for it yet. */
static void target_close_later(struct tcp *t, struct target *from)
{
    from->is_closing = t->closing = true;
}

void target_drop_closing(struct tcp *t)
{
    t->closing = false;
    for (struct target *from = t->served, *next; from; from = next) {
        next = from->next;
        if (from->is_closing)
            target_drop(t, from);
    }
}

/* Ends a stream that broke the rules, with a line for people. Returns false, as its users do. A PE whose
 * stream is closed is lost: it may be waited for here. */
static bool target_refuse(struct tcp *t, struct target *from, const char *what)
{
    char why[160];

    if (from->pe < 0) {
        /* Whoever scans ports does so often; one line is enough to look into it, and their number at the end. */
        if (t->refusals++ == 0)
            log_warn("tcp: a connection was refused: %s", what);
        else
            log_debug("tcp: a connection was refused: %s", what);
    } else {
        snprintf(why, sizeof why, "tcp: its connection was closed here: it sent %s", what);
        t->events++;
        t->config.lost(t->config.context, from->pe, GSHMEM_ERR_TRANSPORT, why);
    }
    return false;
}

/* ---- Hello ---- */

/* Who has overheard a hello of a PE that is about to come in can say it again and again. The oldest gives
 * way, and if that was the PE itself it comes once more. */
static void make_room_for_claim(struct tcp *t, int pe)
{
    struct target *oldest = NULL;
    int claims = 0;

    for (struct target *from = t->served; from; from = from->next) {
        if (from->pe < 0 && from->claimed == pe && !from->is_closing) {
            claims++;
            oldest = from;
        }
    }
    if (claims >= CLAIMS_MOST)
        target_close_later(t, oldest);
}

static bool take_hello(struct tcp *t, struct target *from, size_t have)
{
    const unsigned char *said = from->in + from->in_first;
    unsigned char challenge[CHALLENGE_BYTES], key[TRANSPORT_KEY_BYTES], proof[PROOF_BYTES];
    struct hello h;
    gshmem_status_t status;

    if (!hello_decode(said, &h))
        return target_refuse(t, from, "it does not speak this protocol");
    if (h.version != FRAME_VERSION)
        return target_refuse(t, from, "it is of another version of GSHMEM");
    if (h.to != (uint32_t)t->config.pe || h.n_pes != (uint32_t)t->config.n_pes ||
        h.from >= h.n_pes || h.from == h.to)
        return target_refuse(t, from, "it is meant for another PE");
    if (have < HELLO_BYTES + PROOF_BYTES)
        return true;
    status = t->config.key(t->config.context, (int)h.from, key);
    if ((from->awaits_key = status == TRANSPORT_FULL)) {
        t->await_key = true;
        return true;
    }
    if (status)
        return target_refuse(t, from, "there is no key for the PE that it says it is");
    greeting_prove_hello(key, said, proof);
    if (!hmac_same(said + HELLO_BYTES, proof))
        return target_refuse(t, from, "it is not of this job");
    make_room_for_claim(t, (int)h.from);
    if (t->admitted[h.from])
        return target_refuse(t, from, "it says that it is a PE that has come before");
    if (!greeting_draw(challenge))
        return target_refuse(t, from, "the system has no random numbers");
    greeting_prove(key, GREETING_ACCEPTOR, said, challenge, challenge + NONCE_BYTES);
    greeting_prove(key, GREETING_OPENER, said, challenge, from->proof);
    queue_add_copy(&from->out, challenge, sizeof challenge);
    from->claimed = (int)h.from;
    from->age = 0;
    t->without_hello--;
    from->in_first += HELLO_BYTES + PROOF_BYTES;
    return true;
}

static bool take_proof(struct tcp *t, struct target *from)
{
    if (!hmac_same(from->in + from->in_first, from->proof))
        return target_refuse(t, from, "it is not of this job");
    if (t->given_up[from->claimed]) {
        target_respond(from, RESPONSE_REFUSED, 0, 0);
        queue_send(&from->out, from->stream.fd);
        return false; /* it has not been heard since it was given up, and has nothing more to say */
    }
    if (t->admitted[from->claimed])
        return target_refuse(t, from, "it says that it is a PE that has come before");
    from->in_first += PROOF_BYTES;
    target_respond(from, RESPONSE_DONE, 0, 0); /* it may send requests */
    from->pe = from->claimed;
    t->admitted[from->pe] = true;
    t->from[from->pe] = from;
    t->strangers--;
    if (initiator_is_active(t, from->pe))
        target_spare_probes(t, from->pe);
    return true;
}

/* Both streams between two PEs lead to the same host, and one of them is enough to notice that it has vanished. */
void target_spare_probes(struct tcp *t, int pe)
{
    if (t->from[pe])
        tcp_probe(t->from[pe]->stream.fd, false);
}

static bool take_greeting(struct tcp *t, struct target *from, size_t have)
{
    if (from->claimed < 0)
        return have < HELLO_BYTES || take_hello(t, from, have);
    return have < PROOF_BYTES || take_proof(t, from);
}

/* ---- Requests ---- */

void target_respond(struct target *from, enum response_kind kind, uint64_t number, uint64_t value)
{
    unsigned char frame[RESPONSE_BYTES];

    response_encode(frame, &(struct response_frame){kind, number, value});
    queue_add_copy(&from->out, frame, sizeof frame);
}

static void target_respond_last(struct target *from, enum response_kind kind, uint64_t value)
{
    target_respond(from, kind, from->executed, value);
    from->responded = from->executed;
}

/* Whether that touches memory of the device's, or what came before it and has yet to take effect. */
static bool target_is_staged(const struct tcp *t, const struct target *from, unsigned segment)
{
    return t->config.device && (deferred_any(from) || t->config.segment[segment].of_device);
}

static bool target_defer(struct tcp *t, struct target *from, const struct request_frame *f,
                     gshmem_status_t failure)
{
    return deferred_add(t, from, f, failure) == GSHMEM_OK ||
           target_refuse(t, from, "more than there is memory for");
}

/* The data of a put is in its place: its signal, if it has one, may be seen. */
void target_end_put(struct tcp *t, struct target *from, const struct request_frame *f)
{
    from->executed++;
    if (!f->unasked)
        from->awaited = from->executed;
    from->signalled = f->signal_op;
    t->events++;
    if (f->signal_op)
        segment_signal(
            (uint64_t *)(void *)segment_at_aligned(&t->config, f->signal_segment, f->a, 8),
            f->signal_op, f->b);
}

static bool end_put(struct tcp *t, struct target *from)
{
    const struct request_frame *f = &from->put;

    if (from->data_of_device || target_is_staged(t, from, f->signal_op ? f->signal_segment : f->segment))
        return target_defer(t, from, f, from->put_failure);
    target_end_put(t, from, f);
    return true;
}

static bool begin_put(struct tcp *t, struct target *from, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at)
        return target_refuse(t, from, "a put to memory that is not symmetric");
    if (f->signal_op > GSHMEM_SIGNAL_ADD ||
        (f->signal_op && !segment_at_aligned(&t->config, f->signal_segment, f->a, 8)))
        return target_refuse(t, from, "a put with a signal that does not exist");
    from->put = *f;
    from->data_at = at;
    from->data_left = f->bytes;
    from->data_of_device = t->config.segment[f->segment].of_device && f->bytes;
    from->put_failure =
        from->data_of_device && !staging_ready(&t->staging) ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
    return f->bytes || end_put(t, from);
}

void target_execute_get(struct tcp *t, struct target *from, const struct request_frame *f)
{
    const char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    from->executed++;
    t->events++;
    target_respond_last(from, RESPONSE_DATA, f->bytes);
    if (f->bytes && f->bytes <= COPY_MOST)
        queue_add_copy(&from->out, at, f->bytes);
    else
        queue_add_reference(&from->out, at, f->bytes, NULL, NULL);
}

static bool take_get(struct tcp *t, struct target *from, const struct request_frame *f)
{
    if (!segment_at(&t->config, f->segment, f->offset, f->bytes))
        return target_refuse(t, from, "a get from memory that is not symmetric");
    if (target_is_staged(t, from, f->segment))
        return target_defer(t, from, f, GSHMEM_OK);
    target_execute_get(t, from, f);
    return true;
}

void target_execute_atomic(struct tcp *t, struct target *from, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, atomic_type_bytes(f->type));

    from->executed++;
    t->events++;
    target_respond_last(
        from, RESPONSE_VALUE,
        t->config.apply(t->config.context, (enum gshmem_amo)f->amo, f->type, at, f->a, f->b));
}

static bool take_atomic(struct tcp *t, struct target *from, const struct request_frame *f)
{
    uint64_t bytes = atomic_type_bytes(f->type);

    if (!bytes || !segment_at_aligned(&t->config, f->segment, f->offset, bytes) || f->amo > GSHMEM_AMO_XOR)
        return target_refuse(t, from, "an atomic that does not exist, or not on symmetric memory");
    if (target_is_staged(t, from, f->segment))
        return target_defer(t, from, f, GSHMEM_OK);
    target_execute_atomic(t, from, f);
    return true;
}

/* A note is heard as a whole: until all of it is there, nothing is taken. */
static bool target_take_message(struct tcp *t, struct target *from, const struct request_frame *f)
{
    if (f->bytes > TRANSPORT_NOTE_MAX)
        return target_refuse(t, from, "a note that is too long");
    if (from->in_end - from->in_first < REQUEST_BYTES + f->bytes)
        return true;
    from->in_first += REQUEST_BYTES + f->bytes;
    t->events++;
    t->config.heard(t->config.context, from->pe, from->in + from->in_first - f->bytes, f->bytes);
    return true;
}

/* Data for host memory goes there as it comes: not before what was to be there earlier. */
static bool overtakes_copies(const struct tcp *t, const struct request_frame *f)
{
    return f->kind == FRAME_PUT && f->bytes &&
           !(f->segment < t->config.segments && t->config.segment[f->segment].of_device);
}

/* Who says so now and then has nothing else to do, and may wait for its own answers. */
static bool unordered_take_ack(struct tcp *t, struct target *from, uint64_t number)
{
    if (number < from->unordered_done || number > from->unordered_sent)
        return target_refuse(t, from, "that it has heard what was not said");
    unordered_complete(t, from, number, GSHMEM_OK);
    from->awaited = from->executed;
    return true;
}

/* A get's data is sent from where it is: what changes that memory has to wait until it has left. */
bool target_must_wait(const struct tcp *t, const struct target *from, const struct request_frame *f)
{
    const char *signal;

    if (queue_empty(&from->out) || (f->kind != FRAME_PUT && f->kind != FRAME_ATOMIC))
        return false;
    const uint64_t bytes = f->kind == FRAME_PUT ? f->bytes : atomic_type_bytes(f->type);
    const char *at = segment_at(&t->config, f->segment, f->offset, bytes);
    if (at && queue_refers_to(&from->out, at, bytes))
        return true;
    if (f->kind != FRAME_PUT || !f->signal_op)
        return false;
    signal = segment_at(&t->config, f->signal_segment, f->a, 8);
    return signal && queue_refers_to(&from->out, signal, 8);
}

/* The other PE ends its streams; that it lives on is nobody else's to doubt. */
static bool target_take_refusal(struct tcp *t, struct target *from)
{
    from->refused = true;
    t->config.refused(t->config.context, from->pe);
    return true;
}

static bool take_request(struct tcp *t, struct target *from)
{
    struct request_frame f;

    if (!request_decode(from->in + from->in_first, &f))
        return target_refuse(t, from, "a request that is none of this version's");
    if (f.kind == FRAME_MESSAGE && !from->goodbye)
        return target_take_message(t, from, &f);
    if ((deferred_any(from) && overtakes_copies(t, &f)) || target_must_wait(t, from, &f))
        return true; /* it stays in the buffer */
    from->in_first += REQUEST_BYTES;
    if (from->goodbye)
        return target_refuse(t, from, "a request after its goodbye");
    switch (f.kind) {
    case FRAME_PUT:
        return begin_put(t, from, &f);
    case FRAME_GET:
        return take_get(t, from, &f);
    case FRAME_ATOMIC:
        return take_atomic(t, from, &f);
    case FRAME_ACK:
        return unordered_take_ack(t, from, f.offset);
    case FRAME_FAILED:
        if (f.offset >= (uint64_t)t->config.n_pes)
            return target_refuse(t, from, "news of a PE that does not exist");
        if (f.offset == (uint64_t)t->config.pe)
            return target_take_refusal(t, from);
        t->config.told(t->config.context, from->pe, (int)f.offset);
        return true;
    default:
        from->goodbye = true;
        return true;
    }
}

/* ---- The stream ---- */

/* What has come to the place where it belongs. */
static bool target_data_arrived(struct tcp *t, struct target *from, size_t bytes)
{
    from->data_at += bytes;
    from->data_left -= bytes;
    return from->data_left || end_put(t, from);
}

/* To a buffer for the device, or nowhere; nothing is taken where there is no buffer. */
static bool take_data_for_device(struct tcp *t, struct target *from, size_t part)
{
    struct staged *b = NULL;

    if (!from->put_failure) {
        if (!(b = deferred_buffer(t, from)))
            return true;
        part = part < b->room ? part : b->room;
        memcpy(b->at, from->in + from->in_first, part);
        deferred_push(t, from, b, part);
    }
    from->in_first += part;
    return target_data_arrived(t, from, part);
}

static bool target_take_data(struct tcp *t, struct target *from, size_t have)
{
    size_t part = have < from->data_left ? have : (size_t)from->data_left;

    if (from->data_left <= 8 && have < from->data_left)
        return true; /* what is small is stored at once: wait for the rest of it */
    if (from->data_of_device)
        return take_data_for_device(t, from, part);
    if (from->data_left <= 8)
        segment_store(from->data_at, from->in + from->in_first, part);
    else
        memcpy(from->data_at, from->in + from->in_first, part);
    from->in_first += part;
    return target_data_arrived(t, from, part);
}

/* Room for the answers to one more request; who reads none gets none until it does. */
bool target_has_room(const struct target *from)
{
    return queue_has_room(&from->out, 2 * RESPONSE_BYTES + COPY_MOST, 3);
}

/* Goes through what is in the buffer. False: the stream is over. */
static bool target_parse(struct tcp *t, struct target *from)
{
    bool fine = true;

    while (fine) {
        size_t have = from->in_end - from->in_first;
        size_t before = from->in_first;
        if (from->pe < 0)
            fine = take_greeting(t, from, have);
        else if (from->data_left && have)
            fine = target_take_data(t, from, have);
        else if (!from->data_left && have >= REQUEST_BYTES && target_has_room(from) &&
                 deferred_has_room(from))
            fine = take_request(t, from);
        if (from->in_first == before)
            break;
    }
    from->in_end -= from->in_first;
    if (from->in_first && from->in_end)
        memmove(from->in, from->in + from->in_first, from->in_end);
    from->in_first = 0;
    return fine;
}

static bool target_stream_ended(struct tcp *t, struct target *from, int error)
{
    char why[160];

    if (from->pe < 0 || (from->goodbye && from->unordered_sent == from->unordered_done) || from->refused ||
        initiator_is_refused(t, from->pe))
        return false;
    tcp_explain_end(t, error, why, sizeof why);
    t->events++;
    t->config.lost(t->config.context, from->pe, GSHMEM_ERR_PEER_DEAD, why);
    return false;
}

/* Where the next of a put's data goes, and how much of it: *straight. False: it has to wait. */
static bool target_find_location(struct tcp *t, struct target *from, size_t have, size_t *straight,
                               struct staged **b)
{
    *straight = from->data_left > 8 && have == 0 ? (size_t)from->data_left : 0;
    *b = NULL;
    if (!from->data_of_device || !*straight || from->put_failure) {
        *straight = from->put_failure ? 0 : *straight;
        return true;
    }
    if (!(*b = deferred_buffer(t, from)))
        return false;
    *straight = *straight < (*b)->room ? *straight : (*b)->room;
    return true;
}

static size_t target_put_chunk(struct tcp *t, struct target *from, size_t bytes, struct staged *b)
{
    if (b && bytes)
        deferred_push(t, from, b, bytes);
    else if (b)
        staging_give(b);
    return bytes;
}

static bool target_receive(struct tcp *t, struct target *from)
{
    size_t visit = 0;

    while (visit < VISIT_BYTES) {
        size_t have = from->in_end - from->in_first, straight;
        size_t room = from->put.bytes >= TCP_LARGE && have < REQUEST_BYTES && !from->put_failure
                          ? REQUEST_BYTES - have
                          : sizeof from->in - from->in_end;
        struct staged *b;
        if (!target_find_location(t, from, have, &straight, &b))
            return true; /* until a buffer is given back */
        if (b && straight < from->data_left)
            room = 0; /* what follows is data yet */
        if (straight + room == 0)
            return true; /* full of requests whose answers have no room */
        ssize_t n = tcp_receive(from->stream.fd, b ? b->at : from->data_at, straight, from->in + from->in_end, room);
        size_t placed = target_put_chunk(t, from,
                                      n <= 0                 ? 0
                                      : (size_t)n < straight ? (size_t)n
                                                             : straight,
                                      b);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0)
            return target_stream_ended(t, from, n < 0 ? errno : 0);
        t->events++;
        from->received = true;
        visit += (size_t)n;
        if (placed && !target_data_arrived(t, from, placed))
            return false;
        from->in_end += (size_t)n - placed;
        if (!target_parse(t, from))
            return false;
        if ((size_t)n < straight + room)
            return true; /* the socket is empty; spares a call that would say so */
    }
    return true;
}

/* The data of a put can take long to come: who sends it hears now and then that somebody takes it. */
static void target_show_alive(struct tcp *t, struct target *from)
{
    uint64_t now;

    if (!from->data_left || (now = clock_ns()) - from->shown_alive < (uint64_t)t->tick_ms * 1000000 ||
        !queue_has_room(&from->out, RESPONSE_BYTES, 1))
        return;
    target_respond_last(from, RESPONSE_DONE, 0);
    from->shown_alive = now;
}

/* Behind a signal the response may wait for a round in which nothing arrives: a thread waits for
 * the signal and should go on before anything else (docs/decisions/0010). A thread that goes on to
 * compute does not come back soon, and the proxy thread must respond: for a while no response waits
 * then. */
static bool may_delay(struct tcp *t, struct target *from)
{
    if (!from->signalled || from->executed - from->responded >= DELAYED_MOST)
        return false;
    if (t->prompt) {
        t->prompt--;
        return false;
    }
    if (!from->is_delayed) {
        from->is_delayed = true;
        from->next_delayed = t->delayed;
        if (!t->delayed) {
            t->delayed_since = clock_ns();
            t->delayed_round = t->round;
        }
        t->delayed = from;
    }
    return true;
}

/* An answer that nobody waits for goes with another, or when nothing has come for a while: in a
 * round of leaders who tell each other something the call would be half of what it takes. */
static bool may_wait(struct tcp *t, struct target *from)
{
    if (from->responded < from->awaited || from->executed - from->responded >= UNAWAITED_MOST)
        return false;
    if (!from->is_unawaited) {
        from->is_unawaited = true;
        t->unawaited_since = t->unawaited || t->unacknowledged ? t->unawaited_since : t->round;
        from->next_unawaited = t->unawaited;
        t->unawaited = from;
        tcp_start_ticking(t); /* it comes, should this PE do something else for long */
    }
    return true;
}

/* The system does not take answers any more. What the peer has sent before is read first: it may have left
 * in good order. */
static bool target_send_failed(struct tcp *t, struct target *from, int error)
{
    return target_receive(t, from) && target_stream_ended(t, from, error);
}

static bool target_flush(struct tcp *t, struct target *from)
{
    return queue_send(&from->out, from->stream.fd) || target_send_failed(t, from, errno);
}

/* One answer for all puts of this round, then out with them. */
static bool send_responses(struct tcp *t, struct target *from, bool owing)
{
    if (from->responded != from->executed && !(owing && (may_wait(t, from) || may_delay(t, from))) &&
        queue_has_room(&from->out, RESPONSE_BYTES, 1))
        target_respond_last(from, RESPONSE_DONE, 0);
    if (!target_flush(t, from))
        return false;
    tcp_want_out(t, &from->stream, !queue_empty(&from->out));
    return true;
}

/* Sends answers, and serves the requests in the buffer that lacked room for theirs. */
static bool respond_and_parse(struct tcp *t, struct target *from, bool owing)
{
    bool fine = send_responses(t, from, owing);

    for (size_t left, before = SIZE_MAX;
         fine && queue_empty(&from->out) && from->pe >= 0 && !from->data_left &&
         (left = from->in_end - from->in_first) >= REQUEST_BYTES && left < before;
         before = left)
        fine = target_parse(t, from) && send_responses(t, from, owing);
    return fine;
}

/* The same of what came with the device's in between, which may wait for the queue as well. Whoever empties the
 * queue does this: no event comes for them where the socket has taken all answers at once. */
static bool respond_and_advance(struct tcp *t, struct target *from, bool owing)
{
    bool fine = respond_and_parse(t, from, owing);

    while (fine && deferred_any(from) && queue_empty(&from->out) && deferred_advance(t, from))
        fine = respond_and_parse(t, from, owing);
    return fine;
}

/* The round that began it need not look at the clock. */
bool target_delays_long(const struct tcp *t)
{
    return t->round != t->delayed_round && clock_ns() - t->delayed_since > LATE_NS;
}

void target_send_delayed(struct tcp *t)
{
    if (target_delays_long(t))
        t->prompt = PROMPT_RESPONSES;
    for_another_pe_begin();
    while (t->delayed) {
        struct target *from = t->delayed;
        t->delayed = from->next_delayed;
        from->is_delayed = false;
        if (!respond_and_advance(t, from, false))
            target_drop(t, from);
    }
    for_another_pe_end();
}

void target_send_unawaited(struct tcp *t)
{
    for_another_pe_begin();
    while (t->unawaited) {
        struct target *from = t->unawaited;
        t->unawaited = from->next_unawaited;
        from->is_unawaited = false;
        if (!respond_and_advance(t, from, false))
            target_drop(t, from);
    }
    for_another_pe_end();
}

/* What has taken effect made room for more. */
static bool target_advance_one(struct tcp *t, struct target *from)
{
    do {
        if (!target_parse(t, from))
            return false;
    } while (deferred_advance(t, from));
    return true;
}

static bool target_serve(struct tcp *t, struct target *from, uint32_t events)
{
    uint64_t before = from->executed;
    bool fine = true;

    if (from->is_closing)
        return true;
    if (events & EPOLLOUT && (fine = target_flush(t, from)))
        fine = target_parse(t, from); /* there may be room for answers now */
    if (fine && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        fine = target_receive(t, from);
    if (fine && from->is_staging)
        fine = target_advance_one(t, from);
    if (fine)
        target_show_alive(t, from);
    if (fine)
        fine = respond_and_advance(t, from, true);
    if (from->executed != before)
        tcp_note_arrival(t, &from->stream);
    if (!fine)
        target_drop(t, from);
    return fine;
}

void target_try_keys(struct tcp *t)
{
    t->await_key = false;
    for_another_pe_begin();
    for (struct target *from = t->served, *next; from; from = next) {
        next = from->next;
        if (from->awaits_key && !from->is_closing && !(target_parse(t, from) && send_responses(t, from, false)))
            target_drop(t, from);
    }
    for_another_pe_end();
}

static bool target_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    for_another_pe_begin();
    bool fine = target_serve(t, (struct target *)s, events);
    for_another_pe_end();
    return fine;
}

void target_stage(struct tcp *t, struct target *from)
{
    if (from->is_staging)
        return;
    from->is_staging = true;
    from->next_staging = t->staging_in;
    t->staging_in = from;
}

/* Taken off the list as it is served: who is not through with it comes again. */
bool target_advance(struct tcp *t)
{
    struct target *from = t->staging_in, *next;
    int before = t->events;

    t->staging_in = NULL;
    for_another_pe_begin();
    for (; from; from = next) {
        next = from->next_staging;
        if (!target_serve(t, from, 0))
            continue;
        from->is_staging = false;
        if (deferred_any(from) || (from->data_left && from->data_of_device))
            target_stage(t, from);
    }
    for_another_pe_end();
    return t->events != before;
}

void target_accept(struct tcp *t, int fd)
{
    struct target *from = malloc(sizeof *from);

    if (!from) {
        t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection");
        close(fd);
        return;
    }
    memset(from, 0, offsetof(struct target, out)); /* the arrays' pages are taken as they are used */
    memset(&from->out, 0, offsetof(struct queue, ring));
    from->in_first = from->in_end = 0;
    from->stream = (struct stream){.ready = target_ready, .fd = fd};
    from->pe = from->claimed = -1;
    from->shown_alive = clock_ns();
    tcp_tune(t, fd);
    congestion_suit(t, fd);
    if (!tcp_watch(t, &from->stream, EPOLLIN)) {
        close(fd);
        free(from);
        return;
    }
    from->next = t->served;
    t->served = from;
    t->strangers++;
    t->without_hello++;
}

static bool has_no_hello(const struct target *from)
{
    return from->claimed < 0 && !from->is_closing;
}

/* Has it looked at once more: its hello may be there, and this PE have been slow to read it. */
static void drop_stranger(struct tcp *t, struct target *from, const char *why)
{
    if (target_ready(t, &from->stream, EPOLLIN) && has_no_hello(from)) {
        target_refuse(t, from, why);
        target_drop(t, from);
    }
}

/* Who has waited longest, and said nothing, gives way to the next: so that a flood of strangers delays who
 * belongs here by no more than it takes to accept them. */
void target_make_room(struct tcp *t)
{
    struct target *oldest = NULL;

    if (t->without_hello < SILENT_MOST)
        return;
    for (struct target *from = t->served; from; from = from->next) {
        if (has_no_hello(from))
            oldest = from;
    }
    if (oldest)
        drop_stranger(t, oldest, "it said nothing, and others came");
}

void target_drop_silent(struct tcp *t)
{
    const int ms = t->peer_seconds * 1000;

    for (struct target *from = t->served, *next; from; from = next) {
        next = from->next;
        if (from->pe >= 0 || ++from->age * t->tick_ms <= (from->claimed < 0 && !from->awaits_key ? SILENT_MS : ms))
            continue;
        if (from->claimed < 0)
            drop_stranger(t, from, from->awaits_key ? "the starter has not told in time of the PE that it says it is"
                                        : "it said nothing");
        else if (target_ready(t, &from->stream, EPOLLIN) && from->pe < 0)
            target_drop(t, from); /* it comes again if it is a PE */
    }
}

/* It may live on, and is told then; as far as it can be without waiting. */
static void target_send_refusal(struct target *from)
{
    if (!target_has_room(from))
        return;
    target_respond(from, RESPONSE_REFUSED, 0, 0);
    queue_send(&from->out, from->stream.fd);
}

void target_cut_off(struct tcp *t, int pe)
{
    struct target *from = t->from[pe];

    if (!from || from->goodbye)
        return;
    target_send_refusal(from);
    target_drop(t, from);
}

/* Whether it is given up: it initiator_awaits an answer, and has been silent for long. */
static bool target_peer_failed(struct tcp *t, struct target *from)
{
    char why[160];

    if ((from->silent_ticks - 1) * t->tick_ms < t->peer_seconds * 1000)
        return false;
    if (!target_ready(t, &from->stream, EPOLLIN))
        return true;
    if (from->received)
        return false; /* it has spoken, only this PE has been slow to hear it */
    tcp_explain_timeout(t, why, sizeof why);
    t->config.lost(t->config.context, from->pe, GSHMEM_ERR_PEER_DEAD, why);
    target_send_refusal(from);
    target_drop(t, from);
    return true;
}

/* To one whose request the device has not carried out for as long as a tick: this PE lives. False: it is gone. */
static bool target_send_alive(struct tcp *t, struct target *from)
{
    if (!queue_empty(&from->out) || !queue_has_room(&from->out, RESPONSE_BYTES, 1))
        return true;
    target_respond_last(from, RESPONSE_DONE, 0);
    if (!target_flush(t, from))
        return false;
    tcp_want_out(t, &from->stream, !queue_empty(&from->out));
    return true;
}

bool target_tick(struct tcp *t)
{
    bool any = false;

    for (struct target *from = t->served, *next; from; from = next) {
        next = from->next;
        if (deferred_updating(from)) {
            any = true;
            if (!target_send_alive(t, from)) {
                target_drop(t, from);
                continue;
            }
        }
        bool initiator_awaits = from->unordered_sent != from->unordered_done;
        from->silent_ticks = from->received || !initiator_awaits ? 0 : from->silent_ticks + 1;
        from->received = false;
        if (initiator_awaits && !target_peer_failed(t, from))
            any |= from->unordered_sent != from->unordered_done;
    }
    return any;
}

bool target_busy(const struct tcp *t)
{
    for (const struct target *from = t->served; from; from = from->next) {
        if (from->pe >= 0 && (!queue_empty(&from->out) || from->responded != from->executed ||
                           from->unordered_sent != from->unordered_done || deferred_any(from)))
            return true;
    }
    return false;
}

void target_close_all(struct tcp *t)
{
    while (t->served) {
        struct target *from = t->served;
        if (from->pe >= 0 && target_has_room(from)) {
            target_respond_last(from, RESPONSE_GOODBYE, 0);
            queue_send(&from->out, from->stream.fd);
        }
        unordered_complete(t, from, from->unordered_sent, GSHMEM_ERR_ABORTED);
        target_drop(t, from);
    }
}

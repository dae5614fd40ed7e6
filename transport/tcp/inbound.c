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
#include "transport/tcp/inbound.h"

enum {
    OWED_MOST = 32,    /* requests without an answer, while that may wait; */
    UNASKED_MOST = 128, /* and while nobody waits for it */
    VISIT_BYTES = 4 << 20, /* are received from one PE, then others have their turn */
    LATE_NS = 20000,   /* an answer waits no longer for a round in which nothing comes; one that did, since
                          nobody drove meanwhile, makes that many prompt: */
    PROMPT_ANSWERS = 256,
    SILENT_MOST = 128, /* connections at a time without a right hello */
    SILENT_MS = 5000,  /* that each has for it, where no others want its place */
    CLAIMS_MOST = 4,   /* with a right hello of the same PE, and no proof yet */
};

static void inbound_drop(struct tcp *t, struct inbound *i)
{
    struct inbound **at = &t->served;

    while (*at != i)
        at = &(*at)->next;
    *at = i->next;
    if (t->last == &i->stream)
        t->last = t->regular = NULL;
    for (struct inbound **o = &t->owed; *o; o = &(*o)->next_owed) {
        if (*o == i) {
            *o = i->next_owed;
            break;
        }
    }
    for (struct inbound **o = &t->unasked; *o; o = &(*o)->next_unasked) {
        if (*o == i) {
            *o = i->next_unasked;
            break;
        }
    }
    for (struct inbound **o = &t->staging_in; *o; o = &(*o)->next_staging) {
        if (*o == i) {
            *o = i->next_staging;
            break;
        }
    }
    if (i->pe >= 0)
        t->from[i->pe] = NULL;
    words_end(t, i, i->words, GSHMEM_ERR_PEER_DEAD);
    effects_end(t, i);
    queue_abandon(&i->out, staging_give);
    t->strangers -= i->pe < 0;
    t->silent -= i->claimed < 0;
    tcp_end_stream(t, &i->stream);
    free(i);
}

/* To be dropped when nobody is in the middle of anything: there may be an event for it yet. */
static void doom(struct tcp *t, struct inbound *i)
{
    i->doomed = t->doomed = true;
}

void inbound_drop_doomed(struct tcp *t)
{
    t->doomed = false;
    for (struct inbound *i = t->served, *next; i; i = next) {
        next = i->next;
        if (i->doomed)
            inbound_drop(t, i);
    }
}

/* Ends a stream that broke the rules, with a line for people. Returns false, as its users do. A PE whose
 * stream is closed is lost: it may be waited for here. */
static bool inbound_refuse(struct tcp *t, struct inbound *i, const char *what)
{
    char why[160];

    if (i->pe < 0) {
        /* Whoever scans ports does so often; one line is enough to look into it, and their number at the end. */
        if (t->refusals++ == 0)
            log_warn("tcp: a connection was refused: %s", what);
        else
            log_debug("tcp: a connection was refused: %s", what);
    } else {
        snprintf(why, sizeof why, "tcp: its connection was closed here: it sent %s", what);
        t->events++;
        t->config.lost(t->config.context, i->pe, GSHMEM_ERR_TRANSPORT, why);
    }
    return false;
}

/* ---- Hello ---- */

/* Who has overheard a hello of a PE that is about to come in can say it again and again. The oldest gives
 * way, and if that was the PE itself it comes once more. */
static void make_room_for_claim(struct tcp *t, int pe)
{
    struct inbound *oldest = NULL;
    int claims = 0;

    for (struct inbound *i = t->served; i; i = i->next) {
        if (i->pe < 0 && i->claimed == pe && !i->doomed) {
            claims++;
            oldest = i;
        }
    }
    if (claims >= CLAIMS_MOST)
        doom(t, oldest);
}

static bool take_hello(struct tcp *t, struct inbound *i, size_t have)
{
    const unsigned char *said = i->in + i->in_first;
    unsigned char challenge[CHALLENGE_BYTES], key[TRANSPORT_KEY_BYTES], proof[PROOF_BYTES];
    struct hello h;
    gshmem_status_t status;

    if (!hello_decode(said, &h))
        return inbound_refuse(t, i, "it does not speak this protocol");
    if (h.version != FRAME_VERSION)
        return inbound_refuse(t, i, "it is of another version of GSHMEM");
    if (h.to != (uint32_t)t->config.pe || h.n_pes != (uint32_t)t->config.n_pes ||
        h.from >= h.n_pes || h.from == h.to)
        return inbound_refuse(t, i, "it is meant for another PE");
    if (have < HELLO_BYTES + PROOF_BYTES)
        return true;
    status = t->config.key(t->config.context, (int)h.from, key);
    if ((i->unkeyed = status == TRANSPORT_FULL)) {
        t->unkeyed = true;
        return true;
    }
    if (status)
        return inbound_refuse(t, i, "there is no key for the PE that it says it is");
    greeting_prove_hello(key, said, proof);
    if (!hmac_same(said + HELLO_BYTES, proof))
        return inbound_refuse(t, i, "it is not of this job");
    make_room_for_claim(t, (int)h.from);
    if (t->met[h.from])
        return inbound_refuse(t, i, "it says that it is a PE that has come before");
    if (!greeting_draw(challenge))
        return inbound_refuse(t, i, "the system has no random numbers");
    greeting_prove(key, GREETING_ACCEPTOR, said, challenge, challenge + NONCE_BYTES);
    greeting_prove(key, GREETING_OPENER, said, challenge, i->proof);
    queue_add_copy(&i->out, challenge, sizeof challenge);
    i->claimed = (int)h.from;
    i->age = 0;
    t->silent--;
    i->in_first += HELLO_BYTES + PROOF_BYTES;
    return true;
}

static bool take_proof(struct tcp *t, struct inbound *i)
{
    if (!hmac_same(i->in + i->in_first, i->proof))
        return inbound_refuse(t, i, "it is not of this job");
    if (t->gone[i->claimed]) {
        inbound_answer(i, ANSWER_REFUSED, 0, 0);
        queue_send(&i->out, i->stream.fd);
        return false; /* it has not been heard since it was given up, and has nothing more to say */
    }
    if (t->met[i->claimed])
        return inbound_refuse(t, i, "it says that it is a PE that has come before");
    i->in_first += PROOF_BYTES;
    inbound_answer(i, ANSWER_DONE, 0, 0); /* it may send requests */
    i->pe = i->claimed;
    t->met[i->pe] = true;
    t->from[i->pe] = i;
    t->strangers--;
    if (outbound_is_greeted(t, i->pe))
        inbound_spare_probes(t, i->pe);
    return true;
}

/* Both streams between two PEs lead to the same host, and one of them is enough to notice that it has vanished. */
void inbound_spare_probes(struct tcp *t, int pe)
{
    if (t->from[pe])
        tcp_probe(t->from[pe]->stream.fd, false);
}

static bool take_greeting(struct tcp *t, struct inbound *i, size_t have)
{
    if (i->claimed < 0)
        return have < HELLO_BYTES || take_hello(t, i, have);
    return have < PROOF_BYTES || take_proof(t, i);
}

/* ---- Requests ---- */

void inbound_answer(struct inbound *i, enum answer_kind kind, uint64_t number, uint64_t value)
{
    unsigned char frame[ANSWER_BYTES];

    answer_encode(frame, &(struct answer_frame){kind, number, value});
    queue_add_copy(&i->out, frame, sizeof frame);
}

static void tcp_inbound_answer(struct inbound *i, enum answer_kind kind, uint64_t value)
{
    inbound_answer(i, kind, i->number, value);
    i->answered = i->number;
}

/* Whether that touches memory of the device's, or what came before it and has yet to take effect. */
static bool is_staged(const struct tcp *t, const struct inbound *i, unsigned segment)
{
    return t->config.device && (effects_any(i) || t->config.segment[segment].of_device);
}

static bool postpone(struct tcp *t, struct inbound *i, const struct request_frame *f,
                     gshmem_status_t failure)
{
    return effects_add(t, i, f, failure) == GSHMEM_OK ||
           inbound_refuse(t, i, "more than there is memory for");
}

/* The data of a put is in its place: its signal, if it has one, may be seen. */
void inbound_end_put(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    i->number++;
    if (!f->unasked)
        i->asked = i->number;
    i->signalled = f->signal_op;
    t->events++;
    if (f->signal_op)
        segment_signal(
            (uint64_t *)(void *)segment_at_aligned(&t->config, f->signal_segment, f->a, 8),
            f->signal_op, f->b);
}

static bool end_put(struct tcp *t, struct inbound *i)
{
    const struct request_frame *f = &i->put;

    if (i->data_of_device || is_staged(t, i, f->signal_op ? f->signal_segment : f->segment))
        return postpone(t, i, f, i->put_failure);
    inbound_end_put(t, i, f);
    return true;
}

static bool begin_put(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at)
        return inbound_refuse(t, i, "a put to memory that is not symmetric");
    if (f->signal_op > GSHMEM_SIGNAL_ADD ||
        (f->signal_op && !segment_at_aligned(&t->config, f->signal_segment, f->a, 8)))
        return inbound_refuse(t, i, "a put with a signal that does not exist");
    i->put = *f;
    i->data_at = at;
    i->data_left = f->bytes;
    i->data_of_device = t->config.segment[f->segment].of_device && f->bytes;
    i->put_failure =
        i->data_of_device && !staging_ready(&t->staging) ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
    return f->bytes || end_put(t, i);
}

void inbound_serve_get(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    const char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    i->number++;
    t->events++;
    tcp_inbound_answer(i, ANSWER_DATA, f->bytes);
    if (f->bytes && f->bytes <= COPY_MOST)
        queue_add_copy(&i->out, at, f->bytes);
    else
        queue_add_reference(&i->out, at, f->bytes, NULL, NULL);
}

static bool take_get(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    if (!segment_at(&t->config, f->segment, f->offset, f->bytes))
        return inbound_refuse(t, i, "a get from memory that is not symmetric");
    if (is_staged(t, i, f->segment))
        return postpone(t, i, f, GSHMEM_OK);
    inbound_serve_get(t, i, f);
    return true;
}

void inbound_serve_atomic(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, atomic_type_bytes(f->type));

    i->number++;
    t->events++;
    tcp_inbound_answer(
        i, ANSWER_VALUE,
        t->config.apply(t->config.context, (enum gshmem_amo)f->amo, f->type, at, f->a, f->b));
}

static bool take_atomic(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    uint64_t bytes = atomic_type_bytes(f->type);

    if (!bytes || !segment_at_aligned(&t->config, f->segment, f->offset, bytes) || f->amo >= GSHMEM_AMO_COUNT)
        return inbound_refuse(t, i, "an atomic that does not exist, or not on symmetric memory");
    if (is_staged(t, i, f->segment))
        return postpone(t, i, f, GSHMEM_OK);
    inbound_serve_atomic(t, i, f);
    return true;
}

/* A note is heard as a whole: until all of it is there, nothing is taken. */
static bool inbound_take_note(struct tcp *t, struct inbound *i, const struct request_frame *f)
{
    if (f->bytes > TRANSPORT_NOTE_MAX)
        return inbound_refuse(t, i, "a note that is too long");
    if (i->in_end - i->in_first < REQUEST_BYTES + f->bytes)
        return true;
    i->in_first += REQUEST_BYTES + f->bytes;
    t->events++;
    t->config.heard(t->config.context, i->pe, i->in + i->in_first - f->bytes, f->bytes);
    return true;
}

/* Data for host memory goes there as it comes: not before what was to be there earlier. */
static bool comes_too_early(const struct tcp *t, const struct request_frame *f)
{
    return f->kind == FRAME_PUT && f->bytes &&
           !(f->segment < t->config.segments && t->config.segment[f->segment].of_device);
}

/* Who says so now and then has nothing else to do, and may wait for its own answers. */
static bool take_heard(struct tcp *t, struct inbound *i, uint64_t number)
{
    if (number < i->words_heard || number > i->words)
        return inbound_refuse(t, i, "that it has heard what was not said");
    words_end(t, i, number, GSHMEM_OK);
    i->asked = i->number;
    return true;
}

/* A get's data is sent from where it is: what changes that memory has to wait until it has left. */
bool inbound_changes_what_is_sent(const struct tcp *t, const struct inbound *i, const struct request_frame *f)
{
    const char *signal;

    if (queue_empty(&i->out) || (f->kind != FRAME_PUT && f->kind != FRAME_ATOMIC))
        return false;
    const uint64_t bytes = f->kind == FRAME_PUT ? f->bytes : atomic_type_bytes(f->type);
    const char *at = segment_at(&t->config, f->segment, f->offset, bytes);
    if (at && queue_refers_to(&i->out, at, bytes))
        return true;
    if (f->kind != FRAME_PUT || !f->signal_op)
        return false;
    signal = segment_at(&t->config, f->signal_segment, f->a, 8);
    return signal && queue_refers_to(&i->out, signal, 8);
}

/* The other PE ends its streams; that it lives on is nobody else's to doubt. */
static bool be_given_up(struct tcp *t, struct inbound *i)
{
    i->refused = true;
    t->config.refused(t->config.context, i->pe);
    return true;
}

static bool take_request(struct tcp *t, struct inbound *i)
{
    struct request_frame f;

    if (!request_decode(i->in + i->in_first, &f))
        return inbound_refuse(t, i, "a request that is none of this version's");
    if (f.kind == FRAME_NOTE && !i->goodbye)
        return inbound_take_note(t, i, &f);
    if ((effects_any(i) && comes_too_early(t, &f)) || inbound_changes_what_is_sent(t, i, &f))
        return true; /* it stays in the buffer */
    i->in_first += REQUEST_BYTES;
    if (i->goodbye)
        return inbound_refuse(t, i, "a request after its goodbye");
    switch (f.kind) {
    case FRAME_PUT:
        return begin_put(t, i, &f);
    case FRAME_GET:
        return take_get(t, i, &f);
    case FRAME_ATOMIC:
        return take_atomic(t, i, &f);
    case FRAME_HEARD:
        return take_heard(t, i, f.offset);
    case FRAME_LOST:
        if (f.offset >= (uint64_t)t->config.n_pes)
            return inbound_refuse(t, i, "news of a PE that does not exist");
        if (f.offset == (uint64_t)t->config.pe)
            return be_given_up(t, i);
        t->config.told(t->config.context, i->pe, (int)f.offset);
        return true;
    default:
        i->goodbye = true;
        return true;
    }
}

/* ---- The stream ---- */

/* What has come to the place where it belongs. */
static bool inbound_data_arrived(struct tcp *t, struct inbound *i, size_t bytes)
{
    i->data_at += bytes;
    i->data_left -= bytes;
    return i->data_left || end_put(t, i);
}

/* To a buffer for the device, or nowhere; nothing is taken where there is no buffer. */
static bool take_data_for_device(struct tcp *t, struct inbound *i, size_t part)
{
    struct staged *b = NULL;

    if (!i->put_failure) {
        if (!(b = effects_take(t, i)))
            return true;
        part = part < b->room ? part : b->room;
        memcpy(b->at, i->in + i->in_first, part);
        effects_push(t, i, b, part);
    }
    i->in_first += part;
    return inbound_data_arrived(t, i, part);
}

static bool inbound_take_data(struct tcp *t, struct inbound *i, size_t have)
{
    size_t part = have < i->data_left ? have : (size_t)i->data_left;

    if (i->data_left <= 8 && have < i->data_left)
        return true; /* what is small is stored at once: wait for the rest of it */
    if (i->data_of_device)
        return take_data_for_device(t, i, part);
    if (i->data_left <= 8)
        segment_store(i->data_at, i->in + i->in_first, part);
    else
        memcpy(i->data_at, i->in + i->in_first, part);
    i->in_first += part;
    return inbound_data_arrived(t, i, part);
}

/* Room for the answers to one more request; who reads none gets none until it does. */
bool inbound_has_room(const struct inbound *i)
{
    return queue_has_room(&i->out, 2 * ANSWER_BYTES + COPY_MOST, 3);
}

/* Goes through what is in the buffer. False: the stream is over. */
static bool inbound_digest(struct tcp *t, struct inbound *i)
{
    bool fine = true;

    while (fine) {
        size_t have = i->in_end - i->in_first;
        size_t before = i->in_first;
        if (i->pe < 0)
            fine = take_greeting(t, i, have);
        else if (i->data_left && have)
            fine = inbound_take_data(t, i, have);
        else if (!i->data_left && have >= REQUEST_BYTES && inbound_has_room(i) &&
                 effects_have_room(i))
            fine = take_request(t, i);
        if (i->in_first == before)
            break;
    }
    i->in_end -= i->in_first;
    if (i->in_first && i->in_end)
        memmove(i->in, i->in + i->in_first, i->in_end);
    i->in_first = 0;
    return fine;
}

static bool inbound_ended(struct tcp *t, struct inbound *i, int error)
{
    char why[160];

    if (i->pe < 0 || (i->goodbye && i->words == i->words_heard) || i->refused ||
        outbound_is_refused(t, i->pe))
        return false;
    tcp_explain_end(t, error, why, sizeof why);
    t->events++;
    t->config.lost(t->config.context, i->pe, GSHMEM_ERR_PEER_DEAD, why);
    return false;
}

/* Where the next of a put's data goes, and how much of it: *straight. False: it has to wait. */
static bool inbound_find_place(struct tcp *t, struct inbound *i, size_t have, size_t *straight,
                               struct staged **b)
{
    *straight = i->data_left > 8 && have == 0 ? (size_t)i->data_left : 0;
    *b = NULL;
    if (!i->data_of_device || !*straight || i->put_failure) {
        *straight = i->put_failure ? 0 : *straight;
        return true;
    }
    if (!(*b = effects_take(t, i)))
        return false;
    *straight = *straight < (*b)->room ? *straight : (*b)->room;
    return true;
}

static size_t inbound_place(struct tcp *t, struct inbound *i, size_t bytes, struct staged *b)
{
    if (b && bytes)
        effects_push(t, i, b, bytes);
    else if (b)
        staging_give(b);
    return bytes;
}

static bool inbound_receive(struct tcp *t, struct inbound *i)
{
    size_t visit = 0;

    while (visit < VISIT_BYTES) {
        size_t have = i->in_end - i->in_first, straight;
        size_t room = i->put.bytes >= TCP_LARGE && have < REQUEST_BYTES && !i->put_failure
                          ? REQUEST_BYTES - have
                          : sizeof i->in - i->in_end;
        struct staged *b;
        if (!inbound_find_place(t, i, have, &straight, &b))
            return true; /* until a buffer is given back */
        if (b && straight < i->data_left)
            room = 0; /* what follows is data yet */
        if (straight + room == 0)
            return true; /* full of requests whose answers have no room */
        ssize_t n = tcp_receive(i->stream.fd, b ? b->at : i->data_at, straight, i->in + i->in_end, room);
        size_t placed = inbound_place(t, i,
                                      n <= 0                 ? 0
                                      : (size_t)n < straight ? (size_t)n
                                                             : straight,
                                      b);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0)
            return inbound_ended(t, i, n < 0 ? errno : 0);
        t->events++;
        i->heard = true;
        visit += (size_t)n;
        if (placed && !inbound_data_arrived(t, i, placed))
            return false;
        i->in_end += (size_t)n - placed;
        if (!inbound_digest(t, i))
            return false;
        if ((size_t)n < straight + room)
            return true; /* the socket is empty; spares a call that would say so */
    }
    return true;
}

/* The data of a put can take long to come: who sends it hears now and then that somebody takes it. */
static void show_life(struct tcp *t, struct inbound *i)
{
    uint64_t now;

    if (!i->data_left || (now = clock_ns()) - i->since < (uint64_t)t->tick_ms * 1000000 ||
        !queue_has_room(&i->out, ANSWER_BYTES, 1))
        return;
    tcp_inbound_answer(i, ANSWER_DONE, 0);
    i->since = now;
}

/* Behind a signal the response may wait for a round in which nothing arrives: a thread waits for
 * the signal and should go on before anything else (docs/decisions/0010). A thread that goes on to
 * compute does not come back soon, and the proxy thread must respond: for a while no response waits
 * then. */
static bool may_owe(struct tcp *t, struct inbound *i)
{
    if (!i->signalled || i->number - i->answered >= OWED_MOST)
        return false;
    if (t->prompt) {
        t->prompt--;
        return false;
    }
    if (!i->owes) {
        i->owes = true;
        i->next_owed = t->owed;
        if (!t->owed) {
            t->owed_since = clock_ns();
            t->owed_round = t->round;
        }
        t->owed = i;
    }
    return true;
}

/* An answer that nobody waits for goes with another, or when nothing has come for a while: in a
 * round of leaders who tell each other something the call would be half of what it takes. */
static bool may_wait(struct tcp *t, struct inbound *i)
{
    if (i->answered < i->asked || i->number - i->answered >= UNASKED_MOST)
        return false;
    if (!i->unasked) {
        i->unasked = true;
        t->unasked_since = t->unasked || t->unsaid ? t->unasked_since : t->round;
        i->next_unasked = t->unasked;
        t->unasked = i;
        tcp_start_ticking(t); /* it comes, should this PE do something else for long */
    }
    return true;
}

/* The system does not take answers any more. What the peer has sent before is read first: it may have left
 * in good order. */
static bool inbound_broken(struct tcp *t, struct inbound *i, int error)
{
    return inbound_receive(t, i) && inbound_ended(t, i, error);
}

static bool inbound_flush(struct tcp *t, struct inbound *i)
{
    return queue_send(&i->out, i->stream.fd) || inbound_broken(t, i, errno);
}

/* One answer for all puts of this round, then out with them. */
static bool send_answers(struct tcp *t, struct inbound *i, bool owing)
{
    if (i->answered != i->number && !(owing && (may_wait(t, i) || may_owe(t, i))) &&
        queue_has_room(&i->out, ANSWER_BYTES, 1))
        tcp_inbound_answer(i, ANSWER_DONE, 0);
    if (!inbound_flush(t, i))
        return false;
    tcp_want_out(t, &i->stream, !queue_empty(&i->out));
    return true;
}

/* Sends answers, and serves the requests in the buffer that lacked room for theirs. */
static bool answer_and_serve(struct tcp *t, struct inbound *i, bool owing)
{
    bool fine = send_answers(t, i, owing);

    for (size_t left, before = SIZE_MAX;
         fine && queue_empty(&i->out) && i->pe >= 0 && !i->data_left &&
         (left = i->in_end - i->in_first) >= REQUEST_BYTES && left < before;
         before = left)
        fine = inbound_digest(t, i) && send_answers(t, i, owing);
    return fine;
}

/* The same of what came with the device's in between, which may wait for the queue as well. Whoever empties the
 * queue does this: no event comes for them where the socket has taken all answers at once. */
static bool answer_and_go_on(struct tcp *t, struct inbound *i, bool owing)
{
    bool fine = answer_and_serve(t, i, owing);

    while (fine && effects_any(i) && queue_empty(&i->out) && effects_advance(t, i))
        fine = answer_and_serve(t, i, owing);
    return fine;
}

/* The round that began it need not look at the clock. */
bool inbound_owes_long(const struct tcp *t)
{
    return t->round != t->owed_round && clock_ns() - t->owed_since > LATE_NS;
}

void inbound_send_owed(struct tcp *t)
{
    if (inbound_owes_long(t))
        t->prompt = PROMPT_ANSWERS;
    for_another_pe_begin();
    while (t->owed) {
        struct inbound *i = t->owed;
        t->owed = i->next_owed;
        i->owes = false;
        if (!answer_and_go_on(t, i, false))
            inbound_drop(t, i);
    }
    for_another_pe_end();
}

void inbound_send_unasked(struct tcp *t)
{
    for_another_pe_begin();
    while (t->unasked) {
        struct inbound *i = t->unasked;
        t->unasked = i->next_unasked;
        i->unasked = false;
        if (!answer_and_go_on(t, i, false))
            inbound_drop(t, i);
    }
    for_another_pe_end();
}

/* What has taken effect made room for more. */
static bool inbound_go_on(struct tcp *t, struct inbound *i)
{
    do {
        if (!inbound_digest(t, i))
            return false;
    } while (effects_advance(t, i));
    return true;
}

static bool inbound_serve(struct tcp *t, struct inbound *i, uint32_t events)
{
    uint64_t before = i->number;
    bool fine = true;

    if (i->doomed)
        return true;
    if (events & EPOLLOUT && (fine = inbound_flush(t, i)))
        fine = inbound_digest(t, i); /* there may be room for answers now */
    if (fine && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        fine = inbound_receive(t, i);
    if (fine && i->staging)
        fine = inbound_go_on(t, i);
    if (fine)
        show_life(t, i);
    if (fine)
        fine = answer_and_go_on(t, i, true);
    if (i->number != before)
        tcp_note_visit(t, &i->stream);
    if (!fine)
        inbound_drop(t, i);
    return fine;
}

void inbound_try_keys(struct tcp *t)
{
    t->unkeyed = false;
    for_another_pe_begin();
    for (struct inbound *i = t->served, *next; i; i = next) {
        next = i->next;
        if (i->unkeyed && !i->doomed && !(inbound_digest(t, i) && send_answers(t, i, false)))
            inbound_drop(t, i);
    }
    for_another_pe_end();
}

static bool inbound_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    for_another_pe_begin();
    bool fine = inbound_serve(t, (struct inbound *)s, events);
    for_another_pe_end();
    return fine;
}

void inbound_stage(struct tcp *t, struct inbound *i)
{
    if (i->staging)
        return;
    i->staging = true;
    i->next_staging = t->staging_in;
    t->staging_in = i;
}

/* Taken off the list as it is served: who is not through with it comes again. */
bool inbound_advance(struct tcp *t)
{
    struct inbound *i = t->staging_in, *next;
    int before = t->events;

    t->staging_in = NULL;
    for_another_pe_begin();
    for (; i; i = next) {
        next = i->next_staging;
        if (!inbound_serve(t, i, 0))
            continue;
        i->staging = false;
        if (effects_any(i) || (i->data_left && i->data_of_device))
            inbound_stage(t, i);
    }
    for_another_pe_end();
    return t->events != before;
}

void inbound_accept(struct tcp *t, int fd)
{
    struct inbound *i = malloc(sizeof *i);

    if (!i) {
        t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection");
        close(fd);
        return;
    }
    memset(i, 0, offsetof(struct inbound, out)); /* the arrays' pages are taken as they are used */
    memset(&i->out, 0, offsetof(struct queue, ring));
    i->in_first = i->in_end = 0;
    i->stream = (struct stream){.ready = inbound_ready, .fd = fd};
    i->pe = i->claimed = -1;
    i->since = clock_ns();
    tcp_tune(t, fd);
    congestion_suit(t, fd);
    if (!tcp_watch(t, &i->stream, EPOLLIN)) {
        close(fd);
        free(i);
        return;
    }
    i->next = t->served;
    t->served = i;
    t->strangers++;
    t->silent++;
}

static bool is_silent(const struct inbound *i)
{
    return i->claimed < 0 && !i->doomed;
}

/* Has it looked at once more: its hello may be there, and this PE have been slow to read it. */
static void end_silent(struct tcp *t, struct inbound *i, const char *why)
{
    if (inbound_ready(t, &i->stream, EPOLLIN) && is_silent(i)) {
        inbound_refuse(t, i, why);
        inbound_drop(t, i);
    }
}

/* Who has waited longest, and said nothing, gives way to the next: so that a flood of strangers delays who
 * belongs here by no more than it takes to accept them. */
void inbound_make_room(struct tcp *t)
{
    struct inbound *oldest = NULL;

    if (t->silent < SILENT_MOST)
        return;
    for (struct inbound *i = t->served; i; i = i->next) {
        if (is_silent(i))
            oldest = i;
    }
    if (oldest)
        end_silent(t, oldest, "it said nothing, and others came");
}

void inbound_drop_silent(struct tcp *t)
{
    const int ms = t->peer_seconds * 1000;

    for (struct inbound *i = t->served, *next; i; i = next) {
        next = i->next;
        if (i->pe >= 0 || ++i->age * t->tick_ms <= (i->claimed < 0 && !i->unkeyed ? SILENT_MS : ms))
            continue;
        if (i->claimed < 0)
            end_silent(t, i, i->unkeyed ? "the starter has not told in time of the PE that it says it is"
                                        : "it said nothing");
        else if (inbound_ready(t, &i->stream, EPOLLIN) && i->pe < 0)
            inbound_drop(t, i); /* it comes again if it is a PE */
    }
}

/* It may live on, and is told then; as far as it can be without waiting. */
static void inbound_say_given_up(struct inbound *i)
{
    if (!inbound_has_room(i))
        return;
    inbound_answer(i, ANSWER_REFUSED, 0, 0);
    queue_send(&i->out, i->stream.fd);
}

void inbound_cut_off(struct tcp *t, int pe)
{
    struct inbound *i = t->from[pe];

    if (!i || i->goodbye)
        return;
    inbound_say_given_up(i);
    inbound_drop(t, i);
}

/* Whether it is given up: it owes an answer, and has been silent for long. */
static bool is_given_up(struct tcp *t, struct inbound *i)
{
    char why[160];

    if ((i->silent - 1) * t->tick_ms < t->peer_seconds * 1000)
        return false;
    if (!inbound_ready(t, &i->stream, EPOLLIN))
        return true;
    if (i->heard)
        return false; /* it has spoken, only this PE has been slow to hear it */
    tcp_explain_silence(t, why, sizeof why);
    t->config.lost(t->config.context, i->pe, GSHMEM_ERR_PEER_DEAD, why);
    inbound_say_given_up(i);
    inbound_drop(t, i);
    return true;
}

/* To one whose request the device has not carried out for as long as a tick: this PE lives. False: it is gone. */
static bool inbound_say_alive(struct tcp *t, struct inbound *i)
{
    if (!queue_empty(&i->out) || !queue_has_room(&i->out, ANSWER_BYTES, 1))
        return true;
    tcp_inbound_answer(i, ANSWER_DONE, 0);
    if (!inbound_flush(t, i))
        return false;
    tcp_want_out(t, &i->stream, !queue_empty(&i->out));
    return true;
}

bool inbound_watch(struct tcp *t)
{
    bool any = false;

    for (struct inbound *i = t->served, *next; i; i = next) {
        next = i->next;
        if (effects_updating(i)) {
            any = true;
            if (!inbound_say_alive(t, i)) {
                inbound_drop(t, i);
                continue;
            }
        }
        bool owes = i->words != i->words_heard;
        i->silent = i->heard || !owes ? 0 : i->silent + 1;
        i->heard = false;
        if (owes && !is_given_up(t, i))
            any |= i->words != i->words_heard;
    }
    return any;
}

bool inbound_busy(const struct tcp *t)
{
    for (const struct inbound *i = t->served; i; i = i->next) {
        if (i->pe >= 0 && (!queue_empty(&i->out) || i->answered != i->number ||
                           i->words != i->words_heard || effects_any(i)))
            return true;
    }
    return false;
}

void inbound_close_all(struct tcp *t)
{
    while (t->served) {
        struct inbound *i = t->served;
        if (i->pe >= 0 && inbound_has_room(i)) {
            tcp_inbound_answer(i, ANSWER_GOODBYE, 0);
            queue_send(&i->out, i->stream.fd);
        }
        words_end(t, i, i->words, GSHMEM_ERR_ABORTED);
        inbound_drop(t, i);
    }
}

/* The streams that this PE opened: its requests go out, the answers come in. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/sanitizer.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/outbound.h"

/* All requests up to `number` are over. */
void outbound_complete(struct tcp *t, struct outbound *o, uint64_t number, gshmem_status_t status)
{
    while (o->answered < number) {
        struct waiting *w = waiting_of(o, ++o->answered);
        gshmem_status_t how = w->failure ? (gshmem_status_t)w->failure : status;
        t->awaited -= o->answered == o->asked;
        t->events++;
        if (!w->part)
            w->done(w->tag, how);
        else if (how && o->answered != o->posted)
            waiting_of(o, o->answered + 1)->failure = (uint8_t)how;
    }
}

/* The same, once what has been answered before has reached the device. */
static void accept_up_to(struct tcp *t, struct outbound *o, uint64_t number)
{
    o->accepted = number;
    if (o->landing.first)
        o->landing.last->then = number;
    else
        outbound_complete(t, o, number, GSHMEM_OK);
}

/* ---- Loss ---- */

static void end_all(struct tcp *t, struct outbound *o, gshmem_status_t status)
{
    queue_abandon(&o->out, staging_give);
    staging_abandon(&o->landing);
    outbound_complete(t, o, o->posted, status);
    backlog_end(o, status);
}

static void close_stream(struct tcp *t, struct outbound *o)
{
    if (t->last == &o->stream)
        t->last = t->regular = NULL;
    if (t->asked == &o->stream)
        t->asked = NULL;
    tcp_end_stream(t, &o->stream);
    o->again_at = 0;
}

void outbound_fail(struct tcp *t, struct outbound *o, gshmem_status_t status, const char *why)
{
    if (o->failed)
        return;
    o->failed = true;
    o->failure = status;
    close_stream(t, o);
    t->events++;
    if (!o->goodbye || o->answered != o->posted || !backlog_empty(o))
        t->config.lost(t->config.context, o->pe, o->goodbye || !o->greeted ? GSHMEM_ERR_UNREACHABLE : status, why);
    end_all(t, o, status);
}

void outbound_fail_here(struct tcp *t, struct outbound *o, gshmem_status_t status, const char *why)
{
    t->config.fail(status, "no connection to PE %d: %s", o->pe, why);
    close_stream(t, o);
    o->failed = true; /* what done calls posts nothing here meanwhile */
    o->failure = status;
    end_all(t, o, status);
    o->failed = false;
    o->resting = true;
    o->posted = o->asked = o->answered = o->accepted = 0; /* nothing of it was sent */
}

bool outbound_refused(struct tcp *t, struct outbound *o)
{
    if (o->failed)
        return false;
    o->failed = o->refused = true;
    o->failure = GSHMEM_ERR_PEER_DEAD;
    close_stream(t, o);
    t->config.refused(t->config.context, o->pe);
    end_all(t, o, GSHMEM_ERR_PEER_DEAD);
    return false;
}

static void lose(struct tcp *t, struct outbound *o, int error)
{
    char why[160];

    if (!o->greeted) {
        opening_ended(t, o, TROUBLE_ENDED, error);
        return;
    }
    tcp_explain_end(t, error, why, sizeof why);
    outbound_fail(t, o, GSHMEM_ERR_PEER_DEAD, why);
}

static bool outbound_refuse(struct tcp *t, struct outbound *o, const char *what)
{
    char why[160];

    snprintf(why, sizeof why, "tcp: PE %d sent %s", o->pe, what);
    outbound_fail(t, o, GSHMEM_ERR_TRANSPORT, why);
    return false;
}

/* ---- Answers ---- */

/* Requests up to `number` are over; none of them may be one that was to bring something. */
static bool complete_plain(struct tcp *t, struct outbound *o, uint64_t number)
{
    uint64_t plain = o->accepted;

    while (plain < number && waiting_of(o, plain + 1)->due == ANSWER_DONE)
        plain++;
    if (plain > o->accepted)
        accept_up_to(t, o, plain);
    if (plain < number)
        return outbound_refuse(t, o, "no answer to a request that needs one");
    return true;
}

static bool take_data_answer(struct tcp *t, struct outbound *o, const struct answer_frame *a)
{
    struct waiting *w = waiting_of(o, a->number);

    if (w->due != ANSWER_DATA || a->value > w->bytes || (a->value == 0 && w->bytes))
        return outbound_refuse(t, o, "data of a size that was not asked for");
    if (a->value == 0) {
        accept_up_to(t, o, a->number);
        return true;
    }
    o->data_at = w->local;
    o->data_left = a->value;
    o->data_number = a->number;
    o->data_of_device = w->of_device;
    w->local = (char *)w->local + a->value;
    w->bytes -= a->value;
    return true;
}

static bool outbound_take_failure(struct tcp *t, struct outbound *o, const struct answer_frame *a)
{
    if (a->value < GSHMEM_ERR_ARGUMENT || a->value > GSHMEM_ERR_SYSTEM)
        return outbound_refuse(t, o, "a failure that is none of this version's");
    waiting_of(o, a->number)->failure = (uint8_t)a->value;
    accept_up_to(t, o, a->number);
    return true;
}

static bool take_word(struct tcp *t, struct outbound *o)
{
    struct request_frame f;

    if (!request_decode(o->in + o->in_first, &f) || !words_begin(t, o, &f))
        return outbound_refuse(t, o, "a put that may not come this way");
    o->in_first += REQUEST_BYTES;
    return true;
}

static bool take_answer(struct tcp *t, struct outbound *o)
{
    struct answer_frame a;

    if (!answer_decode(o->in + o->in_first, &a))
        return outbound_refuse(t, o, "an answer that is none of this version's");
    o->in_first += ANSWER_BYTES;
    if (a.kind == ANSWER_GOODBYE)
        return o->goodbye = true;
    if (a.kind == ANSWER_REFUSED)
        return outbound_refused(t, o);
    if (a.number <= o->accepted || a.number > o->posted) {
        /* DONE may repeat what another answer has said */
        return a.kind == ANSWER_DONE && a.number == o->accepted
                   ? true
                   : outbound_refuse(t, o, "an answer to a request that was not made");
    }
    if (a.kind == ANSWER_DONE)
        return complete_plain(t, o, a.number);
    if (!complete_plain(t, o, a.number - 1))
        return false;
    if (a.kind == ANSWER_DATA)
        return take_data_answer(t, o, &a);
    if (a.kind == ANSWER_FAILED)
        return outbound_take_failure(t, o, &a);
    const struct waiting *w = waiting_of(o, a.number);
    if (w->due == ANSWER_DATA)
        return outbound_refuse(t, o, "a value where data was asked for");
    if (w->due == ANSWER_VALUE)
        memcpy(w->local, &a.value, 8);
    accept_up_to(t, o, a.number);
    return true;
}

static void outbound_data_arrived(struct tcp *t, struct outbound *o, size_t bytes)
{
    o->data_at += bytes;
    o->data_left -= bytes;
    if (o->data_left == 0 && o->hears)
        words_take(t, o);
    else if (o->data_left == 0 && waiting_of(o, o->data_number)->bytes == 0)
        accept_up_to(t, o, o->data_number);
}

/* A word's data is the other PE's doing, a get's is this thread's. */
static void begin_data(const struct outbound *o)
{
    if (o->hears)
        for_another_pe_begin();
}

static void end_data(const struct outbound *o)
{
    if (o->hears)
        for_another_pe_end();
}

/* From the buffer to its place; how much, which is nothing where that has to wait. */
static size_t outbound_take_data(struct tcp *t, struct outbound *o, size_t have)
{
    size_t part = have < o->data_left ? have : (size_t)o->data_left;
    struct staged *s = NULL;

    if (o->data_of_device) {
        if (!(s = landing_take(t, o)))
            return 0;
        part = part < s->room ? part : s->room;
    }
    begin_data(o);
    memcpy(s ? s->at : o->data_at, o->in + o->in_first, part);
    end_data(o);
    o->in_first += part;
    if (s)
        landing_push(o, s, part);
    outbound_data_arrived(t, o, part);
    return part;
}

static bool is_word(const struct outbound *o)
{
    return o->in[o->in_first] == FRAME_PUT;
}

static size_t least_frame(const struct outbound *o)
{
    return o->in_end > o->in_first && is_word(o) ? REQUEST_BYTES : ANSWER_BYTES;
}

static bool outbound_take_frame(struct tcp *t, struct outbound *o)
{
    return is_word(o) ? take_word(t, o) : take_answer(t, o);
}

/* Goes through what is in the buffer. False: the stream is over. */
static bool outbound_digest(struct tcp *t, struct outbound *o)
{
    for (;;) {
        size_t have = o->in_end - o->in_first;
        if (!o->greeted && have >= (o->proven ? ANSWER_BYTES : CHALLENGE_BYTES)) {
            if (!opening_take(t, o, have))
                return false;
        } else if (o->data_left && have && outbound_take_data(t, o, have)) {
            continue;
        } else if (o->greeted && !o->data_left && have >= least_frame(o)) {
            if (!outbound_take_frame(t, o))
                return false;
        } else {
            if (o->in_first && have)
                memmove(o->in, o->in + o->in_first, have);
            o->in_first = 0;
            o->in_end = have;
            return true;
        }
    }
}

/* What has come: first the rest of a get's data, straight to `place`, then frames. As recv; *wanted is
 * how much there could have been. */
static ssize_t receive_some(struct outbound *o, char *place, size_t straight, size_t *wanted)
{
    size_t room = sizeof o->in - o->in_end;

    if (straight < o->data_left)
        room = 0; /* what follows is data yet */
    *wanted = straight + room;
    begin_data(o);
    ssize_t n = tcp_receive(o->stream.fd, place, straight, o->in + o->in_end, room);
    end_data(o);
    return n;
}

static bool outbound_receive(struct tcp *t, struct outbound *o)
{
    for (;;) {
        /* The buffer is empty where data is due: the rest of it goes straight to its place. */
        size_t straight = (size_t)o->data_left, wanted;
        struct staged *s = NULL;
        if (o->data_left && o->data_of_device) {
            if (o->in_end || !(s = landing_take(t, o)))
                return true; /* when one is given back */
            straight = straight < s->room ? straight : s->room;
        }
        ssize_t n = receive_some(o, s ? s->at : o->data_at, straight, &wanted);
        size_t placed = n <= 0 ? 0 : (size_t)n < straight ? (size_t)n : straight;

        if (s && placed)
            landing_push(o, s, placed);
        else if (s)
            staging_give(s);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0) {
            lose(t, o, n < 0 ? errno : 0);
            return false;
        }
        t->events++;
        o->heard = true;
        if (placed)
            outbound_data_arrived(t, o, placed);
        o->in_end += (size_t)n - placed;
        if (!outbound_digest(t, o))
            return false;
        if ((size_t)n < wanted)
            return true; /* the socket is empty; spares a call that would say so */
    }
}

/* ---- Sending ---- */

static void add_losses(struct tcp *t, struct outbound *o)
{
    unsigned char frame[REQUEST_BYTES];

    while (o->told < t->losses && queue_has_room(&o->out, sizeof frame, 1)) {
        struct request_frame f = {.kind = FRAME_LOST, .offset = (uint64_t)t->lost[o->told++]};
        request_encode(frame, &f);
        queue_add_copy(&o->out, frame, sizeof frame);
    }
}

bool outbound_flush(struct tcp *t, struct outbound *o)
{
    if (!o->greeted)
        return true;
    do {
        add_losses(t, o);
        if (!queue_send(&o->out, o->stream.fd)) {
            if (errno == EPIPE || errno == ECONNRESET)
                break; /* the end of the stream is read, behind what the peer said before it */
            lose(t, o, errno);
            return false;
        }
    } while (o->told < t->losses && queue_empty(&o->out));
    tcp_want_out(t, &o->stream, !queue_empty(&o->out));
    return true;
}

/* ---- Connecting ---- */

static bool outbound_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    struct outbound *o = (struct outbound *)s;

    if (!o->connected) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return true;
        if (!opening_connected(t, o))
            return false;
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !outbound_receive(t, o))
        return false;
    return outbound_flush(t, o); /* an answer also lets go what was held back */
}

static gshmem_status_t open_stream(struct tcp *t, int pe, struct outbound **out)
{
    unsigned char published[TRANSPORT_ADDRESS_MAX];
    size_t bytes = 0;
    gshmem_status_t status;
    struct outbound *o;

    if (t->gone[pe])
        return GSHMEM_ERR_PEER_DEAD;
    if ((status = t->config.find(t->config.context, pe, published, sizeof published, &bytes)))
        return status;
    if (!(o = malloc(sizeof *o)))
        return t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection to PE %d", pe);
    /* The large arrays need no clearing, and their pages are taken as they are used. */
    memset(o, 0, offsetof(struct outbound, waiting));
    o->data_at = NULL;
    o->data_left = o->data_number = 0;
    o->data_of_device = false;
    o->in_first = o->in_end = 0;
    o->stream = (struct stream){.ready = outbound_ready, .fd = -1};
    o->pe = pe;
    if (!address_decode(published, bytes, &o->address)) {
        free(o);
        return t->config.fail(GSHMEM_ERR_BOOTSTRAP, "tcp: PE %d published no address of this version",
                              pe);
    }
    t->to[pe] = o;
    o->next = t->open;
    t->open = o;
    o->resting = true;
    *out = o;
    return GSHMEM_OK;
}

/* ---- Posting ---- */

static bool goes_to_device(const struct tcp *t, const struct transport_request *r)
{
    return r->kind == TRANSPORT_GET && r->bytes && !(r->flags & TRANSPORT_KEPT) &&
           t->config.on_device(t->config.context, r->local, r->bytes);
}

struct waiting *outbound_enqueue(struct tcp *t, struct outbound *o, const struct transport_request *r,
                                 bool part)
{
    unsigned char frame[REQUEST_BYTES];
    struct request_frame f =
        r->kind == TRANSPORT_PUT
            ? request_of_put(r)
            : (struct request_frame){
                  .segment = (uint8_t)r->segment, .offset = r->offset, .bytes = r->bytes};

    struct waiting *w = waiting_of(o, ++o->posted);

    if (!(r->flags & TRANSPORT_UNASKED)) {
        t->awaited += o->answered >= o->asked;
        t->asked = &o->stream;
        o->asked = o->posted;
    }
    *w = (struct waiting){.done = r->done, .tag = r->tag, .due = ANSWER_DONE, .part = part};
    switch (r->kind) {
    case TRANSPORT_PUT:
        f.more = part;
        break;
    case TRANSPORT_GET:
        f.kind = FRAME_GET;
        w->local = r->local;
        w->bytes = r->bytes;
        w->due = ANSWER_DATA;
        w->of_device = t->config.device && goes_to_device(t, r);
        break;
    case TRANSPORT_ATOMIC:
        f.kind = FRAME_ATOMIC;
        f.amo = (uint8_t)r->amo;
        f.type = (uint8_t)r->type;
        f.a = r->operand;
        f.b = r->compare;
        f.bytes = 0;
        w->local = r->old;
        w->due = r->old ? ANSWER_VALUE : ANSWER_DONE;
        break;
    }
    request_encode(frame, &f);
    queue_add_copy(&o->out, frame, sizeof frame);
    if (r->kind != TRANSPORT_PUT || r->bytes == 0)
        return w;
    if (r->bytes <= TRANSPORT_COPIED)
        queue_add_copy(&o->out, r->local, r->bytes);
    else
        queue_add_reference(&o->out, r->local, r->bytes, r->sent, r->tag);
    return w;
}

gshmem_status_t outbound_post(struct tcp *t, const struct transport_request *r)
{
    struct outbound *o = t->to[r->pe];
    bool copied = r->kind == TRANSPORT_PUT && r->bytes <= TRANSPORT_COPIED;
    gshmem_status_t status;

    if (!o && (status = open_stream(t, r->pe, &o)))
        return status;
    if (o->resting)
        opening_begin(t, o);
    if (o->failed)
        return o->failure;
    if (t->config.device) {
        tcp_start_ticking(t);
        if (goes_to_device(t, r) && !staging_ready(&t->staging))
            return GSHMEM_ERR_MEMORY;
        if (backlog_takes(t, o, r))
            return backlog_post(t, o, r);
    }
    if (!outbound_has_room(o, copied ? r->bytes : 0))
        return TRANSPORT_FULL;
    bool answers_due = o->answered < o->asked;
    outbound_enqueue(t, o, r, false);
    tcp_start_ticking(t);
    /* Held back only while an answer is on its way, whose arrival sends the rest if nothing else
     * does before. */
    if (r->flags & TRANSPORT_MORE && answers_due && o->out.bytes < BATCH_BYTES) {
        t->held_back = true;
        return GSHMEM_OK;
    }
    outbound_flush(t, o);
    return GSHMEM_OK; /* if the stream broke just now, done has been called with that */
}

static void ignore(void *tag, gshmem_status_t status)
{
    (void)tag, (void)status;
}

/* A note has no answer. The empty put behind it has one, so that a peer that stopped before it read the
 * note is noticed. */
gshmem_status_t outbound_say(struct tcp *t, int pe, const void *note, size_t bytes)
{
    const struct transport_request behind = {
        .kind = TRANSPORT_PUT, .flags = TRANSPORT_UNASKED, .pe = pe, .done = ignore};
    unsigned char frame[REQUEST_BYTES];
    struct outbound *o = t->to[pe];
    gshmem_status_t status;

    if (!o && (status = open_stream(t, pe, &o)))
        return status;
    if (o->resting)
        opening_begin(t, o);
    if (o->failed)
        return o->failure;
    if (!queue_has_room(&o->out, REQUEST_BYTES + bytes, 2) || (!o->greeted && o->shortage))
        return TRANSPORT_FULL; /* nobody waits yet for what comes of it */
    o->notes |= !o->greeted;
    request_encode(frame, &(struct request_frame){.kind = FRAME_NOTE, .bytes = bytes});
    queue_add_copy(&o->out, frame, sizeof frame);
    queue_add_copy(&o->out, note, bytes);
    if (outbound_has_room(o, 0)) /* else enough is waiting for answers */
        outbound_enqueue(t, o, &behind, false);
    tcp_start_ticking(t);
    t->held_back = true; /* as in outbound_tell */
    return GSHMEM_OK;
}

void outbound_send_held(struct tcp *t)
{
    t->held_back = false;
    for (struct outbound *o = t->open; o; o = o->next) {
        bool has_more = !queue_empty(&o->out) || o->told < t->losses;
        if (!o->failed && has_more && !o->stream.wants_out)
            outbound_flush(t, o);
    }
}

void outbound_tell(struct tcp *t, int lost)
{
    if (t->losses == t->config.n_pes)
        return;
    t->lost[t->losses++] = lost;
    t->held_back = true; /* sent with the next round: this may be called in the middle of one */
}

/* ---- What is staged ---- */

void outbound_stage(struct tcp *t, struct outbound *o)
{
    if (o->staging)
        return;
    o->staging = true;
    o->next_staging = t->staging_out;
    t->staging_out = o;
}

/* Taken off the list first: who is not through with it comes again. */
bool outbound_advance(struct tcp *t)
{
    struct outbound *o = t->staging_out, *next;
    bool some = false;

    t->staging_out = NULL;
    for (; o; o = next) {
        next = o->next_staging;
        o->staging = false;
        if (o->failed)
            continue;
        bool landed = landing_advance(t, o);
        bool moved = backlog_advance(t, o);
        some |= landed | moved;
        bool starved = o->data_left && o->data_of_device;
        if (!o->failed && (!starved || (outbound_digest(t, o) && outbound_receive(t, o))) &&
            (o->landing.first || !backlog_empty(o)))
            outbound_stage(t, o);
    }
    return some;
}

/* ---- Silence ---- */

static bool owes(const struct outbound *o)
{
    return !o->failed && (o->posted != o->answered || !queue_empty(&o->out));
}

/* It may live on, and is told then; as far as it can be without waiting. */
static void outbound_say_given_up(struct outbound *o)
{
    unsigned char frame[REQUEST_BYTES];

    if (!o->greeted || !queue_has_room(&o->out, sizeof frame, 1))
        return;
    request_encode(frame, &(struct request_frame){.kind = FRAME_LOST, .offset = (uint64_t)o->pe});
    queue_add_copy(&o->out, frame, sizeof frame);
    queue_send(&o->out, o->stream.fd);
}

static void outbound_give_up(struct tcp *t, struct outbound *o)
{
    char why[160];

    if (!outbound_receive(t, o))
        return;
    if (o->heard) { /* it has spoken, only this PE has been slow to hear it */
        outbound_flush(t, o); /* which may have waited for what it said */
        return;
    }
    tcp_explain_silence(t, why, sizeof why);
    outbound_say_given_up(o);
    outbound_fail(t, o, GSHMEM_ERR_PEER_DEAD, why);
}

/* Whoever was slow itself looks first at what has come. */
static void watch_opening(struct tcp *t, struct outbound *o)
{
    if (o->connected && outbound_receive(t, o) && o->greeted)
        outbound_flush(t, o);
    if (!o->greeted && !o->failed && !o->resting)
        opening_tick(t, o);
}

bool outbound_watch(struct tcp *t)
{
    bool any = false;

    for (struct outbound *o = t->open; o; o = o->next) {
        if (!o->greeted) {
            if (!o->failed && !o->resting)
                watch_opening(t, o);
            any |= !o->failed && !o->resting;
            continue;
        }
        bool heard = o->heard || !owes(o);
        o->silent = heard ? 0 : o->silent + 1;
        o->heard = false;
        words_say_heard(t, o);
        /* the first of these ticks may have come right after the request */
        if ((o->silent - 1) * t->tick_ms >= t->peer_seconds * 1000)
            outbound_give_up(t, o);
        any |= owes(o) || o->hears;
    }
    return any;
}

/* ---- The end ---- */

bool outbound_is_greeted(const struct tcp *t, int pe)
{
    return t->to[pe] && t->to[pe]->greeted && !t->to[pe]->failed;
}

bool outbound_is_refused(const struct tcp *t, int pe)
{
    return t->to[pe] && t->to[pe]->refused;
}

void outbound_cut_off(struct tcp *t, int pe)
{
    struct outbound *o = t->to[pe];

    if (!o || o->failed || o->goodbye)
        return;
    outbound_say_given_up(o);
    outbound_fail(t, o, GSHMEM_ERR_PEER_DEAD, "tcp: it is lost to the job");
}

bool outbound_busy(const struct tcp *t)
{
    for (const struct outbound *o = t->open; o; o = o->next) {
        if (owes(o) || !backlog_empty(o) || (!o->failed && o->words != o->words_said))
            return true;
    }
    return false;
}

void outbound_goodbye(struct tcp *t, int milliseconds)
{
    unsigned char frame[REQUEST_BYTES];

    request_encode(frame, &(struct request_frame){.kind = FRAME_GOODBYE});
    for (struct outbound *o = t->open; o; o = o->next) {
        if (o->failed || !o->greeted || !queue_has_room(&o->out, sizeof frame, 1))
            continue;
        queue_add_copy(&o->out, frame, sizeof frame);
        struct pollfd room = {.fd = o->stream.fd, .events = POLLOUT};
        while (queue_send(&o->out, o->stream.fd) && !queue_empty(&o->out)) {
            if (poll(&room, 1, milliseconds) != 1)
                break;
        }
    }
}

void outbound_say_heard(struct tcp *t)
{
    t->unsaid = false;
    for (struct outbound *o = t->open; o; o = o->next) {
        words_say_heard(t, o);
        t->unsaid |= !o->failed && o->words != o->words_said; /* for want of room */
    }
}

void outbound_close_all(struct tcp *t)
{
    while (t->open) {
        struct outbound *o = t->open;
        t->open = o->next;
        close_stream(t, o);
        o->failed = true; /* what done calls posts nothing more here */
        o->failure = GSHMEM_ERR_ABORTED;
        end_all(t, o, GSHMEM_ERR_ABORTED);
        t->to[o->pe] = NULL;
        free(o);
    }
    t->asked = NULL;
    t->staging_out = NULL;
}

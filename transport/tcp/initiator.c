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
#include "transport/tcp/initiator.h"

/* All requests up to `number` are over. */
void initiator_complete(struct tcp *t, struct initiator *to, uint64_t number, gshmem_status_t status)
{
    while (to->completed < number) {
        struct pending *w = pending_of(to, ++to->completed);
        gshmem_status_t how = w->failure ? (gshmem_status_t)w->failure : status;
        t->awaited -= to->completed == to->awaited;
        t->events++;
        if (!w->part)
            w->done(w->tag, how);
        else if (how && to->completed != to->posted)
            pending_of(to, to->completed + 1)->failure = (uint8_t)how;
    }
}

/* The same, once what has been answered before has reached the device. */
static void responded_up_to(struct tcp *t, struct initiator *to, uint64_t number)
{
    to->responded = number;
    if (to->landing.first)
        to->landing.last->then = number;
    else
        initiator_complete(t, to, number, GSHMEM_OK);
}

/* ---- Loss ---- */

static void end_all(struct tcp *t, struct initiator *to, gshmem_status_t status)
{
    queue_abandon(&to->out, staging_give);
    staging_abandon(&to->landing);
    initiator_complete(t, to, to->posted, status);
    backlog_end(to, status);
}

static void close_stream(struct tcp *t, struct initiator *to)
{
    if (t->last == &to->stream)
        t->last = t->regular = NULL;
    if (t->requested == &to->stream)
        t->requested = NULL;
    tcp_end_stream(t, &to->stream);
    to->retry_at = 0;
}

void initiator_fail(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why)
{
    if (to->failed)
        return;
    to->failed = true;
    to->failure = status;
    close_stream(t, to);
    t->events++;
    if (!to->goodbye || to->completed != to->posted || !backlog_empty(to))
        t->config.lost(t->config.context, to->pe, to->goodbye || !to->active ? GSHMEM_ERR_UNREACHABLE : status, why);
    end_all(t, to, status);
}

void initiator_fail_here(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why)
{
    t->config.fail(status, "no connection to PE %d: %s", to->pe, why);
    close_stream(t, to);
    to->failed = true; /* what done calls posts nothing here meanwhile */
    to->failure = status;
    end_all(t, to, status);
    to->failed = false;
    to->is_idle = true;
    to->posted = to->awaited = to->completed = to->responded = 0; /* nothing of it was sent */
}

bool initiator_refused(struct tcp *t, struct initiator *to)
{
    if (to->failed)
        return false;
    to->failed = to->refused = true;
    to->failure = GSHMEM_ERR_PEER_DEAD;
    close_stream(t, to);
    t->config.refused(t->config.context, to->pe);
    end_all(t, to, GSHMEM_ERR_PEER_DEAD);
    return false;
}

static void initiator_stream_ended(struct tcp *t, struct initiator *to, int error)
{
    char why[160];

    if (!to->active) {
        connect_failed(t, to, TROUBLE_ENDED, error);
        return;
    }
    tcp_explain_end(t, error, why, sizeof why);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, why);
}

static bool initiator_refuse(struct tcp *t, struct initiator *to, const char *what)
{
    char why[160];

    snprintf(why, sizeof why, "tcp: PE %d sent %s", to->pe, what);
    initiator_fail(t, to, GSHMEM_ERR_TRANSPORT, why);
    return false;
}

/* ---- Answers ---- */

/* Requests up to `number` are over; none of them may be one that was to bring something. */
static bool complete_puts(struct tcp *t, struct initiator *to, uint64_t number)
{
    uint64_t plain = to->responded;

    while (plain < number && pending_of(to, plain + 1)->due == RESPONSE_DONE)
        plain++;
    if (plain > to->responded)
        responded_up_to(t, to, plain);
    if (plain < number)
        return initiator_refuse(t, to, "no answer to a request that needs one");
    return true;
}

static bool take_data_response(struct tcp *t, struct initiator *to, const struct response_frame *a)
{
    struct pending *w = pending_of(to, a->number);

    if (w->due != RESPONSE_DATA || a->value > w->bytes || (a->value == 0 && w->bytes))
        return initiator_refuse(t, to, "data of a size that was not asked for");
    if (a->value == 0) {
        responded_up_to(t, to, a->number);
        return true;
    }
    to->data_at = w->local;
    to->data_left = a->value;
    to->data_number = a->number;
    to->data_of_device = w->of_device;
    w->local = (char *)w->local + a->value;
    w->bytes -= a->value;
    return true;
}

static bool initiator_take_failure(struct tcp *t, struct initiator *to, const struct response_frame *a)
{
    if (a->value < GSHMEM_ERR_ARGUMENT || a->value > GSHMEM_ERR_SYSTEM)
        return initiator_refuse(t, to, "a failure that is none of this version's");
    pending_of(to, a->number)->failure = (uint8_t)a->value;
    responded_up_to(t, to, a->number);
    return true;
}

static bool take_unordered(struct tcp *t, struct initiator *to)
{
    struct request_frame f;

    if (!request_decode(to->in + to->in_first, &f) || !unordered_begin(t, to, &f))
        return initiator_refuse(t, to, "a put that may not come this way");
    to->in_first += REQUEST_BYTES;
    return true;
}

static bool take_response(struct tcp *t, struct initiator *to)
{
    struct response_frame a;

    if (!response_decode(to->in + to->in_first, &a))
        return initiator_refuse(t, to, "an answer that is none of this version's");
    to->in_first += RESPONSE_BYTES;
    if (a.kind == RESPONSE_GOODBYE)
        return to->goodbye = true;
    if (a.kind == RESPONSE_REFUSED)
        return initiator_refused(t, to);
    if (a.number <= to->responded || a.number > to->posted) {
        /* DONE may repeat what another answer has said */
        return a.kind == RESPONSE_DONE && a.number == to->responded
                   ? true
                   : initiator_refuse(t, to, "an answer to a request that was not made");
    }
    if (a.kind == RESPONSE_DONE)
        return complete_puts(t, to, a.number);
    if (!complete_puts(t, to, a.number - 1))
        return false;
    if (a.kind == RESPONSE_DATA)
        return take_data_response(t, to, &a);
    if (a.kind == RESPONSE_FAILED)
        return initiator_take_failure(t, to, &a);
    const struct pending *w = pending_of(to, a.number);
    if (w->due == RESPONSE_DATA)
        return initiator_refuse(t, to, "a value where data was asked for");
    if (w->due == RESPONSE_VALUE)
        memcpy(w->local, &a.value, 8);
    responded_up_to(t, to, a.number);
    return true;
}

static void initiator_data_arrived(struct tcp *t, struct initiator *to, size_t bytes)
{
    to->data_at += bytes;
    to->data_left -= bytes;
    if (to->data_left == 0 && to->in_unordered)
        unordered_apply(t, to);
    else if (to->data_left == 0 && pending_of(to, to->data_number)->bytes == 0)
        responded_up_to(t, to, to->data_number);
}

/* A word's data is the other PE's doing, a get's is this thread's. */
static void begin_data(const struct initiator *to)
{
    if (to->in_unordered)
        for_another_pe_begin();
}

static void end_data(const struct initiator *to)
{
    if (to->in_unordered)
        for_another_pe_end();
}

/* From the buffer to its place; how much, which is nothing where that has to wait. */
static size_t initiator_take_data(struct tcp *t, struct initiator *to, size_t have)
{
    size_t part = have < to->data_left ? have : (size_t)to->data_left;
    struct staged *s = NULL;

    if (to->data_of_device) {
        if (!(s = landing_buffer(t, to)))
            return 0;
        part = part < s->room ? part : s->room;
    }
    begin_data(to);
    memcpy(s ? s->at : to->data_at, to->in + to->in_first, part);
    end_data(to);
    to->in_first += part;
    if (s)
        landing_push(to, s, part);
    initiator_data_arrived(t, to, part);
    return part;
}

static bool is_unordered(const struct initiator *to)
{
    return to->in[to->in_first] == FRAME_PUT;
}

static size_t least_frame(const struct initiator *to)
{
    return to->in_end > to->in_first && is_unordered(to) ? REQUEST_BYTES : RESPONSE_BYTES;
}

static bool initiator_take_frame(struct tcp *t, struct initiator *to)
{
    return is_unordered(to) ? take_unordered(t, to) : take_response(t, to);
}

/* Goes through what is in the buffer. False: the stream is over. */
static bool initiator_parse(struct tcp *t, struct initiator *to)
{
    for (;;) {
        size_t have = to->in_end - to->in_first;
        if (!to->active && have >= (to->proven ? RESPONSE_BYTES : CHALLENGE_BYTES)) {
            if (!connect_take_greeting(t, to, have))
                return false;
        } else if (to->data_left && have && initiator_take_data(t, to, have)) {
            continue;
        } else if (to->active && !to->data_left && have >= least_frame(to)) {
            if (!initiator_take_frame(t, to))
                return false;
        } else {
            if (to->in_first && have)
                memmove(to->in, to->in + to->in_first, have);
            to->in_first = 0;
            to->in_end = have;
            return true;
        }
    }
}

/* What has come: first the rest of a get's data, straight to `place`, then frames. As recv; *wanted is
 * how much there could have been. */
static ssize_t receive_some(struct initiator *to, char *place, size_t straight, size_t *wanted)
{
    size_t room = sizeof to->in - to->in_end;

    if (straight < to->data_left)
        room = 0; /* what follows is data yet */
    *wanted = straight + room;
    begin_data(to);
    ssize_t n = tcp_receive(to->stream.fd, place, straight, to->in + to->in_end, room);
    end_data(to);
    return n;
}

static bool initiator_receive(struct tcp *t, struct initiator *to)
{
    for (;;) {
        /* The buffer is empty where data is due: the rest of it goes straight to its place. */
        size_t straight = (size_t)to->data_left, wanted;
        struct staged *s = NULL;
        if (to->data_left && to->data_of_device) {
            if (to->in_end || !(s = landing_buffer(t, to)))
                return true; /* when one is given back */
            straight = straight < s->room ? straight : s->room;
        }
        ssize_t n = receive_some(to, s ? s->at : to->data_at, straight, &wanted);
        size_t placed = n <= 0 ? 0 : (size_t)n < straight ? (size_t)n : straight;

        if (s && placed)
            landing_push(to, s, placed);
        else if (s)
            staging_give(s);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0) {
            initiator_stream_ended(t, to, n < 0 ? errno : 0);
            return false;
        }
        t->events++;
        to->received = true;
        if (placed)
            initiator_data_arrived(t, to, placed);
        to->in_end += (size_t)n - placed;
        if (!initiator_parse(t, to))
            return false;
        if ((size_t)n < wanted)
            return true; /* the socket is empty; spares a call that would say so */
    }
}

/* ---- Sending ---- */

static void queue_failures(struct tcp *t, struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    while (to->notified < t->failures && queue_has_room(&to->out, sizeof frame, 1)) {
        struct request_frame f = {.kind = FRAME_FAILED, .offset = (uint64_t)t->failed[to->notified++]};
        request_encode(frame, &f);
        queue_add_copy(&to->out, frame, sizeof frame);
    }
}

bool initiator_flush(struct tcp *t, struct initiator *to)
{
    if (!to->active)
        return true;
    do {
        queue_failures(t, to);
        if (!queue_send(&to->out, to->stream.fd)) {
            if (errno == EPIPE || errno == ECONNRESET)
                break; /* the end of the stream is read, behind what the peer said before it */
            initiator_stream_ended(t, to, errno);
            return false;
        }
    } while (to->notified < t->failures && queue_empty(&to->out));
    tcp_want_out(t, &to->stream, !queue_empty(&to->out));
    return true;
}

/* ---- Connecting ---- */

static bool initiator_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    struct initiator *to = (struct initiator *)s;

    if (!to->connected) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return true;
        if (!connect_established(t, to))
            return false;
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !initiator_receive(t, to))
        return false;
    return initiator_flush(t, to); /* an answer also lets go what was held back */
}

static gshmem_status_t open_stream(struct tcp *t, int pe, struct initiator **out)
{
    unsigned char published[TRANSPORT_ADDRESS_MAX];
    size_t bytes = 0;
    gshmem_status_t status;
    struct initiator *to;

    if (t->given_up[pe])
        return GSHMEM_ERR_PEER_DEAD;
    if ((status = t->config.find(t->config.context, pe, published, sizeof published, &bytes)))
        return status;
    if (!(to = malloc(sizeof *to)))
        return t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection to PE %d", pe);
    /* The large arrays need no clearing, and their pages are taken as they are used. */
    memset(to, 0, offsetof(struct initiator, pending));
    to->data_at = NULL;
    to->data_left = to->data_number = 0;
    to->data_of_device = false;
    to->in_first = to->in_end = 0;
    to->stream = (struct stream){.ready = initiator_ready, .fd = -1};
    to->pe = pe;
    if (!address_decode(published, bytes, &to->address)) {
        free(to);
        return t->config.fail(GSHMEM_ERR_BOOTSTRAP, "tcp: PE %d published no address of this version",
                              pe);
    }
    t->to[pe] = to;
    to->next = t->open;
    t->open = to;
    to->is_idle = true;
    *out = to;
    return GSHMEM_OK;
}

/* ---- Posting ---- */

static bool goes_to_device(const struct tcp *t, const struct transport_request *r)
{
    return r->kind == TRANSPORT_GET && r->bytes && !(r->flags & TRANSPORT_KEPT) &&
           t->config.on_device(t->config.context, r->local, r->bytes);
}

struct pending *initiator_enqueue(struct tcp *t, struct initiator *to, const struct transport_request *r,
                                 bool part)
{
    unsigned char frame[REQUEST_BYTES];
    struct request_frame f =
        r->kind == TRANSPORT_PUT
            ? request_of_put(r)
            : (struct request_frame){
                  .segment = (uint8_t)r->segment, .offset = r->offset, .bytes = r->bytes};

    struct pending *w = pending_of(to, ++to->posted);

    if (!(r->flags & TRANSPORT_UNASKED)) {
        t->awaited += to->completed >= to->awaited;
        t->requested = &to->stream;
        to->awaited = to->posted;
    }
    *w = (struct pending){.done = r->done, .tag = r->tag, .due = RESPONSE_DONE, .part = part};
    switch (r->kind) {
    case TRANSPORT_PUT:
        f.more = part;
        break;
    case TRANSPORT_GET:
        f.kind = FRAME_GET;
        w->local = r->local;
        w->bytes = r->bytes;
        w->due = RESPONSE_DATA;
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
        w->due = r->old ? RESPONSE_VALUE : RESPONSE_DONE;
        break;
    }
    request_encode(frame, &f);
    queue_add_copy(&to->out, frame, sizeof frame);
    if (r->kind != TRANSPORT_PUT || r->bytes == 0)
        return w;
    if (r->bytes <= TRANSPORT_COPIED)
        queue_add_copy(&to->out, r->local, r->bytes);
    else
        queue_add_reference(&to->out, r->local, r->bytes, r->sent, r->tag);
    return w;
}

gshmem_status_t initiator_post(struct tcp *t, const struct transport_request *r)
{
    struct initiator *to = t->to[r->pe];
    bool copied = r->kind == TRANSPORT_PUT && r->bytes <= TRANSPORT_COPIED;
    gshmem_status_t status;

    if (!to && (status = open_stream(t, r->pe, &to)))
        return status;
    if (to->is_idle)
        connect_begin(t, to);
    if (to->failed)
        return to->failure;
    if (t->config.device) {
        tcp_start_ticking(t);
        if (goes_to_device(t, r) && !staging_ready(&t->staging))
            return GSHMEM_ERR_MEMORY;
        if (backlog_takes(t, to, r))
            return backlog_post(t, to, r);
    }
    if (!initiator_has_room(to, copied ? r->bytes : 0))
        return TRANSPORT_FULL;
    bool answers_due = to->completed < to->awaited;
    initiator_enqueue(t, to, r, false);
    tcp_start_ticking(t);
    /* Held back only while an answer is on its way, whose arrival sends the rest if nothing else
     * does before. */
    if (r->flags & TRANSPORT_MORE && answers_due && to->out.bytes < BATCH_BYTES) {
        t->held_back = true;
        return GSHMEM_OK;
    }
    initiator_flush(t, to);
    return GSHMEM_OK; /* if the stream broke just now, done has been called with that */
}

static void ignore(void *tag, gshmem_status_t status)
{
    (void)tag, (void)status;
}

/* A note has no answer. The empty put behind it has one, so that a peer that stopped before it read the
 * note is noticed. */
gshmem_status_t initiator_send_message(struct tcp *t, int pe, const void *note, size_t bytes)
{
    const struct transport_request behind = {
        .kind = TRANSPORT_PUT, .flags = TRANSPORT_UNASKED, .pe = pe, .done = ignore};
    unsigned char frame[REQUEST_BYTES];
    struct initiator *to = t->to[pe];
    gshmem_status_t status;

    if (!to && (status = open_stream(t, pe, &to)))
        return status;
    if (to->is_idle)
        connect_begin(t, to);
    if (to->failed)
        return to->failure;
    if (!queue_has_room(&to->out, REQUEST_BYTES + bytes, 2) || (!to->active && to->shortage))
        return TRANSPORT_FULL; /* nobody waits yet for what comes of it */
    to->has_messages |= !to->active;
    request_encode(frame, &(struct request_frame){.kind = FRAME_MESSAGE, .bytes = bytes});
    queue_add_copy(&to->out, frame, sizeof frame);
    queue_add_copy(&to->out, note, bytes);
    if (initiator_has_room(to, 0)) /* else enough is waiting for answers */
        initiator_enqueue(t, to, &behind, false);
    tcp_start_ticking(t);
    t->held_back = true; /* as in initiator_notify_failure */
    return GSHMEM_OK;
}

void initiator_send_held(struct tcp *t)
{
    t->held_back = false;
    for (struct initiator *to = t->open; to; to = to->next) {
        bool has_more = !queue_empty(&to->out) || to->notified < t->failures;
        if (!to->failed && has_more && !to->stream.wants_out)
            initiator_flush(t, to);
    }
}

void initiator_notify_failure(struct tcp *t, int lost)
{
    if (t->failures == t->config.n_pes)
        return;
    t->failed[t->failures++] = lost;
    t->held_back = true; /* sent with the next round: this may be called in the middle of one */
}

/* ---- What is staged ---- */

void initiator_stage(struct tcp *t, struct initiator *to)
{
    if (to->is_staging)
        return;
    to->is_staging = true;
    to->next_staging = t->staging_out;
    t->staging_out = to;
}

/* Taken off the list first: who is not through with it comes again. */
bool initiator_advance(struct tcp *t)
{
    struct initiator *to = t->staging_out, *next;
    bool some = false;

    t->staging_out = NULL;
    for (; to; to = next) {
        next = to->next_staging;
        to->is_staging = false;
        if (to->failed)
            continue;
        bool landed = landing_advance(t, to);
        bool moved = backlog_advance(t, to);
        some |= landed | moved;
        bool starved = to->data_left && to->data_of_device;
        if (!to->failed && (!starved || (initiator_parse(t, to) && initiator_receive(t, to))) &&
            (to->landing.first || !backlog_empty(to)))
            initiator_stage(t, to);
    }
    return some;
}

/* ---- Silence ---- */

static bool initiator_awaits(const struct initiator *to)
{
    return !to->failed && (to->posted != to->completed || !queue_empty(&to->out));
}

/* It may live on, and is told then; as far as it can be without waiting. */
static void initiator_send_refusal(struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    if (!to->active || !queue_has_room(&to->out, sizeof frame, 1))
        return;
    request_encode(frame, &(struct request_frame){.kind = FRAME_FAILED, .offset = (uint64_t)to->pe});
    queue_add_copy(&to->out, frame, sizeof frame);
    queue_send(&to->out, to->stream.fd);
}

static void initiator_peer_failed(struct tcp *t, struct initiator *to)
{
    char why[160];

    if (!initiator_receive(t, to))
        return;
    if (to->received) { /* it has spoken, only this PE has been slow to hear it */
        initiator_flush(t, to); /* which may have waited for what it said */
        return;
    }
    tcp_explain_timeout(t, why, sizeof why);
    initiator_send_refusal(to);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, why);
}

/* Whoever was slow itself looks first at what has come. */
static void initiator_tick_connecting(struct tcp *t, struct initiator *to)
{
    if (to->connected && initiator_receive(t, to) && to->active)
        initiator_flush(t, to);
    if (!to->active && !to->failed && !to->is_idle)
        connect_tick(t, to);
}

bool initiator_tick(struct tcp *t)
{
    bool any = false;

    for (struct initiator *to = t->open; to; to = to->next) {
        if (!to->active) {
            if (!to->failed && !to->is_idle)
                initiator_tick_connecting(t, to);
            any |= !to->failed && !to->is_idle;
            continue;
        }
        bool heard = to->received || !initiator_awaits(to);
        to->silent_ticks = heard ? 0 : to->silent_ticks + 1;
        to->received = false;
        unordered_acknowledge(t, to);
        /* the first of these ticks may have come right after the request */
        if ((to->silent_ticks - 1) * t->tick_ms >= t->peer_seconds * 1000)
            initiator_peer_failed(t, to);
        any |= initiator_awaits(to) || to->in_unordered;
    }
    return any;
}

/* ---- The end ---- */

bool initiator_is_active(const struct tcp *t, int pe)
{
    return t->to[pe] && t->to[pe]->active && !t->to[pe]->failed;
}

bool initiator_is_refused(const struct tcp *t, int pe)
{
    return t->to[pe] && t->to[pe]->refused;
}

void initiator_cut_off(struct tcp *t, int pe)
{
    struct initiator *to = t->to[pe];

    if (!to || to->failed || to->goodbye)
        return;
    initiator_send_refusal(to);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, "tcp: it is lost to the job");
}

bool initiator_busy(const struct tcp *t)
{
    for (const struct initiator *to = t->open; to; to = to->next) {
        if (initiator_awaits(to) || !backlog_empty(to) || (!to->failed && to->unordered_received != to->unordered_acked))
            return true;
    }
    return false;
}

void initiator_say_goodbye(struct tcp *t, int milliseconds)
{
    unsigned char frame[REQUEST_BYTES];

    request_encode(frame, &(struct request_frame){.kind = FRAME_GOODBYE});
    for (struct initiator *to = t->open; to; to = to->next) {
        if (to->failed || !to->active || !queue_has_room(&to->out, sizeof frame, 1))
            continue;
        queue_add_copy(&to->out, frame, sizeof frame);
        struct pollfd room = {.fd = to->stream.fd, .events = POLLOUT};
        while (queue_send(&to->out, to->stream.fd) && !queue_empty(&to->out)) {
            if (poll(&room, 1, milliseconds) != 1)
                break;
        }
    }
}

void initiator_acknowledge(struct tcp *t)
{
    t->unacknowledged = false;
    for (struct initiator *to = t->open; to; to = to->next) {
        unordered_acknowledge(t, to);
        t->unacknowledged |= !to->failed && to->unordered_received != to->unordered_acked; /* for want of room */
    }
}

void initiator_close_all(struct tcp *t)
{
    while (t->open) {
        struct initiator *to = t->open;
        t->open = to->next;
        close_stream(t, to);
        to->failed = true; /* what done calls posts nothing more here */
        to->failure = GSHMEM_ERR_ABORTED;
        end_all(t, to, GSHMEM_ERR_ABORTED);
        t->to[to->pe] = NULL;
        free(to);
    }
    t->requested = NULL;
    t->staging_out = NULL;
}

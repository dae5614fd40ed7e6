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

static void fail_peer(struct tcp *t, struct outbound *o, gshmem_status_t status, const char *why)
{
    if (o->failed)
        return;
    o->failed = true;
    o->failure = status;
    if (t->last == &o->stream)
        t->last = t->regular = NULL;
    if (o->stream.fd >= 0)
        close(o->stream.fd); /* which takes it out of epoll */
    o->stream.fd = -1;
    if (!o->goodbye || o->answered != o->posted || !backlog_empty(o))
        t->config.lost(t->config.context, o->pe, status, why);
    end_all(t, o, status);
}

static void lose(struct tcp *t, struct outbound *o, int error)
{
    char why[160];

    tcp_explain_end(t, error, why, sizeof why);
    fail_peer(t, o, GSHMEM_ERR_PEER_DEAD, why);
}

static bool refuse(struct tcp *t, struct outbound *o, const char *what)
{
    char why[160];

    snprintf(why, sizeof why, "tcp: PE %d sent %s", o->pe, what);
    fail_peer(t, o, GSHMEM_ERR_TRANSPORT, why);
    return false;
}

/* ---- Greeting ---- */

/* On a new connection, which has room for this. */
static bool say(struct tcp *t, struct outbound *o, const void *data, size_t bytes)
{
    ssize_t n = send(o->stream.fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n == (ssize_t)bytes)
        return true;
    lose(t, o, n < 0 ? errno : ENOBUFS);
    return false;
}

static bool say_hello(struct tcp *t, struct outbound *o)
{
    struct hello h = {.version = FRAME_VERSION,
                      .from = (uint32_t)t->config.pe,
                      .to = (uint32_t)o->pe,
                      .n_pes = (uint32_t)t->config.n_pes};

    if (!greeting_draw(h.nonce)) {
        fail_peer(t, o, GSHMEM_ERR_SYSTEM, "tcp: the system has no random numbers");
        return false;
    }
    hello_encode(o->hello, &h);
    return say(t, o, o->hello, sizeof o->hello);
}

static bool take_challenge(struct tcp *t, struct outbound *o)
{
    const unsigned char *nonce = o->in + o->in_first;
    unsigned char proof[PROOF_BYTES];

    greeting_prove(t->config.secret, GREETING_ACCEPTOR, o->hello, nonce, proof);
    if (!hmac_same(nonce + NONCE_BYTES, proof)) {
        fail_peer(t, o, GSHMEM_ERR_TRANSPORT, "tcp: who answers at its address is not of this job");
        return false;
    }
    greeting_prove(t->config.secret, GREETING_OPENER, o->hello, nonce, proof);
    o->in_first += CHALLENGE_BYTES;
    o->greeted = true;
    return say(t, o, proof, sizeof proof);
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
        return refuse(t, o, "no answer to a request that needs one");
    return true;
}

static bool take_data_answer(struct tcp *t, struct outbound *o, const struct answer_frame *a)
{
    struct waiting *w = waiting_of(o, a->number);

    if (w->due != ANSWER_DATA || a->value > w->bytes || (a->value == 0 && w->bytes))
        return refuse(t, o, "data of a size that was not asked for");
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

static bool take_failure(struct tcp *t, struct outbound *o, const struct answer_frame *a)
{
    if (a->value < GSHMEM_ERR_ARGUMENT || a->value > GSHMEM_ERR_SYSTEM)
        return refuse(t, o, "a failure that is none of this version's");
    waiting_of(o, a->number)->failure = (uint8_t)a->value;
    accept_up_to(t, o, a->number);
    return true;
}

static bool take_word(struct tcp *t, struct outbound *o)
{
    struct request_frame f;

    if (!request_decode(o->in + o->in_first, &f) || !words_begin(t, o, &f))
        return refuse(t, o, "a put that may not come this way");
    o->in_first += REQUEST_BYTES;
    return true;
}

static bool take_answer(struct tcp *t, struct outbound *o)
{
    struct answer_frame a;

    if (!answer_decode(o->in + o->in_first, &a))
        return refuse(t, o, "an answer that is none of this version's");
    o->in_first += ANSWER_BYTES;
    if (a.kind == ANSWER_GOODBYE)
        return o->goodbye = true;
    if (a.number <= o->accepted || a.number > o->posted) {
        /* DONE may repeat what another answer has said */
        return a.kind == ANSWER_DONE && a.number == o->accepted
                   ? true
                   : refuse(t, o, "an answer to a request that was not made");
    }
    if (a.kind == ANSWER_DONE)
        return complete_plain(t, o, a.number);
    if (!complete_plain(t, o, a.number - 1))
        return false;
    if (a.kind == ANSWER_DATA)
        return take_data_answer(t, o, &a);
    if (a.kind == ANSWER_FAILED)
        return take_failure(t, o, &a);
    const struct waiting *w = waiting_of(o, a.number);
    if (w->due == ANSWER_DATA)
        return refuse(t, o, "a value where data was asked for");
    if (w->due == ANSWER_VALUE)
        memcpy(w->local, &a.value, 8);
    accept_up_to(t, o, a.number);
    return true;
}

static void data_arrived(struct tcp *t, struct outbound *o, size_t bytes)
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
static size_t take_data(struct tcp *t, struct outbound *o, size_t have)
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
    data_arrived(t, o, part);
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

static bool take_frame(struct tcp *t, struct outbound *o)
{
    return is_word(o) ? take_word(t, o) : take_answer(t, o);
}

/* Goes through what is in the buffer. False: the stream is over. */
static bool digest(struct tcp *t, struct outbound *o)
{
    for (;;) {
        size_t have = o->in_end - o->in_first;
        if (!o->greeted && have >= CHALLENGE_BYTES) {
            if (!take_challenge(t, o))
                return false;
        } else if (o->data_left && have && take_data(t, o, have)) {
            continue;
        } else if (o->greeted && !o->data_left && have >= least_frame(o)) {
            if (!take_frame(t, o))
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

static bool receive(struct tcp *t, struct outbound *o)
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
            data_arrived(t, o, placed);
        o->in_end += (size_t)n - placed;
        if (!digest(t, o))
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
            lose(t, o, errno);
            return false;
        }
    } while (o->told < t->losses && queue_empty(&o->out));
    tcp_want_out(t, &o->stream, !queue_empty(&o->out));
    return true;
}

/* ---- Connecting ---- */

/* Begins to connect to the next of the peer's addresses that can be tried at all. */
static bool try_next(struct tcp *t, struct outbound *o, int error)
{
    while (o->candidate < o->address.n) {
        struct sockaddr_storage where;
        socklen_t size = address_socket(&o->address, o->candidate++, &where);
        int fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0) {
            error = errno;
            continue;
        }
        tcp_tune(t, fd);
        if (connect(fd, (struct sockaddr *)&where, size) == 0 || errno == EINPROGRESS) {
            o->stream.fd = fd;
            o->stream.wants_out = true;
            if (tcp_watch(t, &o->stream, EPOLLIN | EPOLLOUT))
                return true;
        }
        error = errno;
        close(fd);
        o->stream.fd = -1;
    }
    char list[100];
    address_print(&o->address, list, sizeof list);
    char why[200];
    snprintf(why, sizeof why, "tcp: connecting to %s: %s (GSHMEM_TCP_IF chooses the network)", list,
             strerror(error));
    fail_peer(t, o, GSHMEM_ERR_UNREACHABLE, why);
    return false;
}

static bool connection_made(struct tcp *t, struct outbound *o)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(o->stream.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error) {
        close(o->stream.fd);
        o->stream.fd = -1;
        return try_next(t, o, error);
    }
    o->connected = true;
    congestion_suit(t, o->stream.fd);
    tcp_want_out(t, &o->stream, false);
    return say_hello(t, o);
}

static bool outbound_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    struct outbound *o = (struct outbound *)s;

    if (!o->connected) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return true;
        if (!connection_made(t, o) || !o->connected)
            return !o->failed;
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !receive(t, o))
        return false;
    return outbound_flush(t, o); /* an answer also lets go what was held back */
}

static gshmem_status_t open_stream(struct tcp *t, int pe, struct outbound **out)
{
    unsigned char published[TRANSPORT_ADDRESS_MAX];
    size_t bytes = 0;
    gshmem_status_t status =
        t->config.find(t->config.context, pe, published, sizeof published, &bytes);
    struct outbound *o;

    if (status)
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
    try_next(t, o, 0);
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

gshmem_status_t outbound_say(struct tcp *t, int pe, const void *note, size_t bytes)
{
    unsigned char frame[REQUEST_BYTES];
    struct outbound *o = t->to[pe];
    gshmem_status_t status;

    if (!o && (status = open_stream(t, pe, &o)))
        return status;
    if (o->failed)
        return o->failure;
    if (!queue_has_room(&o->out, REQUEST_BYTES + bytes, 2))
        return TRANSPORT_FULL;
    request_encode(frame, &(struct request_frame){.kind = FRAME_NOTE, .bytes = bytes});
    queue_add_copy(&o->out, frame, sizeof frame);
    queue_add_copy(&o->out, note, bytes);
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
        if (!o->failed && (!starved || (digest(t, o) && receive(t, o))) &&
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

static void give_up(struct tcp *t, struct outbound *o)
{
    char why[160];

    if (!o->connected) {
        o->silent = 0;
        close(o->stream.fd);
        try_next(t, o, ETIMEDOUT);
        return;
    }
    if (!receive(t, o) || o->heard)
        return; /* it has spoken, only this PE has been slow to hear it */
    tcp_explain_silence(t, why, sizeof why);
    fail_peer(t, o, GSHMEM_ERR_PEER_DEAD, why);
}

bool outbound_watch(struct tcp *t)
{
    bool any = false;

    for (struct outbound *o = t->open; o; o = o->next) {
        bool heard = o->heard || !owes(o);
        o->silent = heard ? 0 : o->silent + 1;
        o->heard = false;
        words_say_heard(t, o);
        /* the first of these ticks may have come right after the request */
        if ((o->silent - 1) * t->tick_ms >= t->peer_seconds * 1000)
            give_up(t, o);
        any |= owes(o) || o->hears;
    }
    return any;
}

/* ---- The end ---- */

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
    for (struct outbound *o = t->open; o; o = o->next)
        words_say_heard(t, o);
}

void outbound_close_all(struct tcp *t)
{
    while (t->open) {
        struct outbound *o = t->open;
        t->open = o->next;
        if (o->stream.fd >= 0)
            close(o->stream.fd);
        o->failed = true; /* what done calls posts nothing more here */
        o->failure = GSHMEM_ERR_ABORTED;
        end_all(t, o, GSHMEM_ERR_ABORTED);
        t->to[o->pe] = NULL;
        free(o);
    }
    t->asked = NULL;
    t->staging_out = NULL;
}

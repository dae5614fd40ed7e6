/* How this PE opens its stream to another: it connects, both greet, and requests go out once the other has
 * said that the stream is good.
 *
 * What comes to nothing before that costs nobody anything: the acceptor may be flooded by strangers and
 * close the connection, either side may have been stopped for too long, an address may lead to somebody
 * else's host. So the peer's addresses are tried in turn, and all of them again after a pause, within
 * GSHMEM_PEER_TIMEOUT; within GSHMEM_INIT_TIMEOUT while the peer may still be starting, or have others at its door
 * that start as well. The peer is given up at once where every address has been refused or belongs to somebody else. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/settings.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/outbound.h"

enum { PAUSE_LEAST_MS = 10, PAUSE_MOST_MS = 500 };

static bool try_next(struct tcp *t, struct outbound *o);

/* Whether the reason is that this process or this system has too little of something, which says nothing
 * about the peer. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC ||
           error == EAGAIN || error == EADDRNOTAVAIL;
}

/* ---- The end of an attempt ---- */

static void disconnect(struct tcp *t, struct outbound *o)
{
    tcp_end_stream(t, &o->stream);
    o->connected = o->proven = false;
    o->in_first = o->in_end = 0;
}

static void note_trouble(struct outbound *o, enum trouble trouble, int error)
{
    o->trouble = trouble;
    o->error = error;
    if (trouble == TROUBLE_CONNECTING && is_shortage(error))
        o->shortage = error;
    o->may_recover |= o->shortage || trouble == TROUBLE_ENDED || trouble == TROUBLE_SILENT;
}

bool opening_ended(struct tcp *t, struct outbound *o, enum trouble trouble, int error)
{
    disconnect(t, o);
    note_trouble(o, trouble, error);
    return try_next(t, o);
}

/* Whatever there is to say of the last attempt. */
static void opening_explain(const struct tcp *t, const struct outbound *o, char *why, size_t size)
{
    char list[100];

    address_print(&o->address, list, sizeof list);
    switch (o->trouble) {
    case TROUBLE_STRANGER:
        snprintf(why, size, "tcp: who answers at its address is not of this job");
        break;
    case TROUBLE_ENDED:
        snprintf(why, size, "tcp: its connections end before they are greeted: %s",
                 o->error ? strerror(o->error) : "it closes them");
        break;
    case TROUBLE_SILENT:
        snprintf(why, size, "tcp: it has not answered a first contact within %d s (%s)", o->patience,
                 o->patience > t->peer_seconds ? "GSHMEM_INIT_TIMEOUT" : "GSHMEM_PEER_TIMEOUT");
        break;
    case TROUBLE_CONNECTING:
        snprintf(why, size, "tcp: connecting to %s: %s (GSHMEM_TCP_IF chooses the network)", list,
                 strerror(o->error));
        break;
    }
}

/* ---- Attempts ---- */

static void wake_at(struct tcp *t, uint64_t ns)
{
    const struct itimerspec once = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};

    timerfd_settime(t->again.fd, TFD_TIMER_ABSTIME, &once, NULL);
    t->again_at = ns;
}

/* All addresses have been tried: once more after a pause, which grows. */
static void wait_a_while(struct tcp *t, struct outbound *o)
{
    o->candidate = 0;
    o->pause_ms = o->pause_ms == 0 ? PAUSE_LEAST_MS
                  : o->pause_ms * 2 < PAUSE_MOST_MS ? o->pause_ms * 2
                                                    : PAUSE_MOST_MS;
    o->again_at = clock_ns() + (uint64_t)o->pause_ms * 1000000u;
    if (!t->again_at || o->again_at < t->again_at)
        wake_at(t, o->again_at);
}

/* A peer that had been connected to, and is refused now, has died meanwhile. */
static void end_opening(struct tcp *t, struct outbound *o)
{
    const bool reached = o->was_connected && o->trouble != TROUBLE_STRANGER;
    char why[200];

    opening_explain(t, o, why, sizeof why);
    if (o->shortage) {
        snprintf(why, sizeof why, "tcp: %s for %d s%s", strerror(o->shortage), t->peer_seconds,
                 o->shortage == EMFILE ? " (ulimit -n)" : "");
        if (o->notes) { /* which are not lost while the peer lives */
            t->config.fail(GSHMEM_ERR_SYSTEM, "no connection to PE %d: %s; it is tried again", o->pe, why);
            o->opening = 0;
            wait_a_while(t, o);
        } else {
            outbound_fail_here(t, o, GSHMEM_ERR_SYSTEM, why);
        }
    } else {
        outbound_fail(t, o, reached                            ? GSHMEM_ERR_PEER_DEAD
                            : o->trouble == TROUBLE_STRANGER ? GSHMEM_ERR_TRANSPORT
                                                             : GSHMEM_ERR_UNREACHABLE, why);
    }
}

/* Begins to connect to that address; 0 or an errno. */
static int begin_to_connect(struct tcp *t, struct outbound *o, int candidate)
{
    struct sockaddr_storage where;
    socklen_t size = address_socket(&o->address, candidate, &where);
    int error, fd = descriptor_keep(socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return errno;
    tcp_tune(t, fd);
    if (connect(fd, (struct sockaddr *)&where, size) == 0 || errno == EINPROGRESS) {
        o->stream.fd = fd;
        o->stream.wants_out = true;
        if (tcp_watch(t, &o->stream, EPOLLIN | EPOLLOUT))
            return 0;
    }
    error = errno;
    close(fd);
    o->stream.fd = -1;
    return error;
}

/* Goes on with the next address, or waits, or ends. False: there is no connection under way. */
static bool try_next(struct tcp *t, struct outbound *o)
{
    if (o->candidate == 0) {
        o->may_recover = false;
        o->shortage = 0;
    }
    while (o->candidate < o->address.n) {
        int error = begin_to_connect(t, o, o->candidate++);
        o->attempt = 0;
        if (!error)
            return true;
        note_trouble(o, TROUBLE_CONNECTING, error);
    }
    if (o->may_recover)
        wait_a_while(t, o);
    else
        end_opening(t, o);
    return false;
}

void opening_begin(struct tcp *t, struct outbound *o)
{
    uint64_t since = (clock_ns() - t->begun) / 1000000000u;
    uint64_t start = (uint64_t)settings_number(SETTING_INIT_TIMEOUT);

    o->resting = false;
    o->candidate = o->pause_ms = o->opening = 0;
    o->was_connected = false;
    o->patience = t->peer_seconds;
    if (start > since && start - since > (uint64_t)o->patience)
        o->patience = (int)(start - since);
    tcp_start_ticking(t);
    try_next(t, o);
}

static bool again_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    uint64_t times;

    (void)events;
    t->again_due = read(s->fd, &times, sizeof times) == sizeof times;
    return true;
}

bool opening_prepare(struct tcp *t)
{
    t->again = (struct stream){
        .ready = again_ready, .fd = descriptor_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
    return t->again.fd >= 0 && tcp_watch(t, &t->again, EPOLLIN);
}

void opening_try_again(struct tcp *t)
{
    uint64_t now = clock_ns(), next = 0;

    t->again_due = false;
    t->again_at = 0;
    for (struct outbound *o = t->open; o; o = o->next) {
        if (!o->again_at)
            continue;
        if (o->again_at <= now) {
            o->again_at = 0;
            try_next(t, o);
        } else if (!next || o->again_at < next) {
            next = o->again_at;
        }
    }
    if (next && (!t->again_at || next < t->again_at))
        wake_at(t, next);
}

/* ---- Greeting ---- */

/* On a new connection, which has room for this. */
static bool opening_say(struct tcp *t, struct outbound *o, const void *data, size_t bytes)
{
    ssize_t n = send(o->stream.fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n == (ssize_t)bytes)
        return true;
    opening_ended(t, o, TROUBLE_ENDED, n < 0 ? errno : ENOBUFS);
    return false;
}

static bool say_hello(struct tcp *t, struct outbound *o)
{
    struct hello h = {.version = FRAME_VERSION,
                      .from = (uint32_t)t->config.pe,
                      .to = (uint32_t)o->pe,
                      .n_pes = (uint32_t)t->config.n_pes};

    const gshmem_status_t status = t->config.key(t->config.context, o->pe, o->key);
    if (status == TRANSPORT_FULL) {
        opening_ended(t, o, TROUBLE_CONNECTING, EAGAIN);
        return false;
    }
    if (status) {
        outbound_fail(t, o, GSHMEM_ERR_BOOTSTRAP, "tcp: there is no key for it");
        return false;
    }
    if (!greeting_draw(h.nonce)) {
        outbound_fail(t, o, GSHMEM_ERR_SYSTEM, "tcp: the system has no random numbers");
        return false;
    }
    hello_encode(o->hello, &h);
    greeting_prove_hello(o->key, o->hello, o->hello + HELLO_BYTES);
    return opening_say(t, o, o->hello, sizeof o->hello);
}

bool opening_connected(struct tcp *t, struct outbound *o)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(o->stream.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error) {
        opening_ended(t, o, TROUBLE_CONNECTING, error);
        return false;
    }
    o->connected = o->was_connected = true;
    congestion_suit(t, o->stream.fd);
    tcp_want_out(t, &o->stream, false);
    return say_hello(t, o);
}

static bool take_challenge(struct tcp *t, struct outbound *o)
{
    const unsigned char *nonce = o->in + o->in_first;
    unsigned char proof[PROOF_BYTES];

    greeting_prove(o->key, GREETING_ACCEPTOR, o->hello, nonce, proof);
    if (!hmac_same(nonce + NONCE_BYTES, proof)) {
        opening_ended(t, o, TROUBLE_STRANGER, 0);
        return false;
    }
    greeting_prove(o->key, GREETING_OPENER, o->hello, nonce, proof);
    o->in_first += CHALLENGE_BYTES;
    o->proven = true;
    o->opening = 0; /* it lives */
    return opening_say(t, o, proof, sizeof proof);
}

/* The peer has our proof: from here on the end of the stream is the end of the peer. */
static bool take_welcome(struct tcp *t, struct outbound *o)
{
    struct answer_frame a;

    if (!answer_decode(o->in + o->in_first, &a) || a.number ||
        (a.kind != ANSWER_DONE && a.kind != ANSWER_REFUSED)) {
        outbound_fail(t, o, GSHMEM_ERR_TRANSPORT, "tcp: it sent no welcome");
        return false;
    }
    if (a.kind == ANSWER_REFUSED)
        return outbound_refused(t, o);
    o->in_first += ANSWER_BYTES;
    o->greeted = true;
    inbound_spare_probes(t, o->pe);
    return true;
}

bool opening_take(struct tcp *t, struct outbound *o, size_t have)
{
    if (!o->proven)
        return have < CHALLENGE_BYTES || take_challenge(t, o);
    return have < ANSWER_BYTES || take_welcome(t, o);
}

/* ---- Patience ---- */

/* So many ticks are so many seconds, at least: the first of them may have come at once. */
static bool have_passed(const struct tcp *t, int ticks, int seconds)
{
    return (int64_t)(ticks - 1) * t->tick_ms >= (int64_t)seconds * 1000;
}

/* Each address has its share of the time, so that the last of them is tried in any case; but where the peer has proven
 * to be there it is waited for. It may have our proof by now, and would take the end of the stream for ours. */
void opening_tick(struct tcp *t, struct outbound *o)
{
    o->opening++;
    o->attempt++;
    if (have_passed(t, o->opening, o->shortage ? t->peer_seconds : o->patience)) {
        if (o->stream.fd >= 0) {
            bool silent = o->connected;
            disconnect(t, o);
            note_trouble(o, silent ? TROUBLE_SILENT : TROUBLE_CONNECTING, ETIMEDOUT);
        }
        o->again_at = 0;
        end_opening(t, o);
    } else if (o->stream.fd >= 0 && !o->proven && o->address.n > 1 &&
               (int64_t)o->attempt * t->tick_ms * o->address.n >= (int64_t)o->patience * 1000) {
        opening_ended(t, o, o->connected ? TROUBLE_SILENT : TROUBLE_CONNECTING, ETIMEDOUT);
    }
}

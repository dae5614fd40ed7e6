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
#include "transport/tcp/initiator.h"

enum { PAUSE_LEAST_MS = 10, PAUSE_MOST_MS = 500 };

static bool connect_next(struct tcp *t, struct initiator *to);

/* Whether the reason is that this process or this system has too little of something, which says nothing
 * about the peer. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC ||
           error == EAGAIN || error == EADDRNOTAVAIL;
}

/* ---- The end of an attempt ---- */

static void disconnect(struct tcp *t, struct initiator *to)
{
    tcp_end_stream(t, &to->stream);
    to->connected = to->proven = false;
    to->in_first = to->in_end = 0;
}

static void connect_note_trouble(struct initiator *to, enum trouble trouble, int error)
{
    to->trouble = trouble;
    to->error = error;
    if (trouble == TROUBLE_CONNECTING && is_shortage(error))
        to->shortage = error;
    to->may_recover |= to->shortage || trouble == TROUBLE_ENDED || trouble == TROUBLE_TIMEOUT;
}

bool connect_failed(struct tcp *t, struct initiator *to, enum trouble trouble, int error)
{
    disconnect(t, to);
    connect_note_trouble(to, trouble, error);
    return connect_next(t, to);
}

/* Whatever there is to say of the last attempt. */
static void connect_explain(const struct tcp *t, const struct initiator *to, char *why, size_t size)
{
    char list[100];

    address_print(&to->address, list, sizeof list);
    switch (to->trouble) {
    case TROUBLE_STRANGER:
        snprintf(why, size, "tcp: who answers at its address is not of this job");
        break;
    case TROUBLE_ENDED:
        snprintf(why, size, "tcp: its connections end before they are greeted: %s",
                 to->error ? strerror(to->error) : "it closes them");
        break;
    case TROUBLE_TIMEOUT:
        snprintf(why, size, "tcp: it has not answered a first contact within %d s (%s)", to->limit_s,
                 to->limit_s > t->peer_seconds ? "GSHMEM_INIT_TIMEOUT" : "GSHMEM_PEER_TIMEOUT");
        break;
    case TROUBLE_CONNECTING:
        snprintf(why, size, "tcp: connecting to %s: %s (GSHMEM_TCP_IF chooses the network)", list,
                 strerror(to->error));
        break;
    }
}

/* ---- Attempts ---- */

static void retry_timer_set(struct tcp *t, uint64_t ns)
{
    const struct itimerspec once = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};

    timerfd_settime(t->retry.fd, TFD_TIMER_ABSTIME, &once, NULL);
    t->retry_at = ns;
}

/* All addresses have been tried: once more after a pause, which grows. */
static void retry_later(struct tcp *t, struct initiator *to)
{
    to->candidate = 0;
    to->pause_ms = to->pause_ms == 0 ? PAUSE_LEAST_MS
                  : to->pause_ms * 2 < PAUSE_MOST_MS ? to->pause_ms * 2
                                                    : PAUSE_MOST_MS;
    to->retry_at = clock_ns() + (uint64_t)to->pause_ms * 1000000u;
    if (!t->retry_at || to->retry_at < t->retry_at)
        retry_timer_set(t, to->retry_at);
}

/* A peer that had been connected to, and is refused now, has died meanwhile. */
static void connect_give_up(struct tcp *t, struct initiator *to)
{
    const bool reached = to->was_connected && to->trouble != TROUBLE_STRANGER;
    char why[200];

    connect_explain(t, to, why, sizeof why);
    if (to->shortage) {
        snprintf(why, sizeof why, "tcp: %s for %d s%s", strerror(to->shortage), t->peer_seconds,
                 to->shortage == EMFILE ? " (ulimit -n)" : "");
        if (to->has_messages) { /* which are not lost while the peer lives */
            t->config.fail(GSHMEM_ERR_SYSTEM, "no connection to PE %d: %s; it is tried again", to->pe, why);
            to->ticks = 0;
            retry_later(t, to);
        } else {
            initiator_fail_here(t, to, GSHMEM_ERR_SYSTEM, why);
        }
    } else {
        initiator_fail(t, to, reached                            ? GSHMEM_ERR_PEER_DEAD
                            : to->trouble == TROUBLE_STRANGER ? GSHMEM_ERR_TRANSPORT
                                                             : GSHMEM_ERR_UNREACHABLE, why);
    }
}

/* Begins to connect to that address; 0 or an errno. */
static int connect_start(struct tcp *t, struct initiator *to, int candidate)
{
    struct sockaddr_storage where;
    socklen_t size = address_socket(&to->address, candidate, &where);
    int error, fd = descriptor_keep(socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return errno;
    tcp_tune(t, fd);
    if (connect(fd, (struct sockaddr *)&where, size) == 0 || errno == EINPROGRESS) {
        to->stream.fd = fd;
        to->stream.wants_out = true;
        if (tcp_watch(t, &to->stream, EPOLLIN | EPOLLOUT))
            return 0;
    }
    error = errno;
    close(fd);
    to->stream.fd = -1;
    return error;
}

/* Goes on with the next address, or waits, or ends. False: there is no connection under way. */
static bool connect_next(struct tcp *t, struct initiator *to)
{
    if (to->candidate == 0) {
        to->may_recover = false;
        to->shortage = 0;
    }
    while (to->candidate < to->address.n) {
        int error = connect_start(t, to, to->candidate++);
        to->attempt_ticks = 0;
        if (!error)
            return true;
        connect_note_trouble(to, TROUBLE_CONNECTING, error);
    }
    if (to->may_recover)
        retry_later(t, to);
    else
        connect_give_up(t, to);
    return false;
}

void connect_begin(struct tcp *t, struct initiator *to)
{
    uint64_t since = (clock_ns() - t->began) / 1000000000u;
    uint64_t start = (uint64_t)settings_number(SETTING_INIT_TIMEOUT);

    to->is_idle = false;
    to->candidate = to->pause_ms = to->ticks = 0;
    to->was_connected = false;
    to->limit_s = t->peer_seconds;
    if (start > since && start - since > (uint64_t)to->limit_s)
        to->limit_s = (int)(start - since);
    tcp_start_ticking(t);
    connect_next(t, to);
}

static bool retry_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    uint64_t times;

    (void)events;
    t->retry_due = read(s->fd, &times, sizeof times) == sizeof times;
    return true;
}

bool connect_prepare(struct tcp *t)
{
    t->retry = (struct stream){
        .ready = retry_ready, .fd = descriptor_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
    return t->retry.fd >= 0 && tcp_watch(t, &t->retry, EPOLLIN);
}

void connect_retry(struct tcp *t)
{
    uint64_t now = clock_ns(), next = 0;

    t->retry_due = false;
    t->retry_at = 0;
    for (struct initiator *to = t->open; to; to = to->next) {
        if (!to->retry_at)
            continue;
        if (to->retry_at <= now) {
            to->retry_at = 0;
            connect_next(t, to);
        } else if (!next || to->retry_at < next) {
            next = to->retry_at;
        }
    }
    if (next && (!t->retry_at || next < t->retry_at))
        retry_timer_set(t, next);
}

/* ---- Greeting ---- */

/* On a new connection, which has room for this. */
static bool connect_send(struct tcp *t, struct initiator *to, const void *data, size_t bytes)
{
    ssize_t n = send(to->stream.fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n == (ssize_t)bytes)
        return true;
    connect_failed(t, to, TROUBLE_ENDED, n < 0 ? errno : ENOBUFS);
    return false;
}

static bool send_hello(struct tcp *t, struct initiator *to)
{
    struct hello h = {.version = FRAME_VERSION,
                      .from = (uint32_t)t->config.pe,
                      .to = (uint32_t)to->pe,
                      .n_pes = (uint32_t)t->config.n_pes};

    const gshmem_status_t status = t->config.key(t->config.context, to->pe, to->key);
    if (status == TRANSPORT_FULL) {
        connect_failed(t, to, TROUBLE_CONNECTING, EAGAIN);
        return false;
    }
    if (status) {
        initiator_fail(t, to, GSHMEM_ERR_BOOTSTRAP, "tcp: there is no key for it");
        return false;
    }
    if (!greeting_draw(h.nonce)) {
        initiator_fail(t, to, GSHMEM_ERR_SYSTEM, "tcp: the system has no random numbers");
        return false;
    }
    hello_encode(to->hello, &h);
    greeting_prove_hello(to->key, to->hello, to->hello + HELLO_BYTES);
    return connect_send(t, to, to->hello, sizeof to->hello);
}

bool connect_established(struct tcp *t, struct initiator *to)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(to->stream.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error) {
        connect_failed(t, to, TROUBLE_CONNECTING, error);
        return false;
    }
    to->connected = to->was_connected = true;
    congestion_suit(t, to->stream.fd);
    tcp_want_out(t, &to->stream, false);
    return send_hello(t, to);
}

static bool take_challenge(struct tcp *t, struct initiator *to)
{
    const unsigned char *nonce = to->in + to->in_first;
    unsigned char proof[PROOF_BYTES];

    greeting_prove(to->key, GREETING_ACCEPTOR, to->hello, nonce, proof);
    if (!hmac_same(nonce + NONCE_BYTES, proof)) {
        connect_failed(t, to, TROUBLE_STRANGER, 0);
        return false;
    }
    greeting_prove(to->key, GREETING_OPENER, to->hello, nonce, proof);
    to->in_first += CHALLENGE_BYTES;
    to->proven = true;
    to->ticks = 0; /* it lives */
    return connect_send(t, to, proof, sizeof proof);
}

/* The peer has our proof: from here on the end of the stream is the end of the peer. */
static bool take_welcome(struct tcp *t, struct initiator *to)
{
    struct response_frame a;

    if (!response_decode(to->in + to->in_first, &a) || a.number ||
        (a.kind != RESPONSE_DONE && a.kind != RESPONSE_REFUSED)) {
        initiator_fail(t, to, GSHMEM_ERR_TRANSPORT, "tcp: it sent no welcome");
        return false;
    }
    if (a.kind == RESPONSE_REFUSED)
        return initiator_refused(t, to);
    to->in_first += RESPONSE_BYTES;
    to->active = true;
    target_spare_probes(t, to->pe);
    return true;
}

bool connect_take_greeting(struct tcp *t, struct initiator *to, size_t have)
{
    if (!to->proven)
        return have < CHALLENGE_BYTES || take_challenge(t, to);
    return have < RESPONSE_BYTES || take_welcome(t, to);
}

/* ---- Patience ---- */

/* So many ticks are so many seconds, at least: the first of them may have come at once. */
static bool ticks_exceed(const struct tcp *t, int ticks, int seconds)
{
    return (int64_t)(ticks - 1) * t->tick_ms >= (int64_t)seconds * 1000;
}

/* Each address has its share of the time, so that the last of them is tried in any case; but where the peer has proven
 * to be there it is waited for. It may have our proof by now, and would take the end of the stream for ours. */
void connect_tick(struct tcp *t, struct initiator *to)
{
    to->ticks++;
    to->attempt_ticks++;
    if (ticks_exceed(t, to->ticks, to->shortage ? t->peer_seconds : to->limit_s)) {
        if (to->stream.fd >= 0) {
            bool silent = to->connected;
            disconnect(t, to);
            connect_note_trouble(to, silent ? TROUBLE_TIMEOUT : TROUBLE_CONNECTING, ETIMEDOUT);
        }
        to->retry_at = 0;
        connect_give_up(t, to);
    } else if (to->stream.fd >= 0 && !to->proven && to->address.n > 1 &&
               (int64_t)to->attempt_ticks * t->tick_ms * to->address.n >= (int64_t)to->limit_s * 1000) {
        connect_failed(t, to, to->connected ? TROUBLE_TIMEOUT : TROUBLE_CONNECTING, ETIMEDOUT);
    }
}

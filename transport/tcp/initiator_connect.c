/* Opens a stream: connects, proves the key of the two PEs, and lets requests out when the peer has
 * accepted the proof.
 *
 *     connecting ──► hello sent ──► challenge taken, proof sent ──► welcome taken: active
 *         ▲              │ the connection ends, or nothing arrives
 *         └── next address, or all of them again after a pause ◄──┘
 *
 * A connection that ends before the stream is active harms nobody. The peer may have closed it in a
 * flood of strangers, either side may have been stopped for too long, an address may lead to a
 * machine of somebody else. So the peer's addresses are tried in turn, and all of them again after
 * a pause, for GSHMEM_PEER_TIMEOUT, and for GSHMEM_INIT_TIMEOUT since this PE began, as the peer
 * may still be starting. The peer is given up at once if every address has been refused or belongs
 * to somebody else. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"
#include "transport/tcp/initiator.h"

enum { PAUSE_LEAST_MS = 10, PAUSE_MOST_MS = 500 };

/* ---- The end of an attempt ---- */

/* Whether this process or this system had too little of something, which says nothing about the
 * peer. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == ENOSPC || error == EAGAIN || error == EADDRNOTAVAIL;
}

static void disconnect(struct tcp *t, struct initiator *to)
{
    poller_end(&t->poller, &to->stream);
    to->connected = to->proven = false;
    to->in.first = to->in.end = 0;
}

static void connect_note_trouble(struct initiator *to, enum trouble trouble, int error)
{
    struct connecting *c = &to->connecting;

    c->trouble = trouble;
    c->error = error;
    if (trouble == TROUBLE_CONNECTING && is_shortage(error))
        c->shortage = error;
    c->may_recover |= c->shortage || trouble == TROUBLE_ENDED || trouble == TROUBLE_TIMEOUT;
}

static bool connect_next(struct tcp *t, struct initiator *to);

bool connect_failed(struct tcp *t, struct initiator *to, enum trouble trouble, int error)
{
    disconnect(t, to);
    connect_note_trouble(to, trouble, error);
    return connect_next(t, to);
}

void connect_ended(struct tcp *t, struct initiator *to, int error)
{
    char why[160];

    if (!to->active) {
        connect_failed(t, to, TROUBLE_ENDED, error);
        return;
    }
    if (t->peer[to->pe].refuses) { /* it has said so on its own stream, and ends this one, too */
        initiator_refused(t, to);
        return;
    }
    socket_explain_end(&t->socket, error, why, sizeof why);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, why);
}

/* What became of the last attempt, for people. */
static void connect_explain(const struct tcp *t, const struct initiator *to, char *why, size_t size)
{
    const struct connecting *c = &to->connecting;
    char list[100];

    address_print(&c->address, list, sizeof list);
    switch (c->trouble) {
    case TROUBLE_STRANGER:
        snprintf(why, size, "tcp: the process at its address is not of this job");
        break;
    case TROUBLE_ENDED:
        snprintf(why, size, "tcp: its connections end before it has proven its key: %s",
                 c->error ? strerror(c->error) : "it closes them");
        break;
    case TROUBLE_TIMEOUT:
        snprintf(
            why, size, "tcp: it has not responded to a first contact within %d s (%s)", c->limit_s,
            c->limit_s > t->socket.peer_seconds ? "GSHMEM_INIT_TIMEOUT" : "GSHMEM_PEER_TIMEOUT");
        break;
    case TROUBLE_CONNECTING:
        snprintf(why, size, "tcp: connecting to %s: %s (GSHMEM_TCP_IF chooses the network)", list,
                 strerror(c->error));
        break;
    }
}

/* ---- Attempts ---- */

/* All addresses have been tried. They are tried again after a pause, which grows. */
static void retry_later(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;

    c->candidate = 0;
    c->pause_ms = c->pause_ms == 0                  ? PAUSE_LEAST_MS
                  : c->pause_ms * 2 < PAUSE_MOST_MS ? c->pause_ms * 2
                                                    : PAUSE_MOST_MS;
    c->retry_at = clock_ns() + (uint64_t)c->pause_ms * 1000000u;
    if (!t->initiators.retry.at || c->retry_at < t->initiators.retry.at)
        timer_set_once(&t->initiators.retry, c->retry_at);
}

/* A peer to which a connection had been made, and that refuses now, has died meanwhile. */
static void connect_give_up(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;
    const bool reached = c->was_connected && c->trouble != TROUBLE_STRANGER;
    char why[200];

    connect_explain(t, to, why, sizeof why);
    if (c->shortage) {
        snprintf(why, sizeof why, "tcp: %s for %d s%s", strerror(c->shortage),
                 t->socket.peer_seconds, c->shortage == EMFILE ? " (ulimit -n)" : "");
        if (c->has_messages) { /* messages are not lost while the peer lives */
            t->config.fail(GSHMEM_ERR_SYSTEM, "no connection to PE %d: %s; it is tried again",
                           to->pe, why);
            c->ticks = 0;
            retry_later(t, to);
        } else {
            initiator_fail_here(t, to, GSHMEM_ERR_SYSTEM, why);
        }
    } else {
        initiator_fail(t, to,
                       reached                          ? GSHMEM_ERR_PEER_DEAD
                       : c->trouble == TROUBLE_STRANGER ? GSHMEM_ERR_TRANSPORT
                                                        : GSHMEM_ERR_UNREACHABLE,
                       why);
    }
}

/* Begins to connect to that address; 0 or an errno. */
static int connect_start(struct tcp *t, struct initiator *to, int candidate)
{
    struct sockaddr_storage where;
    socklen_t size = address_socket(&to->connecting.address, candidate, &where);
    int error, fd = descriptor_keep(
                   system_socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC));

    if (fd < 0)
        return errno;
    socket_tune(&t->socket, fd);
    if (system_connect(fd, (struct sockaddr *)&where, size) == 0 || errno == EINPROGRESS) {
        to->stream.fd = fd;
        to->stream.wants_out = true;
        if (poller_watch(&t->poller, &to->stream, EPOLLIN | EPOLLOUT))
            return 0;
    }
    error = errno;
    close(fd);
    to->stream.fd = -1;
    return error;
}

/* Tries the next address, or waits, or gives up. False: no connection is under way. */
static bool connect_next(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;

    if (c->candidate == 0) {
        c->may_recover = false;
        c->shortage = 0;
    }
    while (c->candidate < c->address.n) {
        if (c->candidate > 0 || c->pause_ms > 0)
            transport_count(&t->config, TRANSPORT_RETRIED);
        int error = connect_start(t, to, c->candidate++);
        c->attempt_ticks = 0;
        if (!error)
            return true;
        connect_note_trouble(to, TROUBLE_CONNECTING, error);
    }
    if (c->may_recover)
        retry_later(t, to);
    else
        connect_give_up(t, to);
    return false;
}

void connect_begin(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;
    uint64_t since = (clock_ns() - t->initiators.began) / 1000000000u;
    uint64_t start = (uint64_t)settings_number(SETTING_INIT_TIMEOUT);

    to->is_idle = false;
    c->candidate = c->pause_ms = c->ticks = 0;
    c->was_connected = false;
    c->limit_s = t->socket.peer_seconds;
    if (start > since && start - since > (uint64_t)c->limit_s)
        c->limit_s = (int)(start - since);
    tcp_start_ticking(t);
    connect_next(t, to);
}

void connect_retry(struct tcp *t)
{
    uint64_t now = clock_ns(), next = 0;

    t->initiators.retry.expired = false;
    t->initiators.retry.at = 0;
    for (struct initiator *to = t->initiators.first; to; to = to->next) {
        if (!to->connecting.retry_at)
            continue;
        if (to->connecting.retry_at <= now) {
            to->connecting.retry_at = 0;
            connect_next(t, to);
        } else if (!next || to->connecting.retry_at < next) {
            next = to->connecting.retry_at;
        }
    }
    if (next && (!t->initiators.retry.at || next < t->initiators.retry.at))
        timer_set_once(&t->initiators.retry, next);
}

/* ---- Greeting ---- */

/* Sends a part of the greeting; a new connection has room for it. */
static bool connect_send(struct tcp *t, struct initiator *to, const void *data, size_t bytes)
{
    ssize_t n = system_send(to->stream.fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n == (ssize_t)bytes)
        return true;
    connect_failed(t, to, TROUBLE_ENDED, n < 0 ? errno : ENOBUFS);
    return false;
}

static bool send_hello(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;
    struct hello h = {.version = FRAME_VERSION,
                      .from = (uint32_t)t->config.pe,
                      .to = (uint32_t)to->pe,
                      .n_pes = (uint32_t)t->config.n_pes};

    const gshmem_status_t status = t->config.key(t->config.context, to->pe, c->key);
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
    hello_encode(c->hello, &h);
    greeting_prove_hello(c->key, c->hello, c->hello + HELLO_BYTES);
    return connect_send(t, to, c->hello, sizeof c->hello);
}

bool connect_established(struct tcp *t, struct initiator *to)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (system_getsockopt(to->stream.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error) {
        connect_failed(t, to, TROUBLE_CONNECTING, error);
        return false;
    }
    to->connected = to->connecting.was_connected = true;
    congestion_suit(&t->socket, to->stream.fd);
    poller_want_out(&t->poller, &to->stream, false);
    return send_hello(t, to);
}

static bool take_challenge(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;
    const unsigned char *nonce = receive_buffer_next(&to->in);
    unsigned char proof[PROOF_BYTES];

    greeting_prove(c->key, GREETING_ACCEPTOR, c->hello, nonce, proof);
    if (!hmac_same(nonce + NONCE_BYTES, proof)) {
        connect_failed(t, to, TROUBLE_STRANGER, 0);
        return false;
    }
    greeting_prove(c->key, GREETING_OPENER, c->hello, nonce, proof);
    to->in.first += CHALLENGE_BYTES;
    to->proven = true;
    c->ticks = 0; /* the peer is alive */
    return connect_send(t, to, proof, sizeof proof);
}

/* The peer has accepted our proof. From here on the end of the stream means that the peer has
 * ended. */
static bool take_welcome(struct tcp *t, struct initiator *to)
{
    struct response_frame a;

    if (!response_decode(receive_buffer_next(&to->in), &a) || a.number ||
        (a.kind != RESPONSE_DONE && a.kind != RESPONSE_REFUSED)) {
        initiator_fail(t, to, GSHMEM_ERR_TRANSPORT, "tcp: it sent no welcome");
        return false;
    }
    if (a.kind == RESPONSE_REFUSED)
        return initiator_refused(t, to);
    to->in.first += RESPONSE_BYTES;
    transport_count(&t->config, TRANSPORT_CONNECTED);
    to->active = t->peer[to->pe].active = true;
    tcp_spare_probes(t, to->pe);
    return true;
}

bool connect_take_greeting(struct tcp *t, struct initiator *to, size_t have)
{
    if (!to->proven)
        return have < CHALLENGE_BYTES || take_challenge(t, to);
    return have < RESPONSE_BYTES || take_welcome(t, to);
}

/* ---- Timeout ---- */

/* Whether so many seconds have passed for certain: the first tick may have followed at once. */
static bool ticks_exceed(const struct tcp *t, int ticks, int seconds)
{
    return (int64_t)(ticks - 1) * t->tick_ms >= (int64_t)seconds * 1000;
}

/* Each address has its share of the time, so that the last one is tried in any case. A peer that
 * has proven its key is waited for: it may have our proof by now, and would take the end of the
 * stream for the end of this PE. */
void connect_tick(struct tcp *t, struct initiator *to)
{
    struct connecting *c = &to->connecting;

    c->ticks++;
    c->attempt_ticks++;
    if (ticks_exceed(t, c->ticks, c->shortage ? t->socket.peer_seconds : c->limit_s)) {
        if (to->stream.fd >= 0) {
            bool silent = to->connected;
            disconnect(t, to);
            connect_note_trouble(to, silent ? TROUBLE_TIMEOUT : TROUBLE_CONNECTING, ETIMEDOUT);
        }
        c->retry_at = 0;
        connect_give_up(t, to);
    } else if (to->stream.fd >= 0 && !to->proven && c->address.n > 1 &&
               (int64_t)c->attempt_ticks * t->tick_ms * c->address.n >=
                   (int64_t)c->limit_s * 1000) {
        connect_failed(t, to, to->connected ? TROUBLE_TIMEOUT : TROUBLE_CONNECTING, ETIMEDOUT);
    }
}

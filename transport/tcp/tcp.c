/* The transport over TCP: its life, and what drives it. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/listen.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "transport/tcp/address.h"
#include "transport/tcp/calls.h"
#include "transport/tcp/tcp.h"

enum {
    EVENTS = 64,
    DESCRIPTORS_MOST = 1 << 20,
    ACCEPTS_MOST = 64,    /* connections taken in a round */
    POLL_ALL_LEAST = 8,       /* rounds of progress from one look at all streams to the next, */
    POLL_ALL_MOST = 32,       /* and where looks find nothing but what is asked anyway, while */
    LIKELY_ROUNDS = 100,  /* something came from the likely ones within that many */
    UNAWAITED_ROUNDS = 300, /* in which nothing came: time for answers that nobody waits for, */
    UNAWAITED_ROUNDS_MOST = 4096, /* which wait for no more rounds where others keep this PE busy */
    TICK_MOST_MS = 1000,
    PROBE_LEAST_S = 2,          /* of silence on a stream, or more where there are many PEs: */
    PES_PER_PROBE_SECOND = 32,
};

/* ---- Sockets ---- */

static void note_watched(struct tcp *t, int fd, bool watched)
{
    const uint64_t bit = 1ull << fd % 64;

    if (fd >= DESCRIPTORS_MOST)
        return;
    if (watched)
        t->watched[fd / 64] |= bit;
    else
        t->watched[fd / 64] &= ~bit;
}

bool tcp_watch(struct tcp *t, struct stream *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) != 0)
        return false;
    note_watched(t, s->fd, true);
    return true;
}

/* close() alone leaves the stream in the set while a child of fork has the socket too: epoll would go on
 * to report it, by an address where there is nothing any more. */
void tcp_end_stream(struct tcp *t, struct stream *s)
{
    if (s->fd < 0)
        return;
    epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    note_watched(t, s->fd, false); /* before another has that number */
    close(s->fd);
    s->fd = -1;
    s->wants_out = false;
}

void tcp_want_out(struct tcp *t, struct stream *s, bool wanted)
{
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = s};

    if (wanted)
        t->poll_all_after = 0; /* others have their turn before more of this stream is sent */
    if (s->wants_out == wanted)
        return;
    if (epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, s->fd, &e) == 0)
        s->wants_out = wanted;
}

/* glibc's header does not have it yet. */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

/* What is lost is sent again after ever longer times, up to two minutes: after some outages of a second or two
 * the next time is in none of the moments in which the network was back, until the peer is given up. A
 * second is the least that the system takes for a bound. False: it has none to give. */
static bool bound_retransmission(int fd)
{
    const int most_ms = 1000;

    return setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof most_ms) == 0;
}

/* So many seconds of silence, then the other host is probed. The system answers each probe: where there are many PEs
 * the probes of idle streams would keep it so busy that it lost them, and live hosts would count as gone. */
static int seconds_to_probe(const struct tcp *t)
{
    int seconds = t->config.n_pes / PES_PER_PROBE_SECOND;

    seconds = seconds < t->peer_seconds / 2 ? seconds : t->peer_seconds / 2;
    return seconds > PROBE_LEAST_S ? seconds : PROBE_LEAST_S;
}

void tcp_probe(int fd, bool wanted)
{
    const int on = wanted;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void tcp_tune(struct tcp *t, int fd)
{
    const int on = 1, idle = seconds_to_probe(t), every = 1;
    const unsigned most_ms = (unsigned)t->peer_seconds * 1000;

    /* What is sent is due at once; what may wait is held back in our own queue. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A host that vanishes says nothing: both ways to notice, with and without data on its way. The one machine of
     * pretended hosts takes nobody with it but this PE too, and loses probes where there are thousands of streams. */
    tcp_probe(fd, !t->on_loopback);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &t->peer_seconds, sizeof t->peer_seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    bound_retransmission(fd); /* or not: tcp_report says so */
    congestion_begin(t, fd); /* the listener has shown that it can be */
}

void tcp_explain_timeout(const struct tcp *t, char *why, size_t size)
{
    snprintf(why, size, "tcp: it initiator_awaits an answer and has sent nothing for %d s (GSHMEM_PEER_TIMEOUT)",
             t->peer_seconds);
}

void tcp_explain_end(const struct tcp *t, int error, char *why, size_t size)
{
    if (error == ETIMEDOUT)
        snprintf(why, size, "tcp: its host has not been heard of for %d s, or it takes nothing any more "
                 "(GSHMEM_PEER_TIMEOUT)", t->peer_seconds);
    else
        snprintf(why, size, "tcp: %s", error ? strerror(error) : "it closed its connection");
}

ssize_t tcp_receive(int fd, void *place, size_t bytes, void *buffer, size_t room)
{
    struct iovec vector[2] = {{place, bytes}, {buffer, room}};
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = 2};

    if (bytes && room)
        return recvmsg(fd, &message, MSG_DONTWAIT);
    return call_recv(fd, bytes ? place : buffer, bytes ? bytes : room, MSG_DONTWAIT);
}

/* Who brings something again and again is asked for more before the others are. */
void tcp_note_arrival(struct tcp *t, struct stream *s)
{
    t->regular = t->last == s ? s : NULL;
    t->last = s;
}

/* ---- Ticks ---- */

static void tick_every(struct tcp *t, int ms)
{
    const struct timespec period = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    const struct itimerspec every = {period, period};

    timerfd_settime(t->timer.fd, 0, &every, NULL);
    t->ticking = ms > 0;
}

void tcp_start_ticking(struct tcp *t)
{
    if (!t->ticking)
        tick_every(t, t->tick_ms);
}

/* However many have passed are one: a process that was stopped does not hold that against others. */
static bool timer_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    uint64_t ticks;

    (void)events;
    t->ticked = read(s->fd, &ticks, sizeof ticks) == sizeof ticks;
    return true;
}

/* ---- Strangers ---- */

static void pause_accepting(struct tcp *t, bool paused)
{
    if (t->accept_paused == paused)
        return;
    for (int i = 0; i < t->listeners; i++) {
        struct epoll_event e = {.events = paused ? 0 : EPOLLIN, .data.ptr = &t->listener[i]};
        epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, t->listener[i].fd, &e);
    }
    t->accept_paused = paused;
}

/* Not at once: who gives way to the next may have an event in the same batch. */
static bool listener_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    (void)s, (void)events;
    t->connection_waits = true;
    return true;
}

/* So many at a time, then PEs have their turn. While there are no descriptors, who connects waits in the
 * kernel until the next tick. */
static void accept_some(struct tcp *t, struct stream *listener)
{
    for (int i = 0; i < ACCEPTS_MOST; i++) {
        int fd = descriptor_keep(accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_accepting(t, true);
            break;
        }
        target_make_room(t);
        target_accept(t, fd);
    }
}

static void accept_all(struct tcp *t)
{
    t->connection_waits = false;
    for (int i = 0; i < t->listeners; i++)
        accept_some(t, &t->listener[i]);
    if (t->accept_paused || t->strangers)
        tcp_start_ticking(t);
}

/* Who was given up is told so, as far as it can be without waiting. */
static void cut_off(struct tcp *t)
{
    t->giving_up = false;
    for (int pe = 0; pe < t->config.n_pes; pe++) {
        if (t->given_up[pe]) {
            initiator_cut_off(t, pe);
            target_cut_off(t, pe);
        }
    }
}

/* Not by the timer itself: whom it drops may have an event in the same batch. */
static void tcp_tick(struct tcp *t)
{
    t->ticked = false;
    target_send_unawaited(t);
    target_drop_silent(t);
    pause_accepting(t, false);
    bool owed = initiator_tick(t);
    owed |= target_tick(t);
    if (!owed && !t->strangers && !t->accept_paused)
        tick_every(t, 0);
}

/* ---- The transport ---- */

static int tcp_usable(const struct transport_config *config, char *why, size_t why_size)
{
    struct address a;

    const char *chosen = settings_string(SETTING_TCP_IF);

    (void)config;
    return address_own(0, strcmp(chosen, "nearest") ? chosen : "", &a, why, why_size);
}

/* What the user chose, or else the loopback where that reaches everyone. */
static const char *networks(const struct tcp *t)
{
    const char *chosen = settings_string(SETTING_TCP_IF);

    if (strcmp(chosen, "nearest") == 0)
        chosen = t->config.nearest ? t->config.nearest : "";
    return !chosen[0] && t->config.one_machine ? "lo" : chosen;
}

static void tcp_close(struct transport *base);

static gshmem_status_t tcp_open(const struct transport_config *config, struct transport **out)
{
    struct tcp *t = calloc(1, sizeof *t);

    if (!t)
        return config->fail(GSHMEM_ERR_MEMORY, "tcp: out of memory");
    t->base.ops = &transport_tcp;
    t->config = *config;
    staging_open(&t->staging, &t->config);
    t->retry.fd = -1;
    t->began = clock_ns();
    t->peer_seconds = (int)settings_number(SETTING_PEER_TIMEOUT);
    t->tick_ms = t->peer_seconds < 8 ? t->peer_seconds * TICK_MOST_MS / 8 : TICK_MOST_MS;
    t->to = calloc((size_t)config->n_pes, sizeof *t->to);
    t->from = calloc((size_t)config->n_pes, sizeof *t->from);
    t->admitted = calloc((size_t)config->n_pes, sizeof *t->admitted);
    t->given_up = calloc((size_t)config->n_pes, sizeof *t->given_up);
    t->failed = malloc((size_t)config->n_pes * sizeof *t->failed);
    t->watched = calloc(DESCRIPTORS_MOST / 64, sizeof *t->watched);
    t->epoll_fd = descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
    t->timer = (struct stream){
        .ready = timer_ready, .fd = descriptor_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
    if (!t->to || !t->from || !t->admitted || !t->given_up || !t->failed || !t->watched || t->epoll_fd < 0 || t->timer.fd < 0 ||
        !tcp_watch(t, &t->timer, EPOLLIN) || !connect_prepare(t)) {
        tcp_close(&t->base);
        return config->fail(GSHMEM_ERR_SYSTEM, "tcp: %s", log_errno(errno));
    }
    *out = &t->base;
    return GSHMEM_OK;
}

/* Leaves those addresses that can be had. */
static bool listen_everywhere(struct tcp *t, struct address *own)
{
    struct sockaddr_storage where[ADDRESS_MOST];
    int fd[ADDRESS_MOST], n = own->n;
    bool watched = true;

    for (int i = 0; i < n; i++)
        address_socket(own, i, &where[i]);
    own->port = listen_on_all(where, n, fd);
    own->n = 0;
    for (int i = 0; own->port && i < n; i++) {
        if (fd[i] < 0)
            continue;
        own->ip[own->n++] = own->ip[i];
        struct stream *s = &t->listener[t->listeners++];
        *s = (struct stream){.ready = listener_ready, .fd = fd[i]};
        watched &= tcp_watch(t, s, EPOLLIN);
    }
    return own->n && watched;
}

static gshmem_status_t tcp_address(struct transport *base, void *address, size_t capacity,
                                   size_t *bytes)
{
    struct tcp *t = (struct tcp *)base;
    struct address own;
    char reason[200];

    t->on_loopback = strcmp(networks(t), "lo") == 0;
    if (!address_own(0, networks(t), &own, reason, sizeof reason))
        return t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: %s", reason);
    if (!listen_everywhere(t, &own))
        return t->config.fail(GSHMEM_ERR_SYSTEM, "tcp: no socket to listen on at %s: %s", reason,
                              log_errno(errno));
    if (!congestion_begin(t, t->listener[0].fd))
        return t->config.fail(GSHMEM_ERR_ARGUMENT,
                              "tcp: GSHMEM_TCP_CONGESTION=%s: %s; sysctl "
                              "net.ipv4.tcp_allowed_congestion_control lists what there is",
                              settings_string(SETTING_TCP_CONGESTION), strerror(errno));
    for (int i = 1; i < t->listeners; i++)
        congestion_begin(t, t->listener[i].fd);
    address_print(&own, reason, sizeof reason);
    *bytes = address_encode(&own, address, capacity);
    t->config.info("tcp: reachable at %s", reason);
    if (t->congestion[0])
        t->config.info("tcp: the system's congestion control, %s, on long ways only "
                       "(GSHMEM_TCP_CONGESTION chooses)", t->congestion);
    return *bytes ? GSHMEM_OK : GSHMEM_ERR_TRANSPORT;
}

/* Until segments, secret and peers are known nobody is listened to. */
static void tcp_begin(struct transport *base, const struct transport_config *config)
{
    struct tcp *t = (struct tcp *)base;

    t->config = *config;
    t->began = clock_ns();
}

static gshmem_status_t tcp_post(struct transport *base, const struct transport_request *request)
{
    struct tcp *t = (struct tcp *)base;
    struct target *way = unordered_stream(t, request);

    return way ? unordered_post(t, way, request) : initiator_post(t, request);
}

/* Asks the streams that most likely have something, without asking first which have: a system call
 * less on the way of an answer, and of requests that follow others of the same PE. Whether that will
 * do for this round. */
static bool poll_likely(struct tcp *t)
{
    struct stream *regular = t->idle < LIKELY_ROUNDS ? t->regular : NULL;
    struct stream *asked = t->idle < LIKELY_ROUNDS && t->awaited == 1 ? t->requested : NULL;

    if (regular)
        regular->ready(t, regular, EPOLLIN);
    if (asked && asked != regular)
        asked->ready(t, asked, EPOLLIN);
    return (regular || asked) && t->round - t->polled_all < t->poll_all_after;
}

/* All that have something, now that some time has passed since the last look; as epoll_wait. */
static int poll_all(struct tcp *t)
{
    struct epoll_event event[EVENTS];
    int n = epoll_wait(t->epoll_fd, event, EVENTS, 0);
    bool others = false;

    for (int i = 0; i < n; i++)
        others |= event[i].data.ptr != t->regular && event[i].data.ptr != t->requested;
    t->polled_all = t->round;
    if (others || !t->poll_all_after)
        t->poll_all_after = POLL_ALL_LEAST;
    else if (t->poll_all_after < POLL_ALL_MOST)
        t->poll_all_after *= 2;
    for (int i = 0; i < n; i++) {
        struct stream *s = event[i].data.ptr;
        s->ready(t, s, event[i].events);
    }
    return n;
}

/* Where a buffer was given back, somebody else can go on. */
static void advance_staged(struct tcp *t)
{
    uint64_t given = t->staging.given;
    bool some = staging_look(&t->staging);

    some |= initiator_advance(t);
    some |= target_advance(t);
    t->events += some || t->staging.given != given;
}

/* Both at once: who waits for one in a last quiet may wait for the other as well. */
static void send_unawaited(struct tcp *t)
{
    target_send_unawaited(t);
    initiator_acknowledge(t);
}

static gshmem_status_t tcp_progress(struct transport *base, int *events)
{
    struct tcp *t = (struct tcp *)base;
    int n = 0;

    t->events = 0;
    t->round++;
    if (t->held_back)
        initiator_send_held(t);
    if (!poll_likely(t))
        n = poll_all(t);
    if (t->retry_due)
        connect_retry(t);
    if (t->ticked)
        tcp_tick(t);
    if (t->await_key)
        target_try_keys(t);
    if (t->connection_waits)
        accept_all(t);
    if (t->closing)
        target_drop_closing(t);
    if (t->giving_up)
        cut_off(t);
    if (t->delayed && (!t->events || target_delays_long(t)))
        target_send_delayed(t);
    if ((t->unawaited || t->unacknowledged) &&
        (t->idle > UNAWAITED_ROUNDS || t->round - t->unawaited_since > UNAWAITED_ROUNDS_MOST))
        send_unawaited(t);
    if (t->staging_out || t->staging_in)
        advance_staged(t);
    t->idle = t->events ? 0 : t->idle + 1;
    *events = t->events + t->giving_up + (t->delayed != NULL) + t->held_back + staging_busy(&t->staging) +
              t->updates;
    return n < 0 && errno != EINTR
               ? t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: epoll_wait: %s", strerror(errno))
               : GSHMEM_OK;
}

static void tcp_tell(struct transport *base, int lost)
{
    initiator_notify_failure((struct tcp *)base, lost);
}

static int tcp_wait_fd(struct transport *base)
{
    return ((struct tcp *)base)->epoll_fd;
}

/* Its descriptor is that of epoll, which needs no asking. Who sleeps may sleep for long: what was put
 * off until there is nothing else to do is done before. That may serve requests, and one of them may
 * bring what the caller is about to sleep for. */
static int tcp_arm(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;
    const int before = t->events;

    if (t->delayed)
        target_send_delayed(t);
    if (t->unawaited || t->unacknowledged)
        send_unawaited(t);
    if (t->held_back)
        initiator_send_held(t);
    return t->events != before;
}

static gshmem_status_t tcp_say(struct transport *base, int pe, const void *note, size_t bytes)
{
    return initiator_send_message((struct tcp *)base, pe, note, bytes);
}

/* Carried out with the next round: this may be called in the middle of one. */
static void tcp_lose(struct transport *base, int pe, gshmem_status_t status)
{
    struct tcp *t = (struct tcp *)base;

    (void)status;
    t->given_up[pe] = t->giving_up = true;
}

static int tcp_busy(struct transport *base)
{
    const struct tcp *t = (struct tcp *)base;

    return initiator_busy(t) || target_busy(t);
}

static void tcp_close(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;

    initiator_say_goodbye(t, 200);
    initiator_close_all(t);
    target_close_all(t);
    staging_close(&t->staging);
    for (int i = 0; i < t->listeners; i++)
        tcp_end_stream(t, &t->listener[i]);
    tcp_end_stream(t, &t->timer);
    tcp_end_stream(t, &t->retry);
    if (t->refusals > 1)
        log_warn("tcp: %llu connections were refused", (unsigned long long)t->refusals);
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    free(t->to);
    free(t->from);
    free(t->admitted);
    free(t->given_up);
    free(t->failed);
    free(t->watched);
    free(t);
}

/* What `usable` does not say. */
static void tcp_report(const struct transport_config *config, transport_line *line, void *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)config;
    if (fd < 0)
        return;
    if (!bound_retransmission(fd))
        line(to, "retransmission", "this kernel does not bound the time between two attempts (TCP_RTO_MAX_MS, Linux "
             "6.15): outages of a second or two in a row may end a job, though the network comes back "
             "in between; a higher GSHMEM_PEER_TIMEOUT helps");
    close(fd);
}

/* As long as any process has a stream's socket, the other side of it sees no end. The child's copies are not taken out
 * of the epoll set, which is the parent's too. */
static void tcp_leave_parent(struct transport *base)
{
    const struct tcp *t = (struct tcp *)base;

    for (int i = 0; i < DESCRIPTORS_MOST / 64; i++) {
        for (uint64_t left = t->watched[i]; left; left &= left - 1)
            close(i * 64 + __builtin_ctzll(left));
    }
}

const struct transport_ops transport_tcp = {
    .size = sizeof(struct transport_ops),
    .version = TRANSPORT_VERSION,
    .name = "tcp",
    .usable = tcp_usable,
    .open = tcp_open,
    .address = tcp_address,
    .begin = tcp_begin,
    .post = tcp_post,
    .progress = tcp_progress,
    .tell = tcp_tell,
    .wait_fd = tcp_wait_fd,
    .arm = tcp_arm,
    .say = tcp_say,
    .lose = tcp_lose,
    .busy = tcp_busy,
    .close = tcp_close,
    .report = tcp_report,
    .leave_parent = tcp_leave_parent,
};

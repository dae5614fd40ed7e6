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

#include "runtime/base/settings.h"
#include "transport/tcp/address.h"
#include "transport/tcp/calls.h"
#include "transport/tcp/tcp.h"

enum {
    EVENTS = 64,
    STRANGERS_MOST = 128, /* connections at a time that have not greeted; others queue */
    LOOK_LEAST = 8,       /* rounds of progress from one look at all streams to the next, */
    LOOK_MOST = 32,       /* and where looks find nothing but what is asked anyway, while */
    LIKELY_ROUNDS = 100,  /* something came from the likely ones within that many */
    UNASKED_ROUNDS = 300, /* in which nothing came: time for answers that nobody waits for */
    TICK_MOST_MS = 1000,
};

/* ---- Sockets ---- */

bool tcp_watch(struct tcp *t, struct stream *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    return epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) == 0;
}

void tcp_want_out(struct tcp *t, struct stream *s, bool wanted)
{
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = s};

    if (s->wants_out == wanted)
        return;
    if (epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, s->fd, &e) == 0)
        s->wants_out = wanted;
}

void tcp_tune(struct tcp *t, int fd)
{
    const int on = 1, idle = 2, every = 1;
    const unsigned most_ms = (unsigned)t->peer_seconds * 1000;

    /* What is sent is due at once; what may wait is held back in our own queue. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A host that vanishes says nothing: both ways to notice, with and without data on its way. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &t->peer_seconds, sizeof t->peer_seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    congestion_begin(t, fd); /* the listener has shown that it can be */
}

void tcp_explain_silence(const struct tcp *t, char *why, size_t size)
{
    snprintf(why, size, "tcp: it owes an answer and has sent nothing for %d s (GSHMEM_PEER_TIMEOUT)",
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
void tcp_note_visit(struct tcp *t, struct stream *s)
{
    t->regular = t->last == s ? s : NULL;
    t->last = s;
}

/* One socket for both families where the machine has IPv6, else for IPv4. */
static int listen_any(uint16_t *port)
{
    const int on = 1, off = 0;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct sockaddr *name = (struct sockaddr *)&v6;
    socklen_t size = sizeof v6;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
        bind(fd, name, size) == 0) {
        /* bound */
    } else {
        if (fd >= 0)
            close(fd);
        name = (struct sockaddr *)&v4;
        size = sizeof v4;
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, name, size) != 0)
            goto failed;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listen(fd, 4096) != 0 || getsockname(fd, name, &size) != 0)
        goto failed;
    *port = ntohs(name->sa_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    return fd;

failed:
    if (fd >= 0)
        close(fd);
    return -1;
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
    struct epoll_event e = {.events = paused ? 0 : EPOLLIN, .data.ptr = &t->listener};

    if (t->paused != paused && epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, t->listener.fd, &e) == 0)
        t->paused = paused;
}

/* Who connects waits in the kernel while too many others have not said who they are, or while there
 * are no descriptors: a flood of strangers delays a PE, but takes no more than this. */
static bool listener_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    int fd = -1;

    (void)events;
    while (t->strangers < STRANGERS_MOST &&
           (fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        inbound_accept(t, fd);
    if (t->strangers == STRANGERS_MOST || (fd < 0 && (errno == EMFILE || errno == ENFILE)))
        pause_accepting(t, true);
    if (t->paused || t->strangers)
        tcp_start_ticking(t);
    return true;
}

/* Not by the timer itself: whom it drops may have an event in the same batch. */
static void tidy(struct tcp *t)
{
    t->ticked = false;
    inbound_send_unasked(t);
    inbound_drop_silent(t);
    if (t->strangers < STRANGERS_MOST)
        pause_accepting(t, false);
    bool owed = outbound_watch(t);
    owed |= inbound_watch(t);
    if (!owed && !t->strangers)
        tick_every(t, 0);
}

/* ---- The transport ---- */

static int usable(const struct transport_config *config, char *why, size_t why_size)
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
    t->listener.fd = -1;
    t->peer_seconds = (int)settings_number(SETTING_PEER_TIMEOUT);
    t->tick_ms = t->peer_seconds < 8 ? t->peer_seconds * TICK_MOST_MS / 8 : TICK_MOST_MS;
    t->to = calloc((size_t)config->n_pes, sizeof *t->to);
    t->from = calloc((size_t)config->n_pes, sizeof *t->from);
    t->met = calloc((size_t)config->n_pes, sizeof *t->met);
    t->lost = malloc((size_t)config->n_pes * sizeof *t->lost);
    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    t->timer = (struct stream){
        .ready = timer_ready, .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (!t->to || !t->from || !t->met || !t->lost || t->epoll_fd < 0 || t->timer.fd < 0 ||
        !tcp_watch(t, &t->timer, EPOLLIN)) {
        tcp_close(&t->base);
        return config->fail(GSHMEM_ERR_SYSTEM, "tcp: %s", strerror(errno));
    }
    *out = &t->base;
    return GSHMEM_OK;
}

static gshmem_status_t tcp_address(struct transport *base, void *address, size_t capacity,
                                   size_t *bytes)
{
    struct tcp *t = (struct tcp *)base;
    struct address own;
    char reason[200];
    uint16_t port = 0;

    t->listener = (struct stream){.ready = listener_ready, .fd = listen_any(&port)};
    if (t->listener.fd < 0 || !tcp_watch(t, &t->listener, EPOLLIN))
        return t->config.fail(GSHMEM_ERR_SYSTEM, "tcp: no socket to listen on: %s", strerror(errno));
    if (!congestion_begin(t, t->listener.fd))
        return t->config.fail(GSHMEM_ERR_ARGUMENT,
                              "tcp: GSHMEM_TCP_CONGESTION=%s: %s; sysctl "
                              "net.ipv4.tcp_allowed_congestion_control lists what there is",
                              settings_string(SETTING_TCP_CONGESTION), strerror(errno));
    if (!address_own(port, networks(t), &own, reason, sizeof reason))
        return t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: %s", reason);
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
    ((struct tcp *)base)->config = *config;
}

static gshmem_status_t tcp_post(struct transport *base, const struct transport_request *request)
{
    struct tcp *t = (struct tcp *)base;
    struct inbound *way = words_way(t, request);

    return way ? words_post(t, way, request) : outbound_post(t, request);
}

/* Asks the streams that most likely have something, without asking first which have: a system call
 * less on the way of an answer, and of requests that follow others of the same PE. Whether that will
 * do for this round. */
static bool try_likely(struct tcp *t)
{
    struct stream *regular = t->idle < LIKELY_ROUNDS ? t->regular : NULL;
    struct stream *asked = t->idle < LIKELY_ROUNDS && t->awaited == 1 ? t->asked : NULL;

    if (regular)
        regular->ready(t, regular, EPOLLIN);
    if (asked && asked != regular)
        asked->ready(t, asked, EPOLLIN);
    return (regular || asked) && t->round - t->looked < t->look_after;
}

/* All that have something, now that some time has passed since the last look; as epoll_wait. */
static int look_around(struct tcp *t)
{
    struct epoll_event event[EVENTS];
    int n = epoll_wait(t->epoll_fd, event, EVENTS, 0);
    bool others = false;

    for (int i = 0; i < n; i++)
        others |= event[i].data.ptr != t->regular && event[i].data.ptr != t->asked;
    t->looked = t->round;
    if (others || !t->look_after)
        t->look_after = LOOK_LEAST;
    else if (t->look_after < LOOK_MOST)
        t->look_after *= 2;
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

    some |= outbound_advance(t);
    some |= inbound_advance(t);
    t->events += some || t->staging.given != given;
}

/* Both at once: who waits for one in a last quiet may wait for the other as well. */
static void answer_unasked(struct tcp *t)
{
    inbound_send_unasked(t);
    outbound_say_heard(t);
}

static gshmem_status_t tcp_progress(struct transport *base, int *events)
{
    struct tcp *t = (struct tcp *)base;
    int n = 0;

    t->events = 0;
    t->round++;
    if (t->held_back)
        outbound_send_held(t);
    if (!try_likely(t))
        n = look_around(t);
    if (t->ticked)
        tidy(t);
    if (t->owed && !t->events)
        inbound_send_owed(t);
    if ((t->unasked || t->unsaid) && t->idle > UNASKED_ROUNDS)
        answer_unasked(t);
    if (t->staging_out || t->staging_in)
        advance_staged(t);
    t->idle = t->events ? 0 : t->idle + 1;
    *events = t->events + (t->owed != NULL) + t->held_back + staging_busy(&t->staging);
    return n < 0 && errno != EINTR
               ? t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: epoll_wait: %s", strerror(errno))
               : GSHMEM_OK;
}

static void tcp_tell(struct transport *base, int lost)
{
    outbound_tell((struct tcp *)base, lost);
}

static int tcp_wait_fd(struct transport *base)
{
    return ((struct tcp *)base)->epoll_fd;
}

/* Its descriptor is that of epoll, which needs no asking. Who sleeps may sleep for long: what was put
 * off until there is nothing else to do is done before. */
static int tcp_arm(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;

    if (t->owed)
        inbound_send_owed(t);
    if (t->unasked || t->unsaid)
        answer_unasked(t);
    if (t->held_back)
        outbound_send_held(t);
    return 0;
}

static gshmem_status_t tcp_say(struct transport *base, int pe, const void *note, size_t bytes)
{
    return outbound_say((struct tcp *)base, pe, note, bytes);
}

static void tcp_hear(struct transport *base, int from, const void *note, size_t bytes)
{
    (void)base, (void)from, (void)note, (void)bytes; /* nobody speaks to it */
}

/* Its own streams tell it. */
static void tcp_lose(struct transport *base, int pe, gshmem_status_t status)
{
    (void)base, (void)pe, (void)status;
}

static int tcp_pins(struct transport *base, int segment, uint64_t offset, uint64_t bytes)
{
    (void)base, (void)segment, (void)offset, (void)bytes;
    return 0;
}

static int tcp_busy(struct transport *base)
{
    const struct tcp *t = (struct tcp *)base;

    return outbound_busy(t) || inbound_busy(t);
}

static void tcp_close(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;

    outbound_goodbye(t, 200);
    outbound_close_all(t);
    inbound_close_all(t);
    staging_close(&t->staging);
    if (t->listener.fd >= 0)
        close(t->listener.fd);
    if (t->timer.fd >= 0)
        close(t->timer.fd);
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    free(t->to);
    free(t->from);
    free(t->met);
    free(t->lost);
    free(t);
}

/* What `usable` says is all. */
static void tcp_report(const struct transport_config *config, transport_line *line, void *to)
{
    (void)config, (void)line, (void)to;
}

static void tcp_forget(struct transport *base, int segment, uint64_t offset, uint64_t bytes)
{
    (void)base, (void)segment, (void)offset, (void)bytes; /* it holds nothing */
}

static int tcp_updates(struct transport *base, char *why, size_t why_size)
{
    (void)base;
    snprintf(why, why_size, "TCP has no NIC for it");
    return 0;
}

const struct transport_ops transport_tcp = {
    .size = sizeof(struct transport_ops),
    .version = TRANSPORT_VERSION,
    .name = "tcp",
    .usable = usable,
    .open = tcp_open,
    .address = tcp_address,
    .begin = tcp_begin,
    .post = tcp_post,
    .progress = tcp_progress,
    .tell = tcp_tell,
    .wait_fd = tcp_wait_fd,
    .arm = tcp_arm,
    .say = tcp_say,
    .hear = tcp_hear,
    .lose = tcp_lose,
    .pins = tcp_pins,
    .busy = tcp_busy,
    .close = tcp_close,
    .report = tcp_report,
    .forget = tcp_forget,
    .updates = tcp_updates,
};

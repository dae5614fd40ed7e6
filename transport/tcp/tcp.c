/* The transport over TCP: its functions, and what one round of progress does. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"
#include "transport/tcp/acceptor.h"
#include "transport/tcp/initiator.h"
#include "transport/tcp/target.h"

enum {
    UNAWAITED_ROUNDS = 300, /* without arrivals: then responses are sent that nobody waits for. */
    UNAWAITED_ROUNDS_MOST = 4096, /* They wait no longer than this while something arrives. */
    TICK_MOST_MS = 1000,
};

/* ---- From open to begin ---- */

static int tcp_usable(const struct transport_config *config, char *why, size_t why_size)
{
    const char *chosen = settings_string(SETTING_TCP_IF);
    struct address a;

    (void)config;
    return address_own(0, strcmp(chosen, "nearest") ? chosen : "", &a, why, why_size);
}

/* The networks that the user chose, or else the loopback where that reaches every PE. */
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
    t->initiators.began = clock_ns();
    t->socket.n_pes = config->n_pes;
    t->socket.peer_seconds = (int)settings_number(SETTING_PEER_TIMEOUT);
    t->tick_ms =
        t->socket.peer_seconds < 8 ? t->socket.peer_seconds * TICK_MOST_MS / 8 : TICK_MOST_MS;
    t->tick.stream.fd = t->initiators.retry.stream.fd = -1;
    t->to = calloc((size_t)config->n_pes, sizeof *t->to);
    t->from = calloc((size_t)config->n_pes, sizeof *t->from);
    t->peer = calloc((size_t)config->n_pes, sizeof *t->peer);
    t->failed = malloc((size_t)config->n_pes * sizeof *t->failed);
    if (!poller_open(&t->poller, t) || !t->to || !t->from || !t->peer || !t->failed ||
        !timer_open(&t->tick, &t->poller) || !timer_open(&t->initiators.retry, &t->poller)) {
        tcp_close(&t->base);
        return config->fail(GSHMEM_ERR_SYSTEM, "tcp: %s", log_errno(errno));
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

    t->socket.on_loopback = strcmp(networks(t), "lo") == 0;
    if (!address_own(0, networks(t), &own, reason, sizeof reason))
        return t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: %s", reason);
    if (!acceptor_listen(t, &own))
        return t->config.fail(GSHMEM_ERR_SYSTEM, "tcp: no socket to listen on at %s: %s", reason,
                              log_errno(errno));
    if (!congestion_begin(&t->socket, t->targets.admission.listener[0].fd))
        return t->config.fail(GSHMEM_ERR_ARGUMENT,
                              "tcp: GSHMEM_TCP_CONGESTION=%s: %s; sysctl "
                              "net.ipv4.tcp_allowed_congestion_control lists what there is",
                              settings_string(SETTING_TCP_CONGESTION), strerror(errno));
    for (int i = 1; i < t->targets.admission.listeners; i++)
        congestion_begin(&t->socket, t->targets.admission.listener[i].fd);
    address_print(&own, reason, sizeof reason);
    *bytes = address_encode(&own, address, capacity);
    t->config.info("tcp: reachable at %s", reason);
    if (t->socket.congestion[0])
        t->config.info("tcp: the system's congestion control, %s, on long paths only "
                       "(GSHMEM_TCP_CONGESTION chooses)",
                       t->socket.congestion);
    return *bytes ? GSHMEM_OK : GSHMEM_ERR_TRANSPORT;
}

/* From here on the segments, the keys and the peers are known, and requests may be served. */
static void tcp_begin(struct transport *base, const struct transport_config *config)
{
    struct tcp *t = (struct tcp *)base;

    t->config = *config;
    t->initiators.began = clock_ns();
}

/* ---- Requests and progress ---- */

static gshmem_status_t tcp_post(struct transport *base, const struct transport_request *request)
{
    struct tcp *t = (struct tcp *)base;
    struct target *from = unordered_stream(t, request);

    const bool delays = t->targets.delay.delayed;

    if (delays)
        target_judge_delay(t);
    const gshmem_status_t status =
        from ? unordered_post(t, from, request) : initiator_post(t, request);
    if (delays)
        target_end_call(t);
    return status;
}

/* Ends the streams of the PEs that were given up. */
static void tcp_cut_off(struct tcp *t)
{
    t->giving_up = false;
    for (int pe = 0; pe < t->config.n_pes; pe++) {
        if (t->peer[pe].given_up) {
            initiator_cut_off(t, pe);
            target_cut_off(t, pe);
        }
    }
}

/* Called at the end of the round: a stream that it drops may have an event in the same batch. */
static void tcp_tick(struct tcp *t)
{
    t->tick.expired = false;
    target_send_unawaited(t);
    admission_tick(t);
    acceptor_pause(t, false);
    bool owing = initiator_tick(t);
    owing |= target_tick(t);
    if (!owing && !t->targets.admission.strangers && !t->targets.admission.paused)
        timer_set_period(&t->tick, 0);
}

/* Where a staging buffer was given back another stream can continue. */
static void advance_staged(struct tcp *t)
{
    uint64_t given = t->staging.given;
    bool some = staging_look(&t->staging);

    some |= initiator_advance(t);
    some |= target_advance(t);
    t->events += some || t->staging.given != given;
}

/* Both directions: a peer that waits for one in its last quiet may wait for the other, too. */
static void send_unawaited(struct tcp *t)
{
    target_send_unawaited(t);
    initiator_acknowledge(t);
}

static gshmem_status_t tcp_progress(struct transport *base, int *events)
{
    struct tcp *t = (struct tcp *)base;
    int n;

    t->events = 0;
    t->poller.round++;
    if (t->initiators.held_back)
        initiator_send_held(t);
    n = poller_poll(&t->poller);
    if (t->initiators.retry.expired)
        connect_retry(t);
    if (t->tick.expired)
        tcp_tick(t);
    if (t->targets.admission.await_key)
        target_try_keys(t);
    if (t->targets.admission.connection_waits)
        acceptor_accept(t);
    if (t->targets.closing)
        target_drop_closing(t);
    if (t->giving_up)
        tcp_cut_off(t);
    if (t->targets.delay.delayed && (!t->events || target_delays_long(t)))
        target_send_delayed(t);
    if ((t->targets.delay.unawaited || t->initiators.unacknowledged) &&
        (t->poller.idle > UNAWAITED_ROUNDS ||
         t->poller.round - t->unawaited_since > UNAWAITED_ROUNDS_MOST))
        send_unawaited(t);
    if (t->initiators.staging || t->targets.staging)
        advance_staged(t);
    t->poller.idle = t->events ? 0 : t->poller.idle + 1;
    *events = t->events + t->giving_up + (t->targets.delay.delayed != NULL) +
              t->initiators.held_back + staging_busy(&t->staging) + t->updates;
    return n < 0 && errno != EINTR
               ? t->config.fail(GSHMEM_ERR_TRANSPORT, "tcp: epoll_wait: %s", strerror(errno))
               : GSHMEM_OK;
}

static void tcp_tell(struct transport *base, int failed)
{
    initiator_notify_failure((struct tcp *)base, failed);
}

static int tcp_wait_fd(struct transport *base)
{
    return ((struct tcp *)base)->poller.epoll_fd;
}

/* The epoll descriptor needs no preparation. But the thread may sleep for long: what was put off
 * until there is nothing else to do is done before. That may serve requests, and one of them may
 * bring what the thread waits for. */
static int tcp_arm(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;
    const int before = t->events;

    if (t->targets.delay.delayed)
        target_send_delayed(t);
    if (t->targets.delay.unawaited || t->initiators.unacknowledged)
        send_unawaited(t);
    if (t->initiators.held_back)
        initiator_send_held(t);
    return t->events != before;
}

static gshmem_status_t tcp_say(struct transport *base, int pe, const void *message, size_t bytes)
{
    return initiator_send_message((struct tcp *)base, pe, message, bytes);
}

/* Carried out in the next round: this may be called within one. */
static void tcp_lose(struct transport *base, int pe, gshmem_status_t status)
{
    struct tcp *t = (struct tcp *)base;

    (void)status;
    t->peer[pe].given_up = t->giving_up = true;
}

static int tcp_busy(struct transport *base)
{
    const struct tcp *t = (struct tcp *)base;

    return initiator_busy(t) || target_busy(t);
}

/* ---- The end ---- */

static void tcp_close(struct transport *base)
{
    struct tcp *t = (struct tcp *)base;

    initiator_say_goodbye(t, 200);
    initiator_close_all(t);
    target_close_all(t);
    staging_close(&t->staging);
    for (int i = 0; i < t->targets.admission.listeners; i++)
        poller_end(&t->poller, &t->targets.admission.listener[i]);
    poller_end(&t->poller, &t->tick.stream);
    poller_end(&t->poller, &t->initiators.retry.stream);
    if (t->targets.admission.refusals > 1)
        log_warn("tcp: %llu connections were refused",
                 (unsigned long long)t->targets.admission.refusals);
    poller_close(&t->poller);
    free(t->to);
    free(t->from);
    free(t->peer);
    free(t->failed);
    free(t);
}

/* What tcp_usable does not say. */
static void tcp_report(const struct transport_config *config, transport_line *line, void *to)
{
    int fd = system_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);

    (void)config;
    if (fd < 0)
        return;
    if (!socket_bound_retransmission(fd))
        line(to, "retransmission",
             "this kernel does not bound the time between two attempts (TCP_RTO_MAX_MS, Linux "
             "6.15): outages of a second or two in a row may end a job, though the network comes "
             "back "
             "in between; a higher GSHMEM_PEER_TIMEOUT helps");
    close(fd);
}

/* While any process holds a stream's socket, the peer sees no end of the stream. */
static void tcp_leave_parent(struct transport *base)
{
    poller_leave_parent(&((struct tcp *)base)->poller);
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
    .batches = TRANSPORT_ALL_BATCHES,
};

/* The initiator's direction: posts requests, sends them, and watches the peers that owe a
 * response. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "runtime/base/system.h"

#include "transport/tcp/initiator.h"
#include "transport/tcp/stream_memory.h"

/* ---- Sending ---- */

/* Queues the failure notifications that the peer has not been sent. */
static void queue_failures(struct tcp *t, struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    while (to->notified < t->failures && queue_has_room(&to->out, sizeof frame, 1)) {
        struct request_frame f = {.kind = FRAME_FAILED,
                                  .offset = (uint64_t)t->failed[to->notified++]};
        request_encode(frame, &f);
        queue_add_copy(&to->out, frame, sizeof frame);
    }
}

/* Sends what the socket takes. False: the stream has ended. */
static bool initiator_flush(struct tcp *t, struct initiator *to)
{
    if (!to->active)
        return true;
    do {
        queue_failures(t, to);
        if (!queue_send(&to->out, to->stream.fd)) {
            if (errno == EPIPE || errno == ECONNRESET)
                break; /* the end of the stream is received, behind what the peer sent before it */
            connect_ended(t, to, errno);
            return false;
        }
    } while (to->notified < t->failures && queue_empty(&to->out));
    poller_want_out(&t->poller, &to->stream, !queue_empty(&to->out));
    return true;
}

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
    return initiator_flush(t, to); /* a response also releases what was held back */
}

/* ---- Posting ---- */

/* Makes the record of the stream to a PE; its first use connects it. */
static gshmem_status_t initiator_make(struct tcp *t, int pe, struct initiator **out)
{
    unsigned char published[TRANSPORT_ADDRESS_MAX];
    size_t bytes = 0;
    gshmem_status_t status;
    struct initiator *to;

    if (t->peer[pe].given_up)
        return GSHMEM_ERR_PEER_DEAD;
    if ((status = t->config.find(t->config.context, pe, published, sizeof published, &bytes)))
        return status;
    if (!(to = stream_memory_new(sizeof *to)))
        return t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection to PE %d",
                              pe);
    queue_begin(&to->out);
    to->stream = (struct stream){.ready = initiator_ready, .fd = -1};
    to->pe = pe;
    if (!address_decode(published, bytes, &to->connecting.address)) {
        stream_memory_free(to, sizeof *to);
        return t->config.fail(GSHMEM_ERR_BOOTSTRAP,
                              "tcp: PE %d published no address of this version", pe);
    }
    t->to[pe] = to;
    to->next = t->initiators.first;
    t->initiators.first = to;
    to->is_idle = true;
    *out = to;
    return GSHMEM_OK;
}

/* Queues what has been copied from the device, as far as there is room, and sends it. */
static bool initiator_advance_backlog(struct tcp *t, struct initiator *to)
{
    bool some = false;

    while (backlog_advance(t, to, &some) && initiator_flush(t, to))
        continue;
    return some;
}

static gshmem_status_t post_to_backlog(struct tcp *t, struct initiator *to,
                                       const struct transport_request *r)
{
    gshmem_status_t status = backlog_post(t, to, r);

    if (status)
        return status;
    initiator_advance_backlog(t, to);
    pending_stage(t, to);
    return GSHMEM_OK;
}

gshmem_status_t initiator_post(struct tcp *t, const struct transport_request *r)
{
    struct initiator *to = t->to[r->pe];
    const bool copied = pending_is_copied(r);
    gshmem_status_t status;

    if (!to && (status = initiator_make(t, r->pe, &to)))
        return status;
    if (to->is_idle)
        connect_begin(t, to);
    if (to->failed)
        return to->failure;
    if (t->config.device) {
        tcp_start_ticking(t);
        if (pending_is_for_device(t, r) && !staging_ready(&t->staging))
            return GSHMEM_ERR_MEMORY;
        if (backlog_takes(t, to, r))
            return post_to_backlog(t, to, r);
    }
    if (!initiator_has_room(to, copied ? r->bytes : 0))
        return TRANSPORT_FULL;
    const bool may_wait = to->completed < to->awaited || r->flags & TRANSPORT_HELD,
               held = r->flags & TRANSPORT_MORE && may_wait && to->out.bytes < BATCH_BYTES;
    pending_add(t, to, r, false, held && !trace_is_on());
    tcp_start_ticking(t);
    /* A request is held back only while a response is due, whose arrival sends the rest if nothing
     * else does before, or where the caller promises a progress. */
    if (held && to->out.bytes < BATCH_BYTES) {
        t->initiators.held_back = true;
        return GSHMEM_OK;
    }
    initiator_flush(t, to);
    return GSHMEM_OK; /* if the stream has failed just now, `done` has been called with that */
}

static void initiator_ignore(void *tag, gshmem_status_t status)
{
    (void)tag, (void)status;
}

/* A message has no response. The empty put behind it has one, so that a peer that stops before it
 * receives the message is noticed. */
gshmem_status_t initiator_send_message(struct tcp *t, int pe, const void *message, size_t bytes)
{
    const struct transport_request behind = {
        .kind = TRANSPORT_PUT, .flags = TRANSPORT_UNASKED, .pe = pe, .done = initiator_ignore};
    unsigned char frame[REQUEST_BYTES];
    struct initiator *to = t->to[pe];
    gshmem_status_t status;

    if (!to && (status = initiator_make(t, pe, &to)))
        return status;
    if (to->is_idle)
        connect_begin(t, to);
    if (to->failed)
        return to->failure;
    if (!queue_has_room(&to->out, REQUEST_BYTES + bytes, 2) ||
        (!to->active && to->connecting.shortage))
        return TRANSPORT_FULL;
    to->connecting.has_messages |= !to->active;
    request_encode(frame, &(struct request_frame){.kind = FRAME_MESSAGE, .bytes = bytes});
    queue_add_copy(&to->out, frame, sizeof frame);
    queue_add_copy(&to->out, message, bytes);
    if (initiator_has_room(to, 0)) /* else enough requests await a response */
        pending_add(t, to, &behind, false, false);
    tcp_start_ticking(t);
    t->initiators.held_back = true; /* as in initiator_notify_failure */
    return GSHMEM_OK;
}

void initiator_send_held(struct tcp *t)
{
    t->initiators.held_back = false;
    for (struct initiator *to = t->initiators.first; to; to = to->next) {
        bool has_more = !queue_empty(&to->out) || to->notified < t->failures;
        if (!to->failed && has_more && !to->stream.wants_out)
            initiator_flush(t, to);
    }
}

void initiator_notify_failure(struct tcp *t, int failed)
{
    if (t->failures == t->config.n_pes)
        return;
    t->failed[t->failures++] = failed;
    t->initiators.held_back = true; /* sent in the next round: this may be called within one */
}

/* ---- Progress ---- */

/* Each stream is taken off the list, and put on it again while it has something staged. */
bool initiator_advance(struct tcp *t)
{
    struct initiator *to = t->initiators.staging, *next;
    bool some = false;

    t->initiators.staging = NULL;
    for (; to; to = next) {
        next = to->next_staging;
        to->is_staging = false;
        if (to->failed)
            continue;
        bool landed = landing_advance(t, to);
        bool moved = initiator_advance_backlog(t, to);
        some |= landed | moved;
        bool starved = to->data.left && to->data.of_device;
        if (!to->failed && (!starved || (initiator_parse(t, to) && initiator_receive(t, to))) &&
            (to->landing.first || !backlog_empty(to)))
            pending_stage(t, to);
    }
    return some;
}

/* ---- Unresponsive peers ---- */

/* Whether the peer owes a response, or is to take what is queued. */
static bool initiator_awaits(const struct initiator *to)
{
    return !to->failed && (to->posted != to->completed || !queue_empty(&to->out));
}

/* A peer that was given up may be alive: it is told so, where that needs no waiting. */
static void initiator_send_refusal(struct initiator *to)
{
    unsigned char frame[REQUEST_BYTES];

    if (!to->active || !queue_has_room(&to->out, sizeof frame, 1))
        return;
    request_encode(frame,
                   &(struct request_frame){.kind = FRAME_FAILED, .offset = (uint64_t)to->pe});
    queue_add_copy(&to->out, frame, sizeof frame);
    queue_send(&to->out, to->stream.fd);
}

/* Gives the peer up, unless something from it has arrived that this PE has not received yet. */
static void initiator_give_up(struct tcp *t, struct initiator *to)
{
    char why[160];

    if (!initiator_receive(t, to))
        return;
    if (to->received) {
        initiator_flush(t, to); /* what arrived may release what was held back */
        return;
    }
    socket_explain_timeout(&t->socket, why, sizeof why);
    initiator_send_refusal(to);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, why);
}

/* This PE may have been slow itself: it first receives what has arrived. */
static void initiator_tick_connecting(struct tcp *t, struct initiator *to)
{
    if (to->connected && initiator_receive(t, to) && to->active)
        initiator_flush(t, to);
    if (!to->active && !to->failed && !to->is_idle)
        connect_tick(t, to);
}

/* After a tick in which nothing has passed, the buffers of a stream take no memory. */
static void initiator_shrink(struct initiator *to, bool passed)
{
    if (passed)
        to->is_small = false;
    else if (!to->is_small && queue_empty(&to->out) && to->completed == to->posted &&
             !to->data.left && !receive_buffer_has(&to->in) && backlog_empty(to)) {
        stream_memory_shrink(to, offsetof(struct initiator, out), sizeof *to);
        to->is_small = true;
        to->coalescing.open = false; /* positions begin again */
    }
}

bool initiator_tick(struct tcp *t)
{
    bool any = false;

    for (struct initiator *to = t->initiators.first; to; to = to->next) {
        if (!to->active) {
            if (!to->failed && !to->is_idle)
                initiator_tick_connecting(t, to);
            any |= !to->failed && !to->is_idle;
            continue;
        }
        bool responsive = to->received || !initiator_awaits(to);
        to->silent_ticks = responsive ? 0 : to->silent_ticks + 1;
        initiator_shrink(to, to->received || to->ticked != to->posted);
        to->received = false;
        to->ticked = to->posted;
        unordered_acknowledge(t, to);
        /* the first of these ticks may have followed the request at once */
        if ((to->silent_ticks - 1) * t->tick_ms >= t->socket.peer_seconds * 1000)
            initiator_give_up(t, to);
        any |= initiator_awaits(to) || to->data.unordered || !to->is_small;
    }
    return any;
}

void initiator_cut_off(struct tcp *t, int pe)
{
    struct initiator *to = t->to[pe];

    if (!to || to->failed || to->goodbye)
        return;
    initiator_send_refusal(to);
    initiator_fail(t, to, GSHMEM_ERR_PEER_DEAD, "tcp: it has failed");
}

/* ---- The end ---- */

bool initiator_busy(const struct tcp *t)
{
    for (const struct initiator *to = t->initiators.first; to; to = to->next) {
        if (initiator_awaits(to) || !backlog_empty(to) ||
            (!to->failed && to->unordered_received != to->unordered_acked))
            return true;
    }
    return false;
}

void initiator_say_goodbye(struct tcp *t, int milliseconds)
{
    unsigned char frame[REQUEST_BYTES];

    request_encode(frame, &(struct request_frame){.kind = FRAME_GOODBYE});
    for (struct initiator *to = t->initiators.first; to; to = to->next) {
        if (to->failed || !to->active || !queue_has_room(&to->out, sizeof frame, 1))
            continue;
        queue_add_copy(&to->out, frame, sizeof frame);
        struct pollfd room = {.fd = to->stream.fd, .events = POLLOUT};
        while (queue_send(&to->out, to->stream.fd) && !queue_empty(&to->out)) {
            if (system_poll(&room, 1, milliseconds * (int64_t)CLOCK_MS) != 1)
                break;
        }
    }
}

void initiator_acknowledge(struct tcp *t)
{
    t->initiators.unacknowledged = false;
    for (struct initiator *to = t->initiators.first; to; to = to->next) {
        unordered_acknowledge(t, to);
        t->initiators.unacknowledged |= /* where the queue had no room */
            !to->failed && to->unordered_received != to->unordered_acked;
    }
}

void initiator_close_all(struct tcp *t)
{
    while (t->initiators.first) {
        struct initiator *to = t->initiators.first;
        t->initiators.first = to->next;
        initiator_abort(t, to);
        t->to[to->pe] = NULL;
        stream_memory_free(to, sizeof *to);
    }
    t->initiators.staging = NULL;
}

/* The target's direction: serves the streams that other PEs opened, and watches these PEs. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/sanitizer.h"
#include "transport/tcp/stream_memory.h"
#include "transport/tcp/target.h"

enum {
    LATE_NS =
        20000, /* a response is not delayed for longer, though requests arrive in each round. */
    PROMPT_RESPONSES =
        256, /* If one was, as nobody made progress, so many are not delayed at all */
};

/* ---- Responses that were put off ---- */

void target_judge_delay(struct tcp *t)
{
    struct response_delay *d = &t->targets.delay;

    if (clock_ns() - d->computes_since > LATE_NS)
        d->prompt = PROMPT_RESPONSES;
}

void target_end_call(struct tcp *t)
{
    t->targets.delay.computes_since = clock_ns();
}

/* Within the round that delayed the first response the clock need not be read. */
bool target_delays_long(struct tcp *t)
{
    const struct response_delay *d = &t->targets.delay;

    if (t->poller.round == d->delayed_round)
        return false;
    target_judge_delay(t);
    return clock_ns() - d->delayed_since > LATE_NS;
}

void target_send_delayed(struct tcp *t)
{
    target_judge_delay(t);
    for_another_pe_begin();
    while (t->targets.delay.delayed) {
        struct target *from = t->targets.delay.delayed;
        t->targets.delay.delayed = from->next_delayed;
        from->is_delayed = false;
        if (!target_respond_and_advance(t, from, false))
            target_drop(t, from);
    }
    for_another_pe_end();
}

void target_send_unawaited(struct tcp *t)
{
    for_another_pe_begin();
    while (t->targets.delay.unawaited) {
        struct target *from = t->targets.delay.unawaited;
        t->targets.delay.unawaited = from->next_unawaited;
        from->is_unawaited = false;
        if (!target_respond_and_advance(t, from, false))
            target_drop(t, from);
    }
    for_another_pe_end();
}

/* ---- Progress ---- */

void target_try_keys(struct tcp *t)
{
    t->targets.admission.await_key = false;
    for_another_pe_begin();
    for (struct target *from = t->targets.first, *next; from; from = next) {
        next = from->next;
        if (from->stranger.awaits_key && !from->is_closing &&
            !(target_parse(t, from) && target_send_responses(t, from, false)))
            target_drop(t, from);
    }
    for_another_pe_end();
}

/* Each stream is taken off the list, and put on it again while it has something staged. */
bool target_advance(struct tcp *t)
{
    struct target *from = t->targets.staging, *next;
    int before = t->events;

    t->targets.staging = NULL;
    for_another_pe_begin();
    for (; from; from = next) {
        next = from->next_staging;
        if (!target_serve(t, from, 0))
            continue;
        from->is_staging = false;
        if (deferred_any(from) || (from->data.left && from->data.of_device))
            target_stage(t, from);
    }
    for_another_pe_end();
    return t->events != before;
}

void target_accept(struct tcp *t, int fd)
{
    struct target *from = stream_memory_new(sizeof *from);

    if (!from) {
        t->config.fail(GSHMEM_ERR_MEMORY, "tcp: out of memory for a connection");
        close(fd);
        return;
    }
    from->stream = (struct stream){.ready = target_ready, .fd = fd};
    queue_begin(&from->out);
    from->pe = from->stranger.claimed = -1;
    from->shown_alive = clock_ns();
    socket_tune(&t->socket, fd);
    congestion_suit(&t->socket, fd);
    if (!poller_watch(&t->poller, &from->stream, EPOLLIN)) {
        close(fd);
        stream_memory_free(from, sizeof *from);
        return;
    }
    from->next = t->targets.first;
    t->targets.first = from;
    t->targets.admission.strangers++;
    t->targets.admission.without_hello++;
}

/* ---- Unresponsive peers ---- */

void target_cut_off(struct tcp *t, int pe)
{
    struct target *from = t->from[pe];

    if (!from || from->goodbye)
        return;
    target_send_refusal(from);
    target_drop(t, from);
}

/* Whether the peer was given up: it owes an acknowledgement, and is unresponsive. */
static bool target_give_up(struct tcp *t, struct target *from)
{
    char why[160];

    if ((from->silent_ticks - 1) * t->tick_ms < t->socket.peer_seconds * 1000)
        return false;
    if (!target_ready(t, &from->stream, EPOLLIN))
        return true;
    if (from->received)
        return false; /* something had arrived, which this PE was slow to receive */
    socket_explain_timeout(&t->socket, why, sizeof why);
    t->config.lost(t->config.context, from->pe, GSHMEM_ERR_PEER_DEAD, why);
    target_send_refusal(from);
    target_drop(t, from);
    return true;
}

/* The device has not carried out a request of the peer for as long as a tick. The peer gets a
 * response: this PE is alive. False: the stream is over. */
static bool target_send_alive(struct tcp *t, struct target *from)
{
    if (!queue_empty(&from->out) || !queue_has_room(&from->out, RESPONSE_BYTES, 1))
        return true;
    target_respond_last(from, RESPONSE_DONE, 0);
    if (!target_flush(t, from))
        return false;
    poller_want_out(&t->poller, &from->stream, !queue_empty(&from->out));
    return true;
}

/* After a tick in which nothing has passed, the buffers of a stream take no memory. */
static void target_shrink(struct target *from)
{
    if (!from->received && !from->is_small && from->pe >= 0 && queue_empty(&from->out) &&
        from->responded == from->executed && from->unordered_sent == from->unordered_done &&
        !from->data.left && !receive_buffer_has(&from->in) && !deferred_any(from)) {
        stream_memory_shrink(from, offsetof(struct target, out), sizeof *from);
        from->is_small = true;
    }
}

bool target_tick(struct tcp *t)
{
    bool any = false;

    for (struct target *from = t->targets.first, *next; from; from = next) {
        next = from->next;
        if (deferred_updating(from)) {
            any = true;
            if (!target_send_alive(t, from)) {
                target_drop(t, from);
                continue;
            }
        }
        bool owes = from->unordered_sent != from->unordered_done;
        from->silent_ticks = from->received || !owes ? 0 : from->silent_ticks + 1;
        target_shrink(from);
        any |= from->received; /* it may be small at the next tick */
        from->received = false;
        if (owes && !target_give_up(t, from))
            any |= from->unordered_sent != from->unordered_done;
    }
    return any;
}

/* ---- The end ---- */

bool target_busy(const struct tcp *t)
{
    for (const struct target *from = t->targets.first; from; from = from->next) {
        if (from->pe >= 0 && (!queue_empty(&from->out) || from->responded != from->executed ||
                              from->unordered_sent != from->unordered_done || deferred_any(from)))
            return true;
    }
    return false;
}

void target_close_all(struct tcp *t)
{
    while (t->targets.first) {
        struct target *from = t->targets.first;
        if (from->pe >= 0 && target_has_room(from)) {
            target_respond_last(from, RESPONSE_GOODBYE, 0);
            queue_send(&from->out, from->stream.fd);
        }
        unordered_complete(t, from, from->unordered_sent, GSHMEM_ERR_ABORTED);
        target_drop(t, from);
    }
}

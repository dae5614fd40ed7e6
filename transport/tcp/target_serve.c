/* Serves a stream: receives and carries out requests, and decides when responses are sent.
 *
 * One response acknowledges all requests up to a number. A round of progress sends one behind what
 * it has carried out, but for two cases:
 *   1. Nobody waits for it (TRANSPORT_UNASKED): it goes with the next one, or when nothing has
 *      arrived for a while (may_wait).
 *   2. The last request stored a signal, or a variable while a thread of this PE waits for one:
 *      the response is delayed until a round in which nothing arrives (may_delay).
 * Invariant: a stream with responded < executed is in the list of its case, or its queue is full
 * and the poller reports when the socket takes more. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/epoll.h>

#include "runtime/base/clock.h"
#include "runtime/base/sanitizer.h"
#include "transport/tcp/target.h"

enum {
    DELAYED_MOST = 32,    /* requests without a response while it is delayed, */
    UNAWAITED_MOST = 128, /* and while nobody waits for it */
};

/* While the data of a put arrives, the peer gets a response now and then: this PE is alive. */
static void target_show_alive(struct tcp *t, struct target *from)
{
    uint64_t now;

    if (!from->data.left ||
        (now = clock_ns()) - from->shown_alive < (uint64_t)t->tick_ms * 1000000 ||
        !queue_has_room(&from->out, RESPONSE_BYTES, 1))
        return;
    target_respond_last(from, RESPONSE_DONE, 0);
    from->shown_alive = now;
}

/* A thread that waits for the signal, or for the variable, goes on before the response is sent
 * (docs/decisions/0010). If it goes on to compute, the response is late, as nobody makes progress:
 * then the next responses are prompt. */
static bool may_delay(struct tcp *t, struct target *from)
{
    if (from->executed - from->responded >= DELAYED_MOST)
        return false;
    if (!from->signalled && !(from->updated && t->config.waits_for_update &&
                              t->config.waits_for_update(t->config.context)))
        return false;
    if (t->targets.delay.prompt) {
        t->targets.delay.prompt--;
        return false;
    }
    if (!from->is_delayed) {
        from->is_delayed = true;
        from->next_delayed = t->targets.delay.delayed;
        if (!t->targets.delay.delayed) {
            t->targets.delay.delayed_since = t->targets.delay.computes_since = clock_ns();
            t->targets.delay.delayed_round = t->poller.round;
        }
        t->targets.delay.delayed = from;
    }
    return true;
}

static bool may_wait(struct tcp *t, struct target *from)
{
    if (from->responded < from->awaited || from->executed - from->responded >= UNAWAITED_MOST)
        return false;
    if (!from->is_unawaited) {
        from->is_unawaited = true;
        tcp_put_off(t);
        from->next_unawaited = t->targets.delay.unawaited;
        t->targets.delay.unawaited = from;
        tcp_start_ticking(t); /* a tick sends it, should nobody make progress for long */
    }
    return true;
}

/* The system takes no responses any more. What the peer sent before is received first: it may have
 * left in good order. */
static bool target_send_failed(struct tcp *t, struct target *from, int error)
{
    return target_receive(t, from) && target_ended(t, from, error);
}

bool target_flush(struct tcp *t, struct target *from)
{
    return queue_send(&from->out, from->stream.fd) || target_send_failed(t, from, errno);
}

bool target_send_responses(struct tcp *t, struct target *from, bool may_put_off)
{
    if (from->responded != from->executed &&
        !(may_put_off && (may_wait(t, from) || may_delay(t, from))) &&
        queue_has_room(&from->out, RESPONSE_BYTES, 1))
        target_respond_last(from, RESPONSE_DONE, 0);
    if (!target_flush(t, from))
        return false;
    poller_want_out(&t->poller, &from->stream, !queue_empty(&from->out));
    return true;
}

/* Sends responses, and takes the requests in the buffer whose responses had no room. */
static bool respond_and_parse(struct tcp *t, struct target *from, bool may_put_off)
{
    bool fine = target_send_responses(t, from, may_put_off);

    for (size_t left, before = SIZE_MAX;
         fine && queue_empty(&from->out) && from->pe >= 0 && !from->data.left &&
         (left = receive_buffer_has(&from->in)) >= target_takes_least(from) && left < before;
         before = left)
        fine = target_parse(t, from) && target_send_responses(t, from, may_put_off);
    return fine;
}

/* Requests that are deferred may wait for room in the queue, too. Whoever empties the queue calls
 * this: no event follows if the socket has taken everything at once. */
bool target_respond_and_advance(struct tcp *t, struct target *from, bool may_put_off)
{
    bool fine = respond_and_parse(t, from, may_put_off);

    while (fine && deferred_any(from) && queue_empty(&from->out) && deferred_advance(t, from))
        fine = respond_and_parse(t, from, may_put_off);
    return fine;
}

void target_send_refusal(struct target *from)
{
    if (!target_has_room(from))
        return;
    target_respond(from, RESPONSE_REFUSED, 0, 0);
    queue_send(&from->out, from->stream.fd);
}

/* ---- Serving ---- */

/* What has taken effect made room for more. */
static bool target_advance_one(struct tcp *t, struct target *from)
{
    do {
        if (!target_parse(t, from))
            return false;
    } while (deferred_advance(t, from));
    return true;
}

bool target_serve(struct tcp *t, struct target *from, uint32_t events)
{
    uint64_t before = from->executed;
    bool fine = true;

    if (from->is_closing)
        return true;
    if (events & EPOLLOUT && (fine = target_flush(t, from)))
        fine = target_parse(t, from); /* there may be room for responses now */
    if (fine && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        fine = target_receive(t, from);
    if (fine && from->is_staging)
        fine = target_advance_one(t, from);
    if (fine)
        target_show_alive(t, from);
    if (fine)
        fine = target_respond_and_advance(t, from, true);
    if (from->executed != before)
        poller_note_arrival(&t->poller, &from->stream);
    if (!fine)
        target_drop(t, from);
    return fine;
}

bool target_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    for_another_pe_begin();
    bool fine = target_serve(t, (struct target *)s, events);
    for_another_pe_end();
    return fine;
}

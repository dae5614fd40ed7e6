/* What arrives on a stream that this PE opened: responses, and unordered puts of the peer. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/sanitizer.h"
#include "transport/tcp/initiator.h"

/* The peer has carried out all requests up to `number`. None of them may be one whose response
 * brings data or a value: these have a response of their own. */
static bool complete_puts(struct tcp *t, struct initiator *to, uint64_t number)
{
    uint64_t plain = to->responded;

    while (plain < number && pending_of(to, plain + 1)->due == RESPONSE_DONE)
        plain++;
    if (plain > to->responded)
        pending_respond(t, to, plain);
    if (plain < number)
        return initiator_refuse(t, to, "no response to a request that needs one");
    return true;
}

static bool take_data_response(struct tcp *t, struct initiator *to, const struct response_frame *a)
{
    struct pending *w = pending_of(to, a->number);

    if (w->due != RESPONSE_DATA || a->value > w->bytes || (a->value == 0 && w->bytes))
        return initiator_refuse(t, to, "data of a size that was not requested");
    if (a->value == 0) {
        pending_respond(t, to, a->number);
        return true;
    }
    to->data.at = w->local;
    to->data.left = a->value;
    to->data.number = a->number;
    to->data.of_device = w->of_device;
    w->local = (char *)w->local + a->value;
    w->bytes -= a->value;
    return true;
}

static bool initiator_take_failure(struct tcp *t, struct initiator *to,
                                   const struct response_frame *a)
{
    if (a->value < GSHMEM_ERR_ARGUMENT || a->value > GSHMEM_ERR_SYSTEM)
        return initiator_refuse(t, to, "a failure that is none of this version's");
    pending_of(to, a->number)->failure = (uint8_t)a->value;
    pending_respond(t, to, a->number);
    return true;
}

static bool take_unordered(struct tcp *t, struct initiator *to)
{
    struct request_frame f;

    if (!request_decode(receive_buffer_next(&to->in), &f) || !unordered_begin(t, to, &f))
        return initiator_refuse(t, to, "a put that may not come this way");
    to->in.first += REQUEST_BYTES;
    return true;
}

static bool take_response(struct tcp *t, struct initiator *to)
{
    struct response_frame a;

    if (!response_decode(receive_buffer_next(&to->in), &a))
        return initiator_refuse(t, to, "a response that is none of this version's");
    to->in.first += RESPONSE_BYTES;
    if (a.kind == RESPONSE_GOODBYE)
        return to->goodbye = true;
    if (a.kind == RESPONSE_REFUSED)
        return initiator_refused(t, to);
    if (a.number <= to->responded || a.number > to->posted) {
        /* DONE may repeat what another response has acknowledged */
        return a.kind == RESPONSE_DONE && a.number == to->responded
                   ? true
                   : initiator_refuse(t, to, "a response to a request that was not made");
    }
    if (a.kind == RESPONSE_DONE)
        return complete_puts(t, to, a.number);
    if (!complete_puts(t, to, a.number - 1))
        return false;
    if (a.kind == RESPONSE_DATA)
        return take_data_response(t, to, &a);
    if (a.kind == RESPONSE_FAILED)
        return initiator_take_failure(t, to, &a);
    if (a.kind == RESPONSE_FETCHED) {
        to->fetched = a.value;
        return a.value || initiator_refuse(t, to, "a response that brings nothing");
    }
    const struct pending *w = pending_of(to, a.number);
    if (w->due == RESPONSE_DATA || w->due == RESPONSE_FETCHED)
        return initiator_refuse(t, to, "a value where data was requested");
    if (w->due == RESPONSE_VALUE)
        memcpy(w->local, &a.value, 8);
    pending_respond(t, to, a.number);
    return true;
}

/* Stores what has been fetched for the requests behind `responded`, as far as it has arrived, and
 * completes these requests. *taken: how many bytes. False: the stream has ended. */
static bool initiator_take_fetched(struct tcp *t, struct initiator *to, size_t have, size_t *taken)
{
    const unsigned char *next = receive_buffer_next(&to->in);
    uint64_t number = to->responded;
    bool sound = true;

    while (to->fetched) {
        const struct pending *w = pending_of(to, number + 1);
        const size_t bytes = w->bytes;
        sound = number < to->posted && w->due == RESPONSE_FETCHED && bytes <= to->fetched;
        if (!sound || bytes > have)
            break;
        if (bytes == 8)
            memcpy(w->local, next, 8);
        else
            memcpy(w->local, next, bytes);
        next += bytes;
        have -= bytes;
        to->fetched -= bytes;
        number++;
    }
    *taken = (size_t)(next - receive_buffer_next(&to->in));
    to->in.first += *taken;
    if (number != to->responded)
        pending_respond(t, to, number);
    return sound || initiator_refuse(t, to, "more, or less, than was to be fetched");
}

static void initiator_data_arrived(struct tcp *t, struct initiator *to, size_t bytes)
{
    to->data.at += bytes;
    to->data.left -= bytes;
    if (to->data.left == 0 && to->data.unordered)
        unordered_apply(t, to);
    else if (to->data.left == 0 && pending_of(to, to->data.number)->bytes == 0)
        pending_respond(t, to, to->data.number);
}

/* An unordered put is stored on behalf of the peer, a get's data on behalf of this thread. */
static void begin_data(const struct initiator *to)
{
    if (to->data.unordered)
        for_another_pe_begin();
}

static void end_data(const struct initiator *to)
{
    if (to->data.unordered)
        for_another_pe_end();
}

/* Moves data from the receive buffer to its place. Returns how much: 0 if there is no staging
 * buffer. */
static size_t initiator_take_data(struct tcp *t, struct initiator *to, size_t have)
{
    size_t part = have < to->data.left ? have : (size_t)to->data.left;
    struct staged *s = NULL;

    if (to->data.of_device) {
        if (!(s = landing_buffer(t, to)))
            return 0;
        part = part < s->room ? part : s->room;
    }
    begin_data(to);
    memcpy(s ? s->at : to->data.at, receive_buffer_next(&to->in), part);
    end_data(to);
    to->in.first += part;
    if (s)
        landing_push(to, s, part);
    initiator_data_arrived(t, to, part);
    return part;
}

static bool is_unordered(const struct initiator *to)
{
    return *receive_buffer_next(&to->in) == FRAME_PUT;
}

static size_t least_frame(const struct initiator *to)
{
    return to->in.end > to->in.first && is_unordered(to) ? REQUEST_BYTES : RESPONSE_BYTES;
}

static bool initiator_take_frame(struct tcp *t, struct initiator *to)
{
    return is_unordered(to) ? take_unordered(t, to) : take_response(t, to);
}

bool initiator_parse(struct tcp *t, struct initiator *to)
{
    for (;;) {
        size_t have = receive_buffer_has(&to->in), taken = 0;
        if (!to->active && have >= (to->proven ? RESPONSE_BYTES : CHALLENGE_BYTES)) {
            if (!connect_take_greeting(t, to, have))
                return false;
        } else if (to->data.left && have && initiator_take_data(t, to, have)) {
            continue;
        } else if (to->fetched && have) {
            if (!initiator_take_fetched(t, to, have, &taken))
                return false;
            if (!taken) {
                receive_buffer_compact(&to->in);
                return true;
            }
        } else if (to->active && !to->data.left && have >= least_frame(to)) {
            if (!initiator_take_frame(t, to))
                return false;
        } else {
            receive_buffer_compact(&to->in);
            return true;
        }
    }
}

/* Receives the rest of the data that is due straight to `place`, and frames into the buffer.
 * Returns what recv returns; *wanted is how much there was room for. */
static ssize_t receive_some(struct initiator *to, char *place, size_t straight, size_t *wanted)
{
    size_t room = RECEIVE_BUFFER_BYTES - to->in.end;

    if (straight < to->data.left)
        room = 0; /* what follows is still data */
    *wanted = straight + room;
    begin_data(to);
    ssize_t n = socket_receive(to->stream.fd, place, straight, to->in.bytes + to->in.end, room);
    end_data(to);
    return n;
}

bool initiator_receive(struct tcp *t, struct initiator *to)
{
    for (;;) {
        /* Where data is due the buffer is empty: the rest of it goes straight to its place. */
        size_t straight = (size_t)to->data.left, wanted;
        struct staged *s = NULL;
        if (to->data.left && to->data.of_device) {
            if (to->in.end || !(s = landing_buffer(t, to)))
                return true; /* until a staging buffer is given back */
            straight = straight < s->room ? straight : s->room;
        }
        ssize_t n = receive_some(to, s ? s->at : to->data.at, straight, &wanted);
        size_t placed = n <= 0 ? 0 : (size_t)n < straight ? (size_t)n : straight;

        if (s && placed)
            landing_push(to, s, placed);
        else if (s)
            staging_give(s);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (n <= 0) {
            connect_ended(t, to, n < 0 ? errno : 0);
            return false;
        }
        t->events++;
        to->received = true;
        if (placed)
            initiator_data_arrived(t, to, placed);
        to->in.end += (size_t)n - placed;
        if (!initiator_parse(t, to))
            return false;
        if ((size_t)n < wanted)
            return true; /* the socket is empty: this saves a call that would say so */
    }
}

#define _GNU_SOURCE
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events.h"
#include "explore.h"
#include "fiber.h"
#include "object.h"
#include "record.h"
#include "stream.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/greeting.h"

enum {
    PARTITIONS = 8,
    RETRANSMIT_NS = 1000 * MS,    /* the longest time between two attempts, after an outage */
    GREETING_BYTES = CHALLENGE_BYTES + RESPONSE_BYTES, /* from who has been connected to */
    WHOLE = 512, /* bytes that a send takes at once where nothing is on the way */
    CONNECT_NS_MOST = 2000000000, /* a connection that nobody answers is tried again after this */
};

struct weather weather;

static struct {
    struct chance chance;
    struct stream *streams;
    uint64_t n_streams;
    struct {
        uint64_t from, to, until;
    } partition[PARTITIONS];
} network;

void network_begin(uint64_t seed)
{
    network.chance = chance_begin(seed, 3);
}

bool network_is_opening(const struct pe *to)
{
    for (const struct stream *s = network.streams; s; s = s->next) {
        if (s->side[1].pe->node == to->node && !s->side[0].pe->dead && !s->side[0].closed &&
            s->side[0].delivered < GREETING_BYTES)
            return true;
    }
    return false;
}

uint64_t network_connections(void)
{
    return network.n_streams;
}

/* ---- Ways ---- */

/* When the way from one to the other is open again; 0: it is. */
static uint64_t closed_until(const struct pe *from, const struct pe *to)
{
    uint64_t until = 0;

    if (from->node == to->node)
        return from->machine_dead ? NEVER : 0;
    for (int i = 0; i < PARTITIONS; i++) {
        if (network.partition[i].until > world.now &&
            network.partition[i].from >> from->node % 64 & 1 &&
            network.partition[i].to >> to->node % 64 & 1 && network.partition[i].until > until)
            until = network.partition[i].until;
    }
    return from->machine_dead || to->machine_dead ? NEVER : until;
}

static uint64_t latency(const struct stream *s, size_t bytes)
{
    if (s->local)
        return 5 * US;
    uint64_t ns = weather.latency_ns + chance_below(&network.chance, weather.jitter_ns + 1) +
                  bytes * weather.byte_ps / 1000;

    if (chance_one_in(&network.chance, weather.slow))
        ns += chance_below(&network.chance, weather.slow_ns);
    if (weather.clogged_until > fiber_time())
        ns += chance_below(&network.chance, weather.clog_ns);
    return ns;
}

static uint64_t after_outage(uint64_t until)
{
    return until == NEVER ? NEVER : until + chance_below(&network.chance, RETRANSMIT_NS);
}

/* ---- Streams ---- */

void stream_hold(struct stream *s)
{
    s->held++;
}

void stream_release(struct stream *s)
{
    if (--s->held)
        return;
    for (int i = 0; i < 2; i++) {
        for (struct piece *p; (p = s->side[i].first);) {
            s->side[i].first = p->next;
            free(p);
        }
    }
    if (s->before)
        s->before->next = s->next;
    else
        network.streams = s->next;
    if (s->next)
        s->next->before = s->before;
    free(s);
}

static void later(uint64_t at, void (*fire)(void *, uint64_t), struct stream *s, uint64_t number)
{
    if (at == NEVER)
        return;
    stream_hold(s);
    events_add(at, fire, s, number);
}

struct stream *stream_new(struct pe *from, struct pe *to)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s) {
        perror("simulation: streams");
        exit(2);
    }
    s->side[0].pe = from;
    s->side[1].pe = to;
    s->number = ++network.n_streams;
    s->next = network.streams;
    if (s->next)
        s->next->before = s;
    network.streams = s;
    return s;
}

static void side_changed(struct side *side)
{
    if (side->socket && !side->pe->dead)
        object_changed(side->socket->object);
}

void stream_fail(struct stream *s, int which, int error)
{
    struct side *side = &s->side[which];

    if (side->error || side->closed)
        return;
    record("stream %llu of PE %d with PE %d: %s", (unsigned long long)s->number, side->pe->number,
           s->side[!which].pe->number, strerror(error));
    side->error = error;
    if (side->socket)
        side->socket->connecting = false;
    side_changed(side);
}

/* number: the side that waits, and what it had sent. */
static void user_timeout(void *object, uint64_t number)
{
    struct stream *s = object;
    const int from = number & 1;

    if (s->side[!from].heard_of < number >> 1 && !s->side[from].closed)
        stream_fail(s, from, ETIMEDOUT);
    stream_release(s);
}

/* What this side has sent so far is to be acknowledged in time. */
static void watch_user_timeout(struct stream *s, int from)
{
    const uint64_t ms = s->side[from].user_timeout_ms ? s->side[from].user_timeout_ms : 120000;

    later(world.now + ms * MS, user_timeout, s, s->side[!from].sent << 1 | (unsigned)from);
}

static void acknowledge_again(void *object, uint64_t to);

/* The other side's system hears what has been delivered, unless its way back is closed. */
static void acknowledge(struct stream *s, uint64_t to)
{
    struct side *side = &s->side[to];
    const uint64_t until = closed_until(side->pe, s->side[!to].pe);

    if (!until) {
        side->heard_of = side->delivered;
        return;
    }
    watch_user_timeout(s, !to);
    later(after_outage(until), acknowledge_again, s, to);
}

static void acknowledge_again(void *object, uint64_t to)
{
    acknowledge(object, to);
    stream_release(object);
}

static void arrive(void *object, uint64_t number);

static void arrive_at(struct stream *s, int to, uint64_t at)
{
    later(at, arrive, s, (uint64_t)to);
}

/* The next piece for that side has arrived, if nothing is in its way. */
static void arrive(void *object, uint64_t number)
{
    struct stream *s = object;
    const int to = (int)number;
    struct side *side = &s->side[to], *other = &s->side[!to];
    struct piece *p = side->under_way;
    const uint64_t until = closed_until(other->pe, side->pe);

    if (!p) {
        stream_release(s);
        return;
    }
    if (until) {
        watch_user_timeout(s, !to);
        p->at = after_outage(until);
        arrive_at(s, to, p->at);
        stream_release(s);
        return;
    }
    explore_arrival(side->pe, p->step);
    explore_touch(side->pe, side->pe->object, true);
    if (side->closed)
        explore_touch(other->pe, other->pe->object, true);
    side->under_way = p->next;
    record("PE %d gets %s %zu from PE %d, stream %llu", side->pe->number,
           p->reset ? "a reset" : p->end ? "the end" : "bytes", p->bytes, other->pe->number,
           (unsigned long long)s->number);
    if (p->reset)
        stream_fail(s, to, ECONNRESET);
    side->ended |= p->end;
    side->arrived += p->bytes;
    if (side->closed && p->bytes && !other->closed)
        stream_fail(s, !to, side->pe->machine_dead ? ETIMEDOUT : ECONNRESET);
    side->delivered += p->bytes;
    acknowledge(s, (uint64_t)to);
    side_changed(side);
    if (side->under_way)
        arrive_at(s, to, side->under_way->at > world.now ? side->under_way->at : world.now);
    stream_release(s);
}

struct stream *stream_of_event(void (*fire)(void *, uint64_t), void *object, uint64_t number,
                               int *side)
{
    *side = (int)number;
    return fire == arrive ? object : NULL;
}

static void add_piece(struct stream *s, int from, struct piece *p, uint64_t at)
{
    struct side *to = &s->side[!from];

    p->step = explore_step;
    p->at = at > to->last_at ? at : to->last_at;
    to->last_at = p->at;
    if (to->last)
        to->last->next = p;
    else
        to->first = p;
    to->last = p;
    if (!to->under_way) {
        to->under_way = p;
        arrive_at(s, !from, p->at);
    }
}

static struct piece *new_piece(const void *data, size_t bytes)
{
    struct piece *p = malloc(sizeof *p + bytes);

    if (!p) {
        perror("simulation: bytes under way");
        exit(2);
    }
    *p = (struct piece){.bytes = bytes};
    if (bytes)
        memcpy(p->data, data, bytes);
    return p;
}

size_t stream_send(struct stream *s, int from, const void *data, size_t bytes)
{
    struct side *to = &s->side[!from];
    size_t n = to->used < weather.capacity ? weather.capacity - to->used : 0;

    if (n > bytes)
        n = bytes;
    /* Linux takes a small piece whole where nothing is on the way. */
    if (n > 1 && !s->local && (to->used || n > WHOLE) &&
        chance_one_in(&network.chance, weather.partial))
        n = 1 + chance_below(&network.chance, n);
    if (!n)
        return 0;
    to->used += n;
    to->sent += n;
    s->side[from].pe->bytes += n;
    s->side[from].pe->messages++;
    add_piece(s, from, new_piece(data, n), fiber_time() + latency(s, n));
    return n;
}

/* The other side hears that there is room. */
static void room(void *object, uint64_t number)
{
    struct stream *s = object;
    struct side *side = &s->side[number];
    const uint64_t until = closed_until(side->pe, s->side[!number].pe);

    if (until && until != NEVER) {
        later(after_outage(until), room, s, number);
    } else if (!until) {
        side->used -= side->freed;
        side->freed = 0;
        side_changed(&s->side[!number]);
    }
    stream_release(s);
}

static void drop_read(struct side *side)
{
    while (side->first && side->first != side->under_way && side->first->read == side->first->bytes) {
        struct piece *p = side->first;
        if (!(side->first = p->next))
            side->last = NULL;
        free(p);
    }
}

size_t stream_read(struct stream *s, int which, void *data, size_t bytes, bool peek)
{
    struct side *side = &s->side[which];
    size_t n = bytes < side->arrived ? bytes : side->arrived, done = 0;

    if (n > 1 && !peek && !s->local && chance_one_in(&network.chance, weather.partial))
        n = 1 + chance_below(&network.chance, n);
    for (struct piece *p = side->first; p != side->under_way && done < n; p = p->next) {
        const size_t left = p->bytes - p->read, part = left < n - done ? left : n - done;
        memcpy((char *)data + done, p->data + p->read, part);
        done += part;
        if (!peek)
            p->read += part;
    }
    if (peek)
        return done;
    side->arrived -= done;
    if (!side->freed)
        later(fiber_time() + weather.latency_ns, room, s, (uint64_t)which);
    side->freed += done;
    drop_read(side);
    return done;
}

void stream_pass(struct stream *s, int from, int fd)
{
    s->side[!from].passed = dup(fd) + 1;
}

int stream_passed(struct stream *s, int to)
{
    const int fd = s->side[to].passed - 1;

    s->side[to].passed = 0;
    return fd;
}

void stream_shut(struct stream *s, int from)
{
    struct side *side = &s->side[from];
    struct piece *p;

    if (side->closed)
        return;
    side->closed = true;
    side->socket = NULL;
    if (!s->established || side->error || side->pe->machine_dead)
        return;
    p = new_piece(NULL, 0);
    p->reset = side->arrived > 0;
    p->end = true;
    add_piece(s, from, p, fiber_time() + latency(s, 0));
}

/* ---- Connecting ---- */

static void connected(void *object, uint64_t number)
{
    struct stream *s = object;
    struct side *side = &s->side[0];

    if (number && !side->closed && !side->error) {
        stream_fail(s, 0, (int)number);
    } else if (!number && side->socket && !side->error) {
        record("PE %d has connected to PE %d, stream %llu", side->pe->number,
               s->side[1].pe->number, (unsigned long long)s->number);
        side->socket->connecting = false;
        side_changed(side);
    }
    stream_release(s);
}

static void ask(void *object, uint64_t port)
{
    struct stream *s = object;
    struct pe *from = s->side[0].pe, *to = s->side[1].pe;
    uint64_t until = closed_until(from, to);
    struct socket *listener = until ? NULL : socket_find_listener(to, (uint16_t)port);

    if (!until)
        until = closed_until(to, from);
    if (s->side[0].closed || s->side[0].error) {
        stream_release(s);
        return;
    }
    if (until || (listener && listener->queued == 64)) {
        const uint64_t again = after_outage(until ? until : world.now);
        later(again < world.now + CONNECT_NS_MOST ? again : world.now + CONNECT_NS_MOST, ask, s,
              port);
    } else if (!listener) {
        later(world.now + latency(s, 0), connected, s, ECONNREFUSED);
    } else {
        s->established = true;
        s->side[1].pe = listener->object->pe;
        stream_hold(s);
        listener->queue[listener->queued++] = s;
        later(world.now + latency(s, 0), connected, s, 0);
        object_changed(listener->object);
    }
    stream_release(s);
}

static void connect_timeout(void *object, uint64_t unused)
{
    struct stream *s = object;

    (void)unused;
    if (!s->established && !s->side[0].closed)
        stream_fail(s, 0, ETIMEDOUT);
    stream_release(s);
}

int stream_connect_here(struct stream *s, uint16_t port)
{
    struct socket *listener = socket_find_listener(s->side[0].pe, port);

    if (!listener || listener->queued == 64)
        return ECONNREFUSED;
    s->established = true;
    s->side[1].pe = listener->object->pe;
    stream_hold(s);
    listener->queue[listener->queued++] = s;
    object_changed(listener->object);
    return 0;
}

void stream_connect(struct stream *s, uint16_t port)
{
    const uint64_t ms = s->side[0].user_timeout_ms ? s->side[0].user_timeout_ms : 120000;

    later(fiber_time() + latency(s, 0), ask, s, port);
    later(fiber_time() + ms * MS, connect_timeout, s, 0);
}

/* ---- What happens to it ---- */

static void keepalive(void *object, uint64_t which)
{
    struct stream *s = object;
    struct side *side = &s->side[which];

    if (side->probed && (closed_until(side->pe, s->side[!which].pe) ||
                         closed_until(s->side[!which].pe, side->pe)))
        stream_fail(s, (int)which, ETIMEDOUT);
    stream_release(s);
}

/* As Linux does: TCP_USER_TIMEOUT replaces the number of probes, and is looked at with each. */
static uint64_t probe_limit(const struct side *side)
{
    uint64_t s = side->idle_s + (uint64_t)side->every_s * side->probes;

    if (side->user_timeout_ms) {
        s = side->idle_s + side->every_s;
        while (s * 1000 < side->user_timeout_ms)
            s += side->every_s;
    }
    return s * SECOND;
}

/* Streams that a partition or the loss of a machine separates are probed by their systems. */
static void watch_probes(uint64_t until)
{
    for (struct stream *s = network.streams; s; s = s->next) {
        for (int i = 0; i < 2 && s->established; i++) {
            const struct side *side = &s->side[i];
            const uint64_t limit = world.now + probe_limit(side);
            if (side->probed && !side->closed && limit < until)
                later(limit, keepalive, s, (uint64_t)i);
        }
    }
}

void network_part(uint64_t from_side, uint64_t to_side, bool both, uint64_t until)
{
    for (int i = 0, left = both ? 2 : 1; i < PARTITIONS && left; i++) {
        if (network.partition[i].until > world.now)
            continue;
        network.partition[i].from = left == 2 ? to_side : from_side;
        network.partition[i].to = left == 2 ? from_side : to_side;
        network.partition[i].until = until;
        left--;
    }
    watch_probes(until);
}

bool network_cut(struct pe *a, struct pe *b)
{
    struct stream *chosen = NULL;
    uint64_t n = 0;

    for (struct stream *s = network.streams; s; s = s->next) {
        if (s->established && !s->side[0].closed && !s->side[1].closed &&
            ((s->side[0].pe == a && s->side[1].pe == b) ||
             (s->side[0].pe == b && s->side[1].pe == a)) &&
            chance_below(&network.chance, ++n) == 0)
            chosen = s;
    }
    for (int i = 0; i < 2 && chosen; i++)
        stream_fail(chosen, i, ECONNRESET);
    return chosen != NULL;
}

void network_process_ended(struct pe *pe)
{
    for (int i = 0; i < pe->objects; i++) {
        if (pe->object[i])
            object_close(pe->object[i]);
    }
    if (pe->machine_dead)
        watch_probes(NEVER);
}

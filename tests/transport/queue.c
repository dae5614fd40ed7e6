/* The queue of bytes on their way out of a socket: everything comes out once and in order, however
 * little the socket takes at a time, wherever the ring wraps, and however full the queue was. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

#include "check.h"
#include "transport/tcp/queue.h"

enum { STREAM = 8 << 20 };

static struct queue q;
static int out, in; /* what it sends into, and the other end */
static unsigned char *stream;
static size_t added, arrived, last_reference, last_left;

/* Bytes that tell their place in the stream. */
static void make_stream(void)
{
    uint64_t x = 1;

    stream = malloc(STREAM);
    CHECK(stream);
    for (size_t i = 0; i < STREAM; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        stream[i] = (unsigned char)(x >> 33);
    }
}

static void begin(int room)
{
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    out = pair[0];
    in = pair[1];
    CHECK(setsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    memset(&q, 0, sizeof q);
    added = arrived = last_reference = last_left = 0;
}

static void end(void)
{
    close(out);
    close(in);
}

/* A reference that ended at that place of the stream has been sent: in turn, and all of it. */
static void left(void *tag)
{
    size_t end = (uintptr_t)tag;

    CHECK(end > last_left && end <= added - q.bytes);
    last_left = end;
}

static void add(size_t bytes, int copied)
{
    CHECK(added + bytes <= STREAM);
    if (copied) {
        queue_add_copy(&q, stream + added, bytes);
    } else {
        queue_add_reference(&q, stream + added, bytes, left, (void *)(added + bytes));
        last_reference = bytes ? added + bytes : last_reference;
    }
    added += bytes;
}

/* Takes at most so many bytes out of the other end; how many there were. */
static size_t take(size_t most)
{
    static unsigned char got[1 << 20];
    ssize_t n = recv(in, got, most < sizeof got ? most : sizeof got, MSG_DONTWAIT);

    if (n <= 0)
        return 0;
    CHECK(arrived + (size_t)n <= added);
    CHECK(memcmp(got, stream + arrived, (size_t)n) == 0);
    arrived += (size_t)n;
    return (size_t)n;
}

static void send_some(void)
{
    size_t before = q.bytes;

    CHECK(queue_send(&q, out));
    CHECK(q.bytes <= before);
    CHECK_EQ(queue_empty(&q), q.bytes == 0);
}

static void drain(size_t at_a_time)
{
    do
        send_some();
    while (take(at_a_time) || q.bytes);
    CHECK_EQ(arrived, added);
    CHECK_EQ(last_left, last_reference);
    CHECK(queue_empty(&q));
}

/* ---- Tests ---- */

static void nothing(void)
{
    begin(1 << 16);
    send_some();
    add(0, 1);
    add(0, 0);
    CHECK(queue_empty(&q));
    send_some();
    end();
}

/* One that is larger than what any socket takes, between small ones, a few bytes at a time. */
static void partial_writes(void)
{
    begin(4096);
    add(10, 1);
    add(3 << 20, 0);
    add(1, 1);
    add(30001, 1);
    add(7, 0);
    drain(777);
    end();
}

/* Frames of a size that does not divide the ring, many times around it. */
static void wraps(void)
{
    begin(1 << 16);
    for (size_t i = 0; i < 20 * QUEUE_RING / 4093; i++) {
        while (!queue_has_room(&q, 4093, 0)) {
            send_some();
            take(5000);
        }
        add(4093, 1);
        CHECK_EQ(q.end - q.first, 1); /* neighbours are one piece */
    }
    drain(5000);
    end();
}

/* A piece that wraps where one message has room for but one of its two parts. */
static void wraps_at_the_end_of_a_message(void)
{
    begin(1 << 16);
    for (size_t references = 60; references < 66; references++) {
        add(QUEUE_RING - 10 - q.ring_end % QUEUE_RING, 1);
        drain(STREAM);
        for (size_t i = 0; i < references; i++)
            add(1, 0);
        add(20, 1);
        drain(STREAM);
    }
    end();
}

static void full_of_bytes(void)
{
    begin(1 << 16);
    add(100, 1);
    drain(100); /* the ring's start is now elsewhere */
    CHECK(queue_has_room(&q, QUEUE_RING, 0));
    CHECK(!queue_has_room(&q, QUEUE_RING + 1, 0));
    add(QUEUE_RING - 8, 1);
    CHECK(queue_has_room(&q, 8, 0));
    CHECK(!queue_has_room(&q, 9, 0));
    add(8, 1);
    CHECK(queue_has_room(&q, 0, 1));
    CHECK(!queue_has_room(&q, 1, 0));
    drain(STREAM);
    CHECK(queue_has_room(&q, QUEUE_RING, QUEUE_PIECES - 1));
    end();
}

static void full_of_pieces(void)
{
    uint32_t pieces = 0;

    begin(1 << 16);
    while (queue_has_room(&q, 3, 1)) { /* what a post asks for: a copy and a reference */
        add(3, 1);
        add(5, 0);
        pieces += 2;
        CHECK_EQ(q.end - q.first, pieces);
    }
    CHECK(pieces <= QUEUE_PIECES && pieces >= QUEUE_PIECES - 2);
    drain(STREAM);
    end();
}

/* Any mixture, the counters of the pieces about to overflow. */
static void mixtures(void)
{
    static const size_t size[] = {1, 24, 40, 64, 4096, 5000, 40000};
    uint64_t x = 88172645463325252u;

    begin(10000);
    q.first = q.end = (uint32_t)-100;
    while (added + 50000 < STREAM) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        size_t bytes = size[x % 7];
        if (queue_has_room(&q, bytes, 1))
            add(bytes, bytes <= 4096 || x >> 40 & 1);
        if (x >> 50 & 1)
            send_some();
        if (x >> 51 & 1)
            take(x >> 20 & 0xffff);
    }
    CHECK(q.end < 1u << 31); /* they did */
    drain(STREAM);
    end();
}

/* Whatever the socket would take, a call sends so much and no more: others have their turn. */
static void some_at_a_time(void)
{
    const int room = 64 << 20;

    begin(4096);
    CHECK(setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) == 0 || errno == EPERM);
    add(STREAM, 0);
    CHECK(queue_send(&q, out));
    CHECK(STREAM - q.bytes <= QUEUE_SEND_MOST);
    drain(STREAM);
    end();
}

/* What is yet to be sent from where it is, in whole or in part. */
static void references(void)
{
    begin(1 << 20);
    add(100, 1);
    add(8192, 0);
    add(100, 1);
    CHECK(!queue_refers_to(&q, stream, 100) && !queue_refers_to(&q, stream + 8292, 100));
    CHECK(queue_refers_to(&q, stream, 101) && queue_refers_to(&q, stream + 8291, 1));
    CHECK(queue_refers_to(&q, stream + 4000, 8) && queue_refers_to(&q, stream, STREAM));
    CHECK(!queue_refers_to(&q, stream + 4000, 0));
    drain(8392);
    CHECK(!queue_refers_to(&q, stream, STREAM));
    end();
}

/* No signal, and an error to tell. */
static void broken(void)
{
    begin(4096);
    add(100000, 0);
    send_some();
    close(in);
    CHECK(!queue_send(&q, out));
    CHECK(errno == EPIPE || errno == ECONNRESET);
    close(out);
}

int main(void)
{
    make_stream();
    nothing();
    partial_writes();
    wraps();
    wraps_at_the_end_of_a_message();
    full_of_bytes();
    full_of_pieces();
    mixtures();
    some_at_a_time();
    references();
    broken();
    free(stream);
    return 0;
}

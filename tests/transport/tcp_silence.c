/* The TCP transport without a runtime: which peers are given up because they say nothing, and which not. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

/* With one that has been heard; one that may still be starting has longer. */
static void expect_patience(const char *seconds)
{
    setenv("GSHMEM_INIT_TIMEOUT", "3", 1);
    setenv("GSHMEM_PEER_TIMEOUT", seconds, 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

/* A PE that does nothing any more, while the system still takes what it is sent: it is given up if it
 * owes an answer, and only then. */
static void silent_peer(void)
{
    uint64_t start, end = clock_ns() + 40000000000ull;

    expect_patience("1");
    begin();
    post(0, small_put(1));
    settle();
    for (start = clock_ns(); clock_ns() - start < 2500000000u;)
        drive_one(0);
    CHECK_EQ(pe[0].lost, 0);
    start = clock_ns();
    post(0, small_put(1));
    while (!not_ok && clock_ns() < end)
        drive_one(0);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    CHECK(clock_ns() - start >= 1000000000u);
    close_pe(0);
    close_pe(1);

    begin(); /* and one that has never said anything */
    post(0, small_put(1));
    while (!not_ok && clock_ns() < end)
        drive_one(0);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* The same of a PE that has been told something on its own stream. */
static void silent_hearer(void)
{
    uint64_t start, end = clock_ns() + 40000000000ull;
    struct transport_request word = small_put(0);

    word.flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED;
    word.signal_op = GSHMEM_SIGNAL_SET;
    expect_patience("1");
    begin();
    post(0, small_put(1));
    post(1, word); /* on a stream of its own, or on that which has just come */
    settle();
    post(1, word);
    settle();
    for (start = clock_ns(); clock_ns() - start < 2500000000u;)
        drive_one(1);
    CHECK_EQ(pe[1].lost, 0);
    start = clock_ns();
    post(1, word);
    while (!not_ok && clock_ns() < end)
        drive_one(1);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[1].lost, 1);
    CHECK(clock_ns() - start >= 1000000000u);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* A note has no answer of its own, but who stops before it has read one is given up all the same. */
static void silent_reader(bool greeted)
{
    static const char note[300] = "offer";
    uint64_t start, end = clock_ns() + 40000000000ull;

    expect_patience("1");
    begin();
    if (greeted) {
        post(0, small_put(1));
        settle();
    }
    CHECK_EQ(pe[0].t->ops->say(pe[0].t, 1, note, sizeof note), GSHMEM_OK);
    for (start = clock_ns(); greeted && clock_ns() - start < 2500000000u;) {
        drive_one(0);
        drive_one(1);
    }
    CHECK_EQ(pe[0].lost, 0); /* it has read it */
    start = clock_ns();
    if (greeted)
        CHECK_EQ(pe[0].t->ops->say(pe[0].t, 1, note, sizeof note), GSHMEM_OK);
    while (!pe[0].lost && clock_ns() < end)
        drive_one(0);
    CHECK_EQ(pe[0].lost, 1);
    CHECK(clock_ns() - start >= 1000000000u);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* A put whose data comes slowly: its sender is told again and again that it is being taken, and has
 * patience as long as it hears that. */
static void slow_put(void)
{
    unsigned char bytes[REQUEST_BYTES], answer[RESPONSE_BYTES];
    uint64_t end = clock_ns() + 40000000000ull;
    struct response_frame a;

    expect_patience("1");
    begin();
    int fd = enter_as_pe(), received = 0;
    request_encode(bytes,
                   &(struct request_frame){.kind = FRAME_PUT, .offset = 64, .bytes = SEGMENT - 64});
    send_all(fd, bytes, sizeof bytes);
    for (int i = 0; received < 3 && clock_ns() < end; i++) {
        drive_one(1);
        if (i % 20 == 0)
            send_all(fd, "x", 1);
        if (recv(fd, answer, sizeof answer, MSG_DONTWAIT) == (ssize_t)sizeof answer) {
            CHECK(response_decode(answer, &a) && a.kind == RESPONSE_DONE && a.number == 0);
            received++;
        }
    }
    CHECK_EQ(received, 3);
    close(fd);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* The other side of it: a peer that is long about an answer, and says that it lives. Meanwhile one that
 * owes nothing is silent, and is not given up. */
static void slow_answer(void)
{
    unsigned char frame[RESPONSE_BYTES];
    uint64_t start;

    expect_patience("1");
    begin();
    post(0, small_put(1));
    settle();
    int door = stand_in_for(2);
    post(0, small_put(2));
    int fd = greet_at(door, SECRET_BYTE);
    response_encode(frame, &(struct response_frame){RESPONSE_DONE, 0, 0});
    for (start = clock_ns(); clock_ns() - start < 3000000000u; drive_one(0)) /* every ms or later */
        send_all(fd, frame, sizeof frame);
    CHECK_EQ(ok, 1);
    CHECK_EQ(not_ok + pe[0].lost, 0);
    response_encode(frame, &(struct response_frame){RESPONSE_DONE, 1, 0});
    send_all(fd, frame, sizeof frame);
    settle();
    CHECK_EQ(ok, 2);
    close(fd);
    close(door);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    silent_peer();
    silent_hearer();
    silent_reader(false);
    silent_reader(true);
    slow_put();
    slow_answer();
    return 0;
}

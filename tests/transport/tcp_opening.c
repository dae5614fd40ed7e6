/* The TCP transport without a runtime: how a stream is opened where that does not go well at first, and which
 * PEs are refused one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"
#include "transport/tcp/initiator.h"

static void expect_patience(const char *peer, const char *start)
{
    setenv("GSHMEM_PEER_TIMEOUT", peer, 1);
    setenv("GSHMEM_INIT_TIMEOUT", start, 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

static struct tcp *tcp_of(int which)
{
    return (struct tcp *)pe[which].t;
}

static void end(void)
{
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    close_pe(0);
    close_pe(1);
}

/* ---- Addresses ---- */

static int listen_at(const char *ip, uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof in;
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK_EQ(inet_pton(AF_INET, ip, &in.sin_addr), 1);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(bind(fd, (struct sockaddr *)&in, size) == 0 && listen(fd, 8) == 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    *port = ntohs(in.sin_port);
    return fd;
}

/* Puts another address before PE 1's, at the same port: as hosts that all have one of a bridge of their own. */
static int share_an_address(void)
{
    struct address a;
    uint16_t port;

    CHECK(address_decode(pe[1].address, pe[1].address_bytes, &a) && a.n < ADDRESS_MOST);
    port = a.port;
    int fd = listen_at("127.0.0.77", &port);
    CHECK(a.port == port);
    memmove(a.ip + 1, a.ip, sizeof a.ip[0] * (size_t)a.n++);
    a.ip[0] = (struct in6_addr){{{[10] = 255, 255, 127, 0, 0, 77}}};
    pe[1].address_bytes = address_encode(&a, pe[1].address, sizeof pe[1].address);
    return fd;
}

enum somebody { CLOSES_AT_ONCE, CLOSES_AFTER_HELLO, SAYS_NOISE, SAYS_NOTHING };

/* Somebody else is at the first address. */
static void next_address(enum somebody who)
{
    static char noise[CHALLENGE_BYTES];
    char hello[HELLO_BYTES + PROOF_BYTES];

    begin();
    int door = share_an_address();
    post(0, small_put(1));
    for (int fd = -1; ok + not_ok == 0; drive()) {
        if (fd < 0 && (fd = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
            continue;
        bool received = recv(fd, hello, sizeof hello, MSG_PEEK) == sizeof hello;
        if (who == SAYS_NOISE && received)
            (void)!send(fd, noise, sizeof noise, MSG_NOSIGNAL);
        if (who == CLOSES_AT_ONCE || (who == CLOSES_AFTER_HELLO && received))
            close(fd), fd = -1;
    }
    CHECK_EQ(ok, 1);
    close(door);
    end();
}

/* ---- Time ---- */

static void drive_for(int which, int ms)
{
    for (uint64_t start = clock_ns(); clock_ns() - start < (uint64_t)ms * 1000000;)
        drive_one(which);
}

/* The acceptor is long about its start: GSHMEM_INIT_TIMEOUT is what counts. */
static void slow_start(void)
{
    expect_patience("1", "20");
    begin();
    post(0, small_put(1));
    drive_for(0, 3000);
    CHECK_EQ(not_ok, 0);
    settle();
    CHECK_EQ(ok, 1);
    end();
    expect_patience("10", "1");
}

/* The acceptor has taken the connection, and then stands still for longer than a stranger may be silent, with
 * the hello in its socket. */
static void slow_acceptor(void)
{
    begin();
    post(0, small_put(1));
    for (int i = 0; i < 1000 && !tcp_of(1)->targets.admission.strangers; i++)
        drive_one(1);
    CHECK_EQ(tcp_of(1)->targets.admission.strangers, 1);
    drive_for(0, 6000);
    settle();
    CHECK_EQ(ok, 1);
    CHECK_EQ(tcp_of(1)->targets.admission.refusals, 0);
    end();
}

/* The acceptor has another address, and stands still with the opener's proof in its socket, for longer than the
 * opener gives an address that nobody has proven to be at, but not for longer than it gives a PE. */
static void slow_welcome(void)
{
    expect_patience("2", "1");
    begin();
    int door = share_an_address();
    post(0, small_put(1));
    const struct initiator *o = tcp_of(0)->to[1];
    while (o->connecting.candidate < 2 || !o->connected) /* that somebody at the first address keeps silent takes half of the time */
        drive_one(0);
    for (int i = 0; i < 100000 && !o->proven; i++) {
        drive_one(1);
        if (tcp_of(1)->targets.admission.strangers && !tcp_of(1)->targets.admission.without_hello)
            drive_one(0);
    }
    CHECK(o->proven && !o->active);
    drive_for(0, 1500);
    settle();
    CHECK_EQ(ok, 1);
    close(door);
    end();
    expect_patience("10", "1");
}

/* The opener stands still in the middle of the greeting, for longer than that is waited for. */
static void slow_opener(void)
{
    expect_patience("1", "1");
    begin();
    post(0, small_put(1));
    for (int i = 0; i < 1000 && !(tcp_of(1)->targets.admission.strangers && !tcp_of(1)->targets.admission.without_hello); i++) {
        if (!tcp_of(1)->targets.admission.strangers || tcp_of(1)->targets.admission.without_hello)
            drive_one(0);
        drive_one(1);
    }
    CHECK(tcp_of(1)->targets.admission.strangers && !tcp_of(1)->targets.admission.without_hello); /* it has said hello, and no more */
    for (uint64_t end_ns = clock_ns() + 60000000000u; tcp_of(1)->targets.admission.strangers && clock_ns() < end_ns;)
        drive_one(1);
    CHECK_EQ(tcp_of(1)->targets.admission.strangers, 0);
    settle();
    CHECK_EQ(ok, 1);
    end();
    expect_patience("10", "1");
}

/* ---- Shortages ---- */

static struct rlimit limit_descriptors(void)
{
    struct rlimit before, none;
    int fd = dup(0);

    CHECK(fd >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    close(fd);
    none = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

/* This process has no descriptor left, for a while: nobody is to blame. */
static void no_descriptor(bool of_the_acceptor)
{
    struct rlimit before;

    begin();
    if (of_the_acceptor) {
        post(0, small_put(1));
        before = limit_descriptors(); /* the connection is made; it is to be accepted */
    } else {
        before = limit_descriptors();
        post(0, small_put(1));
    }
    for (uint64_t start = clock_ns(); clock_ns() - start < 600000000u;) {
        drive_one(0);
        drive_one(1);
    }
    CHECK_EQ(ok + not_ok, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    settle();
    CHECK_EQ(ok, 1);
    end();
}

/* For longer than it is waited for: the request fails, and the peer is not lost. */
static void no_descriptor_for_long(void)
{
    expect_patience("1", "1");
    begin();
    struct rlimit before = limit_descriptors();
    post(0, small_put(1));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(complaints, 1);
    CHECK_EQ(pe[0].lost, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    post(0, small_put(1));
    settle();
    CHECK_EQ(ok, 1);
    end();
    expect_patience("10", "1");
}

/* Notes are not lost while the peer lives: those that are said meanwhile are not taken, and those that were said
 * before wait for as long as it takes. */
static void note_without_descriptor(bool said_before)
{
    static const char note[100] = "offer";
    uint64_t end_ns = clock_ns() + 60000000000ull;
    gshmem_status_t status = TRANSPORT_FULL;
    struct rlimit before, none;

    expect_patience("1", "1");
    begin();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    if (said_before)
        CHECK_EQ(pe[0].t->ops->say(pe[0].t, 1, note, sizeof note), GSHMEM_OK);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    if (said_before)
        CHECK(!connect_failed(tcp_of(0), tcp_of(0)->to[1], TROUBLE_ENDED, 0));
    else
        CHECK_EQ(pe[0].t->ops->say(pe[0].t, 1, note, sizeof note), TRANSPORT_FULL);
    while (!complaints && clock_ns() < end_ns)
        drive_one(0);
    CHECK_EQ(complaints, 1);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (!said_before && status == TRANSPORT_FULL && clock_ns() < end_ns) {
        status = pe[0].t->ops->say(pe[0].t, 1, note, sizeof note);
        drive();
    }
    CHECK(said_before || status == GSHMEM_OK);
    while (pe[1].note_bytes < sizeof note && clock_ns() < end_ns)
        drive();
    CHECK_EQ(pe[1].note_bytes, sizeof note);
    end();
    expect_patience("10", "1");
}

/* ---- Who was given up ---- */

/* PE 0 has given PE 1 up, which goes on: nothing of what it asks for is done, and it is told. */
static void given_up(bool before_it_came)
{
    begin();
    if (!before_it_came) {
        post(1, small_put(0));
        post(0, small_put(1));
        settle();
        memset(segment_of(0), 0, 8);
    }
    pe[0].t->ops->lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    drive_one(0);
    int were_ok = ok;
    post(1, small_put(0));
    settle();
    CHECK_EQ(ok, were_ok);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[1].refusals, 1);
    CHECK_EQ(pe[1].lost, 0);
    CHECK_EQ(try_post(1, small_put(0)), GSHMEM_ERR_PEER_DEAD);
    untouched(0);
    close_pe(0);
    close_pe(1);
}

/* A PE that has given PE 1 up says so on one of its two streams, and the other ends without a word.
 * It lives. */
static void given_up_on_one_stream(void)
{
    unsigned char bytes[REQUEST_BYTES];
    uint64_t end = clock_ns() + 30000000000ull;

    begin();
    int door = stand_in_for(2);
    post(1, small_put(2));
    int there = greet_at(door, SECRET_BYTE), here = enter_as(2);
    while (!tcp_of(1)->peer[2].active && clock_ns() < end)
        drive_one(1);
    request_encode(bytes, &(struct request_frame){.kind = FRAME_FAILED, .offset = 1});
    send_all(here, bytes, sizeof bytes);
    while (!pe[1].refusals && clock_ns() < end)
        drive_one(1);
    CHECK_EQ(pe[1].refusals, 1);
    close(there);
    close(here);
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[1].lost, 0);
    CHECK_EQ(try_post(1, small_put(2)), GSHMEM_ERR_PEER_DEAD);
    close(door);
    close_pe(0);
    close_pe(1);
}

/* ---- Who leaves ---- */

/* PE 1 leaves in good order, and PE 0 has something to ask of it that it has not heard: before they greet, or after.
 * That it has died is not said. */
static void leaves(bool after_they_met)
{
    begin();
    post(0, small_put(1));
    if (after_they_met) {
        settle();
        post(0, small_put(1));
    } else {
        drive_one(0);
    }
    const int were_ok = ok;
    close_pe(1);
    settle();
    CHECK_EQ(ok, were_ok);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    CHECK_EQ(pe[0].lost_by, GSHMEM_ERR_UNREACHABLE);
    close_pe(0);
}

int main(void)
{
    expect_patience("10", "1");
    for (int who = CLOSES_AT_ONCE; who <= SAYS_NOTHING; who++)
        next_address((enum somebody)who);
    slow_start();
    slow_acceptor();
    slow_welcome();
    slow_opener();
    no_descriptor(false);
    no_descriptor(true);
    no_descriptor_for_long();
    note_without_descriptor(false);
    note_without_descriptor(true);
    given_up(false);
    given_up(true);
    given_up_on_one_stream();
    leaves(false);
    leaves(true);
    return 0;
}

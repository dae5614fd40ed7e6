/* The TCP transport without a runtime: answers that wait on a stream, how a stream ends, and how
 * often its host is asked whether it is there. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "transport/tcp/target.h"
#include "transport/tcp/initiator.h"

static bool has_event(int which)
{
    struct pollfd fd = {.fd = transport_tcp.wait_fd(pe[which].t), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void progress(int which)
{
    int events;

    CHECK_EQ(transport_tcp.progress(pe[which].t, &events), GSHMEM_OK);
}

/* ---- Answers that wait ---- */

/* PE 0 asks for so much that PE 1 serves until its socket is full, with requests left in its buffer and none
 * on their way; before that is a put whose answer nobody waits for. */
static void fill_socket(void)
{
    enum { GETS = 4000 };
    static char into[4096];
    struct transport_request get = {.kind = TRANSPORT_GET, .pe = 1, .local = into, .bytes = sizeof into};
    struct transport_request unasked = small_put(1);

    post(0, small_put(1));
    settle();
    unasked.flags = TRANSPORT_UNASKED;
    post(0, unasked);
    const struct target *i = ((struct tcp *)pe[1].t)->from[0];
    for (int n = 0; n < 50 && !i->is_unawaited; n++)
        progress(1);
    CHECK(i->is_unawaited);
    for (int n = 0; n < GETS && (target_has_room(i) || i->in.end < 20 * REQUEST_BYTES); n++) {
        CHECK_EQ(try_post(0, get), GSHMEM_OK);
        progress(1);
    }
    CHECK(!target_has_room(i));
    for (int n = 0; n < 100; n++)
        progress(1);
    CHECK(i->is_unawaited);
}

/* PE 1 has served until its socket is full, with requests left in its buffer, and an answer that nobody
 * waits for. Then PE 0 reads, and that answer goes out, whoever sends it: the socket takes the whole
 * queue, and the requests in the buffer are served though no event announces it. */
static void full_socket(bool by_arm)
{
    uint64_t end = clock_ns() + 30000000000ull;

    begin();
    fill_socket();
    const int ended = ok;
    for (int i = 0; i < 3; i++)
        progress(0);
    CHECK(ok > ended && ok < posted); /* it has read all that the socket had, and that was not all */
    if (by_arm)
        transport_tcp.arm(pe[1].t);
    else
        target_send_unawaited((struct tcp *)pe[1].t);
    while (ok + not_ok < posted && clock_ns() < end) {
        if (has_event(1)) /* as a proxy that sleeps */
            progress(1);
        progress(0);
        transport_tcp.arm(pe[1].t);
    }
    CHECK_EQ(ok, posted);
    close_pe(0);
    close_pe(1);
}

/* What serving those requests did may be what the caller of arm is about to sleep for: arm says so. */
static void arm_tells(void)
{
    begin();
    fill_socket();
    for (int i = 0; i < 3; i++)
        progress(0);
    CHECK(transport_tcp.arm(pe[1].t));
    settle();
    CHECK_EQ(ok, posted);
    close_pe(0);
    close_pe(1);
}

/* The answer behind a signal waits for a round in which nothing comes, but not for long, though another PE
 * sees to it that there is none. */
static void answer_behind_signal(void)
{
    unsigned char other[REQUEST_BYTES + 8] = {0};
    struct transport_request signal = small_put(1);
    unsigned char answers[4096];
    int rounds = 0;

    begin();
    int fd = enter_as(3);
    request_encode(other, &(struct request_frame){.kind = FRAME_PUT, .offset = 128, .bytes = 8});
    post(0, small_put(1));
    settle();
    for (int i = 0; i < 50; i++) { /* until it is asked in each round */
        send_all(fd, other, sizeof other);
        drive_one(1);
    }
    signal.signal_op = GSHMEM_SIGNAL_SET;
    signal.signal_offset = 64;
    signal.signal_value = 1;
    post(0, signal);
    for (; ok + not_ok < posted && rounds < 3000; rounds++) {
        send_all(fd, other, sizeof other);
        drive_one(1);
        progress(0);
        (void)!recv(fd, answers, sizeof answers, MSG_DONTWAIT);
    }
    CHECK_EQ(*(uint64_t *)(void *)(segment_of(1) + 64), 1);
    CHECK_EQ(ok, posted);
    close(fd);
    close_pe(0);
    close_pe(1);
}

/* PE 0 has heard a word of PE 1's, and has no room to say so: it is not taken for said. */
static void heard_without_room(void)
{
    struct transport_request word = small_put(0);

    begin();
    post(0, small_put(1));
    settle();
    struct tcp *t = (struct tcp *)pe[0].t;
    struct initiator *o = t->to[1];
    word.flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED;
    word.signal_op = GSHMEM_SIGNAL_SET;
    post(1, word);
    for (int i = 0; i < 50 && !o->unordered_received; i++)
        progress(0);
    CHECK(o->unordered_received == 1 && o->unordered_acked == 0);
    const size_t room = QUEUE_RING - (o->out.ring_end - o->out.ring_first);
    o->out.ring_end += room; /* as if it were full: what the system takes of it is not known */
    CHECK(!queue_has_room(&o->out, REQUEST_BYTES, 1));
    initiator_acknowledge(t);
    o->out.ring_end -= room;
    CHECK(t->initiators.unacknowledged && o->unordered_acked == 0);
    settle();
    CHECK_EQ(ok, posted);
    close_pe(0);
    close_pe(1);
}

/* A tick finds the welcome of a stream that is being opened before its event is looked at: what waited for it goes
 * out, as no event is left that would see to it. */
static void welcome_in_tick(void)
{
    begin();
    post(0, small_put(1));
    struct tcp *t[2] = {(struct tcp *)pe[0].t, (struct tcp *)pe[1].t};
    struct initiator *o = t[0]->to[1];
    for (int i = 0; i < 10000 && !o->proven; i++) {
        progress(1);
        progress(0);
    }
    for (int i = 0; i < 10000 && !t[1]->from[0]; i++)
        progress(1);
    CHECK(o->proven && !o->active && t[1]->from[0]);
    struct pollfd welcome = {.fd = o->stream.fd, .events = POLLIN};
    CHECK_EQ(poll(&welcome, 1, 10000), 1);
    initiator_tick(t[0]);
    CHECK(o->active && queue_empty(&o->out));
    settle();
    CHECK_EQ(ok, 1);
    close_pe(0);
    close_pe(1);
}

/* ---- How streams end ---- */

/* A PE is reset that has asked for much and read little: the one that answers it finds that by sending,
 * has no other stream to it, and says that it is lost. */
static void reset_while_answering(void)
{
    const struct linger reset = {.l_onoff = 1};
    unsigned char get[REQUEST_BYTES];
    uint64_t end = clock_ns() + 30000000000ull;

    begin();
    int fd = enter_as_pe();
    request_encode(get, &(struct request_frame){.kind = FRAME_GET, .bytes = SEGMENT});
    for (int i = 0; i < 8; i++)
        send_all(fd, get, sizeof get);
    for (int i = 0; i < 400; i++) /* until no stream is looked at but by its events */
        drive_one(1);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(fd);
    while (!pe[1].lost && clock_ns() < end)
        drive_one(1);
    CHECK_EQ(pe[1].lost, 1);
    close_pe(0);
    close_pe(1);
}

/* The same of one that has said goodbye before: it has left in good order. */
static void reset_after_goodbye(void)
{
    const struct linger reset = {.l_onoff = 1};
    unsigned char frame[REQUEST_BYTES];

    begin();
    int fd = enter_as_pe();
    request_encode(frame, &(struct request_frame){.kind = FRAME_GET, .bytes = SEGMENT});
    for (int i = 0; i < 4; i++)
        send_all(fd, frame, sizeof frame);
    for (int i = 0; i < 400; i++)
        drive_one(1);
    request_encode(frame, &(struct request_frame){.kind = FRAME_GOODBYE});
    send_all(fd, frame, sizeof frame);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(fd);
    for (int i = 0; i < 400; i++)
        drive_one(1);
    CHECK_EQ(pe[1].lost, 0);
    close_pe(0);
    close_pe(1);
}

/* A child of fork, which has all sockets, and says nothing. */
static pid_t fork_sleeper(void)
{
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    return child;
}

static void end_sleeper(pid_t child)
{
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

/* Streams that are over leave epoll although a child keeps their sockets: that of a stranger, and both of
 * a PE that is lost. */
static void forked_child(void)
{
    static const char noise[200] = "GET / HTTP/1.0\r\n";
    uint64_t end = clock_ns() + 30000000000ull;

    begin();
    int fd = dial(1);
    for (int i = 0; i < 20; i++)
        drive_one(1);
    pid_t child = fork_sleeper();
    send_all(fd, noise, sizeof noise);
    for (int i = 0; i < 20; i++)
        drive_one(1);
    close(fd);
    while (has_event(1) && clock_ns() < end) /* a tick may be due */
        drive_one(1);
    CHECK(!has_event(1));
    end_sleeper(child);

    fd = enter_as(3);
    int door = stand_in_for(4);
    post(1, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 4});
    int asked = greet_at(door, SECRET_BYTE);
    for (int i = 0; i < 20; i++)
        drive_one(1);
    child = fork_sleeper();
    shutdown(fd, SHUT_RDWR);
    shutdown(asked, SHUT_RDWR);
    while (pe[1].lost < 2 && clock_ns() < end)
        drive_one(1);
    CHECK_EQ(pe[1].lost, 2);
    while (has_event(1) && clock_ns() < end) /* a tick may be due */
        drive_one(1);
    CHECK(!has_event(1));
    end_sleeper(child);
    close(fd);
    close(asked);
    close(door);
    close_pe(0);
    close_pe(1);
}

/* ---- Probes ---- */

static int option(const struct stream *s, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    CHECK_EQ(getsockopt(s->fd, level, name, &value, &size), 0);
    return value;
}

static int is_probed(const struct stream *s)
{
    return option(s, SOL_SOCKET, SO_KEEPALIVE);
}

/* The hosts of idle streams are probed by the system, once for two PEs; not where all are on one machine, and the
 * less often the more PEs there are: the probes of thousands of streams, on one machine, went lost, and with them
 * living PEs. */
static void probes_are_few(void)
{
    struct tcp *t[2];
    struct stream many = {.fd = socket(AF_INET, SOCK_STREAM, 0)};

    for (int networked = 0; networked < 2; networked++) {
        begin();
        for (int i = 0; i < 2; i++) {
            t[i] = (struct tcp *)pe[i].t;
            CHECK(t[i]->socket.on_loopback);
            t[i]->socket.on_loopback = !networked;
        }
        post(0, small_put(1));
        settle();
        CHECK_EQ(is_probed(&t[0]->to[1]->stream), networked);
        CHECK_EQ(is_probed(&t[1]->from[0]->stream), networked);
        post(1, small_put(0));
        settle();
        CHECK_EQ(is_probed(&t[1]->to[0]->stream), networked);
        CHECK_EQ(is_probed(&t[1]->from[0]->stream), 0);
        CHECK_EQ(is_probed(&t[0]->to[1]->stream), networked);
        CHECK_EQ(is_probed(&t[0]->from[1]->stream), 0);
        const int few = option(&t[0]->to[1]->stream, IPPROTO_TCP, TCP_KEEPIDLE);
        t[0]->socket.n_pes = 100000;
        socket_tune(&t[0]->socket, many.fd);
        t[0]->socket.n_pes = PES;
        if (networked)
            CHECK(few < option(&many, IPPROTO_TCP, TCP_KEEPIDLE));
        CHECK(option(&many, IPPROTO_TCP, TCP_KEEPIDLE) < t[0]->socket.peer_seconds);
        close_pe(0);
        close_pe(1);
    }
    close(many.fd);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    full_socket(true);
    full_socket(false);
    arm_tells();
    answer_behind_signal();
    heard_without_room();
    welcome_in_tick();
    reset_while_answering();
    reset_after_goodbye();
    forked_child();
    probes_are_few();
    return 0;
}

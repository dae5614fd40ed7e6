/* The TCP transport without a runtime: what it moves, in which order, and how it ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"
#include "transport/tcp/initiator.h"

enum { REQUESTS = 6000 };

/* ---- What it moves ---- */

static void sizes(void)
{
    static const size_t size[] = {0,    1,    7,     8,     9,      4095,        4096,       4097,
                                  8191, 65535, 65536, 65537, 300001, 1024 * 1024, 5 << 20};
    char *source = malloc(SEGMENT), *back = malloc(SEGMENT);

    CHECK(source && back);
    begin();
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        for (size_t i = 0; i < size[s]; i++)
            source[i] = (char)(i * 7 + i / 251 + s);
        memset(back, 0, size[s]);
        uint64_t offset = 64 + s % 8;
        uint64_t *flag = (uint64_t *)(void *)segment_of(1);
        *flag = 0;
        post(0, (struct transport_request){.kind = TRANSPORT_PUT, .offset = offset, .local = source,
                                           .bytes = size[s], .signal_op = GSHMEM_SIGNAL_SET,
                                           .signal_value = s + 1});
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .offset = offset, .local = back,
                                           .bytes = size[s]});
        settle();
        CHECK_EQ(*flag, s + 1);
        CHECK(memcmp(segment_of(1) + offset, source, size[s]) == 0);
        CHECK(memcmp(back, source, size[s]) == 0);
    }
    CHECK_EQ(not_ok, 0);
    free(source);
    free(back);
    close_pe(0);
    close_pe(1);
}

/* A signal is never there before its data, however the data comes in pieces. */
static void signal_after_data(void)
{
    enum { BYTES = 3 << 20 };
    char *source = malloc(BYTES);
    uint64_t *flag, end = clock_ns() + 30000000000ull;

    CHECK(source);
    begin();
    flag = (uint64_t *)(void *)segment_of(1);
    for (int round = 1; round <= 5; round++) {
        memset(source, round, BYTES);
        post(0, (struct transport_request){.kind = TRANSPORT_PUT, .offset = 64, .local = source,
                                           .bytes = BYTES, .signal_op = GSHMEM_SIGNAL_ADD,
                                           .signal_value = 1});
        while (*flag != (uint64_t)round) {
            drive();
            CHECK(clock_ns() < end);
        }
        for (int i = 0; i < BYTES; i++)
            CHECK_EQ(segment_of(1)[64 + i], round);
        settle();
    }
    free(source);
    close_pe(0);
    close_pe(1);
}

/* What PE 1 tells PE 0 goes on the stream that PE 0 has opened: all of it, each signal after its data,
 * whatever goes the other way, and however much it is. */
static void words(void)
{
    enum { MOST = 5 << 20, MANY = 1000 };
    static const uint64_t size[] = {0, 8, 40, TRANSPORT_COPIED, TRANSPORT_COPIED + 1, 100000, MOST};
    static long value = 3;
    char *source = malloc(MOST), *back = malloc(MOST);
    uint64_t *flag, notified = 0, end = clock_ns() + 60000000000ull;

    CHECK(source && back);
    begin();
    flag = (uint64_t *)(void *)segment_of(0);
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
        memset(source, (int)i + 1, MOST);
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .local = back, .bytes = MOST});
        drive();
        post(1, (struct transport_request){.kind = TRANSPORT_PUT, .offset = 64, .local = source,
                                           .flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED,
                                           .bytes = size[i], .signal_op = GSHMEM_SIGNAL_ADD,
                                           .signal_value = 1});
        for (notified++; *flag != notified; drive())
            CHECK(clock_ns() < end);
        for (uint64_t b = 0; b < size[i]; b++)
            CHECK_EQ(segment_of(0)[64 + b], i + 1);
        settle();
        CHECK_EQ(back[0], 3);
    }
    for (int i = 0; i < MANY; i++)
        post(1, (struct transport_request){.kind = TRANSPORT_PUT, .offset = 64, .local = source,
                                           .flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED,
                                           .bytes = 4000, .signal_op = GSHMEM_SIGNAL_ADD, .signal_value = 1});
    settle();
    CHECK_EQ(*flag, notified + MANY);
    CHECK_EQ(not_ok, 0);
    CHECK(!((struct tcp *)pe[1].t)->to[0]);
    free(source);
    free(back);
    close_pe(0);
    close_pe(1);

    begin(); /* and who ends with some on their way is told so */
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    for (int i = 0; i < 3; i++)
        post(1, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8,
                                           .flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED,
                                           .signal_op = GSHMEM_SIGNAL_SET});
    close_pe(0);
    settle();
    CHECK_EQ(not_ok, 3);
    CHECK_EQ(pe[1].lost, 1);
    close_pe(1);
}

enum { REUSED = 6 << 20 };

static char *reused;
static int sent_tag;

static void scribble(void *tag)
{
    sent_tag = (int)((intptr_t)tag / PES);
    CHECK(sent_tag > last_tag); /* before it is done */
    memset(reused, 0xee, REUSED);
}

/* Who wants its source back has it when it has been sent, whether or not the peer has taken it. */
static void source_again(void)
{
    uint64_t end = clock_ns() + 30000000000ull;
    struct transport_request put = {.kind = TRANSPORT_PUT, .bytes = REUSED, .sent = scribble};

    reused = malloc(REUSED);
    CHECK(reused);
    put.local = reused;
    begin();
    for (int round = 1; round <= 5; round++) {
        memset(reused, round, REUSED);
        post(0, put);
        settle();
        CHECK_EQ(sent_tag, posted);
        for (int i = 0; i < REUSED; i++)
            CHECK_EQ(segment_of(1)[i], round);
    }
    put.bytes = 20000;
    for (post(0, put); sent_tag != posted; drive_one(0))
        CHECK(clock_ns() < end);
    CHECK_EQ(ok, posted - 1);
    settle();
    CHECK_EQ(not_ok, 0);
    free(reused);
    close_pe(0);
    close_pe(1);
}

static size_t has_arrived(int fd)
{
    int bytes = 0;

    CHECK(ioctl(fd, FIONREAD, &bytes) == 0);
    return (size_t)bytes;
}

/* Small requests of all kinds, of which some travel in one frame: their order is kept, each is
 * done once, and each fetch brings what was there at its time. They are sent at any time, so that
 * frames end after any number of them, also where the queue's ring ends. */
static void coalesced(void)
{
    enum { ROUNDS = 20000, WORDS = 4 };
    static uint64_t value[ROUNDS], old[ROUNDS], was[ROUNDS];
    uint64_t model[WORDS] = {0};
    unsigned random = 7;

    begin();
    post(0, small_put(1));
    settle();
    memset(segment_of(1), 0, sizeof model);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245 + 12345;
        const unsigned word = random >> 8 & (WORDS - 1),
                       kind = i < ROUNDS / 2 ? (random >> 16) % 36
                                             : (unsigned)i / 2000 % 2 * 24; /* then long frames */
        struct transport_request r = {.kind = TRANSPORT_PUT, .flags = TRANSPORT_MORE | TRANSPORT_HELD, .pe = 1,
                                      .offset = 8 * word, .local = &value[i], .bytes = 8};
        value[i] = (uint64_t)random << 20 | (unsigned)i;
        if (kind < 10) {
            model[word] = value[i];
        } else if (kind < 20) {
            r.kind = TRANSPORT_ATOMIC;
            r.amo = GSHMEM_AMO_ADD;
            r.type = GSHMEM_TYPE_UINT64;
            r.operand = value[i];
            model[word] += value[i];
        } else if (kind < 23) { /* of another size, or not aligned to it */
            r.bytes = kind == 20 ? 4 : 3;
            r.offset += kind == 22;
            memcpy((char *)&model[word] + (kind == 22), &value[i], r.bytes);
        } else if (kind == 23) {
            r.bytes = 0;
            r.signal_op = GSHMEM_SIGNAL_ADD;
            r.signal_offset = 8 * word;
            r.signal_value = value[i];
            model[word] += value[i];
        } else if (kind < 28) {
            r.kind = TRANSPORT_GET;
            r.local = &old[i];
            r.bytes = kind < 27 ? 8 : 4;
            memcpy(&was[i], &model[word], r.bytes);
        } else {
            const bool compares = kind >= 34;
            r.kind = TRANSPORT_ATOMIC;
            r.amo = compares ? GSHMEM_AMO_COMPARE_SWAP : kind < 32 ? GSHMEM_AMO_ADD : GSHMEM_AMO_SWAP;
            r.type = GSHMEM_TYPE_UINT64;
            r.operand = value[i];
            r.compare = kind == 34 ? model[word] : ~model[word];
            r.old = &old[i];
            was[i] = model[word];
            if (kind < 35)
                model[word] = kind < 32 ? model[word] + value[i] : value[i];
        }
        post(0, r);
        if ((random >> 12) % (i < ROUNDS / 2 ? 50 : 700) == 0)
            drive_one((random >> 4) % 2);
    }
    settle();
    CHECK_EQ(not_ok, 0);
    CHECK_EQ(ok, posted);
    CHECK(memcmp(segment_of(1), model, sizeof model) == 0);
    CHECK(memcmp(old, was, sizeof old) == 0);
    close_pe(0);
    close_pe(1);
}

/* Fetches of one kind travel in one frame, and what they bring comes back behind one response;
 * none of it is taken for a fetch that is not in the frame. */
static void fetched_together(void)
{
    enum { HELD = 20 };
    uint64_t number[HELD], old[HELD + 1];
    const struct {
        struct transport_request r;
        size_t record;
    } what[] = {
        {{.kind = TRANSPORT_GET, .bytes = 8}, 4},
        {{.kind = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_INT64, .operand = 0}, 12},
        {{.kind = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_COMPARE_SWAP, .type = GSHMEM_TYPE_UINT64}, 20},
    };

    begin();
    post(0, small_put(1));
    settle();
    const struct initiator *to = ((struct tcp *)pe[0].t)->to[1];
    for (uint64_t i = 0; i < HELD; i++)
        number[i] = i * 0x0101010101010101;
    memcpy(segment_of(1) + 4096, number, sizeof number);
    for (size_t k = 0; k < sizeof what / sizeof what[0]; k++) {
        memset(old, 0xee, sizeof old);
        for (int i = 0; i < HELD; i++) {
            struct transport_request r = what[k].r;
            r.flags = TRANSPORT_MORE | TRANSPORT_HELD;
            r.offset = 4096 + 8u * (unsigned)i;
            r.local = r.kind == TRANSPORT_GET ? &old[i] : NULL;
            r.old = r.kind == TRANSPORT_ATOMIC ? &old[i] : NULL;
            post(0, r);
            CHECK_EQ(to->out.bytes, REQUEST_BYTES + what[k].record * ((unsigned)i + 1));
        }
        drive_one(0);
        drive_one(1);
        CHECK_EQ(has_arrived(to->stream.fd), RESPONSE_BYTES + 8 * HELD);
        settle();
        CHECK(memcmp(old, number, sizeof number) == 0);
        CHECK_EQ(old[HELD], 0xeeeeeeeeeeeeeeee);
    }
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* Where a progress is promised, nothing is sent before it, though nothing is under way. */
static void held_back(void)
{
    enum { HELD = 20 };
    uint64_t number[HELD];

    begin();
    post(0, small_put(1));
    settle();
    for (uint64_t i = 0; i < HELD; i++) {
        number[i] = i + 1;
        post(0, (struct transport_request){.kind = TRANSPORT_PUT,
                                           .flags = TRANSPORT_MORE | TRANSPORT_HELD,
                                           .offset = 4096 + 8 * i, .local = &number[i], .bytes = 8});
        CHECK(((struct tcp *)pe[0].t)->to[1]->out.bytes >= 8 * (i + 1));
        /* in one frame */
        CHECK_EQ(((struct tcp *)pe[0].t)->to[1]->out.bytes, REQUEST_BYTES + 12 * (i + 1));
    }
    drive_one(0);
    CHECK_EQ(((struct tcp *)pe[0].t)->to[1]->out.bytes, 0);
    settle();
    CHECK_EQ(not_ok, 0);
    CHECK(memcmp(segment_of(1) + 4096, number, sizeof number) == 0);
    close_pe(0);
    close_pe(1);
}

/* More than is taken at once: the poster is told, and all arrive in order, both ways. */
static void back_pressure(void)
{
    static uint64_t old[REQUESTS], number[REQUESTS];
    int full = 0;

    begin();
    for (int i = 0; i < REQUESTS; i++) {
        struct transport_request atomic = {.kind = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD,
                                           .flags = TRANSPORT_MORE, .type = GSHMEM_TYPE_UINT64,
                                           .operand = 1, .old = &old[i]};
        gshmem_status_t status;
        while ((status = try_post(0, atomic)) == TRANSPORT_FULL) {
            full++;
            drive();
        }
        CHECK_EQ(status, GSHMEM_OK);
    }
    settle();
    CHECK(full > 0);
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(old[i], i);
    full = 0;
    for (int i = 0; i < REQUESTS; i++) {
        number[i] = (uint64_t)i;
        post(0, (struct transport_request){.kind = TRANSPORT_PUT, .flags = TRANSPORT_MORE,
                                           .offset = 8, .local = &number[i], .bytes = 8});
        number[i] = 99; /* it has been copied */
    }
    settle();
    CHECK_EQ(*(uint64_t *)(void *)(segment_of(1) + 8), REQUESTS - 1);
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* Losses are told once, to who was talked to before and to who is later, in their order. */
static void news(void)
{
    static uint64_t value = 7;
    uint64_t end = clock_ns() + 30000000000ull;

    begin();
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    transport_tcp.tell(pe[0].t, 4);
    transport_tcp.tell(pe[1].t, 3); /* has no stream yet */
    while (!pe[1].tellings && clock_ns() < end)
        drive();
    post(1, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    transport_tcp.tell(pe[0].t, 2);
    while (pe[0].tellings + pe[1].tellings < 3 && clock_ns() < end)
        drive();
    settle();
    CHECK_EQ(pe[0].tellings, 1);
    CHECK_EQ(pe[0].notified[0], 3);
    CHECK_EQ(pe[1].tellings, 2);
    CHECK_EQ(pe[1].notified[0], 4);
    CHECK_EQ(pe[1].notified[1], 2);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    close_pe(0);
    close_pe(1);
}

/* Notes come whole and in order, among requests, and before there is a stream. */
static void notes(void)
{
    static unsigned char note[TRANSPORT_NOTE_MAX];
    static uint64_t value[600];
    uint64_t end = clock_ns() + 30000000000ull;
    size_t said = 0;

    begin();
    for (int i = 0; i < 3; i++) {
        const size_t bytes = i == 1 ? sizeof note : (size_t)i + 5;
        memset(note, 'a' + i, bytes);
        CHECK_EQ(transport_tcp.say(pe[0].t, 1, note, bytes), GSHMEM_OK);
        said += bytes;
        post(0, (struct transport_request){
                    .kind = TRANSPORT_PUT, .local = value, .bytes = sizeof value});
    }
    while (pe[1].note_bytes < said && clock_ns() < end)
        drive();
    settle();
    CHECK_EQ(pe[1].note_bytes, said);
    for (size_t i = 0; i < said; i++)
        CHECK_EQ(pe[1].note[i], i < 5 ? 'a' : i < 5 + sizeof note ? 'b' : 'c');
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* ---- The end ---- */

static void closes_with_requests_in_flight(void)
{
    static char data[1 << 20];

    begin();
    for (int i = 0; i < 10; i++)
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .local = data, .bytes = sizeof data});
    for (int i = 0; i < 3; i++)
        drive();
    close_pe(0);
    CHECK_EQ(ok + not_ok, posted);
    CHECK(not_ok > 0);
    close_pe(1);

    begin(); /* now the one that is asked */
    for (int i = 0; i < 10; i++)
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .local = data, .bytes = sizeof data});
    for (int i = 0; i < 3; i++)
        drive();
    close_pe(1);
    settle();
    CHECK(not_ok > 0);
    CHECK_EQ(pe[0].lost, 1);
    CHECK(try_post(0, (struct transport_request){.kind = TRANSPORT_PUT}) != GSHMEM_OK);
    close_pe(0);
}

/* ---- Congestion control ---- */

static void control_of(int fd, char name[16])
{
    socklen_t size = 16;

    CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
}

/* Both ends of a connection whose sockets were begun as the transport's are, with that default. */
static void controls(const char *system, char first[16], char second[16])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    struct socket_options o = {.peer_seconds = 0};
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(door >= 0 && out >= 0);
    for (int i = 0; system && i < 2; i++)
        CHECK_EQ(setsockopt(i ? out : door, IPPROTO_TCP, TCP_CONGESTION, system,
                            (socklen_t)strlen(system)), 0);
    CHECK(congestion_begin(&o, door) && congestion_begin(&o, out));
    CHECK(bind(door, (struct sockaddr *)&in, size) == 0 && listen(door, 1) == 0);
    CHECK_EQ(getsockname(door, (struct sockaddr *)&in, &size), 0);
    CHECK_EQ(connect(out, (struct sockaddr *)&in, size), 0);
    int accepted = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    CHECK(accepted >= 0 && congestion_begin(&o, accepted));
    congestion_suit(&o, accepted);
    congestion_suit(&o, out);
    control_of(accepted, first);
    control_of(out, second);
    close(accepted);
    close(out);
    close(door);
}

/* The user's choice, where there is one; else the system's, if it needs no timer. */
static void congestion_control(void)
{
    char first[16], second[16];

    setenv("GSHMEM_TCP_CONGESTION", "reno", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    controls(NULL, first, second);
    CHECK(strcmp(first, "reno") == 0 && strcmp(second, "reno") == 0);
    setenv("GSHMEM_TCP_CONGESTION", "no-such-thing", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK(!congestion_begin(&(struct socket_options){.peer_seconds = 0}, 0));
    setenv("GSHMEM_TCP_CONGESTION", "", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    controls("reno", first, second);
    CHECK(strcmp(first, "reno") == 0 && strcmp(second, "reno") == 0);
    controls(NULL, first, second); /* over the loopback, as short as a way can be */
    CHECK(strncmp(first, "bbr", 3) != 0 && strncmp(second, "bbr", 3) != 0);
}

/* ---- Retransmission ---- */

enum { RTO_MAX_MS = 44 }; /* TCP_RTO_MAX_MS */

static bool kernel_is_old;

/* The system's, or that of one before Linux 6.15. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    if (kernel_is_old && level == IPPROTO_TCP && name == RTO_MAX_MS) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

static void count_line(void *to, const char *name, const char *text)
{
    CHECK_STR(name, "retransmission");
    CHECK_HAS(text, "TCP_RTO_MAX_MS");
    *(int *)to += 1;
}

/* The time between two attempts has a bound where the system has one to give, on both ends of a stream; else
 * the report says so. */
static void retransmission(void)
{
    const int second = 1000;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), lines = 0, streams = 0;

    CHECK(fd >= 0);
    bool has_bound = setsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &second, sizeof second) == 0;
    close(fd);
    transport_tcp.report(NULL, count_line, &lines);
    CHECK_EQ(lines, !has_bound);
    kernel_is_old = true;
    transport_tcp.report(NULL, count_line, &lines);
    CHECK_EQ(lines, 1 + !has_bound);
    kernel_is_old = false;

    begin();
    post(0, small_put(1));
    settle();
    for (fd = 3; fd < 100; fd++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer, int_size = sizeof(int);
        int most = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
            (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
            continue;
        streams++;
        if (has_bound)
            CHECK_EQ(getsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &most, &int_size), 0);
        if (has_bound)
            CHECK_EQ(most, second);
    }
    CHECK_EQ(streams, 2);
    close_pe(0);
    close_pe(1);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    sizes();
    signal_after_data();
    words();
    source_again();
    held_back();
    coalesced();
    fetched_together();
    back_pressure();
    news();
    notes();
    closes_with_requests_in_flight();
    congestion_control();
    retransmission();
    return 0;
}

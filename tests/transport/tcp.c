/* The TCP transport without a runtime: two PEs in one process, driven in turn, over loopback; and
 * strangers, and a peer that breaks the rules, on their ports. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gshmem/rma.h"
#include "gshmem/type.h"

#include "check.h"
#include "runtime/base/clock.h"
#include "runtime/base/settings.h"
#include "transport/tcp/address.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/tcp.h"

enum { PES = 5 /* two are there */, SEGMENT = 8 << 20, GUARD = 4096, REQUESTS = 6000,
       SECRET_BYTE = 0x5a };

struct pe {
    struct transport *t;
    struct transport_config config;
    unsigned char address[TRANSPORT_ADDRESS_MAX];
    size_t address_bytes;
    int lost;
    int told[8], tellings; /* by the other, of whom */
    unsigned char note[4096]; /* what was heard, one after another */
    size_t note_bytes;
    unsigned char *memory; /* guard, segment, guard */
};

static struct pe pe[2];
static int complaints;

/* ---- What the transport is lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf((char[300]){0}, 300, format, args);
    va_end(args);
    complaints++;
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t find(void *context, int which, void *address, size_t capacity, size_t *bytes)
{
    (void)context;
    CHECK(pe[which].address_bytes <= capacity);
    memcpy(address, pe[which].address, pe[which].address_bytes);
    *bytes = pe[which].address_bytes;
    return GSHMEM_OK;
}

static uint64_t add_only(void *context, enum gshmem_amo amo, int type, void *target,
                         uint64_t operand, uint64_t compare)
{
    (void)context, (void)compare;
    CHECK(amo == GSHMEM_AMO_ADD && type == GSHMEM_TYPE_UINT64);
    uint64_t old = *(uint64_t *)target;
    *(uint64_t *)target += operand;
    return old;
}

static void lost(void *context, int which, gshmem_status_t status, const char *why)
{
    (void)which, (void)why;
    CHECK(status != GSHMEM_OK);
    ((struct pe *)context)->lost++;
}

static void told(void *context, int from, int which)
{
    struct pe *p = context;

    CHECK_EQ(from, p == &pe[0]);
    CHECK(p->tellings < 8);
    p->told[p->tellings++] = which;
}

static void heard(void *context, int from, const void *note, size_t bytes)
{
    struct pe *p = context;

    CHECK_EQ(from, p == &pe[0]);
    CHECK(bytes <= sizeof p->note - p->note_bytes);
    memcpy(p->note + p->note_bytes, note, bytes);
    p->note_bytes += bytes;
}

/* ---- Two PEs ---- */

static void open_pe(int me)
{
    struct pe *p = &pe[me];

    *p = (struct pe){.memory = calloc(1, SEGMENT + 2 * GUARD)};
    CHECK(p->memory);
    p->config = (struct transport_config){
        .size = sizeof p->config, .fail = complain, .info = be_silent, .pe = me, .n_pes = PES,
        .one_machine = 1, .context = p, .find = find, .apply = add_only, .lost = lost, .told = told,
        .heard = heard};
    CHECK_EQ(transport_tcp.open(&p->config, &p->t), GSHMEM_OK);
    CHECK_EQ(transport_tcp.address(p->t, p->address, sizeof p->address, &p->address_bytes), GSHMEM_OK);
    memset(p->config.secret, SECRET_BYTE, sizeof p->config.secret);
    p->config.segments = 1;
    p->config.segment[0] = (struct transport_segment){.base = (char *)p->memory + GUARD, .bytes = SEGMENT};
    transport_tcp.begin(p->t, &p->config);
}

static void close_pe(int me)
{
    if (pe[me].t)
        transport_tcp.close(pe[me].t);
    pe[me].t = NULL;
    for (int i = 0; i < GUARD; i++)
        CHECK(!pe[me].memory[i] && !pe[me].memory[GUARD + SEGMENT + i]);
    free(pe[me].memory);
}

static int drive(void)
{
    int events = 0, all = 0;

    for (int i = 0; i < 2; i++) {
        if (pe[i].t) {
            CHECK_EQ(transport_tcp.progress(pe[i].t, &events), GSHMEM_OK);
            all += events;
        }
    }
    return all;
}

static int ok, not_ok, last_tag;

static void done(void *tag, gshmem_status_t status)
{
    int number = (int)(intptr_t)tag;

    CHECK(number > last_tag); /* in the order in which they were posted */
    last_tag = number;
    *(status ? &not_ok : &ok) += 1;
}

static int posted;

static gshmem_status_t try_post(int from, struct transport_request r)
{
    r.pe = 1 - from;
    r.done = done;
    r.tag = (void *)(intptr_t)(posted + 1);
    gshmem_status_t status = transport_tcp.post(pe[from].t, &r);
    posted += status == GSHMEM_OK;
    return status;
}

static void post(int from, struct transport_request r)
{
    gshmem_status_t status;

    while ((status = try_post(from, r)) == TRANSPORT_FULL)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
}

static void settle(void)
{
    uint64_t end = clock_ns() + 30000000000ull;

    while (ok + not_ok < posted) {
        drive();
        if (clock_ns() > end)
            CHECK_FAIL("%d of %d requests have ended", ok + not_ok, posted);
    }
}

static void begin(void)
{
    ok = not_ok = posted = last_tag = complaints = 0;
    open_pe(0);
    open_pe(1);
}

static char *segment_of(int which)
{
    return pe[which].config.segment[0].base;
}

static void drive_one(int which)
{
    int events;

    CHECK_EQ(transport_tcp.progress(pe[which].t, &events), GSHMEM_OK);
    usleep(1000);
}

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

enum { REUSED = 6 << 20 };

static char *reused;
static int sent_tag;

static void scribble(void *tag)
{
    sent_tag = (int)(intptr_t)tag;
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
    CHECK_EQ(pe[0].told[0], 3);
    CHECK_EQ(pe[1].tellings, 2);
    CHECK_EQ(pe[1].told[0], 4);
    CHECK_EQ(pe[1].told[1], 2);
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
    struct tcp t = {.epoll_fd = -1};
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(door >= 0 && out >= 0);
    for (int i = 0; system && i < 2; i++)
        CHECK_EQ(setsockopt(i ? out : door, IPPROTO_TCP, TCP_CONGESTION, system,
                            (socklen_t)strlen(system)), 0);
    CHECK(congestion_begin(&t, door) && congestion_begin(&t, out));
    CHECK(bind(door, (struct sockaddr *)&in, size) == 0 && listen(door, 1) == 0);
    CHECK_EQ(getsockname(door, (struct sockaddr *)&in, &size), 0);
    CHECK_EQ(connect(out, (struct sockaddr *)&in, size), 0);
    int accepted = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    CHECK(accepted >= 0 && congestion_begin(&t, accepted));
    congestion_suit(&t, accepted);
    congestion_suit(&t, out);
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
    CHECK(!congestion_begin(&(struct tcp){.epoll_fd = -1}, 0));
    setenv("GSHMEM_TCP_CONGESTION", "", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    controls("reno", first, second);
    CHECK(strcmp(first, "reno") == 0 && strcmp(second, "reno") == 0);
    controls(NULL, first, second); /* over the loopback, as short as a way can be */
    CHECK(strncmp(first, "bbr", 3) != 0 && strncmp(second, "bbr", 3) != 0);
}

/* ---- Strangers ---- */

static int dial(int which)
{
    struct address a;
    struct sockaddr_storage where;

    CHECK(address_decode(pe[which].address, pe[which].address_bytes, &a));
    socklen_t size = address_socket(&a, 0, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&where, size) == 0);
    return fd;
}

/* Whether the other side ends the connection while both are driven, within so many seconds. */
static int is_ended(int fd, int seconds)
{
    uint64_t end = clock_ns() + (uint64_t)seconds * 1000000000u;
    char byte[256];

    while (clock_ns() < end) {
        ssize_t n = recv(fd, byte, sizeof byte, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return 1;
        drive();
    }
    return 0;
}

static struct hello right_hello(void)
{
    struct hello h = {.version = FRAME_VERSION, .from = 0, .to = 1, .n_pes = PES};

    return h;
}

static void send_all(int fd, const void *data, size_t bytes)
{
    CHECK_EQ(send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

/* Takes just so many bytes, while all are driven. */
static void receive_all(int fd, unsigned char *data, size_t bytes)
{
    uint64_t end = clock_ns() + 30000000000ull;

    for (size_t have = 0; have < bytes && clock_ns() < end; drive()) {
        ssize_t n = recv(fd, data + have, bytes - have, MSG_DONTWAIT);
        CHECK(n > 0 || (n < 0 && errno == EAGAIN));
        have += n > 0 ? (size_t)n : 0;
        if (have == bytes)
            return;
    }
    CHECK_FAIL("%zu bytes have not come", bytes);
}

static void bad_hello(struct hello h)
{
    unsigned char frame[HELLO_BYTES];
    int fd = dial(1);

    hello_encode(frame, &h);
    send_all(fd, frame, sizeof frame);
    CHECK(is_ended(fd, 30));
    close(fd);
}

/* Says a right hello to PE 1; the proof that belongs to it, by that secret, goes to *proof. */
static int say_hello(unsigned char secret_byte, unsigned char challenge[CHALLENGE_BYTES],
                     unsigned char proof[PROOF_BYTES])
{
    unsigned char frame[HELLO_BYTES], secret[32];
    struct hello h = right_hello();
    int fd = dial(1);

    hello_encode(frame, &h);
    send_all(fd, frame, sizeof frame);
    receive_all(fd, challenge, CHALLENGE_BYTES);
    memset(secret, secret_byte, sizeof secret);
    greeting_prove(secret, GREETING_OPENER, frame, challenge, proof);
    return fd;
}

static int enter_as_pe(void)
{
    unsigned char challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    int fd = say_hello(SECRET_BYTE, challenge, proof);

    send_all(fd, proof, sizeof proof);
    return fd;
}

static void untouched(int which)
{
    for (int i = 0; i < SEGMENT; i++)
        CHECK_EQ(segment_of(which)[i], 0);
}

/* A PE of the job, as far as its hello tells, that then sends this. */
static void bad_request(struct request_frame f)
{
    unsigned char frame[REQUEST_BYTES + 64];

    begin();
    int fd = enter_as_pe();
    request_encode(frame, &f);
    memset(frame + REQUEST_BYTES, 0xee, 64);
    send_all(fd, frame, sizeof frame);
    CHECK(is_ended(fd, 30));
    CHECK_EQ(complaints, 1);
    close(fd);
    untouched(1);
    close_pe(0);
    close_pe(1);
}

static void strangers(void)
{
    struct hello h;

    begin();
    h = right_hello(), h.version++, bad_hello(h);
    h = right_hello(), h.to = 0, bad_hello(h);
    h = right_hello(), h.from = PES, bad_hello(h);
    h = right_hello(), h.n_pes = PES + 1, bad_hello(h);
    int fd = dial(1);
    static char garbage[200000];
    memset(garbage, 'x', sizeof garbage);
    (void)!send(fd, garbage, sizeof garbage, MSG_NOSIGNAL | MSG_DONTWAIT);
    CHECK(is_ended(fd, 3));
    close(fd);
    CHECK_EQ(pe[1].lost, 0); /* no PE has anything to do with it */
    untouched(1);
    close_pe(0);
    close_pe(1);
}

/* Who shows no proof, or one that is not good here, is not let in, and its put is not looked at. */
static void bad_proof(int fd, const unsigned char proof[PROOF_BYTES])
{
    unsigned char frame[PROOF_BYTES + REQUEST_BYTES + 8] = {0};

    memcpy(frame, proof, PROOF_BYTES);
    request_encode(frame + PROOF_BYTES, &(struct request_frame){.kind = FRAME_PUT, .bytes = 8});
    memset(frame + PROOF_BYTES + REQUEST_BYTES, 0xee, 8);
    send_all(fd, frame, sizeof frame);
    CHECK(is_ended(fd, 30));
    close(fd);
}

static void proofs(void)
{
    unsigned char challenge[CHALLENGE_BYTES], before[CHALLENGE_BYTES], proof[PROOF_BYTES];
    unsigned char secret[32], heard[PROOF_BYTES];
    int fd;

    begin();
    fd = say_hello(SECRET_BYTE, before, heard); /* which an eavesdropper would hear */
    close(fd);
    fd = say_hello(SECRET_BYTE, challenge, proof);
    CHECK(memcmp(challenge, before, NONCE_BYTES) != 0);
    memset(secret, SECRET_BYTE, sizeof secret);
    CHECK(!memmem(challenge, sizeof challenge, secret, 4));
    proof[0] ^= 1, bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE, challenge, proof), proof[31] ^= 128, bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE + 1, challenge, proof), bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE, challenge, proof), bad_proof(fd, heard);
    fd = say_hello(SECRET_BYTE, challenge, proof), bad_proof(fd, challenge + NONCE_BYTES);
    fd = say_hello(SECRET_BYTE, challenge, proof), bad_proof(fd, secret);
    untouched(1);
    CHECK_EQ(pe[1].lost + complaints, 0);
    close_pe(0);
    close_pe(1);
}

/* A PE opens one stream to another: who comes as the same once more is not let in, while the first is
 * there, and when it has gone. */
static void said_again(void)
{
    unsigned char challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    static long value;

    begin();
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    int fd = say_hello(SECRET_BYTE, challenge, proof);
    bad_proof(fd, proof);
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    fd = say_hello(SECRET_BYTE, challenge, proof);
    bad_proof(fd, proof);
    untouched(1);
    CHECK_EQ(pe[1].lost + complaints, 0);
    close_pe(1);
}

static void requests_that_break_the_rules(void)
{
#define BAD(...) bad_request((struct request_frame){__VA_ARGS__})
    BAD(.kind = 0);
    BAD(.kind = FRAME_NOTE + 1);
    BAD(.kind = FRAME_NOTE, .bytes = TRANSPORT_NOTE_MAX + 1);
    BAD(.kind = FRAME_LOST, .offset = PES);
    BAD(.kind = FRAME_LOST, .offset = (uint64_t)1 << 32);
    BAD(.kind = FRAME_PUT, .segment = 1, .bytes = 64);
    BAD(.kind = FRAME_PUT, .segment = 255, .bytes = 64);
    BAD(.kind = FRAME_PUT, .offset = SEGMENT - 63, .bytes = 64);
    BAD(.kind = FRAME_PUT, .offset = SEGMENT + 1, .bytes = 0);
    BAD(.kind = FRAME_PUT, .offset = UINT64_MAX - 31, .bytes = 64);
    BAD(.kind = FRAME_PUT, .offset = 64, .bytes = UINT64_MAX - 32);
    BAD(.kind = FRAME_PUT, .offset = (uint64_t)-64, .bytes = 64);
    BAD(.kind = FRAME_PUT, .signal_op = 3, .bytes = 64);
    BAD(.kind = FRAME_PUT, .signal_op = 1, .a = 4, .bytes = 64);
    BAD(.kind = FRAME_PUT, .signal_op = 1, .a = SEGMENT, .bytes = 64);
    BAD(.kind = FRAME_PUT, .signal_op = 1, .signal_segment = 3, .bytes = 64);
    BAD(.kind = FRAME_GET, .offset = SEGMENT, .bytes = 1);
    BAD(.kind = FRAME_GET, .offset = 8, .bytes = UINT64_MAX);
    BAD(.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = 4);
    BAD(.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = SEGMENT - 4);
    BAD(.kind = FRAME_ATOMIC, .type = 200);
    BAD(.kind = FRAME_ATOMIC, .amo = 200, .type = GSHMEM_TYPE_UINT64);
}

/* Many who say nothing are sent away in time, and meanwhile a PE gets in. */
static void silent_strangers(void)
{
    enum { MANY = 100 };
    int fd[MANY];
    static long value = 7;

    begin();
    for (int i = 0; i < MANY; i++)
        fd[i] = dial(1);
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    CHECK_EQ(not_ok, 0);
    CHECK_EQ(*(long *)(void *)segment_of(1), 7);
    for (int i = 0; i < MANY; i++) {
        CHECK(is_ended(fd[i], 20));
        close(fd[i]);
    }
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* ---- Silence ---- */

static void expect_patience(const char *seconds)
{
    setenv("GSHMEM_PEER_TIMEOUT", seconds, 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

static struct transport_request small_put(void)
{
    static uint64_t value = 7;

    return (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8};
}

/* A PE that does nothing any more, while the system still takes what it is sent: it is given up if it
 * owes an answer, and only then. */
static void silent_peer(void)
{
    uint64_t start, end = clock_ns() + 40000000000ull;

    expect_patience("1");
    begin();
    post(0, small_put());
    settle();
    for (start = clock_ns(); clock_ns() - start < 2500000000u;)
        drive_one(0);
    CHECK_EQ(pe[0].lost, 0);
    start = clock_ns();
    post(0, small_put());
    while (!not_ok && clock_ns() < end)
        drive_one(0);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    CHECK(clock_ns() - start >= 1000000000u);
    close_pe(0);
    close_pe(1);

    begin(); /* and one that has never said anything */
    post(0, small_put());
    while (!not_ok && clock_ns() < end)
        drive_one(0);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* A put whose data comes slowly: its sender is told again and again that it is being taken, and has
 * patience as long as it hears that. */
static void slow_put(void)
{
    unsigned char bytes[REQUEST_BYTES], answer[ANSWER_BYTES];
    uint64_t end = clock_ns() + 40000000000ull;
    struct answer_frame a;

    expect_patience("1");
    begin();
    int fd = enter_as_pe(), heard = 0;
    request_encode(bytes,
                   &(struct request_frame){.kind = FRAME_PUT, .offset = 64, .bytes = SEGMENT - 64});
    send_all(fd, bytes, sizeof bytes);
    for (int i = 0; heard < 3 && clock_ns() < end; i++) {
        drive_one(1);
        if (i % 20 == 0)
            send_all(fd, "x", 1);
        if (recv(fd, answer, sizeof answer, MSG_DONTWAIT) == (ssize_t)sizeof answer) {
            CHECK(answer_decode(answer, &a) && a.kind == ANSWER_DONE && a.number == 0);
            heard++;
        }
    }
    CHECK_EQ(heard, 3);
    close(fd);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

/* A socket to which the others come in place of that PE. */
static int stand_in_for(int which)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct address a = {.n = 1, .ip = {{{{[10] = 255, 255, 127, 0, 0, 1}}}}};
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof in;

    CHECK(door >= 0 && bind(door, (struct sockaddr *)&in, size) == 0 && listen(door, 1) == 0);
    CHECK_EQ(getsockname(door, (struct sockaddr *)&in, &size), 0);
    a.port = ntohs(in.sin_port);
    pe[which].address_bytes = address_encode(&a, pe[which].address, sizeof pe[which].address);
    return door;
}

/* The acceptor's part, by that secret. */
static int greet_at(int door, unsigned char secret_byte)
{
    unsigned char frame[HELLO_BYTES], secret[32], challenge[CHALLENGE_BYTES] = {1, 2, 3};
    int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);

    CHECK(fd >= 0);
    receive_all(fd, frame, sizeof frame);
    memset(secret, secret_byte, sizeof secret);
    CHECK(!memmem(frame, sizeof frame, secret, 4));
    greeting_prove(secret, GREETING_ACCEPTOR, frame, challenge, challenge + NONCE_BYTES);
    send_all(fd, challenge, sizeof challenge);
    return fd;
}

/* Who sits at a PE's address and does not know the secret is told nothing, and not believed. */
static void impostor(void)
{
    unsigned char byte;

    begin();
    int door = stand_in_for(1);
    post(0, small_put());
    int fd = greet_at(door, SECRET_BYTE + 1);
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    CHECK_EQ(recv(fd, &byte, 1, 0), 0); /* nothing came after the hello */
    close(fd);
    close(door);
    close_pe(0);
    close_pe(1);
}

/* The other side of it: a peer that is long about an answer, and says that it lives. */
static void slow_answer(void)
{
    unsigned char frame[ANSWER_BYTES];
    uint64_t start;

    expect_patience("1");
    begin();
    int door = stand_in_for(1);
    post(0, small_put());
    int fd = greet_at(door, SECRET_BYTE);
    answer_encode(frame, &(struct answer_frame){ANSWER_DONE, 0, 0});
    for (start = clock_ns(); clock_ns() - start < 3000000000u; drive_one(0)) /* every ms or later */
        send_all(fd, frame, sizeof frame);
    CHECK_EQ(ok + not_ok + pe[0].lost, 0);
    answer_encode(frame, &(struct answer_frame){ANSWER_DONE, 1, 0});
    send_all(fd, frame, sizeof frame);
    settle();
    CHECK_EQ(ok, 1);
    close(fd);
    close(door);
    close_pe(0);
    close_pe(1);
    expect_patience("10");
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    sizes();
    signal_after_data();
    source_again();
    back_pressure();
    news();
    notes();
    closes_with_requests_in_flight();
    congestion_control();
    strangers();
    proofs();
    impostor();
    said_again();
    requests_that_break_the_rules();
    silent_strangers();
    silent_peer();
    slow_put();
    slow_answer();
    return 0;
}

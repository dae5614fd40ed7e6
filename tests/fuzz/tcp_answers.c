/* Fuzz target: what the other side of a TCP stream may answer to this PE's requests.
 *
 * An input is a byte for how many bytes arrive at a time (0: all), what the answer to the hello differs
 * by from a right one, and the bytes; they come from a
 * socket on the loopback that stands for the peer and has been asked the same few things each time.
 * Each request must end once, in order, and by success only if the answers say so; what was fetched
 * is what they brought, and nothing beside it is written; a peer is lost at most once. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "gshmem/type.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "transport/tcp/address.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/state.h"

enum { REQUESTS = 9, LARGE = 1000, SMALL = 24 };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What the answers may be written to, and what lies beside it. */
struct fetched {
    unsigned char before[64], large[LARGE], between[64], small[SMALL];
    uint64_t old;
    unsigned char behind[64];
    uint64_t element[2], update; /* by records of batches */
    unsigned char after[64];
};
static struct fetched fetched, expected;

/* What words may be written to, and what lies beside it. */
enum { REACHED = 64 };
struct memory {
    unsigned char before[64], segment[REACHED], after[64];
} __attribute__((aligned(64)));
static struct memory memory, expected_memory;

static struct address listening; /* the peer's */
static int listener = -1;
static int ended, losses, refusals;
static gshmem_status_t status_of[REQUESTS + 1], failure[REQUESTS + 1]; /* by number; the latter: told */

/* ---- What the transport is lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    (void)format;
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t find(void *context, int pe, void *address, size_t capacity, size_t *bytes)
{
    (void)context;
    MUST(pe == 1);
    *bytes = address_encode(&listening, address, capacity);
    return GSHMEM_OK;
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    (void)context, (void)amo, (void)type, (void)target, (void)operand, (void)compare;
    abort(); /* nobody asks this PE */
}

static void lose(void *context, int pe, gshmem_status_t status, const char *why)
{
    (void)context;
    MUST(pe == 1 && status && why[0] && !strchr(why, '\n'));
    losses++;
}

static void refuse(void *context, int pe)
{
    (void)context;
    MUST(pe == 1);
    refusals++;
}

static void done(void *tag, gshmem_status_t status)
{
    MUST((intptr_t)tag == ++ended); /* each once, in the order in which they were posted */
    status_of[ended] = status;
}

/* ---- The model: what the answers mean ---- */

static const struct {
    enum transport_kind kind;
    uint64_t bytes;
    size_t at;    /* in struct fetched, what it brings */
    bool coalesced; /* it travels as a record, and what it brings with that of others */
} asked[REQUESTS + 1] = {
    {0}, /* numbers begin at 1 */
    {TRANSPORT_PUT, 8, 0, false},
    {TRANSPORT_GET, LARGE, offsetof(struct fetched, large), false},
    {TRANSPORT_ATOMIC, 8, offsetof(struct fetched, old), false},
    {TRANSPORT_GET, SMALL, offsetof(struct fetched, small), false},
    {TRANSPORT_ATOMIC, 0, 0, false}, /* that fetches nothing */
    {TRANSPORT_PUT, 0, 0, false},
    {TRANSPORT_GET, 8, offsetof(struct fetched, element[0]), true},
    {TRANSPORT_GET, 8, offsetof(struct fetched, element[1]), true},
    {TRANSPORT_ATOMIC, 8, offsetof(struct fetched, update), true},
};
/* The frames of those, with the data of the first and the records of the last. */
enum { ASKED_BYTES = 8 * REQUEST_BYTES + 8 + 2 * 4 + 12 };

static bool brings(int number)
{
    return asked[number].kind != TRANSPORT_PUT && asked[number].bytes;
}

/* How many bytes of a word there are; *broken: it is none, or points to where it may not. */
static size_t model_word(const uint8_t *data, size_t bytes, bool *broken)
{
    struct request_frame f;
    uint64_t number;

    *broken = !request_decode(data, &f) || f.segment || f.bytes > REACHED ||
              f.offset > REACHED - f.bytes || (f.signal_op != 1 && f.signal_op != 2) ||
              f.signal_segment || f.a % 8 || f.a > REACHED - 8;
    if (*broken)
        return 0;
    size_t have = bytes - REQUEST_BYTES < f.bytes ? bytes - REQUEST_BYTES : f.bytes;
    memcpy(expected_memory.segment + f.offset, data + REQUEST_BYTES, have);
    if (have == f.bytes) {
        memcpy(&number, expected_memory.segment + f.a, 8);
        number = f.signal_op == 1 ? f.b : number + f.b;
        memcpy(expected_memory.segment + f.a, &number, 8);
    }
    return REQUEST_BYTES + have;
}

/* What is behind a response to several records: how much of it was right, and has come. */
static size_t model_fetched(const uint8_t *data, size_t bytes, uint64_t value, int *over,
                            bool *broken)
{
    size_t taken = 0;

    *broken |= value == 0;
    while (!*broken && taken < value) {
        *broken = *over == REQUESTS || !asked[*over + 1].coalesced || value - taken < 8;
        if (*broken || bytes - taken < 8)
            break;
        memcpy((unsigned char *)&expected + asked[++*over].at, data + taken, 8);
        taken += 8;
    }
    return taken;
}

/* How many requests the answers end, by success or the failure that they tell; *broken: they break the
 * rules. */
static int model_answers(const uint8_t *data, size_t bytes, bool *goodbye, bool *refused, bool *broken)
{
    struct response_frame a;
    uint64_t left[REQUESTS + 1];
    int over = 0;

    for (int number = 1; number <= REQUESTS; number++)
        left[number] = asked[number].bytes;
    *goodbye = *refused = *broken = false;
    for (; bytes >= RESPONSE_BYTES; data += RESPONSE_BYTES, bytes -= RESPONSE_BYTES) {
        while (bytes >= REQUEST_BYTES && data[0] == FRAME_PUT) {
            size_t taken = model_word(data, bytes, broken);
            if (*broken)
                return over;
            data += taken;
            bytes -= taken;
        }
        if (bytes < RESPONSE_BYTES || data[0] == FRAME_PUT)
            return over;
        if (!response_decode(data, &a)) {
            *broken = true;
            return over;
        }
        if (a.kind == RESPONSE_GOODBYE) {
            *goodbye = true;
            continue;
        }
        if (a.kind == RESPONSE_REFUSED) {
            *refused = true;
            return over;
        }
        if (a.kind == RESPONSE_DONE && a.number == (uint64_t)over)
            continue;
        *broken = a.number <= (uint64_t)over || a.number > REQUESTS;
        if (*broken)
            return over;
        int number = (int)a.number;
        while (over < number - (a.kind != RESPONSE_DONE) && !brings(over + 1))
            over++;
        *broken = over < number - (a.kind != RESPONSE_DONE);
        if (a.kind == RESPONSE_FAILED) {
            *broken |= a.value < GSHMEM_ERR_ARGUMENT || a.value > GSHMEM_ERR_SYSTEM;
            if (*broken)
                return over;
            failure[number] = (gshmem_status_t)a.value;
            over = number;
            continue;
        }
        if (a.kind == RESPONSE_FETCHED) {
            if (*broken)
                return over;
            over = number - 1;
            const size_t taken =
                model_fetched(data + RESPONSE_BYTES, bytes - RESPONSE_BYTES, a.value, &over, broken);
            if (*broken || taken < a.value)
                return over;
            data += taken;
            bytes -= taken;
            continue;
        }
        /* Data and values must be for who asked for them, and who asked for them must get them. */
        *broken |= asked[number].coalesced;
        bool is_get = asked[number].kind == TRANSPORT_GET;
        bool is_fetch = asked[number].kind == TRANSPORT_ATOMIC && brings(number);
        *broken |= is_get != (a.kind == RESPONSE_DATA) ||
                   (is_get && (a.value > left[number] || (a.value == 0 && left[number])));
        if (*broken)
            return over;
        if (is_fetch)
            expected.old = a.value;
        if (is_get) {
            over = number - 1;
            size_t have = bytes - RESPONSE_BYTES < a.value ? bytes - RESPONSE_BYTES : a.value;
            memcpy((unsigned char *)&expected + asked[number].at + asked[number].bytes - left[number],
                   data + RESPONSE_BYTES, have);
            if (have < a.value)
                return over;
            left[number] -= a.value;
            data += have;
            bytes -= have;
            if (left[number])
                continue;
        }
        over = number;
    }
    return over;
}

/* ---- The stream ---- */

static void begin_listening(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;

    listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(listener >= 0 && bind(listener, (struct sockaddr *)&name, size) == 0);
    MUST(listen(listener, 8) == 0 && getsockname(listener, (struct sockaddr *)&name, &size) == 0);
    listening = (struct address){.port = ntohs(name.sin_port), .n = 1};
    listening.ip[0].s6_addr[10] = listening.ip[0].s6_addr[11] = 0xff;
    memcpy(listening.ip[0].s6_addr + 12, &name.sin_addr, 4);
}

static const unsigned char secret[TRANSPORT_KEY_BYTES] = "the key of two PEs is 32 bytes";

static gshmem_status_t key(void *context, int which, unsigned char out[TRANSPORT_KEY_BYTES])
{
    (void)context;
    MUST(which == 1);
    memcpy(out, secret, sizeof secret);
    return GSHMEM_OK;
}

static void progress(struct transport *t)
{
    int events;

    MUST(transport_tcp.progress(t, &events) == GSHMEM_OK);
}

static void post(struct transport *t, int number)
{
    static uint64_t source = 77;
    struct transport_request r = {.kind = asked[number].kind, .pe = 1, .bytes = asked[number].bytes,
                                  .flags = asked[number].coalesced ? TRANSPORT_MORE | TRANSPORT_HELD : 0,
                                  .done = done, .tag = (void *)(intptr_t)number};

    r.local = r.kind == TRANSPORT_GET ? (void *)((unsigned char *)&fetched + asked[number].at)
                                      : &source;
    if (r.kind == TRANSPORT_ATOMIC) {
        r.amo = GSHMEM_AMO_ADD;
        r.type = GSHMEM_TYPE_UINT64;
        r.old = r.bytes ? (uint64_t *)(void *)((unsigned char *)&fetched + asked[number].at) : NULL;
    }
    MUST(transport_tcp.post(t, &r) == GSHMEM_OK);
}

static void receive(struct transport *t, int fd, unsigned char *received, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        progress(t);
        ssize_t n = recv(fd, received + have, bytes - have, MSG_DONTWAIT);
        MUST(n > 0 || (n < 0 && errno == EAGAIN));
        have += n > 0 ? (size_t)n : 0;
    }
}

/* The peer's end, after all that it is asked has come; if its part of the greeting differs from a right
 * one, nothing comes. */
static int connect_peer(struct transport *t, const uint8_t wrong[CHALLENGE_BYTES], bool *greeted)
{
    const struct linger reset = {1, 0}; /* leaves no port behind that waits */
    unsigned char received[ASKED_BYTES], welcome[RESPONSE_BYTES], hello[HELLO_BYTES + PROOF_BYTES];
    unsigned char challenge[CHALLENGE_BYTES] = {11}, proof[PROOF_BYTES];

    for (int number = 1; number <= REQUESTS; number++)
        post(t, number);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    MUST(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    receive(t, fd, hello, sizeof hello);
    greeting_prove(secret, GREETING_ACCEPTOR, hello, challenge, challenge + NONCE_BYTES);
    greeting_prove(secret, GREETING_OPENER, hello, challenge, proof);
    *greeted = true;
    for (int i = 0; i < CHALLENGE_BYTES; i++) {
        challenge[i] ^= wrong[i];
        *greeted &= !wrong[i];
    }
    MUST(send(fd, challenge, sizeof challenge, MSG_NOSIGNAL) == sizeof challenge);
    if (*greeted) {
        receive(t, fd, received, PROOF_BYTES);
        MUST(memcmp(received, proof, sizeof proof) == 0);
        response_encode(welcome, &(struct response_frame){.kind = RESPONSE_DONE});
        MUST(send(fd, welcome, sizeof welcome, MSG_NOSIGNAL) == sizeof welcome);
        receive(t, fd, received, sizeof received);
    }
    return fd;
}

/* Whether the PE has ended the stream, after it was told that no more comes. */
static void wait_for_end(struct transport *t, int fd)
{
    struct pollfd ready = {.fd = transport_tcp.wait_fd(t), .events = POLLIN};
    char byte;

    for (int tries = 0; recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN; tries++) {
        MUST(tries < 100);
        poll(&ready, 1, 100);
        progress(t);
    }
}

static void answer(struct transport *t, int fd, const uint8_t *data, size_t bytes, size_t at_a_time)
{
    while (bytes) {
        size_t part = at_a_time && at_a_time < bytes ? at_a_time : bytes;
        ssize_t n = send(fd, data, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            break; /* it was ended */
        data += n;
        bytes -= (size_t)n;
        progress(t);
    }
    shutdown(fd, SHUT_WR);
    wait_for_end(t, fd);
}

static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);

    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct transport_config config = {.size = sizeof config, .fail = complain, .fail_handled = complain, .info = be_silent,
                                      .n_pes = 2, .one_machine = 1, .find = find, .key = key, .apply = apply,
                                      .lost = lose, .refused = refuse, .segments = 1,
                                      .segment = {{.base = (char *)memory.segment, .bytes = REACHED}}};
    struct transport *t;
    bool goodbye = false, refused = false, broken = true, greeted;
    int over = 0;

    if (bytes < 1 + CHALLENGE_BYTES)
        return 0;
    if (listener < 0) {
        MUST(settings_load() == GSHMEM_OK);
        log_set_level(LOG_NONE);
        begin_listening();
    }
    int free_before = next_descriptor();
    memset(&fetched, 0xc5, sizeof fetched);
    memset(&expected, 0xc5, sizeof expected);
    memset(&memory, 0xc5, sizeof memory);
    memset(&expected_memory, 0xc5, sizeof expected_memory);
    ended = losses = refusals = 0;
    memset(failure, 0, sizeof failure);

    MUST(transport_tcp.open(&config, &t) == GSHMEM_OK);
    int fd = connect_peer(t, data + 1, &greeted);
    data += CHALLENGE_BYTES;
    bytes -= CHALLENGE_BYTES;
    answer(t, fd, data + 1, bytes - 1, data[-CHALLENGE_BYTES]);
    if (greeted)
        over = model_answers(data + 1, bytes - 1, &goodbye, &refused, &broken);

    MUST(ended == REQUESTS);
    for (int number = 1; number <= REQUESTS; number++)
        MUST(number <= over ? status_of[number] == failure[number] : status_of[number] != GSHMEM_OK);
    MUST(over == REQUESTS || !broken || status_of[over + 1] == GSHMEM_ERR_TRANSPORT);
    MUST(memcmp(&fetched, &expected, sizeof fetched) == 0);
    MUST(memcmp(&memory, &expected_memory, sizeof memory) == 0);
    MUST(losses == !(refused || (goodbye && over == REQUESTS))); /* who has left owes nothing */
    MUST(refusals == refused);
    close(fd);
    transport_tcp.close(t);
    MUST(ended == REQUESTS && next_descriptor() == free_before);
    return 0;
}

/* ---- Seeds ---- */

static size_t say(uint8_t *at, enum response_kind kind, uint64_t number, uint64_t value)
{
    response_encode(at, &(struct response_frame){kind, number, value});
    if (kind != RESPONSE_DATA && kind != RESPONSE_FETCHED)
        return RESPONSE_BYTES;
    for (uint64_t i = 0; i < value; i++)
        at[RESPONSE_BYTES + i] = (uint8_t)(i + number);
    return RESPONSE_BYTES + value;
}

static size_t say_word(uint8_t *at, uint64_t offset, uint64_t bytes)
{
    request_encode(at, &(struct request_frame){.kind = FRAME_PUT, .unasked = 1, .offset = offset,
                                               .bytes = bytes, .signal_op = 2, .a = 48, .b = 5});
    memset(at + REQUEST_BYTES, 0x77, bytes);
    return REQUEST_BYTES + bytes;
}

/* All right but for one answer, a little wrong: the number-th; none if there is no such. */
static size_t answers(unsigned wrong, uint8_t *data)
{
    size_t n = 0;

    n += say_word(data + n, 8, 40);
    n += say(data + n, RESPONSE_DONE, 1, 0);
    if (wrong == 1)
        n += say(data + n, RESPONSE_VALUE, 2, LARGE);
    if (wrong == 11) { /* in two parts */
        n += say(data + n, RESPONSE_DATA, 2, LARGE / 3);
        n += say(data + n, RESPONSE_DATA, 2, LARGE - LARGE / 3);
    } else if (wrong == 12) { /* and none of the second, */
        n += say(data + n, RESPONSE_DATA, 2, LARGE / 3);
        n += say(data + n, RESPONSE_FAILED, 2, GSHMEM_ERR_DEVICE);
    } else if (wrong == 13) { /* or more than there should be of it */
        n += say(data + n, RESPONSE_DATA, 2, LARGE / 3);
        n += say(data + n, RESPONSE_DATA, 2, LARGE);
    } else {
        n += say(data + n, RESPONSE_DATA, 2, wrong == 2 ? LARGE + 1 : wrong == 3 ? LARGE - 1 : LARGE);
    }
    n += say_word(data + n, wrong == 15 ? 50 : 0, 16);
    n += say(data + n, wrong == 4 ? RESPONSE_DATA : RESPONSE_VALUE, 3, 8);
    if (wrong == 5)
        n += say(data + n, RESPONSE_DONE, 5, 0);
    if (wrong == 6)
        n += say(data + n, RESPONSE_DONE, 2, 0);
    if (wrong != 7)
        n += say(data + n, RESPONSE_DATA, 4, SMALL);
    n += say(data + n, RESPONSE_DONE, 4, 0);
    if (wrong == 24)
        n += say(data + n, RESPONSE_FETCHED, 5, 24); /* which brings nothing */
    if (wrong == 8)
        n += say(data + n, RESPONSE_DATA, 5, 0);
    n += say(data + n, wrong == 14 ? RESPONSE_FAILED : RESPONSE_VALUE, 5, 77);
    n += say(data + n, RESPONSE_DONE, wrong == 9 ? 7 : 6, 0);
    if (wrong == 16) { /* in parts, with a word and what is due between them */
        n += say(data + n, RESPONSE_FETCHED, 7, 8);
        n += say_word(data + n, 0, 8);
        n += say(data + n, RESPONSE_FETCHED, 8, 8);
        n += say(data + n, RESPONSE_FETCHED, 9, 8);
    } else if (wrong == 17) {
        n += say(data + n, RESPONSE_FETCHED, 7, 20); /* not as many bytes as elements have */
    } else if (wrong == 18) {
        n += say(data + n, RESPONSE_DATA, 7, 8);
    } else if (wrong == 19) {
        n += say(data + n, RESPONSE_FETCHED, 7, 16);
        n += say(data + n, RESPONSE_VALUE, 9, 3);
    } else if (wrong == 20) {
        n += say(data + n, RESPONSE_FETCHED, 8, 16); /* without the first */
    } else if (wrong == 21) {
        n += say(data + n, RESPONSE_FETCHED, 7, 0);
    } else if (wrong == 22) {
        n += say(data + n, RESPONSE_FAILED, 7, GSHMEM_ERR_DEVICE);
        n += say(data + n, RESPONSE_FETCHED, 8, 16);
    } else {
        n += say(data + n, RESPONSE_FETCHED, 7, wrong == 23 ? 32 : 24);
    }
    if (wrong != 10)
        n += say(data + n, RESPONSE_GOODBYE, 6, 0);
    return n;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static const uint8_t at_a_time[] = {0, 23, 100};

    if (number >= 3 * 25 || capacity < 4096)
        return 0;
    data[0] = at_a_time[number % 3];
    memset(data + 1, 0, CHALLENGE_BYTES);
    return 1 + CHALLENGE_BYTES + answers(number / 3, data + 1 + CHALLENGE_BYTES);
}

#define _GNU_SOURCE
#include "pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GUARD = 4096 };

struct pe pe[PES];
int complaints;

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

/* Of the updates, those that tests make. */
static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    uint64_t *word = target;
    const uint64_t old = *word;

    (void)context;
    CHECK(type == GSHMEM_TYPE_UINT64);
    CHECK(amo == GSHMEM_AMO_ADD || amo == GSHMEM_AMO_SWAP || amo == GSHMEM_AMO_COMPARE_SWAP);
    if (amo == GSHMEM_AMO_ADD)
        *word += operand;
    else if (amo == GSHMEM_AMO_SWAP || old == compare)
        *word = operand;
    return old;
}

static void lost(void *context, int which, gshmem_status_t status, const char *why)
{
    (void)which, (void)why;
    CHECK(status != GSHMEM_OK);
    ((struct pe *)context)->lost++;
    ((struct pe *)context)->lost_by = status;
}

static gshmem_status_t key(void *context, int which, unsigned char out[TRANSPORT_KEY_BYTES])
{
    (void)context;
    CHECK(which >= 0 && which < PES);
    memset(out, SECRET_BYTE, TRANSPORT_KEY_BYTES);
    return GSHMEM_OK;
}

static void refused(void *context, int which)
{
    struct pe *p = context;

    CHECK(which != p - pe);
    p->refusals++;
}

static void notified(void *context, int from, int which)
{
    struct pe *p = context;

    CHECK_EQ(from, p == &pe[0]);
    CHECK(p->tellings < 8);
    p->notified[p->tellings++] = which;
}

static void received(void *context, int from, const void *note, size_t bytes)
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

    setenv("GSHMEM_INIT_TIMEOUT", "1", 0); /* both are there: PEs that are silent are so for another reason */
    CHECK_EQ(settings_load(), GSHMEM_OK);
    *p = (struct pe){.memory = calloc(1, SEGMENT + 2 * GUARD)};
    CHECK(p->memory);
    p->config = (struct transport_config){
        .size = sizeof p->config, .fail = complain, .fail_handled = complain, .info = be_silent, .pe = me, .n_pes = PES,
        .one_machine = 1, .context = p, .find = find, .key = key, .apply = apply, .lost = lost, .notified = notified,
        .refused = refused, .received = received};
    CHECK_EQ(transport_tcp.open(&p->config, &p->t), GSHMEM_OK);
    CHECK_EQ(transport_tcp.address(p->t, p->address, sizeof p->address, &p->address_bytes), GSHMEM_OK);
    p->config.segments = 1;
    p->config.segment[0] = (struct transport_segment){.base = (char *)p->memory + GUARD, .bytes = SEGMENT};
    transport_tcp.begin(p->t, &p->config);
}

void close_pe(int me)
{
    if (pe[me].t)
        transport_tcp.close(pe[me].t);
    pe[me].t = NULL;
    for (int i = 0; i < GUARD; i++)
        CHECK(!pe[me].memory[i] && !pe[me].memory[GUARD + SEGMENT + i]);
    free(pe[me].memory);
}

int drive(void)
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

int ok, not_ok, posted, last_tag;

static int last_of[PES]; /* PEs */

static void done(void *tag, gshmem_status_t status)
{
    int number = (int)((intptr_t)tag / PES), from = (int)((intptr_t)tag % PES);

    CHECK(number > last_of[from]); /* in the order in which it posted them */
    last_tag = last_of[from] = number;
    *(status ? &not_ok : &ok) += 1;
}

gshmem_status_t try_post(int from, struct transport_request r)
{
    if (r.pe == from)
        r.pe = 1 - from;
    r.done = done;
    r.tag = (void *)((intptr_t)(posted + 1) * PES + from);
    gshmem_status_t status = transport_tcp.post(pe[from].t, &r);
    posted += status == GSHMEM_OK;
    return status;
}

void post(int from, struct transport_request r)
{
    gshmem_status_t status;

    while ((status = try_post(from, r)) == TRANSPORT_FULL)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
}

void settle(void)
{
    uint64_t end = clock_ns() + 30000000000ull;

    while (ok + not_ok < posted) {
        drive();
        if (clock_ns() > end)
            CHECK_FAIL("%d of %d requests have ended", ok + not_ok, posted);
    }
}

void begin(void)
{
    ok = not_ok = posted = last_tag = complaints = 0;
    memset(last_of, 0, sizeof last_of);
    open_pe(0);
    open_pe(1);
}

char *segment_of(int which)
{
    return pe[which].config.segment[0].base;
}

void drive_one(int which)
{
    int events;

    CHECK_EQ(transport_tcp.progress(pe[which].t, &events), GSHMEM_OK);
    usleep(1000);
}

void untouched(int which)
{
    for (int i = 0; i < SEGMENT; i++)
        CHECK_EQ(segment_of(which)[i], 0);
}

struct transport_request small_put(int to)
{
    static uint64_t value = 7;

    return (struct transport_request){.kind = TRANSPORT_PUT, .pe = to, .local = &value, .bytes = 8};
}

/* ---- By hand ---- */

int dial(int which)
{
    struct address a;
    struct sockaddr_storage where;

    CHECK(address_decode(pe[which].address, pe[which].address_bytes, &a));
    socklen_t size = address_socket(&a, 0, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&where, size) == 0);
    return fd;
}

int is_ended(int fd, int seconds)
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

struct hello right_hello(void)
{
    struct hello h = {.version = FRAME_VERSION, .from = 0, .to = 1, .n_pes = PES};

    return h;
}

void send_all(int fd, const void *data, size_t bytes)
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

static int say_hello_as(int who, unsigned char secret_byte, unsigned char challenge[CHALLENGE_BYTES],
                        unsigned char proof[PROOF_BYTES])
{
    unsigned char frame[HELLO_BYTES + PROOF_BYTES], secret[32];
    struct hello h = right_hello();
    int fd = dial(1);

    h.from = (uint32_t)who;
    hello_encode(frame, &h);
    memset(secret, SECRET_BYTE, sizeof secret);
    greeting_prove_hello(secret, frame, frame + HELLO_BYTES);
    send_all(fd, frame, sizeof frame);
    receive_all(fd, challenge, CHALLENGE_BYTES);
    memset(secret, secret_byte, sizeof secret);
    greeting_prove(secret, GREETING_OPENER, frame, challenge, proof);
    return fd;
}

int say_hello(unsigned char secret_byte, unsigned char challenge[CHALLENGE_BYTES],
              unsigned char proof[PROOF_BYTES])
{
    return say_hello_as(0, secret_byte, challenge, proof);
}

int enter_as(int who)
{
    unsigned char challenge[CHALLENGE_BYTES], proof[PROOF_BYTES], welcome[RESPONSE_BYTES];
    struct response_frame a;
    int fd = say_hello_as(who, SECRET_BYTE, challenge, proof);

    send_all(fd, proof, sizeof proof);
    receive_all(fd, welcome, sizeof welcome);
    CHECK(response_decode(welcome, &a) && a.kind == RESPONSE_DONE && a.number == 0);
    return fd;
}

int enter_as_pe(void)
{
    return enter_as(0);
}

int stand_in_for(int which)
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

int greet_at(int door, unsigned char secret_byte)
{
    unsigned char frame[HELLO_BYTES + PROOF_BYTES], secret[32], challenge[CHALLENGE_BYTES] = {1, 2, 3};
    unsigned char proof[PROOF_BYTES], welcome[RESPONSE_BYTES];
    int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);

    CHECK(fd >= 0);
    receive_all(fd, frame, sizeof frame);
    memset(secret, secret_byte, sizeof secret);
    CHECK(!memmem(frame, sizeof frame, secret, 4));
    greeting_prove(secret, GREETING_ACCEPTOR, frame, challenge, challenge + NONCE_BYTES);
    send_all(fd, challenge, sizeof challenge);
    if (secret_byte == SECRET_BYTE) {
        receive_all(fd, proof, sizeof proof);
        response_encode(welcome, &(struct response_frame){.kind = RESPONSE_DONE});
        send_all(fd, welcome, sizeof welcome);
    }
    return fd;
}

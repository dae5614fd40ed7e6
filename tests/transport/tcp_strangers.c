/* The TCP transport without a runtime: who is let in at its ports, who is not, and what may be asked. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

/* ---- Greetings ---- */

static void bad_hello(struct hello h, int wrong_bit)
{
    unsigned char frame[HELLO_BYTES + PROOF_BYTES], secret[32];
    int fd = dial(1);

    hello_encode(frame, &h);
    memset(secret, SECRET_BYTE, sizeof secret);
    greeting_prove_hello(secret, frame, frame + HELLO_BYTES);
    if (wrong_bit >= 0)
        frame[wrong_bit / 8] ^= (unsigned char)(1 << wrong_bit % 8);
    send_all(fd, frame, sizeof frame);
    CHECK(is_ended(fd, 30));
    close(fd);
}

static void strangers(void)
{
    struct hello h;

    begin();
    h = right_hello(), h.version++, bad_hello(h, -1);
    h = right_hello(), h.to = 0, bad_hello(h, -1);
    h = right_hello(), h.from = PES, bad_hello(h, -1);
    h = right_hello(), h.from = h.to, bad_hello(h, -1);
    h = right_hello(), h.n_pes = PES + 1, bad_hello(h, -1);
    /* of the sender, of the nonce, and of the proof */
    h = right_hello(), bad_hello(h, 8 * 12), bad_hello(h, 8 * 30), bad_hello(h, 8 * HELLO_BYTES);
    h = right_hello(), bad_hello(h, 8 * (HELLO_BYTES + PROOF_BYTES) - 1);
    int fd = dial(1);
    static char garbage[200000];
    memset(garbage, 'x', sizeof garbage);
    (void)!send(fd, garbage, sizeof garbage, MSG_NOSIGNAL | MSG_DONTWAIT);
    CHECK(is_ended(fd, 30));
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
    unsigned char secret[32], received[PROOF_BYTES];
    int fd;

    begin();
    fd = say_hello(SECRET_BYTE, before, received); /* which an eavesdropper would hear */
    close(fd);
    fd = say_hello(SECRET_BYTE, challenge, proof);
    CHECK(memcmp(challenge, before, NONCE_BYTES) != 0);
    memset(secret, SECRET_BYTE, sizeof secret);
    CHECK(!memmem(challenge, sizeof challenge, secret, 4));
    proof[0] ^= 1, bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE, challenge, proof), proof[31] ^= 128, bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE + 1, challenge, proof), bad_proof(fd, proof);
    fd = say_hello(SECRET_BYTE, challenge, proof), bad_proof(fd, received);
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
    int fd = say_hello(SECRET_BYTE, challenge, proof); /* before PE 0 itself does */
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    bad_proof(fd, proof);
    bad_hello(right_hello(), -1);
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .local = &value, .bytes = 8});
    settle();
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    bad_hello(right_hello(), -1);
    untouched(1);
    CHECK_EQ(pe[1].lost + complaints, 0);
    close_pe(1);
}

/* Who sits at a PE's address and does not know the secret is told nothing, and not believed. */
static void impostor(void)
{
    unsigned char byte;

    begin();
    int door = stand_in_for(1);
    post(0, small_put(1));
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

/* As many as this process may have connections to: a first contact is answered as soon as they have been
 * accepted, and a hello that came before them all is still good. */
static void flood(void)
{
    enum { MOST = 10000, SPARE = 300 };
    unsigned char challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    static int fd[MOST];
    struct rlimit limit;
    int n = 0;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < MOST + SPARE ? limit.rlim_max : MOST + SPARE;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    begin();
    int early = say_hello(SECRET_BYTE, challenge, proof);
    while (n < MOST && n + SPARE < (int)limit.rlim_cur) {
        fd[n++] = dial(1);
        if (n > 2000 && n % 50 == 0)
            drive(); /* the system lets 4096 wait */
    }
    CHECK(n > 500);
    struct transport_request r = small_put(0);
    post(1, r);
    post(0, small_put(1)); /* behind all of them */
    settle();
    CHECK_EQ(not_ok, 0);
    CHECK(((struct tcp *)pe[1].t)->targets.admission.strangers < 200);
    int ended = 0;
    for (int i = 0; i < n; i++)
        ended += is_ended(fd[i], i < n - 200 ? 30 : 0);
    CHECK(ended >= n - 200);
    CHECK(!is_ended(early, 0));
    for (int i = 0; i < n; i++)
        close(fd[i]);
    close(early);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    close_pe(0);
    close_pe(1);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Who overhears a hello and says it again and again, before its PE has come in, does not keep it out. */
static void hellos_again(void)
{
    enum { MANY = 300 };
    unsigned char challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    int fd[MANY];

    begin();
    for (int i = 0; i < MANY; i++)
        fd[i] = say_hello(SECRET_BYTE, challenge, proof);
    CHECK(((struct tcp *)pe[1].t)->targets.admission.strangers < 10);
    post(0, small_put(1));
    settle();
    CHECK_EQ(ok, 1);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    close_pe(0);
    close_pe(1);
}

/* Where all PEs are on this machine nobody else finds a port of theirs. */
static void at_the_loopback(void)
{
    begin();
    const struct tcp *t = (struct tcp *)pe[1].t;
    CHECK(t->targets.admission.listeners > 0);
    for (int i = 0; i < t->targets.admission.listeners; i++) {
        struct sockaddr_storage name;
        socklen_t size = sizeof name;
        CHECK_EQ(getsockname(t->targets.admission.listener[i].fd, (struct sockaddr *)&name, &size), 0);
        if (name.ss_family == AF_INET)
            CHECK_EQ(ntohl(((struct sockaddr_in *)&name)->sin_addr.s_addr) >> 24, 127);
        else
            CHECK(IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&name)->sin6_addr));
    }
    close_pe(0);
    close_pe(1);
}

/* ---- Requests ---- */

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
    CHECK_EQ(pe[1].lost, 1); /* it may be waited for */
    close(fd);
    untouched(1);
    close_pe(0);
    close_pe(1);
}

static void requests_that_break_the_rules(void)
{
#define BAD(...) bad_request((struct request_frame){__VA_ARGS__})
    BAD(.kind = 0);
    BAD(.kind = FRAME_BATCH + 1);
    BAD(.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .a = 1, .b = 8, .bytes = 13);
    BAD(.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .a = 1, .b = 8, .bytes = 12,
        .segment = 9);
    BAD(.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .a = 1, .b = 8, .bytes = 12);
    BAD(.kind = FRAME_ACK, .offset = 1);
    BAD(.kind = FRAME_MESSAGE, .bytes = TRANSPORT_NOTE_MAX + 1);
    BAD(.kind = FRAME_FAILED, .offset = PES);
    BAD(.kind = FRAME_FAILED, .offset = (uint64_t)1 << 32);
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

/* A PE of the job that has been connected to, and says this where answers are due. */
static void bad_word(struct request_frame f)
{
    unsigned char frame[REQUEST_BYTES + 64];

    begin();
    pe[0].config.segment[1] = (struct transport_segment){
        .base = pe[0].config.segment[0].base, .bytes = SEGMENT, .of_device = true};
    pe[0].config.segments = 2;
    transport_tcp.begin(pe[0].t, &pe[0].config);
    int door = stand_in_for(1);
    post(0, small_put(1));
    int fd = greet_at(door, SECRET_BYTE);
    f.kind = f.kind ? f.kind : FRAME_PUT;
    request_encode(frame, &f);
    memset(frame + REQUEST_BYTES, 0xee, 64);
    send_all(fd, frame, sizeof frame);
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].lost, 1);
    untouched(0);
    close(fd);
    close(door);
    close_pe(0);
    close_pe(1);
}

static void words_that_break_the_rules(void)
{
#define BAD_WORD(...) bad_word((struct request_frame){__VA_ARGS__})
    BAD_WORD(.bytes = 64);
    BAD_WORD(.kind = FRAME_GET, .bytes = 64);
    BAD_WORD(.signal_op = 3, .bytes = 64);
    BAD_WORD(.signal_op = 1, .segment = 2, .bytes = 64);
    BAD_WORD(.signal_op = 1, .segment = 1, .bytes = 64);
    BAD_WORD(.signal_op = 1, .signal_segment = 1, .bytes = 64);
    BAD_WORD(.signal_op = 1, .signal_segment = 200, .bytes = 64);
    BAD_WORD(.signal_op = 1, .offset = SEGMENT - 63, .bytes = 64);
    BAD_WORD(.signal_op = 1, .offset = 64, .bytes = UINT64_MAX - 32);
    BAD_WORD(.signal_op = 1, .a = 4, .bytes = 64);
    BAD_WORD(.signal_op = 1, .a = SEGMENT, .bytes = 64);
    BAD_WORD(.signal_op = 1, .more = 1, .bytes = 64);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    strangers();
    proofs();
    impostor();
    said_again();
    silent_strangers();
    flood();
    hellos_again();
    at_the_loopback();
    requests_that_break_the_rules();
    words_that_break_the_rules();
    return 0;
}

/* The launcher's state machine, message by message: whole jobs, and every way to break one. */
#include "bootstrap/run/server.h"

#include "check.h"

enum { PES = 3 };

/* What was answered last to each PE, and how much in all. */
static struct {
    unsigned char message[WIRE_MAX];
    size_t bytes;
    int count;
} answered[PES];
static bool deaf; /* PEs take no answers */

static bool note(void *context, int pe, const unsigned char *bytes, size_t n)
{
    (void)context;
    CHECK(pe >= 0 && pe < PES && n <= WIRE_MAX);
    memcpy(answered[pe].message, bytes, n);
    answered[pe].bytes = n;
    answered[pe].count++;
    return !deaf;
}

static struct server s;
static unsigned char m[WIRE_MAX + 8];

static void start(void)
{
    CHECK(server_start(&s, PES, 2, 77, note, NULL));
    memset(answered, 0, sizeof answered);
    deaf = false;
}

static bool hello(int pe)
{
    return server_receive(&s, pe, m,
                          wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, (uint32_t)pe}));
}

static bool publish(int pe, uint32_t round, const char *text)
{
    struct wire_publish p = {round, (uint32_t)strlen(text), (const unsigned char *)text};

    return server_receive(&s, pe, m, wire_encode_publish(m, &p));
}

static bool say_round(int pe, enum wire_type type, uint32_t round)
{
    return server_receive(&s, pe, m, wire_encode_round(m, type, &(struct wire_round){round}));
}

static bool fetch(int pe, uint32_t round, uint32_t of)
{
    return server_receive(&s, pe, m, wire_encode_fetch(m, &(struct wire_fetch){round, of}));
}

static bool goodbye(int pe)
{
    return server_receive(&s, pe, m, wire_encode_goodbye(m));
}

static bool end(int pe, int status, const char *why)
{
    struct wire_abort a = {status, (uint32_t)strlen(why), why};

    return server_receive(&s, pe, m, wire_encode_abort(m, &a));
}

static void all_hello(void)
{
    for (int pe = 0; pe < PES; pe++)
        CHECK(hello(pe));
}

static void check_blob(int pe, uint32_t round, uint32_t of, const char *text)
{
    struct wire_blob b;

    CHECK(fetch(pe, round, of));
    CHECK(wire_decode_blob(answered[pe].message, answered[pe].bytes, &b));
    CHECK_EQ(b.round, round);
    CHECK_EQ(b.pe, of);
    CHECK_EQ(b.bytes, strlen(text));
    CHECK_EQ(memcmp(b.blob, text, b.bytes), 0);
}

static bool released(int pe, uint32_t round)
{
    struct wire_round r;

    return wire_decode_round(answered[pe].message, answered[pe].bytes, WIRE_RELEASED, &r) &&
           r.round == round;
}

static void whole_job(void)
{
    struct wire_welcome w;

    start();
    all_hello();
    CHECK(wire_decode_welcome(answered[2].message, answered[2].bytes, &w));
    CHECK_EQ(w.n_pes, PES);
    CHECK_EQ(w.n_nodes, 2);
    CHECK_EQ(w.job, 77);
    CHECK_EQ(w.round, 0);

    CHECK(publish(0, 1, "zero") && publish(1, 1, "one") && publish(2, 1, ""));
    CHECK(say_round(0, WIRE_FENCE, 1) && say_round(1, WIRE_FENCE, 1));
    CHECK(!released(0, 1));
    CHECK(say_round(2, WIRE_FENCE, 1));
    CHECK(released(0, 1) && released(1, 1) && released(2, 1));
    check_blob(0, 1, 1, "one");
    check_blob(0, 1, 2, "");

    /* One may be a round ahead of one that still fetches. */
    CHECK(publish(0, 2, "later") && say_round(0, WIRE_FENCE, 2));
    check_blob(1, 1, 0, "zero");
    CHECK(publish(1, 2, "1") && publish(2, 2, "2"));
    CHECK(say_round(1, WIRE_FENCE, 2) && say_round(2, WIRE_FENCE, 2));
    CHECK(released(0, 2));
    check_blob(1, 2, 0, "later");

    /* A second program of the same wrapper goes on with the next round. */
    CHECK(goodbye(0) && hello(0));
    CHECK(wire_decode_welcome(answered[0].message, answered[0].bytes, &w));
    CHECK_EQ(w.round, 2);

    /* One that has left in good order still serves its blob. */
    CHECK(goodbye(0) && server_left(&s, 0));
    check_blob(1, 2, 0, "later");
    CHECK(goodbye(1) && goodbye(2) && server_left(&s, 1) && server_left(&s, 2));
    CHECK(!s.ended);
    server_stop(&s);
}

static void who_is_absent(void)
{
    struct wire_absent a;

    start();
    all_hello();
    CHECK(publish(2, 1, "") && say_round(2, WIRE_FENCE, 1) && say_round(2, WIRE_WHO, 1));
    CHECK(wire_decode_absent(answered[2].message, answered[2].bytes, &a));
    CHECK_EQ(a.count, 2);
    CHECK_EQ(a.first, 0);
    CHECK(publish(0, 1, "") && publish(1, 1, ""));
    CHECK(say_round(0, WIRE_FENCE, 1) && say_round(1, WIRE_FENCE, 1));
    int before = answered[2].count;
    CHECK(say_round(2, WIRE_WHO, 1)); /* it crossed the RELEASED on its way: no second answer */
    CHECK_EQ(answered[2].count, before);
    server_stop(&s);
}

/* Each case breaks a job in one way; the line must name the PE and the reason. */
static void ends_with(bool result, int status, const char *text)
{
    CHECK(!result);
    CHECK(s.ended);
    CHECK_EQ(s.status, status);
    CHECK_HAS(s.text, text);
    int before = answered[0].count + answered[1].count + answered[2].count;
    CHECK(!hello(1) && !goodbye(2) &&
          !server_left(&s, 0)); /* it stays so, and nobody is answered */
    CHECK_EQ(answered[0].count + answered[1].count + answered[2].count, before);
    CHECK_HAS(s.text, text);
    server_stop(&s);
    start();
}

static void broken(void)
{
    static const unsigned char nonsense[WIRE_MAX + 1] = {99};

    start();
    ends_with(server_receive(&s, 1, nonsense, 4), 1,
              "PE 1: a message of 4 bytes of unknown type 99");
    ends_with(server_receive(&s, 1, nonsense, 3), 1,
              "PE 1: a message of 3 bytes of unknown type 0");
    ends_with(server_receive(&s, 2, nonsense, 0), 1, "PE 2: a message of 0 bytes");
    ends_with(publish(1, 1, "x"), 1, "PE 1: PUBLISH before HELLO");
    ends_with(goodbye(0), 1, "PE 0: GOODBYE before HELLO");
    wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, 0});
    ends_with(server_receive(&s, 0, m, WIRE_HELLO_BYTES - 1), 1,
              "PE 0: a damaged HELLO of 15 bytes");
    wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION + 1, 0});
    ends_with(server_receive(&s, 0, m, WIRE_HELLO_BYTES), 1, "PE 0 speaks version 2");
    wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, 2});
    ends_with(server_receive(&s, 0, m, WIRE_HELLO_BYTES), 1, "PE 0 says that it is PE 2");
    ends_with(hello(1) && hello(1), 1, "PE 1 says HELLO twice");
    ends_with(hello(1) && publish(1, 2, ""), 1, "PE 1: PUBLISH of round 2 after 0");
    ends_with(hello(1) && publish(1, 1, "") && publish(1, 2, ""), 1,
              "PE 1: PUBLISH of round 2 after 1");
    ends_with(hello(1) && say_round(1, WIRE_FENCE, 1), 1,
              "PE 1: FENCE of round 1, but it has published 0");
    ends_with(hello(1) && publish(1, 1, "") && say_round(1, WIRE_FENCE, 1) &&
                  say_round(1, WIRE_FENCE, 1),
              1, "and waits in its fence");
    ends_with(hello(1) && say_round(1, WIRE_WHO, 0), 1, "PE 1: WHO of round 0");
    ends_with(hello(1) && publish(1, 1, "") && say_round(1, WIRE_WHO, 1), 1,
              "outside of its fence");
    ends_with(hello(1) && fetch(1, 0, 0), 1, "PE 1: FETCH of round 0");
    ends_with(hello(1) && publish(1, 1, "") && fetch(1, 1, 0), 1,
              "PE 1: FETCH of round 1, but it has published 1 and 0 is complete");
    ends_with(hello(1) && fetch(1, 1, 3), 1, "PE 1: FETCH of PE 3, the job has PEs 0..2");
    ends_with(hello(1) && fetch(1, 1, 0xffffffff), 1, "PE 1: FETCH of PE 4294967295");
    ends_with(hello(1) && say_round(1, WIRE_RELEASED, 0), 1,
              "PE 1: a message of 8 bytes of unknown type 9");
    ends_with(hello(1) && publish(1, 1, "") && goodbye(1), 1,
              "PE 1 left in the middle of start-up");
    hello(2);
    wire_put(m, 0, WIRE_PUBLISH);
    wire_put(m, 1, 1);
    ends_with(server_receive(&s, 2, m, 9 + BOOTSTRAP_BLOB_MAX), 1,
              "PE 2: a damaged PUBLISH of 265");
    deaf = true;
    ends_with(hello(1), 1, "PE 1 does not take the launcher's answer");
    server_stop(&s);
}

static void ended(void)
{
    start();
    ends_with(hello(1) && end(1, 5, "enough"), 5, "PE 1 ended the job with status 5: enough");
    ends_with(hello(1) && end(1, 0x1ff, ""), 255, "PE 1 ended the job with status 255");
    ends_with(hello(1) && end(1, 256, ""), 1, "PE 1 ended the job with status 1");
    ends_with(hello(1) && end(1, 3, "\x1b[2J\n"), 3, "status 3: ?[2J?");
    CHECK(hello(1) && !end(1, 0, "all is well")); /* asked for, and no failure: nothing to say */
    CHECK_EQ(s.status, 0);
    CHECK_STR(s.text, "");
    server_stop(&s);
    start();
    ends_with(hello(1) && server_left(&s, 1), 1,
              "PE 1 exited with status 0 but without gshmem_finalize");
    /* A PE that is gone will not come to a fence, whichever is first. */
    CHECK(server_left(&s, 0));
    ends_with(hello(1) && publish(1, 1, "") && say_round(1, WIRE_FENCE, 1), 1,
              "PE 0 has ended without taking part in the start-up that 1 other PE waits in");
    all_hello();
    CHECK(publish(1, 1, "") && say_round(1, WIRE_FENCE, 1) && publish(2, 1, "") &&
          say_round(2, WIRE_FENCE, 1) && goodbye(0));
    ends_with(server_left(&s, 0), 1,
              "PE 0 has ended without taking part in the start-up that 2 other PEs wait in");
    server_stop(&s);
}

int main(void)
{
    whole_job();
    who_is_absent();
    broken();
    ended();
    return 0;
}

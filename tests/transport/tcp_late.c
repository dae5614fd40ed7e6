/* The TCP transport without a runtime: when the response to a small put is sent, by a clock that the test sets. A thread
 * that waits for the put goes on before its response is sent, unless it went on to compute before. */
#define _GNU_SOURCE
#include <stdint.h>

#include "runtime/base/clock.h"

static uint64_t played = 1000000000, between_looks;

static uint64_t played_clock(void)
{
    const uint64_t now = played;

    played += between_looks;
    return now;
}

#define clock_ns played_clock
#include "transport/tcp/target.c"
#include "transport/tcp/target_serve.c"
#undef clock_ns

#include "pair.h"

enum { US = 1000, ROUNDS = 3 };

static int waits;

static int pe_1_waits(void *context)
{
    return waits && context == &pe[1];
}

static void progress(int which)
{
    int events;

    CHECK_EQ(transport_tcp.progress(pe[which].t, &events), GSHMEM_OK);
}

/* A put of that many bytes reaches PE 1, which makes no further round. */
static void put_arrives(uint64_t bytes, int signal_op)
{
    static uint64_t source[2];
    const volatile uint64_t *at = (const void *)segment_of(1);
    const uint64_t end = clock_ns() + 30000000000ull;

    source[0]++;
    post(0, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 1, .local = source, .bytes = bytes,
                                       .signal_offset = 64, .signal_op = signal_op, .signal_value = 1});
    progress(0);
    while (*at != source[0]) {
        progress(1);
        CHECK(clock_ns() < end);
    }
}

/* Whether PE 0 gets the response now; nobody else does anything. */
static void is_told(void)
{
    const uint64_t end = clock_ns() + 30000000000ull;

    while (ok < posted) {
        drive_one(0);
        CHECK(clock_ns() < end);
    }
}

static void is_not_told(void)
{
    const int before = ok;

    for (int i = 0; i < ROUNDS; i++)
        drive_one(0);
    CHECK_EQ(ok, before);
}

static void put_from(int which)
{
    struct transport_request r = small_put(1 - which);

    r.offset = 128;
    post(which, r);
}

static void start(void)
{
    begin();
    ((struct tcp *)pe[1].t)->config.waits_for_update = pe_1_waits;
    waits = 0;
    put_from(0);
    put_from(1);
    settle();
}

static void end(void)
{
    settle();
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* Behind a signal always; behind a variable only while a thread waits for one. */
static void who_is_put_off(void)
{
    start();
    put_arrives(8, 0);
    is_told();
    waits = 1;
    put_arrives(8, 0);
    is_not_told();
    progress(1); /* a round in which nothing arrives */
    is_told();
    put_arrives(16, 0);
    is_told();
    waits = 0;
    put_arrives(8, GSHMEM_SIGNAL_SET);
    is_not_told();
    progress(1);
    is_told();
    end();
}

/* The thread posts at once, but that takes long: it has not computed. */
static void slow_call(void)
{
    start();
    waits = 1;
    for (int i = 0; i < 4; i++) {
        put_arrives(8, 0);
        is_not_told();
        played += 19 * US;
        between_looks = 1000 * US; /* at its beginning, and at its end */
        put_from(1);
        played -= between_looks;
        between_looks = 0;
        settle();
    }
    end();
}

/* It computes behind that call. */
static void late_behind_call(void)
{
    start();
    waits = 1;
    put_arrives(8, 0);
    is_not_told();
    put_from(1);
    played += 21 * US;
    settle();
    put_arrives(8, 0);
    is_told();
    end();
}

/* It computes first: then responses are prompt for a while, and put off again after that. */
static void late_call(void)
{
    start();
    waits = 1;
    put_arrives(8, 0);
    is_not_told();
    played += 21 * US;
    put_from(1);
    settle();
    for (int i = 1; i < PROMPT_RESPONSES; i++) { /* the late one was the first of them, or not */
        put_arrives(8, 0);
        is_told();
    }
    put_arrives(8, 0);
    settle();
    put_arrives(8, 0);
    is_not_told();
    settle();
    end();
}

/* Requests that arrive in each round do not put it off for long. */
static void busy_stream(void)
{
    start();
    waits = 1;
    put_arrives(8, 0);
    is_not_told();
    played += 21 * US;
    put_arrives(8, 0); /* so the first round with it judges, and sends */
    is_told();
    end();
}

int main(void)
{
    who_is_put_off();
    slow_call();
    late_call();
    late_behind_call();
    busy_stream();
    return 0;
}

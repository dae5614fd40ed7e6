/* iWARP: connections by (a fake of) librdmacm, and queue pairs whose writes are placed late and in any
 * order, but for what is sent or read behind them. */
#include <stdlib.h>

#include "pes.h"

#include "runtime/base/clock.h"

static void begin_iwarp(unsigned seed)
{
    prepare(seed);
    fake.iwarp = true;
    fake.inline_most = 64;
    open_both();
}

/* What has been reported as done is there, whatever its size and the memory that it came from. */
static void sizes(unsigned seed)
{
    static const uint64_t all[] = {0, 1, 8, 128, 193, 4096, 4097, 1 << 20, 17 << 20};
    static char own[17 << 20], back[17 << 20];

    begin_iwarp(seed);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char *source = i % 2 ? own : pe[0].memory + 3;
        fill(source, all[i], (unsigned)i + seed);
        post(0, put(source, 5 + i, all[i]));
        settle();
        CHECK(memcmp(pe[1].memory + 5 + i, source, all[i]) == 0);
        memset(back, 0, all[i]);
        post(0, get(back, 5 + i, all[i]));
        settle();
        CHECK(memcmp(back, source, all[i]) == 0);
    }
    CHECK(fake.writes > 0 && fake.reads > 0);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost + pe[0].passed_down, 0);
    end();
}

/* A flag is not seen before the data. */
static void flags(unsigned seed, int op)
{
    enum { BYTES = 50000 };
    static char data[BYTES];

    begin_iwarp(seed);
    for (unsigned round = 1; round <= 20; round++) {
        fill(data, BYTES, round);
        post(0, with_signal(put(data, 64, BYTES), op, 0, op == GSHMEM_SIGNAL_SET ? round : 1));
        for (int i = 0; *word(1, 0) != round; i++) {
            drive();
            CHECK(i < 10000);
        }
        CHECK(memcmp(pe[1].memory + 64, data, BYTES) == 0);
        settle();
    }
    end();
}

static struct transport_request loose(struct transport_request r)
{
    r.flags = TRANSPORT_LOOSE;
    return r;
}

/* Reads, and what may overtake them: puts, small and large. */
static void mixed(unsigned seed)
{
    enum { STEPS = 400 };
    static uint64_t got[STEPS], value[STEPS];
    static char large[9000];

    begin_iwarp(seed);
    srand(seed);
    for (int i = 0; i < STEPS; i++)
        *word(1, 8 * (uint64_t)i) = value[i] = (uint64_t)i + 1;
    for (int i = 0; i < STEPS; i++) {
        post(0, loose(get(&got[i], 8 * (uint64_t)i, 8)));
        if (rand() % 2)
            post(0, loose(put(&value[i], 50000 + 8 * (uint64_t)i, 8)));
        if (rand() % 2)
            post(0, loose(put(large, 100000, sizeof large)));
        if (rand() % 4 == 0)
            post(0, add(90000, 1, NULL));
        if (rand() % 4 == 0)
            drive();
    }
    settle();
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(got[i], value[i]);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

static void both_connect(unsigned seed)
{
    uint64_t value = seed;

    begin_iwarp(seed);
    for (int i = 0; i < 2; i++)
        post(i, put(&value, 8, 8));
    settle();
    CHECK_EQ(ok, 2);
    CHECK(*word(0, 8) == seed && *word(1, 8) == seed);
    CHECK_EQ(pe[0].passed_down + pe[1].passed_down, 0);
    end();
}

static void no_connection(unsigned seed)
{
    uint64_t value = 1;

    begin_iwarp(seed);
    fake.refuses_connections = true;
    for (int i = 0; i < 2; i++)
        post(i, put(&value, 8, 8));
    settle();
    CHECK_EQ(ok, 2);
    CHECK_EQ(pe[0].passed_down + pe[1].passed_down, 2);
    end();
}

/* Neither an answer nor a refusal: the path is given up in time, the peer is not. */
static void connection_never_comes(void)
{
    uint64_t value = 1;

    begin_iwarp(1);
    fake.loses_connections = true;
    init_timeout = 1;
    for (int i = 0; i < 2; i++)
        post(i, put(&value, 8, 8));
    for (const uint64_t until = clock_ns() + 60000000000u; ok < 2 && clock_ns() < until;)
        drive();
    CHECK_EQ(ok, 2);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    CHECK_EQ(pe[0].passed_down + pe[1].passed_down, 2);
    CHECK_HAS(pe[0].notified, "GSHMEM_INIT_TIMEOUT");
    init_timeout = 60;
    end();
}

/* One ends: the other hears of it by its connection. */
static void ends(void)
{
    begin_iwarp(1);
    warm_up();
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    for (int i = 0; i < 3000; i++)
        drive();
    CHECK_HAS(pe[0].notified, "its connection has ended");
    end();
}

/* The lower one connects as soon as it has the other's offer; its own may come later than the
 * connection, and until then the other knows nothing of its memory. */
static void connected_before_its_offer(void)
{
    uint64_t value = 3;
    int events;

    begin_iwarp(1);
    for (int i = 0; i < PES; i++)
        post(i, put(&value, 8 + 8 * (uint64_t)i, 8));
    for (int rounds = 0; rounds < 3000; rounds++) {
        fake_run();
        carry_notes(1);
        for (int i = 0; i < PES; i++)
            CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
    }
    CHECK_EQ(ok, 0);
    settle();
    CHECK(*word(1, 8) == 3 && *word(0, 16) == 3);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost + pe[0].passed_down + pe[1].passed_down, 0);
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 3; seed++) {
        sizes(seed);
        mixed(seed);
        flags(seed, GSHMEM_SIGNAL_SET);
        flags(seed, GSHMEM_SIGNAL_ADD);
    }
    for (unsigned seed = 1; seed <= 6; seed++) {
        both_connect(seed);
        no_connection(seed);
    }
    connected_before_its_offer();
    connection_never_comes();
    ends();
    return 0;
}

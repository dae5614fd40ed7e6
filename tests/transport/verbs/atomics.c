/* Updates that NICs make: all kinds of them, of objects that are words and halves of words, by two
 * PEs at once, one of which is the owner; and what becomes of them when a path breaks. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic_type.h"

enum { WORDS = 8, STEPS = 2000 };

static struct transport_request update(enum gshmem_amo amo, int type, uint64_t offset,
                                       uint64_t operand, uint64_t compare, uint64_t *old)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .segment = 1,
                                      .offset = offset,
                                      .amo = amo,
                                      .type = type,
                                      .operand = operand,
                                      .compare = compare,
                                      .old = old};
}

static void start(unsigned seed, int devices)
{
    prepare(seed);
    fake.devices = devices;
    fake.atomics = true;
    with_counters = true;
    open_both();
}

static void post_to(int from, int to, struct transport_request r)
{
    gshmem_status_t status;

    while ((status = try_post_to(from, to, r)) == TRANSPORT_FULL)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
}

/* Like settle; links come back meanwhile. */
static void settle_mending(void)
{
    for (int rounds = 1; ok + not_ok < posted; rounds++) {
        if (rounds % 500 == 0)
            fake_port(0, true);
        drive();
        if (rounds == 400000)
            CHECK_FAIL("%d of %d requests have ended: %s", ok + not_ok, posted, complaint);
    }
}

static void stop(void)
{
    end();
    with_counters = false;
}

/* ---- All kinds, against a model that does them in order ---- */

static void all_kinds(unsigned seed, int devices, int from)
{
    static const int types[] = {GSHMEM_TYPE_INT32,  GSHMEM_TYPE_UINT32, GSHMEM_TYPE_FLOAT,
                                GSHMEM_TYPE_UINT64, GSHMEM_TYPE_INT64,  GSHMEM_TYPE_DOUBLE};
    static uint64_t model[WORDS], old[STEPS], expected[STEPS];
    int which = 0;

    start(seed, devices);
    srand(seed);
    memset(model, 0, sizeof model);
    for (int i = 0; i < STEPS; i++) {
        const int type = types[rand() % 6];
        const size_t bytes = atomic_type_bytes(type);
        const bool real = type == GSHMEM_TYPE_FLOAT || type == GSHMEM_TYPE_DOUBLE;
        const enum gshmem_amo amo = (enum gshmem_amo)(rand() % (GSHMEM_AMO_XOR + 1));
        const uint64_t offset = (uint64_t)(rand() % (WORDS * 8)) / bytes * bytes;
        const uint64_t operand = (real ? 0x3f800000 : 0xfffffff0u) + (uint64_t)(rand() % 32);
        uint64_t compare = 0;

        if (rand() % 8 == 0) { /* a put's signal, behind its data */
            const uint64_t word = (uint64_t)(rand() % WORDS);
            struct transport_request r = put(&model[0], 64, 8 * (unsigned)(rand() % 2));
            which = rand() % 2;
            r = with_signal(r, which ? GSHMEM_SIGNAL_ADD : GSHMEM_SIGNAL_SET, 8 * word, 3);
            r.signal_segment = 1;
            model[word] = which ? model[word] + 3 : 3;
            post_to(from, 1, r);
            continue;
        }
        if (rand() % 2) /* what a compare-and-swap will find, or not */
            memcpy(&compare, (char *)model + offset, bytes);
        post_to(from, 1, update(amo, type, offset, operand, compare, &old[i]));
        expected[i] = atomic_apply(amo, type, (char *)model + offset, operand, compare);
        if (rand() % 4 == 0)
            drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost + pe[from].passed_down, 0);
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(old[i], expected[i]);
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(pe[1].counters[i], model[i]);
    CHECK(fake.updates > STEPS / 2);
    stop();
}

/* What is one work request, and what takes more than one. */
static void economy(void)
{
    uint64_t old;

    start(1, 1);
    post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 5, 0, &old));
    settle();
    struct fake_count before = fake;
    post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_INT64, 0, 5, 0, &old));
    settle();
    CHECK_EQ(fake.works - before.works, 1);
    CHECK_EQ(old, 5);
    post_to(0, 1, update(GSHMEM_AMO_COMPARE_SWAP, GSHMEM_TYPE_UINT64, 0, 7, 10, &old));
    post_to(0, 1, update(GSHMEM_AMO_FETCH, GSHMEM_TYPE_UINT64, 0, 0, 0, &old));
    post_to(0, 1,
            update(GSHMEM_AMO_SET, GSHMEM_TYPE_UINT64, 0, 9, 0, NULL)); /* of what was seen last */
    settle();
    CHECK_EQ(old, 7);
    CHECK_EQ(fake.works - before.works, 4);
    pe[1].counters[0] = 77; /* of which this PE knows nothing */
    before = fake;
    post_to(0, 1, update(GSHMEM_AMO_OR, GSHMEM_TYPE_UINT64, 0, 0x80, 0, NULL));
    settle();
    CHECK_EQ(pe[1].counters[0], 0xcd);
    CHECK_EQ(fake.works - before.works, 2);
    stop();
}

/* The owner and another PE at once; nothing is lost, and none made twice. */
static void two_agents(unsigned seed, int devices)
{
    enum { N = 400 };

    start(seed, devices);
    for (int i = 0; i < N; i++) {
        for (int from = 0; from < PES; from++) {
            post_to(from, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
            post_to(from, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT32, 8, 1, 0, NULL));
            post_to(from, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_INT32, 12, (uint64_t)-1, 0, NULL));
            post_to(from, 1,
                    update(GSHMEM_AMO_XOR, GSHMEM_TYPE_UINT64, 16, 1ull << (i % 32 + 32 * from), 0,
                           NULL));
        }
        drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    CHECK_EQ(pe[1].counters[0], 2 * N);
    CHECK_EQ((uint32_t)pe[1].counters[1], 2 * N);
    CHECK_EQ((int32_t)(pe[1].counters[1] >> 32), -2 * N);
    CHECK_EQ(pe[1].counters[2], 0xffff0000ffffull); /* N is 16 more than a multiple of 64 */
    stop();
}

/* What is behind a fence comes after an update that has to be tried again. */
static void fences_hold(unsigned seed)
{
    start(seed, 1 + (int)seed % 2);
    for (uint32_t e = 1; e < 60; e++) {
        struct transport_request r = update(GSHMEM_AMO_SET, GSHMEM_TYPE_UINT64, 0, e, 0, NULL);
        const uint64_t mark = e;
        pe[1].counters[0] = ~0ull - e; /* not what is expected */
        r.flags = TRANSPORT_LOOSE;
        r.epoch = 2 * e;
        post_to(0, 1, r);
        r = put((void *)(uintptr_t)&mark, 0, 8);
        r.flags = TRANSPORT_LOOSE;
        r.epoch = 2 * e + 1;
        post_to(0, 1, r);
        for (int rounds = 0; *word(1, 0) != e; rounds++) {
            CHECK(rounds < 100000);
            drive();
        }
        CHECK_EQ(pe[1].counters[0], e);
    }
    settle();
    stop();
}

/* What is remembered of words has places that many share: that may cost a try, and no more. */
static void words_that_share_a_place(void)
{
    start(1, 1);
    for (int i = 0; i < 100; i++) {
        for (uint64_t k = 0; k < 4; k++) {
            struct transport_request r =
                update(GSHMEM_AMO_OR, GSHMEM_TYPE_UINT64, 8 + 512 * k, 1ull << i % 64, 0, NULL);
            r.flags = TRANSPORT_LOOSE; /* all are on their way at once */
            post_to(0, 1, r);
        }
        settle();
    }
    for (int k = 0; k < 4; k++)
        CHECK_EQ(pe[1].counters[1 + 64 * k], ~0ull);
    CHECK(fake.updates <= 2 * 4 * 100); /* each once with what is not so, and once with what is */
    stop();
}

/* ---- A path breaks ---- */

/* Each update is made once; whoever waits for what a NIC has found hears that it is lost, where it
 * is. */
static void once(unsigned seed, int from)
{
    static uint64_t old[STEPS];
    uint64_t wanted = 0, made;

    start(seed, 1);
    fake.loses_answers = true;
    post_to(from, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
    settle();
    for (int i = 0; i < 200; i++) {
        const int before = not_ok;
        if (i % 20 == 3)
            fake_fail(1 + (int)(seed + (unsigned)i) % 7, IBV_WC_RETRY_EXC_ERR);
        for (int k = 0; k < 5; k++) {
            post_to(from, 1,
                    update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, k == 2 ? &old[i] : NULL));
            post_to(from, 1, update(GSHMEM_AMO_FETCH, GSHMEM_TYPE_UINT64, 0, 0, 0, &old[0]));
        }
        settle_mending();
        wanted += 5;
        if (not_ok > before)
            CHECK_HAS(complaint, "has made it, and its result is lost (a longer GSHMEM_IB_TIMEOUT");
    }
    made = pe[1].counters[0] - 1;
    CHECK_EQ(made, wanted); /* those whose answer was lost, too */
    CHECK(not_ok <= 10);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    stop();
}

/* One that is alone on its way does not come to an end by what the path carries when it is tried again. */
static void alone_when_it_breaks(void)
{
    uint64_t old;

    start(1, 1);
    post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
    settle();
    for (uint64_t i = 1; i < 20; i++) {
        old = 0;
        fake_fail(1, IBV_WC_RETRY_EXC_ERR);
        post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, &old));
        settle_mending();
        CHECK_EQ(old, i);
        CHECK_EQ(pe[1].counters[0], i + 1);
    }
    CHECK_EQ(not_ok, 0);
    stop();
}

/* A swap that may have been made is not made again. */
static void swaps_are_not_repeated(unsigned seed)
{
    int failed = 0;

    start(seed, 1);
    fake.loses_answers = true;
    for (uint64_t i = 0; i < 60; i++) {
        const int before = not_ok;
        fake_fail(1 + (int)((seed + i) % 3), IBV_WC_RETRY_EXC_ERR);
        post_to(0, 1, update(GSHMEM_AMO_SET, GSHMEM_TYPE_UINT64, 8, i, 0, NULL));
        settle_mending();
        fake_fail(0, IBV_WC_SUCCESS);
        failed += not_ok > before;
        CHECK(not_ok > before || pe[1].counters[1] == i);
    }
    CHECK(failed && failed < 60);
    stop();
}

/* A driver answers the packet that a queue pair began with, whatever came since. Nothing but updates has gone by that
 * one, as what is small goes by a nearer NIC's: none of them is made twice, and the link fails. */
static bool copied_packets(unsigned seed)
{
    enum { N = 6 };

    distance[1][0] = 5;
    prepare(seed);
    fake.devices = 2;
    fake.atomics = fake.copies_packet = fake.loses_answers = true;
    fake.soft = false;
    with_counters = true;
    open_both();
    post_to(0, 1, add(0, 1, NULL));
    settle();
    const struct link *l = ((struct verbs *)pe[0].t)->to[1];
    while (l->actives < 2)
        drive();
    CHECK(l->updater != l->active[0]);
    fake_fail(2 + (int)seed % N, IBV_WC_RETRY_EXC_ERR); /* the first is the question for the key */
    for (int i = 0; i < N; i++)
        post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
    settle_mending();
    const uint64_t made = pe[1].counters[0];
    CHECK(made <= N);
    CHECK(made == N || not_ok);
    const bool failed = not_ok > 0;
    stop();
    distance[1][0] = 0;
    return failed;
}

/* The one NIC does not come back: whoever needs it fails, and does not go another way. */
static void no_other_way(void)
{
    static char data[8];

    peer_timeout = 0;
    start(1, 1);
    post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
    settle();
    fake_port(0, false);
    for (int i = 0; i < 2000; i++)
        drive();
    post_to(0, 1, update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 0, 1, 0, NULL));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_HAS(complaint, "cannot be reached any more");
    post_to(0, 1, put(data, 0, 8)); /* others go below */
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(pe[0].passed_down, 1);
    CHECK_EQ(pe[1].counters[0], 1);
    peer_timeout = 10;
    stop();
}

/* Nor does it for a signal whose data went by several paths, all of which is there. */
static void no_other_way_for_a_signal(void)
{
    enum { BYTES = 2 << 20, AT = 4096 };
    static char data[BYTES];
    struct transport_request r = with_signal(put(data, AT, BYTES), GSHMEM_SIGNAL_SET, 0, 3);

    peer_timeout = 0;
    start(1, 2);
    warm_up();
    while (((struct verbs *)pe[0].t)->to[1]->actives < 2)
        drive();
    post_to(0, 1, put(data, AT, BYTES)); /* keys are asked for */
    settle();
    memset(data, 7, BYTES);
    r.signal_segment = 1;
    post_to(0, 1, r);
    while (memcmp(pe[1].memory + AT, data, BYTES) != 0)
        fake_run(); /* and nobody asks what has been reported */
    fake_port(0, false);
    fake_port(1, false);
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_HAS(complaint, "cannot be reached any more");
    CHECK_EQ(pe[1].counters[0], 0);
    CHECK_EQ(pe[0].passed_down, 0);
    peer_timeout = 10;
    stop();
}

/* ---- Who can ---- */

static void who_can(void)
{
    char why[300];

    start(1, 2);
    const int number = gshmem_transport.updates(pe[0].t, why, sizeof why);
    CHECK(number > 0);
    CHECK_EQ(gshmem_transport.updates(pe[1].t, why, sizeof why), number);
    CHECK_HAS(why, "fake0");
    stop();
    prepare(1);
    open_both();
    CHECK_EQ(gshmem_transport.updates(pe[0].t, why, sizeof why), 0);
    CHECK_HAS(why, "makes none");
    end();
}

int main(void)
{
    int failures = 0;

    for (unsigned seed = 1; seed <= 12; seed++) {
        all_kinds(seed, 1 + (int)seed % 3, (int)seed % 2);
        two_agents(seed, 1 + (int)seed % 2);
        fences_hold(seed);
        once(seed, (int)seed % 2);
        swaps_are_not_repeated(seed);
    }
    economy();
    words_that_share_a_place();
    alone_when_it_breaks();
    no_other_way();
    no_other_way_for_a_signal();
    for (unsigned seed = 1; seed <= 20; seed++)
        failures += copied_packets(seed);
    CHECK(failures > 0);
    who_can();
    return 0;
}

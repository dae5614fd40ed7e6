/* Several paths to one PE: stripes, order across them, paths that break and come back. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 16, DEVICES = 3 };

/* ---- Stripes ---- */

/* What is large goes by all NICs in equal parts; what is small by one. */
static void all_nics_carry(void)
{
    static char data[6 << 20];
    uint64_t value = 1;

    for (int devices = 1; devices <= DEVICES; devices++) {
        begin_with(1, devices);
        warm_up();
        for (int i = 0; i < 20; i++)
            drive();
        struct fake_count before = fake;
        post(0, put(data, 0, sizeof data));
        settle();
        for (int i = 0; i < devices; i++)
            CHECK(fake.of_device[i] > before.of_device[i]);
        CHECK_EQ(fake.writes - before.writes, devices);
        before = fake;
        for (int i = 0; i < 10; i++)
            post(0, put(&value, 0, 8));
        settle();
        int carrying = 0;
        for (int i = 0; i < devices; i++)
            carrying += fake.of_device[i] > before.of_device[i];
        CHECK_EQ(carrying, 1);
        end();
    }
}

/* The signal is there only when all stripes are, and nobody waits for it: the next put's are on their
 * way before. */
static void signals_wait_for_stripes(unsigned seed, int op)
{
    enum { ROUNDS = 12, BYTES = 640 << 10 };
    static char data[ROUNDS][BYTES];

    queue_pairs = 1 + (int)seed % 2;
    begin_with(seed, 1 + (int)seed % DEVICES);
    warm_up();
    *word(1, 0) = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct transport_request r = put(data[i], 4096 + (uint64_t)i * BYTES, BYTES);
        fill(data[i], BYTES, (unsigned)i + 1);
        r.flags = TRANSPORT_LOOSE;
        post(0, with_signal(r, op, 8 * (uint64_t)i, 1));
    }
    for (int seen = 0, rounds = 0; seen < ROUNDS || ok < posted; rounds++) {
        CHECK(rounds < 100000);
        drive();
        seen = 0;
        for (int i = 0; i < ROUNDS; i++) {
            if (*word(1, 8 * (uint64_t)i) == 0)
                continue;
            seen++;
            CHECK(memcmp(pe[1].memory + 4096 + i * BYTES, data[i], BYTES) == 0);
        }
    }
    CHECK_EQ(not_ok + pe[0].lost, 0);
    end();
    queue_pairs = 1;
}

/* ---- Fences ---- */

/* A put with an added signal is a write and a message, and the next one waits for neither. */
static void added_signals_do_not_wait(void)
{
    static char data[4096];

    begin(1);
    warm_up();
    struct fake_count before = fake;
    for (int i = 0; i < 16; i++) {
        struct transport_request r = put(data, 4096, sizeof data);
        r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
        CHECK_EQ(try_post(0, with_signal(r, GSHMEM_SIGNAL_ADD, 0, 1)), GSHMEM_OK);
    }
    struct verbs *v = (struct verbs *)pe[0].t;
    issue_batched(v, v->to[1]);
    CHECK_EQ(fake.works - before.works, 32); /* and nothing of it has been carried out yet */
    CHECK(fake.posts - before.posts <= 2);
    settle();
    CHECK_EQ(*word(1, 0), 17);
    end();
}

/* Of what was written before a fence, all is seen with any of what was written after it: data of an
 * epoch, by all ways, then marks of the next. */
static void fences_hold(unsigned seed)
{
    enum { EPOCHS = 40, BYTES = 300 << 10 };
    static char data[EPOCHS][BYTES];
    uint64_t mark[EPOCHS];

    queue_pairs = 1 + (int)seed % 3;
    begin_with(seed, 1 + (int)seed % DEVICES);
    srand(seed);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        struct transport_request r[4];
        uint64_t bytes = rand() % 2 ? BYTES : 8;
        fill(data[e], bytes, e + seed);
        mark[e] = e + 1;
        r[0] = put(data[e], 4096, bytes);
        r[1] = with_signal(put(data[e], 4096 + BYTES, 200), GSHMEM_SIGNAL_ADD, 8, 1);
        r[2] = add(16, 1, NULL);
        r[3] = put(&mark[e], 24 + 8 * (uint64_t)e, 8); /* of the next epoch */
        for (int i = 0; i < 4; i++) {
            r[i].flags = TRANSPORT_LOOSE | (rand() % 2 ? TRANSPORT_MORE : 0);
            r[i].epoch = 2 * e + (i == 3);
            post(0, r[i]);
        }
        /* whoever sees the mark sees the rest */
        for (int rounds = 0; *word(1, 24 + 8 * (uint64_t)e) == 0; rounds++) {
            CHECK(rounds < 100000);
            drive();
        }
        CHECK(memcmp(pe[1].memory + 4096, data[e], bytes) == 0);
        CHECK(memcmp(pe[1].memory + 4096 + BYTES, data[e], 8) == 0);
        CHECK(*word(1, 8) == e + 1 && *word(1, 16) == e + 1);
    }
    settle();
    CHECK_EQ(not_ok, 0);
    end();
    queue_pairs = 1;
}

/* ---- Paths that break ---- */

static int disturbances;

/* Now and then something happens to a path: it fails, with answers lost or not; a port goes down, with
 * a word or without, and comes back. */
static void disturb(int devices)
{
    static int away = -1;

    switch (rand() % 60) {
    case 0:
        fake_fail(1 + rand() % 6, rand() % 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_GENERAL_ERR);
        disturbances++;
        break;
    case 1:
        if (away >= 0)
            fake_port(away, true);
        away = rand() % devices;
        if (rand() % 2)
            fake_port(away, false);
        else
            fake_cut(away);
        disturbances++;
        break;
    case 2:
        if (away >= 0)
            fake_port(away, true);
        away = -1;
        break;
    }
}

/* Random requests in order against a model, while paths break: none is lost, none is done twice. The
 * owner changes memory as soon as it has been written, so that a write that came again would be seen. */
static void nothing_is_lost(unsigned seed, int devices)
{
    enum { STEPS = 1500 };
    static uint64_t model[WORDS], old[STEPS], expected[STEPS], value[STEPS];
    struct verbs *v;

    queue_pairs = 1 + (int)seed % 2;
    prepare(seed);
    fake.devices = devices;
    fake.loses_answers = seed % 3 > 0;
    open_both();
    warm_up();
    v = (struct verbs *)pe[0].t;
    memset(model, 0, sizeof model);
    model[0] = 1; /* warm_up's */
    srand(seed);
    for (int i = 0; i < STEPS; i++) {
        post(0, draw(i, WORDS, model, &value[i], &old[i], &expected[i]));
        disturb(devices);
        if (rand() % 4 == 0)
            drive();
        if (rand() % 16 == 0) {
            mend_watch(v);
            mend_watch((struct verbs *)pe[1].t);
        }
        if (rand() % 64 == 0) /* the owner writes where nothing is due: what comes again would undo it */ {
            settle();
            for (int w = 0; w < WORDS; w++)
                *word(1, 8 * (uint64_t)w) = model[w] = (uint64_t)rand();
        }
    }
    settle();
    for (int i = 0; i < STEPS; i++) {
        if (old[i] != expected[i])
            CHECK_FAIL("seed %u, %d NICs: request %d answered %#llx, not %#llx", seed, devices, i,
                       (unsigned long long)old[i], (unsigned long long)expected[i]);
    }
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(*word(1, 8 * (uint64_t)i), model[i]);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
    queue_pairs = 1;
}

/* Both sides send signals to each other, each waits for the other's, resets it, and goes on. */
static void signals_are_used_up(unsigned seed, int devices)
{
    enum { TURNS = 300 };
    int turn[PES] = {0};

    prepare(seed);
    fake.devices = devices;
    fake.loses_answers = true;
    open_both();
    srand(seed);
    for (int rounds = 0; turn[0] < TURNS || turn[1] < TURNS; rounds++) {
        CHECK(rounds < 1000000);
        for (int me = 0; me < PES; me++) {
            static uint64_t data[PES];
            uint64_t *signal = word(me, 0);
            /* PE 0 begins; each answers what it got, once */
            if (turn[me] >= TURNS || (*signal == 0 && (me || turn[me])))
                continue;
            if (*signal) {
                CHECK_EQ(*signal, 1);
                CHECK_EQ(*word(me, 8), (uint64_t)(turn[1 - me] * 2 + 1 - me));
                *signal = 0;
            }
            turn[me]++;
            data[me] = (uint64_t)(turn[me] * 2 + me);
            post(me, with_signal(put(&data[me], 8, 8),
                                 rounds % 3 ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, 0, 1));
        }
        disturb(devices);
        for (int me = 0; me < PES; me++)
            mend_watch((struct verbs *)pe[me].t);
        drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

static void until_up(int who, int paths)
{
    struct verbs *v = (struct verbs *)pe[who].t;

    for (int i = 0; v->to[1 - who]->ups != paths; i++) {
        CHECK(i < 10000);
        drive();
    }
}

/* With the only port down, requests go below; when it is back they come back. */
static void down_and_up(int devices)
{
    static char data[300 << 10];

    begin_with(1, devices);
    warm_up();
    until_up(0, devices);
    fake_port(0, false);
    mend_watch((struct verbs *)pe[0].t);
    for (int i = 0; i < 20; i++)
        post(0, put(data, 0, sizeof data));
    settle();
    CHECK_EQ(pe[0].passed_down, devices == 1 ? 20 : 0);
    CHECK_EQ(((struct verbs *)pe[0].t)->to[1]->ups, devices - 1);
    fake_port(0, true);
    until_up(0, devices);
    until_up(1, devices);
    int below = pe[0].passed_down;
    struct fake_count before = fake;
    post(0, put(data, 0, sizeof data));
    post(1, put(data, 0, sizeof data));
    settle();
    CHECK_EQ(pe[0].passed_down, below);
    CHECK(fake.of_device[0] > before.of_device[0]);
    CHECK_EQ(not_ok, 0);
    end();
}

/* A NIC that is taken away cannot say what it has taken: with writes on their way to it the link has
 * failed, and without it goes on. */
static void taken_away(bool writes_on_their_way)
{
    static char data[8192];

    prepare(1);
    fake.devices = 2;
    fake.tells_no_packet = true;
    open_both();
    warm_up();
    until_up(0, 2);
    fake.loses_answers = true;
    if (writes_on_their_way)
        post(0, put(data, 0, sizeof data));
    fake_cut(0);
    fake_cut(1);
    fake_event(0, (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL});
    fake_event(1, (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL});
    for (int i = 0; i < PES; i++)
        mend_watch((struct verbs *)pe[i].t);
    if (!writes_on_their_way)
        post(0, put(data, 0, sizeof data));
    settle();
    CHECK_EQ(not_ok, writes_on_their_way);
    CHECK_EQ(pe[0].passed_down, !writes_on_their_way);
    if (writes_on_their_way)
        CHECK_HAS(pe[0].why, "cannot tell");
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    all_nics_carry();
    for (unsigned seed = 1; seed <= 12; seed++) {
        signals_wait_for_stripes(seed, GSHMEM_SIGNAL_SET);
        signals_wait_for_stripes(seed, GSHMEM_SIGNAL_ADD);
    }
    added_signals_do_not_wait();
    for (unsigned seed = 1; seed <= 20; seed++)
        fences_hold(seed);
    for (unsigned seed = 1; seed <= 60; seed++)
        nothing_is_lost(seed, 1 + (int)seed % DEVICES);
    nothing_is_lost(373, 2); /* a reply by a note, and a later one by a path */
    for (unsigned seed = 1; seed <= 30; seed++)
        signals_are_used_up(seed, 1 + (int)seed % DEVICES);
    CHECK(disturbances > 100);
    for (int devices = 1; devices <= DEVICES; devices++)
        down_and_up(devices);
    taken_away(false);
    taken_away(true);
    return 0;
}

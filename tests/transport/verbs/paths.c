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

/* Puts with added signals are writes and a few messages, and the next one waits for none of them. */
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
    post_batches(v, v->to[1]);
    /* the first has its own message, and eight of the others share one; nothing has been carried out yet */
    CHECK_EQ(fake.works - before.works, 2 + 15 + 1);
    CHECK(fake.posts - before.posts <= 18 / BATCH + 1 + 2); /* and what is given away when room is made for more */
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
            watch_poll(v);
            watch_poll((struct verbs *)pe[1].t);
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
            watch_poll((struct verbs *)pe[me].t);
        drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* A port's addresses come back at other places of its table, as they do when their interface has been down: the path
 * comes back, though no event but the port's may tell of it. */
static void addresses_move(bool notified)
{
    static char data[64];
    struct ibv_async_event e = {.event_type = IBV_EVENT_GID_CHANGE, .element.port_num = 1};

    begin(7);
    warm_up();
    fake_port(0, false);
    for (int i = 0; i < 5000; i++)
        drive();
    fake.gids_moved = true;
    if (notified)
        fake_event(0, e);
    fake_port(0, true);
    for (int i = 0; i < 1000000 && ((struct verbs *)pe[0].t)->to[1]->actives == 0; i++)
        drive();
    const int below = pe[0].passed_down;
    for (int i = 0; i < 100; i++) {
        post(0, put(data, 64, sizeof data));
        settle();
    }
    CHECK_EQ(pe[0].passed_down, below);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* A port of InfiniBand's has a LID, and takes nothing without a global header all the same. */
static void global_headers(void)
{
    static char data[64];

    prepare(1);
    fake.infiniband = 1;
    fake.lid = 5;
    fake.needs_grh = true;
    open_both();
    warm_up();
    post(0, put(data, 64, sizeof data));
    settle();
    CHECK_EQ(pe[0].passed_down + not_ok + pe[0].lost, 0);
    end();
}

static void until_up(int who, int paths)
{
    struct verbs *v = (struct verbs *)pe[who].t;

    for (int i = 0; v->to[1 - who]->actives != paths; i++) {
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
    watch_poll((struct verbs *)pe[0].t);
    for (int i = 0; i < 20; i++)
        post(0, put(data, 0, sizeof data));
    settle();
    CHECK_EQ(pe[0].passed_down, devices == 1 ? 20 : 0);
    CHECK_EQ(((struct verbs *)pe[0].t)->to[1]->actives, devices - 1);
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

/* Of two stripes one arrives, and its owner uses it up; then the path of the other breaks. Only the other
 * goes again: by the path that is left, or below when none is. The signal comes after both. false: both came at
 * once. */
static bool stripes_arrive_once(unsigned seed, bool below)
{
    enum { BYTES = 24 << 20, AT = 4096, MARK = AT + 100 };
    static char data[BYTES];
    const uint64_t marks[] = {MARK, MARK + BYTES / 2};
    int used_up = -1;

    begin_with(seed, 2);
    warm_up();
    until_up(0, 2);
    post(0, put(data, AT, BYTES)); /* keys are asked for */
    settle();
    memset(data, 7, BYTES);
    memset(pe[1].memory, 0, AT + BYTES);
    fake_fail(2, IBV_WC_RETRY_EXC_ERR);
    post(0, with_signal(put(data, AT, BYTES), GSHMEM_SIGNAL_SET, 0, 1));
    while (ok + not_ok < posted) {
        drive();
        for (int i = 0; i < 2 && used_up < 0; i++) {
            if (pe[1].memory[marks[i]] != 0 && pe[1].memory[marks[1 - i]] == 0) {
                used_up = i;
                pe[1].memory[marks[i]] = 0;
                if (below) {
                    fake_port(0, false);
                    fake_port(1, false);
                    watch_poll((struct verbs *)pe[0].t);
                }
            }
        }
    }
    CHECK_EQ(not_ok, 0);
    CHECK_EQ(*word(1, 0), 1);
    if (used_up >= 0) {
        CHECK_EQ(pe[1].memory[marks[used_up]], 0);
        pe[1].memory[marks[used_up]] = 7;
    }
    CHECK(memcmp(pe[1].memory + AT, data, BYTES) == 0);
    end();
    return used_up >= 0;
}

/* Both stripes arrive, and both paths break before their signal could go: it goes below, and what is behind a fence
 * goes after it. */
static void signal_goes_below(int op)
{
    enum { BYTES = 2 << 20, AT = 4096 };
    static char data[BYTES];
    uint64_t seen, behind = 5;

    begin_with(1, 2);
    warm_up();
    until_up(0, 2);
    post(0, put(data, AT, BYTES)); /* keys are asked for */
    settle();
    memset(data, 7, BYTES);
    memset(pe[1].memory, 0, AT + BYTES);
    post(0, with_signal(put(data, AT, BYTES), op, 0, 3));
    while (memcmp(pe[1].memory + AT, data, BYTES) != 0)
        fake_run(); /* and nobody asks what has been reported */
    CHECK_EQ(*word(1, 0), 0);
    pe[0].full_below = 2;
    fake_port(0, false);
    fake_port(1, false);
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    post(0, get(&seen, 0, 8)); /* as is all that is not loose */
    post(0, put(&behind, 0, 8));
    settle();
    CHECK_EQ(not_ok, 0);
    CHECK_EQ(seen, 3);
    CHECK_EQ(*word(1, 0), behind);
    CHECK(pe[0].passed_down > 0);
    end();
}

static struct path *path_of(int who)
{
    return ((struct verbs *)pe[who].t)->to[1 - who]->path[0];
}

/* A queue pair that cannot be made, at first or when a path comes back, by one side or by both, costs
 * time below and nothing else: both sides go on counting the same lives. */
static void queue_pairs_are_refused(unsigned seed, bool at_first)
{
    uint64_t value = 3;

    begin(seed);
    if (at_first) {
        fake_refuse_pairs((int)seed);
        post(0, put(&value, 64, 8));
        settle();
    } else {
        warm_up();
        fake_fail(1, IBV_WC_RETRY_EXC_ERR);
        post(0, put(&value, 64, 8));
        settle();
        for (int i = 0; path_of(0)->state != PATH_DOWN || path_of(1)->state != PATH_DOWN; i++) {
            CHECK(i < 10000);
            drive();
        }
        fake_refuse_pairs((int)seed);
    }
    for (int i = 0; path_of(0)->state != PATH_ACTIVE || path_of(1)->state != PATH_ACTIVE; i++) {
        CHECK(i < 1000000);
        for (int me = 0; me < PES; me++) {
            struct verbs *v = (struct verbs *)pe[me].t;
            if (v->to[1 - me] && (i + me) % 3 == 0) /* time has passed */
                v->to[1 - me]->recovery.retry_at = 0;
            watch_retry(v);
        }
        drive();
        CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    }
    const int below = pe[0].passed_down;
    post(0, put(&value, 72, 8));
    settle();
    CHECK_EQ(pe[0].passed_down, below);
    CHECK_EQ(*word(1, 64) + *word(1, 72), 2 * value);
    CHECK_EQ(not_ok, 0);
    end();
}

/* Who cannot make its part of a queue pair says so, and the other waits for nothing. */
static void refused_by_the_other(void)
{
    uint64_t value = 3;

    begin(1);
    post(0, put(&value, 64, 8));
    fake_refuse_pairs(100);
    settle();
    CHECK_EQ(pe[0].passed_down, 1);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* One that cannot be made, as there is no memory for it, changes nothing for those that there are. */
static void refusals_leave_others_alone(void)
{
    unsigned char data[SMALL_BYTES];
    struct verbs *v;

    queue_pairs = 2;
    begin(1);
    warm_up();
    until_up(0, 2);
    v = (struct verbs *)pe[0].t;
    fake_fail(1, IBV_WC_RETRY_EXC_ERR);
    warm_up();
    CHECK_EQ(v->to[1]->actives, 1);
    fake_refuse_pairs(13); /* more than sizes are tried of what goes within a request, and not twice as many */
    for (int i = 0; i < 30; i++) {
        fill((char *)data, sizeof data, (unsigned)i);
        post(0, with_signal(put(data, 64, sizeof data), GSHMEM_SIGNAL_ADD, 0, 1));
        v->to[1]->recovery.retry_at = 0;
        watch_retry(v);
        settle();
        CHECK(memcmp(pe[1].memory + 64, data, sizeof data) == 0);
    }
    CHECK_EQ(not_ok + pe[0].passed_down, 0);
    end();
    queue_pairs = 1;
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
        watch_poll((struct verbs *)pe[i].t);
    if (!writes_on_their_way)
        post(0, put(data, 0, sizeof data));
    settle();
    CHECK_EQ(not_ok, writes_on_their_way);
    CHECK_EQ(pe[0].passed_down, !writes_on_their_way);
    if (writes_on_their_way)
        CHECK_HAS(pe[0].why, "cannot tell");
    end();
}

/* A driver answers the packet that a queue pair began with, whatever came since. Of the two stripes of a put one is the
 * first that its queue pair carries, so that "nothing has come" would make sense. The owner uses it up as it arrives,
 * and it is not written again: the link fails instead, as nobody knows. Whether it failed. */
static bool copied_packets(unsigned seed)
{
    enum { BYTES = 4 * STRIPE_BYTES, AT = 4096, OTHER = AT + BYTES / 2 };
    static char data[BYTES];
    int used_up = 0;

    queue_pairs = 2;
    prepare(seed);
    fake.copies_packet = fake.loses_answers = true;
    fake.soft = false;
    fake.reorders = false;
    open_both();
    warm_up();
    until_up(0, 2);
    memset(data, 7, BYTES);
    fake_fail(1 + (int)seed % 2, IBV_WC_RETRY_EXC_ERR);
    post(0, put(data, AT, BYTES));
    for (int i = 0; i < 10000 && ok + not_ok < posted; i++) {
        drive();
        if (pe[1].memory[OTHER]) {
            used_up++;
            pe[1].memory[OTHER] = 0;
        }
    }
    CHECK_EQ(ok + not_ok, posted);
    CHECK(used_up <= 1);
    CHECK_EQ(pe[0].lost, not_ok > 0);
    if (not_ok)
        CHECK_HAS(pe[0].why, "cannot tell which of them have arrived");
    end();
    queue_pairs = 1;
    return not_ok > 0;
}

/* Messages and reads are no matter of packets: there such a driver costs nothing. */
static void copied_packets_of_messages(unsigned seed)
{
    enum { N = 40 };
    static uint64_t old[N], value;

    prepare(seed);
    fake.copies_packet = fake.loses_answers = true;
    fake.soft = false;
    open_both();
    warm_up();
    *word(1, 64) = 5;
    for (int i = 0; i < N; i++) {
        if (i % 10 == 3)
            fake_fail(1 + (int)(seed + (unsigned)i) % 3, IBV_WC_RETRY_EXC_ERR);
        post(0, add(8, 1, &old[i]));
        post(0, get(&value, 64, 8));
        if (i % 4 == 0)
            settle();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    for (uint64_t i = 0; i < N; i++)
        CHECK_EQ(old[i], i);
    CHECK_EQ(*word(1, 8), N);
    CHECK_EQ(value, 5);
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    addresses_move(false);
    addresses_move(true);
    global_headers();
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
    int seen[2] = {0};
    for (unsigned seed = 1; seed <= 16; seed++)
        seen[seed % 2] += stripes_arrive_once(seed, seed % 2);
    CHECK(seen[0] >= 4 && seen[1] >= 4);
    signal_goes_below(GSHMEM_SIGNAL_SET);
    signal_goes_below(GSHMEM_SIGNAL_ADD);
    for (unsigned refusals = 1; refusals <= 5; refusals++) {
        queue_pairs_are_refused(refusals, true);
        queue_pairs_are_refused(refusals, false);
    }
    int failures = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        failures += copied_packets(seed);
        copied_packets_of_messages(seed);
    }
    CHECK(failures > 0);
    refused_by_the_other();
    refusals_leave_others_alone();
    taken_away(false);
    taken_away(true);
    return 0;
}

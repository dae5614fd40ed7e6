/* Small puts and updates that travel together: what they cost, order, hostile messages, paths that
 * break. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 512, STRIDE = 64, AREA = WORDS * STRIDE };

static uint64_t place(int i)
{
    return (uint64_t)i * STRIDE;
}

static struct transport_request loose(struct transport_request r, uint32_t epoch)
{
    r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
    r.epoch = epoch;
    return r;
}

static void post_word(uint64_t at, uint64_t value, uint32_t epoch)
{
    post(0, loose(put(&value, at, 8), epoch));
}

/* Adds one, as an atomic or as a signal. */
static void post_one(uint64_t at, bool signal, uint32_t epoch)
{
    struct transport_request nothing = put(NULL, 0, 0);

    post(0,
         loose(signal ? with_signal(nothing, GSHMEM_SIGNAL_ADD, at, 1) : add(at, 1, NULL), epoch));
}

/* ---- The message ---- */

/* What is encoded is decoded, whatever comes behind what. */
static void round_trips(unsigned seed)
{
    unsigned char text[MESSAGE_CHANGE_FAR + MESSAGE_CHANGE_MOST] = {0};
    struct message_change last = {.offset = 0}, seen = {.offset = 0};

    srand(seed);
    for (int i = 0; i < 20000; i++) {
        const uint64_t step = (uint64_t)rand() << (rand() % 3 * 8) >> rand() % 32;
        struct message_change next = {
            .segment = (uint8_t)(rand() % 4 ? last.segment : rand() % TRANSPORT_SEGMENT_MAX),
            .bytes = (uint8_t)(rand() % (MESSAGE_CHANGE_MOST + 1)),
            .amo = (uint8_t)(rand() % 8),
            .type = (uint8_t)(rand() % 32),
            .offset = (rand() % 2 ? last.offset + step : last.offset - step) &
                      ((1ull << MESSAGE_CHANGE_OFFSET_BITS) - 1)};
        const uint32_t head = message_change_head(text, &last, &next),
                       bytes = next.bytes ? next.bytes : 8;

        CHECK_EQ(message_next_change(text, head + bytes - 1, &(struct message_change){0}), 0);
        CHECK_EQ(message_next_change(text, head + bytes, &seen), head + bytes);
        CHECK(seen.segment == next.segment && seen.bytes == next.bytes &&
              seen.offset == next.offset && seen.data == text + head);
        CHECK(next.bytes || (seen.amo == next.amo && seen.type == next.type));
        last = next;
    }
}

/* ---- What may go together ---- */

/* Puts of all sizes, to places near each other, of two segments and on both sides of the end of a chunk;
 * some give a signal, some keep their order. */
static void mixed(unsigned seed)
{
    enum { N = 120, APART = 200 };
    const uint64_t from = seed % 2 ? CHUNK_BYTES - N / 2 * APART - 60 : place(N + 1);
    static unsigned char data[N][APART];
    static uint64_t signal[N];
    unsigned char *there;

    with_counters = true;
    prepare(seed);
    fake.atomics = true;
    open_both();
    with_counters = false;
    warm_up();
    srand(seed);
    for (int i = 0; i < N; i++) {
        const bool other = rand() % 8 == 0;
        const uint64_t bytes = rand() % 2 ? 8 : 1 + (uint64_t)rand() % (APART - 1);
        struct transport_request r =
            put(data[i], other ? (uint64_t)i * 16 : from + (uint64_t)i * APART, other ? 8 : bytes);

        memset(data[i], 0, APART);
        memset(data[i], i + 1, r.bytes);
        r.segment = other;
        signal[i] = rand() % 8 == 0 && !other;
        if (signal[i])
            r = with_signal(r, GSHMEM_SIGNAL_SET, place(i + 1), 1);
        r = loose(r, 0);
        if (rand() % 16 == 0)
            r.flags = TRANSPORT_MORE;
        if (other)
            signal[i] = 2;
        post(0, r);
        if (rand() % 32 == 0)
            drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost, 0);
    for (int i = 0; i < N; i++) {
        there = signal[i] == 2 ? (unsigned char *)&pe[1].counters[2 * i]
                               : (unsigned char *)pe[1].memory + from + i * APART;
        CHECK(memcmp(there, data[i], signal[i] == 2 ? 16 : APART) == 0);
        CHECK_EQ(*word(1, place(i + 1)), signal[i] == 1);
    }
    end();
}

/* Two that meet where a chunk ends are two all the same: it has a key of its own. */
static void meet_at_the_end_of_a_chunk(void)
{
    begin(1);
    warm_up();
    for (int round = 0; round < 2; round++) { /* then keys are known */
        struct fake_count before = fake;
        post_word(CHUNK_BYTES + 64, 1, 0);
        post_word(CHUNK_BYTES - 8, 2, 0);
        post_word(CHUNK_BYTES, 3, 0);
        settle();
        CHECK_EQ(*word(1, CHUNK_BYTES - 8), 2);
        CHECK_EQ(*word(1, CHUNK_BYTES), 3);
        CHECK_EQ(not_ok, 0);
        if (round)
            CHECK_EQ(fake.writes - before.writes, 3);
    }
    end();
}

static uint64_t early_signals;

/* Of puts with signals: each word is written before its signal. */
static void look_at_signals(void)
{
    for (int i = 1; i <= 64; i++)
        early_signals += *word(1, place(100 + i)) != 0 && *word(1, place(i)) != 3 * (uint64_t)i;
}

/* Puts with signals share messages, the signal behind its data; a few that are set are written, if
 * writes keep their order. */
static void signals_share_packets(int n, int op, bool reorders)
{
    prepare(1);
    fake.soft = false;
    fake.reorders = reorders;
    open_both();
    warm_up();
    early_signals = 0;
    fake_look = look_at_signals;
    for (uint64_t round = 1; round <= 2; round++) { /* then keys are known */
        for (int i = 0; i <= 64; i++)
            *word(1, place(100 + i)) = *word(1, place(i)) = 0;
        struct fake_count before = fake;
        post_word(place(0), round, 0);
        for (int i = 1; i <= n; i++) {
            uint64_t data = 3 * (uint64_t)i;
            post(0, loose(with_signal(put(&data, place(i), 8), op, place(100 + i), round), 0));
        }
        settle();
        for (int i = 1; i <= n; i++) {
            CHECK_EQ(*word(1, place(i)), 3 * i);
            CHECK_EQ(*word(1, place(100 + i)), round);
        }
        const int writes = op == GSHMEM_SIGNAL_SET && n < 4 && !reorders ? 2 * n : 0;
        if (round == 2)
            CHECK_EQ(fake.writes - before.writes, 1 + writes);
        if (round == 2 && writes)
            CHECK_EQ(fake.sends - before.sends, 0);
        else if (round == 2) /* 11 bytes of data and 12 of its signal, 5 more of the first */
            CHECK(fake.sends - before.sends <= 2 * (1 + (n * 23 + 5) / 217));
    }
    fake_look = NULL;
    CHECK_EQ(not_ok + early_signals, 0);
    end();
}

/* A put to where an update has just been. */
static void meet_an_update(void)
{
    begin(1);
    warm_up();
    for (uint64_t i = 0; i < 20; i++) {
        post_word(place(1), i, 0);
        post_one(place(2), i % 2, 0);
        post_word(place(2), 100 * i, 0);
        post_word(place(3), i, 0);
        settle();
        CHECK(*word(1, place(2)) - 100 * i <= 1); /* in whichever order */
        CHECK_EQ(*word(1, place(3)), i);
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* More than can be on their way. */
static void very_many(void)
{
    enum { N = 5000 };
    unsigned char one = 1;

    begin(1);
    warm_up();
    const int before = ok;
    for (uint64_t i = 0; i < N; i++)
        post(0, loose(put(&one, 64 + 2 * i, 1), 0));
    settle();
    CHECK_EQ(ok - before, N);
    for (int i = 0; i < N; i++)
        CHECK_EQ(pe[1].memory[64 + 2 * i] + 2 * pe[1].memory[65 + 2 * i], 1);
    end();
}

/* None is taken in that does not end in its segment. */
static void beyond_the_end(void)
{
    begin(1);
    warm_up();
    post_word(SEGMENT - 64, 1, 0);
    settle();
    post_word(SEGMENT - 64, 2, 0);
    post_word(SEGMENT - 32, 3, 0);
    post_word(SEGMENT - 7, 4, 0);
    settle();
    CHECK(not_ok > 0);
    CHECK_HAS(pe[0].why, "ends before");
    end();
}

/* ---- What it costs ---- */

/* `n` puts that are not neighbours, behind one that is on its way, take so many more packets. */
static void packets(int n, int few, int most)
{
    begin(1);
    warm_up();
    struct fake_count before = fake;
    for (int i = 0; i < n + 1; i++)
        post_word(place(i), (uint64_t)i + 1, 0);
    settle();
    for (int i = 0; i < n + 1; i++)
        CHECK_EQ(*word(1, place(i)), (uint64_t)i + 1);
    CHECK_EQ(fake.writes - before.writes, 1 + few);
    const int sent = fake.sends - before.sends; /* the messages, and at most a reply to each */
    CHECK(few ? sent == 0 : sent > 1 && sent <= 2 * most);
    CHECK_EQ(not_ok, 0);
    end();
}

/* Updates without a result are messages, each or together. */
static void updates_share_packets(void)
{
    begin(1);
    warm_up();
    struct fake_count before = fake;
    for (int i = 0; i < 201; i++)
        post_one(place(i % 7), i % 2, 0);
    settle();
    for (int i = 0; i < 7; i++)
        CHECK_EQ(*word(1, place(i)), (i == 0) + 201 / 7 + (i < 201 % 7));
    CHECK_EQ(fake.writes - before.writes, 0);
    if (!fake.late) /* else more are alone, as nothing is known to be under way */
        CHECK(fake.sends - before.sends <= 2 * (1 + (200 * 12 + 239) / 240));
    before = fake;
    uint64_t old = 0;
    post_one(place(0), false, 0);
    post(0, loose(add(place(0), 1, &old), 0)); /* this has one, and goes by itself */
    post_one(place(0), false, 0);
    settle();
    CHECK_EQ(*word(1, place(0)), 30 + 3);
    CHECK(old >= 30 && old <= 32);
    CHECK_EQ(not_ok, 0);
    end();
}

/* A lone put, and those that nobody is before, do not wait for anything. */
static void nobody_waits_alone(void)
{
    begin(1);
    warm_up();
    for (int i = 0; i < 5; i++) {
        struct fake_count before = fake;
        post_word(place(i), 7, 0);
        for (int events, rounds = 0; rounds < 1; rounds++)
            CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
        CHECK_EQ(fake.posts - before.posts, 1);
        settle();
    }
    end();
}

/* Those that stop coming go after a round. */
static void nobody_waits_long(void)
{
    int events;

    begin_strict(1);
    warm_up();
    struct fake_count before = fake;
    struct transport_request first = put(&(uint64_t){1}, 0, 8);
    post(0, first);
    CHECK_EQ(fake.works - before.works, 1);
    for (int i = 1; i < 4; i++) {
        post_word(place(i), 2, 0);
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
        CHECK_EQ(fake.works - before.works, 1);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    CHECK_EQ(fake.works - before.works, 4);
    settle();
    end();
}

/* The owner does nothing: there are no more messages than its window, and puts that find no room are
 * told so. */
static void window(void)
{
    int taken = 0, events;
    gshmem_status_t status;

    begin(1);
    warm_up();
    struct fake_count before = fake;
    do {
        uint64_t value = (uint64_t)taken + 1;
        status = try_post(0, loose(put(&value, place(taken), 8), 0));
        taken += status == GSHMEM_OK;
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    } while (status == GSHMEM_OK && taken < 10000);
    CHECK_EQ(status, TRANSPORT_FULL);
    CHECK(taken > WINDOW);
    CHECK(fake.sends - before.sends <= WINDOW);
    settle();
    for (int i = 0; i < taken; i++)
        CHECK_EQ(*word(1, place(i)), (uint64_t)i + 1);
    end();
}

/* ---- Order ---- */

/* What is behind a fence is seen with all that was put before it: a mark, as a put, as a signal
 * that is set under a put of any size, or as one that is added; and a get behind one gets it. */
static void fences_hold(unsigned seed)
{
    enum {
        EPOCHS = 60,
        LARGE = 9000,
        MARK = 8 << 20,
        COUNTER = 4 << 20,
        HUGE_AT = 10 << 20,
        HUGE_BYTES = 600 << 10
    };
    static char huge[HUGE_BYTES];
    static char large[LARGE];
    static uint64_t back;
    uint64_t count = 0;

    begin_with(seed, 1 + (int)seed % FAKE_DEVICES);
    srand(seed);
    uint32_t epoch = 0;
    for (uint64_t e = 1; e <= EPOCHS; e++) {
        const int n = 1 + rand() % 60;
        const uint64_t huge_bytes = rand() % 4 ? 0 : HUGE_BYTES;
        memset(huge, (int)e, huge_bytes);
        if (huge_bytes)
            post(0, loose(put(huge, HUGE_AT, huge_bytes), epoch));
        for (int i = 0; i < n; i++) {
            post_word(place(i), e, epoch);
            if (rand() % 4 == 0)
                post_one(COUNTER, rand() % 2, epoch), count++;
        }
        epoch++;
        switch (rand() % 4) {
        case 0:
            post_word(MARK, e, epoch);
            break;
        case 1:
            post(0, loose(with_signal(put(large, MARK + 64, rand() % 2 ? 8 : LARGE),
                                      GSHMEM_SIGNAL_SET, MARK, e),
                          epoch));
            break;
        case 2:
            post(0, loose(with_signal(put(large, MARK + 64, 8), GSHMEM_SIGNAL_ADD, MARK, 1), epoch));
            break;
        default:
            post(0, loose(get(&back, rand() % 2 ? place(n - 1) : COUNTER, 8), epoch));
            settle();
            CHECK(back == e || back == count);
            post_word(MARK, e, epoch);
        }
        for (int rounds = 0; *word(1, MARK) != e; rounds++) {
            CHECK(rounds < 100000);
            drive();
        }
        for (int i = 0; i < n; i++)
            CHECK_EQ(*word(1, place(i)), e);
        CHECK_EQ(*word(1, COUNTER), count);
        CHECK(memcmp(pe[1].memory + HUGE_AT, huge, huge_bytes) == 0);
        epoch += (uint32_t)rand() % 2;
    }
    settle();
    CHECK_EQ(not_ok, 0);
    end();
}

/* What is not loose is neither overtaken nor overtakes. */
static void others_keep_their_place(void)
{
    begin(1);
    warm_up();
    for (uint64_t i = 1; i <= 300; i++) {
        for (int k = 0; k < 12; k++)
            post_word(place(k), i, 0);
        post(0, put(&i, place(11), 8));
        uint64_t more = i + 1000;
        post(0, put(&more, place(11), 8));
    }
    settle();
    CHECK_EQ(*word(1, place(11)), 1300);
    end();
}

/* One that keeps its order does not travel with what is collected, which may overtake stripes. */
static void ordered_behind_stripes(unsigned seed)
{
    enum { LARGE = 16, BYTES = 3 * STRIPE_BYTES, FROM = 1 << 20 };
    static char data[LARGE * BYTES];

    begin_with(seed, 2);
    warm_up();
    post_word(place(3), 1, 0);
    settle();
    for (uint64_t round = 1; round <= 3; round++) {
        memset(data, (int)round, sizeof data);
        for (uint64_t i = 0; i < LARGE; i++)
            post(0, loose(put(data + i * BYTES, FROM + i * BYTES, BYTES), 0));
        post_word(place(0), round, 0);
        post_word(place(1), round, 0);
        struct transport_request r = put(&round, place(2), 8);
        r.flags = TRANSPORT_MORE;
        post(0, r);
        while (*word(1, place(2)) != round)
            drive();
        CHECK(memcmp(pe[1].memory + FROM, data, sizeof data) == 0);
        CHECK_EQ(*word(1, place(0)), round);
        CHECK_EQ(*word(1, place(1)), round);
        settle();
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* ---- Paths that break ---- */

/* The owner takes what has come at once; what came again would be seen. */
static void take_words(uint64_t *due, int *taken)
{
    for (int i = 0; i < WORDS; i++) {
        if (due[i] && *word(1, place(i)) == due[i]) {
            *word(1, place(i)) = ~due[i];
            due[i] = 0;
            ++*taken;
        }
    }
}

static void nothing_is_lost(unsigned seed, int devices)
{
    enum { COUNTERS = 8 };
    static uint64_t due[WORDS], value;
    static unsigned away;
    uint64_t counts[COUNTERS] = {0};
    int taken = 0, given = 0;

    const bool updates = seed % 4 < 2; /* else collections are of few puts, and are writes */

    memset(due, 0, sizeof due);
    prepare(seed);
    fake.devices = devices;
    fake.loses_answers = seed % 2;
    open_both();
    warm_up();
    pe[0].full_below = seed % 7 > 1 ? (int)seed % 7 : 0;
    pe[0].late_below = seed % 5 < 3;
    *word(1, 0) = 0;
    srand(seed);
    for (int i = 0; i < 4000; i++) {
        const int at = rand() % WORDS;
        if (!due[at]) {
            value++;
            post(0, loose(put(&value, place(at), 8), (uint32_t)i / 700));
            due[at] = value;
            given++;
        }
        for (int more = updates ? rand() % 3 : 0; more; more--) {
            const unsigned which = (unsigned)rand() % COUNTERS;
            post_one(AREA + 8 * which, rand() % 2, (uint32_t)i / 700);
            counts[which]++;
        }
        if (rand() % 200 == 0)
            fake_fail(1 + rand() % 4, rand() % 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_GENERAL_ERR);
        if (rand() % 400 == 0)
            fake_port((int)(away = (unsigned)rand() % (unsigned)devices), false);
        if (rand() % 100 == 0)
            fake_port((int)away, true);
        if (rand() % (updates ? 8 : 3) == 0) {
            for (int who = 0; who < PES; who++)
                watch_poll((struct verbs *)pe[who].t);
            drive();
            take_words(due, &taken);
        }
    }
    settle();
    take_words(due, &taken);
    CHECK_EQ(taken, given);
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQ(*word(1, AREA + 8 * (uint64_t)i), counts[i]);
    for (int i = 0; i < WORDS; i++)
        CHECK(*word(1, place(i)) == 0 || *word(1, place(i)) >> 32); /* as the owner left it */
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* The nth work request fails, be it a write, a message or one of several writes. */
static void each_fails(enum ibv_wc_status status)
{
    for (int nth = 1; nth <= 12; nth++) {
        begin(1);
        warm_up();
        const int before = ok + not_ok;
        fake_fail(nth, status);
        for (int i = 0; i < 100; i++) {
            post_word(place(i), (uint64_t)i + 1, 0);
            if (i % 25 < 5) /* so that some are few */
                for (int events, k = 0; k < 3; k++)
                    CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
        }
        settle();
        CHECK_EQ(ok + not_ok - before, 100);
        CHECK_EQ(not_ok > 0, status == IBV_WC_REM_ACCESS_ERR);
        for (int i = 0; i < 100 && !not_ok; i++)
            CHECK_EQ(*word(1, place(i)), (uint64_t)i + 1);
        end();
    }
}

/* The nth work request fails, by a path that keeps the order of writes, and the rest goes by one that
 * does not: no signal may come before its data. */
static void goes_on_by_a_path_that_reorders(int nth)
{
    enum { N = 3 };

    prepare(1);
    fake.soft = false;
    fake.devices = 2;
    fake.reorders = true;
    fake.orderly = 1;
    open_both();
    warm_up();
    for (int i = 0; i <= N; i++)
        *word(1, place(100 + i)) = *word(1, place(i)) = 0;
    early_signals = 0;
    fake_look = look_at_signals;
    fake_fail(nth, IBV_WC_RETRY_EXC_ERR);
    post_word(place(0), 1, 0);
    for (int i = 1; i <= N; i++) {
        uint64_t data = 3 * (uint64_t)i;
        post(0, loose(with_signal(put(&data, place(i), 8), GSHMEM_SIGNAL_SET, place(100 + i), 1), 0));
    }
    settle();
    fake_look = NULL;
    for (int i = 1; i <= N; i++) {
        CHECK_EQ(*word(1, place(i)), 3 * i);
        CHECK_EQ(*word(1, place(100 + i)), 1);
    }
    CHECK_EQ(not_ok + early_signals, 0);
    end();
}

/* The only path is lost with all of it on its way, and the transport below is full now and then. */
static void goes_below(int full)
{
    begin(1);
    warm_up();
    for (int i = 0; i < WORDS; i++) {
        post_word(place(i), (uint64_t)i + 1, 0);
        if (i > WORDS / 2)
            post_one(AREA, i % 2, 0);
    }
    fake_cut(0);
    fake_port(0, false);
    watch_poll((struct verbs *)pe[0].t);
    pe[0].full_below = full;
    settle();
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(*word(1, place(i)), (uint64_t)i + 1);
    CHECK_EQ(*word(1, AREA), WORDS / 2 - 1);
    CHECK(pe[0].passed_down > WORDS / 4); /* signals of one word are one */
    CHECK_EQ(not_ok, 0);
    end();
}

/* The peer is lost when the transport below has taken some parts of a collection and not the
 * others: it does not end before they do. */
static void lost_with_parts_below(void)
{
    int events;

    begin(1);
    warm_up();
    for (int i = 0; i < 15; i++)
        post_word(place(i), (uint64_t)i + 1, 0);
    fake_cut(0);
    fake_port(0, false);
    for (int who = 0; who < PES; who++)
        watch_poll((struct verbs *)pe[who].t);
    pe[0].late_below = true;
    pe[0].full_below = 6;
    for (int rounds = 0; pe[0].calls_below < 6; rounds++) {
        CHECK(rounds < 1000);
        drive();
    }
    pe[0].full_below = 1;
    CHECK(pe[0].lates >= 4 && ok + not_ok < posted);
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    while (pe[0].lates) {
        CHECK(ok + not_ok < posted);
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    CHECK_EQ(ok + not_ok, posted);
    end();
}

/* ---- Hostile messages ---- */

static void bad_message(struct message m)
{
    begin(1);
    warm_up();
    struct verbs *v = (struct verbs *)pe[0].t;
    memset(pe[1].memory, 0, 64);
    m.number = v->to[1]->messages.sent + 1;
    CHECK(post_message(v, v->to[1]->active[0], WORK_OTHER, 0, &m));
    post_batches(v, v->to[1]);
    for (int i = 0; i < 10000 && !pe[1].lost; i++)
        drive();
    CHECK_EQ(pe[1].lost, 1);
    CHECK_HAS(pe[1].why, "makes no sense");
    end();
}

static void bad_puts(const void *text, uint16_t bytes)
{
    bad_message((struct message){.kind = MESSAGE_CHANGES, .bytes = bytes, .data = text});
}

static uint16_t write_put(unsigned char *at, uint8_t segment, uint64_t offset, uint8_t bytes)
{
    const struct message_change none = {.segment = 255},
                                put = {.segment = segment, .bytes = bytes, .offset = offset};

    const uint32_t head = message_change_head(at, &none, &put);
    memset(at + head, 1, bytes);
    return (uint16_t)(head + bytes);
}

static void hostile(void)
{
    unsigned char text[MESSAGE_CHANGES_DATA] = {0};
    uint16_t bytes;

    bad_puts(text, 0);
    bad_message((struct message){.kind = 0});
    bad_message((struct message){.kind = MESSAGE_CHANGES + 1});
    write_put(text, 0, 0, 8);
    bad_message((struct message){
        .kind = MESSAGE_CHANGES, .bytes = 16, .data = text, .from = 1}); /* not who it is */
    bad_message((struct message){.kind = MESSAGE_CHANGES, .bytes = 16, .data = text, .from = 77});
    bad_puts(text, write_put(text, 1, 0, 8));             /* no such segment */
    bad_puts(text, write_put(text, 254, 0, 8));
    bad_puts(text, write_put(text, 0, SEGMENT, 1));       /* beyond its end */
    bad_puts(text, write_put(text, 0, SEGMENT - 7, 8));
    bad_puts(text, write_put(text, 0, (1ull << 48) - 1, 128));
    bytes = write_put(text, 0, 0, 8);
    for (uint16_t left = 1; left < bytes; left++)         /* truncated */
        bad_puts(text, left);
    bad_puts(text, (uint16_t)(bytes + 2));                /* less than a head behind it */
    text[bytes] = 7;
    text[bytes + 1] = 0xff, text[bytes + 2] = 0xff;       /* before the segment's beginning */
    bad_puts(text, (uint16_t)(bytes + 3 + 8));
    text[bytes] = 126;                                    /* more than there is */
    text[bytes + 1] = 0, text[bytes + 2] = 0;
    bad_puts(text, (uint16_t)(bytes + 3 + 126));
}

static void bad_update(uint8_t amo, uint8_t type, uint64_t offset)
{
    const struct message_change none = {.segment = 255},
                                c = {.amo = amo, .type = type, .offset = offset};
    unsigned char text[MESSAGE_CHANGES_DATA] = {0};
    const uint16_t bytes = (uint16_t)(message_change_head(text, &none, &c) + 8);

    bad_puts(text, bytes);
    bad_puts(text, (uint16_t)(bytes - 1));
}

static void hostile_updates(void)
{
    bad_update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, 4); /* across words */
    bad_update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT32, 2);
    bad_update(GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, SEGMENT);
    bad_update(GSHMEM_AMO_ADD, GSHMEM_TYPE_INT8, 0); /* no type of an atomic's */
    bad_update(GSHMEM_AMO_ADD, 31, 0);
    bad_update(GSHMEM_AMO_COMPARE_SWAP, GSHMEM_TYPE_UINT64, 0); /* that would lack an operand */
}

/* What the decoder takes of any bytes lies within them. */
static void noise(unsigned seed)
{
    struct message_bytes in;
    struct message m;

    srand(seed);
    for (int i = 0; i < 50000; i++) {
        const uint32_t bytes = (uint32_t)rand() % (sizeof in + 1);
        for (uint32_t k = 0; k < bytes; k++)
            in.at[k] = (unsigned char)rand();
        in.at[0] = MESSAGE_CHANGES;
        in.at[1] = rand() % 8 == 0;
        if (bytes > MESSAGE_CHANGES_HEAD && rand() % 8) {
            message_put64(in.at, MESSAGE_CHANGES | (uint64_t)(bytes - MESSAGE_CHANGES_HEAD) << 16);
        }
        if (!message_decode(&in, bytes, &m))
            continue;
        CHECK(m.kind == MESSAGE_CHANGES && m.bytes == bytes - MESSAGE_CHANGES_HEAD);
        const unsigned char *at = m.data, *end = at + m.bytes;
        struct message_change put = {.offset = 0};
        while (at < end) {
            const uint32_t taken = message_next_change(at, (uint32_t)(end - at), &put);
            if (!taken)
                break;
            CHECK(put.data > at && put.data + (put.bytes ? put.bytes : 8) == at + taken &&
                  at + taken <= end);
            at += taken;
        }
    }
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 5; seed++) {
        round_trips(seed);
        noise(seed);
    }
    for (unsigned seed = 1; seed <= 60; seed++)
        mixed(seed);
    meet_at_the_end_of_a_chunk();
    meet_an_update();
    very_many();
    beyond_the_end();
    packets(100, 0, 6);
    packets(20, 0, 1);
    packets(7, 7, 0);
    updates_share_packets();
    for (int reorders = 0; reorders < 2; reorders++) {
        signals_share_packets(64, GSHMEM_SIGNAL_ADD, reorders);
        signals_share_packets(64, GSHMEM_SIGNAL_SET, reorders);
        signals_share_packets(2, GSHMEM_SIGNAL_ADD, reorders);
        signals_share_packets(2, GSHMEM_SIGNAL_SET, reorders);
    }
    nobody_waits_alone();
    nobody_waits_long();
    window();
    for (unsigned seed = 1; seed <= 40; seed++)
        fences_hold(seed);
    others_keep_their_place();
    for (unsigned seed = 1; seed <= 20; seed++)
        ordered_behind_stripes(seed);
    each_fails(IBV_WC_RETRY_EXC_ERR);
    each_fails(IBV_WC_REM_ACCESS_ERR);
    for (int nth = 1; nth <= 8; nth++)
        goes_on_by_a_path_that_reorders(nth);
    for (unsigned seed = 1; seed <= 60; seed++)
        nothing_is_lost(seed, 1 + (int)seed % FAKE_DEVICES);
    for (int full = 2; full < 8; full++)
        goes_below(full);
    lost_with_parts_below();
    hostile();
    hostile_updates();
    return 0;
}

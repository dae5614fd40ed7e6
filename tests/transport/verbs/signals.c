/* Signals that share: of large puts, which wait for each other, and of small ones in collections. What
 * they cost; that none comes before its data or after the end of its put, by all ways and where paths
 * break; and that none waits for long. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

enum {
    PUTS = 48,
    PLACE = 160 << 10, /* more than the least that goes by several paths */
    AT = 1 << 20,
    WORDS = 8 + 2 * PUTS, /* those that are shared, and one of each put */
    MARK = 3,             /* the word that says which epoch has begun */
};

static char source[PUTS][PLACE];

static struct transport_request loose(struct transport_request r, uint32_t epoch)
{
    r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
    r.epoch = epoch;
    return r;
}

static uint64_t place_of(int i)
{
    return AT + (uint64_t)i * PLACE;
}

/* ---- What they cost ---- */

/* `n` puts behind one that is in flight, with signals of so many words: at most so many work requests
 * for all, and so many messages with their replies. */
static void costs(int n, uint64_t bytes, int op, int words, int most_works, int most_sends)
{
    const uint64_t apart = (bytes / 64 + 2) * 64; /* no neighbours */
    char *from = source[0];

    CHECK((uint64_t)(n + 1) * apart <= sizeof source);
    begin_strict(1);
    warm_up();
    for (int round = 0; round < 2; round++) { /* then keys are known */
        memset(pe[1].memory, 0, 8 * WORDS);
        struct fake_count before = fake;
        for (int i = 0; i <= n; i++) {
            const uint64_t at = (uint64_t)i * apart;
            fill(from + at, bytes, (unsigned)(i + round));
            struct transport_request r = loose(put(from + at, AT + at, bytes), 0);
            if (i)
                r = with_signal(r, op, 8 * (uint64_t)(1 + i % words),
                                op == GSHMEM_SIGNAL_ADD ? 1 : (uint64_t)i);
            post(0, r);
        }
        settle();
        for (int i = 0; i <= n; i++)
            CHECK(memcmp(pe[1].memory + AT + i * apart, from + i * apart, bytes) == 0);
        for (int i = 0; i < words; i++) {
            const int last = n - (n - i) % words; /* of those of this word, which are every `words`th */
            const uint64_t all = (uint64_t)(last / words + (i > 0));
            CHECK_EQ(*word(1, 8 * (uint64_t)(1 + i)), op == GSHMEM_SIGNAL_ADD ? all : (uint64_t)last);
        }
        if (round && !fake.late) { /* else more go alone, as nothing is known to be in flight */
            CHECK(fake.sends - before.sends <= most_sends);
            CHECK(fake.works - before.works <= most_works);
        }
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* Eight puts of 4 KiB, or fourteen of 500 B, share what gives their signals. */
static void signals_share(void)
{
    costs(32, 4096, GSHMEM_SIGNAL_SET, 1, 33 + 5, 0);
    costs(32, 4096, GSHMEM_SIGNAL_ADD, 1, 33 + 10, 10);
    costs(32, 4096, GSHMEM_SIGNAL_ADD, 20, 33 + 10, 10);
    costs(32, 4096, GSHMEM_SIGNAL_SET, 8, 33 + 10, 10); /* many: a message */
    costs(28, 500, GSHMEM_SIGNAL_SET, 1, 29 + 3, 0);
    costs(28, 500, GSHMEM_SIGNAL_ADD, 1, 29 + 6, 6);
    costs(30, 100, GSHMEM_SIGNAL_SET, 1, 31 + 4, 0);
    costs(30, 100, GSHMEM_SIGNAL_ADD, 1, 31 + 8, 8);
}

/* Small puts take as many messages as without signals, or nearly. */
static void small_puts_share(void)
{
    enum { N = 200, EACH = 11, ROOM = MESSAGE_CHANGES_DATA - 22 };

    costs(N, 8, GSHMEM_SIGNAL_ADD, 1, 1 << 20, 2 * (2 + N / (ROOM / EACH)));
    costs(N, 8, GSHMEM_SIGNAL_SET, 1, 1 << 20, 2 * (2 + N / (ROOM / EACH)));
}

/* A signal waits for a round without another one, though other puts keep coming. */
static void nobody_waits_for_ever(void)
{
    enum { ROUNDS = 60 };
    int rounds = 0;

    begin_strict(1);
    warm_up();
    *word(1, 0) = 0;
    for (int i = 0; i < 3; i++)
        post(0, loose(put(source[i], place_of(i), 4096), 0));
    for (int i = 3; i < 6; i++)
        post(0, loose(with_signal(put(source[i], place_of(i), 4096), GSHMEM_SIGNAL_ADD, 0, 1), 0));
    for (; *word(1, 0) != 3; rounds++) {
        CHECK(rounds < ROUNDS);
        for (int i = 0; i < 2; i++) { /* one is always in flight, and there is room for all */
            struct transport_request r = put(source[i], place_of(i), 5000);
            r.flags = TRANSPORT_LOOSE;
            post(0, r);
        }
        drive();
    }
    settle();
    end();
}

/* Of signals that are set and added to one word the order stays. */
static void kinds_keep_their_order(void)
{
    static const struct {
        int op;
        uint64_t value;
    } steps[] = {{GSHMEM_SIGNAL_ADD, 5}, {GSHMEM_SIGNAL_SET, 100}, {GSHMEM_SIGNAL_SET, 200},
                 {GSHMEM_SIGNAL_ADD, 1}, {GSHMEM_SIGNAL_ADD, 2}};
    enum { STEPS = sizeof steps / sizeof steps[0] };

    begin(1);
    warm_up();
    *word(1, 0) = 1000;
    post(0, loose(put(source[STEPS], place_of(STEPS), 4096), 0));
    for (int i = 0; i < STEPS; i++)
        post(0, loose(with_signal(put(source[i], place_of(i), 4096), steps[i].op, 0,
                                  steps[i].value), 0));
    settle();
    CHECK_EQ(*word(1, 0), 203);
    CHECK_EQ(not_ok, 0);
    end();
}

/* The value that is set last stays, though the target is late with the message of those before it. */
static void last_value_stays(void)
{
    int events;

    begin_strict(1);
    warm_up();
    *word(1, 0) = 0;
    post(0, loose(put(source[0], place_of(0), 4096), 0));
    for (uint64_t i = 1; i <= 20; i++)
        post(0, loose(with_signal(put(&i, AT - 64 * i, 8), GSHMEM_SIGNAL_SET, 0, i), 0));
    for (int i = 0; i < 40; i++) {
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    struct transport_request r = put(source[1], place_of(1), 4096);
    r.flags = TRANSPORT_LOOSE;
    post(0, with_signal(r, GSHMEM_SIGNAL_SET, 0, 100));
    while (fake_run())
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    settle();
    CHECK_EQ(*word(1, 0), 100);
    end();
}

/* The last set, with more to come or not, alone or small enough for a collection: none of those that wait is behind it. */
static void last_of_held_stays(int n, const uint64_t *bytes, bool more)
{
    begin_strict(1);
    warm_up();
    *word(1, 0) = 0;
    for (int i = 0; i < n; i++) {
        struct transport_request r = put(source[i], place_of(i), bytes[i]);
        if (i >= 1 && i <= 3)
            r = with_signal(r, GSHMEM_SIGNAL_SET, 0, (uint64_t)i);
        r = loose(r, 0);
        if (i == 3 && !more)
            r.flags = TRANSPORT_LOOSE;
        post(0, r);
    }
    settle();
    CHECK_EQ(*word(1, 0), 3);
    end();
}

/* A collection of which some is written, when signals of other puts go as a message: what is in flight stays as it is.
 * fails: that work request fails, 0: none. */
static void partly_written(int fails)
{
    const uint64_t far = CHUNK_BYTES + 64;
    uint64_t value = 0x1122334455667788;
    int events;

    prepare(1);
    fake.reorders = fake.soft = false;
    fake.devices = 2;
    open_both();
    warm_up();
    *word(1, AT) = *word(1, far) = 0;
    post(0, loose(put(source[0], place_of(1), 4096), 0));
    post(0, loose(with_signal(put(source[1], place_of(2), 4096), GSHMEM_SIGNAL_SET, 0, 5), 0));
    post(0, loose(with_signal(put(source[2], place_of(3), 4096), GSHMEM_SIGNAL_ADD, 8, 1), 0));
    CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    /* the key of the signal's chunk is not known yet */
    post(0, loose(with_signal(put(&value, AT, 8), GSHMEM_SIGNAL_SET, far, 7), 0));
    post(0, loose(put(source[3], place_of(4), 4096), 0));
    if (fails)
        fake_fail(fails, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    settle();
    CHECK_EQ(*word(1, AT), value);
    CHECK_EQ(*word(1, far), 7);
    end();
}

/* The target answers nothing, so that no more messages may be sent: then signals that wait for one give no reason to
 * make progress. */
static void held_let_sleep(void)
{
    enum { MANY = 240, BYTES = 8192 };
    int events;

    begin_strict(1);
    warm_up();
    for (int i = 0; i < MANY; i++) {
        struct transport_request r = put(source[i % PUTS], AT + (uint64_t)i * BYTES, BYTES);
        if (try_post(0, loose(with_signal(r, GSHMEM_SIGNAL_ADD, 0, 1), 0)))
            break;
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    for (int i = 0; i < 200; i++) {
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    CHECK(((struct verbs *)pe[0].t)->to[1]->held);
    CHECK_EQ(events, 0);
    CHECK_EQ(gshmem_transport.arm(pe[0].t), 0);
    settle();
    end();
}

/* ---- Never before the data, never after the end ---- */

enum kind { ADDS_ONE, ADDS_ITS_NUMBER, SETS_SHARED, SETS_OWN, ADDS_OWN, PLAIN, KINDS };

static struct sent {
    enum kind kind;
    uint64_t bytes, word, value;
    uint32_t epoch;
    int request; /* its number among all that were posted */
    bool complete;
} sent[PUTS];
static int n_sent;

static bool is_complete(struct sent *s)
{
    const int i = (int)(s - sent);

    if (!s->complete)
        s->complete = memcmp(pe[1].memory + place_of(i), source[i], s->bytes) == 0;
    return s->complete;
}

/* What the signals say, read first, is true of the data. */
static void look_at_data(void)
{
    static uint64_t seen_before[WORDS];
    uint64_t seen[WORDS], sum[2] = {0};

    for (int i = 0; i < WORDS; i++)
        seen[i] = __atomic_load_n(word(1, 8 * (uint64_t)i), __ATOMIC_ACQUIRE);
    if (memcmp(seen, seen_before, sizeof seen) == 0)
        return;
    memcpy(seen_before, seen, sizeof seen);
    for (int i = 0; i < n_sent; i++) {
        struct sent *s = &sent[i];
        if (s->kind <= ADDS_ITS_NUMBER)
            sum[s->kind] += is_complete(s) ? s->value : 0;
        else if (s->kind == SETS_SHARED && seen[s->word] == s->value)
            CHECK(is_complete(s));
        else if ((s->kind == SETS_OWN || s->kind == ADDS_OWN) && seen[s->word])
            CHECK(is_complete(s));
    }
    for (int i = 0; i < 2; i++)
        CHECK(seen[i] <= sum[i]);
}

/* Signals of puts that have ended, or of epochs before the one whose mark is there, are there. */
static void look_at_ends(void)
{
    const uint64_t mark = *word(1, 8 * MARK);
    uint64_t due[2] = {0};

    for (int i = 0; i < n_sent; i++) {
        const struct sent *s = &sent[i];
        if (s->kind == PLAIN || (s->request > ok && s->epoch >= mark))
            continue;
        if (s->kind <= ADDS_ITS_NUMBER)
            due[s->kind] += s->value;
        else if (s->kind != SETS_SHARED)
            CHECK_EQ(*word(1, 8 * s->word), s->value);
    }
    for (int i = 0; i < 2; i++)
        CHECK(*word(1, 8 * (uint64_t)i) >= due[i]);
}

static uint64_t draw_bytes(void)
{
    static const uint64_t most[] = {24, 127, 600, TRANSPORT_COPIED, 3 * TRANSPORT_COPIED, PLACE};

    return 1 + (uint64_t)rand() % most[rand() % 12 ? rand() % 5 : 5];
}

static struct transport_request draw_put(int i, uint32_t epoch, unsigned round)
{
    struct sent *s = &sent[i];
    struct transport_request r;

    *s = (struct sent){.kind = (enum kind)(rand() % KINDS), .bytes = draw_bytes(), .epoch = epoch};
    s->word = s->kind <= SETS_SHARED ? (uint64_t)s->kind : 8 + (uint64_t)i;
    s->value = s->kind == ADDS_ONE ? 1 : (uint64_t)i + 1;
    for (uint64_t at = 0; at < s->bytes; at++)
        source[i][at] = (char)(1 + (at * 7 + (uint64_t)i + round) % 255); /* never 0 */
    r = loose(put(source[i], place_of(i), s->bytes), epoch);
    if (rand() % 8 == 0)
        r.flags = TRANSPORT_LOOSE;
    if (s->kind == PLAIN)
        return r;
    return with_signal(r, s->kind == SETS_SHARED || s->kind == SETS_OWN ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD,
                       8 * s->word, s->value);
}

static void look_at_all(void)
{
    look_at_data();
    look_at_ends();
}

static unsigned away;

static void break_something(int devices)
{
    if (rand() % 8 == 0)
        fake_fail(1 + rand() % 24, rand() % 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_GENERAL_ERR);
    if (rand() % 40 == 0)
        fake_port((int)(away = (unsigned)rand() % (unsigned)devices), false);
    if (rand() % 12 == 0)
        fake_port((int)away, true);
    for (int who = 0; who < PES; who++)
        watch_poll((struct verbs *)pe[who].t);
}

static void round_of_puts(unsigned round, int devices, bool breaks)
{
    uint64_t total[2] = {0};
    uint32_t epoch = 0;

    memset(pe[1].memory, 0, 8 * WORDS);
    memset(pe[1].memory + AT, 0, PUTS * PLACE);
    n_sent = 0;
    for (int i = 0; i < PUTS; i++) {
        if (rand() % 12 == 0) {
            const uint64_t mark = ++epoch;
            post(0, loose(put((void *)(uintptr_t)&mark, 8 * MARK, 8), epoch));
        }
        struct transport_request r = draw_put(i, epoch, round);
        n_sent = i + 1;
        sent[i].request = INT32_MAX; /* it may have to be posted several times */
        post(0, r);
        sent[i].request = posted;
        if (sent[i].kind <= ADDS_ITS_NUMBER)
            total[sent[i].kind] += sent[i].value;
        if (breaks)
            break_something(devices);
        for (int k = rand() % 3; k; k--) {
            drive();
            look_at_all();
        }
    }
    for (int rounds = 0; ok + not_ok < posted; rounds++) {
        CHECK(rounds < 100000);
        drive();
        look_at_all();
    }
    CHECK_EQ(not_ok, 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(*word(1, 8 * (uint64_t)i), total[i]);
    for (int i = 0; i < PUTS; i++)
        CHECK(is_complete(&sent[i]));
}

static void litmus(unsigned seed, int devices, bool breaks)
{
    queue_pairs = 1 + (int)seed % 4;
    begin_with(seed, devices);
    warm_up();
    fake_look = look_at_data;
    srand(seed);
    for (unsigned round = 0; round < 2; round++)
        round_of_puts(round, devices, breaks);
    fake_look = NULL;
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
    queue_pairs = 1;
}

/* Each work request fails in turn, of puts whose signals share one write, or one message: the puts
 * that had shared it go again, or have ended with their signals there. */
static void each_fails(int op, int devices)
{
    enum { N = 12 };

    for (int nth = 1; nth <= 2 * N; nth++) {
        prepare(1);
        fake.reorders = false;
        fake.devices = devices;
        fake.soft = false;
        open_both();
        warm_up();
        const int before = ok;
        for (int i = 0; i < N; i++)
            *word(1, 8 * (uint64_t)i) = 0;
        fake_fail(nth, IBV_WC_RETRY_EXC_ERR);
        for (int i = 0; i < N; i++) {
            fill(source[i], 600, (unsigned)(i + nth));
            post(0, loose(with_signal(put(source[i], place_of(i), 600), op, 0,
                                      op == GSHMEM_SIGNAL_ADD ? 1 : (uint64_t)i + 1), 0));
        }
        for (int rounds = 0; ok + not_ok < posted; rounds++) {
            CHECK(rounds < 100000);
            drive();
            CHECK(*word(1, 0) >= (uint64_t)(ok - before)); /* each that has ended is seen */
            for (int i = 0; i < (int)*word(1, 0); i++)
                CHECK(memcmp(pe[1].memory + place_of(i), source[i], 600) == 0);
        }
        CHECK_EQ(*word(1, 0), N);
        CHECK_EQ(not_ok, 0);
        end();
    }
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    signals_share();
    small_puts_share();
    nobody_waits_for_ever();
    kinds_keep_their_order();
    last_value_stays();
    last_of_held_stays(4, (const uint64_t[]){4096, 4096, 4096, 4096}, false);
    last_of_held_stays(4, (const uint64_t[]){4096, 4096, 4096, 100000}, false);
    last_of_held_stays(4, (const uint64_t[]){4096, 4096, 4096, 8}, true);
    last_of_held_stays(5, (const uint64_t[]){4096, 4096, 4096, 8, 4096}, true);
    for (int fails = 0; fails <= 4; fails++)
        partly_written(fails);
    held_let_sleep();
    for (unsigned seed = 1; seed <= 6; seed++)
        litmus(seed, 1 + (int)seed % 3, false);
    for (unsigned seed = 1; seed <= 10; seed++)
        litmus(seed, 1 + (int)seed % 4, true);
    for (int devices = 1; devices <= 2; devices++) {
        each_fails(GSHMEM_SIGNAL_ADD, devices);
        each_fails(GSHMEM_SIGNAL_SET, devices);
    }
    return 0;
}

/* The verbs transport without a NIC and without a runtime: data, order, connecting, errors. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"

/* ---- Data ---- */

/* All ways that data can take: in the work request, by a slot, from the heap and from the program's
 * own memory, across chunks; there and back. */
static void sizes(unsigned seed, int devices)
{
    static const uint64_t all[] = {1,    7,    8,       128,      129, 192,
                                   4096, 4097, 1 << 20, 33 << 20, 0};
    static char own[33 << 20], back[33 << 20];

    begin_with(seed, devices);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const uint64_t offset = 5 + i;
        char *source = i % 2 ? own : pe[0].memory + 3;
        fill(source, all[i], (unsigned)i);
        post(0, put(source, offset, all[i]));
        settle();
        CHECK(memcmp(pe[1].memory + offset, source, all[i]) == 0);
        memset(back, 0, all[i]);
        post(0, get(back, offset, all[i]));
        settle();
        CHECK(memcmp(back, source, all[i]) == 0);
        post(1, get(pe[1].memory + (1 << 20) * (i < 8), 3, i < 8 ? all[i] : 64));
        settle();
    }
    /* from chunks to chunks that end elsewhere */
    fill(pe[0].memory + 3, 33 << 20, seed);
    post(0, put(pe[0].memory + 3, 77, 33 << 20));
    settle();
    CHECK(memcmp(pe[1].memory + 77, pe[0].memory + 3, 33 << 20) == 0);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* The source of a small put may be used again at once. */
static void sources_are_copied(void)
{
    begin(1);
    for (uint64_t i = 0, value; i < 600; i++) {
        char large[3000];
        value = i;
        fill(large, sizeof large, (unsigned)i);
        post(0, put(&value, 8 * i, 8));
        post(0, put(large, 100000 + 3000 * i, sizeof large));
        value = ~0ull;
        memset(large, -1, sizeof large);
    }
    settle();
    for (uint64_t i = 0; i < 600; i++) {
        char large[3000];
        fill(large, sizeof large, (unsigned)i);
        CHECK_EQ(*word(1, 8 * i), i);
        CHECK(memcmp(pe[1].memory + 100000 + 3000 * i, large, sizeof large) == 0);
    }
    end();
}

/* ---- Order ---- */

/* Random requests both ways, of both kinds of path, against a model that does them in order. */
static void in_order(unsigned seed, int devices)
{
    enum { WORDS = 16, STEPS = 3000 };
    static uint64_t model[2][WORDS], old[STEPS], expected[STEPS], value[STEPS];

    begin_with(seed, devices);
    memset(model, 0, sizeof model);
    srand(seed);
    for (int i = 0; i < STEPS; i++) {
        const int from = rand() % 8 == 0;
        struct transport_request r =
            draw(i, WORDS, model[1 - from], &value[i], &old[i], &expected[i]);

        if (from != 0) /* the order between both PEs' requests is nobody's */
            settle();
        post(from, r);
        if (from != 0)
            settle();
        if (rand() % 4 == 0)
            drive();
    }
    settle();
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(old[i], expected[i]);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(*word(which, 8 * (uint64_t)i), model[which][i]);
    }
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

static uint64_t last_signal;
static int early;

/* A word that says how far another has got is behind it. */
static void look(void)
{
    const uint64_t said = *word(1, 0);

    early += said != last_signal && *word(1, 4096) != said;
    last_signal = said;
}

/* NICs that place what comes last first: neither a signal, whoever gives it, nor what is behind a fence is seen before
 * what it follows; not where the target's NIC is of another kind, either, and what is small does not wait for it. */
static void writes_out_of_order(int signal_op, uint64_t bytes, uint64_t flag_bytes, bool same)
{
    static char data[STRIPE_BYTES], mark[2048]; /* too much for a message */

    prepare(1);
    fake.soft = false;
    fake.reorders = true;
    open_pe(0, false);
    fake.reorders = same;
    open_pe(1, false);
    fake.reorders = true;
    warm_up();
    *word(1, 0) = last_signal = 0;
    early = 0;
    fake_look = look;
    for (uint64_t i = 1; i <= 200; i++) {
        memcpy(data, &i, sizeof i);
        memcpy(mark, &i, sizeof i);
        struct transport_request r = put(data, 4096, bytes), flag = put(mark, 0, flag_bytes);
        r.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
        r.epoch = (uint32_t)(2 * i);
        if (signal_op) {
            post(0, with_signal(r, signal_op, 0, signal_op == GSHMEM_SIGNAL_ADD ? 1 : i));
        } else {
            post(0, r);
            flag.flags = TRANSPORT_LOOSE;
            flag.epoch = r.epoch + 1;
            post(0, flag);
        }
        while (ok + not_ok < posted) {
            drive();
            look();
        }
        CHECK_EQ(*word(1, 0), i);
    }
    fake_look = NULL;
    CHECK_EQ(early + not_ok, 0);
    end();
}

/* ---- What it costs ---- */

/* A put with a signal is one work request more than a put, posted together; many small puts are few
 * posts, and few completions. */
static void economy(void)
{
    static char data[1 << 20];
    uint64_t value = 1;

    begin_strict(1);
    warm_up();
    struct fake_count before = fake;
    post(0, put(data, 4096, 3000));
    settle();
    CHECK_EQ(fake.works - before.works, 1);
    before = fake;
    post(0, with_signal(put(data, 4096, 3000), GSHMEM_SIGNAL_SET, 0, 1));
    settle();
    CHECK_EQ(fake.works - before.works, 2);
    CHECK_EQ(fake.posts - before.posts, 1);
    CHECK_EQ(fake.signalled - before.signalled, 1);
    before = fake;
    for (int i = 0; i < 64; i++) {
        struct transport_request r = put(&value, 8 * (uint64_t)i, 8);
        r.flags = TRANSPORT_MORE;
        post(0, r);
    }
    settle();
    CHECK_EQ(fake.works - before.works, 64);
    /* some more when room is made for more requests, which it is twice */
    CHECK(fake.posts - before.posts <= 64 / BATCH + 1 + 2);
    CHECK(fake.signalled - before.signalled <= 64 / BATCH + 1 + 2);
    end();
}

static void post_word(uint64_t at, uint64_t value, uint32_t epoch)
{
    struct transport_request r = put(&value, at, 8);

    r.flags = TRANSPORT_LOOSE;
    r.epoch = epoch;
    post(0, r);
}

/* While a small put is on its way those behind it wait for each other, and what goes on where the last
 * ends is one work request with it, up to a fence. */
static void neighbours(void)
{
    enum { N = 200 };

    begin_strict(1);
    warm_up();
    struct fake_count before = fake;
    for (uint64_t i = 0; i < N; i++)
        post_word(8 * i, i + 1, i >= N / 2);
    settle();
    for (uint64_t i = 0; i < N; i++)
        CHECK_EQ(*word(1, 8 * i), i + 1);
    CHECK_EQ(fake.works - before.works, 1 + 7 + 8); /* of 15 at most */
    CHECK(fake.posts - before.posts <= 3 + 1); /* one when room is made for more */
    before = fake;
    for (uint64_t i = 0; i < 20; i++)
        post_word(16 * i, i, 0); /* not where the last ends */
    settle();
    CHECK_EQ(fake.writes - before.writes, 1);
    CHECK_EQ(fake.sends - before.sends, 2); /* the others, and the reply */
    CHECK_EQ(*word(1, 16 * 19), 19);
    CHECK_EQ(*word(1, 16 * 18 + 8), 38);
    before = fake;
    for (uint64_t i = 0; i < 4; i++) /* into the next chunk, which has a key of its own */
        post_word(CHUNK_BYTES - 16 + 8 * i, 100 + i, 0);
    settle();
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(*word(1, CHUNK_BYTES - 16 + 8 * i), 100 + i);
    CHECK_EQ(not_ok, 0);
    end();
}

/* They end together, and break and are mended together. */
static void neighbours_fail(enum ibv_wc_status status)
{
    enum { N = 50 };

    begin(1);
    warm_up();
    const int before = ok + not_ok;
    fake_fail(2, status);
    for (uint64_t i = 0; i < N; i++)
        post_word(8 * i, i + 1, 0);
    settle();
    CHECK_EQ(ok + not_ok - before, N);
    CHECK_EQ(not_ok > 0, status == IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 0; i < N && !not_ok; i++)
        CHECK_EQ(*word(1, 8 * i), i + 1);
    end();
}

/* The transport below is asked less often where it has nothing to do. */
static void below_is_left_alone(void)
{
    begin(1);
    pe[0].looks = 0;
    for (int i = 0; i < 32; i++)
        drive();
    CHECK_EQ(pe[0].looks, 32);
    warm_up();
    pe[0].looks = 0;
    for (int i = 0; i < 320; i++)
        drive();
    CHECK(pe[0].looks >= 3 && pe[0].looks <= 10);
    end();
}

/* ---- Connecting ---- */

static void both_at_once(unsigned seed)
{
    uint64_t value = 5;

    begin(seed);
    for (int i = 0; i < 2; i++) {
        struct transport_request r = put(&value, 8 * (uint64_t)i, 8);
        r.flags = TRANSPORT_MORE;
        CHECK_EQ(try_post(i, r), GSHMEM_OK);
    }
    pe[0].full = pe[1].full = 2;
    for (int rounds = 0; ok < 2 && rounds < 1000; rounds++)
        drive();
    CHECK_EQ(ok, 2);
    CHECK(*word(1, 0) == 5 && *word(0, 8) == 5);
    end();
}

static void without_nic_on_one_side(void)
{
    static char data[8192];

    prepare(1);
    open_both();
    ((struct verbs *)pe[1].t)->nics = 0;
    post(0, put(data, 0, 8));
    post(0, put(data, 0, 8192));
    settle();
    CHECK_EQ(pe[0].passed_down, 2);
    post(0, add(0, 1, NULL));
    CHECK_EQ(pe[0].passed_down, 3);
    post(1, put(data, 0, 8));
    CHECK_EQ(pe[1].passed_down, 1);
    CHECK_EQ(not_ok, 0);
    end();
}

/* Requests of both to the other, posted before anything has been heard. */
static void post_both(void)
{
    static uint64_t value = 5;

    for (int i = 0; i < 2; i++) {
        post(i, put(&value, 8, 8));
        post(i, add(16, 1, NULL));
    }
    settle();
    CHECK_EQ(ok, 4);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
    CHECK(*word(0, 8) == 5 && *word(1, 8) == 5);
    CHECK(*word(0, 16) == 1 && *word(1, 16) == 1);
}

static void go_below(void)
{
    post_both();
    CHECK_EQ(pe[0].passed_down, 2);
    CHECK_EQ(pe[1].passed_down, 2);
    end();
}

/* One that says nothing of verbs is told nothing: it would not listen. */
static void other_uses_one_below_alone(void)
{
    uint64_t value = 5;

    begin(1);
    pe[1].says_nothing = 1;
    post(0, put(&value, 0, 8));
    CHECK_EQ(pe[0].passed_down, 1);
    CHECK_EQ(pe[0].notes, 0);
    CHECK_EQ(fake.works, 0);
    pe[0].looks = 0;
    for (int i = 0; i < 32; i++)
        drive();
    CHECK_EQ(pe[0].looks, 32); /* at what carries all */
    end();
}

static void of_other_kind(void)
{
    prepare(1);
    open_pe(0, false);
    fake.infiniband = 1;
    open_pe(1, false);
    go_below();
}

/* Found out when the queue pairs are told of each other, by either or both. */
static void no_way(unsigned seed)
{
    begin(seed);
    fake_refuse_way(seed % 2 ? 1 : 2);
    go_below();
}

/* Or only by what is sent first, of either. */
static void nothing_gets_through(unsigned seed)
{
    begin(seed);
    fake_cut(0);
    go_below();
    begin(seed);
    fake_fail(1 + (int)seed % 2, IBV_WC_RETRY_EXC_ERR);
    post_both();
    end();
}

static void nonsense_in_notes(void)
{
    uint64_t value = 1;

    for (unsigned what = 0; what < 200; what++) {
        begin(what);
        CHECK_EQ(try_post(0, put(&value, 0, 8)), GSHMEM_OK);
        CHECK_EQ(pe[0].notes, 1);
        carry_notes(0);
        CHECK(pe[1].notes >= 1);
        unsigned char *note = pe[1].note[0].text;
        if (what < 12)
            note[what] ^= 0x55;
        else if (what < 40)
            pe[1].note[0].bytes = what - 12;
        else if (what < 56)
            note[8] = (unsigned char)(what - 40 + (what - 40 > 0) * 3);
        else
            note[what % 56] = (unsigned char)(what * 7);
        for (int i = 0; i < 50; i++)
            drive();
        CHECK(pe[0].lost <= 1 && not_ok == (pe[0].lost ? 1 : not_ok));
        end();
    }
}

/* ---- Errors ---- */

/* What is the request's own fault. */
static bool ends_link(enum ibv_wc_status status)
{
    return status == IBV_WC_LOC_LEN_ERR ||
           status == IBV_WC_LOC_EEC_OP_ERR || status == IBV_WC_LOC_PROT_ERR ||
           status == IBV_WC_MW_BIND_ERR || status == IBV_WC_LOC_ACCESS_ERR ||
           status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
           status == IBV_WC_LOC_RDD_VIOL_ERR || status == IBV_WC_REM_INV_RD_REQ_ERR ||
           status == IBV_WC_INV_EECN_ERR || status == IBV_WC_INV_EEC_STATE_ERR;
}

static void every_status(void)
{
    static char data[8192];

    for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_GENERAL_ERR; status++) {
        begin((unsigned)status);
        warm_up();
        post(0, put(data, 0, 8192));
        post(0, get(data, 0, 8192));
        fake_fail(1, (enum ibv_wc_status)status);
        for (int i = 0; i < 5; i++)
            post(0, put(data, 0, 64));
        settle();
        CHECK_EQ(not_ok, ends_link((enum ibv_wc_status)status) ? 7 : 0);
        CHECK_EQ(pe[0].lost, not_ok > 0);
        CHECK_EQ(pe[0].passed_down, not_ok ? 0 : 7);
        if (not_ok) {
            CHECK_HAS(pe[0].why, "fake0 port 1, 0.0.0.1");
            CHECK_HAS(pe[0].why, "put: a status (status");
            CHECK_EQ(last_status, GSHMEM_ERR_TRANSPORT);
            CHECK(try_post(0, put(data, 0, 8)) == last_status);
        } else {
            CHECK_HAS(pe[0].notified, "PE 1: fake0 port 1, 0.0.0.1");
        }
        end();
    }
}

/* Those that were taken are not posted again; the others are, when there is room. */
static void posting_fails_in_the_middle(void)
{
    uint64_t value = 1;

    for (int error = 0; error < 2; error++) {
        begin_strict(1);
        warm_up();
        struct fake_count before = fake;
        post(0, put(&value, 64, 8));
        fake_refuse_post(1, error ? EINVAL : ENOMEM);
        for (int i = 0; i < 8; i++) {
            struct transport_request r = put(&value, 0, 8);
            r.flags = TRANSPORT_MORE;
            post(0, r);
        }
        settle();
        CHECK_EQ(not_ok + pe[0].lost, 0);
        if (!error)
            CHECK_EQ(fake.works - before.works, 9);
        CHECK_EQ(pe[0].passed_down > 0, error);
        end();
    }
}

/* This PE's own memory, or a piece of the peer's: what needs it, and what follows, goes by the transport below, in
 * order, and it is said once. */
static void memory_that_cannot_be_registered(uint64_t at, uint64_t bytes, bool from_segment)
{
    static char own[100000];
    char *data = own;

    begin_strict(1); /* small puts need the peer's key at once */
    warm_up();
    if (from_segment) /* of this PE's, in another chunk than those that are registered */
        data = pe[0].memory + (17 << 20);
    fill(data, sizeof own, 3);
    complaint[0] = 0;
    for (int i = 0; i < 10; i++)
        post(0, put(data, 64 * (uint64_t)i, 64));
    settle();
    fake_refuse_memory(1);
    post(0, put(data, at, bytes));
    for (int i = 0; i < 10; i++)
        post(0, put(data + 1, 64 * (uint64_t)i, 64));
    settle();
    CHECK_HAS(complaint, "ulimit -l");
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    CHECK_EQ(pe[0].passed_down, 11);
    CHECK(memcmp(pe[1].memory + at, data, bytes) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(memcmp(pe[1].memory + 64 * i, data + 1, 64) == 0);
    for (int i = 0; i < 5000; i++)
        drive(); /* no path comes back */
    post(0, put(data, at, 64));
    settle();
    CHECK_EQ(pe[0].passed_down, 12);
    end();
}

static void beyond_the_end(void)
{
    char data[64] = {0};

    begin(1);
    warm_up();
    post(0, put(data, SEGMENT - 63, 64));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_HAS(pe[0].why, "ends before");
    end();
}

/* A process that dies loses its memory first: what its NIC refuses then is told as its death. */
static void refuses_as_it_dies(void)
{
    uint64_t value = 5;
    int events;

    begin(1);
    warm_up();
    fake_fail(1, IBV_WC_REM_ACCESS_ERR);
    post(0, put(&value, 8, 8));
    for (int i = 0; i < 100; i++) {
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    CHECK_EQ(pe[0].lost + not_ok, 0); /* nobody knows yet */
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    end();
}

/* Drives PE 0 alone, as PE 1 is stopped, until it is lost, or for so many seconds. */
static void drive_alone(int seconds)
{
    const uint64_t until = clock_ns() + (uint64_t)seconds * 1000000000u;
    int events;

    do {
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
        fake_run();
    } while (!pe[0].lost && clock_ns() < until);
}

/* The NIC of a PE that is stopped takes messages for it; who only writes to it does not mind. */
static void stopped(void)
{
    uint64_t value = 5;

    begin(1);
    warm_up();
    peer_timeout = 1;
    post(0, put(&value, 8, 8));
    drive_alone(2);
    CHECK_EQ(pe[0].lost, 0);
    post(0, add(0, 1, NULL));
    drive_alone(60);
    CHECK_EQ(pe[0].lost, 1);
    CHECK_HAS(pe[0].why, "owes a reply and has sent nothing for 1 s (GSHMEM_PEER_TIMEOUT)");
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    peer_timeout = 10;
    end();
}

/* One that stops while queue pairs are made, or after one broke. Before it was heard for the first time it
 * may be starting, and has longer. */
static void stopped_half_way(void)
{
    uint64_t value = 5, begun = clock_ns();

    begin(1);
    peer_timeout = 1;
    init_timeout = 3;
    post(0, put(&value, 8, 8));
    drive_alone(60);
    CHECK_EQ(pe[0].lost, 1);
    CHECK(clock_ns() - begun >= 3000000000); /* not a measurement: it is not lost earlier */
    CHECK_HAS(pe[0].why, "owes its part of a queue pair and has sent nothing for 3 s (GSHMEM_INIT_TIMEOUT)");
    end();

    begin(2);
    warm_up();
    failover_fail((struct verbs *)pe[0].t, ((struct verbs *)pe[0].t)->to[1]->path[0], "a test");
    post(0, put(&value, 8, 8));
    drive_alone(60);
    CHECK_EQ(pe[0].lost, 1);
    CHECK_HAS(pe[0].why, "what it has received by a path that failed and has sent nothing for 1 s");
    CHECK_EQ(not_ok, 1);
    end();
    peer_timeout = 10;
    init_timeout = 60;
}

/* Who has given up a link says so to a peer that still counts on it, however full the queue below is. */
static void given_up_by_the_other(void)
{
    uint64_t value = 5;
    struct verbs *v;

    begin(1);
    warm_up();
    v = (struct verbs *)pe[1].t;
    link_fail(v, v->to[0], GSHMEM_ERR_TRANSPORT, "a test");
    pe[1].full = 100;
    post(0, put(&value, 8, 8));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_TRANSPORT);
    CHECK_HAS(pe[0].why, "has given up");
    end();
}

/* A peer that gave this PE up before they met takes no offer. The request ends when the transport below is
 * refused, long before GSHMEM_INIT_TIMEOUT. */
static void refused_before_they_met(void)
{
    uint64_t value = 5;
    const uint64_t until = clock_ns() + 30ull * 1000000000u;
    int events;

    begin(1);
    post(0, put(&value, 8, 8));
    pe[0].refused = true;
    while (!not_ok && clock_ns() < until)
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(pe[0].lost, 0); /* the transport below reports it */
    end();
}

/* The same of a peer that has done something for this PE before: by a control message, as it sends none, and long
 * before GSHMEM_PEER_TIMEOUT. */
static void refused_after_they_met(void)
{
    const uint64_t until = clock_ns() + 30ull * 1000000000u;
    uint64_t old;
    int events;

    begin(1);
    warm_up();
    post(0, add(128, 1, &old));
    settle();
    pe[0].refused = true;
    post(0, add(128, 1, &old));
    while (!not_ok && clock_ns() < until)
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(pe[0].lost, 0);
    end();
}

/* What may wait for more does so only while a completion is due, which wakes who sends it. */
static void held_back_while_answers_are_due(void)
{
    static char data[1024];
    struct transport_request requests[] = {put(data, 4096, sizeof data),
                                           with_signal(put(data, 8, 8), GSHMEM_SIGNAL_SET, 64, 1),
                                           with_signal(put(data, 8, 8), GSHMEM_SIGNAL_ADD, 64, 1),
                                           add(128, 1, NULL)};

    begin(1);
    warm_up();
    for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct fake_count before = fake;
        requests[i].flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
        post(0, requests[i]);
        CHECK(fake.works > before.works); /* without a round of progress */
        before = fake;
        post(0, requests[i]);
        CHECK_EQ(fake.works, before.works);
        settle();
    }
    CHECK_EQ(not_ok, 0);
    end();
}

static void lost_by_others(void)
{
    static char data[8192];

    begin(1);
    warm_up();
    post(0, put(data, 0, 8192));
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(pe[0].lost, 0);
    end();
}

/* ---- Hostile messages ---- */

static void bad_message(struct message m)
{
    struct verbs *v;
    uint64_t value = 1;

    begin(1);
    warm_up();
    v = (struct verbs *)pe[0].t;
    post(1, put(&value, 0, 8));
    settle();
    m.from = 0;
    m.number = m.number ? m.number : v->to[1]->messages.sent + 1;
    CHECK(post_message(v, v->to[1]->active[0], WORK_OTHER, 0, &m));
    post_batches(v, v->to[1]);
    for (int i = 0; i < 100; i++)
        drive();
    CHECK_EQ(pe[1].lost, 1);
    CHECK_HAS(pe[1].why, "makes no sense");
    end();
}

static void hostile(void)
{
#define BAD(...) bad_message((struct message){__VA_ARGS__})
    BAD(.kind = MESSAGE_PUT, .segment = 1, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .offset = SEGMENT - 7, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .offset = UINT64_MAX - 3, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .signal_op = 3);
    BAD(.kind = MESSAGE_PUT, .signal_op = GSHMEM_SIGNAL_ADD, .a = 4);
    BAD(.kind = MESSAGE_PUT, .signal_op = GSHMEM_SIGNAL_SET, .a = SEGMENT);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = 4);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = SEGMENT);
    BAD(.kind = MESSAGE_ATOMIC, .type = 200);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .amo = (enum gshmem_amo)200);
    BAD(.kind = MESSAGE_REPLY);
    BAD(.kind = MESSAGE_PUT, .number = 7);
}

/* Places where messages go: none is lost or used twice, however many come. */
static void many_messages(void)
{
    begin(3);
    for (int i = 0; i < 5000; i++) {
        struct transport_request r = add(0, 1, NULL);
        r.flags = i % 7 ? TRANSPORT_MORE : 0;
        post(0, r);
    }
    settle();
    CHECK_EQ(*word(1, 0), 5000);
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 3; seed++)
        sizes(seed, (int)seed);
    sources_are_copied();
    for (unsigned seed = 1; seed <= 40; seed++)
        in_order(seed, 1 + (int)seed % 3);
    for (int op = 0; op <= GSHMEM_SIGNAL_ADD; op++) {
        for (int same = 0; same < 2; same++) {
            writes_out_of_order(op, 8, 8, same);
            writes_out_of_order(op, 2048, 8, same);
            writes_out_of_order(op, 2048, 2048, same);
            writes_out_of_order(op, STRIPE_BYTES, 8, same);
        }
    }
    economy();
    neighbours();
    neighbours_fail(IBV_WC_REM_ACCESS_ERR);
    neighbours_fail(IBV_WC_RETRY_EXC_ERR);
    below_is_left_alone();
    for (unsigned seed = 1; seed <= 20; seed++)
        both_at_once(seed);
    without_nic_on_one_side();
    other_uses_one_below_alone();
    of_other_kind();
    for (unsigned seed = 1; seed <= 20; seed++) {
        no_way(seed);
        nothing_gets_through(seed);
    }
    nonsense_in_notes();
    every_status();
    posting_fails_in_the_middle();
    memory_that_cannot_be_registered(4096, 100000, false);
    memory_that_cannot_be_registered(4096, 100000, true);
    memory_that_cannot_be_registered(33 << 20, 100, false);
    beyond_the_end();
    refuses_as_it_dies();
    stopped();
    stopped_half_way();
    given_up_by_the_other();
    refused_before_they_met();
    refused_after_they_met();
    held_back_while_answers_are_due();
    lost_by_others();
    hostile();
    many_messages();
    return 0;
}

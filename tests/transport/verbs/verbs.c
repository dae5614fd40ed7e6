/* The verbs transport without a NIC and without a runtime: data, order, connecting, errors. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- What it costs ---- */

/* A put with a signal is one work request more than a put, posted together; many small puts are few
 * posts, and few completions. */
static void economy(void)
{
    static char data[1 << 20];
    uint64_t value = 1;

    begin(1);
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
    CHECK(fake.posts - before.posts <= 3);
    CHECK(fake.signalled - before.signalled <= 3);
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

    begin(1);
    warm_up();
    struct fake_count before = fake;
    for (uint64_t i = 0; i < N; i++)
        post_word(8 * i, i + 1, i >= N / 2);
    settle();
    for (uint64_t i = 0; i < N; i++)
        CHECK_EQ(*word(1, 8 * i), i + 1);
    CHECK_EQ(fake.works - before.works, 1 + 7 + 8); /* of 15 at most */
    CHECK(fake.posts - before.posts <= 3);
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
            CHECK_HAS(pe[0].told, "PE 1: fake0 port 1, 0.0.0.1");
        }
        end();
    }
}

/* Those that were taken are not posted again; the others are, when there is room. */
static void posting_fails_in_the_middle(void)
{
    uint64_t value = 1;

    for (int error = 0; error < 2; error++) {
        begin(1);
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

static void memory_that_cannot_be_registered(void)
{
    static char data[100000];

    begin(1);
    warm_up();
    fake_refuse_memory(1); /* the program's own: that put fails, and no other */
    post(0, put(data, 0, sizeof data));
    post(0, put(data, 0, 100));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(ok, 2);
    CHECK_HAS(complaint, "ulimit -l");
    fake_refuse_memory(1); /* the peer's: nothing can be put there any more */
    post(0, put(data, 33 << 20, 100));
    settle();
    CHECK_EQ(not_ok, 2);
    CHECK_EQ(pe[0].lost, 1);
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

/* The NIC of a PE that stands still takes messages for it; who only writes to it does not mind. */
static void stands_still(void)
{
    const uint64_t second = 1000000000u;
    struct timespec t;
    uint64_t now, until, value = 5;

    begin(1);
    warm_up();
    peer_timeout = 1;
    for (int asks = 0; asks < 2; asks++) {
        post(0, asks ? add(0, 1, NULL) : put(&value, 8, 8));
        clock_gettime(CLOCK_MONOTONIC, &t);
        until = (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec + (asks ? 60 : 2) * second;
        do {
            int events;
            CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
            fake_run();
            clock_gettime(CLOCK_MONOTONIC, &t);
            now = (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
        } while (!pe[0].lost && now < until);
        CHECK_EQ(pe[0].lost, asks);
    }
    CHECK(strstr(pe[0].why, "owes a reply and has sent no message for 1 s"));
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    peer_timeout = 10;
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
    m.number = m.number ? m.number : v->to[1]->said + 1;
    CHECK(post_message(v, v->to[1]->up[0], WORK_OTHER, 0, &m));
    issue_batched(v, v->to[1]);
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
    memory_that_cannot_be_registered();
    beyond_the_end();
    refuses_as_it_dies();
    stands_still();
    lost_by_others();
    hostile();
    many_messages();
    return 0;
}

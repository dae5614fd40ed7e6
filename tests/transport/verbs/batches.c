/* Batches over verbs: their records are carried out once and in order, through eager buffers or as
 * a collection; what they cost; order with other requests; paths that break; hostile messages. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic_type.h"
#include "transport/batch.h"
#include "transport/verbs/eager.h"

enum {
    WORD = 8,
    RECORD = BATCH_NUMBER_BYTES + WORD,
    FULL = TRANSPORT_COPIED / RECORD, /* records */
    OBJECT = 1 << 20,                 /* words that are added to, */
    WORDS = 2000,
    DUE = 2 << 20, /* words that are put, */
    MARK = 3 << 20 /* and one that tells what has been seen */
};

static uint64_t sum[WORDS]; /* what was added to each word of OBJECT */

static void begin_sums(unsigned seed, int devices)
{
    memset(sum, 0, sizeof sum);
    begin_with(seed, devices);
    warm_up();
}

static struct transport_request batch(int each, uint64_t offset, void *records, uint64_t elements,
                                      uint32_t epoch)
{
    return (struct transport_request){.kind = TRANSPORT_BATCH,
                                      .flags = TRANSPORT_LOOSE | TRANSPORT_MORE,
                                      .each = (uint8_t)each,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .offset = offset,
                                      .local = records,
                                      .bytes = elements * RECORD,
                                      .elements = elements,
                                      .element_bytes = WORD,
                                      .epoch = epoch};
}

static void write_record(char *records, uint64_t i, uint32_t number, uint64_t value)
{
    batch_put_number(records + i * RECORD, number);
    memcpy(records + i * RECORD + BATCH_NUMBER_BYTES, &value, WORD);
}

/* So many words of OBJECT are added to. */
static void post_adds(uint64_t n, uint32_t epoch)
{
    char records[FULL * RECORD];

    for (uint64_t i = 0; i < n; i++) {
        const uint32_t at = (uint32_t)rand() % WORDS;
        const uint64_t more = 1 + (uint64_t)rand() % 1000;
        write_record(records, i, at, more);
        sum[at] += more;
    }
    post(0, batch(TRANSPORT_ATOMIC, OBJECT, records, n, epoch));
    memset(records, -1, sizeof records); /* it has been copied */
}

static void check_sums(void)
{
    for (uint64_t i = 0; i < WORDS; i++)
        CHECK_EQ(*word(1, OBJECT + i * WORD), sum[i]);
}

/* ---- All kinds ---- */

enum { MODEL = 1 << 16 };

/* Puts and updates of all sizes, each batch behind a fence or in strict order, among single
 * requests. They lie on both sides of the end of a chunk, too, which has a key of its own. */
static void all_kinds(unsigned seed)
{
    static const struct {
        enum gshmem_amo amo;
        int type;
    } updates[] = {{GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64}, {GSHMEM_AMO_ADD, GSHMEM_TYPE_INT32},
                   {GSHMEM_AMO_ADD, GSHMEM_TYPE_DOUBLE}, {GSHMEM_AMO_OR, GSHMEM_TYPE_UINT32},
                   {GSHMEM_AMO_XOR, GSHMEM_TYPE_UINT64}, {GSHMEM_AMO_SET, GSHMEM_TYPE_UINT32}};
    static unsigned char model[MODEL];
    const uint64_t from = seed % 2 ? CHUNK_BYTES - MODEL / 2 : OBJECT;

    memset(model, 0, sizeof model);
    with_counters = true;
    prepare(seed);
    fake.devices = 1 + (int)seed % 3;
    fake.atomics = true;
    open_both();
    warm_up();
    srand(seed);
    for (uint32_t epoch = 0; epoch < 200; epoch++) {
        const bool puts = rand() % 2;
        const unsigned which = (unsigned)rand() % (sizeof updates / sizeof updates[0]);
        const uint64_t bytes = puts ? 1u << rand() % 7 : atomic_type_bytes(updates[which].type),
                       step = BATCH_NUMBER_BYTES + bytes, rest = puts ? (uint64_t)rand() % bytes : 0,
                       most = TRANSPORT_COPIED / step,
                       n = 1 + (uint64_t)rand() % (rand() % 3 ? 12 : most),
                       places = rand() % 2 ? 3 : MODEL / bytes - 1; /* few: the last one wins */
        char records[TRANSPORT_COPIED];
        struct transport_request r =
            batch(puts ? TRANSPORT_PUT : TRANSPORT_ATOMIC, from + rest, records, n, epoch);

        r.flags = rand() % 4 ? TRANSPORT_LOOSE | TRANSPORT_MORE : TRANSPORT_MORE;
        r.amo = (uint8_t)updates[which].amo;
        r.type = (uint8_t)updates[which].type;
        r.element_bytes = bytes;
        r.bytes = n * step;
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t at = (uint32_t)rand() % (uint32_t)places;
            char *value = records + i * step + BATCH_NUMBER_BYTES;
            unsigned char *there = model + rest + at * bytes;
            batch_put_number(records + i * step, at);
            fill(value, bytes, (unsigned)rand());
            if (puts)
                memcpy(there, value, bytes);
            else
                atomic_apply(updates[which].amo, updates[which].type, there,
                             batch_operand(value, bytes), 0);
        }
        post(0, r);
        memset(records, -1, sizeof records);
        if (rand() % 8 == 0) {
            const uint64_t at = (uint64_t)rand() % (MODEL / WORD) * WORD, one = epoch;
            memcpy(model + at, &one, WORD);
            post(0, put((void *)(uintptr_t)&one, from + at, WORD));
        }
        if (rand() % 16 == 0)
            drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    CHECK(memcmp(pe[1].memory + from, model, MODEL) == 0);
    end();
    with_counters = false;
}

/* ---- What it costs ---- */

/* One write, one message and at most one reply, whatever the number of records; and a full one waits
 * for nothing. */
static void a_batch_is_one_message(void)
{
    begin_sums(1, 1);
    post_adds(FULL, 0); /* keys are known from here on */
    settle();
    struct fake_count before = fake;
    post_adds(FULL, 0);
    post_adds(FULL, 0);
    CHECK_EQ(fake.posts - before.posts, 2);
    settle();
    CHECK_EQ(fake.writes - before.writes, 2);
    CHECK(fake.sends - before.sends >= 3 && fake.sends - before.sends <= 4);
    CHECK(fake.posts - before.posts <= 4);
    check_sums();
    end();
}

/* A few puts need nobody at the target; a few updates are one message and no write. */
static void few_need_no_buffer(void)
{
    char records[3 * RECORD];

    memset(sum, 0, sizeof sum);
    begin_strict(1);
    warm_up();
    for (uint64_t round = 1; round < 3; round++) { /* then the key is known */
        struct fake_count before = fake;
        for (uint32_t i = 0; i < 3; i++)
            write_record(records, i, 5 * i, round + i);
        post(0, batch(TRANSPORT_PUT, DUE, records, 3, 0));
        settle();
        if (round == 2)
            CHECK(fake.writes - before.writes == 3 && fake.sends == before.sends);
        for (uint64_t i = 0; i < 3; i++)
            CHECK_EQ(*word(1, DUE + 5 * i * WORD), round + i);
        before = fake;
        post_adds(3, 0);
        settle();
        CHECK(fake.writes == before.writes && fake.sends - before.sends == 2);
        check_sums();
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* Of several puts to one word the last one stays, where writes may be placed in another order. */
static void few_keep_their_order(void)
{
    char records[5 * RECORD];

    prepare(1);
    fake.soft = false;
    fake.reorders = true;
    open_both();
    warm_up();
    for (uint64_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < 5; i++)
            write_record(records, i, 3, 10 * round + i);
        post(0, batch(TRANSPORT_PUT, DUE, records, 5, 0));
        settle();
        CHECK_EQ(*word(1, DUE + 3 * WORD), 10 * round + 4);
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* The target does nothing: no more is written than it has buffers, and nothing is overwritten. */
static void buffers(void)
{
    int events;

    begin_sums(1, 1);
    post_adds(FULL, 0);
    settle();
    struct fake_count before = fake;
    for (int i = 0; i < 3 * EAGER_BUFFERS; i++) {
        post_adds(FULL, 0);
        fake_run();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
    while (fake_run())
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    CHECK_EQ(fake.writes - before.writes, EAGER_BUFFERS);
    settle();
    check_sums();
    CHECK_EQ(not_ok, 0);
    end();
}

/* GSHMEM_IB_INFLIGHT holds for records, too. */
static void bytes_in_flight(void)
{
    uint64_t most = 0;

    flight_most = 2 * TRANSPORT_COPIED;
    begin_sums(1, 1);
    post_adds(FULL, 0);
    settle();
    for (int i = 0; i < 40; i++) {
        post_adds(FULL, 0);
        const uint64_t now = fake_most_in_flight().bytes;
        most = now > most ? now : most;
    }
    settle();
    CHECK_EQ(most, 2 * FULL * RECORD);
    check_sums();
    end();
    flight_most = 0;
}

/* A NIC that takes few work requests at a time. */
static void few_works(int most)
{
    works_most = most;
    begin_sums(1, 1);
    for (int i = 0; i < 100; i++)
        post_adds(1 + (uint64_t)rand() % FULL, 0);
    settle();
    check_sums();
    CHECK_EQ(not_ok, 0);
    end();
    works_most = 0;
}

/* What the transport does not take is refused. */
static void too_large(void)
{
    static char records[2 * TRANSPORT_COPIED];
    struct transport_request r = batch(TRANSPORT_ATOMIC, OBJECT, records, FULL + 1, 0);

    begin(1);
    warm_up();
    CHECK_EQ(try_post(0, r), GSHMEM_ERR_ARGUMENT);
    r = batch(TRANSPORT_GET, OBJECT, records, 10, 0);
    r.bytes = 10 * BATCH_NUMBER_BYTES;
    CHECK_EQ(try_post(0, r), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_transport.batches, TRANSPORT_SMALL_BATCHES);
    end();
}

/* The target cannot register its buffers: all goes below from there on. */
static void no_buffers(void)
{
    begin_sums(1, 1);
    fake_refuse_memory(1);
    for (int i = 0; i < 10; i++)
        post_adds(FULL, 0);
    settle();
    check_sums();
    CHECK_EQ(pe[0].passed_down, 10);
    CHECK_EQ(not_ok, 0);
    end();
}

/* ---- Order ---- */

/* Who sees what is behind a fence sees what is before it: a batch behind puts by all paths, and a
 * put, a signal, a get or a batch behind batches. */
static void fences_hold(unsigned seed)
{
    enum { EPOCHS = 60, HUGE_AT = 10 << 20, HUGE_BYTES = 600 << 10 };
    static char huge[HUGE_BYTES];
    static uint64_t back;
    char mark[20 * RECORD];
    uint32_t epoch = 0;

    srand(seed);
    begin_sums(seed, 1 + (int)seed % FAKE_DEVICES);
    for (uint64_t e = 1; e <= EPOCHS; e++) {
        const uint64_t huge_bytes = rand() % 4 ? 0 : HUGE_BYTES;
        struct transport_request r;
        memset(huge, (int)e, huge_bytes);
        if (huge_bytes) {
            r = put(huge, HUGE_AT, huge_bytes);
            r.flags = TRANSPORT_LOOSE;
            r.epoch = epoch;
            post(0, r);
        }
        for (int i = rand() % 4; i >= 0; i--)
            post_adds(1 + (uint64_t)rand() % FULL, epoch);
        epoch++;
        r = put(&e, MARK, WORD);
        for (uint32_t i = 0; i < 20; i++)
            write_record(mark, i, i % 2, e);
        switch (rand() % 4) {
        case 0:
            r = batch(TRANSPORT_PUT, MARK, mark, rand() % 2 ? 1 : 20, epoch);
            break;
        case 1:
            r = with_signal(put(NULL, 0, 0), GSHMEM_SIGNAL_SET, MARK, e);
            break;
        case 2: {
            struct transport_request read = get(&back, OBJECT, WORD);
            read.flags = TRANSPORT_LOOSE;
            read.epoch = epoch;
            post(0, read);
            settle();
            CHECK_EQ(back, sum[0]);
        }
        }
        r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
        r.epoch = epoch;
        post(0, r);
        for (int rounds = 0; *word(1, MARK) != e; rounds++) {
            CHECK(rounds < 100000);
            drive();
        }
        check_sums();
        CHECK(memcmp(pe[1].memory + HUGE_AT, huge, huge_bytes) == 0);
        epoch += (uint32_t)rand() % 2;
    }
    settle();
    CHECK_EQ(not_ok, 0);
    end();
}

/* ---- Paths that break ---- */

/* The nth work request fails: no update is lost or made twice. */
static void each_fails(int nth, int devices, bool loses_answers)
{
    prepare((unsigned)nth);
    fake.devices = devices;
    fake.loses_answers = loses_answers;
    memset(sum, 0, sizeof sum);
    open_both();
    warm_up();
    post_adds(FULL, 0);
    settle();
    fake_fail(nth, IBV_WC_RETRY_EXC_ERR);
    for (int i = 0; i < 12; i++) {
        post_adds(i % 3 ? FULL : 5, 0);
        if (i % 4 == 3)
            drive();
    }
    settle();
    check_sums();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* The peer's NIC cannot tell what has arrived, which a batch does not need. */
static void nobody_tells_packets(void)
{
    for (int nth = 1; nth <= 6; nth++) {
        prepare(1);
        fake.tells_no_packet = true;
        memset(sum, 0, sizeof sum);
        open_both();
        warm_up();
        post_adds(FULL, 0);
        settle();
        fake_fail(nth, IBV_WC_RETRY_EXC_ERR);
        for (int i = 0; i < 6; i++)
            post_adds(FULL, 0);
        settle();
        check_sums();
        CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
        end();
    }
}

/* Paths fail again and again, with batches in all states. Words that were put are taken at once, so
 * that one that came again would be seen. */
static void nothing_is_lost(unsigned seed, int devices)
{
    static uint64_t due[WORDS], value;
    unsigned away = 0;

    memset(due, 0, sizeof due);
    memset(sum, 0, sizeof sum);
    prepare(seed);
    fake.devices = devices;
    fake.loses_answers = seed % 2;
    open_both();
    warm_up();
    pe[0].full_below = seed % 7 > 1 ? (int)seed % 7 : 0;
    pe[0].late_below = seed % 5 < 3;
    srand(seed);
    for (uint32_t i = 0; i < 600; i++) {
        char records[FULL * RECORD];
        const unsigned first = (unsigned)rand() % WORDS, step = 1 + (unsigned)rand() % 7;
        uint64_t n = 0;
        for (unsigned at = first; at < WORDS && n < FULL; at += step) {
            if (due[at])
                continue;
            due[at] = ++value;
            write_record(records, n++, at, value);
        }
        if (n)
            post(0, batch(TRANSPORT_PUT, DUE, records, n, i / 100));
        post_adds(1 + (uint64_t)rand() % (rand() % 2 ? 10 : FULL), i / 100);
        if (rand() % 30 == 0)
            fake_fail(1 + rand() % 4, rand() % 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_GENERAL_ERR);
        if (rand() % 60 == 0)
            fake_port((int)(away = (unsigned)rand() % (unsigned)devices), false);
        if (rand() % 20 == 0)
            fake_port((int)away, true);
        if (rand() % 3)
            continue;
        for (int who = 0; who < PES; who++)
            watch_poll((struct verbs *)pe[who].t);
        drive();
        for (uint64_t at = 0; at < WORDS; at++) {
            if (due[at] && *word(1, DUE + at * WORD) == due[at]) {
                *word(1, DUE + at * WORD) = ~due[at];
                due[at] = 0;
            }
        }
    }
    settle();
    for (uint64_t at = 0; at < WORDS; at++) {
        const uint64_t seen = *word(1, DUE + at * WORD);
        CHECK(due[at] ? seen == due[at] : seen == 0 || seen >> 32); /* as the owner left it */
    }
    check_sums();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* ---- Hostile messages ---- */

/* The target takes none of it, and no record is carried out. `known`: it has buffers. */
static void bad_batch(struct message m, bool known)
{
    char records[FULL * RECORD];

    with_counters = true;
    prepare(1);
    fake.atomics = true;
    open_both();
    with_counters = false;
    warm_up();
    for (uint32_t i = 0; i < FULL; i++)
        write_record(records, i, 1 + i % 7, 0);
    if (known)
        post(0, batch(TRANSPORT_ATOMIC, OBJECT, records, FULL, 0));
    settle();
    struct verbs *v = (struct verbs *)pe[0].t;
    m.kind = MESSAGE_BATCH;
    m.number = v->to[1]->messages.sent + 1;
    CHECK(post_message(v, v->to[1]->active[0], WORK_OTHER, 0, &m));
    post_batches(v, v->to[1]);
    for (int i = 0; i < 10000 && !pe[1].lost; i++)
        drive();
    CHECK_EQ(pe[1].lost, 1);
    CHECK_HAS(pe[1].why, "makes no sense");
    end();
}

static void hostile(void)
{
    const struct message good = {.offset = OBJECT,
                                 .amo = GSHMEM_AMO_ADD,
                                 .type = GSHMEM_TYPE_UINT64,
                                 .signal_op = TRANSPORT_ATOMIC,
                                 .signal_segment = WORD,
                                 .a = 10};
    struct message m = good;

    bad_batch(good, false); /* nothing has been written */
#define BAD(field, value)                                                                          \
    m = good;                                                                                      \
    m.field = value;                                                                               \
    bad_batch(m, true)
    BAD(b, EAGER_BUFFERS);
    BAD(b, UINT64_MAX);
    BAD(a, 0);
    BAD(a, FULL + 1);
    BAD(a, BATCH_ELEMENTS_MOST + 1);
    BAD(a, 1ull << 63);
    BAD(signal_op, TRANSPORT_GET);
    BAD(signal_op, TRANSPORT_BATCH);
    BAD(signal_op, 77);
    BAD(signal_segment, 0);
    BAD(signal_segment, 3);
    BAD(signal_segment, 128);
    BAD(signal_segment, 4); /* no object of that type */
    BAD(type, 99);
    BAD(amo, 99);
    BAD(offset, OBJECT + 4);
    BAD(offset, SEGMENT); /* elements behind the end */
    BAD(offset, SEGMENT + WORD);
    BAD(offset, UINT64_MAX - 7);
    BAD(segment, 2);
    BAD(segment, MESSAGE_EAGER);
#undef BAD
    m = good; /* memory that only NICs update */
    m.segment = 1;
    m.offset = 0;
    bad_batch(m, true);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 60; seed++)
        all_kinds(seed);
    a_batch_is_one_message();
    few_need_no_buffer();
    few_keep_their_order();
    buffers();
    bytes_in_flight();
    few_works(16);
    too_large();
    no_buffers();
    for (unsigned seed = 1; seed <= 40; seed++)
        fences_hold(seed);
    for (int nth = 1; nth <= 24; nth++) {
        each_fails(nth, 1 + nth % 2, false);
        each_fails(nth, 1 + nth % 2, true);
    }
    nobody_tells_packets();
    for (unsigned seed = 1; seed <= 60; seed++)
        nothing_is_lost(seed, 1 + (int)seed % FAKE_DEVICES);
    hostile();
    return 0;
}

/* What is moved, and in which order. */
#include "conform.h"

#include "runtime/base/atomic_type.h"
#include "transport/batch.h"

enum { FLAG = 8, DATA = 4096, MOST = 5 * (1 << 20) + 3 };

static const uint64_t sizes[] = {0,    1,    2,    3,     7,     8,     9,      63,      65,  127,
                                 4095, 4096, 4097, 32769, 65535, 65537, 300001, 1 << 20, MOST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Puts and gets of all sizes, from and to places of any alignment, change these bytes and no
 * others. */
static void all_sizes(void)
{
    char *source = malloc(MOST + 16), *back = malloc(MOST + 16);

    CHECK(source && back);
    world_begin();
    for (unsigned s = 0; s < SIZES; s++) {
        const uint64_t bytes = sizes[s], offset = DATA + s % 8;
        char *mine = source + s % 5, *returned = back + s % 3;
        fill(mine, bytes, s);
        *at(1, offset - 1) = *at(1, offset + bytes) = returned[bytes] = 0x11;
        post(0, put(1, mine, offset, bytes));
        settle_well();
        check_filled(at(1, offset), bytes, s);
        CHECK(*at(1, offset - 1) == 0x11 && *at(1, offset + bytes) == 0x11);
        post(0, get(1, returned, offset, bytes));
        post(2, get(1, at(2, offset), offset, bytes));
        settle_well();
        check_filled(returned, bytes, s);
        check_filled(at(2, offset), bytes, s);
        CHECK_EQ(returned[bytes], 0x11);
    }
    free(source);
    free(back);
    world_end();
}

/* Each segment is itself: the second one, from its first byte to its last. */
static void both_segments(void)
{
    char data[SMALL], back[SMALL];
    struct transport_request r;

    world_begin();
    fill(data, sizeof data, 5);
    r = put(1, data, 0, SMALL);
    r.segment = 1;
    post(0, r);
    r = get(1, back, 0, SMALL);
    r.segment = 1;
    post(0, r);
    post(0, put(1, data, SEGMENT - 7, 7)); /* the last bytes of the first one */
    settle_well();
    check_filled(pe[1].memory[1], SMALL, 5);
    check_filled(back, SMALL, 5);
    check_filled(at(1, SEGMENT - 7), 7, 5);
    /* a put to one segment whose signal is in the other */
    r = with_signal(put(1, data, DATA, 100), GSHMEM_SIGNAL_SET, SMALL - 8, 44);
    r.signal_segment = 1;
    post(0, r);
    settle_well();
    check_filled(at(1, DATA), 100, 5);
    CHECK_EQ(*(uint64_t *)(void *)(pe[1].memory[1] + SMALL - 8), 44);
    world_end();
}

/* The source of a small put may be used again when post has returned; that of a kept one is left
 * alone. */
static void sources_are_copied(void)
{
    enum { TIMES = 300 };
    static char kept[TIMES][64];

    world_begin();
    for (unsigned i = 0; i < TIMES; i++) {
        char small[TRANSPORT_COPIED];
        struct transport_request r = put(1, kept[i], DATA + TIMES * sizeof small + 64 * i, 64);
        fill(small, sizeof small, i);
        fill(kept[i], 64, i);
        post(0, put(1, small, DATA + i * sizeof small, sizeof small));
        memset(small, -1, sizeof small);
        r.flags = TRANSPORT_KEPT | TRANSPORT_MORE;
        post(0, r);
    }
    settle_well();
    for (unsigned i = 0; i < TIMES; i++) {
        check_filled(at(1, DATA + i * TRANSPORT_COPIED), TRANSPORT_COPIED, i);
        check_filled(at(1, DATA + TIMES * TRANSPORT_COPIED + 64 * i), 64, i);
    }
    world_end();
}

/* Each record of a batch is carried out once, in their order; one without TRANSPORT_KEPT whose
 * records are few has been copied when post has returned. */
static void batches(void)
{
    enum { TIMES = 200, BYTES = 8, RECORD = BATCH_NUMBER_BYTES + BYTES, PLACES = 64 };
    static uint64_t model[PLACES];

    memset(model, 0, sizeof model);
    world_begin();
    for (uint64_t i = 0; i < TIMES; i++) {
        char records[TRANSPORT_COPIED / RECORD * RECORD];
        const size_t elements = i % 4 ? 1 + i : sizeof records / RECORD;
        const bool sets = i % 3 == 0;
        for (uint64_t k = 0; k < elements; k++) {
            const uint64_t value = i * 1000 + k, place = (i * 7 + k * 5) % PLACES;
            batch_put_number(records + k * RECORD, (uint32_t)place);
            memcpy(records + k * RECORD + BATCH_NUMBER_BYTES, &value, BYTES);
            model[place] = sets ? value : model[place] + value;
        }
        post(0, (struct transport_request){.kind = TRANSPORT_BATCH,
                                           .flags = i % 2 ? TRANSPORT_MORE : 0,
                                           .each = sets ? TRANSPORT_PUT : TRANSPORT_ATOMIC,
                                           .amo = GSHMEM_AMO_ADD,
                                           .type = GSHMEM_TYPE_UINT64,
                                           .pe = 1,
                                           .offset = DATA,
                                           .local = records,
                                           .bytes = elements * RECORD,
                                           .elements = elements,
                                           .element_bytes = BYTES});
        memset(records, -1, sizeof records);
    }
    settle_well();
    for (unsigned place = 0; place < PLACES; place++)
        CHECK_EQ(word(1, DATA + place * BYTES), model[place]);
    world_end();
}

static char *reused;
static int sent_times, sent_when_ended;

static void scribble(void *tag)
{
    (void)tag;
    sent_times++;
    sent_when_ended = ended;
    memset(reused, 0xee, MOST);
}

/* `sent` comes at most once, before the request is done, and the source is free from then on. */
static void source_again(void)
{
    reused = malloc(MOST);
    CHECK(reused);
    world_begin();
    for (unsigned i = 0; i < 5; i++) {
        struct transport_request r = put(1, reused, DATA, MOST);
        r.sent = scribble;
        sent_times = 0;
        fill(reused, MOST, i);
        post(0, r);
        settle_well();
        CHECK(sent_times <= 1);
        if (sent_times)
            CHECK_EQ(sent_when_ended, ended - 1);
        check_filled(at(1, DATA), MOST, i);
    }
    free(reused);
    world_end();
}

/* Whoever sees a put's signal sees its data, at each moment between two rounds. */
static void signals(void)
{
    char *source = malloc(MOST);
    uint64_t value = 0;

    CHECK(source);
    world_begin();
    for (unsigned s = 0; s < 3 * SIZES; s++) {
        const int op = s % 2 ? GSHMEM_SIGNAL_ADD : GSHMEM_SIGNAL_SET;
        const uint64_t bytes = sizes[s % SIZES], before = value;
        value = op == GSHMEM_SIGNAL_ADD ? value + 5 : 1000 * s + 7;
        fill(source, bytes, s);
        post(0, with_signal(put(1, source, DATA, bytes), op, FLAG,
                            op == GSHMEM_SIGNAL_ADD ? 5 : value));
        DRIVE_UNTIL(word(1, FLAG) != before);
        CHECK_EQ(word(1, FLAG), value);
        check_filled(at(1, DATA), bytes, s);
        settle_well();
    }
    free(source);
    world_end();
}

/* What is done is there, for all PEs. */
static void done_is_visible(void)
{
    world_begin();
    for (uint64_t i = 1; i < 200; i++) {
        uint64_t seen = 0;
        post(0, put(1, &i, FLAG, 8));
        DRIVE_UNTIL(ended == posted);
        CHECK_EQ(word(1, FLAG), i);
        post(2, get(1, &seen, FLAG, 8));
        settle_well();
        CHECK_EQ(seen, i);
    }
    world_end();
}

/* All operations on all types, the old value asked for or not, against a model. */
static void atomics(void)
{
    static const uint8_t types[] = {GSHMEM_TYPE_INT32,  GSHMEM_TYPE_INT64, GSHMEM_TYPE_UINT32,
                                    GSHMEM_TYPE_UINT64, GSHMEM_TYPE_FLOAT, GSHMEM_TYPE_DOUBLE};
    uint64_t model = 12;

    world_begin();
    memcpy(at(1, FLAG), &model, 8);
    for (unsigned t = 0; t < sizeof types; t++) {
        for (int amo = GSHMEM_AMO_FETCH; amo <= GSHMEM_AMO_XOR; amo++) {
            const bool is_real = types[t] == GSHMEM_TYPE_FLOAT || types[t] == GSHMEM_TYPE_DOUBLE;
            if (is_real && amo >= GSHMEM_AMO_AND)
                continue;
            for (int i = 0; i < 4; i++) {
                struct transport_request r = add(1, FLAG, 0x123456789 * (uint64_t)(i + 1), NULL);
                uint64_t old = ~0ull, expected;
                r.amo = (uint8_t)amo;
                r.type = types[t];
                if (atomic_type_bytes(r.type) == 4)
                    r.operand &= 0xffffffff;
                r.compare = i % 2 ? model : 3;
                if (atomic_type_bytes(r.type) == 4)
                    r.compare &= 0xffffffff;
                r.old = i < 2 ? &old : NULL;
                expected = atomic_apply((enum gshmem_amo)amo, r.type, &model, r.operand, r.compare);
                post(0, r);
                settle_well();
                CHECK(memcmp(at(1, FLAG), &model, 8) == 0);
                if (r.old)
                    CHECK_EQ(old, expected);
            }
        }
    }
    world_end();
}

/* ---- Order ---- */

/* One request, at random, on `words` words from offset 0 of PE `to`, and what it does to a model
 * of them. */
static struct transport_request draw(int to, int words, uint64_t *model, uint64_t *value,
                                     uint64_t *old, uint64_t *expected, unsigned *seed)
{
    const int first = rand_r(seed) % words, other = rand_r(seed) % words;
    struct transport_request r = put(to, value, 8 * (uint64_t)first, 8);

    *old = *expected = 0;
    switch (rand_r(seed) % 5) {
    case 0:
        model[first] = *value;
        break;
    case 1:
        r = with_signal(r, GSHMEM_SIGNAL_SET, 8 * (uint64_t)other, ~*value);
        model[first] = *value;
        model[other] = ~*value;
        break;
    case 2:
        r = with_signal(r, GSHMEM_SIGNAL_ADD, 8 * (uint64_t)other, 3);
        model[first] = *value;
        model[other] += 3;
        break;
    case 3:
        r = add(to, 8 * (uint64_t)first, 7, old);
        *expected = model[first];
        model[first] += 7;
        break;
    default:
        r = get(to, old, 8 * (uint64_t)first, 8);
        *expected = model[first];
    }
    r.flags = rand_r(seed) % 2 ? TRANSPORT_MORE : 0;
    return r;
}

/* Requests to one PE are carried out there in their order: many at random, against a model; to two
 * PEs at once, each with its own order. */
static void in_order(void)
{
    enum { WORDS = 16, STEPS = 8000 };
    static uint64_t model[PES][WORDS], old[STEPS], expected[STEPS], value[STEPS];
    unsigned seed = 3;

    world_begin();
    for (int i = 0; i < STEPS; i++) {
        const int to = 1 + i % 2;
        value[i] = (uint64_t)i * 1000003 + 1;
        post(0, draw(to, WORDS, model[to], &value[i], &old[i], &expected[i], &seed));
        if (rand_r(&seed) % 8 == 0)
            drive();
    }
    settle_well();
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(old[i], expected[i]);
    for (int which = 1; which < PES; which++) {
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(word(which, 8 * (uint64_t)i), model[which][i]);
    }
    world_end();
}

/* Runs of fetches of one kind, which a transport may send together: each brings what was there at
 * its place in the order, and writes nothing but its own bytes. */
static void runs_of_fetches(void)
{
    enum { RUNS = 120, MOST_OF_RUN = 400, WORDS = 16 };
    static uint64_t old[MOST_OF_RUN + 1], expected[MOST_OF_RUN + 1], value[MOST_OF_RUN];
    uint64_t model[WORDS] = {0};
    unsigned seed = 5;

    world_begin();
    for (int run = 0; run < RUNS; run++) {
        const int kind = run % 5, length = 1 + rand_r(&seed) % MOST_OF_RUN;
        memset(old, 0xee, sizeof old);
        memset(expected, 0xee, sizeof expected);
        for (int i = 0; i < length; i++) {
            uint64_t *at = &model[rand_r(&seed) % WORDS];
            const uint64_t offset = 8 * (uint64_t)(at - model);
            struct transport_request r = get(1, &old[i], offset, kind == 1 ? 4 : 8);
            value[i] = (uint64_t)run << 32 | (unsigned)i;
            memcpy(&expected[i], at, kind == 1 ? 4 : 8);
            if (kind >= 2) {
                r = add(1, offset, value[i], &old[i]);
                r.amo = kind == 2   ? GSHMEM_AMO_ADD
                        : kind == 3 ? GSHMEM_AMO_SWAP
                                    : GSHMEM_AMO_COMPARE_SWAP;
                r.compare = i % 2 ? *at : ~*at;
                if (kind == 2)
                    *at += value[i];
                else if (kind == 3 || i % 2)
                    *at = value[i];
            }
            r.flags = TRANSPORT_MORE | (r.kind == TRANSPORT_GET ? TRANSPORT_KEPT : 0);
            post(0, r);
        }
        settle_well();
        CHECK(memcmp(old, expected, sizeof old) == 0);
    }
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(word(1, 8 * (uint64_t)i), model[i]);
    world_end();
}

/* A get brings what was there before the requests behind it, and after those before it, large ones
 * too. */
static void gets_in_order(void)
{
    char *first = malloc(MOST), *second = malloc(MOST), *back = malloc(MOST);

    CHECK(first && second && back);
    world_begin();
    for (unsigned s = 0; s < SIZES; s++) {
        fill(first, sizes[s], 2 * s);
        fill(second, sizes[s], 2 * s + 1);
        memset(back, 0, sizes[s]);
        post(0, put(1, first, DATA, sizes[s]));
        post(0, get(1, back, DATA, sizes[s]));
        post(0, put(1, second, DATA, sizes[s]));
        settle_well();
        check_filled(back, sizes[s], 2 * s);
        check_filled(at(1, DATA), sizes[s], 2 * s + 1);
    }
    free(first);
    free(second);
    free(back);
    world_end();
}

/* Loose requests keep the order between epochs: the flag of a later one comes after the data of all
 * earlier ones. */
static void epochs(void)
{
    enum { PIECES = 8, BYTES = 9000 };
    static char data[PIECES][BYTES];

    world_begin();
    for (uint64_t round = 1; round < 60; round++) {
        for (unsigned i = 0; i < PIECES; i++) {
            struct transport_request r = put(1, data[i], DATA + i * BYTES, i % 2 ? BYTES : 64);
            fill(data[i], BYTES, (unsigned)round + i);
            r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
            r.epoch = (uint32_t)(2 * round);
            post(0, r);
        }
        struct transport_request flag = put(1, &round, FLAG, 8);
        flag.flags = TRANSPORT_LOOSE;
        flag.epoch = (uint32_t)(2 * round + 1);
        post(0, flag);
        DRIVE_UNTIL(word(1, FLAG) == round);
        for (unsigned i = 0; i < PIECES; i++)
            check_filled(at(1, DATA + i * BYTES), i % 2 ? BYTES : 64, (unsigned)round + i);
        settle_well();
    }
    world_end();
}

enum { MANY = 500, PUT_BYTES = 4000 };

/* Of the first n unordered puts: the data of each whose signal has come is checked when that is
 * first seen; or of all, which have come. */
static void look_for_unordered(unsigned n, bool all)
{
    static bool has_come[MANY];

    for (unsigned i = 0; i < n; i++) {
        const int to = i % 3 == 2 ? 0 : 1;
        if (all)
            CHECK_EQ(word(to, 8 * (uint64_t)(i + 1)), i + 1);
        if (!all && (has_come[i] || word(to, 8 * (uint64_t)(i + 1)) != i + 1))
            continue;
        has_come[i] = true;
        check_filled(at(to, DATA + i * PUT_BYTES), PUT_BYTES, i);
    }
}

/* Puts that need no order, and whose end nobody waits for, come all the same, each with its own
 * signal behind its data, and end. */
static void unordered(void)
{
    static char source[MANY][PUT_BYTES];

    world_begin();
    for (unsigned i = 0; i < MANY; i++) {
        const int from = i % 3 == 2 ? 1 : 0;
        struct transport_request r = put(1 - from, source[i], DATA + i * PUT_BYTES, PUT_BYTES);
        fill(source[i], PUT_BYTES, i);
        r = with_signal(r, GSHMEM_SIGNAL_SET, 8 * (uint64_t)(i + 1), i + 1);
        r.flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED;
        post(from, r);
        if (i % 7 == 0)
            drive();
        look_for_unordered(i + 1, false);
    }
    for (const uint64_t end = deadline(60); ended < posted;) {
        CHECK(!is_past(end));
        drive();
        look_for_unordered(MANY, false);
    }
    settle_well();
    look_for_unordered(MANY, true);
    world_end();
}

const struct scenario data_scenarios[] = {
    {"sizes", all_sizes, 0},
    {"segments", both_segments, 0},
    {"sources", sources_are_copied, 0},
    {"batches", batches, NEEDS_BATCHES},
    {"sent", source_again, 0},
    {"signals", signals, 0},
    {"done", done_is_visible, 0},
    {"atomics", atomics, 0},
    {"order", in_order, 0},
    {"fetches", runs_of_fetches, 0},
    {"gets", gets_in_order, 0},
    {"epochs", epochs, 0},
    {"unordered", unordered, 0},
    {NULL, NULL, 0},
};

/* What NICs are not able to do: take data within work requests, long queues, many completions, many
 * receives; and what a PE of a large job costs. The fake fails the test where a queue would overflow. */
#include "pes.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Requests of all kinds and sizes, against a model. */
static void do_all_kinds(unsigned seed)
{
    enum { STEPS = 700, WORDS = 64, AREA = 1 << 16 };
    static const uint64_t sizes[] = {1, 8, 63, 128, 129, 192, 193, 4096, 5000, 200000};
    static char data[200000], model[AREA + 200000];
    static uint64_t words[WORDS], old[STEPS], expected[STEPS];

    memset(model, 0, sizeof model);
    memset(words, 0, sizeof words);
    srand(seed);
    fill(data, sizeof data, seed);
    for (int i = 0; i < STEPS; i++) {
        const uint64_t bytes = sizes[(unsigned)rand() % (sizeof sizes / sizeof sizes[0])];
        const uint64_t at = (uint64_t)rand() % AREA, word_at = (uint64_t)rand() % WORDS;
        struct transport_request r = put(data + rand() % 1000 % (sizeof data - bytes + 1),
                                         8 * WORDS + at, bytes);
        const int kind = rand() % 4;

        old[i] = expected[i] = 0;
        if (kind < 3) {
            memcpy(model + at, r.local, bytes);
            if (kind == 1)
                r = with_signal(r, GSHMEM_SIGNAL_SET, 8 * word_at, words[word_at] = (uint64_t)i);
            if (kind == 2)
                r = with_signal(r, GSHMEM_SIGNAL_ADD, 8 * word_at, 1), words[word_at]++;
        } else {
            r = add(8 * word_at, 3, &old[i]);
            expected[i] = words[word_at];
            words[word_at] += 3;
        }
        r.flags = rand() % 4 ? TRANSPORT_MORE : 0;
        post(0, r);
        if (rand() % 32 == 0)
            drive();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost, 0);
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(old[i], expected[i]);
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ(*word(1, 8 * (uint64_t)i), words[i]);
    CHECK(memcmp(pe[1].memory + 8 * WORDS, model, sizeof model) == 0);
}

static void little_inline(void)
{
    static const int bytes[] = {0, 4, 8, 60, 64, 128, 200, 255, 256, 1024};

    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        prepare(i);
        fake.inline_most = bytes[i];
        fake.devices = 1 + (int)i % 2;
        open_both();
        do_all_kinds(i);
        CHECK_EQ(pe[0].passed_down, 0);
        end();
    }
}

static void short_queues(void)
{
    static const int works[] = {64, 100, 4096}, completions[] = {160, 300, 4096};

    for (unsigned i = 0; i < 9; i++) {
        prepare(i);
        fake.sends_most = works[i % 3];
        fake.completions_most = completions[i / 3];
        open_both();
        do_all_kinds(i);
        CHECK_EQ(pe[0].passed_down, 0);
        end();
    }
}

/* As much on its way as there is room for, and then the path breaks: all of it is flushed at once. */
static void flushed_at_once(void)
{
    static char data[64 << 10];

    for (unsigned seed = 1; seed <= 10; seed++) {
        prepare(seed);
        fake.completions_most = 220;
        open_both();
        warm_up();
        fake_fail(50, IBV_WC_RETRY_EXC_ERR);
        for (int i = 0; i < 400; i++) {
            struct transport_request r = put(data, 64 * (uint64_t)i, 64);
            r.flags = TRANSPORT_MORE;
            while (try_post(0, r) == TRANSPORT_FULL)
                drive();
        }
        settle();
        CHECK_EQ(not_ok, 0);
        end();
    }
}

/* Fewer receives than PEs would fill: smaller windows; and none left at all: from below. */
static void few_receives(void)
{
    job_pes = 100;
    prepare(1);
    fake.receives_most = 1000; /* 10 for each: messages 3 at a time */
    open_both();
    do_all_kinds(1);
    struct verbs *v = (struct verbs *)pe[0].t;
    CHECK_EQ(v->share, 10);
    CHECK_EQ(v->to[1]->window, 3);
    CHECK_EQ(v->nic[0].inbox_posted, 10);
    CHECK_EQ(pe[0].passed_down, 0);
    end();
    prepare(1);
    fake.receives_most = RECEIVES_LEAST - 1;
    open_both();
    do_all_kinds(1);
    CHECK_EQ(pe[0].passed_down, posted);
    end();
    job_pes = PES;
}

static size_t used_by_open(int pes)
{
    job_pes = pes;
    prepare(1);
    fake.receives_most = 32768;
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    open_pe(0, false);
    size_t used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    gshmem_transport.close(pe[0].t);
    free(pe[0].memory);
    fake_end();
    job_pes = PES;
    return used;
}

/* Of PEs that are never talked to. */
static void untouched_peers(void)
{
    size_t few = used_by_open(2), many = used_by_open(10002);

    if (few) /* not where a sanitizer allocates */
        CHECK((many - few) / 10000 <= 128);
}

/* So many work requests later, of which none is under way. */
static void count_on(uint32_t works)
{
    const struct link *l = ((struct verbs *)pe[0].t)->to[1];

    for (int i = 0; i < l->paths; i++)
        l->path[i]->sends = l->path[i]->done += works;
    for (int i = 0; i < 2 * BELOW_ROUNDS; i++)
        drive();
}

/* Work requests are counted by 32 bits. A fence's marks must not seem to lie ahead when half of
 * them have come after it, and no other fence: what needs none would wait for them. */
static void counts_wrap(void)
{
    static char large[4 * STRIPE_BYTES];
    struct transport_request r = put(large, 4096, sizeof large); /* by both paths */

    begin_with(1, 2);
    warm_up();
    r.flags = TRANSPORT_LOOSE;
    for (int i = 0; i < 8; i++) {
        fill(large, sizeof large, (unsigned)i);
        post(0, r);
        settle();
        CHECK(memcmp(pe[1].memory + 4096, large, sizeof large) == 0);
        count_on(1u << 29);
    }
    CHECK_EQ(not_ok, 0);
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    counts_wrap();
    little_inline();
    short_queues();
    flushed_at_once();
    few_receives();
    untouched_peers();
    return 0;
}

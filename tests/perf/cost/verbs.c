/* The transport's part of a put over verbs, with a signal or without, or of a fetch-add that the NIC
 * makes, up to its completion, over the fake of libibverbs that the unit tests have: posting, and
 * polling of the PE that posts. For tests/perf/instructions, which counts within `measured`, or
 * within `target`, and reads how many work requests, posts and completions there were:
 *
 *     cost-verbs OPERATIONS BATCH [put|set|add|fetch_add [BYTES [SIGNAL_WORDS]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../transport/verbs/pes.h"

enum { DATA = 1 << 20, SIGNALS = 64, SIGNAL_APART = 64 };
enum what { PUT, SET, ADD, FETCH_ADD, WHATS };

static const char *const names[WHATS] = {"put", "set", "add", "fetch_add"};
static uint64_t value = 7, old, words = 1, next_word;
static struct fake_count by_target; /* works, posts and signalled */
static size_t bytes = 8;
static enum what what = PUT;

static struct transport_request fetch_add(void)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .pe = 1,
                                      .segment = 1,
                                      .offset = 64,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .operand = value,
                                      .old = &old};
}

/* As the proxy has it, from the symmetric heap where it is not copied. */
static struct transport_request one(void)
{
    const uint64_t at = SIGNALS + next_word++ % words * SIGNAL_APART;

    if (what == FETCH_ADD)
        return fetch_add();
    struct transport_request r =
        put(bytes <= sizeof value ? (char *)&value : pe[0].memory + DATA, DATA, bytes);
    r.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
    if (what == PUT)
        return r;
    return with_signal(r, what == SET ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, at, 1);
}

void measured(int batch);
void aside(void);
void target(void);

/* The part of the PE that is put to. */
__attribute__((noinline)) void target(void)
{
    int events;

    CHECK_EQ(gshmem_transport.progress(pe[1].t, &events), GSHMEM_OK);
}

__attribute__((noinline)) void aside(void)
{
    while (fake_run())
        ;
    const struct fake_count before = fake;
    target();
    by_target.works += fake.works - before.works;
    by_target.posts += fake.posts - before.posts;
    by_target.signalled += fake.signalled - before.signalled;
    while (fake_run())
        ;
}

__attribute__((noinline)) void measured(int batch)
{
    int events;

    for (int i = 0; i < batch; i++)
        post(0, one());
    while (ok + not_ok < posted) {
        aside();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 0; argc > 3 && i < WHATS; i++) {
        if (strcmp(argv[3], names[i]) == 0)
            what = (enum what)i;
    }
    CHECK(argc <= 3 || strcmp(argv[3], names[what]) == 0);
    bytes = argc > 4 ? (size_t)atoll(argv[4]) : bytes;
    words = argc > 5 ? (uint64_t)atoll(argv[5]) : words;
    CHECK(bytes > 0 && bytes <= SEGMENT - DATA && words > 0 && words <= 1024);
}

int main(int argc, char **argv)
{
    const int puts = argc >= 3 ? atoi(argv[1]) : 0, batch = argc >= 3 ? atoi(argv[2]) : 0;

    CHECK(puts > 0 && batch > 0 && puts % batch == 0);
    read_arguments(argc, argv);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    prepare(1);
    fake.atomics = with_counters = what == FETCH_ADD;
    open_both();
    warm_up();
    post(0, one()); /* the keys are known from here on */
    settle();
    next_word = 0;
    by_target = (struct fake_count){0};
    const struct fake_count before = fake;
    for (int done = 0; done < puts; done += batch)
        measured(batch);
    /* a work request of the target is a reply, and all other sends are messages to it */
    printf("works %d posts %d completions %d messages %d replies %d\n",
           fake.works - before.works - by_target.works, fake.posts - before.posts - by_target.posts,
           fake.signalled - before.signalled - by_target.signalled,
           fake.sends - before.sends - by_target.works, by_target.works);
    CHECK_EQ(not_ok, 0);
    CHECK_EQ(old, what == FETCH_ADD ? (uint64_t)puts * value : 0);
    CHECK_EQ(what == ADD ? *word(1, SIGNALS) : 0, what == ADD ? (uint64_t)puts / words + 1 : 0);
    end();
    return 0;
}

/* What NICs are not able to do: take data within work requests, long queues, many completions, many
 * receives; and what a PE of a large job costs. The fake fails the test where a queue would overflow. */
#include "pes.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

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
    CHECK_EQ(v->to[1]->messages.window, 3);
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

/* A peer that has stopped holds a part of what is for all: others find some left. */
static void slots_are_shared(void)
{
    static char data[1000];
    struct verbs *v;
    int taken = 0;

    begin(1);
    warm_up();
    v = (struct verbs *)pe[0].t;
    while (try_post(0, put(data, 4096, sizeof data)) == GSHMEM_OK)
        taken++;
    CHECK_EQ(taken, SLOTS / 4);
    settle();
    CHECK_EQ(v->slots_left, SLOTS);
    CHECK_EQ(v->to[1]->slots, 0);
    v->slots_left = SLOTS / 4; /* as if others had taken the rest */
    for (taken = 0; try_post(0, put(data, 4096, sizeof data)) == GSHMEM_OK; taken++)
        ;
    CHECK_EQ(taken, SLOTS_LEAST);
    settle();
    v->slots_left = SLOTS;
    CHECK_EQ(not_ok, 0);
    end();
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
    munmap(pe[0].memory, SEGMENT);
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

/* Of one that is seldom talked to: 32 KiB, with its part of what is made for several (NICs' receives). */
static void seldom_talked_to(void)
{
    uint64_t here, of_nic;

    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* what the fake has of a queue pair is larger, and not counted */
    begin(1);
    warm_up();
    const size_t before = mallinfo2().uordblks;
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    struct verbs *v = (struct verbs *)pe[0].t;
    struct link *l = v->links;
    v->links = v->to[1] = NULL;
    link_close(v, l);
    const size_t used = before - mallinfo2().uordblks;
    link_cost(1, &here, &of_nic);
    CHECK(here <= 32 << 10 && of_nic <= 64 << 10);
    if (before) /* not where a sanitizer allocates */
        CHECK(used <= here);
    end();
}

/* More is under way at once than there is room for at first, and a few never take more. */
static void room_is_made(void)
{
    static uint64_t data[OPS], old[OPS];

    begin(1);
    warm_up();
    const struct link *l = ((struct verbs *)pe[0].t)->to[1];
    for (int i = 0; i < 100; i++) {
        post(0, add(8, 1, NULL));
        settle();
    }
    CHECK_EQ(l->depth, OPS_FIRST);
    CHECK(!l->coalesce.joined && !l->coalesce.list);
    *word(1, 8) = 0;
    for (int i = 0; i < OPS; i++) {
        struct transport_request r = i % 3 ? add(8, 1, &old[i]) : put(&data[i], 4096 + 8 * (uint64_t)i, 8);
        data[i] = (uint64_t)i + 1;
        r.flags = TRANSPORT_MORE; /* not loose: none is part of another */
        CHECK_EQ(try_post(0, r), GSHMEM_OK);
    }
    CHECK_EQ(l->depth, OPS);
    CHECK_EQ(try_post(0, put(data, 64, 8)), TRANSPORT_FULL);
    settle();
    for (int i = 0, adds = 0; i < OPS; i++) {
        if (i % 3)
            CHECK_EQ(old[i], (uint64_t)adds++);
        else
            CHECK_EQ(*word(1, 4096 + 8 * (uint64_t)i), data[i]);
    }
    CHECK_EQ(not_ok + pe[0].lost + pe[0].passed_down, 0);
    end();
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

/* On kernels before 5.12 the library asks for that a child of fork does not get pages that NICs know. So it asks
 * before anything is registered, which the fake checks, and nothing else lies on pages of its own. */
static void forks_are_safe(void)
{
    uint64_t old = 1;
    char data[2000] = {1};

    with_counters = true;
    prepare(1);
    fake.atomics = true;
    fake.inline_most = 0;
    open_both();
    warm_up();
    post(0, put(data, 64, sizeof data));
    struct transport_request r = add(0, 1, &old);
    r.segment = 1;
    post(0, r);
    settle();
    CHECK(fake.updates == 1 && old == 0);
    CHECK(fake.fork_safe);
    CHECK_EQ(fake.partial_pages, 0);
    end();
    with_counters = false;
}

/* ---- Who may pin little ---- */

static char large[33 << 20], back[33 << 20];

static void move_large(uint64_t offset, uint64_t bytes)
{
    fill(large, bytes, (unsigned)bytes);
    memset(back, 0, bytes);
    post(0, put(large, offset, bytes));
    post(0, get(back, offset, bytes));
    settle();
    CHECK(memcmp(back, large, bytes) == 0);
}

/* So many MiB may be pinned. All requests are carried out: by verbs as long as there is room, which may end in the middle
 * of a run, or from below at once where there is none for a chunk. What was tried is told at start. */
static void pins_little(rlim_t mib, bool begins_by_verbs, bool ends_by_verbs, const char *said)
{
    struct rlimit before, limit;
    char why[300];

    CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    limit = before;
    limit.rlim_cur = mib << 20 < before.rlim_max ? mib << 20 : before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    prepare(1);
    fake.pins_most = mib << 20;
    fake.atomics = true;
    open_both();
    CHECK_HAS(begins_by_verbs ? pe[0].notified : complaint, said);
    CHECK_EQ(gshmem_transport.updates(pe[0].t, why, sizeof why) > 0, begins_by_verbs); /* else NICs alone would update */
    do_all_kinds(1);
    CHECK_EQ(pe[0].passed_down == 0, begins_by_verbs);
    move_large(4096, sizeof large - 4096);
    CHECK_EQ(pe[0].passed_down == 0, ends_by_verbs);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

/* Paths that are down are tried again at once. */
static void time_passes(void)
{
    for (int i = 0; i < PES; i++) {
        struct verbs *v = (struct verbs *)pe[i].t;
        if (v->to[1 - i])
            v->to[1 - i]->recovery.retry_at = 0;
        watch_retry(v);
    }
}

/* Requests of both PEs anywhere, of all sizes, while either may meet its limit at any time: each is carried out, once. */
static void both_meet_limits(unsigned seed)
{
    enum { STEPS = 400, PLACES = 5, PLACE = 8 << 20 };
    static const uint64_t sizes[] = {8, 100, 128, 5000, 300000};
    uint64_t sums[PES][PLACES] = {{0}}, value;

    prepare(seed);
    fake.pins_most = (uint64_t)(3 + seed % 40) << 20;
    fake.loses_answers = seed % 2;
    fake.devices = 1 + (int)seed % 3;
    open_both();
    srand(seed);
    fill(large, sizeof large, seed);
    for (int i = 0; i < PES; i++) {
        pe[i].late_below = seed % 4 > 1;
        pe[i].full_below = seed % 4 == 3 ? 3 : 0;
    }
    for (int i = 0; i < STEPS; i++) {
        const int from = rand() % PES, at = rand() % PLACES;
        const uint64_t bytes = sizes[rand() % 5], offset = (uint64_t)at * PLACE;
        char *local = rand() % 2 ? pe[from].memory + offset + PLACE / 2 : large + offset % sizeof large / 2;
        struct transport_request r;

        switch (rand() % 3) {
        case 0:
            r = with_signal(put(local, offset + 64, bytes), GSHMEM_SIGNAL_ADD, offset, 1);
            sums[1 - from][at]++;
            break;
        case 1:
            r = get(rand() % 2 ? (char *)&value : back + offset % sizeof back / 2, offset + 64, 8);
            break;
        default:
            r = add(offset, 3, NULL);
            sums[1 - from][at] += 3;
        }
        r.flags = (rand() % 2 ? TRANSPORT_MORE : 0) | (rand() % 2 ? TRANSPORT_LOOSE : 0);
        post(from, r);
        if (rand() % 4 == 0)
            drive();
        if (rand() % 16 == 0)
            time_passes();
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    for (int which = 0; which < PES; which++) {
        for (int at = 0; at < PLACES; at++)
            CHECK_EQ(*word(which, (uint64_t)at * PLACE), sums[which][at]);
    }
    end();
}

/* That systems begin with 8 MiB holds no chunk. */
static void usual_limits(void)
{
    pins_little(8, false, false, "(ulimit -l): this PE uses below alone");
    pins_little(16, false, false, "(ulimit -l): this PE uses below alone");
    pins_little(24, true, false, "16384 KiB could be registered with each NIC");
    pins_little(40, true, false, "whether all that peers will use can be was not tried");
    pins_little(1024, true, true, "whether all that peers will use can be was not tried");
}

/* ---- What a NIC may have in flight ---- */

static struct fake_flight most_seen;

static void look_at_flight(void)
{
    const struct fake_flight now = fake_most_in_flight();

    most_seen.bytes = now.bytes > most_seen.bytes ? now.bytes : most_seen.bytes;
    most_seen.works = now.works > most_seen.works ? now.works : most_seen.works;
}

/* Puts and gets of all sizes, from one byte to many times the limit, and updates between them. */
static void fly(int bytes_most, int requests_most, int pairs_of_each, bool breaks)
{
    enum { LARGEST = 1 << 20, REQUESTS = 300 };
    static char data[LARGEST], got[REQUESTS][64];

    flight_most = bytes_most;
    works_most = requests_most;
    queue_pairs = pairs_of_each;
    prepare(1);
    fake.soft = false;
    fake.devices = 1;
    open_both();
    warm_up();
    memset(&most_seen, 0, sizeof most_seen);
    fill(data, sizeof data, 1);
    srand(1);
    if (breaks)
        fake_fail(100, IBV_WC_RETRY_EXC_ERR);
    for (int i = 0; i < REQUESTS; i++) {
        struct transport_request r =
            i % 7 == 0   ? add(8 * (uint64_t)(i % 64), 1, NULL)
            : i % 5 == 0 ? get(got[i], LARGEST, 64)
                         : put(data, LARGEST, 1 + (uint64_t)rand() % (i % 3 ? 5000u : LARGEST));
        r.flags = TRANSPORT_LOOSE | (rand() % 2 ? TRANSPORT_MORE : 0);
        while (try_post(0, r) == TRANSPORT_FULL) {
            drive();
            look_at_flight();
        }
        look_at_flight();
    }
    while (ok + not_ok < posted) {
        drive();
        look_at_flight();
    }
    CHECK_EQ(not_ok + pe[0].lost, 0);
    for (int i = 0; i < 64; i++)
        CHECK(*word(1, 8 * (uint64_t)i) <= REQUESTS);
    CHECK(memcmp(pe[1].memory + LARGEST, data, 1000) == 0);
    end();
    if (bytes_most)
        CHECK(most_seen.bytes <= (uint64_t)bytes_most);
    else
        CHECK(most_seen.bytes > 256 << 10); /* so that the limits below are some */
    if (requests_most)
        CHECK(most_seen.works <= (uint32_t)requests_most);
    flight_most = works_most = 0;
    queue_pairs = 1;
}

static void flight_is_limited(void)
{
    fly(0, 0, 1, false);
    fly(0, 0, 4, false);
    fly(256 << 10, 0, 1, false);
    fly(256 << 10, 0, 4, false);
    fly(64 << 10, 16, 4, false);
    fly(4096, 0, 2, false);
    fly(0, 16, 2, false);
    fly(64 << 10, 32, 2, true);
}

/* ---- Two peers that share what a NIC may have in flight ---- */

static void open_three(int bytes_most, int requests_most)
{
    flight_most = bytes_most;
    works_most = requests_most;
    with_third = true;
    job_pes = PES + 1;
    prepare(1);
    fake.soft = false;
    open_both();
    warm_up();
    CHECK_EQ(try_post_to(0, 2, put(&(uint64_t){1}, 0, 8)), GSHMEM_OK);
    settle();
}

static void end_three(void)
{
    CHECK_EQ(not_ok + pe[0].lost + pe[0].passed_down, 0);
    end();
    with_third = false;
    job_pes = PES;
    flight_most = works_most = 0;
}

/* The NIC has no room for a work request to PE 2, since PE 1 has all. That one is tried again when room comes, though
 * nothing else happens between PE 0 and PE 2. */
static void room_of_another_link(void)
{
    static char data[4096];
    struct transport_request r = put(data, 4096, sizeof data);

    open_three(0, 16);
    r.flags = TRANSPORT_LOOSE;
    const struct verbs *v = (const struct verbs *)pe[0].t;
    while (v->nic[0].works_left)
        CHECK_EQ(try_post_to(0, 1, r), GSHMEM_OK);
    CHECK_EQ(try_post_to(0, 2, put(&(uint64_t){7}, 64, 8)), GSHMEM_OK);
    settle();
    CHECK_EQ(*word(2, 64), 7);
    end_three();
}

/* Small puts to PE 1 never end, and have the NIC full; a large one to PE 2 has its turn all the same. */
static void large_among_small(void)
{
    enum { MOST = 64 << 10, SMALL = 1000, LARGEST = 1 << 20 };
    static char data[LARGEST];
    bool large_posted = false;

    open_three(MOST, 0);
    fill(data, sizeof data, 3);
    const struct verbs *v = (const struct verbs *)pe[0].t;
    for (int rounds = 0; !large_posted || v->to[2]->done != v->to[2]->posted; rounds++) {
        CHECK(rounds < 5000);
        while (try_post_to(0, 1, put(data, 4096, SMALL)) == GSHMEM_OK)
            ;
        if (!large_posted)
            CHECK_EQ(try_post_to(0, 2, put(data, 4096, LARGEST)), GSHMEM_OK);
        large_posted = true;
        drive();
    }
    settle();
    CHECK(memcmp(pe[2].memory + 4096, data, LARGEST) == 0);
    end_three();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    counts_wrap();
    little_inline();
    short_queues();
    flushed_at_once();
    few_receives();
    slots_are_shared();
    untouched_peers();
    seldom_talked_to();
    room_is_made();
    forks_are_safe();
    usual_limits();
    for (unsigned seed = 1; seed <= 60; seed++)
        both_meet_limits(seed);
    flight_is_limited();
    room_of_another_link();
    large_among_small();
    return 0;
}

/* Many requests, both ways, by several threads, asleep in between; and notes. */
#include "conform.h"

#include <poll.h>
#include <pthread.h>

enum { FLAG = 8, DATA = 4096, BYTES = 200000 };

/* ---- Many ---- */

/* As many as are taken, and then some: each is carried out once. */
static void until_full(void)
{
    enum { MOST = 20000 };
    static uint64_t old[MOST];
    int full = 0;

    world_begin();
    for (int i = 0; i < MOST; i++) {
        struct transport_request r = add(1, FLAG, 1, &old[i]);
        gshmem_status_t status;
        r.flags = TRANSPORT_MORE;
        while ((status = try_post(0, r)) == TRANSPORT_FULL) {
            full++;
            drive();
        }
        CHECK_EQ(status, GSHMEM_OK);
    }
    settle_well();
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(old[i], i);
    CHECK_EQ(word(1, FLAG), MOST);
    for (int i = 0; i < MOST; i++)
        post(0, with_signal(put(1, &i, DATA, 4), GSHMEM_SIGNAL_ADD, FLAG, 1));
    settle_well();
    CHECK_EQ(word(1, FLAG), 2 * MOST);
    CHECK_EQ(*(int *)(void *)at(1, DATA), MOST - 1);
    world_end();
    if (!full)
        printf("  (it never was full)\n");
}

/* A PE that does not progress keeps nobody from another. */
static void one_stands_still(void)
{
    enum { TIMES = 3000 };
    static char data[TRANSPORT_COPIED];
    gshmem_status_t status = GSHMEM_OK;

    world_begin();
    post(0, put(1, data, DATA, 8));
    post(0, put(2, data, DATA, 8));
    settle_well();
    pe[1].stands_still = true;
    for (int i = 0; i < TIMES && !status; i++)
        status = try_post(0, put(1, data, DATA, sizeof data));
    CHECK(status == GSHMEM_OK || status == TRANSPORT_FULL);
    const int waiting = posted - ended;
    for (int i = 0; i < 100; i++)
        post(0, add(2, FLAG, 1, NULL));
    DRIVE_UNTIL(word(2, FLAG) == 100);
    DRIVE_UNTIL(posted - ended <= waiting);
    pe[1].stands_still = false;
    settle_well();
    world_end();
}

/* All PEs put to and get from all others at once, more than any buffer holds. */
static void both_ways(void)
{
    enum { ROUNDS = 6 };
    static char source[PES][BYTES], back[PES][PES][BYTES];

    world_begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (int from = 0; from < PES; from++) {
            fill(source[from], BYTES, 10 * round + (unsigned)from);
            fill(at(from, DATA), BYTES, 10 * round + (unsigned)from);
        }
        for (int from = 0; from < PES; from++) {
            for (int to = 0; to < PES; to++) {
                if (to == from)
                    continue;
                post(from,
                     with_signal(put(to, source[from], DATA + (uint64_t)(1 + from) * BYTES, BYTES),
                                 GSHMEM_SIGNAL_ADD, FLAG, 1));
                post(from, get(to, back[from][to], DATA, BYTES));
            }
        }
        settle_well();
        for (int to = 0; to < PES; to++) {
            CHECK_EQ(word(to, FLAG), (round + 1) * (PES - 1));
            for (int from = 0; from < PES; from++) {
                if (from == to)
                    continue;
                check_filled(at(to, DATA + (uint64_t)(1 + from) * BYTES), BYTES,
                             10 * round + (unsigned)from);
                check_filled(back[to][from], BYTES, 10 * round + (unsigned)from);
            }
        }
    }
    world_end();
}

/* ---- Threads ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *post_and_drive(void *arg)
{
    const int from = (int)(intptr_t)arg;

    for (int i = 0; i < 1500; i++) {
        pthread_mutex_lock(&lock);
        post(from, add(1 - from, FLAG, 1, NULL));
        drive();
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Any thread may post and progress, one at a time. */
static void threads(void)
{
    pthread_t thread[2];

    world_begin();
    for (intptr_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, post_and_drive, (void *)i), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    settle_well();
    CHECK_EQ(word(0, FLAG), 1500);
    CHECK_EQ(word(1, FLAG), 1500);
    world_end();
}

enum { SEEN = 40, SEEN_BYTES = 70000 };

static int early;

static void *look(void *arg)
{
    (void)arg;
    for (uint64_t round = 1; round <= SEEN; round++) {
        while (word(1, FLAG) < round)
            ;
        for (int i = SEEN_BYTES - 1; i >= 0; i--)
            early += *at(1, DATA + (uint64_t)i) != (char)round;
        /* release: pairs with the acquire below: the next data may come */
        __atomic_store_n((uint64_t *)(void *)at(2, FLAG), round, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* A thread that only waits for the signal sees the data behind it, at any moment within a round
 * too. */
static void seen_by_another_thread(void)
{
    static char data[SEEN_BYTES];
    pthread_t thread;

    world_begin();
    CHECK_EQ(pthread_create(&thread, NULL, look, NULL), 0);
    for (uint64_t round = 1; round <= SEEN; round++) {
        memset(data, (int)round, sizeof data);
        post(0, with_signal(put(1, data, DATA, sizeof data), GSHMEM_SIGNAL_SET, FLAG, round));
        DRIVE_UNTIL(word(2, FLAG) == round);
        settle_well();
    }
    pthread_join(thread, NULL);
    CHECK_EQ(early, 0);
    world_end();
}

/* ---- Sleep ---- */

/* PEs that progress only when their descriptor, or arm, says so, or progress has said that it is
 * to be called again soon: all requests end without a sleep that runs its full length. */
static void asleep(void)
{
    static char data[BYTES], back[BYTES];
    struct pollfd fd[PES];
    bool again[PES] = {true, true, true};

    world_begin();
    for (int i = 0; i < PES; i++)
        fd[i] = (struct pollfd){.fd = transport_wait_fd(pe[i].t), .events = POLLIN};
    fill(data, BYTES, 1);
    for (int round = 0; round < 30; round++) {
        gshmem_status_t status;
        int wanted = posted + 3;
        while (ended < posted || posted < wanted) {
            bool any = false;
            if (posted < wanted) {
                const int left = wanted - posted;
                status = try_post(left == 1, left == 3   ? put(1, data, DATA, round % 2 ? 8 : BYTES)
                                             : left == 2 ? get(1, back, DATA, BYTES)
                                                         : put(2, data, DATA, 100));
                CHECK(status == GSHMEM_OK || status == TRANSPORT_FULL);
                again[left == 1] = true; /* who has posted progresses */
            }
            for (int i = 0; i < PES; i++) {
                int events = 0;
                if (!again[i] && !(fd[i].revents & POLLIN) && fd[i].fd >= 0)
                    continue;
                CHECK_EQ(subject.ops->progress(pe[i].t, &events), GSHMEM_OK);
                again[i] = events > 0;
            }
            if (subject.drive)
                subject.drive((struct transport *[PES]){pe[0].t, pe[1].t, pe[2].t});
            for (int i = 0; i < PES; i++)
                any |= again[i] || (again[i] = transport_arm(pe[i].t) != 0);
            any |= posted < wanted || ended == posted || subject.drive;
            if (poll(fd, PES, any ? 0 : 3000) == 0 && !any && fd[0].fd >= 0)
                CHECK_FAIL("nobody has been woken for 3 s, and %d of %d requests have ended", ended,
                           posted);
        }
        settle_well();
        check_filled(back, BYTES, 1);
    }
    world_end();
}

/* ---- Whether something is under way ---- */

static bool any_busy(void)
{
    return transport_busy(pe[0].t) || transport_busy(pe[1].t);
}

/* Who finalizes waits until a PE is not busy: then all that it owes has left it. */
static void busy(void)
{
    static char data[BYTES];

    world_begin();
    post(0, put(1, data, DATA, 8));
    settle_well();
    DRIVE_UNTIL(!any_busy());
    pe[1].stands_still = true;
    post(0, get(1, data, DATA, BYTES));
    drive_for(20);
    CHECK(ended == posted || transport_busy(pe[0].t));
    pe[1].stands_still = false;
    settle_well();
    DRIVE_UNTIL(!any_busy());
    world_end();
}

/* ---- Notes ---- */

/* Notes of all lengths come whole, in order, and once, among requests; or are never taken. */
static void notes(void)
{
    static const size_t lengths[] = {1, 2, 7, 8, 100, 1023, TRANSPORT_NOTE_MAX, 5, 0, 64};
    static unsigned char note[TRANSPORT_NOTE_MAX];
    enum { NOTES = 40 };

    world_begin();
    for (int i = 0; i < NOTES; i++) {
        const size_t bytes = lengths[i % 10];
        gshmem_status_t status;
        fill(note, sizeof note, (unsigned)i);
        while ((status = transport_say(pe[0].t, 1, note, bytes)) == TRANSPORT_FULL)
            drive();
        CHECK(status == GSHMEM_OK || status == GSHMEM_ERR_UNSUPPORTED);
        CHECK(i == 0 || (status == GSHMEM_OK) == (pe[0].notes < LOG));
        if (status == GSHMEM_ERR_UNSUPPORTED)
            pe[0].notes = LOG; /* it says so each time */
        post(0, add(1, FLAG, 1, NULL));
    }
    settle_well();
    if (pe[0].notes < LOG) {
        DRIVE_UNTIL(pe[1].notes == NOTES);
        for (int i = 0; i < NOTES; i++) {
            CHECK_EQ(pe[1].received[i].from, 0);
            CHECK_EQ(pe[1].received[i].bytes, lengths[i % 10]);
            check_filled(pe[1].received[i].text, lengths[i % 10], (unsigned)i);
        }
    } else {
        printf("  (it carries no notes)\n");
    }
    CHECK_EQ(word(1, FLAG), NOTES);
    world_end();
}

const struct scenario flow_scenarios[] = {
    {"full", until_full, 0},
    {"still", one_stands_still, 0},
    {"ways", both_ways, 0},
    {"threads", threads, 0},
    {"seen", seen_by_another_thread, NEEDS_PROCESSES}, /* hardware moves data within a call */
    {"asleep", asleep, 0},
    {"busy", busy, 0},
    {"notes", notes, 0},
    {NULL, NULL, 0},
};

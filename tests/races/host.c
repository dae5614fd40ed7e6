/* Pairs of accesses of the host that race, and their mended twins:
 *
 *     races-host racy|mended LATE
 *
 * runs them all, one after the other, on 4 PEs. Two lines of each have a mark, "NAME: 1" and
 * "NAME: 2": those that races/run looks for in the report. PE LATE comes late to each case; 9: none
 * does. */
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gshmem.h"

#include "check.h"

enum { N = 32 };

static bool mended;
static int me;
static long data[3 * N], counter, inbox[2 * N];
static uint64_t ready, taken, step_ready[2], turn;
static long lock;
static long local[N];

static void barrier_if(bool wanted)
{
    if (wanted)
        CHECK_OK(gshmem_barrier_all());
}

static void put_then_get(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* put_then_get: 1 */
    barrier_if(mended);
    if (me == 2)
        CHECK_OK(gshmem_long_get(local, data, N, 1)); /* put_then_get: 2 */
}

static long put_then_load(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* put_then_load: 1 */
    barrier_if(mended);
    return me == 1 ? data[3] : 0; /* put_then_load: 2 */
}

static long missing_fence(void)
{
    if (me == 0) {
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* missing_fence: 1 */
        if (mended)
            CHECK_OK(gshmem_fence());
        CHECK_OK(gshmem_long_atomic_set(&counter, 1, 1));
    }
    if (me != 1)
        return 0;
    CHECK_OK(gshmem_long_wait_until(&counter, GSHMEM_CMP_EQ, 1));
    return data[0]; /* missing_fence: 2 */
}

static long signal_first(void)
{
    if (me == 0 && !mended) {
        CHECK_OK(gshmem_signal_set(&ready, 1, 1));
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* signal_first: 1 */
    } else if (me == 0) {
        CHECK_OK(gshmem_long_put_signal(data, local, N, &ready, 1, GSHMEM_SIGNAL_SET, 1));
    }
    if (me != 1)
        return 0;
    gshmem_signal_wait_until(&ready, GSHMEM_CMP_EQ, 1);
    return data[5]; /* signal_first: 2 */
}

static void nbi_source(void)
{
    if (me != 0)
        return;
    CHECK_OK(gshmem_long_put_nbi(data, data + N, N, 1)); /* nbi_source: 1 */
    if (mended)
        CHECK_OK(gshmem_quiet());
    data[N] = 7; /* nbi_source: 2 */
}

static long nbi_dest(void)
{
    if (me != 0)
        return 0;
    CHECK_OK(gshmem_long_get_nbi(data + N, data, N, 1)); /* nbi_dest: 1 */
    if (mended)
        CHECK_OK(gshmem_quiet());
    return data[N + 1]; /* nbi_dest: 2 */
}

static void get_too_early(void)
{
    if (me != 0)
        return;
    CHECK_OK(gshmem_long_put_nbi(data, local, N, 1)); /* get_too_early: 1 */
    if (mended)
        CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_long_get(inbox, data, N, 1)); /* get_too_early: 2 */
}

static long wrong_team(void)
{
    const int stride = mended ? 2 : 1; /* PEs 0 and 2, or 0 and 1 */
    gshmem_team_t team;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, stride, 2, NULL, 0, &team));
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 2)); /* wrong_team: 1 */
    if (team != GSHMEM_TEAM_INVALID)
        CHECK_OK(gshmem_barrier(team));
    return me == 2 ? data[9] : 0; /* wrong_team: 2 */
}

static void atomic_and_store(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_atomic_inc(&counter, 1)); /* atomic_and_store: 1 */
    if (me == 1 && mended)
        CHECK_OK(gshmem_long_atomic_set(&counter, 5, 1));
    else if (me == 1)
        counter = 5; /* atomic_and_store: 2 */
}

static long atomic_and_load(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_atomic_add(&counter, 2, 1)); /* atomic_and_load: 1 */
    if (me == 1 && mended)
        return gshmem_long_atomic_fetch(&counter, 1);
    return me == 1 ? counter : 0; /* atomic_and_load: 2 */
}

static long buffer_reused(void)
{
    long sum = 0;

    for (uint64_t step = 1; step <= 2; step++) {
        if (me == 0 && mended && step > 1)
            gshmem_signal_wait_until(&taken, GSHMEM_CMP_GE, step - 1);
        if (me == 0)
            CHECK_OK(gshmem_long_put_signal(data, local, N, /* buffer_reused: 1 */
                                            &step_ready[step - 1], 1, GSHMEM_SIGNAL_SET, 1));
        if (me != 1)
            continue;
        gshmem_signal_wait_until(&step_ready[step - 1], GSHMEM_CMP_EQ, 1);
        sum += data[step]; /* buffer_reused: 2 */
        CHECK_OK(gshmem_signal_set(&taken, step, 0));
    }
    return sum;
}

static void two_puts(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 2)); /* two_puts: 1 */
    if (me == 1)
        CHECK_OK(gshmem_long_put(mended ? data + N : data, local, N, 2)); /* two_puts: 2 */
}

static long sync_for_barrier(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* sync_for_barrier: 1 */
    if (mended)
        CHECK_OK(gshmem_barrier_all());
    else
        CHECK_OK(gshmem_sync_all());
    return me == 1 ? data[2] : 0; /* sync_for_barrier: 2 */
}

static void after_broadcast(void)
{
    CHECK_OK(gshmem_long_broadcast(GSHMEM_TEAM_WORLD, data, data + N, N, /* after_broadcast: 1 */
                                   0));
    barrier_if(mended);
    if (me == 2)
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* after_broadcast: 2 */
}

static void strides_meet(void)
{
    long *dest = mended ? data + 1 : data;

    if (me == 0)
        CHECK_OK(gshmem_long_iput(data, local, 2, 1, N / 2, 1)); /* strides_meet: 1 */
    if (me == 2)
        CHECK_OK(gshmem_long_iput(dest, local, 2, 1, N / 2, 1)); /* strides_meet: 2 */
}

static void no_lock(void)
{
    for (int i = 0; i < 20; i++) {
        if (mended)
            CHECK_OK(gshmem_set_lock(&lock));
        const long value = gshmem_long_g(&counter, 0);   /* no_lock: 1 */
        CHECK_OK(gshmem_long_p(&counter, value + 1, 0)); /* no_lock: 2 */
        if (mended)
            CHECK_OK(gshmem_clear_lock(&lock));
    }
}

/* Parts of one word. */
static void half_a_word(void)
{
    int *half = (int *)(void *)data, one[2] = {1, 1};

    if (me == 0)
        CHECK_OK(gshmem_int_put(half, one, mended ? 1 : 2, 2)); /* half_a_word: 1 */
    if (me == 1)
        CHECK_OK(gshmem_int_put(half + 1, one, 1, 2)); /* half_a_word: 2 */
}

/* A sum over a ring, in whose steps each PE puts what it has to the next one. */
static long ring(void)
{
    long sum = me;

    for (uint64_t step = 1; me < 3 && step < 3; step++) {
        long *box = inbox + (mended ? step - 1 : 0) * N;
        CHECK_OK(gshmem_long_put_signal(box, local, N, /* ring: 1 */
                                        &step_ready[step - 1], 1, GSHMEM_SIGNAL_SET, (me + 1) % 3));
        gshmem_signal_wait_until(&step_ready[step - 1], GSHMEM_CMP_EQ, 1);
        sum += box[0]; /* ring: 2 */
    }
    return sum;
}

static void reduced_too_early(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put(data, local, N, 1)); /* reduced_too_early: 1 */
    barrier_if(mended);
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, data + N, data, /* reduced_too_early: 2 */
                                    N));
}

static long signal_to_other(void)
{
    if (me == 0)
        CHECK_OK(gshmem_long_put_signal(data, local, N, &ready, 1, /* signal_to_other: 1 */
                                        GSHMEM_SIGNAL_SET, 1));
    if (me == 1 && mended)
        gshmem_signal_wait_until(&ready, GSHMEM_CMP_EQ, 1);
    if (me == 1)
        CHECK_OK(gshmem_signal_set(&taken, 1, 2));
    if (me == 2) {
        gshmem_signal_wait_until(&taken, GSHMEM_CMP_EQ, 1);
        CHECK_OK(gshmem_long_get(local, data, 1, 1)); /* signal_to_other: 2 */
    }
    return 0;
}

/* ---- What is ordered, and was taken for a race: only mended ---- */

/* PEs take turns by volatile loads, which are not followed and so order nothing. */
static void await_turn(uint64_t mine)
{
    while (*(volatile uint64_t *)&turn != mine)
        sched_yield();
}

static void give_turn(uint64_t next, int pe)
{
    CHECK_OK(gshmem_fence());
    CHECK_OK(gshmem_uint64_p(&turn, next, pe));
}

/* Until the snapshots that this PE has left are overwritten. */
static void put_much(void)
{
    for (int i = 0; i < 5000; i++)
        CHECK_OK(gshmem_long_p(&data[2 * N + me], i, (me + 1) % 4));
}

/* The signal's snapshot is gone when the signal is seen: what a fence has ordered before it is
 * known all the same. */
static long late_waiter(void)
{
    if (me == 0) {
        CHECK_OK(gshmem_long_put(data, local, N, 1));
        CHECK_OK(gshmem_fence());
        CHECK_OK(gshmem_long_atomic_set(&counter, 1, 1));
        put_much();
        give_turn(1, 1);
    }
    if (me != 1)
        return 0;
    await_turn(1);
    CHECK_OK(gshmem_long_wait_until(&counter, GSHMEM_CMP_EQ, 1));
    return data[0];
}

/* Three PEs update both halves of a word, for which a cell has no room: who waits for one half
 * knows all that updated it. late: the last snapshot, which has what made room, is gone then. */
static long full_cell(int i, bool late)
{
    static const int order[] = {0, 2, 3, 1};
    int *half = (int *)(void *)(inbox + i), step = 0;

    while (order[step] != me)
        step++;
    await_turn((uint64_t)(4 * i + step));
    if (me == 1) {
        CHECK_OK(gshmem_int_wait_until(half, GSHMEM_CMP_EQ, 3));
        const long sum = data[3 * i] + data[3 * i + 1] + data[3 * i + 2];
        give_turn((uint64_t)(4 * (i + 1)), 0);
        return sum;
    }
    CHECK_OK(gshmem_long_p(&data[3 * i + step], 1, 1));
    CHECK_OK(gshmem_fence());
    for (int more = 0; more < i % 4; more++) /* which slot makes room depends on the number */
        CHECK_OK(gshmem_long_p(&data[2 * N + me], i, me));
    CHECK_OK(gshmem_int_atomic_inc(half, 1));
    CHECK_OK(gshmem_int_atomic_inc(half + 1, 1));
    if (late && me == 3)
        put_much();
    give_turn((uint64_t)(4 * i + step + 1), order[step + 1]);
    return 0;
}

static long full_cells(bool late)
{
    long sum = 0;

    for (int i = 0; i < 4; i++)
        sum += full_cell(i, late);
    return sum;
}

static void refused(gshmem_status_t status)
{
    const char *line = "";

    CHECK(status);
    CHECK_EQ(gshmem_last_error(&line), status);
}

/* A PE that refuses its call has taken part in a round of the team. */
static long after_refusal(void)
{
    refused(gshmem_long_broadcast(GSHMEM_TEAM_WORLD, data, data + N, 1, me == 0 ? 99 : 0));
    if (me == 1)
        CHECK_OK(gshmem_long_put(data, local, N, 0));
    CHECK_OK(gshmem_barrier_all());
    return me == 0 ? data[7] : 0;
}

static long after_refused_split(void)
{
    gshmem_team_t team;

    refused(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, me == 0 ? 99 : 2, NULL, 0, &team));
    if (me == 1)
        CHECK_OK(gshmem_long_put(data, local, N, 0));
    CHECK_OK(gshmem_barrier_all());
    return me == 0 ? data[7] : 0;
}

/* What an atomic has fetched is known after the quiet. */
static long fetched_later(void)
{
    static long fetched;

    if (me == 0) {
        CHECK_OK(gshmem_long_put(data, local, N, 1));
        CHECK_OK(gshmem_fence());
        CHECK_OK(gshmem_long_atomic_set(&counter, 1, 1));
        give_turn(1, 2);
    }
    if (me != 2)
        return 0;
    await_turn(1);
    CHECK_OK(gshmem_long_atomic_fetch_nbi(&fetched, &counter, 1));
    CHECK_OK(gshmem_quiet());
    CHECK_EQ(fetched, 1);
    return gshmem_long_g(data, 1);
}

/* After a flush others may write to the source, if they know of it. */
static void flushed_source(void)
{
    if (me == 0) {
        CHECK_OK(gshmem_long_put_nbi(data, data + N, N, 1));
        CHECK_OK(gshmem_flush());
        CHECK_OK(gshmem_signal_set(&ready, 1, 2));
    }
    if (me == 2) {
        gshmem_signal_wait_until(&ready, GSHMEM_CMP_EQ, 1);
        CHECK_OK(gshmem_long_put(data + N, local, N, 0));
    }
}

/* Every case begins with zeros, and with all PEs. */
static void begin(int late)
{
    const struct timespec pause = {0, 30000000};

    CHECK_OK(gshmem_barrier_all());
    memset(data, 0, sizeof data);
    memset(inbox, 0, sizeof inbox);
    counter = 0;
    ready = taken = step_ready[0] = step_ready[1] = turn = 0;
    CHECK_OK(gshmem_barrier_all());
    if (me == late) /* which makes another order likely; the report is the same */
        nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    const int late = argc > 2 ? atoi(argv[2]) : 9;
    volatile long sum = 0;

    mended = argc > 1 && strcmp(argv[1], "mended") == 0;
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
#define CASE(call)                                                                                 \
    begin(late);                                                                                   \
    call
    CASE(put_then_get());
    CASE(sum += put_then_load());
    CASE(sum += missing_fence());
    CASE(sum += signal_first());
    CASE(nbi_source());
    CASE(sum += nbi_dest());
    CASE(get_too_early());
    CASE(sum += wrong_team());
    CASE(atomic_and_store());
    CASE(sum += atomic_and_load());
    CASE(sum += buffer_reused());
    CASE(two_puts());
    CASE(sum += sync_for_barrier());
    CASE(after_broadcast());
    CASE(strides_meet());
    CASE(no_lock());
    CASE(half_a_word());
    CASE(sum += ring());
    CASE(reduced_too_early());
    CASE(sum += signal_to_other());
    if (mended) {
        CASE(sum += late_waiter());
        CASE(sum += full_cells(false));
        CASE(sum += full_cells(true));
        CASE(sum += after_refusal());
        CASE(sum += after_refused_split());
        CASE(sum += fetched_later());
        CASE(flushed_source());
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK(sum >= 0);
    CHECK_OK(gshmem_finalize());
    return 0;
}

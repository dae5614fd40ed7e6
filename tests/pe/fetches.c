/* Many threads of every PE fetch at the same time from all PEs: gets of each size, fetching updates of both widths,
 * compare-swaps; each gets its own value, of its own object, and no update is lost or made twice. Beside them each
 * thread puts, and its next get finds that. */
#include <pthread.h>
#include <stdint.h>

#include "pe.h"

enum { THREADS = 12, SIZES = 7 };

struct cell {
    uint64_t own[SIZES][8]; /* 1 to 64 bytes that do not change */
    long turn;              /* a thread adds one, and so has each number once */
    unsigned half;          /* the same in 4 bytes */
    long top;               /* raised by compare-swaps */
    long baton;             /* swapped: each value comes back once */
    long written[THREADS];  /* by thread t of the left neighbour */
};

static struct cell cell; /* symmetric */
static long seen_turns, seen_batons; /* of all threads of this PE: sums of what came back */
static long rounds;

static void get_sizes(int thread, long round)
{
    unsigned char to[64 + 1];
    const int k = (int)((thread + round) % SIZES), pe = (int)((me + thread + round) % n);

    to[1 << k] = 99;
    CHECK_OK(gshmem_getmem(to, &cell.own[k], (size_t)1 << k, pe));
    CHECK_FILLED(to, (size_t)1 << k, pe, (unsigned)k);
    CHECK_EQ(to[1 << k], 99);
}

static long raise_top(int pe)
{
    long top = gshmem_long_g(&cell.top, pe), was;

    while ((was = gshmem_long_atomic_compare_swap(&cell.top, top, top + 1, pe)) != top) {
        CHECK(was > top);
        top = was;
    }
    return top;
}

static void *work(void *argument)
{
    const int thread = (int)(intptr_t)argument;
    long turns = 0, batons = 0, last_turn = -1, last_top = -1;

    for (long round = 0; round < rounds; round++) {
        get_sizes(thread, round);
        const long turn = gshmem_long_atomic_fetch_add(&cell.turn, 1, 0);
        CHECK(turn > last_turn);
        last_turn = turn;
        turns += turn;
        CHECK(gshmem_uint_atomic_fetch_inc(&cell.half, right()) < (unsigned)(THREADS * rounds * n));
        const long top = raise_top(0);
        CHECK(top > last_top);
        last_top = top;
        batons += gshmem_long_atomic_swap(&cell.baton, (me * THREADS + thread) * rounds + round + 1, 0);
        CHECK_OK(gshmem_long_p(&cell.written[thread], round, right()));
        CHECK_EQ(gshmem_long_g(&cell.written[thread], right()), round);
        if (round % 8 == 7) { /* two fetches that no thread waits for, behind each other */
            long one = -1, two = -1;
            CHECK_OK(gshmem_long_atomic_fetch_nbi(&one, &cell.written[thread], right()));
            CHECK_OK(gshmem_long_get_nbi(&two, &cell.written[thread], 1, right()));
            CHECK_OK(gshmem_quiet());
            CHECK_EQ(one, round);
            CHECK_EQ(two, round);
        }
    }
    __atomic_fetch_add(&seen_turns, turns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&seen_batons, batons, __ATOMIC_RELAXED);
    return NULL;
}

/* Numbers 0 to all - 1, each once; and each value that was stored, once, with the one that is left. */
static void check_sums(void)
{
    static long turns, batons; /* symmetric */
    const long all = (long)n * THREADS * rounds;

    CHECK_OK(gshmem_long_atomic_add(&turns, seen_turns, 0));
    CHECK_OK(gshmem_long_atomic_add(&batons, seen_batons, 0));
    barrier();
    CHECK_EQ(cell.half, THREADS * rounds);
    if (me)
        return;
    CHECK_EQ(cell.turn, all);
    CHECK_EQ(cell.top, all);
    CHECK_EQ(turns, all * (all - 1) / 2);
    CHECK_EQ(batons + cell.baton, all * (all + 1) / 2);
}

int main(void)
{
    pthread_t thread[THREADS];
    int provided;

    rounds = how_often(60, 20);
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    begin(); /* nested */
    for (int k = 0; k < SIZES; k++)
        fill((unsigned char *)cell.own[k], (size_t)1 << k, me, (unsigned)k);
    barrier();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    barrier();
    check_sums();
    CHECK_OK(gshmem_finalize());
    end();
}

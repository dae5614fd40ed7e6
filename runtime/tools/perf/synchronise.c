/* Loops in which PEs wait for each other: ping-pong, barriers, locks, objects that they allocate
 * together; and for one that is late on purpose. */
#include <time.h>

#include "benchmark.h"
#include "machine.h"
#include <library.h>

void loop_pingpong(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        long turn = ++r->turn;
        if (r->pe == 0) {
            lib_p(r->flag, turn, 1);
            lib_wait_until_equal(r->flag, turn);
        } else {
            lib_wait_until_equal(r->flag, turn);
            lib_p(r->flag, turn, 0);
        }
    }
}

#if LIB_HAS_SIGNAL
void loop_signal_pingpong(struct run *r, uint64_t n)
{
    uint64_t *signal = (uint64_t *)r->flag;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t turn = (uint64_t)++r->turn;
        if (r->pe == 0) {
            lib_put_signal(run_dest(r, i), run_source(r, i), r->size, signal, turn, 1);
            lib_signal_wait_equal(signal, turn);
        } else {
            lib_signal_wait_equal(signal, turn);
            lib_put_signal(run_dest(r, i), run_source(r, i), r->size, signal, turn, 0);
        }
    }
}
#endif

void loop_barrier_all(struct run *r, uint64_t n)
{
    (void)r;
    for (uint64_t i = 0; i < n; i++)
        lib_barrier_all();
}

#if LIB_HAS_SYNC
void loop_sync_all(struct run *r, uint64_t n)
{
    (void)r;
    for (uint64_t i = 0; i < n; i++)
        lib_sync_all();
}
#endif

#if LIB_HAS_LOCK
void loop_lock(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_set_lock(r->lock);
        lib_clear_lock(r->lock);
    }
}
#endif

/* ---- Objects that come and go: all PEs allocate and free together ---- */

#if LIB_HAS_HEAP
void loop_malloc(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        lib_free(lib_malloc(r->size));
}

void loop_malloc_put(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        char *dest = lib_malloc(r->size);
        lib_put(dest, run_source(r, i), r->size, (r->pe + 1) % r->n_pes);
        lib_barrier_all();
        lib_free(dest);
    }
}
#endif

/* ---- Late peers: size is by how many microseconds ----
 *
 * What counts is the time of both, without the time that the peer was away, which it tells
 * itself: no clock of another machine is read. */

/* Sleeps, and tells all for how long. */
static void be_late(struct run *r)
{
    uint64_t begin = machine_ns();
    const struct timespec time = {.tv_sec = (time_t)(r->size / 1000000),
                                  .tv_nsec = (long)(r->size % 1000000) * 1000};

    nanosleep(&time, NULL);
    const long slept = (long)(machine_ns() - begin);
    for (int pe = 0; pe < r->n_pes; pe++)
        lib_p(r->counter, slept, pe);
    lib_quiet();
}

void loop_late_wait(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        long turn = ++r->turn;
        if (r->pe == 0) {
            lib_p(r->flag, turn, 1);
            lib_wait_until_equal(r->flag, turn);
            r->late_ns += (uint64_t)*(volatile long *)r->counter;
        } else {
            lib_wait_until_equal(r->flag, turn);
            be_late(r);
            lib_p(r->flag, turn, 0);
        }
    }
}

/* PE 0 says when, so that the others' lateness is within the time it takes. */
void loop_late_barrier(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        long turn = --r->late_turn;
        if (r->pe == 0)
            lib_p(r->flag, turn, r->n_pes - 1);
        if (r->pe == r->n_pes - 1) {
            lib_wait_until_equal(r->flag, turn);
            be_late(r);
        }
        lib_barrier_all();
        r->late_ns += (uint64_t)*(volatile long *)r->counter;
        lib_barrier_all();
    }
}

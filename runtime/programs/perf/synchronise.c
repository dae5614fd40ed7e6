/* Loops in which PEs wait for each other: ping-pong, barriers, locks. */
#include "benchmark.h"
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

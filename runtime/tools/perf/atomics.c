/* Loops over atomics on one long of the peer that nobody else touches. */
#include "benchmark.h"
#include <library.h>

#define LOOP(name, operation)                                                                      \
    void loop_##name(struct run *r, uint64_t n)                                                    \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            operation;                                                                             \
            iteration_end();                                                                       \
        }                                                                                          \
        lib_quiet();                                                                               \
    }

LOOP(fetch, use(lib_fetch(r->counter, r->peer)))
LOOP(set, lib_set(r->counter, (long)i, r->peer))
LOOP(add, lib_add(r->counter, 3, r->peer))
LOOP(inc, lib_inc(r->counter, r->peer))
LOOP(fetch_add, use(lib_fetch_add(r->counter, 3, r->peer)))
LOOP(fetch_add_hinted, use(lib_fetch_add(r->hinted, 3, r->peer)))
LOOP(fetch_inc, use(lib_fetch_inc(r->counter, r->peer)))
LOOP(swap, use(lib_swap(r->counter, (long)i, r->peer)))

/* Each compares with the value that the one before it left. */
void loop_compare_swap(struct run *r, uint64_t n)
{
    long value = lib_fetch(r->counter, r->peer);

    for (uint64_t i = 0; i < n; i++) {
        use(lib_compare_swap(r->counter, value, value + 1, r->peer));
        value++;
    }
    lib_quiet();
}

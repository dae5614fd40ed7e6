/* The benchmarks, in the order in which they run. A new one is a loop in its family's file and a
 * row here; --list, --help, running and printing follow. */
#include <string.h>

#include "benchmark.h"
#include <library.h>

#define RMA_SIZES        "1-16M"
#define COLLECTIVE_SIZES "8-1M*8"
#define LATENESS         "100,1000,10000,100000"

#define IRREGULAR(name, loop, beside, text)                                                        \
    {name, ALL, MILLIONS_PER_SECOND, IRREGULAR_ROUND, NULL, 1, 0, loop, NULL, text, 7, beside}

#define OF_THREADS(name, operations, loop, text)                                                   \
    {name, ONE, MILLIONS_PER_SECOND, operations, "1,2,8,32", 1, THREADS, loop, NULL, text, 7,      \
     "threads_p"}

const struct benchmark benchmarks[] = {
    {"init", ALL, NANOSECONDS, 1, NULL, 1, 0, NULL, once_init,
     "start of the library, one time of each PE", 0, NULL},
    {"memory", ALL, KIBIBYTES, 1, NULL, 1, 0, NULL, once_memory,
     "memory that start-up added to a PE, one value of each PE (Linux: Pss)", 0, NULL},
#if LIB_HAS_HEAP
    {"contact", ALL, NANOSECONDS, 1, NULL, 1, 0, NULL, once_contact,
     "put and quiet of a long to the next PE before anything else is sent, one value of each PE", 0,
     NULL},
#endif

    {"put", ONE, NANOSECONDS, 1, "8", 1, 0, loop_put, NULL, "blocking put", 0, NULL},
    {"get", ONE, NANOSECONDS, 1, "8", 1, 0, loop_get, NULL, "blocking get", 0, NULL},
    {"p", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_p, NULL, "put of one long", 0, NULL},
    {"g", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_g, NULL, "get of one long", 0, NULL},
    {"put_quiet", ONE, NANOSECONDS, 1, "8", 1, 0, loop_put_quiet, NULL, "put and quiet", 0, NULL},
    {"put_nbi", ONE, MILLIONS_PER_SECOND, 1, "8", 1, 0, loop_put_nbi, NULL,
     "rate of non-blocking puts, a quiet after every 64", 0, NULL},
    {"put_bw", ONE, GIGABYTES_PER_SECOND, 1, RMA_SIZES, 1, 0, loop_put, NULL,
     "bandwidth of blocking puts", 0, NULL},
    {"get_bw", ONE, GIGABYTES_PER_SECOND, 1, RMA_SIZES, 1, 0, loop_get, NULL,
     "bandwidth of blocking gets", 0, NULL},

    {"fetch", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_fetch, NULL, "atomic fetch of a long", 0, NULL},
    {"set", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_set, NULL, "atomic set of a long", 0, NULL},
    {"add", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_add, NULL, "atomic add to a long", 0, NULL},
    {"inc", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_inc, NULL, "atomic increment of a long", 0, NULL},
    {"fetch_add", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_fetch_add, NULL, "atomic fetch and add", 0,
     NULL},
#if LIB_HAS_HINTS
    {"fetch_add_hinted", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_fetch_add_hinted, NULL,
     "the same, of memory asked for with a hint for atomics", 0, NULL},
#endif
    {"fetch_inc", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_fetch_inc, NULL,
     "atomic fetch and increment", 0, NULL},
    {"swap", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_swap, NULL, "atomic swap", 0, NULL},
    {"compare_swap", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_compare_swap, NULL,
     "atomic compare and swap, always matching", 0, NULL},

    {"pingpong", PAIR, NANOSECONDS, 2, NULL, 1, 0, loop_pingpong, NULL,
     "half a round trip of p, seen by wait_until", 0, NULL},
#if LIB_HAS_SIGNAL
    {"signal_pingpong", PAIR, NANOSECONDS, 2, "8,4K", 1, 0, loop_signal_pingpong, NULL,
     "half a round trip of put_signal, seen by signal_wait_until", 0, NULL},
#endif
    {"barrier_all", ALL, NANOSECONDS, 1, NULL, 1, 0, loop_barrier_all, NULL, "barrier of all PEs",
     0, NULL},
#if LIB_HAS_SYNC
    {"sync_all", ALL, NANOSECONDS, 1, NULL, 1, 0, loop_sync_all, NULL, "sync of all PEs", 0, NULL},
#endif
    {"broadcast", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, 0, loop_broadcast, NULL,
     "broadcast from PE 0", 0, NULL},
    {"sum_reduce", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, 0, loop_sum_reduce, NULL,
     "sum of longs over all PEs, result on all", 0, NULL},
    {"sum_reduce_double", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, 0, loop_sum_reduce_double, NULL,
     "sum of doubles over all PEs, result on all", 0, NULL},
    {"fcollect", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, SPREAD, loop_fcollect, NULL,
     "fcollect, size given by each PE", 0, NULL},
    {"collect", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, SPREAD, loop_collect, NULL,
     "collect, size given by each PE", 0, NULL},
    {"alltoall", ALL, NANOSECONDS, 1, COLLECTIVE_SIZES, 8, SPREAD, loop_alltoall, NULL,
     "alltoall, size for each PE", 0, NULL},
#if LIB_HAS_LOCK
    {"lock", ONE, NANOSECONDS, 1, NULL, 1, 0, loop_lock, NULL, "set and clear of a free lock", 0,
     NULL},
    {"lock_all", ALL, NANOSECONDS, 1, NULL, 1, 0, loop_lock, NULL,
     "set and clear of a lock that all PEs want", 0, NULL},
#endif
#if LIB_HAS_HEAP
    {"malloc", ALL, NANOSECONDS, 1, "64,1M", 1, 0, loop_malloc, NULL,
     "malloc and free of an object that no PE touches", 0, NULL},
    {"malloc_put", ALL, NANOSECONDS, 1, "64K,4M", 1, 0, loop_malloc_put, NULL,
     "malloc, a put into all of the object, barrier, free", 0, NULL},
#endif
#if LIB_HAS_INDEXED
    IRREGULAR("histogram_sent", loop_histogram_sent, "histogram_sent",
              "rate of updates at random places of all PEs, aggregated by hand"),
    IRREGULAR("histogram", loop_histogram, "histogram_sent", "the same by atomic adds"),
    IRREGULAR("histogram_ix", loop_histogram_ix, "histogram_sent", "the same by ix_add"),
    IRREGULAR("gather_sent", loop_gather_sent, "gather_sent",
              "rate of gets from random places of all PEs, aggregated by hand"),
    IRREGULAR("gather", loop_gather, "gather_sent", "the same by g"),
    IRREGULAR("gather_ix", loop_gather_ix, "gather_sent", "the same by ixget"),
    IRREGULAR("scatter_sent", loop_scatter_sent, "scatter_sent",
              "rate of puts to random places of all PEs, aggregated by hand"),
    IRREGULAR("scatter", loop_scatter, "scatter_sent", "the same by p"),
    IRREGULAR("scatter_ix", loop_scatter_ix, "scatter_sent", "the same by ixput"),
#endif
#if LIB_HAS_THREADS
    OF_THREADS("threads_p", THREADS_PUTS, loop_threads_p,
               "rate of puts of one long by several threads: size in threads"),
    OF_THREADS("threads_g", THREADS_FETCHES, loop_threads_g, "the same of gets"),
    OF_THREADS("threads_fetch_add", THREADS_FETCHES, loop_threads_fetch_add,
               "the same of atomic fetch and add"),
    OF_THREADS("threads_swap", THREADS_FETCHES, loop_threads_swap, "the same of atomic swap"),
    OF_THREADS("threads_compare_swap", THREADS_FETCHES, loop_threads_compare_swap,
               "the same of atomic compare and swap"),
#endif
    {"late_wait", PAIR, NANOSECONDS, 1, LATENESS, 1, LATE, loop_late_wait, NULL,
     "round trip of p and wait_until, without the time by which the peer is late: size in "
     "microseconds",
     20, NULL},
    {"late_barrier", ALL, NANOSECONDS, 1, LATENESS, 1, LATE, loop_late_barrier, NULL,
     "two barriers, without the time by which the last PE is late for the first: size in "
     "microseconds",
     20, NULL},
    {0},
};

const struct benchmark *benchmark_find(const char *name)
{
    for (const struct benchmark *b = benchmarks; b->name; b++)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

const char *benchmark_unit_name(enum benchmark_unit unit)
{
    static const char *const names[] = {"ns", "GB/s", "M/s", "KiB"};

    return names[unit];
}

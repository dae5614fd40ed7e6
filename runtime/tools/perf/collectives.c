/* Loops over collectives of all PEs. */
#include "benchmark.h"
#include <library.h>

#define LOOP(name, operation)                                                                      \
    void loop_##name(struct run *r, uint64_t n)                                                    \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                           \
            operation;                                                                             \
    }

LOOP(broadcast, lib_broadcast(run_dest(r, i), run_source(r, i), r->size, 0))
LOOP(fcollect, lib_fcollect(run_dest(r, i), run_source(r, i), r->size))
LOOP(collect, lib_collect(run_dest(r, i), run_source(r, i), r->size))
LOOP(alltoall, lib_alltoall(run_dest(r, i), run_source(r, i), r->size))
LOOP(sum_reduce,
     lib_sum_reduce((long *)run_dest(r, i), (const long *)run_source(r, i), r->size / sizeof(long)))
LOOP(sum_reduce_double,
     lib_sum_reduce_double((double *)run_dest(r, i), (const double *)run_source(r, i),
                           r->size / sizeof(double)))

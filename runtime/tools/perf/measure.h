/* Runs a benchmark: warm-up, blocks of a calibrated number of operations, samples on PE 0.
 *
 * All PEs call the same functions in the same order; PE 0 decides how many operations a block has,
 * and is told each PE's time. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include <stdbool.h>

#include "benchmark.h"
#include "machine.h"
#include "options.h"
#include "statistics.h"

/* Symmetric memory by which PEs measure together; what is written by others has its own line. */
struct board {
    _Alignas(64) long flag;
    _Alignas(64) long counter;
    _Alignas(64) long lock;
    _Alignas(64) uint64_t plan;  /* from PE 0: operations of the next block; 0: no more */
    _Alignas(64) double value[]; /* on PE 0: one of each PE; then a struct place of each */
};

struct bench {
    const struct options *options;
    struct run run;
    struct board *board;
    struct place *place; /* on PE 0: one of each PE */
    bool oversubscribed;        /* more PEs than CPUs on PE 0's node */
    int pes_here, cpus_here;
};

struct result {
    struct samples samples; /* in the benchmark's unit, sorted; on PE 0 only */
    uint64_t iterations;    /* in a block */
    const char *timed;      /* "block", "operation" or "once": what a sample is */
    double beside;          /* the median of the row that it is compared with; 0: none */
};

double result_median(const struct result *result);

/* Allocates symmetric memory for the benchmarks chosen; false, after saying so, if there is too
 * little. */
bool bench_start(struct bench *b, const struct options *o);
void bench_stop(struct bench *b);

/* The sizes at which to run it, at least one (0 if it has none). */
int bench_sizes(const struct bench *b, const struct benchmark *what, size_t size[SIZES_MAX]);

/* False, with a reason, where the job cannot run it. */
bool bench_able(const struct bench *b, const struct benchmark *what, const char **why);

/* False if PE 0 ran out of memory for samples. */
bool bench_measure(struct bench *b, const struct benchmark *what, size_t size,
                   struct result *result);

#endif

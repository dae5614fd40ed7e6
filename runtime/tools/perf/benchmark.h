/* What a benchmark is: a loop over one call of the library, and one row of the table that says how
 * to read its time. Nothing here knows which library is measured: that is library.h's business. */
#ifndef PERF_BENCHMARK_H
#define PERF_BENCHMARK_H

#include <stddef.h>
#include <stdint.h>

/* What a loop works on. All memory is symmetric, allocated and touched before the first loop. */
struct run {
    int pe;
    int n_pes;
    int peer;      /* the PE after mine: whom one-sided operations go to */
    size_t size;   /* bytes of one operation; 0 where the benchmark has no size */
    size_t stride; /* from one buffer to the next; operations take turns on mask + 1 of them */
    uint64_t mask;
    char *source;
    char *dest;
    long *flag;    /* what ping-pong waits on, alone in its cache line */
    long *counter; /* what atomics update, */
    long *hinted;  /* and from memory that was asked for with a hint that they will; or NULL */
    long *lock;
    long turn; /* ping-pongs made so far: flags count on from one loop to the next */
    long late_turn; /* the same for loops of all PEs, downwards from 0: others made no ping-pongs */
    uint64_t late_ns; /* how long this loop has waited for a peer that was late on purpose */
};

static inline char *run_source(const struct run *r, uint64_t i)
{
    return r->source + (i & r->mask) * r->stride;
}

static inline char *run_dest(const struct run *r, uint64_t i)
{
    return r->dest + (i & r->mask) * r->stride;
}

/* Ends an iteration: the compiler may not fuse, drop or hoist what the library inlines. */
static inline void iteration_end(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Takes a value that nobody needs, so that fetching it cannot be left out. */
static inline void use(long value)
{
    __asm__ volatile("" ::"r"(value) : "memory");
}

enum benchmark_who {
    ONE,  /* PE 0 alone, to PE 1 (to itself in a job of one) */
    PAIR, /* PE 0 with PE 1 */
    ALL,
};

enum benchmark_sizes {
    SPREAD = 1, /* a buffer holds `size` bytes for each PE of the job */
    LATE,       /* they are no bytes: by how many microseconds a PE is late (--late, not --sizes) */
    THREADS,    /* likewise: how many threads of the PE call (--threads) */
};

enum benchmark_unit { NANOSECONDS, GIGABYTES_PER_SECOND, MILLIONS_PER_SECOND, KIBIBYTES };

struct benchmark {
    const char *name;
    enum benchmark_who who;
    enum benchmark_unit unit;
    int steps;         /* what one iteration counts for: 2 for a ping and its pong */
    /* unless --sizes, --late or --threads says otherwise; NULL: it has no size */
    const char *sizes;
    size_t granule;    /* sizes are rounded up to a multiple of it */
    enum benchmark_sizes sized; /* 0: a buffer holds `size` bytes */
    void (*loop)(struct run *r, uint64_t n);
    double (*once)(void); /* instead of a loop: a value that each PE already has */
    const char *text;
    int operations; /* so many are timed, each by itself; 0: as many as the options ask for */
    const char *beside; /* the row before it that its rate is compared with; NULL: none */
};

extern const struct benchmark benchmarks[]; /* ends with a row without a name */

const struct benchmark *benchmark_find(const char *name);
const char *benchmark_unit_name(enum benchmark_unit unit);

/* The loops, by family. Those of what the library has not are not there; see table.c. */
void loop_put(struct run *r, uint64_t n);
void loop_get(struct run *r, uint64_t n);
void loop_put_nbi(struct run *r, uint64_t n);
void loop_put_quiet(struct run *r, uint64_t n);
void loop_p(struct run *r, uint64_t n);
void loop_g(struct run *r, uint64_t n);

void loop_fetch(struct run *r, uint64_t n);
void loop_set(struct run *r, uint64_t n);
void loop_add(struct run *r, uint64_t n);
void loop_inc(struct run *r, uint64_t n);
void loop_fetch_add(struct run *r, uint64_t n);
void loop_fetch_add_hinted(struct run *r, uint64_t n);
void loop_fetch_inc(struct run *r, uint64_t n);
void loop_swap(struct run *r, uint64_t n);
void loop_compare_swap(struct run *r, uint64_t n);

/* Of irregular programs: elements of each PE in one iteration. */
enum { IRREGULAR_ROUND = 1 << 17 };
void loop_histogram(struct run *r, uint64_t n);
void loop_histogram_ix(struct run *r, uint64_t n);
void loop_histogram_sent(struct run *r, uint64_t n);
void loop_gather(struct run *r, uint64_t n);
void loop_gather_ix(struct run *r, uint64_t n);
void loop_gather_sent(struct run *r, uint64_t n);
void loop_scatter(struct run *r, uint64_t n);
void loop_scatter_ix(struct run *r, uint64_t n);
void loop_scatter_sent(struct run *r, uint64_t n);

/* Of threads: operations of all of them in one iteration. */
enum { THREADS_PUTS = 1 << 20, THREADS_FETCHES = 1 << 13, THREADS_MOST = 64 };
void loop_threads_p(struct run *r, uint64_t n);
void loop_threads_g(struct run *r, uint64_t n);
void loop_threads_fetch_add(struct run *r, uint64_t n);
void loop_threads_swap(struct run *r, uint64_t n);
void loop_threads_compare_swap(struct run *r, uint64_t n);

void loop_pingpong(struct run *r, uint64_t n);
void loop_signal_pingpong(struct run *r, uint64_t n);
void loop_barrier_all(struct run *r, uint64_t n);
void loop_sync_all(struct run *r, uint64_t n);
void loop_lock(struct run *r, uint64_t n);
void loop_late_wait(struct run *r, uint64_t n);
void loop_late_barrier(struct run *r, uint64_t n);

void loop_broadcast(struct run *r, uint64_t n);
void loop_malloc(struct run *r, uint64_t n);
void loop_malloc_put(struct run *r, uint64_t n);
void loop_sum_reduce(struct run *r, uint64_t n);
void loop_sum_reduce_double(struct run *r, uint64_t n);
void loop_fcollect(struct run *r, uint64_t n);
void loop_collect(struct run *r, uint64_t n);
void loop_alltoall(struct run *r, uint64_t n);

double once_init(void);
double once_memory(void);
double once_contact(void);

#endif

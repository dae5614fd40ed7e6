/* gshmem-perf-device: what operations cost in kernels, above all those that the proxy carries out.
 *
 *     gshmemrun -n 2 gshmem-perf-device                     a mapped peer: loads and stores
 *     GSHMEM_MAPPED=0 gshmemrun -n 2 gshmem-perf-device     through the proxy, which copies
 *     gshmemrun -n 2 --hosts 2 gshmem-perf-device           through the proxy and over TCP
 *
 * Options: names of benchmarks; --rounds N; --format csv. A sample is a round: a kernel that reads
 * the clock, makes some operations and reads it again; so it is of as many operations as "samples"
 * says. */
#include "../../base/printed.h"
#include "device_collectives.h"
#include "device_rates.h"
#include "device_signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MOST = 10000 };

/* Commands that bring their value, as many as a channel takes without having to wait. */
__global__ void push(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < BURST; i++)
        gshmem_long_p(&j.board->value[0][0], i, j.peer);
    j.end[0] = now();
    gshmem_quiet();
}

__global__ void push_put(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < BURST; i++)
        gshmem_putmem_nbi(&j.board->value[0][0], &j.board->source, 8, j.peer);
    j.end[0] = now();
    gshmem_quiet();
}

__global__ void count_channels(unsigned *count)
{
    *count = gshmem_device_here.ctx.channels;
}

/* Blocks that share a channel push together; those between them would use other ones. */
__global__ void push_4(struct job j)
{
    unsigned apart = gshmem_device_here.ctx.channels, mine = blockIdx.x / apart;

    if (blockIdx.x % apart)
        return;
    atomicAdd(j.ready, 1);
    while (*(volatile unsigned *)j.ready < SIDE_BY_SIDE)
        __nanosleep(0);
    j.begin[mine] = now();
    for (int i = 0; i < BURST / 2; i++)
        gshmem_long_p(&j.board->value[mine][0], i, j.peer);
    j.end[mine] = now();
    gshmem_quiet();
}

__global__ void put_quiet(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < TRIPS; i++) {
        gshmem_putmem_nbi(&j.board->value[0][0], &j.board->source, 8, j.peer);
        gshmem_quiet();
    }
    j.end[0] = now();
}

__global__ void fetch_add(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < TRIPS; i++)
        gshmem_long_atomic_fetch_add(&j.board->value[0][0], 1, j.peer);
    j.end[0] = now();
}

__global__ void put_nbi(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < 16 * BURST; i++)
        gshmem_putmem_nbi(&j.board->value[0][0], &j.board->source, 8, j.peer);
    gshmem_quiet();
    j.end[0] = now();
}

/* Between the kernels of two PEs. */
__global__ void pingpong(struct job j)
{
    bool begins = gshmem_my_pe() < j.peer;

    j.begin[0] = now();
    for (uint64_t turn = j.turn + 1; turn <= j.turn + TRIPS; turn++) {
        if (begins)
            gshmem_signal_set(&j.board->arrived, turn, j.peer);
        if (gshmem_signal_wait_until(&j.board->arrived, GSHMEM_CMP_GE, turn) < turn)
            return;
        if (!begins)
            gshmem_signal_set(&j.board->arrived, turn, j.peer);
    }
    j.end[0] = now();
}

static const struct benchmark single_benchmarks[] = {
    {"push", push, 1, BURST, ALONE, NS, 1, 8, NULL, 0},
    {"push_put", push_put, 1, BURST, ALONE, NS, 1, 8, NULL, 0},
    {"push_4", push_4, SIDE_BY_SIDE, BURST / 2, ALONE, MILLIONS, 1, 8, NULL, 0},
    {"put_quiet", put_quiet, 1, TRIPS, ALONE, NS, 1, 8, NULL, 0},
    {"fetch_add", fetch_add, 1, TRIPS, ALONE, NS, 1, 8, NULL, 0},
    {"put_nbi", put_nbi, 1, 16 * BURST, ALONE, MILLIONS, 1, 8, NULL, 0},
    {"pingpong", pingpong, 1, 2 * TRIPS, PAIR, NS, 1, 8, NULL, 0},
};
enum {
    SINGLE = sizeof single_benchmarks / sizeof single_benchmarks[0],
    RATES = sizeof rate_benchmarks / sizeof rate_benchmarks[0],
    SIGNALS = sizeof signal_benchmarks / sizeof signal_benchmarks[0],
    COLLECTIVES = sizeof collective_benchmarks / sizeof collective_benchmarks[0],
    BENCHMARKS = SINGLE + RATES + SIGNALS + COLLECTIVES,
};

static const struct benchmark *benchmark(int i)
{
    if (i < SINGLE)
        return &single_benchmarks[i];
    i -= SINGLE;
    if (i < RATES)
        return &rate_benchmarks[i];
    i -= RATES;
    return i < SIGNALS ? &signal_benchmarks[i] : &collective_benchmarks[i - SIGNALS];
}

/* Whether `asked` names it, or the rows of all its sizes. */
static bool benchmark_is(const struct benchmark *what, const char *asked)
{
    const size_t length = strlen(asked);

    return !strncmp(what->name, asked, length) &&
           (!what->name[length] ||
            (what->name[length] == '_' &&
             !what->name[length + strspn(what->name + length, "_0123456789")]));
}

/* ---- The command line ---- */

struct options {
    int rounds;
    bool csv;
    char **names; /* of benchmarks; none: all */
    int n_names;
};

static bool parse(struct options *o, int argc, char **argv)
{
    *o = {50, false, argv + 1, 0};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (int what = 0; what < BENCHMARKS; what++)
            known |= benchmark_is(benchmark(what), argv[i]);
        if (known)
            o->names[o->n_names++] = argv[i];
        else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            o->rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--format") && i + 1 < argc)
            o->csv = !strcmp(argv[++i], "csv");
        else
            return false;
    }
    return o->rounds > 0 && o->rounds <= ROUNDS_MOST;
}

static bool chosen(const struct options *o, const struct benchmark *what)
{
    for (int i = 0; i < o->n_names; i++) {
        if (benchmark_is(what, o->names[i]))
            return true;
    }
    return o->n_names == 0;
}

/* ---- Measuring and printing ---- */

static double host_round(const struct benchmark *what, const struct job *j)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (what->host(*j))
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

/* How long a round takes; negative if an operation or the kernel failed. */
static double round_ns(const struct benchmark *what, const struct job *j, int channels)
{
    unsigned long long begin[SIDE_BY_SIDE], end[SIDE_BY_SIDE], first, last;

    if (what->host)
        return host_round(what, j);
    cudaMemset(j->ready, 0, sizeof *j->ready);
    const int blocks = what->blocks ? what->blocks : (what->producers - 1) * channels + 1;
    what->kernel<<<blocks, what->threads>>>(*j);
    if (cudaMemcpy(begin, j->begin, sizeof begin, cudaMemcpyDefault) ||
        cudaMemcpy(end, j->end, sizeof end, cudaMemcpyDefault))
        return -1;
    first = begin[0], last = end[0];
    for (int i = 1; i < what->producers; i++) {
        first = begin[i] < first ? begin[i] : first;
        last = end[i] > last ? end[i] : last;
    }
    return (double)last - (double)first;
}

/* One sample; negative if something failed. */
static double round_of(const struct benchmark *what, const struct job *j, int channels)
{
    double ns = round_ns(what, j, channels), operations = what->operations * what->producers;

    switch (what->unit) {
    case MILLIONS:
        return 1e3 * operations / ns;
    case MEGABYTES:
        return 1e3 * operations * (double)what->bytes / ns;
    default:
        return ns / operations;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const struct options *o, const struct benchmark *what, double *sample)
{
    static const char *const units[] = {"ns", "M/s", "MB/s"};
    const char *unit = units[what->unit];
    int n = o->rounds, operations = what->operations * what->producers;

    qsort(sample, n, sizeof *sample, compare);
    double median = sample[n / 2], least = sample[0], p99 = sample[n * 99 / 100];
    if (o->csv)
        printf("%s,%d,%s,%.6g,%.6g,%.6g,%d,%d\n", what->name, gshmem_n_pes(), unit, median, least,
               p99, n, operations);
    else
        printf("%-22s %-5s %11.2f %11.2f %11.2f  %d x %d\n", what->name, unit, median, least, p99,
               n, operations);
    fflush(stdout);
}

static void print_head(const struct options *o, const void *mine, int peer)
{
    if (o->csv)
        printf("benchmark,pes,unit,median,min,p99,samples,iterations\n");
    else
        printf("# GSHMEM %s, %d PEs; the peer is %s\n%-22s %-5s %11s %11s %11s  samples\n",
               GSHMEM_VERSION_TEXT, gshmem_n_pes(),
               gshmem_ptr(mine, peer) ? "on this node; GSHMEM_MAPPED=0 goes through the proxy"
                                      : "on another node",
               "# benchmark", "unit", "median", "min", "p99");
}

/* All PEs call it; PE 0 prints. */
static bool measure(const struct options *o, const struct benchmark *what, struct job *j,
                    int channels, double *sample)
{
    int me = gshmem_my_pe();
    bool takes_part = me == 0 || what->who >= ALL || (what->who == PAIR && me == 1), good = true;

    const uint64_t turn = j->turn;

    j->bytes = what->bytes;
    if (what->who == LAYER) {
        if (!layer_make(&j->layer, gshmem_n_pes()))
            return false;
        j->turn = 0;
    }
    for (int round = -2; round < o->rounds; round++) { /* the first two warm up */
        gshmem_barrier_all();
        j->turn += what->who == LAYER;
        double value = takes_part ? round_of(what, j, channels) : 0;
        j->turn += what->who == LAYER ? 0 : TRIPS;
        good &= value >= 0;
        if (round >= 0)
            sample[round] = value;
    }
    if (what->who == LAYER) {
        layer_end(&j->layer);
        j->turn = turn;
    }
    if (me == 0 && good)
        print(o, what, sample);
    return good;
}

int main(int argc, char **argv)
{
    static double sample[ROUNDS_MOST];
    struct options o;
    unsigned channels = 0;
    struct job j = {};
    bool good = true;

    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: gshmem-perf-device [--rounds N] [--format csv] [BENCHMARK…]\n");
        return 2;
    }
    if (gshmem_init())
        return 1;
    j.board = (struct board *)gshmem_calloc(1, sizeof *j.board);
    j.peer = gshmem_my_pe() == 1 ? 0 : gshmem_n_pes() > 1;
    if (!j.board || cudaMalloc((void **)&j.ready, sizeof *j.ready) ||
        cudaMalloc((void **)&j.sum, RATE_BLOCKS * RATE_THREADS * sizeof *j.sum) ||
        cudaMalloc((void **)&j.begin, SIDE_BY_SIDE * sizeof *j.begin) ||
        cudaMalloc((void **)&j.end, SIDE_BY_SIDE * sizeof *j.end))
        return 1;
    count_channels<<<1, 1>>>(j.ready);
    cudaMemcpy(&channels, j.ready, sizeof channels, cudaMemcpyDefault);

    if (gshmem_my_pe() == 0)
        print_head(&o, j.board, j.peer);
    for (int i = 0; i < BENCHMARKS; i++) {
        const struct benchmark *what = benchmark(i);
        if (chosen(&o, what) && (what->who != PAIR || gshmem_n_pes() > 1))
            good &= measure(&o, what, &j, (int)channels, sample);
    }
    gshmem_barrier_all();
    cudaFree(j.end);
    cudaFree(j.begin);
    cudaFree(j.sum);
    cudaFree(j.ready);
    gshmem_raise(gshmem_free(j.board));
    return printed("gshmem-perf-device", gshmem_finalize() || !good);
}

/* Measures one-sided operations in kernels and on streams, in NVSHMEM's words alone: compiled with its own
 * headers and library it measures those, compiled by gshmemcc it measures GSHMEM. tests/gpu/compare
 * runs both in turn.
 *
 *     beside [--samples N] [--most BYTES] [ROW…]
 *
 * Prints a line for each row and size: row,scope,bytes,unit,median,least. A sample is one launch of a
 * kernel, or a run of calls on a stream, between two events; of as many operations as take half a
 * millisecond, and what a launch of none takes is taken off. Two PEs; of them one is at work, but in rows
 * for a pair or for all. Those need kernels that run at the same time: where PEs share a GPU and take
 * turns they are left out, and said so. */
#include "kernels.h"
#include "pes.h"

#include <string.h>

enum who { ALONE, ALL };
enum unit { NS, GIGABYTES, MILLIONS };
enum { SIZES = 8, SAMPLES_MOST = 1000, RATE_BLOCKS = 64, RATE_THREADS = 128, GRID = -1 };

static const size_t K = 1 << 10, M = 1 << 20;
static const double ENOUGH_US = 500;

struct row {
    const char *name, *scope;
    enum who who;
    enum unit unit;
    void (*kernel)(struct job j, long times);                     /* or */
    int (*on_stream)(const struct job &j, cudaStream_t stream);   /* one call */
    int blocks, threads;                                          /* GRID: one each multiprocessor */
    size_t sizes[SIZES];                                          /* up to a 0 */
};

#define KERNEL(what, scope) repeat<what, scope>, NULL
#define STREAM(call)        NULL, call, 0, 0

static const struct row rows[] = {
    {"p", "thread", ALONE, NS, KERNEL(DO_P, THREAD), 1, 1, {8}},
    {"g", "thread", ALONE, NS, KERNEL(DO_G, THREAD), 1, 1, {8}},
    {"put", "thread", ALONE, NS, KERNEL(DO_PUT, THREAD), 1, 1, {8, K, 32 * K}},
    {"put", "warp", ALONE, NS, KERNEL(DO_PUT, WARP), 1, 32, {8, K, 32 * K}},
    {"put", "block", ALONE, NS, KERNEL(DO_PUT, BLOCK), 1, 512, {8, K, 32 * K}},
    {"get", "thread", ALONE, NS, KERNEL(DO_GET, THREAD), 1, 1, {8, K, 32 * K}},
    {"get", "warp", ALONE, NS, KERNEL(DO_GET, WARP), 1, 32, {8, K, 32 * K}},
    {"get", "block", ALONE, NS, KERNEL(DO_GET, BLOCK), 1, 512, {8, K, 32 * K}},
    {"put_signal", "thread", ALONE, NS, KERNEL(DO_PUT_SIGNAL, THREAD), 1, 1, {8, K}},
    {"put_signal", "warp", ALONE, NS, KERNEL(DO_PUT_SIGNAL, WARP), 1, 32, {8, K, 32 * K}},
    {"put_signal", "block", ALONE, NS, KERNEL(DO_PUT_SIGNAL, BLOCK), 1, 512, {8, K, 32 * K}},
    {"fetch_add", "thread", ALONE, NS, KERNEL(DO_FETCH_ADD, THREAD), 1, 1, {8}},
    {"inc", "thread", ALONE, NS, KERNEL(DO_INC, THREAD), 1, 1, {8}},
    {"compare_swap", "thread", ALONE, NS, KERNEL(DO_COMPARE_SWAP, THREAD), 1, 1, {8}},
    {"put_bw", "thread", ALONE, GIGABYTES, KERNEL(DO_PUT_NBI, THREAD), 1, 1, {4 * K, 64 * K}},
    {"put_bw", "warp", ALONE, GIGABYTES, KERNEL(DO_PUT_NBI, WARP), 1, 32, {4 * K, 64 * K, M}},
    {"put_bw", "block", ALONE, GIGABYTES, KERNEL(DO_PUT_NBI, BLOCK), 1, 1024, {4 * K, 64 * K, M, 16 * M}},
    {"put_bw", "blocks", ALONE, GIGABYTES, KERNEL(DO_PUT_NBI, BLOCK), GRID, 1024, {16 * M, 256 * M}},
    {"get_bw", "warp", ALONE, GIGABYTES, KERNEL(DO_GET_NBI, WARP), 1, 32, {4 * K, 64 * K, M}},
    {"get_bw", "block", ALONE, GIGABYTES, KERNEL(DO_GET_NBI, BLOCK), 1, 1024, {4 * K, 64 * K, M, 16 * M}},
    {"get_bw", "blocks", ALONE, GIGABYTES, KERNEL(DO_GET_NBI, BLOCK), GRID, 1024, {16 * M, 256 * M}},
    {"copy_bw", "stream", ALONE, GIGABYTES, STREAM(copy_on_stream), {16 * M, 256 * M}},
    {"rate", "thread", ALONE, MILLIONS, KERNEL(DO_P_NBI, THREAD), 1, 1, {8}},
    {"rate", "block", ALONE, MILLIONS, KERNEL(DO_P_NBI, THREAD), 1, RATE_THREADS, {8}},
    {"rate", "blocks", ALONE, MILLIONS, KERNEL(DO_P_NBI, THREAD), RATE_BLOCKS, RATE_THREADS, {8}},
    {"put", "stream", ALONE, NS, STREAM(put_on_stream), {8, 64 * K, M}},
    {"get", "stream", ALONE, NS, STREAM(get_on_stream), {8, 64 * K, M}},
    {"put_signal", "stream", ALONE, NS, STREAM(put_signal_on_stream), {8, 64 * K}},
    {"pingpong", "thread", ALL, NS, KERNEL(DO_PINGPONG, THREAD), 1, 1, {8, K}},
    {"sync_all", "thread", ALL, NS, KERNEL(DO_SYNC_ALL, THREAD), 1, 1, {8}},
    {"barrier_all", "thread", ALL, NS, KERNEL(DO_BARRIER_ALL, THREAD), 1, 1, {8}},
    {"barrier_all", "warp", ALL, NS, KERNEL(DO_BARRIER_ALL, WARP), 1, 32, {8}},
    {"barrier_all", "block", ALL, NS, KERNEL(DO_BARRIER_ALL, BLOCK), 1, 512, {8}},
    {"broadcast", "block", ALL, NS, KERNEL(DO_BROADCAST, BLOCK), 1, 512, {8, 64 * K, M}},
    {"fcollect", "block", ALL, NS, KERNEL(DO_FCOLLECT, BLOCK), 1, 512, {8, 64 * K, M}},
    {"alltoall", "block", ALL, NS, KERNEL(DO_ALLTOALL, BLOCK), 1, 512, {8, 64 * K, M}},
    {"reduce", "warp", ALL, NS, KERNEL(DO_REDUCE, WARP), 1, 32, {8, 4 * K}},
    {"reduce", "block", ALL, NS, KERNEL(DO_REDUCE, BLOCK), 1, 512, {8, 64 * K, M}},
    {"barrier_all", "stream", ALL, NS, STREAM(barrier_on_stream), {8}},
    {"reduce", "stream", ALL, NS, STREAM(reduce_on_stream), {8, 64 * K, M}},
    {"fcollect", "stream", ALL, NS, STREAM(fcollect_on_stream), {8, 64 * K, M}},
};

struct bench {
    struct pes *pes;
    struct job job;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    int samples, multiprocessors;
    size_t most;
};

/* Microseconds of one launch of that many; negative if it failed. */
static double launch(struct bench *b, const struct row *row, long times)
{
    int blocks = row->blocks == GRID ? b->multiprocessors : row->blocks, failed = 0;
    void *arguments[] = {&b->job, &times};
    float ms = -1;

    failed |= cudaEventRecord(b->begin, b->stream) != cudaSuccess;
    if (row->on_stream) {
        for (long i = 0; i < times && !failed; i++)
            failed = row->on_stream(b->job, b->stream);
    } else if (row->who == ALONE) {
        row->kernel<<<blocks, row->threads, 0, b->stream>>>(b->job, times);
    } else {
        failed |= nvshmemx_collective_launch((const void *)row->kernel, blocks, row->threads, arguments,
                                             0, b->stream);
    }
    failed |= cudaEventRecord(b->end, b->stream) != cudaSuccess;
    failed |= cudaStreamSynchronize(b->stream) != cudaSuccess;
    failed |= cudaEventElapsedTime(&ms, b->begin, b->end) != cudaSuccess;
    if (row->who == ALL) /* the same on all PEs */
        b->job.turn += (uint64_t)times;
    return failed ? -1 : 1e3 * ms;
}

/* As many as take long enough; all PEs of a row for all come to the same number. */
static long enough(struct bench *b, const struct row *row)
{
    struct page *page = b->pes->page;
    long times = 4;

    for (;;) {
        double us = launch(b, row, times);
        if (row->who == ALL)
            pes_meet(b->pes);
        if (us < 0)
            return -1;
        if (b->pes->me == 0) {
            page->times = times;
            page->again = us < ENOUGH_US && times < 1 << 22;
        }
        if (row->who == ALL)
            pes_meet(b->pes);
        if (!page->again)
            return times;
        times *= 4;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double in_unit(const struct bench *b, const struct row *row, double us)
{
    double threads = (double)row->threads * (row->blocks == GRID ? b->multiprocessors : row->blocks);

    switch (row->unit) {
    case GIGABYTES:
        return (double)b->job.bytes / (1e3 * us);
    case MILLIONS:
        return threads / us;
    default:
        return 1e3 * us;
    }
}

static bool measure(struct bench *b, const struct row *row)
{
    static const char *const units[] = {"ns", "GB/s", "M/s"};
    static double sample[SAMPLES_MOST], idle[SAMPLES_MOST];
    long times = enough(b, row);

    if (times < 0)
        return false;
    for (int i = 0; i < b->samples; i++) {
        if (row->who == ALL)
            pes_meet(b->pes);
        sample[i] = launch(b, row, times);
        if (row->who == ALL)
            pes_meet(b->pes);
        idle[i] = launch(b, row, 0);
        if (sample[i] < 0 || idle[i] < 0)
            return false;
    }
    if (b->pes->me != 0)
        return true;
    qsort(sample, b->samples, sizeof *sample, ascending);
    qsort(idle, b->samples, sizeof *idle, ascending);
    double nothing = idle[b->samples / 2], median = (sample[b->samples / 2] - nothing) / (double)times;
    double least = (sample[0] - nothing) / (double)times;
    printf("%s,%s,%zu,%s,%.6g,%.6g\n", row->name, row->scope, b->job.bytes, units[row->unit],
           in_unit(b, row, median), in_unit(b, row, least));
    fflush(stdout);
    return true;
}

static bool wanted(const struct row *row, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], row->name) == 0)
            return true;
    }
    return argc == 0;
}

/* What cannot be measured here is said, and the others are. */
static void measure_all(struct bench *b, int argc, char **argv)
{
    bool turns = pes_take_turns(b->pes);

    for (const struct row &row : rows) {
        if (!wanted(&row, argc, argv))
            continue;
        if (row.who == ALL && turns) {
            if (b->pes->me == 0)
                fprintf(stderr, "%s,%s: PEs that share a GPU take turns\n", row.name, row.scope);
            continue;
        }
        for (int i = 0; i < SIZES && row.sizes[i] && row.sizes[i] <= b->most; i++) {
            b->job.bytes = row.sizes[i];
            if ((row.who == ALL || b->pes->me == 0) && !measure(b, &row))
                fprintf(stderr, "%s,%s,%zu: not measured on PE %d\n", row.name, row.scope,
                        b->job.bytes, b->pes->me);
            pes_meet(b->pes);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench b = {};
    int first = 1, device = 0;

    b.samples = 11;
    b.most = 256 * M;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--samples") == 0)
            b.samples = atoi(argv[first + 1]);
        else if (strcmp(argv[first], "--most") == 0)
            b.most = strtoull(argv[first + 1], NULL, 0);
    }
    if (b.samples < 1 || b.samples > SAMPLES_MOST || b.most < 8) {
        fprintf(stderr, "usage: beside [--samples N] [--most BYTES] [ROW...]\n");
        return 2;
    }
    struct pes pes = pes_start(2);
    b.pes = &pes;
    pes_init(&pes);

    size_t room = 2 * (b.most > M ? b.most : M), words = RATE_BLOCKS * RATE_THREADS;
    b.job.peer = 1 - pes.me;
    b.job.to = (char *)nvshmem_malloc(room);
    b.job.from = (char *)nvshmem_calloc(room, 1);
    b.job.word = (long *)nvshmem_calloc(1, sizeof(long));
    b.job.words = (long *)nvshmem_calloc(words, sizeof(long));
    b.job.signal = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    if (!b.job.to || !b.job.from || !b.job.word || !b.job.words || !b.job.signal ||
        cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking) || cudaEventCreate(&b.begin) ||
        cudaEventCreate(&b.end) || cudaGetDevice(&device) ||
        cudaDeviceGetAttribute(&b.multiprocessors, cudaDevAttrMultiProcessorCount, device))
        return 1;
    if (pes.me == 0)
        printf("row,scope,bytes,unit,median,least\n");
    fflush(stdout);
    pes_meet(&pes);
    measure_all(&b, argc - first, argv + first);
    pes_meet(&pes);
    nvshmem_free(b.job.signal);
    nvshmem_free(b.job.words);
    nvshmem_free(b.job.word);
    nvshmem_free(b.job.from);
    nvshmem_free(b.job.to);
    nvshmem_finalize();
    return 0;
}

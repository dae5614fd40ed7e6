/* The measuring itself.
 *
 * A block is n operations between two readings of the clock, after a barrier; n is found by trying
 * until a block takes as long as asked, which also warms up. Where all PEs take part, a block took
 * as long as it took the slowest of them. Nothing is subtracted: the clock's own cost, some 25 ns a
 * block, is in the numbers. Where PEs outnumber CPUs a block would hide that most operations are
 * quick and a few wait for a time slice: each operation is timed by itself then. */
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include <library.h>

enum {
    LINE = 64,
    SLOTS_MAX = 64,
    SPREAD_MOST = 16 << 20, /* bytes of a buffer, where nobody gave sizes */
    OPERATIONS_MOST = 1 << 20,
};

static size_t buffer_bytes(const struct benchmark *what, size_t size, int n_pes)
{
    const bool no_bytes = what->sized == LATE || what->sized == THREADS;
    size_t bytes = no_bytes ? 0 : what->sized == SPREAD ? size * (size_t)n_pes : size;

    return bytes ? (bytes + LINE - 1) / LINE * LINE : LINE;
}

/* How many buffers of that many bytes operations take turns on: a power of two. */
static size_t slots(const struct options *o, size_t bytes)
{
    size_t n = 1;

    while (n < SLOTS_MAX && 2 * n * bytes <= o->window)
        n *= 2;
    return n;
}

int bench_sizes(const struct bench *b, const struct benchmark *what, size_t size[SIZES_MAX])
{
    const struct options *o = b->options;
    const int given = what->sized == LATE      ? o->n_late
                      : what->sized == THREADS ? o->n_threads
                                               : o->n_sizes;
    const size_t *sizes = what->sized == LATE      ? o->late
                          : what->sized == THREADS ? o->threads
                                                   : o->size;
    int n = given, kept = 0;

    if (!what->sizes) {
        size[0] = 0;
        return 1;
    }
    if (n)
        memcpy(size, sizes, (size_t)n * sizeof(size[0]));
    else
        n = sizes_parse(what->sizes, size);
    for (int i = 0; i < n; i++) {
        size_t rounded = (size[i] + what->granule - 1) / what->granule * what->granule;
        bool repeated = kept > 0 && size[kept - 1] == rounded;
        bool huge =
            !given && kept > 0 && buffer_bytes(what, rounded, b->run.n_pes) > SPREAD_MOST;
        if (!repeated && !huge)
            size[kept++] = rounded;
    }
    return kept;
}

static size_t most_bytes(const struct bench *b)
{
    size_t most = LINE * SLOTS_MAX, size[SIZES_MAX];

    for (const struct benchmark *what = benchmarks; what->name; what++) {
        if (!options_selected(b->options, what))
            continue;
        for (int i = 0, n = bench_sizes(b, what, size); i < n; i++) {
            size_t one = buffer_bytes(what, size[i], b->run.n_pes);
            size_t all = one * slots(b->options, one);
            most = all > most ? all : most;
        }
    }
    return most;
}

bool bench_start(struct bench *b, const struct options *o)
{
    *b = (struct bench){.options = o};
    b->run.pe = lib_my_pe();
    b->run.n_pes = lib_n_pes();
    b->run.peer = (b->run.pe + 1) % b->run.n_pes;

    size_t n = (size_t)b->run.n_pes, buffers = most_bytes(b);
    size_t board = sizeof(*b->board) + n * sizeof(double) + n * sizeof(struct place);
    board = (board + 4095) / 4096 * 4096;
    char *memory = lib_alloc(board + 2 * buffers);
    if (!memory) {
        if (b->run.pe == 0)
            fprintf(stderr,
                    LIB_PROGRAM ": no %zu MiB of symmetric memory for these sizes; give smaller "
                                "--sizes, a smaller --window or more heap\n",
                    (board + 2 * buffers) >> 20);
        return false;
    }
    memset(memory, 0, board);
    memset(memory + board, 1, 2 * buffers);
    b->board = (struct board *)memory;
    b->place = (struct place *)(b->board->value + n);
    b->run.source = memory + board;
    b->run.dest = b->run.source + buffers;
    b->run.flag = &b->board->flag;
    b->run.counter = &b->board->counter;
    b->run.lock = &b->board->lock;
#if LIB_HAS_HINTS
    if (!(b->run.hinted = lib_alloc_for_atomics(64)))
        return false;
    memset(b->run.hinted, 0, 64);
#endif

    struct place mine;
    place_find(&mine);
    lib_barrier_all();
    lib_put(&b->place[b->run.pe], &mine, sizeof(mine), 0);
    lib_barrier_all();
    if (b->run.pe == 0)
        place_count(b->place, b->run.n_pes, &b->pes_here, &b->cpus_here);
    int oversubscribed = b->pes_here > b->cpus_here;
    if (b->run.pe == 0)
        for (int pe = 0; pe < b->run.n_pes; pe++)
            lib_p(b->run.counter, oversubscribed, pe);
    lib_barrier_all();
    b->oversubscribed = *(volatile long *)b->run.counter;
    return true;
}

void bench_stop(struct bench *b)
{
    lib_barrier_all();
#if LIB_HAS_HINTS
    lib_free(b->run.hinted);
#endif
    lib_free(b->board);
}

bool bench_able(const struct bench *b, const struct benchmark *what, const char **why)
{
    if (what->who == PAIR && b->run.n_pes < 2) {
        *why = "needs 2 PEs";
        return false;
    }
    return true;
}

/* PE 0's number, on all PEs. */
static uint64_t agree(struct bench *b, uint64_t number)
{
    if (b->run.pe == 0)
        for (int pe = 0; pe < b->run.n_pes; pe++)
            lib_put(&b->board->plan, &number, sizeof(number), pe);
    lib_barrier_all();
    number = *(volatile uint64_t *)&b->board->plan;
    lib_barrier_all();
    return number;
}

/* Everyone's value to PE 0. */
static void measure_gather(struct bench *b, double value)
{
    lib_put(&b->board->value[b->run.pe], &value, sizeof(value), 0);
    lib_barrier_all();
}

static double slowest(struct bench *b, double ns)
{
    measure_gather(b, ns);
    if (b->run.pe == 0)
        for (int pe = 0; pe < b->run.n_pes; pe++)
            if (b->board->value[pe] > ns)
                ns = b->board->value[pe];
    return ns;
}

static bool takes_part(const struct bench *b, const struct benchmark *what)
{
    return what->who == ALL || b->run.pe == 0 || (what->who == PAIR && b->run.pe == 1);
}

/* How long n operations took, ns; known to PE 0. */
static double block(struct bench *b, const struct benchmark *what, uint64_t n)
{
    double ns = 0;

    lib_barrier_all();
    if (takes_part(b, what)) {
        uint64_t begin = machine_ns();
        what->loop(&b->run, n);
        ns = (double)(machine_ns() - begin);
    }
    return what->who == ALL ? slowest(b, ns) : ns;
}

/* The number of operations that take as long as a block should. The first try uses every buffer, so
 * that pages are mapped before time counts. */
static uint64_t calibrate(struct bench *b, const struct benchmark *what)
{
    double goal = b->options->block_ns;
    uint64_t n = 1;

    block(b, what, b->run.mask + 1);
    if (b->options->iterations) {
        if (b->options->warmup)
            block(b, what, (uint64_t)b->options->warmup);
        return (uint64_t)b->options->iterations;
    }
    for (int tries = 0; tries < 40; tries++) {
        double ns = block(b, what, n), again = block(b, what, n);
        ns = again < ns ? again : ns; /* one of them may have been interrupted */
        double wanted = ns > 0 ? (double)n * goal / ns : 16 * (double)n;
        bool near = ns >= goal / 2;
        if (wanted > 16 * (double)n)
            wanted = 16 * (double)n;
        if (wanted > (1 << 30))
            wanted = 1 << 30;
        uint64_t next = agree(b, ((wanted < 1 ? 1 : (uint64_t)wanted) << 1) | near);
        n = next >> 1;
        if (next & 1)
            break;
    }
    return n;
}

static double in_unit(const struct benchmark *what, size_t size, double ns)
{
    ns /= what->steps;
    switch (what->unit) {
    case GIGABYTES_PER_SECOND:
        return (double)size / ns;
    case MILLIONS_PER_SECOND:
        return 1e3 / ns;
    default:
        return ns;
    }
}

static bool measure_blocks(struct bench *b, const struct benchmark *what, struct result *result)
{
    bool kept = true;

    result->timed = "block";
    for (int round = 0; round < b->options->rounds; round++) {
        double ns = block(b, what, result->iterations) / (double)result->iterations;
        if (b->run.pe == 0 && kept)
            kept = samples_add(&result->samples, in_unit(what, b->run.size, ns));
    }
    return kept;
}

/* As PE 0 sees them: the time from the end of one operation to the end of the next. */
static bool measure_each(struct bench *b, const struct benchmark *what, struct result *result)
{
    bool kept = true;
    uint64_t n = result->iterations * (uint64_t)b->options->rounds;

    if (n < (uint64_t)b->options->least && !b->options->iterations)
        n = (uint64_t)b->options->least;
    if (n > OPERATIONS_MOST)
        n = OPERATIONS_MOST;
    if (what->operations)
        n = (uint64_t)what->operations;
    result->timed = "operation";
    lib_barrier_all();
    for (uint64_t i = 0, before = machine_ns(), now; i < n && takes_part(b, what);
         i++, before = now) {
        b->run.late_ns = 0;
        what->loop(&b->run, 1);
        now = machine_ns();
        if (b->run.pe == 0 && kept)
            kept = samples_add(
                &result->samples,
                in_unit(what, b->run.size, (double)(now - before) - (double)b->run.late_ns));
    }
    return kept;
}

static bool measure_once(struct bench *b, const struct benchmark *what, struct result *result)
{
    bool kept = true;

    result->timed = "once";
    measure_gather(b, what->once());
    if (b->run.pe == 0)
        for (int pe = 0; pe < b->run.n_pes && kept; pe++)
            kept = samples_add(&result->samples, b->board->value[pe]);
    return kept;
}

bool bench_measure(struct bench *b, const struct benchmark *what, size_t size,
                   struct result *result)
{
    bool kept;

    samples_clear(&result->samples);
    result->iterations = 1;
    b->run.size = size;
    b->run.stride = buffer_bytes(what, size, b->run.n_pes);
    b->run.mask = slots(b->options, b->run.stride) - 1;
    if (what->once) {
        kept = measure_once(b, what, result);
    } else {
        result->iterations = what->operations ? 1 : calibrate(b, what);
        if (what->operations || (what->who == ALL && (b->options->each || b->oversubscribed)))
            kept = measure_each(b, what, result);
        else
            kept = measure_blocks(b, what, result);
    }
    lib_barrier_all();
    samples_sort(&result->samples);
    return kept;
}

double result_median(const struct result *result)
{
    static const struct statistic median = {"median", 50};

    return samples_statistic(&result->samples, &median);
}

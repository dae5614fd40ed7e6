/* Reads the command line: one table of options, from which parsing and --help follow. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* the one header that is not of this folder: others measure with it, too */
#include "../../base/spelling.h"
#include "benchmark.h"
#include "options.h"
#include <library.h>

/* Each reads its value into o; false if the value is not one. */
static bool take_help(struct options *o, const char *value)
{
    (void)value;
    return o->help = true;
}

static bool take_version(struct options *o, const char *value)
{
    (void)value;
    return o->version = true;
}

static bool take_list(struct options *o, const char *value)
{
    (void)value;
    return o->list = true;
}

static bool take_each(struct options *o, const char *value)
{
    (void)value;
    return o->each = true;
}

static bool take_format(struct options *o, const char *value)
{
    o->csv = !strcmp(value, "csv");
    return o->csv || !strcmp(value, "text");
}

static bool take_plot(struct options *o, const char *value)
{
    o->plot = value;
    return value[0] != 0;
}

static bool parse_whole(const char *text, long least, long most, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *out >= least && *out <= most;
}

static bool take_rounds(struct options *o, const char *value)
{
    long rounds;

    if (!parse_whole(value, 1, 1000000, &rounds))
        return false;
    o->rounds = (int)rounds;
    return true;
}

static bool take_least(struct options *o, const char *value)
{
    long least;

    if (!parse_whole(value, 1, 1000000, &least))
        return false;
    o->least = (int)least;
    return true;
}

static bool take_time(struct options *o, const char *value)
{
    long microseconds;

    if (!parse_whole(value, 1, 10000000, &microseconds))
        return false;
    o->block_ns = 1e3 * (double)microseconds;
    return true;
}

static bool take_sizes(struct options *o, const char *value)
{
    o->n_sizes = sizes_parse(value, o->size);
    return o->n_sizes > 0;
}

enum { LATE_MOST = 10000000 }; /* microseconds */

static bool take_late(struct options *o, const char *value)
{
    o->n_late = sizes_parse(value, o->late);
    for (int i = 0; i < o->n_late; i++) {
        if (o->late[i] > LATE_MOST)
            return false;
    }
    return o->n_late > 0;
}

static bool take_threads(struct options *o, const char *value)
{
    o->n_threads = sizes_parse(value, o->threads);
    for (int i = 0; i < o->n_threads; i++) {
        if (o->threads[i] > THREADS_MOST)
            return false;
    }
    return o->n_threads > 0;
}

static bool parse_size(const char **text, size_t *size)
{
    static const char units[] = "kmg";
    unsigned long long number;
    const char *unit;
    int shift = 0;
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    number = strtoull(*text, &end, 10);
    if (*end && (unit = strchr(units, tolower((unsigned char)*end))))
        shift = 10 * (int)(unit - units + 1);
    if (errno || number > (1ull << 40) >> shift)
        return false;
    *size = (size_t)number << shift;
    *text = end + (shift > 0);
    return true;
}

static bool take_window(struct options *o, const char *value)
{
    return parse_size(&value, &o->window) && !*value;
}

/* ---- Options of NVSHMEM's performance tests, whose scripts say so ---- */

static bool take_least_size(struct options *o, const char *value)
{
    return parse_size(&value, &o->least_size) && !*value && o->least_size > 0;
}

static bool take_most_size(struct options *o, const char *value)
{
    return parse_size(&value, &o->most_size) && !*value && o->most_size > 0;
}

static bool take_factor(struct options *o, const char *value)
{
    return parse_size(&value, &o->factor) && !*value && o->factor > 1;
}

static bool take_iterations(struct options *o, const char *value)
{
    long iterations;

    if (!parse_whole(value, 1, 1000000, &iterations))
        return false;
    o->iterations = (int)iterations;
    return true;
}

static bool take_warmup(struct options *o, const char *value)
{
    long warmup;

    if (!parse_whole(value, 0, 1000000, &warmup))
        return false;
    o->warmup = (int)warmup;
    return true;
}

/* Those that ask for what the benchmarks here do not have. */
#define OF_KERNELS "it is of kernels, which gshmem-perf-device measures"
#define OF_ITS_OWN "each benchmark has its own (--list)"
static const struct {
    const char *name, *letter, *why;
} not_here[] = {
    {"--ctas", "-c", OF_KERNELS},      {"--threads_per_cta", "-t", OF_KERNELS},
    {"--scope", "-s", OF_KERNELS},     {"--cudagraph", "", OF_KERNELS},
    {"--datatype", "-d", OF_ITS_OWN},  {"--reduce_op", "-o", OF_ITS_OWN},
    {"--atomic_op", "-a", OF_ITS_OWN}, {"--stride", "-i", OF_ITS_OWN},
    {"--bidir", "", OF_ITS_OWN},       {"--msgrate", "", OF_ITS_OWN},
    {"--dir", "", OF_ITS_OWN},         {"--issue", "", OF_ITS_OWN},
};

static bool take_percentiles(struct options *o, const char *value)
{
    o->n_statistics = 0;
    for (;;) {
        size_t length = strcspn(value, ",");
        if (o->n_statistics == STATISTICS_MAX ||
            !statistic_parse(value, length, &o->statistic[o->n_statistics]))
            return false;
        o->n_statistics++;
        if (!value[length])
            return true;
        value += length + 1;
    }
}

static const struct {
    const char *name;
    const char *value; /* what it is called in --help; NULL: the option takes none */
    bool (*take)(struct options *o, const char *value);
    const char *expects;
    const char *text;
} table[] = {
    {"--sizes", "LIST", take_sizes,
     "sizes such as 8,1M or ranges such as 1-64K or 8-1M*8, up to 1T",
     "sizes for benchmarks that have one: 8,1M or a range 1-64K (doubling) or 8-1M*8"},
    {"--late", "LIST", take_late, "microseconds such as 100,1000, up to 10000000",
     "microseconds by which a PE is late in late_wait and late_barrier, which have no sizes"},
    {"--threads", "LIST", take_threads, "numbers such as 1,2,8, up to 64",
     "how many threads of PE 0 call in the rows threads_..., which have no sizes"},
    {"--rounds", "N", take_rounds, "a number from 1 to 1000000", "blocks to measure (20)"},
    {"--time", "US", take_time, "microseconds from 1 to 10000000",
     "microseconds that a block of operations should take (500)"},
    {"--each", NULL, take_each, "",
     "time single operations of all PEs instead of blocks; it is so where PEs share CPUs"},
    {"--least", "N", take_least, "a number from 1 to 1000000",
     "operations to time where they are timed one by one (200: fewer have no 99th percentile)"},
    {"--window", "SIZE", take_window, "a size such as 4M, or 0",
     "operations take turns on this much memory (4M); 0: always on the same"},
    {"--percentiles", "LIST", take_percentiles, "names out of median,min,max,mean,p99,p99.9,…",
     "the columns (median,min,p99), also max, mean, and any pNN"},
    {"--format", "text|csv", take_format, "text or csv", "how PE 0 prints (text)"},
    {"--min_msg_size", "SIZE", take_least_size, "a size such as 4 or 1K",
     "as in NVSHMEM's performance tests, also -b: the least size (4)"},
    {"--max_msg_size", "SIZE", take_most_size, "a size such as 4M", "also -e: the largest (4M)"},
    {"--step", "N", take_factor, "a number from 2",
     "also -f: from one size to the next, times (2)"},
    {"--iters", "N", take_iterations, "a number from 1 to 1000000",
     "also -n: operations in a block, however long they take"},
    {"--warmup_iters", "N", take_warmup, "a number from 0 to 1000000",
     "also -w: operations before the first block, with --iters (0)"},
    {"-b", "SIZE", take_least_size, "a size such as 4 or 1K", NULL},
    {"-e", "SIZE", take_most_size, "a size such as 4M", NULL},
    {"-f", "N", take_factor, "a number from 2", NULL},
    {"-n", "N", take_iterations, "a number from 1 to 1000000", NULL},
    {"-w", "N", take_warmup, "a number from 0 to 1000000", NULL},
    {"--plot", "FOLDER", take_plot, "a folder",
     "print nothing, and draw the results, which are left in FOLDER/results.csv (gshmem-plot)"},
    {"--list", NULL, take_list, "", "list the benchmarks and end"},
    {"--version", NULL, take_version, "", "name the library that is measured, and end"},
    {"--help", NULL, take_help, "", "print this and end (also -h)"},
    {"-h", NULL, take_help, "", NULL},
};

int sizes_parse(const char *text, size_t size[SIZES_MAX])
{
    int n = 0;

    for (;;) {
        size_t from, to, factor = 2;

        if (!parse_size(&text, &from) || from == 0)
            return -1;
        to = from;
        if (*text == '-') {
            text++;
            if (!parse_size(&text, &to) || to < from)
                return -1;
            if (*text == '*') {
                text++;
                if (!parse_size(&text, &factor) || factor < 2)
                    return -1;
            }
        }
        for (size_t next = from; next <= to; next *= factor) {
            if (n == SIZES_MAX)
                return -1;
            size[n++] = next;
            if (next > to / factor)
                break;
        }
        if (!*text)
            return n;
        if (*text++ != ',')
            return -1;
    }
}

static bool wrong(char *why, size_t why_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool wrong(char *why, size_t why_size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, why_size, format, args);
    va_end(args);
    return false;
}

/* Takes argv[*i], and argv[*i + 1] if that is its value ("--rounds=3" works too). */
static bool take_option(struct options *o, int argc, char **argv, int *i, char *why,
                        size_t why_size)
{
    const char *argument = argv[*i], *value = strchr(argument, '=');
    size_t length = value ? (size_t)(value++ - argument) : strlen(argument);

    for (size_t t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
        if (strlen(table[t].name) != length || strncmp(table[t].name, argument, length))
            continue;
        if (!table[t].value) {
            if (value)
                return wrong(why, why_size, "%s takes no value", table[t].name);
        } else if (!value) {
            if (*i + 1 >= argc)
                return wrong(why, why_size, "%s needs a value: %s", table[t].name,
                             table[t].expects);
            value = argv[++*i];
        }
        if (!table[t].take(o, value))
            return wrong(why, why_size, "%s %s: expected %s", table[t].name, value,
                         table[t].expects);
        return true;
    }
    for (size_t t = 0; t < sizeof(not_here) / sizeof(not_here[0]); t++) {
        if (strncmp(argument, not_here[t].name, length) == 0
                ? !not_here[t].name[length]
                : !strcmp(argument, not_here[t].letter))
            return wrong(why, why_size, "%s of NVSHMEM's performance tests: %s", argument,
                         not_here[t].why);
    }
    return wrong(why, why_size, "unknown option %s; --help lists them", argument);
}

/* The sizes of --min_msg_size and its kind. */
static bool options_add_range(struct options *o, char *why, size_t why_size)
{
    char range[80];

    if (!o->least_size && !o->most_size && !o->factor)
        return true;
    if (o->n_sizes)
        return wrong(why, why_size,
                     "--sizes and --min_msg_size, --max_msg_size or --step: give "
                     "sizes in one of the two ways");
    snprintf(range, sizeof(range), "%zu-%zu*%zu", o->least_size ? o->least_size : 4,
             o->most_size ? o->most_size : 4 << 20, o->factor ? o->factor : 2);
    return take_sizes(o, range) ||
           wrong(why, why_size, "sizes %s: the least is larger than the largest", range);
}

static bool no_benchmark(const char *name, char *why, size_t why_size)
{
    const struct benchmark *nearest = benchmarks;

    for (const struct benchmark *b = benchmarks; b->name; b++)
        if (spelling_distance(name, b->name) < spelling_distance(name, nearest->name))
            nearest = b;
    if (spelling_distance(name, nearest->name) <= 3)
        return wrong(why, why_size, "no benchmark %s; did you mean %s? (--list lists them)", name,
                     nearest->name);
    return wrong(why, why_size, "no benchmark %s; --list lists them", name);
}

bool perf_options_parse(struct options *o, int argc, char **argv, char *why, size_t why_size)
{
    *o = (struct options){.rounds = 20, .least = 200, .block_ns = 500e3, .window = 4 << 20};
    take_percentiles(o, "median,min,p99");
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (!take_option(o, argc, argv, &i, why, why_size))
                return false;
            continue;
        }
        if (!strcmp(argv[i], "irregular")) {
            o->irregular = true;
            continue;
        }
        if (!strcmp(argv[i], "threads")) {
            o->by_threads = true;
            continue;
        }
        if (o->n_selected == SELECTED_MAX)
            return wrong(why, why_size, "more than %d benchmarks", SELECTED_MAX);
        if (!(o->selected[o->n_selected++] = benchmark_find(argv[i])))
            return no_benchmark(argv[i], why, why_size);
    }
    if (o->warmup && !o->iterations)
        return wrong(why, why_size,
                     "--warmup_iters needs --iters: without, blocks are tried "
                     "until one takes as long as --time says, which warms up");
    return options_add_range(o, why, why_size);
}

bool options_selected(const struct options *o, const struct benchmark *what)
{
    const bool by_threads = what->sized == THREADS;

    if (by_threads ? o->by_threads : o->irregular && what->beside)
        return true;
    if (o->n_selected == 0)
        return !by_threads && !o->irregular && !o->by_threads;
    for (int i = 0; i < o->n_selected; i++)
        if (o->selected[i] == what)
            return true;
    return false;
}

bool options_need_threads(const struct options *o)
{
    for (const struct benchmark *b = benchmarks; b->name; b++)
        if (b->sized == THREADS && options_selected(o, b))
            return true;
    return false;
}

void options_help(FILE *to)
{
    fprintf(to, "usage: " LIB_PROGRAM " [OPTION…] [BENCHMARK…]\n\n"
                "Measures the named benchmarks, or all but those of threads; \"irregular\" and\n"
                "\"threads\" stand for all rows of their kind. Start it with any launcher, e.g.\n"
                "    gshmemrun -n 2 --bind core " LIB_PROGRAM " put get --sizes 8,1M\n\n");
    for (size_t t = 0; t < sizeof(table) / sizeof(table[0]); t++)
        if (table[t].text)
            fprintf(to, "  %-14s %-8s %s\n", table[t].name, table[t].value ? table[t].value : "",
                    table[t].text);
}

void options_list(FILE *to)
{
    for (const struct benchmark *b = benchmarks; b->name; b++)
        fprintf(to, "%-16s %-5s %s\n", b->name, benchmark_unit_name(b->unit), b->text);
}

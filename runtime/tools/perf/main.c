/* gshmem-perf: measures the library it is built with; see README.md. */
#include <stdio.h>
#include <string.h>

#include "../../base/printed.h"
#include "measure.h"
#include "plot.h"
#include "report.h"
#include "startup.h"
#include <library.h>

/* How many results there will be. */
static int count_rows(const struct bench *b)
{
    size_t size[SIZES_MAX];
    const char *why;
    int rows = 0;

    for (const struct benchmark *what = benchmarks; what->name; what++) {
        if (options_selected(b->options, what) && bench_able(b, what, &why))
            rows += bench_sizes(b, what, size);
    }
    return rows;
}

/* All PEs measure; PE 0 prints. False, after saying so, if something stopped it. */
static bool measure_all(struct bench *b)
{
    const struct options *o = b->options;
    struct result result = {0};
    double beside[SIZES_MAX] = {0}; /* by size, medians of the last row that others are compared
                                       with */
    size_t size[SIZES_MAX];
    const int rows = count_rows(b);
    const char *why;
    bool good = true;
    int row = 0;

    for (const struct benchmark *what = benchmarks; what->name; what++) {
        if (!options_selected(o, what))
            continue;
        if (!bench_able(b, what, &why)) {
            if (b->run.pe == 0)
                report_skip(b, what, why);
            continue;
        }
        for (int i = 0, n = bench_sizes(b, what, size); i < n; i++) {
            if (b->run.pe == 0)
                report_progress(what, size[i], row++, rows);
            if (!bench_measure(b, what, size[i], &result)) {
                fprintf(stderr, LIB_PROGRAM ": %s: no memory for samples; give fewer --rounds\n",
                        what->name);
                good = false;
            } else if (b->run.pe == 0) {
                result.beside = what->beside && strcmp(what->beside, what->name) ? beside[i] : 0;
                report_result(b, what, size[i], &result);
                if (what->beside && !strcmp(what->beside, what->name))
                    beside[i] = result_median(&result);
            }
        }
    }
    report_progress_end();
    samples_free(&result.samples);
    return good;
}

static bool main_run(const struct options *o)
{
    char library[64] = "";
    struct bench b;

    if (!bench_start(&b, o))
        return false;
    lib_name(library);
    if (o->plot && b.run.pe == 0 && !plot_begin(o->plot, library)) {
        bench_stop(&b);
        return false;
    }
    if (b.run.pe == 0)
        report_begin(&b);
    bool good = measure_all(&b);
    bench_stop(&b);
    return good;
}

static void print_version(FILE *to)
{
    char name[64] = "";

    lib_name(name);
    fprintf(to, LIB_PROGRAM " (%s)\n", name);
}

/* The command line is read first and judged after the start, when it is known who is PE 0: a
 * mistake in it is then told once. */
int main(int argc, char **argv)
{
    struct options o;
    char why[400] = "";
    bool understood = perf_options_parse(&o, argc, argv, why, sizeof(why));
    int status = 0;

    if (startup(understood && options_need_threads(&o)) != 0)
        return 1;
    const bool is_first = lib_my_pe() == 0;
    o.csv |= understood && o.plot;
    if (!understood) {
        status = 2;
        if (lib_my_pe() == 0)
            fprintf(stderr, LIB_PROGRAM ": %s\n", why);
    } else if (o.help || o.list || o.version) {
        if (lib_my_pe() == 0)
            (o.help ? options_help : o.list ? options_list : print_version)(stdout);
    } else {
        status = main_run(&o) ? 0 : 1;
    }
    lib_finalize();
    if (o.plot && !status && is_first && !plot_end(o.plot))
        status = 1;
    return printed(LIB_PROGRAM, status);
}

/* One line a result. In CSV what is not a result goes to stderr. Where stderr is a terminal it also
 * shows what is being measured. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include <library.h>

/* ---- Progress ---- */

static struct {
    bool shown; /* there is a line on the terminal, which is taken away before the next one */
    double began; /* s */
} progress;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void report_progress(const struct benchmark *what, size_t size, int row, int rows)
{
    if (!isatty(STDERR_FILENO))
        return;
    const double now = seconds();
    report_progress_end();
    if (row == 0)
        progress.began = now;
    fprintf(stderr, "[%d of %d] %s", row + 1, rows, what->name);
    if (what->sizes)
        fprintf(stderr, ", %zu %s", size,
                what->sized == LATE      ? "us late"
                : what->sized == THREADS ? "threads"
                                         : "bytes");
    if (row) /* as if all took the same time */
        fprintf(stderr, "; about %.0f s left", (now - progress.began) / row * (rows - row));
    fflush(stderr);
    progress.shown = true;
}

void report_progress_end(void)
{
    if (!progress.shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress.shown = false;
}

/* ---- Results ---- */

void report_begin(const struct bench *b)
{
    const struct options *o = b->options;
    char library[64];

    lib_name(library);
    if (b->oversubscribed)
        fprintf(
            o->csv ? stderr : stdout,
            "# %d PEs share %d CPUs: they take turns, so operations of all PEs are timed one by "
            "one\n",
            b->pes_here, b->cpus_here);
    if (o->csv) {
        printf("library,benchmark,pes,cpus,size,unit");
        for (int i = 0; i < o->n_statistics; i++)
            printf(",%s", o->statistic[i].name);
        printf(",samples,iterations,timed\n");
    } else {
        printf("# %s, %d PE%s; %d on PE 0's node, on %d CPUs\n", library, b->run.n_pes,
               b->run.n_pes == 1 ? "" : "s", b->pes_here, b->cpus_here);
        printf("%-16s %9s %-5s", "# benchmark", "size", "unit");
        for (int i = 0; i < o->n_statistics; i++)
            printf(" %11s", o->statistic[i].name);
        printf("  samples\n");
    }
    fflush(stdout);
}

void report_result(const struct bench *b, const struct benchmark *what, size_t size,
                   const struct result *result)
{
    const struct options *o = b->options;
    const char *unit = benchmark_unit_name(what->unit);
    char library[64];

    report_progress_end();
    if (o->csv) {
        lib_name(library);
        printf("%s,%s,%d,%d,", library, what->name, b->run.n_pes, b->cpus_here);
        if (what->sizes)
            printf("%zu", size);
        printf(",%s", unit);
        for (int i = 0; i < o->n_statistics; i++)
            printf(",%.6g", samples_statistic(&result->samples, &o->statistic[i]));
        printf(",%zu,%llu,%s\n", result->samples.n, (unsigned long long)result->iterations,
               result->timed);
    } else {
        printf("%-16s ", what->name);
        if (what->sizes)
            printf("%9zu", size);
        else
            printf("%9s", "-");
        printf(" %-5s", unit);
        for (int i = 0; i < o->n_statistics; i++) {
            double value = samples_statistic(&result->samples, &o->statistic[i]);
            printf(" %11.*f", value < 1000 ? 2 : 0, value);
        }
        if (what->once)
            printf("  %zu PEs", result->samples.n);
        else if (*result->timed == 'o')
            printf("  %zu operations", result->samples.n);
        else
            printf("  %zu x %llu", result->samples.n, (unsigned long long)result->iterations);
        if (result->beside > 0)
            printf(", %.2f of %s", result_median(result) / result->beside, what->beside);
        printf("\n");
    }
    fflush(stdout);
}

void report_skip(const struct bench *b, const struct benchmark *what, const char *why)
{
    report_progress_end();
    fprintf(b->options->csv ? stderr : stdout, "# %s: skipped: %s\n", what->name, why);
}

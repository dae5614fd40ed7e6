/* gshmem-trace: the traces of all PEs of a job as one picture, or as text. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/printed.h"
#include "runtime/trace/traced.h"

static const char usage[] =
    "usage: gshmem-trace FOLDER -o FILE.json | --summary | --critical-path | --numbers FILE.json\n"
    "                    [--job NUMBER]\n"
    "  Reads what the PEs of a job have left in the folder that GSHMEM_TRACE named.\n"
    "  -o FILE.json      a picture: open it at ui.perfetto.dev or in chrome://tracing\n"
    "  --summary         where the time went, the longest waits and who ended them\n"
    "  --numbers FILE.json  the summary's times, which gshmem-plot draws\n"
    "  --critical-path   the chain of events that made the job as long as it was\n"
    "  --job NUMBER      where the folder has several jobs\n";

struct wanted {
    const char *folder, *output, *numbers;
    bool summary, path;
    uint64_t job;
};

static int gshmem_trace_refuse(const char *what)
{
    fprintf(stderr, "gshmem-trace: %s\n%s", what, usage);
    return 2;
}

/* 0: all is well; -1: nothing is to be done; else the exit status. */
static int parse_arguments(int argc, char **argv, struct wanted *w)
{
    static const struct option options[] = {{"summary", no_argument, NULL, 's'},
                                            {"critical-path", no_argument, NULL, 'p'},
                                            {"numbers", required_argument, NULL, 'n'},
                                            {"job", required_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {0}};
    char *end;
    int c;

    while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            w->output = optarg;
            break;
        case 's':
            w->summary = true;
            break;
        case 'p':
            w->path = true;
            break;
        case 'n':
            w->numbers = optarg;
            break;
        case 'j':
            w->job = strtoull(optarg, &end, 16);
            if (*end || !w->job)
                return gshmem_trace_refuse("--job takes a job's number, as in its files' names");
            break;
        case 'h':
            fputs(usage, stdout);
            return -1;
        case 'v':
            puts("gshmem-trace " GSHMEM_VERSION_TEXT);
            return -1;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind + 1 != argc)
        return gshmem_trace_refuse(optind == argc ? "name the folder with the traces"
                                                  : "one folder is read at a time");
    w->folder = argv[optind];
    if (!w->output && !w->summary && !w->path && !w->numbers)
        return gshmem_trace_refuse("say what to make: -o, --summary, --critical-path or --numbers");
    return 0;
}

static bool write_file(const struct traced *t, const struct intervals *s, const char *path,
                       bool (*write)(const struct traced *t, const struct intervals *s, FILE *to))
{
    FILE *to = fopen(path, "we");
    bool good = to && write(t, s, to);

    if (to && fclose(to))
        good = false;
    if (!good)
        fprintf(stderr, "gshmem-trace: cannot write %s: %s\n", path, strerror(errno));
    return good;
}

static void tell_overwritten(const struct traced *t)
{
    for (int i = 0; i < t->n; i++) {
        if (t->pe[i].overwritten)
            fprintf(stderr,
                    "gshmem-trace: PE %d: the oldest %llu events were overwritten; a larger "
                    "GSHMEM_TRACE_SIZE keeps more\n",
                    t->pe[i].pe, (unsigned long long)t->pe[i].overwritten);
        if (t->pe[i].lost)
            fprintf(stderr,
                    "gshmem-trace: PE %d: %llu events found no room, since other threads held it; "
                    "a larger GSHMEM_TRACE_SIZE has more\n",
                    t->pe[i].pe, (unsigned long long)t->pe[i].lost);
    }
}

int main(int argc, char **argv)
{
    struct wanted w = {0};
    struct intervals s = {0};
    struct traced t;
    int status = parse_arguments(argc, argv, &w);

    if (status)
        return status < 0 ? printed("gshmem-trace", 0) : status;
    bool good = traced_load(&t, w.folder, w.job);
    if (good) {
        traced_align(&t);
        tell_overwritten(&t);
        good = t.step && intervals_find(&s, &t);
        if (!good)
            fprintf(stderr, "gshmem-trace: there is no memory for these traces\n");
    }
    if (good && w.output)
        good = write_file(&t, &s, w.output, json_write);
    if (good && w.numbers)
        good = write_file(&t, &s, w.numbers, numbers_write);
    if (good && w.summary)
        summary_write(&t, &s, stdout);
    if (good && w.path)
        path_write(&t, &s, stdout);
    intervals_free(&s);
    traced_free(&t);
    return printed("gshmem-trace", good ? 0 : 1);
}

/* The report of counts with which a job ends (GSHMEM_STATS): PE 0 gets those of all PEs and writes
 * one table, or one file. Where that fails each PE writes its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/base/absolute_path.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/life.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"
#include "runtime/stats/stats.h"

static bool counts_is_word(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcasecmp(text, *words) == 0)
            return true;
    }
    return false;
}

bool counts_wanted(void)
{
    static const char *const no[] = {"", "0", "no", "off", "false", NULL};

    return !counts_is_word(settings_string(SETTING_STATS), no);
}

/* Whether the file can be written, found out before the job computes for hours. What is no file,
 * such as a pipe, is opened once only, at the end. */
static void counts_try_file(const char *path)
{
    struct stat is;

    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode))
        return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        log_warn("GSHMEM_STATS: the counts cannot be written to %s: %s", path, strerror(errno));
    else
        close(fd);
}

bool counts_begin(struct job *j)
{
    static const char *const yes[] = {"1", "yes", "on", "true", NULL};
    const char *file = settings_string(SETTING_STATS);

    if (!j->stats->wanted || counts_is_word(file, yes))
        return true;
    if (!(j->stats->file = absolute_path(file)))
        return false;
    if (j->pe == 0)
        counts_try_file(j->stats->file);
    return true;
}

size_t counts_shown_bytes(int n_pes)
{
    return (stats_sums_bytes(n_pes) + 63) / 64 * 64;
}

/* ---- Writing ---- */

/* In one piece, so that reports of several PEs do not mix. */
static bool counts_write_all(const char *text, size_t bytes)
{
    ssize_t done;

    while (bytes && ((done = write(STDERR_FILENO, text, bytes)) > 0 || errno == EINTR)) {
        text += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return bytes == 0;
}

static bool print_table(const struct stats_report *r)
{
    size_t bytes = 0;
    char *text = NULL;
    FILE *to = open_memstream(&text, &bytes);

    if (!to)
        return false;
    stats_print(to, r);
    const bool printed = fclose(to) == 0 && counts_write_all(text, bytes);
    free(text);
    return printed;
}

/* A file that is larger than the process may write would end it by a signal. */
static bool counts_may_write(size_t bytes)
{
    struct rlimit most;

    if (getrlimit(RLIMIT_FSIZE, &most) || bytes <= most.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

static bool counts_write_file(const char *path, const char *text, size_t bytes)
{
    FILE *to = fopen(path, "we");

    if (!to)
        return false;
    const bool good = fwrite(text, 1, bytes, to) == bytes;
    return fclose(to) == 0 && good;
}

static bool print_file(const char *path, const struct stats_report *r)
{
    size_t bytes = 0;
    char *text = NULL;
    FILE *to = open_memstream(&text, &bytes);

    if (!to)
        return false;
    stats_print_json(to, r);
    const bool good = fclose(to) == 0 && counts_may_write(bytes) &&
                      counts_write_file(path, text, bytes);
    const int problem = errno;
    free(text);
    errno = problem;
    return good;
}

/* own: of this PE alone, beside those of other PEs. */
static void write_report(const char *file, const struct stats_report *r, bool own)
{
    char path[4200];

    if (!file) {
        if (!print_table(r))
            log_warn("GSHMEM_STATS: the table cannot be printed: %s", strerror(errno));
        return;
    }
    snprintf(path, sizeof path, own && r->n_pes > 1 ? "%s.%d" : "%s", file, r->pe[0]);
    if (!print_file(path, r))
        log_warn("GSHMEM_STATS: the counts cannot be written to %s: %s", path, strerror(errno));
}

/* ---- This PE's own ---- */

static const char *network_name(const struct job *j)
{
    return j->network && j->network->remote ? j->network->remote->ops->name : NULL;
}

void counts_report_own(struct job *j)
{
    struct stats_sums *sums;

    if (!j->stats->wanted || j->stats->reported)
        return;
    j->stats->reported = true;
    if (!(sums = malloc(stats_sums_bytes(j->n_pes)))) {
        log_warn("GSHMEM_STATS: out of memory for the counts of this PE");
        return;
    }
    stats_sum(j->stats, sums);
    const struct stats_sums *const of[] = {sums};
    write_report(j->stats->file,
                 &(struct stats_report){.n = 1,
                                        .n_pes = j->n_pes,
                                        .pe = &j->pe,
                                        .of = of,
                                        .network = network_name(j)},
                 true);
    free(sums);
}

/* ---- The job's ---- */

void counts_show(struct job *j)
{
    const uintptr_t system = map_mapped(j->map, SEGMENT_SYSTEM, j->pe);

    if (j->stats->gathers)
        stats_sum(j->stats, (struct stats_sums *)(system + j->stats->shown_at));
}

/* A copy, which the caller frees; NULL after a logged line. */
static struct stats_sums *counts_get(struct job *j, int pe)
{
    const size_t bytes = stats_sums_bytes(j->n_pes);
    const uintptr_t system = map_mapped(j->map, SEGMENT_SYSTEM, pe);
    struct stats_sums *copy = malloc(bytes);
    struct transport_request get = {
        .pe = pe, .segment = SEGMENT_SYSTEM, .offset = j->stats->shown_at, .bytes = bytes};

    if (!copy) {
        log_warn("GSHMEM_STATS: out of memory for the counts of PE %d", pe);
        return NULL;
    }
    if (system) {
        memcpy(copy, (void *)(system + j->stats->shown_at), bytes);
    } else if (network_fetch(j->network, &get, copy, "gshmem_finalize")) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* The PEs that could be asked. */
static void report_of(struct job *j, struct stats_sums **of, int *pe)
{
    struct stats_report r = {.n_pes = j->n_pes,
                             .pe = pe,
                             .of = (const struct stats_sums *const *)of,
                             .network = network_name(j)};

    for (int i = 0; i < j->n_pes; i++) {
        if ((of[r.n] = counts_get(j, i)))
            pe[r.n++] = i;
    }
    if (r.n)
        write_report(j->stats->file, &r, false);
    for (int i = 0; i < r.n; i++)
        free(of[i]);
}

void counts_report_job(struct job *j)
{
    struct stats_sums **of;
    int *pe;

    j->stats->reported = true;
    if (j->pe != 0)
        return;
    of = calloc((size_t)j->n_pes, sizeof *of);
    pe = calloc((size_t)j->n_pes, sizeof *pe);
    if (of && pe)
        report_of(j, of, pe);
    else
        log_warn("GSHMEM_STATS: out of memory for the counts of %d PEs", j->n_pes);
    free(of);
    free(pe);
}

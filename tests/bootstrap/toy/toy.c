/* A starter as small as one can be: a directory of files that all PEs see. ../conform.c tries it.
 *
 * `start` makes the directory, starts the PEs, and tells them where it is, which of them each is,
 * and how many there are. A PE's blob of a round is a file, which is whole when it has its name. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 65, NAP_NS = 1000000 };

struct toy {
    struct bootstrap base;
    struct bootstrap_request core;
    const char *folder;
    int *host;
};

/* Goes on where another init begins, so that no file means two rounds. */
static long last_round;

__attribute__((visibility("default"))) extern const struct bootstrap_ops gshmem_bootstrap;

static void path_of(const struct toy *t, char *path, long round, int pe)
{
    snprintf(path, PATH_BYTES, "%s/%ld.%d", t->folder, round, pe);
}

static gshmem_status_t write_file(const struct toy *t, long round, const void *data, size_t bytes)
{
    char path[PATH_BYTES], unfinished[PATH_BYTES + 4];

    path_of(t, path, round, t->base.pe);
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    FILE *f = fopen(unfinished, "wb");
    const size_t written = f ? fwrite(data, 1, bytes, f) : 0;
    if (!f || fclose(f) != 0 || written != bytes || rename(unfinished, path) != 0)
        return t->core.fail(GSHMEM_ERR_BOOTSTRAP, "toy: cannot write %s", path);
    return GSHMEM_OK;
}

/* At most `most` bytes, whatever the file has. */
static gshmem_status_t read_file(const struct toy *t, long round, int pe, void *data, size_t most,
                                 size_t *bytes)
{
    char path[PATH_BYTES];

    path_of(t, path, round, pe);
    FILE *f = fopen(path, "rb");
    if (!f)
        return t->core.fail(GSHMEM_ERR_BOOTSTRAP, "toy: cannot read %s", path);
    *bytes = fread(data, 1, most, f);
    fclose(f);
    return GSHMEM_OK;
}

/* Until all PEs have written their file of this round, or the time is over. */
static gshmem_status_t wait_for_all(const struct toy *t, long round)
{
    const time_t end = time(NULL) + t->core.timeout_seconds + 1;
    char path[PATH_BYTES], ended[PATH_BYTES];

    snprintf(ended, sizeof ended, "%s/ended", t->folder);
    for (int pe = 0; pe < t->base.n_pes; pe++) {
        path_of(t, path, round, pe);
        while (access(path, F_OK) != 0) {
            if (access(ended, F_OK) == 0)
                return t->core.fail(GSHMEM_ERR_ABORTED, "toy: a PE has ended the job");
            if (time(NULL) > end)
                return t->core.fail(GSHMEM_ERR_TIMEOUT, "toy: PE %d has not come within %d s", pe,
                                    t->core.timeout_seconds);
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
    return GSHMEM_OK;
}

/* PEs are on one host if its name is the same; hosts are numbered by their lowest PE. */
static gshmem_status_t number_hosts(struct toy *t)
{
    char(*name)[NAME_BYTES] = calloc((size_t)t->base.n_pes, sizeof *name), own[NAME_BYTES] = "";
    gshmem_status_t status = name ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
    size_t bytes;

    gethostname(own, sizeof own - 1);
    if (!status)
        status = write_file(t, ++last_round, own, strlen(own));
    if (!status)
        status = wait_for_all(t, last_round);
    for (int pe = 0, first; pe < t->base.n_pes && !status; pe++) {
        status = read_file(t, last_round, pe, name[pe], NAME_BYTES - 1, &bytes);
        for (first = 0; strcmp(name[first], name[pe]) != 0; first++)
            ;
        t->host[pe] = first == pe ? t->base.n_hosts++ : t->host[first];
    }
    free(name);
    return status;
}

static enum bootstrap_found toy_detect(const struct bootstrap_request *request, char *why,
                                       size_t size)
{
    const char *folder = getenv("TOY_FOLDER"), *pe = getenv("TOY_PE"), *n = getenv("TOY_PES");

    (void)request;
    snprintf(why, size, "TOY_FOLDER, TOY_PE, TOY_PES: %sset", folder && pe && n ? "" : "not all ");
    return folder && pe && n   ? BOOTSTRAP_PRESENT
           : folder || pe || n ? BOOTSTRAP_BROKEN
                               : BOOTSTRAP_ABSENT;
}

static void toy_close(struct bootstrap *b)
{
    free(((struct toy *)b)->host); /* its files stay for those who still read them */
    free(b);
}

static gshmem_status_t toy_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct toy *t = calloc(1, sizeof *t);
    const int n = atoi(getenv("TOY_PES")), pe = atoi(getenv("TOY_PE"));
    gshmem_status_t status = t && n > 0 ? GSHMEM_OK : GSHMEM_ERR_BOOTSTRAP;

    if (!status && (pe < 0 || pe >= n || !(t->host = calloc((size_t)n, sizeof *t->host))))
        status = GSHMEM_ERR_BOOTSTRAP;
    if (status) {
        free(t);
        return request->fail(status, "toy: PE %d of %d cannot be", pe, n);
    }
    t->base = (struct bootstrap){.ops = &gshmem_bootstrap, .pe = pe, .n_pes = n, .host = t->host};
    t->core = *request;
    t->folder = getenv("TOY_FOLDER");
    snprintf(t->base.job, sizeof t->base.job, "%s", basename(t->folder));
    if ((status = number_hosts(t)))
        toy_close(&t->base);
    else
        *out = &t->base;
    return status;
}

static gshmem_status_t toy_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    const struct toy *t = (struct toy *)b;
    char old[PATH_BYTES];

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return t->core.fail(GSHMEM_ERR_ARGUMENT, "toy: a blob of %zu bytes", bytes);
    path_of(t, old, last_round - 1, b->pe); /* all have published a later one, so nobody reads it */
    unlink(old);
    return write_file(t, ++last_round, blob, bytes);
}

static gshmem_status_t toy_fence(struct bootstrap *b)
{
    return wait_for_all((struct toy *)b, last_round);
}

static gshmem_status_t toy_fetch(struct bootstrap *b, int pe, void *blob, size_t most,
                                 size_t *bytes)
{
    const struct toy *t = (struct toy *)b;
    char data[BOOTSTRAP_BLOB_MAX];
    size_t n = 0;

    if (pe < 0 || pe >= b->n_pes)
        return t->core.fail(GSHMEM_ERR_ARGUMENT, "toy: PE %d of %d", pe, b->n_pes);
    gshmem_status_t status = read_file(t, last_round, pe, data, sizeof data, &n);
    if (!status && n > most)
        status = t->core.fail(GSHMEM_ERR_ARGUMENT, "toy: %zu bytes, room is for %zu", n, most);
    if (status)
        return status;
    memcpy(blob, data, n);
    *bytes = n;
    return GSHMEM_OK;
}

/* `start` ends all when it is asked to, with what this file says. PEs that see the file end by
 * themselves, so that it is whole when it appears. */
static void toy_abort(struct bootstrap *b, int status, const char *why)
{
    const char *start = getenv("TOY_START");
    const struct toy *t = (const struct toy *)b;
    char path[PATH_BYTES], own[PATH_BYTES];

    snprintf(path, sizeof path, "%s/ended", t->folder);
    snprintf(own, sizeof own, "%s/ended-%d", t->folder, b->pe);
    FILE *f = fopen(own, "w");
    if (f && fprintf(f, "%d\n%s\n", status, why) > 0 && fclose(f) == 0)
        rename(own, path);
    if (start)
        kill(atoi(start), SIGTERM);
}

const struct bootstrap_ops gshmem_bootstrap = {
    .size = sizeof(struct bootstrap_ops), .version = BOOTSTRAP_VERSION, .name = "toy",
    .detect = toy_detect, .open = toy_open, .publish = toy_publish, .fence = toy_fence,
    .fetch = toy_fetch, .abort = toy_abort, .close = toy_close,
};

/* The starter that is nobody: a job of one PE. */
#include "bootstrap/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct single {
    struct bootstrap base;
    unsigned char blob[BOOTSTRAP_BLOB_MAX];
    size_t bytes;
};

static const int node_of_all[1] = {0};

static enum bootstrap_found single_detect(const struct bootstrap_request *request, char *why,
                                          size_t why_size)
{
    (void)request;
    snprintf(why, why_size, "nobody started this process: a job of one PE");
    return BOOTSTRAP_PRESENT;
}

static gshmem_status_t single_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct single *s = calloc(1, sizeof *s);

    if (!s)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    s->base.ops = &bootstrap_single;
    s->base.n_pes = 1;
    s->base.n_hosts = 1;
    s->base.host = node_of_all;
    snprintf(s->base.job, sizeof s->base.job, "single-%d", (int)getpid());
    *out = &s->base;
    return GSHMEM_OK;
}

static gshmem_status_t single_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct single *s = (struct single *)b;

    if (bytes > sizeof s->blob)
        return GSHMEM_ERR_ARGUMENT;
    memcpy(s->blob, blob, bytes);
    s->bytes = bytes;
    return GSHMEM_OK;
}

static gshmem_status_t single_fence(struct bootstrap *b)
{
    (void)b;
    return GSHMEM_OK;
}

static gshmem_status_t single_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                    size_t *bytes)
{
    struct single *s = (struct single *)b;

    if (pe != 0 || s->bytes > capacity)
        return GSHMEM_ERR_ARGUMENT;
    memcpy(blob, s->blob, s->bytes);
    *bytes = s->bytes;
    return GSHMEM_OK;
}

static void single_abort(struct bootstrap *b, int status, const char *why)
{
    (void)b;
    (void)status;
    (void)why;
}

static void single_close(struct bootstrap *b)
{
    free(b);
}

const struct bootstrap_ops bootstrap_single = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "single",
    .detect = single_detect,
    .open = single_open,
    .publish = single_publish,
    .fence = single_fence,
    .fetch = single_fetch,
    .abort = single_abort,
    .close = single_close,
};

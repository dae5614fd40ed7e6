/* A bootstrap of somebody else's, as a module: sound, or with the defect it is compiled with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"

#ifndef VERSION
#define VERSION BOOTSTRAP_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(struct bootstrap_ops)
#endif

struct third {
    struct bootstrap base;
    size_t bytes;
    char blob[BOOTSTRAP_BLOB_MAX];
};

__attribute__((visibility("default"))) extern const struct bootstrap_ops gshmem_bootstrap;

static const int host[1];

static enum bootstrap_found third_detect(const struct bootstrap_request *request, char *why,
                                         size_t size)
{
    (void)request;
    snprintf(why, size, "the test has no launcher today");
    return getenv("GSHMEM_TEST_THIRD") ? BOOTSTRAP_PRESENT : BOOTSTRAP_ABSENT;
}

static gshmem_status_t third_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct third *t = calloc(1, sizeof *t);

    if (!t || strcmp(getenv("GSHMEM_TEST_THIRD"), "fails") == 0) {
        free(t);
        return request->fail(GSHMEM_ERR_BOOTSTRAP, "third: cannot open %d", 3);
    }
    request->info("third: opened");
    t->base = (struct bootstrap){.ops = &gshmem_bootstrap, .n_pes = 1, .n_hosts = 1, .host = host};
    *out = &t->base;
    return GSHMEM_OK;
}

static gshmem_status_t third_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct third *t = (struct third *)b;

    t->bytes = bytes;
    memcpy(t->blob, blob, bytes);
    return GSHMEM_OK;
}

static gshmem_status_t third_fence(struct bootstrap *b)
{
    (void)b;
    return GSHMEM_OK;
}

static gshmem_status_t third_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                   size_t *bytes)
{
    struct third *t = (struct third *)b;

    if (pe || t->bytes > capacity)
        return GSHMEM_ERR_ARGUMENT;
    memcpy(blob, t->blob, t->bytes);
    *bytes = t->bytes;
    return GSHMEM_OK;
}

static void third_abort(struct bootstrap *b, int status, const char *why)
{
    (void)b, (void)status, (void)why;
}

static void third_close(struct bootstrap *b)
{
    free(b);
}

const struct bootstrap_ops gshmem_bootstrap = {
    .size = SIZE,
    .version = VERSION,
    .name = "third",
    .detect = third_detect,
    .open = third_open,
    .publish = third_publish,
    .fence = third_fence,
#ifndef NO_FETCH
    .fetch = third_fetch,
#endif
    .abort = third_abort,
    .close = third_close,
};

#ifdef NO_FETCH
/* Only so that it is used. */
void *third_unused[] = {(void *)third_fetch};
#endif

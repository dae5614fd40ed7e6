#define _GNU_SOURCE
#include "fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "record.h"

enum { ROUNDS = 8 }; /* that are kept: a PE is at most one round behind another */

struct fence {
    struct bootstrap base;
    const struct bootstrap_request *request;
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int timeout_seconds;
    int round; /* that it has published for last */
};

struct blob {
    size_t bytes;
    unsigned char data[BOOTSTRAP_BLOB_MAX];
};

static struct {
    struct chance chance;
    struct blob *blob[ROUNDS]; /* [PE] */
    int *published;            /* [PE]: its rounds */
    int *node, nodes;
} table;

void fence_begin(uint64_t seed)
{
    const size_t n = (size_t)world.n_pes;

    table.chance = chance_begin(seed, 4);
    table.published = calloc(n, sizeof *table.published);
    table.node = calloc(n, sizeof *table.node);
    for (int i = 0; i < ROUNDS; i++)
        table.blob[i] = calloc(n, sizeof **table.blob);
    for (int pe = 0; pe < world.n_pes; pe++) {
        table.node[pe] = world.pe[pe].node;
        if (world.pe[pe].node >= table.nodes)
            table.nodes = world.pe[pe].node + 1;
    }
}

/* A question to the launcher, and its answer. */
static void ask_launcher(void)
{
    fiber_block(fiber_current->now + chance_between(&table.chance, 20 * US, 200 * US));
}

static enum bootstrap_found fence_detect(const struct bootstrap_request *request, char *why,
                                         size_t why_size)
{
    (void)request;
    snprintf(why, why_size, "the simulation has started this process");
    return BOOTSTRAP_PRESENT;
}

static gshmem_status_t fence_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct fence *f = calloc(1, sizeof *f);

    if (!f)
        return request->fail(GSHMEM_ERR_MEMORY, "the simulation has no memory");
    f->base = (struct bootstrap){.ops = &fence_ops,
                                 .pe = fiber_current->pe->number,
                                 .n_pes = world.n_pes,
                                 .n_hosts = table.nodes,
                                 .host = table.node,
                                 .job = "simulated"};
    f->fail = request->fail;
    f->timeout_seconds = request->timeout_seconds;
    ask_launcher();
    *out = &f->base;
    return GSHMEM_OK;
}

static gshmem_status_t fence_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct fence *f = (struct fence *)b;

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return f->fail(GSHMEM_ERR_ARGUMENT, "a blob of %zu bytes is too large", bytes);
    struct blob *own = &table.blob[++f->round % ROUNDS][b->pe];
    own->bytes = bytes;
    memcpy(own->data, blob, bytes);
    return GSHMEM_OK;
}

/* The first PE that has not come to a round; -1: all have. */
static int missing(int round)
{
    for (int pe = 0; pe < world.n_pes; pe++) {
        if (table.published[pe] < round)
            return pe;
    }
    return -1;
}

static gshmem_status_t fence_wait(struct bootstrap *b)
{
    struct fence *f = (struct fence *)b;
    const uint64_t end = fiber_current->now + (uint64_t)f->timeout_seconds * SECOND;
    int pe;

    table.published[b->pe] = f->round;
    record("PE %d is at fence %d", b->pe, f->round);
    ask_launcher();
    if (missing(f->round) < 0) {
        for (int i = 0; i < world.n_pes; i++)
            fiber_wake_word(&world.pe[i], &table, world.pe[i].n_fibers);
        return GSHMEM_OK;
    }
    while ((pe = missing(f->round)) >= 0) {
        if (world.pe[pe].dead)
            return f->fail(GSHMEM_ERR_PEER_DEAD, "PE %d has died before a fence", pe);
        fiber_current->word = &table;
        if (!fiber_block(end)) {
            fiber_current->word = NULL;
            return f->fail(GSHMEM_ERR_TIMEOUT, "PE %d has not come to a fence within %d s", pe,
                           f->timeout_seconds);
        }
    }
    return GSHMEM_OK;
}

void fence_lose(int pe)
{
    (void)pe;
    for (int i = 0; i < world.n_pes; i++)
        fiber_wake_word(&world.pe[i], &table, world.pe[i].n_fibers);
}

static gshmem_status_t fence_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                   size_t *bytes)
{
    struct fence *f = (struct fence *)b;
    const struct blob *theirs;

    if (pe < 0 || pe >= world.n_pes)
        return f->fail(GSHMEM_ERR_ARGUMENT, "there is no PE %d", pe);
    theirs = &table.blob[f->round % ROUNDS][pe];
    if (theirs->bytes > capacity)
        return f->fail(GSHMEM_ERR_ARGUMENT, "%zu bytes are too few", capacity);
    ask_launcher();
    memcpy(blob, theirs->data, theirs->bytes);
    *bytes = theirs->bytes;
    return GSHMEM_OK;
}

/* The launcher ends what is left of the job. */
static void fence_abort(struct bootstrap *b, int status, const char *why)
{
    record("PE %d asks the launcher to end the job with status %d: %s", b->pe, status, why);
    for (int pe = 0; pe < world.n_pes; pe++) {
        if (pe != b->pe)
            process_kill(&world.pe[pe], false, "the launcher ends the job");
    }
}

static void fence_close(struct bootstrap *b)
{
    free(b);
}

const struct bootstrap_ops fence_ops = {
    .size = sizeof fence_ops,
    .version = BOOTSTRAP_VERSION,
    .name = "simulation",
    .detect = fence_detect,
    .open = fence_open,
    .publish = fence_publish,
    .fence = fence_wait,
    .fetch = fence_fetch,
    .abort = fence_abort,
    .close = fence_close,
};

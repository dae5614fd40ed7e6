#include "runtime/teams/queue_pairs.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/teams/observer.h"

static const char call[] = "nvshmemx_qp_create";

/* Two threads that make queue pairs take turns: the numbers of a call follow each other. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void queue_pairs_free(struct job *j)
{
    free(j->queue_pairs);
    j->queue_pairs = NULL;
}

/* Nothing was issued on them that could have failed. */
static void destroy(const gshmem_ctx_t *ctx, size_t n)
{
    while (n > 0) {
        const gshmem_status_t status = gshmem_ctx_destroy(ctx[--n]);
        (void)status;
    }
}

/* The queue pairs that there are, and n more. */
static gshmem_status_t extend(const struct queue_pairs *now, size_t n, struct queue_pairs **more)
{
    const size_t had = now ? now->n : 0;
    struct queue_pairs *pairs = malloc(sizeof *pairs + (had + n) * sizeof pairs->ctx[0]);
    gshmem_status_t status = GSHMEM_OK;

    if (!pairs)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu queue pairs", call, had + n);
    if (had)
        memcpy(pairs->ctx, now->ctx, had * sizeof now->ctx[0]);
    for (pairs->n = had; pairs->n < had + n && !status; pairs->n += !status)
        status = gshmem_ctx_create(0, &pairs->ctx[pairs->n]);
    if (status) {
        destroy(pairs->ctx + had, pairs->n - had);
        free(pairs);
        return status;
    }
    *more = pairs;
    return GSHMEM_OK;
}

static gshmem_status_t make(size_t n, size_t *first)
{
    struct queue_pairs *before = job->queue_pairs, *more = NULL;
    gshmem_status_t status = extend(before, n, &more);

    if (status)
        return status;
    *first = more->n - n;
    /* another thread may load the first kernels, whose table is then made of what is here */
    pthread_mutex_lock(&job->lock);
    job->queue_pairs = more;
    if ((status = job->observer->show_queue_pairs(job)))
        job->queue_pairs = before;
    pthread_mutex_unlock(&job->lock);
    if (status) {
        destroy(more->ctx + *first, n);
        before = more;
    }
    free(before);
    return status;
}

gshmem_status_t gshmem_path_queue_pairs(int n, int **out)
{
    gshmem_status_t status = job_require(call);
    size_t first = 0;

    if (status)
        return status;
    if (n < 0 || !out)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: %d queue pairs, to %p: there must be 0 or more, and "
                    "a pointer",
                    call, n, (void *)out);
    int *pairs = malloc((size_t)(n ? n : 1) * sizeof *pairs);
    if (!pairs)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %d queue pairs", call, n);
    pthread_mutex_lock(&turn);
    if (job->queue_pairs && job->queue_pairs->n > (size_t)(INT_MAX - GSHMEM_QUEUE_PAIRS_FROM - n))
        status = fail(GSHMEM_ERR_ARGUMENT, "%s: there are no numbers left for %d", call, n);
    else
        status = make((size_t)n, &first);
    pthread_mutex_unlock(&turn);
    if (status) {
        free(pairs);
        return status;
    }
    for (int i = 0; i < n; i++)
        pairs[i] = (int)first + i + GSHMEM_QUEUE_PAIRS_FROM;
    *out = pairs;
    return GSHMEM_OK;
}

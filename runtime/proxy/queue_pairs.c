/* The table in which kernels look up the contexts of queue pairs. A kernel may read it at any time:
 * entries are written before the count that includes them, and a table that became too small stays
 * until the job ends. A new one has twice the room, so that all of them take no more than twice the
 * memory of the last. */
#include <stdlib.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"
#include "runtime/teams/queue_pairs.h"

struct table {
    struct gshmem_device_pairs head;
    gshmem_ctx_t ctx[];
};

struct kernel_pairs {
    struct table *table; /* in the device's memory */
    uint64_t n, room;
    struct kernel_pairs *before;
};

static struct kernel_pairs *make_table(struct device *d, uint64_t room)
{
    struct kernel_pairs *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->room = room;
    p->table = memory_of_device(d, sizeof *p->table + room * sizeof p->table->ctx[0]);
    if (!p->table) {
        free(p);
        return NULL;
    }
    return p;
}

static gshmem_status_t tell_count(struct device *d, struct kernel_pairs *p, uint64_t n)
{
    if (d->ops->own_heap)
        return memory_tell(d, &p->table->head.n, &n, sizeof n);
    /* release: pairs with the acquire in nvshmem_pairs_made: a kernel that sees the count sees the
     * entries */
    gshmem_store_release(&p->table->head.n, n);
    return GSHMEM_OK;
}

static gshmem_status_t fill(struct device *d, struct kernel_pairs *p, const struct queue_pairs *q)
{
    const uint64_t more = q->n - p->n;
    gshmem_status_t status =
        memory_tell(d, &p->table->ctx[p->n], &q->ctx[p->n], more * sizeof q->ctx[0]);

    if (status || (status = tell_count(d, p, q->n)))
        return status;
    p->n = q->n;
    return GSHMEM_OK;
}

static gshmem_status_t replace(struct job *j, const struct queue_pairs *q)
{
    struct kernels *k = j->kernels;
    struct kernel_pairs *p = make_table(j->device, 2 * q->n);
    const gshmem_ctx_t *ctx;
    gshmem_status_t status;

    if (!p)
        return fail(GSHMEM_ERR_MEMORY, "out of memory for a table of %zu queue pairs", q->n);
    ctx = p->table->ctx;
    if ((status = memory_tell(j->device, &p->table->head.ctx, &ctx, sizeof ctx)) ||
        (status = fill(j->device, p, q))) {
        memory_free_of_device(j->device, p->table); /* no kernel has been told of it */
        free(p);
        return status;
    }
    p->before = k->pairs;
    k->pairs = p;
    memory_tell_pointer(j->device, &k->device->job.pairs, (uintptr_t)&p->table->head);
    return GSHMEM_OK;
}

gshmem_status_t kernels_show_queue_pairs(struct job *j)
{
    return kernels_of(j) ? kernels_fill_queue_pairs(j) : GSHMEM_OK;
}

gshmem_status_t kernels_fill_queue_pairs(struct job *j)
{
    const struct queue_pairs *q = j->queue_pairs;

    if (!q || q->n == 0)
        return GSHMEM_OK;
    return j->kernels->pairs && q->n <= j->kernels->pairs->room
               ? fill(j->device, j->kernels->pairs, q)
               : replace(j, q);
}

void kernels_free_queue_pairs(struct job *j)
{
    struct kernel_pairs *p;

    while ((p = j->kernels->pairs)) {
        j->kernels->pairs = p->before;
        memory_free_of_device(j->device, p->table);
        free(p);
    }
}

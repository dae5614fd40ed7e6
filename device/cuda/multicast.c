/* Multicast by NVSwitch: addresses that stand for the heaps of several PEs, each on a GPU of its
 * own.
 *
 * For each piece of the heap the PEs share one object of the driver's, into which each puts its
 * GPU, and then its piece; all map it into a range of addresses that is laid out as the heap is.
 * The driver keeps who binds or maps waiting until all GPUs are there, so that who calls these lets
 * all come that far first. A job does as well without: what fails here is said as information. */
#include "device/cuda/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct part {
    uint64_t offset;
    uint64_t bytes;
    cuda_piece object;
    bool bound, mapped;
};

struct multicast {
    cuda_address base;
    uint64_t limit;
    struct part *part;
    int parts;
};

__attribute__((format(printf, 3, 4), cold)) static gshmem_status_t
without(const struct cuda *c, cuda_result result, const char *format, ...)
{
    char what[300];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    c->config.info("cuda: %s: %s", what, cuda_error(&c->driver, result).text);
    return result == CUDA_OUT_OF_MEMORY ? GSHMEM_ERR_MEMORY : GSHMEM_ERR_DEVICE;
}

bool cuda_can_multicast(const struct cuda *c)
{
    return c->config.multicast && c->share != SHARE_IPC && cuda_has(c, CUDA_ATTRIBUTE_MULTICAST) &&
           cuda_driver_has(&c->driver, CUDA_NEWER_MULTICAST);
}

gshmem_status_t cuda_multicast_open(struct device *base, uint64_t limit,
                                    struct device_multicast *out)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = calloc(1, sizeof *m);
    cuda_result result;

    if (!m)
        return without(c, CUDA_OUT_OF_MEMORY, "multicast");
    m->limit = limit;
    if ((result = c->driver.reserve(&m->base, limit, 0, 0, 0))) {
        free(m);
        return without(c, result, "reserving addresses for multicast to %llu MiB",
                       (unsigned long long)limit >> 20);
    }
    *out = (struct device_multicast){m, m->base};
    return GSHMEM_OK;
}

/* NULL: there is no room for it. */
static struct part *add_part(struct multicast *m, uint64_t offset, uint64_t bytes)
{
    bool fits = offset <= m->limit && bytes <= m->limit - offset;
    struct part *more = fits ? realloc(m->part, (size_t)(m->parts + 1) * sizeof *more) : NULL;

    if (!more)
        return NULL;
    m->part = more;
    more[m->parts] = (struct part){.offset = offset, .bytes = bytes};
    return &more[m->parts];
}

static gshmem_status_t multicast_create(struct cuda *c, const struct cuda_multicast *what,
                                        cuda_piece *object)
{
    cuda_result result;
    size_t step = 0;

    if ((result = c->driver.multicast_granularity(&step, what, CUDA_GRANULARITY_MINIMUM)))
        return without(c, result, "asking for the granularity of multicast");
    if (step == 0 || what->bytes % step)
        return without(c, CUDA_INVALID_VALUE,
                       "multicast goes by %zu KiB, and %zu KiB of the heap are no multiple",
                       step >> 10, what->bytes >> 10);
    if ((result = c->driver.multicast_create(object, what)))
        return without(c, result, "multicast to %zu MiB of %u GPUs", what->bytes >> 20, what->gpus);
    return GSHMEM_OK;
}

gshmem_status_t cuda_multicast_offer(struct device *base, struct device_multicast *map, int n,
                                     struct device_piece *piece)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = map->own;
    const struct cuda_multicast what = {
        .gpus = (unsigned)n,
        .bytes = piece->bytes,
        .handle_types = (unsigned long long)cuda_handle_type(c),
    };
    struct part *p = add_part(m, piece->offset, piece->bytes);
    gshmem_status_t status = p ? cuda_enter(c) : GSHMEM_ERR_MEMORY;
    cuda_result result;

    if (status)
        return status;
    if (!(status = multicast_create(c, &what, &p->object))) {
        if ((result = cuda_export(c, p->object, piece))) {
            status = without(c, result, "making a multicast object known to other processes by %s",
                             cuda_share_name(c->share));
            c->driver.release(p->object);
        } else {
            m->parts++;
        }
    }
    cuda_leave(c);
    return status;
}

static gshmem_status_t take_over(struct cuda *c, struct multicast *m,
                                 const struct device_piece *given)
{
    struct part *p = add_part(m, given->offset, given->bytes);
    cuda_result result = p ? cuda_import(c, given, &p->object) : CUDA_OUT_OF_MEMORY;

    if (result)
        return without(c, result, "taking over a multicast object by %s",
                       cuda_share_name(c->share));
    m->parts++;
    return GSHMEM_OK;
}

gshmem_status_t cuda_multicast_join(struct device *base, struct device_multicast *map,
                                    const struct device_piece *given)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = map->own;
    gshmem_status_t status = cuda_enter(c);
    cuda_result result;

    if (!status) {
        if (given)
            status = take_over(c, m, given);
        if (!status && (result = c->driver.multicast_add(m->part[m->parts - 1].object, c->gpu)))
            status = without(c, result, "putting GPU %d into a multicast object", c->gpu);
        cuda_leave(c);
    }
    if (given && given->fd >= 0)
        close(given->fd);
    return status;
}

static gshmem_status_t bind_part(struct cuda *c, struct multicast *m, struct part *p,
                                 cuda_address memory)
{
    const struct cuda_access access = {{CUDA_LOCATION_GPU, c->gpu}, CUDA_READ_WRITE};
    cuda_address at = m->base + p->offset;
    cuda_result result;

    if ((result = c->driver.multicast_bind(p->object, 0, memory, p->bytes, 0)))
        return without(c, result,
                       "binding %llu MiB of GPU %d to a multicast object (is the fabric manager "
                       "running?)",
                       (unsigned long long)p->bytes >> 20, c->gpu);
    p->bound = true;
    if ((result = c->driver.map(at, p->bytes, 0, p->object, 0)))
        return without(c, result, "mapping %llu MiB for multicast",
                       (unsigned long long)p->bytes >> 20);
    p->mapped = true;
    if ((result = c->driver.set_access(at, p->bytes, &access, 1)))
        return without(c, result, "letting GPU %d use a multicast object", c->gpu);
    return GSHMEM_OK;
}

gshmem_status_t cuda_multicast_bind(struct device *base, struct device_multicast *map,
                                    const struct device_heap_map *mine)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = map->own;
    struct part *p = &m->part[m->parts - 1];
    gshmem_status_t status = cuda_enter(c);

    if (status)
        return status;
    status = bind_part(c, m, p, mine->base + p->offset);
    cuda_leave(c);
    return status;
}

/* ---- And back ---- */

static void multicast_give_back(struct cuda *c, struct multicast *m, struct part *p)
{
    cuda_result result = CUDA_OK, one;

    if (p->mapped)
        result = c->driver.unmap(m->base + p->offset, p->bytes);
    if (p->bound && (one = c->driver.multicast_unbind(p->object, c->gpu, 0, p->bytes)))
        result = one;
    if ((one = c->driver.release(p->object)))
        result = one;
    if (result)
        c->config.info("cuda: giving back a multicast object: %s",
                       cuda_error(&c->driver, result).text);
}

void cuda_multicast_shrink(struct device *base, struct device_multicast *map, uint64_t bytes)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = map->own;

    if (!m->parts || m->part[m->parts - 1].offset < bytes || cuda_enter(c))
        return;
    while (m->parts && m->part[m->parts - 1].offset >= bytes)
        multicast_give_back(c, m, &m->part[--m->parts]);
    cuda_leave(c);
}

void cuda_multicast_close(struct device *base, struct device_multicast *map)
{
    struct cuda *c = cuda_of(base);
    struct multicast *m = map->own;

    if (!m)
        return;
    cuda_multicast_shrink(base, map, 0);
    c->driver.unreserve(m->base, m->limit);
    free(m->part);
    free(m);
    *map = (struct device_multicast){.own = NULL};
}

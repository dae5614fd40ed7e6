/* Updates in the memory of GPUs that this PE's has no peer access to: this process opens such a
 * GPU, too, and the library's kernel makes them there. So all updates of a location are one
 * agent's, the memory's own GPU's, to which those of kernels come as well, its own and those of
 * GPUs that reach it.
 *
 * A GPU is opened when the first such update comes. */
#include "device/cuda/streams.h"

#include <stdlib.h>

/* With its context current. */
static gshmem_status_t equip(const struct cuda *c, struct cuda_elsewhere *e)
{
    const struct cuda_driver *d = &c->driver;
    gshmem_status_t status;
    cuda_result result;

    if ((status = cuda_kernel_load(c, e->gpu, &e->code)))
        return status;
    if ((result = d->stream_create(&e->stream, CUDA_STREAM_NON_BLOCKING))) {
        status = cuda_fail(c, result, "a stream for updates on GPU %d", e->gpu);
    } else if ((result = d->event_create(&e->event, CUDA_EVENT_NO_TIMING))) {
        status = cuda_fail(c, result, "an event on GPU %d", e->gpu);
        d->stream_destroy(e->stream);
    }
    if (status)
        d->module_unload(e->code.module);
    return status;
}

static gshmem_status_t open_gpu(const struct cuda *c, struct cuda_elsewhere *e)
{
    cuda_result result = c->driver.primary_retain(&e->context, e->gpu);
    gshmem_status_t status;

    if (result)
        return cuda_fail(
            c, result,
            "opening GPU %d as well, for updates of its memory, to which GPU %d has no peer "
            "access",
            e->gpu, c->gpu);
    if (!(status = cuda_enter_context(c, e->context, e->gpu))) {
        status = equip(c, e);
        cuda_leave(c);
    }
    if (status)
        c->driver.primary_release(e->gpu);
    return status;
}

static gshmem_status_t elsewhere_add_gpu(struct cuda *c, cuda_gpu gpu)
{
    struct cuda_elsewhere *e = calloc(1, sizeof *e);
    gshmem_status_t status;

    if (!e)
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    e->gpu = gpu;
    if ((status = open_gpu(c, e))) {
        free(e);
        return status;
    }
    e->next = c->work.elsewhere;
    c->work.elsewhere = e;
    c->config.info(
        "cuda: GPU %d is open, too: it makes updates of its memory, to which GPU %d has no peer "
        "access",
        gpu, c->gpu);
    return GSHMEM_OK;
}

static gshmem_status_t elsewhere_find_gpu(struct cuda *c, cuda_gpu gpu, struct cuda_elsewhere **out)
{
    struct cuda_elsewhere *e = c->work.elsewhere;
    gshmem_status_t status = GSHMEM_OK;

    while (e && e->gpu != gpu)
        e = e->next;
    if (!e && !(status = elsewhere_add_gpu(c, gpu)))
        e = c->work.elsewhere;
    if (!status)
        *out = e;
    return status;
}

/* With its context current. */
static gshmem_status_t elsewhere_launch(const struct cuda *c, const struct cuda_elsewhere *e,
                                        const struct device_request *r, cuda_event before)
{
    gshmem_status_t status;
    cuda_result result;

    if (before && (result = c->driver.stream_wait_event(e->stream, before, 0)))
        return cuda_fail(c, result, "putting an update on GPU %d behind copies of GPU %d", e->gpu,
                         c->gpu);
    if ((status = cuda_kernel_launch_code(c, e->gpu, &e->code, r, e->stream)))
        return status;
    result = c->driver.event_record(e->event, e->stream);
    return result ? cuda_fail(c, result, "an event on GPU %d", e->gpu) : GSHMEM_OK;
}

gshmem_status_t cuda_update_elsewhere(struct cuda *c, cuda_gpu gpu, const struct device_request *r,
                                      cuda_event before)
{
    struct cuda_elsewhere *e = NULL;
    gshmem_status_t status;
    cuda_result result;

    if ((status = elsewhere_find_gpu(c, gpu, &e)))
        return status;
    if ((status = cuda_enter_context(c, e->context, gpu)))
        return status;
    status = elsewhere_launch(c, e, r, before);
    cuda_leave(c);
    if (status)
        return status;
    result = c->driver.stream_wait_event(c->work.updates, e->event, 0);
    return result
               ? cuda_fail(c, result, "putting updates of GPU %d behind one on GPU %d", c->gpu, gpu)
               : GSHMEM_OK;
}

void cuda_elsewhere_close(struct cuda *c)
{
    for (struct cuda_elsewhere *e; (e = c->work.elsewhere);) {
        c->work.elsewhere = e->next;
        if (!cuda_enter_context(c, e->context, e->gpu)) {
            c->driver.stream_wait(e->stream);
            c->driver.event_destroy(e->event);
            c->driver.stream_destroy(e->stream);
            c->driver.module_unload(e->code.module);
            cuda_leave(c);
        }
        c->driver.primary_release(e->gpu);
        free(e);
    }
}

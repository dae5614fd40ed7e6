/* Memory of a device that NICs read and write but the CPU cannot touch. The proxy has the device
 * copy what is small, and waits: a copy needs no room among the GPU's kernels. An update needs
 * some and may take as long as they run, so that the proxy asks for its outcome again. */
#include <string.h>

#include "device/device.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/segment.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/verbs.h"

bool gpu_has(const struct verbs *v, const void *at, uint64_t bytes)
{
    return v->config.device && v->config.on_device(v->config.context, at, bytes);
}

gshmem_status_t gpu_fetch(struct verbs *v, void *to, const void *from, uint64_t bytes)
{
    if (gpu_has(v, from, bytes))
        return v->config.device->ops->copy(v->config.device, to, from, bytes);
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

gshmem_status_t gpu_deliver(struct verbs *v, void *to, const void *from, uint64_t bytes)
{
    if (gpu_has(v, to, bytes))
        return v->config.device->ops->copy(v->config.device, to, from, bytes);
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

gshmem_status_t gpu_flush(struct verbs *v)
{
    return v->config.device->ops->flush(v->config.device);
}

/* ---- For peers ---- */

gshmem_status_t gpu_store(struct verbs *v, unsigned segment, char *at, const void *data,
                          uint64_t bytes)
{
    if (v->config.segment[segment].of_device)
        return v->config.device->ops->copy(v->config.device, at, data, bytes);
    if (bytes <= 8)
        segment_store(at, data, bytes);
    else
        memcpy(at, data, bytes);
    return GSHMEM_OK;
}

enum served gpu_apply(struct verbs *v, unsigned segment, const struct device_update *u,
                      uint64_t *ticket, uint64_t *old)
{
    struct device *d = v->config.device;
    gshmem_status_t status;

    if (v->config.segment[segment].by_nic) /* no peer of this version sends that */
        return SERVED_NEVER;
    if (!v->config.segment[segment].of_device) {
        *old = v->config.apply(v->config.context, (enum gshmem_amo)u->op, u->type, u->at,
                               u->operand, u->compare);
        return SERVED;
    }
    if (!*ticket && d->ops->update_start(d, u, ticket))
        return SERVED_NEVER;
    if (!*ticket || !d->ops->update_done(d, *ticket, old, &status))
        return SERVED_LATER;
    *ticket = 0;
    return status ? SERVED_NEVER : SERVED;
}

void gpu_forget(struct verbs *v, uint64_t *ticket)
{
    if (*ticket)
        v->config.device->ops->update_forget(v->config.device, *ticket);
    *ticket = 0;
}

enum served gpu_signal(struct verbs *v, unsigned segment, uint64_t *at, int op, uint64_t value,
                       uint64_t *ticket)
{
    const struct device_update add = {
        .op = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .at = at, .operand = value};
    struct device *d = v->config.device;
    uint64_t old;

    if (v->config.segment[segment].by_nic)
        return SERVED_NEVER;
    if (v->config.segment[segment].of_device)
        return op == GSHMEM_SIGNAL_ADD ? gpu_apply(v, segment, &add, ticket, &old)
               : d->ops->copy(d, at, &value, sizeof value) ? SERVED_NEVER
                                                           : SERVED;
    segment_signal(at, op, value);
    return SERVED;
}

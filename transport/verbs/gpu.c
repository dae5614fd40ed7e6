/* What the proxy itself does with memory of a device's own, which NICs write and read but the CPU cannot
 * touch: copies of what is small, and updates that peers ask for. */
#include <string.h>

#include "device/device.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/segment.h"
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

/* ---- For peers ---- */

gshmem_status_t gpu_store(struct verbs *v, unsigned segment, char *at, const void *data, uint64_t bytes)
{
    if (v->config.segment[segment].of_device)
        return v->config.device->ops->copy(v->config.device, at, data, bytes);
    if (bytes <= 8)
        segment_store(at, data, bytes);
    else
        memcpy(at, data, bytes);
    return GSHMEM_OK;
}

gshmem_status_t gpu_apply(struct verbs *v, unsigned segment, enum gshmem_amo amo, int type, void *at,
                          uint64_t operand, uint64_t compare, uint64_t *old)
{
    const struct device_update u = {
        .op = amo, .type = type, .at = at, .operand = operand, .compare = compare};

    if (v->config.segment[segment].by_nic) /* no peer of this version asks for that */
        return GSHMEM_ERR_UNSUPPORTED;
    if (v->config.segment[segment].of_device)
        return v->config.device->ops->update(v->config.device, &u, old);
    *old = v->config.apply(v->config.context, amo, type, at, operand, compare);
    return GSHMEM_OK;
}

gshmem_status_t gpu_signal(struct verbs *v, unsigned segment, uint64_t *at, int op, uint64_t value)
{
    uint64_t old;

    if (v->config.segment[segment].by_nic)
        return GSHMEM_ERR_UNSUPPORTED;
    if (!v->config.segment[segment].of_device) {
        segment_signal(at, op, value);
        return GSHMEM_OK;
    }
    if (op == GSHMEM_SIGNAL_SET)
        return v->config.device->ops->copy(v->config.device, at, &value, sizeof value);
    return gpu_apply(v, segment, GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, at, value, 0, &old);
}

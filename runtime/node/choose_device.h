/* Which device the job has: chosen once per PE, by GSHMEM_DEVICE and by what is available. */
#ifndef GSHMEM_RUNTIME_NODE_CHOOSE_DEVICE_H
#define GSHMEM_RUNTIME_NODE_CHOOSE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "gshmem/base.h"
#include "runtime/job/job.h"
#include "runtime/node/nics.h"

enum { FLUSH_AUTO, FLUSH_ON, FLUSH_OFF }; /* the choices of GSHMEM_CUDA_FLUSH */

/* Opens j->device, and logs (info) which and why. */
typedef gshmem_status_t add_module_fn(struct gshmem_device_module *module);
typedef void remove_module_fn(struct gshmem_device_module *module);
gshmem_status_t device_start(struct job *j, add_module_fn *add, remove_module_fn *remove);
void device_stop(struct job *j);

/* For a PE that has seen something ordered after data that a NIC may have written to a GPU's memory
 * (a signal, a barrier): from now on kernels that run see that data, too. Does nothing where the
 * GPU ensures that itself. */
static inline gshmem_status_t device_settle(void)
{
    return GSHMEM_LIKELY(!job || !job->flushes) ? GSHMEM_OK : job->device->ops->flush(job->device);
}

/* The network interfaces that are nearest to the GPU that this PE would take, with commas; "":
 * there is no GPU, or it is not known. */
void device_nearest_interfaces(int index, char *list, size_t size);
/* The place of the PE with this index on its node, for distances of NICs; `kernels`: whether a
 * program has kernels for GPUs. *nodes: how many NUMA nodes there are. */
void device_find_center(int index, bool kernels, struct nic_center *center, int *nodes);

/* The cuda device's module; NULL, with the reason: it is not installed. */
const struct device_ops *device_find_cuda(char *why, size_t why_size);
/* How NICs access memory of the GPU that was reported on, and why. */
enum nic_way device_nic_way(const struct device_report *r, char *why, size_t why_size);
/* The configuration of the device for the PE with this index on its node. */
struct device_config device_config_of(int index, bool hosts);

#endif

/* Which device the job has: chosen once per PE, by GSHMEM_DEVICE and by what is there. */
#ifndef GSHMEM_RUNTIME_DEVICE_H
#define GSHMEM_RUNTIME_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "runtime/job.h"
#include "runtime/network/nics.h"

enum { FLUSH_AUTO, FLUSH_ON, FLUSH_OFF }; /* the choices of GSHMEM_CUDA_FLUSH */

/* Opens j->device, and says (info) which and why. */
gshmem_status_t device_start(struct job *j);
void device_stop(struct job *j);

/* For who has seen what came behind data that a NIC may have written to a GPU's memory (a signal, a barrier): kernels
 * that run see that data, too, from here on. Nothing where the GPU sees to that itself. */
static inline gshmem_status_t device_settle(void)
{
    return GSHMEM_LIKELY(!job || !job->flushes) ? GSHMEM_OK : job->device->ops->flush(job->device);
}

/* The network interfaces that are nearest to the GPU that this PE would take, with commas; "": there is no
 * GPU, or it cannot be told. */
void device_nearest_interfaces(int index, char *list, size_t size);
/* Where the PE with this index on its node is, as far as NICs are concerned; `kernels`: whether a
 * program has such for GPUs. *nodes: of the machine's memory, how many there are. */
void device_find_center(int index, bool kernels, struct nic_center *center, int *nodes);

/* The cuda device's module; NULL: it is not installed, and why. */
const struct device_ops *device_find_cuda(char *why, size_t why_size);
/* How NICs are to get at memory of the GPU that has been reported on, and why. */
enum nic_way device_nic_way(const struct device_report *r, char *why, size_t why_size);
/* What a device is asked for, for the PE with this index on its node. */
struct device_config device_config_of(int index, bool hosts);

#endif

/* Attributes of launches: which are honoured, which are advice, and which are refused. */
#include "device/host/calls/attributes.h"

#include <stdint.h>

#include "runtime/base/log.h"

/* ADVICE changes how fast a GPU is, or lets it start a kernel early, which it need not do: streams
 * of the host device run kernels one after the other. */
enum treatment { ADVICE, HONOURED, ONE_BLOCK, REFUSED };

/* By CUDA's numbers. */
static const struct {
    const char *name;
    enum treatment treatment;
} known[] = {
    {"Ignore", ADVICE},
    {"AccessPolicyWindow", ADVICE},
    {"Cooperative", HONOURED},
    {"SynchronizationPolicy", ADVICE},
    {"ClusterDimension", ONE_BLOCK},
    {"ClusterSchedulingPolicyPreference", ADVICE},
    {"ProgrammaticStreamSerialization", ADVICE},
    {"ProgrammaticEvent", REFUSED}, /* nothing would record the event */
    {"Priority", ADVICE},
    {"MemSyncDomainMap", ADVICE},
    {"MemSyncDomain", ADVICE},
    {"PreferredClusterDimension", ONE_BLOCK},
    {"LaunchCompletionEvent", REFUSED},
    {"DeviceUpdatableKernelNode", REFUSED},
    {"PreferredSharedMemoryCarveout", ADVICE},
};

cudaError_t launch_attributes(const cudaLaunchAttribute *attribute, unsigned n, bool *cooperative)
{
    for (unsigned i = 0; i < n; i++) {
        const cudaLaunchAttribute *a = &attribute[i];
        const unsigned id = (unsigned)a->id;
        const bool is_known = id < sizeof known / sizeof known[0];
        const enum treatment treatment = is_known ? known[id].treatment : REFUSED;

        if (treatment == HONOURED)
            *cooperative = a->val.cooperative;
        if (treatment == ONE_BLOCK &&
            (uint64_t)a->val.clusterDim.x * a->val.clusterDim.y * a->val.clusterDim.z > 1) {
            log_error("a launch in clusters of %u x %u x %u blocks; the host device has none",
                      a->val.clusterDim.x, a->val.clusterDim.y, a->val.clusterDim.z);
            return cudaErrorNotSupported;
        }
        if (treatment == REFUSED) {
            log_error("a launch with the attribute %u (%s): the host device has cooperative "
                      "launches and clusters of one block, and takes priorities, policies, memory "
                      "domains, the carveout and programmatic serialization as advice",
                      id, is_known ? known[id].name : "unknown");
            return cudaErrorNotSupported;
        }
    }
    return cudaSuccess;
}

/* Ranges for NVIDIA's profilers (NVTX): a profiler that is there is found by NVIDIA's header, which
 * is all that this needs; without one a range costs a load and a branch. Needs no driver and no
 * GPU. */
#include "device/ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include "gshmem/base.h"

GSHMEM_API extern const struct device_ranges gshmem_ranges;

static nvtxDomainHandle_t
    domain; /* stays here: ranges have no object, and profilers see the process */

static void make_domain(void)
{
    domain = nvtxDomainCreateA("GSHMEM");
}

static void ranges_begin(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message.ascii = name,
    };

    pthread_once(&once, make_domain);
    nvtxDomainRangePushEx(domain, &range);
}

static void ranges_end(void)
{
    nvtxDomainRangePop(domain);
}

const struct device_ranges gshmem_ranges = {ranges_begin, ranges_end};

/* Ranges by NVIDIA's header, of all forms that a thread pushes. */
#ifdef OWN_HEADER /* the host device's, which has some of it */
#include "gshmem/host_device/nvtx3/nvToolsExt.h"
#else
#include <nvtx3/nvToolsExt.h>
#endif

#include <stdbool.h>
#include <stdlib.h>

#include "gshmem.h"

#include "check.h"

#ifndef OWN_HEADER
static _Thread_local bool has_none; /* this thread gets no memory */

void *__libc_malloc(size_t bytes);
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    return has_none ? NULL : __libc_malloc(bytes);
}
#endif

int main(void)
{
    CHECK_OK(gshmem_init());
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = "by attributes"};

    nvtxRangePushA("plain");
#ifndef OWN_HEADER
    nvtxRangePushW(L"wide");
#endif
    nvtxRangePushEx(&event);
    nvtxDomainRangePushEx(domain, &event);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
#ifndef OWN_HEADER
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
#endif
    nvtxDomainRangePushEx(domain, &event);
#ifndef OWN_HEADER
    has_none = true; /* the library's own domain is known nevertheless */
    const nvtxDomainHandle_t own = nvtxDomainCreateA("GSHMEM");
    has_none = false;
    nvtxDomainRangePushEx(own, &event); /* the library's own calls, which are there already */
#endif
    CHECK_OK(gshmem_barrier_all());
#ifndef OWN_HEADER
    nvtxDomainRangePop(own);
#endif
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
#ifndef OWN_HEADER
    nvtxRangePop();
#endif
    return gshmem_finalize();
}

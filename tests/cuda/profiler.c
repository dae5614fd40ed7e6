/* A profiler as NVTX's header finds one (NVTX_INJECTION64_PATH): tells each range that begins, set
 * in by those of its thread that have not ended, and at the end whether all have. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static _Thread_local int depth;
static int begun, ended;

static nvtxDomainHandle_t NVTX_API create_domain(const char *name)
{
    fprintf(stderr, "profiler: domain %s\n", name);
    return (nvtxDomainHandle_t)&begun;
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    if (domain != (nvtxDomainHandle_t)&begun || range->messageType != NVTX_MESSAGE_TYPE_ASCII)
        fprintf(stderr, "profiler: a range that makes no sense\n");
    else
        fprintf(stderr, "profiler: %*s%s\n", 2 * depth, "", range->message.ascii);
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    return depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    return --depth;
}

API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;

    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

__attribute__((destructor)) static void tell(void)
{
    if (begun && begun == ended)
        fprintf(stderr, "profiler: every range has ended\n");
}

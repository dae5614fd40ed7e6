/* A profiler, as NVIDIA's header for NVTX finds one by NVTX_INJECTION64_PATH: the program's ranges
 * of threads go to gshmem_range_push, and so into the trace. Needs no driver and no GPU. */
#include <nvtx3/nvToolsExt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "gshmem.h"

enum { RANGE_BYTES = 200 };

/* The library's own domain (GSHMEM_NVTX): its calls are in the trace already. It takes no memory:
 * its ranges must be known when there is none, since gshmem_range_push makes more of them. */
static char own_domain[] = "GSHMEM";

/* Domains and strings that the program registers, by their texts, which live as long as the
 * process. Without memory a domain is the default one, and a string has no name. */
static char *nvtx_name(const char *text)
{
    return strcmp(text ? text : "", own_domain) == 0 ? own_domain : strdup(text ? text : "");
}

static void nvtx_narrow(char *text, const wchar_t *wide)
{
    size_t n = 0;

    for (; wide && wide[n] && n < RANGE_BYTES - 1; n++)
        text[n] = wide[n] < 128 ? (char)wide[n] : '?';
    text[n] = 0;
}

static bool nvtx_is_ours(nvtxDomainHandle_t domain)
{
    return (const char *)domain == own_domain;
}

/* ---- What the header calls ---- */

static int nvtx_pop(void)
{
    gshmem_range_pop();
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int nvtx_push(const char *name)
{
    gshmem_range_push(name);
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int nvtx_push_wide(const wchar_t *name)
{
    char text[RANGE_BYTES];

    nvtx_narrow(text, name);
    return nvtx_push(text);
}

static int nvtx_push_event(const nvtxEventAttributes_t *event)
{
    switch (event ? event->messageType : NVTX_MESSAGE_UNKNOWN) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return nvtx_push(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
        return nvtx_push_wide(event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
        return nvtx_push((const char *)event->message.registered);
    default:
        return nvtx_push(NULL);
    }
}

static int nvtx_push_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    return nvtx_is_ours(domain) ? NVTX_NO_PUSH_POP_TRACKING : nvtx_push_event(event);
}

static int nvtx_pop_in(nvtxDomainHandle_t domain)
{
    return nvtx_is_ours(domain) ? NVTX_NO_PUSH_POP_TRACKING : nvtx_pop();
}

static nvtxDomainHandle_t nvtx_domain(const char *name)
{
    return (nvtxDomainHandle_t)nvtx_name(name);
}

static nvtxDomainHandle_t nvtx_domain_wide(const wchar_t *name)
{
    char text[RANGE_BYTES];

    nvtx_narrow(text, name);
    return nvtx_domain(text);
}

static nvtxStringHandle_t nvtx_string(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return (nvtxStringHandle_t)nvtx_name(text);
}

static nvtxStringHandle_t nvtx_string_wide(nvtxDomainHandle_t domain, const wchar_t *wide)
{
    char text[RANGE_BYTES];

    nvtx_narrow(text, wide);
    return nvtx_string(domain, text);
}

/* ---- How it finds them ---- */

struct nvtx_entry {
    unsigned module, number;
    NvtxFunctionPointer function;
};

#define ENTRY(module, number, function)                                                            \
    {                                                                                              \
        NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##number, (NvtxFunctionPointer)function      \
    }

static const struct nvtx_entry entries[] = {
    ENTRY(CORE, RangePushA, nvtx_push),
    ENTRY(CORE, RangePushW, nvtx_push_wide),
    ENTRY(CORE, RangePushEx, nvtx_push_event),
    ENTRY(CORE, RangePop, nvtx_pop),
    ENTRY(CORE2, DomainRangePushEx, nvtx_push_in),
    ENTRY(CORE2, DomainRangePop, nvtx_pop_in),
    ENTRY(CORE2, DomainCreateA, nvtx_domain),
    ENTRY(CORE2, DomainCreateW, nvtx_domain_wide),
    ENTRY(CORE2, DomainRegisterStringA, nvtx_string),
    ENTRY(CORE2, DomainRegisterStringW, nvtx_string_wide),
};

GSHMEM_API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);

    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        NvtxFunctionTable table;
        unsigned size;

        if (!callbacks || !callbacks->GetModuleFunctionTable((NvtxCallbackModule)entries[i].module,
                                                             &table, &size))
            return 0;
        if (entries[i].number < size)
            *table[entries[i].number] = entries[i].function;
    }
    return 1;
}

/* <nvtx3/nvToolsExt.h> for programs built for the host device: ranges and marks for NVIDIA's
 * profilers, which see nothing of a CPU. Ranges that a thread pushes go to gshmem_range_push, and
 * so into the trace (GSHMEM_TRACE); other calls do nothing. Where a CUDA toolkit has the real
 * header, that one is taken, unless GSHMEM_OWN_NVTX is defined. It gives ranges to a profiler, and
 * gshmem-nvtx.so is one that puts them into the trace (NVTX_INJECTION64_PATH). */
#ifndef GSHMEM_HOST_DEVICE_NVTOOLSEXT_H
#define GSHMEM_HOST_DEVICE_NVTOOLSEXT_H

#if !defined(GSHMEM_OWN_NVTX) && defined(__has_include_next) &&                                    \
    __has_include_next(<nvtx3/nvToolsExt.h>)
#include_next <nvtx3/nvToolsExt.h>
#else

#include "gshmem_names_begin.h"

#include <stddef.h>
#include <stdint.h>

#define NVTX_VERSION 3

#define NVTX_NO_PUSH_POP_TRACKING ((int)-2)

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;

typedef enum nvtxMessageType_t {
    NVTX_MESSAGE_UNKNOWN = 0,
    NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2,
    NVTX_MESSAGE_TYPE_REGISTERED = 3
} nvtxMessageType_t;

typedef enum nvtxPayloadType_t {
    NVTX_PAYLOAD_UNKNOWN = 0,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2,
    NVTX_PAYLOAD_TYPE_DOUBLE = 3
} nvtxPayloadType_t;

typedef union nvtxMessageValue_t {
    const char *ascii;
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct nvtxEventAttributes_v2 {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType;
    int32_t reserved0;
    union payload_t {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;

#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

#ifdef __cplusplus
extern "C" {
#endif
/* Weak: a program may be linked without GSHMEM. */
void gshmem_nvtx_push(const char *name) __asm__("gshmem_range_push") __attribute__((weak));
void gshmem_nvtx_pop(void) __asm__("gshmem_range_pop") __attribute__((weak));
#ifdef __cplusplus
}
#endif

static inline int gshmem_nvtx_begin(const char *name)
{
    if (gshmem_nvtx_push)
        gshmem_nvtx_push(name);
    return NVTX_NO_PUSH_POP_TRACKING;
}

static inline int gshmem_nvtx_end(void)
{
    if (gshmem_nvtx_pop)
        gshmem_nvtx_pop();
    return NVTX_NO_PUSH_POP_TRACKING;
}

/* Each push has its pop, also one whose text is no string of bytes. */
static inline const char *gshmem_nvtx_text(const nvtxEventAttributes_t *event)
{
    return event && event->messageType == NVTX_MESSAGE_TYPE_ASCII && event->message.ascii
               ? event->message.ascii
               : "(a range of NVTX)";
}

static inline void nvtxMarkA(const char *message)
{
    (void)message;
}

static inline void nvtxMarkEx(const nvtxEventAttributes_t *event)
{
    (void)event;
}

static inline nvtxRangeId_t nvtxRangeStartA(const char *message)
{
    (void)message;
    return 0;
}

static inline nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t *event)
{
    (void)event;
    return 0;
}

static inline void nvtxRangeEnd(nvtxRangeId_t range)
{
    (void)range;
}

static inline int nvtxRangePushA(const char *message)
{
    return gshmem_nvtx_begin(message);
}

static inline int nvtxRangePushEx(const nvtxEventAttributes_t *event)
{
    return gshmem_nvtx_begin(gshmem_nvtx_text(event));
}

static inline int nvtxRangePop(void)
{
    return gshmem_nvtx_end();
}

static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
    (void)name;
    return NULL;
}

static inline void nvtxDomainDestroy(nvtxDomainHandle_t domain)
{
    (void)domain;
}

static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain,
                                        const nvtxEventAttributes_t *event)
{
    (void)domain;
    return gshmem_nvtx_begin(gshmem_nvtx_text(event));
}

static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
    (void)domain;
    return gshmem_nvtx_end();
}

static inline void nvtxNameCategoryA(uint32_t category, const char *name)
{
    (void)category, (void)name;
}

static inline void nvtxNameOsThreadA(uint32_t thread, const char *name)
{
    (void)thread, (void)name;
}

#define nvtxMark         nvtxMarkA
#define nvtxRangePush    nvtxRangePushA
#define nvtxRangeStart   nvtxRangeStartA
#define nvtxDomainCreate nvtxDomainCreateA

#include "gshmem_names_end.h"
#endif
#endif

/* The simulated driver: GPUs, contexts, faults, and the account of what is open. */
#define _GNU_SOURCE
#include "sim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

long sim_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? atol(text) : otherwise;
}

/* ---- Where a PE is ---- */

/* As gshmemrun spreads them: the first hosts have one more. */
int sim_host(void)
{
    int hosts = (int)sim_setting("SIM_HOSTS", 1), n = (int)sim_setting("GSHMEM_RUN_NPES", 1);
    int small = n / hosts, more = n % hosts, pe = (int)sim_setting("GSHMEM_RUN_PE", 0);

    return pe < more * (small + 1) ? pe / (small + 1) : more + (pe - more * (small + 1)) / small;
}

int sim_clique(void)
{
    const char *list = getenv("SIM_CLIQUES");

    for (long pe = sim_setting("GSHMEM_RUN_PE", 0); list && pe > 0; pe--) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return list ? atoi(list) : 0;
}

char sim_domain(void)
{
    const char *name = getenv("SIM_DOMAIN");

    return name ? *name : 0;
}

/* ---- Faults ---- */

static struct {
    char name[40];
    long count;
} calls[256];

static long count(const char *call)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].name[0] == 0)
            snprintf(calls[i].name, sizeof calls[i].name, "%s", call);
        if (strcmp(calls[i].name, call) == 0)
            return ++calls[i].count;
    }
    return 0;
}

long sim_calls(const char *call)
{
    long n = 0;

    sim_lock();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        n += strcmp(calls[i].name, call) == 0 ? calls[i].count : 0;
    sim_unlock();
    return n;
}

static struct {
    char name[40];
    long nth;
    cuda_result result;
} planned;

void sim_fail(const char *call, long nth, int result)
{
    sim_lock();
    snprintf(planned.name, sizeof planned.name, "%s", call);
    planned.nth = nth;
    planned.result = (cuda_result)result;
    sim_unlock();
}

/* With the lock. */
static cuda_result planned_fault(const char *call)
{
    return planned.nth && strcmp(planned.name, call) == 0 && --planned.nth == 0 ? planned.result
                                                                                : CUDA_OK;
}

cuda_result sim_enter(const char *call, const void *from)
{
    const char *fail = getenv("SIM_FAIL"), *only = getenv("SIM_FAIL_PE"), *pe = getenv("GSHMEM_RUN_PE");
    size_t length = strlen(call);
    long nth;

    if (nth_simulated_fails && nth_simulated_fails(call, from))
        return CUDA_OUT_OF_MEMORY;

    sim_lock();
    nth = count(call);
    cuda_result fault = planned_fault(call);
    sim_unlock();
    if (fault)
        return fault;
    if (sim_setting("SIM_LOG", 0))
        fprintf(stderr, "simulation: %s, call %ld\n", call, nth);
    if (only && pe && strcmp(only, pe) != 0)
        return CUDA_OK;
    while (fail && *fail) {
        long which, result;
        if (strncmp(fail, call, length) == 0 &&
            sscanf(fail + length, "@%ld=%ld", &which, &result) == 2 && (which == 0 || which == nth))
            return (cuda_result)result;
        fail += strcspn(fail, ",");
        fail += *fail == ',';
    }
    return CUDA_OK;
}

/* ---- What is open ---- */

static long open_count[SIM_KINDS];
static bool blamed;

void sim_opened(enum sim_kind kind)
{
    __atomic_fetch_add(&open_count[kind], 1, __ATOMIC_RELAXED);
}

void sim_closed(enum sim_kind kind)
{
    __atomic_fetch_sub(&open_count[kind], 1, __ATOMIC_RELAXED);
}

void sim_blame(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("simulation: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    blamed = true;
}

__attribute__((destructor)) static void account(void)
{
    static const char *const names[] = {
        "contexts", "reservations", "pieces", "mappings", "allocations", "imports",
        "pinned allocations", "streams", "registrations of host memory", "events", "modules", "graphs",
        "bindings to multicast objects"};

    for (int kind = 0; kind < SIM_KINDS; kind++) {
        if (open_count[kind])
            sim_blame("%ld %s are still open", open_count[kind], names[kind]);
    }
    if (blamed)
        _exit(99);
}

/* ---- GPUs ---- */

static bool started;

int sim_visible(int ordinal)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int all = (int)sim_setting("SIM_GPUS", 2);

    if (!list)
        return ordinal < all ? ordinal : -1;
    for (int i = 0; *list; i++) {
        int gpu = atoi(list);
        if (gpu < 0 || gpu >= all)
            return -1; /* as the real one: what follows nonsense is not visible */
        if (i == ordinal)
            return gpu;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return -1;
}

int sim_gpus(void)
{
    int n = 0;

    while (n < SIM_GPUS_MOST && sim_visible(n) >= 0)
        n++;
    return n;
}

bool sim_gpu_exists(cuda_gpu gpu)
{
    return gpu >= 0 && gpu < sim_gpus();
}

bool sim_reaches(cuda_gpu gpu, cuda_gpu peer)
{
    return gpu == peer || sim_setting("SIM_PEER", 1);
}

SIM_API cuda_result cuInit(unsigned flags)
{
    SIM_ENTER();
    if (flags)
        return CUDA_INVALID_VALUE;
    if (sim_gpus() == 0)
        return CUDA_NO_DEVICE;
    started = true;
    return CUDA_OK;
}

SIM_API cuda_result cuDriverGetVersion(int *version)
{
    SIM_ENTER();
    *version = (int)sim_setting("SIM_VERSION", 13000);
    return CUDA_OK;
}

static const struct {
    cuda_result result;
    const char *name, *text;
} errors[] = {
    {CUDA_OK, "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_HOST_REGISTERED_BEFORE, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

SIM_API cuda_result cuGetErrorName(cuda_result result, const char **name)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].result == result) {
            *name = errors[i].name;
            return CUDA_OK;
        }
    }
    return CUDA_INVALID_VALUE;
}

SIM_API cuda_result cuGetErrorString(cuda_result result, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].result == result) {
            *text = errors[i].text;
            return CUDA_OK;
        }
    }
    return CUDA_INVALID_VALUE;
}

SIM_API cuda_result cuDeviceGetCount(int *n)
{
    SIM_ENTER();
    if (!started)
        return CUDA_INVALID_VALUE;
    *n = sim_gpus();
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceGet(cuda_gpu *gpu, int ordinal)
{
    SIM_ENTER();
    if (!sim_gpu_exists(ordinal))
        return CUDA_INVALID_DEVICE;
    *gpu = ordinal;
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceGetName(char *name, int size, cuda_gpu gpu)
{
    SIM_ENTER();
    snprintf(name, (size_t)size, "Simulation %d", sim_visible(gpu));
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceGetPCIBusId(char *address, int size, cuda_gpu gpu)
{
    SIM_ENTER();
    if (!sim_gpu_exists(gpu))
        return CUDA_INVALID_DEVICE;
    snprintf(address, (size_t)size, "0000:%02X:00.0", 0xa0 + sim_visible(gpu));
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceGetUuid_v2(struct cuda_uuid *uuid, cuda_gpu gpu)
{
    SIM_ENTER();
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "simulated GPU ", 14);
    uuid->bytes[14] = (unsigned char)sim_visible(gpu);
    uuid->bytes[15] = (unsigned char)sim_host();
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceGetAttribute(int *value, enum cuda_attribute which, cuda_gpu gpu)
{
    SIM_ENTER();
    if (!sim_gpu_exists(gpu))
        return CUDA_INVALID_DEVICE;
    switch (which) {
    case CUDA_ATTRIBUTE_COMPUTE_MODE:
        *value = (int)sim_setting("SIM_MODE", 0);
        break;
    case CUDA_ATTRIBUTE_UNIFIED_ADDRESSING:
        *value = 1;
        break;
    case CUDA_ATTRIBUTE_MAJOR:
        *value = 9;
        break;
    case CUDA_ATTRIBUTE_MINOR:
        *value = 0;
        break;
    case CUDA_ATTRIBUTE_VMM:
        *value = (int)sim_setting("SIM_VMM", 1);
        break;
    case CUDA_ATTRIBUTE_DESCRIPTORS:
        *value = (int)sim_setting("SIM_POSIX", 1);
        break;
    case CUDA_ATTRIBUTE_FABRIC:
        if (sim_setting("SIM_VERSION", 13000) < 12030)
            return CUDA_INVALID_VALUE;
        *value = (int)sim_setting("SIM_FABRIC", 0);
        break;
    default:
        return sim_attribute(value, which) ? CUDA_OK : CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_gpu gpu)
{
    SIM_ENTER();
    if (!sim_gpu_exists(gpu))
        return CUDA_INVALID_DEVICE;
    *bytes = (size_t)sim_setting("SIM_MEMORY", 1 << 30);
    return CUDA_OK;
}

SIM_API cuda_result cuDeviceCanAccessPeer(int *can, cuda_gpu gpu, cuda_gpu peer)
{
    SIM_ENTER();
    if (!sim_gpu_exists(gpu) || !sim_gpu_exists(peer))
        return CUDA_INVALID_DEVICE;
    *can = gpu != peer && sim_reaches(gpu, peer);
    return CUDA_OK;
}

/* ---- Contexts: only primary ones, a number behind a pointer ---- */

static struct sim_context {
    int users;
} contexts[SIM_GPUS_MOST];

enum { STACK = 16 };
static _Thread_local struct sim_context *stack[STACK];
static _Thread_local int depth;

cuda_gpu sim_current(void)
{
    struct sim_context *now = depth ? stack[depth - 1] : NULL;

    return now && now->users ? (cuda_gpu)(now - contexts) : -1;
}

SIM_API cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_gpu gpu)
{
    SIM_ENTER();
    if (!started || !sim_gpu_exists(gpu))
        return CUDA_INVALID_DEVICE;
    sim_lock();
    contexts[gpu].users++;
    sim_unlock();
    sim_opened(SIM_CONTEXT);
    *context = &contexts[gpu];
    return CUDA_OK;
}

SIM_API cuda_result cuDevicePrimaryCtxRelease_v2(cuda_gpu gpu)
{
    SIM_ENTER();
    if (!sim_gpu_exists(gpu) || contexts[gpu].users == 0)
        return CUDA_INVALID_CONTEXT;
    sim_lock();
    int left = --contexts[gpu].users;
    sim_unlock();
    if (left == 0)
        sim_end_default(gpu);
    sim_closed(SIM_CONTEXT);
    return CUDA_OK;
}

SIM_API cuda_result cuCtxGetCurrent(cuda_context *context)
{
    SIM_ENTER();
    *context = depth ? stack[depth - 1] : NULL;
    return CUDA_OK;
}

SIM_API cuda_result cuCtxSetCurrent(cuda_context context)
{
    SIM_ENTER();
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    if (!context)
        depth--;
    return CUDA_OK;
}

SIM_API cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    SIM_ENTER();
    if (!context || depth == STACK)
        return CUDA_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_OK;
}

SIM_API cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    SIM_ENTER();
    if (depth == 0)
        return CUDA_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_OK;
}

SIM_API cuda_result cuCtxSynchronize(void)
{
    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    sim_finish(sim_current());
    return CUDA_OK;
}

SIM_API cuda_result cuCtxGetDevice(cuda_gpu *gpu)
{
    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    *gpu = sim_current();
    return CUDA_OK;
}

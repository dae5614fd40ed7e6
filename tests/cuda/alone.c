/* The device by its table of functions, without a job: the status of a call of the driver's that
 * fails is the one that the caller gets; and what is under way when the device is closed ends
 * before its kernel goes.
 *
 *     alone MODULE statuses|no-kernels|close */
#include <dlfcn.h>
#include <stdarg.h>

#include "device/cuda/driver.h"
#include "device/device.h"
#include "device/request.h"
#include "gshmem.h"
#include "gshmem/atomic.h"
#include "tests/check.h"

enum { HEAP = 64 << 20, NOT_SUPPORTED = 801 };

static const struct device_ops *ops;
static void (*sim_fail_call)(const char *call, long nth, int result);
static char said[500];

static gshmem_status_t alone_fail(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    return status;
}

static void alone_tell(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t alone_add(struct gshmem_device_module *module)
{
    (void)module;
    return GSHMEM_OK;
}

static void alone_remove(struct gshmem_device_module *module)
{
    (void)module;
}

static struct device *open_device(const char *gpu)
{
    const struct device_config config = {sizeof config,
                                         .fail = alone_fail,
                                         .info = alone_tell,
                                         .warn = alone_tell,
                                         .wanted = gpu,
                                         .add_module = alone_add,
                                         .remove_module = alone_remove};
    struct device *d;

    if (ops->open(&config, &d))
        CHECK_FAIL("%s", said);
    return d;
}

static struct device_update add_one(void *at)
{
    return (struct device_update){GSHMEM_AMO_ADD, GSHMEM_TYPE_INT64, at, 1, 0};
}

/* A request of the CPU's when the nth call of that from now on fails. */
static gshmem_status_t request_with(struct device *d, void *at, const char *call, int result)
{
    const struct device_request r = {.call = DEVICE_UPDATE,
                                     .type = GSHMEM_TYPE_INT64,
                                     .op = GSHMEM_AMO_ADD,
                                     .dest = (uintptr_t)at,
                                     .value = {1, 0}};
    void *request = NULL;
    gshmem_status_t status;

    sim_fail_call(call, result ? 1 : 0, result);
    if ((status = ops->request_start(d, &r, &request)))
        return status;
    while (!ops->request_done(d, request, &status))
        ;
    return status;
}

static void check_requests(struct device *d, void *at)
{
    static const char *const calls[] = {"cuStreamCreate", "cuEventCreate", "cuMemHostAlloc"};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        CHECK_EQ(request_with(d, at, calls[i], CUDA_OUT_OF_MEMORY), GSHMEM_ERR_MEMORY);
        CHECK_HAS(said, "out of memory");
        CHECK_EQ(request_with(d, at, calls[i], NOT_SUPPORTED), GSHMEM_ERR_UNSUPPORTED);
    }
    CHECK_EQ(request_with(d, at, "cuMemHostAlloc", 0), GSHMEM_OK);
}

/* An update of memory of GPU 1, which GPU 0 has no peer access to. */
static void check_elsewhere(struct device *d, bool kernels)
{
    struct device *other = open_device("1");
    struct device_heap_map map;
    struct device_card card;
    uint64_t ticket;

    CHECK_EQ(ops->describe(other, HEAP, &card), GSHMEM_OK);
    CHECK_EQ(ops->heap_open(d, &card, HEAP, 0, &map), GSHMEM_OK);
    CHECK(map.own && !map.loads);
    const struct device_update u = add_one((void *)map.base);
    if (kernels) {
        sim_fail_call("cuDevicePrimaryCtxRetain", 1, CUDA_OUT_OF_MEMORY);
        CHECK_EQ(ops->update_start(d, &u, &ticket), GSHMEM_ERR_MEMORY);
        sim_fail_call("cuModuleLoadData", 1, CUDA_OUT_OF_MEMORY);
        CHECK_EQ(ops->update_start(d, &u, &ticket), GSHMEM_ERR_MEMORY);
    } else {
        CHECK_EQ(ops->update_start(d, &u, &ticket), GSHMEM_ERR_UNSUPPORTED);
        CHECK_HAS(said, "built without one (-Dgpu_code=none)");
    }
    ops->heap_close(d, &map);
    ops->close(other);
}

/* An update that nobody asks for any more, and a request whose event fails behind its launch, are
 * both under way when the device is closed. */
static void leave_under_way(struct device *d, void *at)
{
    const struct device_update u = add_one(at);
    uint64_t ticket = 0;

    CHECK_EQ(ops->update_start(d, &u, &ticket), GSHMEM_OK);
    CHECK(ticket);
    ops->update_forget(d, ticket);
    CHECK_EQ(request_with(d, at, "cuEventRecord", CUDA_OUT_OF_MEMORY), GSHMEM_ERR_MEMORY);
}

static void check_close(struct device *d, void *word)
{
    struct device *closed = open_device("0");
    int64_t sum = -1;

    leave_under_way(closed, word);
    ops->close(closed);
    CHECK_EQ(ops->copy(d, &sum, word, sizeof sum), GSHMEM_OK);
    CHECK_EQ(sum, 2);
}

/* A heap that is out of reach has nothing to give back. */
static void check_unreached(struct device *d)
{
    struct device_heap_map none = {.own = NULL};

    CHECK_EQ(ops->heap_shrink(d, &none, 0), 0);
    ops->heap_close(d, &none);
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 3);
    CHECK(!gshmem_initialized()); /* the library is linked: the simulation needs it, for kernels */
    void *module = dlopen(argv[1], RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!module || !driver)
        CHECK_FAIL("%s", dlerror());
    ops = dlsym(module, "gshmem_device");
    *(void **)&sim_fail_call = dlsym(driver, "sim_fail");
    CHECK(ops && sim_fail_call);
    struct device *d = open_device("0");
    void *word = ops->allocate(d, DEVICE_MEMORY_OWN, sizeof(int64_t));
    CHECK(word);
    if (strcmp(argv[2], "close") == 0) {
        check_close(d, word);
    } else {
        const bool kernels = strcmp(argv[2], "statuses") == 0;
        if (kernels)
            check_requests(d, word);
        check_elsewhere(d, kernels);
        check_unreached(d);
    }
    ops->release(d, DEVICE_MEMORY_OWN, word);
    ops->close(d);
    CHECK_EQ(dlclose(driver), 0);
    return 0;
}

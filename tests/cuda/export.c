/* Memory of a (simulated) GPU as a dma-buf: that it is this memory, from where it says; and what is
 * refused. The module is opened by itself.
 *
 *     export MODULE yes|no|fails */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>

#include "device/device.h"
#include "gshmem.h"
#include "tests/check.h"

enum { BYTES = 3 << 20 };

static char said[500];

static gshmem_status_t fail(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    return status;
}

static void info(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t add_module(struct gshmem_device_module *module)
{
    (void)module;
    return GSHMEM_OK;
}

static void remove_module(struct gshmem_device_module *module)
{
    (void)module;
}

static void exported(const struct device_ops *ops, struct device *d, char *memory)
{
    char mine[100], got[100];
    uint64_t offset = 99;
    int fd = -1;

    for (int i = 0; i < 100; i++)
        mine[i] = (char)(i * 3);
    CHECK_EQ(ops->copy(d, memory + 4096 * 5 + 17, mine, sizeof mine), GSHMEM_OK);
    CHECK_EQ(ops->export_range(d, memory + 4096 * 5 + 17, sizeof mine, &fd, &offset), GSHMEM_OK);
    CHECK(fd >= 0);
    CHECK_EQ(offset, 17);
    CHECK_EQ(lseek(fd, (off_t)offset, SEEK_CUR) % 4096, 17);
    CHECK_EQ(read(fd, got, sizeof got), sizeof got);
    CHECK(memcmp(got, mine, sizeof got) == 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(ops->export_range(d, memory, BYTES, &fd, &offset), GSHMEM_OK);
    CHECK_EQ(offset, 0);
    CHECK_EQ(close(fd), 0);
}

static void refused(const struct device_ops *ops, struct device *d, char *memory)
{
    uint64_t offset = 99;
    int fd = -7;

    CHECK_EQ(ops->export_range(d, memory, (size_t)BYTES * 9, &fd, &offset), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(said, "are not all memory of a GPU");
    CHECK_EQ(ops->export_range(d, said, 10, &fd, &offset), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(fd, -7);
    CHECK_EQ(offset, 99);
}

int main(int argc, char **argv)
{
    const struct device_config config = {sizeof config,
                                         .fail = fail,
                                         .info = info,
                                         .wanted = "",
                                         .add_module = add_module,
                                         .remove_module = remove_module};
    uint64_t offset = 99;
    struct device *d;
    int fd = -7;

    CHECK_EQ(argc, 3);
    CHECK(!gshmem_initialized()); /* the library is linked: the simulation needs it, for kernels */
    void *module = dlopen(argv[1], RTLD_NOW);
    if (!module)
        CHECK_FAIL("%s", dlerror());
    const struct device_ops *ops = dlsym(module, "gshmem_device");
    CHECK(ops);
    if (ops->open(&config, &d))
        CHECK_FAIL("%s", said);
    char *memory = ops->allocate(d, DEVICE_MEMORY_OWN, BYTES);
    CHECK(memory);
    if (strcmp(argv[2], "yes") == 0) {
        exported(ops, d, memory);
        refused(ops, d, memory);
    } else {
        CHECK(ops->export_range(d, memory, BYTES, &fd, &offset) != GSHMEM_OK);
        CHECK_EQ(fd, -7);
        CHECK_HAS(said, argv[2][0] == 'n' ? "export no dma-buf" : "a dma-buf of 3145728 B");
        CHECK_EQ(offset, 99);
    }
    ops->release(d, DEVICE_MEMORY_OWN, memory);
    ops->close(d);
    return 0;
}

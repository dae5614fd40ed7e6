#include "device/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool gpu_number(const char *text, int *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    *value = n >= 0 && n <= 1 << 20 ? (int)n : -1;
    return end != text && *end == 0 && *value >= 0;
}

/* Sets *gpu, and `why` to how it was chosen; or false, and why there is none. */
static bool gpu_choose(const struct cuda_driver *d, const struct device_config *config,
                          int *gpus, cuda_gpu *gpu, char *why, size_t why_size)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cuda_context current = NULL;
    int wanted;

    *gpus = 0;
    if (d->gpu_count(gpus) || *gpus < 1) {
        snprintf(why, why_size, "the NVIDIA driver shows this process no GPU%s%s",
                 visible ? "; CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
        return false;
    }
    if (config->wanted[0]) {
        if (!gpu_number(config->wanted, &wanted)) {
            snprintf(why, why_size, "GSHMEM_CUDA_DEVICE=%s: expected the number of a GPU, 0..%d",
                     config->wanted, *gpus - 1);
            return false;
        }
        if (wanted >= *gpus) {
            snprintf(why, why_size,
                     "GSHMEM_CUDA_DEVICE=%d: there is no such GPU; this process sees %d (0..%d)",
                     wanted, *gpus, *gpus - 1);
            return false;
        }
        snprintf(why, why_size, "by GSHMEM_CUDA_DEVICE");
    } else if (!d->context_current(&current) && current && !d->context_gpu(&wanted)) {
        snprintf(why, why_size, "the program's current one");
    } else {
        wanted = config->index % *gpus;
        snprintf(why, why_size, "by this PE's local rank, %d", config->index);
    }
    return d->gpu_get(gpu, wanted) == CUDA_OK;
}

static int gpu_attribute_of(const struct cuda_driver *d, enum cuda_attribute which, cuda_gpu gpu)
{
    int value = 0;

    return d->gpu_attribute(&value, which, gpu) ? 0 : value;
}

/* What users know the GPU by. */
static void gpu_describe(const struct cuda_driver *d, cuda_gpu gpu, char *text, size_t size)
{
    char name[96] = "?";
    int version = 0;
    size_t bytes = 0;

    d->gpu_name(name, sizeof name, gpu);
    d->gpu_memory(&bytes, gpu);
    d->version(&version);
    snprintf(text, size, "GPU %d, %s, sm_%d%d, %zu MiB, driver for CUDA %d.%d", gpu, name,
             gpu_attribute_of(d, CUDA_ATTRIBUTE_MAJOR, gpu),
             gpu_attribute_of(d, CUDA_ATTRIBUTE_MINOR, gpu), bytes >> 20, version / 1000,
             version % 1000 / 10);
}

/* Whether the GPU has what the library cannot do without. */
static bool gpu_serves(const struct cuda_driver *d, cuda_gpu gpu, char *why, size_t why_size)
{
    if (gpu_attribute_of(d, CUDA_ATTRIBUTE_COMPUTE_MODE, gpu) == CUDA_COMPUTE_MODE_PROHIBITED) {
        snprintf(why, why_size, "GPU %d is in compute mode \"prohibited\" (nvidia-smi -c 0)", gpu);
        return false;
    }
    if (!gpu_attribute_of(d, CUDA_ATTRIBUTE_UNIFIED_ADDRESSING, gpu)) {
        snprintf(why, why_size, "GPU %d has no unified addressing", gpu);
        return false;
    }
    return true;
}

bool cuda_find_gpu_for(const struct cuda_driver *d, const struct device_config *config, int *gpus,
                     cuda_gpu *gpu, char *why, size_t why_size)
{
    char how[160], text[160];

    if (!gpu_choose(d, config, gpus, gpu, how, sizeof how)) {
        snprintf(why, why_size, "%s", how);
        return false;
    }
    if (!gpu_serves(d, *gpu, why, why_size))
        return false;
    gpu_describe(d, *gpu, text, sizeof text);
    snprintf(why, why_size, "%s (%s)", text, how);
    return true;
}

cuda_gpu cuda_find_gpu(const struct cuda *c, const unsigned char uuid[16])
{
    struct cuda_uuid theirs;
    cuda_gpu gpu;

    for (int i = 0; i < c->gpus; i++) {
        if (!c->driver.gpu_get(&gpu, i) && !c->driver.gpu_uuid(&theirs, gpu) &&
            memcmp(theirs.bytes, uuid, sizeof theirs.bytes) == 0)
            return gpu;
    }
    return -1;
}

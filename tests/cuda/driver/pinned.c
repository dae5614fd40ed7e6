/* The simulated driver: host memory that it pins, whose an address is, and dma-bufs. */
#define _GNU_SOURCE
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct pinned {
    char *at;
    size_t bytes;
    bool registered; /* it is the program's */
};

static struct pinned all[SIM_OBJECTS];

/* With the lock held. */
static struct pinned *pinned_in(const char *at, size_t bytes)
{
    for (int i = 0; i < SIM_OBJECTS; i++) {
        if (all[i].at && all[i].at < at + bytes && at < all[i].at + all[i].bytes)
            return &all[i];
    }
    return NULL;
}

static cuda_result add(struct pinned new)
{
    cuda_result result = CUDA_OUT_OF_MEMORY;

    sim_lock();
    if (pinned_in(new.at, new.bytes)) {
        result = CUDA_HOST_REGISTERED_BEFORE;
    } else {
        for (int i = 0; i < SIM_OBJECTS && result; i++) {
            if (!all[i].at) {
                all[i] = new;
                result = CUDA_OK;
            }
        }
    }
    sim_unlock();
    return result;
}

static bool erase(const void *at, bool registered)
{
    sim_lock();
    struct pinned *p = at ? pinned_in(at, 1) : NULL;
    bool found = p && p->at == at && p->registered == registered;
    if (found)
        p->at = NULL;
    sim_unlock();
    return found;
}

SIM_API cuda_result cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    cuda_result result;
    void *p;

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (sim_captures())
        return CUDA_CAPTURE_UNSUPPORTED;
    if (bytes == 0 || flags & ~(unsigned)(CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP))
        return CUDA_INVALID_VALUE;
    if (!(p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE)))
        return CUDA_OUT_OF_MEMORY;
    if ((result = add((struct pinned){p, bytes, false}))) {
        free(p);
        return result;
    }
    memset(p, 0xa5, bytes);
    *at = p;
    sim_opened(SIM_PINNED);
    return CUDA_OK;
}

SIM_API cuda_result cuMemFreeHost(void *at)
{
    SIM_ENTER();
    if (!erase(at, false))
        return CUDA_INVALID_VALUE;
    free(at);
    sim_closed(SIM_PINNED);
    return CUDA_OK;
}

SIM_API cuda_result cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    cuda_result result;

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (!at || bytes == 0 || flags & ~(unsigned)(CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP))
        return CUDA_INVALID_VALUE;
    if (!(result = add((struct pinned){at, bytes, true})))
        sim_opened(SIM_REGISTRATION);
    return result;
}

SIM_API cuda_result cuMemHostUnregister(void *at)
{
    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (!erase(at, true))
        return CUDA_INVALID_VALUE;
    sim_closed(SIM_REGISTRATION);
    return CUDA_OK;
}

/* Of memory that no driver call made it knows nothing, as the real one. */
SIM_API cuda_result cuPointerGetAttribute(void *value, int which, cuda_address at)
{
    unsigned kind = CUDA_MEMORY_GPU;
    struct sim_place place;

    SIM_ENTER();
    if (!sim_find(at, &place)) {
        sim_lock();
        const struct pinned *p = pinned_in((char *)(uintptr_t)at, 1);
        if (p)
            place = (struct sim_place){(cuda_address)(uintptr_t)p->at, p->bytes, -1, 0, -1};
        sim_unlock();
        if (!p)
            return CUDA_INVALID_VALUE;
        kind = CUDA_MEMORY_HOST;
    }
    switch (which) {
    case CUDA_POINTER_MEMORY_TYPE:
        memcpy(value, &kind, sizeof kind);
        return CUDA_OK;
    case CUDA_POINTER_RANGE_START:
    case CUDA_POINTER_MAPPING_START:
        memcpy(value, &place.at, sizeof place.at);
        return CUDA_OK;
    case CUDA_POINTER_RANGE_BYTES:
    case CUDA_POINTER_MAPPING_BYTES:
        memcpy(value, &place.bytes, sizeof place.bytes);
        return CUDA_OK;
    default:
        return CUDA_INVALID_VALUE;
    }
}

bool sim_attribute(int *value, enum cuda_attribute which)
{
    if (sim_nic_attribute(value, which))
        return true;
    if (which > CUDA_ATTRIBUTE_RDMA_VMM && sim_setting("SIM_VERSION", 13000) < 11070)
        return false; /* that driver knows none such */
    switch (which) {
    case CUDA_ATTRIBUTE_REGISTERED_IN_PLACE:
        *value = (int)sim_setting("SIM_IN_PLACE", 1);
        return true;
    case CUDA_ATTRIBUTE_RDMA_VMM:
    case CUDA_ATTRIBUTE_DMA_BUF:
        *value = (int)sim_setting("SIM_DMA_BUF", 0);
        return true;
    case CUDA_ATTRIBUTE_MULTICAST:
        *value = (int)sim_setting("SIM_MULTICAST", 0);
        return true;
    default:
        return false;
    }
}

/* Another view of the memory's file, which is read from where the range begins. */
SIM_API cuda_result cuMemGetHandleForAddressRange(void *handle, cuda_address at, size_t bytes,
                                                  int type, unsigned long long flags)
{
    struct sim_place place;
    char path[40];
    int fd;

    SIM_ENTER();
    if (!sim_setting("SIM_DMA_BUF", 0))
        return CUDA_NOT_SUPPORTED;
    if (type != CUDA_RANGE_DMA_BUF || flags || at % PAGE || bytes == 0 || bytes % PAGE ||
        !sim_find(at, &place) || at + bytes > place.at + place.bytes)
        return CUDA_INVALID_VALUE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", place.fd);
    if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
        return CUDA_OUT_OF_MEMORY;
    lseek(fd, (off_t)(at - place.at), SEEK_SET);
    memcpy(handle, &fd, sizeof fd);
    return CUDA_OK;
}

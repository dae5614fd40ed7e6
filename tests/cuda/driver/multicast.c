/* The simulated driver: multicast. Objects are known to all processes that have one's descriptor,
 * and count the GPUs that were put into them; nothing is stored through them, as that is what
 * kernels do. */
#include "sim.h"

#include <string.h>

enum { GRANULE = 2 << 20 };

static bool good_handles(unsigned long long types)
{
    return types && !(types & ~(unsigned long long)(CUDA_HANDLE_DESCRIPTOR | CUDA_HANDLE_FABRIC));
}

SIM_API cuda_result cuMulticastGetGranularity(size_t *bytes, const struct cuda_multicast *what,
                                              int option)
{
    SIM_ENTER();
    if (!good_handles(what->handle_types) || option < CUDA_GRANULARITY_MINIMUM ||
        option > CUDA_GRANULARITY_RECOMMENDED)
        return CUDA_INVALID_VALUE;
    *bytes = (size_t)sim_setting("SIM_MULTICAST_GRANULE", GRANULE);
    return CUDA_OK;
}

SIM_API cuda_result cuMulticastCreate(cuda_piece *object, const struct cuda_multicast *what)
{
    struct sim_multicast *m;
    cuda_result result;
    size_t bytes;

    SIM_ENTER();
    if (!sim_setting("SIM_MULTICAST", 0))
        return CUDA_NOT_SUPPORTED;
    if (what->gpus < 1 || what->flags || !good_handles(what->handle_types))
        return CUDA_INVALID_VALUE;
    if ((result = sim_multicast_create(what->bytes, (int)what->handle_types, object)))
        return result;
    m = sim_multicast_open(*object, &bytes);
    __atomic_store_n(&m->gpus, what->gpus, __ATOMIC_SEQ_CST);
    sim_multicast_close(m);
    return CUDA_OK;
}

static cuda_result add(struct sim_multicast *m, cuda_gpu gpu)
{
    const uint32_t bit = UINT32_C(1) << sim_visible(gpu);
    uint32_t before;

    if (m->gpus == 0)
        return CUDA_INVALID_VALUE;
    before = __atomic_fetch_or(&m->added, bit, __ATOMIC_SEQ_CST);
    return before & bit || (uint32_t)__builtin_popcount(before) >= m->gpus ? CUDA_INVALID_DEVICE
                                                                           : CUDA_OK;
}

SIM_API cuda_result cuMulticastAddDevice(cuda_piece object, cuda_gpu gpu)
{
    struct sim_multicast *m;
    cuda_result result;
    size_t bytes;

    SIM_ENTER();
    if (!sim_gpu_exists(gpu))
        return CUDA_INVALID_DEVICE;
    if (!(m = sim_multicast_open(object, &bytes)))
        return CUDA_INVALID_VALUE;
    result = add(m, gpu);
    sim_multicast_close(m);
    return result;
}

/* What this process has bound, so that it can be told when memory goes before it is unbound. */
static struct {
    cuda_piece object; /* 0: unused */
    cuda_address at;
    size_t bytes;
} bound[SIM_OBJECTS];

static void note(cuda_piece object, cuda_address at, size_t bytes)
{
    int i = 0;

    sim_lock();
    while (i < SIM_OBJECTS - 1 && bound[i].object)
        i++;
    bound[i].object = object;
    bound[i].at = at;
    bound[i].bytes = bytes;
    sim_unlock();
}

static void forget(cuda_piece object)
{
    sim_lock();
    for (int i = 0; i < SIM_OBJECTS; i++) {
        if (bound[i].object == object)
            bound[i].object = 0;
    }
    sim_unlock();
}

bool sim_is_bound(cuda_address at, size_t bytes)
{
    for (int i = 0; i < SIM_OBJECTS; i++) {
        if (bound[i].object && bound[i].at < at + bytes && at < bound[i].at + bound[i].bytes)
            return true;
    }
    return false;
}

/* The memory of one piece, which may go to other processes, on a GPU that is in the object. */
static cuda_result bind(struct sim_multicast *m, cuda_address at, size_t bytes)
{
    struct sim_place place;

    if (m->gpus == 0 || !sim_find(at, &place) || at % GRANULE ||
        at + bytes > place.at + place.bytes || !place.type)
        return CUDA_INVALID_VALUE;
    if ((uint32_t)__builtin_popcount(__atomic_load_n(&m->added, __ATOMIC_SEQ_CST)) != m->gpus)
        sim_blame(
            "memory is bound to a multicast object before all its GPUs were added: a driver would "
            "wait");
    if (!(m->added >> sim_visible(place.gpu) & 1))
        return CUDA_INVALID_DEVICE;
    __atomic_fetch_add(&m->bound, 1, __ATOMIC_SEQ_CST);
    sim_opened(SIM_BINDING);
    return CUDA_OK;
}

SIM_API cuda_result cuMulticastBindAddr(cuda_piece object, size_t offset, cuda_address at,
                                        size_t bytes, unsigned long long flags)
{
    struct sim_multicast *m;
    cuda_result result = CUDA_INVALID_VALUE;
    size_t all;

    SIM_ENTER();
    if (flags || bytes == 0 || bytes % GRANULE || offset % GRANULE)
        return CUDA_INVALID_VALUE;
    if (!(m = sim_multicast_open(object, &all)))
        return CUDA_INVALID_VALUE;
    if (offset + bytes <= all && !(result = bind(m, at, bytes)))
        note(object, at, bytes);
    sim_multicast_close(m);
    return result;
}

SIM_API cuda_result cuMulticastUnbind(cuda_piece object, cuda_gpu gpu, size_t offset, size_t bytes)
{
    struct sim_multicast *m;
    cuda_result result = CUDA_INVALID_VALUE;
    size_t all;

    SIM_ENTER();
    if (!sim_gpu_exists(gpu) || bytes == 0 || offset % GRANULE)
        return CUDA_INVALID_VALUE;
    if (!(m = sim_multicast_open(object, &all)))
        return CUDA_INVALID_VALUE;
    if (m->gpus && m->added >> sim_visible(gpu) & 1 && offset + bytes <= all) {
        __atomic_fetch_sub(&m->bound, 1, __ATOMIC_SEQ_CST);
        forget(object);
        sim_closed(SIM_BINDING);
        result = CUDA_OK;
    }
    sim_multicast_close(m);
    return result;
}

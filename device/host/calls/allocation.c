/* cudaMalloc, cudaMemcpy and their kin: memory of the host, remembered so that a wrong pointer is
 * an error and not a crash. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/streams/graph.h"
#include "gshmem/context.h"

enum { ALIGNMENT = 256, PITCH = 512, BUCKETS_FIRST = 64 };

/* --- What was allocated: an open hash table by address --- */

struct allocation {
    char *at;
    size_t bytes;
    enum cudaMemoryType type;
    bool registered; /* memory of the program's own, by cudaHostRegister */
    int device;
};

static struct {
    pthread_mutex_t lock;
    struct allocation *slots;
    size_t room, used; /* used counts the slots of what was freed */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char freed; /* what a slot that is free again points to */

static size_t allocation_place_of(const void *at)
{
    return (size_t)(((uintptr_t)at / ALIGNMENT) * 0x9e3779b97f4a7c15u >> 20) & (table.room - 1);
}

static void allocation_insert(struct allocation a)
{
    size_t i = allocation_place_of(a.at);

    while (table.slots[i].at)
        i = (i + 1) & (table.room - 1);
    table.slots[i] = a;
    table.used++;
}

static bool allocation_grow(void)
{
    struct allocation *old = table.slots;
    size_t old_room = table.room, live = 0;

    for (size_t i = 0; i < old_room; i++)
        live += old[i].at && old[i].at != &freed;
    size_t room = BUCKETS_FIRST;
    while (room < 4 * live)
        room *= 2;
    struct allocation *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    table.slots = slots;
    table.room = room;
    table.used = 0;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].at && old[i].at != &freed)
            allocation_insert(old[i]);
    }
    free(old);
    return true;
}

static bool remember_locked(struct allocation a)
{
    bool ok = 2 * table.used < table.room || allocation_grow();

    if (ok)
        allocation_insert(a);
    return ok;
}

static bool allocation_remember(void *at, size_t bytes, enum cudaMemoryType type)
{
    pthread_mutex_lock(&table.lock);
    bool ok = remember_locked((struct allocation){at, bytes, type, false, device_current()});
    pthread_mutex_unlock(&table.lock);
    return ok;
}

static bool allocation_forget(void *at, bool host, bool registered)
{
    bool found = false;

    pthread_mutex_lock(&table.lock);
    for (size_t i = table.room ? allocation_place_of(at) : 0; table.room && table.slots[i].at;
         i = (i + 1) & (table.room - 1)) {
        if (table.slots[i].at == at && (table.slots[i].type == cudaMemoryTypeHost) == host &&
            table.slots[i].registered == registered) {
            table.slots[i].at = &freed;
            found = true;
            break;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

/* What has at least one of the bytes; NULL: nothing. With the lock. */
static const struct allocation *find_any(const char *at, size_t bytes)
{
    for (size_t i = 0; i < table.room; i++) {
        const struct allocation *a = &table.slots[i];
        if (a->at && a->at != &freed && at < a->at + a->bytes && a->at < at + bytes)
            return a;
    }
    return NULL;
}

/* Symmetric memory is the device's: this PE's part of the heap, and what is mapped of others'. The job's
 * library is there or not. */
static bool is_symmetric(const void *pointer)
{
    struct gshmem_ctx *const *world = dlsym(RTLD_DEFAULT, "gshmem_ctx_default");
    const struct gshmem_ctx *c = world ? *world : NULL;

    for (int pe = 0; c && pe < c->n_pes; pe++) {
        uintptr_t base = pe == c->my_pe ? c->heap.base : c->heap.peer[pe];
        if (base && (uintptr_t)pointer - base < c->heap.bytes)
            return true;
    }
    return false;
}

static bool allocation_look_up(const void *pointer, struct allocation *found)
{
    pthread_mutex_lock(&table.lock);
    const struct allocation *a = find_any(pointer, 1);
    if (a)
        *found = *a;
    pthread_mutex_unlock(&table.lock);
    if (a)
        return true;
    if (!virtual_is_mapped(pointer) && !is_symmetric(pointer))
        return false;
    *found = (struct allocation){.type = cudaMemoryTypeDevice, .device = device_current()};
    return true;
}

static cudaError_t allocation_allocate(void **pointer, size_t bytes, enum cudaMemoryType type)
{
    void *p = NULL;

    if (!pointer)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    if (!bytes) {
        *pointer = NULL;
        return cudaSuccess;
    }
    if (posix_memalign(&p, ALIGNMENT, bytes) != 0)
        return report_error(cudaErrorMemoryAllocation);
    if (!allocation_remember(p, bytes, type)) {
        free(p);
        return report_error(cudaErrorMemoryAllocation);
    }
    *pointer = p;
    return cudaSuccess;
}

/* Freeing waits for the device, as on a GPU: a kernel may use it still. */
static cudaError_t allocation_release(void *pointer, bool host)
{
    if (!pointer)
        return cudaSuccess;
    if (!work_may_wait())
        return report_error(cudaErrorNotPermitted);
    cudaError_t error = work_wait_all();
    if (!allocation_forget(pointer, host, false))
        return report_error(cudaErrorInvalidValue);
    free(pointer);
    return report_error(error);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    return allocation_allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    size_t row = (width + PITCH - 1) / PITCH * PITCH;

    if (!pitch || (height && row > SIZE_MAX / height))
        return report_error(cudaErrorInvalidValue);
    cudaError_t error = cudaMalloc(pointer, row * height);
    if (!error)
        *pitch = row;
    return error;
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocation_allocate(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocation_allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFree(void *pointer)
{
    return allocation_release(pointer, false);
}

cudaError_t cudaFreeHost(void *pointer)
{
    return allocation_release(pointer, true);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    cudaError_t error = graph_refuses(s);
    return error ? report_error(error) : cudaMalloc(pointer, bytes);
}

static void free_later(void *pointer)
{
    if (allocation_forget(pointer, false, false))
        free(pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);
    cudaError_t error = s ? graph_refuses(s) : cudaSuccess;

    if (error)
        return report_error(error);
    return pointer ? cudaLaunchHostFunc(stream, free_later, pointer) : cudaSuccess;
}

/* Every page is within reach of the device; but copies of pinned memory do not wait. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    (void)flags;
    if (!pointer || !bytes || (uintptr_t)pointer > UINTPTR_MAX - bytes)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    pthread_mutex_lock(&table.lock);
    const struct allocation *a = find_any(pointer, bytes);
    if (a)
        error = a->type == cudaMemoryTypeHost ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorInvalidValue;
    else if (!remember_locked(
                 (struct allocation){pointer, bytes, cudaMemoryTypeHost, true, device_current()}))
        error = cudaErrorMemoryAllocation;
    pthread_mutex_unlock(&table.lock);
    return report_error(error);
}

cudaError_t cudaHostUnregister(void *pointer)
{
    if (!pointer)
        return report_error(cudaErrorInvalidValue);
    return report_error(allocation_forget(pointer, true, true) ? device_error()
                                                               : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    if (!device || !host || flags)
        return report_error(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    struct allocation a = {.type = cudaMemoryTypeUnregistered, .device = -1};

    if (!attributes)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    bool known = allocation_look_up(pointer, &a);
    *attributes = (struct cudaPointerAttributes){
        .type = a.type,
        .device = a.device,
        .devicePointer = known ? (void *)(uintptr_t)pointer : NULL,
        .hostPointer = known ? (void *)(uintptr_t)pointer : NULL,
    };
    return cudaSuccess;
}

/* --- Copies and fills --- */

enum { STAGED_MOST = 64 << 10 }; /* as much as CUDA copies aside, so that the call need not wait */

struct rows {
    void *to;
    const void *from; /* NULL: a fill with value */
    int value;
    size_t to_pitch, from_pitch, width, height;
};

/* The rows of `from` in memory of the work's own, close together; false: no memory. */
static bool stage(struct work *w)
{
    char *copy = malloc(w->move.bytes * w->move.rows);

    if (!copy)
        return false;
    for (size_t row = 0; row < w->move.rows; row++)
        memcpy(copy + row * w->move.bytes, w->move.from + row * w->move.from_pitch, w->move.bytes);
    w->move.from = w->move.staged = copy;
    w->move.from_pitch = w->move.bytes;
    return true;
}

/* staged: `from` may change when the call has returned; then this waits if it is more than a little. */
static cudaError_t allocation_move(struct rows r, cudaStream_t handle, bool wait, bool staged)
{
    struct CUstream_st *stream = stream_find(handle);
    bool empty = !r.width || !r.height;

    if (device_error())
        return report_error(device_error());
    if (!stream)
        return report_error(cudaErrorInvalidResourceHandle);
    if (!empty && !r.to)
        return report_error(cudaErrorInvalidValue);
    if (!empty && (r.to_pitch < r.width || (r.from && r.from_pitch < r.width)))
        return report_error(r.from ? cudaErrorInvalidPitchValue : cudaErrorInvalidValue);
    struct work *w = work_new(empty ? WORK_NOTHING : r.from ? WORK_COPY : WORK_FILL);
    if (!w)
        return report_error(cudaErrorMemoryAllocation);
    w->move.to = r.to;
    w->move.from = r.from;
    w->move.value = r.value;
    w->move.bytes = r.width;
    w->move.rows = r.height;
    w->move.to_pitch = r.to_pitch;
    w->move.from_pitch = r.from_pitch;
    if (staged && !wait && w->kind == WORK_COPY && !stream_is_captured(stream))
        wait = r.width > STAGED_MOST / r.height || !stage(w);
    if (wait && !work_may_wait()) {
        work_drop(w);
        return report_error(cudaErrorNotPermitted);
    }
    cudaError_t error = work_submit(w, stream, NULL);
    if (wait && !error && !w->capture)
        work_wait(w);
    work_drop(w);
    return report_error(error ? error : device_error());
}

/* Memory that is not ours to keep: its owner may reuse it when the call has returned. */
static bool pageable(const void *host)
{
    struct allocation a;

    return !allocation_look_up(host, &a);
}

static bool is_host(const void *at)
{
    struct allocation a;

    return !allocation_look_up(at, &a) || a.type == cudaMemoryTypeHost;
}

/* Whether the call returns when the copy is done: to memory that its owner may look at, and from host memory to
 * host memory. */
static bool copy_waits(const struct rows *r, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return true;
    case cudaMemcpyDeviceToHost:
        return pageable(r->to);
    case cudaMemcpyDefault:
        return pageable(r->to) || (is_host(r->to) && is_host(r->from));
    default:
        return false;
    }
}

static cudaError_t allocation_copy(struct rows r, enum cudaMemcpyKind kind, cudaStream_t stream,
                                   bool wait)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return report_error(cudaErrorInvalidMemcpyDirection);
    if (!r.from && r.width && r.height)
        return report_error(cudaErrorInvalidValue);
    return allocation_move(r, stream, wait || copy_waits(&r, kind),
                           (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault) &&
                               pageable(r.from));
}

/* Of memory that the host can look at a fill is done when the call returns. */
static cudaError_t allocation_fill(struct rows r)
{
    struct allocation a;

    return allocation_move(r, NULL, !allocation_look_up(r.to, &a) || a.type != cudaMemoryTypeDevice,
                           false);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return allocation_copy((struct rows){to, from, 0, bytes, bytes, bytes, 1}, kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return allocation_copy((struct rows){to, from, 0, bytes, bytes, bytes, 1}, kind, stream, false);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    if (!device_exists(to_device) || !device_exists(from_device))
        return report_error(cudaErrorInvalidDevice);
    return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    if (!device_exists(to_device) || !device_exists(from_device))
        return report_error(cudaErrorInvalidDevice);
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return allocation_copy((struct rows){to, from, 0, to_pitch, from_pitch, width, height}, kind,
                           NULL, true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    return allocation_copy((struct rows){to, from, 0, to_pitch, from_pitch, width, height}, kind,
                           stream, false);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return allocation_fill(
        (struct rows){.to = to, .value = value, .to_pitch = bytes, .width = bytes, .height = 1});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return allocation_move(
        (struct rows){.to = to, .value = value, .to_pitch = bytes, .width = bytes, .height = 1},
        stream, false, false);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return allocation_fill((struct rows){to, NULL, value, pitch, 0, width, height});
}

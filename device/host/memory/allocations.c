/* The allocations are an open hash table by address: a slot whose entry was removed points to
 * `freed`, so that a search goes past it; growth leaves such slots behind. */
#define _GNU_SOURCE
#include "device/host/memory/allocations.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "device/host/forks.h"
#include "device/host/memory/virtual.h"
#include "gshmem/context.h"

enum { SLOTS_FIRST = 64 };

/* One for the process: CUDA calls name no device that it could hang from. */
static struct {
    pthread_mutex_t lock;
    struct allocation *slots;
    size_t room, used; /* used counts the slots of removed entries too */
} allocations = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void allocation_hold_at_fork(void)
{
    /* an entry of the list in forks.c */
    static struct fork_lock lock = {.lock = &allocations.lock};

    forks_hold(&lock);
}

static char freed; /* never changes: only its address is used, by slots of removed entries */

static size_t allocation_place_of(const void *at)
{
    return (size_t)(((uintptr_t)at / ALLOCATION_ALIGNMENT) * 0x9e3779b97f4a7c15u >> 20) &
           (allocations.room - 1);
}

static void allocation_insert(struct allocation a)
{
    size_t i = allocation_place_of(a.at);

    while (allocations.slots[i].at)
        i = (i + 1) & (allocations.room - 1);
    allocations.slots[i] = a;
    allocations.used++;
}

static bool allocation_grow(void)
{
    struct allocation *old = allocations.slots;
    size_t old_room = allocations.room, live = 0;

    for (size_t i = 0; i < old_room; i++)
        live += old[i].at && old[i].at != &freed;
    size_t room = SLOTS_FIRST;
    while (room < 4 * live)
        room *= 2;
    struct allocation *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    allocations.slots = slots;
    allocations.room = room;
    allocations.used = 0;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].at && old[i].at != &freed)
            allocation_insert(old[i]);
    }
    free(old);
    return true;
}

static bool allocation_remember_locked(struct allocation a)
{
    bool ok = 2 * allocations.used < allocations.room || allocation_grow();

    if (ok)
        allocation_insert(a);
    return ok;
}

bool allocation_remember(struct allocation a)
{
    pthread_mutex_lock(&allocations.lock);
    bool ok = allocation_remember_locked(a);
    pthread_mutex_unlock(&allocations.lock);
    return ok;
}

bool allocation_forget(void *at, bool host, bool registered)
{
    bool found = false;

    pthread_mutex_lock(&allocations.lock);
    for (size_t i = allocations.room ? allocation_place_of(at) : 0;
         allocations.room && allocations.slots[i].at; i = (i + 1) & (allocations.room - 1)) {
        if (allocations.slots[i].at == at &&
            (allocations.slots[i].type == cudaMemoryTypeHost) == host &&
            allocations.slots[i].registered == registered) {
            allocations.slots[i].at = &freed;
            found = true;
            break;
        }
    }
    pthread_mutex_unlock(&allocations.lock);
    return found;
}

/* With the lock: the entry that has at least one of the bytes, or NULL. */
static const struct allocation *allocation_find_any(const char *at, size_t bytes)
{
    for (size_t i = 0; i < allocations.room; i++) {
        const struct allocation *a = &allocations.slots[i];
        if (a->at && a->at != &freed && at < a->at + a->bytes && a->at < at + bytes)
            return a;
    }
    return NULL;
}

cudaError_t allocation_register(struct allocation a)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&allocations.lock);
    const struct allocation *other = allocation_find_any(a.at, a.bytes);
    if (other)
        error = other->type == cudaMemoryTypeHost ? cudaErrorHostMemoryAlreadyRegistered
                                                  : cudaErrorInvalidValue;
    else if (!allocation_remember_locked(a))
        error = cudaErrorMemoryAllocation;
    pthread_mutex_unlock(&allocations.lock);
    return error;
}

/* Symmetric memory is the device's: this PE's part of the heap, and the mapped heaps of other PEs.
 * A process without libgshmem has none. */
static bool allocation_is_symmetric(const void *pointer)
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

bool allocation_look_up(const void *pointer, int device, struct allocation *found)
{
    pthread_mutex_lock(&allocations.lock);
    const struct allocation *a = allocation_find_any(pointer, 1);
    if (a)
        *found = *a;
    pthread_mutex_unlock(&allocations.lock);
    if (a)
        return true;
    if (!virtual_is_mapped(pointer) && !allocation_is_symmetric(pointer))
        return false;
    *found = (struct allocation){.type = cudaMemoryTypeDevice, .device = device};
    return true;
}

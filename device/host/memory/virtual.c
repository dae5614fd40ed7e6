#define _GNU_SOURCE
#include "device/host/memory/virtual.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/host/forks.h"

#ifndef MREMAP_DONTUNMAP /* of Linux 5.7 and glibc 2.32 */
#define MREMAP_DONTUNMAP 4
#endif

struct piece {
    struct piece *next;
    size_t bytes;
    int handles;
    void *home; /* where the memory is while it is not mapped; NULL: it is at `at`, or gone */
    void *at;   /* where it is mapped, or NULL */
};

struct reservation {
    struct reservation *next;
    char *at;
    size_t bytes;
};

/* One for the process: handles and addresses are the process's, whatever the device. */
static struct {
    pthread_mutex_t lock;
    struct piece *pieces;
    struct reservation *reservations;
} virtual_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void virtual_hold_at_fork(void)
{
    /* an entry of the list in forks.c */
    static struct fork_lock lock = {.lock = &virtual_memory.lock};

    forks_hold(&lock);
}

/* ---- Pieces ---- */

CUresult virtual_create(CUmemGenericAllocationHandle *handle, size_t bytes)
{
    struct piece *p = calloc(1, sizeof *p);

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (struct piece){.bytes = bytes, .handles = 1};
    p->home = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->home == MAP_FAILED) {
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&virtual_memory.lock);
    p->next = virtual_memory.pieces;
    virtual_memory.pieces = p;
    pthread_mutex_unlock(&virtual_memory.lock);
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
    return CUDA_SUCCESS;
}

/* With the lock, as all below that find something; NULL: the handle is none, or was released. */
static struct piece *virtual_find_piece(CUmemGenericAllocationHandle handle)
{
    struct piece *p = virtual_memory.pieces;

    while (p && ((uintptr_t)p != handle || p->handles == 0))
        p = p->next;
    return p;
}

static struct piece *virtual_find_mapped(const char *at)
{
    struct piece *p = virtual_memory.pieces;

    while (p && (!p->at || (size_t)(at - (char *)p->at) >= p->bytes))
        p = p->next;
    return p;
}

bool virtual_is_mapped(const void *at)
{
    pthread_mutex_lock(&virtual_memory.lock);
    bool mapped = virtual_find_mapped(at) != NULL;
    pthread_mutex_unlock(&virtual_memory.lock);
    return mapped;
}

/* Frees a piece that nobody has a handle of and that is not mapped. */
static void virtual_let_go(struct piece *p)
{
    if (p->handles || p->at)
        return;
    for (struct piece **link = &virtual_memory.pieces; *link; link = &(*link)->next) {
        if (*link == p) {
            *link = p->next;
            break;
        }
    }
    if (p->home)
        munmap(p->home, p->bytes);
    free(p);
}

CUresult virtual_release(CUmemGenericAllocationHandle handle)
{
    pthread_mutex_lock(&virtual_memory.lock);
    struct piece *p = virtual_find_piece(handle);
    if (p) {
        p->handles--;
        virtual_let_go(p);
    }
    pthread_mutex_unlock(&virtual_memory.lock);
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult virtual_retain(CUmemGenericAllocationHandle *handle, void *address)
{
    pthread_mutex_lock(&virtual_memory.lock);
    struct piece *p = virtual_find_mapped(address);
    if (p && handle) {
        p->handles++;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
    }
    pthread_mutex_unlock(&virtual_memory.lock);
    return p && handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Addresses ---- */

CUresult virtual_reserve(CUdeviceptr *address, size_t bytes)
{
    struct reservation *r = malloc(sizeof *r);

    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *p = mmap(NULL, bytes + VIRTUAL_GRANULE, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t before = -(uintptr_t)p & (VIRTUAL_GRANULE - 1);
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, VIRTUAL_GRANULE - before);
    pthread_mutex_lock(&virtual_memory.lock);
    *r = (struct reservation){virtual_memory.reservations, p + before, bytes};
    virtual_memory.reservations = r;
    pthread_mutex_unlock(&virtual_memory.lock);
    *address = (CUdeviceptr)(uintptr_t)r->at;
    return CUDA_SUCCESS;
}

static bool virtual_is_free(const char *at, size_t bytes)
{
    for (const struct piece *p = virtual_memory.pieces; p; p = p->next) {
        const char *other = p->at;
        if (other && other < at + bytes && at < other + p->bytes)
            return false;
    }
    return true;
}

CUresult virtual_unreserve(CUdeviceptr address, size_t bytes)
{
    struct reservation **link = &virtual_memory.reservations, *r;

    pthread_mutex_lock(&virtual_memory.lock);
    while ((r = *link) && ((uintptr_t)r->at != address || r->bytes != bytes))
        link = &r->next;
    if (r && virtual_is_free(r->at, bytes))
        *link = r->next;
    else
        r = NULL;
    pthread_mutex_unlock(&virtual_memory.lock);
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    munmap(r->at, bytes);
    free(r);
    return CUDA_SUCCESS;
}

static bool virtual_is_reserved(const char *at, size_t bytes)
{
    const struct reservation *r = virtual_memory.reservations;

    while (r && !(at >= r->at && at + bytes <= r->at + r->bytes))
        r = r->next;
    return r != NULL;
}

/* What is mapped there goes, and the addresses are the reservation's again: in one step. */
static bool virtual_reserve_again(void *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static CUresult virtual_map_here(struct piece *p, char *at, size_t bytes)
{
    if (!p || bytes != p->bytes || !virtual_is_reserved(at, bytes) || !virtual_is_free(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (p->at)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (mremap(p->home, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(at, bytes, PROT_NONE); /* until cuMemSetAccess */
    p->home = NULL;
    p->at = at;
    return CUDA_SUCCESS;
}

CUresult virtual_map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle)
{
    pthread_mutex_lock(&virtual_memory.lock);
    CUresult result =
        virtual_map_here(virtual_find_piece(handle), (char *)(uintptr_t)address, bytes);
    pthread_mutex_unlock(&virtual_memory.lock);
    return result;
}

/* Moves the memory to an address of its own. Something stays mapped at p->at all the time: another
 * thread's mmap could take addresses that are free for a moment. */
static void *virtual_take_out(const struct piece *p)
{
    void *home = mremap(p->at, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);

    if (home != MAP_FAILED)
        return home;
    /* Systems before 5.7 cannot do that, nor any with memory whose mappings differ: a copy can. */
    home = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (home == MAP_FAILED)
        return home;
    if (mprotect(p->at, p->bytes, PROT_READ) != 0) {
        munmap(home, p->bytes);
        return MAP_FAILED;
    }
    memcpy(home, p->at, p->bytes);
    return home;
}

/* The mapped addresses stay reserved. Memory that nobody has a handle of needs no other address. */
static CUresult virtual_unmap_piece(struct piece *p)
{
    void *home = p->handles ? virtual_take_out(p) : NULL;

    if (home == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!virtual_reserve_again(p->at, p->bytes)) {
        if (home)
            mremap(home, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p->at);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->home = home;
    p->at = NULL;
    virtual_let_go(p);
    return CUDA_SUCCESS;
}

/* Whether whole mappings, one behind the other, fill the range. */
static bool virtual_is_filled(char *at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const struct piece *p = virtual_find_mapped(at + done);
        if (!p || p->at != at + done || p->bytes > bytes - done)
            return false;
        done += p->bytes;
    }
    return bytes > 0;
}

CUresult virtual_unmap(CUdeviceptr address, size_t bytes)
{
    char *at = (char *)(uintptr_t)address;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&virtual_memory.lock);
    if (!virtual_is_filled(at, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t done = 0, next; done < bytes && !result; done += next) {
        struct piece *p = virtual_find_mapped(at + done);
        next = p->bytes;
        result = virtual_unmap_piece(p);
    }
    pthread_mutex_unlock(&virtual_memory.lock);
    return result;
}

CUresult virtual_protect(CUdeviceptr address, size_t bytes, int rights)
{
    char *at = (char *)(uintptr_t)address;

    pthread_mutex_lock(&virtual_memory.lock);
    bool fits = virtual_is_filled(at, bytes) && mprotect(at, bytes, rights) == 0;
    pthread_mutex_unlock(&virtual_memory.lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Weak memory, inside the library: what a block and the GPU hold back. README.md, "Weak memory". */
#ifndef GSHMEM_DEVICE_HOST_PTX_WEAK_H
#define GSHMEM_DEVICE_HOST_PTX_WEAK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device/host/blocks/grid.h"
#include "gshmem/host_device/ptx/memory.h"
#include "gshmem/host_device/ptx/weak.h"

enum {
    WEAK_BLOCK_STORES = 64,
    WEAK_GPU_STORES = 128,
    WEAK_HASHES = 1024, /* of addresses */
    WEAK_RECENT = 256,
};

/* Only the block's worker accesses it. */
struct gshmem_host_ptx_weak_block {
    char *shared; /* the block's shared memory */
    u64 shared_bytes;
    u32 accesses;
    u32 stores, next_due;
    struct ptx_weak_store store[WEAK_BLOCK_STORES]; /* that the block sees, and nobody else */

    /* Counts stores that the block has come to see, and acquires from outside of it. Lines that are
     * older than the last of either kind end with the next acquire in the block. */
    u32 clock, acquired;
    u32 published[WEAK_HASHES];

    /* Lines that its threads have loaded, to load them early. */
    char *recent[WEAK_RECENT];
    u16 place[WEAK_RECENT]; /* by hash: where in recent */
    u32 recents;
};

/* One for the process, which stands for a GPU. */
extern struct weak_gpu {
    pthread_mutex_t lock; /* of the stores, and who counts with the clock */
    atomic_uint stores;
    u32 accesses;
    struct ptx_weak_store
        store[WEAK_GPU_STORES]; /* that the GPU sees, but no other PE, and not the host */
    atomic_uint_fast64_t clock, acquired, published[WEAK_HASHES];
} weak_gpu;

/* Where a block's state has the pointer to what is above; NULL in it: there is none yet. */
struct gshmem_host_ptx_weak_block **ptx_weak_block_at(void *state);

static inline u64 weak_random(struct ptx_weak *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random * 0x2545f4914f6cdd1dull >> 32;
}

static inline char *weak_line_of(const char *at)
{
    return (char *)((uintptr_t)at & ~(uintptr_t)(PTX_LINE - 1));
}

static inline u32 weak_hash(const char *at)
{
    return (u32)(((uintptr_t)at / PTX_LINE) * 0x9e3779b97f4a7c15ull >> 40) % WEAK_HASHES;
}

static inline bool weak_is_local(const struct ptx_weak *w, const char *at)
{
    return (u64)(uintptr_t)at - w->stack < w->stack_bytes;
}

static inline bool weak_is_shared(const struct gshmem_host_ptx_weak_block *b, const char *at)
{
    return (u64)(at - b->shared) < b->shared_bytes;
}

/* ---- weak_stores.c ---- */

void weak_count_access(struct ptx_weak *w);
/* Memory as the thread sees it now. */
void weak_look(const struct ptx_weak *w, char *to, const char *at, u32 bytes);
/* All that others of the scope must see before what comes next. */
void weak_push(struct ptx_weak *w, enum ptx_scope scope);
/* The bytes have been written, and all see it. */
void weak_note_written(struct gshmem_host_ptx_weak_block *b, const char *at, u32 bytes);

/* ---- weak_loads.c ---- */

void weak_forget(struct ptx_weak *w, const char *at, u32 bytes);

#endif

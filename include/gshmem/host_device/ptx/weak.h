/* Weak memory: what code that was translated with GSHMEM_PTX_MEMORY=weak calls for its accesses to
 * memory. "Weak memory" in device/host/ptx/README.md says what is delayed, and until when. */
#ifndef GSHMEM_HOST_DEVICE_PTX_WEAK_H
#define GSHMEM_HOST_DEVICE_PTX_WEAK_H

#include "module.h"

/* The threads that a fence, a release or an acquire is for. */
enum ptx_scope { PTX_CTA, PTX_GPU, PTX_SYS };

/* What is said of an access. */
enum ptx_access {
    PTX_STRONG = 1,    /* relaxed or volatile; else plain */
    PTX_ACQUIRES = 2,  /* an acquire follows at once */
    PTX_READ_ONLY = 4, /* ld.global.nc */
    PTX_GENERIC = 8,   /* the address may be that of local memory */
    PTX_MMIO = 16
};

#define PTX_WEAK_STORES 16
#define PTX_WEAK_LINES  32
#define PTX_LINE        16 /* bytes */

/* A store that others do not see yet. 0 bytes: a release; what was stored before it is seen in the
 * scope `value[0]` before what was stored after it is seen by anyone. */
struct ptx_weak_store {
    char *at;
    u32 bytes;
    u32 due; /* by a count of accesses: from then on it is seen */
    u64 value[2];
};

/* Memory as the thread has seen it at some moment since its last acquire. */
struct ptx_weak_line {
    char *at; /* NULL: none */
    u64 value[2];
    u64 gpu_clock; /* when that was */
    u32 block_clock;
    u32 read_only;
};

struct gshmem_host_ptx_weak_block;

/* Of one thread, on its stack. */
struct ptx_weak {
    struct gshmem_host_ptx_weak_block *block;
    u64 random;
    u64 stack, stack_bytes;
    u32 stores;
    struct ptx_weak_store store[PTX_WEAK_STORES]; /* in the order of the program */
    struct ptx_weak_line line[PTX_WEAK_LINES];    /* by a hash of the address */
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void gshmem_host_ptx_weak_begin(struct ptx_weak *weak, size_t size);
void gshmem_host_ptx_weak_end(struct ptx_weak *weak);
void gshmem_host_ptx_weak_load(struct ptx_weak *weak, void *to, const char *at, u32 bytes, u32 how);
void gshmem_host_ptx_weak_store(struct ptx_weak *weak, char *at, const void *value, u32 bytes,
                                u32 how);
/* Before and after an atomic operation on memory. */
void gshmem_host_ptx_weak_update(struct ptx_weak *weak, char *at, u32 bytes);
void gshmem_host_ptx_weak_updated(struct ptx_weak *weak, char *at, u32 bytes);
void gshmem_host_ptx_weak_release(struct ptx_weak *weak, enum ptx_scope scope);
void gshmem_host_ptx_weak_acquire(struct ptx_weak *weak, enum ptx_scope scope);
void gshmem_host_ptx_weak_fence_sc(struct ptx_weak *weak, enum ptx_scope scope);
/* The block sees all that the thread has stored: before it waits for others of the block. */
void gshmem_host_ptx_weak_settle(struct ptx_weak *weak);
/* Around an operation that accesses memory by itself. */
void gshmem_host_ptx_weak_flush(struct ptx_weak *weak);
void gshmem_host_ptx_weak_wrote(struct ptx_weak *weak);
/* Time passes. */
void gshmem_host_ptx_weak_sleep(struct ptx_weak *weak);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define PTX_WEAK_ACCESS(N)                                                                         \
    static inline u##N ptx_weak_ld_##N(struct ptx_weak *weak, const char *at, u32 how)             \
    {                                                                                              \
        u##N value;                                                                                \
        gshmem_host_ptx_weak_load(weak, &value, at, sizeof value, how);                            \
        return value;                                                                              \
    }                                                                                              \
    static inline void ptx_weak_st_##N(struct ptx_weak *weak, char *at, u##N value, u32 how)       \
    {                                                                                              \
        gshmem_host_ptx_weak_store(weak, at, &value, sizeof value, how);                           \
    }
PTX_WEAK_ACCESS(8)
PTX_WEAK_ACCESS(16)
PTX_WEAK_ACCESS(32)
PTX_WEAK_ACCESS(64)
PTX_WEAK_ACCESS(128)

#endif

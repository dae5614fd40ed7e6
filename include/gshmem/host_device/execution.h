/* The functions of the library that kernels on the host device call: numbers of threads, barriers,
 * warps, shared memory, launches. Users write CUDA, whose names lead to these functions. Other
 * device code that waits (gshmem_device.h) uses them too.
 *
 * A CUDA thread is a fiber. The fibers of a block run on one OS thread, one at a time. The OS
 * thread switches fibers only inside the functions below. A fiber that waits without calling any of
 * them (a plain loop over a volatile) blocks the others until the watch interrupts it
 * (device/host/README.md). */
#ifndef GSHMEM_HOST_DEVICE_EXECUTION_H
#define GSHMEM_HOST_DEVICE_EXECUTION_H

#include <stddef.h>
#include <stdint.h>

#include "vector_types.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#ifndef GSHMEM_HOST_READ_ONLY /* to all but the library itself */
#define GSHMEM_HOST_READ_ONLY const
#endif

#define GSHMEM_HOST_THREAD_LOCAL __attribute__((tls_model("initial-exec")))

/* Set at each switch of fibers. A fiber never changes its OS thread, and these never change for a
 * fiber: compilers may keep them in registers. */
extern __thread GSHMEM_HOST_READ_ONLY uint3 threadIdx GSHMEM_HOST_THREAD_LOCAL;
extern __thread GSHMEM_HOST_READ_ONLY uint3 blockIdx GSHMEM_HOST_THREAD_LOCAL;
extern __thread GSHMEM_HOST_READ_ONLY dim3 blockDim GSHMEM_HOST_THREAD_LOCAL;
extern __thread GSHMEM_HOST_READ_ONLY dim3 gridDim GSHMEM_HOST_THREAD_LOCAL;

/* Is this code running in a kernel? (The rest of a process runs on the host.) */
int gshmem_host_in_kernel(void);
/* This thread's number in its warp, 0..31, and in its block. */
unsigned gshmem_host_lane(void);
unsigned gshmem_host_thread_rank(void);

/* Lets other threads run. Every wait calls it in its loop; otherwise threads, blocks and PEs could
 * not wait for each other. If no other thread can run, it gives the CPU to other processes. Does
 * not return if the launch has failed. Outside of a kernel it gives up the CPU. */
void gshmem_host_yield(void);
/* The same in a wait that needs progress of the network. Returns 1 if it is time to make some: all
 * threads that can run on this CPU have had their turn since the last time. word: the thread waits
 * until *word is no longer `seen`. Its turns may be left out as long as it is, but not for ever.
 * NULL: it waits for something else. */
int gshmem_host_yield_turn(const uint64_t *word, uint64_t seen);
/* gshmem_host_yield between two atomic operations of a thread that may be computing. */
void gshmem_host_rest(void);
/* Called when what was waited for has arrived: the next wait starts by spinning again. */
void gshmem_host_progress(void);
/* Called when a wait is longer than a few polls of that address, for the trace; it ends with
 * gshmem_host_progress. */
void gshmem_host_wait_begins(const void *address);
/* gshmem_range_push and gshmem_range_pop in kernels. */
void gshmem_host_range_begins(const char *name);
void gshmem_host_range_ends(void);

/* Each atomic operation decrements it, and at 0 the thread yields. Therefore a loop that waits by
 * atomics lets other threads run. */
extern __thread int gshmem_host_steps GSHMEM_HOST_THREAD_LOCAL;

__attribute__((no_sanitize("thread"))) static inline int gshmem_host_may_rest(void)
{
    return __builtin_expect(--gshmem_host_steps < 0, 0);
}

static inline void gshmem_host_may_wait(void)
{
    if (gshmem_host_may_rest())
        gshmem_host_rest();
}

/* Between these two, ThreadSanitizer ignores what the thread reads and writes. They stand around
 * accesses to memory that other PEs, which are other processes, have declared free. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GSHMEM_HOST_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define GSHMEM_HOST_TSAN 1
#endif
#ifdef GSHMEM_HOST_TSAN
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
#endif

static inline void gshmem_host_unseen_begin(void)
{
#ifdef GSHMEM_HOST_TSAN
    __tsan_ignore_thread_begin();
#endif
}

static inline void gshmem_host_unseen_end(void)
{
#ifdef GSHMEM_HOST_TSAN
    __tsan_ignore_thread_end();
#endif
}

/* Barriers of the block; file and line are for the report of one that cannot complete. */
enum gshmem_host_barrier {
    GSHMEM_HOST_BARRIER,
    GSHMEM_HOST_BARRIER_COUNT,
    GSHMEM_HOST_BARRIER_AND,
    GSHMEM_HOST_BARRIER_OR
};
int gshmem_host_barrier_block(enum gshmem_host_barrier kind, int predicate, const char *file,
                              int line);
/* All threads arrive; one does the work while the others wait; all return its result. */
int gshmem_host_once_block(int (*work)(void *argument), void *argument, const char *file, int line);
/* A barrier of all blocks of a cooperative launch. Any other launch fails. */
void gshmem_host_barrier_grid(const char *file, int line);
int gshmem_host_grid_is_cooperative(void);

/* What the lanes in mask do together: each passes a value and gets one back. */
enum gshmem_host_warp {
    GSHMEM_HOST_WARP_SYNC,
    GSHMEM_HOST_WARP_SHUFFLE,   /* the value of lane `source` */
    GSHMEM_HOST_WARP_BALLOT,    /* bit of each lane whose value is not 0 */
    GSHMEM_HOST_WARP_MATCH,     /* bit of each lane with the same value */
    GSHMEM_HOST_WARP_MATCH_ALL, /* mask if all values are equal, else 0 */
    GSHMEM_HOST_WARP_ADD,       /* of 32-bit values, as all that follow */
    GSHMEM_HOST_WARP_MIN,
    GSHMEM_HOST_WARP_MAX,
    GSHMEM_HOST_WARP_MIN_SIGNED,
    GSHMEM_HOST_WARP_MAX_SIGNED,
    GSHMEM_HOST_WARP_AND,
    GSHMEM_HOST_WARP_OR,
    GSHMEM_HOST_WARP_XOR,
    GSHMEM_HOST_WARP_ONCE /* gshmem_host_once_warp alone */
};
uint64_t gshmem_host_warp(enum gshmem_host_warp kind, unsigned mask, uint64_t value,
                          unsigned source, const char *file, int line);
/* Like gshmem_host_once_block, for the lanes in mask. */
int gshmem_host_once_warp(unsigned mask, int (*work)(void *argument), void *argument,
                          const char *file, int line);
/* The lanes that are at this place now: all of them if they run together. */
unsigned gshmem_host_active_mask(const char *file, int line);

/* Orders this thread's memory accesses for all threads; ThreadSanitizer sees it. */
void gshmem_host_fence(void);
void gshmem_host_sleep(unsigned nanoseconds);
uint64_t gshmem_host_clock(void); /* nanoseconds */
/* The kernel, block and thread that calls, in words. */
void gshmem_host_name_thread(char *text, size_t size);
void gshmem_host_trap(const char *what, const char *file, int line) __attribute__((noreturn));
#ifndef __cplusplus
/* assert() in CUDA sources calls it, on the host and in kernels. There <assert.h> declares its own
 * function by this name. */
void gshmem_host_assert_fail(const char *assertion, const char *file, unsigned line,
                             const char *function) __attribute__((noreturn));
#endif

/* Shared memory. Each declaration has a number, for which each block has its own memory. */
unsigned gshmem_host_shared_number(void);
void *gshmem_host_shared(unsigned number, size_t bytes, size_t align);
void *gshmem_host_shared_dynamic(void);
/* The same address, for `extern __shared__` arrays that are declared outside of functions. */
extern __thread void *gshmem_host_dynamic_here GSHMEM_HOST_THREAD_LOCAL;

/* A __global__ function, as the translator registers it. unpack calls it with a launch's array of
 * pointers to arguments. */
struct gshmem_host_kernel {
    const void *function;
    const char *name;
    void (*unpack)(void **arguments);
    size_t dynamic_shared_max; /* cudaFuncAttributeMaxDynamicSharedMemorySize; 0: the default */
    void *own; /* the library's */
};
void gshmem_host_register(struct gshmem_host_kernel *kernel);
/* Called when its library is unloaded, or the program ends. */
void gshmem_host_unregister(struct gshmem_host_kernel *kernel);

/* <<<grid, block, shared, stream>>> of the launch that follows on this OS thread. */
void gshmem_host_configure(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
/* Launches run(closure) in every thread; when all are done, release(closure). Failures are left
 * for cudaGetLastError(). */
void gshmem_host_launch(struct gshmem_host_kernel *kernel, void *closure, void (*run)(void *),
                        void (*release)(void *));

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

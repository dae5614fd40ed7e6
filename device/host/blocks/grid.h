/* A launch and its parts while it runs: grid, block, warp, thread, and the workers that run them.
 *
 * A worker is an OS thread. It owns the blocks it took: everything in a block is touched by its
 * worker alone, without locks. What several workers share is the grid's few counters and the list
 * of grids with blocks not taken yet. */
#ifndef GSHMEM_DEVICE_HOST_GRID_H
#define GSHMEM_DEVICE_HOST_GRID_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GSHMEM_HOST_READ_ONLY
#include "device/host/fibers/context.h"
#include "device/kernel_events.h"
#include "gshmem/host_device/execution.h"

enum {
    WARP_SIZE = 32,
    CACHE_LINE = 64,
    BLOCK_THREADS_MAX = 1024,
    BLOCK_WARPS_MAX = BLOCK_THREADS_MAX / WARP_SIZE,
    STEPS_BEFORE_YIELD = 24,                 /* atomic operations between two yields */
    SHARED_DEFAULT = 48 << 10,     /* dynamic shared memory without asking for more */
    SHARED_MAX = 227 << 10,        /* of one block */
    RESIDENT_THREADS_MAX = 16384,  /* of all workers */
    RESIDENT_BLOCKS_MAX = 256,     /* of one worker */
    COOPERATIVE_THREADS_MAX = 128 << 10, /* of all workers, with a cooperative launch */
    COOPERATIVE_THREAD_BYTES = 16 << 10, /* that each is expected to touch of its stack, at most */
    COOPERATIVE_BLOCKS_MAX = 4096,       /* of one worker */
};

struct worker;
struct warp;
struct block;

enum thread_state { THREAD_AT_BARRIER, THREAD_IN_WARP };

struct __attribute__((aligned(CACHE_LINE))) thread {
    struct stack *stack; /* NULL before it starts and after it ends */
    struct thread *next; /* in the run queue, or among those that wait at the barrier */
    struct block *block;
    struct warp *warp;
    uint3 index;
    uint8_t lane;

    /* What it waits for, if it waits, and where in the user's source. */
    uint8_t state; /* enum thread_state */
    bool waits;    /* for another PE or the proxy, as events.c knows */
    const char *file;
    int line; /* the last that barriers touch: all of it is one cache line */

    /* Its part of what a warp does together. */
    enum gshmem_host_warp kind;
    unsigned mask, source;
    uint64_t value, result;
    char arrived, released; /* addresses for ThreadSanitizer */

    /* Of a thread of the queue that waits for a word to change: where, and from what; NULL: of one
     * that does not. */
    const uint64_t *awaited;
    uint64_t seen;
    uint8_t left_out; /* turns so far that it did not need */

    /* While somebody listens (events.c): a cache line of its own. */
    bool wait_strays;               /* the last poll was elsewhere */
    uint8_t wait_untold; /* polls until the wait is told before it is over; 0: it was told */
    uint64_t wait_at, wait_by;      /* the address, and who writes there (awaited_by) */
    uint64_t wait_since, wait_last; /* ticks: from when, and the last poll */
};
_Static_assert(sizeof(struct thread) == 3 * CACHE_LINE, "a thread is three cache lines");

struct warp {
    struct thread *threads; /* its first */
    unsigned live;          /* lanes that have not ended */
    unsigned parked;        /* lanes that wait for others of the warp */
    unsigned gathering;     /* lanes at the __activemask() of this place, not answered yet */
    const char *gathering_file;
    int gathering_line;
};

struct block {
    struct block *next;
    struct grid *grid;
    uint3 index;
    unsigned size;    /* threads */
    unsigned started; /* of them */
    unsigned live;    /* not ended; counts those not started */
    unsigned parked;  /* wait for others of the block */
    unsigned waits;   /* threads whose `waits` is set */
    bool idle, idle_traced; /* all threads wait; and somebody has been told */
    uint64_t idle_since;    /* ticks */
    struct kernel_wait past; /* the last short wait, which is told when the next one begins, or the
                                block ends; its place is 0 if there is none */

    struct thread *waiting; /* at the barrier */
    struct thread *waiting_last;
    unsigned arrived, count; /* how many, and how many with a true predicate */
    unsigned result_arrived, result_count;
    bool once;             /* one of them does something for all: */
    struct thread *worker; /* if it is not the last to arrive */
    int result_once;
    unsigned generation;
    const char *file; /* where the first one of this generation waits */
    int line;
    char clock[2]; /* addresses for ThreadSanitizer, by parity of the generation */
    char ended, allocated;

    void **shared; /* by number of the declaration */
    unsigned shared_numbers;
    void *dynamic_shared;
    size_t shared_bytes;

    struct warp *warps;
    struct thread threads[];
};

/* A launch. The one who submits it fills in the first part. */
struct grid {
    const char *name;
    dim3 size, block_size;
    size_t dynamic_shared;
    size_t state_bytes;   /* of it: at its beginning, zero at first, the library's own */
    size_t static_shared; /* of it: behind the state, of kernels made from PTX */
    bool cooperative;
    uint32_t launch; /* its number for those who listen; 0: it is not told */
    void *closure;
    void (*run)(void *closure);
    void (*done)(struct grid *grid); /* called by the worker that ends the last block */

    struct grid *next;        /* with blocks not taken; under the pool's lock, as next_block */
    uint64_t blocks, next_block;
    atomic_uint_fast64_t left; /* blocks that have not ended */
    atomic_bool failed;        /* its threads end at their next wait */
    atomic_int why;            /* then: the cudaError_t */
    atomic_bool warned;        /* of barriers that do not match */
    char started, ended;       /* addresses for ThreadSanitizer */
    unsigned ptx_barrier[4]; /* of cooperative groups, in kernels made from PTX */

    /* Cooperative launches: blocks that arrived at the barrier of the whole grid. */
    atomic_uint_fast64_t sync_arrived, sync_generation, blocks_ended;
};

struct worker {
    pthread_t id;
    unsigned number;
    struct thread *self;  /* runs now */
    struct block *block;  /* its block */
    struct stack main;    /* the OS thread's own stack, where blocks are taken */
    struct thread *first; /* the run queue */
    struct thread *last;
    struct block *starting; /* has threads that were never run */
    unsigned queued;
    /* Resident here, or promised to the cooperative launch that is being taken. The worker lowers
     * them when a block ends; all else happens under the pool's lock. */
    atomic_uint blocks, threads;
    unsigned reserved; /* blocks of that launch that this worker has yet to take; under the lock */
    uint64_t turned;  /* `switches` when it was last time to make progress (worker_has_turned) */
    bool in_progress; /* one of them makes the library's progress */
    unsigned spins, rounds, forbear; /* without progress, see gshmem_host_yield() */
    bool computes; /* since the last round a thread has yielded that may be computing */
    atomic_uint_fast64_t switches; /* of fibers, so that the watch sees one that never waits */
    atomic_bool busy;              /* runs fibers, for the watch */
    atomic_bool attention;    /* go back to main: there may be a block to take */
    struct stack_pool stacks;
    void (*thread_main)(void *stack); /* the bottom frame of each thread, entered on its stack */
    struct block *spare; /* ended blocks, all of one size */
    void *tsan_end;      /* for ThreadSanitizer, the one who ends blocks */
};

/* The worker that runs the caller, or NULL outside of kernels. */
extern __thread struct worker *worker_here __attribute__((tls_model("initial-exec")));

static inline struct thread *thread_self(void)
{
    return worker_here ? worker_here->self : NULL;
}

static inline bool block_failed(const struct block *b)
{
    return atomic_load_explicit(&b->grid->failed, memory_order_relaxed);
}

#endif

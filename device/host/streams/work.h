/* Work: a launch, a copy, a fill or a call, which starts when all work that it depends on is done.
 *
 * Streams, events and the default stream that waits for all are made of it: a stream is its latest
 * work, an event the work that it recorded. */
#ifndef GSHMEM_DEVICE_HOST_WORK_H
#define GSHMEM_DEVICE_HOST_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/host/blocks/grid.h"
#include "device/host/errors.h"

enum work_kind {
    WORK_NOTHING, /* a point in a stream */
    WORK_GRID,
    WORK_COPY, /* rows of bytes */
    WORK_FILL,
    WORK_CALL,
};

/* What owns the closures and arguments that other work uses (a graph); free is called without the
 * lock. */
struct lender {
    unsigned references;
    void (*free)(struct lender *lender);
};

/* A registered kernel. Its library may be unloaded when no launch of it is under way. */
struct code {
    struct gshmem_host_kernel *kernel;
    atomic_uint under_way; /* launches */
    size_t state_bytes, static_shared; /* of each block; kernels made from PTX */
    struct code *next;
};

struct work {
    enum work_kind kind;
    unsigned references;
    unsigned blockers; /* unfinished work this one waits for; one more while it is submitted */
    struct work **dependents;
    unsigned dependents_count, dependents_room;
    struct work *next; /* in a list of work to start */
    atomic_bool done;
    uint64_t finished_ns;
    char clock;             /* address for ThreadSanitizer */
    uint64_t capture;       /* not 0: captured under this number, and not to be done */
    unsigned node;          /* its number in the graph then */
    struct lender *borrows; /* the owner of its closure or argument; NULL: the work itself */
    union {
        struct {
            struct grid grid;
            void (*release)(void *closure);
            struct code *code; /* what it runs */
        } launch;
        struct {
            char *to;
            const char *from;
            size_t bytes, rows, to_pitch, from_pitch;
            int value;
            char *staged; /* NULL, or the work's own memory that `from` points into */
        } move;
        struct {
            cudaHostFn_t function;
            void *argument;
            void (*release)(void *argument); /* NULL: the argument is the program's */
            char thread_name[16];            /* of the thread that submitted it */
            bool library;                    /* by gshmem_host_call */
            bool counted;                    /* among those of the library under way */
            bool after_failure;              /* is called also if a kernel has failed before */
        } call;
    };
};

extern pthread_mutex_t work_lock; /* of work, streams and graphs */

/* NULL: no memory. The caller holds one reference. */
struct work *work_new(enum work_kind kind);
void work_drop(struct work *work);
bool work_is_done(const struct work *work);
void work_wait(struct work *work);
/* False in kernels and host functions, where most of the API must not be called. */
bool work_may_wait(void);

/* The two halves of a submission. With work_lock: w starts after `on` (may be NULL); false: no
 * memory to note it. */
bool work_depend(struct work *w, struct work *on);
/* Without: starts work that has no blockers. Copies and fills are done on return. */
void work_start_here(struct work *w);
/* With work_lock: lets go of a reference. */
void work_drop_locked(struct work *w);

struct lender *lender_keep(struct lender *lender);
void lender_drop(struct lender *lender);

/* A call of gshmem_host_call's is under way from its submission until it has returned or is
 * dropped. */
void call_begins(struct work *work);
void call_ends(struct work *work);

/* A launch is under way from before its submission until no code of the kernel's library is needed.
 */
static inline void code_begins(struct code *code)
{
    atomic_fetch_add_explicit(&code->under_way, 1, memory_order_relaxed);
}

static inline void code_ends(struct code *code)
{
    /* Release: with the acquires in gshmem_host_unregister(), wait_until_left() and
     * gshmem_host_kernels_under_way(). */
    atomic_fetch_sub_explicit(&code->under_way, 1, memory_order_release);
}

#endif

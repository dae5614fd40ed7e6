/* Contexts: the part that inline code reads (gshmem/context.h), and what the library keeps beside
 * it. */
#ifndef GSHMEM_RUNTIME_TEAMS_CONTEXT_H
#define GSHMEM_RUNTIME_TEAMS_CONTEXT_H

#include "gshmem/atomic.h"
#include "gshmem/context.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/open_batches.h"
#include "runtime/races/races.h"
#include "runtime/stats/stats.h"
#include "runtime/teams/observer.h"
#include "runtime/teams/team.h"
#include "runtime/trace/trace.h"

struct context {
    struct gshmem_ctx view; /* first: a handle is its address */
    struct pending *pending; /* its requests to PEs that are not mapped, in memory that kernels
                                see */
    struct kernel_context *kernel; /* its channels; NULL where there are no kernels */
    struct context *next;   /* in the job's list */
    const int *members;     /* [PE]: its number in the job; NULL: the same */
    _Atomic(struct open_batch_table *) batches; /* pending->batches, one load nearer */
};

/* gshmem_ctx_default, without a load. */
extern __attribute__((visibility("hidden"))) struct context context_default;

/* In a child of fork: from now on no operation finds a PE mapped. */
void context_leave_parent(struct job *j);
/* Creates and destroys the default context; stop also destroys those that the program left. */
gshmem_status_t context_start(struct job *j);
void context_stop(struct job *j);
/* The default context's requests in flight. */
struct pending *context_default_pending(void);

/* Tells kernels of the default context. */
void context_serve_kernels(struct kernel_context *k, const struct gshmem_device_ctx *view);

/* Completes the operations of all contexts; returns the first failure. */
gshmem_status_t context_quiet_all(struct job *j, const char *call);

struct context *context_find_none(gshmem_ctx_t handle, const char *call);

/* The context of a handle, or NULL after one logged line that names `call`. */
static inline struct context *context_find(gshmem_ctx_t handle, const char *call)
{
    if (GSHMEM_UNLIKELY(!job || handle == GSHMEM_CTX_INVALID))
        return context_find_none(handle, call);
    return (struct context *)gshmem_ctx_resolve(handle);
}

/* Finds pe's copy of the bytes at `mine`. On failure one line says whether the PE or the address
 * was wrong, and how; `call` names the function that the program called. */
gshmem_status_t context_resolve_any(struct context *c, const void *mine, size_t bytes, int pe,
                                    const char *call, struct location *l);

/* The common case of an object that is not mapped, without the map: the object is in the heap,
 * *offset behind its start, and the PE, *world of the job, is on another node. */
static inline bool context_is_remote_heap(const struct context *c, const void *mine, size_t bytes,
                                          int pe, int *world, uint64_t *offset)
{
    const struct gshmem_ctx *ctx = &c->view;

    *offset = (uintptr_t)mine - ctx->heap.base;
    if ((unsigned)pe >= (unsigned)ctx->n_pes || *offset >= ctx->heap.bytes ||
        bytes > ctx->heap.bytes - *offset || ctx->heap.peer[pe])
        return false;
    *world = job->team[ctx->team]->members[pe];
    return true;
}

/* The open batch of a handle to that PE of its team; NULL: there is none, or something is wrong. */
static inline struct open_batch *context_batch(gshmem_ctx_t handle, int pe)
{
    const struct context *c = &context_default;

    if (handle != GSHMEM_CTX_DEFAULT)
        c = (const struct context *)gshmem_ctx_resolve(handle);
    if (GSHMEM_UNLIKELY((unsigned)pe >= (unsigned)c->view.n_pes))
        return NULL;
    return open_batch_of(&c->batches, c->members ? c->members[pe] : pe);
}

static inline gshmem_status_t context_resolve(struct context *c, const void *mine, size_t bytes,
                                              int pe, const char *call, struct location *l)
{
    *l = (struct location){.segment = SEGMENT_HEAP, .atomicity = ATOMICITY_CPU, .way = WAY_NETWORK};
    if (context_is_remote_heap(c, mine, bytes, pe, &l->pe, &l->offset))
        return GSHMEM_OK;
    return context_resolve_any(c, mine, bytes, pe, call, l);
}

/* The same for any PE of the view's team, without an error line; false: the PE or the object cannot
 * be reached. May have to ask the bootstrap which program that PE runs. */
bool context_look_up(const struct gshmem_ctx *ctx, const void *mine, size_t bytes, int pe,
                     struct location *l);

/* GSHMEM_CHECK=memory: whether an object that is reached is all in one that the program has; else
 * one line. here: as in checked_access. The other form is of this PE's own copy, which has to be
 * symmetric. */
gshmem_status_t context_check(const struct location *l, const void *mine, size_t bytes,
                              const char *call, bool here);
gshmem_status_t context_check_own(const void *mine, size_t bytes, const char *call);
/* The same of memory that an operation reads or writes here. It need not be symmetric, but where it
 * is in a heap it has to be in an object. */
gshmem_status_t context_check_local(const void *local, size_t bytes, const char *call, bool here);

/* This thread has carried it out itself, in the memory of that PE: for the counts and the trace.
 * Copies that the device makes are not traced. */
static inline void context_note_copied(const struct context *c, enum trace_op op,
                                       enum stats_kind kind, const struct location *l,
                                       uint64_t bytes)
{
    struct stats_block *b = stats_mine(job->stats);
    const bool of_device = l->way == WAY_DEVICE;

    if (GSHMEM_LIKELY(b != NULL))
        stats_operation(b, c->pending->internal ? STATS_INTERNAL : kind,
                        of_device ? STATS_DEVICE : STATS_MAPPED, l->pe, bytes);
    if (trace_is_on() && !of_device)
        trace_write(TRACE_COPIED, op, l->pe, trace_next_id(), trace_at(l->segment, l->offset),
                    op == TRACE_ATOMIC ? 0 : bytes);
}

/* Logs why the address is not symmetric or not reachable; pe is the number that the caller gave. */
gshmem_status_t context_refuse(const struct location *l, const void *address, size_t bytes, int pe,
                               const char *call);

/* An atomic on an object in the device's memory, made by the device. */
gshmem_status_t context_update_device(const struct location *l, enum gshmem_amo op, int type,
                                      uint64_t operand, uint64_t compare, uint64_t *old);
/* Logs that this operation does not take an object in GPU memory. */
gshmem_status_t context_refuse_device(const void *address, const char *call);

/* What gshmem_ctx_quiet does; last: no more operations will be issued on the context. */
static inline gshmem_status_t context_quiet(struct context *c, const char *call, bool last)
{
    /* seq_cst: of two PEs that each put, quiet and get, at least one must see the other's put */
    atomic_thread_fence(memory_order_seq_cst);
    gshmem_status_t status = network_quiet(c->pending, call);
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_quiet();
    if (GSHMEM_LIKELY(!c->kernel))
        return status;
    gshmem_status_t kernels = job->observer->quiet(c->kernel, call, last);
    return status ? status : kernels;
}

#endif

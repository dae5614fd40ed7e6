/* Writes this PE's events (GSHMEM_TRACE). Without the setting each place that writes one costs a
 * load and a branch. */
#ifndef GSHMEM_RUNTIME_TRACE_TRACE_H
#define GSHMEM_RUNTIME_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/trace/format.h"

struct trace;
extern struct trace *trace; /* NULL: nothing is traced */


/* While a request is posted, under the network's lock: the id of its operation; 0: it has none. */
extern _Thread_local uint64_t trace_operation;

static inline bool trace_is_on(void)
{
    return __builtin_expect(trace != NULL, 0);
}

/* Who this PE is, for its file. */
struct trace_owner {
    int pe, n_pes, node;
    uint64_t job;
    struct trace_segment segment[TRACE_SEGMENTS];
};

/* Makes the file in the folder that GSHMEM_TRACE names, if it names one. If that fails, one line
 * says why, and nothing is traced. */
void trace_start(const struct trace_owner *owner);
void trace_stop(void);
/* The PE has left the job, but its threads may still write. */
void trace_end(void);
/* In a child of fork, which is no PE. */
void trace_leave_parent(void);

/* Only while tracing is on. */
void trace_write(enum trace_what what, enum trace_op op, int peer, uint64_t id, uint64_t at,
                 uint64_t bytes);
/* The same for what happened at that tick of the clock. */
void trace_write_at(uint64_t ticks, enum trace_what what, enum trace_op op, int peer, uint64_t id,
                    uint64_t at, uint64_t bytes);
uint64_t trace_ticks_now(void);
/* The number of a name, which is copied; the same for equal names. */
uint32_t trace_name(const char *name);
/* The id of a thread's next operation; and that of the nth of one of this PE's channels. */
uint64_t trace_next_id(void);
uint64_t trace_own_id(uint32_t stream, uint64_t n);

/* Of an enum transport_kind. */
static inline enum trace_op trace_op_of(int kind)
{
    return (enum trace_op)(kind + 1);
}

/* For all cases. */
static inline void trace_event(enum trace_what what, enum trace_op op, int peer, uint64_t id,
                               uint64_t at, uint64_t bytes)
{
    if (trace_is_on())
        trace_write(what, op, peer, id, at, bytes);
}

#endif

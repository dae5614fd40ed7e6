/* What each PE does, and the model that knows what must come of it.
 *
 * All PEs are in one process: the model looks into a PE's memory at the moment in which another PE
 * has been told that its data is there. */
#ifndef TEST_SIMULATION_PROGRAM_H
#define TEST_SIMULATION_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chance.h"
#include "gshmem.h"
#include "gshmem/device/state.h"
#include "plan.h"

enum {
    COUNTERS = 4,
    TEAMS_MOST = 4,
    CONSTANT_BYTES = 4096,
    VALUE_WORDS = 5,
    VALUES = 64, /* of 8 bytes: the largest contribution of a PE to a collective */
};

/* Symmetric memory, the same on all PEs. Behind it: slots, a piece for each PE, which that PE alone
 * writes, and room for collectives. */
struct area {
    long lock;
    uint64_t guarded;           /* of PE 0: counts sections under the lock */
    uint64_t counter[COUNTERS]; /* each fetch_inc gets a number of its own */
    uint64_t chain;             /* each swapped-in token comes out once */
    uint64_t sum;
    uint64_t bits;
    uint64_t ordered[2];        /* of PE - 1: the first is never older than the second */
    uint64_t signal, added;     /* of PE - 1 */
    unsigned char letter[512];  /* of PE - 1, with that signal */
    uint64_t value[VALUE_WORDS]; /* of PE - 1 */
    /* of PE - 1: elements of each type that waits have; words of streams */
    _Alignas(8) unsigned char typed[8][VALUE_WORDS * 8];
    uint64_t streamed[3], stream_signal;
    long sync[8]; /* the work array of active sets */
    unsigned char constant[CONSTANT_BYTES];
};

struct program {
    struct pe *pe;
    struct chance chance, common; /* of the step: this PE's, and that of all PEs */
    int me, n, step;
    size_t slot_bytes;
    struct area *area;
    unsigned char *slots;   /* [PE][slot_bytes] */
    uint64_t *to, *from;    /* [PE][VALUES] of collectives */
    unsigned char *expected; /* of this PE's slot: [target][slot_bytes] */
    size_t *written, *checked; /* [target]: bytes of it */
    gshmem_team_t team[TEAMS_MOST];
    int teams;
    uint64_t letters, orders, values, streamed;
    int barriers;
    ptrdiff_t allocated[3]; /* in this step: offsets from area */
    int allocated_step;
    /* The call that it is in; what has failed. */
    const char *call;
    uint64_t since;
    bool waits_for_all;
    gshmem_status_t failed, raised;
    bool begun, ended;
    struct gshmem_device_module *module; /* with kernels: */
    struct gshmem_device_state kernel;   /* what they know of the job */
    struct piece *on_gpu;                /* steps_gpu.c */
};

/* How many failures are allowed from now on, and since when. */
extern struct judge {
    bool allowed;
    bool by_call; /* a call of the system has failed (nth.h) */
    uint64_t since;
    enum fault_kind kind;
    struct pe *victim;
} judge;

extern struct program *programs;

/* Before the first fiber, and after the last. */
void programs_begin(void);
void programs_end(void);
void program_allow_failures(enum fault_kind kind, struct pe *victim);

/* One call of the library: whether it was successful. A failure that no fault allows ends the
 * run. */
void program_enter(struct program *p, const char *call, bool waits_for_all);
bool program_leave(struct program *p, gshmem_status_t status);
#define TRY(p, call)     (program_enter(p, #call, false), program_leave(p, call))
#define TRY_ALL(p, call) (program_enter(p, #call, true), program_leave(p, call))
/* For a call that returns a value: its failure was handed to the error handler. */
#define TRY_VALUE(p, to, call)                                                                     \
    (program_enter(p, #call, false), *(to) = (call), program_leave(p, (p)->raised))

/* ---- model.c ---- */

struct program *model_peer(const struct program *p, int pe);
/* Bytes that follow from a token. */
void model_fill(void *to, size_t bytes, uint64_t token);
/* Whether a successful get from that PE must have brought its bytes. */
bool model_can_get(const struct program *p, int from);
/* What this PE has written and completed is in its targets' memory. */
bool model_check_written(struct program *p, const char *after);
bool model_number(struct program *p, int target, int counter, uint64_t number);
bool model_token(struct program *p, int target, uint64_t token);
uint64_t model_new_token(const struct program *p);
void model_added(int target, uint64_t value);
void model_set_bit(int target, uint64_t bit);
bool model_lock_enters(struct program *p);
bool model_lock_leaves(struct program *p);
/* Once all PEs have completed all they have issued. */
bool model_check_sums(struct program *p);
bool model_check_order(const struct program *p);
/* PEs come to a barrier of all, and may leave it once all have come. */
void model_arrive(int barrier);
bool model_all_came(struct program *p, int barrier);

/* ---- steps_*.c: what a PE does in a step; false: something has failed ---- */

typedef bool step_fn(struct program *p);
step_fn step_put, step_get, step_strided, step_letters, step_ordered, step_atomics, step_sums,
    step_lock, step_collective, step_team, step_memory, step_context, step_compute, step_values,
    step_threads, step_barriers, step_waits, step_amos, step_blocks, step_elements,
    step_team_context, step_queries, step_typed, step_sets, step_growth, step_register,
    step_streams, step_mistakes, step_kernel, step_gpu;

/* Before init: this PE has kernels. */
void kernel_register(struct program *p);

#endif

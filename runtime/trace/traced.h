/* Traces as gshmem-trace has read them: all PEs of a job, on one clock. */
#ifndef GSHMEM_RUNTIME_TRACE_TRACED_H
#define GSHMEM_RUNTIME_TRACE_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/trace/format.h"

/* An event, with its time since the job began. */
struct item {
    double ns;
    const struct trace_event *event;
    uint32_t thread; /* index in the PE's `thread` */
    uint32_t what;   /* the event's; several items have a TRACE_CARRIED or TRACE_KERNEL_WAITED */
};

struct traced_thread {
    uint32_t number; /* as the system numbers it */
    char name[17];
};

struct traced_pe {
    int pe;
    const struct trace_head *head;
    const struct trace_chunk *chunk;
    uint32_t chunks; /* that the file has */
    size_t mapped;
    struct item *item; /* by time */
    size_t n;
    struct traced_thread *thread;
    uint32_t threads;
    double rate;   /* ns in a tick */
    int clock;     /* PEs with the same number have the same CLOCK_MONOTONIC */
    double begin, end; /* ns: the first and the last event, or the end of the job */
    uint64_t overwritten, lost; /* events that were, and that found no room */
};

struct traced {
    int n_pes;
    int n; /* traces, of as many PEs */
    uint64_t job;
    struct traced_pe *pe; /* by number */
    int *at;              /* [n_pes]: index in `pe`; -1: there is no trace of it */
    int clocks;
    double error; /* ns: how wrong the offsets between clocks may be */
    double zero;  /* ns of the first PE's clock: when the job began */
    struct step *step; /* of operations, by id and time */
    size_t steps;
};

/* A step of an operation. */
struct step {
    uint64_t id;
    double ns;
    int pe; /* index in traced.pe */
    const struct item *item;
};

static inline enum trace_what item_what(const struct item *i)
{
    return (enum trace_what)i->what;
}

static inline bool item_is_short_wait(const struct item *i)
{
    return trace_what_of(i->event) == TRACE_KERNEL_WAITED;
}

/* Of an event of kernels: the launch, block or thread, the object, and the name's number. */
static inline uint64_t item_place(const struct item *i)
{
    const bool of_block = item_is_short_wait(i) && (i->what == TRACE_IDLE || i->what == TRACE_BUSY);

    return of_block ? i->event->id - kernel_thread_of(i->event->id) : i->event->id;
}

static inline uint64_t item_object(const struct item *i)
{
    return item_is_short_wait(i) ? trace_waited_address(i->event->at) : i->event->at;
}

static inline uint64_t item_name(const struct item *i)
{
    return item_is_short_wait(i) ? trace_waited_name(i->event->at) : i->event->bytes;
}

/* With which the operation ended, of TRACE_DONE. */
static inline uint64_t item_status(const struct item *i)
{
    return trace_what_of(i->event) == TRACE_CARRIED ? 0 : i->event->at;
}

static inline enum trace_op item_op(const struct item *i)
{
    return (enum trace_op)(i->event->kind >> 24 & 7);
}

static inline int item_peer(const struct item *i)
{
    const uint32_t peer = i->event->kind & TRACE_NOBODY;

    return peer == TRACE_NOBODY ? -1 : (int)peer;
}

static inline bool item_is_step(const struct item *i)
{
    return item_what(i) >= TRACE_POSTED && item_what(i) <= TRACE_KERNEL;
}

/* Of the steps of an operation the first one that says which it is: a kernel's thread does not. */
static inline const struct step *step_of_op(const struct step *s, size_t n)
{
    return n > 1 && item_what(s->item) == TRACE_KERNEL ? s + 1 : s;
}

/* The text of a name's number; never NULL. */
const char *traced_name(const struct traced_pe *p, uint64_t number);
const char *traced_op(enum trace_op op);

/* load.c: the traces of the folder, of the job with that number or of the only one there (0).
 * false: a line has said why not. */
bool traced_load(struct traced *t, const char *folder, uint64_t job);
void traced_free(struct traced *t);
/* clocks.c: moves the times of all PEs to the clock of the first one. */
void traced_align(struct traced *t);
/* How many steps the operation has whose first one is t->step[i]. */
size_t traced_run(const struct traced *t, size_t i);
/* The steps of the operation with that id: how many, from *first on. */
size_t traced_steps(const struct traced *t, uint64_t id, const struct step **first);

/* ---- intervals.c ---- */

enum interval_kind {
    INTERVAL_CALL,   /* what a thread was in: a call, a round of a team, or the part of a wait that
                        is behind its spin */
    INTERVAL_LAUNCH, /* a kernel ran */
    INTERVAL_BLOCK,  /* one of its blocks did */
    INTERVAL_IDLE,   /* all threads of a block waited */
};

struct interval {
    enum interval_kind kind;
    uint64_t place; /* of a kernel's launch, block or thread, as kernel_place; 0: of the host */
    double begin, end;
    const char *name;
    int pe; /* index in traced.pe */
    uint32_t thread;
    int depth;      /* in how many others it is */
    int calls;      /* of them not ranges of the program; 0: the program called it */
    bool of_program; /* a range of the program on the host */
    bool is_wait;
    bool is_open;               /* the trace ends within it */
    enum trace_awaited awaited; /* of a wait */
    int only;                   /* of a wait or rooted round: the only PE waited for, or -1 */
    uint64_t round;             /* of a team; 0: it is none */
    uint32_t made;              /* with it, no two rounds are the same: format.h */
    const struct item *seen;    /* of a wait for a variable: what ended it, or NULL */
    uint64_t
        object; /* of a wait in a kernel: the address that is polled; of a launch: its blocks */
    bool for_kernels; /* a call in which the host waits for kernels */
};

/* An update of the memory of a PE. */
struct update {
    const struct step *step;
    int target; /* index in traced.pe */
};

struct arrival {
    uint64_t round;
    uint32_t made;
    double ns;
    int pe; /* index in traced.pe */
};

struct intervals {
    struct interval *of; /* by PE, then by end */
    size_t n;
    size_t *first; /* [traced.n + 1]: where each PE's begin */
    struct update *update; /* by target and time */
    size_t updates;
    struct arrival *last; /* in each round */
    size_t rounds;
};

bool intervals_find(struct intervals *s, const struct traced *t);
void intervals_free(struct intervals *s);
/* One more, of which there is *room. false: no memory. */
bool intervals_add(struct intervals *s, size_t *room, const struct interval *i);
/* intervals_kernels.c: those of a PE's kernels. */
bool intervals_of_kernels(struct intervals *s, size_t *room, const struct traced_pe *p, int pe);
/* The kernel of that launch of the PE; NULL: its beginning is not in the trace. */
const struct interval *intervals_launch(const struct intervals *s, int pe, uint32_t launch);

/* What ended a wait or a round: the PE, when it did so, and by which operation. */
struct cause {
    int pe; /* index in traced.pe; -1: it is not known */
    double ns;
    const struct step *step; /* NULL: it arrived */
};
struct cause intervals_cause(const struct intervals *s, const struct traced *t,
                             const struct interval *i);

/* ---- tracks.c: where kernels are drawn ---- */

/* A launch has a track, and each block, and threads beside the first of a block that wait. Launches
 * that run at the same time have different ones: they are numbered by lanes. */
struct tracks {
    uint64_t *key; /* by number: kernel_place of the lane from 1 on, the block and the thread */
    size_t n;
    struct lane {
        double begin;
        uint32_t launch, lane; /* from 0 */
    } *lane; /* by launch */
    size_t launches;
};
bool tracks_find(struct tracks *k, const struct traced *t, const struct intervals *s, int pe);
void tracks_free(struct tracks *k);
/* The number of the place's track; k->n: it has none. */
size_t tracks_number(const struct tracks *k, uint64_t place);

/* ---- What is written ---- */

bool json_write(const struct traced *t, const struct intervals *s, FILE *to);
void summary_write(const struct traced *t, const struct intervals *s, FILE *to);
/* The numbers of the summary, as JSON, which gshmem-plot draws. */
bool numbers_write(const struct traced *t, const struct intervals *s, FILE *to);
void path_write(const struct traced *t, const struct intervals *s, FILE *to);

#endif

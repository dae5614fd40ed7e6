/* Where a job stands: collected from its PEs, and put into words.
 *
 *     ask_find ──► where_collect ──► culprit_find ──► report_print
 *     (ask.h)      pages, stacks      who waits for whom   lines for people
 *
 * Used by gshmem-where and gshmemrun. Needs libc alone, and nothing of the library. */
#ifndef GSHMEM_RUNTIME_WHERE_WHERE_H
#define GSHMEM_RUNTIME_WHERE_WHERE_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/where/ask.h"

/* What a PE does, as far as can be known. The order is that of what explains a standstill best. */
enum where_state {
    STATE_DIED,
    STATE_FAILED,  /* in gshmem_init or gshmem_finalize */
    STATE_STOPPED, /* by a signal or a debugger */
    STATE_SILENT,  /* nothing is known of it: it does not answer, nor does any PE of its node */
    STATE_LEFT,
    STATE_ABSENT,  /* it has not called gshmem_init, or has not come far */
    STATE_OUTSIDE, /* of calls that wait */
    STATE_WAITS,
};

struct where_pe {
    int pe, node;
    pid_t pid; /* 0: not known, or of another machine */
    enum where_state state;
    const struct asked *asked; /* NULL: its own thread does not answer */
    struct where_page *page;   /* NULL: not known */
    uint64_t now;              /* the PE's clock when the page was copied */
    struct where_stacks *stacks; /* NULL: not asked, or no answer */
    struct where_wait *waits;    /* copies; the main thread's and kernels' first, then by age */
    int n_waits;
};

struct where_job {
    char name[WHERE_JOB];
    char program[WHERE_PATH];
    int n_pes, nodes;
    int n_answers;
    uint64_t lasted;     /* ns, on the PE that joined first of those that answer */
    struct where_pe *pe; /* [n_pes] */
};

/* Whether both have answered, and are PEs of one job. */
bool where_same_job(const struct asked *a, const struct asked *b);

/* Fills in *job from the PEs found that are of the same job as *one; found outlives *job. false:
 * there is no memory. Takes at most ms, and a little. */
bool where_collect(const struct asked *found, size_t n, const struct asked *one, int ms,
                   struct where_job *job);
/* Also the call stacks of these PEs' threads, within ms. */
void where_collect_stacks(struct where_job *job, const int *pe, int n, int ms);
void where_free(struct where_job *job);

/* ---- culprit.c ---- */

enum culprit_kind {
    CULPRIT_NONE,     /* nobody waits */
    CULPRIT_STATE,    /* PEs that do not wait, of one state, keep others waiting */
    CULPRIT_CYCLE,    /* PEs wait for each other, in the order of `pe` */
    CULPRIT_OWN,      /* a PE waits for memory that other PEs cannot update */
    CULPRIT_VARIABLE, /* PEs wait for updates, and nobody is left to make them */
    CULPRIT_MAYBE,    /* the same, but PEs outside of calls may make them */
    CULPRIT_INNER,    /* PEs wait for the network, or for threads of their own; nobody for them */
};

struct culprit {
    enum culprit_kind kind;
    enum where_state state; /* of CULPRIT_STATE and CULPRIT_MAYBE */
    int n;
    int *pe;     /* [n] */
    int waiting; /* how many PEs wait, in one of their threads at least */
    int waiter;  /* of CULPRIT_MAYBE: one PE that waits for an update */
};

/* The next PE that this wait is for, from number *at on, which is 0 at first; of a collective those
 * alone that do not wait in one of the same team. -1: no more is known. */
int where_next_peer(const struct where_job *job, const struct where_wait *w, int *at);
/* The wait of that PE that goes on because of the other one; NULL: there is none. */
const struct where_wait *culprit_wait_for(const struct where_job *job, int pe, int other);

/* Whether it has a thread that is in no wait, as far as its threads are known; runs: one that has a
 * CPU, or waits for one. */
bool culprit_has_free_thread(const struct where_pe *p, bool runs);

/* false: out of memory. */
bool culprit_find(const struct where_job *job, struct culprit *out);

/* ---- report.c ---- */

/* Lines for people, each after that prefix; the last one is a sentence that names the culprit.
 * until: on clock_ns, when source lines are looked up no more. */
void report_print(const struct where_job *job, const struct culprit *c, uint64_t until,
                  const char *prefix, FILE *to);

/* One line of what each PE is at, for a job that ends; nothing if no PE lives. */
void report_print_briefly(const struct where_job *job, uint64_t until, const char *prefix,
                          FILE *to);

/* Collects and prints the job of which *one is a PE, by that time, or a little later. false: out of
 * memory. */
bool where_report(const struct asked *found, size_t n, const struct asked *one, bool brief,
                  uint64_t until, const char *prefix, FILE *to);

#endif

/* All schedules of a small program that differ, one after another.
 *
 * A step is what a fiber does from one point (a call of the system, an atomic operation, a lock) to
 * the next, or one arrival at a PE. Each step has a footprint: the words and sockets that it reads
 * and writes. Two steps of different agents whose footprints conflict may have come in the other
 * order: that is tried in a later execution, and orders of steps that do not conflict are not
 * (dynamic partial-order reduction with source sets and sleep sets). Each execution is a child of
 * fork; the choices are in memory that parent and children share.
 *
 * Time passes only when nothing else can happen. A fiber that polls in vain is not run again before
 * its PE makes progress: something arrives, or another fiber ends a round in which it has sent,
 * received or woken. */
#ifndef TEST_SIMULATION_EXPLORE_H
#define TEST_SIMULATION_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pe;
struct fiber;

struct explored {
    uint64_t executions, redundant; /* ended early: the rest was seen in another order */
    uint64_t states; /* that steps have led to, each counted once in the tree of choices */
    uint64_t deepest, races;
    uint64_t refused;  /* orders left out, with more preemptions than were asked for */
    uint64_t wide;     /* steps with a footprint that is too large: all was taken to be ordered */
    uint64_t timeouts; /* the most sleeps of an execution that ended by their time alone */
    double plain;      /* log10 of the number of all interleavings, estimated (Knuth) */
    bool incomplete;   /* the limit of executions was reached */
    char failure[400];
    char schedule[2000]; /* of the failure: who ran, and for how many steps */
};

/* What is explored: begins in the child, tests after each step, has ended. Where nobody dies, an
 * execution also fails if a sleep ends by its time alone: something should have woken that
 * thread. */
struct exploration {
    void (*begin)(void);
    void (*check)(void);
    bool (*ended)(void);
    int victim;      /* the PE that dies at any time; -1: none does */
    int preemptions; /* at most so many of an execution; -1: any number */
    bool reduces;    /* false: all interleavings */
    bool late;       /* first what was sent arrives when nothing else can happen, not at once */
    uint64_t most;   /* executions; 0: all */
    const char *log; /* of the execution that fails; NULL: none is wanted */
};

bool explore(const struct exploration *what, struct explored *out);

/* ---- What the simulation says of the step that runs; nothing outside of an exploration ---- */

extern uint32_t explore_step; /* its number; 0: outside */
void explore_touch(const struct pe *pe, const void *object, bool writes);
/* Received bytes were stored there, by the PE that runs. */
void explore_stored(const void *at, size_t bytes);
/* The fiber that runs has sent, received or woken. */
void explore_advances(void);
/* It pauses, sleeps or ends; returns whether it has made progress since it has done so last. */
bool explore_round_ends(struct fiber *f);
/* Something arrives that was sent in that step. */
void explore_arrival(struct pe *to, uint32_t sent_in);

/* Symmetric memory of the PEs, whose plain loads and stores are part of footprints. */
extern struct explored_memory {
    uintptr_t at[2];
    size_t bytes;
} explored_memory;

#endif

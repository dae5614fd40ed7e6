/* What the PEs of a job share for GSHMEM_CHECK=races: one memfd that PE 0 makes and all map.
 *
 *     struct races_shared | a struct races_pe for each PE | snapshots of each PE | cells of each PE
 *
 * A clock is a vector of n + n * n numbers. Entry s is PE s's own clock: what PE s did itself up
 * to it happened before. Entry n + s * n + t is PE s's epoch of operations on PE t's memory: those
 * of epochs up to it are complete. A fence or a quiet begins an epoch.
 *
 * A cell stands for 8 bytes of a PE's symmetric memory, and keeps the last accesses to them. */
#ifndef GSHMEM_RUNTIME_RACES_SHARED_H
#define GSHMEM_RUNTIME_RACES_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/job/job.h"

enum {
    RACES_PES = 32,       /* most PEs of a job: a clock grows with their square */
    RACES_SITES = 4096,   /* of a PE: places in the program that call */
    RACES_KEPT = 4096,    /* snapshots of a PE; an older one counts as all that the PE has done */
    RACES_ROUNDS = 16,    /* of a team that are kept for members that are behind */
    RACES_LATER = 64,     /* variables that a PE sees at its next quiet */
    RACES_RANGES = 32,    /* of symmetric memory in a process */
    RACES_REPORTS = 4096, /* pairs of places */
    RACES_SLOTS = 4,      /* accesses that a cell keeps */
    RACES_LOCKS = 4096,   /* of a PE's cells, in groups */
};

/* How an access was made; what it is for conflicts follows from it. */
enum races_kind {
    RACES_NOTHING,
    RACES_READ,        /* by the PE itself: a load, the source of a put */
    RACES_WRITE,       /* by the PE itself: a store, the destination of a get */
    RACES_GET,         /* read by an operation on another PE's memory, or on its own */
    RACES_PUT,
    RACES_ATOMIC,      /* atomics and signals, which do not race with each other */
    RACES_FETCH,       /* an atomic that only reads */
    RACES_COLLECTED,   /* read by a collective */
    RACES_DISTRIBUTED, /* written by a collective */
};

enum {
    RACES_OPEN = 1, /* complete when the PE has passed a fence, or a quiet: `epoch` is an epoch */
    RACES_NBI = 2,  /* the PE itself may not use these bytes before a quiet */
};

struct races_slot {
    uint32_t epoch;    /* of the PE's clock, or with RACES_OPEN of its operations */
    uint32_t snapshot; /* what a PE that sees this write acquires; 0: nothing */
    uint16_t site;
    uint8_t pe;
    uint8_t mask; /* of the 8 bytes */
    uint8_t kind; /* an enum races_kind */
    uint8_t flags;
    uint8_t sees; /* mask: who sees these bytes acquires the snapshot; beyond `mask` where the
                     snapshot has taken over those of accesses that made room */
    uint8_t unused;
};

struct races_cell {
    struct races_slot slot[RACES_SLOTS];
};
_Static_assert(sizeof(struct races_cell) == 64, "a cell is a cache line");

/* A call of the program that is about to be carried out. from: its return address; NULL: it is
 * looked for on the stack. */
struct races_call {
    const char *name;
    const void *from;
};

/* Who makes the rounds of a team: each of them in its own order. */
enum races_side { RACES_HOST, RACES_KERNEL, RACES_SIDES };

/* A place in the program. */
struct races_site {
    uint64_t key; /* the same in all PEs; 0: not filled in */
    uint64_t at;  /* in the file's own addresses */
    char call[32];
    char path[256];
    char name[128]; /* "main+0x1c (prog+0x12ac)" */
};

struct races_round {
    _Atomic uint32_t number;
    _Atomic uint32_t snapshot;
};

struct races_pe {
    uint32_t sites;
    uint32_t last_snapshot; /* the number of the last one, from 1 on */
    uint32_t fenced;        /* signals of this PE cover its operations of epochs up to this one */
    _Atomic uint32_t lock[RACES_LOCKS];
    struct races_round round[RACES_SIDES][TEAM_MAX][RACES_ROUNDS];
    struct races_site site[RACES_SITES];
    uint32_t clock[RACES_PES + RACES_PES * RACES_PES];
    uint32_t evicted[RACES_PES + RACES_PES * RACES_PES]; /* what its snapshots have taken over from
                                                            accesses that made room */
};

struct races_shared {
    uint64_t token;
    _Atomic uint32_t off; /* the program has code that is not followed */
    _Atomic uint64_t cells_each; /* of a PE */
    _Atomic uint64_t reported[RACES_REPORTS];
    struct races_pe pe[];
};

#endif

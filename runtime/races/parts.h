/* What the files of this room share. */
#ifndef GSHMEM_RUNTIME_RACES_PARTS_H
#define GSHMEM_RUNTIME_RACES_PARTS_H

#include <pthread.h>

#include "runtime/races/shared.h"

/* A PE's clock at one time, which others acquire. */
struct races_snapshot {
    _Atomic uint32_t number; /* 0: it is being written */
    uint32_t clock[];
};

/* A variable that an operation under way fetches. */
struct races_later {
    const void *at;
    size_t bytes;
    int pe;
};

struct races_object {
    uintptr_t at;
    size_t bytes;
};

struct races {
    pthread_mutex_t lock; /* the threads of this PE have one clock */
    int me, n;
    uint32_t words; /* of a clock */
    struct races_shared *shared;
    size_t bytes;
    int fd;
    struct races_pe *own;
    uint32_t *clock; /* this PE's, in `own` */
    char *snapshots; /* of PE 0 */
    size_t snapshot_bytes;
    struct races_cell *cells; /* of PE 0; NULL: not started */
    uint64_t cells_each;
    uint64_t data_cell; /* of the first segment of variables */
    uint32_t epoch;     /* of operations that are issued now */
    uint32_t quiet, flushed; /* epochs up to these are complete, read; own->fenced: ordered */
    uint32_t round[RACES_SIDES][TEAM_MAX];
    struct races_later later[RACES_LATER];
    unsigned laters; /* RACES_LATER + 1: there were more */
    struct races_object *object;
    size_t objects, objects_room;
    unsigned found;
    char first[300]; /* the first line */
    struct races_known *known; /* sites.c */
};

/* ---- clocks.c; with the lock ---- */

/* What a PE acquires that sees an operation of this one on `target`; -1: a round. The PE's own
 * clock advances: what it does from now on comes later. */
uint32_t races_snapshot(struct races *r, int target);
/* The snapshot's clock is merged into `clock`. false: it is not kept any more, or its number is 0,
 * and all that any snapshot of the PE could have was merged. */
bool races_merge(const struct races *r, uint32_t *clock, int pe, uint32_t number);
/* Adds one snapshot to the last one of this PE, for an access that made room in a cell. */
void races_merge_into(struct races *r, uint32_t mine, int pe, uint32_t number);
/* PE's own clock in the snapshot; 0: it is not kept any more. */
uint32_t races_time_of(const struct races *r, int pe, uint32_t number);

static inline uint32_t races_entry(const struct races *r, int pe, int target)
{
    return (uint32_t)(r->n + pe * r->n + target);
}

/* ---- cells.c; with the lock ---- */

/* Two accesses that conflict. */
struct races_pair {
    struct races_slot before, now;
    const void *at; /* as this PE knows it */
    size_t bytes;   /* of the later one */
    int pe;         /* whose memory it is */
    bool met;       /* the PEs have synchronized since, but the operation was open */
};

/* Enters an access, and compares it with those before; true: *found is the first that conflicts.
 * `now` is all but the masks. */
bool races_enter_access(struct races *r, const void *at, size_t bytes, int pe,
                        struct races_slot now, struct races_pair *found);
void races_see_cells(struct races *r, const void *at, size_t bytes, int pe);
void races_clear_cells(struct races *r, const void *at, size_t bytes);

/* ---- races.c ---- */

/* The program's loads and stores of the job's symmetric memory are followed from now on. */
void races_follow(struct job *j);

/* ---- sites.c ---- */

/* The number of the place from which the program called; with the lock. */
uint16_t races_site_of(struct races *r, const struct races_call *call);
struct races_known *races_known_new(void); /* NULL: out of memory */
/* "halo.c:12 (main)", by addr2line where there is one; else function and offset. */
void races_site_text(const struct races_site *s, char *text, size_t size);

/* ---- report.c; without the lock, in a thread that is not followed ---- */

void races_report(struct races *r, const struct races_pair *found);

#endif

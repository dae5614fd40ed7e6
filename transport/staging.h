/* Pinned buffers through which memory of a device's own reaches a network that cannot read it, and what
 * arrives reaches such memory.
 *
 * One pool serves all peers, of one size from its first use on (GSHMEM_STAGING): who finds none spare goes
 * on when one is given back, so that nothing grows with peers or requests. Half of it is for what goes
 * out, where one stream holds no more than its share: a peer that takes nothing leaves the rest to
 * others. The other half is for what comes in. A buffer of that half is filled with what is there
 * already, and is spare again when the device has it, whatever any peer does: PEs that send to each other
 * all they have can always take.
 *
 * Belongs to who drives the transport. */
#ifndef GSHMEM_TRANSPORT_STAGING_H
#define GSHMEM_TRANSPORT_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

enum staging_way { STAGING_OUT, STAGING_IN, STAGING_WAYS };

enum {
    STAGING_SMALL = 4096,        /* bytes of a small buffer; most requests need no more */
    STAGING_LARGE = 256 * 1024,  /* and of a large one, where there is room for some of these */
    STAGING_LARGE_FEW = 6,       /* else smaller ones, so many */
    STAGING_LEAST = 64 * 1024,   /* the pool has room for two buffers of each kind then */
    STAGING_COPIES = 32,         /* under way at a time; the rest is for others */
};

struct staging;

struct staged {
    struct staging *pool;
    char *at;
    size_t room;         /* the buffer's */
    uint32_t *held;      /* how many its stream has taken; NULL: they are not counted */
    struct staged *next; /* spare ones; of one in use its stream's, as all that follows */
    uint64_t copy;       /* the device's name for what staging_begin began, */
    bool copying;        /* whether it is under way, */
    gshmem_status_t copied; /* and how it ended */
    size_t bytes;
    uint64_t number;     /* of the request that it is for */
    uint64_t then;       /* and up to which all are over when it is */
    uint8_t way, large;
};

/* Buffers in the order in which they were begun. */
struct staged_list {
    struct staged *first, *last;
};

struct staging {
    const struct transport_config *config; /* its device is NULL: there is nothing to stage */
    char *memory;          /* NULL until it is first needed */
    size_t bytes;          /* of it */
    struct staged *buffer; /* all */
    struct staged *spare[STAGING_WAYS][2];
    int buffers;
    uint32_t share;        /* of the buffers for what goes out, at most so many for one stream */
    struct staged *under_way[STAGING_COPIES]; /* in the order in which they were begun: */
    uint64_t begun, over;                     /* so many were, and are over */
    uint64_t given;        /* buffers given back, counted */
    bool failed;           /* there is no memory for it; that has been said */
};

/* Makes the pool, unless that has been done; false: there is no memory for it. */
bool staging_ready(struct staging *s);
void staging_open(struct staging *s, const struct transport_config *config);
/* Waits for what is being copied. */
void staging_close(struct staging *s);

/* A buffer to copy the first of so many bytes with: all of them, up to STAGING_SMALL, or as many as it has
 * room for. *held counts those for what goes out until they are given back. NULL: there is none now; or,
 * where s->failed says so, ever. */
struct staged *staging_take(struct staging *s, enum staging_way way, uint64_t bytes, uint32_t *held);
void staging_give(void *staged); /* to be what a queue calls, too */

/* Begins to copy into a buffer just taken, or from it to the device. Copies are made in the order in which
 * they are begun. */
gshmem_status_t staging_begin(struct staged *b, void *to, const void *from, size_t bytes);
/* Looks which copies are over: b->copying. Whether any is that was not. */
bool staging_look(struct staging *s);
static inline bool staging_busy(const struct staging *s)
{
    return s->begun != s->over;
}
/* Gives back all that are in the list, as soon as nothing is copied from or to them any more. */
void staging_abandon(struct staged_list *list);

void staged_append(struct staged_list *list, struct staged *b);
struct staged *staged_remove(struct staged_list *list); /* the first */

#endif

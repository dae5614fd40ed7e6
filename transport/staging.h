/* Staging: pinned buffers between device memory and a network that cannot read it.
 *
 * One pool serves all peers. Its size is fixed from its first use on (GSHMEM_STAGING), so that
 * nothing grows with peers or requests; a stream that finds no spare buffer continues when one is
 * given back. Half of the pool is for leaving data. There a stream holds no more than its share,
 * so that a peer that takes nothing leaves the rest to others. The other half is for arriving
 * data. A buffer of that half is filled with what has arrived already, and is spare again when
 * the device has it, whatever any peer does: PEs that send to each other at the same time can
 * always receive.
 *
 * It belongs to the thread that makes progress. */
#ifndef GSHMEM_TRANSPORT_STAGING_H
#define GSHMEM_TRANSPORT_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

enum staging_way { STAGING_OUT, STAGING_IN, STAGING_WAYS };

enum {
    STAGING_SMALL = 4096,        /* bytes of a small buffer; most requests need no more */
    STAGING_LARGE = 256 * 1024,  /* bytes of a large one, if the pool has room for so many, */
    STAGING_LARGE_FEW = 6,       /* else the large ones are smaller */
    STAGING_LEAST = 64 * 1024,   /* the least pool: it has two buffers of each kind */
    STAGING_COPIES = 32,         /* copies in flight; the device can make more, for others */
};

struct staging;

struct staged {
    struct staging *pool;
    char *at;
    size_t room;         /* the buffer's */
    uint32_t *held;      /* counts the buffers that its stream holds; NULL: they are not counted */
    struct staged *next; /* in the list of spare buffers, or in one of its stream */
    uint64_t copy;       /* the device's name for the copy of staging_begin */
    bool copying;        /* whether that is in flight, */
    gshmem_status_t copied; /* and how it ended */
    size_t bytes;
    uint64_t number;     /* the stream's: of the request that it is for, */
    uint64_t then;       /* and up to which all are complete when it is */
    uint8_t way, large;
};

/* Buffers in the order in which their copies were begun. */
struct staged_list {
    struct staged *first, *last;
};

struct staging {
    const struct transport_config *config; /* if its device is NULL, there is nothing to stage */
    char *memory;          /* NULL before its first use */
    size_t bytes;
    struct staged *buffer; /* all buffers */
    struct staged *spare[STAGING_WAYS][2];
    int buffers;
    uint32_t share;        /* of the large buffers for leaving data, so many for one stream */
    struct staged *under_way[STAGING_COPIES]; /* copies, in the order in which they were begun: */
    uint64_t begun, over;                     /* so many have begun, and so many have ended */
    uint64_t given;        /* buffers given back, counted */
    bool failed;           /* there is no memory for the pool; that was logged */
};

/* Makes the pool at its first call. False: there is no memory for it. */
bool staging_ready(struct staging *s);
void staging_open(struct staging *s, const struct transport_config *config);
/* Waits for the copies that are in flight. */
void staging_close(struct staging *s);

/* A buffer for the first of so many bytes: for all of them, up to STAGING_SMALL, or for as many
 * as it has room for. *held counts the buffers for leaving data until they are given back. NULL:
 * none is spare now; or, if s->failed, ever. */
struct staged *staging_take(struct staging *s, enum staging_way way, uint64_t bytes,
                            uint32_t *held);
void staging_give(void *staged); /* has the type of a queue's `sent` */

/* Begins a copy into a buffer that was taken, or from it to the device. The device makes copies
 * in the order in which they are begun. */
gshmem_status_t staging_begin(struct staged *b, void *to, const void *from, size_t bytes);
/* Polls the copies: b->copying. Whether any has ended. */
bool staging_look(struct staging *s);
static inline bool staging_busy(const struct staging *s)
{
    return s->begun != s->over;
}
/* Gives back the buffers of a list, and waits for their copies first. */
void staging_abandon(struct staged_list *list);

void staged_append(struct staged_list *list, struct staged *b);
struct staged *staged_remove(struct staged_list *list); /* the first */

#endif

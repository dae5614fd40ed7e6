/* The send queue: bytes on their way out of a socket, small ones copied, large ones referred to.
 *
 * A queue holds pieces in order. What is copied goes into a ring; copies that follow each other
 * are one piece, so that a batch of small frames is one element of one sendmsg. */
#ifndef GSHMEM_TRANSPORT_TCP_QUEUE_H
#define GSHMEM_TRANSPORT_TCP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/count.h"

enum {
    QUEUE_RING = 64 * 1024, /* a power of two */
    QUEUE_PIECES = 512,     /* likewise */
    QUEUE_SEND_MOST = 4 << 20,
};

/* Called when the last byte of a reference has been sent. It adds nothing to the queue. */
typedef void queue_sent(void *tag);

struct piece {
    const char *data; /* NULL: the next bytes of the ring */
    size_t bytes;
    queue_sent *sent; /* of a reference, or NULL */
    void *tag;
};

struct queue {
    uint32_t first; /* pieces, counted for ever */
    uint32_t end;
    size_t ring_first; /* bytes of the ring, counted for ever */
    size_t ring_end;
    size_t bytes; /* in all pieces */
    struct piece piece[QUEUE_PIECES];
    char ring[QUEUE_RING];
};

/* A queue of zeros becomes an empty one. */
static inline void queue_begin(struct queue *q)
{
    q->first = q->end = count_first();
}

static inline bool queue_empty(const struct queue *q)
{
    return q->first == q->end;
}

/* Whether so many copied bytes and so many references more would fit. */
static inline bool queue_has_room(const struct queue *q, size_t copied, uint32_t pieces)
{
    return q->ring_end - q->ring_first + copied <= QUEUE_RING &&
           q->end - q->first + pieces + 1 <= QUEUE_PIECES;
}

/* Whether some of these bytes are referred to. */
bool queue_refers_to(const struct queue *q, const void *at, size_t bytes);

/* Append, where queue_has_room. The bytes of a reference stay as they are until they are sent. */
void queue_add_copy(struct queue *q, const void *data, size_t bytes);
/* Changes copied bytes that have not been sent, at `position` of the ring, counted for ever. */
void queue_change_copy(struct queue *q, size_t position, const void *data, size_t bytes);
void queue_add_reference(struct queue *q, const void *data, size_t bytes, queue_sent *sent,
                         void *tag);

/* Empties the queue. Of its references it calls those with this `sent`. */
void queue_abandon(struct queue *q, queue_sent *sent);

/* Sends what the socket takes, up to QUEUE_SEND_MOST bytes: a peer that takes them as fast would
 * keep the sender, and the network's lock. False: the connection has failed (errno). */
bool queue_send(struct queue *q, int fd);

#endif

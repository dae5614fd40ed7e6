/* Bytes that have arrived on a stream and have not been taken yet. */
#ifndef GSHMEM_TRANSPORT_TCP_RECEIVE_BUFFER_H
#define GSHMEM_TRANSPORT_TCP_RECEIVE_BUFFER_H

#include <stddef.h>
#include <string.h>

enum { RECEIVE_BUFFER_BYTES = 64 * 1024 };

/* `bytes` is last and is never cleared: its pages are taken as they are used. */
struct receive_buffer {
    size_t first, end; /* what has not been taken is bytes[first] to bytes[end - 1] */
    unsigned char bytes[RECEIVE_BUFFER_BYTES];
};

static inline size_t receive_buffer_has(const struct receive_buffer *b)
{
    return b->end - b->first;
}

/* The next byte that has not been taken. */
static inline const unsigned char *receive_buffer_next(const struct receive_buffer *b)
{
    return b->bytes + b->first;
}

/* Moves what has not been taken to the beginning, so that all the rest is room. */
static inline void receive_buffer_compact(struct receive_buffer *b)
{
    const size_t has = receive_buffer_has(b);

    if (b->first && has)
        memmove(b->bytes, b->bytes + b->first, has);
    b->first = 0;
    b->end = has;
}

#endif

/* The wire between gshmemrun and its PEs: each message as a struct, with encoder and decoder.
 *
 * Each PE inherits one end of a SOCK_SEQPACKET pair, which keeps the bounds of messages, so that a
 * message needs no length of its own and a reader never sees a part of one. Numbers are 32 bits,
 * little-endian; a message begins with its type, and a blob or a text fills what is left of it.
 * A decoder accepts exactly what its encoder makes, of any length and content. */
#ifndef GSHMEM_BOOTSTRAP_RUN_WIRE_H
#define GSHMEM_BOOTSTRAP_RUN_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bootstrap/bootstrap.h"

enum {
    WIRE_MAGIC = 0x4e555247, /* "GRUN" */
    WIRE_VERSION = 1,        /* of everything in this file, and of the rule wire_node_of */
    WIRE_WHY_MAX = 200,      /* bytes of an abort's reason */
    WIRE_MAX = 12 + BOOTSTRAP_BLOB_MAX, /* bytes of the longest message */
};

static_assert(8 + WIRE_WHY_MAX <= WIRE_MAX, "an abort fits a message");

/* What a PE says, and what it is answered. */
#define WIRE_TABLE(X)                                                                              \
    X(HELLO, 1)   /* I am here: WELCOME */                                                         \
    X(PUBLISH, 2) /* my blob for a new round */                                                    \
    X(FENCE, 3)   /* wait for all PEs' blobs of the round: RELEASED, when all have said it */      \
    X(WHO, 4)     /* whom does the fence wait for? ABSENT, unless RELEASED is on its way */        \
    X(FETCH, 5)   /* a PE's blob of the round: BLOB */                                             \
    X(ABORT, 6)   /* end the job */                                                                \
    X(GOODBYE, 7) /* I am done, in good order; another HELLO may follow */                         \
    X(WELCOME, 8)                                                                                  \
    X(RELEASED, 9)                                                                                 \
    X(ABSENT, 10)                                                                                  \
    X(BLOB, 11)

enum wire_type {
#define X(name, value) WIRE_##name = value,
    WIRE_TABLE(X)
#undef X
};

/* The node of a PE when n_pes are dealt to n_nodes in contiguous blocks, the first ones larger by
 * one where it does not come out even. Both sides use this rule, so the wire carries no map. */
static inline int wire_node_of(int pe, int n_pes, int n_nodes)
{
    int small = n_pes / n_nodes, large_nodes = n_pes % n_nodes;
    int in_large = large_nodes * (small + 1);

    return pe < in_large ? pe / (small + 1) : large_nodes + (pe - in_large) / small;
}

static inline void wire_put(unsigned char *to, int word, uint32_t value)
{
    to += 4 * word;
    to[0] = (unsigned char)value;
    to[1] = (unsigned char)(value >> 8);
    to[2] = (unsigned char)(value >> 16);
    to[3] = (unsigned char)(value >> 24);
}

static inline uint32_t wire_get(const unsigned char *from, int word)
{
    from += 4 * word;
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* The type of a message, or 0 if it is too short to have one. */
static inline uint32_t wire_type_of(const unsigned char *from, size_t bytes)
{
    return bytes < 4 ? 0 : wire_get(from, 0);
}

static inline bool wire_is(const unsigned char *from, size_t bytes, enum wire_type type,
                           size_t least, size_t most)
{
    return bytes >= least && bytes <= most && wire_get(from, 0) == (uint32_t)type;
}

/* ---- hello: type | magic | version | pe ---- */

struct wire_hello {
    uint32_t version;
    uint32_t pe;
};

enum { WIRE_HELLO_BYTES = 16 };

static inline size_t wire_encode_hello(unsigned char *to, const struct wire_hello *m)
{
    wire_put(to, 0, WIRE_HELLO);
    wire_put(to, 1, WIRE_MAGIC);
    wire_put(to, 2, m->version);
    wire_put(to, 3, m->pe);
    return WIRE_HELLO_BYTES;
}

static inline bool wire_decode_hello(const unsigned char *from, size_t bytes, struct wire_hello *m)
{
    if (!wire_is(from, bytes, WIRE_HELLO, WIRE_HELLO_BYTES, WIRE_HELLO_BYTES) ||
        wire_get(from, 1) != WIRE_MAGIC)
        return false;
    *m = (struct wire_hello){wire_get(from, 2), wire_get(from, 3)};
    return true;
}

/* ---- welcome: type | version | n_pes | n_nodes | round | job ---- */

struct wire_welcome {
    uint32_t version;
    uint32_t n_pes;
    uint32_t n_nodes;
    uint32_t round; /* that this PE finished last: its first is the next one */
    uint32_t job;   /* a number for the job's name */
};

enum { WIRE_WELCOME_BYTES = 24 };

static inline size_t wire_encode_welcome(unsigned char *to, const struct wire_welcome *m)
{
    wire_put(to, 0, WIRE_WELCOME);
    wire_put(to, 1, m->version);
    wire_put(to, 2, m->n_pes);
    wire_put(to, 3, m->n_nodes);
    wire_put(to, 4, m->round);
    wire_put(to, 5, m->job);
    return WIRE_WELCOME_BYTES;
}

static inline bool wire_decode_welcome(const unsigned char *from, size_t bytes,
                                       struct wire_welcome *m)
{
    if (!wire_is(from, bytes, WIRE_WELCOME, WIRE_WELCOME_BYTES, WIRE_WELCOME_BYTES))
        return false;
    *m = (struct wire_welcome){wire_get(from, 1), wire_get(from, 2), wire_get(from, 3),
                               wire_get(from, 4), wire_get(from, 5)};
    return true;
}

/* ---- publish: type | round | blob … ---- */

struct wire_publish {
    uint32_t round;
    uint32_t bytes;            /* of blob */
    const unsigned char *blob; /* decoded: inside the message */
};

enum { WIRE_PUBLISH_BYTES = 8 /* and the blob */ };

static inline size_t wire_encode_publish(unsigned char *to, const struct wire_publish *m)
{
    wire_put(to, 0, WIRE_PUBLISH);
    wire_put(to, 1, m->round);
    if (m->bytes)
        memcpy(to + WIRE_PUBLISH_BYTES, m->blob, m->bytes);
    return WIRE_PUBLISH_BYTES + m->bytes;
}

static inline bool wire_decode_publish(const unsigned char *from, size_t bytes,
                                       struct wire_publish *m)
{
    if (!wire_is(from, bytes, WIRE_PUBLISH, WIRE_PUBLISH_BYTES,
                 WIRE_PUBLISH_BYTES + BOOTSTRAP_BLOB_MAX))
        return false;
    *m = (struct wire_publish){wire_get(from, 1), (uint32_t)bytes - WIRE_PUBLISH_BYTES,
                               from + WIRE_PUBLISH_BYTES};
    return true;
}

/* ---- fence, who, released: type | round ---- */

struct wire_round {
    uint32_t round;
};

enum { WIRE_ROUND_BYTES = 8 };

static inline size_t wire_encode_round(unsigned char *to, enum wire_type type,
                                       const struct wire_round *m)
{
    wire_put(to, 0, type);
    wire_put(to, 1, m->round);
    return WIRE_ROUND_BYTES;
}

static inline bool wire_decode_round(const unsigned char *from, size_t bytes, enum wire_type type,
                                     struct wire_round *m)
{
    if (!wire_is(from, bytes, type, WIRE_ROUND_BYTES, WIRE_ROUND_BYTES))
        return false;
    m->round = wire_get(from, 1);
    return true;
}

/* ---- absent: type | round | count | first ---- */

struct wire_absent {
    uint32_t round;
    uint32_t count; /* of PEs that have not come to the fence */
    uint32_t first; /* the lowest of them */
};

enum { WIRE_ABSENT_BYTES = 16 };

static inline size_t wire_encode_absent(unsigned char *to, const struct wire_absent *m)
{
    wire_put(to, 0, WIRE_ABSENT);
    wire_put(to, 1, m->round);
    wire_put(to, 2, m->count);
    wire_put(to, 3, m->first);
    return WIRE_ABSENT_BYTES;
}

static inline bool wire_decode_absent(const unsigned char *from, size_t bytes,
                                      struct wire_absent *m)
{
    if (!wire_is(from, bytes, WIRE_ABSENT, WIRE_ABSENT_BYTES, WIRE_ABSENT_BYTES))
        return false;
    *m = (struct wire_absent){wire_get(from, 1), wire_get(from, 2), wire_get(from, 3)};
    return true;
}

/* ---- fetch: type | round | pe ---- */

struct wire_fetch {
    uint32_t round;
    uint32_t pe;
};

enum { WIRE_FETCH_BYTES = 12 };

static inline size_t wire_encode_fetch(unsigned char *to, const struct wire_fetch *m)
{
    wire_put(to, 0, WIRE_FETCH);
    wire_put(to, 1, m->round);
    wire_put(to, 2, m->pe);
    return WIRE_FETCH_BYTES;
}

static inline bool wire_decode_fetch(const unsigned char *from, size_t bytes, struct wire_fetch *m)
{
    if (!wire_is(from, bytes, WIRE_FETCH, WIRE_FETCH_BYTES, WIRE_FETCH_BYTES))
        return false;
    *m = (struct wire_fetch){wire_get(from, 1), wire_get(from, 2)};
    return true;
}

/* ---- blob: type | round | pe | blob … ---- */

struct wire_blob {
    uint32_t round;
    uint32_t pe;
    uint32_t bytes;            /* of blob */
    const unsigned char *blob; /* decoded: inside the message */
};

enum { WIRE_BLOB_BYTES = 12 /* and the blob */ };

static_assert(WIRE_BLOB_BYTES + BOOTSTRAP_BLOB_MAX == WIRE_MAX, "a blob is the longest message");

static inline size_t wire_encode_blob(unsigned char *to, const struct wire_blob *m)
{
    wire_put(to, 0, WIRE_BLOB);
    wire_put(to, 1, m->round);
    wire_put(to, 2, m->pe);
    if (m->bytes)
        memcpy(to + WIRE_BLOB_BYTES, m->blob, m->bytes);
    return WIRE_BLOB_BYTES + m->bytes;
}

static inline bool wire_decode_blob(const unsigned char *from, size_t bytes, struct wire_blob *m)
{
    if (!wire_is(from, bytes, WIRE_BLOB, WIRE_BLOB_BYTES, WIRE_MAX))
        return false;
    *m = (struct wire_blob){wire_get(from, 1), wire_get(from, 2), (uint32_t)bytes - WIRE_BLOB_BYTES,
                            from + WIRE_BLOB_BYTES};
    return true;
}

/* ---- abort: type | status | why … ---- */

struct wire_abort {
    int32_t status;
    uint32_t bytes;  /* of why */
    const char *why; /* decoded: inside the message, not terminated */
};

enum { WIRE_ABORT_BYTES = 8 /* and why */ };

static inline size_t wire_encode_abort(unsigned char *to, const struct wire_abort *m)
{
    wire_put(to, 0, WIRE_ABORT);
    wire_put(to, 1, (uint32_t)m->status);
    if (m->bytes)
        memcpy(to + WIRE_ABORT_BYTES, m->why, m->bytes);
    return WIRE_ABORT_BYTES + m->bytes;
}

static inline bool wire_decode_abort(const unsigned char *from, size_t bytes, struct wire_abort *m)
{
    if (!wire_is(from, bytes, WIRE_ABORT, WIRE_ABORT_BYTES, WIRE_ABORT_BYTES + WIRE_WHY_MAX))
        return false;
    *m = (struct wire_abort){(int32_t)wire_get(from, 1), (uint32_t)bytes - WIRE_ABORT_BYTES,
                             (const char *)from + WIRE_ABORT_BYTES};
    return true;
}

/* ---- goodbye: type ---- */

enum { WIRE_GOODBYE_BYTES = 4 };

static inline size_t wire_encode_goodbye(unsigned char *to)
{
    wire_put(to, 0, WIRE_GOODBYE);
    return WIRE_GOODBYE_BYTES;
}

static inline bool wire_decode_goodbye(const unsigned char *from, size_t bytes)
{
    return wire_is(from, bytes, WIRE_GOODBYE, WIRE_GOODBYE_BYTES, WIRE_GOODBYE_BYTES);
}

#endif

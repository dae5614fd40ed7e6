/* Messages between proxies, by queue pairs: what a NIC cannot do at the target, and the replies.
 *
 * A message has 64 bytes, little-endian, and for a put its data behind them; or 16 bytes, and
 * behind them several small puts and updates (coalesce.c), packed so that it is no longer than a
 * put's: the receives that a PE posts for its peers are of one size.
 *
 * The messages of one PE are numbered from 1, and carried out in order, except that staged chunks
 * without a fence may overtake an update of GPU memory. The reply to number n says that all up to
 * n are done. */
#ifndef GSHMEM_TRANSPORT_VERBS_MESSAGE_H
#define GSHMEM_TRANSPORT_VERBS_MESSAGE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MESSAGE_HEAD = 64,
    MESSAGE_DATA = 192, /* of a put */
    MESSAGE_CHANGES_HEAD = 16,
    MESSAGE_CHANGES_DATA = MESSAGE_HEAD + MESSAGE_DATA - MESSAGE_CHANGES_HEAD,
    MESSAGE_CHANGE_NEAR = 3, /* the heads of one of those */
    MESSAGE_CHANGE_FAR = 8,
    MESSAGE_CHANGE_MOST = 127, /* bytes that it puts */
    MESSAGE_CHANGE_UPDATE = 9, /* behind the head of an update */
    MESSAGE_CHANGE_OFFSET_BITS = 48,
    MESSAGE_EAGER = 255, /* as a segment, of a request for keys: those of the eager buffers */
};

struct message_bytes {
    unsigned char at[MESSAGE_HEAD + MESSAGE_DATA];
};

enum message_kind {
    MESSAGE_PUT = 1, /* `bytes` bytes follow, perhaps none, then the signal if there is one */
    MESSAGE_ATOMIC,
    MESSAGE_KEY, /* requests the keys of chunk `offset` of a segment */
    /* to `number`: `a` is the old value of an atomic, or a key; `offset` the address of the eager
     * buffers */
    MESSAGE_REPLY,
    MESSAGE_CHANGES, /* `bytes` bytes of puts and updates follow */
    /* a chunk at address `a` of the sender, with its bytes and, in the upper half, its key in `b`;
     * `amo`: behind a fence */
    MESSAGE_TAKE, /* the target reads the chunk from there */
    MESSAGE_GIVE, /* the target writes the chunk there */
    /* a batch, whose records have been written to eager buffer `b`. `signal_op` is what it does to
     * each of `a` elements, of `signal_segment` bytes */
    MESSAGE_BATCH,
};

struct message {
    uint8_t kind, segment, amo, type, signal_op, signal_segment;
    uint16_t bytes;
    uint32_t from;
    uint32_t number;
    uint64_t offset;
    uint64_t a, b;    /* operand and compare; a signal's offset and value */
    const void *data; /* of a put, or the changes */
};

static inline void message_put64(unsigned char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, 8);
}

static inline uint64_t message_get64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, 8);
    return le64toh(value);
}

/* Returns how many bytes it takes. */
static inline uint32_t message_encode(struct message_bytes *to, const struct message *m)
{
    unsigned char *at = to->at;

    if (m->kind == MESSAGE_CHANGES) {
        message_put64(at, m->kind | (uint64_t)m->bytes << 16);
        message_put64(at + 8, (uint64_t)m->from << 32 | m->number);
        memcpy(at + MESSAGE_CHANGES_HEAD, m->data, m->bytes);
        return MESSAGE_CHANGES_HEAD + m->bytes;
    }
    memset(at, 0, MESSAGE_HEAD);
    at[0] = m->kind;
    at[1] = m->segment;
    at[2] = m->amo;
    at[3] = m->type;
    at[4] = m->signal_op;
    at[5] = m->signal_segment;
    message_put64(at + 8, m->bytes);
    message_put64(at + 16, (uint64_t)m->from << 32 | m->number);
    message_put64(at + 24, m->offset);
    message_put64(at + 32, m->a);
    message_put64(at + 40, m->b);
    if (m->kind == MESSAGE_PUT && m->bytes)
        memcpy(at + MESSAGE_HEAD, m->data, m->bytes);
    return MESSAGE_HEAD + (m->kind == MESSAGE_PUT ? m->bytes : 0);
}

static inline bool message_decode_changes(const unsigned char *at, uint32_t bytes,
                                          struct message *m)
{
    const uint64_t head = message_get64(at), who = message_get64(at + 8), data = head >> 16;

    if (head >> 8 & 0xff || data == 0 || data > MESSAGE_CHANGES_DATA ||
        bytes != MESSAGE_CHANGES_HEAD + data)
        return false;
    *m = (struct message){.kind = MESSAGE_CHANGES,
                          .bytes = (uint16_t)data,
                          .from = (uint32_t)(who >> 32),
                          .number = (uint32_t)who,
                          .data = at + MESSAGE_CHANGES_HEAD};
    return true;
}

/* False: what no PE of this version sends. */
static inline bool message_decode(const struct message_bytes *in, uint32_t bytes, struct message *m)
{
    const unsigned char *at = in->at;

    if (bytes > MESSAGE_CHANGES_HEAD && at[0] == MESSAGE_CHANGES)
        return message_decode_changes(at, bytes, m);
    if (bytes < MESSAGE_HEAD || at[0] < MESSAGE_PUT || at[0] > MESSAGE_BATCH ||
        at[0] == MESSAGE_CHANGES || at[6] || at[7])
        return false;
    uint64_t data = message_get64(at + 8), who = message_get64(at + 16);
    if (data > MESSAGE_DATA || bytes != MESSAGE_HEAD + data || (data && at[0] != MESSAGE_PUT) ||
        message_get64(at + 48) || message_get64(at + 56))
        return false;
    *m = (struct message){.kind = at[0],
                          .segment = at[1],
                          .amo = at[2],
                          .type = at[3],
                          .signal_op = at[4],
                          .signal_segment = at[5],
                          .bytes = (uint16_t)data,
                          .from = (uint32_t)(who >> 32),
                          .number = (uint32_t)who,
                          .offset = message_get64(at + 24),
                          .a = message_get64(at + 32),
                          .b = message_get64(at + 40),
                          .data = at + MESSAGE_HEAD};
    return true;
}

/* ---- Several puts and updates ---- */

/* Changes follow each other: each has a head, and then its data.
 *
 * - A near change begins less than 32 KiB from the beginning of the one before it. Its head is
 *   the number of its bytes less one, and that distance in two bytes.
 * - The head of a far change is the same number with its upper bit set, the offset, and the
 *   segment. The first change is a far one.
 * - An update has a number that no put has. Behind its head come the operation with the type, and
 *   the operand. */
struct message_change {
    uint8_t segment;
    uint8_t bytes; /* 1 … MESSAGE_CHANGE_MOST; 0: an update */
    uint8_t amo, type;
    uint64_t offset;
    const unsigned char *data; /* or the operand, of 8 bytes */
};

static inline bool message_is_near(const struct message_change *last, uint8_t segment,
                                   uint64_t distance)
{
    return segment == last->segment && distance == (uint64_t)(int16_t)distance;
}

/* The head of a near change, and that of a far one; for an update, bytes is MESSAGE_CHANGE_MOST +
 * 1. */
static inline void message_change_near(unsigned char *at, uint64_t distance, uint64_t bytes)
{
    const uint16_t far = htole16((uint16_t)distance);

    at[0] = (unsigned char)(bytes - 1);
    memcpy(at + 1, &far, sizeof far);
}

static inline void message_change_far(unsigned char *at, uint8_t segment, uint64_t offset,
                                      uint64_t bytes)
{
    message_put64(at, (uint64_t)segment << 56 | offset << 8 | 0x80 | (bytes - 1));
}

/* The head of `next`, which comes behind `last`, without data or operand; returns its bytes. */
static inline uint32_t message_change_head(unsigned char *at, const struct message_change *last,
                                           const struct message_change *next)
{
    const uint64_t distance = next->offset - last->offset;
    const uint64_t bytes = next->bytes ? next->bytes : MESSAGE_CHANGE_MOST + 1;
    uint32_t head = MESSAGE_CHANGE_NEAR;

    if (message_is_near(last, next->segment, distance)) {
        message_change_near(at, distance, bytes);
    } else {
        message_change_far(at, next->segment, next->offset, bytes);
        head = MESSAGE_CHANGE_FAR;
    }
    if (next->bytes)
        return head;
    at[head] = (unsigned char)(next->type << 3 | next->amo);
    return head + 1;
}

/* Decodes the next change of the `left` bytes; `c` is the one before it, and then this one. Returns
 * its bytes; 0: no PE of this version sends that. */
static inline uint32_t message_next_change(const unsigned char *at, uint32_t left,
                                           struct message_change *c)
{
    const uint32_t head = left && at[0] & 0x80 ? MESSAGE_CHANGE_FAR : MESSAGE_CHANGE_NEAR;

    if (left < head)
        return 0;
    c->bytes = (uint8_t)((at[0] & 0x7f) + 1);
    if (head == MESSAGE_CHANGE_FAR) {
        const uint64_t place = message_get64(at) >> 8;
        c->segment = (uint8_t)(place >> MESSAGE_CHANGE_OFFSET_BITS);
        c->offset = place & ((1ull << MESSAGE_CHANGE_OFFSET_BITS) - 1);
    } else {
        c->offset += (uint64_t)(int16_t)(at[1] | at[2] << 8);
    }
    const bool update = c->bytes > MESSAGE_CHANGE_MOST;
    const uint32_t rest = update ? MESSAGE_CHANGE_UPDATE : c->bytes;
    if (left - head < rest)
        return 0;
    c->data = at + head;
    if (update) {
        c->bytes = 0;
        c->amo = c->data[0] & 7;
        c->type = c->data[0] >> 3;
        c->data++;
    }
    return head + rest;
}

#endif

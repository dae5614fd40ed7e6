/* What travels between queue pairs as a message: what a NIC cannot do for its owner, and the
 * answers.
 *
 * 64 bytes, little-endian, and for a put its data behind them; or 16, and behind them several small
 * puts (gather.c), so packed that a message of them is no longer than one of a single put: what a PE
 * keeps ready for its peers' messages does not grow by them. Messages of one PE are numbered from 1;
 * they are carried out in order, and the reply to number n says that all up to n are done. */
#ifndef GSHMEM_TRANSPORT_VERBS_MESSAGE_H
#define GSHMEM_TRANSPORT_VERBS_MESSAGE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MESSAGE_HEAD = 64,
    MESSAGE_DATA = 192, /* of a put */
    MESSAGE_PUTS_HEAD = 16,
    MESSAGE_PUTS_DATA = MESSAGE_HEAD + MESSAGE_DATA - MESSAGE_PUTS_HEAD, /* of several */
    MESSAGE_PUT_NEAR = 3, /* the heads of one of those */
    MESSAGE_PUT_FAR = 8,
    MESSAGE_PUT_MOST = 128, /* and its data */
    MESSAGE_PUT_OFFSET_BITS = 48,
};

struct message_bytes {
    unsigned char at[MESSAGE_HEAD + MESSAGE_DATA];
};

enum message_kind {
    MESSAGE_PUT = 1, /* `bytes` bytes follow, perhaps none, then the signal if there is one */
    MESSAGE_ATOMIC,
    MESSAGE_KEY,   /* asks for the key of chunk `offset` of a segment */
    MESSAGE_REPLY, /* to `number`: `a` is the old value of an atomic, or a key */
    MESSAGE_PUTS,  /* `bytes` bytes of puts follow */
};

struct message {
    uint8_t kind, segment, amo, type, signal_op, signal_segment;
    uint16_t bytes;
    uint32_t from;
    uint32_t number;
    uint64_t offset;
    uint64_t a, b;    /* operand and compare; a signal's offset and value */
    const void *data; /* of a put that is to be sent, or the puts */
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

/* How many bytes it takes. */
static inline uint32_t message_encode(struct message_bytes *to, const struct message *m)
{
    unsigned char *at = to->at;

    if (m->kind == MESSAGE_PUTS) {
        message_put64(at, m->kind | (uint64_t)m->bytes << 16);
        message_put64(at + 8, (uint64_t)m->from << 32 | m->number);
        memcpy(at + MESSAGE_PUTS_HEAD, m->data, m->bytes);
        return MESSAGE_PUTS_HEAD + m->bytes;
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

static inline bool message_decode_puts(const unsigned char *at, uint32_t bytes, struct message *m)
{
    const uint64_t head = message_get64(at), who = message_get64(at + 8), data = head >> 16;

    if (head >> 8 & 0xff || data == 0 || data > MESSAGE_PUTS_DATA || bytes != MESSAGE_PUTS_HEAD + data)
        return false;
    *m = (struct message){.kind = MESSAGE_PUTS,
                          .bytes = (uint16_t)data,
                          .from = (uint32_t)(who >> 32),
                          .number = (uint32_t)who,
                          .data = at + MESSAGE_PUTS_HEAD};
    return true;
}

/* False: what no PE of this version sends. */
static inline bool message_decode(const struct message_bytes *in, uint32_t bytes, struct message *m)
{
    const unsigned char *at = in->at;

    if (bytes > MESSAGE_PUTS_HEAD && at[0] == MESSAGE_PUTS)
        return message_decode_puts(at, bytes, m);
    if (bytes < MESSAGE_HEAD || at[0] < MESSAGE_PUT || at[0] > MESSAGE_REPLY || at[6] || at[7])
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

/* ---- Several puts ---- */

/* One after the other: a head and its data. A near one has in its head the number of its bytes, less
 * one, and in two bytes how far from the beginning of the last one it begins; a far one a set bit above
 * that number, then the offset, and the segment. The first comes as if behind one at the beginning
 * of segment 0. */
struct message_put {
    uint8_t segment;
    uint8_t bytes; /* 1 ... MESSAGE_PUT_MOST */
    uint64_t offset;
    const unsigned char *data;
};

/* The head of `next`, which comes behind `last`; how many bytes it takes. */
static inline uint32_t message_put_head(unsigned char *at, const struct message_put *last,
                                        const struct message_put *next)
{
    const uint64_t distance = next->offset - last->offset;

    if (next->segment == last->segment && distance == (uint64_t)(int16_t)distance) {
        at[0] = (unsigned char)(next->bytes - 1);
        at[1] = (unsigned char)distance;
        at[2] = (unsigned char)(distance >> 8);
        return MESSAGE_PUT_NEAR;
    }
    message_put64(at, (uint64_t)next->segment << 56 | next->offset << 8 | 0x80 |
                          (uint64_t)(next->bytes - 1));
    return MESSAGE_PUT_FAR;
}

/* The next put, of so many bytes that are left; `put` is the one before it, and then this one. How many
 * bytes it takes; 0: no PE of this version sends such. */
static inline uint32_t message_next_put(const unsigned char *at, uint32_t left, struct message_put *put)
{
    uint32_t head = MESSAGE_PUT_NEAR;

    if (left < MESSAGE_PUT_NEAR || (at[0] & 0x80 && left < MESSAGE_PUT_FAR))
        return 0;
    put->bytes = (uint8_t)((at[0] & 0x7f) + 1);
    if (at[0] & 0x80) {
        const uint64_t place = message_get64(at) >> 8;
        put->segment = (uint8_t)(place >> MESSAGE_PUT_OFFSET_BITS);
        put->offset = place & ((1ull << MESSAGE_PUT_OFFSET_BITS) - 1);
        head = MESSAGE_PUT_FAR;
    } else {
        put->offset += (uint64_t)(int16_t)(at[1] | at[2] << 8);
    }
    if (left - head < put->bytes)
        return 0;
    put->data = at + head;
    return head + put->bytes;
}

#endif

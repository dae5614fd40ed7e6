/* What travels between queue pairs as a message: what a NIC cannot do for its owner, and the
 * answers.
 *
 * 64 bytes, little-endian, and for a put its data behind them. Messages of one PE are numbered from
 * 1; they are carried out in order, and the reply to number n says that all up to n are done. */
#ifndef GSHMEM_TRANSPORT_VERBS_MESSAGE_H
#define GSHMEM_TRANSPORT_VERBS_MESSAGE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MESSAGE_HEAD = 64,
    MESSAGE_DATA = 192, /* of a put */
};

struct message_bytes {
    unsigned char at[MESSAGE_HEAD + MESSAGE_DATA];
};

enum message_kind {
    MESSAGE_PUT = 1, /* `bytes` bytes follow, perhaps none, then the signal if there is one */
    MESSAGE_ATOMIC,
    MESSAGE_KEY,   /* asks for the key of chunk `offset` of a segment */
    MESSAGE_REPLY, /* to `number`: `a` is the old value of an atomic, or a key */
};

struct message {
    uint8_t kind, segment, amo, type, signal_op, signal_segment;
    uint16_t bytes;
    uint32_t from;
    uint32_t number;
    uint64_t offset;
    uint64_t a, b;    /* operand and compare; a signal's offset and value */
    const void *data; /* of a put that is to be sent */
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

/* False: what no PE of this version sends. */
static inline bool message_decode(const struct message_bytes *in, uint32_t bytes, struct message *m)
{
    const unsigned char *at = in->at;

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

#endif

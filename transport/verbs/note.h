/* What two PEs tell each other over the transport below, to make queue pairs and to recover them.
 *
 * Little-endian numbers of 4 bytes, the first five the same in all: magic, version, kind, path and
 * life. A path is made anew after it has broken: lives tell what was said of one queue pair from what
 * was said of its successor. */
#ifndef GSHMEM_TRANSPORT_VERBS_NOTE_H
#define GSHMEM_TRANSPORT_VERBS_NOTE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "transport/transport.h"
#include "transport/verbs/choose.h"
#include "transport/verbs/message.h"

enum note_kind {
    NOTE_OFFER = 1, /* here is my queue pair for this path */
    NOTE_READY,     /* it can receive */
    NOTE_NONE,      /* there is none for this path, or no more */
    NOTE_STOPPED,   /* it sends and takes no more; this is what it has taken */
    NOTE_REPLY,     /* a message's reply, for which no path is left */
    NOTE_BROKEN,    /* no path ever again: this link has been given up */
    NOTE_ALIVE,     /* a reply is due, and takes its time */
};

enum {
    NOTE_VERSION = 4,
    NOTE_MAGIC = 0x76485347, /* "GSHv" */
    NOTE_HEAD = 20,
    NOTE_ADDRESS = 20,
    NOTE_OFFER_HEAD = NOTE_HEAD + 8 * 4 + ADDRESSES_MOST * NOTE_ADDRESS,
    NOTE_STOPPED_BYTES = NOTE_HEAD + 16,
    NOTE_REPLY_BYTES = NOTE_HEAD + MESSAGE_HEAD,
};

struct note {
    enum note_kind kind;
    uint32_t path, life;

    /* of an offer */
    uint32_t queue, packet, mtu, reads, nics, window, segments;
    uint16_t lid;
    bool ethernet;
    bool gpu_below; /* NICs there do not get at GPU memory */
    bool reorders;  /* as in struct nic */
    struct port_address address[ADDRESSES_MOST];
    int addresses;
    uint64_t base[TRANSPORT_SEGMENT_MAX], bytes[TRANSPORT_SEGMENT_MAX];

    /* of one that has stopped: the number of the packet that it would have taken next, if it can
     * tell; the last message and the last reply of the other that have come to it, by any path */
    bool knows_packet;
    uint32_t next_packet, heard, replied;

    struct message_bytes reply;
};

static inline void note_put32(unsigned char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, 4);
}

static inline uint32_t note_get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return le32toh(value);
}

static inline size_t note_encode_offer(unsigned char *to, const struct note *n)
{
    const uint32_t number[] = {n->queue,
                               n->packet,
                               n->mtu,
                               n->reads,
                               n->ethernet | (uint32_t)n->gpu_below << 1 | (uint32_t)n->reorders << 2 |
                                   (uint32_t)n->addresses << 8,
                               n->nics,
                               n->window,
                               n->segments | (uint32_t)n->lid << 16};
    unsigned char *at = to + NOTE_OFFER_HEAD;

    for (int i = 0; i < 8; i++)
        note_put32(to + NOTE_HEAD + 4 * i, number[i]);
    memset(to + NOTE_HEAD + 32, 0, ADDRESSES_MOST * NOTE_ADDRESS);
    for (int i = 0; i < n->addresses; i++) {
        unsigned char *a = to + NOTE_HEAD + 32 + i * NOTE_ADDRESS;
        memcpy(a, n->address[i].gid.raw, 16);
        note_put32(a + 16, n->address[i].rank | (uint32_t)n->address[i].prefix << 8);
    }
    for (uint32_t i = 0; i < n->segments; i++, at += 16) {
        message_put64(at, n->base[i]);
        message_put64(at + 8, n->bytes[i]);
    }
    return (size_t)(at - to);
}

/* How many bytes it takes, at most TRANSPORT_NOTE_MAX. */
static inline size_t note_encode(unsigned char *to, const struct note *n)
{
    const uint32_t head[] = {NOTE_MAGIC, NOTE_VERSION, n->kind, n->path, n->life};

    for (int i = 0; i < 5; i++)
        note_put32(to + 4 * i, head[i]);
    switch (n->kind) {
    case NOTE_OFFER:
        return note_encode_offer(to, n);
    case NOTE_STOPPED:
        note_put32(to + NOTE_HEAD, n->knows_packet);
        note_put32(to + NOTE_HEAD + 4, n->next_packet);
        note_put32(to + NOTE_HEAD + 8, n->heard);
        note_put32(to + NOTE_HEAD + 12, n->replied);
        return NOTE_STOPPED_BYTES;
    case NOTE_REPLY:
        memcpy(to + NOTE_HEAD, n->reply.at, MESSAGE_HEAD);
        return NOTE_REPLY_BYTES;
    default:
        return NOTE_HEAD;
    }
}

static inline bool note_decode_offer(const unsigned char *in, size_t bytes, struct note *n)
{
    uint32_t number[8];

    if (bytes < NOTE_OFFER_HEAD)
        return false;
    for (int i = 0; i < 8; i++)
        number[i] = note_get32(in + NOTE_HEAD + 4 * i);
    n->queue = number[0];
    n->packet = number[1];
    n->mtu = number[2];
    n->reads = number[3];
    n->ethernet = number[4] & 1;
    n->gpu_below = number[4] >> 1 & 1;
    n->reorders = number[4] >> 2 & 1;
    n->addresses = (int)(number[4] >> 8);
    n->nics = number[5];
    n->window = number[6];
    n->segments = number[7] & 0xffff;
    n->lid = (uint16_t)(number[7] >> 16);
    if (n->queue >> 24 || n->packet >> 24 || n->mtu < IBV_MTU_256 || n->mtu > IBV_MTU_4096 ||
        n->addresses < 1 || n->addresses > ADDRESSES_MOST || n->nics == 0 || n->window == 0 || n->segments > TRANSPORT_SEGMENT_MAX ||
        bytes != NOTE_OFFER_HEAD + 16 * (size_t)n->segments)
        return false;
    for (int i = 0; i < n->addresses; i++) {
        const unsigned char *a = in + NOTE_HEAD + 32 + i * NOTE_ADDRESS;
        memcpy(n->address[i].gid.raw, a, 16);
        n->address[i].rank = (uint8_t)note_get32(a + 16);
        n->address[i].prefix = (uint8_t)(note_get32(a + 16) >> 8);
    }
    for (uint32_t i = 0; i < n->segments; i++) {
        n->base[i] = message_get64(in + NOTE_OFFER_HEAD + 16 * i);
        n->bytes[i] = message_get64(in + NOTE_OFFER_HEAD + 16 * i + 8);
    }
    return true;
}

/* False: what no PE of this version says. */
static inline bool note_decode(const unsigned char *in, size_t bytes, struct note *n)
{
    if (bytes < NOTE_HEAD || note_get32(in) != NOTE_MAGIC || note_get32(in + 4) != NOTE_VERSION)
        return false;
    *n = (struct note){.kind = (enum note_kind)note_get32(in + 8),
                       .path = note_get32(in + 12),
                       .life = note_get32(in + 16)};
    switch (n->kind) {
    case NOTE_OFFER:
        return note_decode_offer(in, bytes, n);
    case NOTE_READY:
    case NOTE_NONE:
    case NOTE_BROKEN:
    case NOTE_ALIVE:
        return bytes == NOTE_HEAD;
    case NOTE_STOPPED:
        if (bytes != NOTE_STOPPED_BYTES || note_get32(in + NOTE_HEAD) > 1)
            return false;
        n->knows_packet = note_get32(in + NOTE_HEAD);
        n->next_packet = note_get32(in + NOTE_HEAD + 4);
        n->heard = note_get32(in + NOTE_HEAD + 8);
        n->replied = note_get32(in + NOTE_HEAD + 12);
        return n->next_packet >> 24 == 0;
    case NOTE_REPLY:
        if (bytes != NOTE_REPLY_BYTES)
            return false;
        memcpy(n->reply.at, in + NOTE_HEAD, MESSAGE_HEAD);
        return true;
    default:
        return false;
    }
}

#endif

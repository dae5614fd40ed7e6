/* Control messages: what two PEs send each other over the transport below, to set up queue pairs
 * and to recover them.
 *
 * Numbers of 4 bytes, little-endian; the first five are the same in all kinds: magic, version,
 * kind, path and generation. A path gets a new queue pair after it has failed: the generation
 * tells which of its queue pairs a control message is about. */
#ifndef GSHMEM_TRANSPORT_VERBS_CONTROL_H
#define GSHMEM_TRANSPORT_VERBS_CONTROL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "transport/transport.h"
#include "transport/verbs/addresses.h"
#include "transport/verbs/message.h"

enum control_kind {
    CONTROL_OFFER = 1, /* this is the sender's queue pair for the path */
    CONTROL_READY,     /* it can receive */
    CONTROL_NONE,      /* the sender has no queue pair for the path, or no more */
    CONTROL_STOPPED,   /* it sends and receives nothing more; this is what it has received */
    CONTROL_REPLY,     /* a message's reply, while no path is active */
    CONTROL_BROKEN,    /* the link has failed, and no path will be active again */
    CONTROL_ALIVE,     /* the sender lives: what it owes takes its time */
};

enum {
    CONTROL_VERSION = 5,
    CONTROL_MAGIC = 0x76485347, /* "GSHv" */
    CONTROL_HEAD = 20,
    CONTROL_ADDRESS = 20,
    CONTROL_OFFER_HEAD = CONTROL_HEAD + 8 * 4 + ADDRESSES_MOST * CONTROL_ADDRESS,
    CONTROL_STOPPED_BYTES = CONTROL_HEAD + 16,
    CONTROL_REPLY_BYTES = CONTROL_HEAD + MESSAGE_HEAD,
};

struct control {
    enum control_kind kind;
    uint32_t path, generation;

    /* of an offer */
    uint32_t queue, packet, mtu, reads, nics, window, segments;
    uint16_t lid;
    bool ethernet;
    bool gpu_below; /* NICs there do not reach GPU memory */
    bool reorders;  /* as in struct nic */
    struct port_address address[ADDRESSES_MOST];
    int addresses;
    uint64_t base[TRANSPORT_SEGMENT_MAX], bytes[TRANSPORT_SEGMENT_MAX];

    /* of one that has stopped: the packet that it expects next, if the NIC knows; the last
     * message and the last reply that it has received, by any path */
    bool knows_packet;
    uint32_t next_packet, received, replied;

    struct message_bytes reply;
};

static inline void control_put32(unsigned char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, 4);
}

static inline uint32_t control_get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return le32toh(value);
}

static inline size_t control_encode_offer(unsigned char *to, const struct control *n)
{
    const uint32_t number[] = {n->queue,
                               n->packet,
                               n->mtu,
                               n->reads,
                               n->ethernet | (uint32_t)n->gpu_below << 1 |
                                   (uint32_t)n->reorders << 2 | (uint32_t)n->addresses << 8,
                               n->nics,
                               n->window,
                               n->segments | (uint32_t)n->lid << 16};
    unsigned char *at = to + CONTROL_OFFER_HEAD;

    for (int i = 0; i < 8; i++)
        control_put32(to + CONTROL_HEAD + 4 * i, number[i]);
    memset(to + CONTROL_HEAD + 32, 0, ADDRESSES_MOST * CONTROL_ADDRESS);
    for (int i = 0; i < n->addresses; i++) {
        unsigned char *a = to + CONTROL_HEAD + 32 + i * CONTROL_ADDRESS;
        memcpy(a, n->address[i].gid.raw, 16);
        control_put32(a + 16, n->address[i].rank | (uint32_t)n->address[i].prefix << 8);
    }
    for (uint32_t i = 0; i < n->segments; i++, at += 16) {
        message_put64(at, n->base[i]);
        message_put64(at + 8, n->bytes[i]);
    }
    return (size_t)(at - to);
}

/* Returns how many bytes it takes, at most TRANSPORT_NOTE_MAX. */
static inline size_t control_encode(unsigned char *to, const struct control *n)
{
    const uint32_t head[] = {CONTROL_MAGIC, CONTROL_VERSION, n->kind, n->path, n->generation};

    for (int i = 0; i < 5; i++)
        control_put32(to + 4 * i, head[i]);
    switch (n->kind) {
    case CONTROL_OFFER:
        return control_encode_offer(to, n);
    case CONTROL_STOPPED:
        control_put32(to + CONTROL_HEAD, n->knows_packet);
        control_put32(to + CONTROL_HEAD + 4, n->next_packet);
        control_put32(to + CONTROL_HEAD + 8, n->received);
        control_put32(to + CONTROL_HEAD + 12, n->replied);
        return CONTROL_STOPPED_BYTES;
    case CONTROL_REPLY:
        memcpy(to + CONTROL_HEAD, n->reply.at, MESSAGE_HEAD);
        return CONTROL_REPLY_BYTES;
    default:
        return CONTROL_HEAD;
    }
}

static inline bool control_decode_offer(const unsigned char *in, size_t bytes, struct control *n)
{
    uint32_t number[8];

    if (bytes < CONTROL_OFFER_HEAD)
        return false;
    for (int i = 0; i < 8; i++)
        number[i] = control_get32(in + CONTROL_HEAD + 4 * i);
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
        n->addresses < 1 || n->addresses > ADDRESSES_MOST || n->nics == 0 || n->window == 0 ||
        n->segments > TRANSPORT_SEGMENT_MAX ||
        bytes != CONTROL_OFFER_HEAD + 16 * (size_t)n->segments)
        return false;
    for (int i = 0; i < n->addresses; i++) {
        const unsigned char *a = in + CONTROL_HEAD + 32 + i * CONTROL_ADDRESS;
        memcpy(n->address[i].gid.raw, a, 16);
        n->address[i].rank = (uint8_t)control_get32(a + 16);
        n->address[i].prefix = (uint8_t)(control_get32(a + 16) >> 8);
    }
    for (uint32_t i = 0; i < n->segments; i++) {
        n->base[i] = message_get64(in + CONTROL_OFFER_HEAD + 16 * i);
        n->bytes[i] = message_get64(in + CONTROL_OFFER_HEAD + 16 * i + 8);
    }
    return true;
}

/* False: no PE of this version sends that. */
static inline bool control_decode(const unsigned char *in, size_t bytes, struct control *n)
{
    if (bytes < CONTROL_HEAD || control_get32(in) != CONTROL_MAGIC ||
        control_get32(in + 4) != CONTROL_VERSION)
        return false;
    *n = (struct control){.kind = (enum control_kind)control_get32(in + 8),
                          .path = control_get32(in + 12),
                          .generation = control_get32(in + 16)};
    switch (n->kind) {
    case CONTROL_OFFER:
        return control_decode_offer(in, bytes, n);
    case CONTROL_READY:
    case CONTROL_NONE:
    case CONTROL_BROKEN:
    case CONTROL_ALIVE:
        return bytes == CONTROL_HEAD;
    case CONTROL_STOPPED:
        if (bytes != CONTROL_STOPPED_BYTES || control_get32(in + CONTROL_HEAD) > 1)
            return false;
        n->knows_packet = control_get32(in + CONTROL_HEAD);
        n->next_packet = control_get32(in + CONTROL_HEAD + 4);
        n->received = control_get32(in + CONTROL_HEAD + 8);
        n->replied = control_get32(in + CONTROL_HEAD + 12);
        return n->next_packet >> 24 == 0;
    case CONTROL_REPLY:
        if (bytes != CONTROL_REPLY_BYTES)
            return false;
        memcpy(n->reply.at, in + CONTROL_HEAD, MESSAGE_HEAD);
        return true;
    default:
        return false;
    }
}

struct link;
struct verbs;

/* Sends one to a link's PE, which may be this PE; false: later. */
bool control_send(struct verbs *v, struct link *l, const struct control *n);
/* The same, with the status of the transport below; TRANSPORT_FULL: later. */
gshmem_status_t control_try(struct verbs *v, struct link *l, const struct control *n);

#endif

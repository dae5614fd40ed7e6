/* The channel: many threads of a device hand commands to one proxy thread.
 *
 * A ring of 32-byte slots in memory that both sides see (pinned host memory for a GPU). A producer
 * takes positions by a ticket, waits while the ring is full, and stores the slot; the consumer
 * reads slots in order. Invariant: the consumer takes a slot only when all of it has been written
 * in this lap. Three means make this cheap over PCIe, and correct without a fence by the producer:
 *
 * - Every 8-byte word of a slot carries in its top bit the phase of the lap in which it was
 *   written: 1 in the first lap, then 0, and so on. A slot is complete when all four words have the
 *   lap's phase. In whatever order the stores arrive, the consumer never takes an old or
 *   half-written slot for a command, and slots are never cleared. One bit is enough because a
 *   producer may write a slot only after the consumer has taken the previous lap's command from it.
 * - The ticket counter and a copy of the consumer's tail are in the device's memory. A producer
 *   reads the real tail, across PCIe, only when the copy says that the ring is full.
 * - The first word is stored with release where the command points at memory, and read with
 *   acquire: a consumer that has the command sees whatever the producer wrote before it (the data
 *   to be sent). It is the first word because a GPU's release waits for all stores before it: a
 *   release between the halves of a slot would wait for the first half to cross PCIe.
 *
 * Completion is counted in positions, too. A command that fills several slots has the position of
 * its first slot. */
#ifndef GSHMEM_CHANNEL_H
#define GSHMEM_CHANNEL_H

#include "gshmem/memory.h"

#define GSHMEM_SLOT_WORDS 4u
#define GSHMEM_SLOT_PHASE (UINT64_C(1) << 63)

/* What a producer needs; one copy in the device's memory, filled in by the host. */
struct gshmem_channel {
    uint64_t *ring;       /* shared: slots × 4 words, zero at first */
    const uint64_t *tail; /* shared: the number of positions that the consumer has taken; only the
                             consumer writes it */
    uint64_t *ticket;     /* with the device: the next position */
    uint64_t *tail_copy;  /* with the device: an earlier value of tail */
    uint32_t slots;       /* a power of two; on a GPU at least 64, two for each lane of a warp. On a
                             GPU a lane that has room may have to wait for a lane of its warp that
                             has none. Therefore the ring has room for all lanes of a warp */
    uint32_t slots_log2;
};

/* 63 bits of each word belong to the command. */
struct gshmem_slot {
    uint64_t word[GSHMEM_SLOT_WORDS];
};

/* The phase of the slot at this position, as bit 63 of a word. */
GSHMEM_DEVICE uint64_t gshmem_slot_phase(uint64_t position, uint32_t slots_log2)
{
    return (~(position >> slots_log2) & 1) << 63;
}

/* Whether all slots up to `end` (exclusive) may be written. Reads the real tail only if the copy
 * says that the ring is full.
 *
 * The load of the copy may be relaxed. The tail only grows and the copy is never ahead of it, so an
 * old value costs one load of the real tail. The stores to the slots are behind the branch on this
 * value, and no processor makes a store visible before the branch that it depends on is decided.
 * The thread that raised the copy had acquired the tail, and nothing of the slots is read here. */
GSHMEM_DEVICE int gshmem_channel_has_room(const struct gshmem_channel *c, uint64_t end)
{
    if (end - gshmem_device_load(c->tail_copy) <= c->slots)
        return 1;
    /* acquire: pairs with the release in gshmem_channel_give_back. The consumer's reads of the
     * slots have ended before a producer writes them again. */
    uint64_t tail = gshmem_load_acquire(c->tail);
    gshmem_raise_to(c->tail_copy, tail);
    return end - tail <= c->slots;
}

/* Takes n positions, 1 or 2, and returns the first. The caller must then write these slots unless
 * the job has ended: the consumer reads slots in order, and waits for them. */
GSHMEM_DEVICE uint64_t gshmem_channel_take(const struct gshmem_channel *c, uint32_t n)
{
    return gshmem_take_ticket(c->ticket, n);
}

/* Writes the slot at a position that has room. `publishes`: word 0 is stored with release, for a
 * command that points at memory; a command that contains its values needs none. */
GSHMEM_DEVICE void gshmem_channel_write(const struct gshmem_channel *c, uint64_t position,
                                        struct gshmem_slot slot, int publishes)
{
    uint64_t phase = gshmem_slot_phase(position, c->slots_log2);
    uint64_t *at = c->ring + (position & (c->slots - 1)) * GSHMEM_SLOT_WORDS;
    uint64_t word0 = (slot.word[0] & ~GSHMEM_SLOT_PHASE) | phase;
    uint64_t word1 = (slot.word[1] & ~GSHMEM_SLOT_PHASE) | phase;

    if (publishes)
        gshmem_store_pair_release(at, word0, word1);
    else
        gshmem_store_pair_relaxed(at, word0, word1);
    gshmem_store_pair_relaxed(at + 2, (slot.word[2] & ~GSHMEM_SLOT_PHASE) | phase,
                              (slot.word[3] & ~GSHMEM_SLOT_PHASE) | phase);
}

/* ---- The consumer's side ---- */

/* Reads the slot into *slot, without phase bits, if all of it has been written; otherwise returns
 * 0. */
static inline int gshmem_slot_read(const uint64_t *at, uint64_t phase, struct gshmem_slot *slot)
{
    /* acquire: pairs with the release in gshmem_channel_write */
    slot->word[0] = gshmem_load_acquire(at) ^ phase;
    slot->word[1] = gshmem_load_relaxed(at + 1) ^ phase;
    slot->word[2] = gshmem_load_relaxed(at + 2) ^ phase;
    slot->word[3] = gshmem_load_relaxed(at + 3) ^ phase;
    return !((slot->word[0] | slot->word[1] | slot->word[2] | slot->word[3]) & GSHMEM_SLOT_PHASE);
}

/* Reads the slot at a position. */
static inline int gshmem_channel_read(const uint64_t *ring, uint64_t position, uint32_t slots_log2,
                                      struct gshmem_slot *slot)
{
    const uint64_t number = position & ((UINT64_C(1) << slots_log2) - 1);

    return gshmem_slot_read(ring + number * GSHMEM_SLOT_WORDS,
                            gshmem_slot_phase(position, slots_log2), slot);
}

/* Lets producers write all slots before `tail` again. The consumer must have ended its reads of
 * them. */
static inline void gshmem_channel_give_back(uint64_t *tail_shared, uint64_t tail)
{
    gshmem_store_release(tail_shared, tail); /* pairs with the acquire in gshmem_channel_has_room */
}

#endif

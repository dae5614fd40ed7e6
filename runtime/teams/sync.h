/* The memory through which the members of a group synchronize: one block per member and team slot,
 * in the member's own system memory, mapped by all.
 *
 * What each PE writes is in cache lines of its own. All zero is the clean state. */
#ifndef GSHMEM_RUNTIME_TEAMS_SYNC_H
#define GSHMEM_RUNTIME_TEAMS_SYNC_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYNC_LINE = 64,
    SYNC_BLOCK = 12 * 1024,
    SYNC_STEPS = 16,
    NOTE_BYTES = 3 * 1024 - 16, /* most data that goes by slot is no larger: table.c */
    NOTE_ROOM = 4 * 1024,
    ROOTED_EVERY = 16, /* of so many rounds in a row one at least is not rooted; a power of 2 */
    ROOTED_BYTES = 120, /* the most data of a rooted round */
};

/* A slot: a member's word when it arrives at a round, and its data for the others, in the same
 * cache lines, so that a small collective costs no more than a barrier.
 *
 * There are two slots for each member, which full rounds use in turn: all rounds but rooted ones.
 * Invariant: no member overwrites a slot that another still reads. The steps, r, r + 1 and r + 2
 * being full rounds after each other, with or without rooted ones between them:
 *
 * 1. A member writes the slot of round r + 2 over that of round r only after round r + 1 has ended.
 * 2. Round r + 1 ends when all members have arrived at it.
 * 3. A member arrives at round r + 1 only after it has read what it needs from the slots of round
 *    r.
 *
 * One slot would not be enough: it could be overwritten while a slow member still reads it.
 * tests/model/meeting.pml is a model of this. */
struct note {
    _Alignas(SYNC_LINE) _Atomic uint64_t word; /* round << 32 | signature; written last */
    uint64_t value;                            /* a number that is sent along */
    _Alignas(16) char data[NOTE_ROOM];
};

/* What the root of a rooted round brings (rooted.h). There is one for each round of which
 * ROOTED_EVERY is no factor. Those rounds are full, so that all members have read what is
 * overwritten after them. tests/model/rooted.pml is a model of this. Between nodes the slots of a
 * leader receive what roots of other nodes bring to its node (tests/model/rooted_nodes.pml). */
struct root_slot {
    _Alignas(SYNC_LINE) _Atomic uint64_t word; /* round << 32 | signature; written last */
    char data[ROOTED_BYTES];
};

static_assert(offsetof(struct root_slot, word) == 0, "its offset is that of the word");

enum {
    SYNC_UNUSED = SYNC_BLOCK - 2 * (int)sizeof(struct note) -
                  (ROOTED_EVERY - 1) * (int)sizeof(struct root_slot) -
                  (2 * ROOTED_EVERY * 8 / SYNC_LINE + 2 + SYNC_STEPS) * SYNC_LINE
};

struct team_sync {
    struct note note[2];

    /* The central counters, used in the first member's block, one for each of ROOTED_EVERY rounds.
     * The low bits of arrivals count, and the bits above them sum up the signatures; generation is
     * round << 1 | whether signatures differed. */
    _Alignas(SYNC_LINE) _Atomic uint64_t arrivals[ROOTED_EVERY];
    _Alignas(SYNC_LINE) _Atomic uint32_t generation;
    _Atomic uint32_t sleepers;

    /* The rooted rounds that this member has arrived at, and its signatures: round << 32 |
     * signature. Between nodes: a leader's has those of all members of its node. */
    _Alignas(SYNC_LINE) _Atomic uint64_t rooted[ROOTED_EVERY];
    struct root_slot root[ROOTED_EVERY - 1];

    /* How many members have said that they will not access this block again. */
    _Alignas(SYNC_LINE) _Atomic uint32_t farewells;

    /* Dissemination: the word of the member 2^step before this one, by parity of the full
     * rounds. */
    struct {
        _Alignas(SYNC_LINE) _Atomic uint64_t word[2];
    } step[SYNC_STEPS];

    _Alignas(SYNC_LINE) char unused[SYNC_UNUSED];
};
static_assert(ROOTED_EVERY * 8 % SYNC_LINE == 0, "whole lines");
static_assert(sizeof(struct team_sync) == SYNC_BLOCK, "a slot's block has a fixed size");

#endif

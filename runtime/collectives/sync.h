/* The memory through which the members of a group meet: one block per member and team slot, in the
 * member's own system memory, mapped by all.
 *
 * What each PE writes lies in lines of its own; all zero is the clean state. */
#ifndef GSHMEM_RUNTIME_SYNC_H
#define GSHMEM_RUNTIME_SYNC_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYNC_LINE = 64,
    SYNC_BLOCK = 10 * 1024,
    SYNC_STEPS = 16,
    NOTE_BYTES = 3 * 1024 - 16, /* most of what goes by note is no larger: table.c */
    NOTE_ROOM = 4 * 1024,
};

/* What a member says when it arrives at a round, and what it brings: data that fits rides in the
 * same cache lines, so that a small collective costs no more than a barrier.
 *
 * There are two notes, for even and odd rounds. Two are enough: a member writes the note of round
 * r + 2 over that of round r only after round r + 1 is over, and round r + 1 is over when all
 * members have arrived at it, which they do only after they have read what they want from the notes
 * of round r. One would not do: it could be overwritten while a slow member still reads it. (The
 * same, with a model to try it on, is in tests/model/meeting.pml.) */
struct note {
    _Alignas(SYNC_LINE) _Atomic uint64_t word; /* round << 32 | signature; written last */
    uint64_t value;                            /* a number that rides along */
    _Alignas(16) char data[NOTE_ROOM];
};

enum { SYNC_UNUSED = SYNC_BLOCK - 2 * (int)sizeof(struct note) - (3 + SYNC_STEPS) * SYNC_LINE };

struct team_sync {
    struct note note[2];

    /* The hub, used in the first member's block: arrivals counts in its low bits and sums up the
     * signatures above them; announced has a bit for each member that may be served already;
     * generation is round << 1 | whether they differed. */
    _Alignas(SYNC_LINE) _Atomic uint64_t arrivals;
    _Atomic uint64_t announced;
    _Alignas(SYNC_LINE) _Atomic uint32_t generation;
    _Atomic uint32_t sleepers;

    /* How many members have said that they will not touch this block again. */
    _Alignas(SYNC_LINE) _Atomic uint32_t farewells;

    /* Dissemination: what the member 2^step before this one has heard, by parity of the round. */
    struct {
        _Alignas(SYNC_LINE) _Atomic uint64_t word[2];
    } step[SYNC_STEPS];

    _Alignas(SYNC_LINE) char unused[SYNC_UNUSED];
};
static_assert(sizeof(struct team_sync) == SYNC_BLOCK, "a slot's block has a fixed size");

#endif

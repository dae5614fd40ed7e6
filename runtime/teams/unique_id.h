/* Ids by which PEs of the job find each other and make a team without the others (create.c).
 *
 * An id names a record in the system memory of the PE that made the id. The members meet there, by
 * atomics on the record's words. The PE that made the id takes part only if it is a member. */
#ifndef GSHMEM_RUNTIME_TEAMS_UNIQUE_ID_H
#define GSHMEM_RUNTIME_TEAMS_UNIQUE_ID_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/teams/slots.h"

enum { UNIQUE_ID_RECORDS = 32 }; /* ids of one PE whose teams are not made yet */

/* What a record consists of; README.md says how members use it. All words but `head` belong to the
 * PEs that are in a call with the record's id. */
struct id_record {
    _Atomic uint64_t head; /* high half: the id's number, 0 while the record is cleared; low half:
                              how many PEs are in a call with it */
    _Atomic uint64_t terms; /* 0, or what all members must pass alike: create.c */
    _Atomic uint64_t decision; /* struct id_decision */
    _Atomic uint64_t arrived;  /* arrivals of members, in all steps */
    _Atomic uint64_t busy; /* bit 0: a member could not claim the slot, or may do so later; from bit
                              32 on: the ranges without a free slot */
    _Atomic uint64_t used[SLOT_WORDS]; /* slots of one range that some member has in use */
    _Atomic uint64_t seat[]; /* [PEs of the job], by number in the team: 1 + the member's PE */
};

enum id_decided {
    ID_UNDECIDED,
    ID_AGAIN, /* another attempt may find a slot; value: an id_search */
    ID_FULL,  /* no slot is free on all members */
    ID_SLOT,  /* value: the slot to claim */
    ID_MADE,  /* all have claimed it: the team is made */
    /* There will be no team. value: the PE whose call was the cause: */
    ID_TERMS,    /* it has passed another size or configuration than the PE before it */
    ID_SEAT,     /* its number in the team was taken */
    ID_REFUSED,  /* its other arguments were refused */
    ID_NO_MEMORY, /* it has no memory for the team */
    ID_LEFT       /* its wait has failed, since a PE of the job has died */
};

/* What the last member to arrive at a step has decided; or why there is no team. */
struct id_decision {
    uint16_t step; /* its low bits */
    uint8_t decided; /* an enum id_decided */
    uint32_t value;
};

static inline uint64_t id_decision_encode(struct id_decision d)
{
    return (uint64_t)d.step << 48 | (uint64_t)d.decided << 32 | d.value;
}

static inline struct id_decision id_decision_decode(uint64_t word)
{
    return (struct id_decision){(uint16_t)(word >> 48), (uint8_t)(word >> 32), (uint32_t)word};
}

/* The id is used up. */
static inline bool id_decision_is_last(uint64_t word)
{
    const unsigned decided = id_decision_decode(word).decided;

    return decided >= ID_MADE || decided == ID_FULL;
}

/* Where the next attempt searches: the range, those that were tried before, and whether a member
 * was busy then. */
struct id_search {
    int range;
    bool busy;
    uint32_t tried;
};
static_assert(TEAM_RANGES <= 16, "a search is a decision's value");

static inline uint32_t id_search_encode(struct id_search s)
{
    return s.tried << 16 | (uint32_t)s.busy << 8 | (uint32_t)s.range;
}

static inline struct id_search id_search_decode(uint32_t value)
{
    return (struct id_search){(int)(value & 0xff), (value >> 8 & 1) != 0, value >> 16};
}

/* What an id names. */
struct id_name {
    int pe;          /* which has the record */
    int record;      /* 0 … UNIQUE_ID_RECORDS - 1 */
    uint32_t number; /* of the ids of that record, from 1 on */
};

enum { ID_PE_BITS = 20, ID_RECORD_BITS = 5, ID_NUMBER_BITS = 24, ID_CHECK_BITS = 15 };
static_assert(UNIQUE_ID_RECORDS == 32, "a bit for each in oldest_record");
static_assert(1 << ID_RECORD_BITS == UNIQUE_ID_RECORDS, "an id has room for a record's index");
static_assert(ID_PE_BITS + ID_RECORD_BITS + ID_NUMBER_BITS + ID_CHECK_BITS == 64, "it has 64 bits");

/* The check is of the other bits and of the job, so that an id of another job is noticed. */
uint64_t id_encode(struct id_name name, uint64_t job_number);
/* false: no id of this job. */
bool id_decode(uint64_t id, uint64_t job_number, int n_pes, struct id_name *name);

/* The records of this PE. */
struct team_ids {
    size_t at;                            /* their offset in each PE's system memory */
    uint32_t number[UNIQUE_ID_RECORDS]; /* of the last id; this and what follows under job->lock */
    uint64_t made[UNIQUE_ID_RECORDS];   /* how many ids there were when that one was made */
    uint64_t ids;                         /* how many there are */
};

size_t id_record_bytes(int n_pes);
size_t unique_id_system_bytes(int n_pes);

#endif

/* How PEs that share an id meet at its record: its words, and steps at which all members arrive and
 * the last one decides. README.md has the protocol; create.c makes the team. */
#ifndef GSHMEM_RUNTIME_TEAMS_MEETING_H
#define GSHMEM_RUNTIME_TEAMS_MEETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem.h"
#include "runtime/teams/unique_id.h"

struct transport_request;

struct meeting {
    struct id_name id;
    int n_pes, my_pe;          /* of the team */
    uint64_t at;               /* of the record in the system memory */
    struct id_record *here; /* the record, if it is mapped */
    uint64_t decision;         /* the last one that this PE has seen */
    uint64_t step;             /* steps in which this PE has arrived */
    uint64_t arrived;          /* members in this step, when last looked at; for people */
    uint32_t search;           /* an id_search: where a slot is searched, the same on all members */
};

#define MEETING_WORD(field) offsetof(struct id_record, field)

/* A request to the PE that has the record, at a word of it; its kind is to be filled in. */
struct transport_request meeting_request(const struct meeting *m, size_t word);
gshmem_status_t meeting_update(const struct meeting *m, size_t word, enum gshmem_amo op,
                               uint64_t operand, uint64_t compare, uint64_t *old);
gshmem_status_t meeting_load(const struct meeting *m, size_t word, uint64_t *value);

/* While this PE is in, the record is not taken for another id. */
gshmem_status_t meeting_enter(struct meeting *m);
/* After the last access to the record. Without effect where its PE has failed. Returns the status,
 * or that of the update. */
gshmem_status_t meeting_leave(const struct meeting *m, gshmem_status_t status);

/* Whether there will be no team. */
static inline bool meeting_has_failed(enum id_decided decided)
{
    return decided >= ID_TERMS;
}
/* The failure of this PE, where that decision says that the team was made before or will not be. */
gshmem_status_t meeting_explain(uint64_t decision);
/* The others fail, too, unless their team is complete without this PE. The decision that this PE
 * has seen is still the last one while a member is missing. Returns the status. */
gshmem_status_t meeting_fail(const struct meeting *m, enum id_decided why, gshmem_status_t status);

/* Step 1 of an attempt: each member says which slots it has in use; one is chosen. */
gshmem_status_t meeting_offer(struct meeting *m, uint64_t attempt);
/* Step 2: each member has claimed the slot, or could not. */
gshmem_status_t meeting_compare_claims(struct meeting *m, bool mine);

#endif

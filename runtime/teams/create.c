/* A team that its members alone make, who share an id: gshmem_team_create.
 *
 * They meet at the id's record, in the memory of the PE that made the id (meeting.h).
 * As with teams that have a parent (slots.c), no PE holds a lock or a slot while it waits. */
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/teams/group.h"
#include "runtime/teams/meeting.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/slots.h"
#include "runtime/teams/team.h"
#include "runtime/teams/unique_id.h"

static const char call[] = "gshmem_team_create";

/* ---- Terms and seats ---- */

/* Not 0. All members pass the same. */
static uint64_t terms_of(int n_pes, const gshmem_team_config_t *config, long mask)
{
    const uint64_t contexts = mask ? (uint64_t)config->num_contexts + 1 : 0;

    return (uint64_t)n_pes << 40 | signature_mix(contexts, 1) >> 24;
}

static int size_in(uint64_t terms)
{
    return (int)(terms >> 40);
}

static gshmem_status_t meeting_compare_terms(const struct meeting *m, uint64_t mine)
{
    uint64_t theirs = 0;
    gshmem_status_t status =
        meeting_update(m, MEETING_WORD(terms), GSHMEM_AMO_COMPARE_SWAP, mine, 0, &theirs);

    if (status || theirs == 0 || theirs == mine)
        return status;
    if (size_in(theirs) != size_in(mine))
        fail(GSHMEM_ERR_MISMATCH,
             "%s: a team of %d PEs, and another PE has passed %d with the same id: no PE gets the "
             "team",
             call, size_in(mine), size_in(theirs));
    else
        fail(GSHMEM_ERR_MISMATCH,
             "%s: another PE has passed another configuration with the same id: no PE gets the "
             "team",
             call);
    return meeting_fail(m, ID_TERMS, GSHMEM_ERR_MISMATCH);
}

static gshmem_status_t meeting_take_seat(const struct meeting *m)
{
    const size_t seat = MEETING_WORD(seat) + (size_t)m->my_pe * sizeof(uint64_t);
    uint64_t before = 0;
    gshmem_status_t status =
        meeting_update(m, seat, GSHMEM_AMO_COMPARE_SWAP, (uint64_t)job->pe + 1, 0, &before);

    if (status || before == 0)
        return status;
    fail(GSHMEM_ERR_MISMATCH,
         "%s: PE %d of the job has the number %d in the team with this id already", call,
         (int)before - 1, m->my_pe);
    return meeting_fail(m, ID_SEAT, GSHMEM_ERR_MISMATCH);
}

/* ---- The team ---- */

/* A PE that has two seats is found by all members in the same table, and none goes on. */
static gshmem_status_t check_seats(const uint64_t *seat, int n)
{
    unsigned char *seen = calloc((size_t)job->n_pes, 1);
    gshmem_status_t status = GSHMEM_OK;

    if (!seen)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a team of %d PEs", call, n);
    for (int i = 0; i < n && !status; i++) {
        if (seat[i] - 1 >= (uint64_t)job->n_pes || seen[seat[i] - 1]++)
            status = fail(GSHMEM_ERR_MISMATCH,
                          "%s: PE %d has called it twice with the same id, as the numbers %d and "
                          "an earlier one of the team: no PE gets the team",
                          call, (int)seat[i] - 1, i);
    }
    free(seen);
    return status;
}

/* Each member's PE of the job, by number in the team. */
static gshmem_status_t get_seats(const struct meeting *m, uint64_t *seat)
{
    const size_t bytes = (size_t)m->n_pes * sizeof *seat;
    struct transport_request get = meeting_request(m, MEETING_WORD(seat));

    if (m->here) {
        memcpy(seat, (const char *)m->here + MEETING_WORD(seat), bytes);
        return GSHMEM_OK;
    }
    get.bytes = bytes;
    return network_fetch(job->network, &get, seat, call);
}

/* Once all members have arrived. */
static gshmem_status_t create_of_seats(const struct meeting *m, struct team **made)
{
    uint64_t *seat = malloc((size_t)m->n_pes * sizeof *seat);
    int *members = malloc((size_t)m->n_pes * sizeof *members);
    gshmem_status_t status = GSHMEM_OK;

    if (!seat || !members)
        status = fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a team of %d PEs", call, m->n_pes);
    if (!status && !(status = get_seats(m, seat)))
        status = check_seats(seat, m->n_pes);
    for (int i = 0; i < m->n_pes && !status; i++)
        members[i] = (int)seat[i] - 1;
    free(seat);
    if (status) {
        free(members);
        return status;
    }
    *made = team_create(job, members, m->n_pes, call); /* it owns members */
    return *made ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

/* Attempts until all members have claimed the same slot. After a failure in the last step the team
 * may be installed, since others may use it already. */
static gshmem_status_t meeting_agree(struct meeting *m, struct team **t)
{
    for (uint64_t attempt = 0;; attempt++) {
        gshmem_status_t status = meeting_offer(m, attempt);
        struct id_decision d = id_decision_decode(m->decision);

        if (status)
            return status;
        if (d.decided == ID_FULL)
            return slots_none(call);
        if (d.decided != ID_SLOT)
            continue;
        if (!*t && (status = create_of_seats(m, t)))
            return status;
        const bool mine = slots_claim(*t, (gshmem_team_t)d.value);
        if (mine)
            (*t)->group->made = (uint32_t)signature_mix(
                signature_mix((uint64_t)m->id.pe, (uint64_t)m->id.record), m->id.number);
        status = meeting_compare_claims(m, mine);
        d = id_decision_decode(m->decision);
        if (mine) /* it stays, too, where this PE alone does not know what was decided */
            slots_settle(*t, d.decided == ID_MADE || (status && !meeting_has_failed(d.decided)));
        if (status || d.decided == ID_MADE)
            return status;
    }
}

static gshmem_status_t create_check(const struct meeting *m, const gshmem_team_config_t *config,
                                    long config_mask, const gshmem_team_t *new_team)
{
    if (!new_team)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: new_team is NULL", call);
    if (m->n_pes < 1 || m->n_pes > job->n_pes || m->my_pe < 0 || m->my_pe >= m->n_pes)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: PE %d of a team of %d: a team has 1 to %d PEs here, with numbers from 0 "
                    "on",
                    call, m->my_pe, m->n_pes, job->n_pes);
    if (config_mask & ~GSHMEM_TEAM_NUM_CONTEXTS)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: config_mask 0x%lx has bits beyond GSHMEM_TEAM_NUM_CONTEXTS", call,
                    (unsigned long)config_mask);
    if (config_mask && (!config || config->num_contexts < 0))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %s", call,
                    config ? "config->num_contexts is negative"
                           : "config_mask is not 0, but config is NULL");
    return GSHMEM_OK;
}

/* Of a PE that has entered. The meeting may be over: its last decision stays. */
static gshmem_status_t meeting_join(struct meeting *m, uint64_t terms)
{
    uint64_t decision = 0;
    gshmem_status_t status = meeting_load(m, MEETING_WORD(decision), &decision);

    if (status)
        return status;
    if (id_decision_is_last(decision))
        return meeting_explain(decision);
    if ((status = meeting_compare_terms(m, terms)))
        return status;
    return meeting_take_seat(m);
}

gshmem_status_t gshmem_team_create(gshmem_team_uniqueid_t id, int n_pes, int my_pe,
                                   const gshmem_team_config_t *config, long config_mask,
                                   gshmem_team_t *new_team)
{
    struct meeting m = {.n_pes = n_pes, .my_pe = my_pe};
    gshmem_status_t status = job_require(call);
    struct team *t = NULL;

    if (new_team)
        *new_team = GSHMEM_TEAM_INVALID;
    if (status)
        return status;
    if (!id_decode(id, job->number, job->n_pes, &m.id))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: 0x%llx is no id that gshmem_team_get_uniqueid has made in this job", call,
                    (unsigned long long)id);
    m.at = job->team_ids->at + (uint64_t)m.id.record * id_record_bytes(job->n_pes);
    const uintptr_t system = map_mapped(job->map, SEGMENT_SYSTEM, m.id.pe);
    m.here = system ? (struct id_record *)(system + m.at) : NULL;

    if ((status = meeting_enter(&m)))
        return status;
    if ((status = create_check(&m, config, config_mask, new_team)))
        status = meeting_fail(&m, ID_REFUSED, status);
    else if (!(status = meeting_join(&m, terms_of(n_pes, config, config_mask))))
        status = meeting_agree(&m, &t);
    /* This PE's own failure, here or in an access to the record: the others do not wait for it. */
    if (status == GSHMEM_ERR_MEMORY && !id_decision_is_last(m.decision))
        status = meeting_fail(&m, ID_NO_MEMORY, status);
    status = meeting_leave(&m, status);
    if (status) {
        if (t && t->id == GSHMEM_TEAM_INVALID)
            team_free(job, t); /* otherwise it is freed with the job */
        return status;
    }
    if (config_mask)
        t->config = *config;
    multicast_begin(job, t);
    *new_team = t->id;
    return GSHMEM_OK;
}

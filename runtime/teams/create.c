/* A team that its members alone make, who share an id: gshmem_team_create.
 *
 * They meet at the id's record, in the memory of the PE that made the id (unique_id.h). README.md
 * has the protocol. As with teams that have a parent (slots.c), no PE holds a lock or a slot while
 * it waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/group.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/slots.h"
#include "runtime/teams/team.h"
#include "runtime/teams/unique_id.h"
#include "runtime/where/record.h"

static const char call[] = "gshmem_team_create";

/* How long a member waits between two looks at a record on another node: half of what it has waited
 * so far, within these bounds. */
enum { LOOK_LEAST_NS = 20 * 1000, LOOK_MOST_NS = 20 * 1000 * 1000 };

struct meeting {
    struct id_name id;
    int n_pes, my_pe;          /* of the team */
    uint64_t at;               /* of the record in the system memory */
    struct id_record *here; /* the record, if it is mapped */
    uint64_t decision;         /* the last one that this PE has seen */
    uint64_t step;             /* steps in which this PE has arrived */
    uint64_t arrived;          /* members in this step, when last looked at; for people */
};

#define WORD(field) offsetof(struct id_record, field)

/* ---- Words of the record ---- */

static struct transport_request request_to(const struct meeting *m, size_t word)
{
    return (struct transport_request){.pe = m->id.pe,
                                      .segment = SEGMENT_SYSTEM,
                                      .offset = m->at + word};
}

/* CPUs of the record's node make all updates: those of other nodes ask its PE's proxy. */
static gshmem_status_t meeting_update(const struct meeting *m, size_t word, enum gshmem_amo op,
                                      uint64_t operand, uint64_t compare, uint64_t *old)
{
    if (m->here) {
        *old = atomic_apply(op, GSHMEM_TYPE_UINT64, (char *)m->here + word, operand, compare);
        return GSHMEM_OK;
    }
    struct transport_request request = request_to(m, word);
    request.kind = TRANSPORT_ATOMIC;
    request.amo = op;
    request.type = GSHMEM_TYPE_UINT64;
    request.operand = operand;
    request.compare = compare;
    return network_errand(job->network, &request, call, old);
}

static gshmem_status_t meeting_load(const struct meeting *m, size_t word, uint64_t *value)
{
    if (!m->here)
        return meeting_update(m, word, GSHMEM_AMO_FETCH, 0, 0, value);
    /* acquire: pairs with the release of the update that stored it */
    *value = atomic_load_explicit((_Atomic uint64_t *)((char *)m->here + word),
                                  memory_order_acquire);
    return GSHMEM_OK;
}

/* ---- To begin and to end ---- */

/* While this PE is in, the record is not taken for another id. */
static gshmem_status_t meeting_enter(struct meeting *m)
{
    uint64_t head = 0, unused;
    gshmem_status_t status = meeting_update(m, WORD(head), GSHMEM_AMO_ADD, 1, 0, &head);

    if (status || head >> 32 == m->id.number)
        return status;
    if ((status = meeting_update(m, WORD(head), GSHMEM_AMO_ADD, (uint64_t)-1, 0, &unused)))
        return status;
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s: the id is of no team that is being made: PE %d made it, and has made others "
                "since. An id is good for one team, and a PE keeps %d that are not used",
                call, m->id.pe, UNIQUE_ID_RECORDS);
}

/* After the last access to the record. Without effect where its PE has failed, which the caller has
 * learnt from another access. */
static gshmem_status_t meeting_leave(const struct meeting *m, gshmem_status_t status)
{
    uint64_t unused;

    if (status == GSHMEM_ERR_PEER_DEAD || status == GSHMEM_ERR_ABORTED)
        return status;
    const gshmem_status_t left =
        meeting_update(m, WORD(head), GSHMEM_AMO_ADD, (uint64_t)-1, 0, &unused);
    return status ? status : left;
}

/* ---- Failures ---- */

static bool is_failure(enum id_decided decided)
{
    return decided >= ID_TERMS;
}

/* Another PE's call has failed, which that PE has logged, too. */
static gshmem_status_t meeting_explain(uint64_t decision)
{
    const struct id_decision d = id_decision_decode(decision);

    switch ((enum id_decided)d.decided) {
    case ID_TERMS:
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: PE %u has passed another size of the team, or another configuration, with "
                    "the same id: no PE gets the team",
                    call, d.value);
    case ID_SEAT:
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: PE %u and another PE have passed the same number in the team with the "
                    "same id: no PE gets the team",
                    call, d.value);
    case ID_REFUSED:
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s: PE %u has passed bad arguments with the same id: no PE gets the team",
                    call, d.value);
    case ID_NO_MEMORY:
        return fail(GSHMEM_ERR_MEMORY, "%s: PE %u has no memory for the team: no PE gets it", call,
                    d.value);
    default:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: a team was made with this id before: an id is good for one team", call);
    }
}

/* The others fail, too, unless their team is complete without this PE. The decision that this PE
 * has seen is still the last one while a member is missing. Returns the status. */
static gshmem_status_t meeting_fail(const struct meeting *m, enum id_decided why,
                                    gshmem_status_t status)
{
    const struct id_decision failure = {(uint16_t)m->step, (uint8_t)why, (uint32_t)job->pe};
    uint64_t unused;
    const gshmem_status_t said = meeting_update(m, WORD(decision), GSHMEM_AMO_COMPARE_SWAP,
                                                id_decision_encode(failure), m->decision, &unused);
    (void)said; /* a line of its own has said why; the call's own failure is returned */
    return status;
}

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
        meeting_update(m, WORD(terms), GSHMEM_AMO_COMPARE_SWAP, mine, 0, &theirs);

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
    const size_t seat = WORD(seat) + (size_t)m->my_pe * sizeof(uint64_t);
    uint64_t before = 0;
    gshmem_status_t status = meeting_update(m, seat, GSHMEM_AMO_COMPARE_SWAP,
                                            (uint64_t)job->pe + 1, 0, &before);

    if (status || before == 0)
        return status;
    fail(GSHMEM_ERR_MISMATCH,
         "%s: PE %d of the job has the number %d in the team with this id already", call,
         (int)before - 1, m->my_pe);
    return meeting_fail(m, ID_SEAT, GSHMEM_ERR_MISMATCH);
}

/* ---- Steps ---- */

/* What gshmem-where and the watchdog show. */
static void meeting_show(const struct wait *w, struct where_wait *record)
{
    const struct meeting *m = w->object;

    record->kind = WHERE_UNKNOWN;
    snprintf(record->text, sizeof record->text,
             "a team of %d PEs, by an id of PE %d: %d have come", m->n_pes, m->id.pe,
             (int)m->arrived);
}

static gshmem_status_t meeting_look(struct meeting *m, uint64_t *decision)
{
    gshmem_status_t status = meeting_load(m, WORD(decision), decision);

    if (!status && *decision == m->decision &&
        !(status = meeting_load(m, WORD(arrived), &m->arrived)))
        m->arrived -= (m->step - 1) * (uint64_t)m->n_pes;
    return status;
}

/* After the last one to arrive has decided, or a PE has failed. */
static gshmem_status_t meeting_take_decision(struct meeting *m, uint64_t decision)
{
    m->decision = decision;
    return is_failure(id_decision_decode(decision).decided) ? meeting_explain(decision)
                                                            : GSHMEM_OK;
}

static uint64_t until_next_look(uint64_t waited)
{
    return waited / 2 < LOOK_LEAST_NS  ? LOOK_LEAST_NS
           : waited / 2 > LOOK_MOST_NS ? LOOK_MOST_NS
                                       : waited / 2;
}

static gshmem_status_t meeting_await(struct meeting *m)
{
    const uint64_t begun = clock_ns();
    gshmem_status_t status, waited = GSHMEM_OK;
    uint64_t decision = 0, due = 0;
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    wait_for_object(&w, meeting_show, m);
    w.only = WAIT_FOR_UPDATE;
    for (;;) {
        const uint64_t now = m->here ? 0 : clock_ns();
        if (now >= due || waited) {
            /* a look after a failure of the wait: the decision may have come with it */
            if ((status = meeting_look(m, &decision)) || decision != m->decision || waited)
                break;
            due = m->here ? 0 : clock_ns() + until_next_look(now - begun);
        }
        waited = wait_step(&w);
    }
    wait_end(&w);
    if (status)
        return status;
    return decision != m->decision
               ? meeting_take_decision(m, decision)
               : departures_fail_alone(call, waited, "which PEs have come for the team");
}

/* The last member to arrive decides. A PE that is no member, or has failed as one, may have ended
 * the meeting before. */
static gshmem_status_t meeting_decide(struct meeting *m, enum id_decided decided, uint32_t value)
{
    const struct id_decision d = {(uint16_t)m->step, (uint8_t)decided, value};
    uint64_t before = 0;
    gshmem_status_t status = meeting_update(m, WORD(decision), GSHMEM_AMO_COMPARE_SWAP,
                                            id_decision_encode(d), m->decision, &before);

    if (status)
        return status;
    return meeting_take_decision(m, before == m->decision ? id_decision_encode(d) : before);
}

static gshmem_status_t meeting_arrive(struct meeting *m, bool *last)
{
    uint64_t before = 0;
    gshmem_status_t status = meeting_update(m, WORD(arrived), GSHMEM_AMO_ADD, 1, 0, &before);

    m->step++;
    *last = before + 1 == m->step * (uint64_t)m->n_pes;
    return status;
}

/* Reads a word that members have written in this step, and clears it for the next one. */
static gshmem_status_t meeting_collect(const struct meeting *m, size_t word, uint64_t *value)
{
    return meeting_update(m, word, GSHMEM_AMO_SWAP, 0, 0, value);
}

static gshmem_status_t meeting_say_busy(const struct meeting *m)
{
    uint64_t unused;

    return meeting_update(m, WORD(busy), GSHMEM_AMO_OR, 1, 0, &unused);
}

static gshmem_status_t meeting_choose(struct meeting *m, uint64_t attempt)
{
    uint64_t free[SLOT_WORDS], busy = 0;
    gshmem_status_t status = meeting_collect(m, WORD(busy), &busy);

    for (int w = 0; w < SLOT_WORDS && !status; w++) {
        status = meeting_collect(m, WORD(used[0]) + (size_t)w * sizeof(uint64_t), &free[w]);
        free[w] = ~free[w];
    }
    if (status)
        return status;
    const uint64_t who = (uint64_t)m->id.pe << 32 | (uint64_t)m->id.record;
    const gshmem_team_t slot = slots_choose(free, who, attempt);
    return slot != GSHMEM_TEAM_INVALID ? meeting_decide(m, ID_SLOT, (uint32_t)slot)
                                       : meeting_decide(m, busy ? ID_AGAIN : ID_FULL, 0);
}

/* Step 1 of an attempt: each member says which slots it has in use; one is chosen. */
static gshmem_status_t meeting_offer(struct meeting *m, uint64_t attempt)
{
    const struct slots_offer mine = slots_offer();
    gshmem_status_t status = mine.busy ? meeting_say_busy(m) : GSHMEM_OK;
    bool last = false;
    uint64_t unused;

    for (int w = 0; w < SLOT_WORDS && !status; w++) {
        if (~mine.free[w])
            status = meeting_update(m, WORD(used[0]) + (size_t)w * sizeof(uint64_t), GSHMEM_AMO_OR,
                                    ~mine.free[w], 0, &unused);
    }
    if (status || (status = meeting_arrive(m, &last)))
        return status;
    return last ? meeting_choose(m, attempt) : meeting_await(m);
}

/* Step 2: each member has claimed the slot, or could not. */
static gshmem_status_t meeting_compare_claims(struct meeting *m, bool mine)
{
    gshmem_status_t status = mine ? GSHMEM_OK : meeting_say_busy(m);
    uint64_t busy = 0;
    bool last = false;

    if (status || (status = meeting_arrive(m, &last)))
        return status;
    if (!last)
        return meeting_await(m);
    if ((status = meeting_collect(m, WORD(busy), &busy)))
        return status;
    return meeting_decide(m, busy ? ID_AGAIN : ID_MADE, 0);
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
    struct transport_request get = request_to(m, WORD(seat));

    if (m->here) {
        memcpy(seat, (const char *)m->here + WORD(seat), bytes);
        return GSHMEM_OK;
    }
    get.kind = TRANSPORT_GET;
    get.local = seat;
    get.bytes = bytes;
    return network_errand(job->network, &get, call, NULL);
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
            return fail(GSHMEM_ERR_MEMORY,
                        "%s: no team slot is free on all members: a PE can be in %d teams at a "
                        "time, %d of them its own; destroy those no longer needed",
                        call, TEAM_MAX, TEAM_MAX - TEAM_FIRST_OWN);
        if (d.decided != ID_SLOT)
            continue;
        if (!*t && (status = create_of_seats(m, t)))
            return status == GSHMEM_ERR_MEMORY ? meeting_fail(m, ID_NO_MEMORY, status) : status;
        const bool mine = slots_claim(*t, (gshmem_team_t)d.value);
        if (mine)
            (*t)->group->made = (uint32_t)signature_mix(m->at, m->id.number);
        status = meeting_compare_claims(m, mine);
        d = id_decision_decode(m->decision);
        if (mine) /* it stays, too, where this PE alone does not know what was decided */
            slots_settle(*t, d.decided == ID_MADE || (status && !is_failure(d.decided)));
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
    gshmem_status_t status = meeting_load(m, WORD(decision), &decision);

    if (status)
        return status;
    if (id_decision_decode(decision).decided >= ID_MADE ||
        id_decision_decode(decision).decided == ID_FULL)
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

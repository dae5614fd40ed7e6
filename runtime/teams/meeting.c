/* How PEs that share an id meet: meeting.h. */
#include "runtime/teams/meeting.h"

#include <stdio.h>

#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/slots.h"
#include "runtime/where/record.h"

static const char call[] = "gshmem_team_create";

/* How long a member waits between two looks at a record on another node: half of what it has waited
 * so far, within these bounds. */
enum { LOOK_LEAST_NS = 20 * 1000, LOOK_MOST_NS = 20 * 1000 * 1000 };

/* ---- Words of the record ---- */

struct transport_request meeting_request(const struct meeting *m, size_t word)
{
    return (struct transport_request){
        .pe = m->id.pe, .segment = SEGMENT_SYSTEM, .offset = m->at + word};
}

/* CPUs of the record's node make all updates: those of other nodes ask its PE's proxy. */
gshmem_status_t meeting_update(const struct meeting *m, size_t word, enum gshmem_amo op,
                               uint64_t operand, uint64_t compare, uint64_t *old)
{
    if (m->here) {
        *old = atomic_apply(op, GSHMEM_TYPE_UINT64, (char *)m->here + word, operand, compare);
        return GSHMEM_OK;
    }
    struct transport_request request = meeting_request(m, word);
    request.kind = TRANSPORT_ATOMIC;
    request.amo = op;
    request.type = GSHMEM_TYPE_UINT64;
    request.operand = operand;
    request.compare = compare;
    return network_errand(job->network, &request, call, old);
}

gshmem_status_t meeting_load(const struct meeting *m, size_t word, uint64_t *value)
{
    if (!m->here)
        return meeting_update(m, word, GSHMEM_AMO_FETCH, 0, 0, value);
    /* acquire: pairs with the release of the update that stored it */
    *value =
        atomic_load_explicit((_Atomic uint64_t *)((char *)m->here + word), memory_order_acquire);
    return GSHMEM_OK;
}

/* ---- To begin and to end ---- */

gshmem_status_t meeting_enter(struct meeting *m)
{
    uint64_t head = 0, unused;
    gshmem_status_t status = meeting_update(m, MEETING_WORD(head), GSHMEM_AMO_ADD, 1, 0, &head);

    if (status || head >> 32 == m->id.number)
        return status;
    if ((status = meeting_update(m, MEETING_WORD(head), GSHMEM_AMO_ADD, (uint64_t)-1, 0, &unused)))
        return status;
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s: the id is of no team that is being made: PE %d made it, and has made others "
                "since. An id is good for one team, and a PE keeps %d that are not used",
                call, m->id.pe, UNIQUE_ID_RECORDS);
}

gshmem_status_t meeting_leave(const struct meeting *m, gshmem_status_t status)
{
    uint64_t unused;

    if (!m->here && (status == GSHMEM_ERR_ABORTED || network_lost(job->network, m->id.pe)))
        return status;
    const gshmem_status_t left =
        meeting_update(m, MEETING_WORD(head), GSHMEM_AMO_ADD, (uint64_t)-1, 0, &unused);
    return status ? status : left;
}

/* ---- Failures ---- */

/* Another PE's call has failed, which that PE has logged, too. */
gshmem_status_t meeting_explain(uint64_t decision)
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
    case ID_LEFT:
        return fail(GSHMEM_ERR_PEER_DEAD,
                    "%s: PE %u no longer waits for the team, since a PE of the job has died: no PE "
                    "gets it",
                    call, d.value);
    case ID_FULL:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: an earlier call with this id has found no free team slot, and an id is "
                    "good for one attempt: make another",
                    call);
    default:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: a team was made with this id before: an id is good for one team", call);
    }
}

gshmem_status_t meeting_fail(const struct meeting *m, enum id_decided why, gshmem_status_t status)
{
    const struct id_decision failure = {(uint16_t)m->step, (uint8_t)why, (uint32_t)job->pe};
    uint64_t unused;
    const gshmem_status_t said = meeting_update(m, MEETING_WORD(decision), GSHMEM_AMO_COMPARE_SWAP,
                                                id_decision_encode(failure), m->decision, &unused);
    (void)said; /* a line of its own has said why; the call's own failure is returned */
    return status;
}

/* ---- Steps ---- */

/* What gshmem-where and the watchdog show. */
static void meeting_show(const struct wait *w, struct where_wait *record)
{
    const struct meeting *m = w->object;

    record->kind = WHERE_UNKNOWN;
    snprintf(record->text, sizeof record->text, "a team of %d PEs, by an id of PE %d: %d have come",
             m->n_pes, m->id.pe, (int)m->arrived);
}

static gshmem_status_t meeting_look(struct meeting *m, uint64_t *decision)
{
    gshmem_status_t status = meeting_load(m, MEETING_WORD(decision), decision);

    if (!status && *decision == m->decision &&
        !(status = meeting_load(m, MEETING_WORD(arrived), &m->arrived)))
        m->arrived -= (m->step - 1) * (uint64_t)m->n_pes;
    return status;
}

/* After the last one to arrive has decided, or a PE has failed. */
static gshmem_status_t meeting_take_decision(struct meeting *m, uint64_t decision)
{
    const struct id_decision d = id_decision_decode(decision);

    m->decision = decision;
    if (d.decided == ID_AGAIN)
        m->search = d.value;
    return meeting_has_failed(d.decided) ? meeting_explain(decision) : GSHMEM_OK;
}

static uint64_t until_next_look(uint64_t waited)
{
    return waited / 2 < LOOK_LEAST_NS  ? LOOK_LEAST_NS
           : waited / 2 > LOOK_MOST_NS ? LOOK_MOST_NS
                                       : waited / 2;
}

/* This PE's wait has failed, and no member may get the team unless it was made before. Where the
 * record cannot be reached, its PE has died, and nobody gets it. */
static gshmem_status_t meeting_give_up(struct meeting *m, gshmem_status_t waited)
{
    const struct id_decision left = {(uint16_t)m->step, ID_LEFT, (uint32_t)job->pe};
    uint64_t before = m->decision;
    const gshmem_status_t status =
        meeting_update(m, MEETING_WORD(decision), GSHMEM_AMO_COMPARE_SWAP, id_decision_encode(left),
                       m->decision, &before);

    if (!status && before != m->decision)
        return meeting_take_decision(m, before);
    if (!status)
        m->decision = id_decision_encode(left);
    return departures_fail_alone(call, waited, "which PEs have come for the team");
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
    return decision != m->decision ? meeting_take_decision(m, decision)
                                   : meeting_give_up(m, waited);
}

/* The last member to arrive decides. A PE that is no member, or has failed as one, may have ended
 * the meeting before. */
static gshmem_status_t meeting_decide(struct meeting *m, enum id_decided decided, uint32_t value)
{
    const struct id_decision d = {(uint16_t)m->step, (uint8_t)decided, value};
    uint64_t before = 0;
    gshmem_status_t status = meeting_update(m, MEETING_WORD(decision), GSHMEM_AMO_COMPARE_SWAP,
                                            id_decision_encode(d), m->decision, &before);

    if (status)
        return status;
    return meeting_take_decision(m, before == m->decision ? id_decision_encode(d) : before);
}

static gshmem_status_t meeting_arrive(struct meeting *m, bool *last)
{
    uint64_t before = 0;
    gshmem_status_t status =
        meeting_update(m, MEETING_WORD(arrived), GSHMEM_AMO_ADD, 1, 0, &before);

    m->step++;
    *last = before + 1 == m->step * (uint64_t)m->n_pes;
    return status;
}

/* Reads a word that members have written in this step, and clears it for the next one. */
static gshmem_status_t meeting_collect(const struct meeting *m, size_t word, uint64_t *value)
{
    return meeting_update(m, word, GSHMEM_AMO_SWAP, 0, 0, value);
}

static gshmem_status_t meeting_say(const struct meeting *m, bool busy, uint32_t full)
{
    const uint64_t says = (uint64_t)full << 32 | busy;
    uint64_t unused;

    return says ? meeting_update(m, MEETING_WORD(busy), GSHMEM_AMO_OR, says, 0, &unused)
                : GSHMEM_OK;
}

/* Nothing in this range: the next one, or all again if some slots may have become free. */
static gshmem_status_t meeting_go_on(struct meeting *m, uint32_t full, bool busy)
{
    struct id_search s = id_search_decode(m->search);

    s.busy |= busy;
    s.tried |= UINT32_C(1) << s.range;
    s.range = slots_next_range(full, s.tried);
    if (s.range < 0 && !s.busy)
        return meeting_decide(m, ID_FULL, 0);
    return meeting_decide(m, ID_AGAIN, s.range < 0 ? 0 : id_search_encode(s));
}

static gshmem_status_t meeting_choose(struct meeting *m, uint64_t attempt)
{
    uint64_t free[SLOT_WORDS], said = 0;
    gshmem_status_t status = meeting_collect(m, MEETING_WORD(busy), &said);

    for (int w = 0; w < SLOT_WORDS && !status; w++) {
        status = meeting_collect(m, MEETING_WORD(used[0]) + (size_t)w * sizeof(uint64_t), &free[w]);
        free[w] = ~free[w];
    }
    if (status)
        return status;
    const uint64_t who = (uint64_t)m->id.pe << 32 | (uint64_t)m->id.record;
    const int range = id_search_decode(m->search).range;

    slots_leave_kept(free, range);
    const gshmem_team_t slot = slots_choose(free, range, who, attempt);
    return slot != GSHMEM_TEAM_INVALID ? meeting_decide(m, ID_SLOT, (uint32_t)slot)
                                       : meeting_go_on(m, (uint32_t)(said >> 32), said & 1);
}

gshmem_status_t meeting_offer(struct meeting *m, uint64_t attempt)
{
    const struct slots_offer mine = slots_offer(id_search_decode(m->search).range);
    gshmem_status_t status = meeting_say(m, mine.busy, mine.full);
    bool last = false;
    uint64_t unused;

    for (int w = 0; w < SLOT_WORDS && !status; w++) {
        if (~mine.free[w])
            status = meeting_update(m, MEETING_WORD(used[0]) + (size_t)w * sizeof(uint64_t),
                                    GSHMEM_AMO_OR, ~mine.free[w], 0, &unused);
    }
    if (status || (status = meeting_arrive(m, &last)))
        return status;
    return last ? meeting_choose(m, attempt) : meeting_await(m);
}

gshmem_status_t meeting_compare_claims(struct meeting *m, bool mine)
{
    gshmem_status_t status = meeting_say(m, !mine, 0);
    uint64_t busy = 0;
    bool last = false;

    if (status || (status = meeting_arrive(m, &last)))
        return status;
    if (!last)
        return meeting_await(m);
    if ((status = meeting_collect(m, MEETING_WORD(busy), &busy)))
        return status;
    return busy ? meeting_decide(m, ID_AGAIN, m->search) : meeting_decide(m, ID_MADE, 0);
}

/* Makes ids of teams, each with a record that is clean. */
#include "runtime/teams/unique_id.h"

#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/teams/group.h"

/* ---- Ids ---- */

/* The bits of the name, folded, so that one wrong bit is always noticed. */
static uint64_t id_check(uint64_t name, uint64_t job_number)
{
    uint64_t check = signature_mix(job_number, 0x7465616d) >> (64 - ID_CHECK_BITS);

    for (; name; name >>= ID_CHECK_BITS)
        check ^= name & ((1u << ID_CHECK_BITS) - 1);
    return check;
}

uint64_t id_encode(struct id_name name, uint64_t job_number)
{
    uint64_t id = (uint64_t)name.pe << (ID_RECORD_BITS + ID_NUMBER_BITS) |
                  (uint64_t)name.record << ID_NUMBER_BITS | name.number;

    return id << ID_CHECK_BITS | id_check(id, job_number);
}

bool id_decode(uint64_t id, uint64_t job_number, int n_pes, struct id_name *name)
{
    const uint64_t check = id & ((1u << ID_CHECK_BITS) - 1);

    id >>= ID_CHECK_BITS;
    *name = (struct id_name){.pe = (int)(id >> (ID_RECORD_BITS + ID_NUMBER_BITS)),
                             .record = (int)(id >> ID_NUMBER_BITS) & (UNIQUE_ID_RECORDS - 1),
                             .number = (uint32_t)id & ((1u << ID_NUMBER_BITS) - 1)};
    return check == id_check(id, job_number) && name->pe < n_pes && name->number != 0;
}

/* ---- Records ---- */

size_t id_record_bytes(int n_pes)
{
    return (offsetof(struct id_record, seat) + (size_t)n_pes * sizeof(uint64_t) + 63) / 64 * 64;
}

size_t unique_id_system_bytes(int n_pes)
{
    return UNIQUE_ID_RECORDS * id_record_bytes(n_pes);
}

static struct id_record *record_at(const struct job *j, int i)
{
    const uintptr_t system = map_mapped(j->map, SEGMENT_SYSTEM, j->pe);

    return (struct id_record *)(system + j->team_ids->at +
                                (size_t)i * id_record_bytes(j->n_pes));
}

/* Its team was made, or will not be, or there was no id with it. */
static bool record_is_over(struct id_record *r, uint32_t number)
{
    const uint64_t decision = atomic_load_explicit(&r->decision, memory_order_relaxed);

    return number == 0 || id_decision_is_last(decision);
}

/* Takes the record for another id, unless a PE is in a call with the present one: from then on no
 * PE can begin such a call. */
static bool record_take(struct id_record *r, uint32_t number)
{
    uint64_t idle = (uint64_t)number << 32;

    /* acquire: pairs with the release of the last PE that has left, whose accesses come before */
    return atomic_compare_exchange_strong_explicit(&r->head, &idle, 0, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* The record of the oldest id among those that are not tried yet. */
static int oldest_record(const struct team_ids *ids, uint32_t tried)
{
    int oldest = -1;

    for (int i = 0; i < UNIQUE_ID_RECORDS; i++) {
        if (!(tried >> i & 1) && (oldest < 0 || ids->made[i] < ids->made[oldest]))
            oldest = i;
    }
    return oldest;
}

/* The oldest record whose team was made; if there is none, the oldest of an id that nobody has
 * used. -1: PEs are in calls with all ids. */
static int find_record(struct job *j)
{
    struct team_ids *ids = j->team_ids;

    for (int unused = 0; unused < 2; unused++) {
        uint32_t tried = 0;
        for (int k = 0; k < UNIQUE_ID_RECORDS; k++) {
            const int i = oldest_record(ids, tried);
            struct id_record *r = record_at(j, i);
            if ((unused || record_is_over(r, ids->number[i])) && record_take(r, ids->number[i]))
                return i;
            tried |= 1u << i;
        }
    }
    return -1;
}

/* A PE that uses an old id may add 1 to the head's low half, and subtract it again. */
static void record_begin(struct job *j, int i, uint32_t number)
{
    struct id_record *r = record_at(j, i);

    memset((char *)r + sizeof r->head, 0, id_record_bytes(j->n_pes) - sizeof r->head);
    /* release: pairs with the acquire of a PE that begins a call with the id */
    atomic_fetch_add_explicit(&r->head, (uint64_t)number << 32, memory_order_release);
}

gshmem_status_t gshmem_team_get_uniqueid(gshmem_team_uniqueid_t *id)
{
    static const char call[] = "gshmem_team_get_uniqueid";
    gshmem_status_t status = job_require(call);

    if (status)
        return status;
    if (!id)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: id is NULL", call);
    pthread_mutex_lock(&job->lock);
    struct team_ids *ids = job->team_ids;
    const int i = find_record(job);
    if (i >= 0) {
        ids->number[i] = ids->number[i] % ((1u << ID_NUMBER_BITS) - 1) + 1;
        ids->made[i] = ++ids->ids;
        record_begin(job, i, ids->number[i]);
        *id = id_encode((struct id_name){job->pe, i, ids->number[i]}, job->number);
    }
    pthread_mutex_unlock(&job->lock);
    return i >= 0 ? GSHMEM_OK
                  : fail(GSHMEM_ERR_STATE,
                         "%s: PEs are making teams with all %d ids that this PE may have at a "
                         "time: make another when one of these teams is complete",
                         call, UNIQUE_ID_RECORDS);
}

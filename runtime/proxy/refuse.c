#include "runtime/proxy/refuse.h"

#include <stdio.h>

#include "gshmem/base.h"
#include "runtime/base/log.h"
#include "runtime/teams/departures.h"

static const char *const collectives[] = {
    [0] = "a collective",
    [GSHMEM_COLLECTIVE_SYNC] = "sync or barrier",
    [GSHMEM_COLLECTIVE_BROADCAST] = "broadcast",
    [GSHMEM_COLLECTIVE_FCOLLECT] = "fcollect",
    [GSHMEM_COLLECTIVE_ALLTOALL] = "alltoall",
    [GSHMEM_COLLECTIVE_REDUCE] = "reduce",
    [GSHMEM_COLLECTIVE_REDUCESCATTER] = "reducescatter",
    [GSHMEM_COLLECTIVE_COLLECT] = "collect",
    [GSHMEM_COLLECTIVE_ALLTOALLS] = "alltoalls",
    [GSHMEM_COLLECTIVE_INSCAN] = "inscan",
    [GSHMEM_COLLECTIVE_EXSCAN] = "exscan",
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

gshmem_status_t refuse_collective(const struct gshmem_command *c)
{
    const char *name = collectives[c->type < COLLECTIVES ? c->type : 0];
    long long team = (long long)c->local;
    char call[80];

    switch (c->amo) {
    case GSHMEM_FAULT_TEAM:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: there is no team %lld that this PE is in",
                    name, team);
    case GSHMEM_FAULT_ROOT:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: root is PE %lld, which team %lld has not",
                    name, (long long)c->size, team);
    case GSHMEM_FAULT_ADDRESS:
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s in a kernel on team %lld: the %llu B at %#llx are not symmetric", name,
                    team, (unsigned long long)c->size, (unsigned long long)c->address);
    case GSHMEM_FAULT_OVERLAP:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel on team %lld: dest (%#llx, %llu B) and source overlap%s", name,
                    team, (unsigned long long)c->address, (unsigned long long)c->size,
                    gshmem_collective_in_place(c->type) ? " and are not the same" : "");
    case GSHMEM_FAULT_OPERATION:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel on team %lld: operation %u is not defined there for type %u",
                    name, team, (unsigned int)c->size, (unsigned int)(c->size >> 32));
    case GSHMEM_FAULT_STRIDES:
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "%s in a kernel on team %lld: strides are dst %lld and sst %lld, and must be at "
            "least 1",
            name, team, (long long)c->address, (long long)c->size);
    case GSHMEM_FAULT_MEMBERS:
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "%s in a kernel: team %lld has more than %lld members", name, team,
                    (long long)c->size);
    case GSHMEM_FAULT_OTHERS:
        return fail(
            GSHMEM_ERR_MISMATCH,
            "%s in a kernel on team %lld: another PE called something else, with other sizes "
            "or objects, or could not make the call",
            name, team);
    case GSHMEM_FAULT_LEFT:
        snprintf(call, sizeof call, "%s in a kernel on team %lld", name, team);
        return departures_say(call, (int)gshmem_failure_pe(c->size),
                              (enum departure_way)gshmem_failure_way(c->size));
    default:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: fault %u is none of this version's", name,
                    c->amo);
    }
}

static const char *const waits[] = {
    [0] = "a wait",
    [GSHMEM_WAIT_UNTIL] = "wait_until",
    [GSHMEM_WAIT_SIGNAL] = "signal_wait_until",
    [GSHMEM_WAIT_ALL] = "wait_until_all",
    [GSHMEM_WAIT_ANY] = "wait_until_any",
    [GSHMEM_WAIT_SOME] = "wait_until_some",
    [GSHMEM_WAIT_TEST] = "test",
    [GSHMEM_WAIT_TEST_ALL] = "test_all",
    [GSHMEM_WAIT_TEST_ANY] = "test_any",
    [GSHMEM_WAIT_TEST_SOME] = "test_some",
    [GSHMEM_WAIT_FETCH] = "signal_fetch",
};

enum { WAITS = sizeof waits / sizeof waits[0] };

const char *refuse_name(const struct gshmem_command *c)
{
    if (c->type)
        return collectives[c->type < COLLECTIVES ? c->type : 0];
    return waits[c->amo < WAITS ? c->amo : 0];
}

gshmem_status_t refuse_wait(const struct gshmem_command *c)
{
    const char *name = waits[c->amo < WAITS ? c->amo : 0];
    int64_t cmp = (int64_t)c->local;

    if (cmp < GSHMEM_CMP_EQ || cmp > GSHMEM_CMP_GE)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel: cmp is %lld, which is none of GSHMEM_CMP_EQ … _GE", name,
                    (long long)cmp);
    if (c->size == GSHMEM_LACKS_VALUES || c->size == GSHMEM_LACKS_INDICES)
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: %s is NULL", name,
                    c->size == GSHMEM_LACKS_VALUES ? "cmp_values" : "indices");
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s in a kernel: there is no variable aligned to its %u bytes at %#llx", name,
                c->type, (unsigned long long)c->address);
}

#include "runtime/proxy/refuse.h"

#include "runtime/base/log.h"

static const char *const collectives[] = {
    [0] = "a collective",
    [GSHMEM_COLLECTIVE_SYNC] = "sync or barrier",
    [GSHMEM_COLLECTIVE_BROADCAST] = "broadcast",
    [GSHMEM_COLLECTIVE_FCOLLECT] = "fcollect",
    [GSHMEM_COLLECTIVE_ALLTOALL] = "alltoall",
    [GSHMEM_COLLECTIVE_REDUCE] = "reduce",
    [GSHMEM_COLLECTIVE_REDUCESCATTER] = "reducescatter",
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

gshmem_status_t refuse_collective(const struct gshmem_command *c)
{
    const char *name = collectives[c->type < COLLECTIVES ? c->type : 0];
    long long team = (long long)c->local;

    switch (c->amo) {
    case GSHMEM_FAULT_TEAM:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: there is no team %lld that this PE is in",
                    name, team);
    case GSHMEM_FAULT_ROOT:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: root is PE %lld, which team %lld has not",
                    name, (long long)c->size, team);
    case GSHMEM_FAULT_ADDRESS:
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s in a kernel on team %lld: the %llu B at %#llx are not symmetric", name, team,
                    (unsigned long long)c->size, (unsigned long long)c->address);
    case GSHMEM_FAULT_OVERLAP:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel on team %lld: dest (%#llx, %llu B) and source overlap%s", name,
                    team, (unsigned long long)c->address, (unsigned long long)c->size,
                    c->type == GSHMEM_COLLECTIVE_FCOLLECT || c->type == GSHMEM_COLLECTIVE_ALLTOALL
                        ? ""
                        : " and are not the same");
    case GSHMEM_FAULT_OPERATION:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel on team %lld: operation %u is not defined there for type %u", name,
                    team, (unsigned int)c->size, (unsigned int)(c->size >> 32));
    case GSHMEM_FAULT_OTHERS:
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s in a kernel on team %lld: another PE called something else, with other sizes "
                    "or objects, or could not make the call",
                    name, team);
    default:
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: fault %u is none of this version's", name,
                    c->amo);
    }
}

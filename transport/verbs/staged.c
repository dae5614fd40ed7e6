/* What both sides of staging share: which memory NICs do not reach, and the pool of pinned
 * buffers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/gpu.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

struct link_staging *staged_of(struct verbs *v, struct link *l)
{
    if (!l->staging && !(l->staging = calloc(1, sizeof *l->staging)))
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory to stage data of PE %d", l->pe);
    return l->staging;
}

struct ibv_mr *staged_pool(struct verbs *v, struct nic *nic)
{
    if (!nic->stage_mr && staging_ready(&v->staging))
        nic->stage_mr =
            ibv_reg_mr(nic->pd, v->staging.memory, v->staging.bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!nic->stage_mr && !v->staging.failed && !v->refusal_said) {
        v->refusal_said = true;
        v->config.fail_handled(GSHMEM_ERR_TRANSPORT,
                       "verbs: %s: registering %llu KiB of pinned buffers (GSHMEM_STAGING): %s "
                       "(ulimit -l limits what "
                       "may be pinned): GPU memory goes by TCP",
                       nic->name, (unsigned long long)v->staging.bytes >> 10, strerror(errno));
    }
    return nic->stage_mr;
}

void staged_let_go(struct staged **buffer)
{
    struct staged_list one = {*buffer, *buffer};

    if (*buffer)
        staging_abandon(&one);
    *buffer = NULL;
}

bool staged_is_remote(const struct verbs *v, const struct link *l, int segment)
{
    return l->peer.gpu_below && v->config.segment[segment].of_device;
}

bool staged_is_local(const struct verbs *v, const struct op *op)
{
    const struct transport_request *r = &op->request;

    return v->gpu_below && op->slot < 0 && (r->kind == TRANSPORT_GET || r->bytes > SMALL_BYTES) &&
           gpu_has(v, r->local, r->bytes);
}

bool staged_is_needed(const struct verbs *v, const struct link *l, const struct op *op)
{
    const struct transport_request *r = &op->request;

    if (!(v->gpu_below || l->peer.gpu_below) || r->kind == TRANSPORT_ATOMIC || !r->bytes)
        return false;
    return (staged_is_remote(v, l, r->segment) &&
            (r->kind == TRANSPORT_GET || r->bytes > MESSAGE_DATA)) ||
           staged_is_local(v, op);
}

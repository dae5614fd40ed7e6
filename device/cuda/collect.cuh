/* collect and alltoalls, for the library's kernel: those that programs' kernels have are in
 * gshmem/device/collective.h, and the calls are made as those are (gshmem/device/call.h). */
#ifndef GSHMEM_CUDA_COLLECT_CUH
#define GSHMEM_CUDA_COLLECT_CUH

#include "gshmem_device.h"

namespace
{

/* A call that this PE cannot make: says why, and the others know it. */
__device__ gshmem_status_t refuse(gshmem_team_t team, enum gshmem_collective what, uint32_t fault,
                                  uint64_t address, uint64_t size)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    gshmem_status_t mine = GSHMEM_OK;

    if (gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0)
        mine = gshmem_kernel_fault(team, what, fault, (const void *)(uintptr_t)address, size);
    if (!t)
        return gshmem_kernel_agree<GSHMEM_SCOPE_BLOCK>(mine);
    struct gshmem_kernel_round r = gshmem_kernel_round(t, 0);
    return gshmem_kernel_meet<GSHMEM_SCOPE_BLOCK>(&r, mine);
}

/* ---- collect -------------------------------------------------------------------------------- */

/* What all bring together: this member's place in it, and how much it is. */
struct collection {
    uint64_t mine, all;
};

/* So many bytes of a size come along with a round: all 8 where there are up to 1,000 members, or
 * 232 of a later team. */
__device__ uint32_t size_part(const struct gshmem_device_team *t, uint32_t done)
{
    const uint32_t room = (uint32_t)t->sync_data / (uint32_t)t->ctx.n_pes;

    return room < 8 - done ? room : 8 - done;
}

/* Piece i that has come is that of the member i before this one. Sums of parts are parts of
 * sums. */
__device__ void add_sizes(const struct gshmem_kernel_round *r, uint32_t done, struct collection *c)
{
    const uint32_t members = (uint32_t)r->team->ctx.n_pes, me = (uint32_t)r->team->ctx.my_pe;

    for (uint32_t i = 0; i < members; i++) {
        uint64_t part = 0;
        memcpy(&part, r->data + i * r->bytes, r->bytes);
        part <<= 8 * done;
        c->all += part;
        c->mine += i && i <= me ? part : 0;
    }
}

__device__ gshmem_status_t exchange_sizes(const struct gshmem_device_team *t,
                                          const struct gshmem_kernel_call *call, uint64_t bytes,
                                          struct collection *c)
{
    const uint32_t members = (uint32_t)t->ctx.n_pes;
    gshmem_status_t status = GSHMEM_OK;

    if (members > t->sync_data)
        return refuse(call->handle, call->what, GSHMEM_FAULT_MEMBERS, 0, t->sync_data);
    for (uint32_t done = 0; done < 8 && !status;) {
        struct gshmem_kernel_round r =
            gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, call));
        r.bytes = size_part(t, done);
        if (gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0)
            memcpy(r.data, (const char *)&bytes + done, r.bytes);
        r.brings = GSHMEM_BRINGS_ALL;
        status = gshmem_kernel_meet<GSHMEM_SCOPE_BLOCK>(&r, GSHMEM_OK);
        if (!status)
            add_sizes(&r, done, c);
        done += (uint32_t)r.bytes;
    }
    if (status == GSHMEM_ERR_MISMATCH && gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0)
        gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_OTHERS, NULL, 0);
    return status;
}

__device__ gshmem_status_t collect(gshmem_team_t team, void *dest, const void *source, size_t bytes)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_COLLECT, dest, source, 0, bytes, 0, 0};
    struct gshmem_kernel_call agreed = call; /* on what all have in common */
    struct collection c = {0, 0};
    gshmem_status_t status = GSHMEM_OK;

    agreed.source = NULL;
    agreed.source_bytes = 0;
    if (!gshmem_kernel_enter<by>(t, &call, &status))
        return status;
    if ((status = exchange_sizes(t, &agreed, bytes, &c)) || c.all == 0)
        return status;
    call.dest_bytes = agreed.dest_bytes = c.all;
    if (!gshmem_kernel_enter<by>(t, &call, &status))
        return status;
    if ((status = gshmem_kernel_open<by>(t, &agreed)))
        return status;
    char *mine = (char *)dest + c.mine;
    gshmem_kernel_copy_apart<by>(mine, source, bytes);
    status = gshmem_kernel_send_all<by>(&t->ctx, mine, source, bytes);
    return gshmem_kernel_close<by>(t, &agreed, status);
}

/* ---- alltoalls ------------------------------------------------------------------------------ */

/* Elements that a member has for each other, and how they lie. */
struct strides {
    ptrdiff_t dst, sst;
    size_t element, n;
};

/* From the first of n elements to the end of the last; more than there can be, rather than a
 * size that has wrapped. */
__device__ size_t extent(const struct strides *s, size_t n, ptrdiff_t stride)
{
    const size_t most = (size_t)1 << 40;

    if (n == 0 || s->element == 0 || stride < 1)
        return 0;
    if (n > most || (size_t)stride > most / n || s->element > most / (n * (size_t)stride))
        return (size_t)-1;
    return ((n - 1) * (size_t)stride + 1) * s->element;
}

/* The same for calls that are the same: sizes stand for what they are made of. */
__device__ struct gshmem_kernel_call agreed_strides(const struct gshmem_kernel_call *call,
                                                    const struct strides *s)
{
    struct gshmem_kernel_call agreed = *call;

    agreed.dest_bytes = gshmem_kernel_mix(gshmem_kernel_mix(s->n, s->element), (uint64_t)s->dst);
    agreed.source_bytes = (size_t)s->sst;
    return agreed;
}

__device__ gshmem_status_t send_strided(const struct gshmem_device_ctx *c, char *dest,
                                        const char *source, const struct strides *s, uint32_t pe)
{
    const size_t to = (size_t)c->my_pe * s->n * (size_t)s->dst * s->element;
    const size_t from = pe * s->n * (size_t)s->sst * s->element;

    /* On the default context, whose channels are the team's. */
    return gshmem_kernel_strided<GSHMEM_SCOPE_BLOCK, true>(GSHMEM_CTX_DEFAULT, dest + to,
                                                           source + from, s->dst, s->sst, 1,
                                                           s->element, s->n, c->world[pe]);
}

__device__ gshmem_status_t alltoalls(gshmem_team_t team, void *dest, const void *source,
                                     const struct strides *s)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t all = t ? gshmem_kernel_times(s->n, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_ALLTOALLS, dest, source, extent(s, all, s->dst),
        extent(s, all, s->sst), 0, 0};
    const struct gshmem_kernel_call agreed = agreed_strides(&call, s);
    gshmem_status_t status = GSHMEM_OK;

    if (s->dst < 1 || s->sst < 1)
        return refuse(team, GSHMEM_COLLECTIVE_ALLTOALLS, GSHMEM_FAULT_STRIDES, (uint64_t)s->dst,
                      (uint64_t)s->sst);
    if (!gshmem_kernel_enter<by>(t, &call, &status))
        return status;
    if ((status = gshmem_kernel_open<by>(t, &agreed)))
        return status;
    for (uint32_t i = 0; i < (uint32_t)t->ctx.n_pes && !status && call.dest_bytes; i++)
        status = send_strided(&t->ctx, (char *)dest, (const char *)source, s,
                              gshmem_kernel_after(&t->ctx, i));
    return gshmem_kernel_close<by>(t, &agreed, status);
}

} // namespace

#endif

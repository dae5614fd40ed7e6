/* One collective call in a kernel: its arguments, which are checked here and compared among the
 * members, and the transfer of large data between two rounds.
 *
 * After the first round all members have called, and any of them may write dest and read source.
 * Before the second round each member completes its puts. A PE that cannot make the call takes part
 * in the first round with signature 0: then all members return, and none has written to dest. */
#ifndef GSHMEM_DEVICE_CALL_H
#define GSHMEM_DEVICE_CALL_H

#include "gshmem/device/multicast.h"
#include "gshmem/device/round.h"

struct gshmem_kernel_call {
    gshmem_team_t handle;
    enum gshmem_collective what;
    void *dest;
    const void *source;
    size_t dest_bytes, source_bytes; /* total sizes */
    int root;
    uint32_t variant; /* of a reduction: type and operation */
};

/* The same on all PEs for a symmetric object; 0 for any other, such as NULL with 0 bytes. */
GSHMEM_KERNEL size_t gshmem_kernel_offset(const struct gshmem_device_ctx *c, const void *object)
{
    size_t offset;

    return gshmem_kernel_peers(c, object, 0, &offset) ? offset : 0;
}

GSHMEM_KERNEL uint64_t gshmem_kernel_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

GSHMEM_KERNEL uint32_t gshmem_kernel_signature(const struct gshmem_device_ctx *c,
                                               const struct gshmem_kernel_call *call)
{
    uint64_t hash = (uint64_t)call->what << 32 | call->variant << 24 | (uint32_t)call->root;

    hash = gshmem_kernel_mix(gshmem_kernel_mix(hash, call->source_bytes), call->dest_bytes);
    hash = gshmem_kernel_mix(hash, gshmem_kernel_offset(c, call->dest));
    hash = gshmem_kernel_mix(hash, gshmem_kernel_offset(c, call->source));
    return (uint32_t)(hash >> 32) | 1;
}

/* A size times a number of members. Where the product would overflow, a size that is larger than
 * any memory. */
GSHMEM_KERNEL size_t gshmem_kernel_times(size_t bytes, uint32_t n)
{
    return bytes >> 40 ? (size_t)-1 : bytes * n;
}

GSHMEM_KERNEL bool gshmem_kernel_good_object(const struct gshmem_device_ctx *c, const void *object,
                                             size_t bytes)
{
    return bytes == 0 || gshmem_kernel_symmetric(c, object, bytes);
}

/* Whether dest and source overlap. They may be the same object where the collective allows it. */
GSHMEM_KERNEL bool gshmem_kernel_overlap(const struct gshmem_kernel_call *call)
{
    const uintptr_t to = (uintptr_t)call->dest, from = (uintptr_t)call->source;
    const bool in_place = gshmem_collective_in_place(call->what);

    return to < from + call->source_bytes && from < to + call->dest_bytes &&
           !(in_place && to == from);
}

/* Reports what is wrong with the call, once; by one thread. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_say(const struct gshmem_device_team *t,
                                                     const struct gshmem_kernel_call *call)
{
    if (!t)
        return gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_TEAM, NULL, 0);
    if ((uint32_t)call->root >= (uint32_t)t->ctx.n_pes)
        return gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_ROOT, NULL,
                                   (uint64_t)(int64_t)call->root);
    if (!gshmem_kernel_good_object(&t->ctx, call->source, call->source_bytes))
        return gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_ADDRESS, call->source,
                                   call->source_bytes);
    if (!gshmem_kernel_good_object(&t->ctx, call->dest, call->dest_bytes))
        return gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_ADDRESS, call->dest,
                                   call->dest_bytes);
    return gshmem_kernel_fault(call->handle, call->what, GSHMEM_FAULT_OVERLAP, call->dest,
                               call->dest_bytes);
}

/* GSHMEM_CHECK=memory: whether source and dest are in objects; by one thread. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_check_call(const struct gshmem_kernel_call *call)
{
    gshmem_status_t status =
        gshmem_kernel_check(call->what, 0, call->source, call->source_bytes, false);

    return status ? status
                  : gshmem_kernel_check(call->what, 0, call->dest, call->dest_bytes, false);
}

/* Whether this PE can make the call. If not, *status is the result, and the other PEs learn of it.
 * The function is also a sync of the threads: after it each may read what another has written to
 * source. */
template <int scope>
GSHMEM_KERNEL_RARE bool gshmem_kernel_enter(const struct gshmem_device_team *t,
                                            const struct gshmem_kernel_call *call,
                                            gshmem_status_t *status)
{
    gshmem_kernel_sync<scope>();
    const bool good = t && (uint32_t)call->root < (uint32_t)t->ctx.n_pes &&
                      gshmem_kernel_good_object(&t->ctx, call->source, call->source_bytes) &&
                      gshmem_kernel_good_object(&t->ctx, call->dest, call->dest_bytes) &&
                      !gshmem_kernel_overlap(call);
    if (GSHMEM_LIKELY(good && gshmem_device_here.direct))
        return true;
    gshmem_status_t mine = GSHMEM_OK;
    if (gshmem_kernel_rank<scope>() == 0)
        mine = good ? gshmem_kernel_check_call(call) : gshmem_kernel_say(t, call);
    if (good && !(mine = gshmem_kernel_agree<scope>(mine)))
        return true;
    if (t) {
        struct gshmem_kernel_round r = gshmem_kernel_round(t, 0);
        GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_ARRIVE, call->handle);
        mine = gshmem_kernel_meet<scope>(&r, mine);
    }
    *status = gshmem_kernel_agree<scope>(mine);
    return false;
}

/* Many functions of many types copy. Therefore the copy is out of line. */
template <int scope>
GSHMEM_KERNEL_RARE void gshmem_kernel_copy_apart(void *to, const void *from, size_t bytes)
{
    gshmem_kernel_copy<scope>(to, from, bytes);
}

/* ---- Data that is sent with a round ---------------------------------------------------------- */

/* Copies blocks that came with a round into the order of the members. */
template <int scope>
GSHMEM_KERNEL_RARE void gshmem_kernel_place(const struct gshmem_kernel_round *r, char *dest)
{
    const struct gshmem_device_ctx *c = &r->team->ctx;

    for (uint32_t i = 0; i < (uint32_t)c->n_pes; i++) {
        /* i after this member is n - i before it */
        uint32_t piece = i ? (uint32_t)c->n_pes - i : 0;
        gshmem_kernel_copy_apart<scope>(dest + gshmem_kernel_after(c, i) * r->bytes,
                                        r->data + piece * r->bytes, r->bytes);
    }
}

/* Copies the blocks for all members to the place from which a round sends them. */
template <int scope>
GSHMEM_KERNEL_RARE void gshmem_kernel_lay_out(const struct gshmem_kernel_round *r,
                                              const char *source)
{
    const struct gshmem_device_ctx *c = &r->team->ctx;

    gshmem_kernel_copy_apart<scope>(r->data, source + (size_t)c->my_pe * r->bytes, r->bytes);
    for (uint32_t i = 1; i < (uint32_t)c->n_pes; i++)
        gshmem_kernel_copy_apart<scope>(r->data + ((uint32_t)c->n_pes + i) * r->bytes,
                                        source + gshmem_kernel_after(c, i) * r->bytes, r->bytes);
}

/* Whether a block for each of n members can be sent with a round. */
GSHMEM_KERNEL bool gshmem_kernel_small_each(const struct gshmem_device_team *t, size_t all)
{
    return gshmem_kernel_flat(t) && all <= t->sync_data / 2;
}

/* Copies this PE's data into the buffer from which the round sends it. Other PEs' arrival shows
 * that this half of the buffer is free. ThreadSanitizer does not see that, and would report a race
 * with the proxy. */
template <int scope>
GSHMEM_KERNEL void gshmem_kernel_load_round(const struct gshmem_kernel_round *r, const void *source)
{
    const bool from_here = r->brings == GSHMEM_BRINGS_ALL ||
                           (r->brings == GSHMEM_BRINGS_ROOT && r->team->ctx.my_pe == r->root);

#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_unseen_begin();
#endif
    if (from_here)
        gshmem_kernel_copy_apart<scope>(r->data, source, r->bytes);
    else if (r->brings == GSHMEM_BRINGS_EACH)
        gshmem_kernel_lay_out<scope>(r, (const char *)source);
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_unseen_end();
#endif
}

/* A round of the call, with its data if there is any: gshmem_kernel_meet, and an error line if
 * others differ. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_call_meet(const struct gshmem_kernel_call *call,
                                                           const struct gshmem_kernel_round *r)
{
    GSHMEM_FOLLOW(scope, &r->team->ctx, GSHMEM_FOLLOWED_READ, call->source, NULL,
                  call->source_bytes, r->team->ctx.my_pe);
    GSHMEM_FOLLOW(scope, &r->team->ctx, GSHMEM_FOLLOWED_WRITE, call->dest, NULL, call->dest_bytes,
                  r->team->ctx.my_pe);
    GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_ARRIVE, call->handle);
    gshmem_kernel_load_round<scope>(r, call->source);
    gshmem_status_t status = gshmem_kernel_meet<scope>(r, GSHMEM_OK);
    if (!status)
        GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_LEAVE, call->handle);
    if (status && gshmem_kernel_rank<scope>() == 0)
        gshmem_kernel_explain(r->team, call->what, status);
    return status;
}

/* ---- Data that is moved between two rounds --------------------------------------------------- */

template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_open(const struct gshmem_device_team *t,
                                                      const struct gshmem_kernel_call *call)
{
    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, call));

    return gshmem_kernel_call_meet<scope>(call, &r);
}

/* The caller has completed its part, and waits for the others. The threads have synchronized. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_close(const struct gshmem_device_team *t,
                                                       const struct gshmem_kernel_call *call,
                                                       gshmem_status_t mine)
{
    gshmem_kernel_sync<scope>();
    if (gshmem_kernel_rank<scope>() == 0) {
        gshmem_status_t sent = gshmem_kernel_quiet_on(&t->ctx);
        mine = mine ? mine : sent;
    }
    mine = gshmem_kernel_agree<scope>(mine);
    struct gshmem_kernel_round r =
        gshmem_kernel_round(t, mine ? 0 : gshmem_kernel_signature(&t->ctx, call));
    return gshmem_kernel_meet<scope>(&r, mine);
}

/* Puts to a member's copy of dest. The put is complete when gshmem_kernel_close returns. */
template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_send(const struct gshmem_device_ctx *c, void *dest,
                                                 const void *source, size_t bytes, uint32_t pe)
{
    void *there = gshmem_kernel_reach(c, dest, bytes, (int)pe);

    if (there)
        gshmem_kernel_copy_apart<scope>(there, source, bytes);
    else if (gshmem_kernel_rank<scope>() == 0 && bytes)
        return gshmem_kernel_post_put<true>(c, dest, source, bytes, NULL, (int)pe);
    return GSHMEM_OK;
}

/* Puts the same bytes to all others. Each member begins with the member after itself. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_send_all(const struct gshmem_device_ctx *c,
                                                          void *dest, const void *source,
                                                          size_t bytes)
{
    gshmem_status_t status = GSHMEM_OK;

    for (uint32_t i = 1; i < (uint32_t)c->n_pes && !status; i++)
        status = gshmem_kernel_send<scope>(c, dest, source, bytes, gshmem_kernel_after(c, i));
    return status;
}

/* Gets from a member's copy of source. The get is complete on return. */
template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_bring_from(const struct gshmem_device_ctx *c,
                                                       void *dest, const void *source, size_t bytes,
                                                       int pe)
{
    const void *there = pe == c->my_pe ? source : gshmem_kernel_reach(c, source, bytes, pe);
    gshmem_status_t status = GSHMEM_OK;

    if (there && there != dest)
        gshmem_kernel_copy_apart<scope>(dest, there, bytes);
    else if (!there && gshmem_kernel_rank<scope>() == 0 && bytes)
        status = gshmem_kernel_post_get<false>(c, dest, source, bytes, pe);
    return gshmem_kernel_agree<scope>(status);
}

/* The part of `bytes` bytes that each member computes for all, in whole lines. */
#define GSHMEM_PART_BYTES 128u

struct gshmem_kernel_part {
    size_t begin, bytes;
};

GSHMEM_KERNEL struct gshmem_kernel_part gshmem_kernel_part(const struct gshmem_device_ctx *c,
                                                           size_t bytes)
{
    size_t lines = (bytes + GSHMEM_PART_BYTES - 1) / GSHMEM_PART_BYTES, n = (size_t)c->n_pes;
    size_t share = (lines + n - 1) / n * GSHMEM_PART_BYTES, begin = (size_t)c->my_pe * share;
    struct gshmem_kernel_part part = {begin < bytes ? begin : bytes, 0};

    part.bytes = bytes - part.begin < share ? bytes - part.begin : share;
    return part;
}

#endif

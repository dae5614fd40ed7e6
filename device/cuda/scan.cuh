/* Sums over the members up to each, for the library's kernel.
 *
 * Small ones: everybody gets everybody's elements with one round, and adds up those of the
 * members that count. Large ones: each does its part of the elements for all members, so that
 * nothing is read or added twice, and dest may be source: a part is touched by one member alone.
 * Either way they are added in the order of the members, as on the host. */
#ifndef GSHMEM_CUDA_SCAN_CUH
#define GSHMEM_CUDA_SCAN_CUH

#include <cuda_bf16.h>

#include "gshmem/device/half.h"
#include "gshmem_device.h"

namespace
{

struct scan {
    const struct gshmem_device_team *team;
    enum gshmem_type type; /* of the elements that are added: see scan_elements */
    bool inclusive;
};

/* Elements of one member, and the sums so far; what `out` gets is where the member's result
 * goes. */
struct scan_step {
    void *out, *sum;
    const void *in;
    bool first;
};

template <class T> __device__ void add_step(const struct scan_step *s, bool inclusive, size_t bytes)
{
    const T *in = (const T *)s->in;
    T *out = (T *)s->out, *sum = (T *)s->sum;
    const size_t n = bytes / sizeof(T);

    for (size_t i = gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>(); i < n;
         i += gshmem_kernel_size<GSHMEM_SCOPE_BLOCK>()) {
        const T before = s->first ? (T)0 : sum[i];
        const T after = s->first ? in[i] : gshmem_kernel_combine(GSHMEM_OP_SUM, before, in[i]);
        out[i] = inclusive ? after : before;
        sum[i] = after;
    }
}

/* Each thread has the same elements in each step. One copy of it for both callers: it has all
 * the types. */
#define CASE_uint(type, in_kernels)                                                                \
    case type:                                                                                     \
        return add_step<in_kernels>(s, scan->inclusive, bytes);
#define CASE_real  CASE_uint
#define CASE_small CASE_uint
#define CASE_sint(type, in_kernels)
#define CASE_wide(type, in_kernels)
#define CASE_pair(type, in_kernels)

__device__ __noinline__ void step(const struct scan *scan, const struct scan_step *s, size_t bytes)
{
    switch (scan->type) { /* see scan_elements; scan has refused the others */
#define X(name, number, text, c_type, in_kernels, class, ...)                                      \
    CASE_##class(GSHMEM_TYPE_##name, in_kernels)
        GSHMEM_TYPE_TABLE(X)
#undef X
    default:
        __trap();
    }
}

#undef CASE_pair
#undef CASE_wide
#undef CASE_sint
#undef CASE_small
#undef CASE_real
#undef CASE_uint

/* ---- Small ---------------------------------------------------------------------------------- */

/* Piece i that has come is that of the member i before this one: member 0's is the my_pe-th.
 * Sums go to dest, and a piece that has been added takes what is no result. */
__device__ void scan_pieces(const struct scan *scan, const struct gshmem_kernel_round *r,
                            void *dest)
{
    const uint32_t me = (uint32_t)r->team->ctx.my_pe;

    for (uint32_t i = 0; i <= me; i++) {
        char *piece = r->data + (me - i) * r->bytes;
        struct scan_step s = {piece, r->data + me * r->bytes, piece, i == 0};
        if (i == me)
            s.out = dest;
        step(scan, &s, r->bytes);
    }
    gshmem_kernel_sync<GSHMEM_SCOPE_BLOCK>();
}

/* ---- Large ---------------------------------------------------------------------------------- */

__device__ char *place_there(const struct gshmem_device_ctx *c, const char *mine, size_t bytes,
                             uint32_t member)
{
    return member == (uint32_t)c->my_pe
               ? (char *)mine
               : (char *)gshmem_kernel_reach(c, mine, bytes, (int)member);
}

/* What is away is brought to scratch memory, whose other half has the sums. */
__device__ gshmem_status_t scan_member(const struct scan *scan, char *dest, const char *source,
                                       size_t bytes, uint32_t member)
{
    const struct gshmem_device_ctx *c = &scan->team->ctx;
    char *piece = scan->team->scratch + scan->team->scratch_bytes / 2;
    char *out = place_there(c, dest, bytes, member);
    const char *in = place_there(c, source, bytes, member);
    struct scan_step s = {out ? out : piece, scan->team->scratch, in ? in : piece, member == 0};
    gshmem_status_t status = GSHMEM_OK;

    if (!in && gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0)
        status = gshmem_kernel_post_get<false>(c, piece, source, bytes, (int)member);
    if (!in && (status = gshmem_kernel_agree<GSHMEM_SCOPE_BLOCK>(status)))
        return status;
    step(scan, &s, bytes);
    if (out && in)
        return GSHMEM_OK;
    gshmem_kernel_sync<GSHMEM_SCOPE_BLOCK>(); /* all have read the piece, or written it */
    if (out)
        return GSHMEM_OK;
    if (gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0 &&
        !(status = gshmem_kernel_post_put<true>(c, dest, piece, bytes, NULL, (int)member)))
        status = gshmem_kernel_quiet_on(c); /* the piece is free again */
    return gshmem_kernel_agree<GSHMEM_SCOPE_BLOCK>(status);
}

__device__ gshmem_status_t scan_part(const struct scan *scan, char *dest, const char *source,
                                     size_t bytes)
{
    const size_t most = scan->team->scratch_bytes / 2 & ~(size_t)63;
    gshmem_status_t status = GSHMEM_OK;

    for (size_t at = 0, some; at < bytes && !status; at += some) {
        some = bytes - at < most ? bytes - at : most;
        for (uint32_t i = 0; i < (uint32_t)scan->team->ctx.n_pes && !status; i++)
            status = scan_member(scan, dest + at, source + at, some, i);
    }
    return status;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* How a type's elements are added: as which type, of how many bytes, and how many of them there
 * are in one. bytes is 0 if GPUs do not have the type. */
struct scan_elements {
    enum gshmem_type type;
    uint32_t bytes, each;
};

/* Sums of signed integers are those of unsigned ones; complex numbers are two real ones. */
#define ADDED_sint(in_kernels)                                                                     \
    {                                                                                              \
        gshmem_type_of<gshmem_unsigned<sizeof(in_kernels)>::type>(), sizeof(in_kernels), 1         \
    }
#define ADDED_uint(in_kernels)  {gshmem_type_of<in_kernels>(), sizeof(in_kernels), 1}
#define ADDED_real(in_kernels)  {gshmem_type_of<in_kernels>(), sizeof(in_kernels), 1}
#define ADDED_small(in_kernels) {gshmem_type_of<in_kernels>(), sizeof(in_kernels), 1}
#define ADDED_pair(in_kernels)  {gshmem_type_of<in_kernels>(), sizeof(in_kernels), 2}
#define ADDED_wide(in_kernels)  {GSHMEM_TYPE_COUNT, 0, 0}

__device__ struct scan_elements scan_elements(int type)
{
    switch (type) {
#define X(name, number, text, c_type, in_kernels, class, ...)                                      \
    case GSHMEM_TYPE_##name:                                                                       \
        return ADDED_##class(in_kernels);
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return {GSHMEM_TYPE_COUNT, 0, 0};
}

__device__ gshmem_status_t scan_by(const struct scan *scan, const struct gshmem_kernel_call *call)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    const struct gshmem_device_team *t = scan->team;
    gshmem_status_t status;

    if (gshmem_kernel_times(call->dest_bytes, (uint32_t)t->ctx.n_pes) <= t->sync_data) {
        struct gshmem_kernel_round r =
            gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, call));
        r.brings = GSHMEM_BRINGS_ALL;
        r.bytes = call->dest_bytes;
        if (!(status = gshmem_kernel_call_meet<by>(call, &r)))
            scan_pieces(scan, &r, call->dest);
        return status;
    }
    const struct gshmem_kernel_part part = gshmem_kernel_part(&t->ctx, call->dest_bytes);
    if ((status = gshmem_kernel_open<by>(t, call)))
        return status;
    status = scan_part(scan, (char *)call->dest + part.begin,
                       (const char *)call->source + part.begin, part.bytes);
    return gshmem_kernel_close<by>(t, call, status);
}

__device__ gshmem_status_t scan(gshmem_team_t team, bool inclusive, int type, void *dest,
                                const void *source, size_t n)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    const enum gshmem_collective what =
        inclusive ? GSHMEM_COLLECTIVE_INSCAN : GSHMEM_COLLECTIVE_EXSCAN;
    const struct scan_elements added = scan_elements(type);
    const struct scan scan = {gshmem_kernel_team(team), added.type, inclusive};
    gshmem_status_t status = GSHMEM_OK;

    if (!added.bytes)
        return gshmem_kernel_reduce_none<by>(what, type, GSHMEM_OP_SUM, team);
    const size_t bytes = gshmem_kernel_times(gshmem_kernel_times(n, added.each), added.bytes);
    const struct gshmem_kernel_call call = {
        team, what, dest, source, bytes, bytes, 0, (uint32_t)scan.type};
    return gshmem_kernel_enter<by>(scan.team, &call, &status) ? scan_by(&scan, &call) : status;
}

} // namespace

#endif

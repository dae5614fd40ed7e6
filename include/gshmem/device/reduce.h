/* Reductions in kernels; and the host's by the same names.
 *
 * Small ones: everybody gets everybody's elements with one round, and combines them in the order of
 * the members. Large ones: each combines its part of the elements of all members, beginning with
 * its own, and gives it to all. Either way the order depends on the members and the size alone, and
 * all get the same bits. */
#ifndef GSHMEM_DEVICE_REDUCE_H
#define GSHMEM_DEVICE_REDUCE_H

#include "gshmem/device/call.h"

/* ---- Combining ------------------------------------------------------------------------------ */

/* As on the host: integers wrap, and min and max take the second if neither is less or more. What
 * is called with a constant has no switch left. */
template <class T> GSHMEM_KERNEL T gshmem_kernel_combine(int op, T x, T y)
{
    const bool real = (T)0.5 != (T)0;
    typedef unsigned long long bits;

    switch (op) {
    case GSHMEM_OP_SUM:
        return real ? x + y : (T)((bits)x + (bits)y);
    case GSHMEM_OP_PROD:
        return real ? x * y : (T)((bits)x * (bits)y);
    case GSHMEM_OP_MIN:
        return x < y ? x : y;
    case GSHMEM_OP_MAX:
        return x > y ? x : y;
    case GSHMEM_OP_AND:
        return (T)((bits)x & (bits)y);
    case GSHMEM_OP_OR:
        return (T)((bits)x | (bits)y);
    default:
        return (T)((bits)x ^ (bits)y);
    }
}

/* What is combined with the first operand, in order: `bytes` of each. */
#define GSHMEM_OPERANDS 8

struct gshmem_kernel_operands {
    const void *at[GSHMEM_OPERANDS];
    uint32_t n;
    size_t bytes;
};

/* out[i] = first[i] op at[0][i] op at[1][i] …; out may be first. */
template <int scope, class T>
GSHMEM_KERNEL void gshmem_kernel_combine_all(int op, T *out, const T *first,
                                             const struct gshmem_kernel_operands *operands)
{
    const size_t n = operands->bytes / sizeof(T);

    for (size_t i = gshmem_kernel_rank<scope>(); i < n; i += gshmem_kernel_size<scope>()) {
        T value = first[i];
        for (uint32_t j = 0; j < operands->n; j++)
            value = gshmem_kernel_combine(op, value, ((const T *)operands->at[j])[i]);
        out[i] = value;
    }
}

/* ---- Small: what came with a round ---------------------------------------------------------- */

/* Piece i is that of the member i before this one: from member 0's on downwards, then around. */
template <int scope, class T>
GSHMEM_KERNEL void gshmem_kernel_combine_pieces(int op, const struct gshmem_kernel_round *r,
                                                T *dest, size_t n)
{
    const T *pieces = (const T *)r->data;
    const uint32_t members = (uint32_t)r->team->ctx.n_pes, mine = (uint32_t)r->team->ctx.my_pe;

    for (size_t i = gshmem_kernel_rank<scope>(); i < n; i += gshmem_kernel_size<scope>()) {
        T value = pieces[mine * n + i];
        for (uint32_t j = 1, piece = mine; j < members; j++) {
            piece = piece ? piece - 1 : members - 1;
            value = gshmem_kernel_combine(op, value, pieces[piece * n + i]);
        }
        dest[i] = value;
    }
    gshmem_kernel_sync<scope>();
}

/* ---- Large: from the members' own memory ---------------------------------------------------- */

/* Both halves of the scratch memory, which are free between the rounds of a call. */
#define GSHMEM_SCRATCH_BYTES (2u * GSHMEM_DEVICE_SYNC_DATA)

/* Where the next `bytes` bytes at source of the members after this one, from `first` to `end`, can
 * be read: as many of them as there is scratch memory for, where some are brought by the proxy. A
 * sync of the threads, then. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_operands(const struct gshmem_device_team *t,
                                                          const char *source, size_t bytes,
                                                          uint32_t first, uint32_t end,
                                                          struct gshmem_kernel_operands *operands)
{
    const struct gshmem_device_ctx *c = &t->ctx;
    gshmem_status_t status = GSHMEM_OK;
    char *to = t->sync->data[0];
    uint32_t away = 0;

    operands->n = end - first;
    for (uint32_t i = 0; i < operands->n; i++) {
        operands->at[i] =
            gshmem_kernel_reach(c, source, bytes, (int)gshmem_kernel_after(c, first + i));
        away += !operands->at[i];
    }
    if (away && bytes > (GSHMEM_SCRATCH_BYTES / away & ~15u))
        bytes = GSHMEM_SCRATCH_BYTES / away & ~15u;
    operands->bytes = bytes;
    if (!away)
        return GSHMEM_OK;

    gshmem_kernel_sync<scope>(); /* what was brought before has been read */
    for (uint32_t i = 0; i < operands->n; i++) {
        if (operands->at[i])
            continue;
        if (gshmem_kernel_rank<scope>() == 0 && !status)
            status = gshmem_kernel_post_get<true>(c, to, source, bytes,
                                                  (int)gshmem_kernel_after(c, first + i));
        operands->at[i] = to;
        to += bytes;
    }
    if (gshmem_kernel_rank<scope>() == 0 && !status)
        status = gshmem_kernel_quiet_on(c);
    return gshmem_kernel_agree<scope>(status);
}

/* out = n elements at source of all members combined, beginning with this one; out may be source.
 */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_combine_members(int op,
                                                            const struct gshmem_device_team *t,
                                                            T *out, const T *source, size_t n)
{
    const uint32_t members = (uint32_t)t->ctx.n_pes;
    struct gshmem_kernel_operands operands;
    gshmem_status_t status = GSHMEM_OK;

    if (members == 1 && out != source)
        gshmem_kernel_copy_apart<scope>(out, source, n * sizeof(T));
    for (uint32_t first = 1, end; first < members; first = end) {
        end = members - first < GSHMEM_OPERANDS ? members : first + GSHMEM_OPERANDS;
        if (first > 1)
            gshmem_kernel_sync<scope>(); /* pieces are not the same ones for each thread */
        for (size_t at = 0; at < n; at += operands.bytes / sizeof(T)) {
            status = gshmem_kernel_operands<scope>(t, (const char *)(source + at),
                                                   (n - at) * sizeof(T), first, end, &operands);
            if (status)
                return status;
            gshmem_kernel_combine_all<scope>(op, out + at, (first == 1 ? source : out) + at,
                                             &operands);
        }
    }
    return GSHMEM_OK;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* What differs between reductions of equal size. */
template <class T> GSHMEM_KERNEL uint32_t gshmem_kernel_variant(int op)
{
    return (uint32_t)op << 5 | (uint32_t)((T)0.5 != (T)0) << 4 | (uint32_t)((T)-1 < (T)0) << 3 |
           (uint32_t)sizeof(T) >> 1;
}

/* In place works, as no other member reads or writes this one's part, of any member. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_large(int op, const struct gshmem_device_team *t,
                                                         const struct gshmem_kernel_call *call)
{
    const struct gshmem_kernel_part part = gshmem_kernel_part(&t->ctx, call->dest_bytes);
    T *mine = (T *)((char *)call->dest + part.begin);
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);

    if (status)
        return status;
    status = gshmem_kernel_combine_members<scope>(
        op, t, mine, (const T *)((const char *)call->source + part.begin), part.bytes / sizeof(T));
    gshmem_kernel_sync<scope>();
    if (!status)
        status = gshmem_kernel_send_all<scope>(&t->ctx, mine, mine, part.bytes);
    return gshmem_kernel_close<scope>(t, call, status);
}

template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_by(int op, gshmem_team_t team, T *dest,
                                                      const T *source, size_t n)
{
    GSHMEM_ONE_FOR_ALL(
        scope, (gshmem_kernel_reduce_by<GSHMEM_SCOPE_THREAD, T>(op, team, dest, source, n)));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t bytes = gshmem_kernel_times(n, sizeof(T));
    const size_t all = t ? gshmem_kernel_times(bytes, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_REDUCE,    dest, source, bytes, bytes,
        0,    gshmem_kernel_variant<T>(op)};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (all > GSHMEM_DEVICE_SYNC_DATA)
        return gshmem_kernel_reduce_large<scope, T>(op, t, &call);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = GSHMEM_BRINGS_ALL;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_combine_pieces<scope>(op, &r, dest, n);
    return status;
}

/* In place, dest is a part of the source that another member reads. The own part, which none reads,
 * takes the result until all have done with theirs. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reducescatter_large(
    int op, const struct gshmem_device_team *t, const struct gshmem_kernel_call *call, size_t n)
{
    T *dest = (T *)call->dest, *part = (T *)call->source + (size_t)t->ctx.my_pe * n;
    T *result = call->dest == call->source ? part : dest;
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);

    if (status)
        return status;
    status = gshmem_kernel_combine_members<scope>(op, t, result, part, n);
    status = gshmem_kernel_close<scope>(t, call, status);
    if (!status && result != dest)
        gshmem_kernel_copy_apart<scope>(dest, result, n * sizeof(T));
    gshmem_kernel_sync<scope>();
    return status;
}

template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reducescatter_by(int op, gshmem_team_t team, T *dest,
                                                             const T *source, size_t n)
{
    GSHMEM_ONE_FOR_ALL(
        scope, (gshmem_kernel_reducescatter_by<GSHMEM_SCOPE_THREAD, T>(op, team, dest, source, n)));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t bytes = gshmem_kernel_times(n, sizeof(T));
    const size_t all = t ? gshmem_kernel_times(bytes, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_REDUCESCATTER, dest, source, bytes, all,
        0,    gshmem_kernel_variant<T>(op)};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (!gshmem_kernel_small_each(t, all))
        return gshmem_kernel_reducescatter_large<scope, T>(op, t, &call, n);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = GSHMEM_BRINGS_EACH;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_combine_pieces<scope>(op, &r, dest, n);
    return status;
}

/* What the typed names lead to. */
template <int scope, class T, int op>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reduce(gshmem_team_t team, T *dest,
                                                        const T *source, size_t n)
{
    static_assert(op < GSHMEM_OP_AND || (T)0.5 == (T)0, "and, or and xor are for integers");
    return gshmem_kernel_reduce_by<scope>(op, team, dest, source, n);
}

template <int scope, class T, int op>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reducescatter(gshmem_team_t team, T *dest,
                                                               const T *source, size_t n)
{
    static_assert(op < GSHMEM_OP_AND || (T)0.5 == (T)0, "and, or and xor are for integers");
    return gshmem_kernel_reducescatter_by<scope>(op, team, dest, source, n);
}

/* ---- With the type and the operation known at run time -------------------------------------- */

/* A call that no PE can make. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reduce_none(enum gshmem_collective what, int type,
                                                             int op, gshmem_team_t team)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    gshmem_status_t mine = GSHMEM_OK;

    if (gshmem_kernel_rank<scope>() == 0)
        mine = gshmem_kernel_fault(team, what, GSHMEM_FAULT_OPERATION, NULL,
                                   (uint64_t)(uint32_t)type << 32 | (uint32_t)op);
    if (t) {
        struct gshmem_kernel_round r = gshmem_kernel_round(t, 0);
        return gshmem_kernel_meet<scope>(&r, mine);
    }
    return gshmem_kernel_agree<scope>(mine);
}

template <int scope, class T>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reduce_as(enum gshmem_collective what, int op,
                                                           gshmem_team_t team, void *dest,
                                                           const void *source, size_t n)
{
    return what == GSHMEM_COLLECTIVE_REDUCE
               ? gshmem_kernel_reduce_by<scope>(op, team, (T *)dest, (const T *)source, n)
               : gshmem_kernel_reducescatter_by<scope>(op, team, (T *)dest, (const T *)source, n);
}

template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_any(enum gshmem_collective what, int type,
                                                       int op, gshmem_team_t team, void *dest,
                                                       const void *source, size_t n)
{
    const bool real = type == GSHMEM_TYPE_FLOAT || type == GSHMEM_TYPE_DOUBLE;

    if ((unsigned)op >= (unsigned)(real ? GSHMEM_OP_AND : GSHMEM_OP_COUNT))
        return gshmem_kernel_reduce_none<scope>(what, type, op, team);
    switch (type) {
    case GSHMEM_TYPE_INT8:
        return gshmem_kernel_reduce_as<scope, int8_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_INT16:
        return gshmem_kernel_reduce_as<scope, int16_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_INT32:
        return gshmem_kernel_reduce_as<scope, int32_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_INT64:
        return gshmem_kernel_reduce_as<scope, int64_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_UINT8:
        return gshmem_kernel_reduce_as<scope, uint8_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_UINT16:
        return gshmem_kernel_reduce_as<scope, uint16_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_UINT32:
        return gshmem_kernel_reduce_as<scope, uint32_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_UINT64:
        return gshmem_kernel_reduce_as<scope, uint64_t>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_FLOAT:
        return gshmem_kernel_reduce_as<scope, float>(what, op, team, dest, source, n);
    case GSHMEM_TYPE_DOUBLE:
        return gshmem_kernel_reduce_as<scope, double>(what, op, team, dest, source, n);
    default:
        return gshmem_kernel_reduce_none<scope>(what, type, op, team);
    }
}

/* ---- By the names of gshmem.h, where they are described -------------------------------------
 *
 * Templates, so that who does not call them does not pay for all types and operations. */

template <int scope = GSHMEM_SCOPE_THREAD>
GSHMEM_EITHER gshmem_status_t gshmem_reduce(gshmem_team_t team, enum gshmem_type type,
                                            enum gshmem_op op, void *dest, const void *source,
                                            size_t n)
{
    GSHMEM_RETURN((gshmem_kernel_reduce_any<scope>(GSHMEM_COLLECTIVE_REDUCE, type, op, team, dest,
                                                   source, n)),
                  gshmem_on_host::gshmem_reduce(team, type, op, dest, source, n));
}

template <int scope = GSHMEM_SCOPE_THREAD>
GSHMEM_EITHER gshmem_status_t gshmem_reducescatter(gshmem_team_t team, enum gshmem_type type,
                                                   enum gshmem_op op, void *dest,
                                                   const void *source, size_t n)
{
    GSHMEM_RETURN((gshmem_kernel_reduce_any<scope>(GSHMEM_COLLECTIVE_REDUCESCATTER, type, op, team,
                                                   dest, source, n)),
                  gshmem_on_host::gshmem_reducescatter(team, type, op, dest, source, n));
}

#define GSHMEM_KERNEL_REDUCTIONS(ending, scope)                                                    \
    template <int by = scope>                                                                      \
    GSHMEM_KERNEL gshmem_status_t gshmem_reduce##ending(gshmem_team_t team, enum gshmem_type type, \
                                                        enum gshmem_op op, void *dest,             \
                                                        const void *source, size_t n)              \
    {                                                                                              \
        return gshmem_kernel_reduce_any<by>(GSHMEM_COLLECTIVE_REDUCE, type, op, team, dest,        \
                                            source, n);                                            \
    }                                                                                              \
    template <int by = scope>                                                                      \
    GSHMEM_KERNEL gshmem_status_t gshmem_reducescatter##ending(                                    \
        gshmem_team_t team, enum gshmem_type type, enum gshmem_op op, void *dest,                  \
        const void *source, size_t n)                                                              \
    {                                                                                              \
        return gshmem_kernel_reduce_any<by>(GSHMEM_COLLECTIVE_REDUCESCATTER, type, op, team, dest, \
                                            source, n);                                            \
    }

GSHMEM_KERNEL_REDUCTIONS(_warp, GSHMEM_SCOPE_WARP)
GSHMEM_KERNEL_REDUCTIONS(_block, GSHMEM_SCOPE_BLOCK)
#undef GSHMEM_KERNEL_REDUCTIONS

#endif

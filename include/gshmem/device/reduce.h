/* Reductions in kernels; and the host's by the same names.
 *
 * - Small ones: every member gets the elements of all with one round, and combines them in the
 *   order of the members.
 * - Large ones: each member combines its part of the elements of all members, beginning with its
 *   own, and puts the result to all.
 *
 * Either way the order depends on the members and the size alone, and all get the same bits. If a
 * block calls, and a switch between GPUs knows the type and the operation, the switch combines and
 * distributes at once, in an order of its own (gshmem/device/multicast.h). */
#ifndef GSHMEM_DEVICE_REDUCE_H
#define GSHMEM_DEVICE_REDUCE_H

#include "gshmem/device/call.h"

/* ---- Combining ------------------------------------------------------------------------------ */

/* As on the host, the table in gshmem/type.h says what the result is. If the operation is a
 * constant, the compiler removes the switch. The caller has checked that the type has the
 * operation; any other operation ends the kernel. */
template <bool integers> struct gshmem_kernel_op;

#define GSHMEM_RESULT_computes(result, type)                                                       \
    {                                                                                              \
        const type x = (type)first, y = (type)second;                                              \
        return (T)(result);                                                                        \
    }
#define GSHMEM_RESULT_chooses(result, type)                                                        \
    {                                                                                              \
        const T x = first, y = second;                                                             \
        return (result) ? x : y;                                                                   \
    }
#define GSHMEM_CASE_yes(op, how, result, type)                                                     \
    case GSHMEM_OP_##op:                                                                           \
        GSHMEM_RESULT_##how(result, type)
#define GSHMEM_CASE_no(op, how, result, type)

template <> struct gshmem_kernel_op<true> {
    template <class T> GSHMEM_KERNEL T combine(int op, T first, T second)
    {
        typedef typename gshmem_unsigned<sizeof(T)>::wide wide;

        switch (op) {
#define X(name, number, text, integers, reals, pairs, how, result, with)                           \
    GSHMEM_CASE_##integers(name, how, result, wide)
            GSHMEM_OP_TABLE(X, )
#undef X
        }
        __trap();
        return first;
    }
};

template <> struct gshmem_kernel_op<false> {
    template <class T> GSHMEM_KERNEL T combine(int op, T first, T second)
    {
        switch (op) {
#define X(name, number, text, integers, reals, pairs, how, result, with)                           \
    GSHMEM_CASE_##reals(name, how, result, T)
            GSHMEM_OP_TABLE(X, )
#undef X
        }
        __trap();
        return first;
    }
};

#undef GSHMEM_CASE_no
#undef GSHMEM_CASE_yes
#undef GSHMEM_RESULT_chooses
#undef GSHMEM_RESULT_computes

template <class T> GSHMEM_KERNEL T gshmem_kernel_combine(int op, T x, T y)
{
    constexpr enum gshmem_class of = gshmem_class_of(gshmem_type_of<T>());

    static_assert(of != GSHMEM_CLASS_none, "the table in gshmem/type.h has a row for the type");
    return gshmem_kernel_op<of == GSHMEM_CLASS_sint || of == GSHMEM_CLASS_uint>::combine(op, x, y);
}

/* How many operands are combined with the first one, in order. */
#define GSHMEM_OPERANDS 8

struct gshmem_kernel_operands {
    const void *at[GSHMEM_OPERANDS];
    uint32_t n;
};

/* out[i] = first[i] op at[0][i] op at[1][i] …, n elements; out may be first. */
template <int scope, class T>
GSHMEM_KERNEL void gshmem_kernel_combine_all(int op, T *out, const T *first,
                                             const struct gshmem_kernel_operands *operands,
                                             size_t n)
{
    for (size_t i = gshmem_kernel_rank<scope>(); i < n; i += gshmem_kernel_size<scope>()) {
        T value = first[i];
        for (uint32_t j = 0; j < operands->n; j++)
            value = gshmem_kernel_combine(op, value, ((const T *)operands->at[j])[i]);
        out[i] = value;
    }
}

/* ---- Small: data that came with a round ------------------------------------------------------ */

/* Block i is that of the member i places before this one. Blocks are combined in the order of the
 * members: that of member 0 first, then by decreasing block number, cyclically. */
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

/* ---- Large: from the members' own memory ----------------------------------------------------
 *
 * Sources that cannot be read in place are copied to scratch memory in chunks. There is room for
 * three chunks of each member: while one is combined, the proxy gets the next two. */

#define GSHMEM_PIECES 3u

/* Elements of some members; [i]: those of the member `first` + i places after this one. */
struct gshmem_kernel_sources {
    const char *source;                 /* this member's */
    const char *there[GSHMEM_OPERANDS]; /* NULL: has to be copied first */
    uint32_t first, n, away;
    size_t bytes;                /* of each member */
    size_t piece;                /* of a chunk */
    uint64_t end[GSHMEM_PIECES]; /* positions of the command that gets a chunk; of thread 0 */
};

GSHMEM_KERNEL_RARE void gshmem_kernel_sources(const struct gshmem_device_team *t,
                                              struct gshmem_kernel_sources *s)
{
    s->away = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        int pe = (int)gshmem_kernel_after(&t->ctx, s->first + i);
        s->there[i] = (const char *)gshmem_kernel_reach(&t->ctx, s->source, s->bytes, pe);
        s->away += !s->there[i];
    }
    s->piece = s->away ? t->scratch_bytes / (GSHMEM_PIECES * s->away) & ~(size_t)63 : s->bytes;
}

/* The place of a chunk of the j-th member among those whose sources are copied. */
GSHMEM_KERNEL char *gshmem_kernel_place_of(const struct gshmem_device_team *t,
                                           const struct gshmem_kernel_sources *s, size_t piece,
                                           uint32_t j)
{
    return t->scratch + (piece % GSHMEM_PIECES * s->away + j) * s->piece;
}

GSHMEM_KERNEL size_t gshmem_kernel_piece_bytes(const struct gshmem_kernel_sources *s, size_t piece)
{
    size_t left = s->bytes - piece * s->piece;

    return left < s->piece ? left : s->piece;
}

/* Posts the get of a chunk, if there is one of that number; called by thread 0. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_ask_piece(const struct gshmem_device_team *t,
                                                           struct gshmem_kernel_sources *s,
                                                           size_t piece)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!s->away || piece * s->piece >= s->bytes)
        return GSHMEM_OK;
    s->end[piece % GSHMEM_PIECES] = 0;
    for (uint32_t i = 0, j = 0; i < s->n && !status; i++) {
        if (s->there[i])
            continue;
        status = gshmem_kernel_post_get<true>(
            &t->ctx, gshmem_kernel_place_of(t, s, piece, j++), s->source + piece * s->piece,
            gshmem_kernel_piece_bytes(s, piece), (int)gshmem_kernel_after(&t->ctx, s->first + i),
            &s->end[piece % GSHMEM_PIECES]);
    }
    return status;
}

/* Waits for a chunk, and requests one more; called by all threads, after they have combined the
 * chunk before. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_next_piece(const struct gshmem_device_team *t,
                                                            struct gshmem_kernel_sources *s,
                                                            size_t piece, gshmem_status_t asked,
                                                            struct gshmem_kernel_operands *operands)
{
    const struct gshmem_device_ctx *c = &t->ctx;

    if (s->away) {
        if (gshmem_kernel_rank<scope>() == 0 && !asked)
            asked =
                gshmem_kernel_quiet_to(c, gshmem_kernel_channel(c), s->end[piece % GSHMEM_PIECES]);
        asked = gshmem_kernel_agree<scope>(asked);
    }
    operands->n = s->n;
    for (uint32_t i = 0, j = 0; i < s->n; i++)
        operands->at[i] =
            s->there[i] ? s->there[i] + piece * s->piece : gshmem_kernel_place_of(t, s, piece, j++);
    return asked;
}

/* Combines the elements at first with those of the sources, and stores the result in out. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_combine_sources(int op,
                                                            const struct gshmem_device_team *t,
                                                            T *out, const T *first,
                                                            struct gshmem_kernel_sources *s)
{
    const bool asks = gshmem_kernel_rank<scope>() == 0;
    struct gshmem_kernel_operands operands;
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sources(t, s);
    for (size_t piece = 0; asks && piece < GSHMEM_PIECES - 1 && !status; piece++)
        status = gshmem_kernel_ask_piece(t, s, piece);
    for (size_t piece = 0; piece * s->piece < s->bytes; piece++) {
        const size_t at = piece * s->piece / sizeof(T);
        status = gshmem_kernel_next_piece<scope>(t, s, piece, status, &operands);
        if (status)
            return status;
        if (asks) /* into the place of the chunk before */
            status = gshmem_kernel_ask_piece(t, s, piece + GSHMEM_PIECES - 1);
        gshmem_kernel_combine_all<scope>(op, out + at, first + at, &operands,
                                         gshmem_kernel_piece_bytes(s, piece) / sizeof(T));
    }
    return GSHMEM_OK;
}

/* Combines n elements at source of all members, beginning with this one, and stores them in out,
 * which may be source. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_combine_members(int op,
                                                            const struct gshmem_device_team *t,
                                                            T *out, const T *source, size_t n)
{
    const uint32_t members = (uint32_t)t->ctx.n_pes;
    struct gshmem_kernel_sources s = {};
    gshmem_status_t status = GSHMEM_OK;

    if (members == 1 && out != source)
        gshmem_kernel_copy_apart<scope>(out, source, n * sizeof(T));
    s.source = (const char *)source;
    s.bytes = n * sizeof(T);
    for (s.first = 1; s.first < members && !status; s.first += s.n) {
        s.n = members - s.first < GSHMEM_OPERANDS ? members - s.first : GSHMEM_OPERANDS;
        if (s.first > 1)
            gshmem_kernel_sync<scope>(); /* in this pass a thread may have other elements */
        status = gshmem_kernel_combine_sources<scope>(op, t, out, s.first == 1 ? source : out, &s);
    }
    return status;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* A number for the type and the operation, by which reductions of equal size differ. */
template <class T> GSHMEM_KERNEL uint32_t gshmem_kernel_variant(int op)
{
    static_assert((int)GSHMEM_OP_COUNT <= 8 && (int)GSHMEM_TYPE_COUNT <= 32,
                  "both fit into 8 bits");
    return (uint32_t)op << 5 | (uint32_t)gshmem_type_of<T>();
}

/* Reduction, and reduce-scatter if `scatters`. n: the elements that a reduce-scatter gives to each
 * member. A reduction works in place: this member's part is read and written by this member alone,
 * in the memory of every member. In a reduce-scatter in place, another member reads the part of the
 * source that is dest. Therefore the result is first stored in this member's part of the source,
 * which no other member reads, and copied to dest when all members are done. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_large(bool scatters, int op,
                                                         const struct gshmem_device_team *t,
                                                         const struct gshmem_kernel_call *call,
                                                         size_t n)
{
    const struct gshmem_kernel_part part = gshmem_kernel_part(&t->ctx, call->dest_bytes);
    const size_t begin = scatters ? (uint32_t)t->ctx.my_pe * n * sizeof(T) : part.begin;
    const size_t bytes = scatters ? n * sizeof(T) : part.bytes;
    T *source = (T *)((char *)call->source + begin), *dest = (T *)call->dest;
    T *mine = !scatters                    ? (T *)((char *)dest + begin)
              : call->dest == call->source ? source
                                           : dest;
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);

    if (status)
        return status;
    const size_t done = gshmem_kernel_switch<scope, T>(!scatters, op, t, mine, source, bytes);
    const size_t left = bytes - done;
    T *rest = mine + done / sizeof(T);
    status = gshmem_kernel_combine_members<scope>(op, t, rest, source + done / sizeof(T),
                                                  left / sizeof(T));
    if (!scatters) {
        gshmem_kernel_sync<scope>();
        if (!status)
            status = gshmem_kernel_send_all<scope>(&t->ctx, rest, rest, left);
        return gshmem_kernel_close<scope>(t, call, status);
    }
    status = gshmem_kernel_close<scope>(t, call, status);
    if (!status && mine != dest)
        gshmem_kernel_copy_apart<scope>(dest, mine, n * sizeof(T));
    gshmem_kernel_sync<scope>();
    return status;
}

/* Reduction or reduce-scatter. It is inline: a caller with a constant `what` contains no code of
 * the other. n: the elements that each member gets. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_by(enum gshmem_collective what, int op,
                                                      gshmem_team_t team, T *dest,
                                                      const T *source, size_t n)
{
    GSHMEM_ONE_FOR_ALL(
        scope, (gshmem_kernel_reduce_by<GSHMEM_SCOPE_THREAD, T>(what, op, team, dest, source, n)));
    const bool scatters = what == GSHMEM_COLLECTIVE_REDUCESCATTER;
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t bytes = gshmem_kernel_times(n, sizeof(T));
    const size_t all = t ? gshmem_kernel_times(bytes, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, what, dest, source, bytes, scatters ? all : bytes, 0, gshmem_kernel_variant<T>(op)};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (scatters ? !gshmem_kernel_small_each(t, all) : all > t->sync_data)
        return gshmem_kernel_reduce_large<scope, T>(scatters, op, t, &call, n);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = scatters ? GSHMEM_BRINGS_EACH : GSHMEM_BRINGS_ALL;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_combine_pieces<scope>(op, &r, dest, n);
    return status;
}

/* The typed names call this. */
template <int scope, class T, int op>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reduce(gshmem_team_t team, T *dest,
                                                        const T *source, size_t n)
{
    static_assert(gshmem_op_is_for(op, gshmem_class_of(gshmem_type_of<T>())),
                  "the table in gshmem/type.h has the operation for the type");
    return gshmem_kernel_reduce_by<scope>(GSHMEM_COLLECTIVE_REDUCE, op, team, dest, source, n);
}

template <int scope, class T, int op>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reducescatter(gshmem_team_t team, T *dest,
                                                               const T *source, size_t n)
{
    static_assert(gshmem_op_is_for(op, gshmem_class_of(gshmem_type_of<T>())),
                  "the table in gshmem/type.h has the operation for the type");
    return gshmem_kernel_reduce_by<scope>(GSHMEM_COLLECTIVE_REDUCESCATTER, op, team, dest, source,
                                          n);
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
        GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_ARRIVE, team);
        return gshmem_kernel_meet<scope>(&r, mine);
    }
    return gshmem_kernel_agree<scope>(mine);
}

template <int scope, class T>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_reduce_as(enum gshmem_collective what, int op,
                                                           gshmem_team_t team, void *dest,
                                                           const void *source, size_t n)
{
    return gshmem_kernel_reduce_by<scope>(what, op, team, (T *)dest, (const T *)source, n);
}

/* The types that programs' kernels have without a header of their own. */
#define GSHMEM_CASE_sint(type, in_kernels)                                                         \
    case type:                                                                                     \
        return gshmem_kernel_reduce_as<scope, in_kernels>(what, op, team, dest, source, n);
#define GSHMEM_CASE_uint GSHMEM_CASE_sint
#define GSHMEM_CASE_real GSHMEM_CASE_sint
#define GSHMEM_CASE_wide(type, in_kernels)
#define GSHMEM_CASE_small(type, in_kernels)
#define GSHMEM_CASE_pair(type, in_kernels)

template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_reduce_any(enum gshmem_collective what, int type,
                                                       int op, gshmem_team_t team, void *dest,
                                                       const void *source, size_t n)
{
    if (!gshmem_op_is_for(op, gshmem_class_of(type)))
        return gshmem_kernel_reduce_none<scope>(what, type, op, team);
    switch (type) {
#define X(name, number, text, c_type, in_kernels, class, ...)                                      \
    GSHMEM_CASE_##class(GSHMEM_TYPE_##name, in_kernels)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return gshmem_kernel_reduce_none<scope>(what, type, op, team);
}

#undef GSHMEM_CASE_pair
#undef GSHMEM_CASE_small
#undef GSHMEM_CASE_wide
#undef GSHMEM_CASE_real
#undef GSHMEM_CASE_uint
#undef GSHMEM_CASE_sint

/* ---- By the names of gshmem.h, where they are described -------------------------------------
 *
 * Templates, so that a program which does not call them does not compile all types and
 * operations. */

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

/* NVSHMEM's tiles: two-dimensional pieces of matrices, which a thread, warp, warpgroup or block
 * puts, gets, broadcasts, gathers and reduces.
 *
 * A tensor is an address with a shape and strides, in elements; a missing dimension has one. With
 * a boundary, elements at start_coord + index are left out where that is not below it; an empty
 * tuple as start_coord and boundary leaves none out. Elements that lie side by side on both sides
 * travel as one put or get. Which algorithm is named decides what is waited for and who gets the
 * result, not how data moves: a mapped PE is read and written directly, any other by its proxy.
 *
 * Puts, gets and what is pushed are complete after a quiet, or after tile_collective_wait. A
 * source must be ready before a push. A reduction synchronizes its team first. All return
 * NVSHMEMX_SUCCESS, or why not. */
#ifndef NVSHMEM_DEVICE_TILE_H
#define NVSHMEM_DEVICE_TILE_H

#include "nvshmem/device/group.h"
#include "nvshmem/device/tensor.h"

#if defined(GSHMEM_CUDA) && __cplusplus >= 201703L

/* Scopes of tiles: those of gshmem/device/scope.h, and one more. */
static const int NVSHMEM_TILE_WARPGROUP = GSHMEM_SCOPE_BLOCK + 1;

template <int scope> GSHMEM_KERNEL unsigned nvshmem_tile_rank(void)
{
    if (scope == NVSHMEM_TILE_WARPGROUP)
        return gshmem_kernel_thread() % NVSHMEM_WARPGROUP;
    return gshmem_kernel_rank<scope>();
}

template <int scope> GSHMEM_KERNEL unsigned nvshmem_tile_threads(void)
{
    if (scope != NVSHMEM_TILE_WARPGROUP)
        return gshmem_kernel_size<scope>();
    const unsigned left = gshmem_kernel_size<GSHMEM_SCOPE_BLOCK>() -
                          gshmem_kernel_thread() / NVSHMEM_WARPGROUP * NVSHMEM_WARPGROUP;
    return left < NVSHMEM_WARPGROUP ? left : NVSHMEM_WARPGROUP;
}

/* Element i of a tuple; `otherwise` where it has not that many. */
template <int i, class Tuple> GSHMEM_EITHER int nvshmem_tile_part(const Tuple &tuple, int otherwise)
{
    if constexpr (i < (int)cuda::std::tuple_size<Tuple>::value) {
        using cuda::std::get;
        return (int)get<i>(tuple);
    } else {
        (void)tuple;
        return otherwise;
    }
}

/* How many indices of dimension i are below the boundary. */
template <int i, class Tuple>
GSHMEM_EITHER int nvshmem_tile_below(int size, const Tuple &start, const Tuple &boundary)
{
    if constexpr (cuda::std::tuple_size<Tuple>::value == 0) {
        return size;
    } else {
        const int left = nvshmem_tile_part<i>(boundary, size) - nvshmem_tile_part<i>(start, 0);
        return left < 0 ? 0 : left < size ? left : size;
    }
}

/* What two tensors have in common: which elements, and how these lie. Dimension 0 of it is the one
 * along which elements lie side by side, if there is one. */
struct nvshmem_tile {
    size_t size[2];        /* without what is beyond the boundary */
    size_t from[2], to[2]; /* strides, in elements */
};

template <class Src, class Dst, class Tuple>
GSHMEM_KERNEL struct nvshmem_tile nvshmem_tile_of(const Src &src, const Dst &dst,
                                                  const Tuple &start, const Tuple &boundary)
{
    const auto shape = src.shape();
    const auto from = src.stride();
    const auto to = dst.stride();
    struct nvshmem_tile t = {
        {(size_t)nvshmem_tile_below<0>(nvshmem_tile_part<0>(shape, 1), start, boundary),
         (size_t)nvshmem_tile_below<1>(nvshmem_tile_part<1>(shape, 1), start, boundary)},
        {(size_t)nvshmem_tile_part<0>(from, 0), (size_t)nvshmem_tile_part<1>(from, 0)},
        {(size_t)nvshmem_tile_part<0>(to, 0), (size_t)nvshmem_tile_part<1>(to, 0)}};

    if (t.from[1] == 1 && t.to[1] == 1 && !(t.from[0] == 1 && t.to[0] == 1))
        return {{t.size[1], t.size[0]}, {t.from[1], t.from[0]}, {t.to[1], t.to[0]}};
    return t;
}

template <class Src, class Dst>
GSHMEM_KERNEL bool nvshmem_tile_good(const Src &src, const Dst &dst, uint64_t flag)
{
    static_assert(cuda::std::is_same<typename Src::value_type, typename Dst::value_type>::value,
                  "source and destination have elements of one type");
    return src.data() && dst.data() && flag == 0;
}

/* ---- Put and get --------------------------------------------------------------------------- */

/* The elements as runs of equal length, each of which lies side by side on both sides. */
struct nvshmem_tile_runs {
    size_t length;  /* of a run, in elements */
    size_t columns; /* runs that have the same index of dimension 1 */
    size_t runs;
};

GSHMEM_KERNEL struct nvshmem_tile_runs nvshmem_tile_runs_of(const struct nvshmem_tile &t)
{
    const size_t n = t.size[0] * t.size[1];

    if (n == 0 || t.from[0] != 1 || t.to[0] != 1)
        return {1, t.size[0], n};
    if (t.size[1] == 1 || (t.from[1] == t.size[0] && t.to[1] == t.size[0]))
        return {n, 1, 1};
    return {t.size[0], 1, t.size[1]};
}

/* From so many bytes on a run is a warp's work, and not a thread's. */
#define NVSHMEM_TILE_LONG_RUN 512u

template <int scope, bool put>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_copy(void *dest, const void *source, size_t bytes,
                                                int pe)
{
    return put ? gshmem_kernel_put<scope, true>(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe)
               : gshmem_kernel_get<scope, true>(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

/* The runs `first`, first + step, … are copied by the scope. */
template <int scope, bool put, class T>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_copy_runs(const struct nvshmem_tile &t,
                                                     const struct nvshmem_tile_runs &r, T *dest,
                                                     const T *source, size_t first, size_t step,
                                                     int pe)
{
    gshmem_status_t status = GSHMEM_OK;

    for (size_t i = first; i < r.runs && !status; i += step) {
        const size_t x = i % r.columns, y = i / r.columns;
        status = nvshmem_tile_copy<scope, put>(dest + x * t.to[0] + y * t.to[1],
                                               source + x * t.from[0] + y * t.from[1],
                                               r.length * sizeof(T), pe);
    }
    return status;
}

template <int scope, bool put, class T>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_move(const struct nvshmem_tile &t, T *dest,
                                                const T *source, int pe)
{
    const struct nvshmem_tile_runs r = nvshmem_tile_runs_of(t);
    const unsigned rank = nvshmem_tile_rank<scope>(), threads = nvshmem_tile_threads<scope>();

    if (scope == GSHMEM_SCOPE_BLOCK && r.runs == 1)
        return nvshmem_tile_copy<GSHMEM_SCOPE_BLOCK, put>(dest, source, r.length * sizeof(T), pe);
    if (scope != GSHMEM_SCOPE_THREAD && r.length * sizeof(T) >= NVSHMEM_TILE_LONG_RUN)
        return nvshmem_tile_copy_runs<GSHMEM_SCOPE_WARP, put>(t, r, dest, source, rank / 32,
                                                              (threads + 31) / 32, pe);
    return nvshmem_tile_copy_runs<GSHMEM_SCOPE_THREAD, put>(t, r, dest, source, rank, threads, pe);
}

/* ---- Collectives --------------------------------------------------------------------------- */

/* All members have come, and with `complete` all that they have put has arrived. */
template <int scope, bool complete>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_meet(gshmem_team_t team)
{
    if constexpr (scope == NVSHMEM_TILE_WARPGROUP)
        return (gshmem_status_t)nvshmemx_barrier_warpgroup(team);
    else
        return gshmem_kernel_sync_team<scope, complete>(team);
}

/* Puts the tile to all members, this one among them. */
template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_push(gshmem_team_t team, const struct nvshmem_tile &t,
                                                T *dest, const T *source)
{
    const int n = gshmem_team_n_pes(team), me = gshmem_team_my_pe(team);
    gshmem_status_t status = n < 1 ? GSHMEM_ERR_ARGUMENT : GSHMEM_OK;

    for (int i = 0; i < n && !status; i++)
        status = nvshmem_tile_move<scope, true>(
            t, dest, source, gshmem_team_translate_pe(team, (me + i) % n, GSHMEM_TEAM_WORLD));
    return status;
}

/* The elements of all members, combined in their order; `everywhere`: the result goes to all. Each
 * thread combines elements of its own. */
template <int scope, int op, bool everywhere, class T>
GSHMEM_KERNEL gshmem_status_t nvshmem_tile_combine(gshmem_team_t team, const struct nvshmem_tile &t,
                                                   T *dest, const T *source)
{
    const int n = gshmem_team_n_pes(team);
    const size_t all = t.size[0] * t.size[1];
    gshmem_status_t status = GSHMEM_OK;

    for (size_t i = nvshmem_tile_rank<scope>(); i < all && !status;
         i += nvshmem_tile_threads<scope>()) {
        const size_t x = i % t.size[0], y = i / t.size[0];
        const T *from = source + x * t.from[0] + y * t.from[1];
        T *to = dest + x * t.to[0] + y * t.to[1];
        T value = gshmem_kernel_g(GSHMEM_CTX_DEFAULT, from,
                                  gshmem_team_translate_pe(team, 0, GSHMEM_TEAM_WORLD));
        for (int p = 1; p < n; p++)
            value = gshmem_kernel_combine(
                op, value,
                gshmem_kernel_g(GSHMEM_CTX_DEFAULT, from,
                                gshmem_team_translate_pe(team, p, GSHMEM_TEAM_WORLD)));
        if (!everywhere)
            *to = value;
        for (int p = 0; everywhere && p < n && !status; p++)
            status = gshmem_kernel_p(GSHMEM_CTX_DEFAULT, to, value,
                                     gshmem_team_translate_pe(team, p, GSHMEM_TEAM_WORLD));
    }
    return status;
}

/* root: who combines; -1: each member, for itself. `everywhere`: for all. */
template <int scope, int op, bool everywhere, class Src, class Dst, class Tuple>
GSHMEM_KERNEL int nvshmem_tile_reduce(nvshmem_team_t team, const Src &src, const Dst &dst,
                                      const Tuple &start, const Tuple &boundary, int root,
                                      uint64_t flag)
{
    const typename Src::value_type *source = src.data();
    const int me = gshmem_team_my_pe(team);

    if (!nvshmem_tile_good(src, dst, flag) || me < 0 || root < -1 ||
        root >= gshmem_team_n_pes(team))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    const gshmem_status_t status = nvshmem_tile_meet<scope, false>(team);
    if (status || (root >= 0 && root != me))
        return (int)status;
    return (int)nvshmem_tile_combine<scope, op, everywhere>(
        team, nvshmem_tile_of(src, dst, start, boundary), dst.data(), source);
}

/* A gathered tensor, in parts of its members: they follow each other along the dimension in which
 * both are side by side, then along the other. */
struct nvshmem_tile_parts {
    size_t size[2]; /* of a part; first the dimension along which parts follow each other */
    size_t whole[2], step[2];
};

template <class Src, class Dst>
GSHMEM_KERNEL struct nvshmem_tile_parts nvshmem_tile_parts_of(const Src &src, const Dst &dst)
{
    const auto part = src.shape();
    const auto whole = dst.shape();
    const auto from = src.stride();
    const auto to = dst.stride();
    const struct nvshmem_tile_parts p = {
        {(size_t)nvshmem_tile_part<0>(part, 1), (size_t)nvshmem_tile_part<1>(part, 1)},
        {(size_t)nvshmem_tile_part<0>(whole, 1), (size_t)nvshmem_tile_part<1>(whole, 1)},
        {(size_t)nvshmem_tile_part<0>(to, 0), (size_t)nvshmem_tile_part<1>(to, 0)}};

    if (nvshmem_tile_part<1>(from, 0) == 1 && nvshmem_tile_part<1>(to, 0) == 1)
        return {{p.size[1], p.size[0]}, {p.whole[1], p.whole[0]}, {p.step[1], p.step[0]}};
    return p;
}

/* Whether n parts are the whole. */
GSHMEM_KERNEL bool nvshmem_tile_parts_fit(const struct nvshmem_tile_parts &p, size_t n)
{
    return p.size[0] * p.size[1] * n == p.whole[0] * p.whole[1] &&
           (p.size[0] == 0 || p.whole[0] % p.size[0] == 0) &&
           (p.size[1] == 0 || p.whole[1] % p.size[1] == 0);
}

GSHMEM_KERNEL size_t nvshmem_tile_place(const struct nvshmem_tile_parts &p, size_t me)
{
    const size_t at = me * p.size[0];

    return at % p.whole[0] * p.step[0] + at / p.whole[0] * p.size[1] * p.step[1];
}

/* ---- What the calls have in common, by scope ----------------------------------------------- */

template <int scope, bool put, class Src, class Dst, class Tuple>
GSHMEM_KERNEL int nvshmem_tile_transfer(const Src &src, const Dst &dst, const Tuple &start,
                                        const Tuple &boundary, int pe, uint64_t flag)
{
    const typename Src::value_type *source = src.data();

    if (!nvshmem_tile_good(src, dst, flag))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    return (int)nvshmem_tile_move<scope, put>(nvshmem_tile_of(src, dst, start, boundary),
                                              dst.data(), source, pe);
}

/* From the caller to all members. */
template <int scope, class Src, class Dst, class Tuple>
GSHMEM_KERNEL int nvshmem_tile_broadcast(gshmem_team_t team, const Src &src, const Dst &dst,
                                         const Tuple &start, const Tuple &boundary, uint64_t flag)
{
    const typename Src::value_type *source = src.data();

    if (!nvshmem_tile_good(src, dst, flag))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    return (int)nvshmem_tile_push<scope>(team, nvshmem_tile_of(src, dst, start, boundary),
                                         dst.data(), source);
}

/* dst has room for the tiles of all members. */
template <int scope, class Src, class Dst, class Tuple>
GSHMEM_KERNEL int nvshmem_tile_allgather(gshmem_team_t team, const Src &src, const Dst &dst,
                                         const Tuple &start, const Tuple &boundary, uint64_t flag)
{
    const typename Src::value_type *source = src.data();
    const struct nvshmem_tile_parts parts = nvshmem_tile_parts_of(src, dst);
    const int n = gshmem_team_n_pes(team);

    if (!nvshmem_tile_good(src, dst, flag) || n < 1 || !nvshmem_tile_parts_fit(parts, (size_t)n))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    if (parts.whole[0] == 0 || parts.whole[1] == 0)
        return NVSHMEMX_SUCCESS;
    return (int)nvshmem_tile_push<scope>(
        team, nvshmem_tile_of(src, dst, start, boundary),
        dst.data() + nvshmem_tile_place(parts, (size_t)gshmem_team_my_pe(team)), source);
}

/* By all threads of the scope, on all members. */
template <int scope, nvshmemx::tile_coll_algo_t algo>
GSHMEM_KERNEL int nvshmem_tile_wait(gshmem_team_t team, uint64_t flag)
{
    static_assert(algo != nvshmemx::NVLS_TWO_SHOT_PULL_NBI, "tiles have no such algorithm");
    if (flag)
        return NVSHMEMX_ERROR_INVALID_VALUE;
    if (algo != nvshmemx::NVLS_ONE_SHOT_PULL_NBI || scope == NVSHMEM_TILE_WARPGROUP)
        return (int)nvshmem_tile_meet<scope, true>(team);
    gshmem_kernel_sync<scope>();
    return NVSHMEMX_SUCCESS;
}

/* ---- Names --------------------------------------------------------------------------------- */

namespace nvshmemx
{

#define NVSHMEM_TILE_TYPES template <class Src, class Dst, class Tuple, tile_algo_t algo>
#define NVSHMEM_TILE_COLLECTIVE(which)                                                             \
    template <class Src, class Dst, class Tuple, tile_coll_algo_t algo,                            \
              typename cuda::std::enable_if<algo == which, int>::type = 0>

/* One shot: each member combines for itself, or `root` for itself alone. Two shots: `root` combines
 * for all. */
#define NVSHMEM_TILE_REDUCTION(ending, scope, name, op)                                            \
    NVSHMEM_TILE_COLLECTIVE(NVLS_ONE_SHOT_PULL_NBI)                                                \
    GSHMEM_KERNEL int tile_##name##_reduce##ending(                                                \
        nvshmem_team_t team, Src src, Dst dst, Tuple start_coord, Tuple boundary, uint64_t flag)   \
    {                                                                                              \
        return nvshmem_tile_reduce<scope, op, false>(team, src, dst, start_coord, boundary, -1,    \
                                                     flag);                                        \
    }                                                                                              \
    NVSHMEM_TILE_COLLECTIVE(NVLS_ONE_SHOT_PULL_NBI)                                                \
    GSHMEM_KERNEL int tile_##name##_reduce##ending(nvshmem_team_t team, Src src, Dst dst,          \
                                                   Tuple start_coord, Tuple boundary, int,         \
                                                   uint64_t flag)                                  \
    {                                                                                              \
        return nvshmem_tile_reduce<scope, op, false>(team, src, dst, start_coord, boundary, -1,    \
                                                     flag);                                        \
    }                                                                                              \
    NVSHMEM_TILE_COLLECTIVE(NVLS_TWO_SHOT_PUSH_NBI)                                                \
    GSHMEM_KERNEL int tile_##name##_reduce##ending(nvshmem_team_t team, Src src, Dst dst,          \
                                                   Tuple start_coord, Tuple boundary, int root,    \
                                                   uint64_t flag)                                  \
    {                                                                                              \
        return nvshmem_tile_reduce<scope, op, true>(team, src, dst, start_coord, boundary,         \
                                                    root < 0 ? -2 : root, flag);                   \
    }                                                                                              \
    NVSHMEM_TILE_COLLECTIVE(NVLS_ONE_SHOT_PULL_NBI)                                                \
    GSHMEM_KERNEL int tile_##name##_rooted_reduce##ending(nvshmem_team_t team, Src src, Dst dst,   \
                                                          Tuple start_coord, Tuple boundary,       \
                                                          int root, uint64_t flag)                 \
    {                                                                                              \
        return nvshmem_tile_reduce<scope, op, false>(team, src, dst, start_coord, boundary,        \
                                                     root < 0 ? -2 : root, flag);                  \
    }

#define NVSHMEM_TILE_GROUP(ending, scope)                                                          \
    NVSHMEM_TILE_TYPES                                                                             \
    GSHMEM_KERNEL int tile_put##ending(Src src, Dst dst, Tuple start_coord, Tuple boundary,        \
                                       int pe, uint64_t flag)                                      \
    {                                                                                              \
        return nvshmem_tile_transfer<scope, true>(src, dst, start_coord, boundary, pe, flag);      \
    }                                                                                              \
    NVSHMEM_TILE_TYPES                                                                             \
    GSHMEM_KERNEL int tile_get##ending(Src src, Dst dst, Tuple start_coord, Tuple boundary,        \
                                       int pe, uint64_t flag)                                      \
    {                                                                                              \
        return nvshmem_tile_transfer<scope, false>(src, dst, start_coord, boundary, pe, flag);     \
    }                                                                                              \
    NVSHMEM_TILE_COLLECTIVE(NVLS_ONE_SHOT_PUSH_NBI)                                                \
    GSHMEM_KERNEL int tile_broadcast##ending(nvshmem_team_t team, Src src, Dst dst,                \
                                             Tuple start_coord, Tuple boundary, uint64_t flag)     \
    {                                                                                              \
        return nvshmem_tile_broadcast<scope>(team, src, dst, start_coord, boundary, flag);         \
    }                                                                                              \
    NVSHMEM_TILE_COLLECTIVE(NVLS_ONE_SHOT_PUSH_NBI)                                                \
    GSHMEM_KERNEL int tile_allgather##ending(nvshmem_team_t team, Src src, Dst dst,                \
                                             Tuple start_coord, Tuple boundary, uint64_t flag)     \
    {                                                                                              \
        return nvshmem_tile_allgather<scope>(team, src, dst, start_coord, boundary, flag);         \
    }                                                                                              \
    template <tile_coll_algo_t algo>                                                               \
    GSHMEM_KERNEL int tile_collective_wait##ending(nvshmem_team_t team, uint64_t flag)             \
    {                                                                                              \
        return nvshmem_tile_wait<scope, algo>(team, flag);                                         \
    }                                                                                              \
    NVSHMEM_TILE_REDUCTION(ending, scope, sum, GSHMEM_OP_SUM)                                      \
    NVSHMEM_TILE_REDUCTION(ending, scope, max, GSHMEM_OP_MAX)                                      \
    NVSHMEM_TILE_REDUCTION(ending, scope, min, GSHMEM_OP_MIN)

NVSHMEM_TILE_GROUP(, GSHMEM_SCOPE_THREAD)
NVSHMEM_TILE_GROUP(_warp, GSHMEM_SCOPE_WARP)
NVSHMEM_TILE_GROUP(_warpgroup, NVSHMEM_TILE_WARPGROUP)
NVSHMEM_TILE_GROUP(_block, GSHMEM_SCOPE_BLOCK)
#undef NVSHMEM_TILE_GROUP
#undef NVSHMEM_TILE_REDUCTION
#undef NVSHMEM_TILE_COLLECTIVE
#undef NVSHMEM_TILE_TYPES

} // namespace nvshmemx
#endif
#endif

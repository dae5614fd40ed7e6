/* Tiles by threads, warps, warpgroups and blocks: rows or columns side by side or neither, whole and cut by a boundary,
 * short and long, of each type that NVSHMEM has them for; what is beside a tile stays as it was. */
#include <vector>

#include "check.h"

using namespace nvshmemx;

enum { ROWS = 12, LINE = 160, THREADS = 160, UNTOUCHED = -1 };
enum scope { ONE, WARP, WARPGROUP, BLOCK };

/* A rectangle in a matrix of LINE columns, or of LINE rows that lie side by side. */
struct cut {
    int rows, columns;
    int row_step, column_step;
    bool bounded;
    int row_limit, column_limit; /* from the tile's first element on */
};

static __host__ __device__ bool is_within(const struct cut &c, int i, int j)
{
    return !c.bounded || (i < c.row_limit && j < c.column_limit);
}

template <class T> struct area {
    T source[ROWS * LINE], dest[ROWS * LINE];
};

#define BY_SCOPE(scope, call, arguments)                                                                               \
    (scope == ONE         ? call<S, D, P, algo> arguments                                                              \
     : scope == WARP      ? call##_warp<S, D, P, algo> arguments                                                       \
     : scope == WARPGROUP ? call##_warpgroup<S, D, P, algo> arguments                                                  \
                          : call##_block<S, D, P, algo> arguments)

/* Whether this thread takes part: of each scope, the block's first. */
static __device__ bool takes_part(int scope)
{
    const int width = scope == ONE ? 1 : scope == WARP ? 32 : scope == WARPGROUP ? 128 : THREADS;

    return (int)threadIdx.x < width;
}

enum what { PUT, GET, BROADCAST, SUM, MAX, MIN, ROOTED, TWO_SHOTS, WHATS };

template <int scope, class S, class D, class P>
static __device__ int move(enum what what, S src, D dst, P start, P boundary, int pe)
{
    constexpr tile_algo_t algo = REMOTE_PUSH_NBI;

    return what == PUT ? BY_SCOPE(scope, tile_put, (src, dst, start, boundary, pe, 0))
                       : BY_SCOPE(scope, tile_get, (src, dst, start, boundary, pe, 0));
}

template <int scope, class S, class D, class P>
static __device__ int pull(enum what what, S src, D dst, P start, P boundary, int root)
{
    constexpr tile_coll_algo_t algo = NVLS_ONE_SHOT_PULL_NBI;
    const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;

    return what == SUM   ? BY_SCOPE(scope, tile_sum_reduce, (team, src, dst, start, boundary, 0))
           : what == MAX ? BY_SCOPE(scope, tile_max_reduce, (team, src, dst, start, boundary, 0))
           : what == MIN ? BY_SCOPE(scope, tile_min_reduce, (team, src, dst, start, boundary, 0))
                         : BY_SCOPE(scope, tile_sum_rooted_reduce, (team, src, dst, start, boundary, root, 0));
}

template <int scope, tile_coll_algo_t algo> static __device__ int wait_for_all(void)
{
    const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;

    return scope == ONE         ? tile_collective_wait<algo>(team, 0)
           : scope == WARP      ? tile_collective_wait_warp<algo>(team, 0)
           : scope == WARPGROUP ? tile_collective_wait_warpgroup<algo>(team, 0)
                                : tile_collective_wait_block<algo>(team, 0);
}

/* All calls for some scopes and types, and these two for others, because all take long to compile. */
static __host__ __device__ constexpr bool is_tried(bool all, int what)
{
    return all || what == PUT || what == SUM;
}

template <int scope, bool all, class S, class D, class P>
static __device__ int any(enum what what, S src, D dst, P start, P boundary, int pe)
{
    const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;
    int status = 0;

    if constexpr (!all) {
        constexpr tile_algo_t algo = REMOTE_PUSH_NBI;
        if (what == PUT) {
            status = BY_SCOPE(scope, tile_put, (src, dst, start, boundary, pe, 0));
            nvshmem_quiet();
        } else {
            constexpr tile_coll_algo_t algo = NVLS_ONE_SHOT_PULL_NBI;
            status = BY_SCOPE(scope, tile_sum_reduce, (team, src, dst, start, boundary, 0));
            status |= wait_for_all<scope, algo>();
        }
    } else if (what == PUT || what == GET) {
        status = move<scope>(what, src, dst, start, boundary, pe);
        nvshmem_quiet();
    } else if (what == BROADCAST) {
        constexpr tile_coll_algo_t algo = NVLS_ONE_SHOT_PUSH_NBI;
        if (nvshmem_my_pe() == pe)
            status = BY_SCOPE(scope, tile_broadcast, (team, src, dst, start, boundary, 0));
        status |= wait_for_all<scope, algo>();
    } else if (what == TWO_SHOTS) {
        constexpr tile_coll_algo_t algo = NVLS_TWO_SHOT_PUSH_NBI;
        status = BY_SCOPE(scope, tile_sum_reduce, (team, src, dst, start, boundary, pe, 0));
        status |= wait_for_all<scope, algo>();
    } else {
        status = pull<scope>(what, src, dst, start, boundary, pe);
        status |= wait_for_all<scope, NVLS_ONE_SHOT_PULL_NBI>();
    }
    return status;
}

template <int scope, bool all, class T>
static __global__ void one_tile(enum what what, struct area<T> *a, struct cut c, int pe, int *failed)
{
    const auto layout = make_layout(make_shape(c.rows, c.columns), make_stride(c.row_step, c.column_step));
    const Tensor src(a->source, layout), dst(a->dest, layout);

    if (!takes_part(scope))
        return;
    const int rows = c.bounded ? c.row_limit : c.rows, columns = c.bounded ? c.column_limit : c.columns;
    const int status = any<scope, all>(what, src, dst, make_shape(7, 9), make_shape(7 + rows, 9 + columns), pe);
    if (status)
        atomicExch(failed, status);
}

/* Shapes and strides that are known to the compiler. */
template <class T> static __global__ void constant_tile(struct area<T> *a, int pe, int *failed)
{
    const auto layout = make_layout(make_shape(ConstInt<4>(), ConstInt<6>()), make_stride(ConstInt<LINE>(), ConstInt<1>()));
    const Tensor src(a->source, layout), dst(a->dest, layout);
    using S = decltype(src);
    using P = decltype(make_shape());

    const int status = tile_put_block<S, S, P, PEER_PUSH_NBI>(src, dst, {}, {}, pe, 0);
    if (status || tile_put_block<S, S, P, PEER_PUSH_NBI>(src, dst, {}, {}, pe, 1) != NVSHMEMX_ERROR_INVALID_VALUE)
        atomicExch(failed, status ? status : -1);
    nvshmem_quiet();
}

/* Each member's `rows` x `columns` in a matrix of n of them, one below the other or side by side. */
template <int scope, class T>
static __global__ void gather(struct area<T> *a, int rows, int columns, bool below, int *failed)
{
    constexpr tile_coll_algo_t algo = NVLS_ONE_SHOT_PUSH_NBI;
    const int n = nvshmem_n_pes();
    const auto small = make_layout(make_shape(rows, columns), make_stride(LINE, 1));
    const auto large = make_layout(make_shape(below ? rows * n : rows, below ? columns : columns * n), make_stride(LINE, 1));
    const Tensor src(a->source, small), dst(a->dest, large), wrong(a->dest, small);
    using S = decltype(src);
    using D = decltype(dst);
    using P = decltype(make_shape());

    if (!takes_part(scope))
        return;
    int status = BY_SCOPE(scope, tile_allgather, (NVSHMEM_TEAM_WORLD, src, dst, P(), P(), 0));
    if (n > 1 && tile_allgather<S, S, P, algo>(NVSHMEM_TEAM_WORLD, src, wrong, {}, {}, 0) != NVSHMEMX_ERROR_INVALID_VALUE)
        status = -1;
    /* as many elements, but narrower than a part */
    const Tensor odd(a->dest, make_layout(make_shape(rows * columns * n, 1), make_stride(1, LINE)));
    if (tile_allgather<S, decltype(odd), P, algo>(NVSHMEM_TEAM_WORLD, src, odd, {}, {}, 0) != NVSHMEMX_ERROR_INVALID_VALUE)
        status = -2;
    const Tensor none(a->dest, make_layout(make_shape(rows, 0), make_stride(LINE, 1)));
    if (tile_allgather<decltype(none), decltype(none), P, algo>(NVSHMEM_TEAM_WORLD, none, none, {}, {}, 0))
        status = -3;
    status |= wait_for_all<scope, algo>();
    if (status)
        atomicExch(failed, status);
}

/* ---- What is expected ---- */

static float value_of(int pe, int i)
{
    return (float)((pe + 1) * (i % 61 - 20) % 97);
}

static float combined(enum what what, int i)
{
    float value = value_of(0, i);

    for (int pe = 1; pe < nvshmem_n_pes(); pe++) {
        const float next = value_of(pe, i);
        value = what == MAX ? (next > value ? next : value) : what == MIN ? (next < value ? next : value) : value + next;
    }
    return value;
}

template <class T> static void prepare(struct area<T> *a)
{
    std::vector<T> data(ROWS * LINE);

    for (int i = 0; i < ROWS * LINE; i++)
        data[i] = T(value_of(nvshmem_my_pe(), i));
    CHECK_CUDA(cudaMemcpy(a->source, data.data(), sizeof a->source, cudaMemcpyDefault));
    for (T &value : data)
        value = T((float)UNTOUCHED);
    CHECK_CUDA(cudaMemcpy(a->dest, data.data(), sizeof a->dest, cudaMemcpyDefault));
    nvshmem_barrier_all();
}

template <class T> static void compare(const struct area<T> *a, const std::vector<float> &expected, const char *what, int scope)
{
    std::vector<T> got(ROWS * LINE);

    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy(got.data(), a->dest, sizeof a->dest, cudaMemcpyDefault));
    for (int i = 0; i < ROWS * LINE; i++)
        if ((float)got[i] != expected[i])
            CHECK_FAIL("%s, scope %d, element %d: %g instead of %g", what, scope, i, (double)(float)got[i],
                       (double)expected[i]);
    nvshmem_barrier_all();
}

static std::vector<float> expected_of(enum what what, const struct cut &c, int pe)
{
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const int from = what == PUT ? (me + n - 1) % n : pe;
    std::vector<float> expected(ROWS * LINE, (float)UNTOUCHED);

    if (what == ROOTED && me != pe)
        return expected;
    for (int i = 0; i < c.rows; i++) {
        for (int j = 0; j < c.columns; j++) {
            const int at = i * c.row_step + j * c.column_step;
            if (is_within(c, i, j))
                expected[at] = what <= BROADCAST ? value_of(from, at) : combined(what, at);
        }
    }
    return expected;
}

template <int scope, bool all, class T> static void test_cut(struct area<T> *a, enum what what, const struct cut &c, int *failed)
{
    static const char *const names[] = {"put", "get", "broadcast", "sum", "max", "min", "rooted sum", "sum in two shots"};
    const int n = nvshmem_n_pes();
    const int pe = what <= GET ? (nvshmem_my_pe() + 1) % n : n - 1;

    prepare(a);
    one_tile<scope, all, T><<<1, THREADS>>>(what, a, c, pe, failed);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*failed, 0);
    compare(a, expected_of(what, c, pe), names[what], scope);
}

template <int scope, class T> static void test_gather(struct area<T> *a, bool below, int *failed)
{
    enum { HIGH = 3, WIDE = 6 };
    std::vector<float> expected(ROWS * LINE, (float)UNTOUCHED);

    prepare(a);
    gather<scope, T><<<1, THREADS>>>(a, HIGH, WIDE, below, failed);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*failed, 0);
    for (int pe = 0; pe < nvshmem_n_pes(); pe++)
        for (int i = 0; i < HIGH; i++)
            for (int j = 0; j < WIDE; j++)
                expected[(below ? pe * HIGH + i : i) * LINE + (below ? j : pe * WIDE + j)] = value_of(pe, i * LINE + j);
    compare(a, expected, below ? "allgather below each other" : "allgather side by side", scope);
}

template <int scope, bool all, class T> static void test_scope(struct area<T> *a, int *failed)
{
    static const struct cut cuts[] = {
        {5, 7, LINE, 1, false, 0, 0},      {7, 5, 1, LINE, true, 4, 3},         {3, 6, 2 * LINE, 3, true, 3, 2},
        {4, LINE, LINE, 1, false, 0, 0},   {10, 150, LINE, 1, true, 9, 149},    {5, 7, LINE, 1, true, 0, 7},
        {1, 1, LINE, 1, false, 0, 0},      {3, 4, LINE, 1, true, -2, 4},
    };

    for (const struct cut &c : cuts)
        for (int what = PUT; what <= (c.rows * c.columns > 200 ? BROADCAST : WHATS - 1); what++)
            if (is_tried(all, what))
                test_cut<scope, all>(a, (enum what)what, c, failed);
    if constexpr (all) {
        test_gather<scope>(a, false, failed);
        test_gather<scope>(a, true, failed);
    }
}

template <class T, bool all> static void test_type(int *failed)
{
    struct area<T> *a = (struct area<T> *)nvshmem_malloc(sizeof *a);

    if constexpr (all) {
        test_scope<ONE, false>(a, failed);
        test_scope<WARP, false>(a, failed);
        test_scope<WARPGROUP, true>(a, failed);
    }
    test_scope<BLOCK, all>(a, failed);
    prepare(a);
    constant_tile<T><<<1, THREADS>>>(a, (nvshmem_my_pe() + 1) % nvshmem_n_pes(), failed);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*failed, 0);
    compare(a, expected_of(PUT, {4, 6, LINE, 1, false, 0, 0}, 0), "put of a constant shape", BLOCK);
    nvshmem_free(a);
}

int main(void)
{
    int *failed;

    nvshmem_init();
    CHECK_CUDA(cudaMallocManaged(&failed, sizeof *failed));
    *failed = 0;
    test_type<float, true>(failed);
    test_type<__half, false>(failed);
    test_type<__nv_bfloat16, false>(failed);
    CHECK_CUDA(cudaFree(failed));
    nvshmem_finalize();
    return 0;
}

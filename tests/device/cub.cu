/* CUB's collectives of blocks and warps, against plain loops: blocks whose size is no multiple of 32, of two and three
 * dimensions; an operator whose order matters; storage that is used again. nvcc compiles it with NVIDIA's own CUB. */
#include "device.h"

#include <cub/cub.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#ifndef CUB_VERSION
#error "<cub/cub.cuh> says no version"
#endif
#if defined(__NVCC__) == defined(GSHMEM_HOST_DEVICE)
#error "nvcc has to take NVIDIA's headers, and gshmemcc ours"
#endif

/* x -> a x + b, modulo 2^32. f then g is not g then f. */
struct affine {
    unsigned a, b;
};

__host__ __device__ static affine affine_of(int i)
{
    const affine f = {2u * (unsigned)i + 3, 5u * (unsigned)i + 1};

    return f;
}

struct then {
    __host__ __device__ affine operator()(const affine &f, const affine &g) const
    {
        const affine both = {f.a * g.a, g.a * f.b + g.b};

        return both;
    }
};

struct larger {
    __host__ __device__ int operator()(int x, int y) const
    {
        return x < y ? y : x;
    }
};

static void check_affine(affine got, affine expected)
{
    CHECK_EQ(got.a, expected.a);
    CHECK_EQ(got.b, expected.b);
}

__host__ __device__ static int number(int i)
{
    return (i * 37 + 11) % 101 - 50;
}

__device__ static int rank_here()
{
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

/* --- BlockReduce --- */

struct reduced {
    int sum, first, most, items, private_sum;
    affine all;
};

template <int X, int Y, int Z, cub::BlockReduceAlgorithm A>
__global__ void block_reduce(reduced *out, int valid)
{
    typedef cub::BlockReduce<int, X, A, Y, Z> Numbers;
    typedef cub::BlockReduce<affine, X, cub::BLOCK_REDUCE_RAKING, Y, Z> Functions;
    __shared__ union {
        typename Numbers::TempStorage numbers;
        typename Functions::TempStorage functions;
    } storage;
    const int i = rank_here();
    int items[3] = {number(i), number(i + 1), number(i + 2)};
    reduced got;

    got.sum = Numbers(storage.numbers).Sum(number(i));
    __syncthreads();
    got.first = Numbers(storage.numbers).Sum(number(i), valid);
    __syncthreads();
    got.most = Numbers(storage.numbers).Reduce(number(i), larger());
    __syncthreads();
    got.items = Numbers(storage.numbers).Sum(items);
    __syncthreads();
    got.all = Functions(storage.functions).Reduce(affine_of(i), then());
    got.private_sum = Numbers().Reduce(2 * number(i), cuda::std::plus<>());
    if (i == 0)
        out[blockIdx.x] = got;
}

template <int X, int Y, int Z, cub::BlockReduceAlgorithm A> static void check_block_reduce()
{
    const int n = X * Y * Z, blocks = 3;
    reduced *got = shared_array<reduced>(blocks);

    for (int valid = 1; valid <= n; valid += n / 3) {
        int sum = 0, first = 0, most = -1000, items = 0;
        affine all = affine_of(0);

        for (int i = 0; i < n; i++) {
            sum += number(i);
            first += i < valid ? number(i) : 0;
            most = number(i) > most ? number(i) : most;
            items += number(i) + number(i + 1) + number(i + 2);
            all = i ? then()(all, affine_of(i)) : all;
        }
        block_reduce<X, Y, Z, A><<<blocks, dim3(X, Y, Z)>>>(got, valid);
        CHECK_LAUNCH();
        for (int b = 0; b < blocks; b++) {
            CHECK_EQ(got[b].sum, sum);
            CHECK_EQ(got[b].first, first);
            CHECK_EQ(got[b].most, most);
            CHECK_EQ(got[b].items, items);
            CHECK_EQ(got[b].private_sum, 2 * sum);
            check_affine(got[b].all, all);
        }
    }
    CHECK_CUDA(cudaFree(got));
}

/* --- BlockScan --- */

struct scanned {
    int inclusive, exclusive, total, from, items[2], after, most;
    affine upto, before, before_total;
};

/* What comes before a tile: the sums of those that the block has scanned already. */
struct running {
    int sum;
    __device__ int operator()(int aggregate)
    {
        const int before = sum;

        sum += aggregate;
        return before;
    }
};

template <int X, int Y, int Z, cub::BlockScanAlgorithm A> __global__ void block_scan(scanned *out)
{
    typedef cub::BlockScan<int, X, A, Y, Z> Numbers;
    typedef cub::BlockScan<affine, X, A, Y, Z> Functions;
    __shared__ typename Numbers::TempStorage numbers;
    __shared__ typename Functions::TempStorage functions;
    const int i = rank_here();
    int items[2] = {number(2 * i), number(2 * i + 1)};
    running prefix = {1000};
    scanned *mine = &out[i];

    Numbers(numbers).InclusiveSum(number(i), mine->inclusive);
    __syncthreads();
    Numbers(numbers).ExclusiveSum(number(i), mine->exclusive, mine->total);
    __syncthreads();
    Numbers(numbers).ExclusiveScan(number(i), mine->from, 7, cuda::std::plus<>());
    __syncthreads();
    Numbers(numbers).ExclusiveSum(items, items);
    mine->items[0] = items[0];
    mine->items[1] = items[1];
    __syncthreads();
    Numbers(numbers).InclusiveScan(number(i), mine->most, cuda::maximum<>());
    for (int tile = 0; tile < 3; tile++) {
        __syncthreads();
        Numbers(numbers).InclusiveSum(number(i + tile), mine->after, prefix);
    }
    Functions(functions).InclusiveScan(affine_of(i), mine->upto, then());
    __syncthreads();
    Functions(functions).ExclusiveScan(affine_of(i), mine->before, affine_of(-5), then(), mine->before_total);
}

template <int X, int Y, int Z, cub::BlockScanAlgorithm A> static void check_block_scan()
{
    const int n = X * Y * Z;
    scanned *got = shared_array<scanned>(n);
    int sum = 0, most = -1000, items = 0, total = 0, after = 1000;
    affine all = affine_of(0), before = affine_of(-5);

    block_scan<X, Y, Z, A><<<1, dim3(X, Y, Z)>>>(got);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        total += number(i);
        after += number(i) + number(i + 1);
    }
    for (int i = 0; i < n; i++) {
        CHECK_EQ(got[i].exclusive, sum);
        CHECK_EQ(got[i].from, sum + 7);
        check_affine(got[i].before, before);
        sum += number(i);
        most = number(i) > most ? number(i) : most;
        all = i ? then()(all, affine_of(i)) : all;
        before = then()(before, affine_of(i));
        after += number(i + 2);
        CHECK_EQ(got[i].inclusive, sum);
        CHECK_EQ(got[i].most, most);
        CHECK_EQ(got[i].total, total);
        CHECK_EQ(got[i].after, after);
        check_affine(got[i].upto, all);
        CHECK_EQ(got[i].items[0], items);
        items += number(2 * i);
        CHECK_EQ(got[i].items[1], items);
        items += number(2 * i + 1);
    }
    for (int i = 0; i < n; i++)
        check_affine(got[i].before_total, all);
    CHECK_CUDA(cudaFree(got));
}

/* --- Warps --- */

struct lane {
    int sum, few, inclusive, exclusive, total, told, from;
    affine all, upto;
};

template <int Size> __global__ void warps(lane *out, int few)
{
    typedef cub::WarpReduce<int, Size> Numbers;
    typedef cub::WarpReduce<affine, Size> Functions;
    typedef cub::WarpScan<int, Size> Scan;
    typedef cub::WarpScan<affine, Size> Scans;
    __shared__ typename Numbers::TempStorage numbers[1024 / Size];
    __shared__ typename Functions::TempStorage functions[1024 / Size];
    __shared__ typename Scan::TempStorage scan[1024 / Size];
    __shared__ typename Scans::TempStorage scans[1024 / Size];
    const int i = rank_here(), w = i / Size;
    lane *mine = &out[i];

    mine->sum = Numbers(numbers[w]).Sum(number(i));
    __syncwarp();
    mine->few = Numbers(numbers[w]).Sum(number(i), few);
    mine->all = Functions(functions[w]).Reduce(affine_of(i), then());
    Scan(scan[w]).InclusiveSum(number(i), mine->inclusive);
    __syncwarp();
    Scan(scan[w]).ExclusiveSum(number(i), mine->exclusive, mine->total);
    __syncwarp();
    Scan(scan[w]).ExclusiveScan(number(i), mine->from, -3, larger());
    __syncwarp();
    mine->told = Scan(scan[w]).Broadcast(number(i), Size / 2);
    Scans(scans[w]).InclusiveScan(affine_of(i), mine->upto, then());
}

template <int Size> static void check_warps()
{
    const int n = 96, few = Size / 2 + 1;
    lane *got = shared_array<lane>(n);

    warps<Size><<<1, dim3(16, 6)>>>(got, few);
    CHECK_LAUNCH();
    for (int first = 0; first < n; first += Size) {
        int sum = 0, few_sum = 0, most = -3, total = 0;
        affine all = affine_of(first);

        for (int i = first; i < first + Size; i++)
            total += number(i);
        for (int i = first; i < first + Size; i++) {
            CHECK_EQ(got[i].exclusive, sum);
            CHECK_EQ(got[i].from, most);
            sum += number(i);
            few_sum += i < first + few ? number(i) : 0;
            most = number(i) > most ? number(i) : most;
            all = i > first ? then()(all, affine_of(i)) : all;
            CHECK_EQ(got[i].inclusive, sum);
            CHECK_EQ(got[i].total, total);
            CHECK_EQ(got[i].told, number(first + Size / 2));
            check_affine(got[i].upto, all);
        }
        CHECK_EQ(got[first].sum, sum);
        CHECK_EQ(got[first].few, few_sum);
        check_affine(got[first].all, all);
    }
    CHECK_CUDA(cudaFree(got));
}

/* The last warp of a block of 40 threads has 8. */
__global__ void short_warp(int *sums, int valid)
{
    typedef cub::WarpReduce<int> Numbers;
    __shared__ Numbers::TempStorage storage[2];
    const int w = (int)threadIdx.x / 32, sum = Numbers(storage[w]).Sum(number((int)threadIdx.x), w ? valid : 32);

    if (threadIdx.x % 32 == 0)
        sums[w] = sum;
}

static void check_short_warp()
{
    int *got = shared_array<int>(2), expected[2] = {0, 0};

    short_warp<<<1, 40>>>(got, 8);
    CHECK_LAUNCH();
    for (int i = 0; i < 40; i++)
        expected[i / 32] += number(i);
    CHECK_EQ(got[0], expected[0]);
    CHECK_EQ(got[1], expected[1]);
    CHECK_CUDA(cudaFree(got));
}

/* --- BlockLoad, BlockStore --- */

enum { LOADED = 64, ITEMS = 3 };

template <cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm S>
__global__ void copy(const int *from, int *to, int *firsts, int valid)
{
    typedef cub::BlockLoad<int, 8, ITEMS, L, 8> Load;
    typedef cub::BlockStore<int, 8, ITEMS, S, 8> Store;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } storage;
    int items[ITEMS];

    Load(storage.load).Load(from, items, valid, -1);
    firsts[rank_here()] = items[1];
    for (int i = 0; i < ITEMS; i++)
        items[i]++;
    __syncthreads();
    Store(storage.store).Store(to, items, valid);
    __syncthreads();
    Load(storage.load).Load(from, items);
    __syncthreads();
    Store(storage.store).Store(to + LOADED * ITEMS, items);
}

template <cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm S> static void check_copy()
{
    const int n = LOADED * ITEMS, valid = 100;
    int *from = shared_array<int>(n), *to = shared_array<int>(2 * n), *firsts = shared_array<int>(LOADED);

    for (int i = 0; i < n; i++)
        from[i] = number(i);
    copy<L, S><<<1, dim3(8, 8)>>>(from, to, firsts, valid);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        CHECK_EQ(to[i], i < valid ? number(i) + 1 : 0);
        CHECK_EQ(to[n + i], number(i));
    }
    for (int i = 0; i < LOADED; i++) {
        const int place = L == cub::BLOCK_LOAD_STRIPED ? LOADED + i : i * ITEMS + 1;
        CHECK_EQ(firsts[i], place < valid ? number(place) : -1);
    }
    CHECK_CUDA(cudaFree(from));
    CHECK_CUDA(cudaFree(to));
    CHECK_CUDA(cudaFree(firsts));
}

/* --- The host device's own: a block of other dimensions is a mistake, and fewer threads are none if they count. --- */

#ifdef GSHMEM_HOST_DEVICE
__global__ void fewer(int *sum, int valid)
{
    typedef cub::BlockReduce<int, 128> Numbers;
    __shared__ Numbers::TempStorage storage;
    const int all = Numbers(storage).Reduce(number((int)threadIdx.x), cub::Sum(), valid);

    if (threadIdx.x == 0)
        *sum = all;
}

static void check_fewer()
{
    int *got = shared_array<int>(1), sum = 0;

    fewer<<<1, 50>>>(got, 50);
    CHECK_LAUNCH();
    for (int i = 0; i < 50; i++)
        sum += number(i);
    CHECK_EQ(*got, sum);
    CHECK_CUDA(cudaFree(got));
}

static int fail(const char *how)
{
    int *sum = shared_array<int>(2);

    if (strcmp(how, "fewer") == 0)
        fewer<<<1, 50>>>(sum, 51);
    else if (strcmp(how, "short_warp") == 0)
        short_warp<<<1, 40>>>(sum, 32);
    else
        fewer<<<1, dim3(16, 8)>>>(sum, 128);
    CHECK_CUDA_FAILS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    return 0;
}
#endif

int main(int argc, char **argv)
{
#ifdef GSHMEM_HOST_DEVICE
    if (argc > 1)
        return fail(argv[1]);
    check_fewer();
#else
    (void)argc;
    (void)argv;
#endif
    check_block_reduce<128, 1, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
    check_block_reduce<100, 1, 1, cub::BLOCK_REDUCE_RAKING>();
    check_block_reduce<9, 7, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
    check_block_reduce<5, 3, 4, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
    check_block_scan<128, 1, 1, cub::BLOCK_SCAN_WARP_SCANS>();
    check_block_scan<100, 1, 1, cub::BLOCK_SCAN_RAKING>();
    check_block_scan<16, 6, 1, cub::BLOCK_SCAN_WARP_SCANS>();
    check_block_scan<5, 3, 4, cub::BLOCK_SCAN_RAKING_MEMOIZE>();
    check_warps<32>();
    check_warps<8>();
    check_short_warp();
    check_copy<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>();
    check_copy<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>();
    check_copy<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>();
    return 0;
}

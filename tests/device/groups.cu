/* Cooperative groups: the grid's barrier, tiles of warps, and what waits for a block that has ended. */
#include "device.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

/* Each step needs what all blocks did in the step before. */
__global__ void steps(int *values, int *scratch, int n)
{
    cg::grid_group grid = cg::this_grid();
    int count = (int)grid.size(), i = (int)grid.thread_rank();

    for (int s = 0; s < n; s++) {
        scratch[i] = values[(i + 1) % count] + 1;
        grid.sync();
        values[i] = scratch[i];
        grid.sync();
    }
}

static void check_grid()
{
    int blocks = 12, threads = 48, count = blocks * threads, n = 7;
    int *values = shared_array<int>((size_t)count), *scratch = shared_array<int>((size_t)count);
    void *arguments[] = {&values, &scratch, &n};

    for (int i = 0; i < count; i++)
        values[i] = i;
    CHECK_CUDA(cudaLaunchCooperativeKernel((const void *)steps, dim3((unsigned)blocks),
                                           dim3((unsigned)threads), arguments, 0, 0));
    CHECK_LAUNCH();
    for (int i = 0; i < count; i++)
        CHECK_EQ(values[i], (i + n) % count + n);
    CHECK_CUDA(cudaFree(values));
    CHECK_CUDA(cudaFree(scratch));
}

__global__ void tiles(int *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int sum = (int)block.thread_rank();

    for (unsigned by = tile.size() / 2; by; by /= 2)
        sum += tile.shfl_xor(sum, by);
    block.sync();
    out[block.thread_rank()] = sum * 1000 + (int)tile.ballot(tile.thread_rank() == 3) * 10 +
                               (tile.any(0) ? 1 : 0) + (tile.all(1) ? 2 : 0);
}

/* A tile knows its place in what it is a part of. */
__global__ void tiles_of_tiles(unsigned *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16, cg::thread_block> outer = cg::tiled_partition<16>(block);
    auto inner = cg::tiled_partition<4>(outer);
    cg::thread_block_tile<4> same = inner;

    out[block.thread_rank()] = outer.meta_group_rank() * 1000 + outer.meta_group_size() * 100 +
                               inner.meta_group_rank() * 10 + inner.meta_group_size();
    out[blockDim.x + block.thread_rank()] = same.meta_group_rank() * 10 + same.meta_group_size();
}

__global__ void together(int *count)
{
    if (threadIdx.x % 2) {
        cg::coalesced_group active = cg::coalesced_threads();
        if (active.thread_rank() == 0)
            atomicAdd(count, (int)active.size());
    }
}

struct reduced {
    int sum, least, most, bits, odd, before, upto, product, upto_odd;
};

/* By tiles of 8, and by the odd threads of a warp. */
__global__ void reductions(struct reduced *out)
{
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    struct reduced *mine = &out[threadIdx.x];
    const int value = (int)threadIdx.x * 7 % 11 + 1;

    mine->sum = cg::reduce(tile, value, cg::plus<int>());
    mine->least = cg::reduce(tile, value, cg::less<int>());
    mine->most = cg::reduce(tile, value, cg::greater<int>());
    mine->bits = cg::reduce(tile, value, cg::bit_or<int>()) * 10000 + cg::reduce(tile, value, cg::bit_and<int>()) * 100 +
                 cg::reduce(tile, value, cg::bit_xor<int>());
    mine->product = cg::inclusive_scan(tile, value, [](int x, int y) { return x * y % 1009; });
    mine->before = cg::exclusive_scan(tile, value);
    mine->upto = cg::inclusive_scan(tile, value);
    if (threadIdx.x % 2) {
        cg::coalesced_group active = cg::coalesced_threads();
        mine->odd = cg::reduce(active, value, cg::plus<int>());
        mine->upto_odd = cg::inclusive_scan(active, value);
    }
}

static void check_reductions()
{
    struct reduced *out = shared_array<struct reduced>(64);

    reductions<<<1, 64>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < 64; i++) {
        struct reduced e = {0, 99, 0, 0, 0, 0, 0, 1, 0};
        int any = 0, all = ~0, differs = 0;
        for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
            const int value = j * 7 % 11 + 1;
            e.odd += j % 2 ? value : 0;
            e.upto_odd += j % 2 && j <= i ? value : 0;
            if (j / 8 != i / 8)
                continue;
            e.sum += value;
            e.least = value < e.least ? value : e.least;
            e.most = value > e.most ? value : e.most;
            any |= value, all &= value, differs ^= value;
            e.before += j < i ? value : 0;
            e.upto += j <= i ? value : 0;
            e.product = j <= i ? e.product * value % 1009 : e.product;
        }
        CHECK_EQ(out[i].sum, e.sum);
        CHECK_EQ(out[i].least, e.least);
        CHECK_EQ(out[i].most, e.most);
        CHECK_EQ(out[i].bits, any * 10000 + all * 100 + differs);
        CHECK_EQ(out[i].before, e.before);
        CHECK_EQ(out[i].upto, e.upto);
        CHECK_EQ(out[i].product, e.product);
        if (i % 2) {
            CHECK_EQ(out[i].odd, e.odd);
            CHECK_EQ(out[i].upto_odd, e.upto_odd);
        }
    }
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    int *out = shared_array<int>(64);

    check_reductions();

    check_grid();
    tiles<<<1, 64>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < 64; i++)
        CHECK_EQ(out[i], (i / 8 * 8 * 8 + 28) * 1000 + 80 + 2);
    unsigned *places = shared_array<unsigned>(128);
    tiles_of_tiles<<<1, 64>>>(places);
    CHECK_LAUNCH();
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(places[i], i / 16 * 1000 + 4 * 100 + i % 16 / 4 * 10 + 4);
        CHECK_EQ(places[64 + i], i % 16 / 4 * 10 + 4);
    }
    CHECK_CUDA(cudaFree(places));
    *out = 0;
    together<<<1, 64>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 32);
    CHECK_CUDA(cudaFree(out));
    return 0;
}

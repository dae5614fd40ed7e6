/* What CUDA's own headers make of barriers in memory and asynchronous copies: each kernel gives what
 * a loop on the host gives. For nvcc alone. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#pragma nv_diag_suppress static_var_with_dynamic_init // of CUDA's own pattern for barriers

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

enum { THREADS = 128, ROUNDS = 5, WORDS = THREADS * ROUNDS };

/* Copies that arrive at a barrier, which is used for several phases. */
__global__ void by_barrier(int *out, const int *in)
{
    __shared__ alignas(16) int tile[THREADS];
    __shared__ Barrier barrier;
    int sum = 0;

    if (threadIdx.x == 0)
        init(&barrier, THREADS);
    __syncthreads();
    for (int round = 0; round < ROUNDS; round++) {
        cuda::memcpy_async(cg::this_thread_block(), tile, in + round * THREADS,
                           cuda::aligned_size_t<16>(sizeof tile), barrier);
        barrier.arrive_and_wait();
        sum += tile[THREADS - 1 - threadIdx.x];
        barrier.arrive_and_wait();
    }
    out[threadIdx.x] = sum;
}

/* Two stages: a tile is copied while the one before is read. */
__global__ void by_pipeline(int *out, const int *in)
{
    extern __shared__ int tiles[];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0;

    for (int round = 0, copied = 0; round < ROUNDS; round++) {
        for (; copied < ROUNDS && copied < round + 2; copied++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tiles + copied % 2 * THREADS, in + copied * THREADS,
                               THREADS * sizeof(int), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += (round + 1) * tiles[round % 2 * THREADS + (threadIdx.x + 1) % THREADS];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

/* A bulk copy, whose bytes the barrier counts, and one back. */
__global__ void by_bulk(int *out, const int *in)
{
    __shared__ alignas(128) int tile[THREADS];
    __shared__ Barrier barrier;
    Barrier::arrival_token token;

    if (threadIdx.x == 0) {
        init(&barrier, THREADS);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_global_to_shared(tile, in, sizeof tile, barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    tile[threadIdx.x] += threadIdx.x;
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_shared_to_global(out, tile, sizeof tile);
        cuda::device::experimental::cp_async_bulk_commit_group();
        cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
    }
}

/* Groups of 16 lanes, and a copy that the block waits for. */
__global__ void by_groups(int *out, const int *in)
{
    __shared__ int tile[THREADS];
    auto block = cg::this_thread_block();
    auto group = cg::tiled_partition<16>(block);

    cg::memcpy_async(block, tile, in, sizeof tile);
    cg::wait(block);
    int value = tile[threadIdx.x];
    out[threadIdx.x] = 3 * cg::reduce(group, value, cg::plus<int>()) +
                       5 * cg::inclusive_scan(group, value) +
                       7 * cg::reduce(group, value, cg::greater<int>());
}

static int in[WORDS];

static int want(int kernel, int t)
{
    int sum = 0, part = 0, most = 0, first = t / 16 * 16;

    switch (kernel) {
    case 0:
        for (int round = 0; round < ROUNDS; round++)
            sum += in[round * THREADS + THREADS - 1 - t];
        return sum;
    case 1:
        for (int round = 0; round < ROUNDS; round++)
            sum += (round + 1) * in[round * THREADS + (t + 1) % THREADS];
        return sum;
    case 2:
        return in[t] + t;
    default:
        for (int i = first; i < first + 16; i++) {
            sum += in[i];
            part += i <= t ? in[i] : 0;
            most = in[i] > most ? in[i] : most;
        }
        return 3 * sum + 5 * part + 7 * most;
    }
}

int main(void)
{
    int *from, *to, found[THREADS];

    for (int i = 0; i < WORDS; i++)
        in[i] = i * 7919 % 1009;
    cudaMalloc((void **)&from, sizeof in);
    cudaMalloc((void **)&to, sizeof found);
    cudaMemcpy(from, in, sizeof in, cudaMemcpyDefault);
    for (int kernel = 0; kernel < 4; kernel++) {
        cudaMemset(to, 0xff, sizeof found);
        switch (kernel) {
        case 0:
            by_barrier<<<1, THREADS>>>(to, from);
            break;
        case 1:
            by_pipeline<<<1, THREADS, 2 * THREADS * sizeof(int)>>>(to, from);
            break;
        case 2:
            by_bulk<<<1, THREADS>>>(to, from);
            break;
        default:
            by_groups<<<1, THREADS>>>(to, from);
        }
        cudaError_t error = cudaDeviceSynchronize();
        if (error) {
            printf("kernel %d: %s\n", kernel, cudaGetErrorString(error));
            return 1;
        }
        cudaMemcpy(found, to, sizeof found, cudaMemcpyDefault);
        for (int t = 0; t < THREADS; t++) {
            if (found[t] != want(kernel, t)) {
                printf("kernel %d: thread %d has %d instead of %d\n", kernel, t, found[t],
                       want(kernel, t));
                return 1;
            }
        }
    }
    cudaFree(from);
    cudaFree(to);
    return 0;
}

/* A random permutation in kernels: each thread throws items at random places of a board until one
 * is free. The items in the order of their places are the result. */
#include "irregular.h"

enum { ITEMS = 500, PLACES = 2 * ITEMS, BLOCKS = 2, THREADS = 64 }; /* ITEMS, PLACES of each PE */
enum { PART = (PLACES + THREADS - 1) / THREADS }; /* the places of a thread that collects */

__global__ void throw_darts(long *board)
{
    for (int k = blockIdx.x * THREADS + threadIdx.x; k < ITEMS; k += BLOCKS * THREADS) {
        const long item = (long)k * gshmem_n_pes() + gshmem_my_pe();
        for (uint64_t dart = 0, at;; dart++) {
            at = mixed((uint64_t)item << 20 | dart) % (uint64_t)(PLACES * gshmem_n_pes());
            if (!gshmem_long_atomic_compare_swap(&board[place(at)], 0, item + 1, home(at)))
                break;
        }
    }
}

/* One block. `at`: how many items the PEs before this one have. */
__global__ void collect(const long *board, long *permutation, long at)
{
    __shared__ int count[THREADS];
    const int first = threadIdx.x * PART, end = first + PART < PLACES ? first + PART : PLACES;

    count[threadIdx.x] = 0;
    for (int i = first; i < end; i++)
        count[threadIdx.x] += board[i] != 0;
    __syncthreads();
    for (unsigned t = 0; t < threadIdx.x; t++)
        at += count[t];
    for (int i = first; i < end; i++)
        if (board[i]) {
            gshmem_long_p(&permutation[place((uint64_t)at)], board[i] - 1, home((uint64_t)at));
            at++;
        }
}

__global__ void see(const long *permutation, long *seen)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < ITEMS; i += BLOCKS * THREADS)
        gshmem_long_atomic_inc(&seen[place((uint64_t)permutation[i])],
                               home((uint64_t)permutation[i]));
}

int main()
{
    static long mine, before, places[PLACES], times[ITEMS];

    if (begin())
        return 1;
    long *board = (long *)gshmem_calloc(PLACES, sizeof *board);
    long *permutation = (long *)gshmem_calloc(ITEMS, sizeof *permutation);
    long *seen = (long *)gshmem_calloc(ITEMS, sizeof *seen);
    throw_darts<<<BLOCKS, THREADS>>>(board);
    long wrong = cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* all darts of all PEs have been thrown */

    wrong += cudaMemcpy(places, board, sizeof places, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < PLACES; i++)
        mine += places[i] != 0;
    gshmem_raise(gshmem_long_sum_exscan(GSHMEM_TEAM_WORLD, &before, &mine, 1));
    collect<<<1, THREADS>>>(board, permutation, me ? before : 0);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* completes what kernels of all PEs have issued */

    see<<<BLOCKS, THREADS>>>(permutation, seen); /* each item is there once */
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    barrier();
    wrong += cudaMemcpy(times, seen, sizeof times, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < ITEMS; i++)
        wrong += times[i] != 1;
    gshmem_raise(gshmem_free(seen));
    gshmem_raise(gshmem_free(permutation));
    gshmem_raise(gshmem_free(board));
    return end("permutation", ITEMS, "items of kernels", wrong);
}

/* How do kernels exchange halos without going back to the host? Heat spreads over a plate, cut into
 * one band of rows per PE. In each step a block puts its first and last row into the neighbours'
 * halos together with the number of the step, and waits only for its own two halos.
 *
 * The kernel waits for other PEs' kernels: all of it must run at once. One block always can; larger
 * grids that do so are launched with cudaLaunchCooperativeKernel. */
#include <gshmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 24, COLUMNS = 96, STEPS = 100 }; /* rows of each PE */
typedef float row[COLUMNS];

static __host__ __device__ float start_value(int r, int c)
{
    return (float)((r * 31 + c * 17) % 101);
}

/* The rim of the plate keeps its heat; rows are numbered as on the whole plate. */
static __host__ __device__ float next_value(const row *u, int r, int c)
{
    return 0.25f * (u[r - 1][c] + u[r + 1][c] + u[r][c - 1] + u[r][c + 1]);
}

/* Two plates: a neighbour may be one step ahead, and its row goes into the other one then. */
__global__ void jacobi(row *even, row *odd, uint64_t *arrived)
{
    int me = gshmem_my_pe(), last = gshmem_n_pes() - 1;

    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x)
        even[1 + i / COLUMNS][i % COLUMNS] = start_value(me * ROWS + i / COLUMNS, i % COLUMNS);
    for (uint64_t step = 1; step <= STEPS; step++) {
        row *now = step % 2 ? even : odd, *next = step % 2 ? odd : even;
        if (me > 0)
            gshmem_float_put_signal_block(now[ROWS + 1], now[1], COLUMNS, &arrived[1], step,
                                          GSHMEM_SIGNAL_SET, me - 1);
        if (me < last)
            gshmem_float_put_signal_block(now[0], now[ROWS], COLUMNS, &arrived[0], step,
                                          GSHMEM_SIGNAL_SET, me + 1);
        if (threadIdx.x == 0 && me > 0)
            gshmem_signal_wait_until(&arrived[0], GSHMEM_CMP_GE, step);
        if (threadIdx.x == 0 && me < last)
            gshmem_signal_wait_until(&arrived[1], GSHMEM_CMP_GE, step);
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
            int r = 1 + i / COLUMNS, c = i % COLUMNS;
            bool rim =
                (me == 0 && r == 1) || (me == last && r == ROWS) || c == 0 || c == COLUMNS - 1;
            next[r][c] = rim ? now[r][c] : next_value(now, r, c);
        }
        __syncthreads();
    }
}

/* How many of my values differ from what one processor computes. */
static int compare(const row *mine, int me, int n)
{
    int rows = n * ROWS, wrong = 0;
    row *now = (row *)malloc(2 * rows * sizeof *now), *next = now + rows;

    if (!now)
        return 1;
    for (int i = 0; i < rows * COLUMNS; i++)
        now[i / COLUMNS][i % COLUMNS] = next[i / COLUMNS][i % COLUMNS] =
            start_value(i / COLUMNS, i % COLUMNS);
    for (int step = 1; step <= STEPS; step++) {
        row *u = step % 2 ? now : next, *v = step % 2 ? next : now;
        for (int r = 1; r < rows - 1; r++)
            for (int c = 1; c < COLUMNS - 1; c++)
                v[r][c] = next_value(u, r, c);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += mine[i / COLUMNS][i % COLUMNS] != now[me * ROWS + i / COLUMNS][i % COLUMNS];
    free(now);
    return wrong;
}

int main()
{
    static int wrong, all_wrong;
    static row result[ROWS];

    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    row *even = (row *)gshmem_calloc(ROWS + 2, sizeof *even);
    row *odd = (row *)gshmem_calloc(ROWS + 2, sizeof *odd);
    uint64_t *arrived = (uint64_t *)gshmem_calloc(2, sizeof *arrived); /* from above, from below */
    if (!even || !odd || !arrived)
        return 1;

    jacobi<<<1, 128>>>(even, odd, arrived);
    wrong = cudaMemcpy(result, &(STEPS % 2 ? odd : even)[1], sizeof result, cudaMemcpyDefault)
                ? 1
                : compare(result, me, n);
    gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (me == 0)
        printf("halo2d: %d steps over %d x %d values on %d PEs, against one processor: %s\n", STEPS,
               n * ROWS, COLUMNS, n, all_wrong ? "wrong" : "right");
    gshmem_raise(gshmem_free(arrived));
    gshmem_raise(gshmem_free(odd));
    gshmem_raise(gshmem_free(even));
    return gshmem_finalize() || all_wrong;
}

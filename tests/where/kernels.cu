/* Kernels that hang: PE 1 is the culprit, in a loop of its program (hangs.py); or crash.
 *
 *     kernels WAY [DIRECTORY] */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"

#include "found.h"
#include "gshmem_device.h"
#include "nvshmem.h"
#include "nvshmemx.h"

static volatile int go_on = 1;

__global__ void kernel_that_waits(uint64_t *flag)
{
    gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
}

__global__ void kernel_that_meets(void)
{
    gshmem_barrier_all();
}

__global__ void kernel_of_warps(void)
{
    nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD);
}

__global__ void kernel_that_syncs(gshmem_team_t team)
{
    gshmem_team_sync(team);
}

__attribute__((noinline)) static void loop_for_ever(void)
{
    while (go_on)
        ;
}

__attribute__((noinline)) static void sleep_for_ever(void)
{
    while (go_on)
        sleep(1000);
}

/* Block 1 would set the flag for which block 0 waits, and does something else. */
__global__ void kernel_that_loops(uint64_t *flag, volatile int *goes_on)
{
    if (blockIdx.x == 0)
        gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
    else
        while (*goes_on)
            ;
}

/* One of two teams of all PEs, for PE 1 another than for the others; the last of many. */
static gshmem_team_t other_team(int me)
{
    gshmem_team_t team[2];

    for (int i = 0; i < 1300; i++)
        gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &team[i % 2]);
    return team[me == 1];
}

/* PE 1 has another team than the others on its stream. */
static void way_stream(int me)
{
    gshmem_team_sync_on_stream(other_team(me), NULL);
    cudaDeviceSynchronize();
}

/* The same in kernels: PEs 0 and 1 wait for each other, in collectives of two teams. */
static void way_teams(int me)
{
    kernel_that_syncs<<<1, 1>>>(other_team(me));
    cudaDeviceSynchronize();
}

/* Puts to PE 1, which is stopped. */
__global__ void kernel_that_puts(char *to, const char *from, size_t bytes)
{
    for (;;)
        gshmem_putmem(to, from, bytes, 1);
}

/* PE 1 crashes in one of several threads. */
__global__ void kernel_that_crashes(int *nowhere)
{
    if (blockIdx.x == 1 && threadIdx.x == 2)
        *(volatile int *)nowhere = 1;
}

__device__ __attribute__((noinline)) int go_deep(int n)
{
    volatile char large[3000];

    large[0] = (char)n;
    return n ? go_deep(n + 1) + large[0] : 0;
}

__global__ void kernel_that_goes_deep(int *out)
{
    *out = go_deep(1);
}

static void end_crash(int me, bool deep)
{
    int *out;

    cudaMallocHost((void **)&out, sizeof *out);
    if (me == 1 && deep)
        kernel_that_goes_deep<<<1, 1>>>(out);
    else if (me == 1)
        kernel_that_crashes<<<2, 4>>>(NULL);
    cudaDeviceSynchronize();
    gshmem_barrier_all();
}

static void way_loops(uint64_t *flag, int me)
{
    int *goes_on;

    if (me == 1) {
        cudaMallocHost((void **)&goes_on, sizeof *goes_on);
        *goes_on = 1;
        kernel_that_loops<<<2, 1>>>(flag, goes_on);
        cudaDeviceSynchronize();
    }
    gshmem_barrier_all();
}

/* PE 1 will be stopped as soon as all PEs are found: PE 0 is, once it needs PE 1 for its puts alone. */
static void way_owes(int me, const char *directory)
{
    const size_t bytes = 1 << 20;
    char *heap = (char *)gshmem_malloc(bytes);

    gshmem_barrier_all();
    if (me == 0) {
        be_found(directory, me);
        kernel_that_puts<<<1, 1>>>(heap, heap, bytes);
        cudaDeviceSynchronize();
    }
    gshmem_barrier_all();
}

/* The kernel's wait has lasted long enough to be shown when it ends. */
static void way_over(uint64_t *flag, int me)
{
    if (me == 0) {
        sleep(1);
        gshmem_uint64_p(flag, 1, 1);
    }
    if (me == 1) {
        kernel_that_waits<<<1, 2>>>(flag);
        cudaDeviceSynchronize();
        sleep_for_ever();
    }
    gshmem_barrier_all();
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    gshmem_init();
    int me = gshmem_my_pe();
    uint64_t *flag = (uint64_t *)gshmem_calloc(1, 64);
    const bool owes = strcmp(way, "stopped_kernel") == 0;
    if (argc > 2 && !(owes && me == 0))
        be_found(argv[2], me);
    if (strcmp(way, "kernel_crash") == 0 || strcmp(way, "kernel_deep") == 0)
        end_crash(me, strcmp(way, "kernel_deep") == 0);
    if (strcmp(way, "kernel_over") == 0)
        way_over(flag, me);
    if (strcmp(way, "kernel_loop") == 0)
        way_loops(flag, me);
    if (owes)
        way_owes(me, argv[2]);
    if (strcmp(way, "stream_teams") == 0)
        way_stream(me);
    if (strcmp(way, "kernel_teams") == 0)
        way_teams(me);
    if (me == 1)
        loop_for_ever();
    if (strcmp(way, "kernel_warps") == 0)
        kernel_of_warps<<<1, 128>>>();
    else if (strcmp(way, "kernel_wait") == 0)
        kernel_that_waits<<<1, 2>>>(flag);
    else
        kernel_that_meets<<<1, 1>>>();
    cudaDeviceSynchronize();
    gshmem_finalize();
    return 0;
}

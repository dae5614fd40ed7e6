/* Kernels whose traces are known.
 *
 *     kernels WAY [N] */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gshmem.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include "check.h"

enum { BLOCKS = 3, THREADS = 2 };

/* Each thread of each block makes n puts, and thread 0 of each block a blocking one, and n puts with
 * a signal, which take two slots of a channel. */
__global__ void work(uint64_t *memory, uint64_t *own, uint64_t *flag, int n, int right)
{
    if (threadIdx.x == 0) /* waits until its source may be reused */
        gshmem_putmem(memory + 20, own, 16, right);
    for (int i = 0; i < n; i++) {
        gshmem_uint64_p(memory + threadIdx.x, i, right);
        if (threadIdx.x == 0)
            gshmem_putmem_signal_nbi(memory + 8, own, 16, flag, 1, GSHMEM_SIGNAL_ADD, right);
    }
    gshmem_fence();
    gshmem_quiet();
}

/* More than the transport takes at a time. */
__global__ void put_large(char *to, char *from, size_t bytes, int n, int right)
{
    for (int i = 0; i < n; i++)
        gshmem_putmem_nbi(to, from, bytes, right);
    gshmem_quiet();
}

/* Not in a wait for anybody. */
__device__ void compute(int ms)
{
    for (int i = 0; i < ms; i++)
        __nanosleep(1000000);
}

enum { LATE_MS = 40, DEPTH_KEPT = 60, DEEP_MS = 5 };

/* Thread 0 of block 0 waits for a signal that PE 0 sends late; its other threads at a barrier behind
 * that. Block 1, if there is one, computes all the time. */
__global__ void wait_for_signal(uint64_t *flag, int pe)
{
    if (blockIdx.x == 1) {
        compute(2 * LATE_MS);
        return;
    }
    if (threadIdx.x == 0) {
        gshmem_range_push("in block 0");
        if (pe == 0) {
            compute(LATE_MS);
            gshmem_uint64_p(flag, 1, 1);
            gshmem_quiet();
        } else {
            gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
        }
        gshmem_range_pop();
    }
    __syncthreads();
}

/* PE 1 is late for a collective. */
__global__ void meet(int pe)
{
    if (pe == 1)
        compute(LATE_MS);
    gshmem_barrier_all_block();
}

/* Thread 0 has all response slots, so that thread 1 waits for one. */
__global__ void ask(uint64_t *word, int right)
{
    static uint32_t tag[GSHMEM_RESPONSES];
    const struct gshmem_device_job *job = gshmem_device_here.ctx.job;
    uint32_t slot, t;

    if (threadIdx.x == 0) {
        while (gshmem_kernel_claim(job, &slot, &t))
            tag[slot] = t;
    }
    __syncthreads();
    if (threadIdx.x == 1) {
        gshmem_uint64_atomic_fetch_add(word, 1, right);
    } else {
        compute(LATE_MS);
        for (slot = 0; slot < GSHMEM_RESPONSES; slot++)
            gshmem_let_go(&job->response_owner[slot], tag[slot] << 1);
    }
}

/* The third warp of a warpgroup is late for its barrier. */
__global__ void meet_by_warpgroup(void)
{
    if (threadIdx.x / 32 == 2)
        compute(LATE_MS);
    nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD);
}

/* Threads 0 and 2 wait for a word that thread 1 stores late, and let the host device look at it. Thread 1 lets
 * others run a few times, as seldom as a thread that computes. */
__global__ void look(uint64_t *word)
{
    struct gshmem_kernel_wait w = {};

    if (threadIdx.x == 1) {
        for (int i = 0; i < 10; i++) {
            const long long begin = clock64(); /* ns */
            while (clock64() - begin < LATE_MS * 100000)
                ;
            __nanosleep(0);
        }
        gshmem_store_release(word, 1);
        return;
    }
    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, word);
    while (gshmem_load_acquire(word) == 0)
        gshmem_kernel_wait_word(&w, gshmem_device_here.ctx.job->failure, word, 0);
    gshmem_kernel_waited();
}

/* Thread 0 waits n times for a word that thread 1 stores after letting it look a few times. */
__global__ void wait_shortly(uint64_t *word, int n)
{
    for (uint64_t i = 1; i <= (uint64_t)n; i++) {
        if (threadIdx.x == 1) {
            for (int turn = 0; turn < 8; turn++)
                __nanosleep(0);
            gshmem_store_release(word, i);
        } else {
            struct gshmem_kernel_wait w = {};
            gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, word);
            while (gshmem_load_acquire(word) < i)
                gshmem_kernel_wait_step(&w, gshmem_device_here.ctx.job->failure);
            gshmem_kernel_waited();
        }
        __syncthreads();
    }
}

/* Thread 0 waits shortly in the team's block, as in a collective, and the kernel goes on until the host has freed
 * the team. */
__global__ void outlive(gshmem_team_t team, uint64_t *waited, const uint64_t *freed)
{
    uint64_t *word = &gshmem_kernel_team(team)->sync->word[0][0];

    if (threadIdx.x == 1) {
        for (int turn = 0; turn < 8; turn++)
            __nanosleep(0);
        gshmem_store_release(word, 1);
    } else {
        struct gshmem_kernel_wait w = {};
        gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, word);
        while (gshmem_load_acquire(word) == 0)
            gshmem_kernel_wait_step(&w, gshmem_device_here.ctx.job->failure);
        gshmem_kernel_waited();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        gshmem_store_release(waited, 1);
        while (gshmem_load_acquire(freed) == 0)
            __nanosleep(1000);
    }
}

/* Ranges in ranges, more than are kept. Time passes within all that are. */
__global__ void go_deep(int depth)
{
    for (int i = 0; i < depth; i++)
        gshmem_range_push(i < DEPTH_KEPT ? "deep" : "too deep");
    for (int i = depth; i > 0; i--) {
        if (i == DEPTH_KEPT)
            compute(DEEP_MS);
        gshmem_range_pop();
    }
    gshmem_range_push("after");
    gshmem_range_pop();
}

static void compute_on_host(int ms)
{
    const struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

static void check_launch(void)
{
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "operations";
    const int n = argc > 2 ? atoi(argv[2]) : 1;

    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), right = (me + 1) % gshmem_n_pes();
    uint64_t *memory = (uint64_t *)gshmem_calloc(32, 8);
    CHECK(memory);
    if (strcmp(way, "operations") == 0) {
        work<<<BLOCKS, THREADS>>>(memory, memory + 16, memory + 12, n, right);
    } else if (strcmp(way, "large") == 0) {
        const size_t bytes = 16 << 20;
        char *both = (char *)gshmem_malloc(2 * bytes);
        CHECK(both);
        put_large<<<1, 1>>>(both, both + bytes, bytes, n, right);
    } else if (strcmp(way, "meet") == 0) {
        meet<<<1, THREADS>>>(me);
    } else if (strcmp(way, "ask") == 0) {
        ask<<<1, THREADS>>>(memory, right);
    } else if (strcmp(way, "look") == 0) {
        look<<<1, 3>>>(memory);
    } else if (strcmp(way, "short") == 0) {
        wait_shortly<<<1, THREADS>>>(memory, n);
    } else if (strcmp(way, "outlive") == 0) {
        gshmem_team_t team;
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team));
        outlive<<<1, THREADS>>>(team, memory, memory + 1);
        while (__atomic_load_n(memory, __ATOMIC_ACQUIRE) == 0)
            compute_on_host(1);
        CHECK_OK(gshmem_team_destroy(team));
        __atomic_store_n(memory + 1, 1, __ATOMIC_RELEASE);
    } else if (strcmp(way, "deep") == 0) {
        go_deep<<<1, 1>>>(n);
    } else if (strcmp(way, "warpgroup") == 0) {
        meet_by_warpgroup<<<1, 128>>>();
    } else {
        wait_for_signal<<<strcmp(way, "beside") == 0 ? 2 : 1, THREADS>>>(memory, me);
        if (strcmp(way, "host") == 0)
            compute_on_host(2 * LATE_MS);
    }
    check_launch();
    CHECK_OK(gshmem_barrier_all());
    if (strcmp(way, "operations") == 0)
        CHECK_EQ(memory[12], (uint64_t)n * BLOCKS);
    return gshmem_finalize();
}

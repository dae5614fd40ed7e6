/* Threads that wait for words, and the time at which waits make progress (gshmem_host_yield_turn):
 * which threads the run queue leaves out, and that it forgets none. The host device's own. */
#include "device.h"

#include <stdint.h>
#include <sys/mman.h>

enum { THREADS = 64, TURNS = 6400 };

static __device__ uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE); /* pairs with the release in store */
}

static __device__ void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Waits for the word to become another than 0; how often it had a turn. */
static __device__ long await(const uint64_t *word)
{
    long turns = 0;

    while (load(word) == 0) {
        gshmem_host_yield_turn(word, 0);
        turns++;
    }
    return turns;
}

/* Each thread waits for the one with the next number, in an order that is not the queue's. */
__global__ void wait_for_next(uint64_t *word)
{
    const unsigned i = threadIdx.x, next = (i * 5 + 3) % THREADS;

    if (i != 0)
        await(&word[i]);
    store(&word[next], 1);
}

/* turns[i]: of threads that wait while thread 0 has TURNS. */
__global__ void wait_while_another_runs(uint64_t *word, long *turns)
{
    if (threadIdx.x) {
        turns[threadIdx.x] = await(word);
        return;
    }
    for (int i = 0; i < TURNS; i++)
        gshmem_host_yield_turn(NULL, 0);
    store(word, 1);
}

/* due[i]: how often it was time to make progress. */
__global__ void take_turns(long *due)
{
    for (int i = 0; i < TURNS; i++)
        due[threadIdx.x] += gshmem_host_yield_turn(NULL, 0);
}

__global__ void fail_while_others_wait(const uint64_t *word)
{
    if (threadIdx.x)
        await(word);
    for (int i = 0; i < 10; i++)
        gshmem_host_yield_turn(NULL, 0);
    __trap();
}

__global__ void yield_in_both_ways(long *sum)
{
    for (int i = 0; i < TURNS / 64; i++) {
        if (threadIdx.x % 2)
            gshmem_host_yield();
        else
            gshmem_host_yield_turn(NULL, 0);
        sum[threadIdx.x]++;
    }
}

static void check_all_end()
{
    uint64_t *word = shared_array<uint64_t>(THREADS);

    wait_for_next<<<1, THREADS>>>(word);
    CHECK_LAUNCH();
    CHECK_CUDA(cudaFree(word));
}

/* All but one turn in 64 are left out of a thread whose word stays as it was. */
static void check_left_out()
{
    uint64_t *word = shared_array<uint64_t>(1);
    long *turns = shared_array<long>(THREADS);

    wait_while_another_runs<<<1, THREADS>>>(word, turns);
    CHECK_LAUNCH();
    for (int i = 1; i < THREADS; i++)
        if (turns[i] < TURNS / 128 || turns[i] > TURNS / 8)
            CHECK_FAIL("thread %d had %ld turns of %d", i, turns[i], TURNS);
    CHECK_CUDA(cudaFree(turns));
    CHECK_CUDA(cudaFree(word));
}

/* It is time once in a turn of all threads, or once in eight turns of one. */
static void check_due(int threads, long most)
{
    long *due = shared_array<long>(THREADS), all = 0;

    take_turns<<<1, threads>>>(due);
    CHECK_LAUNCH();
    for (int i = 0; i < threads; i++)
        all += due[i];
    if (all < most / 4 || all > most)
        CHECK_FAIL("%d threads with %d turns each: it was time %ld times", threads, TURNS, all);
    CHECK_CUDA(cudaFree(due));
}

/* A launch that fails leaves threads in the queue. What they waited for may be gone when others
 * take their places. */
static void check_failure()
{
    uint64_t *word = (uint64_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(word != MAP_FAILED);
    fail_while_others_wait<<<1, THREADS>>>(word);
    CHECK_CUDA_FAILS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    CHECK(munmap(word, 4096) == 0);
    CHECK_CUDA(cudaDeviceReset());
    long *sum = shared_array<long>(THREADS);
    yield_in_both_ways<<<1, THREADS>>>(sum);
    CHECK_LAUNCH();
    for (int i = 0; i < THREADS; i++)
        CHECK(sum[i] == TURNS / 64);
    CHECK_CUDA(cudaFree(sum));
}

int main()
{
    check_all_end();
    check_left_out();
    check_due(THREADS, 2 * TURNS);
    check_due(1, TURNS / 4);
    check_failure();
    return 0;
}

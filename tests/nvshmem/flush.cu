/* flush: when it returns, the sources of all puts may be changed. The host, a thread, a warp, a block and a stream put
 * large and small blocks, flush, and change the sources; the target gets what was there before.
 *
 *     flush              all of that
 *     flush stopped      on two nodes of one PE: the put of a kernel, and one of the host, to a PE that is stopped. A
 *                        flush does not wait until the data has arrived; but until all of it is on its way. */
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { LARGE = 5 << 20, SMALL = 3000, PUTS = 4, STOPPED = 64 << 10, MANY = 40 };

struct area {
    unsigned char source[LARGE], put[LARGE];
    unsigned char few[PUTS * SMALL], small[PUTS * SMALL];
    uint64_t signal;
    int pid;
};

static __host__ __device__ unsigned char mark(int pe, int round, size_t i)
{
    return (unsigned char)(i * 7 + (i >> 8) * 13 + pe * 31 + round * 61 + 1);
}

static void prepare(area *a, int round)
{
    for (size_t i = 0; i < LARGE; i++)
        a->source[i] = mark(nvshmem_my_pe(), round, i);
    for (size_t i = 0; i < sizeof a->few; i++)
        a->few[i] = mark(nvshmem_my_pe(), round, i + 5);
    nvshmem_barrier_all();
}

static void compare(const area *a, int from, int round)
{
    size_t wrong = 0;

    nvshmem_barrier_all();
    for (size_t i = 0; i < LARGE; i++)
        wrong += a->put[i] != mark(from, round, i);
    for (size_t i = 0; i < sizeof a->small; i++)
        wrong += a->small[i] != mark(from, round, i + 5);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(a->signal, (uint64_t)round);
    nvshmem_barrier_all();
}

/* Small ones between large ones, the last with a signal. */
static __host__ __device__ void put_all(area *a, int round, int pe)
{
    const size_t part = LARGE / PUTS;

    for (int i = 0; i < PUTS; i++) {
        nvshmem_putmem_nbi(a->small + i * SMALL, a->few + i * SMALL, SMALL, pe);
        if (i < PUTS - 1)
            nvshmem_putmem_nbi(a->put + i * part, a->source + i * part, part, pe);
        else
            nvshmem_putmem_signal_nbi(a->put + i * part, a->source + i * part, part, &a->signal, (uint64_t)round,
                                      NVSHMEM_SIGNAL_SET, pe);
    }
}

static __host__ __device__ void spoil(area *a)
{
    memset(a->source, 0xff, sizeof a->source);
    memset(a->few, 0xff, sizeof a->few);
}

static void test_host(area *a, int round, int pe)
{
    put_all(a, round, pe);
    nvshmemx_flush();
    spoil(a);
    nvshmem_quiet();
    nvshmemx_flush(); /* of nothing */
}

__global__ void by_thread(area *a, int round, int pe)
{
    nvshmemx_flush();
    put_all(a, round, pe);
    nvshmemx_flush();
    spoil(a);
    nvshmem_quiet();
    nvshmemx_flush();
}

/* Each warp, or the block, flushes what its last thread has put. */
template <bool by_block> __global__ void by_many(area *a, int round, int pe)
{
    const int size = by_block ? (int)blockDim.x : 32;

    if ((int)threadIdx.x == size - 1)
        put_all(a, round, pe);
    if (by_block)
        nvshmemx_flush_block();
    else if (threadIdx.x < 32)
        nvshmemx_flush_warp();
    if (threadIdx.x == 0) {
        spoil(a);
        nvshmem_quiet();
    }
}

/* Blocks use several channels: the flush covers them all. */
__global__ void by_blocks(area *a, int round, int pe, unsigned *arrived)
{
    const size_t part = LARGE / PUTS;
    const int i = (int)blockIdx.x;

    nvshmem_putmem_nbi(a->small + i * SMALL, a->few + i * SMALL, SMALL, pe);
    nvshmem_putmem_nbi(a->put + i * part, a->source + i * part, part, pe);
    __threadfence();
    if (atomicAdd(arrived, 1) != PUTS - 1)
        return;
    __threadfence();
    nvshmemx_flush();
    spoil(a);
    nvshmemx_signal_op(&a->signal, (uint64_t)round, NVSHMEM_SIGNAL_SET, pe);
    nvshmem_quiet();
}

static void test_stream(area *a, int round, int pe)
{
    const size_t part = LARGE / PUTS;
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < PUTS; i++) {
        nvshmemx_putmem_nbi_on_stream(a->small + i * SMALL, a->few + i * SMALL, SMALL, pe, stream);
        nvshmemx_putmem_nbi_on_stream(a->put + i * part, a->source + i * part, part, pe, stream);
    }
    nvshmemx_flush_on_stream(stream);
    CHECK_CUDA(cudaMemsetAsync(a->source, 0xff, sizeof a->source, stream));
    CHECK_CUDA(cudaMemsetAsync(a->few, 0xff, sizeof a->few, stream));
    nvshmemx_signal_op_on_stream(&a->signal, (uint64_t)round, NVSHMEM_SIGNAL_SET, pe, stream);
    nvshmemx_quiet_on_stream(stream);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

static void test_all(area *a, int left, int right)
{
    unsigned *arrived;
    int round = 0;

    CHECK_CUDA(cudaMallocManaged(&arrived, sizeof *arrived));
    *arrived = 0;
    for (int i = 0; i < 2; i++) {
        prepare(a, ++round);
        test_host(a, round, right);
        compare(a, left, round);
    }
    prepare(a, ++round);
    by_thread<<<1, 1>>>(a, round, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    compare(a, left, round);
    prepare(a, ++round);
    by_many<false><<<1, 64>>>(a, round, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    compare(a, left, round);
    prepare(a, ++round);
    by_many<true><<<1, 96>>>(a, round, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    compare(a, left, round);
    prepare(a, ++round);
    by_blocks<<<PUTS, 1>>>(a, round, right, arrived);
    CHECK_CUDA(cudaDeviceSynchronize());
    compare(a, left, round);
    prepare(a, ++round);
    test_stream(a, round, right);
    compare(a, left, round);
    CHECK_CUDA(cudaFree(arrived));
}

__global__ void to_stopped(area *a, int pe)
{
    nvshmem_putmem_nbi(a->put, a->source, STOPPED, pe);
    nvshmemx_flush();
}

/* What block 1 puts, on a channel of its own, is more than sockets take: a flush of block 0 waits for it until the
 * other PE goes on. */
struct flags {
    int posted, resumed, early;
};

__global__ void flush_of_others(area *a, int pe, flags *f)
{
    if (blockIdx.x == 1) {
        for (int i = 0; i < MANY; i++)
            nvshmem_putmem_nbi(a->put, a->source, LARGE, pe);
        __threadfence_system();
        atomicAdd(&f->posted, 1);
        return;
    }
    while (atomicAdd(&f->posted, 0) == 0)
        continue;
    nvshmemx_flush();
    f->early = atomicAdd(&f->resumed, 0) == 0;
}

/* For a flush that waits for the other PE, which does not go on before it. */
static void too_late(int signal)
{
    static const char text[] = "a flush waits for a PE that is stopped\n";

    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

/* The socket takes all of the put; the connection was made by the barriers. */
static void test_stopped(area *a, int me)
{
    a->pid = (int)getpid();
    nvshmem_barrier_all();
    const int other = nvshmem_int_g(&a->pid, 1 - me);
    nvshmem_barrier_all();
    if (me == 0) {
        signal(SIGALRM, too_late);
        CHECK_EQ(kill(other, SIGSTOP), 0);
        alarm(100);
        to_stopped<<<1, 1>>>(a, 1);
        CHECK_CUDA(cudaDeviceSynchronize());
        nvshmem_putmem_nbi(a->put, a->source, STOPPED, 1);
        nvshmemx_flush();
        alarm(0);
        flags *f;
        CHECK_CUDA(cudaMallocHost((void **)&f, sizeof *f));
        *f = flags();
        flush_of_others<<<2, 1>>>(a, 1, f);
        usleep(200000); /* time for a flush that waits for nothing to say so */
        __atomic_store_n(&f->resumed, 1, __ATOMIC_RELEASE);
        CHECK_EQ(kill(other, SIGCONT), 0);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_EQ(f->early, 0);
        CHECK_CUDA(cudaFreeHost(f));
    }
}

int main(int argc, char **argv)
{
    const bool stopped = argc > 1 && strcmp(argv[1], "stopped") == 0;

    if (stopped) /* a PE that is given up ends the wait */
        setenv("GSHMEM_PEER_TIMEOUT", "1000", 1);
    nvshmem_init();
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe();
    area *a = (area *)nvshmem_calloc(1, sizeof *a);

    CHECK(a);
    if (stopped)
        test_stopped(a, me);
    else
        test_all(a, (me + n - 1) % n, (me + 1) % n);
    nvshmem_barrier_all();
    nvshmem_free(a);
    nvshmem_finalize();
    return 0;
}

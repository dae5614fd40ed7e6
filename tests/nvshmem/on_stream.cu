/* Everything that streams take: kernels, puts, signals, waits and collectives in their order, on one
 * stream and on several that wait for each other and for other PEs. */
#include "check.h"

/* A GPU has eight queues, unless it is told otherwise, that streams share: what comes later in one waits
 * for what came before, though it is of another stream. */
#ifdef GSHMEM_HOST_DEVICE
enum { N = 3000, STREAMS = 80 };
#else
enum { N = 3000, STREAMS = 4 };
#endif

__global__ void fill(int *data, int n, int value)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = value + i;
}

__global__ void add(int *data, int n, int value)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] += value;
}

static int mype, npes;
static int *source, *dest;
static int host[16 * N];

static void bring(const int *from, size_t n, cudaStream_t stream)
{
    CHECK_CUDA(cudaMemcpyAsync(host, from, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

static void collectives(cudaStream_t stream)
{
    fill<<<4, 64, 0, stream>>>(source, N, mype);
    CHECK_EQ(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    add<<<4, 64, 0, stream>>>(dest, N, 7);
    bring(dest, N, stream);
    for (int i = 0; i < N; i++)
        CHECK_EQ(host[i], npes * i + npes * (npes - 1) / 2 + 7);

    CHECK_EQ(nvshmemx_int_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    bring(dest, N, stream);
    for (int i = 0; i < N; i++)
        CHECK_EQ(host[i], i + npes - 1);

    CHECK_EQ(nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    bring(dest, (size_t)npes * N, stream);
    for (int i = 0; i < npes * N; i++)
        CHECK_EQ(host[i], i / N + i % N);

    fill<<<4, 64, 0, stream>>>(source, npes * N, 100000 * mype);
    CHECK_EQ(nvshmemx_int_alltoall_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    bring(dest, (size_t)npes * N, stream);
    for (int i = 0; i < npes * N; i++)
        CHECK_EQ(host[i], 100000 * (i / N) + mype * N + i % N);

    CHECK_EQ(nvshmemx_int_broadcast_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, npes - 1, stream),
             0);
    bring(dest, N, stream);
    for (int i = 0; i < N; i++)
        CHECK_EQ(host[i], 100000 * (npes - 1) + i);

    CHECK_EQ(nvshmemx_int_sum_reducescatter_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    bring(dest, N, stream);
    for (int i = 0; i < N; i++)
        CHECK_EQ(host[i], npes * (mype * N + i) + 100000 * (npes * (npes - 1) / 2));

    CHECK_EQ(nvshmemx_broadcastmem_on_stream(NVSHMEM_TEAM_WORLD, dest, source, 40, 0, stream), 0);
    CHECK_EQ(nvshmemx_fcollectmem_on_stream(NVSHMEM_TEAM_WORLD, dest + 100, source, 40, stream), 0);
    CHECK_EQ(nvshmemx_alltoallmem_on_stream(NVSHMEM_TEAM_WORLD, dest + 500, source, 40, stream), 0);
    bring(dest, 1000, stream);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(host[i], i);
    for (int i = 0; i < 10 * npes; i++) {
        CHECK_EQ(host[100 + i], 100000 * (i / 10) + i % 10);
        CHECK_EQ(host[500 + i], 100000 * (i / 10) + mype * 10 + i % 10);
    }
    CHECK_EQ(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream), 0);
    CHECK_EQ(nvshmemx_team_sync_on_stream(NVSHMEM_TEAM_WORLD, stream), 0);
    CHECK_EQ(nvshmemx_sync_on_stream(NVSHMEM_TEAM_WORLD, stream), 0);
    nvshmemx_sync_all_on_stream(stream);
}

static void puts_and_gets(cudaStream_t stream)
{
    const int right = (mype + 1) % npes, left = (mype + npes - 1) % npes;

    fill<<<4, 64, 0, stream>>>(source, N, mype);
    fill<<<4, 64, 0, stream>>>(dest, 10 * N, 0);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_int_put_on_stream(dest, source, N, right, stream);
    nvshmemx_int_put_nbi_on_stream(dest + N, source, N, right, stream);
    nvshmemx_putmem_on_stream(dest + 2 * N, source, N * sizeof(int), right, stream);
    nvshmemx_put32_on_stream(dest + 3 * N, source, N, right, stream);
    nvshmemx_int_iput_on_stream(dest + 4 * N, source, 2, 3, N / 3, right, stream);
    nvshmemx_int_p_on_stream(dest + 6 * N, -5 - mype, right, stream);
    nvshmemx_int_get_on_stream(dest + 7 * N, source, N, right, stream);
    nvshmemx_getmem_nbi_on_stream(dest + 8 * N, source, N * sizeof(int), right, stream);
    nvshmemx_iget32_on_stream(dest + 9 * N, source, 1, 2, N / 2, right, stream);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_barrier_all_on_stream(stream);
    bring(dest, 10 * N, stream);
    for (int i = 0; i < N; i++) {
        for (int part = 0; part < 4; part++)
            CHECK_EQ(host[part * N + i], left + i);
        CHECK_EQ(host[7 * N + i], right + i);
        CHECK_EQ(host[8 * N + i], right + i);
        CHECK_EQ(host[9 * N + i], i < N / 2 ? right + 2 * i : 9 * N + i);
    }
    for (int i = 0; i < 2 * N; i++)
        CHECK_EQ(host[4 * N + i], i % 2 == 0 && i / 2 < N / 3 ? left + i / 2 * 3 : 4 * N + i);
    CHECK_EQ(host[6 * N], -5 - left);
    CHECK_EQ(nvshmemx_int_g_on_stream(source + 9, right, stream), right + 9);
}

/* A token goes round the PEs, from stream to stream. */
static void round_the_ring(cudaStream_t *stream, uint64_t *signal, int *ivars)
{
    const int right = (mype + 1) % npes;

    nvshmem_barrier_all();
    for (uint64_t lap = 1; lap <= 10; lap++) {
        if (mype > 0)
            nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, lap, stream[lap % 2]);
        nvshmemx_int_put_signal_on_stream(dest, dest, 1, signal, lap, NVSHMEM_SIGNAL_SET, right,
                                          stream[lap % 2]);
        if (mype == 0)
            nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, lap, stream[lap % 2]);
        CHECK_CUDA(cudaStreamSynchronize(stream[lap % 2]));
    }
    CHECK_EQ(nvshmem_signal_fetch(signal), 10);
    nvshmem_barrier_all();

    nvshmemx_signal_op_on_stream(signal, 32, NVSHMEM_SIGNAL_ADD, right, stream[0]);
    nvshmemx_uint64_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 42, stream[0]);
    nvshmemx_int_p_on_stream(ivars, 3, right, stream[0]);
    nvshmemx_int_p_on_stream(ivars + 1, 3, right, stream[0]);
    nvshmemx_int_p_on_stream(ivars + 2, 5, right, stream[0]);
    int status[] = {0, 0, 1}, values[] = {3, 3, 5};
    nvshmemx_int_wait_until_all_on_stream(ivars, 3, status, NVSHMEM_CMP_EQ, 3, stream[0]);
    nvshmemx_int_wait_until_all_vector_on_stream(ivars, 3, NULL, NVSHMEM_CMP_EQ, values, stream[0]);
    bring(ivars, 3, stream[0]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(host[i], values[i]);
}

/* Each stream waits for a signal that the one made after it sends: none may hold up another. */
static void many_streams(uint64_t *signal)
{
    static cudaStream_t stream[STREAMS];
    const int right = (mype + 1) % npes;

    for (int i = 0; i < STREAMS; i++)
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    nvshmem_barrier_all();
    for (int i = 0; i < STREAMS; i++) {
        if (i < STREAMS - 1)
            nvshmemx_signal_wait_until_on_stream(signal + i + 1, NVSHMEM_CMP_EQ, 1, stream[i]);
        nvshmemx_signal_op_on_stream(signal + i, 1, NVSHMEM_SIGNAL_SET, right, stream[i]);
    }
    for (int i = 0; i < STREAMS; i++) {
        CHECK_CUDA(cudaStreamSynchronize(stream[i]));
        CHECK_CUDA(cudaStreamDestroy(stream[i]));
    }
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 1, 0);
    CHECK_CUDA(cudaStreamSynchronize(0));
}

/* A graph does all of it again at each launch; one that is never launched does nothing. */
static void captured(cudaStream_t stream)
{
    const int right = (mype + 1) % npes;
    cudaGraph_t graph, unused;
    cudaGraphExec_t launched;

    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    nvshmemx_int_p_on_stream(dest, 99, right, stream);
    CHECK_CUDA(cudaStreamEndCapture(stream, &unused));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    nvshmemx_int_put_on_stream(dest, source, N, right, stream);
    nvshmemx_barrier_all_on_stream(stream);
    add<<<1, 64, 0, stream>>>(source, N, 1);
    CHECK_EQ(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest + N, dest, N, stream), 0);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&launched, graph, 0));

    fill<<<1, 64, 0, stream>>>(source, N, mype);
    nvshmemx_barrier_all_on_stream(stream);
    for (int launch = 0; launch < 3; launch++) {
        CHECK_CUDA(cudaGraphLaunch(launched, stream));
        bring(dest, 2 * N, stream);
        for (int i = 0; i < N; i++) {
            CHECK_EQ(host[i], (mype + npes - 1) % npes + i + launch);
            CHECK_EQ(host[N + i], npes * (npes - 1) / 2 + npes * (i + launch));
        }
        nvshmem_barrier_all();
    }
    CHECK_CUDA(cudaGraphExecDestroy(launched));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaGraphDestroy(unused));
}

int main(void)
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    cudaStream_t stream[2];

    CHECK_EQ(nvshmemx_init_attr(0, &attr), 0);
    mype = nvshmem_my_pe();
    npes = nvshmem_n_pes();
    CHECK(npes <= 16);
    CHECK_CUDA(cudaStreamCreate(&stream[0]));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream[1], cudaStreamNonBlocking));
    source = (int *)nvshmem_malloc(16 * N * sizeof(int));
    dest = (int *)nvshmem_malloc(16 * N * sizeof(int));
    uint64_t *signal = (uint64_t *)nvshmem_calloc(1 + STREAMS, sizeof(uint64_t));
    int *ivars = (int *)nvshmem_calloc(3, sizeof(int));
    CHECK(source && dest && signal && ivars);

    for (int i = 0; i < 2; i++)
        collectives(stream[i]);
    CHECK_CUDA(cudaDeviceSynchronize());
    collectives(0);
    CHECK_CUDA(cudaDeviceSynchronize());
    puts_and_gets(stream[1]);
    CHECK_CUDA(cudaDeviceSynchronize());
    captured(stream[1]);
    round_the_ring(stream, signal, ivars);
    many_streams(signal + 1);

    nvshmem_barrier_all();
    nvshmem_free(ivars);
    nvshmem_free(signal);
    nvshmem_free(dest);
    nvshmem_free(source);
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaStreamDestroy(stream[i]));
    nvshmemx_hostlib_finalize();
    return 0;
}

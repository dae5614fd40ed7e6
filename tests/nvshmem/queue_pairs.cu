/* Queue pairs: each operation of NVSHMEM's on several of them, by a thread, a warp, a block; what their
 * quiets and fences cover; handles with a meaning of their own; more of them while kernels run.
 *
 *     queue_pairs          all of that
 *     queue_pairs stopped  on two nodes: one queue pair is full of puts to a PE that is stopped; the
 *                          others' operations on other PEs go on, and their quiets return
 *     queue_pairs failed   with GSHMEM_ON_ERROR=return: a failure is the quiet's of its own queue pair
 *     queue_pairs wrong    the same: handles, PEs and arrays that are none */
#include <signal.h>

#include "check.h"

enum { N = 300, PAIRS = 5, SCOPES = 3 };

/* What the left neighbour writes, [of each scope]; and what this PE gets from the right one. */
struct area {
    float source[N], put[SCOPES][N], nbi[SCOPES][N], signalled[SCOPES][N], signalled_nbi[SCOPES][N];
    float got[SCOPES][N], got_nbi[SCOPES][N], bytes[SCOPES][N];
    uint64_t signal[SCOPES][2];
    uint64_t counter;
    double p, g;
    __half half;
    int8_t small;
    nvshmemx_qp_handle_t handle[PAIRS];
};

static __host__ __device__ float value_of(int pe, int i)
{
    return pe * 1000.0f + i;
}

#define OPERATIONS(ending, scope)                                                                  \
    static __device__ void operations##ending(area *a, int right)                                  \
    {                                                                                              \
        const nvshmemx_qp_handle_t *qp = a->handle;                                                \
        nvshmemx_qp_float_put##ending(a->put[scope], a->source, N, right, qp[0]);                  \
        nvshmemx_qp_float_put_nbi##ending(a->nbi[scope], a->source, N, right, qp[1]);              \
        nvshmemx_qp_float_get##ending(a->got[scope], a->source, N, right, qp[2]);                  \
        nvshmemx_qp_float_get_nbi##ending(a->got_nbi[scope], a->source, N, right, qp[3]);          \
        nvshmemx_qp_putmem_nbi##ending(a->bytes[scope], a->source, sizeof a->source, right,        \
                                       qp[1]);                                                     \
        nvshmemx_qp_float_put_signal##ending(a->signalled[scope], a->source, N,                    \
                                             &a->signal[scope][0], 7, NVSHMEM_SIGNAL_SET, right,   \
                                             qp[2]);                                               \
        nvshmemx_qp_float_put_signal_nbi##ending(a->signalled_nbi[scope], a->source, N,            \
                                                 &a->signal[scope][1], 8, NVSHMEM_SIGNAL_ADD,      \
                                                 right, NVSHMEMX_QP_ANY);                          \
        nvshmemx_qp_fence##ending(NVSHMEMX_PE_ALL, a->handle, PAIRS);                              \
        nvshmemx_qp_quiet##ending(right, a->handle, PAIRS);                                        \
    }

OPERATIONS(, 0)
OPERATIONS(_warp, 1)
OPERATIONS(_block, 2)

__global__ void all_operations(area *a, int right)
{
    if (threadIdx.x == 0) {
        operations(a, right);
        nvshmemx_qp_double_p(&a->p, value_of(nvshmem_my_pe(), 3), right, a->handle[4]);
        nvshmemx_qp_half_p(&a->half, __float2half(nvshmem_my_pe()), right, a->handle[0]);
        nvshmemx_qp_int8_p(&a->small, (int8_t)(nvshmem_my_pe() + 1), right, a->handle[1]);
        a->g = nvshmemx_qp_float_g(&a->source[9], right, a->handle[4]);
        for (int i = 0; i < PAIRS; i++)
            nvshmemx_qp_signal_op(&a->counter, 1, NVSHMEM_SIGNAL_ADD, right, a->handle[i]);
        nvshmemx_qp_signal_op(&a->counter, 10, NVSHMEM_SIGNAL_ADD, right, NVSHMEMX_QP_DEFAULT);
    }
    if (threadIdx.x >= 32 && threadIdx.x < 64)
        operations_warp(a, right);
    __syncthreads();
    operations_block(a, right);
    nvshmemx_qp_quiet_block(NVSHMEMX_PE_ALL, NULL, NVSHMEMX_QP_ALL);
}

static void test_operations(area *a, int left, int right)
{
    nvshmemx_qp_handle_t *some = NULL, *more = NULL;

    CHECK_EQ(nvshmemx_qp_create(2, &some), NVSHMEMX_SUCCESS);
    CHECK_EQ(nvshmemx_qp_create(PAIRS - 2, &more), NVSHMEMX_SUCCESS);
    for (int i = 0; i < PAIRS; i++)
        a->handle[i] = i < 2 ? some[i] : more[i - 2];
    for (int i = 0; i < PAIRS; i++) {
        for (int k = 0; k < i; k++)
            CHECK(a->handle[i] != a->handle[k]);
        CHECK(a->handle[i] != NVSHMEMX_QP_DEFAULT && a->handle[i] != NVSHMEMX_QP_ALL &&
              a->handle[i] != NVSHMEMX_QP_HOST);
    }
    for (int i = 0; i < N; i++)
        a->source[i] = value_of(nvshmem_my_pe(), i);
    nvshmem_barrier_all();
    all_operations<<<1, 96>>>(a, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();

    for (int s = 0; s < SCOPES; s++) {
        for (int i = 0; i < N; i++) {
            CHECK_EQ(a->put[s][i], value_of(left, i));
            CHECK_EQ(a->nbi[s][i], value_of(left, i));
            CHECK_EQ(a->bytes[s][i], value_of(left, i));
            CHECK_EQ(a->signalled[s][i], value_of(left, i));
            CHECK_EQ(a->signalled_nbi[s][i], value_of(left, i));
            CHECK_EQ(a->got[s][i], value_of(right, i));
            CHECK_EQ(a->got_nbi[s][i], value_of(right, i));
        }
        CHECK_EQ(a->signal[s][0], 7);
        CHECK_EQ(a->signal[s][1], 8);
    }
    CHECK_EQ(a->counter, PAIRS + 10);
    CHECK_EQ(a->p, value_of(left, 3));
    CHECK_EQ(a->g, value_of(right, 9));
    CHECK_EQ(__half2float(a->half), (float)left);
    CHECK_EQ(a->small, (int8_t)(left + 1));
    nvshmem_barrier_all();
    /* they are the program's when the job has ended */
    free(some);
    free(more);
}

/* ---- What a fence orders ----------------------------------------------------------------------- */

__global__ void fenced(uint64_t *words, nvshmemx_qp_handle_t qp, int rounds, int right)
{
    for (int i = 1; i <= rounds; i++) {
        nvshmemx_qp_uint64_p(&words[0], i, right, qp);
        nvshmemx_qp_fence(right, &qp, 1);
        nvshmemx_qp_uint64_p(&words[1], i, right, qp);
    }
    nvshmemx_qp_quiet(right, &qp, 1);
}

__global__ void look(volatile uint64_t *words, int rounds, int *early)
{
    uint64_t second = 0;

    while (second < (uint64_t)rounds) {
        second = nvshmem_uint64_atomic_fetch((uint64_t *)&words[1], nvshmem_my_pe());
        uint64_t first = nvshmem_uint64_atomic_fetch((uint64_t *)&words[0], nvshmem_my_pe());
        *early += first < second;
    }
}

static void test_fence(const area *a, int right)
{
    uint64_t *words = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    cudaStream_t stream[2];
    int *early;

    CHECK_CUDA(cudaMallocManaged(&early, sizeof *early));
    *early = 0;
    for (auto &s : stream)
        CHECK_CUDA(cudaStreamCreate(&s));
    nvshmem_barrier_all();
    look<<<1, 1, 0, stream[0]>>>(words, 200, early);
    fenced<<<1, 1, 0, stream[1]>>>(words, a->handle[3], 200, right);
    for (auto &s : stream) {
        CHECK_CUDA(cudaStreamSynchronize(s));
        CHECK_CUDA(cudaStreamDestroy(s));
    }
    CHECK_EQ(*early, 0);
    nvshmem_barrier_all();
    CHECK_CUDA(cudaFree(early));
    nvshmem_free(words);
}

/* ---- More of them, while a kernel uses others ------------------------------------------------- */

__global__ void use_until(uint64_t *word, nvshmemx_qp_handle_t qp, volatile int *end, int right)
{
    do {
        nvshmemx_qp_signal_op(word, 1, NVSHMEM_SIGNAL_ADD, right, qp);
        nvshmemx_qp_quiet(NVSHMEMX_PE_ALL, NULL, NVSHMEMX_QP_ALL);
    } while (!*end);
}

__global__ void use_each(uint64_t *word, const nvshmemx_qp_handle_t *qp, int n, int right)
{
    nvshmemx_qp_handle_t all = NVSHMEMX_QP_ALL;

    for (int i = threadIdx.x; i < n; i += blockDim.x)
        nvshmemx_qp_signal_op(word, 1, NVSHMEM_SIGNAL_ADD, right, qp[i]);
    nvshmemx_qp_quiet_warp(right, &all, 1);
}

static void test_many(const area *a, int right)
{
    enum { CALLS = 6, EACH = 7 };
    uint64_t *word = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    nvshmemx_qp_handle_t *all, *made;
    volatile int *end;

    CHECK_CUDA(cudaMallocManaged((void **)&end, sizeof *end));
    CHECK_CUDA(cudaMallocManaged(&all, CALLS * EACH * sizeof *all));
    *end = 0;
    nvshmem_barrier_all();
    use_until<<<1, 1>>>(&word[1], a->handle[1], end, right);
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(nvshmemx_qp_create(EACH, &made), NVSHMEMX_SUCCESS);
        memcpy(all + i * EACH, made, EACH * sizeof *made);
        free(made);
    }
    *end = 1;
    use_each<<<1, 32>>>(&word[0], all, CALLS * EACH, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    CHECK_EQ(word[0], CALLS * EACH);
    CHECK(word[1] > 0);
    CHECK_EQ(nvshmemx_qp_create(0, &made), NVSHMEMX_SUCCESS);
    CHECK(made);
    free(made);
    nvshmem_barrier_all();
    CHECK_CUDA(cudaFree(all));
    CHECK_CUDA(cudaFree((void *)end));
    nvshmem_free(word);
}

/* ---- One that is full ------------------------------------------------------------------------- */

/* With more commands than a channel holds the thread waits for room. */
__global__ void fill(char *dest, const char *source, size_t bytes, int n, nvshmemx_qp_handle_t qp,
                     nvshmemx_qp_handle_t quiet, int pe, volatile int *done)
{
    for (int i = 0; i < n; i++)
        nvshmemx_qp_uint8_put_nbi((uint8_t *)dest, (const uint8_t *)source, bytes, pe, qp);
    nvshmemx_qp_quiet(pe, &quiet, 1);
    __threadfence_system();
    *done = 1;
}

__global__ void use(uint64_t *dest, nvshmemx_qp_handle_t qp, int pe)
{
    for (int i = 1; i <= 100; i++) {
        nvshmemx_qp_uint64_p(dest, i, pe, qp);
        nvshmemx_qp_fence(pe, &qp, 1);
        nvshmemx_qp_quiet(pe, &qp, 1);
    }
    if (nvshmemx_qp_uint64_g(dest, pe, qp) != 100)
        __trap();
}

static void test_stopped(void)
{
    enum { BYTES = 1 << 18, COMMANDS = 1500, FEW = 200 };
    const int last = nvshmem_n_pes() - 1, other = last > 1 ? 1 : 0;
    char *dest = (char *)nvshmem_malloc(BYTES), *source;
    uint64_t *word = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    nvshmemx_qp_handle_t *qp;
    cudaStream_t stream[3];
    volatile int *done;

    CHECK_CUDA(cudaMallocManaged(&source, BYTES));
    CHECK_CUDA(cudaMallocManaged((void **)&done, 2 * sizeof *done));
    done[0] = done[1] = 0;
    CHECK_EQ(nvshmemx_qp_create(3, &qp), 0);
    for (auto &s : stream)
        CHECK_CUDA(cudaStreamCreate(&s));
    word[1] = (uint64_t)getpid();
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 0) {
        const pid_t theirs = (pid_t)nvshmem_uint64_g(&word[1], last);
        CHECK(kill(theirs, SIGSTOP) == 0);
        fill<<<1, 1, 0, stream[0]>>>(dest, source, BYTES, COMMANDS, qp[0], qp[0], last, done);
        fill<<<1, 1, 0, stream[2]>>>(dest, source, BYTES, FEW, qp[2], NVSHMEMX_QP_ALL, last,
                                     done + 1);
        use<<<1, 1, 0, stream[1]>>>(&word[0], qp[1], other);
        use<<<1, 1, 0, stream[1]>>>(&word[0], NVSHMEMX_QP_DEFAULT, other);
        CHECK_CUDA(cudaStreamSynchronize(stream[1]));
        CHECK_EQ(done[0], 0);
        CHECK_EQ(done[1], 0);
        CHECK(kill(theirs, SIGCONT) == 0);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_EQ(done[0], 1);
        CHECK_EQ(done[1], 1);
    }
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == other)
        CHECK_EQ(word[0], 100);
    for (auto &s : stream)
        CHECK_CUDA(cudaStreamDestroy(s));
    CHECK_CUDA(cudaFree(source));
    CHECK_CUDA(cudaFree((void *)done));
    free(qp);
    nvshmem_free(word);
    nvshmem_free(dest);
}

/* ---- Failures ---------------------------------------------------------------------------------- */

/* A put whose source is nothing that NICs or the proxy may read fails in its own queue pair. */
__global__ void fail_on(area *a, const float *nowhere, int right, nvshmemx_qp_handle_t bad,
                        nvshmemx_qp_handle_t good, int *status)
{
    const gshmem_ctx_t failing = nvshmem_qp_ctx(bad), other = nvshmem_qp_ctx(good);

    nvshmemx_qp_float_put_nbi(a->put[0], nowhere, N, right, bad);
    nvshmemx_qp_float_put_nbi(a->put[1], a->source, N, right, good);
    status[0] = (int)gshmem_ctx_quiet(other);
    status[1] = (int)gshmem_ctx_quiet(failing);
    status[2] = (int)gshmem_ctx_quiet(failing); /* it is reported once */
    status[3] = (int)gshmem_quiet();
}

/* Each thread of a block looks at other queue pairs, and one of them reports. */
__global__ void fail_in_block(area *a, const float *nowhere, int right)
{
    if (threadIdx.x == 0)
        nvshmemx_qp_float_put_nbi(a->put[0], nowhere, N, right, a->handle[1]);
    nvshmemx_qp_quiet_block(right, a->handle, 2);
}

static void test_failed(area *a, int right)
{
    nvshmemx_qp_handle_t *qp;
    int *status;

    CHECK_CUDA(cudaMallocManaged(&status, 4 * sizeof *status));
    CHECK_EQ(nvshmemx_qp_create(2, &qp), 0);
    nvshmem_barrier_all();
    fail_on<<<1, 1>>>(a, (const float *)(uintptr_t)(64 + 16 * right), right, qp[0], qp[1], status);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(status[0], 0);
    CHECK(status[1] != 0);
    CHECK_EQ(status[2], 0);
    CHECK_EQ(status[3], 0);
    a->handle[0] = qp[0];
    a->handle[1] = qp[1];
    fail_in_block<<<1, 64>>>(a, (const float *)(uintptr_t)128, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    CHECK_CUDA(cudaFree(status));
    free(qp);
}

__global__ void wrong(area *a, int right)
{
    nvshmemx_qp_handle_t none = 7000, negative = -5, good = NVSHMEMX_QP_DEFAULT;

    nvshmemx_qp_float_p(&a->put[0][0], 1, right, none);
    nvshmemx_qp_float_put(a->put[0], a->source, 1, right, negative);
    nvshmemx_qp_quiet(right, &none, 1);
    nvshmemx_qp_quiet(nvshmem_n_pes(), &good, 1);
    nvshmemx_qp_fence(right, NULL, 3);
    nvshmemx_qp_fence(right, &good, -3);
    nvshmemx_qp_quiet(right, NULL, 0); /* which is nothing */
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "stopped") == 0) /* a PE that is given up ends its kernels' waits */
        setenv("GSHMEM_PEER_TIMEOUT", "100", 1);
    nvshmem_init();
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe();
    area *a = (area *)nvshmem_calloc(1, sizeof *a);

    CHECK(a);
    if (strcmp(what, "stopped") == 0) {
        test_stopped();
    } else if (strcmp(what, "failed") == 0) {
        test_failed(a, (me + 1) % n);
    } else if (strcmp(what, "wrong") == 0) {
        nvshmemx_qp_handle_t *qp = NULL;
        CHECK(nvshmemx_qp_create(-1, &qp) != 0 && !qp);
        CHECK(nvshmemx_qp_create(1, NULL) != 0);
        wrong<<<1, 1>>>(a, (me + 1) % n);
        CHECK_CUDA(cudaDeviceSynchronize());
        nvshmem_barrier_all();
        CHECK_EQ(a->put[0][0], 0.0f);
    } else {
        test_operations(a, (me + n - 1) % n, (me + 1) % n);
        test_fence(a, (me + 1) % n);
        test_many(a, (me + 1) % n);
    }
    nvshmem_barrier_all();
    nvshmem_free(a);
    nvshmem_finalize();
    return 0;
}

/* A small job of kernels and streams: operations that take the channel and the proxy where a PE is not
 * mapped, collectives in kernels, operations on streams. */
#include "job.h"

enum { THREADS = 32, WORDS = 4096 };

static __host__ __device__ long value_of(int pe, int i)
{
    return 1000003L * (pe + 1) + i;
}

struct found {
    int failed; /* the first status that a call in a kernel returned */
    int wrong;  /* the line that found a wrong result */
};

#define IN_KERNEL(call)                                                                            \
    do {                                                                                           \
        const int status_of_call = (int)(call);                                                    \
        if (status_of_call)                                                                        \
            found->failed = status_of_call;                                                        \
    } while (0)
#define RIGHT_IN_KERNEL(condition)                                                                 \
    do {                                                                                           \
        if (!found->failed && !(condition))                                                        \
            found->wrong = __LINE__;                                                               \
    } while (0)

__global__ void operations(long *words, long *draft, uint64_t *signal, long *sum, struct found *found)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes(), next = (me + 1) % n;
    const int before = (me + n - 1) % n, i = threadIdx.x;
    long got = 0;

    draft[i] = value_of(me, i);
    IN_KERNEL(gshmem_putmem_signal_nbi(&words[i], &draft[i], sizeof *words, signal, 1,
                                       GSHMEM_SIGNAL_ADD, next));
    if (gshmem_signal_wait_until(signal, GSHMEM_CMP_GE, blockDim.x) < blockDim.x)
        found->failed = GSHMEM_ERR_STATE;
    RIGHT_IN_KERNEL(words[i] == value_of(before, i));
    IN_KERNEL(gshmem_long_p(&words[THREADS + i], value_of(me, i), next));
    IN_KERNEL(gshmem_quiet());
    IN_KERNEL(gshmem_long_get(&got, &words[THREADS + i], 1, next));
    RIGHT_IN_KERNEL(got == value_of(me, i));
    IN_KERNEL(gshmem_long_atomic_add(sum, 1, 0));
    IN_KERNEL(gshmem_quiet());
}

__global__ void together(gshmem_team_t team, long *to, long *from, struct found *found)
{
    const int me = gshmem_team_my_pe(team), n = gshmem_team_n_pes(team);

    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        from[i] = value_of(me, i);
    __syncthreads();
    IN_KERNEL(gshmem_barrier_block(team));
    IN_KERNEL(gshmem_long_max_reduce_block(team, to, from, WORDS));
    RIGHT_IN_KERNEL(to[threadIdx.x] == value_of(n - 1, threadIdx.x));
    IN_KERNEL(gshmem_broadcastmem_block(team, to, from, WORDS * sizeof *to, 0));
    RIGHT_IN_KERNEL(to[threadIdx.x] == value_of(0, threadIdx.x));
    IN_KERNEL(gshmem_team_sync_block(team));
}

static bool see(struct found *found, const char *what)
{
    const cudaError_t error = cudaDeviceSynchronize();

    if (error)
        fprintf(stderr, "nth: PE %d: %s: %s\n", gshmem_my_pe(), what, cudaGetErrorString(error));
    RIGHT(found->wrong == 0 || (fprintf(stderr, "nth: line %d\n", found->wrong), false));
    if (found->failed)
        fprintf(stderr, "nth: PE %d: %s: %s\n", gshmem_my_pe(), what,
                gshmem_status_name((gshmem_status_t)found->failed));
    return !error && !found->failed;
}

#define TRY_CUDA(call)                                                                             \
    do {                                                                                           \
        const cudaError_t error_of_call = (call);                                                  \
        if (error_of_call) {                                                                       \
            fprintf(stderr, "nth: PE %d: %.60s: %s\n", gshmem_my_pe(), #call,                      \
                    cudaGetErrorString(error_of_call));                                            \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* Operations on streams fail when they run: the error policy is told. */
static volatile gshmem_status_t raised;

static void note_failure(gshmem_status_t status, const char *text, void *context)
{
    (void)text, (void)context;
    raised = status;
}

static bool on_streams(int me, int n, long *to, long *from)
{
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    cudaStream_t stream;

    TRY_CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < WORDS; i++)
        from[i] = value_of(me, i);
    TRY(gshmem_barrier_all());
    TRY(gshmem_putmem_on_stream(to, from, WORDS * sizeof *to, next, stream));
    TRY(gshmem_barrier_all_on_stream(stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    TRY(raised);
    for (int i = 0; i < WORDS; i++)
        RIGHT(to[i] == value_of(before, i));
    TRY(gshmem_broadcastmem_on_stream(GSHMEM_TEAM_WORLD, to, from, WORDS * sizeof *to, 0, stream));
    TRY(gshmem_reduce_on_stream(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT64, GSHMEM_OP_MAX, to, from, WORDS,
                                stream));
    TRY(gshmem_quiet_on_stream(stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    TRY(raised);
    for (int i = 0; i < WORDS; i++)
        RIGHT(to[i] == value_of(n - 1, i));
    TRY_CUDA(cudaStreamDestroy(stream));
    return true;
}

static bool work(int me, int n)
{
    long *words, *to, *from, *sum, *draft, total;
    uint64_t *signal;
    struct found *found;
    gshmem_team_t team;
    gshmem_ctx_t ctx;

    gshmem_set_error_handler(note_failure, NULL);
    TRY_CUDA(cudaMallocManaged(&found, sizeof *found));
    TRY_CUDA(cudaMallocManaged(&draft, THREADS * sizeof *draft));
    memset(found, 0, sizeof *found);
    TRY_MEMORY(words, (long *)gshmem_calloc(2 * THREADS, sizeof *words));
    TRY_MEMORY(sum, (long *)gshmem_calloc(1, sizeof *sum));
    TRY_MEMORY(signal, (uint64_t *)gshmem_calloc(1, sizeof *signal));
    TRY_MEMORY(to, (long *)gshmem_calloc(WORDS, sizeof *to));
    TRY_MEMORY(from, (long *)gshmem_calloc(WORDS, sizeof *from));
    operations<<<1, THREADS>>>(words, draft, signal, sum, found);
    TRY_CUDA(cudaGetLastError());
    if (!see(found, "operations"))
        return false;
    TRY(gshmem_barrier_all());
    TRY(gshmem_long_get(&total, sum, 1, 0));
    RIGHT(total == (long)THREADS * n);
    TRY(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team));
    TRY(gshmem_ctx_create(0, &ctx));
    TRY(gshmem_ctx_destroy(ctx));
    together<<<1, THREADS>>>(team, to, from, found);
    TRY_CUDA(cudaGetLastError());
    if (!see(found, "together") || !on_streams(me, n, to, from))
        return false;
    TRY(gshmem_team_destroy(team));
    TRY_CUDA(cudaFree(found));
    TRY_CUDA(cudaFree(draft));
    TRY(gshmem_free(words));
    return true;
}

int main(void)
{
    return job_main(work, true);
}

/* What is on streams when a job is finalized: kernels and operations in a graph that was launched are waited for;
 * after a death those that have not come to their turn are left undone, when they come to it later, and never touch
 * the job that is gone, nor the next one.
 *
 *     finalize graph|kernels|death
 *
 * Starts its own PEs by fork and a unique id, so that no launcher is there to notice a death. */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>

#include <gshmem/stream.h>

#include "kernel.h"

enum { N = 3, VICTIM = 2 };

static void be(const gshmem_uniqueid_t *uid, int pe, int n)
{
    gshmem_init_attr_t attr = {};

    attr.uid = uid;
    attr.pe = pe;
    attr.n_pes = n;
    CHECK_OK(gshmem_init_attr(&attr));
}

__device__ static void moment_of(long long ticks)
{
    long long begin = clock64();

    while (clock64() - begin < ticks)
        __nanosleep(10000);
}

__global__ void moment()
{
    moment_of(200000000);
}

/* What has been launched has been done, each time. */
static void graph(const gshmem_uniqueid_t *uid, int pe)
{
    static long mine;
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphExec_t exec;

    be(uid, pe, N);
    long *words = (long *)gshmem_calloc(2, sizeof *words);
    CHECK(words);
    words[0] = 5;
    CHECK_OK(gshmem_barrier_all());
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    moment<<<1, 1, 0, stream>>>();
    CHECK_OK(gshmem_getmem_on_stream(&mine, words, sizeof mine, (pe + 1) % N, stream));
    CHECK_OK(gshmem_long_p_on_stream(words, 6, pe, stream));
    CHECK_OK(gshmem_barrier_all_on_stream(stream));
    CHECK_CUDA(cudaStreamEndCapture(stream, &captured));
    CHECK_CUDA(cudaGraphInstantiate(&exec, captured, 0));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(mine, 6);
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

__global__ void pass_on(uint64_t *signal, int *status)
{
    moment_of(20000000);
    *status = gshmem_signal_op(signal, 1, GSHMEM_SIGNAL_SET, (gshmem_my_pe() + 1) % gshmem_n_pes());
    if (*status == GSHMEM_OK && gshmem_signal_wait_until(signal, GSHMEM_CMP_NE, 0) != 1)
        *status = GSHMEM_ERR_STATE;
}

/* Nobody has synchronized with them: one that runs, and one behind it. */
static void kernels(const gshmem_uniqueid_t *uid, int pe)
{
    static int status[2] = {-1, -1};
    cudaStream_t stream;

    be(uid, pe, N);
    uint64_t *signal = (uint64_t *)gshmem_calloc(2, sizeof *signal);
    CHECK(signal);
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++)
        pass_on<<<1, 1, 0, stream>>>(&signal[i], &status[i]);
    CHECK_OK(gshmem_finalize());
    for (int i = 0; i < 2; i++)
        CHECK_EQ(status[i], GSHMEM_OK);
}

static std::atomic<bool> may_go{false};

static void hold_up(void *)
{
    while (!may_go)
        sched_yield();
}

static void death(const gshmem_uniqueid_t *uid, const gshmem_uniqueid_t *next, int pe)
{
    cudaStream_t stream[2];

    CHECK_CUDA(cudaStreamCreate(&stream[0]));
    CHECK_CUDA(cudaStreamCreate(&stream[1]));
    be(uid, pe, N);
    CHECK_OK(gshmem_barrier_all());
    if (pe == VICTIM)
        raise(SIGKILL);
    if (pe == 0) {
        for (int i = 0; i < 2; i++) {
            CHECK_CUDA(cudaLaunchHostFunc(stream[i], hold_up, NULL));
            CHECK_OK(gshmem_team_sync_on_stream(GSHMEM_TEAM_WORLD, stream[i]));
        }
    }
    CHECK(gshmem_barrier_all() != GSHMEM_OK);
    gshmem_finalize(); /* it says what it could not do */
    be(next, pe, VICTIM);
    long *word = (long *)gshmem_calloc(1, sizeof *word);
    may_go = true;
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaStreamSynchronize(stream[i]));
    CHECK_OK(gshmem_team_sync_on_stream(GSHMEM_TEAM_WORLD, stream[0])); /* in this job, and its first */
    CHECK_OK(gshmem_long_p_on_stream(word, 3, 1 - pe, stream[0]));
    CHECK_OK(gshmem_barrier_all_on_stream(stream[0]));
    CHECK_CUDA(cudaStreamSynchronize(stream[0]));
    CHECK_EQ(*word, 3);
    CHECK_OK(gshmem_finalize());
}

/* PE 0 is the process that makes the unique ids, and the parent of the others. */
int main(int argc, char **argv)
{
    const bool dies = argc > 1 && strcmp(argv[1], "death") == 0;
    gshmem_uniqueid_t uid, next;
    pid_t child[N];
    int own = 0, status;

    setenv("GSHMEM_ON_ERROR", "return", 1);
    if (dies)
        setenv("GSHMEM_LOG", "none", 1);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    CHECK_OK(gshmem_get_uniqueid(&next));
    for (int pe = 1; pe < N; pe++) {
        child[pe] = fork();
        if (child[pe] == 0) {
            own = pe;
            break;
        }
    }
    if (dies)
        death(&uid, &next, own);
    else if (argc > 1 && strcmp(argv[1], "kernels") == 0)
        kernels(&uid, own);
    else
        graph(&uid, own);
    for (int pe = 1; own == 0 && pe < N; pe++) {
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (dies && pe == VICTIM)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}

/* A child that a PE makes by fork launches a kernel: it finds no job, and nothing of its parent's, where the device
 * has done nothing yet ("first"); or the launch fails, as on a GPU, where the parent has launched kernels before
 * ("later"). Either ends, says why, and leaves the parent as it was.
 *
 *     forked first|later */
#include <sys/wait.h>

#include "kernel.h"

static long variable; /* symmetric, too */

__global__ void put(long *word, int pe, gshmem_status_t *status)
{
    status[0] = gshmem_long_p(word, 7, pe);
    status[1] = gshmem_barrier_all();
    status[2] = gshmem_quiet();
}

__global__ void nothing()
{
}

/* Whatever the threads that run kernels are at as it begins, a child ends. */
static void children_end()
{
    for (int i = 0, ended; i < 40; i++) {
        nothing<<<8, 1>>>();
        CHECK_LAUNCH();
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            exit(0);
        CHECK_EQ(waitpid(child, &ended, 0), child);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
}

static int be_child(bool later, long *word, int pe, gshmem_status_t *status)
{
    put<<<1, 1>>>(word, pe, status);
    const cudaError_t error = cudaDeviceSynchronize();

    CHECK_EQ(error, later ? cudaErrorInitializationError : cudaSuccess);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(status[i], later ? GSHMEM_OK : GSHMEM_ERR_STATE);
    variable = 5;
    if (later) { /* a reset does not give it a device */
        CHECK_EQ(cudaDeviceReset(), cudaErrorInitializationError);
        nothing<<<1, 1>>>();
        CHECK_EQ(cudaGetLastError(), cudaErrorInitializationError);
        CHECK_EQ(cudaDeviceSynchronize(), cudaErrorInitializationError);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const bool later = argc > 1 && strcmp(argv[1], "later") == 0;
    int ended;

    setenv("GSHMEM_HOST_THREADS", "6", 1); /* several that wait for work, on any machine */
    CHECK_OK(gshmem_init());
    const int next = (gshmem_my_pe() + 1) % gshmem_n_pes();
    gshmem_status_t *status = (gshmem_status_t *)calloc(3, sizeof *status);
    long *word = (long *)gshmem_calloc(1, sizeof *word);
    CHECK(word && status);
    if (later) {
        put<<<1, 1>>>(word, next, status);
        CHECK_LAUNCH();
        CHECK_OK(gshmem_barrier_all());
        *word = 0;
        children_end();
    }
    CHECK_OK(gshmem_barrier_all());
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        exit(be_child(later, word, next, status));
    CHECK_EQ(waitpid(child, &ended, 0), child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*word, 0);
    CHECK_EQ(variable, 0);
    CHECK_OK(gshmem_barrier_all());
    put<<<1, 1>>>(word, next, status);
    CHECK_LAUNCH();
    for (int i = 0; i < 3; i++)
        CHECK_OK(status[i]);
    CHECK_EQ(*word, 7);
    CHECK_OK(gshmem_finalize());
    return 0;
}

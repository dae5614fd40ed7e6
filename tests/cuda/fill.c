/* Modules are given the state of the job on the PE's GPU, whichever the calling thread has chosen, or none: when the
 * job begins, when a thread loads one, and when another thread ends the job. Then the thread has its own again. */
#include <pthread.h>

#include "gshmem.h"
#include "gshmem/device/state.h"
#include "gpu.h"

static cuda_gpu filled[3];
static int fills;

/* As cudaMemcpyToSymbol finds where to copy to. */
static int fill(const struct gshmem_device_state *state)
{
    cuda_context current = NULL;

    (void)state;
    CHECK(fills < 3);
    CHECK_EQ(driver.context_current(&current), CUDA_OK);
    CHECK(current);
    CHECK_EQ(driver.context_gpu(&filled[fills++]), CUDA_OK);
    return 0;
}

static struct gshmem_device_module module = {
    .size = sizeof module, .version = GSHMEM_DEVICE_STATE_VERSION, .device = "cuda", .fill = fill};

static void *load(void *unused)
{
    cuda_context current;

    gshmem_device_register(&module);
    CHECK_EQ(driver.context_current(&current), CUDA_OK);
    CHECK(!current);
    return unused;
}

static void *end(void *unused)
{
    CHECK_OK(gshmem_finalize());
    return unused;
}

static void in_another_thread(void *(*call)(void *))
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, call, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
    int provided;

    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    open_gpu();
    CHECK(gpu != 0); /* which a thread without any would get */
    in_another_thread(load);
    in_another_thread(end);
    CHECK_EQ(fills, 2);
    for (int i = 0; i < fills; i++)
        CHECK_EQ(filled[i], gpu);
    gshmem_device_unregister(&module);
    close_gpu();
    return 0;
}

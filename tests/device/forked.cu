/* Children made by fork while another thread is inside calls of memory and streams: locks that it
 * holds at that moment are free in the child, and tables whole, before the device has threads
 * ("first") and afterwards ("later").
 *
 *     forked first|later */
#include "device.h"

#include <cuda.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 300, BYTES = 512, CHILD_SECONDS = 15 };

static bool later, children_end;
static char *of_parent, registered[BYTES];

static CUmemAllocationProp virtual_memory()
{
    CUmemAllocationProp prop = {};

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return prop;
}

static void use_virtual()
{
    const CUmemAllocationProp prop = virtual_memory();
    CUmemGenericAllocationHandle piece;
    size_t bytes = 0;

    CHECK_EQ(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
             CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&piece, bytes, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(piece), CUDA_SUCCESS);
}

static void *use_memory(void *)
{
    static char mine[BYTES];

    while (!__atomic_load_n(&children_end, __ATOMIC_ACQUIRE)) {
        char *p;
        CHECK_CUDA(cudaMalloc(&p, BYTES));
        CHECK_CUDA(cudaHostRegister(mine, sizeof mine, 0));
        if (later) /* it starts the device's threads */
            use_virtual();
        CHECK_CUDA(cudaHostUnregister(mine));
        CHECK_CUDA(cudaFree(p));
    }
    return nullptr;
}

/* It gives back what its parent had, and asks for more. */
static int be_child()
{
    const cudaError_t expected = later ? cudaErrorInitializationError : cudaSuccess;
    char *p;

    alarm(CHILD_SECONDS); /* which ends it if it waits for a thread that it has not */
    if (later)
        use_virtual();
    CHECK_EQ(cudaHostUnregister(registered), expected);
    CHECK_EQ(cudaFree(of_parent), expected);
    CHECK_EQ(cudaMalloc(&p, BYTES), expected);
    return 0;
}

__global__ void nothing()
{
}

static void wait_for_children(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&children_end, __ATOMIC_ACQUIRE))
        usleep(1000);
}

/* A call on a stream that the parent has under way is none of its child's, which waits for no such call. */
static void call_of_the_parent()
{
    int ended;

    CHECK_EQ(gshmem_host_call(nullptr, wait_for_children, nullptr, [](void *) {}), 0);
    CHECK(gshmem_host_calls_under_way());
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(gshmem_host_calls_under_way());
    CHECK_EQ(waitpid(child, &ended, 0), child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    CHECK(gshmem_host_calls_under_way());
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int ended;

    later = argc > 1 && strcmp(argv[1], "later") == 0;
    if (later) {
        nothing<<<1, 1>>>();
        CHECK_LAUNCH();
    }
    CHECK_CUDA(cudaMalloc(&of_parent, BYTES));
    CHECK_CUDA(cudaHostRegister(registered, sizeof registered, 0));
    CHECK_EQ(pthread_create(&thread, nullptr, use_memory, nullptr), 0);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            _exit(be_child());
        CHECK_EQ(waitpid(child, &ended, 0), child);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    if (later)
        call_of_the_parent();
    __atomic_store_n(&children_end, true, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_CUDA(cudaHostUnregister(registered));
    CHECK_CUDA(cudaFree(of_parent));
    return 0;
}

/* Kernels that hang: PE 1 is the culprit, in a loop of its program (hangs.py).
 *
 *     kernels WAY DIRECTORY */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"
#include "gshmem_device.h"

static volatile int go_on = 1;

__global__ void kernel_that_waits(uint64_t *flag)
{
    gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
}

__global__ void kernel_that_meets(void)
{
    gshmem_barrier_all();
}

__attribute__((noinline)) static void loop_for_ever(void)
{
    while (go_on)
        ;
}

__attribute__((noinline)) static void sleep_for_ever(void)
{
    while (go_on)
        sleep(1000);
}

/* The kernel's wait has lasted long enough to be shown when it ends. */
static void way_over(uint64_t *flag, int me)
{
    if (me == 0) {
        sleep(1);
        gshmem_uint64_p(flag, 1, 1);
    }
    if (me == 1) {
        kernel_that_waits<<<1, 2>>>(flag);
        cudaDeviceSynchronize();
        sleep_for_ever();
    }
    gshmem_barrier_all();
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    gshmem_init();
    int me = gshmem_my_pe();
    uint64_t *flag = (uint64_t *)gshmem_calloc(1, 64);
    if (argc > 2) {
        char path[256];
        snprintf(path, sizeof path, "%s/%d", argv[2], me);
        FILE *f = fopen(path, "w");
        fprintf(f, "%d\n", (int)getpid());
        fclose(f);
    }
    if (strcmp(way, "kernel_over") == 0)
        way_over(flag, me);
    if (me == 1)
        loop_for_ever();
    if (strcmp(way, "kernel_wait") == 0)
        kernel_that_waits<<<1, 2>>>(flag);
    else
        kernel_that_meets<<<1, 1>>>();
    cudaDeviceSynchronize();
    gshmem_finalize();
    return 0;
}

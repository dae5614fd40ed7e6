/* That the simulation notices what these tests rely on it for, and a program that has chosen its GPU:
 *
 *     simulation load|leak|current */
#include <dlfcn.h>
#include <signal.h>

#include "gshmem.h"
#include "../check.h"
#include "device/cuda/driver.h"

/* As the CUDA runtime does it for a program that calls cudaSetDevice. */
static void choose_gpu(struct cuda_driver *d, cuda_gpu gpu)
{
    cuda_context context;
    char why[200];

    CHECK(cuda_driver_open(d, why, sizeof why));
    CHECK_EQ(d->primary_retain(&context, gpu), CUDA_OK);
    CHECK_EQ(d->context_set(context), CUDA_OK);
}

int main(int argc, char **argv)
{
    struct cuda_driver d;
    cuda_context current;

    CHECK_EQ(argc, 2);
    if (strcmp(argv[1], "leak") == 0) {
        choose_gpu(&d, 1);
        return 0;
    }
    if (strcmp(argv[1], "current") == 0)
        choose_gpu(&d, 1);
    CHECK_OK(gshmem_init());
    volatile long *words = gshmem_calloc(8, sizeof *words);
    CHECK(words);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would have more to say */
    if (strcmp(argv[1], "load") == 0)
        return (int)words[0];
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(d.context_current(&current), CUDA_OK);
    CHECK_EQ(d.primary_release(1), CUDA_OK);
    return 0;
}

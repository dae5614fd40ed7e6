/* Kernels of Triton and Numba: their PTX is loaded by the driver's API, told of the job, and run.
 *
 *     foreign store|ring FILE KERNEL
 *
 * store: each PE stores to its right neighbour's memory, by an address of gshmem_ptr; needs mapped
 * PEs. ring: each PE puts to its right neighbour with a signal, and waits for its left one's. */
#include <cuda.h>

#include "gshmem.h"
#include "check.h"

enum { N = 200, PARAMETERS_MOST = 32, THREADS = 128 };

static int me, right, left;

static CUfunction load(CUmodule *module, const char *file, const char *kernel)
{
    CUfunction function;

    CHECK_EQ(cuModuleLoad(module, file), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&function, *module, kernel), CUDA_SUCCESS);
    return function;
}

/* Triton's kernels have parameters behind the program's, for memory that these kernels do not
 * use. */
static void launch(CUfunction function, unsigned blocks, void **arguments, size_t count)
{
    static uint64_t unused;
    void *all[PARAMETERS_MOST];
    size_t n = 0, offset, bytes;

    for (; cuFuncGetParamInfo(function, n, &offset, &bytes) == CUDA_SUCCESS; n++) {
        CHECK(n < PARAMETERS_MOST);
        all[n] = n < count ? arguments[n] : &unused;
    }
    CHECK(n >= count);
    CHECK_EQ(cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, all, NULL),
             CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* x * 2 + 1 of the own numbers, at the neighbour. */
static void store(CUfunction function)
{
    float *from = (float *)gshmem_calloc(2 * N, sizeof *from), *to = from + N;
    float *peer = (float *)gshmem_ptr(to, right);
    int n = N - 3;
    void *arguments[] = {&peer, &from, &n};

    CHECK(from && peer);
    for (int i = 0; i < N; i++)
        from[i] = (float)(me * 1000 + i);
    launch(function, 2, arguments, 3);
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < N; i++)
        CHECK_EQ(to[i], i < n ? (float)(left * 1000 + i) * 2 + 1 : 0.0f);
    CHECK_OK(gshmem_free(from));
}

/* me * 1000 + i at the neighbour, which adds a half when the signal is there. */
static void ring(CUfunction function)
{
    float *to = (float *)gshmem_calloc(2 * N, sizeof *to), *from = to + N;
    uint64_t *signal = (uint64_t *)gshmem_calloc(1, sizeof *signal);
    int n = N - 3;
    void *arguments[] = {&to, &from, &signal, &n};

    CHECK(to && signal);
    launch(function, 1, arguments, 4);
    CHECK_EQ(*signal, 1);
    for (int i = 0; i < N; i++)
        CHECK_EQ(to[i], i < n ? (float)(left * 1000 + i) + 0.5f : 0.0f);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(signal));
    CHECK_OK(gshmem_free(to));
}

int main(int argc, char **argv)
{
    CUmodule module;

    CHECK_EQ(argc, 4);
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    right = (me + 1) % gshmem_n_pes();
    left = (me + gshmem_n_pes() - 1) % gshmem_n_pes();
    CUfunction function = load(&module, argv[2], argv[3]);
    if (strcmp(argv[1], "ring") == 0) {
        gshmem_status_t status = gshmem_cumodule_init(module);
        if (status == GSHMEM_ERR_MISMATCH) {
            CHECK_OK(gshmem_finalize());
            puts("SKIP: the kernel was made with other headers; tests/ptx/foreign/make makes it anew");
            return 77;
        }
        CHECK_OK(status);
        ring(function);
        CHECK_OK(gshmem_cumodule_finalize(module));
    } else {
        store(function);
    }
    CHECK_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK_OK(gshmem_finalize());
    return 0;
}

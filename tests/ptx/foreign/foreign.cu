/* Kernels of Triton and Numba: their PTX is loaded by the driver's API, told of the job, and run.
 *
 *     foreign store|ring|functions FILE KERNEL [LIBRARY]
 *     foreign versions
 *
 * store: each PE stores to its right neighbour's memory, by an address of gshmem_ptr; needs mapped
 * PEs. ring: each PE puts to its right neighbour with a signal, and waits for its left one's.
 * functions: all of libnvshmem_device.bc. LIBRARY is a translation of FILE that was made before. */
#include <cuda.h>
#include <dlfcn.h>

#include "gshmem.h"
#include "check.h"
#include "functions.h"

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

/* ---- All functions ---- */

/* Halves of small integers: the bits of a float, with fewer of its fraction. */
struct half {
    uint16_t bits;
};
struct bfloat16 {
    uint16_t bits;
};

static double number(half x)
{
    return x.bits ? (x.bits & 0x8000 ? -1 : 1) * (1024 + (x.bits & 1023)) / 1024.0 *
                        (double)(1 << ((x.bits >> 10 & 31) - 15))
                  : 0;
}

static double number(bfloat16 x)
{
    const uint32_t bits = (uint32_t)x.bits << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

template <class T> static double number(T x)
{
    return (double)x;
}

template <class T> static void give(T *to, int value)
{
    *to = (T)value;
}

static void give(bfloat16 *to, int value)
{
    const float x = (float)value;

    memcpy(&to->bits, (const char *)&x + 2, 2);
}

/* 1 … 15 and -1 … -15. */
static void give(half *to, int value)
{
    const int size = abs(value), exponent = size < 2 ? 0 : size < 4 ? 1 : size < 8 ? 2 : 3;

    to->bits = (uint16_t)((value < 0 ? 0x8000 : 0) | (15 + exponent) << 10 |
                          ((size << 10 >> exponent) & 1023));
}

/* PE i has i + 1, i + 2 and, of types with a sign, -i - 3. */
static int element(int pe, int i, bool has_sign)
{
    return i < 2 ? pe + i + 1 : has_sign ? -pe - 3 : pe + 3;
}

template <class T> static void prepare(char *at, bool has_sign)
{
    for (int i = 0; i < REDUCE; i++)
        give((T *)at + i, element(me, i, has_sign));
}

template <class T> static void reduced(const char *at, bool has_sign, const char *name)
{
    for (int i = 0; i < REDUCE; i++) {
        double sum = 0, product = 1, least = 1000, most = -1000;

        for (int pe = 0; pe < gshmem_n_pes(); pe++) {
            const double x = element(pe, i, has_sign);
            sum += x, product *= x, least = x < least ? x : least, most = x > most ? x : most;
        }
        const double wanted[] = {sum, product, least, most};
        for (int operation = 0; operation < 4; operation++) {
            const T *found = (const T *)(at + 8 * REDUCE * (operation + 1)) + i;
            if (number(*found) != wanted[operation])
                CHECK_FAIL("%s, operation %d, element %d: %g instead of %g", name, operation, i,
                           number(*found), wanted[operation]);
        }
    }
}

static bool signs(const char *name)
{
    return name[0] != 'u';
}

static void same(const char *heap, int offset, int pe)
{
    for (int i = 0; i < INTS; i++)
        CHECK_EQ(((const int *)(heap + offset))[i], pe * 1000 + i);
}

static void functions(CUfunction function)
{
    char *heap = (char *)gshmem_calloc(1, HEAP), *at = heap + REDUCTIONS;
    int *out = (int *)gshmem_calloc(RESULTS, sizeof *out);
    const int n = gshmem_n_pes();
    void *arguments[] = {&heap, &out};

    CHECK(heap && out);
    *(long long *)(heap + MINUS) = -1 - (1LL << 40);
#define X(name, type) prepare<type>(at, signs(#name)), at += 40 * REDUCE;
    REDUCED(X)
#undef X
    CHECK_OK(gshmem_barrier_all());
    launch(function, 1, arguments, 2);
    CHECK_EQ(out[WRONG], 0);
    CHECK_EQ(out[ME], me);
    CHECK_EQ(out[ALL], n);
    CHECK(out[OWN] && out[OUTSIDE] && out[MULTICAST]);
    same(heap, PUT, left);
    same(heap, PUT_AGAIN, left);
    same(heap, GOT, left);
    same(heap, GOT_AGAIN, left);
    same(heap, GOT_LATER, right);
    same(heap, SIGNALLED, left);
    same(heap, BROADCAST, n - 1);
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(((int *)(heap + EXCHANGED))[pe], pe * 1000 + me);
    at = heap + REDUCTIONS;
#define X(name, type) reduced<type>(at, signs(#name), #name), at += 40 * REDUCE;
    REDUCED(X)
#undef X
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(out));
    CHECK_OK(gshmem_free(heap));
}

/* ---- Which modules are told of the job ---- */

/* A module with a variable of so many bytes, and what it holds at first. */
static gshmem_status_t told(const char *name, size_t bytes, size_t size, unsigned version)
{
    char text[1000];
    CUmodule module;

    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .const .align 8 .b32 %s[%zu] = {%zu, %u};\n"
             ".visible .entry k()\n{\nret;\n}\n",
             name, bytes / 4, size, version);
    CHECK_EQ(cuModuleLoadData(&module, text), CUDA_SUCCESS);
    gshmem_status_t status = gshmem_cumodule_init(module);
    CHECK_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    return status;
}

static void versions(void)
{
    const size_t size = sizeof(struct gshmem_device_state);
    const unsigned version = GSHMEM_DEVICE_STATE_VERSION;

    CHECK_FAILS(told("gshmem_device_here", size, size, version + 1), GSHMEM_ERR_MISMATCH,
                "the device library of another version of GSHMEM");
    CHECK_FAILS(told("gshmem_device_here", size + 8, size + 8, version), GSHMEM_ERR_MISMATCH,
                "its state has");
    CHECK_FAILS(told("another", size, size, version), GSHMEM_ERR_ARGUMENT,
                "no variable gshmem_device_here");
}

int main(int argc, char **argv)
{
    CUmodule module;

    if (argc == 2 && strcmp(argv[1], "versions") == 0) {
        CHECK_OK(gshmem_init());
        versions();
        CHECK_OK(gshmem_finalize());
        return 0;
    }
    CHECK(argc == 4 || argc == 5);
    if (argc == 5 && !dlopen(argv[4], RTLD_NOW))
        CHECK_FAIL("%s", dlerror());
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    right = (me + 1) % gshmem_n_pes();
    left = (me + gshmem_n_pes() - 1) % gshmem_n_pes();
    CUfunction function = load(&module, argv[2], argv[3]);
    if (strcmp(argv[1], "store") != 0) {
        gshmem_status_t status = gshmem_cumodule_init(module);
        if (status == GSHMEM_ERR_MISMATCH && strstr(argv[2], "triton")) { /* that is kept */
            CHECK_OK(gshmem_finalize());
            puts("SKIP: the kernel was made with other headers; tests/ptx/foreign/make makes it "
                 "anew");
            return 77;
        }
        CHECK_OK(status);
        strcmp(argv[1], "ring") == 0 ? ring(function) : functions(function);
        CHECK_OK(gshmem_cumodule_finalize(module));
    } else {
        store(function);
    }
    CHECK_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK_OK(gshmem_finalize());
    return 0;
}

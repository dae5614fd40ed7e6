/* For tests of what kernels call: data that is checked against, numbers that repeat, and what a
 * kernel found wrong.
 *
 * Which path operations take is the launcher's affair and the environment's (mapped, local, tcp): the
 * programs are the same on all. */
#ifndef GSHMEM_TESTS_KERNEL_H
#define GSHMEM_TESTS_KERNEL_H

#include "gshmem.h"
#include "device/device.h"

/* ---- Numbers that look random, and are the same in each run ---------------------------------- */

static __host__ __device__ inline uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Another for each pair. */
static __host__ __device__ inline uint64_t mixed2(uint64_t a, uint64_t b)
{
    return mixed(a * UINT64_C(0x9e3779b97f4a7c15) + mixed(b + 1));
}

/* ---- How much --------------------------------------------------------------------------------- */

/* ThreadSanitizer makes a kernel ten or twenty times as long, and so does an emulated machine: there,
 * tests that try very many sizes try some of them. */
#ifdef GSHMEM_HOST_TSAN
#define FEW 1
#else
#define FEW (how_often(0, 1))
#endif

/* ---- What a kernel found wrong ---------------------------------------------------------------- */

/* The first thing; they go on, so that no other waits for one that has ended. */
struct found {
    unsigned wrong; /* how many times */
    int line;
    unsigned long long got, expected;
};

/* For kernels, and for host code that runs beside them. */
static __host__ __device__ inline void expect_at(struct found *found, int line,
                                                 unsigned long long got,
                                                 unsigned long long expected)
{
    if (got == expected)
        return;
#ifdef __CUDA_ARCH__
    unsigned before = atomicAdd_system(&found->wrong, 1u);
#else
    unsigned before = __atomic_fetch_add(&found->wrong, 1u, __ATOMIC_RELAXED);
#endif
    if (before)
        return;
    found->line = line;
    found->got = got;
    found->expected = expected;
}

#define EXPECT(found, got, expected)                                                               \
    expect_at(found, __LINE__, (unsigned long long)(got), (unsigned long long)(expected))

/* What was launched has ended well, and found nothing. */
#define CHECK_FOUND(found)                                                                         \
    do {                                                                                           \
        CHECK_LAUNCH();                                                                            \
        if ((found)->wrong)                                                                        \
            CHECK_FAIL("a kernel found at line %d: %llu (%#llx), expected %llu (%#llx); %u times", \
                       (found)->line, (found)->got, (found)->got, (found)->expected,               \
                       (found)->expected, (found)->wrong);                                         \
    } while (0)

/* ---- Jobs ------------------------------------------------------------------------------------- */

/* n elements, the same object on all PEs, all zero. */
template <class T> static T *symmetric_array(size_t n)
{
    T *array = (T *)gshmem_calloc(n, sizeof(T));

    CHECK(array);
    return array;
}

/* Such an object is where kernels run. The host copies into it and out of it: where that is a GPU, it
 * is not for the host's loads and stores. */
template <class T> static void copy_in(T *symmetric, const T *values, size_t n)
{
    CHECK_CUDA(cudaMemcpy((void *)symmetric, values, n * sizeof *values, cudaMemcpyDefault));
}

template <class T> static void copy_out(T *values, const T *symmetric, size_t n)
{
    CHECK_CUDA(cudaMemcpy((void *)values, symmetric, n * sizeof *values, cudaMemcpyDefault));
}

template <class T> static void set_value(T *symmetric, T value)
{
    copy_in(symmetric, &value, 1);
}

template <class T> static T value_at(const T *symmetric)
{
    T value;

    copy_out(&value, symmetric, 1);
    return value;
}

static inline void set_bytes(void *symmetric, int byte, size_t n)
{
    CHECK_CUDA(cudaMemset(symmetric, byte, n));
    CHECK_CUDA(cudaDeviceSynchronize());
}

/* Whether the host's threads can have a part in what kernels do at the same time, by loads, stores and
 * updates of symmetric memory. */
#ifdef GSHMEM_HOST_DEVICE
#define HOST_TAKES_PART 1
#else
#define HOST_TAKES_PART 0
#endif

#endif

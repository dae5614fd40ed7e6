/* What every test of several PEs begins and ends with. */
#ifndef GSHMEM_TESTS_PE_H
#define GSHMEM_TESTS_PE_H

#include "gshmem.h"

#include "check.h"

static int me, n; /* my PE, and how many there are */

static inline void begin(void)
{
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    CHECK(n >= 1 && me >= 0 && me < n);
}

static inline void barrier(void)
{
    CHECK_OK(gshmem_barrier_all());
}

static inline void end(void)
{
    barrier();
    CHECK_OK(gshmem_finalize());
}

static inline void *take(size_t bytes)
{
    void *memory = gshmem_malloc(bytes);

    if (!memory)
        CHECK_FAIL("gshmem_malloc(%zu) gave NULL", bytes);
    return memory;
}

static inline int right(void)
{
    return (me + 1) % n;
}

static inline int left(void)
{
    return (me + n - 1) % n;
}

/* Bytes that tell who wrote them, where and when. */
static inline unsigned char mark(int pe, unsigned round, size_t i)
{
    return (unsigned char)(i * 7 + (i >> 8) * 13 + (unsigned)pe * 31 + round * 61 + 1);
}

static inline void fill(unsigned char *to, size_t bytes, int pe, unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = mark(pe, round, i);
}

#define CHECK_FILLED(at, bytes, pe, round)                                                         \
    do {                                                                                           \
        for (size_t check_i = 0; check_i < (bytes); check_i++) {                                   \
            if ((at)[check_i] != mark(pe, round, check_i))                                         \
                CHECK_FAIL("%s: byte %zu of %zu is %d, expected %d from PE %d, round %u", #at,     \
                           check_i, (size_t)(bytes), (at)[check_i], mark(pe, round, check_i),      \
                           (int)(pe), (unsigned)(round));                                          \
        }                                                                                          \
    } while (0)

#endif

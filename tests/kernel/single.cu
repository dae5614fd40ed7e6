/* Single elements, strided and block-strided copies, against plain loops: every element size, many
 * strides, by thread, warp and block. */
#include "kernel.h"

#define ELEMENTS 64
#define ROOM     2048 /* bytes on each side of a strided copy */
#define GUARD    0x5a

/* ---- p and g ---------------------------------------------------------------------------------- */

struct elements { /* symmetric, one of each size */
    int8_t one[ELEMENTS];
    int16_t two[ELEMENTS];
    int32_t four[ELEMENTS];
    int64_t eight[ELEMENTS];
    float real[ELEMENTS];
    double twice[ELEMENTS];
};

/* Thread i stores into element i at pe, and reads what the neighbour's thread has there. */
__global__ void store(struct elements *e, int pe, int salt, struct found *found)
{
    int i = threadIdx.x, value = salt + i;

    EXPECT(found, gshmem_int8_p(&e->one[i], (int8_t)value, pe), GSHMEM_OK);
    EXPECT(found, gshmem_int16_p(&e->two[i], (int16_t)-value, pe), GSHMEM_OK);
    EXPECT(found, gshmem_int32_p(&e->four[i], value * 65537, pe), GSHMEM_OK);
    EXPECT(found, gshmem_int64_p(&e->eight[i], (int64_t)value << 56 | value, pe), GSHMEM_OK);
    EXPECT(found, gshmem_float_p(&e->real[i], -1.5f * value, pe), GSHMEM_OK);
    EXPECT(found, gshmem_double_p(&e->twice[i], -2.5 * value, pe), GSHMEM_OK);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

__global__ void load(const struct elements *e, int pe, int salt, struct found *found)
{
    int i = (threadIdx.x + 7) % ELEMENTS, value = salt + i;

    EXPECT(found, gshmem_int8_g(&e->one[i], pe), (int8_t)value);
    EXPECT(found, gshmem_int16_g(&e->two[i], pe), (int16_t)-value);
    EXPECT(found, gshmem_int32_g(&e->four[i], pe), value * 65537);
    EXPECT(found, gshmem_int64_g(&e->eight[i], pe), (int64_t)value << 56 | value);
    EXPECT(found, gshmem_float_g(&e->real[i], pe) == -1.5f * value, true);
    EXPECT(found, gshmem_double_g(&e->twice[i], pe) == -2.5 * value, true);
}

static void test_elements(struct found *found)
{
    struct elements *e = symmetric_array<struct elements>(1), seen;
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    for (int step = 0; step < n; step++) {
        int to = (me + step) % n, from = (me + n - step) % n;

        store<<<1, ELEMENTS>>>(e, to, 100 * me + step, found);
        CHECK_FOUND(found);
        CHECK_OK(gshmem_barrier_all());
        copy_out(&seen, e, 1);
        for (int i = 0; i < ELEMENTS; i++)
            CHECK_EQ(seen.four[i], (100 * from + step + i) * 65537);
        load<<<2, ELEMENTS>>>(e, to, 100 * me + step, found);
        load<<<1, ELEMENTS>>>(e, (me + 1) % n, 100 * ((me + 1 + n - step) % n) + step, found);
        CHECK_FOUND(found);
        CHECK_OK(gshmem_barrier_all());
    }
    CHECK_OK(gshmem_free(e));
}

/* ---- Strided ---------------------------------------------------------------------------------- */

struct strides {
    ptrdiff_t dst, sst;
    size_t block; /* elements that lie together; 1: not a block-strided copy */
    size_t n;
};

template <class T> struct copy {
    T *dest;
    const T *source;
    struct strides s;
    int pe;
    bool put;
};

/* The typed functions of one type at all scopes; C++ has no other way to name them all. */
#define STRIDED(T, NAME)                                                                           \
    static __device__ gshmem_status_t by_thread(struct copy<T> c)                                  \
    {                                                                                              \
        if (c.s.block != 1)                                                                        \
            return c.put ? gshmem_##NAME##_ibput(c.dest, c.source, c.s.dst, c.s.sst, c.s.block,    \
                                                 c.s.n, c.pe)                                      \
                         : gshmem_##NAME##_ibget(c.dest, c.source, c.s.dst, c.s.sst, c.s.block,    \
                                                 c.s.n, c.pe);                                     \
        return c.put ? gshmem_##NAME##_iput(c.dest, c.source, c.s.dst, c.s.sst, c.s.n, c.pe)       \
                     : gshmem_##NAME##_iget(c.dest, c.source, c.s.dst, c.s.sst, c.s.n, c.pe);      \
    }                                                                                              \
    static __device__ gshmem_status_t by_warp(struct copy<T> c)                                    \
    {                                                                                              \
        return c.put ? gshmem_##NAME##_iput_warp(c.dest, c.source, c.s.dst, c.s.sst, c.s.n, c.pe)  \
                     : gshmem_##NAME##_iget_warp(c.dest, c.source, c.s.dst, c.s.sst, c.s.n, c.pe); \
    }                                                                                              \
    static __device__ gshmem_status_t by_block(struct copy<T> c)                                   \
    {                                                                                              \
        return c.put ? gshmem_##NAME##_iput_block(c.dest, c.source, c.s.dst, c.s.sst, c.s.n, c.pe) \
                     : gshmem_##NAME##_iget_block(c.dest, c.source, c.s.dst, c.s.sst, c.s.n,       \
                                                  c.pe);                                           \
    }

STRIDED(uint8_t, uint8)
STRIDED(uint16_t, uint16)
STRIDED(float, float)
STRIDED(double, double)

template <int scope, class T> __global__ void strided(struct copy<T> c, struct found *found)
{
    gshmem_status_t status = scope == GSHMEM_SCOPE_THREAD ? by_thread(c)
                             : scope == GSHMEM_SCOPE_WARP ? by_warp(c)
                                                          : by_block(c);

    EXPECT(found, status, GSHMEM_OK);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

template <class T> struct sides {
    T *symmetric, *own;
    struct found *found;
};

template <int scope, class T> static void try_one(struct sides<T> a, struct strides s, bool put)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes(), to = (me + 1) % n, from = put ? (me + n - 1) % n : to;
    T *dest = put ? a.symmetric : a.own, *source = put ? a.own : a.symmetric;
    const size_t room = ROOM / sizeof(T);
    static T seen[ROOM / sizeof(T)], expected[ROOM / sizeof(T)];

    for (size_t i = 0; i < room; i++)
        seen[i] = (T)(me * 50 + i % 50);
    copy_in(source, seen, room);
    memset((void *)expected, GUARD, ROOM);
    copy_in(dest, expected, room);
    for (size_t i = 0; i < s.n; i++)
        for (size_t j = 0; j < s.block; j++)
            expected[i * s.dst + j] = (T)(from * 50 + (i * s.sst + j) % 50);
    CHECK_OK(gshmem_barrier_all());

    struct copy<T> c = {dest, source, s, to, put};
    strided<scope><<<1, scope == GSHMEM_SCOPE_THREAD ? 1 : scope == GSHMEM_SCOPE_WARP ? 32 : 48>>>(
        c, a.found);
    CHECK_FOUND(a.found);
    CHECK_OK(gshmem_barrier_all());
    copy_out(seen, dest, room);
    for (size_t i = 0; i < room; i++) {
        if (memcmp(&seen[i], &expected[i], sizeof(T)) != 0)
            CHECK_FAIL("%s of %zu times %zu elements of %zu B, strides %td and %td: element %zu is "
                       "wrong",
                       put ? "put" : "get", s.n, s.block, sizeof(T), s.dst, s.sst, i);
    }
    CHECK_OK(gshmem_barrier_all());
}

template <class T> static void test_strided(struct found *found)
{
    const struct strides all[] = {{1, 1, 1, 20}, {2, 1, 1, 20}, {1, 3, 1, 33},  {3, 2, 1, 50},
                                  {5, 4, 1, 1},  {2, 2, 1, 0},  {3, 3, 3, 10},  {5, 4, 3, 17},
                                  {4, 7, 4, 11}, {9, 8, 5, 1},  {2, 3, 2, 0}};
    struct sides<T> a = {symmetric_array<T>(ROOM / sizeof(T)), shared_array<T>(ROOM / sizeof(T)), found};

    for (struct strides s : all) {
        for (int put = 0; put < 2; put++) {
            try_one<GSHMEM_SCOPE_THREAD>(a, s, put);
            if (s.block != 1)
                continue;
            try_one<GSHMEM_SCOPE_WARP>(a, s, put);
            try_one<GSHMEM_SCOPE_BLOCK>(a, s, put);
        }
    }
    CHECK_OK(gshmem_free(a.symmetric));
    CHECK_CUDA(cudaFree(a.own));
}

/* The same from memory-sized calls, which any thread of the host has too; and what they refuse. */
__global__ void by_memory(char *dest, const char *source, int pe, struct found *found)
{
    gshmem_ctx_t ctx = GSHMEM_CTX_DEFAULT;

    EXPECT(found, gshmem_ctx_iputmem(ctx, dest, source, 2, 1, 3, 10, pe), GSHMEM_OK);
    EXPECT(found, gshmem_ctx_ibputmem(ctx, dest + 100, source, 4, 2, 2, 3, 10, pe), GSHMEM_OK);
    EXPECT(found, gshmem_ctx_iputmem(ctx, dest, source, 0, 1, 1, 1, pe), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_ibputmem(ctx, dest, source, 1, 2, 2, 1, 1, pe), GSHMEM_ERR_ARGUMENT);
    /* strides and counts whose products are small again, beyond the largest address */
    const ptrdiff_t quarter = (ptrdiff_t)1 << 62;
    EXPECT(found, gshmem_ctx_iputmem(ctx, dest, source, quarter + 1, 1, 4, 2, pe), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_igetmem(ctx, dest, source, 1, quarter + 1, 4, 2, pe), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_iputmem(ctx, dest, source, quarter, 1, 1, 5, pe), GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_ctx_ibgetmem(ctx, dest, source, quarter, quarter, quarter, 4, 1, pe),
           GSHMEM_ERR_ARGUMENT);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static void test_by_memory(struct found *found)
{
    char *dest = symmetric_array<char>(300), *source = shared_array<char>(100);
    char expected[300] = {}, seen[300];

    for (int i = 0; i < 100; i++)
        source[i] = (char)(i + 1);
    for (int i = 0; i < 10; i++)
        memcpy(expected + i * 2 * 3, source + i * 3, 3);
    for (int i = 0; i < 10; i++)
        memcpy(expected + 100 + i * 4 * 3, source + i * 2 * 3, 2 * 3);
    by_memory<<<1, 1>>>(dest, source, (gshmem_my_pe() + 1) % gshmem_n_pes(), found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_barrier_all());
    copy_out(seen, dest, sizeof seen);
    CHECK(memcmp(seen, expected, sizeof expected) == 0);
    CHECK_OK(gshmem_free(dest));
    CHECK_CUDA(cudaFree(source));
}

int main()
{
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);

    test_elements(found);
    test_strided<uint8_t>(found);
    test_strided<uint16_t>(found);
    test_strided<float>(found);
    test_strided<double>(found);
    test_by_memory(found);
    CHECK_CUDA(cudaFree(found));
    CHECK_OK(gshmem_finalize());
    return 0;
}

/* GSHMEM_CHECK=memory in kernels: waits, tests and collectives on bytes that are in no object are
 * refused on all PEs, and what is right is done. Tests are checked now and then only; so a loop of
 * tests that nobody can end is noticed. */
#include "kernel.h"

enum { N = 64, BIG = 40000 }; /* the latter is moved between two rounds */

struct objects {
    int *source, *dest; /* BIG for each PE */
    uint64_t *flags;    /* 3 */
    uint64_t *nowhere;  /* in the heap, and in no object */
    struct found *found;
};

static const gshmem_team_t world = GSHMEM_TEAM_WORLD;

static __global__ void do_right(struct objects o)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();

    for (int i = threadIdx.x; i < BIG * n; i += blockDim.x)
        o.source[i] = me + i;
    EXPECT(o.found, gshmem_barrier_all_block(), GSHMEM_OK);
    for (int items = N; items <= BIG; items += BIG - N) {
        EXPECT(o.found, gshmem_int_sum_reduce_block(world, o.dest, o.source, items), GSHMEM_OK);
        EXPECT(o.found, o.dest[items - 1], n * (items - 1) + n * (n - 1) / 2);
        EXPECT(o.found, gshmem_int_broadcast_block(world, o.dest, o.source, items, n - 1),
               GSHMEM_OK);
        EXPECT(o.found, o.dest[items - 1], items - 1 + n - 1);
        EXPECT(o.found, gshmem_int_fcollect_block(world, o.dest, o.source, items), GSHMEM_OK);
        EXPECT(o.found, gshmem_int_alltoall_block(world, o.dest, o.source, items), GSHMEM_OK);
        EXPECT(o.found, o.dest[items * n - 1], n - 1 + items * (me + 1) - 1);
        __syncthreads();
    }
    if (threadIdx.x)
        return;
    EXPECT(o.found, gshmem_uint64_wait_until(&o.flags[2], GSHMEM_CMP_EQ, 0), GSHMEM_OK);
    EXPECT(o.found, gshmem_uint64_wait_until_all(o.flags, 3, NULL, GSHMEM_CMP_EQ, 0), GSHMEM_OK);
    EXPECT(o.found, gshmem_uint64_wait_until_any(o.flags, 3, NULL, GSHMEM_CMP_EQ, 0) < 3, 1);
    for (int i = 0; i < 1000; i++)
        EXPECT(o.found, gshmem_uint64_test(&o.flags[1], GSHMEM_CMP_EQ, 0), 1);
    EXPECT(o.found, gshmem_signal_fetch(&o.flags[1]), 0);
}

static __global__ void do_wrong(struct objects o)
{
    const int n = gshmem_n_pes();
    const gshmem_status_t refused = GSHMEM_ERR_NOT_SYMMETRIC;

    EXPECT(o.found, gshmem_int_sum_reduce_block(world, o.dest, o.source + 1, BIG * n), refused);
    EXPECT(o.found, gshmem_int_sum_reduce_block(world, o.dest + BIG * n - 1, o.source, 2), refused);
    EXPECT(o.found, gshmem_int_broadcast_block(world, (int *)o.nowhere, o.source, 1, 0), refused);
    EXPECT(o.found, gshmem_int_fcollect_block(world, o.dest + 1, o.source, BIG), refused);
    EXPECT(o.found, gshmem_int_alltoall_block(world, o.dest, o.source + 1, BIG), refused);
    if (threadIdx.x)
        return;
    EXPECT(o.found, gshmem_int_sum_reduce(world, o.dest, (int *)o.nowhere, 1), refused);
    EXPECT(o.found, gshmem_getmem(o.nowhere, o.source, 8, n - 1), refused);
    EXPECT(o.found, gshmem_getmem(o.flags + 2, o.source, 16, n - 1), refused);
    EXPECT(o.found, gshmem_putmem(o.dest, o.flags + 3, 8192, n - 1), refused);
    EXPECT(o.found, gshmem_uint64_wait_until(o.nowhere, GSHMEM_CMP_EQ, 0), refused);
    EXPECT(o.found, gshmem_uint64_wait_until(o.flags + 3, GSHMEM_CMP_EQ, 1), refused);
    EXPECT(o.found, gshmem_uint64_wait_until_all(o.flags, 4, NULL, GSHMEM_CMP_EQ, 1), refused);
    EXPECT(o.found, gshmem_uint64_wait_until_any(o.flags, 4, NULL, GSHMEM_CMP_EQ, 1), SIZE_MAX);
    EXPECT(o.found, gshmem_signal_wait_until(o.nowhere, GSHMEM_CMP_EQ, 1), 0);
}

/* Ends when the error policy has been told. */
static __global__ void test_for_ever(struct objects o, const int *told)
{
    while (!gshmem_uint64_test(o.nowhere, GSHMEM_CMP_EQ, 1) && !*(const volatile int *)told)
        ;
}

/* The error policy gets it, once: after that it is no failure that nobody has looked at. */
static __global__ void add_nowhere(struct objects o)
{
    gshmem_uint64_atomic_fetch_add(o.nowhere, 1, 0);
}

static int *handed; /* failures that the error policy got */

static void count(gshmem_status_t status, const char *text, void *context)
{
    (void)text;
    (void)context;
    if (status == GSHMEM_ERR_NOT_SYMMETRIC)
        __atomic_fetch_add(handed, 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
    const bool handled = argc > 1 && strcmp(argv[1], "handled") == 0;

    setenv("GSHMEM_CHECK", "memory", 1);
    setenv("GSHMEM_LOG", "none", 1);
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);
    const int n = gshmem_n_pes();
    struct objects o = {symmetric_array<int>((size_t)BIG * n), symmetric_array<int>((size_t)BIG * n),
                        symmetric_array<uint64_t>(3), NULL, found};

    handed = shared_array<int>(1);
    gshmem_set_error_handler(count, NULL);
    o.nowhere = o.flags + 8192; /* behind all objects */
    if (handled) {
        add_nowhere<<<1, 1>>>(o);
        CHECK_FOUND(found);
        CHECK_EQ(*handed, 1);
        CHECK_OK(gshmem_finalize());
        return 0;
    }
    do_right<<<1, 32>>>(o);
    CHECK_FOUND(found);
    CHECK_EQ(*handed, 0);
    do_wrong<<<1, 32>>>(o);
    CHECK_FOUND(found);
    CHECK_EQ(*handed, 2); /* of the two that return no status */
    *handed = 0;
    test_for_ever<<<1, 1>>>(o, handed);
    CHECK_FOUND(found);
    CHECK(*handed > 0);
    do_right<<<1, 32>>>(o);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_finalize());
    return 0;
}

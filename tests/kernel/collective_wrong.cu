/* Collectives that kernels call wrongly, all PEs alike or one of them: each gets its status, nobody
 * hangs, nothing is written, and the team works on. */
#include "gshmem/device/half.h"
#include "kernel/collective.h"

enum { N = 64, BIG = 100000 };

struct objects {
    char *source, *dest; /* symmetric; of BIG bytes for each PE */
    char *mine;          /* not */
    struct found *found;
};

/* The team still agrees, and a reduction still adds up. */
static __device__ void still_works(const struct objects *o)
{
    int *source = (int *)o->source, *dest = (int *)o->dest, n = gshmem_n_pes();

    if (threadIdx.x == 0)
        source[0] = gshmem_my_pe() + 1;
    EXPECT(o->found,
           (gshmem_kernel_reduce<GSHMEM_SCOPE_BLOCK, int, GSHMEM_OP_SUM>(GSHMEM_TEAM_WORLD, dest,
                                                                         source, 1)),
           0);
    EXPECT(o->found, dest[0], n * (n + 1) / 2);
    __syncthreads();
}

/* Types and operations by numbers that the tables do not have, or that kernels do not. */
static __device__ void refuses_outside(const struct objects *o)
{
    const gshmem_team_t world = GSHMEM_TEAM_WORLD;

    for (int number = -3; number < 20; number++) {
        const enum gshmem_type type = (enum gshmem_type)number;
        const enum gshmem_op op = (enum gshmem_op)number;
        if (number < 0 || number > GSHMEM_TYPE_DOUBLE) {
            EXPECT(o->found, gshmem_reduce_block(world, type, GSHMEM_OP_SUM, o->dest, o->source, 1),
                   GSHMEM_ERR_ARGUMENT);
            EXPECT(o->found,
                   gshmem_reducescatter_block(world, type, GSHMEM_OP_MAX, o->dest, o->source, 1),
                   GSHMEM_ERR_ARGUMENT);
        }
        if (number < 0 || number > GSHMEM_OP_XOR)
            EXPECT(o->found, gshmem_reduce_block(world, GSHMEM_TYPE_INT32, op, o->dest, o->source, 1),
                   GSHMEM_ERR_ARGUMENT);
        if (number < 0 || number > GSHMEM_OP_MAX)
            EXPECT(o->found,
                   gshmem_reducescatter_block(world, GSHMEM_TYPE_DOUBLE, op, o->dest, o->source, 1),
                   GSHMEM_ERR_ARGUMENT);
    }
}

/* All PEs make the same mistake: all get the same status. */
static __global__ void all_alike(struct objects o)
{
    const gshmem_team_t world = GSHMEM_TEAM_WORLD;
    const int n = gshmem_n_pes();

    EXPECT(o.found, gshmem_barrier_block(GSHMEM_TEAM_INVALID), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_team_sync_block(200), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_broadcastmem_block(-7, o.dest, o.source, N, 0), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_broadcastmem_block(world, o.dest, o.source, N, n), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_broadcastmem_block(world, o.dest, o.source, N, -1), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_broadcastmem_block(world, o.mine, o.source, N, 0),
           GSHMEM_ERR_NOT_SYMMETRIC);
    EXPECT(o.found, gshmem_broadcastmem_block(world, o.dest, o.mine, N, 0),
           GSHMEM_ERR_NOT_SYMMETRIC);
    EXPECT(o.found, gshmem_fcollectmem_block(world, o.dest, o.source, SIZE_MAX / 2),
           GSHMEM_ERR_NOT_SYMMETRIC);
    EXPECT(o.found, gshmem_alltoallmem_block(world, o.dest, o.source, (size_t)1 << 45),
           GSHMEM_ERR_NOT_SYMMETRIC);
    EXPECT(o.found, gshmem_alltoallmem_block(world, o.source, o.source, N), GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found, gshmem_broadcastmem_block(world, o.source + 1, o.source, N, 0),
           GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found,
           gshmem_reduce_block(world, GSHMEM_TYPE_FLOAT, GSHMEM_OP_XOR, o.dest, o.source, 1),
           GSHMEM_ERR_ARGUMENT);
    EXPECT(o.found,
           gshmem_reduce_block(world, GSHMEM_TYPE_COMPLEXD, GSHMEM_OP_SUM, o.dest, o.source, 1),
           GSHMEM_ERR_ARGUMENT);
    refuses_outside(&o);
    EXPECT(o.found,
           gshmem_reduce_block(world, GSHMEM_TYPE_INT8, GSHMEM_OP_SUM, o.dest, o.source, SIZE_MAX),
           GSHMEM_ERR_NOT_SYMMETRIC);
    /* of nothing, objects may be anything */
    EXPECT(o.found, gshmem_broadcastmem_block(world, NULL, o.mine, 0, n - 1), GSHMEM_OK);
    EXPECT(o.found, gshmem_fcollectmem_block(world, NULL, NULL, 0), GSHMEM_OK);
    still_works(&o);
}

/* The one PE gets its own status, or finds as all others do that they disagree. */
static __device__ void expect_one(const struct objects *o, bool it, gshmem_status_t status,
                                  gshmem_status_t its_own)
{
    EXPECT(o->found, status, it ? its_own : GSHMEM_ERR_MISMATCH);
    still_works(o);
}

template <class T> static __device__ gshmem_status_t sum_of(const struct objects *o, size_t bytes)
{
    return gshmem_kernel_reduce<GSHMEM_SCOPE_BLOCK, T, GSHMEM_OP_SUM>(GSHMEM_TEAM_WORLD, (T *)o->dest,
                                                                      (const T *)o->source, bytes / sizeof(T));
}

static __global__ void one_of_them(struct objects o, int which)
{
    const gshmem_team_t world = GSHMEM_TEAM_WORLD;
    const bool it = gshmem_my_pe() == which;
    const gshmem_status_t differ = GSHMEM_ERR_MISMATCH;

    for (size_t bytes = N; bytes <= BIG; bytes += BIG - N) {
        expect_one(&o, it,
                   gshmem_broadcastmem_block(world, it ? o.mine : o.dest, o.source, bytes, 0),
                   GSHMEM_ERR_NOT_SYMMETRIC);
        expect_one(&o, it, gshmem_broadcastmem_block(world, o.dest, o.source, bytes, it ? -1 : 0),
                   GSHMEM_ERR_ARGUMENT);
        expect_one(&o, it, gshmem_broadcastmem_block(world, o.dest, o.source, bytes, it), differ);
        expect_one(&o, it, gshmem_fcollectmem_block(world, o.dest, o.source, bytes - it), differ);
        expect_one(&o, it, gshmem_alltoallmem_block(world, o.dest + it * 64, o.source, bytes),
                   differ);
        expect_one(&o, it,
                   it ? gshmem_barrier_all_block()
                      : gshmem_fcollectmem_block(world, o.dest, o.source, bytes),
                   differ);
        expect_one(&o, it,
                   it ? gshmem_alltoallmem_block(world, o.dest, o.source, N)
                      : gshmem_alltoallmem_block(world, o.dest, o.source, BIG),
                   differ);
        expect_one(&o, it,
                   gshmem_reduce_block(world, GSHMEM_TYPE_INT32, it ? GSHMEM_OP_MIN : GSHMEM_OP_MAX,
                                       o.dest, o.source, bytes / 4),
                   differ);
        expect_one(&o, it, it ? sum_of<__nv_bfloat16>(&o, bytes) : sum_of<__half>(&o, bytes), differ);
        expect_one(&o, it, it ? sum_of<int>(&o, bytes) : sum_of<unsigned>(&o, bytes), differ);
        expect_one(&o, it, it ? sum_of<int>(&o, bytes) : sum_of<float>(&o, bytes), differ);
    }
}

static __global__ void check_dest(struct objects o)
{
    for (int i = 4; i < BIG; i++)
        EXPECT(o.found, o.dest[i], 0x55);
}

int main(void)
{
    struct objects o;

    CHECK_OK(gshmem_init());
    o.source = symmetric_array<char>((size_t)BIG * (size_t)gshmem_n_pes());
    o.dest = symmetric_array<char>((size_t)BIG * (size_t)gshmem_n_pes() + 64);
    o.mine = shared_array<char>(BIG);
    o.found = shared_array<struct found>(1);
    set_bytes(o.dest, 0x55, BIG);
    all_alike<<<1, THREADS>>>(o);
    CHECK_FOUND(o.found);
    for (int pe = 0; pe < gshmem_n_pes() && gshmem_n_pes() > 1; pe++) {
        one_of_them<<<1, THREADS>>>(o, pe);
        CHECK_FOUND(o.found);
    }
    check_dest<<<1, 1>>>(o);
    CHECK_FOUND(o.found);
    CHECK_OK(gshmem_finalize());
    return 0;
}

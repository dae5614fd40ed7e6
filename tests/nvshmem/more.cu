/* NVSHMEM's later and older names that stand alone: launches with attributes, the barrier of
 * warpgroups, where the largest is, shared memory that is not asked for, statuses in words, signals
 * by the type, and counted signals. */
#include "check.h"

/* ---- Launches with attributes ------------------------------------------------------------------ */

/* All blocks meet, which takes a cooperative launch. */
__global__ void meet(int *blocks)
{
    extern __shared__ char room[];

    room[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        atomicAdd(blocks, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0)
        nvshmem_barrier_all();
}

static int launch(int *blocks, unsigned grid, cudaLaunchAttribute *attrs, unsigned n)
{
    nvshmemx_collective_launch_attr_t attr{};
    void *args[] = {&blocks};

    attr.cuda_config.gridDim = dim3(grid);
    attr.cuda_config.blockDim = dim3(32);
    attr.cuda_config.dynamicSmemBytes = 64;
    attr.cuda_config.attrs = attrs;
    attr.cuda_config.numAttrs = n;
    return nvshmemx_collective_launch_attr(&attr, (const void *)meet, args);
}

static void test_launch(void)
{
    cudaLaunchAttribute attrs[40];
    int *blocks;

    memset(attrs, 0, sizeof attrs);
    for (auto &a : attrs)
        a.id = cudaLaunchAttributeIgnore;
    attrs[1].id = cudaLaunchAttributePriority;
    CHECK_CUDA(cudaMallocManaged(&blocks, sizeof *blocks));
    *blocks = 0;
    CHECK_EQ(launch(blocks, 1, NULL, 0), NVSHMEMX_SUCCESS);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*blocks, 1);
    CHECK_EQ(launch(blocks, 1, attrs, 3), NVSHMEMX_SUCCESS);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*blocks, 2);
    attrs[2].id = cudaLaunchAttributeCooperative;
    attrs[2].val.cooperative = 1;
    CHECK_EQ(launch(blocks, 1, attrs, 3), NVSHMEMX_SUCCESS);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*blocks, 3);
    CHECK(launch(blocks, 1, attrs, 40) != 0);
    CHECK(launch(blocks, 1, NULL, 2) != 0);
    CHECK(launch(blocks, 1 << 30, NULL, 0) != 0);
    CHECK(nvshmemx_collective_launch_attr(NULL, (const void *)meet, NULL) != 0);
    (void)cudaGetLastError();
    CHECK_EQ(*blocks, 3);
    CHECK_CUDA(cudaFree(blocks));
}

/* ---- The barrier of warpgroups ----------------------------------------------------------------- */

/* Each round each PE gives its round to the right, and has that of the left after the barrier. Of two
 * warpgroups, each with a team of its own, the second may be smaller. */
__global__ void rounds(nvshmem_team_t first, nvshmem_team_t second, int *seen, int right, int n,
                       int *wrong)
{
    const unsigned group = threadIdx.x / 128, in_group = threadIdx.x % 128;
    const nvshmem_team_t team = group ? second : first;

    for (int i = 1; i <= n; i++) {
        if (in_group == 33 % blockDim.x) /* not the thread that makes the call */
            nvshmem_int_p(&seen[group], i, right);
        if (nvshmemx_barrier_warpgroup(team) != 0)
            atomicAdd(wrong, 1);
        if (nvshmem_int_atomic_fetch(&seen[group], nvshmem_my_pe()) != i)
            atomicAdd(wrong, 1);
        if (nvshmemx_barrier_warpgroup(team) != 0)
            atomicAdd(wrong, 1);
    }
}

__global__ void no_team(int *wrong)
{
    if (nvshmemx_barrier_warpgroup(9999) == 0 && threadIdx.x == 0)
        atomicAdd(wrong, 1);
}

static void test_warpgroups(int right)
{
    int *seen = (int *)nvshmem_calloc(2, sizeof(int)), *wrong;
    nvshmem_team_t second;

    CHECK_CUDA(cudaMallocManaged(&wrong, sizeof *wrong));
    *wrong = 0;
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), NULL, 0, &second), 0);
    rounds<<<1, 64>>>(NVSHMEM_TEAM_WORLD, second, seen, right, 5, wrong);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*wrong, 0);
    nvshmem_barrier_all();
    rounds<<<1, 200>>>(NVSHMEM_TEAM_WORLD, second, seen, right, 20, wrong);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*wrong, 0);
    no_team<<<1, 128>>>(wrong);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*wrong, 0);
    nvshmem_barrier_all();
    nvshmem_team_destroy(second);
    CHECK_CUDA(cudaFree(wrong));
    nvshmem_free(seen);
}

/* ---- The largest, and where it is --------------------------------------------------------------- */

enum { PAIRS = 70 };

static __host__ __device__ double2 pair_of(int pe, int n, int i)
{
    double2 p;

    p.x = i % 3 == 0 ? -7.0 : -1.0 - (pe + i) % n; /* all the same; one the largest */
    p.y = pe;
    return p;
}

__global__ void locate(double2 *dest, double2 *source, size_t n, int *status)
{
    int mine = nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, dest, source, n);

    if (mine)
        *status = mine;
}

static void test_maxloc(void)
{
    double2 *source = (double2 *)nvshmem_malloc(PAIRS * sizeof *source);
    double2 *dest = (double2 *)nvshmem_calloc(PAIRS, sizeof *dest);
    const int n = nvshmem_n_pes();
    int *status;

    CHECK_CUDA(cudaMallocManaged(&status, sizeof *status));
    *status = 0;
    const size_t sizes[] = {1, PAIRS};
    for (size_t size : sizes) {
        for (int threads : {1, 48, 128}) {
            for (int in_place : {0, 1}) {
                for (int i = 0; i < PAIRS; i++) {
                    source[i] = pair_of(nvshmem_my_pe(), n, i);
                    dest[i].x = dest[i].y = -99;
                }
                locate<<<1, threads>>>(in_place ? source : dest, source, size, status);
                CHECK_CUDA(cudaDeviceSynchronize());
                CHECK_EQ(*status, 0);
                const double2 *got = in_place ? source : dest;
                for (int i = 0; i < (int)size; i++) {
                    CHECK_EQ(got[i].x, i % 3 == 0 ? -7 : -1);
                    CHECK_EQ(got[i].y, i % 3 == 0 ? 0 : (n - i % n) % n);
                }
                CHECK_EQ(dest[PAIRS - 1].y, in_place || size < PAIRS ? -99 : got[PAIRS - 1].y);
                nvshmem_barrier_all();
            }
        }
    }
    CHECK_CUDA(cudaFree(status));
    nvshmem_free(dest);
    nvshmem_free(source);
}

/* ---- Shared memory ----------------------------------------------------------------------------- */

__global__ void give(int *dest, int right, int *asked)
{
    __shared__ int room[64];

    room[threadIdx.x] = nvshmem_my_pe() + threadIdx.x;
    nvshmemx_give_smem(room, sizeof room);
    __syncthreads();
    nvshmemx_int_put_block(dest, room, 64, right); /* a source in shared memory is as good as any */
    nvshmemx_release_smem();
    if (threadIdx.x == 0)
        *asked = nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM);
    __syncthreads();
    nvshmemx_barrier_all_block();
}

static void test_shared(int left, int right)
{
    int *dest = (int *)nvshmem_calloc(65, sizeof(int));

    dest[64] = -1;
    nvshmem_barrier_all();
    give<<<1, 64>>>(dest, right, dest + 64);
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        CHECK_EQ(dest[i], left + i);
    CHECK_EQ(dest[64], 0);
    CHECK_EQ(nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED), 0);
    CHECK_EQ(nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY), 0);
    nvshmem_barrier_all();
    nvshmem_free(dest);
}

/* ---- Signals by their type --------------------------------------------------------------------- */

struct flags {
    uint64_t large[2];
    int small[2];
    double real;
};

__global__ void send(flags *f, int right)
{
    nvshmemx_uint64_signal(&f->large[0], 5, right);
    nvshmemx_int_signal(&f->small[0], -6, right);
    nvshmem_quiet();
}

static void test_signals(int right)
{
    flags *f = (flags *)nvshmem_calloc(1, sizeof *f);

    send<<<1, 1>>>(f, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmemx_uint64_signal(&f->large[1], 7, right);
    nvshmemx_int32_signal(&f->small[1], 8, right);
    nvshmemx_double_signal(&f->real, 2.5, right);
    nvshmem_uint64_wait_until(&f->large[0], NVSHMEM_CMP_EQ, 5);
    nvshmem_uint64_wait_until(&f->large[1], NVSHMEM_CMP_EQ, 7);
    nvshmem_barrier_all();
    CHECK_EQ(f->small[0], -6);
    CHECK_EQ(f->small[1], 8);
    CHECK(f->real == 2.5);
    nvshmem_free(f);
}

/* ---- Counted signals --------------------------------------------------------------------------- */

enum { COUNTED = 3000, PRODUCERS = 3 };

struct counted {
    unsigned char source[PRODUCERS * COUNTED], dest[PRODUCERS * COUNTED];
    uint64_t signal;
    int wrong;
};

/* Each block sends its part; then all wait for what the left neighbour's blocks send. */
__global__ void send_counted(counted *c, uint64_t expected, int right)
{
    const size_t at = blockIdx.x * COUNTED, bytes = COUNTED - blockIdx.x;

    if (nvshmemx_putmem_signal_counted_nbi_block(c->dest + at, c->source + at, bytes, &c->signal, right))
        c->wrong = 1;
    nvshmemx_signal_counted_wait_until(&c->signal, expected);
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        if (c->dest[at + i] != (unsigned char)(i + blockIdx.x + 1))
            c->wrong = 2;
    }
    nvshmem_quiet();
}

__global__ void reset_counted(counted *c)
{
    nvshmemx_signal_counted_reset(&c->signal);
    if (nvshmemx_signal_counted_load(&c->signal) != 0)
        c->wrong = 3;
}

static void test_counted(int right)
{
    const uint64_t each = PRODUCERS * COUNTED - (0 + 1 + 2), late = -(uint64_t)COUNTED;
    counted *c = (counted *)nvshmem_calloc(1, sizeof *c);

    CHECK(c);
    for (int i = 0; i < PRODUCERS * COUNTED; i++)
        c->source[i] = (unsigned char)(i % COUNTED + i / COUNTED + 1);
    nvshmem_barrier_all();
    for (uint64_t round = 1; round <= 2; round++) { /* of which the second goes on counting */
        send_counted<<<PRODUCERS, 64>>>(c, round * each, right);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_EQ(c->wrong, 0);
        nvshmem_barrier_all();
        memset(c->dest, 0, sizeof c->dest);
        nvshmem_barrier_all();
    }
    nvshmemx_signal_counted_wait_until(&c->signal, 2 * each);
    CHECK_EQ(nvshmemx_signal_counted_load(&c->signal), 2 * each);
    nvshmem_barrier_all();
    reset_counted<<<1, 64>>>(c);
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    nvshmemx_signal_op(&c->signal, late, NVSHMEM_SIGNAL_ADD, right); /* it passes the largest number */
    nvshmemx_signal_counted_wait_until(&c->signal, late);
    nvshmem_barrier_all();
    send_counted<<<PRODUCERS, 64>>>(c, late + each, right);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(c->wrong, 0);
    nvshmem_barrier_all();
    nvshmemx_signal_counted_reset(&c->signal);
    CHECK_EQ(nvshmemx_signal_counted_load(&c->signal), 0);
    nvshmem_free(c);
}

int main(void)
{
    nvshmem_init();
    const int n = nvshmem_n_pes(), left = (nvshmem_my_pe() + n - 1) % n;
    const int right = (nvshmem_my_pe() + 1) % n;

    CHECK_STR(nvshmemx_status_string(NVSHMEMX_SUCCESS), "NVSHMEMX_SUCCESS");
    CHECK_STR(nvshmemx_status_string(NVSHMEMX_ERROR_SYMMETRY), "NVSHMEMX_ERROR_SYMMETRY");
    CHECK_STR(nvshmemx_status_string(NVSHMEMX_ERROR_INTERNAL), "NVSHMEMX_ERROR_INTERNAL");
    CHECK_STR(nvshmemx_status_string(GSHMEM_ERR_PEER_DEAD), gshmem_status_text(GSHMEM_ERR_PEER_DEAD));
    test_launch();
    test_warpgroups(right);
    test_maxloc();
    test_shared(left, right);
    test_signals(right);
    test_counted(right);
    nvshmem_finalize();
    return 0;
}

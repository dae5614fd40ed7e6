/* Teams made by NVSHMEM's names, and what threads, warps, blocks and the host do in them. */
#include "check.h"

enum { N = 300 };

struct results {
    int my_pe, n_pes, world, status;
    long sum[N], max[N], scattered[N];
    float product[N];
    __half half_sum[N];
    __nv_bfloat16 bfloat16_min[N];
    unsigned bits[N];
    int gathered[8 * N], exchanged[8 * N], broadcast[N];
};

struct data {
    long longs[8 * N];
    float floats[N];
    __half halves[N];
    __nv_bfloat16 bfloat16s[N];
    unsigned uints[N];
    int ints[8 * N];
};

/* By `scope`: 0: one thread, 1: a warp, 2: a block. */
template <int scope>
__global__ void in_kernel(nvshmem_team_t team, const data *from, results *to)
{
    int status = 0;

    if (nvshmem_team_my_pe(team) < 0)
        return;
    if (threadIdx.x == 0) {
        to->my_pe = nvshmem_team_my_pe(team);
        to->n_pes = nvshmem_team_n_pes(team);
        to->world = nvshmem_team_translate_pe(team, to->my_pe, NVSHMEM_TEAM_WORLD);
    }
    if (scope == 0) {
        status |= nvshmem_long_sum_reduce(team, to->sum, from->longs, N);
        status |= nvshmem_long_max_reduce(team, to->max, from->longs, N);
        status |= nvshmem_float_prod_reduce(team, to->product, from->floats, N);
        status |= nvshmem_half_sum_reduce(team, to->half_sum, from->halves, N);
        status |= nvshmem_bfloat16_min_reduce(team, to->bfloat16_min, from->bfloat16s, N);
        status |= nvshmem_uint_xor_reduce(team, to->bits, from->uints, N);
        status |= nvshmem_long_sum_reducescatter(team, to->scattered, from->longs, N);
        status |= nvshmem_int_fcollect(team, to->gathered, from->ints, N);
        status |= nvshmem_int_alltoall(team, to->exchanged, from->ints, N);
        status |= nvshmem_int_broadcast(team, to->broadcast, from->ints, N, 0);
        status |= nvshmem_barrier(team);
        status |= nvshmem_team_sync(team);
    } else if (scope == 1) {
        status |= nvshmemx_long_sum_reduce_warp(team, to->sum, from->longs, N);
        status |= nvshmemx_long_max_reduce_warp(team, to->max, from->longs, N);
        status |= nvshmemx_float_prod_reduce_warp(team, to->product, from->floats, N);
        status |= nvshmemx_half_sum_reduce_warp(team, to->half_sum, from->halves, N);
        status |= nvshmemx_bfloat16_min_reduce_warp(team, to->bfloat16_min, from->bfloat16s, N);
        status |= nvshmemx_uint_xor_reduce_warp(team, to->bits, from->uints, N);
        status |= nvshmemx_long_sum_reducescatter_warp(team, to->scattered, from->longs, N);
        status |= nvshmemx_int_fcollect_warp(team, to->gathered, from->ints, N);
        status |= nvshmemx_int_alltoall_warp(team, to->exchanged, from->ints, N);
        status |= nvshmemx_int_broadcast_warp(team, to->broadcast, from->ints, N, 0);
        status |= nvshmemx_barrier_warp(team);
        status |= nvshmemx_team_sync_warp(team);
    } else {
        status |= nvshmemx_long_sum_reduce_block(team, to->sum, from->longs, N);
        status |= nvshmemx_long_max_reduce_block(team, to->max, from->longs, N);
        status |= nvshmemx_float_prod_reduce_block(team, to->product, from->floats, N);
        status |= nvshmemx_half_sum_reduce_block(team, to->half_sum, from->halves, N);
        status |= nvshmemx_bfloat16_min_reduce_block(team, to->bfloat16_min, from->bfloat16s, N);
        status |= nvshmemx_uint_xor_reduce_block(team, to->bits, from->uints, N);
        status |= nvshmemx_long_sum_reducescatter_block(team, to->scattered, from->longs, N);
        status |= nvshmemx_fcollectmem_block(team, to->gathered, from->ints, N * sizeof(int));
        status |= nvshmemx_alltoallmem_block(team, to->exchanged, from->ints, N * sizeof(int));
        status |= nvshmemx_broadcastmem_block(team, to->broadcast, from->ints, N * sizeof(int), 0);
        status |= nvshmemx_barrier_block(team);
        status |= nvshmemx_sync_block(team);
    }
    if (threadIdx.x == 0)
        to->status = status;
}

static void on_host(nvshmem_team_t team, const data *from, results *to)
{
    if (nvshmem_team_my_pe(team) < 0)
        return;
    int my_pe = nvshmem_team_my_pe(team), status = 0;
    status |= nvshmem_long_sum_reduce(team, to->sum, from->longs, N);
    status |= nvshmem_long_max_reduce(team, to->max, from->longs, N);
    status |= nvshmem_float_prod_reduce(team, to->product, from->floats, N);
    status |= nvshmem_half_sum_reduce(team, to->half_sum, from->halves, N);
    status |= nvshmem_bfloat16_min_reduce(team, to->bfloat16_min, from->bfloat16s, N);
    status |= nvshmem_uint_xor_reduce(team, to->bits, from->uints, N);
    status |= nvshmem_long_sum_reducescatter(team, to->scattered, from->longs, N);
    status |= nvshmem_fcollectmem(team, to->gathered, from->ints, N * sizeof(int));
    status |= nvshmem_alltoallmem(team, to->exchanged, from->ints, N * sizeof(int));
    status |= nvshmem_broadcastmem(team, to->broadcast, from->ints, N * sizeof(int), 0);
    status |= nvshmem_sync(team);
    const int head[] = {my_pe, nvshmem_team_n_pes(team),
                        nvshmem_team_translate_pe(team, my_pe, NVSHMEM_TEAM_WORLD), status};
    CHECK_CUDA(cudaMemcpy((void *)to, head, sizeof head, cudaMemcpyDefault));
}

/* What PE `world` of the job brings. */
static long brings(int world, int i)
{
    return (long)(world + 1) * 3 + i % 11;
}

static void fill(data *d, int world)
{
    for (int i = 0; i < 8 * N; i++) {
        d->longs[i] = brings(world, i);
        d->ints[i] = world * 100000 + i;
    }
    for (int i = 0; i < N; i++) {
        d->floats[i] = world % 2 ? 2.0f : 0.5f;
        d->halves[i] = __float2half((float)brings(world, i) / 8);
        d->bfloat16s[i] = __float2bfloat16(-(float)brings(world, i));
        d->uints[i] = 1u << world | (unsigned)i << 16;
    }
}

static void check(const results *r, const int *members, int n, int mine)
{
    int me = -1;

    CHECK_EQ(r->status, 0);
    CHECK_EQ(r->n_pes, n);
    for (int m = 0; m < n; m++)
        me = members[m] == mine ? m : me;
    CHECK_EQ(r->my_pe, me);
    CHECK_EQ(r->world, mine);
    for (int i = 0; i < N; i++) {
        long sum = 0, max = 0, scattered = 0, least = 1000;
        float product = 1;
        unsigned bits = 0;
        for (int m = 0; m < n; m++) {
            long value = brings(members[m], i);
            sum += value;
            max = value > max ? value : max;
            least = -value < least ? -value : least;
            scattered += brings(members[m], me * N + i);
            product *= members[m] % 2 ? 2.0f : 0.5f;
            bits ^= 1u << members[m] | (unsigned)i << 16;
            CHECK_EQ(r->gathered[m * N + i], members[m] * 100000 + i);
            CHECK_EQ(r->exchanged[m * N + i], members[m] * 100000 + me * N + i);
        }
        CHECK_EQ(r->sum[i], sum);
        CHECK_EQ(r->max[i], max);
        CHECK_EQ(r->scattered[i], scattered);
        CHECK(r->product[i] == product);
        CHECK(__half2float(r->half_sum[i]) == (float)sum / 8);
        CHECK(__bfloat162float(r->bfloat16_min[i]) == (float)least);
        CHECK_EQ(r->bits[i], bits);
        CHECK_EQ(r->broadcast[i], members[0] * 100000 + i);
    }
}

static void try_team(nvshmem_team_t team, const int *members, int n)
{
    static results host;
    static data brought;
    const int mype = nvshmem_my_pe();
    data *from = (data *)nvshmem_malloc(sizeof(data));
    results *to = (results *)nvshmem_calloc(1, sizeof(results));

    CHECK(from && to);
    fill(&brought, mype);
    CHECK_CUDA(cudaMemcpy((void *)from, (const void *)&brought, sizeof brought, cudaMemcpyDefault));
    for (int way = 0; way < 4; way++) {
        CHECK_CUDA(cudaMemset((void *)to, 0xff, sizeof *to));
        CHECK_CUDA(cudaDeviceSynchronize());
        nvshmem_barrier_all();
        if (way == 0)
            in_kernel<0><<<1, 1>>>(team, from, to);
        else if (way == 1)
            in_kernel<1><<<1, 32>>>(team, from, to);
        else if (way == 2)
            in_kernel<2><<<1, 96>>>(team, from, to);
        else
            on_host(team, from, to);
        CHECK_LAUNCH();
        if (nvshmem_team_my_pe(team) >= 0) {
            CHECK_CUDA(cudaMemcpy((void *)&host, to, sizeof host, cudaMemcpyDefault));
            check(&host, members, n, mype);
        }
        nvshmem_barrier_all();
    }
    nvshmem_free(to);
    nvshmem_free(from);
}

/* A team of the PEs but the last, in the reverse order, which takes no part in making it. */
static void try_unique_id(int mype, int npes)
{
    const int n = npes > 1 ? npes - 1 : 1, index = n - 1 - mype;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmemx_team_uniqueid_t *id = (nvshmemx_team_uniqueid_t *)nvshmem_malloc(sizeof *id);
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    int members[8];

    for (int i = 0; i < n; i++)
        members[i] = n - 1 - i;
    if (mype == 0) {
        CHECK_EQ(nvshmemx_team_get_uniqueid(&config.uniqueid), 0);
        for (int pe = 0; pe < npes; pe++)
            nvshmem_putmem(id, &config.uniqueid, sizeof *id, pe);
    }
    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy((void *)&config.uniqueid, id, sizeof *id, cudaMemcpyDefault));
    config.num_contexts = 2;
    if (mype < n) {
        const long mask = NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID | NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS;
        CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, n,
                                 index) != 0); /* the id is not to be looked at */
        CHECK_EQ(nvshmemx_team_init(&team, &config, mask, n, index), 0);
    }
    try_team(team, members, n);
    if (mype < n)
        nvshmem_team_destroy(team);
    nvshmem_free(id);
}

static void try_same_mype(int npes)
{
    const int n = nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE);
    int members[8];

    CHECK(n >= 1 && n <= npes && nvshmem_team_my_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE) < n);
    for (int i = 0; i < n; i++)
        members[i] = nvshmem_team_translate_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE, i, NVSHMEM_TEAM_WORLD);
    try_team(NVSHMEMX_TEAM_SAME_MYPE_NODE, members, n);
}

int main(void)
{
    int all[8], even[4], row[8], column[8], n_even = 0, n_row = 0, n_column = 0;
    nvshmem_team_t even_team, row_team, column_team;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;

    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), xrange = 2;
    CHECK(npes <= 8);
    for (int i = 0; i < npes; i++) {
        all[i] = i;
        if (i % 2 == 0)
            even[n_even++] = i;
        if (i / xrange == mype / xrange)
            row[n_row++] = i;
        if (i % xrange == mype % xrange)
            column[n_column++] = i;
    }
    CHECK_EQ(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD), mype);
    CHECK(nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) <= npes);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_SHARED) >= 0);
    CHECK_EQ(nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID), -1);
    try_team(NVSHMEM_TEAM_WORLD, all, npes);

    config.num_contexts = 1;
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, n_even, &config,
                                        NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, &even_team), 0);
    CHECK_EQ(even_team == NVSHMEM_TEAM_INVALID, mype % 2 != 0);
    if (mype % 2 == 0) {
        nvshmem_team_config_t has = NVSHMEM_TEAM_CONFIG_INITIALIZER;
        nvshmem_team_get_config(even_team, &has);
        CHECK_EQ(has.num_contexts, 1);
    }
    try_team(even_team, even, n_even);

    CHECK_EQ(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, xrange, NULL, 0, &row_team, NULL, 0,
                                   &column_team), 0);
    try_team(row_team, row, n_row);
    try_team(column_team, column, n_column);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, npes + 1, NULL, 0, &even_team) != 0);

    try_unique_id(mype, npes);
    try_same_mype(npes);
    nvshmem_team_destroy(column_team);
    nvshmem_team_destroy(row_team);
    nvshmem_finalize();
    return 0;
}

/* Kernels that use teams of which there are two thousand: collectives of all scopes on the first ones,
 * on one in the middle and on the last, small ones, and ones that do not come along with a round; many
 * teams at once; and handles that are none. */
#include "kernel/collective.h"

enum { TEAMS = 2000, AT_ONCE = 40, ROUNDS = 10, LARGE = 2500, MOST = 8 * LARGE };

static gshmem_team_t team[TEAMS];

struct buffers {
    int64_t *source, *dest; /* symmetric */
    struct found *found;
};

/* Even teams have all PEs in order, odd ones in the reverse order. */
static __host__ __device__ inline int number_of(int i, int pe, int n)
{
    return i % 2 ? n - 1 - pe : pe;
}

static __device__ inline int64_t value(int i, int member, size_t k)
{
    return (int64_t)i * 1000003 + member * 1009 + (int64_t)k;
}

template <int scope>
static __device__ void try_count(const struct buffers *b, gshmem_team_t t, int i, size_t count)
{
    const int n = gshmem_n_pes(), my = number_of(i, gshmem_my_pe(), n);
    const size_t bytes = count * sizeof *b->source;

    EXPECT(b->found, gshmem_team_my_pe(t), my);
    EXPECT(b->found, gshmem_team_n_pes(t), n);
    for (size_t k = rank_of(scope); k < count * (size_t)n; k += callers(scope)) {
        b->source[k] = value(i, my, k);
        b->dest[k] = -1;
    }
    if (rank_of(scope) == 0)
        late((uint64_t)i + count);
    together(scope);
    EXPECT(b->found, fcollect<scope>(t, b->dest, b->source, bytes), GSHMEM_OK);
    together(scope);
    for (size_t k = rank_of(scope); k < count * (size_t)n; k += callers(scope))
        EXPECT(b->found, b->dest[k], value(i, (int)(k / count), k % count));
    together(scope);
    EXPECT(b->found, alltoall<scope>(t, b->dest, b->source, bytes), GSHMEM_OK);
    together(scope);
    for (size_t k = rank_of(scope); k < count * (size_t)n; k += callers(scope))
        EXPECT(b->found, b->dest[k], value(i, (int)(k / count), (size_t)my * count + k % count));
    together(scope);
    EXPECT(b->found, broadcast<scope>(t, b->dest, b->source, bytes, n - 1), GSHMEM_OK);
    together(scope);
    for (size_t k = rank_of(scope); k < count; k += callers(scope))
        EXPECT(b->found, b->dest[k], value(i, n - 1, k));
    together(scope);
    EXPECT(b->found, BY_SCOPE(gshmem_int64_sum_reduce, (t, b->dest, b->source, count)), GSHMEM_OK);
    together(scope);
    for (size_t k = rank_of(scope); k < count; k += callers(scope))
        EXPECT(b->found, b->dest[k], n * value(i, 0, k) + (int64_t)n * (n - 1) / 2 * 1009);
    together(scope);
    EXPECT(b->found, sync_team<scope>(t), GSHMEM_OK);
}

/* About what comes along with a round of a later team and of a first one, and more. */
template <int scope> static __global__ void try_one(struct buffers b, gshmem_team_t t, int i)
{
    const size_t counts[] = {1, 77, 116, 233, 333, 1001, LARGE};

    if (!calls(scope))
        return;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        try_count<scope>(&b, t, i, counts[c]);
}

/* Each block has a team of its own, all at the same time, and as much data as comes along. */
static __global__ void try_together(struct buffers b, const gshmem_team_t *teams, int first)
{
    const int n = gshmem_n_pes(), i = first + (int)blockIdx.x;
    const size_t count = 232 / (size_t)n, place = (size_t)blockIdx.x * 232;
    const int my = number_of(i, gshmem_my_pe(), n);

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < count; k++)
            b.source[place + k] = value(i + round * 100, my, k);
        EXPECT(b.found, gshmem_fcollectmem(teams[i], b.dest + place, b.source + place,
                                           count * sizeof *b.source),
               GSHMEM_OK);
        for (size_t k = 0; k < count * (size_t)n; k++)
            EXPECT(b.found, b.dest[place + k],
                   value(i + round * 100, (int)(k / count), k % count));
        EXPECT(b.found, gshmem_team_sync(teams[i]), GSHMEM_OK);
    }
}

static __global__ void try_handles(struct found *found, gshmem_team_t destroyed)
{
    const gshmem_team_t none[] = {destroyed, 2100, 4095, 4096, 1 << 20, -2, (gshmem_team_t)0x80000000};

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        EXPECT(found, gshmem_team_n_pes(none[i]), -1);
        EXPECT(found, gshmem_team_sync(none[i]), GSHMEM_ERR_ARGUMENT);
    }
}

int main(void)
{
    struct buffers b;
    int n, at = 0;

    CHECK_OK(gshmem_init());
    n = gshmem_n_pes();
    b.source = symmetric_array<int64_t>(MOST);
    b.dest = symmetric_array<int64_t>(MOST);
    b.found = shared_array<struct found>(1);
    gshmem_team_t *teams = shared_array<gshmem_team_t>(TEAMS);
    for (int i = 0; i < TEAMS; i++) {
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, i % 2 ? n - 1 : 0, i % 2 ? -1 : 1, n, NULL,
                                           0, &team[i]));
        teams[i] = team[i];
        if (team[i] == 1500)
            at = i;
    }
    CHECK(at);
    const int some[] = {0, 1, at, TEAMS - 1};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        FOR_EACH_SCOPE(b.found, try_one, b, team[some[i]], some[i]);
    try_together<<<AT_ONCE, 1>>>(b, teams, at);
    CHECK_FOUND(b.found);

    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < TEAMS; i++) {
        if (i % 2 == 0 || i == at)
            CHECK_OK(gshmem_team_destroy(team[i]));
    }
    if (gshmem_my_pe() == 0) {
        try_handles<<<1, 1>>>(b.found, team[at]);
        CHECK_FOUND(b.found);
    }
    CHECK_OK(gshmem_barrier_all());
    /* its block is clean: rounds begin anew */
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[0]));
    FOR_EACH_SCOPE(b.found, try_one, b, team[0], 0);
    CHECK_OK(gshmem_finalize());
    return 0;
}

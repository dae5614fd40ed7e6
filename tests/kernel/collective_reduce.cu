/* Reductions in kernels: all types and operations, in place and not, against plain loops; real
 * numbers that do not add up in another order get the same bits on all PEs. */
#include "kernel/collective.h"

struct arrays {
    void *source, *dest;
    uint64_t *digest, *digests; /* symmetric; [members] */
    struct found *found;
};

/* Element i of PE pe: small, so that products stay exact, and of either sign. */
template <class T> static __device__ T value_of(uint64_t call, int pe, size_t i)
{
    return (T)((int)(mixed2(call, (uint64_t)pe * 1000003 + i) % 7) - (int)((T)-1 < (T)0 ? 3 : 0));
}

template <class T> static __device__ T plain(enum gshmem_op op, T x, T y)
{
    switch (op) {
    case GSHMEM_OP_SUM:
        return (T)(x + y);
    case GSHMEM_OP_PROD:
        return (T)(x * y);
    case GSHMEM_OP_MIN:
        return y < x ? y : x;
    case GSHMEM_OP_MAX:
        return y > x ? y : x;
    case GSHMEM_OP_AND:
        return (T)((long long)x & (long long)y);
    case GSHMEM_OP_OR:
        return (T)((long long)x | (long long)y);
    default:
        return (T)((long long)x ^ (long long)y);
    }
}

template <class T>
static __device__ T expected_of(const struct members *m, enum gshmem_op op, uint64_t call, size_t i)
{
    T value = value_of<T>(call, m->pe[0], i);

    for (int j = 1; j < m->n; j++)
        value = plain<T>(op, value, value_of<T>(call, m->pe[j], i));
    return value;
}

template <int scope, class T> static __device__ void fill(T *source, uint64_t call, size_t n)
{
    for (size_t i = rank_of(scope); i < n; i += callers(scope))
        source[i] = value_of<T>(call, gshmem_my_pe(), i);
    if (rank_of(scope) == 0)
        late(call);
}

/* dest is elements first … first + n of the reduction. */
template <int scope, class T>
static __device__ void compare(const struct arrays *a, const struct members *m, enum gshmem_op op,
                               uint64_t call, const T *dest, size_t first, size_t n,
                               gshmem_status_t status)
{
    together(scope);
    EXPECT(a->found, status, GSHMEM_OK);
    for (size_t i = rank_of(scope); i < n; i += callers(scope)) {
        T expected = expected_of<T>(m, op, call, first + i);
        if (dest[i] != expected)
            EXPECT(a->found, (long long)dest[i], (long long)expected + (expected == 0));
    }
    together(scope);
}

template <int scope, class T, int op>
static __device__ void try_one(const struct arrays *a, const struct members *m, uint64_t call,
                               size_t n)
{
    const enum gshmem_op which = (enum gshmem_op)op;
    T *source = (T *)a->source, *dest = (T *)a->dest;
    gshmem_status_t status;

    fill<scope>(source, call, n);
    status = gshmem_kernel_reduce<scope, T, op>(m->team, dest, source, n);
    compare<scope>(a, m, which, call, dest, 0, n, status);

    call++; /* in place */
    fill<scope>(dest, call, n);
    status = gshmem_kernel_reduce<scope, T, op>(m->team, dest, dest, n);
    compare<scope>(a, m, which, call, dest, 0, n, status);

    call++;
    n = n / (size_t)m->n;
    fill<scope>(source, call, n * (size_t)m->n);
    status = gshmem_kernel_reducescatter<scope, T, op>(m->team, dest, source, n);
    compare<scope>(a, m, which, call, dest, (size_t)m->my * n, n, status);

    call++; /* in place */
    fill<scope>(source, call, n * (size_t)m->n);
    status = gshmem_kernel_reducescatter<scope, T, op>(m->team, source, source, n);
    compare<scope>(a, m, which, call, source, (size_t)m->my * n, n, status);
}

/* Every PE has the same bits, for numbers of very different sizes. */
template <int scope>
static __device__ void try_bits(const struct arrays *a, const struct members *m, uint64_t call,
                                size_t n)
{
    double *source = (double *)a->source, *dest = (double *)a->dest;

    for (size_t i = rank_of(scope); i < n; i += callers(scope)) {
        uint64_t draw = mixed2(call * 64 + (uint64_t)gshmem_my_pe(), i);
        source[i] = (double)(int64_t)draw / (double)(UINT64_C(1) << draw % 60);
    }
    EXPECT(a->found, (gshmem_kernel_reduce<scope, double, GSHMEM_OP_SUM>(m->team, dest, source, n)),
           0);
    together(scope);
    if (rank_of(scope) == 0) {
        uint64_t digest = 0;
        for (size_t i = 0; i < n; i++)
            digest = mixed2(digest, ((const uint64_t *)dest)[i]);
        *a->digest = digest;
    }
    EXPECT(a->found, (fcollect<scope>(m->team, a->digests, a->digest, sizeof *a->digest)), 0);
    for (int i = 0; i < m->n; i++)
        EXPECT(a->found, a->digests[i], a->digests[0]);
    together(scope);
}

template <int scope>
static __device__ void try_types(const struct arrays *a, const struct members *m, uint64_t call,
                                 size_t n)
{
    try_one<scope, int8_t, GSHMEM_OP_SUM>(a, m, call, n);
    try_one<scope, uint16_t, GSHMEM_OP_MAX>(a, m, call + 10, n);
    try_one<scope, int32_t, GSHMEM_OP_MIN>(a, m, call + 20, n);
    try_one<scope, int64_t, GSHMEM_OP_SUM>(a, m, call + 30, n);
    try_one<scope, uint64_t, GSHMEM_OP_XOR>(a, m, call + 40, n);
    try_one<scope, float, GSHMEM_OP_PROD>(a, m, call + 50, n);
    try_one<scope, double, GSHMEM_OP_SUM>(a, m, call + 60, n);
    try_bits<scope>(a, m, call + 70, n);
}

template <int scope>
static __global__ void try_sizes(struct arrays a, struct members m, size_t most, uint64_t call)
{
    if (!calls(scope))
        return;
    for (size_t n = 0; n < 12; n++, call += 100)
        try_types<scope>(&a, &m, call, n);
    for (size_t n = 100; n <= most; n = n * 2 + 1, call += 100)
        try_types<scope>(&a, &m, call, n);
}

/* Types and operations by number, as the host's function has them. */
template <class T>
static __device__ void try_numbered(const struct arrays *a, const struct members *m,
                                    enum gshmem_type type, int ops)
{
    T *source = (T *)a->source, *dest = (T *)a->dest;

    for (int op = 0; op < ops; op++) {
        uint64_t call = (uint64_t)type * 16 + (unsigned)op;
        fill<BLOCK>(source, call, 37);
        gshmem_status_t status =
            gshmem_reduce_block(m->team, type, (enum gshmem_op)op, dest, source, 37);
        compare<BLOCK>(a, m, (enum gshmem_op)op, call, dest, 0, 37, status);
        size_t n = 37 / (size_t)m->n;
        status = gshmem_reducescatter_block(m->team, type, (enum gshmem_op)op, dest, source, n);
        compare<BLOCK>(a, m, (enum gshmem_op)op, call, dest, (size_t)m->my * n, n, status);
    }
}

static __global__ void try_all_types(struct arrays a, struct members m)
{
    if (!calls(BLOCK))
        return;
    try_numbered<int8_t>(&a, &m, GSHMEM_TYPE_INT8, GSHMEM_OP_COUNT);
    try_numbered<int16_t>(&a, &m, GSHMEM_TYPE_INT16, GSHMEM_OP_COUNT);
    try_numbered<int32_t>(&a, &m, GSHMEM_TYPE_INT32, GSHMEM_OP_COUNT);
    try_numbered<int64_t>(&a, &m, GSHMEM_TYPE_INT64, GSHMEM_OP_COUNT);
    try_numbered<uint8_t>(&a, &m, GSHMEM_TYPE_UINT8, GSHMEM_OP_COUNT);
    try_numbered<uint16_t>(&a, &m, GSHMEM_TYPE_UINT16, GSHMEM_OP_COUNT);
    try_numbered<uint32_t>(&a, &m, GSHMEM_TYPE_UINT32, GSHMEM_OP_COUNT);
    try_numbered<uint64_t>(&a, &m, GSHMEM_TYPE_UINT64, GSHMEM_OP_COUNT);
    try_numbered<float>(&a, &m, GSHMEM_TYPE_FLOAT, GSHMEM_OP_AND);
    try_numbered<double>(&a, &m, GSHMEM_TYPE_DOUBLE, GSHMEM_OP_AND);
}

int main(void)
{
    struct members teams[8];
    struct arrays a;

    CHECK_OK(gshmem_init());
    a.source = symmetric_array<double>(150000);
    a.dest = symmetric_array<double>(150000);
    a.digest = symmetric_array<uint64_t>(1);
    a.digests = symmetric_array<uint64_t>(GROUP_PES);
    a.found = shared_array<struct found>(1);
    int count = members_make(teams);
    for (int i = 0; i < count; i++) {
        if (teams[i].my < 0)
            continue;
        /* 1 MiB of doubles with all PEs, else just beyond what comes along with a round */
        FOR_EACH_SCOPE(a.found, try_sizes, a, teams[i], i == 0 && !FEW ? 131072 : 2000,
                       (uint64_t)i * 10000);
    }
    try_all_types<<<BLOCKS, THREADS>>>(a, teams[0]);
    CHECK_FOUND(a.found);
    members_free(teams, count);
    CHECK_OK(gshmem_finalize());
    return 0;
}

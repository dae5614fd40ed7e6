/* Collectives in kernels that move data: what arrives is what was sent, for all sizes, scopes and
 * kinds of teams; nothing beside it is touched; source may be changed at once on return, and dest
 * may be dirtied until the call. No synchronisation but that of the collectives themselves, so that
 * calls that overtake each other are found. */
#include "kernel/collective.h"

enum { LARGE = (1 << 20) + 3, GUARD = 64 };

/* About what comes along with a round, below and above, for some numbers of members. */
static const size_t sizes[] = {0,    1,    7,    8,    64,   333,  499,  500,  501,   1000,
                               1001, 2666, 2667, 4000, 4001, 7999, 8000, 8001, 65537, LARGE};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct buffers {
    unsigned char *source, *dest; /* symmetric */
    struct found *found;
};

static __device__ inline unsigned char byte_of(uint64_t call, int pe, size_t i)
{
    return (unsigned char)((i * 31 + (i >> 8) * 7 + (unsigned)pe * 101 + call * 13) ^ i >> 16);
}

template <int scope>
static __device__ void fill(const struct buffers *b, uint64_t call, size_t bytes, size_t all)
{
    for (size_t i = rank_of(scope); i < bytes; i += callers(scope))
        b->source[i] = byte_of(call, gshmem_my_pe(), i);
    for (size_t i = rank_of(scope); i < all + 2 * GUARD; i += callers(scope))
        b->dest[i] = 0xee;
    if (rank_of(scope) == 0)
        late(call);
}

/* Byte i of dest is byte from(i).offset of the source of PE from(i).pe; and the source is spoilt.
 */
template <int scope, class From>
static __device__ void compare(const struct buffers *b, uint64_t call, size_t bytes, size_t all,
                               gshmem_status_t status, From from)
{
    together(scope);
    EXPECT(b->found, status, GSHMEM_OK);
    for (size_t i = rank_of(scope); i < all; i += callers(scope)) {
        size_t offset = i;
        int pe = from(&offset);
        EXPECT(b->found, b->dest[GUARD + i], byte_of(call, pe, offset));
    }
    for (size_t i = rank_of(scope); i < GUARD; i += callers(scope)) {
        EXPECT(b->found, b->dest[i], 0xee);
        EXPECT(b->found, b->dest[GUARD + all + i], 0xee);
    }
    for (size_t i = rank_of(scope); i < bytes; i += callers(scope))
        b->source[i] = 0xdd;
    together(scope);
}

template <int scope>
static __device__ void try_broadcasts(const struct buffers *b, const struct members *m,
                                      uint64_t call, size_t bytes)
{
    for (int i = 0; i < 3; i++, call++) {
        int root = (int)((call + (unsigned)i) % (unsigned)m->n);
        unsigned char *dest = b->dest + GUARD;
        fill<scope>(b, call, bytes, bytes);
        gshmem_status_t status = broadcast<scope>(m->team, dest, b->source, bytes, root);
        compare<scope>(b, call, bytes, bytes, status, [&](size_t *) { return m->pe[root]; });
    }
    /* in place */
    int root = (int)(call % (unsigned)m->n);
    fill<scope>(b, call, bytes, bytes);
    together(scope);
    for (size_t i = rank_of(scope); i < bytes && m->my == root; i += callers(scope))
        b->dest[GUARD + i] = b->source[i];
    gshmem_status_t status =
        broadcast<scope>(m->team, b->dest + GUARD, b->dest + GUARD, bytes, root);
    compare<scope>(b, call, bytes, bytes, status, [&](size_t *) { return m->pe[root]; });
}

template <int scope>
static __device__ void try_each_to_each(const struct buffers *b, const struct members *m,
                                        uint64_t call, size_t bytes)
{
    size_t all = bytes * (size_t)m->n;

    fill<scope>(b, call, bytes, all);
    gshmem_status_t status = fcollect<scope>(m->team, b->dest + GUARD, b->source, bytes);
    compare<scope>(b, call, bytes, all, status, [&](size_t *offset) {
        int member = (int)(*offset / bytes);
        *offset %= bytes;
        return m->pe[member];
    });

    call++;
    fill<scope>(b, call, all, all);
    status = alltoall<scope>(m->team, b->dest + GUARD, b->source, bytes);
    compare<scope>(b, call, all, all, status, [&](size_t *offset) {
        int member = (int)(*offset / bytes);
        *offset = (size_t)m->my * bytes + *offset % bytes;
        return m->pe[member];
    });
}

template <int scope>
static __global__ void try_all(struct buffers b, struct members m, const size_t *size, int n,
                               uint64_t call)
{
    if (!calls(scope))
        return;
    for (int i = 0; i < n; i++, call += 8) {
        try_broadcasts<scope>(&b, &m, call, size[i]);
        try_each_to_each<scope>(&b, &m, call + 4,
                                size[i] > 100000 ? size[i] / (size_t)m.n : size[i]);
    }
}

int main(void)
{
    struct members teams[8];
    struct buffers b;

    CHECK_OK(gshmem_init());
    size_t room = (size_t)gshmem_n_pes() * 100000 + LARGE + 2 * GUARD;
    b.source = symmetric_array<unsigned char>(room);
    b.dest = symmetric_array<unsigned char>(room);
    b.found = shared_array<struct found>(1);
    size_t *size = shared_array<size_t>(SIZES);
    memcpy(size, sizes, sizeof sizes);
    int count = members_make(teams);
    for (int i = 0; i < count; i++) {
        if (teams[i].my < 0)
            continue;
        /* what is large is tried with all PEs, and with the oddest team */
        int n = i == 0 || i == 5 ? SIZES : SIZES - 1;
        FOR_EACH_SCOPE(b.found, try_all, b, teams[i], size, n, (uint64_t)i * 10000);
    }
    members_free(teams, count);
    CHECK_OK(gshmem_free(b.dest));
    CHECK_OK(gshmem_free(b.source));
    CHECK_OK(gshmem_finalize());
    return 0;
}

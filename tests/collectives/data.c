/* Collectives that move data: what arrives is what was sent, for all sizes and kinds of teams;
 * nothing beside it is touched; source may be changed at once on return, and dest may be dirtied
 * until the call. No synchronisation but that of the collectives themselves. */
#include "groups.h"

#include "runtime/job/extensions.h"

enum { LARGE = (1 << 20) + 3, GUARD = 64 };

static const size_t sizes[] = {0,    1,    7,    8,    63,   64,    65,   255,
                               1000, 2048, 2049, 4096, 4099, 65536, LARGE};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static unsigned char *source, *dest; /* with room for LARGE bytes from each PE, and guards */
static unsigned char *expected;
static uint64_t call;                                     /* counts them, and salts the data */
static char small_source[64], small_dest[64 * GROUP_PES]; /* symmetric as they are */

static unsigned char byte_of(int pe, size_t i)
{
    return (unsigned char)((i * 31 + (i >> 8) * 7 + (unsigned int)pe * 101 + call * 13) ^ i >> 16);
}

static void fill(size_t bytes)
{
    call++;
    for (size_t i = 0; i < bytes; i++)
        source[i] = byte_of(gshmem_my_pe(), i);
    skew(call);
}

/* dest for the next call: filled with what it should not keep. */
static unsigned char *dirty(size_t bytes)
{
    memset(dest, 0xee, bytes + 2 * GUARD);
    return dest + GUARD;
}

static void compare(const char *what, const struct members *m, size_t bytes, size_t all)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (dest[i] != 0xee || dest[GUARD + all + i] != 0xee)
            CHECK_FAIL("%s of %zu B on %s: wrote outside of dest", what, bytes, m->name);
    }
    for (size_t i = 0; i < all; i++) {
        if (dest[GUARD + i] != expected[i])
            CHECK_FAIL("%s of %zu B on %s (%d PEs): byte %zu is %d, expected %d", what, bytes,
                       m->name, m->n, i, dest[GUARD + i], expected[i]);
    }
}

static void try_broadcast(const struct members *m, size_t bytes, int root)
{
    fill(bytes);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = byte_of(m->pe[root], i);
    CHECK_OK(gshmem_broadcastmem(m->team, dirty(bytes), source, bytes, root));
    memset(source, 0xdd, bytes);
    compare("broadcast", m, bytes, bytes);

    fill(bytes);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = byte_of(m->pe[root], i);
    unsigned char *both = dirty(bytes);
    if (m->my == root)
        memcpy(both, source, bytes);
    CHECK_OK(gshmem_broadcastmem(m->team, both, both, bytes, root));
    compare("broadcast in place", m, bytes, bytes);

    fill(bytes);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = m->my == root ? 0xee : byte_of(m->pe[root], i);
    CHECK_OK(gshmem_path_broadcast_others(m->team, dirty(bytes), source, bytes, root));
    memset(source, 0xdd, bytes);
    compare("broadcast to others", m, bytes, bytes);
}

static void try_collect_in_place(const struct members *m, size_t bytes)
{
    size_t all = bytes * (size_t)m->n;

    fill(bytes);
    for (size_t i = 0; i < all; i++)
        expected[i] = byte_of(m->pe[i / bytes], i % bytes);
    unsigned char *to = dirty(all), *mine = to + (size_t)m->my * bytes;
    memcpy(mine, source, bytes);
    CHECK_OK(gshmem_collectmem(m->team, to, mine, bytes));
    compare("collect in place", m, bytes, all);
}

static void try_fcollect(const struct members *m, size_t bytes)
{
    size_t all = bytes * (size_t)m->n;

    fill(bytes);
    for (size_t i = 0; i < all; i++)
        expected[i] = byte_of(m->pe[i / bytes], i % bytes);
    CHECK_OK(gshmem_fcollectmem(m->team, dirty(all), source, bytes));
    memset(source, 0xdd, bytes);
    compare("fcollect", m, bytes, all);
}

/* What PE pe brings to a collect: less on some, nothing on others. */
static size_t size_of(int pe, size_t bytes)
{
    uint64_t draw = random_of(call * 64 + (uint64_t)pe);

    return draw % 5 == 0 ? 0 : draw % 3 == 0 ? bytes : bytes / (1 + draw % 7);
}

static void try_collect(const struct members *m, size_t bytes)
{
    size_t all = 0;

    fill(bytes);
    for (int i = 0; i < m->n; i++) {
        size_t one = size_of(m->pe[i], bytes);
        for (size_t j = 0; j < one; j++)
            expected[all++] = byte_of(m->pe[i], j);
    }
    bytes = size_of(gshmem_my_pe(), bytes);
    if (call % 2)
        CHECK_OK(gshmem_collectmem(m->team, dirty(all), bytes ? source : NULL, bytes));
    else
        CHECK_OK(gshmem_path_collect(m->team, dirty(all), all, source, bytes));
    memset(source, 0xdd, bytes);
    compare("collect", m, bytes, all);
}

/* One member has a byte too little: all refuse, and nobody writes. */
static void try_collect_without_room(const struct members *m, size_t bytes)
{
    const size_t all = bytes * (size_t)m->n, room = all - (m->my == m->n - 1);

    fill(bytes);
    memset(expected, 0xee, all);
    CHECK_FAILS(gshmem_path_collect(m->team, dirty(all), room, source, bytes), GSHMEM_ERR_ARGUMENT,
                "too small");
    compare("collect without room", m, bytes, all);
}

static void try_alltoall(const struct members *m, size_t bytes)
{
    size_t all = bytes * (size_t)m->n;

    fill(all);
    for (size_t i = 0; i < all; i++)
        expected[i] = byte_of(m->pe[i / bytes], (size_t)m->my * bytes + i % bytes);
    CHECK_OK(gshmem_alltoallmem(m->team, dirty(all), source, bytes));
    memset(source, 0xdd, all);
    compare("alltoall", m, bytes, all);
}

static void try_alltoalls(const struct members *m, size_t n, size_t element, size_t dst, size_t sst)
{
    size_t elements = n * (size_t)m->n;
    size_t all = elements ? ((elements - 1) * dst + 1) * element : 0;

    fill(elements * sst * element);
    memset(expected, 0xee, all);
    for (size_t i = 0; i < elements; i++) {
        for (size_t j = 0; j < element; j++)
            expected[i * dst * element + j] =
                byte_of(m->pe[i / n], (((size_t)m->my * n + i % n) * sst) * element + j);
    }
    CHECK_OK(gshmem_alltoallsmem(m->team, dirty(all), source, (ptrdiff_t)dst, (ptrdiff_t)sst,
                                 element, n));
    memset(source, 0xdd, elements * sst * element);
    compare("alltoalls", m, n * element, all);
}

static void try_variables(const struct members *m)
{
    memset(small_source, gshmem_my_pe() + 1, sizeof small_source);
    memset(small_dest, 0, sizeof small_dest);
    CHECK_OK(gshmem_fcollectmem(m->team, small_dest, small_source, sizeof small_source));
    for (int i = 0; i < m->n; i++)
        CHECK_EQ(small_dest[i * 64 + 63], m->pe[i] + 1);
}

static void try_all(const struct members *m)
{
    for (int s = 0; s < SIZES; s++) {
        size_t bytes = sizes[s], share = bytes / (size_t)m->n;
        int root = (int)(random_of((uint64_t)s) % (uint64_t)m->n);
        try_broadcast(m, bytes, root);
        try_fcollect(m, bytes < 100000 ? bytes : share);
        try_collect(m, bytes < 100000 ? bytes : share);
        if (bytes == 7 || bytes == 4096)
            try_collect_without_room(m, bytes);
        try_collect_in_place(m, bytes < 100000 ? bytes : share);
        try_alltoall(m, bytes < 100000 ? bytes : share);
        if (bytes < 10000) {
            try_alltoalls(m, bytes / 8, 8, 1, 3);
            try_alltoalls(m, bytes / 4, 4, 2, 1);
            try_alltoalls(m, bytes / 5, 5, 2, 3);
        }
    }
    try_variables(m);
}

/* From one field of the elements of an array to another: they overlap as a whole, and not one by one. */
static void try_fields(const struct members *m, size_t n)
{
    struct pair {
        uint64_t to, from;
    } *pairs = (struct pair *)dest;
    size_t all = n * (size_t)m->n;

    for (size_t i = 0; i < all; i++)
        pairs[i] = (struct pair){.to = 0, .from = (uint64_t)m->my << 32 | i};
    CHECK_OK(gshmem_team_sync(m->team));
    CHECK_OK(gshmem_alltoallsmem(m->team, &pairs[0].to, &pairs[0].from, 2, 2, 8, n));
    for (size_t i = 0; i < all; i++) {
        CHECK_EQ(pairs[i].to, i / n << 32 | ((size_t)m->my * n + i % n));
        CHECK_EQ(pairs[i].from, (uint64_t)m->my << 32 | i);
    }
    CHECK_OK(gshmem_team_sync(m->team));
}

int main(void)
{
    struct members teams[8];

    CHECK_OK(gshmem_init());
    size_t room = (size_t)gshmem_n_pes() * 100000 + 2 * LARGE + 2 * GUARD;
    source = gshmem_malloc(room);
    dest = gshmem_malloc(room);
    expected = malloc(room);
    CHECK(source && dest && expected);
    int count = members_make(teams);
    for (int i = 0; i < count; i++) {
        call = (uint64_t)i * 10000; /* the same on all members, who have been in different teams */
        if (teams[i].my >= 0)
            try_all(&teams[i]);
    }
    for (int i = 0; i < count; i++) {
        for (size_t n = 1; n <= 2000 && teams[i].my >= 0; n = n * 7 + 1)
            try_fields(&teams[i], n);
    }
    members_free(teams, count);
    free(expected);
    CHECK_OK(gshmem_free(dest));
    CHECK_OK(gshmem_free(source));
    CHECK_OK(gshmem_finalize());
    return 0;
}

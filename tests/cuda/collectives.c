/* collect, alltoalls, scans and reductions of short types on (simulated) GPU memory, called by the CPU and
 * put on streams: small ones, which come along with a round, and large ones, in place and not. */
#include <complex.h>

#include "gshmem.h"
#include "gpu.h"
#include "gshmem/host_device/half_bits.h"

enum { SMALL = 3, LARGE = 70001, SIZES = 9 };

static int me, n;
static gshmem_team_t team; /* all PEs, in order */
static gshmem_stream_t on; /* NULL: called by the CPU */

/* The call by either way, done on return. */
#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        if (on) {                                                                                  \
            CHECK_OK(gshmem_##name##_on_stream(team, __VA_ARGS__, on));               \
            finish(on);                                                                            \
        } else {                                                                                   \
            CHECK_OK(gshmem_##name(team, __VA_ARGS__));                                            \
        }                                                                                          \
    } while (0)

static void *zeros(size_t bytes)
{
    void *at = gshmem_calloc(bytes, 1);

    CHECK(at);
    return at;
}

/* ---- collect: a PE brings so many, some none ---- */

static size_t size_of(int pe, size_t scale)
{
    return pe % 3 == 1 ? 0 : scale * (size_t)(pe + 1) + (size_t)pe;
}

static void collect(size_t scale)
{
    const size_t mine = size_of(me, scale);
    size_t all = 0, at = 0;

    for (int pe = 0; pe < n; pe++)
        all += size_of(pe, scale);
    unsigned char *block = malloc(all + 1), *from = zeros(all + 1), *to = zeros(all + 1);
    CHECK(block);
    for (size_t i = 0; i < mine; i++)
        block[i] = (unsigned char)(me * 31 + (int)i);
    CHECK_OK(gshmem_putmem(from, block, mine, me));
    CALL(collectmem, to, from, mine);
    CHECK_OK(gshmem_getmem(block, to, all + 1, me));
    for (int pe = 0; pe < n; pe++) {
        for (size_t i = 0; i < size_of(pe, scale); i++)
            CHECK_EQ(block[at++], (unsigned char)(pe * 31 + (int)i));
    }
    CHECK_EQ(block[all], 0);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(from));
    CHECK_OK(gshmem_free(to));
    free(block);
}

/* ---- alltoalls ---- */

static void alltoalls(size_t count, ptrdiff_t dst, ptrdiff_t sst)
{
    const size_t elements = count * (size_t)n;
    const size_t to_bytes = elements * (size_t)dst * 4, from_bytes = elements * (size_t)sst * 4;
    uint32_t *from = zeros(from_bytes), *to = zeros(to_bytes);
    uint32_t *block = calloc(elements, (size_t)(dst > sst ? dst : sst) * 4);

    CHECK(block);
    for (size_t i = 0; i < elements; i++)
        block[i * (size_t)sst] = (uint32_t)me << 24 | (uint32_t)i;
    CHECK_OK(gshmem_putmem(from, block, from_bytes, me));
    CALL(alltoallsmem, to, from, dst, sst, 4, count);
    CHECK_OK(gshmem_getmem(block, to, to_bytes, me));
    for (size_t i = 0; i < elements * (size_t)dst; i++) {
        const size_t element = i / (size_t)dst, pe = element / count;
        const uint32_t sent = (uint32_t)pe << 24 | (uint32_t)((size_t)me * count + element % count);
        CHECK_EQ(block[i], i % (size_t)dst ? 0 : sent);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(from));
    CHECK_OK(gshmem_free(to));
    free(block);
}

/* ---- Scans, and reductions of what is short or has two parts ---- */

/* Element i of a PE's, small enough to be the same in all types. */
static int element(int pe, size_t i)
{
    return pe + (int)(i % 5);
}

static void store(enum gshmem_type type, void *at, size_t i, int value)
{
    switch (type) {
    case GSHMEM_TYPE_INT8:
        ((int8_t *)at)[i] = (int8_t)value;
        break;
    case GSHMEM_TYPE_UINT16:
        ((uint16_t *)at)[i] = (uint16_t)value;
        break;
    case GSHMEM_TYPE_INT32:
        ((int32_t *)at)[i] = value;
        break;
    case GSHMEM_TYPE_INT64:
        ((int64_t *)at)[i] = value;
        break;
    case GSHMEM_TYPE_FLOAT:
        ((float *)at)[i] = (float)value;
        break;
    case GSHMEM_TYPE_DOUBLE:
        ((double *)at)[i] = value;
        break;
    case GSHMEM_TYPE_COMPLEXD:
        ((double complex *)at)[i] = value * (1 + 3 * _Complex_I);
        break;
    case GSHMEM_TYPE_HALF:
        ((uint16_t *)at)[i] = gshmem_half_of_float((float)value);
        break;
    default:
        ((uint16_t *)at)[i] = gshmem_bfloat16_of_float((float)value);
        break;
    }
}

static const struct {
    enum gshmem_type type;
    size_t bytes;
} types[SIZES] = {
    {GSHMEM_TYPE_INT8, 1},   {GSHMEM_TYPE_UINT16, 2}, {GSHMEM_TYPE_INT32, 4},
    {GSHMEM_TYPE_INT64, 8},  {GSHMEM_TYPE_FLOAT, 4},  {GSHMEM_TYPE_DOUBLE, 8},
    {GSHMEM_TYPE_COMPLEXD, 16}, {GSHMEM_TYPE_HALF, 2},   {GSHMEM_TYPE_BFLOAT16, 2},
};

/* What PEs first … end - 1 have, added up. */
static void expect_sums(int which, const void *dest, size_t count, int first, int end)
{
    const size_t bytes = types[which].bytes;
    char *got = malloc(count * bytes), *wanted = malloc(count * bytes);

    CHECK(got && wanted);
    for (size_t i = 0; i < count; i++) {
        int sum = 0;
        for (int pe = first; pe < end; pe++)
            sum += element(pe, i);
        store(types[which].type, wanted, i, sum);
    }
    CHECK_OK(gshmem_getmem(got, dest, count * bytes, me));
    CHECK(memcmp(got, wanted, count * bytes) == 0);
    free(got);
    free(wanted);
}

static void fill(int which, void *dest, size_t count, int from)
{
    char *block = malloc(count * types[which].bytes);

    CHECK(block);
    for (size_t i = 0; i < count; i++)
        store(types[which].type, block, i, element(from, i));
    CHECK_OK(gshmem_putmem(dest, block, count * types[which].bytes, me));
    free(block);
    CHECK_OK(gshmem_barrier_all());
}

static void sums(int which, size_t count)
{
    const enum gshmem_type type = types[which].type;
    char *from = zeros(count * types[which].bytes), *to = zeros(count * types[which].bytes);

    fill(which, from, count, me);
    CALL(inscan, type, to, from, count);
    expect_sums(which, to, count, 0, me + 1);
    CALL(exscan, type, to, from, count);
    expect_sums(which, to, count, 0, me);
    CALL(reduce, type, GSHMEM_OP_SUM, to, from, count);
    expect_sums(which, to, count, 0, n);
    if (type != GSHMEM_TYPE_COMPLEXD) {
        CALL(reduce, type, GSHMEM_OP_MAX, to, from, count);
        expect_sums(which, to, count, n - 1, n);
    }
    CALL(exscan, type, from, from, count);
    expect_sums(which, from, count, 0, me);
    fill(which, from, count, me);
    CALL(inscan, type, from, from, count);
    expect_sums(which, from, count, 0, me + 1);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(from));
    CHECK_OK(gshmem_free(to));
}

/* ---- What all learn of, and nobody hangs on ---- */

static void mistakes(void)
{
    const int other = n - 1; /* it makes the mistake */
    const gshmem_status_t found = GSHMEM_ERR_MISMATCH;
    long *words = zeros(64 * sizeof *words), mine = 0;

    CHECK_EQ(gshmem_collectmem(GSHMEM_TEAM_WORLD, words, me == other ? &mine : words + 32, 8),
             me == other ? GSHMEM_ERR_NOT_SYMMETRIC : found);
    CHECK_EQ(gshmem_collectmem(GSHMEM_TEAM_WORLD, words, words, 8), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_collectmem(GSHMEM_TEAM_WORLD, words + 32, words, (size_t)1 << 41),
             GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_alltoallsmem(GSHMEM_TEAM_WORLD, words, words + 32, me == other ? 0 : 1, 1, 4, 1),
             me == other ? GSHMEM_ERR_ARGUMENT : found);
    CHECK_EQ(gshmem_alltoallsmem(GSHMEM_TEAM_WORLD, words, words + 32, 1, PTRDIFF_MAX, 4, 2),
             GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_inscan(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_LONGDOUBLE, words, words, 1),
             GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_HALF, GSHMEM_OP_AND, words, words, 1),
             GSHMEM_ERR_ARGUMENT);
    if (n > 1) {
        CHECK_EQ(gshmem_inscan(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT32, words, words, me ? 2 : 1), found);
        CHECK_EQ(gshmem_alltoallsmem(GSHMEM_TEAM_WORLD, words, words + 32, 1, 1, me ? 8 : 4,
                                     me ? 1 : 2),
                 found); /* as much of it, in other pieces */
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
}

static void all(void)
{
    collect(1);
    collect(30000);
    alltoalls(1, 1, 1);
    alltoalls(SMALL, 2, 3);
    alltoalls(200, 3, 1);
    for (int which = 0; which < SIZES; which++)
        sums(which, SMALL);
    sums(3, LARGE);
    sums(7, LARGE);
}

/* A team of which there are so many that less data comes along with its rounds. */
static void later_team(void)
{
    enum { TEAMS = 300 };
    gshmem_team_t teams[TEAMS];

    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &teams[i]));
    team = teams[TEAMS - 1];
    CHECK(team > 256);
    collect(1);
    collect(30000);
    alltoalls(SMALL, 2, 3);
    alltoalls(200, 3, 1);
    sums(3, SMALL);
    sums(3, 150); /* more than comes along, and less than with other teams */
    sums(3, 5000);
    team = GSHMEM_TEAM_WORLD;
    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(gshmem_team_destroy(teams[i]));
}

int main(void)
{
    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    team = GSHMEM_TEAM_WORLD;
    open_gpu();
    all();
    on = new_stream();
    all();
    later_team();
    end_stream(on);
    on = NULL;
    later_team();
    mistakes();
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(driver.context_set(context), CUDA_OK); /* which finalize has let go of */
    close_gpu();
    return 0;
}

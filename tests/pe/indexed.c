/* Indexed operations: each element where it belongs and no other changed, for each size, one PE and
 * a PE for each element, few elements and more than are in flight at a time; and mistakes. */
#include <stdbool.h>

#include "pe.h"

enum { OBJECT = 5000, MOST = 200000 };

static unsigned char variable[OBJECT * 8]; /* a symmetric object that is not in the heap */
static unsigned char *heap, *local, *wanted;
static size_t *number;
static int *pes;
static uint64_t seed;

static unsigned random_below(unsigned most)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % most;
}

static void check_same(const char *what, const void *got, const void *expected, size_t element,
                       size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        if (memcmp((const char *)got + i * element, (const char *)expected + i * element, element))
            CHECK_FAIL("%s of %zu elements of %zu B: element %zu", what, elements, element, i);
    }
}

static gshmem_status_t get(gshmem_ctx_t ctx, size_t element, void *to, const void *object,
                           size_t elements, int pe, bool nbi)
{
    return gshmem_path_ixget(ctx, to, object, number, pes, pe, element, elements, nbi);
}

/* Everybody's object has that PE's bytes. */
static void fill_object(unsigned char *object, size_t element)
{
    barrier();
    fill(object, OBJECT * element, me, (unsigned)element);
    barrier();
}

static void choose(size_t elements, int pe)
{
    for (size_t i = 0; i < elements; i++) {
        number[i] = random_below(OBJECT);
        pes[i] = pe == GSHMEM_PE_OF_EACH ? (int)random_below((unsigned)n) : pe;
    }
    number[elements / 2] = OBJECT - 1;
    number[elements - 1] = number[0]; /* one at least occurs twice */
}

static void test_get(unsigned char *object, size_t element, size_t elements, int pe, bool nbi)
{
    choose(elements, pe);
    memset(local, 0, (elements + 1) * element);
    memset(wanted, 0, (elements + 1) * element);
    for (size_t i = 0; i < elements; i++)
        for (size_t b = 0; b < element; b++)
            wanted[i * element + b] = mark(pes[i], (unsigned)element, number[i] * element + b);
    CHECK_OK(get(GSHMEM_CTX_DEFAULT, element, local, object, elements, pe, nbi));
    memset(number, 0xff, elements * sizeof *number); /* may be reused */
    memset(pes, 0xff, elements * sizeof *pes);
    if (nbi)
        CHECK_OK(gshmem_quiet());
    check_same(nbi ? "ixget_nbi" : "ixget", local, wanted, element, elements + 1);
}

/* Each PE writes elements of its own of each PE's object: those with number % n == me. */
static void test_put(unsigned char *object, size_t element, size_t elements, int pe)
{
    fill_object(object, element);
    for (size_t i = 0; i < elements; i++) {
        const size_t a = random_below(OBJECT);
        number[i] = a - a % (size_t)n + (size_t)me;
        pes[i] = pe == GSHMEM_PE_OF_EACH ? (int)random_below((unsigned)n) : pe;
        if (number[i] >= OBJECT)
            number[i] = (size_t)me;
        for (size_t b = 0; b < element; b++) /* the same for the same element */
            local[i * element + b] = mark(pes[i] + 7 * me, 99, number[i] * element + b);
    }
    CHECK_OK(
        gshmem_path_ixput(GSHMEM_CTX_DEFAULT, object, local, number, pes, pe, element, elements));
    memset(local, 0, elements * element);
    barrier();
    /* What this PE has put is read back; what nobody has put is as it was. */
    CHECK_OK(get(GSHMEM_CTX_DEFAULT, element, local, object, elements, pe, false));
    for (size_t i = 0; i < elements; i++)
        for (size_t b = 0; b < element; b++)
            CHECK_EQ(local[i * element + b], mark(pes[i] + 7 * me, 99, number[i] * element + b));
    for (size_t i = 0; i < OBJECT; i++) {
        const unsigned char *at = object + i * element;
        bool is_put = true, was = true;
        for (size_t b = 0; b < element; b++) {
            is_put &= at[b] == mark(me + 7 * (int)(i % (size_t)n), 99, i * element + b);
            was &= at[b] == mark(me, (unsigned)element, i * element + b);
        }
        if (!is_put && !was)
            CHECK_FAIL("ixput of elements of %zu B: element %zu is neither old nor new", element,
                       i);
    }
    barrier();
}

#define TEST_ADD(type, name)                                                                       \
    static void test_add_##name(size_t elements, int pe)                                           \
    {                                                                                              \
        type *object = (type *)(void *)heap, *mine = (type *)(void *)local;                        \
        barrier();                                                                                 \
        memset(heap, 0, OBJECT * sizeof *object);                                                  \
        barrier();                                                                                 \
        for (size_t i = 0; i < elements; i++) {                                                    \
            number[i] = i % 10 ? i % OBJECT : 3;                                                   \
            pes[i] = pe == GSHMEM_PE_OF_EACH ? (int)(i % (size_t)n) : pe;                          \
            mine[i] = (type)(i % 7 + 1);                                                           \
        }                                                                                          \
        if (pe == GSHMEM_PE_OF_EACH)                                                               \
            CHECK_OK(gshmem_##name##_ix_add_pes(object, mine, number, pes, elements));             \
        else                                                                                       \
            CHECK_OK(gshmem_##name##_ix_add(object, mine, number, elements, pe));                  \
        memset(local, 0, elements * sizeof *mine);                                                 \
        barrier();                                                                                 \
        type *sums = (type *)(void *)wanted;                                                       \
        memset(sums, 0, OBJECT * sizeof *sums);                                                    \
        for (size_t i = 0; i < elements; i++) /* all PEs add the same */                           \
            if (pe == GSHMEM_PE_OF_EACH ? (int)(i % (size_t)n) == me : pe == me)                   \
                sums[i % 10 ? i % OBJECT : 3] += (type)((type)(i % 7 + 1) * (type)n);              \
        check_same("ix_add of " #name, object, sums, sizeof *object, OBJECT);                      \
    }

TEST_ADD(int, int)
TEST_ADD(long, long)
TEST_ADD(uint32_t, uint32)
TEST_ADD(float, float)
TEST_ADD(double, double)

static void test_sizes(unsigned char *object, size_t most)
{
    for (size_t element = 1; element <= most; element *= 2) {
        fill_object(object, element);
        for (size_t elements = 1; elements <= 50000; elements *= element == 8 ? 10 : 100) {
            for (int pe = 0; pe < n; pe++)
                test_get(object, element, elements, pe, elements % 2);
            test_get(object, element, elements, GSHMEM_PE_OF_EACH, false);
            test_get(object, element, elements, GSHMEM_PE_OF_EACH, true);
        }
        test_put(object, element, 3000, right());
        test_put(object, element, 20000, GSHMEM_PE_OF_EACH);
    }
}

/* More than is in flight at a time, by several calls; a later put follows the elements. */
static void test_many(void)
{
    fill_object(heap, 8);
    test_get(heap, 8, MOST, GSHMEM_PE_OF_EACH, true);
    for (size_t i = 0; i < 2000; i++) {
        number[i] = i % OBJECT;
        CHECK_OK(gshmem_uint64_ixget_nbi((uint64_t *)(void *)local + i,
                                         (const uint64_t *)(const void *)heap, &number[i], 1,
                                         right()));
    }
    CHECK_OK(gshmem_quiet());
    for (size_t i = 0; i < 2000 * 8; i++)
        CHECK_EQ(local[i], mark(right(), 8, i));
    barrier();
    if (me == 0) {
        uint64_t ones[64];
        for (size_t i = 0; i < 64; i++) {
            number[i] = i / 2;
            ones[i] = 1;
        }
        CHECK_OK(gshmem_uint64_ixput((uint64_t *)(void *)heap, ones, number, 64, right()));
        CHECK_OK(gshmem_fence());
        for (size_t i = 0; i < 32; i++)
            CHECK_OK(gshmem_uint64_p((uint64_t *)(void *)heap + i, 2, right()));
    }
    barrier();
    for (size_t i = 0; me == 1 % n && i < 32; i++)
        CHECK_EQ(((const uint64_t *)(const void *)heap)[i], 2);
    barrier();
}

/* The numbers of PEs are the context's team's. */
static void test_team(void)
{
    gshmem_team_t team = GSHMEM_TEAM_INVALID;
    gshmem_ctx_t ctx = GSHMEM_CTX_INVALID;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n / 2, 1, n - n / 2, NULL, 0, &team));
    fill_object(heap, 4);
    if (team != GSHMEM_TEAM_INVALID) {
        CHECK_OK(gshmem_team_create_ctx(team, 0, &ctx));
        for (int i = 0; i < n - n / 2; i++) {
            number[i] = 100 + (size_t)i;
            pes[i] = n - n / 2 - 1 - i;
        }
        CHECK_OK(gshmem_ctx_uint_ixget_pes_nbi(ctx, (unsigned *)(void *)local,
                                               (const unsigned *)(const void *)heap, number, pes,
                                               (size_t)(n - n / 2)));
        CHECK_OK(gshmem_ctx_quiet(ctx));
        for (int i = 0; i < n - n / 2; i++)
            for (size_t b = 0; b < 4; b++)
                CHECK_EQ(local[(size_t)i * 4 + b], mark(n - 1 - i, 4, (100 + (size_t)i) * 4 + b));
        gshmem_ctx_destroy(ctx);
        CHECK_OK(gshmem_team_destroy(team));
    }
    barrier();
}

static void test_mistakes(void)
{
    long *object = (long *)(void *)heap, mine[3] = {-1, -2, -3};
    size_t index[3] = {1, (size_t)1 << 40, 2};
    int of[3] = {0, 0, 0};

    fill_object(heap, 8);
    CHECK_FAILS(gshmem_long_ixput(object, mine, index, 3, right()), GSHMEM_ERR_NOT_SYMMETRIC,
                "ixput with index[1] = 1099511627776");
    CHECK_FAILS(gshmem_long_ixget_pes(mine, object, index, of, 3), GSHMEM_ERR_NOT_SYMMETRIC,
                "ixget with index[1] = 1099511627776");
    index[1] = SIZE_MAX;
    CHECK_FAILS(gshmem_long_ix_add(object, mine, index, 3, right()), GSHMEM_ERR_NOT_SYMMETRIC,
                "ix_add with index[1]");
    index[1] = 0;
    of[2] = n;
    CHECK_FAILS(gshmem_long_ix_add_pes(object, mine, index, of, 3), GSHMEM_ERR_ARGUMENT,
                "ix_add of 3 elements: pes[2] is");
    of[2] = -1;
    CHECK_FAILS(gshmem_long_ixput_pes(object, mine, index, of, 3), GSHMEM_ERR_ARGUMENT,
                "pes[2] is -1: the job has PEs 0..");
    CHECK_FAILS(gshmem_long_ixput(object, mine, index, 3, n), GSHMEM_ERR_ARGUMENT,
                "ixput of 3 elements with PE");
    CHECK_FAILS(gshmem_long_ixget(mine, object, index, 3, -1), GSHMEM_ERR_ARGUMENT,
                "ixget of 3 elements with PE -1: the job has PEs 0..");
    CHECK_FAILS(gshmem_long_ixput(object, mine, NULL, 3, 0), GSHMEM_ERR_ARGUMENT,
                "ixput of 3 elements: index is NULL");
    CHECK_FAILS(gshmem_long_ixput_pes(object, mine, index, NULL, 3), GSHMEM_ERR_ARGUMENT,
                "pes is NULL");
    CHECK_FAILS(gshmem_long_ixput(object, NULL, index, 3, 0), GSHMEM_ERR_ARGUMENT,
                "source is NULL");
    CHECK_FAILS(gshmem_long_ixget_nbi(NULL, object, index, 3, 0), GSHMEM_ERR_ARGUMENT,
                "dest is NULL");
    CHECK_FAILS(gshmem_long_ix_add((long *)(void *)(heap + 4), mine, index, 3, right()),
                GSHMEM_ERR_ARGUMENT, "is not aligned to its 8 bytes");
    CHECK_FAILS(gshmem_long_ixget(mine, mine, index, 3, right()), GSHMEM_ERR_NOT_SYMMETRIC,
                "ixget with index[2] = 2");
    CHECK_OK(gshmem_long_ixput(NULL, NULL, NULL, 0, -5));
    CHECK_OK(gshmem_long_ixget_pes(NULL, NULL, NULL, NULL, 0));
    CHECK_OK(gshmem_long_ix_add(NULL, NULL, NULL, 0, -5));
    barrier();
    CHECK_FILLED(heap, OBJECT * 8, me, 8);
    CHECK_EQ(mine[0] + mine[1] + mine[2], -6);
    barrier();
}

int main(void)
{
    begin();
    seed = (uint64_t)me * 77 + 1;
    heap = take(OBJECT * 16);
    local = malloc((MOST + 1) * 16);
    wanted = malloc((MOST + 1) * 16);
    number = malloc(MOST * sizeof *number);
    pes = malloc(MOST * sizeof *pes);
    CHECK(local && wanted && number && pes);
    test_sizes(heap, 16);
    test_sizes(variable, 8);
    for (int pe = 0; pe < n; pe++) {
        test_add_int(300, pe);
        test_add_double(20000, pe);
    }
    test_add_long(30000, GSHMEM_PE_OF_EACH);
    test_add_uint32(30000, GSHMEM_PE_OF_EACH);
    test_add_float(3000, GSHMEM_PE_OF_EACH);
    test_many();
    test_team();
    test_mistakes();
    free(local);
    free(wanted);
    free(number);
    free(pes);
    gshmem_free(heap);
    end();
    return 0;
}

/* Reductions and scans: every type and operation, against a plain loop over all members' values. */
#include <complex.h>

#include "groups.h"

enum { MOST = 200 * 1024 + 5 };

static char *source, *dest; /* room for MOST elements of 16 B for each PE */
static uint64_t call;

/* Small whole numbers: floating point sums and products of them are exact. */
static int number_of(int pe, size_t i, enum gshmem_op op)
{
    uint64_t draw = ((uint64_t)pe * 7919 + i * 31 + call * 17) % 97;

    return op == GSHMEM_OP_PROD ? (int)(draw % 4 == 0) + 1 : (int)draw - 20;
}

#define COMBINE_SUM(a, b)  ((a) + (b))
#define COMBINE_PROD(a, b) ((a) * (b))
#define COMBINE_MIN(a, b)  ((b) < (a) ? (b) : (a))
#define COMBINE_MAX(a, b)  ((b) > (a) ? (b) : (a))
#define COMBINE_AND(a, b)  ((a) & (b))
#define COMBINE_OR(a, b)   ((a) | (b))
#define COMBINE_XOR(a, b)  ((a) ^ (b))

/* For one type and operation: all four collectives with n elements, in place and out of place. */
#define TRY(suffix, type, TYPE, OP)                                                                \
    static type expect_##suffix##_##OP(const struct members *m, int members, size_t i)             \
    {                                                                                              \
        type all = (type)number_of(m->pe[0], i, GSHMEM_OP_##OP);                                   \
        for (int k = 1; k < members; k++)                                                          \
            all = (type)COMBINE_##OP(all, (type)number_of(m->pe[k], i, GSHMEM_OP_##OP));           \
        return all;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void check_##suffix##_##OP(const struct members *m, const char *what, const type *got,  \
                                      size_t n, int members, size_t first)                         \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            type due = members ? expect_##suffix##_##OP(m, members, first + i) : (type)0;          \
            if (got[i] != due)                                                                     \
                CHECK_FAIL("%s " #OP " of %zu " #type " on %s (%d PEs): element %zu is wrong",     \
                           what, n, m->name, m->n, i);                                             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void fill_##suffix##_##OP(type *to, size_t n)                                           \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] = (type)number_of(gshmem_my_pe(), i, GSHMEM_OP_##OP);                            \
        memset(dest, 0x55, n * sizeof(type));                                                      \
        skew(call);                                                                                \
    }                                                                                              \
                                                                                                   \
    static void try_##suffix##_##OP(const struct members *m, size_t n)                             \
    {                                                                                              \
        const enum gshmem_type t = GSHMEM_TYPE_##TYPE;                                             \
        const enum gshmem_op op = GSHMEM_OP_##OP;                                                  \
        type *in = (type *)source, *out = (type *)dest;                                            \
                                                                                                   \
        call++;                                                                                    \
        fill_##suffix##_##OP(in, n);                                                               \
        CHECK_OK(gshmem_reduce(m->team, t, op, out, in, n));                                       \
        memset(in, 0x33, n * sizeof(type));                                                        \
        check_##suffix##_##OP(m, "reduce", out, n, m->n, 0);                                       \
        fill_##suffix##_##OP(in, n);                                                               \
        CHECK_OK(gshmem_reduce(m->team, t, op, in, in, n));                                        \
        check_##suffix##_##OP(m, "reduce in place", in, n, m->n, 0);                               \
                                                                                                   \
        size_t all = n * (size_t)m->n, mine = n * (size_t)m->my;                                   \
        call++;                                                                                    \
        fill_##suffix##_##OP(in, all);                                                             \
        CHECK_OK(gshmem_reducescatter(m->team, t, op, out, in, n));                                \
        memset(in, 0x33, all * sizeof(type));                                                      \
        check_##suffix##_##OP(m, "reducescatter", out, n, m->n, mine);                             \
        fill_##suffix##_##OP(in, all);                                                             \
        CHECK_OK(gshmem_reducescatter(m->team, t, op, in, in, n));                                 \
        check_##suffix##_##OP(m, "reducescatter in place", in, n, m->n, mine);                     \
                                                                                                   \
        if (op != GSHMEM_OP_SUM)                                                                   \
            return;                                                                                \
        call++;                                                                                    \
        for (int in_place = 0; in_place < 2; in_place++) {                                         \
            type *to = in_place ? in : out;                                                        \
            fill_##suffix##_##OP(in, n);                                                           \
            CHECK_OK(gshmem_inscan(m->team, t, to, in, n));                                        \
            check_##suffix##_##OP(m, "inscan", to, n, m->my + 1, 0);                               \
            fill_##suffix##_##OP(in, n);                                                           \
            CHECK_OK(gshmem_exscan(m->team, t, to, in, n));                                        \
            check_##suffix##_##OP(m, "exscan", to, n, m->my, 0);                                   \
        }                                                                                          \
    }

/* clang-format off */
#define FIELD(X, suffix, type, TYPE)   X(suffix, type, TYPE, SUM) X(suffix, type, TYPE, PROD)
#define ORDERED(X, suffix, type, TYPE) FIELD(X, suffix, type, TYPE)                                \
    X(suffix, type, TYPE, MIN) X(suffix, type, TYPE, MAX)
#define INTEGER(X, suffix, type, TYPE) ORDERED(X, suffix, type, TYPE)                              \
    X(suffix, type, TYPE, AND) X(suffix, type, TYPE, OR) X(suffix, type, TYPE, XOR)

#define ALL(X)                                                                                     \
    INTEGER(X, int8, int8_t, INT8)                                                                 \
    INTEGER(X, int16, int16_t, INT16)                                                              \
    INTEGER(X, int32, int32_t, INT32)                                                              \
    INTEGER(X, int64, int64_t, INT64)                                                              \
    INTEGER(X, uint8, uint8_t, UINT8)                                                              \
    INTEGER(X, uint16, uint16_t, UINT16)                                                           \
    INTEGER(X, uint32, uint32_t, UINT32)                                                           \
    INTEGER(X, uint64, uint64_t, UINT64)                                                           \
    ORDERED(X, float, float, FLOAT)                                                                \
    ORDERED(X, double, double, DOUBLE)                                                             \
    ORDERED(X, longdouble, long double, LONGDOUBLE)                                                \
    FIELD(X, complexf, float _Complex, COMPLEXF)                                                   \
    FIELD(X, complexd, double _Complex, COMPLEXD)

/* clang-format on */

ALL(TRY)

static void try_small(const struct members *m)
{
    static const size_t counts[] = {0, 1, 7, 8, 63, 64, 65, 512, 2100};

#define CALL(suffix, type, TYPE, OP) try_##suffix##_##OP(m, counts[c]);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        ALL(CALL)
    }
}

static void try_large(const struct members *m)
{
    static const size_t counts[] = {4096, 4097, 65536, MOST};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        try_int8_MAX(m, counts[c]);
        try_int16_XOR(m, counts[c]);
        try_int64_SUM(m, counts[c]);
        try_float_SUM(m, counts[c]);
        try_double_PROD(m, counts[c]);
        try_longdouble_SUM(m, counts[c]);
    }
}

/* Results do not depend on who computes them, nor on how: the same bits on all PEs and each time.
 */
static void try_determinism(const struct members *m)
{
    double *in = (double *)source, *out = (double *)dest;
    const size_t counts[] = {1, 100, 5000};
    static double first[5000];

    for (int c = 0; c < 3; c++) {
        for (int again = 0; again < 5; again++) {
            for (size_t i = 0; i < counts[c]; i++)
                in[i] = 1.0 / (double)(3 + gshmem_my_pe() * 7 + (int)(i % 11));
            skew(++call);
            CHECK_OK(gshmem_reduce(m->team, GSHMEM_TYPE_DOUBLE, GSHMEM_OP_SUM, out, in, counts[c]));
            if (again == 0)
                memcpy(first, out, counts[c] * sizeof *first);
            CHECK(memcmp(first, out, counts[c] * sizeof *first) == 0);
            CHECK_OK(gshmem_broadcastmem(m->team, in, out, counts[c] * sizeof *out, 0));
            CHECK(memcmp(in, out, counts[c] * sizeof *out) == 0);
        }
    }
}

int main(void)
{
    struct members teams[8];

    CHECK_OK(gshmem_init());
    size_t room = (size_t)gshmem_n_pes() * MOST * 16;
    source = gshmem_malloc(room);
    dest = gshmem_malloc(room);
    CHECK(source && dest);
    int count = members_make(teams);
    for (int i = 0; i < count; i++) {
        if (teams[i].my < 0)
            continue;
        call = (uint64_t)i * 10000; /* the same on all members, who have been in different teams */
        try_small(&teams[i]);
        try_determinism(&teams[i]);
    }
    call = 0;
    try_large(&teams[0]);
    try_large(&teams[3]); /* rows: several teams at once */
    members_free(teams, count);
    CHECK_OK(gshmem_free(dest));
    CHECK_OK(gshmem_free(source));
    CHECK_OK(gshmem_finalize());
    return 0;
}

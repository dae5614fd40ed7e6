/* The tables of types and operations: which combinations there are is written down here once more, and
 * all else is refused or left alone, whatever number it has. */
#include "../check.h"
#include "runtime/base/atomic_type.h"
#include "runtime/collectives/combine.h"

static const char *const kinds = "iiiiuuuurrrccrr"; /* by number: integers, real and complex numbers */

static bool is_defined(int type, int op)
{
    if (type < 0 || type >= (int)strlen(kinds))
        return false;
    switch (kinds[type]) {
    case 'c':
        return op == GSHMEM_OP_SUM || op == GSHMEM_OP_PROD;
    case 'r':
        return op >= GSHMEM_OP_SUM && op <= GSHMEM_OP_MAX;
    }
    return op >= GSHMEM_OP_SUM && op <= GSHMEM_OP_XOR;
}

static void test_reductions(void)
{
    CHECK_EQ(GSHMEM_TYPE_COUNT, strlen(kinds));
    CHECK_EQ(GSHMEM_OP_COUNT, 7);
    for (int type = -300; type < 300; type++) {
        for (int op = -300; op < 300; op++)
            CHECK_EQ(combine_find((enum gshmem_type)type, (enum gshmem_op)op) != NULL,
                     is_defined(type, op));
        CHECK_EQ(combine_bytes((enum gshmem_type)type) != 0, type >= 0 && type < GSHMEM_TYPE_COUNT);
    }
    for (int type = 0; type < GSHMEM_TYPE_COUNT; type++) {
        for (int op = 0; op < GSHMEM_OP_COUNT; op++)
            CHECK_EQ(combine_kernels[type][op] != NULL, is_defined(type, op));
    }
}

static size_t bytes_of_atomic(int type)
{
    switch (type) {
    case GSHMEM_TYPE_INT32:
    case GSHMEM_TYPE_UINT32:
    case GSHMEM_TYPE_FLOAT:
        return 4;
    case GSHMEM_TYPE_INT64:
    case GSHMEM_TYPE_UINT64:
    case GSHMEM_TYPE_DOUBLE:
        return 8;
    }
    return 0;
}

/* An object is changed by updates of the table alone, and never more of it than the type has. */
static void test_atomics(void)
{
    CHECK_EQ(GSHMEM_AMO_COUNT, 8);
    for (int type = -20; type < 300; type++) {
        CHECK_EQ(atomic_type_bytes(type), bytes_of_atomic(type));
        CHECK_EQ(atomic_type_is_real(type), type == GSHMEM_TYPE_FLOAT || type == GSHMEM_TYPE_DOUBLE);
        for (int op = -20; op < 300; op++) {
            uint64_t object = UINT64_C(0x4010000040800000), before = object;
            const uint64_t old =
                atomic_apply((enum gshmem_amo)op, type, &object, UINT64_C(0x4022000041200000), ~before);
            const bool changes = bytes_of_atomic(type) && op > GSHMEM_AMO_FETCH && op < GSHMEM_AMO_COUNT &&
                                 op != GSHMEM_AMO_COMPARE_SWAP;
            CHECK_EQ(object != before, changes);
            if (bytes_of_atomic(type) == 4)
                CHECK_EQ(object >> 32, before >> 32);
            if (changes)
                CHECK_EQ(old, bytes_of_atomic(type) == 4 ? (uint32_t)before : before);
        }
    }
}

static void test_sums(void)
{
    float f = 0.25f, more = 1.5f;
    double d = -0.5, less = 8;
    uint64_t bits;

    CHECK_EQ(atomic_apply(GSHMEM_AMO_ADD, GSHMEM_TYPE_FLOAT, &f, gshmem_bits_float(more), 0),
             gshmem_bits_float(0.25f));
    CHECK(f == 1.75f);
    memcpy(&bits, &less, sizeof bits);
    atomic_apply(GSHMEM_AMO_ADD, GSHMEM_TYPE_DOUBLE, &d, bits, 0);
    CHECK(d == 7.5);
}

int main(void)
{
    test_reductions();
    test_atomics();
    test_sums();
    return 0;
}

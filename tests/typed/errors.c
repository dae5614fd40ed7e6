/* What typed calls do with what is wrong: a status, or the error policy where a value is due; and
 * nothing is touched. */
#include <stdbool.h>
#include <stdint.h>

#include "gshmem.h"
#include "check.h"

static int raised;
static gshmem_status_t raised_status;

static void take_note(gshmem_status_t status, const char *text, void *context)
{
    (void)context;
    CHECK(text && text[0]);
    raised++;
    raised_status = status;
}

/* That expression raised this status once and answered value. */
#define RAISES(expression, value, status)                                                          \
    do {                                                                                           \
        raised = 0;                                                                                \
        CHECK_EQ((expression), value);                                                             \
        CHECK_EQ(raised, 1);                                                                       \
        CHECK_EQ(raised_status, status);                                                           \
    } while (0)

static long global[4] = {1, 2, 3, 4};

static void test_rma(int pe)
{
    const int n = gshmem_n_pes();
    long here = 5, four[4] = {0};

    CHECK_FAILS(gshmem_long_put(&here, &here, 1, pe), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_FAILS(gshmem_long_p(&here, 1, pe), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_FAILS(gshmem_long_put(global, four, 4, n), GSHMEM_ERR_ARGUMENT, "PEs 0..");
    CHECK_FAILS(gshmem_long_put(global, four, 4, -1), GSHMEM_ERR_ARGUMENT, "PE -1");
    CHECK_EQ(gshmem_long_put(global, four, SIZE_MAX / 8 + 2, pe), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_FAILS(gshmem_long_iput(global, four, 0, 1, 4, pe), GSHMEM_ERR_ARGUMENT, "stride");
    CHECK_FAILS(gshmem_long_iput(global, four, 1, -1, 4, pe), GSHMEM_ERR_ARGUMENT, "stride");
    CHECK_FAILS(gshmem_long_ibget(four, global, 1, 2, 2, 2, pe), GSHMEM_ERR_ARGUMENT, "stride");
    CHECK_FAILS(gshmem_ctx_long_p(GSHMEM_CTX_INVALID, global, 1, pe), GSHMEM_ERR_ARGUMENT,
                "GSHMEM_CTX_INVALID");
    RAISES(gshmem_long_g(&here, pe), 0, GSHMEM_ERR_NOT_SYMMETRIC);
    RAISES(gshmem_long_g(global, n), 0, GSHMEM_ERR_ARGUMENT);
    CHECK_OK(gshmem_long_put(global, four, 0, pe));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(global[i], i + 1);
}

static void test_atomics(int pe)
{
    long here = 5;
    int got = 77;
    int *between = (int *)(void *)((char *)global + 2);

    CHECK_FAILS(gshmem_long_atomic_add(&here, 1, pe), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_FAILS(gshmem_int_atomic_set(between, 1, pe), GSHMEM_ERR_ARGUMENT, "aligned");
    CHECK_EQ(gshmem_int_atomic_fetch_nbi(&got, between, pe), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(got, 77);
    RAISES(gshmem_int_atomic_fetch_inc(between, pe), 0, GSHMEM_ERR_ARGUMENT);
    RAISES((int)gshmem_float_atomic_swap((float *)&here, 1, pe), 0, GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(here, 5);
    CHECK_EQ(global[0], 1);
}

/* Numbers that no table has, and types that atomics or waits do not work on: the object stays. */
static void test_outside(int pe)
{
    static uint64_t object = 5;
    uint64_t old = 77;

    for (int number = -40; number < 40; number++) {
        const enum gshmem_amo op = (enum gshmem_amo)number;
        const enum gshmem_type type = (enum gshmem_type)number;
        const bool integer = number >= GSHMEM_TYPE_INT8 && number <= GSHMEM_TYPE_UINT64;
        const int size = integer ? 1 << number % 4 : 0;
        if (number < 0 || number > GSHMEM_AMO_XOR)
            CHECK_EQ(gshmem_path_atomic(GSHMEM_CTX_DEFAULT, op, GSHMEM_TYPE_UINT64, &object, 9, 5, &old,
                                        pe),
                     GSHMEM_ERR_ARGUMENT);
        if (size < 4 && number != GSHMEM_TYPE_FLOAT && number != GSHMEM_TYPE_DOUBLE)
            CHECK_EQ(gshmem_path_atomic(GSHMEM_CTX_DEFAULT, GSHMEM_AMO_ADD, number, &object, 9, 5, &old,
                                        pe),
                     GSHMEM_ERR_ARGUMENT);
        if (size < 2) {
            CHECK_EQ(gshmem_path_wait_one(type, &object, GSHMEM_CMP_EQ, 5), GSHMEM_ERR_ARGUMENT);
            CHECK_EQ(gshmem_path_wait_all(type, &object, 1, NULL, GSHMEM_CMP_EQ, &object, 0),
                     GSHMEM_ERR_ARGUMENT);
            RAISES(gshmem_path_test_one(type, &object, GSHMEM_CMP_EQ, 5), 0, GSHMEM_ERR_ARGUMENT);
            RAISES(gshmem_path_wait_any(type, &object, 1, NULL, GSHMEM_CMP_EQ, &object, 0), SIZE_MAX,
                   GSHMEM_ERR_ARGUMENT);
        }
    }
    CHECK_EQ(old, 77);
    CHECK_EQ(object, 5);
}

static void test_waits(void)
{
    uint32_t two[2] = {1, 2};
    size_t index[2];
    short *odd = (short *)(void *)((char *)two + 1);

    CHECK_FAILS(gshmem_uint32_wait_until(two, -1, 1), GSHMEM_ERR_ARGUMENT, "cmp is -1");
    CHECK_FAILS(gshmem_uint32_wait_until(two, 6, 1), GSHMEM_ERR_ARGUMENT, "cmp is 6");
    CHECK_FAILS(gshmem_uint32_wait_until(NULL, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_ARGUMENT, "at (nil)");
    CHECK_FAILS(gshmem_short_wait_until(odd, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_ARGUMENT, "aligned");
    CHECK_FAILS(gshmem_uint32_wait_until_all(two, 2, NULL, -3, 1), GSHMEM_ERR_ARGUMENT, "cmp is -3");
    CHECK_FAILS(gshmem_uint32_wait_until_all_vector(two, 2, NULL, GSHMEM_CMP_EQ, NULL),
                GSHMEM_ERR_ARGUMENT, "cmp_values is NULL");
    RAISES(gshmem_uint32_test(two, 9, 1), 0, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_test_all(two, 2, NULL, 9, 1), 0, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_test_any(two, 2, NULL, 9, 1), SIZE_MAX, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_test_some(two, 2, index, NULL, 9, 1), 0, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_wait_until_any(two, 2, NULL, 9, 1), SIZE_MAX, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_wait_until_some(two, 2, index, NULL, 9, 1), 0, GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_uint32_wait_until_some(two, 2, NULL, NULL, GSHMEM_CMP_EQ, 1), 0,
           GSHMEM_ERR_ARGUMENT);
    RAISES(gshmem_signal_wait_until(NULL, GSHMEM_CMP_EQ, 1), 0, GSHMEM_ERR_ARGUMENT);
}

static void test_signal(int pe)
{
    static uint64_t sig;

    CHECK_OK(gshmem_signal_set(&sig, 5, pe));
    CHECK_EQ(gshmem_signal_wait_until(&sig, GSHMEM_CMP_GE, 5), 5);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_signal_add(&sig, 7, pe));
    CHECK_EQ(gshmem_signal_wait_until(&sig, GSHMEM_CMP_NE, 5), 12);
    CHECK_EQ(gshmem_signal_fetch(&sig), 12);
    CHECK_OK(gshmem_barrier_all());
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 1); /* what is logged here is as it should be */
    gshmem_set_error_handler(take_note, NULL);
    CHECK_OK(gshmem_init());
    int next = (gshmem_my_pe() + 1) % gshmem_n_pes();
    test_rma(next);
    test_atomics(next);
    test_outside(next);
    test_waits();
    CHECK_OK(gshmem_barrier_all());
    test_signal(next);
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(gshmem_long_p(global, 1, 0), GSHMEM_ERR_STATE);
    CHECK_EQ(gshmem_long_wait_until(global, GSHMEM_CMP_EQ, -1), GSHMEM_ERR_STATE);
    RAISES(gshmem_long_wait_until_any(global, 4, NULL, GSHMEM_CMP_EQ, -1), SIZE_MAX,
           GSHMEM_ERR_STATE);
    return 0;
}

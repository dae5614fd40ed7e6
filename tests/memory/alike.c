/* One of two programs that differ only in which of two variables comes first: a put of one PE's must not change the
 * other's variable of another name.
 *
 *     alike [same]    same: both PEs run one program, and put */
#include "gshmem.h"

#include "check.h"

#if ORDER == 1
int first = 1, second = 2;
#else
int second = 2, first = 1;
#endif

int main(int argc, char **argv)
{
    int value = 7;

    (void)argv;
    CHECK_OK(gshmem_init());
    const int other = 1 - gshmem_my_pe();
    CHECK_OK(gshmem_barrier_all());
    if (argc > 1)
        CHECK_OK(gshmem_putmem(&first, &value, sizeof value, other));
    else
        CHECK_FAILS(gshmem_putmem(&first, &value, sizeof value, other), GSHMEM_ERR_NOT_SYMMETRIC,
                    "runs another program");
    /* of a call with both PEs nothing is moved, also not to the one that has the variable */
    const int pes[] = {gshmem_my_pe(), other}, values[] = {8, 8};
    const size_t index[] = {0, 0};
    if (argc == 1)
        CHECK_FAILS(gshmem_int_ixput_pes(&first, values, index, pes, 2), GSHMEM_ERR_NOT_SYMMETRIC,
                    "runs another program");
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(first, argc > 1 ? 7 : 1);
    CHECK_EQ(second, 2);
    CHECK_OK(gshmem_finalize());
    return 0;
}

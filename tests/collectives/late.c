/* One PE comes late to a barrier: GSHMEM_WATCHDOG lets the other say whom it waits for (the line is
 * checked from outside). The line itself lets PE 1 come. */
#include "gshmem.h"

#include "check.h"
#include "told.h"

int main(void)
{
    CHECK_EQ(setenv("GSHMEM_WATCHDOG", "1", 1), 0);
    CHECK_OK(gshmem_init());
    _Atomic int *late = gshmem_calloc(1, sizeof *late);
    CHECK(late);
    if (gshmem_my_pe() == 0)
        told_begin("barrier_all has waited", late, 1);
    else
        told_await(late);
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 0)
        CHECK(told_end() >= 1);
    CHECK_OK(gshmem_finalize());
    return 0;
}

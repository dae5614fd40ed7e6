/* One PE comes late to a barrier: GSHMEM_WATCHDOG lets the other say whom it waits for (the line is
 * checked from outside). */
#include "gshmem.h"

#include "check.h"

int main(void)
{
    CHECK_EQ(setenv("GSHMEM_WATCHDOG", "1", 1), 0);
    CHECK_OK(gshmem_init());
    if (gshmem_my_pe() == 1)
        sleep(2);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
    return 0;
}

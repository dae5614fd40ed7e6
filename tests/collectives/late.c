/* One PE comes late to a barrier: GSHMEM_WATCHDOG lets the other say whom it waits for (the line is
 * checked from outside). */
#include "gshmem.h"

#include "check.h"

static int at_it; /* on PE 1: PE 0 is about to wait */

int main(void)
{
    CHECK_EQ(setenv("GSHMEM_WATCHDOG", "1", 1), 0);
    CHECK_OK(gshmem_init());
    if (gshmem_my_pe() == 0)
        CHECK_OK(gshmem_int_p(&at_it, 1, 1));
    if (gshmem_my_pe() == 1) {
        CHECK_OK(gshmem_int_wait_until(&at_it, GSHMEM_CMP_EQ, 1));
        sleep(3); /* far longer than PE 0 waits in silence */
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
    return 0;
}

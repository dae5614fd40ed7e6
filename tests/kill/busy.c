/* A PE that is always busy with the others: start-up and end, barriers, waits; never ends by
 * itself. */
#include "gshmem.h"

#include "check.h"

int main(void)
{
    for (;;) {
        CHECK_OK(gshmem_init());
        long *flag = gshmem_calloc(1, sizeof *flag);
        int next = (gshmem_my_pe() + 1) % gshmem_n_pes();
        CHECK(flag);
        for (long i = 1; i <= 200; i++) {
            CHECK_OK(gshmem_long_p(flag, i, next));
            CHECK_OK(gshmem_long_wait_until(flag, GSHMEM_CMP_GE, i));
            CHECK_OK(gshmem_barrier_all());
        }
        gshmem_free(flag);
        CHECK_OK(gshmem_finalize());
    }
}

/* PE 0 makes one barrier more than the others, under an error policy that returns failures: it and they are told of
 * the mismatch, all go on to gshmem_finalize, and nobody waits there for who has left. */
#include "gshmem.h"

#include "../check.h"

int main(void)
{
    CHECK_EQ(setenv("GSHMEM_ON_ERROR", "return", 1), 0);
    CHECK_OK(gshmem_init());
    if (gshmem_my_pe() == 0)
        CHECK(gshmem_barrier_all() != GSHMEM_OK);
    CHECK(gshmem_finalize() != GSHMEM_OK);
    return 0;
}

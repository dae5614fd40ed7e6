/* PE 0 leaves the job. PE 1, which waits for it as the root of a small broadcast, is told that it has left. */
#include "gshmem.h"

#include "check.h"

int main(void)
{
    static long here, given;

    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 1)
        CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &here, &given, sizeof given, 0));
    return 0;
}

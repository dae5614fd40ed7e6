/* PE 1 leaves the job. PE 0 makes small broadcasts as their root, which wait for nobody, and then a call for which
 * PE 1 is missing: it is told that PE 1 has left. */
#include "gshmem.h"

#include "check.h"

int main(void)
{
    static long here, given;

    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 1)
        return 0;
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &here, &given, sizeof given, 0));
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &here, &given, sizeof given, 0));
    CHECK_OK(gshmem_barrier_all());
    return 0;
}

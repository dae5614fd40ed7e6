/* Variables of another launcher's that come after the start, as by MPI_Init of a process that mpirun has not started:
 * gshmemrun's job is this one's all the same. Needs 2 PEs. */
#include <stdlib.h>

#include "gshmem.h"
#include "check.h"

int main(void)
{
    CHECK(setenv("PMIX_NAMESPACE", "586416129", 1) == 0 && setenv("PMIX_RANK", "0", 1) == 0);
    CHECK_OK(gshmem_init());
    CHECK_EQ(gshmem_n_pes(), 2);
    CHECK_OK(gshmem_barrier_all());
    return gshmem_finalize() ? 1 : 0;
}

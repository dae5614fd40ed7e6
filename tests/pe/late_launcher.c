/* A launcher that stands still for longer than its answer is waited for: the call that needs the answer fails, and
 * later ones go on. The answer that comes late is not taken for that to another question.
 *
 * Six PEs of two hosts under gshmemrun, which PE 1 stops; it knows nothing yet of PEs 3 and 4. */
#include <signal.h>
#include <stdlib.h>

#include "pe.h"

static long cell = 5;

int main(void)
{
    setenv("GSHMEM_INIT_TIMEOUT", "12", 1); /* in which a busy machine starts the job */
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), 6);
    CHECK_OK(gshmem_barrier_all());
    if (me == 1) {
        CHECK_EQ(kill(getppid(), SIGSTOP), 0);
        const gshmem_status_t status = gshmem_long_p(&cell, 7, 3);
        CHECK_EQ(kill(getppid(), SIGCONT), 0);
        CHECK_EQ(status, GSHMEM_ERR_BOOTSTRAP);
        CHECK_OK(gshmem_long_p(&cell, 8, 4));
        CHECK_OK(gshmem_long_p(&cell, 9, 3));
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(cell, me == 3 ? 9 : me == 4 ? 8 : 5);
    CHECK_OK(gshmem_finalize());
    return 0;
}

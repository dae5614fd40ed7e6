/* A put to a PE that is given up, and no call after it but the exit: the PE must not end with success.
 *
 * PE 1, on another host, is stopped until then. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"
#include "stopped.h"

static long target, pid, go;

static void go_on(void)
{
    kill((pid_t)pid, SIGCONT);
}

int main(void)
{
    static long one = 1;

    setenv("GSHMEM_PEER_TIMEOUT", "4", 1); /* PEs that live answer sooner, also on a busy machine */
    atexit(go_on); /* after GSHMEM's own, which was registered later */
    CHECK_OK(gshmem_init());
    CHECK_EQ(gshmem_n_pes(), 2);
    pid = getpid();
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 1) {
        gshmem_long_wait_until(&go, GSHMEM_CMP_EQ, 1); /* PE 0 is through with the barrier, too */
        raise(SIGSTOP);
        return 0;
    }
    CHECK_OK(gshmem_getmem(&pid, &pid, sizeof pid, 1));
    CHECK_OK(gshmem_putmem_nbi(&go, &one, sizeof one, 1));
    while (!is_stopped(pid))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_OK(gshmem_putmem_nbi(&target, &one, sizeof one, 1));
    return 0;
}

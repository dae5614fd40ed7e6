/* Ends of a job that are not gshmem_finalize: run by `expect`, which looks at status and output.
 *
 *     exit global STATUS    the last PE calls gshmem_global_exit
 *     exit return STATUS    the last PE returns STATUS from main
 *     exit exit STATUS      and calls exit with it
 *     exit error            the last PE makes a mistake where no status can be returned
 *
 * All others wait, compute or sleep meanwhile. */
#include <time.h>

#include "pe.h"
#include "last.h"

static void others(void)
{
    if (me == 0)
        gshmem_barrier_all(); /* ends with a failure, or with this process */
    if (me == 1)
        gshmem_signal_wait_until(&(uint64_t){0}, GSHMEM_CMP_EQ, 1);
    for (volatile long i = 0; me == 2;)
        i++;
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int status = argc > 2 ? atoi(argv[2]) : 0;

    begin();
    last_waits_for_all();
    if (me != n - 1)
        others();
    /* By then the others are mostly in their calls; where they are not, these see the end all the same. */
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    if (strcmp(how, "global") == 0)
        gshmem_global_exit(status);
    if (strcmp(how, "return") == 0)
        return status;
    if (strcmp(how, "exit") == 0)
        exit(status);
    if (strcmp(how, "error") == 0)
        gshmem_signal_wait_until(&(uint64_t){0}, 99, 1); /* no such comparison */
    CHECK_FAIL("still here");
}

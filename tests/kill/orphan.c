/* PEs of which each says who it is, and then does not look at its launcher any more: it waits for what never
 * comes, or computes. Ends by itself after a minute. */
#include <stdlib.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"

static uint64_t never;

int main(void)
{
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    CHECK_OK(gshmem_barrier_all());
    alarm(60);
    dprintf(STDERR_FILENO, "PE is %d\n", (int)getpid());
    if (me % 2)
        gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1);
    for (volatile unsigned long i = 0;; i++)
        ;
}

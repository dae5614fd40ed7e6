/* A job of one PE waits for a variable that a signal's handler changes: nobody has left, and the wait is right. */
#include <signal.h>
#include <unistd.h>

#include "gshmem.h"

#include "../check.h"

static uint64_t flag;

static void set(int number)
{
    (void)number;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
}

int main(void)
{
    CHECK_OK(gshmem_init());
    signal(SIGALRM, set);
    ualarm(900000, 0);
    CHECK_OK(gshmem_uint64_wait_until(&flag, GSHMEM_CMP_EQ, 1));
    CHECK_OK(gshmem_finalize());
    return 0;
}

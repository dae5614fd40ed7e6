/* PE 0 comes late; the watchdog of whoever waits says for what, how long, and for whom.
 *
 *     watchdog barrier|signal */
#include <time.h>

#include "pe.h"

static uint64_t cell;

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    setenv("GSHMEM_WATCHDOG", "1", 1);
    begin();
    barrier();
    if (me == 0)
        nanosleep(&(struct timespec){.tv_sec = 2, .tv_nsec = 500000000}, NULL);
    if (strcmp(what, "barrier") == 0) {
        barrier();
    } else {
        if (me == 0)
            CHECK_OK(gshmem_signal_set(&cell, 1, 1));
        if (me == 1)
            CHECK_EQ(gshmem_signal_wait_until(&cell, GSHMEM_CMP_EQ, 1), 1);
    }
    CHECK_OK(gshmem_finalize());
    return 0;
}

/* PE 0 comes late; the watchdog of whoever waits says for what, how long, and for whom. That line
 * lets PE 0 come.
 *
 *     watchdog barrier|signal */
#include "pe.h"
#include "told.h"

static uint64_t cell;

int main(int argc, char **argv)
{
    const int by_signal = argc > 1 && strcmp(argv[1], "signal") == 0;

    setenv("GSHMEM_WATCHDOG", "1", 1);
    begin();
    _Atomic int *late = gshmem_calloc(1, sizeof *late);
    CHECK(late);
    barrier(); /* whose lines nobody has heard: a PE may come late to it by chance */
    if (me == 0)
        told_await(late);
    else
        told_begin(by_signal ? "signal_wait_until has waited" : "barrier_all has waited", late, 0);
    if (!by_signal)
        barrier();
    else if (me == 0)
        CHECK_OK(gshmem_signal_set(&cell, 1, 1));
    else
        CHECK_EQ(gshmem_signal_wait_until(&cell, GSHMEM_CMP_EQ, 1), 1);
    if (me == 1) {
        const int lines = told_end();
        CHECK(lines >= 1);
        if (by_signal) /* which is one wait; a barrier may be several */
            CHECK_EQ(lines, 1);
    }
    CHECK_OK(gshmem_finalize());
    return 0;
}

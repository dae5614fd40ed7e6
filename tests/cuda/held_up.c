/* A kernel fills PE 0's GPU while PEs of another host ask for updates there: PE 0 goes on with the network, and
 * so do they with all that needs no such update, also for longer than it takes to give a silent PE up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "gshmem.h"
#include "gpu.h"

/* For the first of another host, as PE 0's kernel does while it runs. */
static void talk(char *words, int other)
{
    for (int i = 0; i < 80; i++) { /* longer than GSHMEM_PEER_TIMEOUT */
        usleep(100000);
        CHECK_OK(gshmem_long_p((long *)words + 1, i, other));
        CHECK_OK(gshmem_quiet());
    }
}

int main(int argc, char **argv)
{
    void (*occupy)(cuda_gpu gpu, bool occupied);
    int other, adds = 3;

    (void)argc, (void)argv;
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    long *words = gshmem_calloc(8, sizeof *words);
    uint64_t *flags = (uint64_t *)words + 4;

    CHECK(words);
    open_gpu();
    void *found = dlsym(driver.library, "sim_occupy");
    CHECK(found);
    memcpy(&occupy, &found, sizeof found);
    other = me == 0 ? n - 1 : 0;
    CHECK_OK(gshmem_barrier_all());
    if (me == 0)
        occupy(0, true);
    CHECK_OK(gshmem_barrier_all());
    if (me == n - 1) { /* nobody waits for these, but a quiet */
        for (int i = 0; i < adds; i++)
            CHECK_OK(gshmem_long_atomic_add(words, 1, other));
        CHECK_OK(gshmem_putmem_signal(words + 2, &adds, sizeof adds, flags, 1, GSHMEM_SIGNAL_ADD, other));
    }
    if (me == 0) {
        talk((char *)words, other);
        occupy(0, false);
    }
    if (me == n - 1)
        CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        CHECK_EQ(gshmem_long_g(words, 0), adds);
        CHECK_EQ(gshmem_signal_fetch(flags), 1);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(driver.context_set(context), CUDA_OK); /* which finalize has let go of */
    close_gpu();
    return 0;
}

/* Start-up happens once a process: it is watched when it happens, and reported as a benchmark. */
#include "benchmark.h"
#include "machine.h"
#include "startup.h"
#include <library.h>

static double init_ns;
static double memory_kib;
#if LIB_HAS_HEAP
static double contact_ns;

/* By all PEs, before anything else is sent: how long the first put to the next PE takes. */
static void make_contact(void)
{
    const long value = 1;
    long *object = lib_malloc(sizeof *object);

    if (!object)
        return;
    const uint64_t begin = machine_ns();
    lib_put(object, &value, sizeof value, (lib_my_pe() + 1) % lib_n_pes());
    lib_quiet();
    contact_ns = (double)(machine_ns() - begin);
    lib_barrier_all();
    lib_free(object);
}

double once_contact(void)
{
    return contact_ns;
}
#endif

static int start_library(bool by_threads)
{
#if LIB_HAS_THREADS
    if (by_threads)
        return lib_init_for_threads();
#endif
    (void)by_threads;
    return lib_init();
}

int startup(bool by_threads)
{
    double before = machine_memory();
    uint64_t begin = machine_ns();

    if (start_library(by_threads) != 0)
        return 1;
    init_ns = (double)(machine_ns() - begin);
    memory_kib = machine_memory() - before;
#if LIB_HAS_HEAP
    make_contact();
#endif
    return 0;
}

double once_init(void)
{
    return init_ns;
}

double once_memory(void)
{
    return memory_kib;
}

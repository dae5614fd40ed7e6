/* Start-up happens once a process: it is watched when it happens, and reported as a benchmark. */
#include "benchmark.h"
#include "machine.h"
#include "startup.h"
#include <library.h>

static double init_ns;
static double memory_kib;

int startup(void)
{
    double before = machine_memory();
    uint64_t begin = machine_ns();

    if (lib_init() != 0)
        return 1;
    init_ns = (double)(machine_ns() - begin);
    memory_kib = machine_memory() - before;
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

/* Which CPUs make a core, among those this process may use. */
#ifndef GSHMEM_BOOTSTRAP_RUN_BIND_H
#define GSHMEM_BOOTSTRAP_RUN_BIND_H

#include <sched.h>

enum { BIND_CPU_MAX = 8192 };

struct bind_core {
    int first_cpu; /* of the core, allowed or not: the core's name */
    cpu_set_t cpus[BIND_CPU_MAX / CPU_SETSIZE];
};

/* The cores with a CPU this process may use, n of them; NULL, all said, if that cannot be found. */
struct bind_core *bind_cores(int *n);

#endif

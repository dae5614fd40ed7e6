/* No library at all: what a process costs that only its launcher knows. For hello.c. */
#ifndef PERF_LIBRARY_H
#define PERF_LIBRARY_H

#include <stdio.h>

static inline int lib_init(void)
{
    return 0;
}

static inline void lib_finalize(void)
{
}

static inline int lib_my_pe(void)
{
    return 0;
}

static inline int lib_n_pes(void)
{
    return 1;
}

#endif

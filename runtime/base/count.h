/* Where counters of 32 bits begin that count for ever, and wrap: at 0. A simulation has them begin
 * shortly before their wrap, by its seed (tests/simulation). The value is the same on all PEs of a
 * job, and leaves two full rounds until the wrap at least (2 * ROOTED_EVERY counts): words of 0
 * stand for no count then. */
#ifndef GSHMEM_BASE_COUNT_H
#define GSHMEM_BASE_COUNT_H

#include <stdint.h>

#ifdef GSHMEM_SIMULATED
uint32_t count_first(void);
#else
static inline uint32_t count_first(void)
{
    return 0;
}
#endif

#endif

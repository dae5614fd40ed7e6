/* Marks calls for profilers, where GSHMEM_NVTX asks for it, and in the trace (GSHMEM_TRACE):
 *
 *     RANGE("gshmem_barrier"); // to the end of the function
 *
 * Otherwise that costs a load and a branch. */
#ifndef GSHMEM_RUNTIME_JOB_RANGES_H
#define GSHMEM_RUNTIME_JOB_RANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "device/ranges.h"

extern const struct device_ranges *ranges; /* NULL: calls are not marked */

/* By the settings, once a trace has begun; logs it if ranges are not available. */
void ranges_start(void);
void ranges_stop(void);

static inline bool range_begin(const char *name)
{
    if (__builtin_expect(ranges == NULL, 1))
        return false;
    ranges->begin(name);
    return true;
}

static inline void range_end(const bool *begun)
{
    if (__builtin_expect(*begun, 0))
        ranges->end();
}

#define RANGE(name)                                                                                \
    __attribute__((cleanup(range_end), unused)) const bool in_range = range_begin(name)

#endif

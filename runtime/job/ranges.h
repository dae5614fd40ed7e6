/* Marks calls for profilers, where GSHMEM_NVTX asks for it, in the trace (GSHMEM_TRACE), and for
 * the counts (GSHMEM_STATS):
 *
 *     RANGE("gshmem_barrier"); // to the end of the function
 *
 * Otherwise that costs a load and a branch. */
#ifndef GSHMEM_RUNTIME_JOB_RANGES_H
#define GSHMEM_RUNTIME_JOB_RANGES_H

#include <stddef.h>

#include "device/ranges.h"

extern const struct device_ranges *ranges; /* NULL: calls are not marked */

/* By the settings, once a trace has begun; logs it if ranges are not available. */
void ranges_start(void);
void ranges_stop(void);

static inline const struct device_ranges *range_begin(const char *name)
{
    const struct device_ranges *now = ranges;

    if (__builtin_expect(now != NULL, 0))
        now->begin(name);
    return now;
}

/* By the table that it began with: the job may have ended meanwhile. */
static inline void range_end(const struct device_ranges *const *begun)
{
    if (__builtin_expect(*begun != NULL, 0))
        (*begun)->end();
}

#define RANGE(name)                                                                                \
    __attribute__((cleanup(range_end), unused)) const struct device_ranges *const in_range =       \
        range_begin(name)

#endif

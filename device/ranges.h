/* How calls are marked for profilers: what a module that can do so exports, as gshmem_ranges.
 * Ranges of a thread nest. */
#ifndef GSHMEM_DEVICE_RANGES_H
#define GSHMEM_DEVICE_RANGES_H

struct device_ranges {
    void (*begin)(const char *name);
    void (*end)(void);
};

#endif

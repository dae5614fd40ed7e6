/* What the system shows of RDMA before any library is asked, and what is in the way of using it. */
#ifndef GSHMEM_RUNTIME_NETWORK_PREFLIGHT_H
#define GSHMEM_RUNTIME_NETWORK_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

typedef void preflight_line(void *to, const char *name, const char *text);

/* A line for each thing that is wrong, with what to do. Of the trees under `sys` (/sys) and `dev`
 * (/dev). How many RDMA devices the kernel has. */
int preflight_devices(const char *sys, const char *dev, preflight_line *line, void *to);
/* Of the memory that a process may pin, in bytes (UINT64_MAX: no limit); privileged: it is not held to
 * that. */
void preflight_memory(uint64_t limit, bool privileged, preflight_line *line, void *to);
/* Of this process. */
uint64_t preflight_limit(bool *privileged);

#endif

/* What the system shows of RDMA before a library is loaded, and what prevents its use. */
#ifndef GSHMEM_RUNTIME_NETWORK_PREFLIGHT_H
#define GSHMEM_RUNTIME_NETWORK_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

typedef void preflight_line(void *to, const char *name, const char *text);

/* Writes a line for each problem, with what to do, from the trees under `sys` (/sys) and `dev`
 * (/dev). Returns how many RDMA devices the kernel has. */
int preflight_devices(const char *sys, const char *dev, preflight_line *line, void *to);
/* The same for the memory that a process may pin, in bytes (UINT64_MAX: no limit); privileged: the
 * limit does not apply. */
void preflight_memory(uint64_t limit, bool privileged, preflight_line *line, void *to);
/* The limit of this process. */
uint64_t preflight_limit(bool *privileged);

#endif

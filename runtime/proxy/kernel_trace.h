/* Kernels of the host device in the trace: launches, blocks, waits and ranges, as the device tells
 * them (device/kernel_events.h). */
#ifndef GSHMEM_PROXY_KERNEL_TRACE_H
#define GSHMEM_PROXY_KERNEL_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;

/* The team in whose block, for rounds of kernels, an address is (-1: none), and the offset in
 * it. */
typedef int find_sync_fn(const struct job *j, const void *at, uint64_t *in_block);

#include "runtime/trace/format.h"

/* If the job is traced: from now on the device tells. Called again when a module has come, with
 * which the process may have got the device. */
void kernel_trace_begin(find_sync_fn *find);
/* Before the trace ends: waits for threads that write to it. */
void kernel_trace_end(void);

/* Memory that kernels wait for, and who writes it: the proxy (TRACE_NETWORK) or other threads of
 * kernels (TRACE_BLOCKS). Waits for it are shown by that name, a constant. Forgotten by its first
 * address. */
void kernel_trace_enter(const void *at, size_t bytes, enum trace_awaited awaited,
                        const char *what);
void kernel_trace_forget(const void *at);

#endif

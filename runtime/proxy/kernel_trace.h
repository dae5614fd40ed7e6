/* Kernels of the host device in the trace: launches, blocks, waits and ranges, as the device tells
 * them (device/kernel_events.h). */
#ifndef GSHMEM_PROXY_KERNEL_TRACE_H
#define GSHMEM_PROXY_KERNEL_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/trace/format.h"

/* If the job is traced: from now on the device tells. Called again when a module has come, with
 * which the process may have got the device. sync_blocks: the blocks of all teams, by slot, by
 * which kernels synchronize. */
void kernel_trace_begin(const void *sync_blocks);
/* Before the trace ends: waits for threads that write to it. */
void kernel_trace_end(void);

/* Memory that kernels wait for, and who writes it: the proxy (TRACE_NETWORK) or other threads of
 * kernels (TRACE_BLOCKS). Waits for it are shown by that name, a constant. Forgotten by its first
 * address. */
void kernel_trace_enter(const void *at, size_t bytes, enum trace_awaited awaited,
                        const char *what);
void kernel_trace_forget(const void *at);

#endif

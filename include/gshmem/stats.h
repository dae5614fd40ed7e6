/* Counts: what this PE has done, in numbers. Included by gshmem.h.
 *
 * Operations have names of the form kind.path.what:
 *
 *     kind   put, get, atomic (without a result), fetch (atomics with one), signal; internal: what
 *            the library sends for collectives of the host, and for itself
 *     path   mapped: loads and stores of the calling thread; device: copies and updates that the
 *            device makes; network: to another node; proxy, proxy_network: the operations of
 *            kernels that the proxy carries out, on this node and over the network
 *     what   operations, bytes; to_8, to_64, to_512, to_4K, to_32K, to_256K, to_2M, larger: those
 *            of at most so many bytes, and more than the class before
 *
 * An operation is counted when it has been issued, a put with a signal as a put and a signal, a
 * strided put or get to another node as one for each block, a collective of kernels as the puts and
 * signals that it consists of. The other names (wait.network.ns, proxy.sleeps) have a text.
 *
 * Inline operations on mapped memory are not counted, unless GSHMEM_STATS is set: then all
 * operations go out of line, and all are counted; and the job ends with a report. Operations of
 * kernels on mapped memory go through the proxy then. Not counted are what a GPU's switch does
 * (multicast), and waits of kernels. A wait is counted when it outlasts its spin.
 *
 * All functions may be called at any time in a job, by any thread. Counts of other threads are as
 * recent as the synchronization with them. */
#ifndef GSHMEM_STATS_H
#define GSHMEM_STATS_H

#include <stdint.h>

#include "gshmem/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts have numbers from 0 on, and names. Those of a number outside: NULL. */
GSHMEM_API int gshmem_stats_names(void);
GSHMEM_API const char *gshmem_stats_name(int i);
GSHMEM_API const char *gshmem_stats_text(int i); /* what it counts */

/* Whether all operations are counted, because GSHMEM_STATS is set. */
GSHMEM_API int gshmem_stats_all(void);

/* The first n counts, in the order of their numbers; one of them, by name. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_stats_read(uint64_t *values, int n);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_stats_get(const char *name, uint64_t *value);

/* A row of the communication matrix: operations of this PE on memory of that one, their bytes, and
 * the time that this PE has waited for it: for its answer, for a lock that it has, or in a barrier
 * where it alone was missing. Of pe -1: waits for several PEs, or for a variable. */
typedef struct gshmem_stats_row {
    uint64_t operations, bytes, wait_ns;
} gshmem_stats_row_t;
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_stats_peer(int pe, gshmem_stats_row_t *row);

/* How often this PE has made a call that takes part in something (gshmem_barrier_all), or entered a
 * range of that name (gshmem_range_push), and the time within. 0 if it never has, and without
 * GSHMEM_STATS; also for the names that a PE uses beyond its first 64. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_stats_call(const char *name, uint64_t *calls,
                                                             uint64_t *ns);

/* All counts of this PE begin anew, also those of the report. Small puts and updates to other nodes
 * are counted when they are sent: those that are still collected count as later ones. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_stats_reset(void);

#ifdef __cplusplus
}
#endif

#endif

/* Operations on streams: what the end of a job needs. */
#ifndef GSHMEM_RUNTIME_STREAMS_STREAM_H
#define GSHMEM_RUNTIME_STREAMS_STREAM_H

#include "gshmem/status.h"
#include "runtime/job/job.h"

/* Waits until all operations on streams, and in graphs that were launched, are complete; with
 * `kernels` also until kernels have ended, where the memory they use would go under them. No
 * operation of this job is performed after it, also where a death or an abort cuts the wait
 * short. */
gshmem_status_t streams_drain(bool kernels);

#endif

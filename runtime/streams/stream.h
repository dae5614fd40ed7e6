/* Operations on streams: what the end of a job has to know of them. */
#ifndef GSHMEM_RUNTIME_STREAMS_STREAM_H
#define GSHMEM_RUNTIME_STREAMS_STREAM_H

#include "gshmem/status.h"
#include "runtime/job.h"

/* Waits until all is done that was put on streams, and in graphs that were launched. Nothing of this job is
 * performed after it, also where a death or the abort cuts the wait short. */
gshmem_status_t streams_drain(void);

#endif

/* Operations on streams: what the end of a job has to know of them. */
#ifndef GSHMEM_RUNTIME_STREAM_H
#define GSHMEM_RUNTIME_STREAM_H

#include "gshmem/status.h"
#include "runtime/job.h"

/* Waits until all that was put on streams is done. */
gshmem_status_t streams_drain(void);

#endif

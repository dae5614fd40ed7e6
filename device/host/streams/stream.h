/* Streams: they put work in order, the default stream in order with the others, and know all work
 * that is not done. */
#ifndef GSHMEM_DEVICE_HOST_STREAM_H
#define GSHMEM_DEVICE_HOST_STREAM_H

#include "device/host/streams/graph.h"

struct CUstream_st {
    bool blocking; /* in order with the default stream */
    bool destroyed;
    struct work *last; /* its latest work; NULL: none so far */
    struct capture capture;
    struct CUstream_st *next; /* in the list of all */
};

struct CUstream_st *stream_new(bool blocking); /* NULL: no memory */
void stream_destroy(struct CUstream_st *stream);
/* The stream of a handle; NULL: it is no stream's. */
struct CUstream_st *stream_find(cudaStream_t handle);
struct CUstream_st *stream_legacy(void);
/* The latest work of a stream with a reference, or NULL if there never was one. */
struct work *stream_last(struct CUstream_st *stream);
/* Whether the stream captures what it is given now in a graph. */
bool stream_is_captured(struct CUstream_st *stream);
/* With work_lock: whether a stream is being captured that the default stream is in order with, or
 * any stream at all; their captures fail. */
bool streams_captured(bool any);
/* Waits for the latest work of all streams. */
cudaError_t streams_wait_all(void);
/* Waits for the latest work of one; of the default stream, also for that of all streams that are in
 * order with it. */
void stream_wait(struct CUstream_st *stream);

/* Puts work at the end of a stream, after `also` (may be NULL), too; or captures it. Copies and
 * fills without blockers are done on return. */
cudaError_t work_submit(struct work *work, struct CUstream_st *stream, struct work *also);
/* Work of no stream, after these; `second` may be NULL. */
void work_submit_after(struct work *work, struct work *first, struct work *second);

#endif

/* What streams ask of the graphs they are captured in. */
#ifndef GSHMEM_DEVICE_HOST_GRAPH_H
#define GSHMEM_DEVICE_HOST_GRAPH_H

#include "device/host/streams/work.h"

/* With work_lock held: */

/* Notes w, which is for stream or comes after `also`, one of which is being captured. */
cudaError_t graph_capture(struct work *w, struct CUstream_st *stream, struct work *also);
/* The stream goes away. Returns a graph that nobody can end any more, to be dropped, or NULL. */
struct graph *graph_forget_stream(struct CUstream_st *stream);
uint64_t graph_number(const struct graph *graph);
/* Nothing that is captured in it will be of use. */
void graph_break(struct graph *graph);

/* Without: */

/* For what cannot be done to a stream that is being captured: says so, and ends the capture. */
cudaError_t graph_refuses(struct CUstream_st *stream);
void graph_drop(struct graph *graph);

#endif

/* Work on streams: the library's kernel, copies and updates that are polled, collectives in the
 * order of their teams, and requests. Functions with a struct device are slots of struct
 * device_ops, where device.h says what they do. */
#ifndef GSHMEM_CUDA_STREAMS_H
#define GSHMEM_CUDA_STREAMS_H

#include "device/cuda/memory.h"

/* kernel.c, between cuda_enter and cuda_leave */
gshmem_status_t cuda_kernel_open(struct cuda *c);
void cuda_kernel_close(struct cuda *c);
/* Puts a request on a stream. The first that needs the state of the job waits for it. */
gshmem_status_t cuda_kernel_launch(struct cuda *c, const struct device_request *r,
                                   cuda_stream stream);
/* The kernel for another GPU, whose context is current. */
gshmem_status_t cuda_kernel_load(const struct cuda *c, cuda_gpu gpu, struct cuda_code *code);
gshmem_status_t cuda_kernel_launch_code(const struct cuda *c, cuda_gpu gpu,
                                        const struct cuda_code *code,
                                        const struct device_request *r, cuda_stream stream);
gshmem_status_t cuda_find_state(struct device *d, void *module, bool library, size_t bytes,
                                void **state);

/* elsewhere.c: an update on that GPU, after all that `before` (may be NULL) is behind, and before
 * all that is put on work.updates later. With work.lock, between cuda_enter and cuda_leave. */
gshmem_status_t cuda_update_elsewhere(struct cuda *c, cuda_gpu gpu, const struct device_request *r,
                                      cuda_event before);
void cuda_elsewhere_close(struct cuda *c);

/* work.c; these three between cuda_enter and cuda_leave. */
gshmem_status_t cuda_work_open(struct cuda *c);
/* Until all copies and updates are done, those that nobody asks for, too. */
void cuda_work_await(struct cuda *c);
/* With nothing under way. */
void cuda_work_close(struct cuda *c);
gshmem_status_t cuda_copy_start(struct device *d, void *to, const void *from, size_t bytes,
                                uint64_t *ticket);
bool cuda_copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status);
gshmem_status_t cuda_update(struct device *d, const struct device_update *u, uint64_t *old);
gshmem_status_t cuda_update_start(struct device *d, const struct device_update *u,
                                  uint64_t *ticket);
bool cuda_update_done(struct device *d, uint64_t ticket, uint64_t *old, gshmem_status_t *status);
void cuda_update_forget(struct device *d, uint64_t ticket);
/* Waits until the forgotten updates are done: the memory that they touch may then be given back. */
void cuda_work_await_forgotten(struct cuda *c);

/* collectives.c, between cuda_enter and cuda_leave: puts a request on a stream; a collective of a
 * team comes after the one before it. */
gshmem_status_t cuda_launch_in_order(struct cuda *c, const struct device_request *r,
                                     cuda_stream stream);
void cuda_collectives_close(struct cuda *c);

/* requests.c */
gshmem_status_t cuda_stream_copy(struct device *d, void *stream, void *to, const void *from,
                                 size_t bytes);
gshmem_status_t cuda_stream_request(struct device *d, void *stream, const struct device_request *r);
gshmem_status_t cuda_streams_wait(struct device *d);
bool cuda_streams_busy(struct device *d, bool kernels);
gshmem_status_t cuda_request_start(struct device *d, const struct device_request *r,
                                   void **request);
bool cuda_request_done(struct device *d, void *request, gshmem_status_t *status);
/* Between cuda_enter and cuda_leave: waits for those that have failed to begin, and whose kernel
 * may run. */
void cuda_requests_close(struct cuda *c);

#endif

/* What was asked of the device and in which order: launches, copies, calls, each after the others
 * that it depends on.
 *
 * Streams, events and the default stream that waits for all are one thing here: work that starts
 * when the last piece of work it depends on has finished. A stream is the name of its latest work,
 * an event that of the work it recorded. */
#ifndef GSHMEM_DEVICE_HOST_WORK_H
#define GSHMEM_DEVICE_HOST_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/host/blocks/grid.h"
#include "gshmem/host_device/cuda_runtime_api.h"

enum { DEVICES_MAX = 1024 };

enum work_kind {
    WORK_NOTHING, /* a point in a stream */
    WORK_GRID,
    WORK_COPY, /* rows of bytes */
    WORK_FILL,
    WORK_CALL,
};

struct graph;
struct code;

struct work {
    enum work_kind kind;
    unsigned references;
    unsigned blockers; /* unfinished work this one waits for; one more while it is submitted */
    struct work **dependents;
    unsigned dependents_count, dependents_room;
    struct work *next; /* in a list of work to start */
    atomic_bool done;
    uint64_t finished_ns;
    char clock;            /* address for ThreadSanitizer */
    uint64_t capture;      /* not to be done: the number of the capture that it is noted in, */
    unsigned node;         /* and its place there */
    struct graph *borrows; /* whose closure or argument it uses */
    union {
        struct {
            struct grid grid;
            void (*release)(void *closure);
            struct code *code; /* what it runs */
        } launch;
        struct {
            char *to;
            const char *from;
            size_t bytes, rows, to_pitch, from_pitch;
            int value;
            char *staged; /* NULL, or its own memory, which `from` is in */
        } move;
        struct {
            cudaHostFn_t function;
            void *argument;
            void (*release)(void *argument); /* NULL: it is the program's */
            bool library;                    /* gshmem_host_call's, */
            bool counted;                    /* which is under way */
            bool after_failure;              /* called also if a kernel has failed before */
        } call;
    };
};

struct CUstream_st {
    bool blocking; /* in order with the default stream */
    bool destroyed;
    struct work *last;
    struct graph *capture;    /* NULL: what it is given is done */
    unsigned captured;        /* the node that it noted last; 0: none yet */
    struct CUstream_st *next; /* in the list of all */
};

extern pthread_mutex_t work_lock; /* of work, streams and graphs */

/* NULL: no memory. The caller holds one reference. */
struct work *work_new(enum work_kind kind);
void work_drop(struct work *work);
/* Puts work at the end of a stream, after `also` (may be NULL) too. Copies and fills that need not
 * wait are done when this returns. */
cudaError_t work_submit(struct work *work, struct CUstream_st *stream, struct work *also);
/* Work of no stream, after these; `second` may be NULL. */
void work_submit_after(struct work *work, struct work *first, struct work *second);
/* The latest work of a stream with a reference, or NULL if there never was one. */
struct work *work_last(struct CUstream_st *stream);
void work_wait(struct work *work);
bool work_is_done(const struct work *work);

struct CUstream_st *stream_new(bool blocking); /* NULL: no memory */
void stream_destroy(struct CUstream_st *stream);
/* The stream of a handle, NULL if it is none. */
struct CUstream_st *stream_find(cudaStream_t handle);
struct CUstream_st *stream_legacy(void);
/* With work_lock: the capture of this number, NULL: it is over. */
struct graph *graph_capturing(uint64_t number);
/* Whether a stream is being captured that would have to wait for the default stream, or any at all;
 * that ends the capture. */
bool streams_captured(bool any);
/* All streams' latest work; for cudaDeviceSynchronize. */
cudaError_t work_wait_all(void);
/* A call of gshmem_host_call's is to be made, or has been, or will not be. */
void call_begins(struct work *work);
void call_ends(struct work *work);
/* A launch of a kernel is to come, or is over: nothing of the kernel's library is needed for it any more. */
void code_begins(struct code *code);
void code_ends(struct code *code);
void kernels_leave_parent(void); /* in a child of fork */
/* Whether what the stream is given now goes into a graph. */
bool stream_is_captured(struct CUstream_st *stream);
/* Whether memory of cuMemCreate's is mapped there. */
bool virtual_is_mapped(const void *at);
/* False in kernels and host functions, where most of the API must not be called. */
bool work_may_wait(void);

/* Remembers error for this thread's cudaGetLastError() and returns it. */
cudaError_t report_error(cudaError_t error);
/* Is there a device of this number, and which one has this thread chosen? */
bool device_exists(int device);
int device_current(void);
/* Whether this process is a child made by fork, and the device's threads are its parent's. */
bool work_is_parents(void);
/* The error of a kernel that failed, which stays, or cudaSuccess. */
cudaError_t device_error(void);
void device_failed(cudaError_t error);

#endif

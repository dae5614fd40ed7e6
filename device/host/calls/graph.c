/* CUDA graphs: streams write down what they are given instead of doing it, and it is done later, as
 * often as wanted.
 *
 * What is captured is work like any other, with what it depends on beside it. A launch makes new
 * work of the same kind, which borrows its closures; so a graph is kept until the last launch is
 * done. */
#define _GNU_SOURCE
#include "device/host/streams/graph.h"

#include <stdlib.h>

#include "device/host/streams/stream.h"
#include "runtime/base/log.h"

struct CUgraph_st {
    struct graph *graph;
};

struct CUgraphExec_st {
    struct graph *graph;
    struct work *last; /* the end of the latest launch; NULL: none */
};

/* --- Capture, called by programs --- */

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    struct CUstream_st *s = stream_find(handle);
    struct graph *g = s ? calloc(1, sizeof *g) : NULL;
    cudaError_t error = cudaSuccess;

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    if (!g)
        return report_error(cudaErrorMemoryAllocation);
    pthread_mutex_lock(&work_lock);
    if (mode > cudaStreamCaptureModeRelaxed)
        error = cudaErrorInvalidValue;
    else if (s == stream_legacy())
        error = cudaErrorStreamCaptureUnsupported;
    else if (s->capture.graph)
        error = cudaErrorIllegalState;
    else if (!graph_begin(g, &s->capture))
        error = cudaErrorMemoryAllocation;
    pthread_mutex_unlock(&work_lock);
    if (error)
        free(g);
    return report_error(error);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    struct CUstream_st *s = stream_find(handle);
    struct CUgraph_st *made = calloc(1, sizeof *made);
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&work_lock);
    struct graph *g = s ? s->capture.graph : NULL;
    if (!s)
        error = cudaErrorInvalidResourceHandle;
    else if (!g || !graph)
        error = g ? cudaErrorInvalidValue : cudaErrorIllegalState;
    else if (&s->capture != g->origin)
        error = cudaErrorStreamCaptureUnmatched;
    bool ends = !error;
    if (ends && g->failed)
        error = cudaErrorStreamCaptureInvalidated;
    else if (ends && !graph_is_joined(g, s->capture.last))
        error = cudaErrorStreamCaptureUnjoined;
    else if (ends && !made)
        error = cudaErrorMemoryAllocation;
    if (ends)
        graph_end_capture(g);
    pthread_mutex_unlock(&work_lock);
    if (!error) {
        made->graph = g;
        *graph = made;
        return cudaSuccess;
    }
    free(made);
    if (ends) {
        *graph = NULL;
        graph_drop(g);
    }
    return report_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    struct CUstream_st *s = stream_find(handle);

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    if (!status)
        return report_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&work_lock);
    const struct graph *g = s->capture.graph;
    *status = !g          ? cudaStreamCaptureStatusNone
              : g->failed ? cudaStreamCaptureStatusInvalidated
                          : cudaStreamCaptureStatusActive;
    pthread_mutex_unlock(&work_lock);
    return cudaSuccess;
}

/* --- Graphs --- */

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (!graph)
        return report_error(cudaErrorInvalidValue);
    graph_drop(graph->graph);
    free(graph);
    return report_error(device_error());
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    struct CUgraphExec_st *made = exec && graph && !flags ? calloc(1, sizeof *made) : NULL;

    if (!exec || !graph || flags)
        return report_error(cudaErrorInvalidValue);
    if (!made)
        return report_error(cudaErrorMemoryAllocation);
    lender_keep(&graph->graph->lender);
    made->graph = graph->graph;
    *exec = made;
    return report_error(device_error());
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (!exec)
        return report_error(cudaErrorInvalidValue);
    if (exec->last)
        work_drop(exec->last);
    graph_drop(exec->graph);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!exec || !stream_find(stream))
        return report_error(exec ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    return cudaSuccess; /* there is nowhere to bring it */
}

/* --- Launches --- */

/* New work that does what w does; its closure or argument stays the graph's. */
static struct work *graph_repeat(const struct work *w, struct graph *g)
{
    struct work *made = work_new(w->kind);

    if (!made)
        return NULL;
    if (w->kind == WORK_GRID) {
        /* never submitted itself, so that it has but what the launch said */
        made->launch.grid = w->launch.grid;
        atomic_init(&made->launch.grid.left, w->launch.grid.blocks);
        made->launch.code = w->launch.code;
        code_begins(made->launch.code);
    } else if (w->kind == WORK_CALL) {
        made->call = w->call;
        if (w->call.library)
            call_begins(made);
    } else {
        made->move = w->move;
        made->move.staged = NULL; /* the graph's */
    }
    if (w->kind != WORK_NOTHING)
        made->borrows = lender_keep(&g->lender);
    return made;
}

/* Work that was started goes on. */
static void graph_let_go(struct work **made, unsigned count, bool started)
{
    for (unsigned i = 0; i < count; i++) {
        if (!started && made[i]->kind == WORK_CALL)
            call_ends(made[i]);
        if (!started && made[i]->kind == WORK_GRID)
            code_ends(made[i]->launch.code);
        if (!started && made[i]->borrows)
            lender_drop(made[i]->borrows);
        work_drop(made[i]);
    }
    free(made);
}

/* All nodes as new work; NULL: no memory. */
static struct work **graph_repeat_all(struct graph *g)
{
    struct work **made = malloc((g->nodes + 1) * sizeof(struct work *));

    for (unsigned i = 0; made && i < g->nodes; i++) {
        made[i] = graph_repeat(g->node[i].work, g);
        if (!made[i]) {
            graph_let_go(made, i, false);
            return NULL;
        }
    }
    return made;
}

static void graph_start(struct graph *g, struct work **made, struct work *begin)
{
    for (unsigned i = 0; i < g->nodes; i++) {
        const unsigned *after = g->node[i].after;
        struct work *first = after[0] ? made[after[0] - 1] : begin;
        struct work *second = after[1] ? made[after[1] - 1] : NULL;
        work_submit_after(made[i], first, second);
    }
}

/* The last node is the origin's, and comes after all others. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
    struct CUstream_st *s = stream_find(handle);
    cudaError_t error = cudaSuccess;

    if (!exec || !s)
        return report_error(exec ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    if (graph_refuses(&s->capture)) {
        log_error("cudaGraphLaunch: a graph cannot be captured in another on the host device");
        return report_error(cudaErrorStreamCaptureUnsupported);
    }
    struct graph *g = exec->graph;
    struct work *begin = work_new(WORK_NOTHING), *end = work_new(WORK_NOTHING);
    struct work **made = begin && end ? graph_repeat_all(g) : NULL;
    error = made ? work_submit(begin, s, exec->last) : cudaErrorMemoryAllocation;
    bool started = !error;
    if (started) {
        graph_start(g, made, begin);
        error = work_submit(end, s, g->nodes ? made[g->nodes - 1] : NULL);
    }
    if (made)
        graph_let_go(made, g->nodes, started);
    if (!error) {
        struct work *before = exec->last;
        exec->last = end;
        end = before;
    }
    if (begin)
        work_drop(begin);
    if (end)
        work_drop(end);
    return report_error(error);
}

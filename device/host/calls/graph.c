/* CUDA graphs: streams write down what they are given instead of doing it, and it is done later, as
 * often as wanted.
 *
 * What is captured is work like any other, with what it depends on beside it. A launch makes new
 * work of the same kind, which borrows its closures; so a graph is kept until the last launch is
 * done. */
#define _GNU_SOURCE
#include "device/host/streams/graph.h"

#include <stdlib.h>

#include "runtime/base/log.h"

/* Positions of nodes are counted from 1; 0: none. */
struct node {
    struct work *work;
    unsigned after[2]; /* the stream's work before it, and an event's */
};

struct graph {
    unsigned references; /* handles, and work that is under way */
    uint64_t capture;    /* its number */
    bool broken;         /* by what cannot be captured */
    struct CUstream_st *origin;
    struct CUstream_st **stream; /* all that take part */
    unsigned streams;
    struct node *node;
    unsigned nodes, room;
};

struct CUgraph_st {
    struct graph *graph;
};

struct CUgraphExec_st {
    struct graph *graph;
    struct work *last; /* the end of the latest launch; NULL: none */
};

/* --- Lifetime --- */

static void free_work(struct work *w)
{
    if (w->kind == WORK_GRID)
        w->launch.release(w->launch.grid.closure);
    else if (w->kind == WORK_CALL && w->call.release)
        w->call.release(w->call.argument);
    work_drop(w);
}

static void graph_free(struct graph *g)
{
    for (unsigned i = 0; i < g->nodes; i++)
        free_work(g->node[i].work);
    free(g->node);
    free(g->stream);
    free(g);
}

static struct graph *graph_keep(struct graph *g)
{
    pthread_mutex_lock(&work_lock);
    g->references++;
    pthread_mutex_unlock(&work_lock);
    return g;
}

void graph_drop(struct graph *g)
{
    pthread_mutex_lock(&work_lock);
    bool last = --g->references == 0;
    pthread_mutex_unlock(&work_lock);
    if (last)
        graph_free(g); /* without the lock: closures may have destructors */
}

/* --- Capture; with the lock held --- */

static bool graph_grow(void **array, unsigned count, unsigned *room, size_t size)
{
    if (count < *room)
        return true;
    unsigned more = *room ? 2 * *room : 8;
    void *larger = realloc(*array, more * size);
    if (!larger)
        return false;
    *array = larger;
    *room = more;
    return true;
}

static bool graph_join(struct graph *g, struct CUstream_st *s)
{
    struct CUstream_st **more = realloc(g->stream, (g->streams + 1) * sizeof(struct CUstream_st *));

    if (!more)
        return false;
    g->stream = more;
    g->stream[g->streams++] = s;
    s->capture = g;
    s->captured = 0;
    return true;
}

static cudaError_t graph_broken(struct graph *g, cudaError_t error)
{
    g->broken = true;
    return error;
}

cudaError_t graph_capture(struct work *w, struct CUstream_st *stream, struct work *also)
{
    struct graph *g = stream->capture ? stream->capture : graph_capturing(also->capture);

    if (!g)
        return cudaErrorCapturedEvent; /* its capture is over */
    if (g->broken)
        return cudaErrorStreamCaptureInvalidated;
    if (also && !also->capture)
        return graph_broken(g, cudaErrorStreamCaptureIsolation);
    if (also && also->capture != g->capture)
        return graph_broken(g, cudaErrorStreamCaptureMerge);
    if ((!stream->capture && !graph_join(g, stream)) ||
        !graph_grow((void **)&g->node, g->nodes, &g->room, sizeof *g->node))
        return graph_broken(g, cudaErrorMemoryAllocation);
    w->capture = g->capture;
    w->references++;
    g->node[g->nodes] = (struct node){w, {stream->captured, also ? also->node : 0}};
    stream->captured = w->node = ++g->nodes;
    return cudaSuccess;
}

static void graph_leave(struct graph *g)
{
    for (unsigned i = 0; i < g->streams; i++)
        g->stream[i]->capture = NULL;
    g->streams = 0;
}

struct graph *graph_forget_stream(struct CUstream_st *s)
{
    struct graph *g = s->capture;

    if (!g)
        return NULL;
    g->broken = true;
    if (s == g->origin) {
        graph_leave(g);
        return g;
    }
    for (unsigned i = 0; i < g->streams; i++) {
        if (g->stream[i] == s)
            g->stream[i--] = g->stream[--g->streams];
    }
    s->capture = NULL;
    return NULL;
}

/* Whether the origin comes after all that was captured. */
static bool joined(const struct graph *g, unsigned last)
{
    bool *before = calloc(g->nodes + 1, sizeof *before);
    bool all = before != NULL;

    if (!before)
        return false;
    before[last] = true;
    for (unsigned i = g->nodes; i > 0; i--) {
        all = all && before[i];
        before[g->node[i - 1].after[0]] = true;
        before[g->node[i - 1].after[1]] = true;
    }
    free(before);
    return all;
}

/* --- Capture, called by programs --- */

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    static uint64_t captures; /* under the lock */
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
    else if (s->capture)
        error = cudaErrorIllegalState;
    else if (!graph_join(g, s))
        error = cudaErrorMemoryAllocation;
    if (!error) {
        g->references = 1;
        g->capture = ++captures;
        g->origin = s;
    }
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
    struct graph *g = s ? s->capture : NULL;
    if (!s)
        error = cudaErrorInvalidResourceHandle;
    else if (!g || !graph)
        error = g ? cudaErrorInvalidValue : cudaErrorIllegalState;
    else if (s != g->origin)
        error = cudaErrorStreamCaptureUnmatched;
    bool ends = !error;
    if (ends && g->broken)
        error = cudaErrorStreamCaptureInvalidated;
    else if (ends && !joined(g, s->captured))
        error = cudaErrorStreamCaptureUnjoined;
    else if (ends && !made)
        error = cudaErrorMemoryAllocation;
    if (ends)
        graph_leave(g);
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
    *status = !s->capture          ? cudaStreamCaptureStatusNone
              : s->capture->broken ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    pthread_mutex_unlock(&work_lock);
    return cudaSuccess;
}

uint64_t graph_number(const struct graph *g)
{
    return g->capture;
}

cudaError_t graph_refuses(struct CUstream_st *s)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&work_lock);
    if (s->capture)
        error = graph_broken(s->capture, cudaErrorStreamCaptureUnsupported);
    pthread_mutex_unlock(&work_lock);
    return error;
}

void graph_break(struct graph *g)
{
    g->broken = true;
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
    made->graph = graph_keep(graph->graph);
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
static struct work *again(const struct work *w, struct graph *g)
{
    struct work *made = work_new(w->kind);

    if (!made)
        return NULL;
    if (w->kind == WORK_GRID) {
        struct grid *to = &made->launch.grid;
        const struct grid *from = &w->launch.grid;
        to->name = from->name;
        to->size = from->size;
        to->block_size = from->block_size;
        to->dynamic_shared = from->dynamic_shared;
        to->cooperative = from->cooperative;
        to->closure = from->closure;
        to->run = from->run;
        to->blocks = from->blocks;
        atomic_init(&to->left, from->blocks);
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
        made->borrows = graph_keep(g);
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
            graph_drop(made[i]->borrows);
        work_drop(made[i]);
    }
    free(made);
}

/* All nodes as new work; NULL: no memory. */
static struct work **make_nodes(struct graph *g)
{
    struct work **made = malloc((g->nodes + 1) * sizeof(struct work *));

    for (unsigned i = 0; made && i < g->nodes; i++) {
        made[i] = again(g->node[i].work, g);
        if (!made[i]) {
            graph_let_go(made, i, false);
            return NULL;
        }
    }
    return made;
}

static void start_nodes(struct graph *g, struct work **made, struct work *begin)
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
    if (graph_refuses(s)) {
        log_error("cudaGraphLaunch: a graph cannot be captured in another on the host device");
        return report_error(cudaErrorStreamCaptureUnsupported);
    }
    struct graph *g = exec->graph;
    struct work *begin = work_new(WORK_NOTHING), *end = work_new(WORK_NOTHING);
    struct work **made = begin && end ? make_nodes(g) : NULL;
    error = made ? work_submit(begin, s, exec->last) : cudaErrorMemoryAllocation;
    bool started = !error;
    if (started) {
        start_nodes(g, made, begin);
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

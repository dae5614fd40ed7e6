#define _GNU_SOURCE
#include "device/host/streams/graph.h"

#include <stdlib.h>

static uint64_t captures; /* begun in this process, under work_lock: each gets another number */

/* --- Lifetime --- */

static void node_free(struct work *w)
{
    if (w->kind == WORK_GRID)
        w->launch.release(w->launch.grid.closure);
    else if (w->kind == WORK_CALL && w->call.release)
        w->call.release(w->call.argument);
    work_drop(w);
}

/* Closures may have destructors, which may call CUDA: the lock is not held. */
static void graph_free(struct lender *lender)
{
    struct graph *g = (struct graph *)lender; /* its first member */

    for (unsigned i = 0; i < g->nodes; i++)
        node_free(g->node[i].work);
    free(g->node);
    free(g->member);
    free(g);
}

void graph_drop(struct graph *g)
{
    lender_drop(&g->lender);
}

/* --- Capture; with the lock held --- */

static bool graph_make_room(struct graph *g)
{
    if (g->nodes < g->room)
        return true;
    unsigned room = g->room ? 2 * g->room : 8;
    struct node *more = realloc(g->node, room * sizeof *more);
    if (!more)
        return false;
    g->node = more;
    g->room = room;
    return true;
}

static bool graph_join(struct graph *g, struct capture *stream)
{
    struct capture **more = realloc(g->member, (g->members + 1) * sizeof *more);

    if (!more)
        return false;
    g->member = more;
    g->member[g->members++] = stream;
    *stream = (struct capture){.graph = g};
    return true;
}

bool graph_begin(struct graph *g, struct capture *origin)
{
    if (!graph_join(g, origin))
        return false;
    g->lender = (struct lender){.references = 1, .free = graph_free};
    g->number = ++captures;
    g->origin = origin;
    return true;
}

cudaError_t graph_fail(struct graph *g, cudaError_t error)
{
    g->failed = true;
    return error;
}

cudaError_t graph_capture(struct graph *g, struct work *w, struct capture *stream,
                          const struct work *also)
{
    if (!g)
        return cudaErrorCapturedEvent; /* its capture is over */
    if (g->failed)
        return cudaErrorStreamCaptureInvalidated;
    if (also && !also->capture)
        return graph_fail(g, cudaErrorStreamCaptureIsolation);
    if (also && also->capture != g->number)
        return graph_fail(g, cudaErrorStreamCaptureMerge);
    if ((!stream->graph && !graph_join(g, stream)) || !graph_make_room(g))
        return graph_fail(g, cudaErrorMemoryAllocation);
    w->capture = g->number;
    w->references++;
    g->node[g->nodes] = (struct node){w, {stream->last, also ? also->node : 0}};
    stream->last = w->node = ++g->nodes;
    return cudaSuccess;
}

void graph_end_capture(struct graph *g)
{
    for (unsigned i = 0; i < g->members; i++)
        g->member[i]->graph = NULL;
    g->members = 0;
}

struct graph *graph_forget(struct capture *stream)
{
    struct graph *g = stream->graph;

    if (!g)
        return NULL;
    g->failed = true;
    if (stream == g->origin) {
        graph_end_capture(g);
        return g;
    }
    for (unsigned i = 0; i < g->members; i++) {
        if (g->member[i] == stream)
            g->member[i--] = g->member[--g->members];
    }
    stream->graph = NULL;
    return NULL;
}

bool graph_is_joined(const struct graph *g, unsigned last)
{
    bool *before =
        calloc(g->nodes + 1, sizeof *before); /* [node]: comes before the last, or is it */
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

cudaError_t graph_refuses(struct capture *stream)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&work_lock);
    if (stream->graph)
        error = graph_fail(stream->graph, cudaErrorStreamCaptureUnsupported);
    pthread_mutex_unlock(&work_lock);
    return error;
}

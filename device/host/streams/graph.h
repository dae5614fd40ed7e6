/* What streams write down instead of doing it, while they are being captured: work, and what each
 * comes after. Knows nothing of streams but the record of each that takes part. */
#ifndef GSHMEM_DEVICE_HOST_GRAPH_H
#define GSHMEM_DEVICE_HOST_GRAPH_H

#include "device/host/streams/work.h"

/* Nodes are numbered from 1; 0: none. */
struct node {
    struct work *work;
    unsigned after[2]; /* the stream's work before it, and an event's */
};

/* A stream's part of a capture. */
struct capture {
    struct graph *graph; /* NULL: the stream is not being captured */
    unsigned last;       /* the node that it captured last; 0: none so far */
};

struct graph {
    struct lender lender; /* of closures: references are handles, and work under way */
    uint64_t number;      /* of its capture */
    bool failed;          /* something that cannot be captured came */
    struct capture *origin;
    struct capture **member; /* all that take part */
    unsigned members;
    struct node *node;
    unsigned nodes, room;
};

/* With work_lock held: */

/* Makes g a graph that is being captured, with this stream as its origin; false: no memory. */
bool graph_begin(struct graph *g, struct capture *origin);
/* Captures w in g, for this stream (which joins if it has not) and after `also` (may be NULL). */
cudaError_t graph_capture(struct graph *g, struct work *w, struct capture *stream,
                          const struct work *also);
/* The capture is over: no stream takes part any more. */
void graph_end_capture(struct graph *g);
/* The stream goes away. Returns a graph that nobody can end any more, to be dropped, or NULL. */
struct graph *graph_forget(struct capture *stream);
/* Whether the origin's node comes after all others. */
bool graph_is_joined(const struct graph *g, unsigned last);
/* The capture will end with an error; returns `error`. */
cudaError_t graph_fail(struct graph *g, cudaError_t error);

/* Without: */

/* For what cannot be done to a stream that is being captured: an error then, and the capture fails.
 */
cudaError_t graph_refuses(struct capture *stream);
void graph_drop(struct graph *g);

#endif

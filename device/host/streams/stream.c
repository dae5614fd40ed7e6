#define _GNU_SOURCE
#include "device/host/streams/stream.h"

#include <stdlib.h>

#include "device/host/calling_thread.h"
#include "device/host/forks.h"

/* One for the process, under work_lock: cudaStreamLegacy and 0 name a stream of no object. */
static struct {
    struct CUstream_st legacy; /* the default stream */
    struct CUstream_st *all;   /* the others */
    pthread_key_t thread_ends; /* destroys a thread's own stream, */
    bool has_key;              /* if there is such a key */
} streams = {.legacy = {.blocking = true}};

/* --- Order --- */

/* Frees the destroyed streams whose work is done. */
static void streams_reap(void)
{
    struct CUstream_st **link = &streams.all;

    while (*link) {
        struct CUstream_st *s = *link;
        if (s->destroyed && (!s->last || work_is_done(s->last))) {
            *link = s->next;
            work_drop_locked(s->last);
            free(s);
        } else {
            link = &s->next;
        }
    }
}

/* Work of a stream starts after the latest of the stream and of the default stream; work of the
 * default stream after the latest of all streams that are in order with it. */
static bool stream_depend(struct work *w, const struct CUstream_st *stream)
{
    bool ok = work_depend(w, stream->last);

    if (stream != &streams.legacy)
        return ok && (!stream->blocking || work_depend(w, streams.legacy.last));
    for (struct CUstream_st *s = streams.all; ok && s; s = s->next)
        ok = !s->blocking || work_depend(w, s->last);
    return ok;
}

/* Notes what w comes after; true: it can start now. The caller keeps its reference, and w has one
 * more until it is done. */
static bool stream_order(struct work *w, const struct CUstream_st *stream,
                         struct work *const after[2])
{
    w->blockers = 1;
    w->references++;
    bool ok = work_depend(w, after[0]) && work_depend(w, after[1]);
    ok = ok && (!stream || stream_depend(w, stream));
    /* Without memory to note the order, the caller waits instead. */
    if (!ok) {
        pthread_mutex_unlock(&work_lock);
        if (stream)
            streams_wait_all();
        for (int i = 0; i < 2; i++) {
            if (after[i])
                work_wait(after[i]);
        }
        pthread_mutex_lock(&work_lock);
    }
    return --w->blockers == 0;
}

/* With the lock: the graph that is being captured under this number; NULL: none is. */
static struct graph *streams_find_capture(uint64_t number)
{
    struct CUstream_st *s = streams.all;

    while (s && (!s->capture.graph || s->capture.graph->number != number))
        s = s->next;
    return s ? s->capture.graph : NULL;
}

/* Captures w, where the stream or what it comes after is being captured. The default stream must
 * not be used meanwhile, since it would have to wait for streams that do nothing. */
static cudaError_t stream_capture(struct work *w, struct CUstream_st *stream,
                                  const struct work *also)
{
    if (stream->capture.graph || (also && also->capture))
        return graph_capture(stream->capture.graph ? stream->capture.graph
                                                   : streams_find_capture(also->capture),
                             w, &stream->capture, also);
    return stream == &streams.legacy && streams_captured(false) ? cudaErrorStreamCaptureImplicit
                                                                : cudaSuccess;
}

cudaError_t work_submit(struct work *w, struct CUstream_st *stream, struct work *also)
{
    struct work *const after[2] = {also, NULL};

    pthread_mutex_lock(&work_lock);
    cudaError_t error = stream_capture(w, stream, also);
    if (error || w->capture) {
        pthread_mutex_unlock(&work_lock);
        return error;
    }
    bool ready = stream_order(w, stream, after);
    work_drop_locked(stream->last);
    stream->last = w;
    w->references++;
    pthread_mutex_unlock(&work_lock);
    if (ready)
        work_start_here(w);
    return cudaSuccess;
}

void work_submit_after(struct work *w, struct work *first, struct work *second)
{
    struct work *const after[2] = {first, second};

    pthread_mutex_lock(&work_lock);
    bool ready = stream_order(w, NULL, after);
    pthread_mutex_unlock(&work_lock);
    if (ready)
        work_start_here(w);
}

/* --- Streams --- */

struct CUstream_st *stream_new(bool blocking)
{
    struct CUstream_st *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->blocking = blocking;
    pthread_mutex_lock(&work_lock);
    streams_reap();
    s->next = streams.all;
    streams.all = s;
    pthread_mutex_unlock(&work_lock);
    return s;
}

void stream_destroy(struct CUstream_st *s)
{
    pthread_mutex_lock(&work_lock);
    s->destroyed = true;
    struct graph *lost = graph_forget(&s->capture);
    streams_reap();
    pthread_mutex_unlock(&work_lock);
    if (lost)
        graph_drop(lost);
}

struct CUstream_st *stream_legacy(void)
{
    return &streams.legacy;
}

bool streams_captured(bool any)
{
    bool found = false;

    for (struct CUstream_st *s = streams.all; s; s = s->next) {
        if (s->capture.graph && (any || s->blocking)) {
            graph_fail(s->capture.graph, cudaSuccess);
            found = true;
        }
    }
    return found;
}

bool stream_is_captured(struct CUstream_st *stream)
{
    pthread_mutex_lock(&work_lock);
    bool captured = stream->capture.graph != NULL;
    pthread_mutex_unlock(&work_lock);
    return captured;
}

/* ---- A thread's own stream, which is destroyed when the thread has ended and its work is done
 * ---- */

static void stream_end_thread(void *stream)
{
    calling_thread.stream = NULL;
    stream_destroy(stream);
}

static void stream_make_key(void)
{
    streams.has_key = pthread_key_create(&streams.thread_ends, stream_end_thread) == 0;
}

static struct CUstream_st *stream_per_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* of the key, which is the process's */

    if (calling_thread.stream)
        return calling_thread.stream;
    pthread_once(&once, stream_make_key);
    calling_thread.stream = stream_new(true);
    if (calling_thread.stream && streams.has_key)
        pthread_setspecific(streams.thread_ends, calling_thread.stream);
    return calling_thread.stream;
}

struct CUstream_st *stream_find(cudaStream_t handle)
{
    if (!handle || handle == cudaStreamLegacy)
        return &streams.legacy;
    if (handle == cudaStreamPerThread)
        return stream_per_thread();
    pthread_mutex_lock(&work_lock);
    struct CUstream_st *s = streams.all;
    while (s && (s != handle || s->destroyed))
        s = s->next;
    pthread_mutex_unlock(&work_lock);
    return s;
}

/* --- Waiting --- */

struct work *stream_last(struct CUstream_st *stream)
{
    pthread_mutex_lock(&work_lock);
    struct work *w = stream->last;
    if (w)
        w->references++;
    pthread_mutex_unlock(&work_lock);
    return w;
}

/* The latest work that is not done, with a reference: of the default stream, and of all others or
 * those that are in order with it; NULL: all is done. */
static struct work *streams_first_undone(bool all)
{
    struct work *w = NULL;

    pthread_mutex_lock(&work_lock);
    streams_reap();
    if (streams.legacy.last && !work_is_done(streams.legacy.last))
        w = streams.legacy.last;
    for (struct CUstream_st *s = streams.all; !w && s; s = s->next) {
        if ((all || s->blocking) && s->last && !work_is_done(s->last))
            w = s->last;
    }
    if (w)
        w->references++;
    pthread_mutex_unlock(&work_lock);
    return w;
}

static void streams_wait_undone(bool all)
{
    struct work *w;

    while (!forks_is_child() && (w = streams_first_undone(all))) {
        work_wait(w);
        work_drop(w);
    }
}

/* Waits for one stream after the other: a point in the default stream would not wait for
 * non-blocking streams. */
cudaError_t streams_wait_all(void)
{
    streams_wait_undone(true);
    return device_error();
}

void stream_wait(struct CUstream_st *stream)
{
    if (stream == &streams.legacy) {
        streams_wait_undone(false);
        return;
    }
    struct work *w = stream_last(stream);
    if (w)
        work_wait(w);
    work_drop(w);
}

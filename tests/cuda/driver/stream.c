/* The simulated driver: streams, events, and graphs of what is captured from one stream.
 *
 * A stream's thread does its work when somebody waits for it or asks after it. If nobody does, it
 * is done SIM_DELAY_MS later, so that whoever forgets to wait reads what was there before, and what
 * other processes wait for comes nevertheless. */
#include "sim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_BYTES = 1 << 16 }; /* what SIM_COPY_MS is for */

enum kind { COPY, FILL, RECORD, WAIT, LAUNCH };

struct event {
    uint64_t recorded, done; /* how many times */
    struct stream *on;       /* where it was last recorded */
};

struct operation {
    enum kind kind;
    cuda_address to, from;
    size_t bytes;
    unsigned char byte;
    struct event *event;
    uint64_t count;
    struct sim_grid *grid;
    struct operation *next;
};

struct sim_graph {
    struct operation *first, **last;
};

struct stream {
    cuda_gpu gpu;
    pthread_t thread;
    struct operation *first, **last;
    bool busy, wanted, stop;
    cuda_result failed;      /* of what was done since somebody was told of a failure */
    struct sim_graph *graph; /* what it captures; NULL: nothing */
    void *kernels;           /* the host device's stream for its kernels; NULL: there were none */
    struct stream *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all here */
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static struct stream *defaults[SIM_GPUS_MOST];
static bool occupied[SIM_GPUS_MOST];
static int captures; /* streams that are */
static int launches; /* that have not ended, graphs' that have not been launched aside */
static _Thread_local int
    mode; /* of this thread towards captures; CUDA_CAPTURE_RELAXED: it may all */

bool sim_captures(void)
{
    pthread_mutex_lock(&lock);
    bool forbidden = captures && mode != CUDA_CAPTURE_RELAXED;
    pthread_mutex_unlock(&lock);
    return forbidden;
}

bool sim_launches(void)
{
    pthread_mutex_lock(&lock);
    bool any = launches > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

SIM_API void sim_occupy(cuda_gpu gpu, bool occupy)
{
    pthread_mutex_lock(&lock);
    occupied[gpu] = occupy;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

/* ---- A stream's thread ---- */

static void want(struct stream *s)
{
    s->wanted = true;
    pthread_cond_broadcast(&news);
}

static void free_operation(struct operation *o)
{
    free(o->grid);
    free(o);
}

/* With the lock, which it gives up meanwhile. */
static cuda_result carry_out(struct stream *s, const struct operation *o)
{
    cuda_result result = CUDA_OK;

    switch (o->kind) {
    case RECORD:
        o->event->done = o->count;
        pthread_cond_broadcast(&news);
        break;
    case WAIT:
        while (o->event->done < o->count) {
            want(o->event->on);
            pthread_cond_wait(&news, &lock);
        }
        break;
    case LAUNCH:
        while (occupied[s->gpu])
            pthread_cond_wait(&news, &lock);
        pthread_mutex_unlock(&lock);
        sim_expose(s->gpu, true);
        result = sim_grid_run(o->grid, &s->kernels);
        sim_expose(s->gpu, false);
        pthread_mutex_lock(&lock);
        launches--;
        break;
    default:
        pthread_mutex_unlock(&lock);
        if (o->kind == COPY && o->bytes >= SLOW_BYTES)
            usleep((useconds_t)sim_setting("SIM_COPY_MS", 0) * 1000);
        result = o->kind == FILL ? sim_fill(o->to, o->byte, o->bytes)
                                 : sim_copy(o->to, o->from, o->bytes);
        pthread_mutex_lock(&lock);
    }
    return result;
}

static void await_demand(struct stream *s)
{
    long delay = sim_setting("SIM_DELAY_MS", 20) * 1000000;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + delay) / 1000000000;
    until.tv_nsec = (until.tv_nsec + delay) % 1000000000;
    while (!s->wanted && !s->stop && pthread_cond_timedwait(&news, &lock, &until) != ETIMEDOUT)
        ;
}

static void *serve(void *argument)
{
    struct stream *s = argument;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (!s->first && !s->stop)
            pthread_cond_wait(&news, &lock);
        if (!s->first)
            break;
        await_demand(s);
        while (s->first) {
            struct operation *o = s->first;
            s->busy = true;
            cuda_result result = carry_out(s, o);
            s->failed = s->failed ? s->failed : result;
            s->first = o->next;
            if (!s->first)
                s->last = &s->first;
            free_operation(o);
        }
        s->busy = s->wanted = false;
        pthread_cond_broadcast(&news);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- Streams ---- */

static struct stream *new_stream(cuda_gpu gpu)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->gpu = gpu;
    s->last = &s->first;
    if (pthread_create(&s->thread, NULL, serve, s)) {
        free(s);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    return s;
}

static void end_stream(struct stream *s)
{
    pthread_mutex_lock(&lock);
    s->stop = true;
    pthread_cond_broadcast(&news);
    for (struct stream **at = &streams; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    sim_grid_end_stream(s->kernels);
    free(s);
}

/* The stream of a handle, for this thread's GPU; NULL: it is none. A handle of NULL is the GPU's
 * own. */
static struct stream *find(cuda_stream handle)
{
    cuda_gpu gpu = sim_current();
    struct stream *s = handle;

    if (gpu < 0)
        return NULL;
    if (!s && !defaults[gpu])
        defaults[gpu] = new_stream(gpu);
    if (!s)
        s = defaults[gpu];
    return s && s->gpu == gpu ? s : NULL;
}

void sim_end_default(cuda_gpu gpu)
{
    if (defaults[gpu])
        end_stream(defaults[gpu]);
    defaults[gpu] = NULL;
}

SIM_API cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    struct stream *s;

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (flags & ~CUDA_STREAM_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    if (!(s = new_stream(sim_current())))
        return CUDA_OUT_OF_MEMORY;
    sim_opened(SIM_STREAM);
    *stream = s;
    return CUDA_OK;
}

/* With the lock. */
static void await(struct stream *s)
{
    while (s->first || s->busy) {
        want(s);
        pthread_cond_wait(&news, &lock);
    }
}

void sim_finish(cuda_gpu gpu)
{
    pthread_mutex_lock(&lock);
    for (struct stream *s = streams; s; s = s->next) {
        if (s->gpu == gpu)
            await(s);
    }
    pthread_mutex_unlock(&lock);
}

SIM_API cuda_result cuStreamSynchronize(cuda_stream stream)
{
    struct stream *s;
    cuda_result result;

    SIM_ENTER();
    if (!(s = find(stream)))
        return CUDA_INVALID_CONTEXT;
    if (s->graph)
        return CUDA_CAPTURE_UNSUPPORTED;
    sim_nic_flush();
    pthread_mutex_lock(&lock);
    await(s);
    result = s->failed;
    s->failed = CUDA_OK;
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_API cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    struct stream *s = stream;

    SIM_ENTER();
    if (!s)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (s->first)
        sim_blame("a stream is destroyed with work in it that nobody has waited for");
    pthread_mutex_unlock(&lock);
    end_stream(s);
    sim_closed(SIM_STREAM);
    return CUDA_OK;
}

/* ---- What is put on them ---- */

static void append(struct operation ***last, struct operation *o)
{
    **last = o;
    *last = &o->next;
}

static cuda_result put(cuda_stream stream, const struct operation *wanted)
{
    struct stream *s = find(stream);
    struct operation *o;

    if (!s)
        return CUDA_INVALID_CONTEXT;
    if (wanted->kind != RECORD && wanted->kind != WAIT)
        sim_nic_flush();
    if (s->graph && (wanted->kind == RECORD || wanted->kind == WAIT))
        return CUDA_CAPTURE_UNSUPPORTED; /* graphs of one stream is all that this simulates */
    if (!(o = malloc(sizeof *o)))
        return CUDA_OUT_OF_MEMORY;
    *o = *wanted;
    o->next = NULL;
    pthread_mutex_lock(&lock);
    if (o->kind == RECORD) {
        o->count = ++o->event->recorded;
        o->event->on = s;
    } else if (o->kind == WAIT) {
        o->count = o->event->recorded;
    }
    launches += o->kind == LAUNCH && !s->graph;
    append(s->graph ? &s->graph->last : &s->last, o);
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

SIM_API cuda_result cuMemcpyAsync(cuda_address to, cuda_address from, size_t bytes,
                                  cuda_stream stream)
{
    SIM_ENTER();
    return put(stream, &(struct operation){COPY, .to = to, .from = from, .bytes = bytes});
}

SIM_API cuda_result cuMemsetD8Async(cuda_address at, unsigned char byte, size_t bytes,
                                    cuda_stream stream)
{
    SIM_ENTER();
    return put(stream, &(struct operation){FILL, .to = at, .byte = byte, .bytes = bytes});
}

cuda_result sim_launch(cuda_stream stream, struct sim_grid *grid)
{
    cuda_result result = put(stream, &(struct operation){LAUNCH, .grid = grid});

    if (result)
        free(grid);
    return result;
}

/* ---- Events ---- */

SIM_API cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (flags != CUDA_EVENT_NO_TIMING)
        return CUDA_INVALID_VALUE;
    if (!(*event = calloc(1, sizeof(struct event))))
        return CUDA_OUT_OF_MEMORY;
    sim_opened(SIM_EVENT);
    return CUDA_OK;
}

SIM_API cuda_result cuEventDestroy_v2(cuda_event event)
{
    struct event *e = event;

    SIM_ENTER();
    if (e->done < e->recorded)
        sim_blame("an event is destroyed that has not come yet");
    free(e);
    sim_closed(SIM_EVENT);
    return CUDA_OK;
}

SIM_API cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    SIM_ENTER();
    return put(stream, &(struct operation){RECORD, .event = event});
}

SIM_API cuda_result cuStreamWaitEvent(cuda_stream stream, cuda_event event, unsigned flags)
{
    SIM_ENTER();
    if (flags)
        return CUDA_INVALID_VALUE;
    return put(stream, &(struct operation){WAIT, .event = event});
}

/* What has failed on the stream before it comes with the event. */
static cuda_result outcome(struct event *e)
{
    cuda_result result = e->on ? e->on->failed : CUDA_OK;

    if (result)
        e->on->failed = CUDA_OK;
    return result;
}

SIM_API cuda_result cuEventQuery(cuda_event event)
{
    struct event *e = event;
    cuda_result result = CUDA_NOT_READY;

    SIM_ENTER();
    if (sim_captures())
        return CUDA_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    if (e->done == e->recorded)
        result = outcome(e);
    else
        want(e->on);
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_API cuda_result cuEventSynchronize(cuda_event event)
{
    struct event *e = event;
    cuda_result result;

    SIM_ENTER();
    sim_nic_flush();
    pthread_mutex_lock(&lock);
    while (e->done < e->recorded) {
        want(e->on);
        pthread_cond_wait(&news, &lock);
    }
    result = outcome(e);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- Graphs ---- */

SIM_API cuda_result cuStreamIsCapturing(cuda_stream stream, int *status)
{
    struct stream *s;

    SIM_ENTER();
    if (!(s = find(stream)))
        return CUDA_INVALID_CONTEXT;
    *status = s->graph != NULL;
    return CUDA_OK;
}

SIM_API cuda_result cuThreadExchangeStreamCaptureMode(int *now)
{
    int before = mode;

    SIM_ENTER();
    mode = *now;
    *now = before;
    return CUDA_OK;
}

static struct sim_graph *new_graph(void)
{
    struct sim_graph *g = calloc(1, sizeof *g);

    if (g) {
        g->last = &g->first;
        sim_opened(SIM_GRAPH);
    }
    return g;
}

static cuda_result copy_operations(const struct sim_graph *g, struct operation ***last)
{
    for (const struct operation *from = g->first; from; from = from->next) {
        struct operation *o = malloc(sizeof *o);
        if (!o)
            return CUDA_OUT_OF_MEMORY;
        *o = *from;
        o->next = NULL;
        if (from->grid && !(o->grid = sim_grid_copy(from->grid))) {
            free(o);
            return CUDA_OUT_OF_MEMORY;
        }
        append(last, o);
    }
    return CUDA_OK;
}

static int launches_in(const struct sim_graph *g)
{
    int n = 0;

    for (const struct operation *o = g->first; o; o = o->next)
        n += o->kind == LAUNCH;
    return n;
}

SIM_API cuda_result cuStreamBeginCapture_v2(cuda_stream stream, int how)
{
    struct stream *s = find(stream);

    SIM_ENTER();
    if (!s || !stream || s->graph || how)
        return CUDA_INVALID_VALUE;
    if (!(s->graph = new_graph()))
        return CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    captures++;
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

SIM_API cuda_result cuStreamEndCapture(cuda_stream stream, cuda_graph *graph)
{
    struct stream *s = find(stream);

    SIM_ENTER();
    if (!s || !s->graph)
        return CUDA_INVALID_VALUE;
    *graph = s->graph;
    s->graph = NULL;
    pthread_mutex_lock(&lock);
    captures--;
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

SIM_API cuda_result cuGraphInstantiateWithFlags(cuda_graph *exec, cuda_graph graph,
                                                unsigned long long flags)
{
    SIM_ENTER();
    if (flags)
        return CUDA_INVALID_VALUE;
    if (!(*exec = new_graph()))
        return CUDA_OUT_OF_MEMORY;
    return copy_operations(graph, &(*exec)->last);
}

SIM_API cuda_result cuGraphLaunch(cuda_graph exec, cuda_stream stream)
{
    struct stream *s = find(stream);
    cuda_result result;

    SIM_ENTER();
    if (!s)
        return CUDA_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    result = copy_operations(exec, &s->last);
    launches += launches_in(exec);
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_API cuda_result cuGraphDestroy(cuda_graph graph)
{
    SIM_ENTER();
    while (graph->first) {
        struct operation *o = graph->first;
        graph->first = o->next;
        free_operation(o);
    }
    free(graph);
    sim_closed(SIM_GRAPH);
    return CUDA_OK;
}

SIM_API cuda_result cuGraphExecDestroy(cuda_graph exec)
{
    return cuGraphDestroy(exec);
}

/* The simulated driver: streams. What is put into one happens when somebody waits for it, so that whoever
 * forgets to wait reads what was there before. */
#include "sim.h"

#include <stdlib.h>

struct operation {
    bool fills;
    cuda_address to, from;
    size_t bytes;
    unsigned char byte;
    struct operation *next;
};

struct stream {
    cuda_gpu gpu;
    struct operation *first, **last;
};

SIM_API cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    struct stream *s;

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (flags & ~CUDA_STREAM_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    if (!(s = calloc(1, sizeof *s)))
        return CUDA_OUT_OF_MEMORY;
    s->gpu = sim_current();
    s->last = &s->first;
    sim_opened(SIM_STREAM);
    *stream = s;
    return CUDA_OK;
}

static cuda_result put(struct stream *s, struct operation operation)
{
    struct operation *o;

    if (!s || s->gpu != sim_current())
        return CUDA_INVALID_CONTEXT;
    if (!(o = malloc(sizeof *o)))
        return CUDA_OUT_OF_MEMORY;
    *o = operation;
    sim_lock();
    *s->last = o;
    s->last = &o->next;
    sim_unlock();
    return CUDA_OK;
}

SIM_API cuda_result cuMemcpyAsync(cuda_address to, cuda_address from, size_t bytes,
                                  cuda_stream stream)
{
    SIM_ENTER();
    return put(stream, (struct operation){.to = to, .from = from, .bytes = bytes});
}

SIM_API cuda_result cuMemsetD8Async(cuda_address at, unsigned char byte, size_t bytes,
                                    cuda_stream stream)
{
    SIM_ENTER();
    return put(stream, (struct operation){.fills = true, .to = at, .byte = byte, .bytes = bytes});
}

/* With the lock held: two that wait for one stream take turns. */
static cuda_result carry_out(struct stream *s)
{
    cuda_result result = CUDA_OK, one;

    while (s->first) {
        struct operation *o = s->first;
        one = o->fills ? sim_fill(o->to, o->byte, o->bytes) : sim_copy(o->to, o->from, o->bytes);
        result = result ? result : one;
        s->first = o->next;
        free(o);
    }
    s->last = &s->first;
    return result;
}

SIM_API cuda_result cuStreamSynchronize(cuda_stream stream)
{
    struct stream *s = stream;
    cuda_result result;

    SIM_ENTER();
    if (!s || s->gpu != sim_current())
        return CUDA_INVALID_CONTEXT;
    sim_lock();
    result = carry_out(s);
    sim_unlock();
    return result;
}

SIM_API cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    struct stream *s = stream;

    SIM_ENTER();
    if (!s)
        return CUDA_INVALID_VALUE;
    if (s->first)
        sim_blame("a stream is destroyed with copies in it that nobody has waited for");
    sim_lock();
    carry_out(s);
    sim_unlock();
    free(s);
    sim_closed(SIM_STREAM);
    return CUDA_OK;
}

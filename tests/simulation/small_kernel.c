/* A kernel's thread of a small program: it writes commands into a channel, as the functions of
 * gshmem/device/post.h do, and waits for the proxy. Compiled as the library is, so that its atomic
 * operations are points of the exploration. */
#include "small_kernel.h"

#include "explore.h"
#include "fiber.h"
#include "gshmem.h"
#include "gshmem/device/command.h"

enum { WAIT_NS = 1000 };

static struct gshmem_device_state state[2];

static int fill(const struct gshmem_device_state *s)
{
    state[fiber_current->pe->number] = *s;
    return 0;
}

static struct gshmem_device_module module[2] = {
    {sizeof module[0], GSHMEM_DEVICE_STATE_VERSION, "host", fill, NULL},
    {sizeof module[0], GSHMEM_DEVICE_STATE_VERSION, "host", fill, NULL},
};

void small_kernel_begin(void)
{
    gshmem_device_register(&module[fiber_current->pe->number]);
}

static const struct gshmem_device_ctx *context_of_pe(void)
{
    return &state[fiber_current->pe->number].ctx;
}

/* The position behind the command. */
static uint64_t post(const struct gshmem_device_ctx *c, const struct gshmem_command *first,
                     const struct gshmem_command *second)
{
    const struct gshmem_channel *ring = &c->channel->ring;
    const uint32_t n = second ? 2 : 1;
    const uint64_t position = gshmem_channel_take(ring, n);

    while (!gshmem_channel_has_room(ring, position + n))
        fiber_pause(WAIT_NS);
    gshmem_channel_write(ring, position, gshmem_command_encode(first), 1);
    if (second)
        gshmem_channel_write(ring, position + 1, gshmem_command_encode(second), 0);
    explore_advances();
    if (gshmem_load_relaxed_32(c->channel->asleep))
        gshmem_device_wake(c->channel->asleep);
    return position + n;
}

void small_kernel_put(uint64_t *at, uint64_t value, int pe, uint64_t *signal)
{
    const struct gshmem_command put = {.kind = GSHMEM_COMMAND_VALUE,
                                       .type = 16,
                                       .pe = (uint32_t)pe,
                                       .more = signal != NULL,
                                       .address = (uintptr_t)at,
                                       .local = value,
                                       .size = value};
    const struct gshmem_command signals = {.kind = GSHMEM_COMMAND_SIGNAL,
                                           .amo = GSHMEM_SIGNAL_ADD,
                                           .pe = (uint32_t)pe,
                                           .address = (uintptr_t)signal,
                                           .local = 1};

    post(context_of_pe(), &put, signal ? &signals : NULL);
}

void small_kernel_fence(void)
{
    const struct gshmem_command fence = {.kind = GSHMEM_COMMAND_FENCE};

    post(context_of_pe(), &fence, NULL);
}

static bool may_wait(const struct gshmem_device_ctx *c)
{
    if (gshmem_load_relaxed(c->job->failure))
        return false;
    gshmem_device_help();
    fiber_pause(WAIT_NS);
    return true;
}

bool small_kernel_fetch_inc(uint64_t *at, int pe, uint64_t *old)
{
    const struct gshmem_device_ctx *c = context_of_pe();
    const uint32_t tag = ((c->job->response_owner[0] >> 1) + 1) & 255;
    const struct gshmem_response *r = &c->job->response[0];
    const struct gshmem_command add = {.kind = GSHMEM_COMMAND_ATOMIC,
                                       .type = GSHMEM_TYPE_UINT64,
                                       .amo = GSHMEM_AMO_ADD,
                                       .pe = (uint32_t)pe,
                                       .responds = 1,
                                       .tag = tag,
                                       .address = (uintptr_t)at,
                                       .local = 1};
    uint64_t answer;

    post(c, &add, NULL);
    while ((answer = gshmem_load_acquire(&r->answer)) >> 8 != tag) {
        if (!may_wait(c))
            return false;
    }
    *old = gshmem_load_relaxed(&r->value[0]);
    c->job->response_owner[0] = tag << 1;
    return !(answer & 255);
}

bool small_kernel_quiet(void)
{
    const struct gshmem_device_ctx *c = context_of_pe();
    const uint64_t end = gshmem_device_load(c->channel->ring.ticket);
    uint64_t done;

    while (((done = gshmem_load_acquire(c->channel->done)) & ~GSHMEM_DONE_FAILED) < end) {
        if (!may_wait(c))
            return false;
    }
    return !(done & GSHMEM_DONE_FAILED);
}

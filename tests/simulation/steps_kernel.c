/* Steps of a kernel's thread: it writes commands into a channel, as the functions of
 * gshmem/device/post.h do, and waits for the proxy. The threads of all PEs run beside their hosts'. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "gshmem/device/command.h"
#include "program.h"
#include "record.h"
#include "wrap.h"

enum {
    POLL_NS = 1000,
    POLLS = 32,     /* after as many that were in vain the next ones are twice as rare, */
    RARER_MOST = 6, /* as often as this */
    GOT = 256
};

/* ---- What kernels of a PE see ---- */

static int fill(const struct gshmem_device_state *s)
{
    ((struct program *)fiber_current->pe->program)->kernel = *s;
    return 0;
}

void kernel_register(struct program *p)
{
    p->module = calloc(1, sizeof *p->module);
    *p->module = (struct gshmem_device_module){
        sizeof *p->module, GSHMEM_DEVICE_STATE_VERSION, plan.gpu ? "cuda" : "host", fill, NULL};
    gshmem_device_register(p->module);
}

/* ---- Commands ---- */

/* polls: of this wait. Those of a long wait are rare, or they would be most of what a run costs. */
static bool can_wait(const struct gshmem_device_ctx *c, unsigned *polls)
{
    const unsigned rarer = (*polls)++ / POLLS;

    if (gshmem_load_relaxed(c->job->failure))
        return false;
    gshmem_device_help();
    fiber_pause((uint64_t)POLL_NS << (rarer < RARER_MOST ? rarer : RARER_MOST));
    return true;
}

static gshmem_status_t failure(const struct gshmem_device_ctx *c)
{
    return (gshmem_status_t)(gshmem_load_relaxed(c->job->failure) & 255);
}

static const struct gshmem_device_channel *channel_of(struct program *p)
{
    const struct gshmem_device_ctx *c = &p->kernel.ctx;

    return &c->channel[chance_below(&p->chance, c->channels)];
}

static gshmem_status_t post(struct program *p, const struct gshmem_device_channel *channel,
                            struct gshmem_command first, const struct gshmem_command *second)
{
    const struct gshmem_device_ctx *c = &p->kernel.ctx;
    const struct gshmem_channel *ring = &channel->ring;
    struct gshmem_slot slot[2];
    unsigned polls = 0;

    first.more = second != NULL;
    const uint32_t n = gshmem_command_slots(&first, second, slot);
    const uint64_t position = gshmem_channel_take(ring, n);

    while (!gshmem_channel_has_room(ring, position + n)) {
        if (!can_wait(c, &polls))
            return failure(c);
    }
    gshmem_channel_write(ring, position, slot[0], 1);
    if (n == 2 && chance_one_in(&p->chance, 8))
        fiber_pause(20 * US); /* the proxy sees half of it */
    if (n == 2)
        gshmem_channel_write(ring, position + 1, slot[1], 1);
    if (gshmem_load_relaxed_32(channel->asleep))
        gshmem_device_wake(channel->asleep);
    return GSHMEM_OK;
}

/* Posts and waits for the response. */
static gshmem_status_t ask(struct program *p, struct gshmem_command command,
                           const struct gshmem_command *second, uint64_t *value)
{
    const struct gshmem_device_ctx *c = &p->kernel.ctx;
    const uint32_t slot = (uint32_t)chance_below(&p->chance, GSHMEM_RESPONSES);
    const uint32_t tag = ((c->job->response_owner[slot] >> 1) + 1) & 255;
    const struct gshmem_response *r = &c->job->response[slot];
    uint64_t answer;
    unsigned polls = 0;

    command.responds = 1;
    command.response = slot;
    command.tag = tag;
    gshmem_status_t status = post(p, channel_of(p), command, second);
    while (!status && (answer = gshmem_load_acquire(&r->answer)) >> 8 != tag) {
        if (!can_wait(c, &polls))
            status = failure(c);
    }
    if (status)
        return status;
    if (value)
        *value = gshmem_load_relaxed(&r->value[0]);
    c->job->response_owner[slot] = tag << 1;
    return (gshmem_status_t)(answer & 255);
}

static gshmem_status_t kernel_quiet(struct program *p)
{
    const struct gshmem_device_ctx *c = &p->kernel.ctx;

    for (uint32_t i = 0; i < c->channels; i++) {
        const struct gshmem_device_channel *channel = &c->channel[i];
        const uint64_t end = gshmem_device_load(channel->ring.ticket);
        uint64_t done;
        unsigned polls = 0;
        while (((done = gshmem_load_acquire(channel->done)) & ~GSHMEM_DONE_FAILED) < end) {
            if (!can_wait(c, &polls))
                return failure(c);
        }
        if (done & GSHMEM_DONE_FAILED)
            return (gshmem_status_t)(gshmem_load_acquire(channel->failed) & 255);
    }
    return GSHMEM_OK;
}

/* ---- Operations ---- */

static struct gshmem_command with(enum gshmem_command_kind kind, int pe, const void *at)
{
    return (struct gshmem_command){
        .kind = kind, .pe = (uint32_t)pe, .address = (uintptr_t)at};
}

#define IN_KERNEL(p, what, status) (program_enter(p, what, false), program_leave(p, status))

/* Bytes for this PE's slot, all of which fit; false: it is full. */
static unsigned char *next_bytes(struct program *p, int target, size_t bytes)
{
    unsigned char *due = p->expected + (size_t)target * p->slot_bytes + p->written[target];

    model_fill(due, bytes, chance_next(&p->chance));
    return due;
}

static bool kernel_put(struct program *p, int target)
{
    static const unsigned char sizes[] = {1, 2, 4, 8, 16};
    const size_t at = (p->written[target] + 15) & ~(size_t)15, left = p->slot_bytes - at;

    if (at + 16 > p->slot_bytes)
        return true;
    const bool value = chance_one_in(&p->chance, 2), signals = chance_one_in(&p->chance, 3),
               waits = chance_one_in(&p->chance, 4);
    const size_t bytes = value ? sizes[chance_below(&p->chance, 5)]
                               : 1 + chance_below(&p->chance, left < 3000 ? left : 3000);

    memset(p->expected + (size_t)target * p->slot_bytes + p->written[target], 0,
           at - p->written[target]);
    /* what lies between was not written: nobody compares it */
    if (at != p->written[target]) {
        if (!IN_KERNEL(p, "a kernel's quiet", kernel_quiet(p)) ||
            !model_check_written(p, "a kernel's quiet"))
            return false;
        p->written[target] = p->checked[target] = at;
    }
    unsigned char *due = next_bytes(p, target, bytes), *there = p->slots +
                         (size_t)p->me * p->slot_bytes + at;
    struct gshmem_command c = with(value ? GSHMEM_COMMAND_VALUE : GSHMEM_COMMAND_PUT, target, there);
    struct gshmem_command signal = with(GSHMEM_COMMAND_SIGNAL, target, &p->area->sum);
    if (value) {
        c.type = (uint32_t)bytes;
        uint64_t bits[2] = {0, 0};
        memcpy(bits, due, bytes);
        c.local = bits[0];
        c.size = bits[1];
    } else {
        c.local = (uintptr_t)due;
        c.size = bytes;
    }
    signal.amo = GSHMEM_SIGNAL_ADD;
    signal.local = chance_below(&p->chance, 1000);
    if (chance_one_in(&p->chance, 4))
        signal.local += UINT64_C(1) << 32; /* two slots, whatever the put's size */
    if (signals)
        model_added(target, signal.local);
    p->written[target] = at + bytes;
    return IN_KERNEL(p, "a kernel's put",
                     waits ? ask(p, c, signals ? &signal : NULL, NULL)
                           : post(p, channel_of(p), c, signals ? &signal : NULL));
}

static bool kernel_get(struct program *p, int from)
{
    unsigned char *got = calloc(1, GOT), due[CONSTANT_BYTES];
    const size_t at = chance_below(&p->chance, CONSTANT_BYTES - GOT) & ~(size_t)7;
    const bool fetch = chance_one_in(&p->chance, 3), later = chance_one_in(&p->chance, 2);
    const size_t bytes = fetch ? 8 : 1 + chance_below(&p->chance, GOT);
    struct gshmem_command c = with(fetch ? GSHMEM_COMMAND_FETCH : GSHMEM_COMMAND_GET, from,
                                   p->area->constant + at);
    bool fine;

    c.local = (uintptr_t)got;
    c.size = bytes;
    c.type = fetch ? 8 : 0;
    if (fetch)
        fine = IN_KERNEL(p, "a kernel's g", ask(p, c, NULL, (uint64_t *)(void *)got));
    else if (later)
        fine = IN_KERNEL(p, "a kernel's get_nbi", post(p, channel_of(p), c, NULL)) &&
               IN_KERNEL(p, "a kernel's quiet", kernel_quiet(p));
    else
        fine = IN_KERNEL(p, "a kernel's get", ask(p, c, NULL, NULL));
    if (!fine)
        return false; /* what it got may still arrive: the memory stays */
    model_fill(due, sizeof due, (uint64_t)from);
    if (model_can_get(p, from) && memcmp(got, due + at, bytes) != 0) {
        world_fail("PE %d: a kernel's get of %zu bytes from PE %d brought others", p->me, bytes,
                   from);
        fine = false;
    }
    free(got);
    return fine;
}

static bool kernel_atomic(struct program *p, int target)
{
    const int counter = (int)chance_below(&p->chance, COUNTERS);
    const uint64_t way = chance_below(&p->chance, 3);
    struct gshmem_command c = with(GSHMEM_COMMAND_ATOMIC, target,
                                   way ? &p->area->counter[counter] : &p->area->sum);
    uint64_t old = 0;

    c.type = GSHMEM_TYPE_UINT64;
    c.amo = GSHMEM_AMO_ADD;
    c.local = way ? 1 : chance_below(&p->chance, 1000);
    if (!way) {
        model_added(target, c.local);
        return IN_KERNEL(p, "a kernel's atomic", post(p, channel_of(p), c, NULL));
    }
    uint64_t *kept = calloc(1, sizeof *kept);
    struct gshmem_command to = with(GSHMEM_COMMAND_RESULT, 0, NULL);
    to.local = (uintptr_t)kept;
    if (!IN_KERNEL(p, "a kernel's fetch_inc", ask(p, c, way == 2 ? &to : NULL, &old)))
        return false;
    old = way == 2 ? *kept : old;
    free(kept);
    return model_number(p, target, counter, old);
}

/* What the proxy must not carry out: each answers with a status. */
static bool kernel_mistake(struct program *p, int pe)
{
    static const unsigned char refusals[] = {GSHMEM_COMMAND_REFUSE, GSHMEM_COMMAND_REFUSE_COLLECTIVE,
                                             GSHMEM_COMMAND_REFUSE_WAIT};
    struct gshmem_command c = with(GSHMEM_COMMAND_VALUE, pe, p->area->constant);
    uint64_t local;

    c.type = 8;
    switch (chance_below(&p->chance, 8)) {
    case 0:
        c.pe = (uint32_t)p->n;
        break;
    case 1:
        c.address = (uintptr_t)&local;
        break;
    case 2:
        c.type = 3;
        break;
    case 3:
        c.kind = 29;
        break;
    case 4:
        c.kind = GSHMEM_COMMAND_ATOMIC;
        c.type = GSHMEM_TYPE_UINT64;
        c.amo = GSHMEM_AMO_ADD;
        c.address++;
        break;
    case 5:
        c.kind = GSHMEM_COMMAND_GET;
        c.size = 8;
        c.local = 64; /* no memory */
        break;
    case 6:
        c.kind = GSHMEM_COMMAND_SIGNAL;
        c.amo = 9;
        break;
    default:
        c.kind = refusals[chance_below(&p->chance, 3)];
        c.type = (uint32_t)chance_below(&p->chance, 11);
        c.amo = (uint32_t)chance_below(&p->chance, 10);
        c.local = chance_below(&p->chance, 5);
        c.size = chance_below(&p->chance, 20);
    }
    if (ask(p, c, NULL, NULL) || failure(&p->kernel.ctx))
        return true;
    world_fail("PE %d: a kernel's command of kind %u (%u, %u) is not refused", p->me, c.kind,
               c.type, c.amo);
    return false;
}

static bool kernel_once(struct program *p)
{
    const int target = (int)chance_below(&p->chance, (uint64_t)p->n);
    struct gshmem_command c;

    switch (chance_below(&p->chance, 12)) {
    case 0:
        return kernel_get(p, target);
    case 1:
    case 2:
        return kernel_atomic(p, target);
    case 3:
        return kernel_mistake(p, target);
    case 4:
        return IN_KERNEL(p, "a kernel's fence",
                         post(p, channel_of(p), with(GSHMEM_COMMAND_FENCE, 0, NULL), NULL));
    case 5:
        return IN_KERNEL(p, "a kernel's flush",
                         ask(p, with(GSHMEM_COMMAND_FLUSH, 0, NULL), NULL, NULL));
    case 6:
        c = with(GSHMEM_COMMAND_CHECK, target, p->area->constant);
        c.size = 8;
        return IN_KERNEL(p, "a kernel's check", ask(p, c, NULL, NULL));
    case 7:
        return IN_KERNEL(p, "a kernel's quiet", kernel_quiet(p)) &&
               model_check_written(p, "a kernel's quiet");
    default:
        return kernel_put(p, target);
    }
}

static void *kernel_main(void *argument)
{
    struct program *p = argument;

    for (uint64_t n = 1 + chance_below(&p->chance, 40); n && !p->failed; n--) {
        if (!kernel_once(p))
            return NULL;
    }
    if (!p->failed && IN_KERNEL(p, "a kernel's quiet", kernel_quiet(p)))
        model_check_written(p, "a kernel's quiet");
    return NULL;
}

/* A kernel; its host waits for it, or quiets beside it. */
bool step_kernel(struct program *p)
{
    pthread_t thread;

    if (!p->module)
        return true;
    for (int t = 0; t < p->n; t++) {
        const bool full = p->written[t] + 4096 > p->slot_bytes;
        /* a kernel's quiet does not complete what the host has put */
        if (!full && p->checked[t] == p->written[t])
            continue;
        if (!TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet"))
            return false;
        if (full)
            p->written[t] = p->checked[t] = 0;
    }
    simulated_pthread_create(&thread, NULL, kernel_main, p);
    __wrap_pthread_join(thread, NULL);
    return !p->failed && TRY(p, gshmem_quiet()) && model_check_written(p, "quiet");
}

/* Kernels' contexts: making and freeing their channels; and the host's fence and quiet of them. */
#include <assert.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/kernel_events.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"
#include "runtime/proxy/kernel_trace.h"
#include "runtime/teams/context.h"
#include "runtime/teams/team.h"
#include "runtime/trace/trace.h"

enum {
    UNWRITTEN_S = 10,     /* how long a quiet waits for a slot that a kernel has not finished
                             writing */
    UNWRITTEN_LAST_S = 2, /* the same where kernels have ended */
};

static_assert(offsetof(struct pending, issued) == offsetof(struct gshmem_host_operations, issued) &&
                  offsetof(struct pending, done) == offsetof(struct gshmem_host_operations, done) &&
                  offsetof(struct pending, failed) ==
                      offsetof(struct gshmem_host_operations, failed) &&
                  offsetof(struct pending, reported) ==
                      offsetof(struct gshmem_host_operations, reported),
              "kernels look at what the host has in flight");

static bool make_channel(struct device *d, struct kernel_channel *c, const uint32_t *asleep,
                         struct gshmem_device_channel *view)
{
    c->shared = memory_shared(d, sizeof *c->shared);
    c->device = memory_of_device(d, sizeof *c->device);
    c->proxy.passage = calloc(1 << CHANNEL_SLOTS_LOG2, sizeof *c->proxy.passage);
    if (!c->shared || !c->device || !c->proxy.passage)
        return false;
    c->proxy.ring = c->shared->ring;
    c->proxy.slots_log2 = CHANNEL_SLOTS_LOG2;
    c->proxy.tail = &c->shared->tail;
    c->proxy.done = &c->shared->done;
    c->proxy.failed = &c->shared->failed;
    const struct gshmem_device_channel seen = {
        .ring = {.ring = c->shared->ring,
                 .tail = &c->shared->tail,
                 .ticket = &c->device->ticket,
                 .tail_copy = &c->device->tail_copy,
                 .slots = 1 << CHANNEL_SLOTS_LOG2,
                 .slots_log2 = CHANNEL_SLOTS_LOG2},
        .done = &c->shared->done,
        .done_copy = &c->device->done_copy,
        .failed = &c->shared->failed,
        .failed_seen = &c->device->failed_seen,
        .asleep = asleep,
    };
    kernel_trace_enter(&c->shared->tail, offsetof(struct channel_shared, done),
                       TRACE_NETWORK, "room in a channel");
    kernel_trace_enter(
        &c->shared->done,
        offsetof(struct channel_shared, ring) - offsetof(struct channel_shared, done),
        TRACE_NETWORK, "quiet");
    return memory_tell(d, view, &seen, sizeof seen) == GSHMEM_OK;
}

/* Where kernels of the host device are traced, positions begin behind two laps: so the copy of the
 * tail, which stays 0, says at each post that the channel is full. The first lap and the third have
 * the same phase. */
static_assert(offsetof(struct channel_of_device, tail_traced) ==
                  offsetof(struct channel_of_device, tail_copy) + sizeof(uint64_t),
              "gshmem_kernel_wait_room finds it behind the copy");

static void channel_begin_traced(struct kernel_channel *c)
{
    const uint64_t first = UINT64_C(2) << CHANNEL_SLOTS_LOG2;

    c->device->ticket = c->shared->tail = c->shared->done = first;
    c->proxy.taken = c->proxy.finished = c->proxy.published = first;
}

/* The channels that a fence in one of them names; and where it has to wait for other lanes. */
static void name_others(struct kernel_context *k, int own)
{
    int other = (int)GSHMEM_FENCE_CHANNELS - k->channels;
    struct kernel_channel *c = &k->own[own];

    if (c->lane)
        c->proxy.host = k->host;
    c->proxy.crosses = c->proxy.host != NULL;
    for (int i = 0; i < k->channels && other >= 0; i++) {
        if (i == own)
            continue;
        if (k->own[i].lane == c->lane) {
            c->proxy.other[other++] = &k->own[i].proxy;
        } else {
            c->proxy.far[other++] = k->own[i].proxy.done;
            c->proxy.crosses = true;
        }
    }
}

void kernels_free_context(struct job *j, struct kernel_context *k)
{
    if (!k)
        return;
    for (int i = 0; i < k->channels && j->network; i++) {
        if (k->own[i].proxy.way)
            service_remove_channel(&k->own[i].proxy);
    }
    for (int i = 0; i < k->channels; i++) { /* none of them is looked at any more */
        struct kernel_channel *c = &k->own[i];
        if (c->shared) {
            kernel_trace_forget(&c->shared->tail);
            kernel_trace_forget(&c->shared->done);
        }
        memory_free_shared(k->device, c->shared);
        memory_free_of_device(k->device, c->device);
        free(c->proxy.passage);
    }
    memory_free_of_device(k->device, k->channel);
    memory_free_of_device(k->device, k->view);
    free(k);
}

gshmem_status_t kernels_make_context(struct job *j, int channels, struct pending *pending,
                                     struct kernel_context **out)
{
    struct kernel_context *k = calloc(1, sizeof *k + (size_t)channels * sizeof k->own[0]);
    gshmem_status_t status = GSHMEM_OK;
    bool made = k != NULL;

    if (k) {
        k->device = j->device;
        k->network = j->network;
        k->host = network_is_needed(j->network) ? (struct gshmem_host_operations *)pending : NULL;
        k->channels = channels;
        k->pending = pending;
        k->view = memory_of_device(j->device, sizeof *k->view);
        k->channel = memory_of_device(j->device, (size_t)channels * sizeof *k->channel);
        made = k->view && k->channel;
    }
    const unsigned first = atomic_fetch_add(&j->kernels->contexts, 1);
    const unsigned lanes = (unsigned)network_lanes(j->network);
    for (int i = 0; i < channels && made; i++) {
        k->own[i].lane = (int)((first + (unsigned)i) % lanes);
        k->crosses |= k->own[i].lane != 0;
        made = make_channel(j->device, &k->own[i], j->kernels->service[k->own[i].lane].asleep,
                            &k->channel[i]);
        if (made && trace_is_on() && j->device->ops == &device_host)
            channel_begin_traced(&k->own[i]);
    }
    for (int i = 0; i < channels && made; i++)
        name_others(k, i);
    if (!made)
        status = fail(GSHMEM_ERR_MEMORY, "out of memory for %d channels of kernels", channels);
    for (int i = 0; i < channels && !status; i++) {
        status = service_add_channel(&j->kernels->service[k->own[i].lane], &k->own[i].proxy);
        k->own[i].shared->stream = k->own[i].proxy.stream;
    }
    if (status)
        kernels_free_context(j, k);
    else
        *out = k;
    return status;
}

gshmem_status_t kernels_make_context_view(struct job *j, struct context *c)
{
    const struct team *t = j->team[c->view.team];
    gshmem_status_t status;

    if (!t->kernel)
        return fail(GSHMEM_ERR_MEMORY,
                    "a context of team %d: there was no memory for what kernels see of the team",
                    t->id);
    if ((status = kernels_make_context(j, 1, c->pending, &c->kernel)))
        return status;
    const struct gshmem_device_ctx view = kernels_view(j, t, c->kernel);
    if ((status = memory_tell(j->device, c->kernel->view, &view, sizeof view)))
        kernels_end_context(j, c);
    else
        c->view.device = c->kernel->view;
    return status;
}

gshmem_status_t kernels_open_context(struct job *j, struct context *c)
{
    return c->kernel || !kernels_of(j) ? GSHMEM_OK : kernels_make_context_view(j, c);
}

void kernels_end_context(struct job *j, struct context *c)
{
    c->view.device = NULL;
    kernels_free_context(j, c->kernel);
    c->kernel = NULL;
}

bool kernels_close_context(struct job *j, struct context *c)
{
    for (int i = 0; c->kernel && i < c->kernel->channels; i++) {
        const struct kernel_channel *own = &c->kernel->own[i];
        uint64_t issued;
        if (memory_ask(j->device, &own->device->ticket, &issued) != GSHMEM_OK ||
            (gshmem_load_acquire(own->proxy.done) & ~GSHMEM_DONE_FAILED) != issued)
            return false;
    }
    kernels_end_context(j, c);
    return true;
}

/* ---- Fence and quiet, from the host ---- */

enum { CHANNELS_MOST = 64 };

/* A position that a kernel has taken and not written, or not all of its command, as a wait knows
 * it. */
struct unwritten {
    uint64_t position;
    struct clock_looks looks; /* last: 0: there is none */
};

/* Whether the proxy has reached a position before `target` that was not written for that long. */
static bool never_written(const struct kernel_channel *c, uint64_t target, struct unwritten *u,
                          uint64_t ns)
{
    uint64_t tail = gshmem_load_relaxed(c->proxy.tail), now = clock_ns();

    if (tail >= target || channel_is_written(&c->proxy, tail)) {
        u->looks = (struct clock_looks){0, 0};
        return false;
    }
    if (u->position != tail)
        u->looks = (struct clock_looks){0, 0};
    u->position = tail;
    return clock_looks_add(&u->looks, now) > ns;
}

/* The same for any channel: a fence in one waits for positions in the others. */
static bool any_never_written(const struct kernel_context *k, const uint64_t *target,
                              struct unwritten *u, uint64_t ns)
{
    bool any = false;

    for (int i = 0; i < k->channels; i++)
        any |= never_written(&k->own[i], target[i], &u[i], ns);
    return any;
}

enum stage { STAGE_POSTED, STAGE_SENT, STAGE_DONE };

/* acquire: pairs with the releases in gshmem_channel_give_back and channel_publish */
static uint64_t come_to(struct kernel_channel *c, enum stage stage)
{
    if (stage == STAGE_SENT)
        return service_sent(&c->proxy);
    return stage == STAGE_DONE ? gshmem_load_acquire(c->proxy.done) & ~GSHMEM_DONE_FAILED
                               : gshmem_load_acquire(c->proxy.tail);
}

/* Waits until all positions of channel i before its target have reached that stage. A kernel that
 * was ended between taking a position and writing it leaves one for which all others wait. */
static gshmem_status_t contexts_wait_for(struct kernel_context *k, int i, const uint64_t *target,
                                         enum stage stage, const char *call, bool last)
{
    const uint64_t most = (last ? UNWRITTEN_LAST_S : UNWRITTEN_S) * UINT64_C(1000000000);
    struct unwritten u[CHANNELS_MOST] = {{.position = 0}};
    struct kernel_channel *c = &k->own[i];
    gshmem_status_t status = GSHMEM_OK;
    uint64_t now = 0;
    struct wait w;

    wait_begin(&w, call, WAIT_FOR_NETWORK);
    while (!status && !atomic_load_explicit(&c->abandoned, memory_order_relaxed) &&
           (now = come_to(c, stage)) < target[i]) {
        status = wait_slowly(&w);
        if (!status && any_never_written(k, target, u, most)) {
            atomic_store_explicit(&c->abandoned, last, memory_order_relaxed);
            wait_end(&w);
            return fail(GSHMEM_ERR_DEVICE,
                        "%s: of %llu operations in kernels the first was begun and never came: its "
                        "kernel has ended or does not run",
                        call, (unsigned long long)(target[i] - now));
        }
    }
    wait_end(&w);
    return status;
}

/* What is issued in each channel; where the device cannot read that, nothing is known to be
 * complete. */
static gshmem_status_t ask_tickets(const struct kernel_context *k, uint64_t target[CHANNELS_MOST])
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < k->channels && !status; i++)
        status = memory_ask(k->device, &k->own[i].device->ticket, &target[i]);
    return status;
}

static gshmem_status_t contexts_wait_for_all(struct kernel_context *k, const uint64_t *target,
                                             enum stage stage, const char *call, bool last)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < k->channels; i++) {
        gshmem_status_t one = contexts_wait_for(k, i, target, stage, call, last);
        status = status ? status : one;
    }
    return status;
}

/* A failure that neither a quiet of the host nor one of a kernel has returned yet. */
static gshmem_status_t contexts_take_failure(struct kernel_context *k, struct kernel_channel *c,
                                             const char *call)
{
    const uint64_t failed = gshmem_load_relaxed(c->proxy.failed);
    uint64_t *seen = &c->device->failed_seen, reported;

    if (atomic_exchange_explicit(&c->reported, failed, memory_order_relaxed) == failed)
        return GSHMEM_OK;
    if (k->device->ops->own_heap) { /* GPU memory has no atomics for the CPU; two concurrent quiets
                                       may both return it */
        if (memory_ask(k->device, seen, &reported) != GSHMEM_OK)
            reported = 0;
        if (reported < failed)
            memory_tell(k->device, seen, &failed, sizeof failed);
    } else {
        reported = gshmem_raise_to(seen, failed);
    }
    if (reported >= failed)
        return GSHMEM_OK;
    return fail_silently((gshmem_status_t)(failed & 255),
                         "%s: an operation in a kernel has failed: %s", call,
                         gshmem_status_text((gshmem_status_t)(failed & 255)));
}

/* Whether all of these commands are complete, which takes no lock. */
static bool all_done(struct kernel_context *k, const uint64_t *target)
{
    bool done = true;

    for (int i = 0; i < k->channels; i++)
        done &= come_to(&k->own[i], STAGE_DONE) >= target[i];
    return done;
}

gshmem_status_t kernels_fence(struct kernel_context *k, const char *call)
{
    uint64_t target[CHANNELS_MOST];
    gshmem_status_t status;

    if ((status = ask_tickets(k, target)))
        return status;
    if (k->crosses && (status = network_drain(k->pending, call)))
        return status;
    if (all_done(k, target))
        return GSHMEM_OK;
    status = contexts_wait_for_all(k, target, STAGE_POSTED, call, false);
    if (!status && (k->crosses || network_local_busy(k->network)))
        status = contexts_wait_for_all(k, target, STAGE_DONE, call, false);
    return status;
}

gshmem_status_t kernels_flush(struct kernel_context *k, const char *call)
{
    uint64_t target[CHANNELS_MOST];
    gshmem_status_t status = ask_tickets(k, target);

    if (status || all_done(k, target))
        return status;
    return contexts_wait_for_all(k, target, STAGE_SENT, call, false);
}

gshmem_status_t kernels_quiet(struct kernel_context *k, const char *call, bool last)
{
    uint64_t target[CHANNELS_MOST];
    gshmem_status_t status;

    if ((status = ask_tickets(k, target)))
        return status;
    status = contexts_wait_for_all(k, target, STAGE_DONE, call, last);
    for (int i = 0; i < k->channels && !status; i++)
        status = contexts_take_failure(k, &k->own[i], call);
    return status;
}

/* ---- Kernels of the host device in the trace ---- */

int gshmem_device_traced(void)
{
    return trace_is_on();
}

/* The command's id is that of its last position, which the proxy finds, too (trace_id_of). */
void gshmem_device_trace_post(const uint64_t *tail, uint64_t end, unsigned block, unsigned thread)
{
    const char *shared = (const char *)tail - offsetof(struct channel_shared, tail);
    const uint64_t place = device_kernel_place();

    if (trace_is_on())
        trace_write(TRACE_KERNEL, TRACE_NO_OP, -1,
                    trace_own_id(((const struct channel_shared *)shared)->stream, end - 1),
                    place ? place : kernel_place(0, block, thread), 0);
}

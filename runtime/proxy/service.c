/* What the network does for kernels: their commands go to transports, and their failures to the
 * error policy; the channels that it takes from; and the proxy's last checks before it sleeps. */
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/settings.h"
#include "device/device.h"
#include "runtime/operations/context.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/registration.h"
#include "runtime/network/parts.h"
#include "runtime/proxy/kernels.h"
#include "runtime/teams/team.h"
#include "transport/optional.h"

/* ---- What channels call, with the lock held ---- */

static gshmem_status_t resolve_command(void *context, uint64_t mine, uint64_t bytes, int pe,
                                   const char *call, int *segment, uint64_t *offset)
{
    struct network *n = context;
    const void *at = (const void *)(uintptr_t)mine;
    struct location l;
    char what[64];

    map_resolve(&n->job->map, at, bytes, pe, &l);
    if (l.way == WAY_UNKNOWN_PROGRAM) {
        if (!network_has_met(n, pe))
            return TRANSPORT_FULL;
        network_runs_same(n, pe);
        map_resolve(&n->job->map, at, bytes, pe, &l);
    }
    *segment = l.segment;
    *offset = l.offset;
    /* The local transport refuses a PE of this node whose memory is not mapped. */
    if (l.way <= WAY_NETWORK || l.way == WAY_UNREACHABLE)
        return GSHMEM_OK;
    snprintf(what, sizeof what, "%s in a kernel", call);
    return context_refuse(&l, at, bytes, pe, what);
}

/* Most addresses are in a heap; a query takes calls of the driver, five for GPUs. */
static bool is_memory(void *context, uint64_t address, uint64_t bytes)
{
    struct network *n = context;

    return map_has_memory(&n->job->map, (const void *)(uintptr_t)address, bytes) ||
           registration_holds(n->job->registered, address, bytes) ||
           n->job->device->ops->owns(n->job->device, (const void *)(uintptr_t)address, bytes) ||
           pages_exist(&n->pages, address, bytes);
}

static gshmem_status_t store_result(void *context, void *to, const void *from, size_t bytes)
{
    const struct network *n = context;

    if (n->config.device && n->config.on_device(n->config.context, to, bytes))
        return n->config.device->ops->copy(n->config.device, to, from, bytes);
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

/* Objects that only NICs update: their atomics go to the NIC, whichever PE they are on. */
static bool is_for_nic(const struct network *n, const struct transport_request *r)
{
    const struct segment *s = n->job->map.segment;

    return r->kind == TRANSPORT_ATOMIC
               ? atomicity_is_nic(s[r->segment].atomicity)
               : r->signal_op && atomicity_is_nic(s[r->signal_segment].atomicity);
}

static gshmem_status_t service_flush(void *context)
{
    struct device *d = ((struct network *)context)->job->device;

    return d->ops->flush(d);
}

static gshmem_status_t post_command(void *context, const struct transport_request *request)
{
    struct network *n = context;
    const bool here = n->job->node.index_of[request->pe] >= 0 && !is_for_nic(n, request);
    struct transport *t = here ? n->local : n->remote;

    if (network_lost(n, request->pe))
        return fail_silently(GSHMEM_ERR_PEER_DEAD,
                             "an operation in a kernel: PE %d has died or cannot be reached",
                             request->pe);
    if (!here && !network_has_met(n, request->pe))
        return TRANSPORT_FULL;
    return t->ops->post(t, request);
}

/* What does not fit is not raised: of many failures at once the first few are enough. */
static void raise_command(void *context, gshmem_status_t status, const struct proxy_answer *then)
{
    struct network *n = context;

    int raised = atomic_load_explicit(&n->raised, memory_order_relaxed);

    if (raised == RAISED_MOST) {
        channel_answer(&n->way, then);
        return;
    }
    struct raised *r = &n->raise[raised];
    r->status = status;
    r->then = *then;
    snprintf(r->text, sizeof r->text, "%s", last_error_text());
    atomic_store_explicit(&n->raised, raised + 1, memory_order_relaxed);
    proxy_wake(&n->proxy);
}

void network_raise(struct network *n)
{
    struct raised raise[RAISED_MOST];

    if (!atomic_load_explicit(&n->raised, memory_order_relaxed))
        return; /* a test without the lock; a thread that adds one wakes the proxy */
    mutex_take(&n->lock);
    int count = atomic_load_explicit(&n->raised, memory_order_relaxed);
    memcpy(raise, n->raise, (size_t)count * sizeof raise[0]);
    atomic_store_explicit(&n->raised, 0, memory_order_relaxed);
    mutex_give(&n->lock);
    for (int i = 0; i < count; i++) {
        fail_silently(raise[i].status, "%s", raise[i].text);
        gshmem_raise(raise[i].status);
        channel_answer(&n->way, &raise[i].then);
    }
}

/* ---- Channels ---- */

gshmem_status_t network_serve_kernels(struct network *n, struct gshmem_response *response,
                                      uint32_t *asleep)
{
    const int heap = n->job->device_heap ? SEGMENT_DEVICE : SEGMENT_HEAP;
    gshmem_status_t status = GSHMEM_OK;

    mutex_take(&n->lock);
    if (!n->local && !(status = transport_local.open(&n->config, &n->local)))
        n->local->ops->begin(n->local, &n->config);
    n->asleep = asleep;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    n->way = (struct proxy_way){
        .n_pes = n->job->n_pes,
        .heap = n->job->map.segment[heap].base,
        .heap_bytes = n->job->map.segment[heap].own_bytes,
        .heap_segment = heap,
        .fences = &n->fences,
        .response = response,
        .aim = resolve_command,
        .is_memory = is_memory,
        .store = store_result,
        .post = post_command,
        .flush = service_flush,
        .raise = raise_command,
        .context = n,
    };
    mutex_give(&n->lock);
    if (status || (status = proxy_start(&n->proxy, n)))
        return status;
    proxy_serve_kernels(&n->proxy);
    return GSHMEM_OK;
}

bool network_local_busy(struct network *n)
{
    mutex_take(&n->lock);
    bool busy = n->local && transport_busy(n->local);
    mutex_give(&n->lock);
    return busy;
}

gshmem_status_t network_add_channel(struct network *n, struct proxy_channel *c)
{
    gshmem_status_t status = GSHMEM_OK;

    c->way = &n->way;
    channel_begin(c);
    mutex_take(&n->lock);
    if (n->channels == n->channels_room) {
        int room = n->channels_room ? 2 * n->channels_room : 8;
        struct proxy_channel **more = realloc(n->channel, (size_t)room * sizeof *more);
        if (more) {
            n->channel = more;
            n->channels_room = room;
        } else {
            status = fail(GSHMEM_ERR_MEMORY, "out of memory for %d channels", room);
        }
    }
    if (!status)
        n->channel[n->channels++] = c;
    mutex_give(&n->lock);
    return status;
}

void network_remove_channel(struct network *n, struct proxy_channel *c)
{
    mutex_take(&n->lock);
    for (int i = 0; i < n->channels; i++) {
        if (n->channel[i] == c)
            n->channel[i--] = n->channel[--n->channels];
    }
    mutex_give(&n->lock);
}

bool network_shares_cpu(const struct network *n)
{
    return n->job->node.cpus < 2 * n->job->node.sharers;
}

void network_help(struct network *n)
{
    uint64_t now = clock_ns();

    if (__atomic_exchange_n(n->asleep, 0, __ATOMIC_RELAXED))
        proxy_wake(&n->proxy); /* starting the proxy takes time, so this thread makes this round */
    if (proxy_is_at_it(&n->proxy, now))
        return;
    if (network_shares_cpu(n))
        proxy_stand_aside(&n->proxy);
    network_try_round(n);
}

/* Where there is nothing to do the call is two loads: a wait for a mapped peer must not wake the
 * proxy (docs/decisions/0005). */
void network_receive(struct network *n)
{
    if (n->remote || !__atomic_load_n(n->asleep, __ATOMIC_RELAXED))
        network_help(n);
}

/* A thread that writes a command then tests whether the proxy sleeps, without a fence between the
 * two, for which each command would pay. The proxy makes the fence here, for all threads of the
 * process. Invariant: either a thread sees that the proxy sleeps, or the proxy sees what the thread
 * wrote. Where the system has no such call, a command may be found only when the sleep ends, which
 * is bounded. */
static void fence_all_threads(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

bool network_fall_asleep(struct network *n)
{
    mutex_take(&n->lock);
    bool work = n->local && transport_busy(n->local);
    if (n->asleep) {
        __atomic_store_n(n->asleep, 1, __ATOMIC_RELAXED);
        fence_all_threads();
    }
    for (int i = 0; i < n->channels && !work; i++)
        work = channel_has_work(n->channel[i]);
    work = work || (n->remote && transport_arm(n->remote));
    mutex_give(&n->lock);
    return !work;
}

void network_wake_up(struct network *n)
{
    mutex_take(&n->lock);
    if (n->asleep)
        __atomic_store_n(n->asleep, 0, __ATOMIC_RELAXED);
    mutex_give(&n->lock);
}

static void watch_channels(struct network *n)
{
    uint64_t limit = (uint64_t)settings_number(SETTING_WATCHDOG) * 1000000000u;
    char text[240];

    if (!limit)
        return;
    mutex_take(&n->lock);
    for (int i = 0; i < n->channels; i++) {
        if (channel_overdue(n->channel[i], clock_ns(), limit, text, sizeof text))
            log_line(LOG_ERROR, "watchdog: %s", text);
    }
    mutex_give(&n->lock);
}

void network_look_after(struct network *n)
{
    kernels_look_after(n->job);
    watch_channels(n);
}

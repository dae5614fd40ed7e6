/* The source that kernels are to the network: see service.h. The proxy's last checks before it
 * sleeps are here, too. */
#define _GNU_SOURCE
#include "runtime/proxy/service.h"

#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/registration.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"
#include "runtime/teams/context.h"
#include "runtime/teams/team.h"
#include "transport/optional.h"

enum {
    SHOWN_NS = 300 * 1000 * 1000, /* how long commands stall before gshmem-where is told */
    HELP_ROUNDS = 4, /* with work; a round takes a part of the commands of a full channel */
};

/* ---- What channels call, with the lock held ---- */

static gshmem_status_t resolve_command(void *context, uint64_t mine, uint64_t bytes, int pe,
                                   const char *call, int *segment, uint64_t *offset)
{
    struct service *s = context;
    const void *at = (const void *)(uintptr_t)mine;
    struct location l;
    char what[64];

    map_resolve(s->job->map, at, bytes, pe, &l);
    if (l.way == WAY_UNKNOWN_PROGRAM) {
        if (!network_has_met(s->network, pe))
            return TRANSPORT_FULL;
        network_runs_same(s->network, pe);
        map_resolve(s->job->map, at, bytes, pe, &l);
    }
    *segment = l.segment;
    *offset = l.offset;
    /* The local transport refuses a PE of this node whose memory is not mapped. */
    const bool reached = l.way <= WAY_NETWORK || l.way == WAY_UNREACHABLE;
    if (GSHMEM_LIKELY(reached && !s->job->checked))
        return GSHMEM_OK;
    snprintf(what, sizeof what, "%s in a kernel", call);
    if (reached)
        return context_check(&l, at, bytes, what, false);
    return context_refuse(&l, at, bytes, pe, what);
}

/* Most addresses are in a heap; a query takes calls of the driver, five for GPUs. */
static bool is_memory(void *context, uint64_t address, uint64_t bytes)
{
    struct service *s = context;

    return map_has_memory(s->job->map, (const void *)(uintptr_t)address, bytes) ||
           registration_holds(s->job->registered, address, bytes) ||
           s->job->device->ops->owns(s->job->device, (const void *)(uintptr_t)address, bytes) ||
           pages_exist(&s->pages, address, bytes);
}

static gshmem_status_t check_local(void *context, uint64_t address, uint64_t bytes,
                                   const char *call)
{
    char what[64];

    (void)context;
    snprintf(what, sizeof what, "%s in a kernel", call);
    return context_check_local((const void *)(uintptr_t)address, bytes, what, false);
}

static gshmem_status_t store_result(void *context, void *to, const void *from, size_t bytes)
{
    const struct network *n = ((struct service *)context)->network;

    if (n->config.device && n->config.on_device(n->config.context, to, bytes))
        return n->config.device->ops->copy(n->config.device, to, from, bytes);
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

/* Objects that only NICs update: their atomics go to the NIC, whichever PE they are on. */
static bool is_for_nic(const struct service *service, const struct transport_request *r)
{
    const struct segment *s = service->job->map->segment;

    return r->kind == TRANSPORT_ATOMIC
               ? atomicity_is_nic(s[r->segment].atomicity)
               : r->signal_op && atomicity_is_nic(s[r->signal_segment].atomicity);
}

static gshmem_status_t service_flush(void *context)
{
    struct device *d = ((struct service *)context)->job->device;

    return d->ops->flush(d);
}

static gshmem_status_t post_command(void *context, const struct transport_request *request)
{
    struct service *s = context;
    struct network *n = s->network;
    const bool here = n->node->index_of[request->pe] >= 0 && !is_for_nic(s, request);
    struct transport *t = here ? n->local : n->remote;

    if (network_lost(n, request->pe))
        return fail_silently(GSHMEM_ERR_PEER_DEAD,
                             "an operation in a kernel: PE %d has died or cannot be reached",
                             request->pe);
    if (!here && !network_has_met(n, request->pe))
        return TRANSPORT_FULL;
    /* small operations of threads that were issued before it */
    if (!here && n->open && open_batches_post_to(n, request->pe))
        return TRANSPORT_FULL;
    const gshmem_status_t status = !trace_is_on() ? t->ops->post(t, request)
                                   : here && request->bytes <= TRANSPORT_COPIED
                                       ? carried_post_small(&s->carried, t, request)
                                       : carried_post(t, here, request);
    if (!status)
        network_count(n, request, here ? STATS_PROXY : STATS_PROXY_NETWORK, false);
    return status;
}

/* What does not fit is not raised: of many failures at once the first few are enough. */
static void raise_command(void *context, gshmem_status_t status, const struct proxy_answer *then)
{
    struct service *s = context;
    int raised = atomic_load_explicit(&s->raised, memory_order_relaxed);

    if (raised == RAISED_MOST) {
        channel_answer(&s->way, then);
        return;
    }
    unseen_hand_over();
    struct raised *r = &s->raise[raised];
    r->status = status;
    r->then = *then;
    snprintf(r->text, sizeof r->text, "%s", last_error_text());
    atomic_store_explicit(&s->raised, raised + 1, memory_order_relaxed);
    proxy_wake(&s->network->proxy);
}

/* A member that does not get the word of a round waits, and this PE waits for that member.
 * A PE that has died is found without this. */
static void note_unsent(void *context, uint64_t signal, gshmem_status_t status)
{
    struct service *s = context;
    struct service *first = s->first;
    const int team = first->team_of_sync(s->job, (const void *)(uintptr_t)signal);

    if (team < 0 || status == GSHMEM_ERR_PEER_DEAD)
        return;
    atomic_store_explicit(&first->unsent[team], (uint8_t)status, memory_order_relaxed);
    /* release: pairs with the acquire in fail_unsent */
    atomic_store_explicit(&first->any_unsent, true, memory_order_release);
    proxy_wake(&first->network->proxy);
}

static void service_raise(struct network_source *source)
{
    struct service *s = (struct service *)source;
    struct raised raise[RAISED_MOST];

    if (!atomic_load_explicit(&s->raised, memory_order_relaxed))
        return; /* a test without the lock; a thread that adds one wakes the proxy */
    mutex_take(&s->network->lock);
    int count = atomic_load_explicit(&s->raised, memory_order_relaxed);
    memcpy(raise, s->raise, (size_t)count * sizeof raise[0]);
    atomic_store_explicit(&s->raised, 0, memory_order_relaxed);
    mutex_give(&s->network->lock);
    for (int i = 0; i < count; i++) {
        error_raise_for(raise[i].status, raise[i].text);
        channel_answer(&s->way, &raise[i].then);
    }
}

/* ---- Channels ---- */

gshmem_status_t service_add_channel(struct service *s, struct proxy_channel *c)
{
    gshmem_status_t status = GSHMEM_OK;

    c->way = &s->way;
    channel_begin(c);
    mutex_take(&s->network->lock);
    c->stream = atomic_fetch_add_explicit(&s->first->streams, 1, memory_order_relaxed) %
                    TRACE_STREAMS +
                1;
    if (s->channels == s->channels_room) {
        int room = s->channels_room ? 2 * s->channels_room : 8;
        struct proxy_channel **more = realloc(s->channel, (size_t)room * sizeof *more);
        if (more) {
            s->channel = more;
            s->channels_room = room;
        } else {
            status = fail(GSHMEM_ERR_MEMORY, "out of memory for %d channels", room);
        }
    }
    if (!status)
        s->channel[s->channels++] = c;
    mutex_give(&s->network->lock);
    return status;
}

static struct service *service_of(const struct proxy_channel *c)
{
    return c->way->context;
}

void service_remove_channel(struct proxy_channel *c)
{
    struct service *s = service_of(c);

    mutex_take(&s->network->lock);
    for (int i = 0; i < s->channels; i++) {
        if (s->channel[i] == c)
            s->channel[i--] = s->channel[--s->channels];
    }
    mutex_give(&s->network->lock);
}

uint64_t service_sent(struct proxy_channel *c)
{
    struct service *s = service_of(c);

    mutex_take(&s->network->lock);
    const uint64_t sent = channel_sent(c);
    mutex_give(&s->network->lock);
    return sent;
}

static __attribute__((noinline)) void count_limits(struct service *s, struct proxy_channel *c)
{
    stats_add(s->network->counts, STATS_CHANNEL_FULL, c->found.full);
    stats_add(s->network->counts, STATS_PROXY_FULL, c->found.no_room);
    c->found.full = c->found.no_room = 0;
}

/* Threads that wait read it, so that it is written only if it has changed. */
static inline void note_pending(struct service *s, bool pending)
{
    if (atomic_load_explicit(&s->source.pending, memory_order_relaxed) != pending)
        atomic_store_explicit(&s->source.pending, pending, memory_order_relaxed);
}

static bool service_take(struct network_source *source)
{
    struct service *s = (struct service *)source;
    bool took = false, restless = false, pending = false;

    for (int i = 0; i < s->channels; i++) {
        took |= channel_take(s->channel[i]);
        restless |= channel_waits_for_lane(s->channel[i]);
        pending |= channel_pending(s->channel[i]);
        if (GSHMEM_UNLIKELY(s->channel[i]->found.full || s->channel[i]->found.no_room))
            count_limits(s, s->channel[i]);
    }
    source->restless = restless;
    note_pending(s, pending);
    if (GSHMEM_UNLIKELY(s->carried.id))
        carried_write(&s->carried);
    return took;
}

static void service_publish(struct network_source *source)
{
    struct service *s = (struct service *)source;
    bool pending = false;

    for (int i = 0; i < s->channels; i++) {
        channel_publish(s->channel[i]);
        pending |= channel_pending(s->channel[i]);
    }
    note_pending(s, pending);
}

static bool service_sleeps(const struct service *s)
{
    return __atomic_load_n(s->asleep, __ATOMIC_RELAXED);
}

/* One lane's: wakes the proxy, if it sleeps, or does its work. */
static void service_help_lane(struct service *s, uint64_t now)
{
    struct network *n = s->network;

    if (service_sleeps(s) &&
        __atomic_exchange_n(s->asleep, 0, __ATOMIC_RELAXED))
        proxy_wake(&n->proxy); /* starting the proxy takes time, so this thread makes this round */
    if (proxy_is_at_it(&n->proxy, now))
        return;
    if (network_shares_cpu(n))
        proxy_stand_aside(&n->proxy);
    for (int i = 0; i < HELP_ROUNDS && network_try_round(n); i++)
        continue;
}

void service_wake(struct service *s, const uint32_t *asleep)
{
    for (int i = 0; i < network_lanes(s->network); i++) {
        if (s[i].asleep == asleep)
            service_help_lane(&s[i], clock_ns());
    }
}

/* The same of a further lane, whose proxy is not woken: it has taken all commands when it sleeps.
 * Nor does it stand aside for a thread that finds nothing to do: it would never sleep, and each
 * step of a wait would be a round of each lane (docs/decisions/0037). */
static void help_further(struct network *n, uint64_t now)
{
    bool some = network_drive_further(n, now);

    if ((some || network_pending(n)) && !proxy_is_at_it(&n->proxy, now) && network_shares_cpu(n))
        proxy_stand_aside(&n->proxy);
    for (int i = 1; i < HELP_ROUNDS && some; i++)
        some = network_try_round(n);
}

void service_help(struct service *s)
{
    const uint64_t now = clock_ns();

    service_help_lane(s, now);
    for (int i = 1; i < network_lanes(s->network); i++)
        help_further(s[i].network, now);
}

/* Where there is nothing to do the call is two loads: a wait for a mapped peer must not wake the
 * proxy (docs/decisions/0005). */
void service_receive(struct service *s)
{
    bool all_sleep = true;

    for (int i = 0; i < network_lanes(s->network); i++)
        all_sleep &= service_sleeps(&s[i]);
    if (s->network->remote || !all_sleep)
        service_help(s);
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

static bool service_fall_asleep(struct network_source *source)
{
    struct service *s = (struct service *)source;
    bool work = false;

    __atomic_store_n(s->asleep, 1, __ATOMIC_RELAXED);
    fence_all_threads();
    for (int i = 0; i < s->channels && !work; i++)
        work = channel_has_work(s->channel[i]);
    return work;
}

static void service_wake_up(struct network_source *source)
{
    const struct service *s = (struct service *)source;

    __atomic_store_n(s->asleep, 0, __ATOMIC_RELAXED);
}

/* With the lock. The watchdog's line is said once, and gshmem-where is shown it all the time. */
static void watch_channel(struct service *s, int i, uint64_t limit, service_show_fn *show)
{
    struct proxy_channel *c = s->channel[i];
    const uint64_t now = clock_ns(), stalled = channel_stalled(c, now);
    char text[240];

    if (limit && channel_overdue(c, now, limit, text, sizeof text))
        log_line(LOG_ERROR, "watchdog: %s", text);
    if (stalled < SHOWN_NS)
        return;
    const int pe = channel_describe(c, text, sizeof text);
    show(s->job, i * s->first->network->lanes + s->network->number, pe, text, now - stalled);
}

static void watch_lane(struct service *s, service_show_fn *show)
{
    uint64_t limit = (uint64_t)settings_number(SETTING_WATCHDOG) * 1000000000u;

    mutex_take(&s->network->lock);
    for (int i = 0; i < s->channels; i++)
        watch_channel(s, i, limit, show);
    mutex_give(&s->network->lock);
}

void service_watch(struct service *s, service_show_fn *show)
{
    for (int i = 0; i < network_lanes(s->network); i++)
        watch_lane(&s[i], show);
}

/* ---- Start and stop ---- */

/* Of the further lanes' proxies. */
static void look_after_nothing(struct network_source *source)
{
    (void)source;
}

static void prepare_lane(struct service *s, struct service *first, struct network *lane,
                         struct gshmem_response *response, struct proxy_asleep *asleep,
                         void (*look_after)(struct network_source *s))
{
    struct job *j = lane->job;
    const int heap = j->device_heap ? SEGMENT_DEVICE : SEGMENT_HEAP;

    s->source = (struct network_source){
        .take = service_take,
        .publish = service_publish,
        .fall_asleep = service_fall_asleep,
        .wake_up = service_wake_up,
        .raise = service_raise,
        .look_after = look_after,
    };
    s->job = j;
    s->network = lane;
    s->first = first;
    s->asleep = &asleep[lane->number].word;
    s->way = (struct proxy_way){
        .n_pes = j->n_pes,
        .heap = j->map->segment[heap].base,
        .heap_bytes = j->checked ? 0 : j->map->segment[heap].own_bytes,
        .heap_segment = heap,
        .fences = &lane->fences,
        .response = response,
        .aim = resolve_command,
        .is_memory = is_memory,
        .check_local = j->checked ? check_local : NULL,
        .store = store_result,
        .post = post_command,
        .flush = service_flush,
        .raise = raise_command,
        .unsent = note_unsent,
        .context = s,
    };
}

gshmem_status_t service_start(struct service *s, struct job *j, struct gshmem_response *response,
                              struct proxy_asleep *asleep,
                              void (*look_after)(struct network_source *s))
{
    const int lanes = network_lanes(j->network);
    gshmem_status_t status = GSHMEM_OK;

    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    channel_failures_forget();
    for (int i = 0; i < lanes; i++)
        prepare_lane(&s[i], s, network_lane(j->network, i), response, asleep,
                     i ? look_after_nothing : look_after);
    for (int i = 0; i < lanes && !status; i++) /* from the first on, a proxy looks after all */
        status = network_serve(network_lane(j->network, i), &s[i].source);
    return status;
}

void service_stop(struct service *s)
{
    for (int i = 0; i < LANES_MOST; i++)
        free(s[i].channel);
}

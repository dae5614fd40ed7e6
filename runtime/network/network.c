#define _GNU_SOURCE
#include "runtime/base/system.h"
#include "runtime/network/parts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/atomic_type.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"
#include "runtime/node/choose_device.h"
#include "device/device.h"
#include "runtime/job/job.h"
#include "runtime/memory/symmetric.h"
#include "transport/optional.h"
#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/node/nics.h"
#include "runtime/node/node.h"

enum {
    LET_IN_NS = 100 * 1000,
    /* Of a further lane, by threads that wait: after so many rounds in vain the next are so far
     * apart. */
    VAIN_MOST = 64,
    RARELY_NS = 50 * 1000,
};

/* The blob that a PE has published, with the lock held, under which the bootstrap is not asked.
 * TRANSPORT_FULL: it will be asked, without the lock. A failure is returned once; the next call
 * asks again. */
gshmem_status_t network_recall(struct network *n, int pe, struct pe_blob *blob)
{
    if (!network_has_met(n, pe))
        return TRANSPORT_FULL;
    if (blobs_has(n->blobs, pe))
        return blobs_fetch(n->blobs, pe, blob);
    const int status = atomic_load_explicit(&n->answer, memory_order_relaxed);
    atomic_store_explicit(&n->asked, 0, memory_order_relaxed);
    if (!status) /* there was no memory to keep it */
        return fail(GSHMEM_ERR_MEMORY, "out of memory for what PE %d has published", pe);
    return fail_silently((gshmem_status_t)status,
                         "PE %d cannot be reached: %s; a line above says why", pe,
                         gshmem_status_text((gshmem_status_t)status));
}

/* ---- Progress ---- */

/* Logs its own failures. */
static int progress(struct transport *t)
{
    int events = 0;

    if (t)
        t->ops->progress(t, &events);
    return events;
}

/* What has completed may have been what an open batch waited for. */
static inline int network_progress_remote(struct network *n)
{
    const int events = progress(n->remote);

    if (n->due)
        open_batches_post_due(n);
    return events;
}

static bool drive_for_source(struct network *n)
{
    const bool took = n->source->take(n->source);
    const int events = network_progress_remote(n) + progress(n->local);

    if (events)
        n->source->publish(n->source);
    if (GSHMEM_UNLIKELY((took || events > 0) &&
                        !atomic_load_explicit(&n->used, memory_order_relaxed)))
        atomic_store_explicit(&n->used, true, memory_order_relaxed);
    return took || events > 0;
}

/* Without kernels there is neither a source nor a transport to this node. */
static inline bool drive(struct network *n)
{
    return n->source ? drive_for_source(n) : network_progress_remote(n) > 0;
}

void network_wait_to_enter(struct network *n)
{
    atomic_fetch_add_explicit(&n->at_the_door, 1, memory_order_relaxed);
    mutex_take(&n->lock);
    atomic_fetch_sub_explicit(&n->at_the_door, 1, memory_order_relaxed);
}

/* A thread that waits for the lock was woken when it was released, but waking takes longer than
 * taking the lock again: a busy proxy would keep it from one round to the next. */
static void let_in(struct network *n)
{
    uint64_t end = clock_ns() + LET_IN_NS;

    while (atomic_load_explicit(&n->at_the_door, memory_order_relaxed) && clock_ns() < end)
        clock_yield();
}

/* Without the lock: see network_has_met. One thread asks for all; others go on making progress. */
__attribute__((noinline)) static bool ask_of_wanted(struct network *n)
{
    /* pairs with the release below */
    if (atomic_exchange_explicit(&n->asking, true, memory_order_acquire))
        return false;
    const int wanted = atomic_exchange_explicit(&n->wanted, 0, memory_order_relaxed);

    if (wanted) {
        gshmem_status_t answer = network_look_up(n, wanted - 1);
        atomic_store_explicit(&n->answer, (int)answer, memory_order_relaxed);
        /* pairs with the acquire in network_has_met */
        atomic_store_explicit(&n->asked, wanted, memory_order_release);
    }
    atomic_store_explicit(&n->asking, false, memory_order_release);
    if (wanted &&
        network_has_proxy(n)) /* the proxy may have gone to sleep meanwhile, and nothing else
                                   wakes it */
        proxy_wake(&n->proxy);
    return wanted != 0;
}

static inline bool network_is_wanted(const struct network *n)
{
    return GSHMEM_UNLIKELY(atomic_load_explicit(&n->wanted, memory_order_relaxed));
}

bool network_ask(struct network *n)
{
    return network_is_wanted(n) && ask_of_wanted(n);
}

bool network_round(struct network *n)
{
    mutex_take(&n->lock);
    if (fetches_wait(n))
        fetches_post(n);
    bool some = drive(n);
    some |= n->source && n->source->restless;
    fetches_give(n);
    some |= network_ask(n);
    if (atomic_load_explicit(&n->at_the_door, memory_order_relaxed))
        let_in(n);
    return some;
}

/* With the lock held, which it releases. for_what: 0, or what this thread waits for; then what it
 * has issued is sent now. */
static inline bool network_drive_held(struct network *n, enum network_purpose for_what)
{
    if (for_what && n->open)
        open_batches_post_all(n);
    if (fetches_wait(n) && !fetches_return(n)) /* else more of them are to be expected at once */
        fetches_post(n);
    n->for_update = for_what == NETWORK_FOR_UPDATE;
    bool some = drive(n);
    n->for_update = false;
    fetches_give(n);
    return network_ask(n) || some;
}

void network_drive_fetches(struct network *n)
{
    proxy_stand_aside(&n->proxy);
    if (!mutex_try(&n->lock))
        return;
    fetches_post(n);
    network_drive_held(n, NETWORK_FOR_REQUESTS);
}

/* The thread that holds the lock makes progress for all. */
bool network_try_round(struct network *n)
{
    return mutex_try(&n->lock) && network_drive_held(n, NETWORK_FOR_OTHERS);
}

bool network_pending(const struct network *n)
{
    /* acquire: pairs with the release in proxy_serve_kernels, before which there is no source */
    return atomic_load_explicit(&n->proxy.kernels, memory_order_acquire) &&
           atomic_load_explicit(&n->source->pending, memory_order_relaxed);
}

/* Relaxed, all of them: that two threads make a round where one was due does no harm. */
bool network_drive_further(struct network *n, uint64_t now)
{
    const uint32_t vain = atomic_load_explicit(&n->vain, memory_order_relaxed);

    if (!network_has_proxy(n) || proxy_is_at_it(&n->proxy, now))
        return false;
    if (vain >= VAIN_MOST && !network_pending(n) &&
        now - atomic_load_explicit(&n->helped, memory_order_relaxed) < RARELY_NS)
        return false;
    const bool some = network_try_round(n);
    atomic_store_explicit(&n->helped, now, memory_order_relaxed);
    if (some || vain < VAIN_MOST)
        atomic_store_explicit(&n->vain, some ? 0 : vain + 1, memory_order_relaxed);
    return some;
}

static __attribute__((noinline)) bool drive_lanes(struct network *n)
{
    const uint64_t now = clock_ns();
    bool some = false;

    for (int i = 1; i < n->lanes; i++)
        some |= network_drive_further(n->lane[i], now);
    return some;
}

bool network_drive(struct network *n, enum network_purpose for_what)
{
    if (!network_has_proxy(n))
        return false;
    proxy_stand_aside(&n->proxy);
    const bool some = mutex_try(&n->lock) && network_drive_held(n, for_what);
    return GSHMEM_LIKELY(n->lanes == 1) ? some : drive_lanes(n) || some;
}

void network_send(struct network *n)
{
    if (!network_has_proxy(n))
        return;
    network_enter(n);
    network_drive_held(n, NETWORK_FOR_REQUESTS);
}

void network_drive_on(struct network *n)
{
    if (!network_has_proxy(n))
        return;
    proxy_stand_aside(&n->proxy);
    if (!mutex_try(&n->lock))
        return;
    drive(n);
    fetches_give(n);
    if (network_is_wanted(n))
        proxy_wake(&n->proxy); /* to ask, since the launcher may be slow */
}

static bool arm_lane(struct network *n)
{
    if (!n->remote)
        return false;
    mutex_take(&n->lock);
    bool some = fetches_wait(n) && fetches_post(n);
    some |= transport_arm(n->remote) || n->due_anew;
    mutex_give(&n->lock);
    return some;
}

bool network_arm(struct network *n)
{
    bool some = false;

    for (int i = 0; i < n->lanes && !some; i++)
        some = arm_lane(n->lane[i]);
    return some;
}

void network_sleep(struct network *n, uint64_t ns)
{
    struct pollfd arrival[LANES_MOST];

    for (int i = 0; i < n->lanes; i++)
        arrival[i] = (struct pollfd){.fd = network_wait_fd(n->lane[i]), .events = POLLIN};
    if (!network_arm(n))
        system_poll(arrival, (nfds_t)n->lanes, (int64_t)ns);
}

int network_wait_fd(const struct network *n)
{
    return n->remote ? transport_wait_fd(n->remote) : -1;
}

const struct proxy_work network_proxy_work = {
    .round = network_round,
    .ask = network_ask,
    .wait_fd = network_wait_fd,
    .fall_asleep = network_fall_asleep,
    .wake_up = network_wake_up,
    .shares_cpu = network_shares_cpu,
    .look_around = network_look_around,
    .raise = network_raise,
    .look_after = network_look_after,
};

/* ---- For the source ---- */

int network_lanes(const struct network *n)
{
    return n->lanes;
}

struct network *network_lane(struct network *n, int number)
{
    return n->lane[number];
}

gshmem_status_t network_serve(struct network *n, struct network_source *source)
{
    gshmem_status_t status = GSHMEM_OK;

    mutex_take(&n->lock);
    if (!n->local && !(status = transport_local.open(&n->config, &n->local)))
        n->local->ops->begin(n->local, &n->config);
    if (!status)
        n->source = source;
    mutex_give(&n->lock);
    if (status || (status = proxy_start(&n->proxy, n, &network_proxy_work)))
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

/* A further lane that has had nothing to do so far does not count: its proxy sleeps. */
bool network_shares_cpu(const struct network *n)
{
    const struct network *first = n->first;
    int busy = 2; /* a thread of the program, and lane 0's proxy */

    for (int i = 1; i < first->lanes; i++)
        busy += n == first->lane[i] ||
                atomic_load_explicit(&first->lane[i]->used, memory_order_relaxed);
    return n->node->cpus < busy * n->node->sharers;
}

bool network_fall_asleep(struct network *n)
{
    mutex_take(&n->lock);
    bool work = n->local && transport_busy(n->local);
    if (n->source)
        work |= n->source->fall_asleep(n->source);
    /* relaxed: who enters one makes progress itself. One for which there was no room is no work. */
    work = work || atomic_load_explicit(&n->fetches, memory_order_relaxed) ||
           (n->remote && (transport_arm(n->remote) || n->due_anew));
    mutex_give(&n->lock);
    return !work;
}

void network_wake_up(struct network *n)
{
    mutex_take(&n->lock);
    if (n->source)
        n->source->wake_up(n->source);
    mutex_give(&n->lock);
}

void network_raise(struct network *n)
{
    if (n->source)
        n->source->raise(n->source);
}

void network_look_after(struct network *n)
{
    n->source->look_after(n->source);
}

/* ---- Order ---- */

/* Relaxed: a fence orders what its own thread posts, and what others post once they have
 * synchronized with it. */
void network_fence(struct network *n)
{
    if (n->remote)
        atomic_fetch_add_explicit(&n->fences, 1, memory_order_relaxed);
}

/* ---- What is asked of it ---- */

int network_nics_update(struct network *n, char *why, size_t why_size)
{
    int answer = 0;

    if (!n->remote) {
        snprintf(why, why_size, "the job is on one node");
        return 0;
    }
    mutex_take(&n->lock);
    answer = transport_updates(n->remote, why, why_size);
    mutex_give(&n->lock);
    return answer;
}

bool network_pins(struct network *n, const void *mine, size_t bytes)
{
    struct location l;

    if (!n || !n->remote || !map_find(n->job->map, mine, bytes, &l))
        return false;
    bool pinned = false;
    for (int i = 0; i < n->lanes && !pinned; i++) {
        mutex_take(&n->lane[i]->lock);
        pinned = transport_pins(n->lane[i]->remote, l.segment, l.offset, bytes);
        mutex_give(&n->lane[i]->lock);
    }
    return pinned;
}

void network_forget(struct network *n, const void *mine, size_t bytes)
{
    if (!n || !n->remote || !bytes)
        return;
    for (int i = 0; i < n->lanes; i++) {
        mutex_take(&n->lane[i]->lock);
        transport_forget(n->lane[i]->remote, SEGMENT_DEVICE,
                         (uintptr_t)mine - n->job->map->segment[SEGMENT_DEVICE].base, bytes);
        mutex_give(&n->lane[i]->lock);
    }
}

void network_expect_end(struct network *n)
{
    atomic_store_explicit(&n->ending, true, memory_order_relaxed);
}

bool network_expects_end(const struct network *n)
{
    return atomic_load_explicit(&n->first->ending, memory_order_relaxed);
}

bool network_runs_same(struct network *n, int pe)
{
    struct memory_map *map = n->job->map;
    struct pe_blob blob;

    if (map_program(map, pe) == PROGRAM_UNKNOWN && !network_recall(n, pe, &blob))
        map_learn_program(map, pe,
                          blob.data_segments == (uint32_t)n->job->data->n &&
                              blob.data_digest == n->job->data->digest);
    return map_program(map, pe) == PROGRAM_SAME;
}

gshmem_status_t network_look_up(struct network *n, int pe)
{
    struct pe_blob blob;

    return blobs_fetch(n->blobs, pe, &blob);
}

void network_learn_program(struct network *n, int pe)
{
    if (network_meet(n, pe))
        return;
    mutex_take(&n->lock);
    network_runs_same(n, pe);
    mutex_give(&n->lock);
}

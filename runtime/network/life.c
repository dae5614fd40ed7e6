/* The network's start: opened before the PEs' blobs are exchanged, started once memory is mapped;
 * and what transports call from then on. Its end is in ends.c. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/count.h"
#include "runtime/base/biased_lock.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/memory/symmetric.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/choose_device.h"
#include "runtime/node/node.h"
#include "transport/optional.h"

enum {
    DESCRIPTORS_SPARE = 256, /* for all but streams, the program's own among them */
};

/* ---- Functions that the transport calls ---- */

static gshmem_status_t network_find(void *context, int pe, void *address, size_t capacity,
                                    size_t *bytes)
{
    struct network *n = context;
    struct pe_blob blob;
    gshmem_status_t status = network_recall(n, pe, &blob);

    if (status)
        return status;
    const size_t first = (size_t)blob.transport_bytes - blob.lane_bytes;
    if (blob.lane_bytes > blob.transport_bytes || first > capacity)
        return fail(GSHMEM_ERR_BOOTSTRAP, "PE %d published an address of %u bytes", pe,
                    blob.transport_bytes);
    if (n->number) {
        *bytes = lanes_decode(blob.transport, first, blob.transport + first, blob.lane_bytes,
                              n->number, address, capacity);
        return *bytes ? GSHMEM_OK
                      : fail(GSHMEM_ERR_MISMATCH,
                             "PE %d has fewer proxies than this PE, which has %d: set "
                             "GSHMEM_PROXIES to the same number for all PEs",
                             pe, n->first->lanes);
    }
    memcpy(address, blob.transport, first);
    *bytes = first;
    return GSHMEM_OK;
}

/* Two PEs agree on their key when they first connect, since that takes 0.1 ms. */
static gshmem_status_t key(void *context, int pe, unsigned char out[TRANSPORT_KEY_BYTES])
{
    struct network *n = context;
    struct peer_key *k = &n->key[pe];
    struct pe_blob blob;
    gshmem_status_t status;

    if (!k->known && ((status = network_recall(n, pe, &blob)) ||
                      (status = keys_agree(&n->first->keys, n->job->pe, pe, blob.public_key,
                                           k->key))))
        return status;
    k->known = true;
    memcpy(out, k->key, sizeof k->key);
    return GSHMEM_OK;
}

static uint64_t network_apply(void *context, enum gshmem_amo amo, int type, void *target,
                              uint64_t operand, uint64_t compare)
{
    (void)context;
    return atomic_apply(amo, type, target, operand, compare);
}

static char *mapped(void *context, int pe, int segment)
{
    const struct segment *s = &((struct network *)context)->job->map->segment[segment];
    const uintptr_t *peer = atomicity_is_device(s->atomicity) ? s->copied : s->mapped;

    return peer ? (char *)peer[pe] : NULL;
}

/* Of the heap in a device's memory, counted from where all of it begins. */
static int imported(void *context, uint64_t offset, uint64_t bytes)
{
    return symmetric_imported(((struct network *)context)->job, offset, bytes);
}

/* Most addresses are in a heap, for which the driver need not be queried. */
static int on_device(void *context, const void *at, uint64_t bytes)
{
    const struct network *n = context;
    struct location l;

    map_find(n->job->map, at, 0, &l);
    if (l.segment != SEGMENT_NONE)
        return atomicity_is_device(l.atomicity);
    return n->job->device->ops->owns(n->job->device, at, bytes);
}

static void received(void *context, int from, const void *note, size_t bytes)
{
    struct network *n = context;

    transport_receive(n->remote, from, note, bytes);
}

static int nic_distance(void *context, const char *device, const char **text)
{
    return network_distance(&((struct network *)context)->center, device, text);
}

static int64_t number_of_lane(const char *setting)
{
    return lanes_share(setting, settings_number_of(setting),
                       (int)settings_number(SETTING_PROXIES));
}

/* With the lock held, as all calls of transports. */
static void network_count_event(void *context, enum transport_event what)
{
    static const enum stats_value value[] = {
        [TRANSPORT_CONNECTED] = STATS_CONNECTIONS,
        [TRANSPORT_RECONNECTED] = STATS_RECONNECTIONS,
        [TRANSPORT_RETRIED] = STATS_RETRIES,
        [TRANSPORT_PATH_FAILED] = STATS_PATH_FAILURES,
    };

    stats_add(((struct network *)context)->counts, value[what], 1);
}

/* ---- From start to end ---- */

/* Each PE of another node may take two descriptors of each lane: one stream in each direction. A
 * process whose limit is too low for all of them starts anyway, since most programs communicate
 * with few PEs. */
static void allow_streams(const struct job *j, int lanes)
{
    const rlim_t need =
        2 * (rlim_t)lanes * (rlim_t)(j->n_pes - j->node->n) + DESCRIPTORS_SPARE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        log_info("start-up: up to %llu open files from here on, for connections (ulimit -n)",
                 (unsigned long long)limit.rlim_cur);
    if (limit.rlim_cur < need)
        log_info("start-up: connections to all PEs of other nodes need %llu open files, and the "
                 "limit is %llu "
                 "(ulimit -Hn)",
                 (unsigned long long)need, (unsigned long long)limit.rlim_cur);
}

static int waits_for_update(void *context)
{
    return ((const struct network *)context)->for_update;
}

/* Lane `number` of the PE, with nothing open. */
static gshmem_status_t network_new(struct job *j, struct network *first, int number)
{
    struct network *n = calloc(1, sizeof *n);

    if (!n)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    n->first = first ? first : n;
    n->number = number;
    n->lanes = 1;
    n->lane[0] = n;
    n->first->lane[number] = n;
    n->first->lanes = number + 1;
    j->network = n->first;
    n->job = j;
    n->node = j->node;
    n->blobs = j->blobs;
    n->counts = number ? stats_new_block(j->stats, true) : j->stats->network;
    n->proxy.counts = number ? stats_new_block(j->stats, false) : j->stats->proxy;
    n->proxy.number = number;
    atomic_init(&n->fences, count_first());
    n->config = (struct transport_config){
        .size = sizeof n->config,
        .fail = fail,
        .fail_handled = fail_handled,
        .info = log_info_transport,
        .pe = j->pe,
        .n_pes = j->n_pes,
        .one_machine = j->bootstrap->one_machine,
        .context = n,
        .find = network_find,
        .key = key,
        .apply = network_apply,
        .lost = network_lose,
        .refused = network_be_refused,
        .notified = network_be_notified,
        .waits_for_update = waits_for_update,
        .mapped = mapped,
        .number = number_of_lane,
        .text = settings_string_of,
        .received = received,
        .distance = nic_distance,
        .count = network_count_event,
        .turn = j->node->index,
    };
    n->to_heap = (struct transport_request){
        .kind = TRANSPORT_PUT, .flags = TRANSPORT_LOOSE | TRANSPORT_MORE, .segment = SEGMENT_HEAP};
    n->notified = calloc((size_t)j->n_pes, sizeof *n->notified);
    n->refused = first ? first->refused : calloc((size_t)j->n_pes, sizeof *n->refused);
    if (!n->notified || !n->refused || !n->counts || !n->proxy.counts)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    return GSHMEM_OK;
}

/* Opens a lane's way to other nodes. */
static gshmem_status_t network_open_lane(struct network *n, void *address, size_t capacity,
                                         size_t *bytes)
{
    gshmem_status_t status;

    if (!(n->key = calloc((size_t)n->job->n_pes, sizeof *n->key)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", n->job->n_pes);
    n->config.nearest = n->first->nearest;
    if ((status = network_choose(n)))
        return status;
    return transport_address(n->remote, address, capacity, bytes);
}

/* The further lanes. Their addresses are published behind the first one's. */
static gshmem_status_t network_open_lanes(struct network *n, unsigned char *address,
                                          size_t capacity, size_t *bytes)
{
    const size_t first = *bytes;

    for (int i = 1; i < n->lanes; i++) {
        unsigned char own[TRANSPORT_ADDRESS_MAX];
        size_t own_bytes = 0, more;
        gshmem_status_t status =
            network_open_lane(n->lane[i], own, sizeof own, &own_bytes);
        if (status)
            return status;
        if (!n->lane[i]->config.below != !n->config.below)
            return fail(GSHMEM_ERR_TRANSPORT,
                        "start-up: GSHMEM_PROXIES=%d: proxy %d cannot have the transport of proxy "
                        "0; take fewer proxies, or set GSHMEM_TRANSPORT",
                        n->lanes, i);
        if (!(more = lanes_encode(address, first, own, own_bytes, address + *bytes,
                                  capacity - *bytes)))
            return fail(GSHMEM_ERR_TRANSPORT,
                        "start-up: GSHMEM_PROXIES=%d: the addresses of %d proxies do not fit into "
                        "the %zu bytes that a PE publishes; restrict them (GSHMEM_TCP_IF, "
                        "GSHMEM_IB_HCA), or take fewer proxies",
                        n->lanes, n->lanes, capacity);
        *bytes += more;
    }
    return GSHMEM_OK;
}

gshmem_status_t network_open(struct job *j, const gshmem_uniqueid_t *uid, void *address,
                             size_t capacity, size_t *bytes, size_t *lane_bytes,
                             unsigned char public_key[X25519_BYTES])
{
    const int lanes = (int)settings_number(SETTING_PROXIES);
    gshmem_status_t status = network_new(j, NULL, 0);
    struct network *n = j->network;

    *bytes = *lane_bytes = 0;
    for (int i = 1; i < lanes && !status; i++)
        status = network_new(j, n, i);
    if (status || j->bootstrap->n_hosts == 1)
        return status;
    allow_streams(j, lanes);
    if (!blobs_keep(j->blobs))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    if ((status = keys_draw(&n->keys, uid)))
        return status;
    memcpy(public_key, n->keys.public, X25519_BYTES);
    if (strcmp(settings_string(SETTING_TCP_IF), "nearest") == 0)
        device_nearest_interfaces(j->node->index, n->nearest, sizeof n->nearest);
    if ((status = network_open_lane(n, address, capacity, bytes)))
        return status;
    const size_t first = *bytes;
    status = network_open_lanes(n, address, capacity, bytes);
    *lane_bytes = *bytes - first;
    return status;
}

/* The map's segments, in the form for transports. */
static void name_segments(struct network *n)
{
    const struct job *j = n->job;

    n->config.segments = SEGMENT_DATA + j->data->n;
    for (int i = 0; i < n->config.segments; i++) {
        const struct segment *s = &j->map->segment[i];
        n->config.segment[i] = (struct transport_segment){
            .base = (char *)s->base,
            .bytes = s->bytes,
            .of_device = atomicity_is_device(s->atomicity),
            .there = s->there,
            .imported = s->imported ? imported : NULL,
            .context = n,
            .by_nic = atomicity_is_nic(s->atomicity),
        };
    }
}

static void serve_device_heap(struct network *n)
{
    const struct job *j = n->job;

    n->config.device = j->device;
    n->config.on_device = on_device;
    n->config.way = j->nic_way == NIC_BY_DMA_BUF   ? TRANSPORT_BY_DMA_BUF
                    : j->nic_way == NIC_BY_PEERMEM ? TRANSPORT_BY_PEERMEM
                                                   : TRANSPORT_BY_STAGING;
    n->config.staging = (uint64_t)settings_number(SETTING_STAGING);
}

static gshmem_status_t network_start_lane(struct network *n)
{
    const struct job *j = n->job;

    n->lost = j->node->lost;
    name_segments(n);
    if (j->device_heap)
        serve_device_heap(n);
    n->config.flushes = j->flushes;
    if (!n->remote)
        return GSHMEM_OK;
    n->remote->ops->begin(n->remote, &n->config);
    return proxy_start(&n->proxy, n, &network_proxy_work);
}

gshmem_status_t network_start(struct job *j)
{
    struct network *n = j->network;
    gshmem_status_t status = GSHMEM_OK;

    if (!n->config.below && settings_number(SETTING_CUDA_FLUSH) == CHOICE_CUDA_FLUSH_AUTO)
        j->flushes = false; /* no NIC writes to a GPU */
    /* before there are proxies: while a process has one thread, this costs nothing */
    n->batches_have_owners = network_takes_batches(n) && biased_lock_prepare();
    for (int i = 0; i < n->lanes && !status; i++)
        status = network_start_lane(n->lane[i]);
    return status;
}

bool network_is_needed(const struct network *n)
{
    return n->remote != NULL;
}

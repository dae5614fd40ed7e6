#define _GNU_SOURCE
#include "runtime/network/parts.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"
#include "runtime/device.h"
#include "device/device.h"
#include "runtime/job.h"
#include "runtime/memory/symmetric.h"
#include "runtime/proxy/modules.h"
#include "transport/optional.h"

enum {
    FAREWELL_MS = 2000, /* how long finalize waits for the last responses to be sent */
    DESCRIPTORS_SPARE = 256, /* for uses other than streams, the program's own among them */
    LET_IN_NS = 100 * 1000,
    ENTER_MS = 5000, /* many times as long as a thread holds the lock */
};

/* ---- Functions that the transport calls ---- */

/* The blob that a PE has published, with the lock held, under which the bootstrap is not asked.
 * TRANSPORT_FULL: it will be asked, without the lock. A failure is returned once; the next call
 * asks again. */
static gshmem_status_t recall(struct network *n, int pe, struct job_blob *blob)
{
    if (!network_has_met(n, pe))
        return TRANSPORT_FULL;
    if (job_has_blob(n->job, pe))
        return job_fetch(n->job, pe, blob);
    const int status = atomic_load_explicit(&n->answer, memory_order_relaxed);
    atomic_store_explicit(&n->asked, 0, memory_order_relaxed);
    if (!status) /* there was no memory to keep it */
        return fail(GSHMEM_ERR_MEMORY, "out of memory for what PE %d has published", pe);
    return fail_silently((gshmem_status_t)status, "PE %d cannot be reached: %s; a line above says why", pe,
                         gshmem_status_text((gshmem_status_t)status));
}

static gshmem_status_t network_find(void *context, int pe, void *address, size_t capacity,
                                    size_t *bytes)
{
    struct network *n = context;
    struct job_blob blob;
    gshmem_status_t status = recall(n, pe, &blob);

    if (status)
        return status;
    if (blob.transport_bytes > capacity)
        return fail(GSHMEM_ERR_BOOTSTRAP, "PE %d published an address of %u bytes", pe,
                    blob.transport_bytes);
    memcpy(address, blob.transport, blob.transport_bytes);
    *bytes = blob.transport_bytes;
    return GSHMEM_OK;
}

/* Two PEs agree on their key when they first connect, since a job may have many PEs that never
 * do. */
static gshmem_status_t key(void *context, int pe, unsigned char out[TRANSPORT_KEY_BYTES])
{
    struct network *n = context;
    struct peer_key *k = &n->key[pe];
    struct job_blob blob;
    gshmem_status_t status;

    if (!k->known && ((status = recall(n, pe, &blob)) ||
                      (status = keys_agree(&n->keys, n->job->pe, pe, blob.public_key, k->key))))
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
    const struct segment *s = &((struct network *)context)->job->map.segment[segment];
    const uintptr_t *peer = atomicity_is_device(s->atomicity) ? s->copied : s->mapped;

    return peer ? (char *)peer[pe] : NULL;
}

/* Of the heap in a device's memory, counted from where all of it begins. */
static int lent(void *context, uint64_t offset, uint64_t bytes)
{
    return symmetric_imported(((struct network *)context)->job, offset, bytes);
}

/* Most addresses are in a heap, for which the driver need not be queried. */
static int on_device(void *context, const void *at, uint64_t bytes)
{
    const struct network *n = context;
    struct location l;

    map_find(&n->job->map, at, 0, &l);
    if (l.segment != SEGMENT_NONE)
        return atomicity_is_device(l.atomicity);
    return n->job->device->ops->owns(n->job->device, at, bytes);
}

static void heard(void *context, int from, const void *note, size_t bytes)
{
    struct network *n = context;

    transport_hear(n->remote, from, note, bytes);
}

static const char *setting_text(int setting)
{
    return settings_string((enum setting)setting);
}

static int64_t setting_number(int setting)
{
    return settings_number((enum setting)setting);
}

static int network_distance(void *context, const char *device, const char **text)
{
    return nics_distance("/sys", context, device, text);
}

static int nic_distance(void *context, const char *device, const char **text)
{
    return network_distance(&((struct network *)context)->center, device, text);
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

static bool drive_for_kernels(struct network *n)
{
    bool took = false;
    int events;

    for (int i = 0; i < n->channels; i++)
        took |= channel_take(n->channel[i]);
    events = progress(n->remote) + progress(n->local);
    for (int i = 0; events && i < n->channels; i++)
        channel_publish(n->channel[i]);
    return took || events > 0;
}

/* Without kernels there is neither a channel nor a transport to this node. */
static inline bool drive(struct network *n)
{
    return n->local ? drive_for_kernels(n) : progress(n->remote) > 0;
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
        sched_yield();
}

/* acquire: pairs with the release in proxy_start */
static bool has_proxy(const struct network *n)
{
    return atomic_load_explicit(&n->proxy.runs, memory_order_acquire);
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
    if (wanted && has_proxy(n)) /* the proxy may have gone to sleep meanwhile, and nothing else
                                   wakes it */
        proxy_wake(&n->proxy);
    return wanted != 0;
}

static inline bool network_is_wanted(const struct network *n)
{
    return GSHMEM_UNLIKELY(atomic_load_explicit(&n->wanted, memory_order_relaxed));
}

bool network_round(struct network *n)
{
    mutex_take(&n->lock);
    bool some = drive(n);
    mutex_give(&n->lock);
    if (network_is_wanted(n))
        some |= ask_of_wanted(n);
    if (atomic_load_explicit(&n->at_the_door, memory_order_relaxed))
        let_in(n);
    return some;
}

/* The thread that holds the lock makes progress for all. */
bool network_try_round(struct network *n)
{
    if (!mutex_try(&n->lock))
        return false;
    bool some = drive(n);
    mutex_give(&n->lock);
    return network_is_wanted(n) ? ask_of_wanted(n) || some : some;
}

GSHMEM_HOT bool network_drive(struct network *n)
{
    if (!has_proxy(n))
        return false;
    proxy_stand_aside(&n->proxy);
    return network_try_round(n);
}

bool network_arm(struct network *n)
{
    if (!n->remote)
        return false;
    mutex_take(&n->lock);
    bool some = transport_arm(n->remote);
    mutex_give(&n->lock);
    return some;
}

void network_sleep(struct network *n, uint64_t ns)
{
    struct pollfd arrival = {.fd = network_wait_fd(n), .events = POLLIN};
    struct timespec most = {.tv_nsec = (long)ns};

    if (!network_arm(n))
        ppoll(&arrival, 1, &most, NULL);
}

int network_wait_fd(const struct network *n)
{
    return n->remote ? transport_wait_fd(n->remote) : -1;
}

/* ---- Order ---- */

/* Relaxed: a fence orders what its own thread posts, and what others post once they have
 * synchronized with it. */
void network_fence(struct network *n)
{
    if (n->remote)
        atomic_fetch_add_explicit(&n->fences, 1, memory_order_relaxed);
}

/* ---- Life ---- */

/* The module's functions, or NULL with the reason. */
static const struct transport_ops *find_verbs(char *why, size_t why_size)
{
    const struct transport_ops *ops = module_symbol("verbs", "gshmem_transport", why, why_size);

    if (ops && (ops->size != sizeof *ops || ops->version != TRANSPORT_VERSION)) {
        snprintf(why, why_size,
                 "module gshmem-verbs.so is of another version of GSHMEM (interface %u, expected %u)",
                 ops->version, TRANSPORT_VERSION);
        return NULL;
    }
    if (ops && ops->settings && strcmp(ops->settings, settings_layout) != 0) {
        snprintf(why, why_size, "module gshmem-verbs.so is of another version of GSHMEM (it knows other settings)");
        return NULL;
    }
    if (ops && !transport_is_complete(ops)) {
        snprintf(why, why_size, "module gshmem-verbs.so leaves a slot of gshmem_transport empty that has no default");
        return NULL;
    }
    if (!ops && strstr(why, "libibverbs.so"))
        snprintf(why, why_size, "libibverbs.so.1 is not installed (Debian: packages libibverbs1 and "
                                "ibverbs-providers)");
    return ops;
}

bool network_verbs_usable(char *why, size_t why_size)
{
    const struct transport_config config = {.number = setting_number, .text = setting_text};
    const struct transport_ops *ops = find_verbs(why, why_size);

    return ops && transport_usable(ops, &config, why, why_size) > 0;
}

/* Most machines have no NIC: their PEs do not load libibverbs, and have no part of the heap for
 * NICs. */
static bool system_has_rdma(void)
{
    return access("/sys/class/infiniband", F_OK) == 0;
}

bool network_may_have_nics(int hosts)
{
    const int64_t asked = settings_number(SETTING_TRANSPORT);

    return hosts > 1 && (asked == TRANSPORT_VERBS || (asked == TRANSPORT_AUTO && system_has_rdma()));
}

int network_nics_update(struct network *n, char *why, size_t why_size)
{
    int answer = 0;

    if (!n->remote) {
        snprintf(why, why_size, "the job is on one host");
        return 0;
    }
    mutex_take(&n->lock);
    answer = transport_updates(n->remote, why, why_size);
    mutex_give(&n->lock);
    return answer;
}

void network_verbs_report(transport_line *line, void *to)
{
    struct nic_center center;
    const struct transport_config config = {.number = setting_number,
                                            .text = setting_text,
                                            .context = &center,
                                            .distance = network_distance};
    char why[300];
    const struct transport_ops *ops = find_verbs(why, sizeof why);
    int parts;

    device_find_center(0, true, &center, &parts);
    if (ops)
        transport_report(ops, &config, line, to);
}

/* Adds verbs on top of TCP, where they can be used. TCP then carries their control messages, and
 * requests that NICs cannot. */
static gshmem_status_t add_verbs(struct network *n)
{
    int64_t asked = settings_number(SETTING_TRANSPORT);
    char why[300];

    if (asked == TRANSPORT_ONLY_TCP)
        return GSHMEM_OK;
    if (asked == TRANSPORT_AUTO && !system_has_rdma()) {
        log_info("transport verbs is not used: this machine has no RDMA device");
        return GSHMEM_OK;
    }
    const struct transport_ops *ops = find_verbs(why, sizeof why);
    if (ops)
        device_find_center(n->config.turn, modules_any("cuda"), &n->center, &n->config.parts);
    const int usable = ops ? transport_usable(ops, &n->config, why, sizeof why) : 0;
    if (usable < 0)
        return fail(GSHMEM_ERR_ARGUMENT, "%s", why);
    if (!usable) {
        if (asked == TRANSPORT_VERBS)
            return fail(GSHMEM_ERR_UNREACHABLE, "GSHMEM_TRANSPORT=verbs: %s", why);
        log_info("transport verbs is not used: %s", why);
        return GSHMEM_OK;
    }
    struct transport *verbs = NULL; /* nothing remains after a failure */
    n->config.below = n->remote;
    log_info("transport verbs: %s", why);
    gshmem_status_t status = ops->open(&n->config, &verbs);
    if (!status)
        n->remote = verbs;
    if (!status || asked == TRANSPORT_VERBS)
        return status;
    log_warn("transport verbs is not used, as it could not be opened: other hosts are reached by tcp");
    n->config.below = NULL;
    return GSHMEM_OK;
}

static gshmem_status_t network_choose(struct network *n)
{
    char why[200];
    gshmem_status_t status;

    if (!transport_tcp.usable(&n->config, why, sizeof why))
        return fail(GSHMEM_ERR_UNREACHABLE,
                    "start-up: the job is on several hosts, and no transport can be used: tcp: %s", why);
    log_info("transport tcp: %s", why);
    status = transport_tcp.open(&n->config, &n->remote);
    return status ? status : add_verbs(n);
}

/* Each PE of another node may take two descriptors: one stream in each direction. A process whose
 * limit is too low for all of them starts anyway, since most programs communicate with few PEs. */
static void allow_streams(const struct job *j)
{
    const rlim_t need = 2 * (rlim_t)(j->n_pes - j->node.n) + DESCRIPTORS_SPARE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        log_info("start-up: up to %llu open files from here on, for connections (ulimit -n)",
                 (unsigned long long)limit.rlim_cur);
    if (limit.rlim_cur < need)
        log_info("start-up: connections to all PEs of other hosts need %llu open files, and the limit is %llu "
                 "(ulimit -Hn)", (unsigned long long)need, (unsigned long long)limit.rlim_cur);
}

gshmem_status_t network_open(struct job *j, const gshmem_uniqueid_t *uid, void *address, size_t capacity,
                             size_t *bytes, unsigned char public_key[X25519_BYTES])
{
    struct network *n = calloc(1, sizeof *n);
    gshmem_status_t status;

    if (!n)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    n->job = j;
    n->config = (struct transport_config){
        .size = sizeof n->config,
        .fail = fail,
        .info = log_info_line,
        .pe = j->pe,
        .n_pes = j->n_pes,
        .one_machine = j->bootstrap->one_machine,
        .context = n,
        .find = network_find,
        .key = key,
        .apply = network_apply,
        .lost = network_lose,
        .refused = network_be_refused,
        .told = network_be_told,
        .mapped = mapped,
        .number = setting_number,
        .text = setting_text,
        .heard = heard,
        .distance = nic_distance,
        .turn = j->node.index,
    };
    n->to_heap = (struct transport_request){
        .kind = TRANSPORT_PUT, .flags = TRANSPORT_LOOSE | TRANSPORT_MORE, .segment = SEGMENT_HEAP};
    j->network = n;
    *bytes = 0;
    n->told = calloc((size_t)j->n_pes, sizeof *n->told);
    n->refused = calloc((size_t)j->n_pes, sizeof *n->refused);
    if (!n->told || !n->refused)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    if (j->bootstrap->n_hosts == 1)
        return GSHMEM_OK;
    allow_streams(j);
    if (!(n->key = calloc((size_t)j->n_pes, sizeof *n->key)) ||
        !(j->blob = calloc((size_t)j->n_pes, sizeof *j->blob)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    if ((status = keys_draw(&n->keys, uid)))
        return status;
    memcpy(public_key, n->keys.public, X25519_BYTES);
    if (strcmp(settings_string(SETTING_TCP_IF), "nearest") == 0)
        device_nearest_interfaces(j->node.index, n->nearest, sizeof n->nearest);
    n->config.nearest = n->nearest;
    if ((status = network_choose(n)))
        return status;
    return transport_address(n->remote, address, capacity, bytes);
}

/* The map's segments, in the form for transports. */
static void name_segments(struct network *n)
{
    const struct job *j = n->job;

    n->config.segments = SEGMENT_DATA + j->data.n;
    for (int i = 0; i < n->config.segments; i++) {
        const struct segment *s = &j->map.segment[i];
        n->config.segment[i] = (struct transport_segment){
            .base = (char *)s->base,
            .bytes = s->bytes,
            .of_device = atomicity_is_device(s->atomicity),
            .there = s->there,
            .lent = s->imported ? lent : NULL,
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

gshmem_status_t network_start(struct job *j)
{
    struct network *n = j->network;

    if (!n->config.below && settings_number(SETTING_CUDA_FLUSH) == FLUSH_AUTO)
        j->flushes = false; /* no NIC writes to a GPU */
    name_segments(n);
    if (j->device_heap)
        serve_device_heap(n);
    n->config.flushes = j->flushes;
    if (!n->remote)
        return GSHMEM_OK;
    n->remote->ops->begin(n->remote, &n->config);
    return proxy_start(&n->proxy, n);
}

bool network_is_needed(const struct network *n)
{
    return n->remote != NULL;
}

/* Sends this PE's last responses to PEs that may still wait for them. */
static void send_last(struct network *n)
{
    uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;

    while (transport_busy(n->remote) && clock_ns() < end) {
        int events;
        if (n->remote->ops->progress(n->remote, &events))
            break;
        if (!events)
            network_sleep(n, 1000000);
    }
}

bool network_can_enter(struct job *j)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct network *n = j->network;

    for (int i = 0; n && i < ENTER_MS; i++) {
        if (mutex_try(&n->lock)) {
            mutex_give(&n->lock);
            return true;
        }
        nanosleep(&moment, NULL);
    }
    return !n;
}

void network_rest(struct job *j)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;
    struct network *n = j->network;
    bool busy = n && n->remote;

    if (!n || !has_proxy(n))
        return;
    while (busy && clock_ns() < end) {
        mutex_take(&n->lock);
        busy = transport_busy(n->remote);
        mutex_give(&n->lock);
        if (busy) /* the proxy sends */
            nanosleep(&moment, NULL);
    }
    proxy_end_thread(&n->proxy);
}

void network_fail(struct job *j)
{
    struct network *n = j->network;
    int events;

    if (!n || !n->remote || !has_proxy(n))
        return;
    mutex_take(&n->lock);
    transport_tell(n->remote, j->pe);
    /* a failure here is one of a job that has failed already */
    (void)n->remote->ops->progress(n->remote, &events);
    mutex_give(&n->lock);
}

void network_leave_parent(struct job *j)
{
    if (j->network && j->network->remote)
        transport_leave_parent(j->network->remote);
}

void network_stop(struct job *j)
{
    struct network *n = j->network;

    if (!n)
        return;
    if (has_proxy(n)) {
        proxy_stop(&n->proxy);
        network_raise(n);
        if (n->remote)
            send_last(n);
    }
    if (n->remote)
        n->remote->ops->close(n->remote);
    if (n->local)
        n->local->ops->close(n->local);
    free(n->channel);
    while (n->spare) {
        struct flight *f = n->spare;
        n->spare = f->next;
        free(f);
    }
    free(n->idle_errand);
    if (n->key)
        explicit_bzero(n->key, (size_t)j->n_pes * sizeof *n->key);
    free(n->key);
    keys_forget(&n->keys);
    free(n->told);
    free(n->refused);
    free(n);
    j->network = NULL;
}

bool network_pins(struct network *n, const void *mine, size_t bytes)
{
    struct location l;

    if (!n || !n->remote || !map_find(&n->job->map, mine, bytes, &l))
        return false;
    mutex_take(&n->lock);
    bool pinned = transport_pins(n->remote, l.segment, l.offset, bytes);
    mutex_give(&n->lock);
    return pinned;
}

void network_forget(struct network *n, const void *mine, size_t bytes)
{
    if (!n || !n->remote || !bytes)
        return;
    mutex_take(&n->lock);
    transport_forget(n->remote, SEGMENT_DEVICE,
                     (uintptr_t)mine - n->job->map.segment[SEGMENT_DEVICE].base, bytes);
    mutex_give(&n->lock);
}

void network_expect_end(struct network *n)
{
    atomic_store_explicit(&n->ending, true, memory_order_relaxed);
}

bool network_runs_same(struct network *n, int pe)
{
    struct memory_map *map = &n->job->map;
    struct job_blob blob;

    if (map_program(map, pe) == PROGRAM_UNKNOWN && !recall(n, pe, &blob))
        map_learn_program(map, pe,
                          blob.data_segments == (uint32_t)n->job->data.n &&
                              blob.data_digest == n->job->data.digest);
    return map_program(map, pe) == PROGRAM_SAME;
}

gshmem_status_t network_look_up(struct network *n, int pe)
{
    struct job_blob blob;

    return job_fetch(n->job, pe, &blob);
}

void network_learn_program(struct network *n, int pe)
{
    if (network_meet(n, pe))
        return;
    mutex_take(&n->lock);
    network_runs_same(n, pe);
    mutex_give(&n->lock);
}

/* The transport's functions: how it is opened and closed, and its progress. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/settings.h"
#include "transport/optional.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/complete.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/preflight.h"
#include "transport/verbs/reach.h"
#include "transport/verbs/receive.h"
#include "transport/verbs/resolve.h"
#include "transport/verbs/signals.h"
#include "transport/verbs/submit.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/watch.h"

static int verbs_usable(const struct transport_config *config, char *why, size_t why_size)
{
    struct nic nic[NICS_MOST];
    int n = nics_find(config, nic, why, why_size);

    for (int i = 0; i < n; i++)
        ibv_close_device(nic[i].context);
    return n;
}

static bool verbs_watch(struct verbs *v, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};

    return fd < 0 || epoll_ctl(v->wait_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static gshmem_status_t verbs_open_nic(struct verbs *v, struct nic *nic)
{
    gshmem_status_t status = nic_open(v, nic);
    uint32_t share = nic->inbox_room / (uint32_t)v->config.n_pes;

    if (status)
        return status;
    /* with very many PEs the last ones get no receives, and are reached by the transport below */
    share = share < RECEIVES_LEAST ? RECEIVES_LEAST : share;
    v->share = share < v->share ? share : v->share;
    if (!verbs_watch(v, nic->channel->fd) || !verbs_watch(v, nic->context->async_fd) ||
        !verbs_watch(v, cm_fd(nic)))
        return v->config.fail(GSHMEM_ERR_SYSTEM, "verbs: %s", strerror(errno));
    return GSHMEM_OK;
}

static void verbs_close(struct transport *base);

static const struct link_reports reports = {
    .path_failed = failover_fail,
    .link_changed = link_settle,
    .memory_refused = failover_use_below,
    .link_failed = link_fail,
    .control_to_self = receive_control,
};

static gshmem_status_t verbs_open(const struct transport_config *config, struct transport **out)
{
    struct verbs *v = calloc(1, sizeof *v);
    gshmem_status_t status = GSHMEM_OK;
    char why[300];

    if (!v)
        return config->fail(GSHMEM_ERR_MEMORY, "verbs: out of memory");
    v->config = *config;
    v->report = &reports;
    v->wait_fd = descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
    v->to = calloc((size_t)config->n_pes, sizeof *v->to);
    v->gone = calloc((size_t)config->n_pes, sizeof *v->gone);
    v->slots = memory_pages((size_t)SLOTS * SLOT_BYTES);
    for (int i = 0; i < SLOTS; i++)
        v->slot_free[i] = i;
    v->slots_left = SLOTS;
    v->share = RECEIVES;
    v->coalesce_from = (uint32_t)config->number(SETTING_NAME(IB_GATHER));
    v->coalesce_from = v->coalesce_from ? v->coalesce_from : UINT32_MAX;
    v->coalesce_signalled = coalesce_signalled_most(v->coalesce_from);
    v->flight_most = (uint64_t)config->number(SETTING_NAME(IB_INFLIGHT));
    v->works_most = (uint32_t)config->number(SETTING_NAME(IB_INFLIGHT_REQUESTS));
    v->queue_pairs = (int)config->number(SETTING_NAME(IB_QP_PER_PEER));
    /* On kernels before 5.12 a write after a fork gives this process other pages than those that
     * NICs know, without this. */
    int unsafe = ibv_fork_init();
    if (unsafe)
        config->info("verbs: a child of fork may spoil this PE's queues on kernels before 5.12: "
                     "ibv_fork_init: %s",
                     strerror(unsafe));
    int found = nics_find(config, v->nic, why, sizeof why);
    v->nics = v->opened = found > 0 ? found : 0;
    for (int i = 0; i < v->nics; i++)
        config->info("verbs: NIC %d of this PE: %s: %s", i + 1, v->nic[i].name, v->nic[i].chosen);
    if (v->wait_fd < 0 || !v->to || !v->gone || !v->slots || !v->nics)
        status = config->fail(GSHMEM_ERR_TRANSPORT, "verbs: %s", v->nics ? strerror(errno) : why);
    for (int i = 0; i < v->nics && !status; i++)
        status = verbs_open_nic(v, &v->nic[i]);
    if (!status && !verbs_watch(v, transport_wait_fd(config->below)))
        status = config->fail(GSHMEM_ERR_SYSTEM, "verbs: %s", strerror(errno));
    if (status) {
        verbs_close(&v->base); /* `below` stays the caller's */
        return status;
    }
    v->base.ops = &gshmem_transport;
    v->below = config->below;
    *out = &v->base;
    return GSHMEM_OK;
}

static gshmem_status_t verbs_address(struct transport *base, void *address, size_t capacity,
                                     size_t *bytes)
{
    struct verbs *v = (struct verbs *)base;

    gshmem_status_t status = transport_address(v->below, address, capacity, bytes);

    return status ? status : reach_publish(v, address, capacity, bytes);
}

static void verbs_begin(struct transport *base, const struct transport_config *config)
{
    struct verbs *v = (struct verbs *)base;
    char why[200];

    v->config = *config;
    if (!memory_can_be_registered(v))
        v->nics = 0;
    if (v->nics && config->device && memory_of_device(v, why, sizeof why)) {
        config->info("verbs: NICs reach GPU memory %s", why);
    } else if (v->nics && config->device) {
        v->gpu_below = true;
        config->info("verbs: GPU memory is copied through pinned buffers (GSHMEM_STAGING): %s",
                     why);
    }
    staging_open(&v->staging, &v->config);
    v->below->ops->begin(v->below, config);
}

__attribute__((noinline)) static gshmem_status_t
verbs_post_first(struct verbs *v, const struct transport_request *request)
{
    struct link *l;
    gshmem_status_t status = link_open(v, request->pe, &l);

    return status ? status : submit_request(v, l, request);
}

static gshmem_status_t verbs_post(struct transport *base, const struct transport_request *request)
{
    struct verbs *v = (struct verbs *)base;
    struct link *l = v->to[request->pe];

    return l ? submit_request(v, l, request) : verbs_post_first(v, request);
}

/* What waited for more has waited for one call of progress. */
static void verbs_send_held(struct verbs *v)
{
    v->held_back = false;
    for (struct link *l = v->links; l; l = l->next) {
        link_send_rest(v, l);
        failover_go_on(v, l);
        signals_end_round(v, l);
        complete_go_on(v, l);
    }
}

/* What is polled now and then: the transport below needs a system call, and has little to do
 * where all links are active. */
__attribute__((noinline)) static gshmem_status_t verbs_poll_below(struct verbs *v, int *events)
{
    if (v->rounds % RETRY_ROUNDS == 0)
        watch_retry(v);
    if (v->connecting)
        path_poll_connections(v);
    if (v->resolving)
        path_poll_resolved(v);
    v->settled = v->links != NULL;
    for (struct link *l = v->links; l; l = l->next) {
        v->settled &= l->state == LINK_ACTIVE;
        order_move_marks(l);
    }
    return v->below->ops->progress(v->below, events);
}

static gshmem_status_t verbs_progress(struct transport *base, int *events)
{
    struct verbs *v = (struct verbs *)base;
    gshmem_status_t status = GSHMEM_OK;
    int others = 0;

    v->events = 0;
    if (staging_busy(&v->staging))
        staging_look(&v->staging);
    if (v->held_back)
        verbs_send_held(v);
    v->events += complete_some(v);
    if (++v->rounds % BELOW_ROUNDS == 0 || !v->settled)
        status = verbs_poll_below(v, &others);
    *events = v->events + others + v->held_back;
    return status;
}

static void verbs_notify(struct transport *base, int lost)
{
    struct verbs *v = (struct verbs *)base;

    transport_tell(v->below, lost);
}

static int verbs_wait_fd(struct transport *base)
{
    return ((struct verbs *)base)->wait_fd;
}

/* One notification is requested at a time. An old one is taken first: it would end every sleep. */
static bool verbs_arm_nic(struct nic *nic)
{
    struct ibv_cq *cq;
    void *context;

    if (nic->armed && ibv_get_cq_event(nic->channel, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        nic->armed = false;
    }
    if (!nic->armed)
        nic->armed = ibv_req_notify_cq(nic->cq, 0) == 0;
    return nic->armed;
}

static int verbs_arm(struct transport *base)
{
    struct verbs *v = (struct verbs *)base;
    bool armed = true;

    for (int i = 0; i < v->opened; i++)
        armed &= verbs_arm_nic(&v->nic[i]);
    watch_poll(v);
    /* what came before the notification was requested brings none */
    v->events = 0;
    v->settled = false; /* the transport below may be what ends the sleep */
    return complete_some(v) + v->events + v->held_back + transport_arm(v->below) > 0 || !armed;
}

static void verbs_receive(struct transport *base, int from, const void *note, size_t bytes)
{
    receive_control((struct verbs *)base, from, note, bytes);
}

static void verbs_lose(struct transport *base, int pe, gshmem_status_t status)
{
    struct verbs *v = (struct verbs *)base;

    v->gone[pe] = true;
    if (v->to[pe])
        link_fail(v, v->to[pe], status, NULL);
    transport_lose(v->below, pe, status);
}

static int verbs_pins(struct transport *base, int segment, uint64_t offset, uint64_t bytes)
{
    return memory_is_pinned((struct verbs *)base, segment, offset, bytes);
}

static int verbs_busy(struct transport *base)
{
    const struct verbs *v = (struct verbs *)base;

    for (const struct link *l = v->links; l; l = l->next) {
        if (link_is_busy(l))
            return 1;
    }
    return transport_busy(v->below);
}

static void verbs_close(struct transport *base)
{
    struct verbs *v = (struct verbs *)base;

    if (v->below) /* first: it may carry requests of links */
        v->below->ops->close(v->below);
    while (v->links) {
        struct link *l = v->links;
        v->links = l->next;
        v->to[l->pe] = NULL;
        link_close(v, l);
    }
    resolve_close(v);
    for (int i = 0; i < v->opened; i++)
        nic_close(v, &v->nic[i]);
    staging_close(&v->staging);
    free(v->slots);
    if (v->wait_fd >= 0)
        close(v->wait_fd);
    free(v->to);
    free(v->gone);
    free(v);
}

static void verbs_report(const struct transport_config *config, transport_line *line, void *to)
{
    preflight_report(config, "/sys", line, to);
}

/* Keys of peers' memory too: all PEs forget at once. */
static void verbs_forget(struct transport *base, int segment, uint64_t offset, uint64_t bytes)
{
    struct verbs *v = (struct verbs *)base;

    for (struct link *l = v->links; l; l = l->next)
        peer_forget(l, segment, offset, bytes);
    memory_forget(v, segment, offset, bytes);
    transport_forget(v->below, segment, offset, bytes);
}

static int verbs_updates(struct transport *base, char *why, size_t why_size)
{
    return atomics_possible((struct verbs *)base, why, why_size);
}

/* The NICs' connections stay open in the child, but the transport below tells the peers that this
 * PE has ended. */
static void verbs_leave_parent(struct transport *base)
{
    struct verbs *v = (struct verbs *)base;

    transport_leave_parent(v->below);
}

const struct transport_ops gshmem_transport = {
    .size = sizeof(struct transport_ops),
    .version = TRANSPORT_VERSION,
    .settings = settings_layout,
    .name = "verbs",
    .usable = verbs_usable,
    .open = verbs_open,
    .address = verbs_address,
    .begin = verbs_begin,
    .post = verbs_post,
    .progress = verbs_progress,
    .tell = verbs_notify,
    .wait_fd = verbs_wait_fd,
    .arm = verbs_arm,
    .receive = verbs_receive,
    .lose = verbs_lose,
    .pins = verbs_pins,
    .busy = verbs_busy,
    .close = verbs_close,
    .report = verbs_report,
    .forget = verbs_forget,
    .updates = verbs_updates,
    .leave_parent = verbs_leave_parent,
    .batches = TRANSPORT_SMALL_BATCHES,
};

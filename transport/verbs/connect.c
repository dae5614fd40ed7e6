/* Set-up of a path's queue pair.
 *
 * 1. A side makes its queue pair when it first has a request, or when the peer's offer comes, and
 *    offers it (CONTROL_OFFER). Two offers may cross: they are of the same path.
 * 2. With the peer's offer, it connects its queue pair, which can receive then, and says so
 *    (CONTROL_READY).
 * 3. When the peer has said that it can receive, the path is active. One that has failed before
 *    carries an empty write first.
 *
 * Both sides count the generations of a path's queue pair alike. A control message of a generation
 * that is over is dropped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/control.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/resolve.h"
#include "transport/verbs/verbs.h"

enum { SUBNET_PREFIX_BYTES = 8 }; /* of a GID of InfiniBand's */

struct path *path_create(struct verbs *v, struct link *l, uint32_t number)
{
    struct path *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->link = l;
    p->number = number;
    p->nic = &v->nic[l->peer.rail[number % RAILS_MOST].mine];
    p->state = PATH_DOWN;
    for (int i = 0; i < BATCH; i++)
        p->batch.wr[i].sg_list = &p->batch.sge[i];
    p->lone.wr = (struct ibv_send_wr){.sg_list = &p->lone.sge,
                                      .num_sge = 1,
                                      .opcode = IBV_WR_RDMA_WRITE,
                                      .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
    return p;
}

void path_end(struct path *p)
{
    if (p->nic->iwarp)
        cm_end(p);
    p->setup.offered = false;
    post_wait_no_more(p);
    resolve_abandon(p);
    if (p->qp)
        ibv_destroy_qp(p->qp);
    p->qp = NULL;
    p->batch.first = p->batch.end = 0;
    p->setup.peer_ready = false;
    p->unsent &= UNSENT_NONE | UNSENT_STOPPED;
}

void path_free(struct path *p)
{
    path_end(p);
    if (p->kept.mr)
        ibv_dereg_mr(p->kept.mr);
    free(p->failure.stopped);
    free(p->kept.text);
    free(p);
}

/* ---- The queue pair ---- */

/* Inline data is as much as the NIC takes, which returns EINVAL for more. Any other failure means
 * that something else is used up, and nothing is learned for the next queue pair. */
static struct ibv_qp *path_make_queue(struct path *p)
{
    struct nic *nic = p->nic;
    struct ibv_qp_init_attr want = {
        .send_cq = nic->cq,
        .recv_cq = nic->cq,
        .srq = nic->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = nic->sends_most, .max_send_sge = 1},
    };

    for (uint32_t most = nic->inline_most;; most /= 2) {
        want.cap.max_inline_data = most;
        struct ibv_qp *qp = ibv_create_qp(nic->pd, &want);
        if (qp)
            p->inline_most = nic->inline_most = most;
        if (qp || errno != EINVAL || most == 0)
            return qp;
    }
}

/* Memory for the data of work requests that the NIC does not take inline. */
static bool path_keep_texts(struct path *p)
{
    const size_t bytes = SEND_DEPTH * sizeof *p->kept.text;

    if (p->kept.mr || p->inline_most >= sizeof *p->kept.text)
        return true;
    if (!p->kept.text && !(p->kept.text = memory_pages(bytes)))
        return false;
    p->kept.mr = ibv_reg_mr(p->nic->pd, p->kept.text, bytes, IBV_ACCESS_LOCAL_WRITE);
    return p->kept.mr != NULL;
}

static bool path_make_queue_pair(struct verbs *v, struct path *p)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = p->nic->pkey_index,
                               .port_num = (uint8_t)p->nic->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  (p->nic->updates ? IBV_ACCESS_REMOTE_ATOMIC : 0)};
    const uint8_t receives = (uint8_t)(1u << (p->nic - v->nic));

    if (!(p->link->receiving & receives) && !nic_add_receives(v, p->nic))
        return false;
    p->link->receiving |= receives;
    return (p->qp = path_make_queue(p)) && path_keep_texts(p) &&
           !ibv_modify_qp(p->qp, &init,
                          IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
                              (p->nic->iwarp ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT));
}

/* A generation begins with its queue pair. One that cannot be made leaves the count as it was, so
 * that both sides still count the same. */
bool path_begin(struct verbs *v, struct path *p, char *why, size_t why_size)
{
    if (p->tried) /* the NIC's addresses may have changed */
        nic_ask_again(v, p->nic);
    if (p->nic->gone || !path_make_queue_pair(v, p)) {
        snprintf(why, why_size, "verbs: %s: a queue pair to PE %d: %s", p->nic->name, p->link->pe,
                 p->nic->gone ? "the NIC is gone" : strerror(errno));
        path_end(p);
        p->state = PATH_DOWN;
        p->tried = true;
        return false;
    }
    p->generation++;
    p->mark = (uint64_t)(p->generation & 7) << 60 | (uint64_t)p->index << 56 |
              (uint64_t)p->link->pe << 32;
    p->setup.first_packet = ((uint32_t)v->config.pe * 0x9e3779b1u +
                             (uint32_t)p->link->pe * 0x85ebca6bu + p->generation * 0xc2b2ae35u) >>
                            8;
    p->packet = p->packet_done = p->setup.first_packet;
    p->lone.most = p->inline_most < SMALL_BYTES ? p->inline_most : SMALL_BYTES;
    p->fence.all = p->fence.read = p->fence.last_read = p->done = p->failure.last = p->sends;
    p->setup.receives = p->failure.drained = p->failure.stopped_here = p->failure.stopped_there =
        false;
    p->state = PATH_OFFERED;
    p->unsent = UNSENT_OFFER;
    path_send_rest(v, p);
    return true;
}

static bool path_choose_addresses(struct verbs *v, struct path *p, const struct control *o,
                                  struct ibv_qp_attr *receive)
{
    const struct nic *nic = p->nic;
    const enum ibv_mtu mtu = o->mtu < (uint32_t)nic->mtu ? (enum ibv_mtu)o->mtu : nic->mtu;
    int mine = 0, theirs = 0;
    *receive = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu,
        .dest_qp_num = o->queue,
        .rq_psn = o->packet,
        .max_dest_rd_atomic = (uint8_t)nic->reads,
        .min_rnr_timer = 12,
        .ah_attr = {.dlid = o->lid,
                    .sl = (uint8_t)v->config.number(SETTING_NAME(IB_SL)),
                    .port_num = (uint8_t)nic->port,
                    .is_global = nic->ethernet || o->lid == 0,
                    .grh = {.traffic_class =
                                (uint8_t)v->config.number(SETTING_NAME(IB_TRAFFIC_CLASS)),
                            .hop_limit = 64}},
    };

    errno = ENETUNREACH;
    if (!addresses_pair(nic->address, nic->addresses, o->address, o->addresses,
                        v->config.pe < p->link->pe, &mine, &theirs))
        return false;
    receive->ah_attr.grh.dgid = o->address[theirs].gid;
    receive->ah_attr.grh.sgid_index = nic->address[mine].index;
    receive->ah_attr.is_global |=
        nic->needs_grh || memcmp(nic->address[mine].gid.raw, o->address[theirs].gid.raw,
                                 SUBNET_PREFIX_BYTES) != 0; /* through a router */
    p->packet_shift = 7 + (int)mtu;                         /* IBV_MTU_256 is 1 */
    return true;
}

/* Connects the queue pair by a thread, since the kernel may look for the neighbour for long. */
static bool path_begin_resolving(struct verbs *v, struct path *p, const struct control *o)
{
    uint32_t reads = o->reads < p->nic->reads_asked ? o->reads : p->nic->reads_asked;
    struct ibv_qp_attr receive,
        send = {.qp_state = IBV_QPS_RTS,
                .timeout = (uint8_t)v->config.number(SETTING_NAME(IB_TIMEOUT)),
                .retry_cnt = (uint8_t)v->config.number(SETTING_NAME(IB_RETRY)),
                .rnr_retry = 6,
                .sq_psn = p->setup.first_packet,
                .max_rd_atomic = (uint8_t)reads};

    return path_choose_addresses(v, p, o, &receive) && resolve_begin(v, p, &receive, &send);
}

/* ---- Control messages to the peer ---- */

static void path_make_offer(const struct verbs *v, const struct path *p, struct control *n)
{
    const struct nic *nic = p->nic;

    n->queue = p->qp->qp_num;
    n->packet = p->setup.first_packet;
    n->mtu = (uint32_t)nic->mtu;
    n->reads = nic->reads;
    n->nics = (uint32_t)p->link->peer.pairs;
    n->window = (v->share - 4) / 2;
    n->lid = nic->lid;
    n->ethernet = nic->ethernet;
    n->gpu_below = v->gpu_below;
    n->reorders = nic->reorders;
    n->addresses = nic->addresses;
    memcpy(n->address, nic->address, sizeof n->address);
    n->segments = (uint32_t)v->config.segments;
    for (int i = 0; i < v->config.segments; i++) {
        n->base[i] = (uintptr_t)v->config.segment[i].base;
        n->bytes[i] = v->config.segment[i].bytes;
    }
}

void path_send_rest(struct verbs *v, struct path *p)
{
    static const struct {
        unsigned what;
        enum control_kind kind;
    } messages[] = {{UNSENT_NONE, CONTROL_NONE},
                    {UNSENT_OFFER, CONTROL_OFFER},
                    {UNSENT_READY, CONTROL_READY},
                    {UNSENT_STOPPED, CONTROL_STOPPED}};

    for (int i = 0; i < 4; i++) {
        struct control n = {.kind = messages[i].kind};
        if (!(p->unsent & messages[i].what))
            continue;
        if (n.kind == CONTROL_STOPPED)
            n = p->failure.stopped[0];
        n.path = p->number;
        n.generation = p->generation;
        if (n.kind == CONTROL_OFFER)
            path_make_offer(v, p, &n);
        p->unsent &= ~messages[i].what; /* first: this PE's own response comes within the call */
        if (!control_send(v, p->link, &n)) {
            p->unsent |= messages[i].what;
            break;
        }
    }
    v->held_back |= p->unsent != 0;
}

/* ---- Control messages of the peer ---- */

void path_activate(struct verbs *v, struct path *p)
{
    p->state = PATH_ACTIVE;
    transport_count(&v->config, p->tried ? TRANSPORT_RECONNECTED : TRANSPORT_CONNECTED);
    v->config.info("verbs: PE %d is reached by %s%s", p->link->pe, p->nic->name,
                   p->tried ? " again" : "");
    p->tried = true;
    v->events++;
    v->held_back = true; /* for operations that waited */
    v->report->link_changed(v, p->link);
}

static void path_begin_sending(struct verbs *v, struct path *p)
{
    struct ibv_send_wr *wr;

    if (!p->tried) {
        path_activate(v, p);
        return;
    }
    p->state = PATH_PROBED;
    if ((wr = post_next_kept(v, p, WORK_OTHER, 0, 0))) {
        wr->opcode = IBV_WR_RDMA_WRITE;
        wr->num_sge = 0;
        wr->wr.rdma.remote_addr = 0;
        wr->wr.rdma.rkey = 0;
        post_batch(v, p);
    } else {
        v->report->path_failed(v, p, "trying it: no room");
    }
}

static void path_give_up(struct verbs *v, struct path *p, const char *why)
{
    v->config.info("verbs: PE %d is not reached by %s: %s", p->link->pe, p->nic->name, why);
    path_end(p);
    p->state = p->tried ? PATH_DOWN : PATH_NONE;
    p->tried = true;
    v->report->link_changed(v, p->link);
}

void path_refuse(struct verbs *v, struct path *p, const char *why)
{
    path_give_up(v, p, why);
    p->unsent |= UNSENT_NONE;
    path_send_rest(v, p);
}

static void path_can_receive(struct verbs *v, struct path *p)
{
    p->unsent |= UNSENT_READY;
    p->setup.receives = true;
    p->state = PATH_READY;
    path_send_rest(v, p);
    if (p->setup.peer_ready && p->state == PATH_READY)
        path_begin_sending(v, p);
}

static void path_connected(struct verbs *v, struct path *p)
{
    if (!p->setup.offered || p->state != PATH_OFFERED)
        return; /* its offer has not come yet */
    v->connecting -= p->iwarp.connecting;
    p->iwarp.connecting = false;
    path_can_receive(v, p);
}

static void path_resolved(struct verbs *v, struct path *p, int error)
{
    char why[200];

    if (p->state != PATH_OFFERED)
        return; /* the path has failed meanwhile */
    if (!error) {
        path_can_receive(v, p);
        return;
    }
    snprintf(why, sizeof why, "%s (GSHMEM_IB_GID_INDEX and GSHMEM_IB_HCA choose another address)",
             strerror(error));
    path_refuse(v, p, why);
}

static void path_take_offer(struct verbs *v, struct path *p, const struct control *o)
{
    if (o->ethernet != p->nic->ethernet) {
        path_refuse(v, p, "one of the two has InfiniBand, the other Ethernet");
        return;
    }
    if (!peer_take_offer(p->link, o)) {
        v->report->link_failed(v, p->link, GSHMEM_ERR_MEMORY, "verbs: out of memory for its keys");
        return;
    }
    p->setup.offered = true;
    p->reorders = p->nic->reorders || o->reorders;
    if (p->nic->iwarp) {
        p->packet_shift = 7 + (int)p->nic->mtu;
        if (!cm_connect(v, p, o))
            path_refuse(v, p, strerror(errno));
        else if (p->iwarp.connected)
            path_connected(v, p);
        return;
    }
    if (!path_begin_resolving(v, p, o))
        path_resolved(v, p, errno);
}

/* The peer tries the path again, or for the first time, as this side could not. */
static bool path_follow(struct verbs *v, struct path *p, const struct control *n)
{
    char why[300] = "verbs: memory cannot be registered, and no path is of use";

    if (n->kind != CONTROL_OFFER || (p->state != PATH_DOWN && p->state != PATH_NONE))
        return false;
    p->tried = true;
    if (!p->link->recovery.below_for_good && path_begin(v, p, why, sizeof why))
        return true;
    v->config.info("%s", why);
    p->generation = n->generation; /* the peer's ends with this response, on both sides */
    p->unsent = UNSENT_NONE;
    path_send_rest(v, p);
    return false;
}

enum path_received path_receive(struct verbs *v, struct path *p, const struct control *n)
{
    if (n->generation != p->generation) {
        if ((int32_t)(n->generation - p->generation) > 1)
            v->report->link_failed(
                v, p->link, GSHMEM_ERR_TRANSPORT,
                "verbs: it sent a control message of a queue pair that is still to come");
        else if ((int32_t)(n->generation - p->generation) == 1 && path_follow(v, p, n))
            path_take_offer(v, p, n);
        return PATH_TOOK_IT; /* else it is of a generation that is over */
    }
    if (n->kind == CONTROL_STOPPED || (n->kind == CONTROL_NONE && p->state == PATH_STOPPING))
        return PATH_STOPS;
    if (p->state != PATH_OFFERED && p->state != PATH_READY) {
        return PATH_TOOK_IT; /* it failed meanwhile, and the peer is told of that */
    } else if (n->kind == CONTROL_NONE) {
        path_give_up(v, p, "it has no NIC for this one");
    } else if (n->kind == CONTROL_OFFER && p->state == PATH_OFFERED && !p->setup.offered) {
        path_take_offer(v, p, n);
    } else if (n->kind == CONTROL_READY && !p->setup.peer_ready) {
        p->setup.peer_ready = true;
        if (p->state == PATH_READY)
            path_begin_sending(v, p);
    } else {
        v->report->link_failed(v, p->link, GSHMEM_ERR_TRANSPORT,
                               "verbs: it sent an offer that makes no sense");
    }
    return PATH_TOOK_IT;
}

/* ---- What threads and connections report ---- */

void path_poll_resolved(struct verbs *v)
{
    struct path *p;
    int error;

    while ((p = resolve_next(v, &error)))
        path_resolved(v, p, error);
    resolve_send_alive(v);
}

void path_poll_connections(struct verbs *v)
{
    for (int i = 0; i < v->opened; i++) {
        struct cm_event e;
        for (int n = 0; n < CM_EVENTS_MOST && cm_next(v, &v->nic[i], &e); n++) {
            if (e.outcome == CM_CONNECTED)
                path_connected(v, e.path);
            else if (e.outcome == CM_REFUSED)
                path_refuse(v, e.path, e.why);
            else if (e.outcome == CM_ENDED)
                v->report->path_failed(v, e.path, e.why);
        }
    }
}

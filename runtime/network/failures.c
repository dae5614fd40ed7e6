/* Failed PEs: how a PE detects a failure, and passes it on.
 *
 * 1. A transport detects the failure of PEs that it communicates with. Within a node, each PE tests
 *    now and then whether the next PE lives. Both record a failure in the memory that the node's
 *    PEs share.
 * 2. Every PE then notifies the PEs of other nodes with which it has communicated. They do the
 *    same, so that each stream carries each failure once.
 * 3. GSHMEM_ERR_PEER_DEAD then comes from one of these places. A wait that is under way tests the
 *    PEs that it waits for (check_peers in wait.c), and a round of a team its members (group_check
 *    in group.c). A lock that a dead PE has held is lost (fail_lost in lock.c). A new request is
 *    refused in requests.c, a new command of a kernel by post_command in service.c. Requests in
 *    flight end in the transport, when transport_lose is called or the transport itself has found
 *    the failure (end_requests in tcp/initiator_end.c, link_fail in verbs). Waits in kernels read a
 *    failure word, which mark_dead in proxy/teams.c stores. For a PE that has left the job in good
 *    order, the status comes from teams/departures.c. During start-up, it comes from node.c and
 *    rendezvous.c in runtime/node, from blobs.c, and from the bootstrap (uid/wire.c, uid/fence.c).
 *
 * Invariant: every PE that waits for a failed PE learns of it, also if neither it nor its node ever
 * communicated with that PE, because the first PEs of all nodes have communicated during
 * start-up. */
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"
#include "transport/optional.h"

#define LOOK_NS 500000000ull

/* With the lock held: tells the transport of failures that it has not yet passed on. Each lane does
 * so, at the latest when its proxy looks around. */
static void failures_pass_on(struct network *n)
{
    const struct node *node = n->node;
    uint32_t losses = node_losses(node);

    if (!n->remote || losses == n->losses_notified || network_expects_end(n))
        return;
    n->losses_notified = losses;
    for (int pe = 0; pe < n->job->n_pes; pe++) {
        if (!n->notified[pe] && node_lost(node, pe)) {
            n->notified[pe] = true;
            transport_tell(n->remote, pe);
            transport_lose(n->remote, pe, GSHMEM_ERR_PEER_DEAD);
        }
    }
}

/* The other lanes' proxies, which may sleep, look around then. */
static void wake_other_lanes(struct network *n)
{
    for (int i = 0; i < n->first->lanes; i++) {
        struct network *other = n->first->lane[i];
        if (other != n && network_has_proxy(other))
            proxy_wake(&other->proxy);
    }
}

/* In gshmem_finalize, peers may have completed theirs and be gone, except a PE that this one still
 * has to notify of something (departures.c). If such a PE had died, those that it has communicated
 * with would fail in their finalize, and say so. */
void network_lose(void *context, int pe, gshmem_status_t status, const char *why)
{
    struct network *n = context;

    if (network_expects_end(n) && status == GSHMEM_ERR_UNREACHABLE) {
        log_line(LOG_DEBUG, "PE %d has left: %s", pe, why);
        return;
    }
    if (atomic_load_explicit(&n->refused[pe], memory_order_relaxed))
        return; /* it lives, and ends what it has with this PE */
    bool news = node_lose(n->node, pe);
    log_line(network_expects_end(n) ? LOG_DEBUG : news ? LOG_ERROR : LOG_INFO,
             "PE %d cannot be reached any more: %s", pe, why);
    failures_pass_on(n);
    if (news)
        wake_other_lanes(n);
}

/* That PE has declared this PE dead; it still accepts the other PEs of this node. */
void network_be_refused(void *context, int pe)
{
    struct network *n = context;

    if (network_expects_end(n) || node_lost(n->node, pe) ||
        atomic_exchange_explicit(&n->refused[pe], true, memory_order_relaxed))
        return;
    atomic_store_explicit(&n->first->refusals, true, memory_order_relaxed);
    log_line(LOG_ERROR,
             "PE %d has given this PE up, which was silent for too long, and takes nothing from it "
             "any more",
             pe);
}

/* A notification from a PE that has been declared dead is ignored: it may have been stopped for a
 * while, and take PEs for failed that have disconnected from it. One about a PE of this node is
 * ignored, too, since this node knows better. Notifications count during gshmem_finalize as well: a
 * PE whose finalize fails sends one, and a PE that leaves in good order sends none. */
void network_be_notified(void *context, int from, int pe)
{
    struct network *n = context;
    struct node *node = n->node;

    if (pe == n->job->pe)
        network_be_refused(n, from);
    if (node->index_of[pe] >= 0 || node_lost(node, from) || !node_lose(node, pe))
        return;
    log_line(network_expects_end(n) ? LOG_DEBUG : LOG_ERROR,
             "PE %d cannot be reached any more, says PE %d", pe, from);
    failures_pass_on(n);
    wake_other_lanes(n);
}

/* Tests the next living PE of this node, so that each death is detected by one PE. */
static void look_at_next(struct network *n)
{
    struct node *node = n->node;

    for (int step = 1; step < node->n; step++) {
        int index = (node->index + step) % node->n, pe = node->pe[index];
        if (node_alive(node, index))
            return;
        if (node_lose(node, pe))
            log_line(LOG_ERROR, "PE %d (process %d) %s", pe, (int)node->control->member[index].pid,
                     node_fate(node, index));
    }
}

void network_look_around(struct network *n)
{
    uint64_t now = clock_ns();

    if (!n->remote || network_expects_end(n))
        return;
    if (n == n->first && now - n->looked >= LOOK_NS) {
        n->looked = now;
        look_at_next(n);
    }
    mutex_take(&n->lock);
    failures_pass_on(n);
    mutex_give(&n->lock);
}

bool network_lost(const struct network *n, int pe)
{
    return node_lost(n->node, pe) || atomic_load_explicit(&n->refused[pe], memory_order_relaxed);
}

bool network_any_lost(const struct network *n)
{
    return node_losses(n->node) != 0 ||
           atomic_load_explicit(&n->first->refusals, memory_order_relaxed);
}

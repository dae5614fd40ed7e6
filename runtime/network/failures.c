/* Who is lost: how a PE learns of it, and passes it on.
 *
 * A transport loses those it talks to; each PE looks now and then whether the next one of its node
 * lives; and both tell the node's other PEs through the memory they share. Every PE then tells those
 * that it has talked to on other hosts, who do the same: each stream carries each loss once. Since
 * the first PEs of all hosts have met in start-up, whoever waits for a lost PE hears of it, also if
 * neither it nor its node ever had to do with that PE. */
#include "runtime/base/clock.h"
#include "runtime/job.h"
#include "runtime/network/parts.h"
#include "transport/optional.h"

#define LOOK_NS 500000000ull

static bool is_ending(const struct network *n)
{
    return atomic_load_explicit(&n->ending, memory_order_relaxed);
}

/* With the lock held: hands the transport what it has not told the others. */
static void failures_pass_on(struct network *n)
{
    const struct node *node = &n->job->node;
    uint32_t losses = node_losses(node);

    if (!n->remote || losses == n->losses_told || is_ending(n))
        return;
    n->losses_told = losses;
    for (int pe = 0; pe < n->job->n_pes; pe++) {
        if (!n->told[pe] && node_lost(node, pe)) {
            n->told[pe] = true;
            transport_tell(n->remote, pe);
            transport_lose(n->remote, pe, GSHMEM_ERR_PEER_DEAD);
        }
    }
}

/* In gshmem_finalize others may be through with theirs, and a PE that this one has to tell something else there
 * (departures.c) is gone. Had it died, those that it has talked to would fail in their finalize, and tell. */
void network_lose(void *context, int pe, gshmem_status_t status, const char *why)
{
    struct network *n = context;

    if (is_ending(n) && status == GSHMEM_ERR_UNREACHABLE) {
        log_line(LOG_DEBUG, "PE %d has left: %s", pe, why);
        return;
    }
    bool news = node_lose(&n->job->node, pe);
    log_line(is_ending(n) ? LOG_DEBUG : news ? LOG_ERROR : LOG_INFO,
             "PE %d cannot be reached any more: %s", pe, why);
    failures_pass_on(n);
}

/* What holds for this PE does not for its neighbours, to whom that PE listens. */
void network_be_refused(void *context, int pe)
{
    struct network *n = context;

    if (is_ending(n) || node_lost(&n->job->node, pe) ||
        atomic_exchange_explicit(&n->refused[pe], true, memory_order_relaxed))
        return;
    atomic_store_explicit(&n->refusals, true, memory_order_relaxed);
    log_line(LOG_ERROR, "PE %d has given this PE up, which was silent for too long, and takes nothing from it "
                        "any more", pe);
}

/* Who has been given up is not listened to: it may have been stopped for a while, and take those for
 * lost who have left it. And who lives on this node is known better here. In gshmem_finalize too, where a PE tells
 * that its own has failed: who leaves in good order tells nobody. */
void network_be_told(void *context, int from, int pe)
{
    struct network *n = context;
    struct node *node = &n->job->node;

    if (pe == n->job->pe)
        network_be_refused(n, from);
    if (node->index_of[pe] >= 0 || node_lost(node, from) || !node_lose(node, pe))
        return;
    log_line(is_ending(n) ? LOG_DEBUG : LOG_ERROR, "PE %d cannot be reached any more, says PE %d", pe, from);
    failures_pass_on(n);
}

/* The next on this node that lives: so all who die are seen, by one PE each. */
static void look_at_next(struct network *n)
{
    struct node *node = &n->job->node;

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

    if (!n->remote || is_ending(n))
        return;
    if (now - n->looked >= LOOK_NS) {
        n->looked = now;
        look_at_next(n);
    }
    mutex_take(&n->lock);
    failures_pass_on(n);
    mutex_give(&n->lock);
}

bool network_lost(const struct network *n, int pe)
{
    return node_lost(&n->job->node, pe) || atomic_load_explicit(&n->refused[pe], memory_order_relaxed);
}

bool network_any_lost(const struct network *n)
{
    return node_losses(&n->job->node) != 0 || atomic_load_explicit(&n->refusals, memory_order_relaxed);
}

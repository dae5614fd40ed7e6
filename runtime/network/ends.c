/* The network's end, when all PEs are done with each other or this one has failed: its proxies end,
 * and what peers may still wait for is sent. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "transport/optional.h"

enum {
    FAREWELL_MS = 2000, /* how long finalize lets the last answers take */
    ENTER_MS = 5000,    /* many times as long as a thread holds the lock */
};

/* One round of a lane's last responses. false: there are none, or they cannot be sent. */
static bool send_last_of(struct network *n, int *events)
{
    return n->remote && transport_busy(n->remote) &&
           !n->remote->ops->progress(n->remote, events);
}

/* Sends this PE's last responses to PEs that may still wait for them: those of all lanes at the
 * same time. stopped: the lanes whose proxies have made progress until now. */
static void send_last(struct network *n, const bool *stopped)
{
    const uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;
    bool busy = true;

    while (busy && clock_ns() < end) {
        int all = 0;
        busy = false;
        for (int i = 0; i < n->lanes; i++) {
            int events = 0;
            busy |= stopped[i] && send_last_of(n->lane[i], &events);
            all += events;
        }
        if (busy && !all)
            network_sleep(n, 1000000);
    }
}

static bool network_can_enter_lane(struct network *n)
{
    for (int i = 0; i < ENTER_MS; i++) {
        if (mutex_try(&n->lock)) {
            const bool free = open_batches_are_free(n);
            mutex_give(&n->lock);
            if (free)
                return true;
        }
        clock_sleep(CLOCK_MS);
    }
    return false;
}

bool network_can_enter(struct job *j)
{
    struct network *n = j->network;
    bool can = true;

    for (int i = 0; n && i < n->lanes && can; i++)
        can = network_can_enter_lane(n->lane[i]);
    return can;
}

/* Whether its proxy has something to send. */
static bool network_sends(struct network *n)
{
    if (!n->remote || !network_has_proxy(n))
        return false;
    mutex_take(&n->lock);
    open_batches_post_all(n);
    const bool busy = n->open || transport_busy(n->remote);
    mutex_give(&n->lock);
    return busy;
}

void network_rest(struct job *j)
{
    const uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;
    struct network *n = j->network;
    bool busy = n;

    while (busy && clock_ns() < end) {
        busy = false;
        for (int i = 0; i < n->lanes; i++)
            busy |= network_sends(n->lane[i]);
        if (busy)
            clock_sleep(CLOCK_MS);
    }
    for (int i = 0; n && i < n->lanes; i++) {
        if (network_has_proxy(n->lane[i]))
            proxy_end_thread(&n->lane[i]->proxy);
    }
}

static void network_fail_lane(struct network *n)
{
    int events;

    if (!n->remote || !network_has_proxy(n))
        return;
    mutex_take(&n->lock);
    transport_tell(n->remote, n->job->pe);
    /* a failure here is one of a job that has failed already */
    (void)n->remote->ops->progress(n->remote, &events);
    mutex_give(&n->lock);
}

void network_fail(struct job *j)
{
    struct network *n = j->network;

    for (int i = 0; n && i < n->lanes; i++)
        network_fail_lane(n->lane[i]);
}

void network_leave_parent(struct job *j)
{
    struct network *n = j->network;

    for (int i = 0; n && i < n->lanes; i++) {
        if (n->lane[i]->remote)
            transport_leave_parent(n->lane[i]->remote);
    }
}

/* false: there was none. */
static bool network_stop_proxy(struct network *n)
{
    if (!network_has_proxy(n))
        return false;
    proxy_stop(&n->proxy);
    network_raise(n);
    return true;
}

static void network_close(struct network *n)
{
    open_batches_end(n);
    if (n->remote)
        n->remote->ops->close(n->remote);
    if (n->local)
        n->local->ops->close(n->local);
    while (n->spare) {
        struct flight *f = n->spare;
        n->spare = f->next;
        free(f);
    }
    free(n->idle_errand);
    if (n->key)
        explicit_bzero(n->key, (size_t)n->job->n_pes * sizeof *n->key);
    free(n->key);
    keys_forget(&n->keys);
    free(n->notified);
    if (n == n->first)
        free(n->refused);
    free(n);
}

/* The last lane first: lane 0 has what all of them use. */
void network_stop(struct job *j)
{
    struct network *n = j->network;
    bool stopped[LANES_MOST];

    if (!n)
        return;
    for (int i = n->lanes - 1; i >= 0; i--)
        stopped[i] = network_stop_proxy(n->lane[i]);
    send_last(n, stopped);
    for (int i = n->lanes - 1; i >= 0; i--)
        network_close(n->lane[i]);
    j->network = NULL;
}

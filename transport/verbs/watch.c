/* What progress looks at now and then: NICs' events, peers that owe something and send nothing, and
 * paths that are down. */
#include <stdio.h>

#include "runtime/base/settings.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/control.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/watch.h"

enum {
    RETRIES_MOST = 5, /* at most 2^5 s between tries */
    SECOND_NS = 1000 * 1000 * 1000,
    LOOK_NS = SECOND_NS, /* more between two looks: this process was stopped itself */
};

/* ---- NICs ---- */

static void watch_fail_paths(struct verbs *v, const struct nic *nic, const char *why)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths; i++) {
            if (l->path[i]->nic == nic)
                failover_fail(v, l->path[i], why);
        }
    }
}

static void watch_take_event(struct verbs *v, struct nic *nic, const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_PORT_ERR:
        if (e->element.port_num != nic->port)
            return;
        nic->down = true;
        watch_fail_paths(v, nic, "its port has gone down");
        return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        if (e->element.port_num != nic->port)
            return;
        nic->down &= e->event_type != IBV_EVENT_PORT_ACTIVE;
        nic_ask_again(v, nic); /* offers have its new addresses */
        for (struct link *l = v->links; l; l = l->next)
            l->recovery.retry_at = l->recovery.retries = 0;
        v->rounds = RETRY_ROUNDS - 1; /* now */
        return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        nic->gone = nic->down = true;
        watch_fail_paths(v, nic, "the NIC has failed, or was taken away");
        return;
    default:
        return;
    }
}

/* ---- Peers ---- */

/* What the peer owes this PE now, for a message to the user; NULL: nothing. */
static const char *watch_what_is_owed(const struct link *l)
{
    bool probed = false; /* a peer sends no reply then: serve_send_reply */

    if (l->state == LINK_FAILED)
        return NULL;
    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        probed |= p->state == PATH_PROBED;
        if ((p->state == PATH_OFFERED || p->state == PATH_READY) && !p->iwarp.connecting &&
            !p->setup.resolving && !(p->unsent & UNSENT_OFFER))
            return "its part of a queue pair";
        if (p->state == PATH_STOPPING && !p->failure.stopped_there)
            return "what it has received by a path that failed";
    }
    return (l->state == LINK_ACTIVE || (l->state == LINK_BELOW && !probed)) &&
                   l->messages.sent != l->messages.replied
               ? "a reply"
               : NULL;
}

/* For so many seconds a peer may owe something and send nothing. One that has sent nothing at all
 * may still be starting. */
static int64_t watch_limit(const struct verbs *v, const struct link *l)
{
    const int64_t peer = v->config.number(SETTING_NAME(PEER_TIMEOUT)),
                  start = v->config.number(SETTING_NAME(INIT_TIMEOUT));

    return l->watch.ever || peer > start ? peer : start;
}

/* A connection of iWARP that does not come up ends its path, not the link: the transport below
 * knows whether the peer lives. */
static void watch_connections(struct verbs *v, struct link *l, uint64_t since)
{
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        struct path *p = l->path[i];
        p->iwarp.connecting_ns = p->iwarp.connecting ? p->iwarp.connecting_ns + since : 0;
        if (p->iwarp.connecting_ns / 1000000000u >=
            (uint64_t)v->config.number(SETTING_NAME(INIT_TIMEOUT)))
            path_refuse(v, p, "no connection has come up in time (GSHMEM_INIT_TIMEOUT)");
    }
}

/* A peer may have given this PE up. It takes no control message then, and sends none: the transport
 * below is refused, and fails the next control message. So one is sent for each second that a peer
 * owes something and is silent. */
static bool watch_is_refused(struct verbs *v, struct link *l, uint64_t silent_before)
{
    const struct control alive = {.kind = CONTROL_ALIVE};

    if (silent_before / SECOND_NS == l->watch.silent_ns / SECOND_NS ||
        control_try(v, l, &alive) != GSHMEM_ERR_PEER_DEAD)
        return false;
    link_fail(v, l, GSHMEM_ERR_PEER_DEAD, NULL); /* the user has been told of that refusal */
    return true;
}

/* A NIC acknowledges packets for a process that is stopped, and the transport below acknowledges no
 * control message. So a peer that owes something and sends nothing for watch_limit seconds has
 * failed. Time in which this process was stopped itself does not count. */
static void watch_peers(struct verbs *v)
{
    const uint64_t now = v->links ? failover_now_ns() : 0;
    const uint64_t since = now - v->looked_at < LOOK_NS ? now - v->looked_at : LOOK_NS;
    char why[200];

    v->looked_at = now;
    for (struct link *l = v->links; l; l = l->next) {
        if (v->connecting)
            watch_connections(v, l, since);
        const char *owed = watch_what_is_owed(l);
        const bool owed_then = l->watch.owed_then; /* else it was not silent all of `since` */
        l->watch.owed_then = owed != NULL;
        if (!owed || !owed_then || l->watch.received ||
            l->messages.replied != l->watch.replied_then ||
            l->target.received != l->watch.received_then) {
            l->watch.ever |= l->watch.received;
            l->watch.received = false;
            l->watch.replied_then = l->messages.replied;
            l->watch.received_then = l->target.received;
            l->watch.silent_ns = 0;
            continue;
        }
        const uint64_t before = l->watch.silent_ns;
        l->watch.silent_ns += since;
        if (watch_is_refused(v, l, before))
            continue;
        if (l->watch.silent_ns / 1000000000u < (uint64_t)watch_limit(v, l))
            continue;
        snprintf(why, sizeof why, "verbs: it owes %s and has sent nothing for %d s (%s)", owed,
                 (int)watch_limit(v, l),
                 l->watch.ever ? "GSHMEM_PEER_TIMEOUT" : "GSHMEM_INIT_TIMEOUT");
        link_fail(v, l, GSHMEM_ERR_PEER_DEAD, why);
    }
}

void watch_poll(struct verbs *v)
{
    watch_peers(v);
    path_poll_connections(v);
    for (int i = 0; i < v->opened; i++) {
        struct ibv_async_event e;
        while (ibv_get_async_event(v->nic[i].context, &e) == 0) {
            struct ibv_async_event copy = e;
            ibv_ack_async_event(&e);
            watch_take_event(v, &v->nic[i], &copy);
        }
    }
}

/* ---- Paths that are down ---- */

static void watch_try_paths(struct verbs *v, struct link *l)
{
    bool tried = false;
    char why[300];

    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        struct path *p = l->path[i];
        if (p->state != PATH_DOWN || p->nic->down || p->unsent)
            continue;
        tried = true;
        path_begin(v, p, why, sizeof why);
    }
    if (!tried)
        return;
    l->recovery.retries += l->recovery.retries < RETRIES_MOST;
    l->recovery.retry_at = failover_now_ns() + (1000000000ull << l->recovery.retries);
}

void watch_retry(struct verbs *v)
{
    watch_poll(v);
    uint64_t now = v->links ? failover_now_ns() : 0;
    for (struct link *l = v->links; l; l = l->next) {
        if (l->state != LINK_FAILED && !l->recovery.below_for_good && now >= l->recovery.retry_at)
            watch_try_paths(v, l);
    }
}

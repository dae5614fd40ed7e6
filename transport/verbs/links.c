/* Links: how they begin, which of their paths are used, and how they end. */
#include <stdlib.h>

#include "transport/optional.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/control.h"
#include "transport/verbs/eager.h"
#include "transport/verbs/finish.h"
#include "transport/verbs/links.h"
#include "transport/verbs/pending.h"
#include "transport/verbs/post.h"
#include "transport/verbs/reach.h"
#include "transport/verbs/verbs.h"

/* ---- Which paths are used ---- */

/* What is small goes by one path, the messenger, for as long as that one is active, so that it
 * keeps its order. It is the best path: rails are in that order, and the link waits for the first
 * of them. */
static void choose_messenger(struct link *l)
{
    int first = 0;

    if (!l->messenger ||
        (l->messenger->state != PATH_ACTIVE && l->messenger->state != PATH_STOPPING))
        l->messenger = l->actives ? l->active[0] : NULL;
    while (first < l->actives && l->active[first] != l->messenger)
        first++;
    if (first < l->actives) {
        l->active[first] = l->active[0];
        l->active[0] = l->messenger;
    }
}

/* Whether its first set-up has not ended. */
static bool link_is_pending(const struct path *p)
{
    return (p->state == PATH_OFFERED || p->state == PATH_READY) && !p->tried;
}

void link_settle(struct verbs *v, struct link *l)
{
    const enum link_state before = l->state;
    const bool best_is_coming = l->paths && link_is_pending(l->path[0]);
    bool stopping = false, coming = false;

    if (l->state == LINK_FAILED)
        return;
    l->actives = 0;
    for (int i = 0; i < l->paths; i++) {
        struct path *p = l->path[i];
        if (p->state == PATH_ACTIVE)
            l->active[l->actives++] = p;
        stopping |= p->state == PATH_STOPPING;
        coming |= link_is_pending(p);
    }
    if (!best_is_coming)
        choose_messenger(l);
    if (stopping || (l->actives && l->below_left) || (!l->actives && coming) || best_is_coming)
        l->state = LINK_WAITING;
    else
        l->state = l->actives ? LINK_ACTIVE : LINK_BELOW;
    l->direct = l->state == LINK_ACTIVE && !l->active[0]->nic->iwarp && !v->config.device
                    ? l->active[0]
                    : NULL;
    l->cached.bytes = 0; /* its key is for one NIC */
    l->coalesce.open = NULL;
    if (l->state == LINK_BELOW && before != LINK_BELOW)
        v->config.info("verbs: PE %d is reached by %s%s", l->pe, v->below->ops->name,
                       l->recovery.below_for_good ? " from here on"
                       : l->recovery.begun        ? ", until a path comes back"
                                                  : ": there is no path of verbs to it");
    v->held_back = true;
}

/* Links to PEs of this node, and to this PE itself, carry only atomics that NICs make. */
static bool link_is_intra_node(const struct verbs *v, int pe)
{
    return v->config.mapped && v->config.mapped(v->config.context, pe, 0);
}

static bool add_paths(struct verbs *v, struct link *l, int updater)
{
    const int queue_pairs = link_is_intra_node(v, l->pe) ? 1 : v->queue_pairs;

    for (int q = 0; q < queue_pairs; q++) {
        for (int i = 0; i < l->peer.pairs; i++) {
            struct path *p = path_create(v, l, (uint32_t)(q * RAILS_MOST + i));
            if (!p)
                return false;
            p->index = l->paths;
            l->path[l->paths++] = p;
            if (q == 0 && i == updater)
                l->updater = p;
        }
    }
    return true;
}

gshmem_status_t link_open(struct verbs *v, int pe, struct link **out)
{
    struct link *l = calloc(1, sizeof *l);
    int updater = -1;
    char why[300];

    if (v->gone[pe]) {
        free(l);
        return GSHMEM_ERR_PEER_DEAD;
    }
    if (!l || !(l->op = calloc(OPS_FIRST, sizeof *l->op))) {
        free(l);
        return v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for a link to PE %d", pe);
    }
    l->depth = OPS_FIRST;
    l->verbs = v;
    l->pe = pe;
    l->alone.id = NONE_ALONE;
    l->peer.pairs =
        reach_find(v, pe, link_is_intra_node(v, pe), l->peer.rail, &updater, why, sizeof why);
    if (l->peer.pairs < 0) {
        free(l->op);
        free(l);
        return TRANSPORT_FULL;
    }
    if (!l->peer.pairs) {
        v->config.info("verbs: PE %d: %s", pe, why);
    } else if (!add_paths(v, l, updater)) {
        link_close(v, l);
        return v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for a link to PE %d", pe);
    }
    l->next = v->links;
    v->links = v->to[pe] = l;
    for (int i = 0; i < l->paths; i++) {
        if (!path_begin(v, l->path[i], why, sizeof why))
            v->config.info("%s", why);
    }
    link_settle(v, l);
    *out = l;
    return GSHMEM_OK;
}

/* ---- Control messages ---- */

void link_send_broken(struct verbs *v, struct link *l)
{
    const struct control broken = {.kind = CONTROL_BROKEN};

    l->recovery.broken_unsent = !control_send(v, l, &broken);
    v->held_back |= l->recovery.broken_unsent;
}

void link_send_rest(struct verbs *v, struct link *l)
{
    if (l->recovery.broken_unsent)
        link_send_broken(v, l);
    if (l->state == LINK_FAILED)
        return;
    for (uint32_t number = 0; l->recovery.lacks && number < PATHS_MOST; number++) {
        struct control n = {.kind = CONTROL_NONE, .path = number, .generation = 1};
        if (l->recovery.lacks >> number & 1 && control_send(v, l, &n))
            l->recovery.lacks &= (uint16_t) ~(1u << number);
    }
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        if (l->path[i]->unsent)
            path_send_rest(v, l->path[i]);
    }
    v->held_back |= l->recovery.lacks != 0;
}

bool link_is_busy(const struct link *l)
{
    if (l->recovery.broken_unsent)
        return true;
    if (l->state == LINK_FAILED)
        return false;
    if (l->posted != l->done || l->target.reply_next != l->target.reply_end ||
        l->target.owes_reply || l->recovery.lacks || pending_is_busy(l))
        return true;
    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (p->unsent || (p->state == PATH_ACTIVE && p->sends != p->done))
            return true;
    }
    return false;
}

/* ---- The end ---- */

void link_fail(struct verbs *v, struct link *l, gshmem_status_t status, const char *why)
{
    if (l->state == LINK_FAILED)
        return;
    l->state = LINK_FAILED;
    l->failure = status;
    l->direct = l->messenger = NULL;
    l->coalesce.open = NULL;
    l->actives = 0;
    for (int i = 0; i < l->paths; i++) {
        struct path *p = l->path[i];
        v->stopping -= p->state == PATH_STOPPING && !p->failure.drained;
        post_landed(p, p->sends);
        path_end(p);
        p->unsent = 0;
        p->state = PATH_NONE;
    }
    pending_end(l);
    finish_some(v, l);
    if (why)
        v->config.lost(v->config.context, l->pe, status, why);
}

void link_close(struct verbs *v, struct link *l)
{
    if (l->op)
        link_fail(v, l, GSHMEM_ERR_ABORTED, NULL);
    for (int i = 0; i < l->paths; i++)
        path_free(l->path[i]);
    for (int i = 0; i < TRANSPORT_SEGMENT_MAX; i++)
        free(l->peer.key[i]);
    atomics_free(l);
    eager_free(l);
    free(l->coalesce.list);
    free(l->staging);
    free(l->coalesce.joined);
    free(l->op);
    free(l);
}

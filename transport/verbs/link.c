/* All that leads to one PE: its paths, which of them are used, what is said to it and heard of it
 * over the transport below, and how it ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/optional.h"
#include "transport/verbs/note.h"
#include "transport/verbs/verbs.h"

/* ---- Which paths are used ---- */

/* What is small goes by one path for as long as it is up, so that it keeps its order: the best, as
 * rails are in that order, and as the others wait for it to come up first. */
static void choose_messenger(struct link *l)
{
    int first = 0;

    if (!l->messenger || (l->messenger->state != PATH_UP && l->messenger->state != PATH_STOPPING))
        l->messenger = l->ups ? l->up[0] : NULL;
    while (first < l->ups && l->up[first] != l->messenger)
        first++;
    if (first < l->ups) {
        l->up[first] = l->up[0];
        l->up[0] = l->messenger;
    }
}

/* It has neither come up yet, nor failed to. */
static bool link_is_coming(const struct path *p)
{
    return (p->state == PATH_ASKED || p->state == PATH_READY) && !p->tried;
}

void link_settle(struct verbs *v, struct link *l)
{
    const enum link_state before = l->state;
    const bool best_is_coming = l->paths && link_is_coming(l->path[0]);
    bool stopping = false, coming = false;

    if (l->state == LINK_FAILED)
        return;
    l->ups = 0;
    for (int i = 0; i < l->paths; i++) {
        struct path *p = l->path[i];
        if (p->state == PATH_UP)
            l->up[l->ups++] = p;
        stopping |= p->state == PATH_STOPPING;
        coming |= link_is_coming(p);
    }
    if (!best_is_coming)
        choose_messenger(l);
    if (stopping || (l->ups && l->below_left) || (!l->ups && coming) || best_is_coming)
        l->state = LINK_WAITS;
    else
        l->state = l->ups ? LINK_UP : LINK_BELOW;
    l->direct =
        l->state == LINK_UP && !l->up[0]->nic->iwarp && !v->config.device ? l->up[0] : NULL;
    l->near.bytes = 0; /* its key is of one NIC */
    l->collecting = NULL;
    if (l->state == LINK_BELOW && before != LINK_BELOW)
        v->config.info("verbs: PE %d is reached by %s%s", l->pe, v->below->ops->name,
                       l->below_for_good ? " from here on"
                       : l->recovered       ? ", until a path comes back"
                                         : ": there is no path of verbs to it");
    v->held_back = true;
}

/* To PEs of this host, and to this one itself, there goes nothing but what NICs update. */
static bool is_here(const struct verbs *v, int pe)
{
    return v->config.mapped && v->config.mapped(v->config.context, pe, 0);
}

static bool add_paths(struct verbs *v, struct link *l, int updater)
{
    const int queue_pairs = is_here(v, l->pe) ? 1 : v->queue_pairs;

    for (int q = 0; q < queue_pairs; q++) {
        for (int i = 0; i < l->pairs; i++) {
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
    l->alone = NONE_ALONE;
    l->pairs = reach_find(v, pe, is_here(v, pe), l->rail, &updater, why, sizeof why);
    if (l->pairs < 0) {
        free(l->op);
        free(l);
        return TRANSPORT_FULL;
    }
    if (!l->pairs) {
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

bool link_remember(struct link *l, const struct note *o)
{
    l->gpu_below = o->gpu_below;
    if (!l->rails) {
        l->rails = o->nics < (uint32_t)l->pairs ? (int)o->nics : l->pairs;
        l->window = o->window < WINDOW ? o->window : WINDOW;
        if (l->window > (l->verbs->share - 4) / 2)
            l->window = (l->verbs->share - 4) / 2;
    }
    for (uint32_t i = 0; i < o->segments; i++) {
        uint64_t chunks = (o->bytes[i] + CHUNK_BYTES - 1) / CHUNK_BYTES;
        if (!l->key[i] && !(l->key[i] = calloc(chunks ? chunks * (size_t)l->rails : 1, sizeof *l->key[i])))
            return false;
        if (l->bytes[i] && l->bytes[i] != o->bytes[i])
            return false;
        l->base[i] = o->base[i];
        l->bytes[i] = o->bytes[i];
    }
    return true;
}

/* ---- Said, and heard ---- */

bool link_say(struct verbs *v, struct link *l, const struct note *n)
{
    unsigned char text[TRANSPORT_NOTE_MAX];
    size_t bytes = note_encode(text, n);

    if (l->pe == v->config.pe) { /* a queue pair that is its own other end */
        link_heard(v, l->pe, text, bytes);
        return true;
    }
    /* Any failure but a full queue is the peer's loss, of which the transport below tells. */
    return transport_say(v->below, l->pe, text, bytes) != TRANSPORT_FULL;
}

/* So that the peer waits for nothing more of this link's. */
static void say_broken(struct verbs *v, struct link *l)
{
    const struct note broken = {.kind = NOTE_BROKEN};

    l->broken_unsaid = !link_say(v, l, &broken);
    v->held_back |= l->broken_unsaid;
}

void link_say_rest(struct verbs *v, struct link *l)
{
    if (l->broken_unsaid)
        say_broken(v, l);
    if (l->state == LINK_FAILED)
        return;
    for (uint32_t number = 0; l->lacks && number < PATHS_MOST; number++) {
        struct note n = {.kind = NOTE_NONE, .path = number, .life = 1};
        if (l->lacks >> number & 1 && link_say(v, l, &n))
            l->lacks &= (uint16_t)~(1u << number);
    }
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        if (l->path[i]->unsaid)
            path_say_rest(v, l->path[i]);
        failover_go_on(v, l->path[i]);
    }
    v->held_back |= l->lacks != 0;
}

static struct path *find_path(struct link *l, uint32_t number)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->number == number)
            return l->path[i];
    }
    return NULL;
}

static void link_take_note(struct verbs *v, struct link *l, const struct note *n)
{
    struct path *p = find_path(l, n->path);
    struct message m;

    if (n->kind == NOTE_ALIVE)
        return; /* it has been heard */
    if (n->kind == NOTE_BROKEN) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it has given up what led to this PE");
    } else if (n->kind == NOTE_REPLY) {
        if (!message_decode(&n->reply, MESSAGE_HEAD, &m) || m.kind != MESSAGE_REPLY ||
            !serve_take_reply(v, l, &m))
            link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it replied to what was not asked");
        v->held_back = true;
    } else if (p) {
        path_hear(v, p, n);
    } else if (n->path >= PATHS_MOST) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it sent an offer that makes no sense");
    } else if (n->kind == NOTE_OFFER) {
        l->lacks |= (uint16_t)(1u << n->path);
        link_say_rest(v, l);
    }
}

void link_heard(struct verbs *v, int from, const unsigned char *text, size_t bytes)
{
    struct link *l = v->to[from];
    struct note n;

    if (!note_decode(text, bytes, &n)) {
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: PE %d is of another version of GSHMEM, or sent what makes no sense", from);
        if (l)
            link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it sent a note that makes no sense");
        return;
    }
    if (l && l->state == LINK_FAILED) {
        if (n.kind != NOTE_BROKEN)
            say_broken(v, l);
        return;
    }
    if (l || !link_open(v, from, &l)) { /* which has logged why not: the other waits in vain, and notices */
        l->heard_now = true;
        link_take_note(v, l, &n);
    }
}

bool link_is_busy(const struct link *l)
{
    if (l->broken_unsaid)
        return true;
    if (l->state == LINK_FAILED)
        return false;
    if (l->posted != l->done || l->reply_next != l->reply_end || l->owes_reply || l->lacks ||
        stage_is_busy(l))
        return true;
    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (p->unsaid || (p->state == PATH_UP && p->sends != p->done))
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
    l->collecting = NULL;
    l->ups = 0;
    for (int i = 0; i < l->paths; i++) {
        struct path *p = l->path[i];
        v->stopping -= p->state == PATH_STOPPING && !p->drained;
        p->nic->works_left += p->sends - p->done;
        p->done = p->sends;
        path_end(p);
        p->unsaid = 0;
        p->state = PATH_NONE;
    }
    stage_end(l);
    finish_some(v, l);
    if (why)
        v->config.lost(v->config.context, l->pe, status, why);
}

void link_go_below(struct verbs *v, struct link *l, const char *why)
{
    l->below_for_good = true;
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++)
        failover_break(v, l->path[i], why);
}

void link_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes)
{
    l->near.bytes = 0;
    for (uint64_t c = (offset + CHUNK_BYTES - 1) / CHUNK_BYTES;
         l->key[segment] && c * CHUNK_BYTES < offset + bytes; c++)
        memset(&l->key[segment][c * (uint64_t)l->rails], 0, (size_t)l->rails * sizeof *l->key[segment]);
}

void link_close(struct verbs *v, struct link *l)
{
    if (l->op)
        link_fail(v, l, GSHMEM_ERR_ABORTED, NULL);
    for (int i = 0; i < l->paths; i++)
        path_free(l->path[i]);
    for (int i = 0; i < TRANSPORT_SEGMENT_MAX; i++)
        free(l->key[i]);
    atomics_free(l);
    free(l->coalesced);
    free(l->stage);
    free(l->joined);
    free(l->op);
    free(l);
}

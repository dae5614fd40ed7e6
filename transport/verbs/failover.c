/* A path that breaks, and how it comes back: nothing is lost, and nothing applied twice.
 *
 * What a NIC has not reported as done may have arrived all the same. To write it once more would be
 * wrong: who waited for it may have gone on, and changed that memory. So both sides end their queue
 * pair, which then takes nothing any more, take all completions, and tell each other what has come (what a NIC
 * reports later than that is not taken):
 * the number of the packet that the queue pair expects next, and the numbers of the last message and
 * of the last reply. What had not arrived is issued again, in order, by the paths that are left, or by
 * the transport below where none is; it stands still for that long.
 *
 * A NIC that has been taken away cannot tell. If writes were on their way to it then, nobody knows
 * which of them arrived, and the link has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/settings.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/note.h"
#include "transport/verbs/verbs.h"

enum {
    RETRIES_MOST = 5, /* at most 2^5 s between tries */
    DRAIN_NS = 1000 * 1000 * 1000,
    LISTEN_NS = 1000 * 1000 * 1000, /* more between two looks: this process was stopped itself */
};

static uint64_t failover_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- It stops ---- */

void failover_break(struct verbs *v, struct path *p, const char *why)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

    if (p->state < PATH_ASKED || p->state > PATH_UP || p->link->state == LINK_FAILED)
        return;
    v->config.info("verbs: PE %d: %s has broken: %s", p->link->pe, p->nic->name, why);
    if (!p->stopped && !(p->stopped = calloc(2, sizeof *p->stopped))) {
        link_fail(v, p->link, GSHMEM_ERR_MEMORY, "verbs: out of memory to mend its path");
        return;
    }
    if (!p->resolving) /* else nobody has been told yet that it can receive, and the kernel is at it */
        ibv_modify_qp(p->qp, &error, IBV_QP_STATE); /* a NIC that is gone takes nothing either */
    p->given = p->sends - (p->batched - p->batch_first);
    p->broke_at = failover_now_ns();
    p->batch_first = p->batched = 0;
    p->link->alone = NONE_ALONE;
    p->unsaid = 0;
    p->state = PATH_STOPPING;
    p->tried = true;
    p->link->recovered = true;
    v->stopping++;
    v->held_back = true;
    link_settle(v, p->link);
}

/* By now all messages that came by it have been carried out, or stay to be. */
static void tell_what_came(struct verbs *v, struct path *p)
{
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr unused;

    if (p == p->link->heard_by)
        stage_unhear(p->link);
    p->stopped[0] = (struct note){.kind = NOTE_STOPPED,
                                  .heard = p->link->heard_number,
                                  .replied = p->link->replied};
    if (!p->nic->gone && p->nic->tells_packet && !p->nic->iwarp && p->receives &&
        ibv_query_qp(p->qp, &a, IBV_QP_RQ_PSN, &unused) == 0) {
        p->stopped[0].knows_packet = true;
        p->stopped[0].next_packet = a.rq_psn & 0xffffff;
    }
    p->stopped_here = true;
    p->unsaid |= SAY_STOPPED;
    path_say_rest(v, p);
}

/* ---- What has arrived ---- */

static bool has_arrived(const struct path *p, uint32_t number, uint32_t reads_done)
{
    const struct work *w = &p->work[number % SEND_DEPTH];
    const struct link *l = p->link;
    const struct note *n = &p->stopped[1];

    switch (w->kind) {
    case WORK_MESSAGE:
        return !is_after(op_of(l, w->op)->number, n->heard);
    case WORK_READ:
        return is_after(reads_done, number);
    case WORK_OTHER:
        return true; /* replies and questions: see below */
    default:
        /* the difference of two numbers of 24 bits */
        return (int32_t)((n->next_packet - w->packet_end) << 8) >= 0;
    }
}

/* The last that has arrived of what its NIC held back for reads: those before it have come. */
static uint32_t find_reads_done(const struct path *p)
{
    uint32_t number = p->sends;

    for (; number != p->done; number--) {
        const struct work *w = &p->work[(number - 1) % SEND_DEPTH];
        if (w->behind_reads && w->kind != WORK_OTHER && has_arrived(p, number - 1, p->done))
            break;
    }
    return number;
}

/* Whether what the other says can be: it has taken no more than was sent, and all that was reported. */
static bool makes_sense(const struct path *p)
{
    const struct link *l = p->link;
    const struct note *n = &p->stopped[1];

    return (l->messenger != p || (!is_after(n->heard, l->said) && !is_after(l->replied, n->heard))) &&
           !is_after(n->replied, l->heard_number) &&
           (!n->knows_packet || ((n->next_packet - p->packet_done) & 0xffffff) <=
                                    ((p->packet - p->packet_done) & 0xffffff));
}

static bool has_writes(const struct path *p)
{
    for (uint32_t i = p->done; i != p->sends; i++) {
        enum work_kind kind = p->work[i % SEND_DEPTH].kind;
        if (kind == WORK_WRITE || kind == WORK_SIGNAL || kind == WORK_UPDATE)
            return true;
    }
    return false;
}

/* Messages go by one path at a time: those that have not been heard are the last ones. */
static void forget_messages(struct link *l, const struct note *n)
{
    for (l->reply_next = l->reply_end;
         l->reply_end - l->reply_next < REPLIES && l->reply_next &&
         is_after(l->reply[(l->reply_next - 1) % REPLIES].number, n->replied);)
        l->reply_next--;
    if (l->asking && is_after(l->asked_number, n->heard))
        l->asking = false;
    l->said = n->heard;
    l->last_update = is_after(l->last_update, l->said) ? l->said : l->last_update;
    l->fence_update = is_after(l->fence_update, l->said) ? l->said : l->fence_update;
}

static void end_stopping(struct verbs *v, struct path *p)
{
    struct link *l = p->link;
    const bool carried_messages = l->messenger == p;

    if (l->refused[0]) { /* and it lives, as it has just said */
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, l->refused);
        return;
    }
    if (!makes_sense(p) || (has_writes(p) && !p->stopped[1].knows_packet)) {
        char why[300];
        snprintf(why, sizeof why, "verbs: %s: %u work requests were on their way, and it cannot tell "
                                  "which of them have arrived", p->nic->name, p->sends - p->done);
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, why);
        return;
    }
    const uint32_t reads_done = find_reads_done(p);
    op_of(l, l->issuing)->fenced = false; /* it waited for what may be issued again */
    for (uint32_t i = p->done; i != p->sends; i++) {
        const struct work *w = &p->work[i % SEND_DEPTH];
        if (!has_arrived(p, i, reads_done)) {
            if (!issue_again(l, w)) {
                link_fail(v, l, GSHMEM_ERR_MEMORY, "verbs: out of memory to send again what did not arrive");
                return;
            }
        } else if (w->kind == WORK_UPDATE && !is_after(reads_done, i))
            atomics_unanswered(v, l, w);
    }
    if (carried_messages) {
        issue_unheard(l, p->stopped[1].heard);
        forget_messages(l, &p->stopped[1]);
    }
    p->nic->works_left += p->sends - p->done;
    p->done = p->sends;
    path_end(p);
    p->state = PATH_DOWN;
    l->retry_at = failover_now_ns() + (1000000000ull << l->retries);
    v->held_back = true;
    link_settle(v, l);
}

void failover_go_on(struct verbs *v, struct path *p)
{
    if (p->state == PATH_STOPPING && p->stopped_here && p->stopped_there && !p->unsaid)
        end_stopping(v, p);
}

void failover_hear(struct verbs *v, struct path *p, const struct note *n)
{
    if (p->state >= PATH_ASKED && p->state <= PATH_UP)
        failover_break(v, p, "the other side has stopped it");
    if (p->state != PATH_STOPPING)
        return;
    p->stopped[1] = *n;
    if (n->kind == NOTE_NONE) /* it never was: nothing has been sent by it */
        p->stopped[1] = (struct note){.heard = p->link->said, .replied = p->link->heard_number};
    p->stopped_there = true;
    failover_go_on(v, p);
}

/* A queue pair that has broken tells the end of all that it was given, perhaps some polls later. A NIC that has gone
 * tells nothing more, and one that forgets some is not waited for for ever. */
static bool is_drained(const struct path *p)
{
    return p->nic->gone || !is_after(p->given, p->done) || !is_after(p->given, p->failed) ||
           failover_now_ns() - p->broke_at > DRAIN_NS;
}

void failover_drained(struct verbs *v, const struct nic *nic)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
            struct path *p = l->path[i];
            if (p->state != PATH_STOPPING || p->nic != nic)
                continue;
            if (!p->drained && is_drained(p)) {
                p->drained = true;
                v->stopping--;
                tell_what_came(v, p);
            }
            failover_go_on(v, p);
        }
    }
}

/* ---- NICs ---- */

static void break_all(struct verbs *v, const struct nic *nic, const char *why)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths; i++) {
            if (l->path[i]->nic == nic)
                failover_break(v, l->path[i], why);
        }
    }
}

static void failover_take_event(struct verbs *v, struct nic *nic, const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_PORT_ERR:
        if (e->element.port_num != nic->port)
            return;
        nic->down = true;
        break_all(v, nic, "its port has gone down");
        return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        if (e->element.port_num != nic->port)
            return;
        nic->down &= e->event_type != IBV_EVENT_PORT_ACTIVE;
        nic_ask_again(v, nic); /* for first offers, too */
        for (struct link *l = v->links; l; l = l->next)
            l->retry_at = l->retries = 0;
        v->rounds = RETRY_ROUNDS - 1; /* now */
        return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        nic->gone = nic->down = true;
        break_all(v, nic, "the NIC has failed, or was taken away");
        return;
    default:
        return;
    }
}

/* What the peer owes this PE now, for a person to read; NULL: nothing. */
static const char *what_is_owed(const struct link *l)
{
    bool tried = false; /* then a reply waits for what comes of that: send_reply */

    if (l->state == LINK_FAILED)
        return NULL;
    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        tried |= p->state == PATH_TRIED;
        if ((p->state == PATH_ASKED || p->state == PATH_READY) && !p->connecting && !p->resolving &&
            !(p->unsaid & SAY_OFFER))
            return "its part of a queue pair";
        if (p->state == PATH_STOPPING && !p->stopped_there)
            return "what it has received by a path that broke";
    }
    return (l->state == LINK_UP || (l->state == LINK_BELOW && !tried)) && l->said != l->replied ? "a reply" : NULL;
}

/* How long the peer may owe something in silence. A PE that has never been heard may still be starting. */
static int64_t silence_most(const struct verbs *v, const struct link *l)
{
    const int64_t peer = v->config.number(SETTING_PEER_TIMEOUT), start = v->config.number(SETTING_INIT_TIMEOUT);

    return l->heard_any || peer > start ? peer : start;
}

/* A connection of iWARP's that does not come costs its path, not the peer: the word of that goes by the
 * transport below, which knows whether the peer lives. */
static void end_late_connections(struct verbs *v, struct link *l, uint64_t since)
{
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        struct path *p = l->path[i];
        p->connecting_ns = p->connecting ? p->connecting_ns + since : 0;
        if (p->connecting_ns / 1000000000u >= (uint64_t)v->config.number(SETTING_INIT_TIMEOUT))
            path_refuse(v, p, "no connection has come up in time (GSHMEM_INIT_TIMEOUT)");
    }
}

/* A NIC answers for a process that is stopped, and the transport below acknowledges nothing that was
 * said: a peer that owes something and sends nothing for that long is taken for dead. Time in which
 * this process was stopped itself does not count. */
static void listen_to_all(struct verbs *v)
{
    const uint64_t now = v->links ? failover_now_ns() : 0;
    const uint64_t since = now - v->listened_at < LISTEN_NS ? now - v->listened_at : LISTEN_NS;
    char why[200];

    v->listened_at = now;
    for (struct link *l = v->links; l; l = l->next) {
        if (v->connecting)
            end_late_connections(v, l, since);
        const char *owed = what_is_owed(l);
        const bool owed_then = l->owed_then; /* else it has not been silent for all of that time */
        l->owed_then = owed != NULL;
        if (!owed || !owed_then || l->heard_now || l->replied != l->replied_then || l->heard_number != l->heard_then) {
            l->heard_any |= l->heard_now;
            l->heard_now = false;
            l->replied_then = l->replied;
            l->heard_then = l->heard_number;
            l->silent_ns = 0;
            continue;
        }
        l->silent_ns += since;
        if (l->silent_ns / 1000000000u < (uint64_t)silence_most(v, l))
            continue;
        snprintf(why, sizeof why, "verbs: it owes %s and has sent nothing for %d s (%s)", owed,
                 (int)silence_most(v, l), l->heard_any ? "GSHMEM_PEER_TIMEOUT" : "GSHMEM_INIT_TIMEOUT");
        link_fail(v, l, GSHMEM_ERR_PEER_DEAD, why);
    }
}

void failover_watch(struct verbs *v)
{
    listen_to_all(v);
    cm_watch(v);
    for (int i = 0; i < v->opened; i++) {
        struct ibv_async_event e;
        while (ibv_get_async_event(v->nic[i].context, &e) == 0) {
            struct ibv_async_event copy = e;
            ibv_ack_async_event(&e);
            failover_take_event(v, &v->nic[i], &copy);
        }
    }
}

/* Paths that are down, be it since they broke or since their first queue pair could not be made. */
static void try_again(struct verbs *v, struct link *l)
{
    bool tried = false;
    char why[300];

    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
        struct path *p = l->path[i];
        if (p->state != PATH_DOWN || p->nic->down || p->unsaid)
            continue;
        tried = true;
        path_begin(v, p, why, sizeof why);
    }
    if (!tried)
        return;
    l->retries += l->retries < RETRIES_MOST;
    l->retry_at = failover_now_ns() + (1000000000ull << l->retries);
}

void failover_retry(struct verbs *v)
{
    failover_watch(v);
    uint64_t now = v->links ? failover_now_ns() : 0;
    for (struct link *l = v->links; l; l = l->next) {
        if (l->state != LINK_FAILED && !l->below_for_good && now >= l->retry_at)
            try_again(v, l);
    }
}

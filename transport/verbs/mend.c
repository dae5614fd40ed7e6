/* A path that breaks, and how it comes back: nothing is lost, and nothing applied twice.
 *
 * What a NIC has not reported as done may have arrived all the same. To write it once more would be
 * wrong: who waited for it may have gone on, and changed that memory. So both sides end their queue
 * pair, which then takes nothing any more, take all completions, and tell each other what has come:
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
    LISTEN_NS = 1000 * 1000 * 1000,
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- It stops ---- */

void mend_break(struct verbs *v, struct path *p, const char *why)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

    if (p->state < PATH_ASKED || p->state > PATH_UP || p->link->state == LINK_FAILED)
        return;
    v->config.info("verbs: PE %d: %s has broken: %s", p->link->pe, p->nic->name, why);
    if (!p->stopped && !(p->stopped = calloc(2, sizeof *p->stopped))) {
        link_fail(v, p->link, GSHMEM_ERR_MEMORY, "verbs: out of memory to mend its path");
        return;
    }
    ibv_modify_qp(p->qp, &error, IBV_QP_STATE); /* a NIC that is gone takes nothing either */
    p->batch_first = p->batched = 0;
    p->link->alone = NONE_ALONE;
    p->unsaid = 0;
    p->state = PATH_STOPPING;
    p->tried = true;
    p->link->mended = true;
    v->stopping++;
    v->held_back = true;
    link_settle(v, p->link);
}

/* By now all messages that came by it have been carried out. */
static void tell_what_came(struct verbs *v, struct path *p)
{
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr unused;

    if (p == p->link->heard_by)
        stage_unhear(p->link);
    p->stopped[0] = (struct note){.kind = NOTE_STOPPED,
                                  .heard = p->link->heard_number,
                                  .replied = p->link->replied};
    if (!p->nic->gone && !p->nic->iwarp && p->receives && ibv_query_qp(p->qp, &a, IBV_QP_RQ_PSN, &unused) == 0) {
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
        return !is_after(l->op[w->op % OPS].number, n->heard);
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
    l->op[l->issuing % OPS].fenced = false; /* it waited for what may be issued again */
    for (uint32_t i = p->done; i != p->sends; i++) {
        const struct work *w = &p->work[i % SEND_DEPTH];
        if (!has_arrived(p, i, reads_done))
            issue_again(l, w);
        else if (w->kind == WORK_UPDATE && !is_after(reads_done, i))
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
    l->retry_at = now_ns() + (1000000000ull << l->retries);
    v->held_back = true;
    link_settle(v, l);
}

void mend_go_on(struct verbs *v, struct path *p)
{
    if (p->state == PATH_STOPPING && p->stopped_here && p->stopped_there && !p->unsaid)
        end_stopping(v, p);
}

void mend_hear(struct verbs *v, struct path *p, const struct note *n)
{
    if (p->state >= PATH_ASKED && p->state <= PATH_UP)
        mend_break(v, p, "the other side has stopped it");
    if (p->state != PATH_STOPPING)
        return;
    p->stopped[1] = *n;
    if (n->kind == NOTE_NONE) /* it never was: nothing has been sent by it */
        p->stopped[1] = (struct note){.heard = p->link->said, .replied = p->link->heard_number};
    p->stopped_there = true;
    mend_go_on(v, p);
}

void mend_drained(struct verbs *v, const struct nic *nic)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
            struct path *p = l->path[i];
            if (p->state != PATH_STOPPING || p->nic != nic)
                continue;
            if (!p->drained) {
                p->drained = true;
                v->stopping--;
                tell_what_came(v, p);
            }
            mend_go_on(v, p);
        }
    }
}

/* ---- NICs ---- */

static void break_all(struct verbs *v, const struct nic *nic, const char *why)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths; i++) {
            if (l->path[i]->nic == nic)
                mend_break(v, l->path[i], why);
        }
    }
}

static void take_event(struct verbs *v, struct nic *nic, const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_PORT_ERR:
        if (e->element.port_num != nic->port)
            return;
        nic->down = true;
        break_all(v, nic, "its port has gone down");
        return;
    case IBV_EVENT_PORT_ACTIVE:
        if (e->element.port_num != nic->port)
            return;
        nic->down = false;
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

/* A NIC goes on answering for a process that stands still: who owes replies, and has sent no message for
 * as long as TCP would wait for an answer, is taken for dead. Time in which this process stood still
 * itself does not count. */
static void listen_to_all(struct verbs *v)
{
    const uint64_t now = v->links ? now_ns() : 0, since = now - v->listened_at;
    const int64_t patience = v->config.number(SETTING_PEER_TIMEOUT);
    char why[200];

    v->listened_at = now;
    for (struct link *l = v->links; l; l = l->next) {
        if (l->state != LINK_UP || l->said == l->replied || l->replied != l->replied_then ||
            l->heard_number != l->heard_then) {
            l->replied_then = l->replied;
            l->heard_then = l->heard_number;
            l->silent_ns = 0;
            continue;
        }
        l->silent_ns += since < LISTEN_NS ? since : LISTEN_NS;
        if (l->silent_ns / 1000000000u < (uint64_t)patience)
            continue;
        snprintf(why, sizeof why,
                 "verbs: it owes a reply and has sent no message for %d s (GSHMEM_PEER_TIMEOUT)",
                 (int)patience);
        link_fail(v, l, GSHMEM_ERR_PEER_DEAD, why);
    }
}

void mend_watch(struct verbs *v)
{
    listen_to_all(v);
    cm_watch(v);
    for (int i = 0; i < v->opened; i++) {
        struct ibv_async_event e;
        while (ibv_get_async_event(v->nic[i].context, &e) == 0) {
            struct ibv_async_event copy = e;
            ibv_ack_async_event(&e);
            take_event(v, &v->nic[i], &copy);
        }
    }
}

static void try_again(struct verbs *v, struct link *l)
{
    char why[300];

    for (int i = 0; i < l->paths; i++) {
        struct path *p = l->path[i];
        if (p->state == PATH_DOWN && !p->nic->down && !p->unsaid)
            path_begin(v, p, why, sizeof why);
    }
    l->retries += l->retries < RETRIES_MOST;
    l->retry_at = now_ns() + (1000000000ull << l->retries);
}

void mend_retry(struct verbs *v)
{
    mend_watch(v);
    uint64_t now = v->links ? now_ns() : 0;
    for (struct link *l = v->links; l; l = l->next) {
        if (l->mended && l->state != LINK_FAILED && now >= l->retry_at)
            try_again(v, l);
    }
}

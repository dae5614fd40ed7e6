/* Control messages of peers: each goes to the path, the link or the failover that it is for. */
#include "transport/verbs/connect.h"
#include "transport/verbs/control.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/receive.h"
#include "transport/verbs/serve.h"
#include "transport/verbs/verbs.h"

static struct path *receive_find_path(struct link *l, uint32_t number)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->number == number)
            return l->path[i];
    }
    return NULL;
}

static void receive_dispatch(struct verbs *v, struct link *l, const struct control *n)
{
    struct path *p = receive_find_path(l, n->path);
    struct message m;

    if (n->kind == CONTROL_ALIVE)
        return; /* that it came is all it says */
    if (n->kind == CONTROL_BROKEN) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it has given up its link to this PE");
    } else if (n->kind == CONTROL_REPLY) {
        if (!message_decode(&n->reply, MESSAGE_HEAD, &m) || m.kind != MESSAGE_REPLY ||
            !serve_take_reply(v, l, &m))
            link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it replied to what was not requested");
        v->held_back = true;
    } else if (p) {
        if (path_receive(v, p, n) == PATH_STOPS)
            failover_receive(v, p, n);
    } else if (n->path >= PATHS_MOST) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it sent an offer that makes no sense");
    } else if (n->kind == CONTROL_OFFER) {
        l->recovery.lacks |= (uint16_t)(1u << n->path);
        link_send_rest(v, l);
    }
}

void receive_control(struct verbs *v, int from, const unsigned char *text, size_t bytes)
{
    struct link *l = v->to[from];
    struct control n;

    if (!control_decode(text, bytes, &n)) {
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: PE %d is of another version of GSHMEM, or sent what makes no sense",
                       from);
        if (l)
            link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                      "verbs: it sent a control message that makes no sense");
        return;
    }
    if (l && l->state == LINK_FAILED) {
        if (n.kind != CONTROL_BROKEN)
            link_send_broken(v, l);
        return;
    }
    if (l || !link_open(v, from,
                        &l)) { /* which has logged why not: the peer waits in vain, and notices */
        l->watch.received = true;
        receive_dispatch(v, l, &n);
    }
}

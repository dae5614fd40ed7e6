/* Messages to a peer's proxy, which replies to each: no more of them are in flight than the peer
 * has room for. */
#include "transport/verbs/order.h"
#include "transport/verbs/post.h"
#include "transport/verbs/send.h"
#include "transport/verbs/verbs.h"

static bool send_may(const struct link *l, uint32_t most)
{
    return l->messages.sent - l->messages.replied < most && order_others_are_done(l, l->active[0]);
}

bool send_is_possible(const struct link *l)
{
    return send_may(l, l->messages.window);
}

bool send_request(struct verbs *v, struct link *l, enum work_kind kind, uint32_t op,
                  struct message *m, uint32_t most)
{
    if (!send_may(l, most))
        return false;
    m->from = (uint32_t)v->config.pe;
    m->number = l->messages.sent + 1;
    if (!post_message(v, l->active[0], kind, op, m))
        return false;
    l->messages.sent++;
    return true;
}

bool send_update(struct verbs *v, struct link *l, struct op *op, struct message *m)
{
    if (!send_request(v, l, WORK_MESSAGE, op_number(l, op), m, l->messages.window))
        return false;
    op->wants_reply = true;
    op->number = l->messages.last_update = l->messages.sent;
    op_sent_by(op, l->active[0]);
    return true;
}

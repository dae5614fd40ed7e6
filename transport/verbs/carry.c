/* Parts of operations that the transport below carries: an operation is done when its last part is
 * posted and none is left. */
#include "transport/verbs/carry.h"
#include "transport/verbs/verbs.h"

static void carry_done(void *tag, gshmem_status_t status)
{
    struct op *op = tag;
    struct link *l = op->link;

    op->failure = op->failure ? op->failure : status;
    if (--op->parts == 0 && op->below == BELOW_CARRIES)
        op->below = BELOW_DONE;
    l->verbs->held_back = true; /* progress ends it */
    if (--l->below_left == 0)
        l->verbs->report->link_changed(l->verbs, l);
}

bool carry_part(struct verbs *v, struct link *l, struct op *op, struct transport_request *r)
{
    r->sent = NULL;
    r->done = carry_done;
    r->tag = op;
    op->parts++;
    l->below_left++;
    gshmem_status_t status = v->below->ops->post(v->below, r);
    if (status == TRANSPORT_FULL) {
        op->parts--;
        l->below_left--;
        return false;
    }
    if (status)
        carry_done(op, status);
    return true;
}

void carry_no_more(struct op *op)
{
    op->below = op->parts ? BELOW_CARRIES : BELOW_DONE;
}

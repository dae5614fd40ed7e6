/* Sends control messages over the transport below. */
#include "transport/optional.h"
#include "transport/verbs/control.h"
#include "transport/verbs/verbs.h"

bool control_send(struct verbs *v, struct link *l, const struct control *n)
{
    unsigned char text[TRANSPORT_NOTE_MAX];
    size_t bytes = control_encode(text, n);

    if (l->pe == v->config.pe) { /* to itself */
        v->report->control_to_self(v, l->pe, text, bytes);
        return true;
    }
    /* Any failure but a full queue means that the peer has failed, which the transport below
     * reports. */
    return transport_say(v->below, l->pe, text, bytes) != TRANSPORT_FULL;
}

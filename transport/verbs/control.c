/* Sends control messages over the transport below. */
#include "transport/optional.h"
#include "transport/verbs/control.h"
#include "transport/verbs/verbs.h"

gshmem_status_t control_try(struct verbs *v, struct link *l, const struct control *n)
{
    unsigned char text[TRANSPORT_NOTE_MAX];
    size_t bytes = control_encode(text, n);

    if (l->pe == v->config.pe) { /* to itself */
        v->report->control_to_self(v, l->pe, text, bytes);
        return GSHMEM_OK;
    }
    return transport_say(v->below, l->pe, text, bytes);
}

bool control_send(struct verbs *v, struct link *l, const struct control *n)
{
    /* any other failure means that the peer has failed or refuses this PE: the transport below
     * reports the one, and watch.c notices the other */
    return control_try(v, l, n) != TRANSPORT_FULL;
}

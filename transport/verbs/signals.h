/* Signals of puts: written, sent as messages, or held until several go together. */
#ifndef GSHMEM_TRANSPORT_VERBS_SIGNALS_H
#define GSHMEM_TRANSPORT_VERBS_SIGNALS_H

#include <stdbool.h>

#include "transport/verbs/link.h"

enum {
    SHARE_BYTES = 64 << 10, /* of data that waits for one signal; each put counts as */
    SHARE_PUT = 4096,       /* so much more than its data */
};

/* Sends a put's data, if it is small, and its signal as one message; false: not now. */
bool signals_send_put(struct verbs *v, struct link *l, struct op *op, bool data);
/* Whether a signal needs the target's CPU. */
bool signals_are_messages(const struct verbs *v, const struct link *l,
                          const struct transport_request *r);
/* Whether the signal may wait for others, once its data is issued. */
bool signals_may_wait(const struct verbs *v, const struct link *l, const struct op *op);
/* Issues the signal of a put whose data is issued, or holds the operation; false: not now. */
bool signals_issue(struct verbs *v, struct link *l, struct op *op);
/* Whether so much data waits for its signal that no more is waited for. */
static inline bool signals_are_full(const struct link *l)
{
    return l->signals.weight >= SHARE_BYTES;
}

/* Whether some that are held may go now. */
static inline bool signals_are_due(const struct link *l)
{
    return l->held &&
           (l->held > l->signals.waiting || l->signals.then == 0 || signals_are_full(l));
}

/* Issues those that are held, as far as their data is in its place, and updates that are tried
 * again. */
void signals_send_held(struct verbs *v, struct link *l);
/* A call of progress begins: signals that nothing has joined since the last one, or that nothing in
 * flight covers, wait no longer. */
void signals_end_round(struct verbs *v, struct link *l);

#endif

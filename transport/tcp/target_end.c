/* How a stream that another PE opened ends. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/log.h"
#include "transport/tcp/stream_memory.h"
#include "transport/tcp/target.h"

/* Takes the stream out of a list that is linked by `field`. */
#define REMOVE(list, field)                                                                        \
    for (struct target **at = &(list); *at; at = &(*at)->field) {                                  \
        if (*at == from) {                                                                         \
            *at = from->field;                                                                     \
            break;                                                                                 \
        }                                                                                          \
    }

void target_drop(struct tcp *t, struct target *from)
{
    REMOVE(t->targets.first, next)
    REMOVE(t->targets.delay.delayed, next_delayed)
    REMOVE(t->targets.delay.unawaited, next_unawaited)
    REMOVE(t->targets.staging, next_staging)
    if (from->pe >= 0)
        t->from[from->pe] = NULL;
    unordered_complete(t, from, from->unordered_sent, GSHMEM_ERR_PEER_DEAD);
    deferred_end(t, from);
    queue_abandon(&from->out, staging_give);
    t->targets.admission.strangers -= from->pe < 0;
    t->targets.admission.without_hello -= from->stranger.claimed < 0;
    poller_end(&t->poller, &from->stream);
    stream_memory_free(from, sizeof *from);
}

void target_close_later(struct tcp *t, struct target *from)
{
    from->is_closing = t->targets.closing = true;
}

void target_drop_closing(struct tcp *t)
{
    t->targets.closing = false;
    for (struct target *from = t->targets.first, *next; from; from = next) {
        next = from->next;
        if (from->is_closing)
            target_drop(t, from);
    }
}

/* A PE whose stream is closed has failed for this PE: some request may wait for it. */
bool target_refuse(struct tcp *t, struct target *from, const char *what)
{
    char why[160];

    if (from->pe < 0) {
        /* A scan of ports makes many connections: one line for the first, and their number at the
         * end. */
        if (t->targets.admission.refusals++ == 0)
            log_warn("tcp: a connection was refused: %s", what);
        else
            log_debug("tcp: a connection was refused: %s", what);
    } else {
        snprintf(why, sizeof why, "tcp: its connection was closed here: it sent %s", what);
        t->events++;
        t->config.lost(t->config.context, from->pe, GSHMEM_ERR_TRANSPORT, why);
    }
    return false;
}

bool target_ended(struct tcp *t, struct target *from, int error)
{
    char why[160];

    if (from->pe < 0 || (from->goodbye && from->unordered_sent == from->unordered_done) ||
        t->peer[from->pe].refuses)
        return false;
    socket_explain_end(&t->socket, error, why, sizeof why);
    t->events++;
    t->config.lost(t->config.context, from->pe, GSHMEM_ERR_PEER_DEAD, why);
    return false;
}

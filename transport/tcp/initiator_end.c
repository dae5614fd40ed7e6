/* How a stream that this PE opened ends, and with it its requests. */
#define _GNU_SOURCE
#include <stdio.h>

#include "transport/tcp/initiator.h"

/* `done` may post: the caller has marked the stream as failed, so that nothing is taken. */
static void end_requests(struct tcp *t, struct initiator *to, gshmem_status_t status)
{
    queue_abandon(&to->out, staging_give);
    staging_abandon(&to->landing);
    pending_complete(t, to, to->posted, status);
    backlog_end(to, status);
}

static void close_stream(struct tcp *t, struct initiator *to)
{
    t->peer[to->pe].active = false;
    poller_end(&t->poller, &to->stream);
    to->connecting.retry_at = 0;
}

void initiator_fail(struct tcp *t, struct initiator *to, gshmem_status_t status, const char *why)
{
    if (to->failed)
        return;
    to->failed = true;
    to->failure = status;
    close_stream(t, to);
    t->events++;
    if (!to->goodbye || to->completed != to->posted || !backlog_empty(to))
        t->config.lost(t->config.context, to->pe,
                       to->goodbye || !to->active ? GSHMEM_ERR_UNREACHABLE : status, why);
    end_requests(t, to, status);
}

void initiator_fail_here(struct tcp *t, struct initiator *to, gshmem_status_t status,
                         const char *why)
{
    t->config.fail(status, "no connection to PE %d: %s", to->pe, why);
    close_stream(t, to);
    to->failed = true; /* until all requests have ended */
    to->failure = status;
    end_requests(t, to, status);
    to->failed = false;
    to->is_idle = true;
    to->posted = to->awaited = to->completed = to->responded = 0; /* none of them was sent */
}

bool initiator_refused(struct tcp *t, struct initiator *to)
{
    if (to->failed)
        return false;
    to->failed = t->peer[to->pe].refuses = true;
    to->failure = GSHMEM_ERR_PEER_DEAD;
    close_stream(t, to);
    t->config.refused(t->config.context, to->pe);
    end_requests(t, to, GSHMEM_ERR_PEER_DEAD);
    return false;
}

bool initiator_refuse(struct tcp *t, struct initiator *to, const char *what)
{
    char why[160];

    snprintf(why, sizeof why, "tcp: PE %d sent %s", to->pe, what);
    initiator_fail(t, to, GSHMEM_ERR_TRANSPORT, why);
    return false;
}

void initiator_abort(struct tcp *t, struct initiator *to)
{
    close_stream(t, to);
    to->failed = true;
    to->failure = GSHMEM_ERR_ABORTED;
    end_requests(t, to, GSHMEM_ERR_ABORTED);
}

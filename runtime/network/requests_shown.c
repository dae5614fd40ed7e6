/* What waits for requests show of themselves (wait_shown.h). */
#include <stdio.h>

#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/where/record.h"

void network_show_room(const struct wait *w, struct where_wait *record)
{
    const struct transport_request *request = w->object;

    record->kind = WHERE_ROOM;
    wait_show_peer(record, request->pe);
    snprintf(record->text, sizeof record->text, "room in the queue to PE %d, for %llu bytes",
             request->pe, (unsigned long long)request->bytes);
}

void network_show_sending(const struct wait *w, struct where_wait *record)
{
    const struct transport_request *request = w->object;

    wait_show_peer(record, request->pe);
    snprintf(record->text, sizeof record->text, "%llu bytes that are being sent to PE %d",
             (unsigned long long)request->bytes, request->pe);
}

/* Which PEs owe answers, and how many. */
void network_show_pending(const struct wait *w, struct where_wait *record)
{
    const struct pending *p = w->object;
    struct network *n = job->network;
    unsigned long long requests = 0;

    mutex_take(&n->lock);
    for (const struct flight *f = p->first; f; f = f->next) {
        if (f->landed)
            continue;
        wait_show_peer(record, f->pe);
        requests++;
    }
    mutex_give(&n->lock);
    snprintf(record->text, sizeof record->text, "%llu %s over %s", requests,
             requests == 1 ? "answer" : "answers", n->remote ? n->remote->ops->name : "local");
}

#define _GNU_SOURCE
#include "runtime/network/wait_shown.h"

#include <assert.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/node/where_page.h"
#include "runtime/stats/stats.h"
#include "runtime/trace/trace.h"

static_assert((int)SEGMENT_HEAP == (int)WHERE_SEGMENT_HEAP, "a page is read by other programs");

enum {
    REFRESH_NS = 100 * 1000 * 1000, /* between two descriptions of a wait */
    OWN_FRAMES = 3,                 /* of this file and of wait.c, which say nothing */
};

void wait_show_peer(struct where_wait *record, int pe)
{
    where_add_peer(record, pe);
}

void wait_show_object(struct where_wait *record, const void *at, size_t bytes)
{
    struct location l;

    record->at = (uint64_t)(uintptr_t)at;
    if (!map_find(job->map, at, bytes, &l))
        return;
    record->segment = l.segment;
    record->offset = l.offset;
}

/* The call stack does not change while the wait lasts. */
static void show_stack(struct where_wait *record)
{
    void *frame[OWN_FRAMES + WHERE_FRAMES];
    int n = backtrace(frame, OWN_FRAMES + WHERE_FRAMES);

    record->frames = 0;
    for (int i = OWN_FRAMES; i < n; i++)
        record->frame[record->frames++] = (uint64_t)(uintptr_t)frame[i];
}

static void show_joining(struct where_wait *record)
{
    const struct node *node = job->node;

    record->kind = WHERE_START;
    for (int i = 0; i < node->n; i++) {
        if (atomic_load_explicit(&node->control->member[i].state, memory_order_relaxed) ==
            NODE_ABSENT)
            wait_show_peer(record, node->pe[i]);
    }
}

static void describe(const struct wait *w, struct where_wait *record)
{
    record->peers = 0;
    record->text[0] = 0;
    if (w->describe)
        w->describe(w, record);
    else if (w->team == GSHMEM_TEAM_INVALID)
        show_joining(record);
    else
        job->waits->peers(w, record);
}

void wait_show(struct wait *w, uint64_t now)
{
    struct where_wait *record = w->record;

    if (!record || (record->kind != WHERE_UNKNOWN && now - record->seen < REFRESH_NS))
        return;
    /* Described apart, since that may take time, during which nobody could read the record. */
    struct where_wait next = {.kind = WHERE_NETWORK, .team = -1, .segment = -1};
    describe(w, &next);
    const bool first = record->kind == WHERE_UNKNOWN;
    if (first)
        show_stack(&next);
    where_write_begin(record);
    record->seen = now;
    record->kind = next.kind;
    record->team = next.team;
    record->at = next.at;
    record->segment = next.segment;
    record->offset = next.offset;
    record->peers = next.peers;
    record->step = next.step;
    memcpy(record->peer, next.peer, sizeof record->peer);
    memcpy(record->text, next.text, sizeof record->text);
    if (first) {
        record->frames = next.frames;
        memcpy(record->frame, next.frame, sizeof record->frame);
    }
    where_write_end(record);
}

/* The first of the two counters of such waits; the time is the second. */
static enum stats_value wait_counter(const struct wait *w)
{
    return w->team == WAIT_FOR_NETWORK    ? STATS_WAITS_NETWORK
           : w->only == WAIT_FOR_UPDATE ? STATS_WAITS_VARIABLE
                                         : STATS_WAITS_PEERS;
}

void wait_count(const struct wait *w)
{
    struct stats_block *b = stats_mine(job->stats);

    if (b)
        stats_add(b, wait_counter(w), 1);
}

/* Whom the wait was for: the only PE that it can have been, or that was seen to be missing. */
static void wait_count_time(const struct wait *w)
{
    struct stats_block *b = stats_mine(job->stats);
    const uint64_t ns = clock_ns() - w->since;
    const struct where_wait *record = w->record;
    int pe = w->only >= 0 ? w->only : w->ended_by;

    if (!b)
        return;
    if (pe < 0 && record->peers == 1 && record->peer[0] >= 0 && record->peer[0] < job->n_pes)
        pe = record->peer[0];
    stats_add(b, wait_counter(w) + 1, ns);
    stats_more(&b->peer[pe >= 0 ? pe : job->n_pes].ns, ns);
}

void wait_forget(struct wait *w)
{
    wait_count_time(w);
    trace_event(TRACE_WAKE, TRACE_NO_OP, -1, 0, 0, 0);
    where_page_release(job->node, w->record);
    w->record = NULL;
}

/* For the watchdog's line, what the record says that a wait is for. */
static void say_object(const struct where_wait *record, char *text, size_t size)
{
    if (record->kind == WHERE_VARIABLE)
        snprintf(text, size, "waiting for the variable at %#llx, %s",
                 (unsigned long long)record->at, record->text);
    else if (record->kind == WHERE_LOCK && record->peers)
        snprintf(text, size, "waiting for PE %d, which has the lock or is before this PE",
                 record->peer[0]);
    else if (record->kind == WHERE_THREAD)
        snprintf(text, size, "%s", record->text);
    else if (record->text[0])
        snprintf(text, size, "waiting for %s", record->text);
}

void wait_watch(struct wait *w, uint64_t waited)
{
    int64_t seconds = settings_number(SETTING_WATCHDOG);
    char missing[200] = "";

    if (seconds == 0 || w->reported || waited < (uint64_t)seconds * 1000000000u)
        return;
    w->reported = true;
    job->waits->missing(w->team, missing, sizeof missing);
    if (!missing[0] && w->record)
        say_object(w->record, missing, sizeof missing);
    log_line(LOG_ERROR,
             "watchdog: %s has waited for %llu s%s%s; to see which PE blocks the job: "
             "gshmem-where %s",
             w->what, (unsigned long long)(waited / 1000000000u), missing[0] ? "; " : "", missing,
             job->bootstrap->job);
}

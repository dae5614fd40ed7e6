/* Waits in kernels of the host device, as gshmem-where shows them. A kernel's wait shows itself
 * again and again while it lasts, and does not say when it is over: a record that was not refreshed
 * is old, and is used again. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gshmem/device/state.h"
#include "runtime/base/clock.h"
#include "runtime/job/job.h"
#include "runtime/network/wait_shown.h"
#include "runtime/node/node.h"
#include "runtime/node/where_page.h"
#include "runtime/proxy/kernels.h"
#include "runtime/teams/team.h"

enum {
    KERNEL_WAITS = 20,     /* records that kernels may have; the rest is for threads */
    FRAMES_OF_LIBRARY = 2, /* this function and its caller in the header */
};

static const char *const shown_call[] = {
    [GSHMEM_SHOWN_PROXY] = "an operation in a kernel, for the proxy",
    [GSHMEM_SHOWN_VARIABLE] = "a wait in a kernel",
    [GSHMEM_SHOWN_COLLECTIVE] = "a collective in a kernel",
};

/* The record of this thread of a kernel; else one that is old, or a new one. */
static struct where_wait *shown_record(struct node *node, const char *where, uint64_t now)
{
    struct where_wait *old = NULL, *new = NULL;

    for (uint32_t left = node->kernel_records; left; left &= left - 1) {
        struct where_wait *w = &node->page->wait[__builtin_ctz(left)];
        if (strncmp(w->text, where, WHERE_TEXT - 1) == 0 && now - w->seen < WHERE_KERNEL_NS)
            return w;
        if (now - w->seen >= WHERE_KERNEL_NS)
            old = w;
    }
    if (old)
        old->since = now;
    if (!old && __builtin_popcount(node->kernel_records) < KERNEL_WAITS)
        new = where_page_claim(node, "", now);
    if (new)
        node->kernel_records |= 1u << (new - node->page->wait);
    return old ? old : new;
}

static void show_team(struct where_wait *w, const void *sync)
{
    w->kind = WHERE_COLLECTIVE;
    w->team = kernels_team_of_sync(job, sync);
    const struct team *t = w->team >= 0 ? job->team[w->team] : NULL;
    for (int i = 0; t && i < t->n_pes; i++) {
        if (t->members[i] != job->pe)
            wait_show_peer(w, t->members[i]);
    }
}

void gshmem_device_show_wait(int kind, const void *object, const char *where)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *frame[FRAMES_OF_LIBRARY + WHERE_FRAMES];
    const uint64_t now = clock_ns();

    const bool first = kind & GSHMEM_SHOWN_FIRST;

    kind &= ~GSHMEM_SHOWN_FIRST;
    if (!job || job_is_over(job) || kind < 0 || kind > GSHMEM_SHOWN_COLLECTIVE)
        return;
    pthread_mutex_lock(&lock);
    struct where_wait *w = shown_record(job->node, where, now);
    if (w) {
        where_write_begin(w);
        w->tid = 0;
        w->since = first ? now : w->since;
        w->seen = now;
        w->peers = 0;
        w->at = 0;
        w->segment = w->team = -1;
        snprintf(w->call, sizeof w->call, "%s", shown_call[kind]);
        snprintf(w->text, sizeof w->text, "%s", where);
        w->kind = WHERE_NETWORK;
        if (kind == GSHMEM_SHOWN_VARIABLE) {
            w->kind = WHERE_VARIABLE;
            wait_show_object(w, object, 1);
        } else if (kind == GSHMEM_SHOWN_COLLECTIVE) {
            show_team(w, object);
        }
        int n = backtrace(frame, FRAMES_OF_LIBRARY + WHERE_FRAMES);
        w->frames = 0;
        for (int i = FRAMES_OF_LIBRARY; i < n; i++)
            w->frame[w->frames++] = (uint64_t)(uintptr_t)frame[i];
        where_write_end(w);
    }
    pthread_mutex_unlock(&lock);
}

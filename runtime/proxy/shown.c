/* A kernel's wait is shown again and again while it lasts, and nobody says when it is over: a
 * record that was not refreshed is old, and is used again. */
#define _GNU_SOURCE
#include "runtime/proxy/shown.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "gshmem/device/state.h"
#include "runtime/base/clock.h"
#include "runtime/job/job.h"
#include "runtime/network/wait_shown.h"
#include "runtime/node/node.h"
#include "runtime/node/where_page.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"
#include "runtime/teams/team.h"

enum {
    KERNEL_WAITS = 20,     /* records that kernels may have; the rest is for threads */
    FRAMES_OF_LIBRARY = 2, /* this function and its caller in the header */
};

static const char *const shown_call[] = {
    [GSHMEM_SHOWN_PROXY] = "an operation in a kernel, for the proxy",
    [GSHMEM_SHOWN_VARIABLE] = "a wait in a kernel",
    [GSHMEM_SHOWN_COLLECTIVE] = "a collective in a kernel",
    [GSHMEM_SHOWN_WARPGROUP] = "a collective in a kernel",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether it is the record of this key: its text is the key, or begins with it if the key ends in
 * ": ". */
static bool is_of(const struct where_wait *w, const char *key)
{
    const size_t n = strnlen(key, WHERE_TEXT - 1);

    return strncmp(w->text, key, n) == 0 && (w->text[n] == 0 || (n && key[n - 1] == ' '));
}

/* The record of this key; else one that is old, or a new one. */
static struct where_wait *shown_record(struct node *node, const char *key, uint64_t now)
{
    struct where_wait *old = NULL, *new = NULL;

    for (uint32_t left = node->kernel_records; left; left &= left - 1) {
        struct where_wait *w = &node->page->wait[__builtin_ctz(left)];
        if (is_of(w, key) && now - w->seen < WHERE_KERNEL_NS)
            return w;
        if (now - w->seen >= WHERE_KERNEL_NS)
            old = w;
    }
    if (old)
        old->since = now;
    if (!old && __builtin_popcount(node->kernel_records) < KERNEL_WAITS)
        new = where_page_claim(node, "", now, true);
    if (new)
        node->kernel_records |= 1u << (new - node->page->wait);
    return old ? old : new;
}

static void show_team(struct where_wait *w, int team)
{
    w->kind = WHERE_COLLECTIVE;
    w->team = team;
    const struct team *t = w->team >= 0 ? job->team[w->team] : NULL;
    for (int i = 0; t && i < t->n_pes; i++) {
        if (t->members[i] != job->pe || w->peers >= WHERE_PEERS) /* in order beyond the list */
            wait_show_peer(w, t->members[i]);
    }
}

/* Begins to write a record, with the lock; NULL: there is none. key: how its text begins. */
static struct where_wait *begin_record(struct node *node, const char *key, const char *call,
                                       uint64_t now)
{
    struct where_wait *w = shown_record(node, key, now);

    if (!w)
        return NULL;
    where_write_begin(w);
    w->tid = 0;
    w->seen = now;
    w->peers = 0;
    w->at = 0;
    w->segment = w->team = -1;
    w->round = 0;
    w->kind = WHERE_NETWORK;
    w->frames = 0;
    snprintf(w->call, sizeof w->call, "%s", call);
    return w;
}

/* Inlined: no frame of its own. */
__attribute__((always_inline)) static inline void show_frames(struct where_wait *w)
{
    void *frame[FRAMES_OF_LIBRARY + WHERE_FRAMES];
    const int n = backtrace(frame, FRAMES_OF_LIBRARY + WHERE_FRAMES);

    for (int i = FRAMES_OF_LIBRARY; i < n; i++)
        w->frame[w->frames++] = (uint64_t)(uintptr_t)frame[i];
}

void gshmem_device_show_wait(int kind, const void *object, const char *where)
{
    const uint64_t now = clock_ns();
    const bool first = kind & GSHMEM_SHOWN_FIRST;

    kind &= ~GSHMEM_SHOWN_FIRST;
    if (!job || job_is_over(job) || kind < 0 || kind > GSHMEM_SHOWN_WARPGROUP)
        return;
    pthread_mutex_lock(&lock);
    struct where_wait *w = begin_record(job->node, where, shown_call[kind], now);
    if (w) {
        w->since = first ? now : w->since;
        snprintf(w->text, sizeof w->text, "%s", where);
        if (kind == GSHMEM_SHOWN_VARIABLE) {
            w->kind = WHERE_VARIABLE;
            wait_show_object(w, object, 1);
        } else if (kind == GSHMEM_SHOWN_COLLECTIVE) {
            show_team(w, kernels_team_of_sync(job, object));
        } else if (kind == GSHMEM_SHOWN_WARPGROUP) {
            show_team(w, kernels_team_of_rounds(object));
        }
        show_frames(w);
        where_write_end(w);
    }
    pthread_mutex_unlock(&lock);
}

void shown_channel(struct job *j, int channel, int pe, const char *text, uint64_t since)
{
    char key[32];

    if (job_is_over(j))
        return;
    snprintf(key, sizeof key, "channel %d: ", channel);
    pthread_mutex_lock(&lock);
    struct where_wait *w = begin_record(j->node, key, shown_call[GSHMEM_SHOWN_PROXY], clock_ns());
    if (w) {
        w->since = since;
        snprintf(w->text, sizeof w->text, "%s%s", key, text);
        if (pe >= 0)
            wait_show_peer(w, pe);
        where_write_end(w);
    }
    pthread_mutex_unlock(&lock);
}

static void show_round(struct job *j, gshmem_team_t team, uint64_t round)
{
    char key[64];

    snprintf(key, sizeof key, "round %llu of team %d", (unsigned long long)round, team);
    pthread_mutex_lock(&lock);
    struct where_wait *w =
        begin_record(j->node, key, shown_call[GSHMEM_SHOWN_COLLECTIVE], clock_ns());
    if (w) {
        snprintf(w->text, sizeof w->text, "%s", key);
        show_team(w, team);
        w->round = round;
        where_write_end(w);
    }
    pthread_mutex_unlock(&lock);
}

void shown_teams(struct job *j)
{
    if (j->device->ops == &device_host)
        return;
    TEAM_FOR_ALL (j, i) {
        const struct team *t = j->team[i];
        const uint64_t round =
            t->kernel ? gshmem_load_relaxed(t->kernel->waiting) : 0;
        if (round)
            show_round(j, i, round);
    }
}

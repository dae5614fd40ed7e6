/* Says where the threads of a block wait when none of them can go on. */
#define _GNU_SOURCE
#include "device/host/blocks/report.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"

enum { GROUPS_MAX = 8 };

/* Threads that wait for the same thing at the same place. */
struct group {
    const struct thread *first;
    unsigned count;
};

static const char *waits_for(const struct thread *t)
{
    if (t->state == THREAD_AT_BARRIER)
        return "__syncthreads";
    switch (t->kind) {
    case GSHMEM_HOST_WARP_SYNC:
        return "__syncwarp";
    case GSHMEM_HOST_WARP_SHUFFLE:
        return "a shuffle";
    case GSHMEM_HOST_WARP_BALLOT:
        return "a vote";
    case GSHMEM_HOST_WARP_MATCH:
    case GSHMEM_HOST_WARP_MATCH_ALL:
        return "a match";
    default:
        return "a warp's reduction";
    }
}

static bool alike(const struct thread *a, const struct thread *b)
{
    return a->state == b->state && a->line == b->line && strcmp(a->file, b->file) == 0 &&
           (a->state == THREAD_AT_BARRIER || (a->mask == b->mask && a->kind == b->kind));
}

static unsigned report_collect(const struct block *b, struct group *groups, unsigned *more)
{
    unsigned n = 0;

    *more = 0;
    for (unsigned i = 0; i < b->size; i++) {
        const struct thread *t = &b->threads[i];
        unsigned g = 0;

        if (!t->stack)
            continue;
        while (g < n && !alike(groups[g].first, t))
            g++;
        if (g == GROUPS_MAX) {
            ++*more;
            continue;
        }
        if (g == n)
            groups[n++] = (struct group){.first = t};
        groups[g].count++;
    }
    return n;
}

static void say_group(const struct group *g)
{
    const struct thread *t = g->first;
    char mask[64] = "";

    if (t->state == THREAD_IN_WARP)
        snprintf(mask, sizeof mask, ", mask %#010x, of warp %u's lanes %#010x are left", t->mask,
                 (unsigned)(t->warp - t->block->warps), t->warp->live);
    log_error("  %u thread%s (thread (%u,%u,%u)%s) at %s, %s:%d%s", g->count,
              g->count == 1 ? "" : "s", t->index.x, t->index.y, t->index.z,
              g->count == 1 ? "" : " first", waits_for(t), t->file, t->line, mask);
}

void report_deadlock(const struct block *b)
{
    struct group groups[GROUPS_MAX];
    unsigned more, n = report_collect(b, groups, &more);

    log_error("kernel %s: block (%u,%u,%u) cannot go on: its %u threads that are left wait for "
              "each other (%u have ended); the launch fails",
              b->grid->name, b->index.x, b->index.y, b->index.z, b->live, b->size - b->live);
    for (unsigned i = 0; i < n; i++)
        say_group(&groups[i]);
    if (more)
        log_error("  and %u more elsewhere", more);
}

void report_mismatch(const struct block *b, const char *file, int line)
{
    log_warn("kernel %s: threads of block (%u,%u,%u) meet at different barriers, %s:%d and %s:%d; "
             "CUDA does not define what happens then",
             b->grid->name, b->index.x, b->index.y, b->index.z, b->file, b->line, file, line);
}

void report_grid_deadlock(const struct block *b, const char *file, int line)
{
    const struct grid *g = b->grid;

    log_error("kernel %s: block (%u,%u,%u) waits for the whole grid at %s:%d, but %llu of its %llu "
              "blocks have ended; the launch fails",
              g->name, b->index.x, b->index.y, b->index.z, file, line,
              (unsigned long long)atomic_load(&g->blocks_ended), (unsigned long long)g->blocks);
}

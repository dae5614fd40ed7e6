/* One line for each pair of places whose accesses race. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/memory/caller.h"
#include "runtime/memory/map.h"
#include "runtime/races/parts.h"
#include "runtime/where/symbols.h"

/* Whether these two places have not been reported, by any PE. */
static bool is_new(struct races *r, uint64_t a, uint64_t b)
{
    const uint64_t pair = ((a < b ? a : b) * 0x9e3779b97f4a7c15u ^ (a < b ? b : a)) | 1;

    for (uint64_t i = 0; i < RACES_REPORTS; i++) {
        _Atomic uint64_t *at = &r->shared->reported[(pair + i) % RACES_REPORTS];
        uint64_t was = 0;
        /* relaxed: nothing is read because of it */
        if (atomic_compare_exchange_strong_explicit(at, &was, pair, memory_order_relaxed,
                                                    memory_order_relaxed))
            return true;
        if (was == pair)
            return false;
    }
    return false;
}

/* Another thread of this PE may allocate and free objects meanwhile. */
static bool races_find_object(struct races *r, const void *at, struct races_object *object)
{
    bool found = false;

    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->objects && !found; i++) {
        if ((uintptr_t)at - r->object[i].at < r->object[i].bytes) {
            *object = r->object[i];
            found = true;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

static void describe_place(struct races *r, const void *at, char *text, size_t size)
{
    struct races_object o;
    struct location l;
    uint64_t offset;
    char name[100];

    if (races_find_object(r, at, &o)) {
        snprintf(text, size, "byte %zu of the object of %zu B at %p", (uintptr_t)at - o.at,
                 o.bytes, (void *)o.at);
        return;
    }
    if (map_find(job->map, at, 1, &l) && l.segment >= SEGMENT_DATA) {
        const struct caller_place p = caller_place((const char *)at + 1);
        if (p.file && symbols_find(p.path, p.at, false, name, sizeof name, &offset)) {
            snprintf(text, size, "byte %" PRIu64 " of the variable %s", offset, name);
            return;
        }
    }
    snprintf(text, size, "the byte at %p", at);
}

static const char *advise(const struct races *r, const struct races_pair *p)
{
    if (p->before.pe == r->me)
        return p->before.kind == RACES_READ
                   ? "gshmem_quiet or gshmem_flush between them orders them"
                   : "gshmem_quiet between them orders them";
    if (p->met)
        return "the PEs have synchronized, but the first was not complete: gshmem_quiet, or "
               "gshmem_fence before a signal to the same PE, orders them";
    return "a barrier between them, or a signal that the second PE waits for, orders them";
}

void races_report(struct races *r, const struct races_pair *p)
{
    const struct races_site *before = &r->shared->pe[p->before.pe].site[p->before.site];
    const struct races_site *now = &r->own->site[p->now.site];
    char from[200], here[200], place[200], line[900];

    if (!is_new(r, before->key + before->at, now->key + now->at))
        return;
    races_site_text(before, from, sizeof from);
    races_site_text(now, here, sizeof here);
    describe_place(r, p->at, place, sizeof place);
    snprintf(line, sizeof line,
             "GSHMEM_CHECK=races: %s of PE %d at %s and %s of PE %d at %s are not ordered, and "
             "both access %s on PE %d: %s",
             before->call[0] ? before->call : "an access", p->before.pe, from, now->call, r->me,
             here, place, p->pe, advise(r, p));
    log_error("%s", line);
    pthread_mutex_lock(&r->lock);
    if (!r->found++)
        snprintf(r->first, sizeof r->first, "GSHMEM_CHECK=races: accesses that race");
    pthread_mutex_unlock(&r->lock);
}

/* What the threads of a warp do together: they hand in values and wait; the last to arrive works
 * out everybody's result. Nothing is shared but the threads' own records, so any mix of masks
 * works.
 *
 * Only __syncwarp orders memory; a shuffle or vote does not, on a GPU and for ThreadSanitizer. */
#define _GNU_SOURCE
#include "device/host/blocks/barrier.h"

#include "device/host/blocks/threads.h"
#include "device/host/fibers/sanitizer.h"

#define FOR_LANES(lane, mask)                                                                      \
    for (unsigned rest_ = (mask), lane; rest_ && (lane = (unsigned)__builtin_ctz(rest_), true);    \
         rest_ &= rest_ - 1)

static uint32_t combine(enum gshmem_host_warp kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case GSHMEM_HOST_WARP_ADD:
        return a + b;
    case GSHMEM_HOST_WARP_MIN:
        return a < b ? a : b;
    case GSHMEM_HOST_WARP_MAX:
        return a > b ? a : b;
    case GSHMEM_HOST_WARP_MIN_SIGNED:
        return (int32_t)a < (int32_t)b ? a : b;
    case GSHMEM_HOST_WARP_MAX_SIGNED:
        return (int32_t)a > (int32_t)b ? a : b;
    case GSHMEM_HOST_WARP_AND:
        return a & b;
    case GSHMEM_HOST_WARP_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static uint32_t warp_reduce(const struct thread *lanes, enum gshmem_host_warp kind, unsigned mask)
{
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint32_t total = (uint32_t)lanes[first].value;

    FOR_LANES(i, mask & (mask - 1))
    total = combine(kind, total, (uint32_t)lanes[i].value);
    return total;
}

static unsigned ballot(const struct thread *lanes, unsigned mask)
{
    unsigned yes = 0;

    FOR_LANES(i, mask)
    yes |= (unsigned)(lanes[i].value != 0) << i;
    return yes;
}

static unsigned same_as(const struct thread *lanes, unsigned mask, uint64_t value)
{
    unsigned same = 0;

    FOR_LANES(i, mask)
    same |= (unsigned)(lanes[i].value == value) << i;
    return same;
}

/* Everybody's result, kept with each. */
static void work_out(struct thread *lanes, enum gshmem_host_warp kind, unsigned mask)
{
    uint64_t all = 0;

    switch (kind) {
    case GSHMEM_HOST_WARP_SYNC:
        return;
    case GSHMEM_HOST_WARP_ONCE: /* its worker has named itself to all */
    case GSHMEM_HOST_WARP_SHUFFLE:
        FOR_LANES(i, mask)
        lanes[i].result = lanes[lanes[i].source].value;
        return;
    case GSHMEM_HOST_WARP_MATCH:
        FOR_LANES(i, mask)
        lanes[i].result = same_as(lanes, mask, lanes[i].value);
        return;
    case GSHMEM_HOST_WARP_BALLOT:
        all = ballot(lanes, mask);
        break;
    case GSHMEM_HOST_WARP_MATCH_ALL:
        all = same_as(lanes, mask, lanes[__builtin_ctz(mask)].value) == mask ? mask : 0;
        break;
    default:
        all = warp_reduce(lanes, kind, mask);
    }
    FOR_LANES(i, mask)
    lanes[i].result = all;
}

/* Are all lanes of mask that have not ended here, for the same thing? */
static bool all_here(const struct warp *w, enum gshmem_host_warp kind, unsigned mask)
{
    if (mask & ~w->parked)
        return false;
    FOR_LANES(i, mask)
    {
        const struct thread *t = &w->threads[i];
        if (t->kind != kind || (t->mask & w->live) != mask)
            return false;
    }
    return true;
}

static void order_all(struct thread *lanes, unsigned mask)
{
    if (!under_tsan())
        return;
    FOR_LANES(i, mask)
    order_acquire(&lanes[i].arrived);
    FOR_LANES(i, mask)
    order_release(&lanes[i].released);
}

/* Works out what the lanes of mask wait for; all but self are readied. */
static void warp_complete(struct warp *w, unsigned mask, const struct thread *self)
{
    enum gshmem_host_warp kind = w->threads[__builtin_ctz(mask)].kind;

    if (kind == GSHMEM_HOST_WARP_SYNC || kind == GSHMEM_HOST_WARP_ONCE)
        order_all(w->threads, mask);
    work_out(w->threads, kind, mask);
    w->parked &= ~mask;
    FOR_LANES(i, mask)
    {
        if (&w->threads[i] != self)
            thread_ready(&w->threads[i]);
    }
}

/* Comes, and waits unless all others are here: then true. */
static bool warp_arrive(struct thread *self, enum gshmem_host_warp kind, unsigned mask,
                        const char *file, int line)
{
    struct warp *w = self->warp;

    self->kind = kind;
    self->mask = mask | 1u << self->lane;
    w->parked |= 1u << self->lane;
    if (all_here(w, kind, self->mask & w->live))
        return true;
    thread_park(self, THREAD_IN_WARP, file, line);
    return false;
}

uint64_t gshmem_host_warp(enum gshmem_host_warp kind, unsigned mask, uint64_t value,
                          unsigned source, const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self)
        return value;
    if (kind == GSHMEM_HOST_WARP_SYNC)
        order_release(&self->arrived);
    self->value = value;
    self->source = source % WARP_SIZE;
    if (warp_arrive(self, kind, mask, file, line))
        warp_complete(self->warp, self->mask & self->warp->live, self);
    if (kind == GSHMEM_HOST_WARP_SYNC)
        order_acquire(&self->released);
    return self->result;
}

/* The last to arrive does the work; or the one chosen when another has ended instead of coming. */
int gshmem_host_once_warp(unsigned mask, int (*work)(void *), void *argument, const char *file,
                          int line)
{
    struct thread *self = thread_self();

    if (!self)
        return work(argument);
    struct thread *lanes = self->warp->threads;

    order_release(&self->arrived);
    self->source = WARP_SIZE; /* nobody yet */
    if (warp_arrive(self, GSHMEM_HOST_WARP_ONCE, mask, file, line) || self->source == self->lane) {
        unsigned here = self->mask & self->warp->live;

        FOR_LANES(i, here)
        {
            order_acquire(&lanes[i].arrived);
            lanes[i].source = self->lane;
        }
        self->value = (uint64_t)work(argument);
        order_release(&self->arrived);
        warp_complete(self->warp, here, self);
    }
    order_acquire(&self->released);
    return (int)self->result;
}

/* All lanes of mask wait. */
static void complete_without(struct warp *w, unsigned mask)
{
    struct thread *first = &w->threads[__builtin_ctz(mask)];

    if (first->kind != GSHMEM_HOST_WARP_ONCE) {
        warp_complete(w, mask, NULL);
        return;
    }
    first->source = first->lane;
    thread_ready(first);
}

void warp_thread_ended(struct thread *thread)
{
    struct warp *w = thread->warp;
    unsigned seen = 0;

    FOR_LANES(i, w->parked)
    {
        const struct thread *t = &w->threads[i];
        unsigned mask = t->mask & w->live;

        if (!(seen & 1u << i) && t->mask & 1u << thread->lane && all_here(w, t->kind, mask))
            complete_without(w, mask);
        seen |= mask;
    }
}

/* Gives every other lane one turn to come here too, then counts who came. */
unsigned gshmem_host_active_mask(const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self)
        return 1;
    struct warp *w = self->warp;
    unsigned me = 1u << self->lane;

    if (w->gathering && (w->gathering_line != line || w->gathering_file != file))
        return me; /* another group gathers elsewhere: a mask of one is always true */
    w->gathering_file = file;
    w->gathering_line = line;
    w->gathering |= me;
    self->result = 0;
    if (w->gathering != w->live)
        gshmem_host_yield();
    if (!self->result) { /* the first to come back closes the group */
        unsigned group = w->gathering;
        FOR_LANES(i, group)
        w->threads[i].result = group;
        w->gathering = 0;
    }
    return (unsigned)self->result;
}

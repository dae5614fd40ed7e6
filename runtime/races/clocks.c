/* The vector clocks of the PEs, and the snapshots of them that operations and rounds leave. */
#include <string.h>

#include "runtime/races/parts.h"

static struct races_snapshot *snapshot_at(const struct races *r, int pe, uint32_t number)
{
    const size_t index = (size_t)pe * RACES_KEPT + number % RACES_KEPT;

    return (struct races_snapshot *)(r->snapshots + index * r->snapshot_bytes);
}

/* The snapshot, if it is kept; else the PE's clock as it is now. The caller copies it, and then
 * asks whether it was kept until then. */
static const uint32_t *find_clock(const struct races *r, int pe, uint32_t number)
{
    const struct races_snapshot *s = snapshot_at(r, pe, number);

    /* acquire: pairs with the release in races_snapshot */
    return atomic_load_explicit(&s->number, memory_order_acquire) == number
               ? s->clock
               : r->shared->pe[pe].clock;
}

static bool is_kept(const struct races *r, int pe, uint32_t number)
{
    /* the loads of the clock come before this one */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&snapshot_at(r, pe, number)->number, memory_order_relaxed) ==
           number;
}

static void raise_word(uint32_t *to, uint32_t value)
{
    if (*to < value)
        __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void merge_words(const struct races *r, uint32_t *to, const uint32_t *from)
{
    for (uint32_t i = 0; i < r->words; i++)
        raise_word(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED));
}

/* At least what any snapshot has that the PE has taken so far: its clock, the fence that covers
 * operations for the target of a signal, and what it has taken over from others. */
static void merge_all(const struct races *r, uint32_t *to, int pe)
{
    const struct races_pe *p = &r->shared->pe[pe];
    const uint32_t fenced = __atomic_load_n(&p->fenced, __ATOMIC_RELAXED);

    merge_words(r, to, p->clock);
    merge_words(r, to, p->evicted);
    for (int target = 0; target < r->n && pe != r->me; target++)
        raise_word(&to[races_entry(r, pe, target)], fenced);
}

uint32_t races_snapshot(struct races *r, int target)
{
    uint32_t number = ++r->own->last_snapshot;
    struct races_snapshot *s;

    if (number == 0) /* which means none */
        number = ++r->own->last_snapshot;
    s = snapshot_at(r, r->me, number);
    atomic_store_explicit(&s->number, 0, memory_order_relaxed);
    /* before the words are overwritten: pairs with the fence in is_kept */
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < r->words; i++)
        __atomic_store_n(&s->clock[i], r->clock[i], __ATOMIC_RELAXED);
    if (target >= 0)
        raise_word(&s->clock[races_entry(r, r->me, target)], r->own->fenced);
    /* release: pairs with the acquire in find_clock */
    atomic_store_explicit(&s->number, number, memory_order_release);
    __atomic_store_n(&r->clock[r->me], r->clock[r->me] + 1, __ATOMIC_RELAXED);
    return number;
}

bool races_merge(const struct races *r, uint32_t *clock, int pe, uint32_t number)
{
    if (number)
        merge_words(r, clock, find_clock(r, pe, number));
    if (number && is_kept(r, pe, number))
        return true;
    merge_all(r, clock, pe);
    return false;
}

void races_merge_into(struct races *r, uint32_t mine, int pe, uint32_t number)
{
    struct races_snapshot *s = snapshot_at(r, r->me, mine);

    if (pe == r->me && number == mine)
        return;
    races_merge(r, s->clock, pe, number);
    races_merge(r, r->own->evicted, pe, number);
}

uint32_t races_time_of(const struct races *r, int pe, uint32_t number)
{
    const uint32_t time = __atomic_load_n(&find_clock(r, pe, number)[pe], __ATOMIC_RELAXED);

    return is_kept(r, pe, number) ? time : 0;
}

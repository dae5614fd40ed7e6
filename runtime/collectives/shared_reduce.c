/* Large reductions and scans: each member computes a part of the elements for all members.
 *
 * It combines its part of all sources, in the order of the members whatever its own number, and
 * writes the result to all dests. So nothing is read or combined twice, results do not depend on
 * which member computes them, and no large buffer is needed. It works in blocks that stay in its
 * nearest cache. dest may be source: a block's sources are read by one member alone, before it
 * writes the block. */
#include <string.h>

#include "runtime/collectives/table.h"

enum { BLOCK_BYTES = 16 * 1024 };

struct part {
    size_t begin, end; /* elements */
};

/* This member's part of n elements: whole cache lines, so that no two members write to the same
 * one. */
static struct part part_of(const struct group *g, size_t n, size_t element)
{
    size_t line = element < SYNC_LINE ? SYNC_LINE / element : 1;
    size_t share = (n / (size_t)g->n + line) / line * line;
    size_t begin = (size_t)g->my * share, end = begin + share;

    return (struct part){begin < n ? begin : n, end < n ? end : n};
}

static size_t block_of(const struct call *c, size_t left)
{
    size_t most = BLOCK_BYTES / c->element;

    return left < most ? left : most;
}

/* out = elements first … first + n of all sources, combined. */
static void combine_sources(const struct call *c, size_t first, size_t n, void *out)
{
    const struct group *g = c->group;
    const void *value = place_at(g, &c->source, 0) + first * c->element;

    if (g->n == 1)
        gshmem_copy(out, value, n * c->element);
    for (int i = 1; i < g->n; i++) {
        c->combine(out, value, place_at(g, &c->source, i) + first * c->element, n);
        value = out;
    }
}

gshmem_status_t reduce_shared(struct call *c)
{
    _Alignas(SYNC_LINE) char block[BLOCK_BYTES];
    struct group *g = c->group;
    struct part part = part_of(g, c->n, c->element);
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    for (size_t at = part.begin, n; at < part.end; at += n) {
        n = block_of(c, part.end - at);
        combine_sources(c, at, n, block);
        for (int step = 0; step < g->n; step++)
            gshmem_copy(place_at(g, &c->dest, call_after(g, step)) + at * c->element, block,
                   n * c->element);
    }
    return call_meet(c);
}

/* The call determines the parts here: member i computes part i. If dest is source, a block of dest
 * may only be written when all have read that block of their part of it; a round ensures that. */
gshmem_status_t reducescatter_shared(struct call *c)
{
    _Alignas(SYNC_LINE) char block[BLOCK_BYTES];
    struct group *g = c->group;
    bool in_place = c->dest.mine == c->source.mine;
    gshmem_status_t status = call_enter(c);

    for (size_t at = 0, n; at < c->n && !status; at += n) {
        n = block_of(c, c->n - at);
        combine_sources(c, (size_t)g->my * c->n + at, n, block);
        if (in_place && (status = call_meet(c)))
            break;
        gshmem_copy(c->dest.mine + at * c->element, block, n * c->element);
    }
    return status || in_place ? status : call_meet(c);
}

static gshmem_status_t scan_shared(struct call *c, bool inclusive)
{
    _Alignas(SYNC_LINE) char sum[BLOCK_BYTES], next[BLOCK_BYTES];
    struct group *g = c->group;
    struct part part = part_of(g, c->n, c->element);
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    for (size_t at = part.begin, n; at < part.end; at += n) {
        n = block_of(c, part.end - at);
        size_t bytes = n * c->element;
        if (!inclusive)
            memset(next, 0, bytes);
        for (int i = 0; i < g->n; i++) {
            const char *source = place_at(g, &c->source, i) + at * c->element;
            char *dest = place_at(g, &c->dest, i) + at * c->element;
            if (i == 0)
                gshmem_copy(sum, source, bytes);
            else
                c->combine(sum, sum, source, n);
            gshmem_copy(dest, inclusive ? sum : next, bytes);
            if (!inclusive)
                gshmem_copy(next, sum, bytes);
        }
    }
    return call_meet(c);
}

gshmem_status_t inscan_shared(struct call *c)
{
    return scan_shared(c, true);
}

gshmem_status_t exscan_shared(struct call *c)
{
    return scan_shared(c, false);
}

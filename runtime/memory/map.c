#include "runtime/memory/map.h"

#include <stdlib.h>

#include "runtime/base/log.h"

static gshmem_status_t fail_memory(const struct memory_map *m)
{
    return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", m->n_pes);
}

gshmem_status_t map_open(struct memory_map *m, int pe, int n_pes)
{
    *m = (struct memory_map){.pe = pe, .n_pes = n_pes};
    m->local = calloc((size_t)n_pes, sizeof *m->local);
    m->program = calloc((size_t)n_pes, sizeof *m->program);
    return m->local && m->program ? GSHMEM_OK : fail_memory(m);
}

void map_close(struct memory_map *m)
{
    for (int i = 0; i < m->segments; i++) {
        free(m->segment[i].mapped);
        free(m->segment[i].copied);
        free(m->segment[i].loaded);
    }
    free(m->local);
    free(m->program);
    *m = (struct memory_map){.n_pes = 0};
}

gshmem_status_t map_add(struct memory_map *m, int number, struct segment s, bool of_device)
{
    const size_t n = (size_t)m->n_pes;

    s.mapped = of_device ? NULL : calloc(n, sizeof *s.mapped);
    s.copied = of_device ? calloc(n, sizeof *s.copied) : NULL;
    s.loaded = of_device ? calloc(n, sizeof *s.loaded) : NULL;
    m->segment[number] = s;
    if (number >= m->segments)
        m->segments = number + 1;
    return s.mapped || (s.copied && s.loaded) ? GSHMEM_OK : fail_memory(m);
}

/* ---- The look-up ---- */

/* For bytes of which the first is in the segment. */
static enum way check_end(const struct segment *s, uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset < s->own_bytes ? s->own_bytes : s->bytes;

    if (bytes > end - offset)
        return WAY_PAST_END;
    if (offset >= s->own_bytes && bytes && !s->imported(s->context, offset, bytes))
        return WAY_UNREGISTERED;
    return WAY_UNREACHABLE;
}

/* Segments do not overlap, so that the first one is the only one. */
bool map_find(const struct memory_map *m, const void *mine, uint64_t bytes,
                         struct location *l)
{
    for (int i = 0; i < m->segments; i++) {
        const struct segment *s = &m->segment[i];
        const uint64_t offset = (uintptr_t)mine - s->base;

        if (offset >= s->bytes)
            continue;
        *l = (struct location){
            .offset = offset,
            .pe = m->pe,
            .segment = (uint8_t)i,
            .atomicity = s->atomicity,
            .way = (uint8_t)check_end(s, offset, bytes),
            .reserved = offset < s->reserved,
        };
        return l->way == WAY_UNREACHABLE;
    }
    *l = (struct location){.pe = m->pe, .segment = SEGMENT_NONE, .way = WAY_NOT_SYMMETRIC};
    return false;
}

static enum way map_find_way(const struct memory_map *m, const struct segment *s, int pe)
{
    if (s->mapped && s->mapped[pe])
        return WAY_MAPPED;
    if (s->copied && s->copied[pe])
        return WAY_DEVICE;
    if (s->variables && map_program(m, pe) != PROGRAM_SAME)
        return map_program(m, pe) == PROGRAM_OTHER ? WAY_OTHER_PROGRAM : WAY_UNKNOWN_PROGRAM;
    return m->local[pe] ? WAY_UNREACHABLE : WAY_NETWORK;
}

void map_resolve(const struct memory_map *m, const void *mine, uint64_t bytes, int pe,
                            struct location *l)
{
    const bool found = map_find(m, mine, bytes, l);

    l->pe = pe;
    if (!found)
        return;
    const struct segment *s = &m->segment[l->segment];
    l->way = (uint8_t)map_find_way(m, s, pe);
    if (l->way == WAY_MAPPED)
        l->at = (void *)(s->mapped[pe] + l->offset);
    else if (l->way == WAY_DEVICE)
        l->at = (void *)(s->copied[pe] + l->offset);
}

/* ---- Properties of this PE's memory ---- */

enum atomicity map_atomicity(const struct memory_map *m, const void *mine)
{
    struct location l;

    map_find(m, mine, 0, &l);
    return (enum atomicity)l.atomicity;
}

bool map_has_memory(const struct memory_map *m, const void *mine, uint64_t bytes)
{
    struct location l;

    if (!map_find(m, mine, bytes, &l))
        return false;
    const struct segment *s = &m->segment[l.segment];
    /* relaxed: it grows before any kernel learns of the growth */
    const uint64_t there = s->there ? __atomic_load_n(s->there, __ATOMIC_RELAXED) : s->bytes;
    return l.offset >= s->own_bytes || (l.offset < there && bytes <= there - l.offset);
}

bool map_overlaps_heap(const struct memory_map *m, uintptr_t at, uint64_t bytes)
{
    static const int heaps[] = {SEGMENT_HEAP, SEGMENT_NIC, SEGMENT_DEVICE};

    for (size_t i = 0; i < sizeof heaps / sizeof heaps[0]; i++) {
        const struct segment *s = &m->segment[heaps[i]];
        if (s->bytes && at < s->base + s->bytes && s->base + s->reserved < at + bytes)
            return true;
    }
    return false;
}

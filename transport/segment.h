/* Applies a peer's request to this PE's symmetric segments, and to nothing else. */
#ifndef GSHMEM_TRANSPORT_SEGMENT_H
#define GSHMEM_TRANSPORT_SEGMENT_H

#include <stdint.h>
#include <string.h>

#include "gshmem/rma.h"
#include "transport/transport.h"

/* Where `bytes` bytes at an offset of a segment are, or NULL if they are not all within it. */
static inline char *segment_at(const struct transport_config *config, unsigned segment,
                               uint64_t offset, uint64_t bytes)
{
    if (segment >= (unsigned)config->segments)
        return NULL;
    const struct transport_segment *s = &config->segment[segment];
    uint64_t there = s->bytes;
    if (s->there) /* relaxed: it grows before any PE knows of the new bytes */
        there = __atomic_load_n(s->there, __ATOMIC_RELAXED);
    if (offset <= there && bytes <= there - offset)
        return s->base + offset;
    return s->imported && s->imported(s->context, offset, bytes) ? s->base + offset : NULL;
}

/* The same, or NULL if it is not aligned to its size either. */
static inline char *segment_at_aligned(const struct transport_config *config, unsigned segment,
                                       uint64_t offset, uint64_t bytes)
{
    char *at = segment_at(config, segment, offset, bytes);

    return at && (uintptr_t)at % bytes == 0 ? at : NULL;
}

/* Stores at most 8 bytes. If they are aligned, as a flag is, they are stored whole, and after
 * what was put here before. */
static inline void segment_store(char *at, const unsigned char *from, size_t bytes)
{
    uint64_t word;
    uint32_t half;
    uint16_t quarter;

    /* release: pairs with the acquire of a PE that waits for the flag and then reads other data */
    switch ((uintptr_t)at % bytes ? 0 : bytes) {
    case 8:
        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
        break;
    case 4:
        memcpy(&half, from, 4);
        __atomic_store_n((uint32_t *)(void *)at, half, __ATOMIC_RELEASE);
        break;
    case 2:
        memcpy(&quarter, from, 2);
        __atomic_store_n((uint16_t *)(void *)at, quarter, __ATOMIC_RELEASE);
        break;
    default:
        memcpy(at, from, bytes);
    }
}

/* release: pairs with the acquire of the PE that waits for the signal and then reads the data */
static inline void segment_signal(uint64_t *at, int signal_op, uint64_t value)
{
    if (signal_op == GSHMEM_SIGNAL_SET)
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

#endif

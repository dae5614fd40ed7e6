/* Which thread of which kernel, in one word, for the trace. */
#ifndef GSHMEM_RUNTIME_BASE_KERNEL_PLACE_H
#define GSHMEM_RUNTIME_BASE_KERNEL_PLACE_H

#include <stdint.h>

/* Launches of more blocks are told as a whole. */
enum { KERNEL_BLOCKS_MOST = 4096 };

/* A thread of a kernel: the number of the launch, from 1, of the block and of the thread. Numbers
 * that are too large become the largest. */
enum { KERNEL_LAUNCH_BITS = 24, KERNEL_BLOCK_BITS = 30, KERNEL_THREAD_BITS = 10 };

static inline uint64_t kernel_place(uint64_t launch, uint64_t block, unsigned thread)
{
    const uint64_t most = (UINT64_C(1) << KERNEL_BLOCK_BITS) - 1;

    return launch << (KERNEL_BLOCK_BITS + KERNEL_THREAD_BITS) |
           (block < most ? block + 1 : most) << KERNEL_THREAD_BITS |
           (thread & ((1u << KERNEL_THREAD_BITS) - 1));
}

/* The launch itself. */
static inline uint64_t kernel_place_of_launch(uint64_t launch)
{
    return launch << (KERNEL_BLOCK_BITS + KERNEL_THREAD_BITS);
}

static inline uint32_t kernel_launch_of(uint64_t place)
{
    return (uint32_t)(place >> (KERNEL_BLOCK_BITS + KERNEL_THREAD_BITS));
}

/* -1: it is a launch. */
static inline int64_t kernel_block_of(uint64_t place)
{
    return (int64_t)(place >> KERNEL_THREAD_BITS & ((UINT64_C(1) << KERNEL_BLOCK_BITS) - 1)) - 1;
}

static inline unsigned kernel_thread_of(uint64_t place)
{
    return (unsigned)(place & ((1u << KERNEL_THREAD_BITS) - 1));
}

#endif

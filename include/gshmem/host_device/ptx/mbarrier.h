/* Barriers in memory: objects of 64 bits in shared memory, which count arrivals and bytes that are
 * under way. Asynchronous copies are done when they are issued, and then tell their barrier. */
#ifndef GSHMEM_HOST_DEVICE_PTX_MBARRIER_H
#define GSHMEM_HOST_DEVICE_PTX_MBARRIER_H

#include "memory.h"
#include "module.h"

/* The phase's parity, arrivals that are missing, arrivals due in each phase, bytes under way. */
#define PTX_MBARRIER_MOST  0xfffffu /* arrivals, or bytes */
#define PTX_MBARRIER_BYTES 41       /* where these begin: a number with a sign */

struct ptx_mbarrier {
    u32 phase, missing, due;
    s64 bytes;
};

static inline struct ptx_mbarrier ptx_mbarrier_of(u64 word)
{
    const struct ptx_mbarrier barrier = {word & 1, word >> 1 & PTX_MBARRIER_MOST,
                                         word >> 21 & PTX_MBARRIER_MOST,
                                         (s64)word >> PTX_MBARRIER_BYTES};

    return barrier;
}

static inline u64 ptx_mbarrier_word(struct ptx_mbarrier barrier)
{
    return barrier.phase | (u64)barrier.missing << 1 | (u64)barrier.due << 21 |
           (u64)barrier.bytes << PTX_MBARRIER_BYTES;
}

static inline void ptx_mbarrier_init(char *at, u32 count, const char *file, int line)
{
    const struct ptx_mbarrier barrier = {0, count, count, 0};

    if (count == 0 || count > PTX_MBARRIER_MOST)
        gshmem_host_trap("mbarrier.init: a count that is not 1 to 1,048,575", file, line);
    ptx_st_order_64(at, ptx_mbarrier_word(barrier), __ATOMIC_RELAXED);
}

/* A phase ends when no arrival is missing and no byte is under way. */
static inline struct ptx_mbarrier ptx_mbarrier_next(struct ptx_mbarrier barrier, u32 arrivals,
                                                    u32 dropped, s64 bytes)
{
    barrier.missing -= arrivals;
    barrier.due -= dropped;
    barrier.bytes += bytes;
    if (barrier.missing || barrier.bytes)
        return barrier;
    barrier.phase ^= 1;
    barrier.missing = barrier.due;
    return barrier;
}

/* Counts `arrivals` arrivals, of which `dropped` are not expected in later phases either, and adds
 * `bytes`, which may be negative, to the bytes under way. Returns the state before. Release, for
 * those who wait; acquire, for who ends the phase. */
static inline u64 ptx_mbarrier_update(char *at, u32 arrivals, u32 dropped, s64 bytes,
                                      const char *file, int line)
{
    u64 seen = ptx_ld_order_64(at, __ATOMIC_RELAXED);

    for (;;) {
        const struct ptx_mbarrier barrier = ptx_mbarrier_of(seen);
        const s64 under_way = barrier.bytes + bytes;
        if (arrivals > barrier.missing)
            gshmem_host_trap("mbarrier: more arrivals than are due in this phase", file, line);
        if (under_way > (s64)PTX_MBARRIER_MOST || -under_way > (s64)PTX_MBARRIER_MOST)
            gshmem_host_trap("mbarrier: more than 1,048,575 bytes under way", file, line);
        const u64 next = ptx_mbarrier_word(ptx_mbarrier_next(barrier, arrivals, dropped, bytes));
        if (__atomic_compare_exchange_n((ptx_word_64 *)at, &seen, next, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return seen;
    }
}

/* Whether the phase of this parity has ended, which is the current one or the one before. Acquire:
 * with the arrivals. */
static inline u8 ptx_mbarrier_test(const char *at, u32 parity)
{
    const u8 ended = (ptx_ld_order_64(at, __ATOMIC_ACQUIRE) & 1) != (parity & 1);

    if (ended)
        gshmem_host_progress();
    else if (gshmem_host_may_rest())
        gshmem_host_yield();
    return ended;
}

/* The same, and others run meanwhile. */
static inline u8 ptx_mbarrier_try(const char *at, u32 parity)
{
    if (ptx_mbarrier_test(at, parity))
        return 1;
    gshmem_host_yield();
    return ptx_mbarrier_test(at, parity);
}

/* --- Copies --- */

/* cp.async: `bytes` of `size` are copied, and the rest is 0. */
static inline void ptx_copy_async(char *to, const char *from, u32 size, u32 bytes)
{
    if (bytes > size)
        bytes = size;
    memcpy(to, from, bytes);
    memset(to + bytes, 0, size - bytes);
}

static inline void ptx_copy_check(const char *to, const char *from, u32 bytes, const char *file,
                                  int line)
{
    if (((uintptr_t)to | (uintptr_t)from | bytes) % 16)
        gshmem_host_trap("cp.async.bulk: an address or a size that is no multiple of 16", file,
                         line);
}

static inline void ptx_copy_bulk(char *to, const char *from, u32 bytes, const char *file, int line)
{
    ptx_copy_check(to, from, bytes, file, line);
    memcpy(to, from, bytes);
}

/* cp.async.bulk with .cp_mask: the bytes of each 16 whose bit is set. */
static inline void ptx_copy_bulk_masked(char *to, const char *from, u32 bytes, u32 mask,
                                        const char *file, int line)
{
    ptx_copy_check(to, from, bytes, file, line);
    for (u32 i = 0; i < bytes; i++) {
        if (mask >> i % 16 & 1)
            to[i] = from[i];
    }
}

#endif

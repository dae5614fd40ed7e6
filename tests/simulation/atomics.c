/* What a compiler calls for each access to memory with -fsanitize=thread, in place of
 * ThreadSanitizer: atomic operations are points where explore.c may let others run, and plain
 * accesses are so where they are to the program's symmetric memory. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "explore.h"
#include "fiber.h"

static void range(const volatile void *at, size_t bytes, bool writes)
{
    const struct fiber *f = fiber_current;

    if (!explore_step || !f ||
        (uintptr_t)at - explored_memory.at[f->pe->number] >= explored_memory.bytes)
        return;
    fiber_point();
    for (size_t i = 0; i < bytes; i += 8)
        explore_touch(f->pe, (const char *)at + i, writes);
}

static void touch(const volatile void *at, bool writes)
{
    if (explore_step && fiber_current)
        explore_touch(fiber_current->pe, (const void *)at, writes);
}

#define PLAIN(name)                                                                                \
    void __tsan_read##name(void *at);                                                              \
    void __tsan_read##name(void *at)                                                               \
    {                                                                                              \
        range(at, 1, false);                                                                       \
    }                                                                                              \
    void __tsan_write##name(void *at);                                                             \
    void __tsan_write##name(void *at)                                                              \
    {                                                                                              \
        range(at, 1, true);                                                                        \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_unaligned_read2(void *) __attribute__((alias("__tsan_read2")));
void __tsan_unaligned_read4(void *) __attribute__((alias("__tsan_read4")));
void __tsan_unaligned_read8(void *) __attribute__((alias("__tsan_read8")));
void __tsan_unaligned_read16(void *) __attribute__((alias("__tsan_read16")));
void __tsan_unaligned_write2(void *) __attribute__((alias("__tsan_write2")));
void __tsan_unaligned_write4(void *) __attribute__((alias("__tsan_write4")));
void __tsan_unaligned_write8(void *) __attribute__((alias("__tsan_write8")));
void __tsan_unaligned_write16(void *) __attribute__((alias("__tsan_write16")));

#define RANGE(name, writes)                                                                        \
    void __tsan_##name##_range(void *at, size_t bytes);                                            \
    void __tsan_##name##_range(void *at, size_t bytes)                                             \
    {                                                                                              \
        range(at, bytes, writes);                                                                  \
    }

RANGE(read, false)
RANGE(write, true)

#define NOTHING(name, ...)                                                                         \
    void name(__VA_ARGS__);                                                                        \
    void name(__VA_ARGS__)                                                                         \
    {                                                                                              \
    }

NOTHING(__tsan_init, void)
NOTHING(__tsan_func_entry, void *unused __attribute__((unused)))
NOTHING(__tsan_func_exit, void)
NOTHING(__tsan_atomic_signal_fence, int unused __attribute__((unused)))

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define UPDATE(bits, type, name)                                                                   \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);                   \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                    \
    {                                                                                              \
        (void)order;                                                                               \
        fiber_point();                                                                             \
        touch(at, true);                                                                           \
        return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                       \
    }

#define COMPARE(bits, type, name)                                                                  \
    int __tsan_atomic##bits##_##name(volatile type *at, type *old, type new, int order, int less); \
    int __tsan_atomic##bits##_##name(volatile type *at, type *old, type new, int order, int less)  \
    {                                                                                              \
        (void)order, (void)less;                                                                   \
        fiber_point();                                                                             \
        const bool done =                                                                          \
            __atomic_compare_exchange_n(at, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
        touch(at, done);                                                                           \
        return done;                                                                               \
    }

/* clang's form of it. */
#define COMPARE_VALUE(bits, type)                                                                  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type old, type new,         \
                                                    int order, int less);                          \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type old, type new,         \
                                                    int order, int less)                           \
    {                                                                                              \
        __tsan_atomic##bits##_compare_exchange_strong(at, &old, new, order, less);                 \
        return old;                                                                                \
    }

#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order);                           \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        fiber_point();                                                                             \
        touch(at, false);                                                                          \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                    \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        (void)order;                                                                               \
        fiber_point();                                                                             \
        touch(at, true);                                                                           \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);                 \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                  \
    {                                                                                              \
        (void)order;                                                                               \
        fiber_point();                                                                             \
        touch(at, true);                                                                           \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                              \
    UPDATE(bits, type, fetch_add)                                                                  \
    UPDATE(bits, type, fetch_sub)                                                                  \
    UPDATE(bits, type, fetch_and)                                                                  \
    UPDATE(bits, type, fetch_or)                                                                   \
    UPDATE(bits, type, fetch_xor)                                                                  \
    COMPARE(bits, type, compare_exchange_strong)                                                   \
    COMPARE(bits, type, compare_exchange_weak)                                                     \
    COMPARE_VALUE(bits, type)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* Of memcpy, which a compiler does not tell of. */
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    __tsan_read_range((void *)(uintptr_t)from, bytes);
    __tsan_write_range(to, bytes);
    return memcpy(to, from, bytes);
}

/* clang tells of these. */
void *__tsan_memcpy(void *, const void *, size_t) __attribute__((alias("__wrap_memcpy")));
void *__tsan_memset(void *to, int byte, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes)
{
    __tsan_write_range(to, bytes);
    return memset(to, byte, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    __tsan_read_range((void *)(uintptr_t)from, bytes);
    __tsan_write_range(to, bytes);
    return memmove(to, from, bytes);
}

/* What the compiler calls for each access to memory in code of gshmemcc --check=races, which
 * compiles with -fsanitize=thread and links this in place of ThreadSanitizer.
 *
 * Plain accesses are told to the library. An atomic load is taken as a wait that has ended: its
 * thread then knows what the PE knew that has updated the variable. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/races.h"

#define FROM __builtin_return_address(0)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from)
{
    (void)from;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

#define PLAIN(bytes, kind)                                                                         \
    void __tsan_##kind##read##bytes(void *at);                                                     \
    void __tsan_##kind##read##bytes(void *at)                                                      \
    {                                                                                              \
        gshmem_path_loaded(at, bytes, FROM);                                                       \
    }                                                                                              \
    void __tsan_##kind##write##bytes(void *at);                                                    \
    void __tsan_##kind##write##bytes(void *at)                                                     \
    {                                                                                              \
        gshmem_path_stored(at, bytes, FROM);                                                       \
    }
PLAIN(1, )
PLAIN(2, )
PLAIN(4, )
PLAIN(8, )
PLAIN(16, )
PLAIN(2, unaligned_)
PLAIN(4, unaligned_)
PLAIN(8, unaligned_)
PLAIN(16, unaligned_)

void __tsan_read_range(void *at, size_t bytes);
void __tsan_read_range(void *at, size_t bytes)
{
    gshmem_path_loaded(at, bytes, FROM);
}

void __tsan_write_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes)
{
    gshmem_path_stored(at, bytes, FROM);
}

/* Tables of virtual functions are the program's own. */
void __tsan_vptr_update(void **at, void *value);
void __tsan_vptr_update(void **at, void *value)
{
    (void)at;
    (void)value;
}

void __tsan_vptr_read(void **at);
void __tsan_vptr_read(void **at)
{
    (void)at;
}

/* ---- Atomics: they are carried out here, in the strictest order ---- */

#define UPDATE(bits, name, builtin)                                                                \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                       \
                                                uint##bits##_t operand, int order);                \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                       \
                                                uint##bits##_t operand, int order)                 \
    {                                                                                              \
        (void)order;                                                                               \
        gshmem_path_updated((const void *)at, bits / 8, FROM);                                     \
        operand = builtin(at, operand, __ATOMIC_SEQ_CST);                                          \
        gshmem_path_synchronized((const void *)at, bits / 8);                                      \
        return operand;                                                                            \
    }

#define COMPARE(bits, kind)                                                                        \
    int __tsan_atomic##bits##_compare_exchange_##kind(volatile uint##bits##_t *at,                 \
                                                      uint##bits##_t *expected,                    \
                                                      uint##bits##_t wanted, int order, int fail); \
    int __tsan_atomic##bits##_compare_exchange_##kind(volatile uint##bits##_t *at,                 \
                                                      uint##bits##_t *expected,                    \
                                                      uint##bits##_t wanted, int order, int fail)  \
    {                                                                                              \
        (void)order;                                                                               \
        (void)fail;                                                                                \
        gshmem_path_updated((const void *)at, bits / 8, FROM);                                     \
        const bool done = __atomic_compare_exchange_n(at, expected, wanted, false,                 \
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
        gshmem_path_synchronized((const void *)at, bits / 8);                                      \
        return done;                                                                               \
    }

#define ATOMICS(bits)                                                                              \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order);       \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)        \
    {                                                                                              \
        const uint##bits##_t value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                        \
        (void)order;                                                                               \
        gshmem_path_synchronized((const void *)at, bits / 8);                                      \
        return value;                                                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,            \
                                     int order);                                                   \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order) \
    {                                                                                              \
        (void)order;                                                                               \
        gshmem_path_updated((const void *)at, bits / 8, FROM);                                     \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    UPDATE(bits, exchange, __atomic_exchange_n)                                                    \
    UPDATE(bits, fetch_add, __atomic_fetch_add)                                                    \
    UPDATE(bits, fetch_sub, __atomic_fetch_sub)                                                    \
    UPDATE(bits, fetch_and, __atomic_fetch_and)                                                    \
    UPDATE(bits, fetch_or, __atomic_fetch_or)                                                      \
    UPDATE(bits, fetch_xor, __atomic_fetch_xor)                                                    \
    UPDATE(bits, fetch_nand, __atomic_fetch_nand)                                                  \
    COMPARE(bits, strong)                                                                          \
    COMPARE(bits, weak)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

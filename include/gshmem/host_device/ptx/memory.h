/* Loads, stores and atomic operations. Plain accesses may be of any alignment; those with an order
 * are atomic, and all orders are those of C11. */
#ifndef GSHMEM_HOST_DEVICE_PTX_MEMORY_H
#define GSHMEM_HOST_DEVICE_PTX_MEMORY_H

#include "half.h"
#include "types.h"

#define PTX_ACCESS(N)                                                                              \
    typedef u##N ptx_any_##N __attribute__((may_alias, aligned(1)));                               \
    typedef u##N ptx_word_##N __attribute__((may_alias));                                          \
    static inline u##N ptx_ld_##N(const char *at)                                                  \
    {                                                                                              \
        return *(const ptx_any_##N *)at;                                                           \
    }                                                                                              \
    static inline void ptx_st_##N(char *at, u##N value)                                            \
    {                                                                                              \
        *(ptx_any_##N *)at = value;                                                                \
    }
PTX_ACCESS(8)
PTX_ACCESS(16)
PTX_ACCESS(32)
PTX_ACCESS(64)
PTX_ACCESS(128)

#define PTX_ORDERED(N)                                                                             \
    static inline u##N ptx_ld_order_##N(const char *at, int order)                                 \
    {                                                                                              \
        return __atomic_load_n((const ptx_word_##N *)at, order);                                   \
    }                                                                                              \
    static inline void ptx_st_order_##N(char *at, u##N value, int order)                           \
    {                                                                                              \
        __atomic_store_n((ptx_word_##N *)at, value, order);                                        \
    }
PTX_ORDERED(8)
PTX_ORDERED(16)
PTX_ORDERED(32)
PTX_ORDERED(64)

#if defined(__SANITIZE_THREAD__)
#define PTX_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTX_UNDER_TSAN 1
#endif
#endif

#ifdef PTX_UNDER_TSAN
/* ThreadSanitizer knows no atomic access of 16 bytes: here they are two of 8. */
static inline u128 ptx_ld_order_128(const char *at, int order)
{
    const u64 low = ptx_ld_order_64(at, order);

    return (u128)ptx_ld_order_64(at + 8, order) << 64 | low;
}

static inline void ptx_st_order_128(char *at, u128 value, int order)
{
    ptx_st_order_64(at, (u64)value, order);
    ptx_st_order_64(at + 8, (u64)(value >> 64), order);
}
#else
/* 16 bytes that lie on a multiple of 16 are one access, as on GPUs. */
typedef u64 ptx_two __attribute__((vector_size(16), may_alias));

static inline u128 ptx_ld_order_128(const char *at, int order)
{
    const ptx_two both = *(const volatile ptx_two *)at;

    __atomic_thread_fence(order);
    return (u128)both[1] << 64 | both[0];
}

static inline void ptx_st_order_128(char *at, u128 value, int order)
{
    const ptx_two both = {(u64)value, (u64)(value >> 64)};

    __atomic_thread_fence(order);
    *(volatile ptx_two *)at = both;
}
#endif

/* --- Atomics: each returns the old value --- */

#define PTX_ATOM(operation, builtin, T, N)                                                         \
    static inline T ptx_atom_##operation##_##T(char *at, T value, int order)                       \
    {                                                                                              \
        return (T)builtin((ptx_word_##N *)at, (u##N)value, order);                                 \
    }
PTX_ATOM(add, __atomic_fetch_add, u32, 32)
PTX_ATOM(add, __atomic_fetch_add, s32, 32)
PTX_ATOM(add, __atomic_fetch_add, u64, 64)
PTX_ATOM(add, __atomic_fetch_add, s64, 64)

#define PTX_ATOM_BITS(operation, builtin, N)                                                       \
    static inline u##N ptx_atom_##operation##_b##N(char *at, u##N value, int order)                \
    {                                                                                              \
        return builtin((ptx_word_##N *)at, value, order);                                          \
    }
PTX_ATOM_BITS(and, __atomic_fetch_and, 32)
PTX_ATOM_BITS(and, __atomic_fetch_and, 64)
PTX_ATOM_BITS(or, __atomic_fetch_or, 32)
PTX_ATOM_BITS(or, __atomic_fetch_or, 64)
PTX_ATOM_BITS(xor, __atomic_fetch_xor, 32)
PTX_ATOM_BITS(xor, __atomic_fetch_xor, 64)
PTX_ATOM_BITS(exch, __atomic_exchange_n, 32)
PTX_ATOM_BITS(exch, __atomic_exchange_n, 64)

/* The order of a compare-and-swap that fails, which may not be a release. */
static inline int ptx_order_of_failure(int order)
{
    return order == __ATOMIC_RELEASE   ? __ATOMIC_RELAXED
           : order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE
                                       : order;
}

#define PTX_ATOM_CAS(N)                                                                            \
    static inline u##N ptx_atom_cas_b##N(char *at, u##N expected, u##N value, int order)           \
    {                                                                                              \
        __atomic_compare_exchange_n((ptx_word_##N *)at, &expected, value, 0, order,                \
                                    ptx_order_of_failure(order));                                  \
        return expected;                                                                           \
    }
PTX_ATOM_CAS(16)
PTX_ATOM_CAS(32)
PTX_ATOM_CAS(64)

/* 16 bytes, by cmpxchg16b, which the x86-64 processor that compilers assume by default lacks. */
#ifdef __x86_64__
#define PTX_16_BYTES __attribute__((target("cx16")))
#else
#define PTX_16_BYTES
#endif
PTX_16_BYTES static inline u128 ptx_atom_cas_b128(char *at, u128 expected, u128 value, int order)
{
    (void)order;
    return __sync_val_compare_and_swap((ptx_word_128 *)at, expected, value);
}

static inline u128 ptx_atom_exch_b128(char *at, u128 value, int order)
{
    u128 seen = ptx_ld_128(at);

    for (;;) {
        const u128 old = ptx_atom_cas_b128(at, seen, value, order);
        if (old == seen)
            return old;
        seen = old;
    }
}

/* The new value of `old` and `value`, by compare and swap. */
#define PTX_ATOM_LOOP(name, T, N, expression)                                                      \
    static inline T ptx_atom_##name(char *at, T value, int order)                                  \
    {                                                                                              \
        u##N seen = __atomic_load_n((ptx_word_##N *)at, __ATOMIC_RELAXED);                         \
        for (;;) {                                                                                 \
            const T old = ptx_atom_value_##T(seen);                                                \
            const u##N wanted = ptx_atom_bits_##T(expression);                                     \
            if (__atomic_compare_exchange_n((ptx_word_##N *)at, &seen, wanted, 0, order,           \
                                            ptx_order_of_failure(order)))                          \
                return old;                                                                        \
        }                                                                                          \
    }
#define ptx_atom_value_u32(x) ((u32)(x))
#define ptx_atom_value_s32(x) ((s32)(x))
#define ptx_atom_value_u64(x) ((u64)(x))
#define ptx_atom_value_s64(x) ((s64)(x))
#define ptx_atom_value_f32(x) ptx_f32(x)
#define ptx_atom_value_f64(x) ptx_f64(x)
#define ptx_atom_value_u16(x) ((u16)(x))
#define ptx_atom_bits_u32(x)  ((u32)(x))
#define ptx_atom_bits_s32(x)  ((u32)(x))
#define ptx_atom_bits_u64(x)  ((u64)(x))
#define ptx_atom_bits_s64(x)  ((u64)(x))
#define ptx_atom_bits_f32(x)  ptx_bits_f32(x)
#define ptx_atom_bits_f64(x)  ptx_bits_f64(x)
#define ptx_atom_bits_u16(x)  ((u16)(x))
PTX_ATOM_LOOP(min_u32, u32, 32, old < value ? old : value)
PTX_ATOM_LOOP(min_s32, s32, 32, old < value ? old : value)
PTX_ATOM_LOOP(min_u64, u64, 64, old < value ? old : value)
PTX_ATOM_LOOP(min_s64, s64, 64, old < value ? old : value)
PTX_ATOM_LOOP(max_u32, u32, 32, old > value ? old : value)
PTX_ATOM_LOOP(max_s32, s32, 32, old > value ? old : value)
PTX_ATOM_LOOP(max_u64, u64, 64, old > value ? old : value)
PTX_ATOM_LOOP(max_s64, s64, 64, old > value ? old : value)
PTX_ATOM_LOOP(inc_u32, u32, 32, old >= value ? 0 : old + 1)
PTX_ATOM_LOOP(dec_u32, u32, 32, old == 0 || old > value ? value : old - 1)
PTX_ATOM_LOOP(add_f32, f32, 32, old + value)
PTX_ATOM_LOOP(add_f64, f64, 64, old + value)
PTX_ATOM_LOOP(add_f16, u16, 16, ptx_add_f16(old, value))
PTX_ATOM_LOOP(add_bf16, u16, 16, ptx_add_bf16(old, value))
PTX_ATOM_LOOP(min_f16, u16, 16, ptx_min_f16(old, value))
PTX_ATOM_LOOP(max_f16, u16, 16, ptx_max_f16(old, value))
PTX_ATOM_LOOP(min_bf16, u16, 16, ptx_min_bf16(old, value))
PTX_ATOM_LOOP(max_bf16, u16, 16, ptx_max_bf16(old, value))
PTX_ATOM_LOOP(min_f16x2, u32, 32, ptx_min_f16x2(old, value))
PTX_ATOM_LOOP(max_f16x2, u32, 32, ptx_max_f16x2(old, value))
PTX_ATOM_LOOP(min_bf16x2, u32, 32, ptx_min_bf16x2(old, value))
PTX_ATOM_LOOP(max_bf16x2, u32, 32, ptx_max_bf16x2(old, value))
PTX_ATOM_LOOP(add_f16x2, u32, 32, ptx_add_f16x2(old, value))
PTX_ATOM_LOOP(add_bf16x2, u32, 32, ptx_add_bf16x2(old, value))

#endif

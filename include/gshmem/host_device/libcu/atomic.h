/* The part of libcu++'s atomics that kernels use: cuda::atomic, cuda::atomic_ref, fences, and the
 * same as cuda::std::atomic. All scopes are the same here. As CUDA's atomic functions do, each
 * operation may let other threads run, so that a loop of them can wait for another thread
 * (device_atomics.h).
 *
 * Values have 1, 2, 4 or 8 bytes; what else there is in libcu++ does not compile. */
#ifndef GSHMEM_HOST_DEVICE_LIBCU_ATOMIC_H
#define GSHMEM_HOST_DEVICE_LIBCU_ATOMIC_H

#include <stddef.h>
#include <string.h>

#include <type_traits>

#include "gshmem_names_begin.h"

#include "../cuda_runtime.h"

namespace cuda
{
namespace std
{

enum class memory_order {
    relaxed = __ATOMIC_RELAXED,
    consume = __ATOMIC_CONSUME,
    acquire = __ATOMIC_ACQUIRE,
    release = __ATOMIC_RELEASE,
    acq_rel = __ATOMIC_ACQ_REL,
    seq_cst = __ATOMIC_SEQ_CST
};
static constexpr memory_order memory_order_relaxed = memory_order::relaxed;
static constexpr memory_order memory_order_consume = memory_order::consume;
static constexpr memory_order memory_order_acquire = memory_order::acquire;
static constexpr memory_order memory_order_release = memory_order::release;
static constexpr memory_order memory_order_acq_rel = memory_order::acq_rel;
static constexpr memory_order memory_order_seq_cst = memory_order::seq_cst;

} /* namespace std */

using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

enum thread_scope {
    thread_scope_system,
    thread_scope_device,
    thread_scope_block,
    thread_scope_thread
};

} /* namespace cuda */

namespace gshmem_host
{

/* What is added to an atomic: a number of its own type, and elements to a pointer; and what that
 * makes. Integers wrap at their limits, as the atomics themselves do; signed ones would
 * overflow. */
template <class T, bool = ::std::is_integral<T>::value && !::std::is_same<T, bool>::value>
struct atomic_step {
    typedef T type;
    static constexpr ptrdiff_t bytes = 1;
    static T plus(T old, T value)
    {
        return (T)(old + value);
    }
    static T minus(T old, T value)
    {
        return (T)(old - value);
    }
};
template <class T> struct atomic_step<T, true> {
    typedef T type;
    static constexpr ptrdiff_t bytes = 1;
    static T plus(T old, T value)
    {
        return (T)((unsigned long long)old + (unsigned long long)value);
    }
    static T minus(T old, T value)
    {
        return (T)((unsigned long long)old - (unsigned long long)value);
    }
};
template <class T> struct atomic_step<T *, false> {
    typedef ptrdiff_t type;
    static constexpr ptrdiff_t bytes = sizeof(T);
    static T *plus(T *old, ptrdiff_t value)
    {
        return old + value;
    }
    static T *minus(T *old, ptrdiff_t value)
    {
        return old - value;
    }
};

template <size_t Size> struct atomic_word {
    static_assert(Size == (size_t)-1, "atomics of the host device have 1, 2, 4 or 8 bytes");
};
#define GSHMEM_HOST_ATOMIC_WORD(integer)                                                           \
    template <> struct atomic_word<sizeof(integer)> {                                              \
        typedef integer __attribute__((may_alias)) type;                                           \
    };
GSHMEM_HOST_ATOMIC_WORD(uint8_t)
GSHMEM_HOST_ATOMIC_WORD(uint16_t)
GSHMEM_HOST_ATOMIC_WORD(uint32_t)
GSHMEM_HOST_ATOMIC_WORD(uint64_t)
#undef GSHMEM_HOST_ATOMIC_WORD

/* The operations on the object at an address. Those that change it return what it was. */
template <class T> struct atomic_at {
    typedef ::cuda::std::memory_order order;
    typedef typename atomic_step<T>::type step;

    static_assert(::std::is_trivially_copyable<T>::value, "atomics are copied as bytes");
    static constexpr bool whole = ::std::is_integral<T>::value && !::std::is_same<T, bool>::value,
                          counts = whole || ::std::is_pointer<T>::value,
                          real = ::std::is_floating_point<T>::value;

    /* A value is loaded and stored as an integer of its size: its own alignment may be smaller. */
    typedef typename atomic_word<sizeof(T)>::type word;

    static word *words(const T *address)
    {
        return reinterpret_cast<word *>(const_cast<T *>(address));
    }
    static word word_of(const T &value)
    {
        word bits;

        memcpy(&bits, &value, sizeof value);
        return bits;
    }
    static T value_of(word bits)
    {
        T value;

        memcpy((void *)&value, &bits, sizeof value);
        return value;
    }

    static T load(const T *address, order how)
    {
        gshmem_host_may_wait();
        return value_of(__atomic_load_n(words(address), (int)how));
    }
    static void store(T *address, T value, order how)
    {
        gshmem_host_may_wait();
        __atomic_store_n(words(address), word_of(value), (int)how);
    }
    static T exchange(T *address, T value, order how)
    {
        gshmem_host_may_wait();
        return value_of(__atomic_exchange_n(words(address), word_of(value), (int)how));
    }
    static bool compare_exchange(T *address, T &expected, T value, bool weak, order how,
                                 order failed)
    {
        word old = word_of(expected);

        gshmem_host_may_wait();
        const bool changed = __atomic_compare_exchange_n(words(address), &old, word_of(value), weak,
                                                         (int)how, (int)failed);
        if (!changed) /* otherwise another thread may have its memory by now */
            expected = value_of(old);
        return changed;
    }
    /* How a comparison orders that fails. */
    static order of_failure(order how)
    {
        return how == order::acq_rel   ? order::acquire
               : how == order::release ? order::relaxed
                                       : how;
    }
    template <class Change> static T update(T *address, order how, Change change)
    {
        word old = word_of(load(address, order::relaxed));

        while (!__atomic_compare_exchange_n(words(address), &old, word_of(change(value_of(old))),
                                            true, (int)how, __ATOMIC_RELAXED))
            continue;
        return value_of(old);
    }

    static T add(T *address, step value, order how, ::std::true_type)
    {
        gshmem_host_may_wait();
        return __atomic_fetch_add(address, value * (step)atomic_step<T>::bytes, (int)how);
    }
    static T add(T *address, step value, order how, ::std::false_type)
    {
        static_assert(real, "fetch_add and fetch_sub are for numbers and pointers");
        return update(address, how, [=](T old) { return (T)(old + value); });
    }
    static T fetch_add(T *address, step value, order how)
    {
        return add(address, value, how, ::std::integral_constant<bool, counts>());
    }
    static T subtract(T *address, step value, order how, ::std::true_type)
    {
        gshmem_host_may_wait();
        return __atomic_fetch_sub(address, value * (step)atomic_step<T>::bytes, (int)how);
    }
    static T subtract(T *address, step value, order how, ::std::false_type)
    {
        static_assert(real, "fetch_add and fetch_sub are for numbers and pointers");
        return update(address, how, [=](T old) { return (T)(old - value); });
    }
    static T fetch_sub(T *address, step value, order how)
    {
        return subtract(address, value, how, ::std::integral_constant<bool, counts>());
    }

#define GSHMEM_HOST_ATOMIC_BITS(operation)                                                         \
    static T fetch_##operation(T *address, T value, order how)                                     \
    {                                                                                              \
        static_assert(whole, "fetch_" #operation " is for integers");                              \
        gshmem_host_may_wait();                                                                    \
        return __atomic_fetch_##operation(address, value, (int)how);                               \
    }
    GSHMEM_HOST_ATOMIC_BITS(and)
    GSHMEM_HOST_ATOMIC_BITS(or)
    GSHMEM_HOST_ATOMIC_BITS(xor)
#undef GSHMEM_HOST_ATOMIC_BITS

    static T fetch_min(T *address, T value, order how)
    {
        static_assert(whole || real, "fetch_min and fetch_max are for numbers");
        return update(address, how, [=](T old) { return value < old ? value : old; });
    }
    static T fetch_max(T *address, T value, order how)
    {
        static_assert(whole || real, "fetch_min and fetch_max are for numbers");
        return update(address, how, [=](T old) { return old < value ? value : old; });
    }
    /* Until the value's bytes are others. Nobody has to notify: the wait looks by itself. */
    static void wait(const T *address, T old, order how)
    {
        for (T now = load(address, how); memcmp(&now, &old, sizeof now) == 0;
             now = load(address, how))
            gshmem_host_yield();
        gshmem_host_progress();
    }
};

} /* namespace gshmem_host */

/* The methods of a class that has at(), the object's address; constness: nothing, or const where a
 * constant reference refers to an object that is none. */
#define GSHMEM_HOST_ATOMIC_CHANGE(name, type, constness)                                           \
    T name(type value, memory_order order = memory_order_seq_cst) constness                        \
    {                                                                                              \
        return gshmem_host::atomic_at<T>::name(at(), value, order);                                \
    }
#define GSHMEM_HOST_ATOMIC_OPERATOR(operation, name, type, constness)                              \
    T operator operation##=(type value) constness                                                  \
    {                                                                                              \
        return (T)(gshmem_host::atomic_at<T>::name(at(), value, memory_order_seq_cst)              \
                       operation value);                                                           \
    }
#define GSHMEM_HOST_ATOMIC_STEP(operation, name, sum, constness)                                   \
    T operator operation##=(difference_type value) constness                                       \
    {                                                                                              \
        return gshmem_host::atomic_step<T>::sum(fetch_##name(value), value);                       \
    }                                                                                              \
    T operator operation##operation() constness                                                    \
    {                                                                                              \
        return *this operation##= (difference_type)1;                                              \
    }                                                                                              \
    T operator operation##operation(int) constness                                                 \
    {                                                                                              \
        return fetch_##name((difference_type)1);                                                   \
    }
#define GSHMEM_HOST_ATOMIC_COMPARE(name, weak, constness)                                          \
    bool name(T &expected, T value, memory_order order, memory_order failed) constness             \
    {                                                                                              \
        return gshmem_host::atomic_at<T>::compare_exchange(at(), expected, value, weak, order,     \
                                                           failed);                                \
    }                                                                                              \
    bool name(T &expected, T value, memory_order order = memory_order_seq_cst) constness           \
    {                                                                                              \
        return name(expected, value, order, gshmem_host::atomic_at<T>::of_failure(order));         \
    }
#define GSHMEM_HOST_ATOMIC_METHODS(constness)                                                      \
    typedef T value_type;                                                                          \
    typedef typename gshmem_host::atomic_step<T>::type difference_type;                            \
    static constexpr bool is_always_lock_free = true;                                              \
    bool is_lock_free() const                                                                      \
    {                                                                                              \
        return true;                                                                               \
    }                                                                                              \
    T load(memory_order order = memory_order_seq_cst) const                                        \
    {                                                                                              \
        return gshmem_host::atomic_at<T>::load(at(), order);                                       \
    }                                                                                              \
    operator T() const                                                                             \
    {                                                                                              \
        return load();                                                                             \
    }                                                                                              \
    void store(T value, memory_order order = memory_order_seq_cst) constness                       \
    {                                                                                              \
        gshmem_host::atomic_at<T>::store(at(), value, order);                                      \
    }                                                                                              \
    T operator=(T value) constness                                                                 \
    {                                                                                              \
        store(value);                                                                              \
        return value;                                                                              \
    }                                                                                              \
    void wait(T old, memory_order order = memory_order_seq_cst) const                              \
    {                                                                                              \
        gshmem_host::atomic_at<T>::wait(at(), old, order);                                         \
    }                                                                                              \
    void notify_one() constness                                                                    \
    {                                                                                              \
    }                                                                                              \
    void notify_all() constness                                                                    \
    {                                                                                              \
    }                                                                                              \
    GSHMEM_HOST_ATOMIC_CHANGE(exchange, T, constness)                                              \
    GSHMEM_HOST_ATOMIC_COMPARE(compare_exchange_weak, true, constness)                             \
    GSHMEM_HOST_ATOMIC_COMPARE(compare_exchange_strong, false, constness)                          \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_add, difference_type, constness)                               \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_sub, difference_type, constness)                               \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_and, T, constness)                                             \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_or, T, constness)                                              \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_xor, T, constness)                                             \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_min, T, constness)                                             \
    GSHMEM_HOST_ATOMIC_CHANGE(fetch_max, T, constness)                                             \
    GSHMEM_HOST_ATOMIC_STEP(+, add, plus, constness)                                               \
    GSHMEM_HOST_ATOMIC_STEP(-, sub, minus, constness)                                              \
    GSHMEM_HOST_ATOMIC_OPERATOR(&, fetch_and, T, constness)                                        \
    GSHMEM_HOST_ATOMIC_OPERATOR(|, fetch_or, T, constness)                                         \
    GSHMEM_HOST_ATOMIC_OPERATOR(^, fetch_xor, T, constness)

namespace cuda
{

template <class T, thread_scope Scope = thread_scope_system> class atomic
{
    alignas(sizeof(T) < 4 ? 4 : sizeof(T)) T value; /* as NVIDIA's are aligned */

    T *at()
    {
        return &value;
    }
    const T *at() const
    {
        return &value;
    }

  public:
    atomic() = default;
    constexpr atomic(T first) : value(first)
    {
    }
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    GSHMEM_HOST_ATOMIC_METHODS()
};

/* Refers to an object that is aligned to its size. */
template <class T, thread_scope Scope = thread_scope_system> class atomic_ref
{
    T *address;

    T *at() const
    {
        return address;
    }

  public:
    static constexpr size_t required_alignment = sizeof(T);

    explicit atomic_ref(T &object) : address(&object)
    {
    }
    atomic_ref(const atomic_ref &) = default;
    atomic_ref &operator=(const atomic_ref &) = delete;
    GSHMEM_HOST_ATOMIC_METHODS(const)
};

inline void atomic_thread_fence(memory_order order, thread_scope = thread_scope_system)
{
    if (order != memory_order_relaxed)
        gshmem_host_fence();
}

/* For the compiler alone. */
inline void atomic_signal_fence(memory_order order)
{
    if (order != memory_order_relaxed)
        __asm__ volatile("" ::: "memory");
}

namespace std
{

using ::cuda::atomic_signal_fence;
using ::cuda::thread_scope;
using ::cuda::thread_scope_block;
using ::cuda::thread_scope_device;
using ::cuda::thread_scope_system;
using ::cuda::thread_scope_thread;

template <class T> using atomic = ::cuda::atomic<T>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T>;

inline void atomic_thread_fence(memory_order order)
{
    ::cuda::atomic_thread_fence(order);
}

typedef ::cuda::atomic<bool> atomic_bool;
typedef ::cuda::atomic<char> atomic_char;
typedef ::cuda::atomic<signed char> atomic_schar;
typedef ::cuda::atomic<unsigned char> atomic_uchar;
typedef ::cuda::atomic<short> atomic_short;
typedef ::cuda::atomic<unsigned short> atomic_ushort;
typedef ::cuda::atomic<int> atomic_int;
typedef ::cuda::atomic<unsigned> atomic_uint;
typedef ::cuda::atomic<long> atomic_long;
typedef ::cuda::atomic<unsigned long> atomic_ulong;
typedef ::cuda::atomic<long long> atomic_llong;
typedef ::cuda::atomic<unsigned long long> atomic_ullong;

/* As an atomic<bool>; false at the beginning where it was initialized. */
struct atomic_flag {
    ::cuda::atomic<bool> set;

    bool test_and_set(memory_order order = memory_order_seq_cst)
    {
        return set.exchange(true, order);
    }
    bool test(memory_order order = memory_order_seq_cst) const
    {
        return set.load(order);
    }
    void clear(memory_order order = memory_order_seq_cst)
    {
        set.store(false, order);
    }
    void wait(bool old, memory_order order = memory_order_seq_cst) const
    {
        set.wait(old, order);
    }
    void notify_one()
    {
    }
    void notify_all()
    {
    }
};

} /* namespace std */
} /* namespace cuda */

#undef GSHMEM_HOST_ATOMIC_CHANGE
#undef GSHMEM_HOST_ATOMIC_OPERATOR
#undef GSHMEM_HOST_ATOMIC_COMPARE
#undef GSHMEM_HOST_ATOMIC_METHODS
#undef GSHMEM_HOST_ATOMIC_OPERATOR
#undef GSHMEM_HOST_ATOMIC_STEP

#include "gshmem_names_end.h"

#endif

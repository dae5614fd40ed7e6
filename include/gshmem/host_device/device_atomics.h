/* CUDA's atomic operations. As on a GPU, they order nothing; __threadfence does. Each may let other
 * threads run, and so a loop of them can wait for another thread. */
#ifndef GSHMEM_HOST_DEVICE_DEVICE_ATOMICS_H
#define GSHMEM_HOST_DEVICE_DEVICE_ATOMICS_H

#include "execution.h"

namespace gshmem_host
{

template <class T, class Change> inline T update(T *address, Change change)
{
    T old, next;

    gshmem_host_may_wait();
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do
        next = change(old);
    while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    return old;
}

} /* namespace gshmem_host */

/* Every operation at every scope; they are the same here. */
#define GSHMEM_HOST_ATOMIC(name, type, parameters, arguments, body)                                \
    static inline type name parameters                                                             \
    {                                                                                              \
        body                                                                                       \
    }                                                                                              \
    static inline type name##_block parameters                                                     \
    {                                                                                              \
        return name arguments;                                                                     \
    }                                                                                              \
    static inline type name##_system parameters                                                    \
    {                                                                                              \
        return name arguments;                                                                     \
    }

#define GSHMEM_HOST_ATOMIC_FETCH(name, type, operation)                                            \
    GSHMEM_HOST_ATOMIC(name, type, (type * address, type value), (address, value),                 \
                       gshmem_host_may_wait();                                                     \
                       return __atomic_fetch_##operation(address, value, __ATOMIC_RELAXED);)

#define GSHMEM_HOST_ATOMIC_CHANGE(name, type, expression)                                          \
    GSHMEM_HOST_ATOMIC(name, type, (type * address, type value), (address, value),                 \
                       return gshmem_host::update(address, [=](type old) -> type {                 \
                           return expression;                                                      \
                       });)

#define GSHMEM_HOST_ATOMIC_SWAP(type)                                                              \
    GSHMEM_HOST_ATOMIC(atomicExch, type, (type * address, type value), (address, value),           \
                       type old; gshmem_host_may_wait();                                           \
                       __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED); return old;)

#define GSHMEM_HOST_ATOMIC_COMPARE(type)                                                           \
    GSHMEM_HOST_ATOMIC(atomicCAS, type, (type * address, type compare, type value),                \
                       (address, compare, value), gshmem_host_may_wait();                          \
                       __atomic_compare_exchange_n(address, &compare, value, false,                \
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED);            \
                       return compare;)

#define GSHMEM_HOST_ATOMIC_WHOLE(type)                                                             \
    GSHMEM_HOST_ATOMIC_FETCH(atomicAdd, type, add)                                                 \
    GSHMEM_HOST_ATOMIC_FETCH(atomicAnd, type, and)                                                 \
    GSHMEM_HOST_ATOMIC_FETCH(atomicOr, type, or)                                                   \
    GSHMEM_HOST_ATOMIC_FETCH(atomicXor, type, xor)                                                 \
    GSHMEM_HOST_ATOMIC_CHANGE(atomicMin, type, value < old ? value : old)                          \
    GSHMEM_HOST_ATOMIC_CHANGE(atomicMax, type, value > old ? value : old)                          \
    GSHMEM_HOST_ATOMIC_SWAP(type)                                                                  \
    GSHMEM_HOST_ATOMIC_COMPARE(type)

GSHMEM_HOST_ATOMIC_WHOLE(int)
GSHMEM_HOST_ATOMIC_WHOLE(unsigned)
GSHMEM_HOST_ATOMIC_WHOLE(unsigned long long)

GSHMEM_HOST_ATOMIC_FETCH(atomicSub, int, sub)
GSHMEM_HOST_ATOMIC_FETCH(atomicSub, unsigned, sub)
GSHMEM_HOST_ATOMIC_FETCH(atomicAnd, long long, and)
GSHMEM_HOST_ATOMIC_FETCH(atomicOr, long long, or)
GSHMEM_HOST_ATOMIC_FETCH(atomicXor, long long, xor)
GSHMEM_HOST_ATOMIC_CHANGE(atomicMin, long long, value < old ? value : old)
GSHMEM_HOST_ATOMIC_CHANGE(atomicMax, long long, value > old ? value : old)
GSHMEM_HOST_ATOMIC_COMPARE(unsigned short)

GSHMEM_HOST_ATOMIC_CHANGE(atomicAdd, float, old + value)
GSHMEM_HOST_ATOMIC_CHANGE(atomicAdd, double, old + value)
GSHMEM_HOST_ATOMIC_SWAP(float)

/* Counts up to value and starts again; counts down and starts again from value. */
GSHMEM_HOST_ATOMIC_CHANGE(atomicInc, unsigned, old >= value ? 0 : old + 1)
GSHMEM_HOST_ATOMIC_CHANGE(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)

#undef GSHMEM_HOST_ATOMIC
#undef GSHMEM_HOST_ATOMIC_FETCH
#undef GSHMEM_HOST_ATOMIC_CHANGE
#undef GSHMEM_HOST_ATOMIC_SWAP
#undef GSHMEM_HOST_ATOMIC_COMPARE
#undef GSHMEM_HOST_ATOMIC_WHOLE

#endif

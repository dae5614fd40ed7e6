/* Copies by one thread, a warp or a block: accesses of 16 bytes where both sides allow it. */
#ifndef GSHMEM_DEVICE_COPY_H
#define GSHMEM_DEVICE_COPY_H

#include "gshmem/device/scope.h"

/* One element in one access, never torn (but for 16 bytes). Orders nothing. */
template <class T> GSHMEM_KERNEL void gshmem_kernel_store(T *at, T value)
{
#ifdef __CUDA_ARCH__
    *(volatile T *)at = value;
#else
    if (sizeof value <= 8)
        __atomic_store(at, &value, __ATOMIC_RELAXED);
    else
        *at = value;
#endif
}

template <class T> GSHMEM_KERNEL T gshmem_kernel_load(const T *at)
{
#ifdef __CUDA_ARCH__
    return *(const volatile T *)at;
#else
    T value;
    if (sizeof value <= 8)
        __atomic_load(at, &value, __ATOMIC_RELAXED);
    else
        value = *at;
    return value;
#endif
}

/* Elements of T from `from` to `to`, both aligned to it. */
template <int scope, class T> GSHMEM_KERNEL void gshmem_kernel_copy_as(T *to, const T *from, size_t n)
{
    for (size_t i = gshmem_kernel_rank<scope>(); i < n; i += gshmem_kernel_size<scope>())
        to[i] = from[i];
}

/* All bytes; those before the first and after the last T one by one. */
template <int scope, class T>
GSHMEM_KERNEL void gshmem_kernel_copy_around(char *to, const char *from, size_t bytes)
{
    size_t before = -(uintptr_t)to & (sizeof(T) - 1);

    if (before > bytes)
        before = bytes;
    size_t n = (bytes - before) / sizeof(T), end = before + n * sizeof(T);
    gshmem_kernel_copy_as<scope>(to, from, before);
    gshmem_kernel_copy_as<scope>((T *)(to + before), (const T *)(from + before), n);
    gshmem_kernel_copy_as<scope>(to + end, from + end, bytes - end);
}

/* An aligned object of 4 or 8 bytes is moved in one access, so that a flag is never torn. */
template <int scope>
GSHMEM_KERNEL void gshmem_kernel_copy(void *to, const void *from, size_t bytes)
{
    uintptr_t differ = (uintptr_t)to ^ (uintptr_t)from;

    if ((differ & 15) == 0)
        gshmem_kernel_copy_around<scope, uint4>((char *)to, (const char *)from, bytes);
    else if ((differ & 7) == 0)
        gshmem_kernel_copy_around<scope, uint64_t>((char *)to, (const char *)from, bytes);
    else if ((differ & 3) == 0)
        gshmem_kernel_copy_around<scope, uint32_t>((char *)to, (const char *)from, bytes);
    else
        gshmem_kernel_copy_as<scope>((char *)to, (const char *)from, bytes);
}

#endif

/* Copies by one thread, a warp or a block, of any size between any addresses. They order nothing.
 *
 * On a GPU the source is loaded and the destination stored in aligned words of 16 bytes, except at
 * the ends of the destination. Where source and destination are aligned differently, a stored word
 * is made of two loaded ones by shifts; a word that has no byte of the source is never loaded. Each
 * thread has four words in flight: it waits once for four loads.
 *
 * Elements of 2, 4 or 8 bytes are not torn if addresses and size are multiples of the element's
 * size. Therefore other threads may poll on an element that is copied alone. On the host device
 * each thread copies its share with memcpy. */
#ifndef GSHMEM_DEVICE_COPY_H
#define GSHMEM_DEVICE_COPY_H

#include <string.h>

#include "gshmem/device/scope.h"

/* One element in one access, never torn (except for 16 bytes). Orders nothing. */
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

/* The size of the largest element, up to 8 bytes, of which both addresses and the size are
 * multiples. */
GSHMEM_KERNEL size_t gshmem_kernel_unit(const void *to, const void *from, size_t bytes)
{
    size_t bits = (uintptr_t)to | (uintptr_t)from | bytes | 8;

    return bits & -bits;
}

template <class T> GSHMEM_KERNEL void gshmem_kernel_move(void *to, const void *from)
{
    gshmem_kernel_store((T *)to, gshmem_kernel_load((const T *)from));
}

GSHMEM_KERNEL void gshmem_kernel_move_unit(char *to, const char *from, size_t unit)
{
    if (unit == 8)
        gshmem_kernel_move<uint64_t>(to, from);
    else if (unit == 4)
        gshmem_kernel_move<uint32_t>(to, from);
    else if (unit == 2)
        gshmem_kernel_move<uint16_t>(to, from);
    else
        gshmem_kernel_move<uint8_t>(to, from);
}

#if !defined(GSHMEM_HOST_DEVICE) || defined(GSHMEM_COPY_WORDS) /* a test uses it on the CPU, too */

typedef ulonglong2 gshmem_kernel_word; /* 16 bytes */

/* Bytes [by, by + 16) of two words; `by` is 0 to 15. */
GSHMEM_KERNEL gshmem_kernel_word gshmem_kernel_shift(gshmem_kernel_word a, gshmem_kernel_word b,
                                                     unsigned by)
{
    const unsigned bits = 8 * (by & 7);
    uint64_t low = by & 8 ? a.y : a.x, middle = by & 8 ? b.x : a.y, high = by & 8 ? b.y : b.x;

    return make_ulonglong2(low >> bits | middle << 1 << (63 - bits),
                           middle >> bits | high << 1 << (63 - bits));
}

/* The part of a word that belongs to bytes [first, end); `from` and the word after it begin `by`
 * bytes before it. */
GSHMEM_KERNEL gshmem_kernel_word gshmem_kernel_load_part(const gshmem_kernel_word *from,
                                                         unsigned by, unsigned first, unsigned end)
{
    gshmem_kernel_word a = {}, b = {};

    if (by + first < 16 && first < end)
        a = from[0];
    if (by + end > 16 && first < end)
        b = from[1];
    return gshmem_kernel_shift(a, b, by);
}

GSHMEM_KERNEL void gshmem_kernel_store_part(char *to, gshmem_kernel_word word, unsigned first,
                                            unsigned end, unsigned unit)
{
    const gshmem_kernel_word none = {};

    word = gshmem_kernel_shift(word, none, first);
#pragma unroll 1
    for (unsigned i = first; i < end; i += unit) {
        if (unit == 8)
            gshmem_kernel_store((uint64_t *)(to + i), (uint64_t)word.x);
        else if (unit == 4)
            gshmem_kernel_store((uint32_t *)(to + i), (uint32_t)word.x);
        else if (unit == 2)
            gshmem_kernel_store((uint16_t *)(to + i), (uint16_t)word.x);
        else
            gshmem_kernel_store((uint8_t *)(to + i), (uint8_t)word.x);
        word = gshmem_kernel_shift(word, none, unit);
    }
}

/* Words [i, n) of the destination, each from one word of the source, or from it and the next. */
template <int scope, bool shifted>
GSHMEM_KERNEL void gshmem_kernel_copy_words(gshmem_kernel_word *to, const gshmem_kernel_word *from,
                                            size_t i, size_t n, unsigned by)
{
    const size_t step = gshmem_kernel_size<scope>();
    gshmem_kernel_word word[4], next[4];

    for (i += gshmem_kernel_rank<scope>(); i < n; i += 4 * step) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * step < n) {
                word[j] = from[i + j * step];
                if (shifted)
                    next[j] = from[i + j * step + 1];
            }
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * step < n)
                to[i + j * step] = shifted ? gshmem_kernel_shift(word[j], next[j], by) : word[j];
        }
    }
}

/* The first thread stores the bytes before the first whole word, the last thread those after the
 * last whole word. They load these bytes before they wait for anything. */
template <int scope>
GSHMEM_KERNEL void gshmem_kernel_copy_many(char *to, const char *from, size_t bytes, size_t unit)
{
    const unsigned lead = (uintptr_t)to & 15, by = (uintptr_t)(from - lead) & 15;
    const size_t rank = gshmem_kernel_rank<scope>(), whole = (lead + bytes) / 16;
    const gshmem_kernel_word *source = (const gshmem_kernel_word *)(from - lead - by);
    unsigned front = lead && rank == 0 ? (whole ? 16 : lead + (unsigned)bytes) : 0;
    unsigned back = (whole || !lead) && rank == gshmem_kernel_size<scope>() - 1
                        ? (unsigned)(lead + bytes) & 15
                        : 0;
    gshmem_kernel_word before = gshmem_kernel_load_part(source, by, lead, front);
    gshmem_kernel_word behind = gshmem_kernel_load_part(source + whole, by, 0, back);

    to -= lead;
    if (by == 0)
        gshmem_kernel_copy_words<scope, false>((gshmem_kernel_word *)to, source, lead != 0, whole,
                                               0);
    else
        gshmem_kernel_copy_words<scope, true>((gshmem_kernel_word *)to, source, lead != 0, whole,
                                              by);
    gshmem_kernel_store_part(to, before, lead, front, (unsigned)unit);
    gshmem_kernel_store_part(to + 16 * whole, behind, 0, back, (unsigned)unit);
}

#else

/* Each thread copies some lines of the destination; no element straddles a line. */
template <int scope>
GSHMEM_KERNEL void gshmem_kernel_copy_many(char *to, const char *from, size_t bytes, size_t)
{
    const size_t line = 64, before = (uintptr_t)to & (line - 1);
    const size_t lines = (before + bytes + line - 1) / line, threads = gshmem_kernel_size<scope>();
    const size_t share = (lines + threads - 1) / threads * line;
    size_t begin = gshmem_kernel_rank<scope>() * share, end = begin + share;

    begin = begin > before ? begin - before : 0;
    end = end - before < bytes ? end - before : bytes;
    if (begin < end)
        memcpy(to + begin, from + begin, end - begin);
}

#endif

template <int scope>
GSHMEM_KERNEL void gshmem_kernel_copy(void *to, const void *from, size_t bytes)
{
    const size_t unit = gshmem_kernel_unit(to, from, bytes);

    if (bytes != unit)
        gshmem_kernel_copy_many<scope>((char *)to, (const char *)from, bytes, unit);
    else if (gshmem_kernel_rank<scope>() == 0)
        gshmem_kernel_move_unit((char *)to, (const char *)from, unit);
}

#endif

/* Indexed operations in kernels (gshmem/indexed.h): the threads of the scope take elements in turn.
 *
 * Elements that are mapped are loaded and stored. Any other element is a command of its own, which
 * the proxy sends together with its neighbours; a get waits for all its elements at once. */
#ifndef GSHMEM_DEVICE_INDEXED_H
#define GSHMEM_DEVICE_INDEXED_H

#include "gshmem/device/atomic.h"
#include "gshmem/indexed.h"

/* Whether the arrays of a call are there; with 0 elements they need not be. */
GSHMEM_KERNEL bool gshmem_kernel_ix_good(const void *dest, const void *source, const size_t *index,
                                         size_t n)
{
    return n == 0 || (dest && source && index);
}

/* Element `index` of an object at `object`. An index that leads beyond the last address, as a
 * negative number does, must not come round to memory before the object: for those it is an address
 * at which nothing is symmetric, so that the element is refused as any other bad address. */
template <size_t size>
GSHMEM_KERNEL uintptr_t gshmem_kernel_ix_at(const void *object, size_t index)
{
    const uintptr_t from = (uintptr_t)object, most = (UINTPTR_MAX - from) / size;

    return index <= most ? from + index * size : UINTPTR_MAX / size * size;
}

/* The value is part of the command, so that the source may be reused at once. */
template <size_t size>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ixput_one(const struct gshmem_device_ctx *c, void *dest,
                                                      const void *source, int pe)
{
    void *there = gshmem_kernel_reach(c, dest, size, pe);
    uint64_t bits[2] = {0, 0};

    static_assert(size <= sizeof bits, "an element that fits a command");
    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_PUT, dest, source, size, pe);
    if (there) {
        gshmem_kernel_copy<GSHMEM_SCOPE_THREAD>(there, source, size);
        return GSHMEM_OK;
    }
    struct gshmem_command command = {};
    __builtin_memcpy(bits, source, size);
    command.kind = GSHMEM_COMMAND_VALUE;
    command.type = size;
    command.address = (uint64_t)(uintptr_t)dest;
    command.local = bits[0];
    command.size = bits[1];
    return gshmem_kernel_issue(c, &command, NULL, size, pe, NULL);
}

/* pes: NULL, or the PE of each element in place of `pe`. */
template <int scope, size_t size>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ixput(gshmem_ctx_t ctx, void *dest, const void *source,
                                                  const size_t *index, const int *pes, int pe,
                                                  size_t n)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_ix_good(dest, source, index, n))
        return GSHMEM_ERR_ARGUMENT;
    gshmem_kernel_sync<scope>();
    for (size_t i = gshmem_kernel_rank<scope>(); i < n && !status; i += gshmem_kernel_size<scope>())
        status = gshmem_kernel_ixput_one<size>(c, (void *)gshmem_kernel_ix_at<size>(dest, index[i]),
                                               (const char *)source + i * size, pes ? pes[i] : pe);
    return gshmem_kernel_agree<scope>(status);
}

template <int scope, size_t size, bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ixget(gshmem_ctx_t ctx, void *dest, const void *source,
                                                  const size_t *index, const int *pes, int pe,
                                                  size_t n)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    gshmem_status_t status = GSHMEM_OK;
    bool asked = false;

    if (!gshmem_kernel_ix_good(dest, source, index, n))
        return GSHMEM_ERR_ARGUMENT;
    gshmem_kernel_sync<scope>();
    for (size_t i = gshmem_kernel_rank<scope>(); i < n && !status;
         i += gshmem_kernel_size<scope>()) {
        const char *from = (const char *)gshmem_kernel_ix_at<size>(source, index[i]);
        const int of = pes ? pes[i] : pe;
        char *to = (char *)dest + i * size;
        const void *there = gshmem_kernel_reach(c, from, size, of);
        GSHMEM_FOLLOW_EITHER(GSHMEM_SCOPE_THREAD, nbi, c, GET, from, to, size, of);
        if (there)
            gshmem_kernel_copy<GSHMEM_SCOPE_THREAD>(to, there, size);
        else
            status = gshmem_kernel_post_get<true>(c, to, from, size, of);
        asked |= !there;
    }
    if (!nbi && !status && asked)
        status = gshmem_kernel_quiet(ctx);
    return gshmem_kernel_agree<scope>(status);
}

template <int scope, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ix_add(gshmem_ctx_t ctx, T *dest, const T *source,
                                                   const size_t *index, const int *pes, int pe,
                                                   size_t n)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_ix_good(dest, source, index, n))
        return GSHMEM_ERR_ARGUMENT;
    gshmem_kernel_sync<scope>();
    for (size_t i = gshmem_kernel_rank<scope>(); i < n && !status; i += gshmem_kernel_size<scope>())
        status = gshmem_kernel_atomic<GSHMEM_AMO_ADD>(
            ctx, (T *)gshmem_kernel_ix_at<sizeof(T)>(dest, index[i]), source[i],
            pes ? pes[i] : pe);
    return gshmem_kernel_agree<scope>(status);
}

#endif

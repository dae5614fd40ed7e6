/* Put and get: memory-sized operations, and single elements.
 *
 * The typed names (gshmem_long_put, gshmem_double_g, …) in gshmem/typed.h are thin wrappers of
 * these. dest of a put and source of a get are symmetric addresses, as the calling PE names them;
 * the other argument is any memory of the caller. Where the peer is mapped, put and get of less
 * than 1 KiB are inline; larger and strided ones, and signals, call one function of the library. */
#ifndef GSHMEM_RMA_H
#define GSHMEM_RMA_H

#include <string.h>

#include "gshmem/context.h"
#include "gshmem/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The paths out of line, for what is not mapped or not valid. Not for programs to call. */
GSHMEM_API gshmem_status_t gshmem_path_put(gshmem_ctx_t ctx, void *dest, const void *source,
                                           size_t bytes, int pe, int nbi);
GSHMEM_API gshmem_status_t gshmem_path_get(gshmem_ctx_t ctx, void *dest, const void *source,
                                           size_t bytes, int pe, int nbi);

/* From this call to the end of the job, an operation of this PE on itself accepts any of its memory
 * as dest and source, symmetric or not, as NVSHMEM's operations do. For nvshmem.h. */
GSHMEM_API gshmem_status_t gshmem_path_own_memory(void);

/* Makes n contexts that kernels name by numbers, NVSHMEM's queue pairs. *pairs becomes an array of
 * the numbers, which the program may free after the job. Local; on failure there is no new queue
 * pair. For nvshmemx.h. */
GSHMEM_API gshmem_status_t gshmem_path_queue_pairs(int n, int **pairs);
GSHMEM_API gshmem_status_t gshmem_path_region_start(uint32_t hints, uint64_t *handle);
GSHMEM_API gshmem_status_t gshmem_path_region_stop(uint64_t handle);
GSHMEM_API gshmem_status_t gshmem_path_region_is_active(uint32_t hints, int *active);
#define GSHMEM_QUEUE_PAIRS_FROM 2 /* the first number; NVSHMEM gives smaller ones a meaning */

/* A get of one object that returns no status: after a failure the error policy is called and the
 * value is 0. */
GSHMEM_API void gshmem_path_g(gshmem_ctx_t ctx, void *value, const void *source, size_t bytes,
                              int pe);

/* The bytes of n elements. Where the product would overflow, a number that is larger than any
 * object. */
GSHMEM_DEVICE size_t gshmem_bytes(size_t n, size_t element)
{
    return GSHMEM_UNLIKELY(n > SIZE_MAX / element) ? SIZE_MAX : n * element;
}

/* Copies 1 KiB or more by the method that suits the size. The objects are mapped here and are the
 * same or do not overlap. */
GSHMEM_API void gshmem_path_copy(void *to, const void *from, size_t bytes);

/* Copies all but the last eight bytes, and then the last eight in one access; `bytes` is larger
 * than 8. The first asm hides the number of bytes from gcc, which would otherwise use a string move
 * for so few bytes (docs/decisions/0008). */
static inline void gshmem_copy_end_last(char *to, const char *from, size_t bytes)
{
    size_t most = bytes - 8;

    __asm__("" : "+r"(most));
    memcpy(to, from, most);
    __asm__ volatile("" : : : "memory");
    memcpy(to + most, from + most, 8);
}

/* Copies an aligned object of 8, 4 or 2 bytes in one access; therefore no PE sees a flag
 * half-written. Writes the last word of a larger object last. Older programs poll on the last word
 * of a put's data and clear it when they have seen it. libc's memcpy would break them: it may write
 * that word before the rest, and write it twice. The code that compilers make for a constant size
 * does neither. */
static inline void gshmem_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 8)
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else if (GSHMEM_UNLIKELY(bytes >= 1024))
        gshmem_path_copy(to, from, bytes);
    else if (bytes == 2)
        memcpy(to, from, 2);
    else if (bytes < 8 || __builtin_constant_p(bytes))
        memcpy(to, from, bytes);
    else
        gshmem_copy_end_last((char *)to, (const char *)from, bytes);
}

GSHMEM_KERNELS_TOO_BEGIN

/* Copies bytes from source to dest on pe. Returns when source may be reused; the data is complete
 * at pe after a later gshmem_quiet or barrier. If bytes is 0, dest and source may be anything. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_ctx_putmem(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe)
{
    void *there = gshmem_ctx_reach(ctx, dest, bytes, pe);

    if (GSHMEM_UNLIKELY(!there || !source))
        return gshmem_path_put(ctx, dest, source, bytes, pe, 0);
    gshmem_copy(there, source, bytes);
    return GSHMEM_OK;
}

/* Copies bytes from source on pe to dest; the data is there on return. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_ctx_getmem(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe)
{
    const void *there = gshmem_ctx_reach(ctx, source, bytes, pe);

    if (GSHMEM_UNLIKELY(!there || !dest))
        return gshmem_path_get(ctx, dest, source, bytes, pe, 0);
    gshmem_copy(dest, there, bytes);
    return GSHMEM_OK;
}

/* Like putmem, but source may be reused only after gshmem_quiet. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_ctx_putmem_nbi(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe)
{
    void *there = gshmem_ctx_reach(ctx, dest, bytes, pe);

    if (GSHMEM_UNLIKELY(!there || !source))
        return gshmem_path_put(ctx, dest, source, bytes, pe, 1);
    gshmem_copy(there, source, bytes);
    return GSHMEM_OK;
}

/* Like getmem, but the data is in dest only after gshmem_quiet. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_ctx_getmem_nbi(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe)
{
    const void *there = gshmem_ctx_reach(ctx, source, bytes, pe);

    if (GSHMEM_UNLIKELY(!there || !dest))
        return gshmem_path_get(ctx, dest, source, bytes, pe, 1);
    gshmem_copy(dest, there, bytes);
    return GSHMEM_OK;
}

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_putmem(void *dest, const void *source,
                                                             size_t bytes, int pe)
{
    return gshmem_ctx_putmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_getmem(void *dest, const void *source,
                                                             size_t bytes, int pe)
{
    return gshmem_ctx_getmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_putmem_nbi(void *dest, const void *source,
                                                                 size_t bytes, int pe)
{
    return gshmem_ctx_putmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_getmem_nbi(void *dest, const void *source,
                                                                 size_t bytes, int pe)
{
    return gshmem_ctx_getmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

/* Strided copies of n elements of `element` bytes: element i goes from source + i*sst to
 * dest + i*dst, both counted in elements (at least 1). */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_iputmem(gshmem_ctx_t ctx, void *dest,
                                                               const void *source, ptrdiff_t dst,
                                                               ptrdiff_t sst, size_t element,
                                                               size_t n, int pe);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_igetmem(gshmem_ctx_t ctx, void *dest,
                                                               const void *source, ptrdiff_t dst,
                                                               ptrdiff_t sst, size_t element,
                                                               size_t n, int pe);

/* Block-strided copies: n blocks of `block` elements; block i starts at source + i*sst and goes to
 * dest + i*dst. Strides are counted in elements, and are at least as large as a block. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_ibputmem(gshmem_ctx_t ctx, void *dest,
                                                                const void *source, ptrdiff_t dst,
                                                                ptrdiff_t sst, size_t block,
                                                                size_t element, size_t n, int pe);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_ibgetmem(gshmem_ctx_t ctx, void *dest,
                                                                const void *source, ptrdiff_t dst,
                                                                ptrdiff_t sst, size_t block,
                                                                size_t element, size_t n, int pe);

/* Put with signal: copies bytes to dest on pe, then updates the 64-bit signal at sig_addr on pe by
 * signal_op (GSHMEM_SIGNAL_SET or _ADD). A PE that sees the new signal sees the data. After the nbi
 * form, source may be reused only after gshmem_quiet. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_ctx_putmem_signal(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                         uint64_t *sig_addr, uint64_t signal, int signal_op, int pe);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_ctx_putmem_signal_nbi(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                             uint64_t *sig_addr, uint64_t signal, int signal_op, int pe);

GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_putmem_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                     uint64_t signal, int signal_op, int pe)
{
    return gshmem_ctx_putmem_signal(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr, signal,
                                    signal_op, pe);
}

GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_putmem_signal_nbi(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                         uint64_t signal, int signal_op, int pe)
{
    return gshmem_ctx_putmem_signal_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr, signal,
                                        signal_op, pe);
}

/* Signals without data: update a signal on a PE (add, set), and read one of this PE's own. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_signal_add(gshmem_ctx_t ctx,
                                                                  uint64_t *sig_addr,
                                                                  uint64_t signal, int pe);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_signal_set(gshmem_ctx_t ctx,
                                                                  uint64_t *sig_addr,
                                                                  uint64_t signal, int pe);

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_signal_add(uint64_t *sig_addr,
                                                                 uint64_t signal, int pe)
{
    return gshmem_ctx_signal_add(GSHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}

GSHMEM_NODISCARD static inline gshmem_status_t gshmem_signal_set(uint64_t *sig_addr,
                                                                 uint64_t signal, int pe)
{
    return gshmem_ctx_signal_set(GSHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}

/* Either of the two: signal_op is GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_signal_op(uint64_t *sig_addr, uint64_t signal,
                                                             int signal_op, int pe);

/* Not for programs to call: reads a signal that may be in memory which the CPU cannot load from. */
GSHMEM_API uint64_t gshmem_path_signal_fetch(const uint64_t *sig_addr);

static inline uint64_t gshmem_signal_fetch(const uint64_t *sig_addr)
{
    const struct gshmem_ctx *c = gshmem_ctx_default;

    if (GSHMEM_LIKELY((uintptr_t)sig_addr - c->heap.base < c->heap.bytes ||
                      (uintptr_t)sig_addr - c->data.base < c->data.bytes))
        return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    return gshmem_path_signal_fetch(sig_addr);
}

GSHMEM_KERNELS_TOO_END

#ifdef __cplusplus
}
#endif
#endif

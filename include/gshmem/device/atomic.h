/* Atomics in kernels. If the object is mapped, an atomic is CUDA's own, at system scope; otherwise
 * it is a command, which the target's proxy carries out. Atomics do not order other accesses, and
 * one thread performs each.
 *
 * gshmem_kernel_… are the kernels' functions, gshmem_either_… those that the names of typed.h
 * call. */
#ifndef GSHMEM_DEVICE_ATOMIC_H
#define GSHMEM_DEVICE_ATOMIC_H

#include "gshmem/atomic.h"
#include "gshmem/device/rma.h"
#include "gshmem/device/type.h"

/* The integers that CUDA's atomics work on. */
template <size_t bytes> struct gshmem_word;
template <> struct gshmem_word<4> {
    typedef unsigned type;
};
template <> struct gshmem_word<8> {
    typedef unsigned long long type;
};

/* An object's bits, in the form in which commands and the paths out of line have them; and an
 * object from such bits. */
template <class T> GSHMEM_DEVICE uint64_t gshmem_bits_of(T value)
{
    typename gshmem_word<sizeof(T)>::type bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class T> GSHMEM_DEVICE T gshmem_of_bits(uint64_t bits)
{
    typename gshmem_word<sizeof(T)>::type word = (typename gshmem_word<sizeof(T)>::type)bits;
    T value;

    memcpy(&value, &word, sizeof value);
    return value;
}

/* ---- Mapped --------------------------------------------------------------------------------- */

template <class T> GSHMEM_KERNEL T gshmem_kernel_add(T *there, T value)
{
    typedef typename gshmem_word<sizeof(T)>::type word;

    return (T)atomicAdd_system((word *)there, (word)value);
}

GSHMEM_KERNEL float gshmem_kernel_add(float *there, float value)
{
    return atomicAdd_system(there, value);
}

GSHMEM_KERNEL double gshmem_kernel_add(double *there, double value)
{
    return atomicAdd_system(there, value);
}

/* Returns the old value; an undefined value for GSHMEM_AMO_SET, which reads none. */
template <enum gshmem_amo amo, class T>
GSHMEM_KERNEL T gshmem_kernel_update(T *there, T operand, T compare)
{
    typename gshmem_word<sizeof(T)>::type *at = (typename gshmem_word<sizeof(T)>::type *)there;
    typename gshmem_word<sizeof(T)>::type bits = gshmem_bits_of(operand);

    static_assert((unsigned)amo < (unsigned)GSHMEM_AMO_COUNT,
                  "the table in gshmem/atomic.h has the update");
    switch (amo) {
    case GSHMEM_AMO_FETCH:
        gshmem_kernel_may_wait();
        return gshmem_kernel_load(there);
    case GSHMEM_AMO_SET:
        gshmem_kernel_store(there, operand);
        return operand;
    case GSHMEM_AMO_SWAP:
        return gshmem_of_bits<T>(atomicExch_system(at, bits));
    case GSHMEM_AMO_COMPARE_SWAP:
        return gshmem_of_bits<T>(atomicCAS_system(
            at, (typename gshmem_word<sizeof(T)>::type)gshmem_bits_of(compare), bits));
    case GSHMEM_AMO_AND:
        return gshmem_of_bits<T>(atomicAnd_system(at, bits));
    case GSHMEM_AMO_OR:
        return gshmem_of_bits<T>(atomicOr_system(at, bits));
    case GSHMEM_AMO_XOR:
        return gshmem_of_bits<T>(atomicXor_system(at, bits));
    case GSHMEM_AMO_ADD:
        return gshmem_kernel_add(there, operand);
    }
    __trap();
    return operand;
}

/* NULL also for an object that is not aligned to its size. */
template <class T>
GSHMEM_KERNEL T *gshmem_kernel_reach_atomic(const struct gshmem_device_ctx *c, const T *target,
                                            int pe)
{
    if ((uintptr_t)target % sizeof *target)
        return NULL;
    return (T *)gshmem_kernel_reach(c, target, sizeof *target, pe);
}

/* ---- Through the proxy ---------------------------------------------------------------------- */

GSHMEM_KERNEL struct gshmem_command gshmem_kernel_atomic_command(enum gshmem_amo amo,
                                                                 enum gshmem_type type,
                                                                 const void *target,
                                                                 uint64_t operand,
                                                                 uint64_t compare)
{
    struct gshmem_command command = {};

    static_assert((int)GSHMEM_TYPE_COUNT <= 32 && (int)GSHMEM_AMO_COUNT <= 16,
                  "a command has 5 bits for the type, and 4 for the update");
    command.kind = GSHMEM_COMMAND_ATOMIC;
    command.amo = (uint32_t)amo;
    command.type = (uint32_t)type;
    command.address = (uint64_t)(uintptr_t)target;
    command.local = operand;
    command.size = compare;
    return command;
}

/* An atomic whose completion a quiet reports; misalignment is reported at once. `fetch`: where the
 * old value goes, or NULL. */
GSHMEM_KERNEL_RARE gshmem_status_t
gshmem_kernel_post_atomic(const struct gshmem_device_ctx *c, struct gshmem_command command,
                          size_t bytes, void *fetch, int pe)
{
    struct gshmem_command result = {};

    result.kind = GSHMEM_COMMAND_RESULT;
    result.type = command.type;
    result.local = (uint64_t)(uintptr_t)fetch;
    command.more = fetch != NULL;
    if (command.address % bytes == 0 || !gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_issue(c, &command, fetch ? &result : NULL, bytes, pe, NULL);
    command.pe = (uint32_t)c->world[pe];
    return gshmem_kernel_ask(c, &command, fetch ? &result : NULL, NULL);
}

/* The same for an atomic whose old value goes to memory. */
GSHMEM_KERNEL_RARE gshmem_status_t
gshmem_kernel_post_atomic_fetch(const struct gshmem_device_ctx *c, struct gshmem_command command,
                                size_t bytes, void *fetch, int pe)
{
    if (!fetch && gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_refuse_null(c, command, bytes);
    return gshmem_kernel_post_atomic(c, command, bytes, fetch, pe);
}

/* The old value's bits; 0 after a failure, which is handed to the error policy. */
GSHMEM_KERNEL_RARE uint64_t gshmem_kernel_ask_atomic(const struct gshmem_device_ctx *c,
                                                     struct gshmem_command command, int pe)
{
    uint64_t old[2] = {0, 0};

    if (!gshmem_kernel_has_pe(c, pe)) {
        gshmem_kernel_refuse(c, command, pe, true);
        return 0;
    }
    command.pe = (uint32_t)c->world[pe];
    command.raises = 1;
    return gshmem_kernel_ask(c, &command, NULL, old) ? 0 : old[0];
}

/* ---- On the host and in kernels -------------------------------------------------------------- */

template <enum gshmem_amo amo, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_atomic(gshmem_ctx_t ctx, T *dest, T operand, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    T *there = gshmem_kernel_reach_atomic(c, dest, pe);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_ATOMIC, dest, NULL, sizeof *dest, pe);
    if (!there)
        return gshmem_kernel_post_atomic(
            c,
            gshmem_kernel_atomic_command(amo, gshmem_type_of<T>(), dest, gshmem_bits_of(operand),
                                         0),
            sizeof *dest, NULL, pe);
    gshmem_kernel_update<amo>(there, operand, (T)0);
    return GSHMEM_OK;
}

template <enum gshmem_amo amo, class T>
GSHMEM_KERNEL T gshmem_kernel_atomic_fetch(gshmem_ctx_t ctx, const T *target, T operand, T compare,
                                           int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    T *there = gshmem_kernel_reach_atomic(c, target, pe);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c,
                  amo == GSHMEM_AMO_FETCH ? GSHMEM_FOLLOWED_FETCH : GSHMEM_FOLLOWED_ATOMIC_FETCH,
                  target, NULL, sizeof *target, pe);
    if (there) {
        const T old = gshmem_kernel_update<amo>(there, operand, compare);
        GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_SEEN, target, NULL, sizeof *target,
                      pe);
        return old;
    }
    const T old = gshmem_of_bits<T>(gshmem_kernel_ask_atomic(
        c,
        gshmem_kernel_atomic_command(amo, gshmem_type_of<T>(), target, gshmem_bits_of(operand),
                                     gshmem_bits_of(compare)),
        pe));
    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_SEEN, target, NULL, sizeof *target, pe);
    return old;
}

template <enum gshmem_amo amo, class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_atomic_fetch_nbi(gshmem_ctx_t ctx, T *fetch,
                                                             const T *target, T operand, T compare,
                                                             int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    T *there = gshmem_kernel_reach_atomic(c, target, pe);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c,
                  amo == GSHMEM_AMO_FETCH ? GSHMEM_FOLLOWED_FETCH : GSHMEM_FOLLOWED_ATOMIC, target,
                  NULL, sizeof *target, pe);
    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_SEEN_LATER, target, NULL, sizeof *target,
                  pe);
    if (!there || !fetch)
        return gshmem_kernel_post_atomic_fetch(
            c,
            gshmem_kernel_atomic_command(amo, gshmem_type_of<T>(), target, gshmem_bits_of(operand),
                                         gshmem_bits_of(compare)),
            sizeof *target, fetch, pe);
    *fetch = gshmem_kernel_update<amo>(there, operand, compare);
    return GSHMEM_OK;
}

/* In CUDA sources, host code calls the functions out of line, which also handle mapped objects. */

template <enum gshmem_amo amo, class T>
GSHMEM_EITHER gshmem_status_t gshmem_either_atomic(gshmem_ctx_t ctx, T *dest, T operand, int pe)
{
    GSHMEM_RETURN(gshmem_kernel_atomic<amo>(ctx, dest, operand, pe),
                  gshmem_path_atomic(ctx, amo, gshmem_type_of<T>(), dest, gshmem_bits_of(operand),
                                     0, NULL, pe));
}

template <enum gshmem_amo amo, class T>
GSHMEM_EITHER T gshmem_either_atomic_fetch(gshmem_ctx_t ctx, const T *target, T operand, T compare,
                                           int pe)
{
    GSHMEM_RETURN(gshmem_kernel_atomic_fetch<amo>(ctx, target, operand, compare, pe),
                  gshmem_of_bits<T>(gshmem_path_atomic_value(
                      ctx, amo, gshmem_type_of<T>(), (void *)target, gshmem_bits_of(operand),
                      gshmem_bits_of(compare), pe)));
}

template <enum gshmem_amo amo, class T>
GSHMEM_EITHER gshmem_status_t gshmem_either_atomic_fetch_nbi(gshmem_ctx_t ctx, T *fetch,
                                                             const T *target, T operand, T compare,
                                                             int pe)
{
    GSHMEM_RETURN(gshmem_kernel_atomic_fetch_nbi<amo>(ctx, fetch, target, operand, compare, pe),
                  gshmem_path_atomic_fetch(ctx, amo, gshmem_type_of<T>(), (void *)target,
                                           gshmem_bits_of(operand), gshmem_bits_of(compare), fetch,
                                           pe));
}

#endif

/* Atomic updates of one 4- or 8-byte object on any PE.
 *
 * The typed names (gshmem_long_atomic_fetch_add, …) in gshmem/typed.h are thin wrappers. A mapped
 * peer's object is updated in place by the CPU's own atomics. Any other update goes out of line, to
 * the one agent that makes all updates of the object. Atomics do not order other accesses: they are
 * relaxed, as in the standard. */
#ifndef GSHMEM_ATOMIC_H
#define GSHMEM_ATOMIC_H

#include <string.h>

#include "gshmem/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GSHMEM_AMO_FETCH … The updates of the library and of kernels, and the texts of messages, are made
 * from these rows; a new row comes last. fetching: the update that does the same and returns the
 * old value. new bits: the object's new bits as an expression of its old ones, the operand and, for
 * COMPARE_SWAP, the value to compare with. Objects of a real type are added as real numbers.
 *
 *    name          no.  in messages            fetching      new bits */
#define GSHMEM_AMO_TABLE(X)                                                                        \
    X(FETCH,        0, "atomic_fetch",        FETCH,        old)                                   \
    X(SET,          1, "atomic_set",          SWAP,         operand)                               \
    X(SWAP,         2, "atomic_swap",         SWAP,         operand)                               \
    X(COMPARE_SWAP, 3, "atomic_compare_swap", COMPARE_SWAP, old == compare ? operand : old)        \
    X(ADD,          4, "atomic_add",          ADD,          old + operand)                         \
    X(AND,          5, "atomic_and",          AND,          old & operand)                         \
    X(OR,           6, "atomic_or",           OR,           old | operand)                         \
    X(XOR,          7, "atomic_xor",          XOR,          old ^ operand)

enum gshmem_amo {
#define X(name, number, ...) GSHMEM_AMO_##name = number,
    GSHMEM_AMO_TABLE(X)
#undef X
};

/* The number of rows. It is not a constant of enum gshmem_amo, so that a switch over the enum has
 * one case for each update and no other. */
#define X(...) +1
enum { GSHMEM_AMO_COUNT = 0 GSHMEM_AMO_TABLE(X) };
#undef X

/* The path out of line, for what is not mapped or not valid: applies op with operand (and compare)
 * to the object of `type` at target on pe, and stores its old value in *old if old is not NULL.
 * Operands and old value are the object's bits in the low bytes. Not for programs to call. */
GSHMEM_API gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                              void *target, uint64_t operand, uint64_t compare,
                                              uint64_t *old, int pe);

/* The same, with the old value stored in the object of `type` at fetch. */
GSHMEM_API gshmem_status_t gshmem_path_atomic_fetch(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                                    void *target, uint64_t operand,
                                                    uint64_t compare, void *fetch, int pe);
/* The same, with the old value returned, or 0 after a failure was handed to the error policy. */
GSHMEM_API uint64_t gshmem_path_atomic_value(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                             void *target, uint64_t operand, uint64_t compare,
                                             int pe);

/* Like gshmem_ctx_reach; NULL also if mine is not aligned to the size, a power of two. */
static inline void *gshmem_ctx_reach_atomic(gshmem_ctx_t ctx, const void *mine, size_t bytes,
                                            int pe)
{
    if (GSHMEM_UNLIKELY((uintptr_t)mine & (bytes - 1)))
        return NULL;
    return gshmem_ctx_reach(ctx, mine, bytes, pe);
}

/* CPUs cannot add floats in memory atomically. This function repeats a compare-and-swap until it
 * succeeds. Returns the old value. */
static inline float gshmem_add_float(float *there, float value)
{
    float old, sum;

    __atomic_load(there, &old, __ATOMIC_RELAXED);
    do
        sum = old + value;
    while (!__atomic_compare_exchange(there, &old, &sum, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

static inline double gshmem_add_double(double *there, double value)
{
    double old, sum;

    __atomic_load(there, &old, __ATOMIC_RELAXED);
    do
        sum = old + value;
    while (!__atomic_compare_exchange(there, &old, &sum, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

/* Real numbers as bits, which the paths out of line take. */
static inline uint64_t gshmem_bits_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t gshmem_bits_double(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float gshmem_float_of_bits(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof value);
    return value;
}

static inline double gshmem_double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef __cplusplus
}
#endif
#endif

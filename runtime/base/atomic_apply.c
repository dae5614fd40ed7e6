/* Atomics on memory of this process, with operation and type known at run time. */
#include <stdbool.h>
#include <string.h>

#include "runtime/base/atomic_type.h"

/* The bits of a sum; floating-point numbers are added as such. */
static uint64_t atomic_sum(int type, uint64_t old, uint64_t operand)
{
#define SUM_real(name, type)                                                                       \
    case GSHMEM_TYPE_##name:                                                                       \
        return gshmem_bits_##type(gshmem_##type##_of_bits(old) + gshmem_##type##_of_bits(operand));
#define SUM_sint(name, type)
#define SUM_uint(name, type)
#define IF_yes(sum) sum
#define IF_no(sum)
#define X(name, number, text, type, in_kernels, class, atomics, ...) IF_##atomics(SUM_##class(name, type))
    switch (type) {
        GSHMEM_TYPE_TABLE(X)
    }
#undef X
    return old + operand;
}

/* The object's new bits. */
static uint64_t atomic_apply_one(enum gshmem_amo op, int type, uint64_t old, uint64_t operand,
                                 uint64_t compare)
{
    if (op == GSHMEM_AMO_ADD)
        return atomic_sum(type, old, operand);
    switch (op) {
#define X(name, number, text, fetching, bits)                                                      \
    case GSHMEM_AMO_##name:                                                                        \
        return bits;
        GSHMEM_AMO_TABLE(X)
#undef X
    }
    return old;
}

/* One loop for all operations: this path is for rare addresses, not for speed. acq_rel: the thread
 * that applies it for another PE has stored that PE's earlier puts, which a thread that waits for
 * the atomic (a lock, a count) reads next. */
static uint64_t update32(enum gshmem_amo op, int type, uint32_t *at, uint64_t operand,
                         uint64_t compare)
{
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(
        at, &old, (uint32_t)atomic_apply_one(op, type, old, (uint32_t)operand, (uint32_t)compare),
        true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return old;
}

static uint64_t update64(enum gshmem_amo op, int type, uint64_t *at, uint64_t operand,
                         uint64_t compare)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, atomic_apply_one(op, type, old, operand, compare),
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return old;
}

uint64_t atomic_apply(enum gshmem_amo op, int type, void *at, uint64_t operand, uint64_t compare)
{
    switch (atomic_type_bytes(type)) {
    case 4:
        return update32(op, type, at, operand, compare);
    case 8:
        return update64(op, type, at, operand, compare);
    }
    return 0;
}

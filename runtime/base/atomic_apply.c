/* Atomics on memory of this process, with operation and type known at run time. */
#include <stdbool.h>
#include <string.h>

#include "runtime/base/atomic_type.h"

static uint32_t add_float(uint32_t bits, uint32_t operand)
{
    float a, b;

    memcpy(&a, &bits, sizeof a);
    memcpy(&b, &operand, sizeof b);
    a += b;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static uint64_t add_double(uint64_t bits, uint64_t operand)
{
    double a, b;

    memcpy(&a, &bits, sizeof a);
    memcpy(&b, &operand, sizeof b);
    a += b;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

/* The object's new bits. */
static uint64_t atomic_apply_one(enum gshmem_amo op, int type, uint64_t old, uint64_t operand,
                                 uint64_t compare)
{
    switch (op) {
    case GSHMEM_AMO_FETCH:
        return old;
    case GSHMEM_AMO_SET:
    case GSHMEM_AMO_SWAP:
        return operand;
    case GSHMEM_AMO_COMPARE_SWAP:
        return old == compare ? operand : old;
    case GSHMEM_AMO_ADD:
        if (type == GSHMEM_TYPE_FLOAT)
            return add_float((uint32_t)old, (uint32_t)operand);
        return type == GSHMEM_TYPE_DOUBLE ? add_double(old, operand) : old + operand;
    case GSHMEM_AMO_AND:
        return old & operand;
    case GSHMEM_AMO_OR:
        return old | operand;
    case GSHMEM_AMO_XOR:
        return old ^ operand;
    }
    return old;
}

/* One loop for all operations: this path is for rare addresses, not for speed. acq_rel: the thread
 * that does it for another PE has stored what that PE put before, and who waits for the atomic (a
 * lock, a count) reads that next. */
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
    return atomic_type_bytes(type) == 4 ? update32(op, type, at, operand, compare)
                                 : update64(op, type, at, operand, compare);
}

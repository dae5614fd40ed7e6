/* Values that are waited for, by their type's number. Every comparison becomes a range test:
 * does the value lie in a range of the circle of 64-bit numbers, or outside of it? So the loops
 * that poll have one subtraction and one comparison, whatever the operator is. */
#ifndef GSHMEM_RUNTIME_OPERATIONS_WAIT_VALUES_H
#define GSHMEM_RUNTIME_OPERATIONS_WAIT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem.h"

/* first, first + 1, … first + span, in two's complement, or all numbers but those. */
struct range {
    uint64_t first;
    uint64_t span;
    bool outside;
};

static inline bool range_has(const struct range *r, uint64_t value)
{
    return (value - r->first <= r->span) != r->outside;
}

/* The values that compare to `value` as cmp says. On the circle the greatest number comes right
 * before the least, for signed types as for unsigned ones. */
static inline struct range wait_until_range_of(bool is_signed, int cmp, uint64_t value)
{
    const uint64_t least = is_signed ? (uint64_t)INT64_MIN : 0, greatest = least - 1;

    switch (cmp) {
    case GSHMEM_CMP_LE:
    case GSHMEM_CMP_GT:
        return (struct range){least, value - least, cmp == GSHMEM_CMP_GT};
    case GSHMEM_CMP_GE:
    case GSHMEM_CMP_LT:
        return (struct range){value, greatest - value, cmp == GSHMEM_CMP_LT};
    default:
        return (struct range){value, 0, cmp == GSHMEM_CMP_NE};
    }
}

/* What is said here of the types that have waits in gshmem/type.h. */
#define IF_yes(...) __VA_ARGS__
#define IF_no(...)

/* A variable's value, widened as C does; the caller has checked that its type can be waited for.
 * acquire: pairs with the release of the one that updates it, at the end of a put with signal, or
 * in a fence or quiet before its store. */
static inline uint64_t wait_until_load(enum gshmem_type type, const void *at)
{
    switch ((int)type) {
#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    IF_##waits(case GSHMEM_TYPE_##name:                                                            \
               return (uint64_t)__atomic_load_n((const type *)at, __ATOMIC_ACQUIRE);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    __builtin_unreachable(); /* wait_until_check_comparison has refused all other types */
}

static inline bool type_is_signed(enum gshmem_type type)
{
#define SIGNED_sint true
#define SIGNED_uint false
#define X(name, number, text, c_type, in_kernels, class, atomics, waits)                           \
    IF_##waits(|| (type == GSHMEM_TYPE_##name && SIGNED_##class))
    return false GSHMEM_TYPE_TABLE(X);
#undef X
}

/* 0: it cannot be waited for. */
static inline size_t type_bytes(enum gshmem_type type)
{
    switch ((int)type) {
#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    IF_##waits(case GSHMEM_TYPE_##name: return sizeof(type);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return 0;
}
#undef IF_yes
#undef IF_no
#undef SIGNED_sint
#undef SIGNED_uint

/* Whether cmp is a comparison, and variables of the type can be waited for. */
gshmem_status_t wait_until_check_comparison(const char *call, enum gshmem_type type, int cmp);
gshmem_status_t wait_until_check_aligned(const char *call, enum gshmem_type type, const void *ivar);
/* The CPU polls variables in GPU memory by copies of them. */
bool wait_until_in_device(const void *at);

/* Waits for a value in the range, of one variable; *seen: what it is then. */
gshmem_status_t wait_until_wait_for(const char *call, enum gshmem_type type, const void *at,
                                    struct range r, uint64_t *seen);

#endif

/* Waits and tests of the program's own variables, which other PEs update.
 *
 * Integers are known by their type's number only. Every comparison becomes a range test: does the
 * value lie in a range of the circle of 64-bit numbers, or outside of it? So the loops that poll
 * have one subtraction and one comparison, whatever the operator is. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/operations/context.h"
#include "runtime/departures.h"
#include "runtime/device.h"
#include "runtime/memory/device_heap.h"
#include "runtime/ranges.h"
#include "runtime/network/wait.h"

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
static struct range wait_until_range_of(bool is_signed, int cmp, uint64_t value)
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

/* A variable's value, widened as C does; the caller has checked that waits work on its type.
 * acquire: pairs with the release of the PE that updates it, at the end of a put with signal, or in
 * a fence or quiet before its store. */
static inline uint64_t wait_until_load(enum gshmem_type type, const void *at)
{
    switch ((int)type) {
#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    IF_##waits(case GSHMEM_TYPE_##name:                                                            \
               return (uint64_t)__atomic_load_n((const type *)at, __ATOMIC_ACQUIRE);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    __builtin_unreachable(); /* check_comparison has refused all other types */
}

static bool type_is_signed(enum gshmem_type type)
{
#define SIGNED_sint true
#define SIGNED_uint false
#define X(name, number, text, c_type, in_kernels, class, atomics, waits)                           \
    IF_##waits(|| (type == GSHMEM_TYPE_##name && SIGNED_##class))
    return false GSHMEM_TYPE_TABLE(X);
#undef X
}

/* 0: it cannot be waited for. */
static size_t type_bytes(enum gshmem_type type)
{
    switch ((int)type) {
#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    IF_##waits(case GSHMEM_TYPE_##name: return sizeof(type);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return 0;
}

/* ---- One variable ---- */

static gshmem_status_t check_comparison(const char *call, enum gshmem_type type, int cmp)
{
    if (cmp < GSHMEM_CMP_EQ || cmp > GSHMEM_CMP_GE)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: cmp is %d, which is none of GSHMEM_CMP_EQ … _GE", call,
                    cmp);
    if (!type_bytes(type))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: variables of type %d cannot be waited for", call,
                    (int)type);
    return GSHMEM_OK;
}

static gshmem_status_t wait_until_check_aligned(const char *call, enum gshmem_type type,
                                                const void *ivar)
{
    if (ivar && (uintptr_t)ivar % type_bytes(type) == 0)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT, "%s: there is no variable aligned to its %zu bytes at %p", call,
                type_bytes(type), ivar);
}

/* The CPU polls variables in GPU memory by copies of them. */
static bool in_device(const void *at)
{
    return GSHMEM_UNLIKELY(job && job->device_heap) &&
           atomicity_is_device(map_atomicity(&job->map, at));
}

static gshmem_status_t load_from_device(enum gshmem_type type, const void *at, uint64_t *value)
{
    uint64_t copy = 0;
    gshmem_status_t status = device_heap_copy(job->device_heap, &copy, at, type_bytes(type));

    if (!status)
        *value = wait_until_load(type, &copy);
    return status;
}

gshmem_status_t wait_check(const char *call, enum gshmem_type type, const void *ivars, size_t n, int cmp,
                           size_t *bytes)
{
    gshmem_status_t status = check_comparison(call, type, cmp);

    *bytes = type_bytes(type);
    return status || n == 0 ? status : wait_until_check_aligned(call, type, ivars);
}

static gshmem_status_t wait_until_check_one(const char *call, enum gshmem_type type,
                                            const void *ivar, int cmp)
{
    gshmem_status_t status = check_comparison(call, type, cmp);

    return status ? status : wait_until_check_aligned(call, type, ivar);
}

static void print_value(char *text, size_t size, enum gshmem_type type, uint64_t value)
{
    if (type_is_signed(type))
        snprintf(text, size, "%lld", (long long)value);
    else
        snprintf(text, size, "%llu", (unsigned long long)value);
}

/* The comparison from which a range was made: the inverse of range_of. */
static gshmem_status_t fail_alone(const char *call, gshmem_status_t status, enum gshmem_type type, const void *at,
                                  const struct range *r, uint64_t seen)
{
    const uint64_t least = type_is_signed(type) ? (uint64_t)INT64_MIN : 0;
    const bool to_value = r->span && r->first == least;
    const char *const comparison[] = {!r->span ? "==" : to_value ? "<=" : ">=", !r->span ? "!=" : to_value ? ">" : "<"};
    char is[24], wanted[24], what[120];

    print_value(is, sizeof is, type, seen);
    print_value(wanted, sizeof wanted, type, to_value ? r->first + r->span : r->first);
    snprintf(what, sizeof what, "the variable at %p, which is %s and has to be %s %s", at, is, comparison[r->outside],
             wanted);
    return departures_fail_alone(call, status, what);
}

/* wait_for, of a variable that the CPU cannot load. A copy that fails ends the wait at once. */
static gshmem_status_t wait_for_copy(const char *call, enum gshmem_type type, const void *at,
                                     struct range r, uint64_t *seen)
{
    gshmem_status_t status = GSHMEM_OK, looked;
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    w.only = WAIT_FOR_UPDATE;
    for (;;) {
        if ((looked = load_from_device(type, at, seen)))
            return looked;
        if (range_has(&r, *seen))
            return device_settle();
        if (status)
            return fail_alone(call, status, type, at, &r, *seen);
        status = wait_step(&w);
    }
}

/* *seen becomes the value that ended the wait, or the last one before it failed. Polls once more
 * after a failure, because the update may have come with it. There is a pause between any two
 * polls, from the first on: without it the polls take the cache line from its writer again and
 * again (docs/decisions/0026). */
static gshmem_status_t wait_until_wait_for(const char *call, enum gshmem_type type, const void *at,
                                           struct range r, uint64_t *seen)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    if (in_device(at))
        return wait_for_copy(call, type, at, r, seen);
    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    w.only = WAIT_FOR_UPDATE;
    for (;;) {
        *seen = wait_until_load(type, at);
        if (range_has(&r, *seen))
            return device_settle();
        if (status)
            return fail_alone(call, status, type, at, &r, *seen);
        status = wait_step(&w);
    }
}

gshmem_status_t gshmem_path_wait_one(enum gshmem_type type, const void *ivar, int cmp,
                                     uint64_t value)
{
    const char *call = "wait_until";
    gshmem_status_t status = job_require(call);
    uint64_t seen;
    RANGE(call);

    if (!status)
        status = wait_until_check_one(call, type, ivar, cmp);
    if (!status)
        status = wait_until_wait_for(call, type, ivar,
                                     wait_until_range_of(type_is_signed(type), cmp, value), &seen);
    return status;
}

int gshmem_path_test_one(enum gshmem_type type, const void *ivar, int cmp, uint64_t value)
{
    gshmem_status_t status = wait_until_check_one("test", type, ivar, cmp);
    uint64_t seen = 0;

    if (!status && in_device(ivar))
        status = load_from_device(type, ivar, &seen);
    else if (!status)
        seen = wait_until_load(type, ivar);
    if (status) {
        gshmem_raise(status);
        return 0;
    }
    struct range r = wait_until_range_of(type_is_signed(type), cmp, value);
    if (!range_has(&r, seen))
        return 0;
    gshmem_raise(device_settle());
    return 1;
}

uint64_t gshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value)
{
    const char *call = "signal_wait_until";
    gshmem_status_t status = job_require(call);
    uint64_t seen = 0;
    RANGE(call);

    if (!status)
        status = wait_until_check_one(call, GSHMEM_TYPE_UINT64, sig_addr, cmp);
    if (!status)
        status = wait_until_wait_for(call, GSHMEM_TYPE_UINT64, sig_addr,
                                     wait_until_range_of(false, cmp, value), &seen);
    if (status)
        gshmem_raise(status);
    return seen;
}

uint64_t gshmem_path_signal_fetch(const uint64_t *sig_addr)
{
    gshmem_status_t status;
    uint64_t seen = 0;

    if (!in_device(sig_addr)) /* acquire: as gshmem_signal_fetch has it */
        return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    if ((status = load_from_device(GSHMEM_TYPE_UINT64, sig_addr, &seen)))
        gshmem_raise(status);
    return seen;
}

/* ---- Arrays ---- */

/* The elements of a wait, and the condition. */
struct set {
    enum gshmem_type type;
    size_t bytes; /* of an element */
    const char *ivars; /* where they are polled */
    char *copies;      /* a copy that the CPU can load, where it cannot load the elements; otherwise
                          NULL */
    const char *there; /* where the elements are */
    size_t n;
    const int *status; /* [n]: elements with a value other than 0 are left out; or NULL */
    int cmp;
    const char *values; /* [n], or NULL where `range` is that of every element */
    struct range range;
};

static gshmem_status_t set_check(const char *call, enum gshmem_type type, const void *ivars, size_t n,
                                 int cmp, const void *values, int vector)
{
    gshmem_status_t answer = check_comparison(call, type, cmp);

    if (!answer && n)
        answer = wait_until_check_aligned(call, type, ivars);
    if (!answer && !values && (n || !vector))
        answer = fail(GSHMEM_ERR_ARGUMENT, "%s: cmp_values is NULL", call);
    return answer;
}

/* Copies elements that the CPU cannot load to where it polls them. */
static gshmem_status_t set_look(const struct set *s)
{
    if (GSHMEM_LIKELY(!s->copies))
        return GSHMEM_OK;
    return device_heap_copy(job->device_heap, s->copies, s->there, s->n * s->bytes);
}

/* Prepares a set, and its copy for the first poll; set_end when done. */
static gshmem_status_t set_describe(struct set *s, const char *call, enum gshmem_type type,
                                    const void *ivars, size_t n, const int *status, int cmp,
                                    const void *values, int vector)
{
    gshmem_status_t answer = set_check(call, type, ivars, n, cmp, values, vector);

    *s = (struct set){.n = 0};
    if (answer)
        return answer;
    *s = (struct set){type, type_bytes(type), ivars, NULL, ivars, n, status, cmp,
                      vector ? values : NULL, {0, 0, false}};
    if (!vector)
        s->range = wait_until_range_of(type_is_signed(type), cmp, wait_until_load(type, values));
    if (n == 0 || !in_device(ivars))
        return GSHMEM_OK;
    if (!(s->copies = calloc(n, s->bytes)))
        return fail(GSHMEM_ERR_MEMORY, "%s: no memory for copies of %zu variables", call, n);
    s->ivars = s->copies;
    return set_look(s);
}

/* The result of a call that has ended; `ended`: whether the elements fulfilled the condition. */
static gshmem_status_t set_end(struct set *s, gshmem_status_t answer, bool ended)
{
    free(s->copies);
    return answer || !ended ? answer : device_settle();
}

static bool set_leaves_out(const struct set *s, size_t i)
{
    return s->status && s->status[i];
}

static struct range set_range(const struct set *s, size_t i)
{
    if (!s->values)
        return s->range;
    return wait_until_range_of(type_is_signed(s->type), s->cmp,
                               wait_until_load(s->type, s->values + i * s->bytes));
}

static bool set_satisfied(const struct set *s, size_t i)
{
    struct range r = set_range(s, i);

    return range_has(&r, wait_until_load(s->type, s->ivars + i * s->bytes));
}

static bool set_is_empty(const struct set *s)
{
    size_t i = 0;

    while (i < s->n && set_leaves_out(s, i))
        i++;
    return i == s->n;
}

/* Where a search for any element begins: random, since no fixed order is fair to all callers. */
static size_t set_start(const struct set *s)
{
    static _Thread_local uint64_t lot = 1;

    lot = lot * 6364136223846793005u + 1442695040888963407u;
    return s->n ? (size_t)(lot >> 32) % s->n : 0;
}

static size_t set_find_any(const struct set *s, size_t start)
{
    for (size_t k = 0; k < s->n; k++) {
        size_t i = start < s->n - k ? start + k : start - (s->n - k);
        if (!set_leaves_out(s, i) && set_satisfied(s, i))
            return i;
    }
    return SIZE_MAX;
}

static gshmem_status_t check_indices(const char *call, const size_t *indices, size_t n)
{
    return indices || n == 0 ? GSHMEM_OK : fail(GSHMEM_ERR_ARGUMENT, "%s: indices is NULL", call);
}

static size_t set_find_some(const struct set *s, size_t *indices)
{
    size_t found = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (!set_leaves_out(s, i) && set_satisfied(s, i))
            indices[found++] = i;
    }
    return found;
}

gshmem_status_t gshmem_path_wait_all(enum gshmem_type type, const void *ivars, size_t nelems,
                                     const int *status, int cmp, const void *values, int vector)
{
    const char *call = vector ? "wait_until_all_vector" : "wait_until_all";
    gshmem_status_t answer = job_require(call);
    struct set s = {.n = 0};
    uint64_t seen;
    RANGE(call);

    if (!answer)
        answer = set_describe(&s, call, type, ivars, nelems, status, cmp, values, vector);
    for (size_t i = 0; !answer && i < nelems; i++) {
        if (!set_leaves_out(&s, i))
            answer =
                wait_until_wait_for(call, type, s.there + i * s.bytes, set_range(&s, i), &seen);
    }
    return set_end(&s, answer, false);
}

int gshmem_path_test_all(enum gshmem_type type, const void *ivars, size_t nelems, const int *status,
                         int cmp, const void *values, int vector)
{
    struct set s;
    gshmem_status_t answer = set_describe(&s, vector ? "test_all_vector" : "test_all", type, ivars,
                                          nelems, status, cmp, values, vector);
    size_t i = 0;

    while (!answer && i < nelems && (set_leaves_out(&s, i) || set_satisfied(&s, i)))
        i++;
    const bool all = !answer && i == nelems;
    gshmem_raise(set_end(&s, answer, all));
    return all;
}

size_t gshmem_path_test_any(enum gshmem_type type, const void *ivars, size_t nelems,
                            const int *status, int cmp, const void *values, int vector)
{
    struct set s;
    gshmem_status_t answer = set_describe(&s, vector ? "test_any_vector" : "test_any", type, ivars,
                                          nelems, status, cmp, values, vector);
    size_t found = answer ? SIZE_MAX : set_find_any(&s, set_start(&s));

    gshmem_raise(set_end(&s, answer, found != SIZE_MAX));
    return found;
}

size_t gshmem_path_test_some(enum gshmem_type type, const void *ivars, size_t nelems,
                             size_t *indices, const int *status, int cmp, const void *values,
                             int vector)
{
    struct set s;
    gshmem_status_t answer = set_describe(&s, vector ? "test_some_vector" : "test_some", type,
                                          ivars, nelems, status, cmp, values, vector);

    if (!answer)
        answer = check_indices("test_some", indices, nelems);
    size_t found = answer ? 0 : set_find_some(&s, indices);
    gshmem_raise(set_end(&s, answer, found != 0));
    return found;
}

/* Between two polls. There is one more poll after a failure, because the update may have come with
 * it. */
static gshmem_status_t set_wait(const struct set *s, struct wait *w)
{
    gshmem_status_t answer = wait_step(w), look = set_look(s);

    return answer ? answer : look;
}

static gshmem_status_t set_fail_alone(const struct set *s, const char *call, gshmem_status_t status)
{
    char what[120];

    snprintf(what, sizeof what, "the %zu variables at %p, none of which has a value that is waited for", s->n,
             (const void *)s->there);
    return departures_fail_alone(call, status, what);
}

size_t gshmem_path_wait_any(enum gshmem_type type, const void *ivars, size_t nelems,
                            const int *status, int cmp, const void *values, int vector)
{
    const char *call = vector ? "wait_until_any_vector" : "wait_until_any";
    gshmem_status_t answer = job_require(call);
    struct set s = {.n = 0};
    size_t found = SIZE_MAX;
    struct wait w;
    RANGE(call);

    if (!answer)
        answer = set_describe(&s, call, type, ivars, nelems, status, cmp, values, vector);
    const bool refused = answer != GSHMEM_OK, empty = !refused && set_is_empty(&s);
    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    w.only = WAIT_FOR_UPDATE;
    while (!empty && !refused && (found = set_find_any(&s, set_start(&s))) == SIZE_MAX && !answer)
        answer = set_wait(&s, &w);
    if (!refused)
        answer = found == SIZE_MAX ? set_fail_alone(&s, call, answer) : GSHMEM_OK;
    gshmem_raise(set_end(&s, answer, found != SIZE_MAX));
    return found;
}

size_t gshmem_path_wait_some(enum gshmem_type type, const void *ivars, size_t nelems,
                             size_t *indices, const int *status, int cmp, const void *values,
                             int vector)
{
    const char *call = vector ? "wait_until_some_vector" : "wait_until_some";
    gshmem_status_t answer = job_require(call);
    struct set s = {.n = 0};
    size_t found = 0;
    struct wait w;
    RANGE(call);

    if (!answer)
        answer = set_describe(&s, call, type, ivars, nelems, status, cmp, values, vector);
    if (!answer)
        answer = check_indices(call, indices, nelems);
    const bool refused = answer != GSHMEM_OK, empty = !refused && set_is_empty(&s);
    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    w.only = WAIT_FOR_UPDATE;
    while (!empty && !refused && (found = set_find_some(&s, indices)) == 0 && !answer)
        answer = set_wait(&s, &w);
    if (!refused)
        answer = found == 0 ? set_fail_alone(&s, call, answer) : GSHMEM_OK;
    gshmem_raise(set_end(&s, answer, found != 0));
    return found;
}

/* Waits and tests in kernels, of the PE's own variables that other PEs update.
 *
 * Each poll is an acquire: it pairs with the release of the PE that updates the variable, at the
 * end of a put with signal, or in a fence or quiet before its store. Each thread waits by itself: a
 * block waits by one of its threads and a barrier. */
#ifndef GSHMEM_DEVICE_WAIT_UNTIL_H
#define GSHMEM_DEVICE_WAIT_UNTIL_H

#include "gshmem/device/rma.h"

template <class T> GSHMEM_KERNEL T gshmem_kernel_load_acquire(const T *at)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "a variable to wait for");
#ifdef __CUDA_ARCH__
    return (T)(sizeof(T) == 8   ? gshmem_load_acquire((const uint64_t *)at)
               : sizeof(T) == 4 ? gshmem_load_acquire_32((const uint32_t *)at)
                                : gshmem_load_acquire_16((const uint16_t *)at));
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

template <class T> GSHMEM_KERNEL bool gshmem_kernel_compare(T variable, int cmp, T value)
{
    switch (cmp) {
    case GSHMEM_CMP_EQ:
        return variable == value;
    case GSHMEM_CMP_NE:
        return variable != value;
    case GSHMEM_CMP_GT:
        return variable > value;
    case GSHMEM_CMP_LE:
        return variable <= value;
    case GSHMEM_CMP_LT:
        return variable < value;
    default: /* GSHMEM_CMP_GE: gshmem_kernel_comparable has refused all other numbers */
        return variable >= value;
    }
}

template <class T> GSHMEM_KERNEL bool gshmem_kernel_comparable(const T *ivars, int cmp)
{
    return ivars && (uintptr_t)ivars % sizeof *ivars == 0 && cmp >= GSHMEM_CMP_EQ &&
           cmp <= GSHMEM_CMP_GE;
}

GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_begin_checked(uint32_t call, const void *ivars,
                                                               size_t bytes)
{
    if (!gshmem_device_here.ctx.n_pes)
        return gshmem_kernel_without_job(false);
    return gshmem_kernel_check(0, call, ivars, bytes, false);
}

/* What each wait begins with: there is a job, and with GSHMEM_CHECK=memory the variables are all in
 * one object. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_begin_wait(uint32_t call, const void *ivars,
                                                       size_t bytes)
{
    return GSHMEM_LIKELY(gshmem_device_here.direct)
               ? GSHMEM_OK
               : gshmem_kernel_begin_checked(call, ivars, bytes);
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_look_again(struct gshmem_kernel_wait *w)
{
    return gshmem_kernel_wait_step(w, gshmem_device_here.ctx.job->failure);
}

/* Has the proxy log what is wrong, as the host's calls do; raises: the caller returns no status. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_refuse_wait(uint32_t call, uint32_t bytes,
                                                             const void *ivars, int cmp,
                                                             uint32_t lack, bool raises)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_REFUSE_WAIT;
    command.type = bytes;
    command.amo = call;
    command.raises = raises;
    command.address = (uint64_t)(uintptr_t)ivars;
    command.local = (uint64_t)(int64_t)cmp;
    command.size = lack;
    return gshmem_kernel_ask(&gshmem_device_here.ctx, &command, NULL, NULL);
}

GSHMEM_KERNEL_RARE void gshmem_kernel_raise_wait(gshmem_status_t status)
{
    gshmem_kernel_raise(&gshmem_device_here.ctx, status);
}

GSHMEM_EITHER void gshmem_raise(gshmem_status_t status)
{
    if (GSHMEM_LIKELY(!status))
        return;
    GSHMEM_RETURN(gshmem_kernel_raise_wait(status), gshmem_on_host::gshmem_raise(status));
}

/* Raises, once, a failure on which all threads of a warp or block agree. */
template <int scope> GSHMEM_KERNEL void gshmem_kernel_raise_once(gshmem_status_t status)
{
    if (status && gshmem_kernel_rank<scope>() == 0)
        gshmem_kernel_raise_wait(status);
}

/* ---- One variable --------------------------------------------------------------------------- */

/* *seen becomes the value that ended the wait, or the last value before the wait failed. After a
 * failure it polls once more, because the update may have arrived before the failure was seen. */
template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_for(const T *ivar, int cmp, T value, T *seen)
{
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, ivar);
    for (;;) {
        *seen = gshmem_kernel_load_acquire(ivar);
        if (gshmem_kernel_compare(*seen, cmp, value))
            break;
        if (status)
            return status;
        status = gshmem_kernel_look_again(&w);
    }
    gshmem_kernel_waited();
    return GSHMEM_OK;
}

template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_until(const T *ivar, int cmp, T value)
{
    gshmem_status_t status = gshmem_kernel_begin_wait(GSHMEM_WAIT_UNTIL, ivar, sizeof(T));
    T seen;

    if (!status && !gshmem_kernel_comparable(ivar, cmp))
        return gshmem_kernel_refuse_wait(GSHMEM_WAIT_UNTIL, sizeof(T), ivar, cmp,
                                         GSHMEM_LACKS_NOTHING, false);
    if (!status)
        status = gshmem_kernel_wait_for(ivar, cmp, value, &seen);
    return status ? status : gshmem_kernel_settle();
}

template <class T> GSHMEM_KERNEL int gshmem_kernel_test(const T *ivar, int cmp, T value)
{
    gshmem_kernel_may_test(GSHMEM_WAIT_TEST, ivar, sizeof *ivar);
    if (gshmem_kernel_comparable(ivar, cmp))
        return gshmem_kernel_compare(gshmem_kernel_load_acquire(ivar), cmp, value) &&
               gshmem_kernel_has_settled();
    gshmem_kernel_refuse_wait(GSHMEM_WAIT_TEST, sizeof(T), ivar, cmp, GSHMEM_LACKS_NOTHING, true);
    return 0;
}

GSHMEM_KERNEL uint64_t gshmem_kernel_signal_wait_until(const uint64_t *sig_addr, int cmp,
                                                       uint64_t value)
{
    gshmem_status_t status =
        gshmem_kernel_begin_wait(GSHMEM_WAIT_SIGNAL, sig_addr, sizeof *sig_addr);
    uint64_t seen = 0;

    if (!status && !gshmem_kernel_comparable(sig_addr, cmp)) {
        gshmem_kernel_refuse_wait(GSHMEM_WAIT_SIGNAL, 8, sig_addr, cmp, GSHMEM_LACKS_NOTHING, true);
        return 0;
    }
    if (!status)
        status = gshmem_kernel_wait_for(sig_addr, cmp, value, &seen);
    if (!status)
        status = gshmem_kernel_settle();
    if (status)
        gshmem_kernel_raise_wait(status);
    return seen;
}

GSHMEM_EITHER uint64_t gshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value)
{
    GSHMEM_RETURN(gshmem_kernel_signal_wait_until(sig_addr, cmp, value),
                  gshmem_on_host::gshmem_signal_wait_until(sig_addr, cmp, value));
}

/* ---- Arrays --------------------------------------------------------------------------------- */

/* The elements of a wait, and the condition. */
template <class T> struct gshmem_kernel_set {
    const T *ivars;
    size_t n;
    const int *status; /* [n]: elements with a value other than 0 are left out; or NULL */
    int cmp;
    const T *values;
    size_t value_step; /* 1: a value for each variable; 0: one for all */
};

template <class T>
GSHMEM_KERNEL bool gshmem_kernel_set_has(const struct gshmem_kernel_set<T> *s, size_t i)
{
    return !s->status || !s->status[i];
}

template <class T>
GSHMEM_KERNEL bool gshmem_kernel_satisfied(const struct gshmem_kernel_set<T> *s, size_t i)
{
    return gshmem_kernel_compare(gshmem_kernel_load_acquire(&s->ivars[i]), s->cmp,
                                 s->values[i * s->value_step]);
}

template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_set_check(const struct gshmem_kernel_set<T> *s,
                                                      uint32_t call, bool raises)
{
    bool comparable = s->n ? gshmem_kernel_comparable(s->ivars, s->cmp)
                           : s->cmp >= GSHMEM_CMP_EQ && s->cmp <= GSHMEM_CMP_GE;

    if (GSHMEM_LIKELY(comparable && (s->values || s->n == 0)))
        return GSHMEM_OK;
    return gshmem_kernel_refuse_wait(call, sizeof(T), s->ivars, s->cmp,
                                     comparable ? GSHMEM_LACKS_VALUES : GSHMEM_LACKS_NOTHING,
                                     raises);
}

/* The same for calls that return indices, and no status. */
template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_some_check(const struct gshmem_kernel_set<T> *s,
                                                       const size_t *indices, uint32_t call)
{
    if (GSHMEM_LIKELY(indices || s->n == 0))
        return gshmem_kernel_set_check(s, call, true);
    return gshmem_kernel_refuse_wait(call, sizeof(T), s->ivars, s->cmp, GSHMEM_LACKS_INDICES, true);
}

template <class T>
GSHMEM_KERNEL bool gshmem_kernel_set_empty(const struct gshmem_kernel_set<T> *s)
{
    size_t i = 0;

    while (i < s->n && !gshmem_kernel_set_has(s, i))
        i++;
    return i == s->n;
}

/* Where a search for any element begins: random, since no fixed order is fair to all callers. */
GSHMEM_KERNEL size_t gshmem_kernel_draw(size_t n)
{
    uint32_t lot = (uint32_t)clock64() + gshmem_kernel_thread();

    lot = (lot ^ lot >> 16) * 0x7feb352du;
    lot = (lot ^ lot >> 15) * 0x846ca68bu;
    return (size_t)((uint64_t)(lot ^ lot >> 16) * (uint32_t)n >> 32);
}

/* The first element that fulfils the condition; SIZE_MAX: none. */
template <class T>
GSHMEM_KERNEL size_t gshmem_kernel_find_any(const struct gshmem_kernel_set<T> *s)
{
    size_t start = gshmem_kernel_draw(s->n);

    for (size_t k = 0; k < s->n; k++) {
        size_t i = start < s->n - k ? start + k : start - (s->n - k);
        if (gshmem_kernel_set_has(s, i) && gshmem_kernel_satisfied(s, i))
            return i;
    }
    return SIZE_MAX;
}

template <class T>
GSHMEM_KERNEL size_t gshmem_kernel_find_some(const struct gshmem_kernel_set<T> *s, size_t *indices)
{
    size_t found = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (gshmem_kernel_set_has(s, i) && gshmem_kernel_satisfied(s, i))
            indices[found++] = i;
    }
    return found;
}

template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_all(struct gshmem_kernel_set<T> s)
{
    gshmem_status_t status =
        gshmem_kernel_begin_wait(GSHMEM_WAIT_ALL, s.ivars, s.n * sizeof *s.ivars);
    T seen;

    if (!status)
        status = gshmem_kernel_set_check(&s, GSHMEM_WAIT_ALL, false);
    for (size_t i = 0; !status && i < s.n; i++) {
        if (gshmem_kernel_set_has(&s, i))
            status = gshmem_kernel_wait_for(&s.ivars[i], s.cmp, s.values[i * s.value_step], &seen);
    }
    return status ? status : gshmem_kernel_settle();
}

template <class T> GSHMEM_KERNEL size_t gshmem_kernel_wait_any(struct gshmem_kernel_set<T> s)
{
    gshmem_status_t status =
        gshmem_kernel_begin_wait(GSHMEM_WAIT_ANY, s.ivars, s.n * sizeof *s.ivars);
    struct gshmem_kernel_wait w = {};
    size_t found = SIZE_MAX;

    if (!status && gshmem_kernel_set_check(&s, GSHMEM_WAIT_ANY, true))
        return SIZE_MAX;
    if (!status && gshmem_kernel_set_empty(&s))
        return SIZE_MAX;
    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, s.ivars);
    while (!status && (found = gshmem_kernel_find_any(&s)) == SIZE_MAX)
        status = gshmem_kernel_look_again(&w);
    gshmem_kernel_waited();
    if (!status)
        status = gshmem_kernel_settle();
    if (status)
        gshmem_kernel_raise_wait(status);
    return found;
}

template <class T>
GSHMEM_KERNEL size_t gshmem_kernel_wait_some(struct gshmem_kernel_set<T> s, size_t *indices)
{
    gshmem_status_t status =
        gshmem_kernel_begin_wait(GSHMEM_WAIT_SOME, s.ivars, s.n * sizeof *s.ivars);
    struct gshmem_kernel_wait w = {};
    size_t found = 0;

    if (!status && gshmem_kernel_some_check(&s, indices, GSHMEM_WAIT_SOME))
        return 0;
    if (!status && gshmem_kernel_set_empty(&s))
        return 0;
    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, s.ivars);
    while (!status && (found = gshmem_kernel_find_some(&s, indices)) == 0)
        status = gshmem_kernel_look_again(&w);
    gshmem_kernel_waited();
    if (!status)
        status = gshmem_kernel_settle();
    if (status)
        gshmem_kernel_raise_wait(status);
    return found;
}

template <class T> GSHMEM_KERNEL int gshmem_kernel_test_all(struct gshmem_kernel_set<T> s)
{
    gshmem_status_t status = gshmem_kernel_set_check(&s, GSHMEM_WAIT_TEST_ALL, true);
    size_t i = 0;

    gshmem_kernel_may_test(GSHMEM_WAIT_TEST_ALL, s.ivars, s.n * sizeof *s.ivars);
    while (!status && i < s.n && (!gshmem_kernel_set_has(&s, i) || gshmem_kernel_satisfied(&s, i)))
        i++;
    return !status && i == s.n && gshmem_kernel_has_settled();
}

template <class T> GSHMEM_KERNEL size_t gshmem_kernel_test_any(struct gshmem_kernel_set<T> s)
{
    gshmem_kernel_may_test(GSHMEM_WAIT_TEST_ANY, s.ivars, s.n * sizeof *s.ivars);
    if (gshmem_kernel_set_check(&s, GSHMEM_WAIT_TEST_ANY, true))
        return SIZE_MAX;
    const size_t found = gshmem_kernel_find_any(&s);
    return found == SIZE_MAX || gshmem_kernel_has_settled() ? found : SIZE_MAX;
}

template <class T>
GSHMEM_KERNEL size_t gshmem_kernel_test_some(struct gshmem_kernel_set<T> s, size_t *indices)
{
    gshmem_kernel_may_test(GSHMEM_WAIT_TEST_SOME, s.ivars, s.n * sizeof *s.ivars);
    if (gshmem_kernel_some_check(&s, indices, GSHMEM_WAIT_TEST_SOME))
        return 0;
    const size_t found = gshmem_kernel_find_some(&s, indices);
    return found == 0 || gshmem_kernel_has_settled() ? found : 0;
}

#endif

/* Waits and tests of a variable of the program's own, which other PEs update. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/races/races.h"
#include "runtime/node/choose_device.h"
#include "runtime/operations/wait_values.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/where/record.h"
#include "runtime/trace/trace.h"

/* ---- One variable ---- */

gshmem_status_t wait_until_check_comparison(const char *call, enum gshmem_type type, int cmp)
{
    if (cmp < GSHMEM_CMP_EQ || cmp > GSHMEM_CMP_GE)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: cmp is %d, which is none of GSHMEM_CMP_EQ … _GE",
                    call, cmp);
    if (!type_bytes(type))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: variables of type %d cannot be waited for", call,
                    (int)type);
    return GSHMEM_OK;
}

gshmem_status_t wait_until_check_aligned(const char *call, enum gshmem_type type,
                                                const void *ivar)
{
    if (ivar && (uintptr_t)ivar % type_bytes(type) == 0)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT, "%s: there is no variable aligned to its %zu bytes at %p",
                call, type_bytes(type), ivar);
}

/* The CPU polls variables in GPU memory by copies of them. */
bool wait_until_in_device(const void *at)
{
    return GSHMEM_UNLIKELY(job && job->device_heap) &&
           atomicity_is_device(map_atomicity(job->map, at));
}

static gshmem_status_t load_from_device(enum gshmem_type type, const void *at, uint64_t *value)
{
    uint64_t copy = 0;
    gshmem_status_t status = device_heap_copy(job->device_heap, &copy, at, type_bytes(type));

    if (!status)
        *value = wait_until_load(type, &copy);
    return status;
}

gshmem_status_t wait_check(const char *call, enum gshmem_type type, const void *ivars, size_t n,
                           int cmp, size_t *bytes)
{
    gshmem_status_t status = wait_until_check_comparison(call, type, cmp);

    *bytes = type_bytes(type);
    if (!status && n)
        status = wait_until_check_aligned(call, type, ivars);
    return status ? status : context_check_own(ivars, gshmem_bytes(n, *bytes), call);
}

static gshmem_status_t wait_until_check_one(const char *call, enum gshmem_type type,
                                            const void *ivar, int cmp)
{
    gshmem_status_t status = wait_until_check_comparison(call, type, cmp);

    if (!status)
        status = wait_until_check_aligned(call, type, ivar);
    return status ? status : context_check_own(ivar, type_bytes(type), call);
}

static void print_value(char *text, size_t size, enum gshmem_type type, uint64_t value)
{
    if (type_is_signed(type))
        snprintf(text, size, "%lld", (long long)value);
    else
        snprintf(text, size, "%llu", (unsigned long long)value);
}

/* "which is 0 and has to be == 1": the comparison from which a range was made, the inverse of
 * range_of. */
static void print_wanted(char *text, size_t size, enum gshmem_type type, const struct range *r,
                         uint64_t seen)
{
    const uint64_t least = type_is_signed(type) ? (uint64_t)INT64_MIN : 0;
    const bool to_value = r->span && r->first == least;
    const char *const comparison[] = {!r->span   ? "=="
                                      : to_value ? "<="
                                                 : ">=",
                                      !r->span   ? "!="
                                      : to_value ? ">"
                                                 : "<"};
    char is[24], wanted[24];

    print_value(is, sizeof is, type, seen);
    print_value(wanted, sizeof wanted, type, to_value ? r->first + r->span : r->first);
    snprintf(text, size, "which is %s and has to be %s %s", is, comparison[r->outside], wanted);
}

static gshmem_status_t wait_until_fail_alone(const char *call, gshmem_status_t status,
                                             enum gshmem_type type, const void *at,
                                             const struct range *r, uint64_t seen)
{
    char wanted[80], what[120];

    print_wanted(wanted, sizeof wanted, type, r, seen);
    snprintf(what, sizeof what, "the variable at %p, %s", at, wanted);
    return departures_fail_alone(call, status, what);
}

/* What a wait for a variable shows of it. */
struct variable {
    enum gshmem_type type;
    const void *at;
    const struct range *range;
    const uint64_t *seen;
};

static void show_variable(const struct wait *w, struct where_wait *record)
{
    const struct variable *v = w->object;

    record->kind = WHERE_VARIABLE;
    wait_show_object(record, v->at, type_bytes(v->type));
    print_wanted(record->text, sizeof record->text, v->type, v->range, *v->seen);
}

/* wait_for, of a variable that the CPU cannot load. A copy that fails ends the wait at once. */
static gshmem_status_t wait_for_copy(const char *call, enum gshmem_type type, const void *at,
                                     struct range r, uint64_t *seen)
{
    gshmem_status_t status = GSHMEM_OK, looked;
    const struct variable v = {type, at, &r, seen};
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    wait_for_object(&w, show_variable, &v);
    w.only = WAIT_FOR_UPDATE;
    while (!(looked = load_from_device(type, at, seen)) && !range_has(&r, *seen) && !status)
        status = wait_step(&w);
    wait_end(&w);
    if (looked)
        return looked;
    return range_has(&r, *seen) ? device_settle()
                                : wait_until_fail_alone(call, status, type, at, &r, *seen);
}

/* What the PE knows that has updated the variable, this one knows from now on. */
static gshmem_status_t wait_until_seen(enum gshmem_type type, const void *at)
{
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_see(at, type_bytes(type), job->pe);
    return device_settle();
}

/* *seen becomes the value that ended the wait, or the last one before it failed. Polls once more
 * after a failure, because the update may have come with it. There is a pause between any two
 * polls, from the first on: without it the polls take the cache line from its writer again and
 * again (docs/decisions/0026). */
gshmem_status_t wait_until_wait_for(const char *call, enum gshmem_type type, const void *at,
                                           struct range r, uint64_t *seen)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    if (wait_until_in_device(at))
        return wait_for_copy(call, type, at, r, seen);
    if (range_has(&r, *seen = wait_until_load(type, at)))
        return wait_until_seen(type, at);
    const struct variable v = {type, at, &r, seen};
    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    wait_for_object(&w, show_variable, &v);
    w.only = WAIT_FOR_UPDATE;
    do {
        status = wait_step(&w);
        *seen = wait_until_load(type, at);
    } while (!range_has(&r, *seen) && !status);
    trace_event(TRACE_SEEN, TRACE_NO_OP, -1, *seen, (uint64_t)(uintptr_t)at, type_bytes(type));
    wait_end(&w);
    return range_has(&r, *seen) ? wait_until_seen(type, at)
                                : wait_until_fail_alone(call, status, type, at, &r, *seen);
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

    if (!status && wait_until_in_device(ivar))
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
    gshmem_raise(wait_until_seen(type, ivar));
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
    gshmem_status_t status = context_check_own(sig_addr, sizeof *sig_addr, "signal_fetch");
    uint64_t seen = 0;

    if (!status && !wait_until_in_device(sig_addr)) {
        /* acquire: as gshmem_signal_fetch has it */
        seen = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
        if (GSHMEM_UNLIKELY(job && job->races))
            races_see(sig_addr, sizeof *sig_addr, job->pe);
        return seen;
    }
    if (status || (status = load_from_device(GSHMEM_TYPE_UINT64, sig_addr, &seen)))
        gshmem_raise(status);
    return seen;
}

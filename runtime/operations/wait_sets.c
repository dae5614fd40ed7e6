/* Waits and tests of arrays of the program's own variables, which other PEs update: all, any or
 * some of them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/job/thread.h"
#include "runtime/memory/device_heap.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/node/choose_device.h"
#include "runtime/operations/wait_values.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/where/record.h"

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

static gshmem_status_t set_check(const char *call, enum gshmem_type type, const void *ivars,
                                 size_t n, int cmp, const void *values, int vector)
{
    gshmem_status_t answer = wait_until_check_comparison(call, type, cmp);

    if (!answer && n)
        answer = wait_until_check_aligned(call, type, ivars);
    if (!answer && !values && (n || !vector))
        answer = fail(GSHMEM_ERR_ARGUMENT, "%s: cmp_values is NULL", call);
    return answer ? answer : context_check_own(ivars, gshmem_bytes(n, type_bytes(type)), call);
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
    if (n == 0 || !wait_until_in_device(ivars))
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

    if (!range_has(&r, wait_until_load(s->type, s->ivars + i * s->bytes)))
        return false;
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_see(s->there + i * s->bytes, s->bytes, job->pe);
    return true;
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
    this_thread.lot = this_thread.lot * 6364136223846793005u + 1442695040888963407u;
    return s->n ? (size_t)(this_thread.lot >> 32) % s->n : 0;
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

static void show_set(const struct wait *w, struct where_wait *record)
{
    const struct set *s = w->object;

    record->kind = WHERE_VARIABLE;
    wait_show_object(record, s->there, 1);
    snprintf(record->text, sizeof record->text,
             "the first of %zu, none of which has a value that is waited for", s->n);
}

static gshmem_status_t set_fail_alone(const struct set *s, const char *call, gshmem_status_t status)
{
    char what[120];

    snprintf(what, sizeof what,
             "the %zu variables at %p, none of which has a value that is waited for", s->n,
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
    wait_for_object(&w, show_set, &s);
    w.only = WAIT_FOR_UPDATE;
    while (!empty && !refused && (found = set_find_any(&s, set_start(&s))) == SIZE_MAX && !answer)
        answer = set_wait(&s, &w);
    wait_end(&w);
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
    wait_for_object(&w, show_set, &s);
    w.only = WAIT_FOR_UPDATE;
    while (!empty && !refused && (found = set_find_some(&s, indices)) == 0 && !answer)
        answer = set_wait(&s, &w);
    wait_end(&w);
    if (!refused)
        answer = found == 0 ? set_fail_alone(&s, call, answer) : GSHMEM_OK;
    gshmem_raise(set_end(&s, answer, found != 0));
    return found;
}

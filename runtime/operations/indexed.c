/* Indexed operations: elements of one object by their numbers, on one PE or on a PE for each
 * (gshmem/indexed.h).
 *
 * All arguments are checked first. Then elements that are mapped are moved in place; those of other
 * nodes are sorted by PE, some thousands at a time, and travel in batches. Where there are no
 * batches, each element is a request of its own. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/atomic_type.h"
#include "runtime/memory/device_heap.h"
#include "runtime/operations/indexed.h"

enum { SORTED_MOST = 16384 }; /* elements that are sorted at a time */

/* ---- Arguments ---- */

static gshmem_status_t indexed_check_pointers(const struct indexed *ix, bool each)
{
    const char *missing = !ix->index                  ? "index"
                          : each && !ix->pes          ? "pes"
                          : ix->local                 ? NULL
                          : ix->each == TRANSPORT_GET ? "dest"
                                                      : "source";

    if (missing)
        return fail(GSHMEM_ERR_ARGUMENT, "%s of %zu elements: %s is NULL", ix->call, ix->n,
                    missing);
    if (ix->each == TRANSPORT_ATOMIC && (uintptr_t)ix->object % ix->element)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %p is not aligned to its %zu bytes", ix->call,
                    (void *)ix->object, ix->element);
    return GSHMEM_OK;
}

static gshmem_status_t indexed_check_pes(const struct indexed *ix)
{
    const char *whole = ix->c->view.team == GSHMEM_TEAM_WORLD ? "job" : "context's team";
    const unsigned n = (unsigned)ix->c->view.n_pes;

    if (!ix->pes && (unsigned)ix->pe >= n)
        return fail(GSHMEM_ERR_ARGUMENT, "%s of %zu elements with PE %d: the %s has PEs 0..%u",
                    ix->call, ix->n, ix->pe, whole, n - 1);
    unsigned most = 0;
    for (size_t i = 0; ix->pes && i < ix->n; i++) /* no end in the middle: several at a time */
        most = (unsigned)ix->pes[i] > most ? (unsigned)ix->pes[i] : most;
    if (most < n)
        return GSHMEM_OK;
    size_t i = 0;
    while ((unsigned)ix->pes[i] < n)
        i++;
    return fail(GSHMEM_ERR_ARGUMENT, "%s of %zu elements: pes[%zu] is %d: the %s has PEs 0..%u",
                ix->call, ix->n, i, ix->pes[i], whole, n - 1);
}

static void indexed_measure(struct indexed *ix)
{
    size_t most = 0;

    for (size_t i = 0; i < ix->n; i++)
        most = ix->index[i] > most ? ix->index[i] : most;
    ix->most = most;
    ix->span = most == SIZE_MAX ? SIZE_MAX : gshmem_bytes(most + 1, ix->element);
}

/* Finds pe's copy of the object, up to the largest index. Its failure names that index. */
static gshmem_status_t indexed_resolve(const struct indexed *ix, int pe, struct location *l)
{
    size_t at = 0;
    char call[96];

    *l = (struct location){.segment = SEGMENT_HEAP, .atomicity = ATOMICITY_CPU, .way = WAY_NETWORK};
    if (!job->checked &&
        context_is_remote_heap(ix->c, ix->object, ix->span, pe, &l->pe, &l->offset))
        return GSHMEM_OK;
    while (ix->index[at] != ix->most)
        at++;
    snprintf(call, sizeof call, "%s with index[%zu] = %zu", ix->call, at, ix->most);
    return context_resolve(ix->c, ix->object, ix->span, pe, call, l);
}

/* ---- One request for each element ---- */

/* A get is not complete before a quiet of ix->pending. */
static gshmem_status_t indexed_one(const struct indexed *ix, const struct location *l, int pe,
                                   size_t i)
{
    char *at = ix->object + ix->index[i] * ix->element, *mine = ix->local + i * ix->element;
    gshmem_status_t status;
    uint64_t operand = 0;

    switch (ix->each) {
    case TRANSPORT_PUT:
        return gshmem_path_put(ix->ctx, at, mine, ix->element, pe, 0);
    case TRANSPORT_ATOMIC:
        /* of 4 or 8 bytes, in the low ones */
        if (!network_is_on_device(job->network, mine, ix->element))
            memcpy(&operand, mine, ix->element);
        else if ((status = device_heap_copy(job->device_heap, &operand, mine, ix->element)))
            return status;
        return gshmem_path_atomic(ix->ctx, GSHMEM_AMO_ADD, ix->type, at, operand, 0, NULL, pe);
    default:
        break;
    }
    if (l->way != WAY_NETWORK)
        return gshmem_path_get(ix->ctx, mine, at, ix->element, pe, 0);
    struct transport_request get = {
        .kind = TRANSPORT_GET,
        .flags = TRANSPORT_MORE | TRANSPORT_LOOSE,
        .pe = l->pe,
        .segment = l->segment,
        .offset = l->offset + ix->index[i] * ix->element,
        .local = mine,
        .bytes = ix->element,
    };
    return network_post(job->network, ix->pending, &get, ix->call);
}

static gshmem_status_t indexed_singly(const struct indexed *ix, const struct location *l, int pe,
                                      const struct elements *e)
{
    gshmem_status_t status = GSHMEM_OK;

    for (size_t k = 0; k < e->n && !status; k++)
        status = indexed_one(ix, l, pe, elements_at(e, k));
    return status;
}

/* ---- Any PE ---- */

static bool may_move(const struct indexed *ix, const struct location *l)
{
    return l->way == WAY_MAPPED && (ix->each != TRANSPORT_ATOMIC || l->atomicity == ATOMICITY_CPU);
}

static bool may_batch(const struct indexed *ix, const struct location *l)
{
    return ix->batch_most && l->way == WAY_NETWORK && l->atomicity == ATOMICITY_CPU;
}

static void indexed_note(const struct indexed *ix, const struct location *l, size_t n)
{
    const enum trace_op op = trace_op_of(ix->each);
    const enum stats_kind kind = ix->each == TRANSPORT_PUT   ? STATS_PUT
                                 : ix->each == TRANSPORT_GET ? STATS_GET
                                                             : STATS_ATOMIC;

    context_note_copied(ix->c, op, kind, l, n * ix->element);
}

static gshmem_status_t indexed_of_pe(const struct indexed *ix, int pe, const struct elements *e)
{
    struct location l;
    gshmem_status_t status = indexed_resolve(ix, pe, &l);

    if (status)
        return status;
    if (may_batch(ix, &l))
        return indexed_post(ix, &l, e);
    if (!may_move(ix, &l))
        return indexed_singly(ix, &l, pe, e);
    indexed_move(ix, l.at, e);
    indexed_note(ix, &l, e->n);
    return GSHMEM_OK;
}

/* ---- A PE for each element ---- */

struct sorting {
    uint32_t other[SORTED_MOST]; /* elements that are not mapped, counted from the first */
    uint32_t order[SORTED_MOST]; /* those that are; then the others by PE */
    uint32_t end[];              /* [PE]: in `order`, where its elements end */
};

/* Moves the elements that are mapped, and lists the others; returns their number. Elements of both
 * kinds come in no order that a CPU could predict: therefore it has no branch for each. */
static size_t indexed_sift(const struct indexed *ix, struct sorting *s, size_t from, size_t n)
{
    size_t mapped = 0, left = 0;

    for (size_t k = 0; k < n; k++) {
        const bool is_mapped = ix->peer && ix->peer[ix->pes[from + k]];
        s->order[mapped] = s->other[left] = (uint32_t)k;
        mapped += is_mapped;
        left += !is_mapped;
    }
    indexed_move_mapped(ix, &(struct elements){from, s->order, mapped});
    return left;
}

/* Sorts by PE; keeps the order of elements of one PE. */
static void indexed_sort(const struct indexed *ix, struct sorting *s, size_t from, size_t n)
{
    const int pes = ix->c->view.n_pes;
    uint32_t at = 0;

    memset(s->end, 0, (size_t)pes * sizeof *s->end);
    for (size_t k = 0; k < n; k++)
        s->end[ix->pes[from + s->other[k]]]++;
    for (int pe = 0; pe < pes; pe++) {
        const uint32_t count = s->end[pe];
        s->end[pe] = at;
        at += count;
    }
    for (size_t k = 0; k < n; k++)
        s->order[s->end[ix->pes[from + s->other[k]]]++] = s->other[k];
}

static gshmem_status_t indexed_of_pes(const struct indexed *ix)
{
    const int pes = ix->c->view.n_pes;

    if (indexed_is_all_mapped(ix)) {
        indexed_move_mapped(ix, &(struct elements){0, NULL, ix->n});
        return GSHMEM_OK;
    }
    struct sorting *s = malloc(sizeof *s + (size_t)pes * sizeof *s->end);
    gshmem_status_t status = GSHMEM_OK;

    if (!s)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory to sort the elements by PE", ix->call);
    for (size_t from = 0; from < ix->n && !status; from += SORTED_MOST) {
        const size_t n = ix->n - from < SORTED_MOST ? ix->n - from : SORTED_MOST;
        const size_t others = indexed_sift(ix, s, from, n);
        if (!others)
            continue;
        indexed_sort(ix, s, from, others);
        uint32_t begin = 0;
        for (int pe = 0; pe < pes && !status; begin = s->end[pe++]) {
            const struct elements e = {from, s->order + begin, s->end[pe] - begin};
            if (e.n)
                status = indexed_of_pe(ix, pe, &e);
        }
    }
    free(s);
    return status;
}

/* Before anything is moved: whether the object is symmetric, up to the largest index. A variable is
 * looked up on each PE, which may run another program; without memory for that, in its turn. */
static gshmem_status_t indexed_check_object(const struct indexed *ix)
{
    const bool each = ix->pes && ix->peer != ix->c->view.heap.peer;
    unsigned char *seen = each ? calloc((size_t)ix->c->view.n_pes, 1) : NULL;
    gshmem_status_t status = GSHMEM_OK;
    struct location l;

    for (size_t i = 0; i < (seen ? ix->n : 1) && !status; i++) {
        const int pe = ix->pes ? ix->pes[i] : ix->pe;
        const bool again = seen && seen[pe]++; /* at times not: the count wraps */
        if (!again && !indexed_reach(ix, pe))
            status = indexed_resolve(ix, pe, &l);
    }
    free(seen);
    return status;
}

static gshmem_status_t indexed_all(const struct indexed *ix)
{
    const struct elements all = {0, NULL, ix->n};

    if (ix->pes)
        return indexed_of_pes(ix);
    char *there = indexed_reach(ix, ix->pe);
    if (!there)
        return indexed_of_pe(ix, ix->pe, &all);
    indexed_move(ix, there, &all);
    return GSHMEM_OK;
}

/* ---- The calls ---- */

/* GSHMEM_CHECK=races: each element. Like the calls, they may complete after it. */
static void indexed_follow(const struct indexed *ix)
{
    const int *world = job->team[ix->c->view.team]->members;

    for (size_t i = 0; i < ix->n; i++) {
        char *there = (char *)ix->object + ix->index[i] * ix->element;
        char *mine = ix->local + i * ix->element;
        const int pe = world[ix->pes ? ix->pes[i] : ix->pe];
        if (ix->each == TRANSPORT_PUT)
            races_put(ix->call, there, mine, ix->element, pe, false);
        else if (ix->each == TRANSPORT_GET)
            races_get(ix->call, mine, there, ix->element, pe, ix->nbi);
        else
            races_atomic(ix->call, GSHMEM_AMO_ADD, there, ix->element, pe, false);
    }
}

static gshmem_status_t indexed_begin(struct indexed *ix)
{
    const bool each = ix->pe == GSHMEM_PE_OF_EACH;
    gshmem_status_t status;

    if (!each)
        ix->pes = NULL;
    if ((status = indexed_check_pointers(ix, each)) || (status = indexed_check_pes(ix)))
        return status;
    indexed_measure(ix);
    indexed_find_peers(ix);
    if ((status = indexed_check_object(ix)))
        return status;
    if (job->checked &&
        (status = context_check_local(ix->local, gshmem_bytes(ix->n, ix->element), ix->call, true)))
        return status;
    if (GSHMEM_UNLIKELY(job->races != NULL))
        indexed_follow(ix);
    ix->pending = ix->c->pending;
    ix->batch_most = indexed_batch_most(ix);
    return GSHMEM_OK;
}

/* Waits for this call's requests, and no others. */
static gshmem_status_t indexed_get_now(struct indexed *ix)
{
    gshmem_status_t status;

    if (!(ix->pending = network_errands_begin(job->network, ix->call)))
        return GSHMEM_ERR_MEMORY;
    status = indexed_all(ix);
    return network_errands_end(job->network, ix->pending, status, ix->call);
}

/* now: it is complete when this returns. */
static gshmem_status_t indexed_call(struct indexed *ix, bool now)
{
    gshmem_status_t status;

    if (!(ix->c = context_find(ix->ctx, ix->call)))
        return last_error_status();
    if (ix->n == 0)
        return GSHMEM_OK;
    if ((status = indexed_begin(ix)))
        return status;
    return now && network_is_needed(job->network) ? indexed_get_now(ix) : indexed_all(ix);
}

gshmem_status_t gshmem_path_ixput(gshmem_ctx_t ctx, void *dest, const void *source,
                                  const size_t *index, const int *pes, int pe, size_t element,
                                  size_t n)
{
    struct indexed ix = {.call = "ixput",
                         .ctx = ctx,
                         .each = TRANSPORT_PUT,
                         .element = element,
                         .object = dest,
                         .local = (char *)source,
                         .index = index,
                         .pes = pes,
                         .pe = pe,
                         .n = n};

    return indexed_call(&ix, false);
}

gshmem_status_t gshmem_path_ix_add(gshmem_ctx_t ctx, int type, void *dest, const void *source,
                                   const size_t *index, const int *pes, int pe, size_t n)
{
    struct indexed ix = {.call = "ix_add",
                         .ctx = ctx,
                         .each = TRANSPORT_ATOMIC,
                         .type = type,
                         .element = atomic_type_bytes(type),
                         .object = dest,
                         .local = (char *)source,
                         .index = index,
                         .pes = pes,
                         .pe = pe,
                         .n = n};

    if (!ix.element)
        return fail(GSHMEM_ERR_ARGUMENT, "ix_add on type %d does not exist", type);
    return indexed_call(&ix, false);
}

gshmem_status_t gshmem_path_ixget(gshmem_ctx_t ctx, void *dest, const void *source,
                                  const size_t *index, const int *pes, int pe, size_t element,
                                  size_t n, int nbi)
{
    struct indexed ix = {.call = "ixget",
                         .ctx = ctx,
                         .each = TRANSPORT_GET,
                         .element = element,
                         .object = (char *)source,
                         .local = dest,
                         .index = index,
                         .pes = pes,
                         .pe = pe,
                         .nbi = nbi != 0,
                         .n = n};

    return indexed_call(&ix, !nbi);
}

/* Steps that move data: puts, gets, letters, stores in order, contexts, several threads. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "program.h"
#include "record.h"
#include "runtime/base/clock.h"
#include "wrap.h"

enum { THREADS = 2, BUFFER = 1 << 16 };

static int other_pe(struct program *p)
{
    return (int)chance_below(&p->chance, (uint64_t)p->n);
}

/* Bytes of the next write to a slot: mostly few, now and then all that is left. */
static size_t next_size(struct program *p, int target)
{
    static const size_t most[] = {8, 64, 1000, 5000, BUFFER};
    const size_t left = p->slot_bytes - p->written[target],
                 bytes = 1 + chance_below(&p->chance, most[chance_below(&p->chance, 5)]);

    return bytes < left ? bytes : left;
}

/* What this PE has written to that slot must be complete before it begins again there. */
static bool make_room(struct program *p, int target)
{
    if (p->written[target] < p->slot_bytes)
        return true;
    if (!TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet"))
        return false;
    p->written[target] = p->checked[target] = 0;
    return true;
}

/* Notes in the model what is to be in the slot, and returns where; the bytes stay as they are until
 * the next quiet. */
static unsigned char *write_next(struct program *p, int target, size_t bytes)
{
    unsigned char *due = p->expected + (size_t)target * p->slot_bytes + p->written[target];

    model_fill(due, bytes, chance_next(&p->chance));
    return due;
}

static unsigned char *slot_of(struct program *p, size_t at)
{
    return p->slots + (size_t)p->me * p->slot_bytes + at;
}

static bool put_once(struct program *p, int target)
{
    const size_t bytes = next_size(p, target), at = p->written[target];
    unsigned char *due = write_next(p, target, bytes), *there = slot_of(p, at);
    unsigned char *copy;
    bool fine;

    switch (chance_below(&p->chance, 3)) {
    case 0:
        fine = TRY(p, gshmem_putmem_nbi(there, due, bytes, target));
        break;
    case 1: /* a blocking put's source may be used again at once */
        copy = malloc(bytes);
        memcpy(copy, due, bytes);
        fine = TRY(p, gshmem_putmem(there, copy, bytes, target));
        memset(copy, 0xee, bytes);
        free(copy);
        break;
    default:
        fine = TRY(p, gshmem_ctx_putmem(GSHMEM_CTX_DEFAULT, there, due, bytes, target));
    }
    p->written[target] = at + bytes;
    return fine;
}

bool step_put(struct program *p)
{
    for (uint64_t n = 1 + chance_below(&p->chance, 40); n; n--) {
        const int target = other_pe(p);
        if (!make_room(p, target) || !put_once(p, target))
            return false;
        if (chance_one_in(&p->chance, 16) &&
            (!TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet")))
            return false;
        if (chance_one_in(&p->chance, 16) && !TRY(p, gshmem_fence()))
            return false;
    }
    if (chance_one_in(&p->chance, 3))
        return true; /* a later quiet completes them */
    return TRY(p, gshmem_quiet()) && model_check_written(p, "quiet");
}

bool step_get(struct program *p)
{
    unsigned char got[CONSTANT_BYTES], due[CONSTANT_BYTES];

    for (uint64_t n = 1 + chance_below(&p->chance, 12); n; n--) {
        const int from = other_pe(p);
        const size_t at = chance_below(&p->chance, CONSTANT_BYTES),
                     bytes = 1 + chance_below(&p->chance, CONSTANT_BYTES - at);
        const bool later = chance_one_in(&p->chance, 2);
        memset(got, 0, sizeof got);
        if (later
                ? !TRY(p, gshmem_getmem_nbi(got, p->area->constant + at, bytes, from)) ||
                      !TRY(p, gshmem_quiet())
                : !TRY(p, gshmem_getmem(got, p->area->constant + at, bytes, from)))
            return false;
        model_fill(due, sizeof due, (uint64_t)from);
        if (model_can_get(p, from) && memcmp(got, due + at, bytes) != 0) {
            world_fail("PE %d: a get of %zu bytes from PE %d brought others", p->me, bytes, from);
            return false;
        }
    }
    return true;
}

bool step_strided(struct program *p)
{
    const int target = other_pe(p);
    const ptrdiff_t stride = (ptrdiff_t)chance_between(&p->chance, 1, 5);
    const size_t n = chance_between(&p->chance, 1, 60);
    unsigned char got[8 * 60 * 5];

    if (!TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet"))
        return false;
    p->written[target] = p->checked[target] = 0;
    unsigned char *due = write_next(p, target, n * 8);
    if (!TRY(p, gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, slot_of(p, 0), due, 1, 1, 8, n, target)))
        return false;
    p->written[target] = n * 8;
    if (!TRY(p, gshmem_quiet()) || !model_check_written(p, "a quiet behind iput"))
        return false;
    memset(got, 0, sizeof got);
    if (!TRY(p,
             gshmem_ctx_igetmem(GSHMEM_CTX_DEFAULT, got, slot_of(p, 0), stride, 1, 8, n, target)))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (model_can_get(p, target) &&
            memcmp(got + i * (size_t)stride * 8, due + i * 8, 8) != 0) {
            world_fail("PE %d: element %zu of an iget from PE %d is wrong", p->me, i, target);
            return false;
        }
    }
    return true;
}

/* To the next PE, with a signal that counts; and from the one before. */
bool step_letters(struct program *p)
{
    const int next = (p->me + 1) % p->n, before = (p->me + p->n - 1) % p->n;
    unsigned char due[sizeof p->area->letter];

    for (uint64_t n = 1 + chance_below(&p->common, 6); n; n--) {
        const uint64_t number = ++p->letters, bytes = 1 + chance_below(&p->common, sizeof due);
        model_fill(due, bytes, number * 1000 + (uint64_t)p->me);
        if (chance_one_in(&p->chance, 2)
                ? !TRY(p, gshmem_putmem_signal(p->area->letter, due, bytes, &p->area->signal,
                                               number, GSHMEM_SIGNAL_SET, next))
                : !TRY(p, gshmem_putmem_signal_nbi(p->area->letter, due, bytes, &p->area->signal,
                                                   number, GSHMEM_SIGNAL_SET, next)) ||
                      !TRY(p, gshmem_quiet()))
            return false;
        uint64_t got;
        TRY_VALUE(p, &got,
                  gshmem_signal_wait_until(&p->area->signal, GSHMEM_CMP_GE, number));
        if (p->failed)
            return false;
        model_fill(due, bytes, number * 1000 + (uint64_t)before);
        if (got != number || memcmp(p->area->letter, due, bytes) != 0) {
            world_fail("PE %d: letter %llu of PE %d is not as it was sent (signal %llu)", p->me,
                       (unsigned long long)number, before, (unsigned long long)got);
            return false;
        }
        /* The next letter comes once this one has been read. */
        if (!TRY(p, gshmem_signal_add(&p->area->added, 1, before)))
            return false;
        TRY_VALUE(p, &got, gshmem_signal_wait_until(&p->area->added, GSHMEM_CMP_GE, number));
        if (p->failed)
            return false;
    }
    return true;
}

/* Two stores with a fence between, to the next PE; each PE watches its own pair. */
bool step_ordered(struct program *p)
{
    const int next = (p->me + 1) % p->n;

    for (uint64_t n = 1 + chance_below(&p->common, 20); n; n--) {
        p->orders++;
        if (!TRY(p, gshmem_uint64_p(&p->area->ordered[0], p->orders, next)) ||
            !TRY(p, gshmem_fence()) ||
            !TRY(p, gshmem_uint64_p(&p->area->ordered[1], p->orders, next)) ||
            !TRY(p, gshmem_fence()) || !model_check_order(model_peer(p, next)))
            return false;
    }
    return true;
}

/* A context of its own: its quiet completes what it has issued. */
bool step_context(struct program *p)
{
    const int target = other_pe(p);
    gshmem_ctx_t ctx;
    bool fine = true;

    if (!make_room(p, target) || !TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet") ||
        !TRY(p, gshmem_ctx_create(chance_one_in(&p->chance, 2) ? GSHMEM_CTX_PRIVATE : 0, &ctx)))
        return false;
    for (uint64_t n = 1 + chance_below(&p->chance, 8); n && fine; n--) {
        if (p->written[target] == p->slot_bytes)
            break;
        const size_t bytes = next_size(p, target), at = p->written[target];
        unsigned char *due = write_next(p, target, bytes);
        fine = TRY(p, gshmem_ctx_putmem_nbi(ctx, slot_of(p, at), due, bytes, target));
        p->written[target] = at + bytes;
    }
    if (fine && chance_one_in(&p->chance, 2))
        fine = TRY(p, gshmem_ctx_quiet(ctx)) && model_check_written(p, "a context's quiet");
    return TRY(p, gshmem_ctx_destroy(ctx)) && fine &&
           model_check_written(p, "a context's destruction");
}

/* ---- Several threads ---- */

struct helper {
    struct program *p;
    struct chance chance;
    gshmem_status_t status;
    uint64_t added[2]; /* to whom, and how much */
};

static void *helper_main(void *argument)
{
    struct helper *h = argument;
    const int target = (int)chance_below(&h->chance, (uint64_t)h->p->n);

    h->added[0] = (uint64_t)target;
    for (uint64_t n = 1 + chance_below(&h->chance, 30); n && !h->status; n--) {
        const uint64_t value = chance_below(&h->chance, 1000);
        h->status = gshmem_uint64_atomic_add(&h->p->area->sum, value, target);
        h->added[1] += value;
        if (!h->status && chance_one_in(&h->chance, 4))
            h->status = gshmem_quiet();
    }
    h->status = h->status ? h->status : gshmem_quiet();
    return NULL;
}

bool step_threads(struct program *p)
{
    struct helper helper[THREADS];
    pthread_t thread[THREADS];
    bool fine = true;

    for (int i = 0; i < THREADS; i++) {
        helper[i] = (struct helper){.p = p, .chance = {.state = chance_next(&p->chance)}};
        simulated_pthread_create(&thread[i], NULL, helper_main, &helper[i]);
    }
    program_enter(p, "threads that add", false);
    for (int i = 0; i < THREADS; i++) {
        __wrap_pthread_join(thread[i], NULL);
        model_added((int)helper[i].added[0], helper[i].added[1]);
        fine &= program_leave(p, helper[i].status);
    }
    return fine;
}

bool step_compute(struct program *p)
{
    clock_sleep(chance_below(&p->chance, chance_one_in(&p->chance, 4) ? 300 * MS : 2 * MS));
    return true;
}

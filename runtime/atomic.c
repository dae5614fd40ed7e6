/* Atomics, out of line: whatever inline code could not do. */
#include <stdbool.h>
#include <string.h>

#include "runtime/base/atomic_type.h"
#include "runtime/context.h"
#include "runtime/memory/device_heap.h"

static const char *const names[] = {
    [GSHMEM_AMO_FETCH] = "atomic_fetch", [GSHMEM_AMO_SET] = "atomic_set",
    [GSHMEM_AMO_SWAP] = "atomic_swap",   [GSHMEM_AMO_COMPARE_SWAP] = "atomic_compare_swap",
    [GSHMEM_AMO_ADD] = "atomic_add",     [GSHMEM_AMO_AND] = "atomic_and",
    [GSHMEM_AMO_OR] = "atomic_or",       [GSHMEM_AMO_XOR] = "atomic_xor",
};

enum { AMO_COUNT = sizeof names / sizeof names[0] };

const char *atomic_name(int op)
{
    return (unsigned)op < AMO_COUNT ? names[op] : NULL;
}

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
static uint64_t apply(enum gshmem_amo op, int type, uint64_t old, uint64_t operand,
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
        at, &old, (uint32_t)apply(op, type, old, (uint32_t)operand, (uint32_t)compare), true,
        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return old;
}

static uint64_t update64(enum gshmem_amo op, int type, uint64_t *at, uint64_t operand,
                         uint64_t compare)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, apply(op, type, old, operand, compare), true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return old;
}

uint64_t atomic_apply(enum gshmem_amo op, int type, void *at, uint64_t operand, uint64_t compare)
{
    return atomic_type_bytes(type) == 4 ? update32(op, type, at, operand, compare)
                                 : update64(op, type, at, operand, compare);
}

/* Its owner's proxy applies it, with the same CPU's atomics as those who have it mapped. */
static gshmem_status_t apply_afar(struct context *c, const struct target *t, enum gshmem_amo op,
                                  int type, uint64_t operand, uint64_t compare, uint64_t *old)
{
    struct transport_request request = {
        .kind = TRANSPORT_ATOMIC,
        .pe = t->pe,
        .segment = t->segment,
        .offset = t->offset,
        .amo = op,
        .type = type,
        .operand = operand,
        .compare = compare,
    };

    if (old)
        return network_errand(job->network, &request, names[op], old);
    request.flags = TRANSPORT_MORE;
    return network_post(job->network, &c->pending, &request, names[op]);
}

/* On GPU memory the CPU has copies alone: one of 4 or 8 bytes, aligned, is made in one piece. All else
 * would be another agent's updates beside the GPU's, of which one could be lost. */
static gshmem_status_t apply_by_device(const struct target *t, enum gshmem_amo op, size_t bytes,
                                       const void *target, uint64_t operand, uint64_t *old)
{
    uint64_t was = 0;
    gshmem_status_t status;

    if (op == GSHMEM_AMO_SET && !old)
        return device_heap_copy(job->device_heap, t->device, &operand, bytes);
    if (op != GSHMEM_AMO_FETCH || !old)
        return context_refuse_device(target, names[op]);
    if (!(status = device_heap_copy(job->device_heap, &was, t->device, bytes)))
        *old = was;
    return status;
}

gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target,
                                   uint64_t operand, uint64_t compare, uint64_t *old, int pe)
{
    size_t bytes = atomic_type_bytes(type);
    struct target target_there;

    if ((unsigned)op >= AMO_COUNT || bytes == 0)
        return fail(GSHMEM_ERR_ARGUMENT, "atomic operation %d on type %d does not exist", (int)op,
                    type);
    if ((uintptr_t)target % bytes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %p is not aligned to its %zu bytes", names[op],
                    target, bytes);
    struct context *c = context_find(ctx, names[op]);
    if (!c)
        return last_error_status();
    gshmem_status_t status = context_aim(c, target, bytes, pe, names[op], &target_there);
    if (status)
        return status;
    if (target_there.device)
        return apply_by_device(&target_there, op, bytes, target, operand, old);
    if (!target_there.here)
        return apply_afar(c, &target_there, op, type, operand, compare, old);
    uint64_t was = atomic_apply(op, type, target_there.here, operand, compare);
    if (old)
        *old = was;
    return GSHMEM_OK;
}

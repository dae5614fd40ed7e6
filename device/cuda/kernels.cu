/* The kernel that performs requests: operations on streams, and what the CPU asks for that it
 * cannot do to GPU memory itself. One block calls what any kernel may call (gshmem_device.h), and
 * says how it went.
 *
 * Compiled by nvcc when GSHMEM is built and carried in gshmem-cuda.so; kernel.c loads it. Updates
 * and waits are made by one thread. All else is the block's. */
#include "device/cuda/collect.cuh"
#include "device/cuda/scan.cuh"
#include "device/request.h"

namespace
{

/* ---- Updates --------------------------------------------------------------------------------- */

/* The updates of gshmem/atomic.h; what is none of them was refused by cuda_update_start, and
 * ends the kernel. */
template <class T> __device__ T update(T *at, int op, T operand, T compare)
{
    switch (op) {
#define X(name, number, text, fetching, ...)                                                       \
    case GSHMEM_AMO_##name:                                                                        \
        return gshmem_kernel_update<GSHMEM_AMO_##fetching>(at, operand, compare);
        GSHMEM_AMO_TABLE(X)
#undef X
    }
    __trap();
    return operand;
}

template <class T>
__device__ gshmem_status_t update_as(const struct device_request *r, uint64_t *old)
{
    /* Between fences: as a CPU's update for another PE, it comes after all that was done before the
     * request, and before all that is done once it has been answered. */
    __threadfence_system();
    *old = gshmem_bits_of(update((T *)r->dest, r->op, gshmem_of_bits<T>(r->value[0]),
                                 gshmem_of_bits<T>(r->value[1])));
    __threadfence_system();
    return GSHMEM_OK;
}

/* A type in a switch, if atomics (or waits) work on it. Signed integers are updated as the
 * unsigned ones of their size. */
#define IF_yes(...) __VA_ARGS__
#define IF_no(...)
#define UPDATED_sint(in_kernels) gshmem_unsigned<sizeof(in_kernels)>::type
#define UPDATED_uint(in_kernels) in_kernels
#define UPDATED_real(in_kernels) in_kernels

__device__ gshmem_status_t perform_update(const struct device_request *r, uint64_t *old)
{
    switch (r->type) {
#define X(name, number, text, c_type, in_kernels, class, atomics, waits)                           \
    IF_##atomics(case GSHMEM_TYPE_##name: return update_as<UPDATED_##class(in_kernels)>(r, old);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return GSHMEM_ERR_ARGUMENT;
}

/* ---- Waits ----------------------------------------------------------------------------------- */

template <class T> __device__ gshmem_status_t wait_for(const struct device_request *r)
{
    const T value = (T)r->value[0];

    if (r->call == DEVICE_WAIT_ONE)
        return gshmem_kernel_wait_until((const T *)r->source, r->op, value);
    const struct gshmem_kernel_set<T> set = {
        (const T *)r->source, (size_t)r->n,
            (const int *)r->status, r->op, r->vector ? (const T *)r->dest : &value, r->vector
    };
    return gshmem_kernel_wait_all(set);
}

__device__ gshmem_status_t perform_wait(const struct device_request *r)
{
    switch (r->type) {
#define X(name, number, text, c_type, in_kernels, class, atomics, waits)                           \
    IF_##waits(case GSHMEM_TYPE_##name: return wait_for<in_kernels>(r);)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return GSHMEM_ERR_ARGUMENT;
}

/* ---- One element ----------------------------------------------------------------------------- */

template <class T> __device__ gshmem_status_t p(const struct device_request *r, int part)
{
    T value;

    memcpy(&value, &r->value[part], sizeof value);
    return gshmem_kernel_p(GSHMEM_CTX_DEFAULT, (T *)r->dest + part, value, r->pe);
}

__device__ gshmem_status_t perform_p(const struct device_request *r)
{
    gshmem_status_t status;

    switch (r->n) {
    case 1:
        return p<uint8_t>(r, 0);
    case 2:
        return p<uint16_t>(r, 0);
    case 4:
        return p<uint32_t>(r, 0);
    case 8:
        return p<uint64_t>(r, 0);
    case 16:
        status = p<uint64_t>(r, 0);
        return status ? status : p<uint64_t>(r, 1);
    }
    return GSHMEM_ERR_ARGUMENT;
}

/* ---- All of them ----------------------------------------------------------------------------- */

__device__ gshmem_status_t perform_by_thread(const struct device_request *r, uint64_t *old)
{
    switch (r->call) {
    case DEVICE_UPDATE:
        return perform_update(r, old);
    case DEVICE_P:
        return perform_p(r);
    case DEVICE_SIGNAL:
        return gshmem_kernel_signal(GSHMEM_CTX_DEFAULT, (uint64_t *)r->sig_addr, r->value[0], r->op,
                                    r->pe);
    case DEVICE_QUIET:
        return gshmem_kernel_quiet(GSHMEM_CTX_DEFAULT);
    case DEVICE_FLUSH:
        return gshmem_kernel_flush_sources<GSHMEM_SCOPE_THREAD>(GSHMEM_CTX_DEFAULT);
    case DEVICE_WAIT_ONE:
    case DEVICE_WAIT_ALL:
        return perform_wait(r);
    }
    return GSHMEM_ERR_ARGUMENT;
}

__device__ gshmem_status_t perform_copy(const struct device_request *r)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    void *dest = (void *)r->dest;
    const void *source = (const void *)r->source;

    switch (r->call) {
    case DEVICE_PUT:
        return gshmem_kernel_put<by, false>(GSHMEM_CTX_DEFAULT, dest, source, r->n, r->pe);
    case DEVICE_GET:
        return gshmem_kernel_get<by, false>(GSHMEM_CTX_DEFAULT, dest, source, r->n, r->pe);
    case DEVICE_IPUT:
        return gshmem_kernel_strided<by, true>(GSHMEM_CTX_DEFAULT, dest, source, r->dst, r->sst, 1,
                                               r->element, r->n, r->pe);
    case DEVICE_IGET:
        return gshmem_kernel_strided<by, false>(GSHMEM_CTX_DEFAULT, dest, source, r->dst, r->sst, 1,
                                                r->element, r->n, r->pe);
    case DEVICE_PUT_SIGNAL:
        return gshmem_kernel_put_signal<by, false>(GSHMEM_CTX_DEFAULT, dest, source, r->n,
                                                   (uint64_t *)r->sig_addr, r->value[0], r->op,
                                                   r->pe);
    }
    return GSHMEM_ERR_ARGUMENT;
}

/* Reductions of the types that kernels of programs have, of the small ones, which those include
 * a header for, and sums of complex numbers, each of which is two sums. */
#define CASE_small(type, in_kernels)                                                               \
    case type:                                                                                     \
        return gshmem_kernel_reduce_as<by, in_kernels>(what, r->op, r->team, dest, source, r->n);
#define CASE_pair(type, in_kernels)                                                                \
    case type:                                                                                     \
        if (r->op == GSHMEM_OP_SUM)                                                                \
            return gshmem_kernel_reduce_any<by>(what, gshmem_type_of<in_kernels>(), r->op,         \
                                                r->team, dest, source,                             \
                                                gshmem_kernel_times(r->n, 2));                     \
        break;
#define CASE_sint(type, in_kernels)
#define CASE_uint(type, in_kernels)
#define CASE_real(type, in_kernels)
#define CASE_wide(type, in_kernels)

__device__ gshmem_status_t perform_reduction(const struct device_request *r)
{
    const enum gshmem_scope by = GSHMEM_SCOPE_BLOCK;
    const enum gshmem_collective what =
        r->call == DEVICE_REDUCE ? GSHMEM_COLLECTIVE_REDUCE : GSHMEM_COLLECTIVE_REDUCESCATTER;
    void *dest = (void *)r->dest;
    const void *source = (const void *)r->source;

    if (!gshmem_op_is_for(r->op, gshmem_class_of(r->type)))
        return gshmem_kernel_reduce_none<by>(what, r->type, r->op, r->team);
    switch (r->type) {
#define X(name, number, text, c_type, in_kernels, class, ...)                                      \
    CASE_##class(GSHMEM_TYPE_##name, in_kernels)
        GSHMEM_TYPE_TABLE(X)
#undef X
    }
    return gshmem_kernel_reduce_any<by>(what, r->type, r->op, r->team, dest, source, r->n);
}

__device__ gshmem_status_t perform_collective(const struct device_request *r)
{
    const struct strides strides = {r->dst, r->sst, r->element, r->n};
    void *dest = (void *)r->dest;
    const void *source = (const void *)r->source;

    switch (r->call) {
    case DEVICE_SYNC:
        return gshmem_team_sync_block(r->team);
    case DEVICE_BARRIER:
        return gshmem_barrier_block(r->team);
    case DEVICE_BROADCAST:
        return gshmem_broadcastmem_block(r->team, dest, source, r->n, r->pe);
    case DEVICE_FCOLLECT:
        return gshmem_fcollectmem_block(r->team, dest, source, r->n);
    case DEVICE_ALLTOALL:
        return gshmem_alltoallmem_block(r->team, dest, source, r->n);
    case DEVICE_COLLECT:
        return collect(r->team, dest, source, r->n);
    case DEVICE_ALLTOALLS:
        return alltoalls(r->team, dest, source, &strides);
    case DEVICE_INSCAN:
    case DEVICE_EXSCAN:
        return scan(r->team, r->call == DEVICE_INSCAN, r->type, dest, source, r->n);
    case DEVICE_REDUCE:
    case DEVICE_REDUCESCATTER:
        return perform_reduction(r);
    }
    return GSHMEM_ERR_ARGUMENT;
}

__device__ gshmem_status_t perform(const struct device_request *r, uint64_t *old)
{
    gshmem_status_t status = GSHMEM_OK;

    switch (r->call) {
    case DEVICE_UPDATE:
    case DEVICE_P:
    case DEVICE_SIGNAL:
    case DEVICE_WAIT_ONE:
    case DEVICE_WAIT_ALL:
    case DEVICE_QUIET:
    case DEVICE_FLUSH:
        if (gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() == 0)
            status = perform_by_thread(r, old);
        return status;
    case DEVICE_PUT:
    case DEVICE_GET:
    case DEVICE_IPUT:
    case DEVICE_IGET:
    case DEVICE_PUT_SIGNAL:
        return perform_copy(r);
    default:
        return perform_collective(r);
    }
}

} // namespace

#ifdef GSHMEM_HOST_DEVICE
#define __grid_constant__
#endif

/* The status goes where the CPU looks for it, or else to the error policy, by the proxy. */
extern "C" __global__ void gshmem_perform(const __grid_constant__ struct device_request r)
{
    uint64_t old = 0;
    gshmem_status_t status = perform(&r, &old);

    if (gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>() != 0)
        return;
    if (r.answer) {
        struct device_answer *answer = (struct device_answer *)r.answer;
        answer->old = old;
        answer->outcome = (uint64_t)status;
    } else {
        gshmem_raise(status);
    }
}

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

template <class T> __device__ T update(T *at, int op, T operand, T compare)
{
    switch (op) {
    case GSHMEM_AMO_FETCH:
        return gshmem_kernel_update<GSHMEM_AMO_FETCH>(at, operand, compare);
    case GSHMEM_AMO_COMPARE_SWAP:
        return gshmem_kernel_update<GSHMEM_AMO_COMPARE_SWAP>(at, operand, compare);
    case GSHMEM_AMO_ADD:
        return gshmem_kernel_update<GSHMEM_AMO_ADD>(at, operand, compare);
    case GSHMEM_AMO_AND:
        return gshmem_kernel_update<GSHMEM_AMO_AND>(at, operand, compare);
    case GSHMEM_AMO_OR:
        return gshmem_kernel_update<GSHMEM_AMO_OR>(at, operand, compare);
    case GSHMEM_AMO_XOR:
        return gshmem_kernel_update<GSHMEM_AMO_XOR>(at, operand, compare);
    default: /* SET and SWAP: cuda_update_start has refused what is no atomic. With these two as cases, and a return
              * behind the switch, gcc 12 compiled the simulation's OR and XOR without their operand. */
        return gshmem_kernel_update<GSHMEM_AMO_SWAP>(at, operand, compare);
    }
}

template <class T> __device__ uint64_t update_bits(const struct device_request *r)
{
    return gshmem_bits_of(update((T *)r->dest, r->op, gshmem_of_bits<T>(r->value[0]),
                                 gshmem_of_bits<T>(r->value[1])));
}

/* Between fences: as a CPU's update for another PE, it comes after all that was done before the
 * request, and before all that is done once it has been answered. */
__device__ uint64_t perform_update(const struct device_request *r)
{
    uint64_t old;

    __threadfence_system();
    if (r->type == GSHMEM_TYPE_FLOAT)
        old = update_bits<float>(r);
    else if (r->type == GSHMEM_TYPE_DOUBLE)
        old = update_bits<double>(r);
    else if (r->type == GSHMEM_TYPE_INT32 || r->type == GSHMEM_TYPE_UINT32)
        old = update_bits<uint32_t>(r);
    else
        old = update_bits<uint64_t>(r);
    __threadfence_system();
    return old;
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
    case GSHMEM_TYPE_INT16:
        return wait_for<int16_t>(r);
    case GSHMEM_TYPE_UINT16:
        return wait_for<uint16_t>(r);
    case GSHMEM_TYPE_INT32:
        return wait_for<int32_t>(r);
    case GSHMEM_TYPE_UINT32:
        return wait_for<uint32_t>(r);
    case GSHMEM_TYPE_INT64:
        return wait_for<int64_t>(r);
    default:
        return wait_for<uint64_t>(r);
    }
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
    default:
        status = p<uint64_t>(r, 0);
        return r->n == 16 && !status ? p<uint64_t>(r, 1) : status;
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

__device__ gshmem_status_t perform_by_thread(const struct device_request *r, uint64_t *old)
{
    switch (r->call) {
    case DEVICE_UPDATE:
        *old = perform_update(r);
        return GSHMEM_OK;
    case DEVICE_P:
        return perform_p(r);
    case DEVICE_SIGNAL:
        return gshmem_kernel_signal(GSHMEM_CTX_DEFAULT, (uint64_t *)r->sig_addr, r->value[0], r->op,
                                    r->pe);
    case DEVICE_QUIET:
        return gshmem_kernel_quiet(GSHMEM_CTX_DEFAULT);
    default:
        return perform_wait(r);
    }
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
    default:
        return gshmem_kernel_put_signal<by, false>(GSHMEM_CTX_DEFAULT, dest, source, r->n,
                                                   (uint64_t *)r->sig_addr, r->value[0], r->op,
                                                   r->pe);
    }
}

/* Reductions of the types that kernels of programs have, of half and bfloat16, which those include a
 * header for, and sums of complex numbers, each of which is two sums. */
__device__ gshmem_status_t perform_reduction(const struct device_request *r)
{
    const enum gshmem_collective what =
        r->call == DEVICE_REDUCE ? GSHMEM_COLLECTIVE_REDUCE : GSHMEM_COLLECTIVE_REDUCESCATTER;
    const bool half = r->type == GSHMEM_TYPE_HALF || r->type == GSHMEM_TYPE_BFLOAT16;
    const bool complex = r->type == GSHMEM_TYPE_COMPLEXF || r->type == GSHMEM_TYPE_COMPLEXD;
    void *dest = (void *)r->dest;
    const void *source = (const void *)r->source;

    if (half && (unsigned)r->op < GSHMEM_OP_AND)
        return r->type == GSHMEM_TYPE_HALF
                   ? gshmem_kernel_reduce_as<GSHMEM_SCOPE_BLOCK, __half>(what, r->op, r->team, dest,
                                                                         source, r->n)
                   : gshmem_kernel_reduce_as<GSHMEM_SCOPE_BLOCK, __nv_bfloat16>(
                         what, r->op, r->team, dest, source, r->n);
    if (!complex || r->op != GSHMEM_OP_SUM)
        return gshmem_kernel_reduce_any<GSHMEM_SCOPE_BLOCK>(what, r->type, r->op, r->team, dest,
                                                            source, r->n);
    return gshmem_kernel_reduce_any<GSHMEM_SCOPE_BLOCK>(
        what, r->type == GSHMEM_TYPE_COMPLEXF ? GSHMEM_TYPE_FLOAT : GSHMEM_TYPE_DOUBLE, r->op,
        r->team, dest, source, gshmem_kernel_times(r->n, 2));
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
    default:
        return perform_reduction(r);
    }
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

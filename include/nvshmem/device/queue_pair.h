/* NVSHMEM's queue pairs in kernels: a handle names a context, which has a channel of its own to the
 * proxy, and its own completion. nvshmem/qp.h has the typed operations. */
#ifndef NVSHMEM_DEVICE_QUEUE_PAIR_H
#define NVSHMEM_DEVICE_QUEUE_PAIR_H

#include "nvshmem/base.h"

/* NULL: there is none. */
GSHMEM_KERNEL const struct gshmem_device_pairs *nvshmem_pairs(void)
{
    const struct gshmem_device_job *job = gshmem_device_here.ctx.job;

    if (!job)
        return NULL;
#ifdef GSHMEM_HOST_DEVICE
    return __atomic_load_n(&job->pairs, __ATOMIC_ACQUIRE); /* of memory_tell_pointer's release */
#else
    return *(const struct gshmem_device_pairs *const volatile *)&job->pairs;
#endif
}

/* acquire: pairs with the release with which the library has stored the count */
GSHMEM_KERNEL uint64_t nvshmem_pairs_made(const struct gshmem_device_pairs *pairs)
{
    return pairs ? gshmem_device_load_acquire(&pairs->n) : 0;
}

/* Without a job the default context's operations say so. */
GSHMEM_KERNEL gshmem_ctx_t nvshmem_qp_ctx(nvshmemx_qp_handle_t qp)
{
    const struct gshmem_device_pairs *pairs = nvshmem_pairs();
    const uint64_t number = (uint64_t)((int64_t)qp - GSHMEM_QUEUE_PAIRS_FROM);

    if (qp == NVSHMEMX_QP_DEFAULT || qp == NVSHMEMX_QP_ANY || qp == NVSHMEMX_QP_HOST)
        return GSHMEM_CTX_DEFAULT;
    return number < nvshmem_pairs_made(pairs) ? pairs->ctx[number] : GSHMEM_CTX_INVALID;
}

GSHMEM_KERNEL void nvshmemx_qp_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                         nvshmemx_qp_handle_t qp_index)
{
    gshmem_raise(gshmem_kernel_signal(nvshmem_qp_ctx(qp_index), sig_addr, signal, sig_op, pe));
}

/* ---- Order, and completion ------------------------------------------------------------------- */

template <bool quiet> GSHMEM_KERNEL gshmem_status_t nvshmem_qp_order(gshmem_ctx_t ctx)
{
    return quiet ? gshmem_kernel_quiet(ctx) : gshmem_kernel_fence(ctx);
}

/* All queue pairs, the default one included; thread `first` of `step` takes every step'th. */
template <bool quiet>
GSHMEM_KERNEL_RARE gshmem_status_t nvshmem_qp_order_all(unsigned first, unsigned step)
{
    const struct gshmem_device_pairs *pairs = nvshmem_pairs();
    const uint64_t made = nvshmem_pairs_made(pairs);
    gshmem_status_t status = GSHMEM_OK;

    for (uint64_t i = first; i < 1 + made; i += step) {
        gshmem_status_t one =
            nvshmem_qp_order<quiet>(i == 0 ? GSHMEM_CTX_DEFAULT : pairs->ctx[i - 1]);
        status = status ? status : one;
    }
    return status;
}

template <bool quiet>
GSHMEM_KERNEL gshmem_status_t nvshmem_qp_order_some(const nvshmemx_qp_handle_t *qp, int n,
                                                    unsigned first, unsigned step)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int64_t i = first; i < n; i += step) {
        gshmem_status_t one = qp[i] == NVSHMEMX_QP_ALL
                                  ? nvshmem_qp_order_all<quiet>(0, 1)
                                  : nvshmem_qp_order<quiet>(nvshmem_qp_ctx(qp[i]));
        status = status ? status : one;
    }
    return status;
}

/* The proxy logs what is wrong with a call. */
GSHMEM_KERNEL_RARE gshmem_status_t nvshmem_qp_refuse(int pe, const nvshmemx_qp_handle_t *qp, int n)
{
    const struct gshmem_device_ctx *c = &gshmem_device_here.ctx;
    struct gshmem_command command = {};

    if (pe != NVSHMEMX_PE_ALL && !gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_refuse(c, command, pe, false);
    if (n >= 0 && (n == 0 || n == NVSHMEMX_QP_ALL || qp))
        return GSHMEM_OK;
    command.kind = GSHMEM_COMMAND_REFUSE;
    command.local = GSHMEM_REFUSED_PAIRS;
    command.size = (uint64_t)(int64_t)n;
    return gshmem_kernel_ask(c, &command, NULL, NULL);
}

/* Threads of a warp or block take the queue pairs in turn. The operations of all threads come
 * before: a thread's fence or quiet also covers what it has seen of others' stores. */
template <int scope, bool quiet>
GSHMEM_KERNEL void nvshmem_qp_order_by(int pe, const nvshmemx_qp_handle_t *qp, int n)
{
    const unsigned first = gshmem_kernel_rank<scope>(), step = gshmem_kernel_size<scope>();
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    if (first == 0)
        status = nvshmem_qp_refuse(pe, qp, n);
    status = gshmem_kernel_agree<scope>(status);
    if (!status) {
        status = n == NVSHMEMX_QP_ALL ? nvshmem_qp_order_all<quiet>(first, step)
                                      : nvshmem_qp_order_some<quiet>(qp, n, first, step);
        status = gshmem_kernel_agree<scope>(status);
    }
    gshmem_kernel_raise_once<scope>(status);
}

/* For operations to one PE, or to NVSHMEMX_PE_ALL. A call that names one PE covers all. */
#define NVSHMEM_QP_ORDER(ending, scope)                                                            \
    GSHMEM_KERNEL void nvshmemx_qp_quiet##ending(int pe, nvshmemx_qp_handle_t *qp_handle,          \
                                                 int num_qps)                                      \
    {                                                                                              \
        nvshmem_qp_order_by<scope, true>(pe, qp_handle, num_qps);                                  \
    }                                                                                              \
    GSHMEM_KERNEL void nvshmemx_qp_fence##ending(int pe, nvshmemx_qp_handle_t *qp_handle,          \
                                                 int num_qps)                                      \
    {                                                                                              \
        nvshmem_qp_order_by<scope, false>(pe, qp_handle, num_qps);                                 \
    }

NVSHMEM_QP_ORDER(, GSHMEM_SCOPE_THREAD)
NVSHMEM_QP_ORDER(_warp, GSHMEM_SCOPE_WARP)
NVSHMEM_QP_ORDER(_block, GSHMEM_SCOPE_BLOCK)
#undef NVSHMEM_QP_ORDER

#endif

/* fence, quiet and flush. All concern the operations that the PE has issued on the context, in
 * kernels too: the kernels' part is in include/gshmem/device/order.h and proxy/contexts.c, and
 * proxy/README.md has the rule.
 *
 * - To a mapped peer an operation is a load or a store of this CPU, complete when the instruction
 *   is. A fence keeps stores in order. A quiet makes them visible to all PEs before any later
 *   operation, loads included.
 * - To any other peer, a transport is told of the fence with the next request, and keeps the order
 *   without a wait. A quiet waits until all requests are complete, a flush until the transport has
 *   read the sources of all puts. */
#include <stdatomic.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/network/network.h"
#include "runtime/proxy/kernels.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"

gshmem_status_t gshmem_ctx_fence(gshmem_ctx_t ctx)
{
    struct context *c = context_find(ctx, "gshmem_fence");
    gshmem_status_t status;

    if (!c)
        return last_error_status();
    if (c->kernel && (status = kernels_fence(c->kernel, "gshmem_fence")))
        return status;
    network_fence(job->network);
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_fence();
    /* pairs with the acquire of the PE that reads what is stored after it
     * (wait_until_load, gshmem_signal_fetch) */
    atomic_thread_fence(memory_order_acq_rel);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_ctx_quiet(gshmem_ctx_t ctx)
{
    struct context *c = context_find(ctx, "gshmem_quiet");
    RANGE("gshmem_quiet");

    return c ? context_quiet(c, "gshmem_quiet", false) : last_error_status();
}

/* Failures of the operations stay for the next quiet. */
gshmem_status_t gshmem_ctx_flush(gshmem_ctx_t ctx)
{
    struct context *c = context_find(ctx, "gshmem_flush");
    RANGE("gshmem_flush");
    gshmem_status_t status;

    if (!c)
        return last_error_status();
    status = network_flush(c->pending, "gshmem_flush");
    if (GSHMEM_UNLIKELY(job->races != NULL) && !status)
        races_flush();
    if (status || !c->kernel)
        return status;
    return job->observer->flush(c->kernel, "gshmem_flush");
}

gshmem_status_t gshmem_ctx_pe_quiet(gshmem_ctx_t ctx, const int *target_pes, size_t n)
{
    struct context *c = context_find(ctx, "gshmem_pe_quiet");

    if (!c)
        return last_error_status();
    if (!target_pes && n)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_pe_quiet: target_pes is NULL and n is %zu", n);
    for (size_t i = 0; i < n; i++) {
        if (target_pes[i] < 0 || target_pes[i] >= c->view.n_pes)
            return fail(GSHMEM_ERR_ARGUMENT,
                        "gshmem_pe_quiet: target_pes[%zu] is PE %d: the %s has PEs 0..%d", i,
                        target_pes[i],
                        c->view.team == GSHMEM_TEAM_WORLD ? "job" : "context's team",
                        c->view.n_pes - 1);
    }
    return context_quiet(c, "gshmem_pe_quiet", false);
}

gshmem_status_t gshmem_fence(void)
{
    return gshmem_ctx_fence(GSHMEM_CTX_DEFAULT);
}

gshmem_status_t gshmem_quiet(void)
{
    return gshmem_ctx_quiet(GSHMEM_CTX_DEFAULT);
}

gshmem_status_t gshmem_flush(void)
{
    return gshmem_ctx_flush(GSHMEM_CTX_DEFAULT);
}

gshmem_status_t gshmem_pe_quiet(const int *target_pes, size_t n)
{
    return gshmem_ctx_pe_quiet(GSHMEM_CTX_DEFAULT, target_pes, n);
}

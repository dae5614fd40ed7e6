/* Order, signals, waits on longs without a type in their names, and locks. */
#include "runtime/facades/openshmem/openshmem.h"

void pshmem_fence(void)
{
    settle(gshmem_fence());
}
WEAK(shmem_fence)

void pshmem_ctx_fence(shmem_ctx_t ctx)
{
    if (ctx != SHMEM_CTX_INVALID)
        settle(gshmem_ctx_fence(ctx));
}
WEAK(shmem_ctx_fence)

void pshmem_quiet(void)
{
    settle(gshmem_quiet());
}
WEAK(shmem_quiet)

void pshmem_ctx_quiet(shmem_ctx_t ctx)
{
    if (ctx != SHMEM_CTX_INVALID)
        settle(gshmem_ctx_quiet(ctx));
}
WEAK(shmem_ctx_quiet)

void pshmem_pe_quiet(const int *target_pes, size_t npes)
{
    settle(gshmem_pe_quiet(target_pes, npes));
}
WEAK(shmem_pe_quiet)

void pshmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes)
{
    if (ctx != SHMEM_CTX_INVALID)
        settle(gshmem_ctx_pe_quiet(ctx, target_pes, npes));
}
WEAK(shmem_ctx_pe_quiet)

/* ---- Signals ---- */

void pshmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe)
{
    settle(gshmem_signal_add(sig_addr, signal, pe));
}
WEAK(shmem_signal_add)

void pshmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe)
{
    settle(gshmem_signal_set(sig_addr, signal, pe));
}
WEAK(shmem_signal_set)

void pshmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    settle(gshmem_ctx_signal_add(ctx, sig_addr, signal, pe));
}
WEAK(shmem_ctx_signal_add)

void pshmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    settle(gshmem_ctx_signal_set(ctx, sig_addr, signal, pe));
}
WEAK(shmem_ctx_signal_set)

uint64_t pshmem_signal_fetch(const uint64_t *sig_addr)
{
    return gshmem_signal_fetch(sig_addr);
}
WEAK(shmem_signal_fetch)

uint64_t pshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
    return gshmem_signal_wait_until(sig_addr, cmp, cmp_value);
}
WEAK(shmem_signal_wait_until)

void pshmem_wait(long *ivar, long cmp_value)
{
    settle(gshmem_long_wait_until(ivar, GSHMEM_CMP_NE, cmp_value));
}
WEAK(shmem_wait)

void pshmem_wait_until(long *ivar, int cmp, long cmp_value)
{
    settle(gshmem_long_wait_until(ivar, cmp, cmp_value));
}
WEAK(shmem_wait_until)

/* ---- Locks ---- */

void pshmem_set_lock(long *lock)
{
    settle(gshmem_set_lock(lock));
}
WEAK(shmem_set_lock)

void pshmem_clear_lock(long *lock)
{
    settle(gshmem_clear_lock(lock));
}
WEAK(shmem_clear_lock)

int pshmem_test_lock(long *lock)
{
    int taken = gshmem_test_lock(lock);

    if (taken < 0)
        settle(gshmem_last_error(NULL));
    return taken;
}
WEAK(shmem_test_lock)

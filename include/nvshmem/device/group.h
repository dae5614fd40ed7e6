/* What NVSHMEM's warpgroups do together (four warps that follow each other in their block), and a
 * reduction that has no native name. */
#ifndef NVSHMEM_DEVICE_GROUP_H
#define NVSHMEM_DEVICE_GROUP_H

#include "nvshmem/base.h"

#define NVSHMEM_WARPGROUP 128u /* threads */

/* By one thread of each warp. The first thread of the group waits for the other warps, makes the
 * call, and stores its status; the other warps wait for that. They meet in memory of the team,
 * because the program may use all of the block's barriers. */
GSHMEM_KERNEL_RARE gshmem_status_t nvshmem_warpgroup_barrier(const struct gshmem_device_team *t,
                                                             gshmem_team_t team, unsigned warps)
{
    struct gshmem_device_rounds *r = t->rounds;
    const uint64_t calls = gshmem_device_load_acquire(&r->left) >> 8;
    gshmem_status_t failed = GSHMEM_OK, status;
    struct gshmem_kernel_wait w = {};
    uint64_t left;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_WARPGROUP, r);
    /* release, and acquire below: the first thread passes on what all warps have done before */
    gshmem_add_release(&r->arrived, 1);
    if (gshmem_kernel_thread() % NVSHMEM_WARPGROUP == 0) {
        while (gshmem_load_acquire(&r->arrived) < warps && !failed)
            failed = gshmem_kernel_wait_proxy(&w, t->ctx.job->failure);
        gshmem_kernel_waited();
        gshmem_store_relaxed(&r->arrived, 0);
        status = failed ? failed : gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, true>(team);
        gshmem_store_release(&r->left, (calls + 1) << 8 | (uint64_t)status);
        return status;
    }
    while ((left = gshmem_load_acquire(&r->left)) >> 8 == calls && !failed)
        failed = gshmem_kernel_wait_proxy(&w, t->ctx.job->failure);
    gshmem_kernel_waited();
    return left >> 8 == calls ? failed : (gshmem_status_t)(left & 255);
}

/* Called by all threads of a warpgroup. A team has one such call at a time on each PE. */
GSHMEM_KERNEL int nvshmemx_barrier_warpgroup(nvshmem_team_t team)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const unsigned threads = gshmem_kernel_size<GSHMEM_SCOPE_BLOCK>();
    const unsigned thread = gshmem_kernel_thread(), first = thread & ~(NVSHMEM_WARPGROUP - 1);
    const unsigned group =
        threads - first < NVSHMEM_WARPGROUP ? threads - first : NVSHMEM_WARPGROUP;
    gshmem_status_t status = GSHMEM_ERR_ARGUMENT;

    gshmem_kernel_sync<GSHMEM_SCOPE_WARP>();
    if (t && gshmem_kernel_rank<GSHMEM_SCOPE_WARP>() == 0)
        status = nvshmem_warpgroup_barrier(t, team, (group + 31) / 32);
    else if (!t && thread == first) /* which logs that there is no such team */
        status = gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, true>(team);
    return __shfl_sync(gshmem_kernel_lanes(), (int)status, 0);
}

/* ---- The largest, and where it is ------------------------------------------------------------ */

#define NVSHMEM_MAXLOC_AT_ONCE 32u

/* Of at most so many pairs. First all find the largest x; then the smallest y of those that have
 * it. A thread keeps its pairs meanwhile, since dest may be source. */
GSHMEM_KERNEL gshmem_status_t nvshmem_maxloc(nvshmem_team_t team, double2 *dest,
                                             const double2 *source, unsigned n)
{
    const unsigned rank = gshmem_kernel_rank<GSHMEM_SCOPE_BLOCK>();
    const unsigned size = gshmem_kernel_size<GSHMEM_SCOPE_BLOCK>();
    double2 mine[NVSHMEM_MAXLOC_AT_ONCE];

    for (unsigned i = rank, k = 0; i < n; i += size, k++) {
        mine[k] = source[i];
        dest[i].x = dest[i].y = mine[k].x;
    }
    gshmem_kernel_sync<GSHMEM_SCOPE_BLOCK>();
    gshmem_status_t status = gshmem_double_max_reduce_block(team, &dest->x, &dest->x, 2 * n);
    for (unsigned i = rank, k = 0; i < n && !status; i += size, k++)
        dest[i].y = mine[k].x == dest[i].x ? mine[k].y : __builtin_huge_val();
    gshmem_kernel_sync<GSHMEM_SCOPE_BLOCK>();
    return status ? status : gshmem_double_min_reduce_block(team, &dest->x, &dest->x, 2 * n);
}

/* dest[i] becomes the pair with the largest x of all members' source[i]; of several, that with the
 * smallest y. */
GSHMEM_KERNEL int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2 *dest,
                                                       const double2 *source, size_t nreduce)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!dest || !source) /* which logs it */
        return (int)gshmem_double_max_reduce_block(team, (double *)dest, (const double *)source,
                                                   2 * nreduce);
    for (size_t i = 0; i < nreduce && !status; i += NVSHMEM_MAXLOC_AT_ONCE) {
        const size_t left = nreduce - i;
        status =
            nvshmem_maxloc(team, dest + i, source + i,
                           left < NVSHMEM_MAXLOC_AT_ONCE ? (unsigned)left : NVSHMEM_MAXLOC_AT_ONCE);
    }
    return (int)status;
}

#endif

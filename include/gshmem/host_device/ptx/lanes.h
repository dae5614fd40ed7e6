/* Lanes of a warp in lock step, as on GPUs before Volta: where lanes part at a branch, those that
 * do not take it run first, up to the place where all ways meet; then the others run up to
 * there. */
#ifndef GSHMEM_HOST_DEVICE_PTX_LANES_H
#define GSHMEM_HOST_DEVICE_PTX_LANES_H

#include "module.h"

/* Each part is smaller than the whole that parted. Therefore parts nest at most 32 deep. */
#define PTX_LANES_HELD 32

struct ptx_lanes {
    u32 mask; /* that run together, the caller among them */
    u32 held; /* how many of these: */
    struct {
        u32 mask, place; /* who has parted, and where they meet */
        int first;       /* the caller's part runs first */
    } apart[PTX_LANES_HELD];
};

static inline u32 ptx_lanes_ballot(const struct ptx_lanes *lanes, int yes)
{
    return (u32)gshmem_host_warp(GSHMEM_HOST_WARP_BALLOT, lanes->mask, yes != 0, 0, __FILE__,
                                 __LINE__);
}

static inline void ptx_lanes_wait(u32 mask)
{
    (void)gshmem_host_warp(GSHMEM_HOST_WARP_SYNC, mask, 0, 0, __FILE__, __LINE__);
}

/* At a branch: the caller's own condition, when its part may run. */
static inline int ptx_part(struct ptx_lanes *lanes, int taken, u32 place)
{
    const u32 yes = ptx_lanes_ballot(lanes, taken), no = ptx_lanes_ballot(lanes, !taken);

    if (!yes || !no)
        return taken;
    lanes->apart[lanes->held].mask = lanes->mask;
    lanes->apart[lanes->held].place = place;
    lanes->apart[lanes->held++].first = !taken;
    if (taken)
        ptx_lanes_wait(lanes->mask); /* for the others to come to the place, or to end */
    lanes->mask = taken ? yes : no;
    return taken;
}

/* At a place where lanes meet that have parted in this function: `held` parts are its callers'. */
static inline void ptx_meet(struct ptx_lanes *lanes, u32 held, u32 place)
{
    while (lanes->held > held && lanes->apart[lanes->held - 1].place == place) {
        lanes->mask = lanes->apart[--lanes->held].mask;
        if (lanes->apart[lanes->held].first)
            ptx_lanes_wait(lanes->mask); /* lets the others run */
        ptx_lanes_wait(lanes->mask);
    }
}

#endif

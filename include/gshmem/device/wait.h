/* How a kernel waits: it polls, lets other threads run where that is necessary, and tests at
 * intervals whether the wait can still end. */
#ifndef GSHMEM_DEVICE_WAIT_H
#define GSHMEM_DEVICE_WAIT_H

#include "gshmem/device/module.h"
#include "gshmem/device/scope.h"

struct gshmem_kernel_wait {
    unsigned turns;
#ifdef GSHMEM_HOST_DEVICE
    int shown; /* enum gshmem_shown */
    const void *object;
#endif
};

/* After this many polls a wait is long: the proxy then tests whether the PEs that it depends on
 * have left the job. */
#ifdef GSHMEM_HOST_DEVICE
#define GSHMEM_TURNS_LONG 256
#else
#define GSHMEM_TURNS_LONG 65536
#endif

/* For gshmem-where, on the host device: what the wait is for. */
GSHMEM_KERNEL void gshmem_kernel_wait_is_for(struct gshmem_kernel_wait *w, int shown,
                                             const void *object)
{
#ifdef GSHMEM_HOST_DEVICE
    w->shown = shown;
    w->object = object;
#else
    (void)w;
    (void)shown;
    (void)object;
#endif
}

#ifdef GSHMEM_HOST_DEVICE
#define GSHMEM_TURNS_SHOWN 512 /* polls between two times that a wait shows itself */

GSHMEM_KERNEL_RARE void gshmem_kernel_show_wait(const struct gshmem_kernel_wait *w)
{
    char where[200];

    gshmem_host_name_thread(where, sizeof where);
    gshmem_device_show_wait(w->shown | (w->turns == GSHMEM_TURNS_SHOWN ? GSHMEM_SHOWN_FIRST : 0),
                            w->object, where);
}
#endif

/* One step of a wait for another PE. Returns GSHMEM_OK, or the status in *failure: then the wait
 * cannot end any more. It reads `failure` at intervals, since for a GPU that is a load from host
 * memory. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_step(struct gshmem_kernel_wait *w,
                                                      const uint64_t *failure)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_yield();
    if (++w->turns % 8 == 0) {
        if (w->turns == 8)
            gshmem_host_wait_begins(w->object);
        gshmem_device_receive();
        if (w->turns % GSHMEM_TURNS_SHOWN == 0)
            gshmem_kernel_show_wait(w);
    }
#else
    if (++w->turns % 1024 != 0)
        return GSHMEM_OK;
#endif
    return (gshmem_status_t)gshmem_load_relaxed(failure);
}

/* One step of a wait for this PE's proxy, which it wakes. After a peer's death the proxy goes on,
 * and its responses are failures. Therefore only the end of the job ends this wait. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_proxy(struct gshmem_kernel_wait *w,
                                                       const uint64_t *failure)
{
    gshmem_status_t status = gshmem_kernel_wait_step(w, failure);

#ifdef GSHMEM_HOST_DEVICE
    if (w->turns % 8 == 0)
        gshmem_device_help();
#endif
    return status == GSHMEM_ERR_PEER_DEAD ? GSHMEM_OK : status;
}

/* For the host device: called by an operation that programs repeat until something has arrived. */
GSHMEM_KERNEL void gshmem_kernel_may_wait(void)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_may_wait();
#endif
}

/* For the host device: called when the wait has ended. The next wait then begins by spinning. */
GSHMEM_KERNEL void gshmem_kernel_waited(void)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_progress();
#endif
}

#endif

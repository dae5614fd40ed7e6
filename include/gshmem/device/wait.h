/* How a kernel waits: it looks again, lets other threads run where they need that to be done, and
 * now and then looks whether there is still something to wait for. */
#ifndef GSHMEM_DEVICE_WAIT_H
#define GSHMEM_DEVICE_WAIT_H

#include "gshmem/device/module.h"
#include "gshmem/device/scope.h"

struct gshmem_kernel_wait {
    unsigned turns;
};

/* So many turns are a long wait: the proxy looks whether those waited for have left the job. */
#ifdef GSHMEM_HOST_DEVICE
#define GSHMEM_TURNS_LONG 256
#else
#define GSHMEM_TURNS_LONG 65536
#endif

/* For what another PE writes. GSHMEM_OK, or what *failure says: then it will not come. `failure` is
 * read now and then: for a GPU that is a trip to the host's memory. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_step(struct gshmem_kernel_wait *w,
                                                      const uint64_t *failure)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_yield();
    if (++w->turns % 8 == 0)
        gshmem_device_receive();
#else
    if (++w->turns % 1024 != 0)
        return GSHMEM_OK;
#endif
    return (gshmem_status_t)gshmem_load_relaxed(failure);
}

/* The same for what this PE's proxy does, which is woken. That goes on after a peer's death, with
 * failures as answers; only the end of the job ends it. */
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

/* For the host device: an operation that programs repeat until something has come. */
GSHMEM_KERNEL void gshmem_kernel_may_wait(void)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_may_wait();
#endif
}

/* For the host device: what was waited for has come, so others' waits begin anew. */
GSHMEM_KERNEL void gshmem_kernel_waited(void)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_host_progress();
#endif
}

#endif

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
#define GSHMEM_TURNS_TRACED 2  /* polls after which a wait is told of, for traces */
#define GSHMEM_TURNS_SHOWN 512 /* polls between two times that a wait shows itself */

GSHMEM_KERNEL_RARE void gshmem_kernel_show_wait(const struct gshmem_kernel_wait *w)
{
    char where[200];

    gshmem_host_name_thread(where, sizeof where);
    gshmem_device_show_wait(w->shown | (w->turns == GSHMEM_TURNS_SHOWN ? GSHMEM_SHOWN_FIRST : 0),
                            w->object, where);
}
#endif

/* One step of a wait. For the host device: `progress` makes the network's; word and seen as in
 * gshmem_host_yield_turn. Returns GSHMEM_OK, or the status in *failure: then the wait cannot end
 * any more. It reads `failure` at intervals, since for a GPU that is a load from host memory. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_turn(struct gshmem_kernel_wait *w,
                                                      const uint64_t *failure,
                                                      void (*progress)(void), const uint64_t *word,
                                                      uint64_t seen)
{
#ifdef GSHMEM_HOST_DEVICE
    if (gshmem_host_yield_turn(word, seen))
        progress();
    if (++w->turns == GSHMEM_TURNS_TRACED)
        gshmem_host_wait_begins(w->object);
    if (w->turns % GSHMEM_TURNS_SHOWN == 0)
        gshmem_kernel_show_wait(w);
#else
    (void)progress, (void)word, (void)seen;
    if (++w->turns % 1024 != 0)
        return GSHMEM_OK;
#endif
    return (gshmem_status_t)gshmem_load_relaxed(failure);
}

/* One step of a wait for another PE. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_step(struct gshmem_kernel_wait *w,
                                                      const uint64_t *failure)
{
#ifdef GSHMEM_HOST_DEVICE
    return gshmem_kernel_wait_turn(w, failure, gshmem_device_receive, NULL, 0);
#else
    return gshmem_kernel_wait_turn(w, failure, NULL, NULL, 0);
#endif
}

/* One step of a wait for this PE's proxy, which it wakes; the proxy will change *word, which was
 * `seen`. After a peer's death the proxy goes on, and its responses are failures. Therefore only
 * the end of the job ends this wait. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_word(struct gshmem_kernel_wait *w,
                                                      const uint64_t *failure, const uint64_t *word,
                                                      uint64_t seen)
{
#ifdef GSHMEM_HOST_DEVICE
    gshmem_status_t status = gshmem_kernel_wait_turn(w, failure, gshmem_device_help, word, seen);
#else
    gshmem_status_t status = gshmem_kernel_wait_turn(w, failure, NULL, word, seen);
#endif

    return status == GSHMEM_ERR_PEER_DEAD ? GSHMEM_OK : status;
}

/* The same without such a word. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_proxy(struct gshmem_kernel_wait *w,
                                                       const uint64_t *failure)
{
    return gshmem_kernel_wait_word(w, failure, NULL, 0);
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

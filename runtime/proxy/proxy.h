/* The proxy: the thread that drives the network while nobody waits, and takes kernels' commands.
 *
 * It sleeps when there is nothing to do. Threads that wait drive the network themselves, and while one
 * does the proxy stands aside. */
#ifndef GSHMEM_PROXY_PROXY_H
#define GSHMEM_PROXY_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/proxy/left_alone.h"
#include "runtime/proxy/pace.h"

struct network;

struct proxy {
    struct network *network;
    pthread_t thread;
    struct pace pace;
    struct left_alone left_alone;
    int wake_fd;             /* written to: there is work, or the end */
    _Atomic bool runs;
    _Atomic bool stopping;
    _Atomic bool kernels;    /* there are channels to take from */
    _Atomic bool watching;   /* it sleeps until something arrives */
    _Atomic uint64_t drives; /* how often threads that wait have driven: they need no clock for it */
    uint64_t drives_seen;    /* by the proxy, */
    uint64_t driven;         /* ns, when it last saw that somebody had */
    _Atomic uint64_t drove;  /* ns, when it last drove itself */
};

/* May be called again: does nothing if it runs. */
gshmem_status_t proxy_start(struct proxy *p, struct network *n);
void proxy_stop(struct proxy *p);
/* Ends the thread of one that runs; all else stays, for threads that may be at it, until the process ends. */
void proxy_end_thread(struct proxy *p);
void proxy_wake(struct proxy *p);

/* From here on there are kernels, whose commands nobody announces. */
void proxy_serve_kernels(struct proxy *p);

/* Says that the calling thread drives now. A proxy that still watched for arrivals would be woken by
 * each of them, which costs whoever sends some microseconds: it is sent aside. */
static inline void proxy_stand_aside(struct proxy *p)
{
    /* seq_cst: pairs with sleep_until_woken: either this sees that the proxy watches, or the proxy
     * sees that it is not needed */
    atomic_fetch_add(&p->drives, 1);
    if (atomic_load(&p->watching) && atomic_exchange(&p->watching, false))
        proxy_wake(p);
}

/* Whether the proxy drives right now: it may be asleep, or wait for a CPU. */
static inline bool proxy_is_at_it(const struct proxy *p, uint64_t now)
{
    enum { ROUND_NS = 3000 }; /* a round takes less, as a rule */

    return (int64_t)(now - atomic_load_explicit(&p->drove, memory_order_relaxed)) < ROUND_NS;
}

#endif

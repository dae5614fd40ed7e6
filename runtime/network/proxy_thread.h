/* The proxy: the thread that makes progress while no other thread waits, and takes kernels'
 * commands.
 *
 * It sleeps when there is nothing to do. Threads that wait make progress themselves, and while one
 * does, the proxy stands aside. */
#ifndef GSHMEM_RUNTIME_NETWORK_PROXY_THREAD_H
#define GSHMEM_RUNTIME_NETWORK_PROXY_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/network/left_alone.h"
#include "runtime/network/proxy_pace.h"
#include "runtime/stats/stats.h"

/* What the thread does, as the network gives it. `n` is the network of each. */
struct network;
struct proxy_work {
    bool (*round)(struct network *n); /* one round of progress; whether anything happened */
    bool (*ask)(struct network *n); /* the end of a round, for rounds of other threads */
    int (*wait_fd)(const struct network *n);
    bool (*fall_asleep)(struct network *n); /* false: there is work after all */
    void (*wake_up)(struct network *n);
    bool (*shares_cpu)(const struct network *n); /* with the PEs that the proxy works for */
    void (*look_around)(struct network *n); /* regularly */
    /* Where there are kernels: hands failures to the error policy; looks after them, regularly. */
    void (*raise)(struct network *n);
    void (*look_after)(struct network *n);
};

struct proxy {
    struct network *network;
    int number; /* of this proxy among those of the PE, from 0; set before proxy_start */
    const struct proxy_work *work;
    pthread_t thread;
    struct pace pace;
    struct left_alone left_alone;
    int wake_fd;             /* written to when there is work, or at the end */
    _Atomic bool runs;
    _Atomic bool stopping;
    _Atomic bool kernels;    /* there are channels to take commands from */
    _Atomic bool watching;   /* it sleeps until something arrives */
    _Atomic uint64_t drives; /* how often threads that wait have made progress, which they count
                                without a clock */
    uint64_t drives_seen;    /* the value of drives when the proxy last read it */
    uint64_t driven;         /* ns, when the proxy last saw that another thread had made progress */
    _Atomic uint64_t drove;  /* ns, when the proxy last made progress itself */
    struct stats_block *counts; /* NULL: nobody counts */
    uint64_t counted;        /* ns, up to when its time is counted, */
    enum stats_value spent;  /* and what the time since then is spent on */
};

/* May be called again: does nothing if it runs. */
gshmem_status_t proxy_start(struct proxy *p, struct network *n, const struct proxy_work *work);
void proxy_stop(struct proxy *p);
/* Ends the thread. All state stays until the process ends, for threads that may be using it. */
void proxy_end_thread(struct proxy *p);
void proxy_wake(struct proxy *p);

/* From now on there are kernels, whose commands do not wake the proxy. */
void proxy_serve_kernels(struct proxy *p);

/* Announces that the calling thread makes progress now. Each message would wake a proxy that still
 * waits for arrivals, which costs the sender some microseconds: so the proxy is told to stop
 * waiting for them. */
static inline void proxy_stand_aside(struct proxy *p)
{
    /* seq_cst: pairs with sleep_until_woken. Either this thread sees that the proxy watches, or the
     * proxy sees that it is not needed. */
    atomic_fetch_add(&p->drives, 1);
    if (atomic_load(&p->watching) && atomic_exchange(&p->watching, false))
        proxy_wake(p);
}

/* Whether the proxy makes progress right now: it may be asleep, or wait for a CPU. */
static inline bool proxy_is_at_it(const struct proxy *p, uint64_t now)
{
    enum { ROUND_NS = 3000 }; /* a round usually takes less */

    return (int64_t)(now - atomic_load_explicit(&p->drove, memory_order_relaxed)) < ROUND_NS;
}

#endif

/* What the proxy does next: drive, stand aside, spin or sleep. Nothing but arithmetic on the
 * time that it is told, so that a test can be the clock. */
#ifndef GSHMEM_RUNTIME_NETWORK_PROXY_PACE_H
#define GSHMEM_RUNTIME_NETWORK_PROXY_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/clock.h"

enum pace_step {
    PACE_DRIVE,
    PACE_SPIN,        /* drive again at once */
    PACE_YIELD,       /* the same, after others that need this CPU */
    PACE_STAND_ASIDE, /* a thread that waits is driving: look again a little later */
    PACE_SLEEP,       /* until woken, or until `sleep_ns` are over */
};

enum {
    PACE_LATELY_NS = 100 * 1000,      /* who drove since then still waits, or will again */
    PACE_ASIDE_NS = 100 * 1000,       /* how long driving is left to it, at first */
    PACE_ASIDE_MOST_NS = 1000 * 1000, /* and after a while, where no kernels wait for the proxy */
    PACE_LOOK_NS = 20 * 1000 * 1000,  /* how often to look whether the other PEs live */
    PACE_SLEEP_NS = 1000 * 1000, /* the first sleep after work; then twice as long, up to a look */
};

struct pace {
    bool oversubscribed;      /* spinning takes a CPU from those who are waited for */
    bool bounded;      /* work may come that wakes nobody */
    uint64_t idle_ns;  /* how long to spin after there was work */
    uint64_t sleep_ns; /* where bounded, how long to sleep next */
    uint64_t aside_ns; /* how long to stand aside */
    uint64_t worked;   /* when there was work last */
    uint64_t looked;
};

/* Whether somebody else drives, who may have begun after `now` was read. */
static inline bool pace_driven(uint64_t now, uint64_t driven)
{
    return (int64_t)(now - driven) < PACE_LATELY_NS;
}

/* Before it makes progress: whether another thread does. The longer others have, the longer the
 * proxy leaves them alone (docs/decisions/0005). */
static inline enum pace_step pace_before(struct pace *p, uint64_t now, uint64_t driven)
{
    if (!pace_driven(now, driven)) {
        p->aside_ns = 0;
        return PACE_DRIVE;
    }
    p->aside_ns = p->aside_ns == 0 || p->bounded ? PACE_ASIDE_NS : 2 * p->aside_ns;
    if (p->aside_ns > PACE_ASIDE_MOST_NS)
        p->aside_ns = PACE_ASIDE_MOST_NS;
    return PACE_STAND_ASIDE;
}

/* After driving. */
static inline enum pace_step pace_after(struct pace *p, uint64_t now, bool worked)
{
    if (worked) {
        p->worked = now;
        p->sleep_ns = 0;
    }
    if (now - p->worked < p->idle_ns)
        return p->oversubscribed ? PACE_YIELD : PACE_SPIN;
    if (worked)
        return PACE_SPIN;
    p->sleep_ns = p->sleep_ns ? 2 * p->sleep_ns : PACE_SLEEP_NS;
    if (p->sleep_ns > PACE_LOOK_NS)
        p->sleep_ns = PACE_LOOK_NS;
    return PACE_SLEEP;
}

/* Whether it is time to look after the others. */
static inline bool pace_look(struct pace *p, uint64_t now)
{
    if (now - p->looked < PACE_LOOK_NS)
        return false;
    p->looked = now;
    return true;
}

#endif

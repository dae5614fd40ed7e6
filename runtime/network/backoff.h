/* Whether a wait for another node holds this CPU for some 15 us, in which the message of a node
 * that is not late arrives, rather than let the PEs run that wait for this one. That pays unless
 * the other node is late again and again, since it may need this very CPU (docs/decisions/0004).
 * Nothing but arithmetic, so that a test can be the other node. */
#ifndef GSHMEM_RUNTIME_NETWORK_BACKOFF_H
#define GSHMEM_RUNTIME_NETWORK_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BACKOFF_STEPS = 32,
    BACKOFF_PAUSE_MOST = 127, /* waits without it, after some in which nothing came in time */
};

struct backoff {
    bool had;       /* by the last wait, */
    bool in_vain;   /* which has used all of it */
    uint32_t pause; /* waits without it, the longer the more often it was in vain; */
    uint32_t left;  /* so many of them are to come */
};

/* How many steps the next wait may take before it lets others run. */
static inline uint32_t backoff_begin(struct backoff *p)
{
    if (p->had) {
        p->pause = p->in_vain ? 2 * p->pause + 1 : p->pause / 2;
        if (p->pause > BACKOFF_PAUSE_MOST)
            p->pause = BACKOFF_PAUSE_MOST;
        p->left = p->pause;
    }
    p->in_vain = false;
    p->had = p->left == 0;
    if (p->had)
        return BACKOFF_STEPS;
    p->left--;
    return 0;
}

/* One of them has brought nothing; how many are left. */
static inline uint32_t backoff_step(struct backoff *p, uint32_t steps)
{
    p->in_vain = steps == 1;
    return steps - 1;
}

#endif

/* A timer that the poller watches. When it has expired, `expired` is true until its user resets
 * it. */
#ifndef GSHMEM_TRANSPORT_TCP_TIMER_H
#define GSHMEM_TRANSPORT_TCP_TIMER_H

#include "transport/tcp/poller.h"

struct timer {
    struct stream stream;
    uint64_t at;   /* ns, when a single shot is due; 0: none is set */
    bool periodic; /* it expires again and again */
    bool expired;
};

/* False: the system refused (errno). poller_end of its stream closes it. */
bool timer_open(struct timer *timer, struct poller *p);
/* Expires every so many milliseconds; 0: never. */
void timer_set_period(struct timer *timer, int ms);
/* Expires once, at that time of clock_ns. */
void timer_set_once(struct timer *timer, uint64_t ns);

#endif

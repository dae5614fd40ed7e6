#define _GNU_SOURCE
#include "transport/tcp/timer.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"

/* Several expirations that were not read count as one: a process that was stopped does not hold the
 * time against its peers. */
static bool timer_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    struct timer *timer = (struct timer *)s;
    uint64_t times;

    (void)t, (void)events;
    timer->expired = read(s->fd, &times, sizeof times) == sizeof times;
    return true;
}

bool timer_open(struct timer *timer, struct poller *p)
{
    int fd = descriptor_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));

    *timer = (struct timer){.stream = {.ready = timer_ready, .fd = fd}};
    return fd >= 0 && poller_watch(p, &timer->stream, EPOLLIN);
}

void timer_set_period(struct timer *timer, int ms)
{
    const struct timespec period = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    const struct itimerspec every = {period, period};

    timerfd_settime(timer->stream.fd, 0, &every, NULL);
    timer->periodic = ms > 0;
}

void timer_set_once(struct timer *timer, uint64_t ns)
{
    const struct itimerspec once = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};

    timerfd_settime(timer->stream.fd, TFD_TIMER_ABSTIME, &once, NULL);
    timer->at = ns;
}

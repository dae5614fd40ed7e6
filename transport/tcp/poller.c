#define _GNU_SOURCE
#include "transport/tcp/poller.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/count.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/system.h"

enum {
    EVENTS = 64,
    DESCRIPTORS_MOST = 1 << 20,
    POLL_ALL_LEAST = 8, /* rounds from one poll of all streams to the next, */
    POLL_ALL_MOST = 32, /* and where those polls find only the likely streams */
};

bool poller_open(struct poller *p, struct tcp *owner)
{
    p->owner = owner;
    p->round = p->polled_all = count_first();
    p->watched = calloc(DESCRIPTORS_MOST / 64, sizeof *p->watched);
    p->epoll_fd = descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
    return p->watched && p->epoll_fd >= 0;
}

void poller_close(struct poller *p)
{
    if (p->epoll_fd >= 0)
        close(p->epoll_fd);
    free(p->watched);
}

static void note_watched(struct poller *p, int fd, bool watched)
{
    const uint64_t bit = 1ull << fd % 64;

    if (fd >= DESCRIPTORS_MOST)
        return;
    if (watched)
        p->watched[fd / 64] |= bit;
    else
        p->watched[fd / 64] &= ~bit;
}

bool poller_watch(struct poller *p, struct stream *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    if (system_epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) != 0)
        return false;
    note_watched(p, s->fd, true);
    return true;
}

bool poller_change(struct poller *p, struct stream *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    return system_epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, s->fd, &e) == 0;
}

/* close() alone leaves the stream in the set while a child of fork holds the socket too: epoll
 * would continue to report it, by the address of memory that has been freed. */
void poller_end(struct poller *p, struct stream *s)
{
    if (p->last == s)
        p->last = p->regular = NULL;
    if (p->requested == s)
        p->requested = NULL;
    if (s->fd < 0)
        return;
    system_epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    note_watched(p, s->fd, false); /* before another stream gets that number */
    close(s->fd);
    s->fd = -1;
    s->wants_out = false;
}

void poller_want_out(struct poller *p, struct stream *s, bool wanted)
{
    if (wanted)
        p->poll_all_after = 0; /* other streams have their turn before this one sends more */
    if (s->wants_out == wanted)
        return;
    if (poller_change(p, s, EPOLLIN | (wanted ? EPOLLOUT : 0)))
        s->wants_out = wanted;
}

int poller_poll_all(struct poller *p)
{
    struct epoll_event event[EVENTS];
    int n = system_epoll_wait(p->epoll_fd, event, EVENTS, 0);
    bool others = false;

    for (int i = 0; i < n; i++)
        others |= event[i].data.ptr != p->regular && event[i].data.ptr != p->requested;
    p->polled_all = p->round;
    if (others || !p->poll_all_after)
        p->poll_all_after = POLL_ALL_LEAST;
    else if (p->poll_all_after < POLL_ALL_MOST)
        p->poll_all_after *= 2;
    for (int i = 0; i < n; i++) {
        struct stream *s = event[i].data.ptr;
        s->ready(p->owner, s, event[i].events);
    }
    return n;
}

void poller_leave_parent(const struct poller *p)
{
    for (int i = 0; i < DESCRIPTORS_MOST / 64; i++) {
        for (uint64_t left = p->watched[i]; left; left &= left - 1)
            close(i * 64 + __builtin_ctzll(left));
    }
}

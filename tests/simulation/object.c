/* Descriptors, epoll, poll, eventfd and timerfd. */
#define _GNU_SOURCE
#include "object.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "events.h"
#include "explore.h"
#include "fiber.h"
#include "network.h"
#include "nth.h"
#include "process.h"
#include "runtime/base/system.h"

struct object *object_new(enum object_kind kind)
{
    struct pe *pe = fiber_current->pe;
    struct object *o = calloc(1, sizeof *o);
    int i = 0;

    while (i < pe->objects && pe->object[i])
        i++;
    if (i == pe->objects) {
        const int more = pe->objects ? 2 * pe->objects : 16;
        pe->object = realloc(pe->object, (size_t)more * sizeof *pe->object);
        for (int k = pe->objects; pe->object && k < more; k++)
            pe->object[k] = NULL;
        pe->objects = more;
    }
    if (!o || !pe->object) {
        perror("simulation: descriptors");
        exit(2);
    }
    *o = (struct object){.kind = kind, .pe = pe, .fd = DESCRIPTOR_FIRST + i};
    pe->object[i] = o;
    return o;
}

struct object *object_of(int fd)
{
    const struct pe *pe = fiber_current ? fiber_current->pe : NULL;

    return pe && fd >= DESCRIPTOR_FIRST && fd - DESCRIPTOR_FIRST < pe->objects
               ? pe->object[fd - DESCRIPTOR_FIRST]
               : NULL;
}

/* Leaves out of the list what is not ready any more. */
static bool set_is_ready(struct object *set)
{
    while (set->ready) {
        struct watch *w = set->ready;
        if (object_events(w->object) & (w->events | EPOLLERR | EPOLLHUP))
            return true;
        w->listed = false;
        if (!(set->ready = w->next))
            set->ready_last = NULL;
    }
    return false;
}

uint32_t object_events(struct object *o)
{
    switch (o->kind) {
    case OBJECT_SOCKET:
        return socket_events(o->socket);
    case OBJECT_EPOLL:
        return set_is_ready(o) ? EPOLLIN : 0;
    case OBJECT_EVENT:
        return EPOLLOUT | (o->count ? EPOLLIN : 0);
    default:
        return o->count ? EPOLLIN : 0;
    }
}

static void list(struct watch *w)
{
    if (w->listed)
        return;
    w->listed = true;
    w->next = NULL;
    if (w->set->ready_last)
        w->set->ready_last->next = w;
    else
        w->set->ready = w;
    w->set->ready_last = w;
}

static int poll_now(const struct pe *pe, struct pollfd *fds, nfds_t n)
{
    int ready = 0;

    for (nfds_t i = 0; i < n; i++) {
        const int at = fds[i].fd - DESCRIPTOR_FIRST;
        struct object *o = at >= 0 && at < pe->objects ? pe->object[at] : NULL;
        if (fiber_current && fiber_current->pe == pe)
            explore_touch(pe, o && o->kind != OBJECT_EVENT ? pe->object : (void *)o, false);
        fds[i].revents = 0;
        if (o)
            fds[i].revents =
                (short)(object_events(o) & ((uint32_t)fds[i].events | POLLERR | POLLHUP));
        else if (fds[i].fd >= DESCRIPTOR_FIRST)
            fds[i].revents = POLLNVAL;
        ready += fds[i].revents != 0;
    }
    return ready;
}

void object_changed(struct object *o)
{
    const uint32_t events = object_events(o);

    for (struct watch *w = o->watches; w; w = w->of_object) {
        if (events & (w->events | EPOLLERR | EPOLLHUP))
            list(w);
    }
    for (struct fiber *f = o->pe->fibers; f; f = f->next) {
        if (f->blocked && f->fds && poll_now(o->pe, f->fds, f->n_fds))
            fiber_wake(f);
    }
}

static void unlist(struct watch *w)
{
    struct watch **at = &w->set->ready, *before = NULL;

    while (w->listed && *at != w) {
        before = *at;
        at = &(*at)->next;
    }
    if (!w->listed)
        return;
    *at = w->next;
    if (w->set->ready_last == w)
        w->set->ready_last = before;
    w->listed = false;
}

static void unwatch(struct object *o, struct object *set)
{
    for (struct watch **at = &o->watches, *w; (w = *at);) {
        if (set && w->set != set) {
            at = &w->of_object;
            continue;
        }
        unlist(w);
        *at = w->of_object;
        free(w);
    }
}

void object_close(struct object *o)
{
    struct pe *pe = o->pe;

    pe->object[o->fd - DESCRIPTOR_FIRST] = NULL;
    if (o->kind == OBJECT_SOCKET)
        socket_close(o->socket);
    unwatch(o, NULL);
    for (int i = 0; o->kind == OBJECT_EPOLL && i < pe->objects; i++) {
        if (pe->object[i])
            unwatch(pe->object[i], o);
    }
    o->generation++;
    if (o->kind != OBJECT_TIMER) /* an event may still name it */
        free(o);
}

/* ---- The seam ---- */

int system_poll(struct pollfd *fds, nfds_t n, int64_t ns)
{
    if (NTH(poll))
        return -1;
    struct fiber *f = fiber_current;
    const uint64_t until = ns < 0 ? NEVER : f->now + (uint64_t)ns;
    int ready;

    fiber_call();
    if ((ready = poll_now(f->pe, fds, n)) || ns == 0)
        return ready;
    f->fds = fds;
    f->n_fds = n;
    fiber_block(until);
    f->fds = NULL;
    return poll_now(f->pe, fds, n);
}

int system_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (NTH(epoll_ctl))
        return -1;
    struct object *set = object_of(epoll), *o = object_of(fd);
    struct watch *w = o ? o->watches : NULL;

    fiber_call();
    if (!set || !o || set->kind != OBJECT_EPOLL) {
        errno = EBADF;
        return -1;
    }
    while (w && w->set != set)
        w = w->of_object;
    if ((op == EPOLL_CTL_ADD) == (w != NULL)) {
        errno = w ? EEXIST : ENOENT;
        return -1;
    }
    if (op == EPOLL_CTL_DEL) {
        unwatch(o, set);
        return 0;
    }
    if (!w) {
        if (!(w = calloc(1, sizeof *w))) {
            errno = ENOMEM;
            return -1;
        }
        *w = (struct watch){.object = o, .set = set, .of_object = o->watches};
        o->watches = w;
    }
    w->events = event->events;
    w->data = event->data;
    if (object_events(o) & (w->events | EPOLLERR | EPOLLHUP)) {
        list(w);
        object_changed(o);
    }
    return 0;
}

/* The transport never waits in it. Who is ready stays listed, behind the others. */
int system_epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    if (NTH(epoll_wait))
        return -1;
    struct object *set = object_of(epoll);
    struct watch *last;
    int n = 0;

    fiber_call();
    explore_touch(fiber_current->pe, fiber_current->pe->object, false);
    if (!set || set->kind != OBJECT_EPOLL || ms != 0) {
        errno = EINVAL;
        return -1;
    }
    last = set->ready_last;
    for (struct watch *w, *end = NULL; n < most && (w = set->ready) && end != last;) {
        const uint32_t is = object_events(w->object) & (w->events | EPOLLERR | EPOLLHUP);
        end = w;
        unlist(w);
        if (!is)
            continue;
        events[n++] = (struct epoll_event){.events = is, .data = w->data};
        list(w);
    }
    if (n > 1 && chance_one_in(&world.schedule, 2)) { /* the order is the system's affair */
        const uint64_t k = chance_below(&world.schedule, (uint64_t)n);
        const struct epoll_event e = events[0];
        events[0] = events[k];
        events[k] = e;
    }
    return n;
}

static void timer_fire(void *object, uint64_t generation)
{
    struct object *o = object;

    if (o->generation != generation || o->pe->dead)
        return;
    o->count++;
    if (o->period)
        events_add(world.now + o->period, timer_fire, o, generation);
    object_changed(o);
}

static uint64_t ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

int system_timerfd_settime(int fd, int flags, const struct itimerspec *when)
{
    if (NTH(timerfd_settime))
        return -1;
    struct object *o = object_of(fd);
    const uint64_t value = ns_of(&when->it_value);
    uint64_t at = fiber_time() + value;

    fiber_call();
    if (!o || o->kind != OBJECT_TIMER) {
        errno = EBADF;
        return -1;
    }
    o->generation++;
    o->count = 0;
    o->period = ns_of(&when->it_interval);
    if (flags & TFD_TIMER_ABSTIME)
        at = process_time_at(o->pe, value);
    if (value)
        events_add(at > fiber_time() ? at : fiber_time(), timer_fire, o, o->generation);
    return 0;
}

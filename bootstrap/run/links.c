#define _GNU_SOURCE
#include "bootstrap/run/links.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool links_add(struct links *l, int fd, enum links_kind kind, int number)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | (uint32_t)number};

    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

bool links_start(struct links *l, int n, int epoll)
{
    *l = (struct links){.n = n, .epoll = epoll, .link = malloc((size_t)n * sizeof *l->link)};
    for (int i = 0; l->link && i < n; i++)
        l->link[i] = (struct link){-1, -1};
    return l->link != NULL;
}

void links_stop(struct links *l)
{
    for (int i = 0; i < l->n; i++) {
        links_close(l, i);
        links_unwatch(l, i);
    }
    free(l->link);
}

bool links_add_other(struct links *l, int fd)
{
    return links_add(l, fd, LINKS_OTHER, fd);
}

int links_open(struct links *l, int pe)
{
    const int on = 1;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        !links_add(l, ends[0], LINKS_WIRE, pe)) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    l->link[pe].wire = ends[0];
    return ends[1];
}

void links_close(struct links *l, int pe)
{
    if (l->link[pe].wire >= 0)
        close(l->link[pe].wire);
    l->link[pe].wire = -1;
}

ssize_t links_receive(struct links *l, int pe, unsigned char *message, size_t room, pid_t *sender)
{
    /* Room for the sender alone: descriptors that a PE would send along are not taken. */
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {message, room};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(l->link[pe].wire, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
        c->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
        struct ucred from;
        memcpy(&from, CMSG_DATA(c), sizeof from);
        *sender = from.pid;
    }
    return n;
}

bool links_hung_up(const struct links *l, int pe)
{
    struct pollfd p = {.fd = l->link[pe].wire, .events = POLLIN};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

bool links_send(void *context, int pe, const unsigned char *message, size_t bytes)
{
    struct links *l = context;

    if (l->link[pe].wire < 0)
        return true;
    ssize_t n = send(l->link[pe].wire, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* Only a PE that asks and does not listen can have no room for an answer. */
    return n >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

bool links_watch(struct links *l, int pe, pid_t pid)
{
    links_unwatch(l, pe);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        /* EINVAL: only its process group is left. Else an old kernel, or a shortage: the wrapper's
         * end will tell. */
        return errno != ESRCH && errno != EINVAL;
    if (links_add(l, fd, LINKS_WATCH, pe))
        l->link[pe].watch = fd;
    else
        close(fd);
    return true;
}

bool links_watched_has_ended(const struct links *l, int pe)
{
    struct pollfd p = {.fd = l->link[pe].watch, .events = POLLIN};

    return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

void links_unwatch(struct links *l, int pe)
{
    if (l->link[pe].watch >= 0)
        close(l->link[pe].watch);
    l->link[pe].watch = -1;
}

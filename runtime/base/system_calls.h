/* The seam of system.h, which includes this, in a normal build: each function is the call. */
#ifndef GSHMEM_BASE_SYSTEM_CALLS_H
#define GSHMEM_BASE_SYSTEM_CALLS_H

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool system_random(void *to, size_t bytes)
{
    return getrandom(to, bytes, 0) == (ssize_t)bytes;
}

static inline void system_futex(void *word, int op, uint32_t value, const struct timespec *most)
{
    syscall(SYS_futex, word, op, value, most, NULL, 0);
}

static inline int system_socket(int domain, int type)
{
    return socket(domain, type, 0);
}

static inline int system_bind(int fd, struct sockaddr_storage *name, socklen_t *size, int backlog)
{
    struct sockaddr *at = (struct sockaddr *)name;

    if (bind(fd, at, *size) != 0 || (backlog > 0 && listen(fd, backlog) != 0))
        return -1;
    *size = sizeof *name;
    return getsockname(fd, at, size);
}

static inline int system_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    return connect(fd, to, size);
}

static inline int system_accept(int fd, struct sockaddr_storage *from, int flags)
{
    socklen_t size = sizeof *from;

    return accept4(fd, (struct sockaddr *)from, from ? &size : NULL, flags);
}

static inline ssize_t system_send(int fd, const void *from, size_t bytes, int flags)
{
    return send(fd, from, bytes, flags);
}

static inline ssize_t system_recv(int fd, void *to, size_t bytes, int flags)
{
    return recv(fd, to, bytes, flags);
}

static inline ssize_t system_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return sendmsg(fd, message, flags);
}

static inline ssize_t system_recvmsg(int fd, struct msghdr *message, int flags)
{
    return recvmsg(fd, message, flags);
}

static inline int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return setsockopt(fd, level, name, value, size);
}

static inline int system_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    return getsockopt(fd, level, name, value, size);
}

static inline int system_poll(struct pollfd *fds, nfds_t n, int64_t ns)
{
    const struct timespec most = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};

    return ppoll(fds, n, ns < 0 ? NULL : &most, NULL);
}

static inline int system_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return epoll_ctl(epoll, op, fd, event);
}

static inline int system_epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    return epoll_wait(epoll, events, most, ms);
}

static inline int system_timerfd_settime(int fd, int flags, const struct itimerspec *when)
{
    return timerfd_settime(fd, flags, when, NULL);
}

#endif

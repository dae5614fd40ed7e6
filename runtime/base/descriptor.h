/* Descriptors of the library's own, none of which is standard input, output or error; and
 * descriptors that arrive with a message over a Unix socket, with their senders. */
#ifndef GSHMEM_BASE_DESCRIPTOR_H
#define GSHMEM_BASE_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptor that a call has just returned, or one above 2 in its place: in a program with
 * closed standard input, output or error, the program's output must not go into a file of the
 * library's. -1 with errno: the call failed, or there was no other number. */
static inline int descriptor_keep(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;

    close(fd);
    errno = error;
    return higher;
}

/* For a program of ours, before it opens anything: standard descriptors that are closed become
 * /dev/null. */
static inline int descriptor_fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -1;
    return close(fd);
}

/* Room for one descriptor, and for the sender's user where the socket has SO_PASSCRED. The padding
 * of a control message has room for a second descriptor, which the kernel then delivers as well. */
union descriptor_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* The descriptor that arrived. -1: none arrived or could be kept, or there were several, which no
 * PE of this job sends. A descriptor that is not returned does not stay open. */
static inline int descriptor_take(struct msghdr *message)
{
    int taken = -1, fds = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
            if (fds++ == 0)
                taken = fd;
            else
                close(fd);
        }
    }
    if (fds > 1) {
        close(taken);
        taken = -1;
    }
    return descriptor_keep(taken);
}

/* PEs of one job have one user; root may do anything in any case. */
static inline bool descriptor_user_is_ours(const struct ucred *who)
{
    return who->uid == geteuid() || who->uid == 0;
}

/* Whether a process of this user sent the message, by a socket with SO_PASSCRED. */
static inline bool descriptor_sender_is_ours(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        struct ucred who;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
            c->cmsg_len != CMSG_LEN(sizeof who))
            continue;
        memcpy(&who, CMSG_DATA(c), sizeof who);
        return descriptor_user_is_ours(&who);
    }
    return false;
}

/* Whether a process of this user is at the other end of a stream. */
static inline bool descriptor_peer_is_ours(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && descriptor_user_is_ours(&who);
}

#endif

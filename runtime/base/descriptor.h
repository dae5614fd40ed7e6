/* A descriptor that came with a message over a Unix socket. */
#ifndef GSHMEM_BASE_DESCRIPTOR_H
#define GSHMEM_BASE_DESCRIPTOR_H

#include <string.h>
#include <sys/socket.h>

/* -1: none came. */
static inline int descriptor_take(struct msghdr *message)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    int fd;

    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof fd))
        return -1;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

#endif

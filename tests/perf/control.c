/*
 * Preloaded into a peer, gives its TCP connections the congestion control $TCP_CONTROL, so that all
 * that is compared has the same.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol);

/* A connection that is accepted has what its listening socket has. */
int socket(int domain, int type, int protocol)
{
    static int (*next)(int, int, int);
    const char *control = getenv("TCP_CONTROL");

    if (!next)
        next = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    const int fd = next(domain, type, protocol);
    if (fd < 0 || !control || (domain != AF_INET && domain != AF_INET6) || (type & 0xf) != SOCK_STREAM)
        return fd;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control)) != 0) {
        perror("TCP_CONTROL");
        exit(1);
    }
    return fd;
}

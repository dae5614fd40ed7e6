#define _GNU_SOURCE
#include "runtime/base/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"

enum {
    BACKLOG = 4096,
    PORTS_TRIED = 100, /* each is free at the first address; another process may have it at the next
                          one */
};

static in_port_t *port_in(struct sockaddr_storage *name)
{
    return name->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)name)->sin6_port
                                       : &((struct sockaddr_in *)name)->sin_port;
}

/* Port 0: the system chooses one. Returns a descriptor, or -1 with errno. */
static int listen_at(struct sockaddr_storage name, uint16_t *port)
{
    socklen_t size = name.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    const int on = 1;
    int fd = descriptor_keep(socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -1;
    *port_in(&name) = htons(*port);
    if ((name.ss_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
        bind(fd, (struct sockaddr *)&name, size) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&name, &size) == 0) {
        *port = ntohs(*port_in(&name));
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* With a port that the system chooses for the first address; 0, with errno: not possible with this
 * port. */
static uint16_t try_port(const struct sockaddr_storage *where, int n, int *fd)
{
    uint16_t port = 0;
    bool fine = true;

    for (int i = 0; i < n; i++) {
        fd[i] = fine ? listen_at(where[i], &port) : -1;
        fine &= fd[i] >= 0 || errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
    }
    if (fine)
        return port;
    int error = errno;
    for (int i = 0; i < n; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
    errno = error;
    return 0;
}

uint16_t listen_on_all(const struct sockaddr_storage *where, int n, int *fd)
{
    uint16_t port = 0;

    for (int tries = 0; tries < PORTS_TRIED && !port; tries++) {
        port = try_port(where, n, fd);
        if (!port && errno != EADDRINUSE)
            break;
    }
    return port;
}

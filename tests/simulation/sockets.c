/* Sockets, as the library sees them. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "explore.h"
#include "fiber.h"
#include "network.h"
#include "nth.h"
#include "object.h"
#include "record.h"
#include "runtime/base/system.h"
#include "stream.h"

enum { PORT_FIRST = 40000 };

static int socket_error(int error)
{
    errno = error;
    return -1;
}

static struct socket *socket_of(int fd)
{
    struct object *o = object_of(fd);

    if (!o || o->kind != OBJECT_SOCKET) {
        errno = EBADF;
        return NULL;
    }
    return o->socket;
}

struct socket *socket_find_listener(struct pe *pe, uint16_t port)
{
    for (int k = 0; k < world.n_pes; k++) {
        const struct pe *of = &world.pe[k];
        for (int i = 0; of->node == pe->node && i < of->objects && !of->dead; i++) {
            struct object *o = of->object[i];
            if (o && o->kind == OBJECT_SOCKET && o->socket->listens && o->socket->port == port)
                return o->socket;
        }
    }
    return NULL;
}

uint32_t socket_events(const struct socket *s)
{
    if (s->listens)
        return s->queued ? EPOLLIN : 0;
    if (!s->stream)
        return EPOLLOUT | EPOLLHUP;
    const struct side *in = &s->stream->side[s->which], *out = &s->stream->side[!s->which];
    if (in->error)
        return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
    if (s->connecting)
        return 0;
    return (in->arrived || in->ended ? EPOLLIN : 0) |
           (out->used < weather.capacity ? EPOLLOUT : 0);
}

void socket_close(struct socket *s)
{
    for (int i = 0; i < s->queued; i++) {
        stream_shut(s->queue[i], 1);
        stream_release(s->queue[i]);
    }
    if (s->stream) {
        stream_shut(s->stream, s->which);
        stream_release(s->stream);
    }
    free(s);
}

static int new_socket(int family)
{
    struct socket *s = calloc(1, sizeof *s);
    struct object *o = object_new(OBJECT_SOCKET);

    if (!s)
        return socket_error(ENOMEM);
    *s = (struct socket){.object = o, .family = family};
    o->socket = s;
    return o->fd;
}

/* ---- Addresses: node n is at 10.0.0.1 + n; a Unix name is @ and the port ---- */

static uint32_t address_of(int node)
{
    return 10u << 24 | (uint32_t)(node + 1);
}

static bool name_parts(const struct sockaddr *name, uint32_t *address, uint16_t *port)
{
    if (name->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)name;
        *address = ntohl(in->sin_addr.s_addr);
        *port = ntohs(in->sin_port);
        return true;
    }
    return false;
}

/* A Unix socket of this machine. */
static int bind_here(struct socket *s, struct sockaddr_un *name, socklen_t *size, int backlog)
{
    uint16_t port = 1;

    while (socket_find_listener(s->object->pe, port))
        port++;
    s->port = port;
    s->listens = backlog > 0;
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                        (size_t)sprintf(name->sun_path + 1, "%05u", port));
    return 0;
}

static int connect_here(struct socket *s, const struct sockaddr_un *name, socklen_t size)
{
    int error;

    (void)size;
    s->stream = stream_new(s->object->pe, s->object->pe);
    stream_hold(s->stream);
    s->stream->local = true;
    s->stream->side[0].socket = s;
    error = stream_connect_here(s->stream, (uint16_t)atoi(name->sun_path + 1));
    return error ? socket_error(error) : 0;
}

/* ---- The seam ---- */

int system_socket(int domain, int type)
{
    if (NTH(socket))
        return -1;
    fiber_call();
    if (domain == AF_UNIX)
        return new_socket(domain);
    return domain != AF_INET || (type & 0xff) != SOCK_STREAM ? socket_error(EAFNOSUPPORT)
                                                             : new_socket(domain);
}

int system_bind(int fd, struct sockaddr_storage *name, socklen_t *size, int backlog)
{
    if (NTH(bind))
        return -1;
    struct socket *s = socket_of(fd);
    struct sockaddr_in *in = (struct sockaddr_in *)name;
    uint32_t address;
    uint16_t port;

    fiber_call();
    if (s && s->family == AF_UNIX)
        return bind_here(s, (struct sockaddr_un *)name, size, backlog);
    if (!s || !name_parts((const struct sockaddr *)name, &address, &port))
        return s ? socket_error(EAFNOSUPPORT) : -1;
    if (address != 0 && address >> 24 != 127 && address != address_of(s->object->pe->node))
        return socket_error(EADDRNOTAVAIL);
    if (port && socket_find_listener(s->object->pe, port))
        return socket_error(EADDRINUSE);
    for (port = port ? port : PORT_FIRST; socket_find_listener(s->object->pe, port);)
        port++;
    s->port = port;
    s->listens = backlog > 0;
    s->backlog = backlog;
    in->sin_port = htons(port);
    *size = sizeof *in;
    return 0;
}

int system_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    if (NTH(connect))
        return -1;
    struct socket *s = socket_of(fd);
    uint32_t address;
    uint16_t port;

    fiber_call();
    if (s && s->family == AF_UNIX && !s->stream)
        return connect_here(s, (const struct sockaddr_un *)to, size);
    if (!s || s->stream || !name_parts(to, &address, &port))
        return s ? socket_error(EINVAL) : -1;
    const int node = address >> 24 == 127 ? s->object->pe->node : (int)(address - address_of(0));
    int pe = 0;
    while (pe < world.n_pes && world.pe[pe].node != node)
        pe++;
    if (pe == world.n_pes)
        return socket_error(ENETUNREACH);
    s->stream = stream_new(s->object->pe, &world.pe[pe]);
    stream_hold(s->stream);
    s->connecting = true;
    struct side *side = &s->stream->side[0], *o = &s->options;
    side->socket = s;
    side->user_timeout_ms = o->user_timeout_ms;
    side->idle_s = o->idle_s;
    side->every_s = o->every_s;
    side->probes = o->probes;
    side->probed = o->probed;
    record("PE %d connects to node %d, stream %llu", s->object->pe->number, node,
           (unsigned long long)s->stream->number);
    stream_connect(s->stream, port);
    return socket_error(EINPROGRESS);
}

int system_accept(int fd, struct sockaddr_storage *from, int flags)
{
    if (NTH(accept))
        return -1;
    struct socket *listener = socket_of(fd), *s;

    (void)flags;
    fiber_call();
    if (!listener)
        return -1;
    if (!listener->queued)
        return socket_error(EAGAIN);
    const int new = new_socket(listener->family);
    s = socket_of(new);
    s->stream = listener->queue[0];
    s->which = 1;
    s->stream->side[1].socket = s;
    memmove(listener->queue, listener->queue + 1,
            (size_t)--listener->queued * sizeof *listener->queue);
    record("PE %d accepts stream %llu of PE %d", s->object->pe->number,
           (unsigned long long)s->stream->number, s->stream->side[0].pe->number);
    if (from) {
        struct sockaddr_in *in = (struct sockaddr_in *)from;
        *in = (struct sockaddr_in){
            .sin_family = AF_INET,
            .sin_addr.s_addr = htonl(address_of(s->stream->side[0].pe->node)),
            .sin_port = htons((uint16_t)(1024 + s->stream->number % 60000))};
    }
    return new;
}

/* Whether it can send or receive; errno says why not. */
static bool socket_is_usable(const struct socket *s)
{
    if (!s)
        return false;
    if (!s->stream || s->connecting) {
        errno = s->stream ? EAGAIN : ENOTCONN;
        return false;
    }
    return true;
}

ssize_t system_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (NTH(sendmsg))
        return -1;
    struct socket *s = socket_of(fd);
    size_t done = 0;

    (void)flags;
    fiber_call();
    if (!socket_is_usable(s))
        return -1;
    struct side *side = &s->stream->side[s->which];
    explore_touch(s->object->pe, s->object->pe->object, false);
    if (side->error)
        return socket_error(side->error);
    if (s->stream->side[!s->which].closed && side->ended && chance_one_in(&world.schedule, 2))
        return socket_error(EPIPE);
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *v = &message->msg_iov[i];
        const size_t n =
            v->iov_len ? stream_send(s->stream, s->which, v->iov_base, v->iov_len) : 0;
        done += n;
        if (n < v->iov_len)
            break;
    }
    if (done && message->msg_controllen) /* a descriptor goes with it */
        stream_pass(s->stream, s->which, *(int *)(void *)CMSG_DATA(CMSG_FIRSTHDR(message)));
    if (done)
        explore_advances();
    fiber_pass(done / 8); /* some 8 GB/s to copy it */
    return done ? (ssize_t)done : socket_error(EAGAIN);
}

ssize_t system_send(int fd, const void *from, size_t bytes, int flags)
{
    if (NTH(send))
        return -1;
    struct iovec v = {(void *)from, bytes};
    const struct msghdr message = {.msg_iov = &v, .msg_iovlen = 1};

    return system_sendmsg(fd, &message, flags);
}

/* Only the sockets of one machine wait in a call, and have SO_RCVTIMEO. */
static void wait_here(const struct socket *s, const struct side *side)
{
    const uint64_t end = fiber_current->now + s->receive_limit_ns;
    struct pollfd arrival = {.fd = s->object->fd, .events = POLLIN};

    while (!side->arrived && !side->ended && !side->error && fiber_current->now < end)
        system_poll(&arrival, 1, (int64_t)(end - fiber_current->now));
}

/* The descriptor that has come with what was read: one of this process's own. */
static void take_passed(struct socket *s, struct msghdr *message)
{
    const int fd = stream_passed(s->stream, s->which);
    struct cmsghdr *c = message->msg_control;

    message->msg_flags = 0;
    if (fd < 0 || !c || message->msg_controllen < CMSG_SPACE(sizeof fd)) {
        message->msg_controllen = 0;
        return;
    }
    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    message->msg_controllen = CMSG_SPACE(sizeof fd);
}

ssize_t system_recvmsg(int fd, struct msghdr *message, int flags)
{
    if (NTH(recvmsg))
        return -1;
    struct socket *s = socket_of(fd);
    size_t done = 0;

    fiber_call();
    if (!socket_is_usable(s))
        return -1;
    struct side *side = &s->stream->side[s->which];
    explore_touch(s->object->pe, s->object->pe->object, false);
    if (s->stream->local && !(flags & MSG_DONTWAIT))
        wait_here(s, side);
    for (size_t i = 0; i < message->msg_iovlen && side->arrived; i++) {
        const struct iovec *v = &message->msg_iov[i];
        const size_t n = v->iov_len ? stream_read(s->stream, s->which, v->iov_base, v->iov_len,
                                                  flags & MSG_PEEK)
                                    : 0;
        explore_stored(v->iov_base, n);
        done += n;
        if (n < v->iov_len)
            break;
    }
    if (done)
        explore_advances();
    if (s->stream->local)
        take_passed(s, message);
    fiber_pass(done / 8);
    if (done || (side->ended && !side->error))
        return (ssize_t)done;
    if (!side->error)
        return socket_error(EAGAIN);
    errno = side->error;
    return -1;
}

ssize_t system_recv(int fd, void *to, size_t bytes, int flags)
{
    if (NTH(recv))
        return -1;
    struct iovec v = {to, bytes};
    struct msghdr message = {.msg_iov = &v, .msg_iovlen = 1};

    return system_recvmsg(fd, &message, flags);
}

int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    if (NTH(setsockopt))
        return -1;
    struct socket *s = socket_of(fd);
    unsigned number = 0;

    fiber_call();
    if (!s)
        return -1;
    memcpy(&number, value, size < sizeof number ? size : sizeof number);
    struct side *o = s->stream ? &s->stream->side[s->which] : &s->options;
    if (level == SOL_SOCKET && name == SO_RCVTIMEO)
        s->receive_limit_ns = (uint64_t)((const struct timeval *)value)->tv_sec * SECOND;
    else if (level == SOL_SOCKET && name == SO_KEEPALIVE)
        o->probed = number;
    else if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
        o->user_timeout_ms = number;
    else if (level == IPPROTO_TCP && name == TCP_KEEPIDLE)
        o->idle_s = number;
    else if (level == IPPROTO_TCP && name == TCP_KEEPINTVL)
        o->every_s = number;
    else if (level == IPPROTO_TCP && name == TCP_KEEPCNT)
        o->probes = number;
    return 0;
}

int system_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (NTH(getsockopt))
        return -1;
    struct socket *s = socket_of(fd);

    fiber_call();
    if (!s)
        return -1;
    if (level == SOL_SOCKET && name == SO_ERROR) {
        struct side *side = s->stream ? &s->stream->side[s->which] : NULL;
        memcpy(value, side ? &side->error : &(int){0}, sizeof(int));
        *size = sizeof(int);
        return 0;
    }
    if (level == IPPROTO_TCP && name == TCP_CONGESTION) {
        snprintf(value, *size, "cubic");
        return 0;
    }
    if (level == SOL_SOCKET && name == SO_PEERCRED) {
        *(struct ucred *)value = (struct ucred){.uid = geteuid()};
        return 0;
    }
    return socket_error(ENOPROTOOPT);
}

/* Sockets, as the library sees them. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fiber.h"
#include "network.h"
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
    for (int i = 0; i < pe->objects && !pe->dead; i++) {
        struct object *o = pe->object[i];
        if (o && o->kind == OBJECT_SOCKET && o->socket->listens && o->socket->port == port)
            return o->socket;
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

/* ---- Addresses: PE n is at 10.0.n/256.n%256 ---- */

static uint32_t address_of(int pe)
{
    return 10u << 24 | (uint32_t)(pe + 1);
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

/* ---- The seam ---- */

int system_socket(int domain, int type)
{
    fiber_call();
    return domain != AF_INET || (type & 0xff) != SOCK_STREAM ? socket_error(EAFNOSUPPORT)
                                                             : new_socket(domain);
}

int system_bind(int fd, struct sockaddr_storage *name, socklen_t *size, int backlog)
{
    struct socket *s = socket_of(fd);
    struct sockaddr_in *in = (struct sockaddr_in *)name;
    uint32_t address;
    uint16_t port;

    fiber_call();
    if (!s || !name_parts((const struct sockaddr *)name, &address, &port))
        return s ? socket_error(EAFNOSUPPORT) : -1;
    if (address != 0 && address >> 24 != 127 && address != address_of(s->object->pe->number))
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
    struct socket *s = socket_of(fd);
    uint32_t address;
    uint16_t port;

    (void)size;
    fiber_call();
    if (!s || s->stream || !name_parts(to, &address, &port))
        return s ? socket_error(EINVAL) : -1;
    const int pe = (int)(address - address_of(0));
    if (pe < 0 || pe >= world.n_pes)
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
    record("PE %d connects to PE %d, stream %llu", s->object->pe->number, pe,
           (unsigned long long)s->stream->number);
    stream_connect(s->stream, port);
    return socket_error(EINPROGRESS);
}

int system_accept(int fd, struct sockaddr_storage *from, int flags)
{
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
            .sin_addr.s_addr = htonl(address_of(s->stream->side[0].pe->number)),
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
    struct socket *s = socket_of(fd);
    size_t done = 0;

    (void)flags;
    fiber_call();
    if (!socket_is_usable(s))
        return -1;
    struct side *side = &s->stream->side[s->which];
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
    fiber_pass(done / 8); /* some 8 GB/s to copy it */
    return done ? (ssize_t)done : socket_error(EAGAIN);
}

ssize_t system_send(int fd, const void *from, size_t bytes, int flags)
{
    struct iovec v = {(void *)from, bytes};
    const struct msghdr message = {.msg_iov = &v, .msg_iovlen = 1};

    return system_sendmsg(fd, &message, flags);
}

/* Waits as a socket does that has no O_NONBLOCK and is not asked otherwise; the library's all are,
 * but for those that ask with SO_RCVTIMEO. */
ssize_t system_recvmsg(int fd, struct msghdr *message, int flags)
{
    struct socket *s = socket_of(fd);
    size_t done = 0;

    fiber_call();
    if (!socket_is_usable(s))
        return -1;
    struct side *side = &s->stream->side[s->which];
    for (size_t i = 0; i < message->msg_iovlen && side->arrived; i++) {
        const struct iovec *v = &message->msg_iov[i];
        const size_t n = v->iov_len ? stream_read(s->stream, s->which, v->iov_base, v->iov_len,
                                                  flags & MSG_PEEK)
                                    : 0;
        done += n;
        if (n < v->iov_len)
            break;
    }
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
    struct iovec v = {to, bytes};
    struct msghdr message = {.msg_iov = &v, .msg_iovlen = 1};

    return system_recvmsg(fd, &message, flags);
}

int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    struct socket *s = socket_of(fd);
    unsigned number = 0;

    fiber_call();
    if (!s)
        return -1;
    memcpy(&number, value, size < sizeof number ? size : sizeof number);
    struct side *o = s->stream ? &s->stream->side[s->which] : &s->options;
    if (level == SOL_SOCKET && name == SO_KEEPALIVE)
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

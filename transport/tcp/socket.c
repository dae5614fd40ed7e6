#define _GNU_SOURCE
#include "transport/tcp/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "transport/tcp/calls.h"

enum {
    PROBE_LEAST_S = 2,         /* a connection is idle for so long before it is probed, */
    PES_PER_PROBE_SECOND = 32, /* or for longer where there are many PEs */
};

/* glibc's header does not have it yet. */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

/* The system doubles the time between retransmissions, up to two minutes. After several outages
 * of a second or two the next retransmission would fall into none of the moments in which the
 * network works, until the peer counts as failed. One second is the least that the system takes. */
bool socket_bound_retransmission(int fd)
{
    const int most_ms = 1000;

    return setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof most_ms) == 0;
}

/* The system answers each probe. With many PEs the probes of idle connections would keep it so busy
 * that it loses some, and nodes that are alive would count as failed. */
static int seconds_to_probe(const struct socket_options *o)
{
    int seconds = o->n_pes / PES_PER_PROBE_SECOND;

    seconds = seconds < o->peer_seconds / 2 ? seconds : o->peer_seconds / 2;
    return seconds > PROBE_LEAST_S ? seconds : PROBE_LEAST_S;
}

void socket_probe(int fd, bool wanted)
{
    const int on = wanted;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void socket_tune(struct socket_options *o, int fd)
{
    const int on = 1, idle = seconds_to_probe(o), every = 1;
    const unsigned most_ms = (unsigned)o->peer_seconds * 1000;

    /* What is sent is due at once; what may wait is held back in our own queue. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A machine that vanishes says nothing. The system notices with a probe while no data is in
     * flight, and with TCP_USER_TIMEOUT while some is. A machine of pretended nodes cannot vanish
     * without this PE, and loses probes where it has thousands of connections. */
    socket_probe(fd, !o->on_loopback);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &o->peer_seconds, sizeof o->peer_seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    socket_bound_retransmission(fd); /* where it fails, tcp_report says so */
    congestion_begin(o, fd);         /* succeeds: it did for the listener */
}

ssize_t socket_receive(int fd, void *place, size_t bytes, void *buffer, size_t room)
{
    struct iovec vector[2] = {{place, bytes}, {buffer, room}};
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = 2};

    if (bytes && room)
        return recvmsg(fd, &message, MSG_DONTWAIT);
    return call_recv(fd, bytes ? place : buffer, bytes ? bytes : room, MSG_DONTWAIT);
}

void socket_explain_timeout(const struct socket_options *o, char *why, size_t size)
{
    snprintf(why, size,
             "tcp: it owes a response and has sent nothing for %d s (GSHMEM_PEER_TIMEOUT)",
             o->peer_seconds);
}

void socket_explain_end(const struct socket_options *o, int error, char *why, size_t size)
{
    if (error == ETIMEDOUT)
        snprintf(why, size,
                 "tcp: nothing has arrived from its machine for %d s, or it takes no data any "
                 "more (GSHMEM_PEER_TIMEOUT)",
                 o->peer_seconds);
    else
        snprintf(why, size, "tcp: %s", error ? strerror(error) : "it closed its connection");
}

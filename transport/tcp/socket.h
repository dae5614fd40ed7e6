/* Sockets: their options, receiving from them, and why one ended. */
#ifndef GSHMEM_TRANSPORT_TCP_SOCKET_H
#define GSHMEM_TRANSPORT_TCP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct socket_options {
    int peer_seconds; /* so long may a peer be unresponsive (GSHMEM_PEER_TIMEOUT) */
    int n_pes;        /* with many PEs, idle streams are probed less often */
    bool on_loopback; /* all PEs are on this machine: its system need not be probed */
    char congestion
        [17]; /* the system's congestion control, where ours differs for short paths; "" */
};

/* Data of at least so many bytes is worth a system call of its own: behind its frame nothing else
 * is read into the receive buffer, from where it would have to be copied. */
enum { SOCKET_LARGE = 128 * 1024 };

/* Sets the options of a new socket. */
void socket_tune(struct socket_options *o, int fd);
/* Whether the system probes an idle connection. socket_tune switches that on, but on the
 * loopback. */
void socket_probe(int fd, bool wanted);
/* Bounds the time between two retransmissions. False: this system cannot. */
bool socket_bound_retransmission(int fd);

/* Receives up to `bytes` bytes into `place` and those behind them into a buffer that has so much
 * room. Returns what recv returns. */
ssize_t socket_receive(int fd, void *place, size_t bytes, void *buffer, size_t room);

/* Why a connection ended, for people: the peer owed a response for too long; or this errno (0: the
 * peer closed the connection). */
void socket_explain_timeout(const struct socket_options *o, char *why, size_t size);
void socket_explain_end(const struct socket_options *o, int error, char *why, size_t size);

/* ---- congestion.c ---- */

/* Chooses the congestion control of a new socket. False: GSHMEM_TCP_CONGESTION cannot be had. */
bool congestion_begin(struct socket_options *o, int fd);
/* Chooses it anew for a connection that has been made, whose round trip is known. */
void congestion_suit(const struct socket_options *o, int fd);

#endif

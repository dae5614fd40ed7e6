/* The sockets that others connect to: one for each address that is told to others, so that who can reach none of
 * these, but some other of the machine, finds nobody there. All have one port, as it is told. */
#ifndef GSHMEM_BASE_LISTEN_H
#define GSHMEM_BASE_LISTEN_H

#include <stdint.h>
#include <sys/socket.h>

/* Listens at the n addresses, none of them twice, at a port that is free at all of them; theirs are not looked at.
 * fd[i] is -1 where that address cannot be had, as one of IPv6 that is not known to be unique yet. The port; 0,
 * with errno: there is no socket. */
uint16_t listen_on_all(const struct sockaddr_storage *where, int n, int *fd);

#endif

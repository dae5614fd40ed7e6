/* The sockets to which other processes connect: one for each address that is published. A process
 * that reaches none of these, but another address of the machine, finds no socket there. All have
 * one port, which is published. */
#ifndef GSHMEM_BASE_LISTEN_H
#define GSHMEM_BASE_LISTEN_H

#include <stdint.h>
#include <sys/socket.h>

/* Listens at the n addresses, which are all different, at a port that is free at all of them; the
 * ports in `where` are ignored. fd[i] is -1 where that address is not available, like an address of
 * IPv6 whose uniqueness is not known yet. Returns the port; 0, with errno: there is no socket. */
uint16_t listen_on_all(const struct sockaddr_storage *where, int n, int *fd);

#endif

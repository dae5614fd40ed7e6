/* Where a PE listens: its port, and the machine's addresses in the order in which to try them. */
#ifndef GSHMEM_TRANSPORT_TCP_ADDRESS_H
#define GSHMEM_TRANSPORT_TCP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

enum { ADDRESS_MOST = 6 };

struct address {
    uint16_t port;
    int n;
    struct in6_addr ip[ADDRESS_MOST]; /* IPv4 as ::ffff:a.b.c.d */
};

/* This machine's addresses for the port. `chosen` is GSHMEM_TCP_IF: "" for all that are up but the
 * loopback (unless that is all there is), else names of interfaces, subnets and addresses
 * ("eth1,10.0.0.0/8"). *reason says for people what was chosen, or why nothing was. */
bool address_own(uint16_t port, const char *chosen, struct address *a, char *reason, size_t size);

/* As bytes to publish, and back; decode: false if it does not begin with such. */
size_t address_encode(const struct address *a, unsigned char *out, size_t capacity);
bool address_decode(const unsigned char *in, size_t bytes, struct address *a);

/* Number i as a socket address; returns its size. */
socklen_t address_socket(const struct address *a, int i, struct sockaddr_storage *out);
void address_print(const struct address *a, char *text, size_t size);

#endif

#define _GNU_SOURCE
#include "transport/tcp/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IPv4 addresses live in ::ffff:0:0/96, so that there is one kind to compare, publish and print. */
static bool to_in6(const struct sockaddr *from, struct in6_addr *to)
{
    if (from && from->sa_family == AF_INET6) {
        *to = ((const struct sockaddr_in6 *)from)->sin6_addr;
        return !IN6_IS_ADDR_LINKLOCAL(to); /* means nothing without an interface */
    }
    if (from && from->sa_family == AF_INET) {
        memset(to, 0, 10);
        to->s6_addr[10] = to->s6_addr[11] = 0xff;
        memcpy(to->s6_addr + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
        return true;
    }
    return false;
}

static bool same_prefix(const struct in6_addr *a, const struct in6_addr *b, int bits)
{
    int whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, (size_t)whole) == 0 &&
           (!rest || (a->s6_addr[whole] ^ b->s6_addr[whole]) >> (8 - rest) == 0);
}

/* "10.0.0.0/8" or "fd00::/16". */
static bool in_subnet(const struct in6_addr *ip, const char *subnet)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr base;
    struct in_addr v4;
    const char *slash = strchr(subnet, '/');
    int bits = slash ? atoi(slash + 1) : -1;

    if (!slash || (size_t)(slash - subnet) >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(slash - subnet), subnet);
    if (inet_pton(AF_INET, text, &v4) == 1) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = v4};
        to_in6((struct sockaddr *)&a, &base);
        bits += 96;
    } else if (inet_pton(AF_INET6, text, &base) != 1) {
        return false;
    }
    return bits >= 0 && bits <= 128 && same_prefix(ip, &base, bits);
}

static bool is_chosen(const char *chosen, const char *name, const struct in6_addr *ip)
{
    char item[80];

    while (*chosen) {
        size_t n = strcspn(chosen, ",");
        snprintf(item, sizeof item, "%.*s", (int)n, chosen);
        if (strcmp(item, name) == 0 || in_subnet(ip, item))
            return true;
        chosen += n + (chosen[n] == ',');
    }
    return false;
}

static void add(struct address *a, const struct in6_addr *ip)
{
    if (a->n < ADDRESS_MOST)
        a->ip[a->n++] = *ip;
}

/* IPv4 first: where both work, it is the one that is set up with care. */
static void collect(const struct ifaddrs *list, const char *chosen, bool loopback, bool v4,
                    struct address *a)
{
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct in6_addr ip;
        if (!(i->ifa_flags & IFF_UP) || !to_in6(i->ifa_addr, &ip) ||
            (bool)IN6_IS_ADDR_V4MAPPED(&ip) != v4)
            continue;
        if (chosen[0] ? is_chosen(chosen, i->ifa_name, &ip)
                      : loopback == (bool)(i->ifa_flags & IFF_LOOPBACK))
            add(a, &ip);
    }
}

bool address_own(uint16_t port, const char *chosen, struct address *a, char *reason, size_t size)
{
    struct ifaddrs *list;

    *a = (struct address){.port = port};
    if (getifaddrs(&list) != 0) {
        snprintf(reason, size, "this machine's network interfaces cannot be listed");
        return false;
    }
    collect(list, chosen, false, true, a);
    collect(list, chosen, false, false, a);
    if (a->n == 0 && !chosen[0]) {
        collect(list, chosen, true, true, a);
        collect(list, chosen, true, false, a);
    }
    freeifaddrs(list);
    if (a->n == 0)
        snprintf(reason, size, "no interface that is up has an address%s%s",
                 chosen[0] ? " in GSHMEM_TCP_IF=" : "", chosen);
    else
        address_print(a, reason, size);
    return a->n > 0;
}

/* version 1, number 1, port 2 (network order), then 16 bytes an address */
size_t address_encode(const struct address *a, unsigned char *out, size_t capacity)
{
    size_t bytes = 4 + 16 * (size_t)a->n;
    uint16_t port = htons(a->port);

    if (bytes > capacity)
        return 0;
    out[0] = 1;
    out[1] = (unsigned char)a->n;
    memcpy(out + 2, &port, 2);
    memcpy(out + 4, a->ip, 16 * (size_t)a->n);
    return bytes;
}

bool address_decode(const unsigned char *in, size_t bytes, struct address *a)
{
    uint16_t port;

    if (bytes < 4 || in[0] != 1 || in[1] < 1 || in[1] > ADDRESS_MOST ||
        bytes != 4 + 16 * (size_t)in[1])
        return false;
    memcpy(&port, in + 2, 2);
    *a = (struct address){.port = ntohs(port), .n = in[1]};
    memcpy(a->ip, in + 4, bytes - 4);
    return true;
}

socklen_t address_socket(const struct address *a, int i, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (IN6_IS_ADDR_V4MAPPED(&a->ip[i])) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(a->port);
        memcpy(&v4->sin_addr, a->ip[i].s6_addr + 12, 4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(a->port);
    v6->sin6_addr = a->ip[i];
    return sizeof *v6;
}

void address_print(const struct address *a, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; i < a->n && used < size; i++) {
        char one[INET6_ADDRSTRLEN];
        bool v4 = IN6_IS_ADDR_V4MAPPED(&a->ip[i]);
        inet_ntop(v4 ? AF_INET : AF_INET6, a->ip[i].s6_addr + (v4 ? 12 : 0), one, sizeof one);
        int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", one);
        used += n > 0 ? (size_t)n : size;
    }
    if (a->port && used < size)
        snprintf(text + used, size - used, ", port %u", a->port);
}

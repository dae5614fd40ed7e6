#define _GNU_SOURCE
#include "transport/tcp/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

enum { CHOICE_MOST = 80 }; /* bytes of one name or subnet in GSHMEM_TCP_IF */

/* IPv4 addresses live in ::ffff:0:0/96, so that there is one kind to compare, publish and print. */
static void map_v4(struct in_addr from, struct in6_addr *to)
{
    memset(to, 0, 10);
    to->s6_addr[10] = to->s6_addr[11] = 0xff;
    memcpy(to->s6_addr + 12, &from, 4);
}

static bool to_in6(const struct sockaddr *from, struct in6_addr *to)
{
    if (from && from->sa_family == AF_INET6) {
        *to = ((const struct sockaddr_in6 *)from)->sin6_addr;
        return !IN6_IS_ADDR_LINKLOCAL(to); /* means nothing without an interface */
    }
    if (from && from->sa_family == AF_INET) {
        map_v4(((const struct sockaddr_in *)from)->sin_addr, to);
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

/* "10.0.0.0/8", "fd00::/16", or an address alone, which is all of its bits. */
static bool parse_subnet(const char *text, struct in6_addr *base, int *bits)
{
    const char *slash = strchr(text, '/');
    char address[INET6_ADDRSTRLEN];
    struct in_addr v4;
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    char *end = "";

    if (n >= sizeof address)
        return false;
    snprintf(address, sizeof address, "%.*s", (int)n, text);
    bool is_v4 = inet_pton(AF_INET, address, &v4) == 1;
    if (is_v4)
        map_v4(v4, base);
    else if (inet_pton(AF_INET6, address, base) != 1)
        return false;
    int most = is_v4 ? 32 : 128;
    long given = slash ? strtol(slash + 1, &end, 10) : most;
    if (*end || (slash && !isdigit((unsigned char)slash[1])) || given > most)
        return false;
    *bits = (int)given + 128 - most;
    return true;
}

/* The first of a list with commas; returns the rest of it. */
static const char *next_choice(const char *list, char *item, size_t size)
{
    size_t n = strcspn(list, ",");

    snprintf(item, size, "%.*s", (int)n, list);
    return list + n + (list[n] == ',');
}

static bool is_chosen(const char *chosen, const char *name, const struct in6_addr *ip)
{
    char item[CHOICE_MOST];
    struct in6_addr base;
    int bits;

    while (*chosen) {
        chosen = next_choice(chosen, item, sizeof item);
        if (strcmp(item, name) == 0 ||
            (parse_subnet(item, &base, &bits) && same_prefix(ip, &base, bits)))
            return true;
    }
    return false;
}

/* An item that is neither a name nor a subnet was mistyped. */
static bool is_sensible(const char *chosen, char *reason, size_t size)
{
    const char *list = chosen;
    char item[CHOICE_MOST];
    struct in6_addr base;
    int bits;

    while (*list) {
        list = next_choice(list, item, sizeof item);
        if (!strpbrk(item, "/:") && strlen(item) < IFNAMSIZ)
            continue; /* an interface, perhaps of another machine */
        if (!parse_subnet(item, &base, &bits)) {
            snprintf(reason, size,
                     "GSHMEM_TCP_IF=%s: \"%s\" is neither an interface nor a subnet "
                     "like 10.0.0.0/8",
                     chosen, item);
            return false;
        }
    }
    return true;
}

static void address_add(struct address *a, const struct in6_addr *ip)
{
    for (int i = 0; i < a->n; i++) {
        if (IN6_ARE_ADDR_EQUAL(&a->ip[i], ip))
            return; /* two interfaces may have it */
    }
    if (a->n < ADDRESS_MOST)
        a->ip[a->n++] = *ip;
}

/* IPv4 first: where both work, it is the one that is set up with care. */
static void address_collect(const struct ifaddrs *list, const char *chosen, bool loopback, bool v4,
                            struct address *a)
{
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct in6_addr ip;
        if (!(i->ifa_flags & IFF_UP) || !to_in6(i->ifa_addr, &ip) ||
            (bool)IN6_IS_ADDR_V4MAPPED(&ip) != v4)
            continue;
        if (chosen[0] ? is_chosen(chosen, i->ifa_name, &ip)
                      : loopback == (bool)(i->ifa_flags & IFF_LOOPBACK))
            address_add(a, &ip);
    }
}

/* The choice fits no interface: lists those that there are. */
static void nothing_chosen(const struct ifaddrs *list, const char *chosen, char *reason,
                           size_t size)
{
    int used =
        snprintf(reason, size, "GSHMEM_TCP_IF=%s chooses no network of this machine:", chosen);

    for (const struct ifaddrs *i = list; i && used < (int)size; i = i->ifa_next) {
        struct address one = {.n = 1};
        char text[INET6_ADDRSTRLEN];
        if (!(i->ifa_flags & IFF_UP) || !to_in6(i->ifa_addr, &one.ip[0]))
            continue;
        address_print(&one, text, sizeof text);
        used += snprintf(reason + used, size - (size_t)used, " %s (%s)", i->ifa_name, text);
    }
}

bool address_own(uint16_t port, const char *chosen, struct address *a, char *reason, size_t size)
{
    struct ifaddrs *list;

    *a = (struct address){.port = port};
    if (!is_sensible(chosen, reason, size))
        return false;
    if (getifaddrs(&list) != 0) {
        snprintf(reason, size, "this machine's network interfaces cannot be listed: %s",
                 log_errno(errno));
        return false;
    }
    address_collect(list, chosen, false, true, a);
    address_collect(list, chosen, false, false, a);
    if (a->n == 0 && !chosen[0]) {
        address_collect(list, chosen, true, true, a);
        address_collect(list, chosen, true, false, a);
    }
    if (a->n)
        address_print(a, reason, size);
    else if (chosen[0])
        nothing_chosen(list, chosen, reason, size);
    else
        snprintf(reason, size, "no interface that is up has an address");
    freeifaddrs(list);
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
        bytes < 4 + 16 * (size_t)in[1])
        return false; /* what follows is for the transport above this one */
    memcpy(&port, in + 2, 2);
    *a = (struct address){.port = ntohs(port), .n = in[1]};
    memcpy(a->ip, in + 4, 16 * (size_t)in[1]);
    return a->port != 0;
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

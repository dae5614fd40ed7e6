/* Addresses of ports (GIDs): ranks, subnets, and which two reach each other best. */
#define _GNU_SOURCE
#include "transport/verbs/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/rails.h"

enum rank { RANK_NONE, RANK_V1, RANK_V2_LINK, RANK_V2_IPV6, RANK_V2_IPV4, RANK_IB };

const char *addresses_rank_text(unsigned rank)
{
    static const char *const texts[] = {
        [RANK_NONE] = "none",
        [RANK_V1] = "RoCE v1, which is not routed",
        [RANK_V2_LINK] = "RoCE v2, of the link alone",
        [RANK_V2_IPV6] = "RoCE v2, IPv6",
        [RANK_V2_IPV4] = "RoCE v2, IPv4",
        [RANK_IB] = "InfiniBand",
    };

    return rank < sizeof texts / sizeof texts[0] ? texts[rank] : "unknown";
}

static bool addresses_is_ipv4(const union ibv_gid *gid)
{
    static const unsigned char ipv4[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid->raw, ipv4, 12) == 0;
}

void addresses_text(const union ibv_gid *gid, char *text, size_t size)
{
    const char *done = addresses_is_ipv4(gid)
                           ? inet_ntop(AF_INET, gid->raw + 12, text, (socklen_t)size)
                           : inet_ntop(AF_INET6, gid->raw, text, (socklen_t)size);

    if (!done)
        snprintf(text, size, "?");
}

static enum rank addresses_rank(const struct ibv_gid_entry *e)
{
    static const unsigned char none[16];

    if (memcmp(e->gid.raw, none, 16) == 0)
        return RANK_NONE;
    if (e->gid_type == IBV_GID_TYPE_IB)
        return RANK_IB;
    if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
        return RANK_V1;
    if (addresses_is_ipv4(&e->gid))
        return RANK_V2_IPV4;
    return e->gid.raw[0] == 0xfe ? RANK_V2_LINK : RANK_V2_IPV6;
}

static unsigned addresses_bits(const unsigned char *mask, size_t bytes)
{
    unsigned bits = 0;

    for (size_t i = 0; i < bytes; i++)
        bits += (unsigned)__builtin_popcount(mask[i]);
    return bits;
}

/* The prefix length of the network interface with that address; 0: none has it. */
static unsigned addresses_prefix(const union ibv_gid *gid, const struct ifaddrs *interfaces)
{
    const int family = addresses_is_ipv4(gid) ? AF_INET : AF_INET6;
    const unsigned char *at = gid->raw + (family == AF_INET ? 12 : 0);
    const size_t bytes = family == AF_INET ? 4 : 16;
    const size_t where = family == AF_INET ? offsetof(struct sockaddr_in, sin_addr)
                                           : offsetof(struct sockaddr_in6, sin6_addr);

    for (const struct ifaddrs *i = interfaces; i; i = i->ifa_next) {
        if (i->ifa_addr && i->ifa_netmask && i->ifa_addr->sa_family == family &&
            memcmp((const char *)i->ifa_addr + where, at, bytes) == 0)
            return addresses_bits((const unsigned char *)i->ifa_netmask + where, bytes) +
                   (family == AF_INET ? 96 : 0);
    }
    return 0;
}

/* Keeps the best addresses, in the order of their ranks, then of the table. */
static void addresses_keep(struct port_address address[ADDRESSES_MOST], int *n,
                           const struct port_address *a)
{
    int at = *n;

    while (at > 0 && address[at - 1].rank < a->rank)
        at--;
    if (at == ADDRESSES_MOST)
        return;
    *n += *n < ADDRESSES_MOST;
    memmove(&address[at + 1], &address[at], (size_t)(*n - 1 - at) * sizeof address[0]);
    address[at] = *a;
}

int addresses_find(struct ibv_context *context, int number, int from, int to,
                   struct port_address address[ADDRESSES_MOST])
{
    struct ifaddrs *interfaces = NULL;
    int n = 0;

    if (getifaddrs(&interfaces))
        interfaces = NULL; /* then no subnet is known */
    for (int i = from; i < to && i < 256; i++) {
        struct ibv_gid_entry e;
        if (ibv_query_gid_ex(context, (uint32_t)number, (uint32_t)i, &e, 0) || !addresses_rank(&e))
            continue;
        struct port_address a = {
            .gid = e.gid, .index = (uint8_t)i, .rank = (uint8_t)addresses_rank(&e)};
        a.prefix = (uint8_t)(a.rank == RANK_IB ? 64 : addresses_prefix(&e.gid, interfaces));
        addresses_keep(address, &n, &a);
    }
    if (interfaces)
        freeifaddrs(interfaces);
    return n;
}

static bool addresses_same_subnet(const struct port_address *a, const struct port_address *b)
{
    const unsigned bits = a->prefix > b->prefix ? a->prefix : b->prefix;
    const unsigned rest = bits % 8 ? 0xff00u >> bits % 8 & 0xff : 0;

    return bits && addresses_is_ipv4(&a->gid) == addresses_is_ipv4(&b->gid) && bits <= 128 &&
           memcmp(a->gid.raw, b->gid.raw, bits / 8) == 0 &&
           (!rest || ((a->gid.raw[bits / 8] ^ b->gid.raw[bits / 8]) & rest) == 0);
}

/* Link-local networks have the same prefix everywhere. */
uint32_t addresses_subnet(const struct port_address *a)
{
    if (!a->prefix || a->rank == RANK_V2_LINK || (a->rank == RANK_V1 && a->gid.raw[0] == 0xfe))
        return 0;
    return rails_subnet(a->gid.raw, a->prefix);
}

/* Whether one can send packets to the other at all. */
static bool addresses_can_talk(const struct port_address *a, const struct port_address *b)
{
    if (a->rank == RANK_IB || b->rank == RANK_IB || a->rank == RANK_V1 || b->rank == RANK_V1)
        return a->rank == b->rank;
    return addresses_is_ipv4(&a->gid) == addresses_is_ipv4(&b->gid);
}

bool addresses_pair(const struct port_address *mine, int n_mine, const struct port_address *theirs,
                    int n_theirs, bool mine_first, int *which_mine, int *which_theirs)
{
    int best = -1;

    for (int i = 0; i < n_mine; i++) {
        for (int j = 0; j < n_theirs; j++) {
            if (!addresses_can_talk(&mine[i], &theirs[j]))
                continue;
            /* of equals the first, in an order that both sides know: that of one of the two PEs */
            int order = mine_first ? i * ADDRESSES_MOST + j : j * ADDRESSES_MOST + i;
            int worth = ((addresses_same_subnet(&mine[i], &theirs[j]) ? 16 : 0) + mine[i].rank +
                         theirs[j].rank) *
                            64 +
                        ADDRESSES_MOST * ADDRESSES_MOST - order;
            if (worth > best) {
                best = worth;
                *which_mine = i;
                *which_theirs = j;
            }
        }
    }
    return best >= 0;
}

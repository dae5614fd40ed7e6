/* Where a PE is reached: which of a machine's addresses GSHMEM_TCP_IF takes, what it says to
 * nonsense, and addresses as bytes that others sent. The machine is made up. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "check.h"
#include "transport/tcp/address.h"
#include "transport/transport.h"

/* ---- A machine ---- */

static const struct {
    const char *name, *ip;
    unsigned flags;
} interfaces[] = {
    {"lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK},
    {"lo", "::1", IFF_UP | IFF_LOOPBACK},
    {"eth0", "fe80::7", IFF_UP}, /* of the link alone: never taken */
    {"eth0", "fd00::5", IFF_UP},
    {"eth0", "10.1.2.3", IFF_UP},
    {"eth1", "192.168.7.9", IFF_UP},
    {"eth2", "10.9.9.9", 0}, /* not up */
    {"tun0", NULL, IFF_UP},  /* no address */
};
enum { INTERFACES = sizeof interfaces / sizeof interfaces[0] };

static int loopback_only, none_listed;

/* In libc's place. */
int getifaddrs(struct ifaddrs **list)
{
    static struct ifaddrs all[INTERFACES];
    static struct sockaddr_storage name[INTERFACES];
    int n = loopback_only ? 2 : INTERFACES;

    if (none_listed)
        return -1;
    for (int i = 0; i < n; i++) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&name[i];
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&name[i];
        all[i] = (struct ifaddrs){.ifa_next = i + 1 < n ? &all[i + 1] : NULL,
                                  .ifa_name = (char *)interfaces[i].name,
                                  .ifa_flags = interfaces[i].flags};
        if (!interfaces[i].ip)
            continue;
        all[i].ifa_addr = (struct sockaddr *)&name[i];
        if (inet_pton(AF_INET, interfaces[i].ip, &v4->sin_addr) == 1)
            v4->sin_family = AF_INET;
        else if (inet_pton(AF_INET6, interfaces[i].ip, &v6->sin6_addr) == 1)
            v6->sin6_family = AF_INET6;
    }
    *list = all;
    return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

/* ---- What is taken ---- */

static void takes(const char *chosen, const char *expected)
{
    struct address a;
    char reason[200], port[64];

    CHECK(address_own(99, chosen, &a, reason, sizeof reason));
    snprintf(port, sizeof port, "%s, port 99", expected);
    CHECK_STR(reason, port);
}

static void choices(void)
{
    takes("", "10.1.2.3, 192.168.7.9, fd00::5"); /* IPv4 first */
    takes("eth0", "10.1.2.3, fd00::5");
    takes("eth1,eth0", "10.1.2.3, 192.168.7.9, fd00::5");
    takes("nothere,eth1", "192.168.7.9"); /* it may be another host's */
    takes("eth1,", "192.168.7.9");
    takes("10.0.0.0/8", "10.1.2.3");
    takes("10.1.2.3", "10.1.2.3");
    takes("10.1.2.3/32", "10.1.2.3");
    takes("10.1.2.2/31", "10.1.2.3");
    takes("0.0.0.0/0", "127.0.0.1, 10.1.2.3, 192.168.7.9"); /* chosen is chosen */
    takes("fd00::/8,192.168.0.0/16", "192.168.7.9, fd00::5");
    takes("::/0", "127.0.0.1, 10.1.2.3, 192.168.7.9, ::1, fd00::5");
    takes("::ffff:10.0.0.0/104", "10.1.2.3");
    takes("lo", "127.0.0.1, ::1");
    takes("::1", "::1");
    loopback_only = 1;
    takes("", "127.0.0.1, ::1"); /* better than nothing */
    loopback_only = 0;
}

static void refuses(const char *chosen, const char *part)
{
    struct address a;
    char reason[300];

    CHECK(!address_own(99, chosen, &a, reason, sizeof reason));
    CHECK_HAS(reason, part);
    CHECK_HAS(reason, chosen);
}

static void nonsense(void)
{
    static const char *const mistyped[] = {
        "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/x", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8x",
        "10.0.0/8",    "256.0.0.0/8", "fd00::/129", "fd00:::1",    "/8",          "eth0:1",
        "10.0.0.0/ 8", "10.0.0.0/99999999999999999999",
        "an-interface-with-a-name-that-no-interface-can-have"};
    char long_one[200];

    for (size_t i = 0; i < sizeof mistyped / sizeof mistyped[0]; i++) {
        char with_a_good_one[100];
        refuses(mistyped[i], "is neither an interface nor a subnet like 10.0.0.0/8");
        snprintf(with_a_good_one, sizeof with_a_good_one, "eth0,%s", mistyped[i]);
        refuses(with_a_good_one, "is neither an interface nor a subnet");
    }
    memset(long_one, '1', sizeof long_one);
    long_one[sizeof long_one - 1] = 0;
    struct address a;
    char reason[200];
    CHECK(!address_own(99, long_one, &a, reason, sizeof reason)); /* and the line is cut, not spilt */

    refuses("eth7", "chooses no network of this machine: lo (127.0.0.1)");
    refuses("eth2", "eth0 (fd00::5) eth0 (10.1.2.3) eth1 (192.168.7.9)"); /* it is not up */
    refuses("172.16.0.0/12", "chooses no network");
    none_listed = 1;
    CHECK(!address_own(99, "", &a, reason, sizeof reason));
    CHECK_HAS(reason, "cannot be listed");
    none_listed = 0;
}

/* ---- As bytes ---- */

static struct address sample(int n)
{
    struct address a = {.port = 0x1234, .n = n};

    for (int i = 0; i < n; i++) {
        CHECK(inet_pton(AF_INET6, i % 2 ? "::ffff:10.0.0.1" : "fd00::1", &a.ip[i]) == 1);
        a.ip[i].s6_addr[15] = (unsigned char)i;
    }
    return a;
}

static void round_trips(void)
{
    unsigned char bytes[TRANSPORT_ADDRESS_MAX];

    for (int n = 1; n <= ADDRESS_MOST; n++) {
        struct address a = sample(n), b;
        size_t size = address_encode(&a, bytes, sizeof bytes);
        CHECK_EQ(size, 4 + 16 * n);
        CHECK(bytes[2] == 0x12 && bytes[3] == 0x34);
        CHECK(address_decode(bytes, size, &b));
        CHECK(b.port == a.port && b.n == n && memcmp(a.ip, b.ip, 16 * (size_t)n) == 0);
        CHECK_EQ(address_encode(&a, bytes, size - 1), 0); /* no room */
    }
}

/* What a PE of another version, or something else altogether, may have published. */
static void foreign_bytes(void)
{
    unsigned char bytes[TRANSPORT_ADDRESS_MAX + 16] = {0};
    struct address a = sample(2), b;
    size_t size = address_encode(&a, bytes, sizeof bytes);

    for (size_t n = 0; n < sizeof bytes; n++)
        CHECK_EQ(address_decode(bytes, n, &b), n >= size); /* more is another transport's */
    for (int value = 0; value < 256; value++) {
        bytes[0] = (unsigned char)value;
        CHECK_EQ(address_decode(bytes, size, &b), value == 1);
    }
    bytes[0] = 1;
    for (int n = 0; n < 256; n++) {
        bytes[1] = (unsigned char)n;
        size_t claimed = 4 + 16 * (size_t)n;
        CHECK_EQ(address_decode(bytes, size, &b), n == 1 || n == 2);
        if (claimed <= sizeof bytes)
            CHECK_EQ(address_decode(bytes, claimed, &b), n >= 1 && n <= ADDRESS_MOST);
    }
    bytes[1] = 2;
    bytes[2] = bytes[3] = 0; /* nobody listens at port 0 */
    CHECK(!address_decode(bytes, size, &b));
}

static void as_sockets(void)
{
    struct address a = sample(2);
    struct sockaddr_storage s;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&s;

    CHECK_EQ(address_socket(&a, 0, &s), sizeof *v6);
    CHECK(s.ss_family == AF_INET6 && v6->sin6_port == htons(0x1234));
    CHECK(memcmp(&v6->sin6_addr, &a.ip[0], 16) == 0);
    CHECK_EQ(address_socket(&a, 1, &s), sizeof *v4);
    CHECK(s.ss_family == AF_INET && v4->sin_port == htons(0x1234));
    CHECK_EQ(ntohl(v4->sin_addr.s_addr), 0x0a000001);
}

static void prints_into_little_room(void)
{
    struct address a = sample(3);
    char text[100], whole[100];

    address_print(&a, whole, sizeof whole);
    CHECK_STR(whole, "fd00::, 10.0.0.1, fd00::2, port 4660");
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, 'x', sizeof text);
        address_print(&a, text, size);
        CHECK(strlen(text) < size && strncmp(text, whole, strlen(text)) == 0);
        CHECK_EQ(text[size], 'x');
    }
}

int main(void)
{
    choices();
    nonsense();
    round_trips();
    foreign_bytes();
    as_sockets();
    prints_into_little_room();
    return 0;
}

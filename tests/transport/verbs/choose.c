/* Which ports, addresses and partitions of RDMA devices are taken, and what is said of the others. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "devices.h"
#include "runtime/base/settings.h"
#include "transport/verbs/choose.h"

static struct port ports[PORTS_MOST];
static int found, usable;
static char why[300];
static bool mistaken;

static int distances[FAKE_DEVICES]; /* of mlx5_0 and on; others are near */

static int distance(void *context, const char *device, const char **where)
{
    const int number = atoi(device + 5);

    (void)context;
    *where = "there";
    return number < FAKE_DEVICES ? distances[number] : 0;
}

static struct transport_config config = {
    .number = settings_number_of, .text = settings_string_of, .distance = distance};

/* With these settings ("GSHMEM_…=…" or NULL). */
static void look(const char *variable, const char *value)
{
    if (variable)
        setenv(variable, value, 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    found = choose_ports(&config, ports, PORTS_MOST, &usable);
    mistaken = !usable && choose_explain(&config, ports, found, why, sizeof why);
    for (int i = 0; i < found; i++)
        CHECK((ports[i].context != NULL) == !ports[i].why[0]);
    if (variable)
        unsetenv(variable);
}

static void done(void)
{
    choose_release(ports, found);
    CHECK_EQ(fake_open, 0);
}

/* An Ethernet port as they are found in the field: v1 and v2 of each address of its interface. */
static struct fake_device roce(const char *name)
{
    return (struct fake_device){
        .name = name,
        .transport = IBV_TRANSPORT_IB,
        .inline_most = 512,
        .ports = 1,
        .port = {{.state = IBV_PORT_ACTIVE,
                  .link_layer = 1,
                  .mtu = IBV_MTU_1024,
                  .speed = 32,
                  .width = 2,
                  .gid = {{FAKE_V1, "fe80::1"},
                          {FAKE_V2, "fe80::1"},
                          {FAKE_V1, "::ffff:10.0.0.1"},
                          {FAKE_V2, "fd00::1"},
                          {FAKE_V2, "::ffff:10.0.0.1"}},
                  .pkey = {0xffff}}}};
}

static struct fake_device infiniband(const char *name)
{
    return (struct fake_device){.name = name,
                                .transport = IBV_TRANSPORT_IB,
                                .inline_most = 512,
                                .ports = 2,
                                .port = {{.state = IBV_PORT_INIT, .gid = {{FAKE_IB, "fe80::1:1"}}},
                                         {.state = IBV_PORT_ACTIVE,
                                          .mtu = IBV_MTU_4096,
                                          .speed = 64,
                                          .width = 2,
                                          .gid = {{FAKE_IB, "fe80::1:2"}},
                                          .pkey = {0x7fff, 0x0012, 0x8012}}}};
}

static void devices(struct fake_device a, struct fake_device b)
{
    memset(fake_devices, 0, sizeof fake_devices);
    fake_devices[0] = a;
    fake_devices[1] = b;
}

static const struct fake_device none;

static void by_itself(void)
{
    devices(roce("mlx5_0"), infiniband("mlx5_1"));
    look(NULL, NULL);
    CHECK_EQ(found, 3);
    CHECK_EQ(usable, 2);
    CHECK_STR(ports[0].device, "mlx5_1"); /* 200 Gbit/s before 100, and one that is not up at the end */
    CHECK_EQ(ports[0].number, 2);
    CHECK_EQ(ports[0].rate, 200);
    CHECK_STR(ports[1].device, "mlx5_0");
    CHECK_EQ(ports[1].rate, 100);
    CHECK_EQ(ports[2].number, 1);
    CHECK_HAS(ports[2].why, "subnet manager");
    CHECK_EQ(ports[0].address[0].prefix, 64);
    CHECK_EQ(ports[1].addresses, 4); /* the worst of five is left out */
    CHECK_EQ(ports[1].address[0].index, 4);
    CHECK_EQ(ports[1].address[1].index, 3);
    CHECK_EQ(ports[1].address[2].index, 1);
    done();
}

static void as_asked(void)
{
    devices(roce("mlx5_0"), infiniband("mlx5_1"));
    look("GSHMEM_IB_HCA", "mlx5_7,mlx5_0");
    CHECK_EQ(found, 1);
    CHECK_STR(ports[0].device, "mlx5_0");
    done();
    look("GSHMEM_IB_HCA", "mlx5_1:2");
    CHECK(found == 1 && usable == 1 && ports[0].number == 2);
    done();
    look("GSHMEM_IB_PORT", "2");
    CHECK(found == 1 && usable == 1 && ports[0].number == 2);
    done();
    look("GSHMEM_IB_GID_INDEX", "0");
    CHECK_EQ(usable, 2);
    CHECK(ports[1].address[0].index == 0 && ports[1].addresses == 1);
    done();
    look("GSHMEM_IB_PKEY", "0x8012");
    CHECK_EQ(usable, 1);
    CHECK_EQ(ports[0].pkey_index, 2); /* where it is a full member */
    done();
    look("GSHMEM_IB_PKEY_INDEX", "1");
    CHECK_EQ(ports[0].pkey_index, 1);
    done();
    look("NVSHMEM_IB_PKEY_INDEX", "2");
    CHECK_EQ(ports[0].pkey_index, 2);
    done();
    look("NVSHMEM_HCA_LIST", "^mlx5_0");
    CHECK(usable == 1 && strcmp(ports[0].device, "mlx5_1") == 0);
    done();
    look("GSHMEM_IB_HCA", "^mlx5_1:2,mlx5_7");
    CHECK(usable == 1 && strcmp(ports[0].device, "mlx5_0") == 0);
    done();
    for (config.turn = 0; config.turn < 3; config.turn++) { /* two PEs, then one */
        look("NVSHMEM_HCA_PE_MAPPING", "mlx5_0:1:2,mlx5_1:2:1");
        CHECK(found == 1 && usable == 1);
        CHECK_STR(ports[0].device, config.turn < 2 ? "mlx5_0" : "mlx5_1");
        CHECK_EQ(ports[0].number, config.turn < 2 ? 1 : 2);
        done();
    }
    config.turn = 0;
    devices(infiniband("mlx5_10"), infiniband("mlx5_9"));
    look(NULL, NULL);
    CHECK_STR(ports[0].device, "mlx5_9");
    done();
}

/* What cannot be meant is answered with what there is. */
static void mistakes(void)
{
    static const struct {
        const char *variable, *value, *answer;
    } all[] = {
        {"GSHMEM_IB_HCA", "mlx4_0", "GSHMEM_IB_HCA=mlx4_0: there is no such port here, but mlx5_0 "
                                    "(1 port), mlx5_1 (2 ports)"},
        {"GSHMEM_IB_HCA", "mlx5_0:x", "mlx5_1 (2 ports)"},
        {"GSHMEM_IB_HCA", "mlx5_0:2", "there is no such port here, but mlx5_0 (1 port)"},
        {"GSHMEM_IB_HCA", "mlx5", "mlx5_0 (1 port)"},
        {"GSHMEM_IB_HCA", "^mlx5_0,mlx5_1", "GSHMEM_IB_HCA=^mlx5_0,mlx5_1: there is no such port"},
        {"GSHMEM_IB_HCA_BY_PE", "mlx5_0:1", "GSHMEM_IB_HCA_BY_PE=mlx5_0:1, for PE 0 of this node: "},
        {"GSHMEM_IB_HCA_BY_PE", "mlx5_0:1:2x", "for PE 0 of this node: there is no such port"},
        {"GSHMEM_IB_HCA_BY_PE", "mlx5_7:1:2", "there is no such port here, but mlx5_0"},
        {"GSHMEM_IB_PKEY_INDEX", "7", "GSHMEM_IB_PKEY_INDEX=7: its table has"},
        {"GSHMEM_IB_PORT", "3", "GSHMEM_IB_PORT=3: there is no such port here, but mlx5_0 (1 port)"},
        {"GSHMEM_IB_GID_INDEX", "5", "GSHMEM_IB_GID_INDEX=5: it has"},
        {"GSHMEM_IB_PKEY", "0x8013", "GSHMEM_IB_PKEY=0x8013: it is in the partitions 0x7fff, 0x0012"},
    };

    devices(roce("mlx5_0"), infiniband("mlx5_1"));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        look(all[i].variable, all[i].value);
        CHECK_EQ(usable, 0);
        CHECK(mistaken);
        CHECK_HAS(why, all[i].answer);
        done();
    }
    config.turn = 2; /* one more than the list has */
    look("GSHMEM_IB_HCA_BY_PE", "mlx5_0:1:2");
    CHECK_HAS(why, "GSHMEM_IB_HCA_BY_PE=mlx5_0:1:2, for PE 2 of this node: there is no such port");
    done();
    config.turn = 0;
    devices(roce("mlx5_0"), none);
    look("GSHMEM_IB_GID_INDEX", "5");
    CHECK_HAS(why, "mlx5_0 port 1 GSHMEM_IB_GID_INDEX=5: it has 4 (RoCE v2, IPv4, 10.0.0.1), 3 "
                   "(RoCE v2, IPv6, fd00::1), 1 (");
    done();
    /* a host without any is no mistake: others of the job may have some */
    devices(none, none);
    look("GSHMEM_IB_HCA", "mlx5_0");
    CHECK(!mistaken);
    CHECK_STR(why, "there is no RDMA device");
    done();
}

static void not_usable(void)
{
    struct fake_device d = roce("mlx5_0");

    d.port[0].state = IBV_PORT_DOWN;
    devices(d, none);
    look(NULL, NULL);
    CHECK(!usable && !mistaken);
    CHECK_HAS(why, "mlx5_0 port 1 is down (ip link set");
    done();

    d = roce("mlx5_0");
    memset(d.port[0].gid, 0, sizeof d.port[0].gid);
    devices(d, none);
    look("GSHMEM_IB_GID_INDEX", "1");
    CHECK(!usable && !mistaken);
    CHECK_HAS(why, "ip address add");
    done();

    d = roce("mlx5_0");
    d.cannot_open = EACCES;
    devices(d, none);
    look(NULL, NULL);
    CHECK(!usable && !mistaken);
    CHECK_HAS(why, "/dev/infiniband/uverbs");
    done();

    d = roce("mlx5_0");
    d.no_shared_receives = 1;
    devices(d, none);
    look(NULL, NULL);
    CHECK(!usable && !mistaken);
    CHECK_HAS(why, "shared receive");
    done();
}

/* iWARP's ports have no addresses of their own, and need another library. */
static void iwarp(void)
{
    struct fake_device d = roce("iw0");

    d.transport = IBV_TRANSPORT_IWARP;
    memset(d.port[0].gid, 0, sizeof d.port[0].gid);
    devices(d, roce("mlx5_0"));
    fake_connects_iwarp = false;
    look(NULL, NULL);
    CHECK_EQ(usable, 1);
    CHECK_HAS(ports[1].why, "librdmacm.so.1 is not installed");
    done();
    fake_connects_iwarp = true;
    look("GSHMEM_IB_HCA", "iw0");
    CHECK(usable == 1 && ports[0].iwarp && ports[0].addresses == 0);
    done();
}

/* ---- Where a PE is ---- */

static struct fake_device of_speed(const char *name, int speed, int width)
{
    struct fake_device d = roce(name);

    d.port[0].speed = speed;
    d.port[0].width = width;
    return d;
}

static void order_is(const char *expected)
{
    char names[200] = "";

    look(NULL, NULL);
    for (int i = 0; i < found; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s%s", i ? " " : "",
                 ports[i].device + 5, ports[i].spare ? "(spare)" : "");
    CHECK_STR(names, expected);
    done();
}

/* The nearest first, but those that are much slower than others: not at all, unless they are asked
 * for. */
static void near_or_fast(void)
{
    memset(fake_devices, 0, sizeof fake_devices);
    fake_devices[0] = of_speed("mlx5_0", 32, 1);  /* 25 Gbit/s */
    fake_devices[1] = of_speed("mlx5_1", 128, 2); /* 400 */
    fake_devices[2] = of_speed("mlx5_2", 64, 2);  /* 200 */
    fake_devices[3] = of_speed("mlx5_3", 128, 2);
    order_is("1 3 2 0(spare)");
    memcpy(distances, (int[FAKE_DEVICES]){0, 3, 1, 3}, sizeof distances);
    order_is("2 1 3 0(spare)"); /* half as fast is fast enough */
    memcpy(distances, (int[FAKE_DEVICES]){0, 3, 1, 0}, sizeof distances);
    order_is("3 2 1 0(spare)");
    fake_devices[2].port[0].speed = 3; /* none that is known */
    order_is("3 2 1 0(spare)");
    fake_devices[2].port[0].speed = 64;
    setenv("GSHMEM_IB_HCA", "mlx5_0,mlx5_1", 1);
    order_is("0 1");
    unsetenv("GSHMEM_IB_HCA");
    fake_devices[3].port[0].state = IBV_PORT_DOWN;
    fake_devices[1].port[0].state = IBV_PORT_DOWN;
    fake_devices[2].port[0].state = IBV_PORT_DOWN;
    order_is("0 3 2 1"); /* all that is left is fast enough */
    memset(distances, 0, sizeof distances);
}

/* The kernel's files of a device, whose ports have that rate there. */
static void write_rates(const char *folder, const char *first, const char *second)
{
    const char *const rates[] = {first, second};
    char path[200];

    snprintf(path, sizeof path, "%s/ports", folder);
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/ports/%d", folder, i + 1);
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        snprintf(path, sizeof path, "%s/ports/%d/rate", folder, i + 1);
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(rates[i], f) >= 0 && fclose(f) == 0);
    }
}

static void remove_rates(const char *folder)
{
    static const char *const names[] = {"ports/1/rate", "ports/2/rate", "ports/1", "ports/2", "ports", ""};
    char path[200];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        CHECK_EQ(remove(path), 0);
    }
}

/* An XDR port's speed is told as NDR's, 400 Gbit/s, but for the kernel's files. A rate there that is too low is that of a
 * kernel which does not know the speed. */
static void rates_of_files(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[100];

    snprintf(folder, sizeof folder, "%s/rates-XXXXXX", temporary ? temporary : "/tmp");
    CHECK(mkdtemp(folder));
    write_rates(folder, "800 Gb/sec (4X XDR)\n", "2.5 Gb/sec (1X SDR)\n");
    memset(fake_devices, 0, sizeof fake_devices);
    fake_devices[0] = of_speed("mlx5_0", 128, 2);
    fake_devices[1] = of_speed("mlx5_1", 128, 2);
    fake_devices[1].files = folder;
    fake_devices[1].ports = 2;
    fake_devices[1].port[1] = fake_devices[1].port[0];
    look(NULL, NULL);
    CHECK_EQ(found, 3);
    CHECK_STR(ports[0].device, "mlx5_1");
    CHECK(ports[0].number == 1 && ports[0].rate == 800);
    CHECK(ports[1].rate == 400 && ports[2].rate == 400);
    done();
    write_rates(folder, "800 Gb/sec (4X XDR)\n", "nonsense\n");
    fake_devices[0].port[0].speed = 32; /* 100 Gbit/s, a quarter of what the XDR port is told as */
    look(NULL, NULL);
    CHECK(ports[0].rate == 800 && ports[1].rate == 400 && ports[2].rate == 100);
    CHECK(!ports[1].spare && ports[2].spare);
    done();
    remove_rates(folder);
}

/* By names, whatever the settings leave out. */
static void places(void)
{
    devices(infiniband("mlx5_10"), infiniband("mlx5_9"));
    look("GSHMEM_IB_HCA", "mlx5_10");
    CHECK(found == 2 && ports[0].number == 2 && ports[0].place == 3 && ports[1].place == 2);
    done();
}

/* PEs of a host with as many NICs at each of its NUMA nodes, dealt to these one by one or one node
 * after the other: how many begin with each NIC differs by one at most. */
static void shared_out(int nodes, int nics, int pes_of_node, bool dealt)
{
    static const char *const names[] = {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3",
                                        "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"};

    memset(fake_devices, 0, sizeof fake_devices);
    for (int i = 0; i < nodes * nics; i++)
        fake_devices[i] = roce(names[i]);
    config.parts = nodes;
    for (int node = 0; node < nodes; node++) {
        int users[FAKE_DEVICES] = {0}, least = 100, most = 0;
        for (int i = 0; i < nodes * nics; i++)
            distances[i] = i / nics == node ? 2 : 3;
        for (int i = 0; i < pes_of_node; i++) {
            config.turn = dealt ? i * nodes + node : node * pes_of_node + i;
            look(NULL, NULL);
            for (int k = 0; k < nodes * nics; k++)
                CHECK_EQ(ports[k].distance, k < nics ? 2 : 3);
            users[ports[0].place / 2]++;
            done();
        }
        for (int i = node * nics; i < (node + 1) * nics; i++) {
            least = users[i] < least ? users[i] : least;
            most = users[i] > most ? users[i] : most;
        }
        CHECK(most - least <= 1);
    }
    config.parts = config.turn = 0;
    memset(distances, 0, sizeof distances);
}

/* ---- Two sides ---- */

static struct port_address address(const char *of, unsigned rank, unsigned prefix)
{
    struct port_address a = {.rank = (uint8_t)rank, .prefix = (uint8_t)prefix};

    CHECK_EQ(inet_pton(AF_INET6, of, a.gid.raw), 1);
    return a;
}

static void pair_is(const struct port_address *a, int n, const struct port_address *b, int m,
                    int left, int right)
{
    int i = -1, j = -1, k = -1, l = -1;

    CHECK_EQ(addresses_pair(a, n, b, m, true, &i, &j), left >= 0);
    CHECK_EQ(addresses_pair(b, m, a, n, false, &k, &l), left >= 0);
    CHECK(i == left && j == right && k == right && l == left);
}

/* By which rails are told apart; an address of the link alone is of any. */
static void subnets(void)
{
    const struct port_address a = address("::ffff:10.0.1.1", 4, 96 + 24),
                              b = address("::ffff:10.0.1.9", 4, 96 + 24);
    const struct port_address c = address("::ffff:10.0.2.1", 4, 96 + 24),
                              ib = address("fe80::7", 5, 64);
    const struct port_address link = address("fe80::7", 2, 64),
                              unknown = address("::ffff:10.0.1.1", 4, 0);

    CHECK(addresses_subnet(&a) && addresses_subnet(&a) == addresses_subnet(&b));
    CHECK(addresses_subnet(&c) != addresses_subnet(&a));
    CHECK(addresses_subnet(&link) == 0 && addresses_subnet(&unknown) == 0 && addresses_subnet(&ib) != 0);
}

static void pairs(void)
{
    enum { V1 = 1, LINK, IPV6, IPV4, IB };
    const struct port_address two[] = {address("::ffff:10.0.1.1", IPV4, 96 + 24),
                                       address("::ffff:10.0.2.1", IPV4, 96 + 24)};
    const struct port_address other[] = {address("::ffff:10.0.3.7", IPV4, 96 + 24),
                                         address("::ffff:10.0.2.7", IPV4, 96 + 24)};
    const struct port_address wide[] = {address("::ffff:10.0.3.200", IPV4, 96 + 25),
                                        address("::ffff:10.0.2.7", IPV4, 96 + 20)};
    const struct port_address six[] = {address("fd00::7", IPV6, 64)};
    const struct port_address link[] = {address("fe80::7", LINK, 64), address("fe80::7", V1, 64)};
    const struct port_address ib[] = {address("fe80::7", IB, 64)};

    pair_is(two, 2, other, 2, 1, 1);  /* the same subnet, though it is the second of both */
    pair_is(two, 1, other, 2, 0, 0);  /* routed: the first */
    pair_is(other, 1, wide, 2, 0, 0); /* prefixes that end within a byte: these differ in one bit */
    pair_is(six, 1, link, 2, 0, 0);
    pair_is(two, 2, six, 1, -1, -1);
    pair_is(two, 2, ib, 1, -1, -1);
    pair_is(link, 2, ib, 1, -1, -1);
    pair_is(link, 2, link, 2, 0, 0);
    pair_is(two, 2, two, 2, 0, 0);
}

int main(void)
{
    by_itself();
    as_asked();
    mistakes();
    not_usable();
    iwarp();
    near_or_fast();
    rates_of_files();
    places();
    for (int nodes = 1; nodes <= 4; nodes *= 2) {
        for (int nics = 1; nics * nodes <= FAKE_DEVICES; nics++) {
            for (int pes = nics; pes <= 8; pes += nics) {
                shared_out(nodes, nics, pes, true);
                shared_out(nodes, nics, pes, false);
            }
        }
    }
    subnets();
    pairs();
    return 0;
}

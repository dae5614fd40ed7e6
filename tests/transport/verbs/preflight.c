/* What is said of RDMA devices to people. */
#include <errno.h>
#include <sys/stat.h>

#include "check.h"
#include "devices.h"
#include "runtime/base/settings.h"
#include "transport/verbs/preflight.h"

static char said[8000];

static int64_t number(int setting)
{
    return settings_number((enum setting)setting);
}

static const char *text(int setting)
{
    return settings_string((enum setting)setting);
}

static void line(void *to, const char *name, const char *what)
{
    size_t used = strlen(said);

    CHECK(to == said);
    snprintf(said + used, sizeof said - used, "[%s] %s\n", name, what);
}

static struct transport_config config = {.number = number, .text = text};

static void report(const char *sys)
{
    said[0] = 0;
    CHECK_EQ(settings_load(), GSHMEM_OK);
    preflight_report(&config, sys, line, said);
    CHECK_EQ(fake_open, 0);
}

static void two_ports(void)
{
    fake_devices[0] = (struct fake_device){
        .name = "mlx5_0",
        .transport = IBV_TRANSPORT_IB,
        .inline_most = 200,
        .ports = 2,
        .port = {{.state = IBV_PORT_DOWN, .link_layer = 1},
                 {.state = IBV_PORT_ACTIVE,
                  .link_layer = 1,
                  .mtu = IBV_MTU_4096,
                  .speed = 128,
                  .width = 2,
                  .gid = {{FAKE_V1, "::ffff:127.0.0.1"}, {FAKE_V2, "::ffff:127.0.0.1"}}}}};
    fake_devices[1] = (struct fake_device){
        .name = "mlx5_1", .transport = IBV_TRANSPORT_IB, .cannot_open = EACCES, .ports = 1};
    report("/nowhere");
    CHECK_HAS(said, "[mlx5_0:2] active, Ethernet (RoCE), 400 Gbit/s, MTU 4096  <- used by verbs\n"
                    "[] GID 1  127.0.0.1/8 (RoCE v2, IPv4)  <-");
    CHECK_HAS(said, "[] GID 0  127.0.0.1/8 (RoCE v1");
    CHECK_HAS(said, "at most 1000 queue pairs of 2000 requests and 8 reads at a time; 4000 completion "
                    "queues of 5000; 6000 shared receive queues of 7000; 3000 registrations");
    CHECK_HAS(said, "[] 192 B or more within a request; atomics could be the NIC's");
    CHECK_HAS(said, "[mlx5_0:1] no: is down (ip link set");
    CHECK_HAS(said, "[mlx5_1:1] no: cannot be opened: Permission denied (give this user");
    CHECK(strstr(said, "mlx5_0:2") < strstr(said, "mlx5_0:1"));
}

static int distance(void *context, const char *device, const char **where)
{
    (void)context;
    *where = device[5] == '1' ? "here" : "";
    return device[5] != '1';
}

/* The nearest is the first, and a slow one is not used. */
static void near_and_slow(void)
{
    config.distance = distance;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"mlx5_0", "mlx5_1", "mlx5_2"};
        fake_devices[i] = (struct fake_device){.name = names[i],
                                               .transport = IBV_TRANSPORT_IB,
                                               .ports = 1,
                                               .port = {{.state = IBV_PORT_ACTIVE,
                                                         .mtu = IBV_MTU_4096,
                                                         .speed = i == 2 ? 32 : 128,
                                                         .width = 2,
                                                         .gid = {{FAKE_IB, "fe80::1"}}}}};
    }
    report("/nowhere");
    CHECK_HAS(said, "[mlx5_1:1] active, InfiniBand, 400 Gbit/s, MTU 4096, here  <- used by verbs\n");
    CHECK_HAS(said, "[mlx5_0:1] active, InfiniBand, 400 Gbit/s, MTU 4096  <- used by verbs\n");
    CHECK_HAS(said,
              "[mlx5_2:1] active, InfiniBand, 100 Gbit/s, MTU 4096; not used, as others have more "
              "than twice that rate (GSHMEM_IB_HCA names it)\n");
    CHECK(strstr(said, "mlx5_1:1") < strstr(said, "mlx5_0:1"));
    config.distance = NULL;
    memset(fake_devices, 0, sizeof fake_devices);
}

static void a_mistake(void)
{
    setenv("GSHMEM_IB_HCA", "mlx5_2", 1);
    report("/nowhere");
    CHECK_STR(said, "[none] GSHMEM_IB_HCA=mlx5_2: there is no such port here, but mlx5_0 (2 ports), "
                    "mlx5_1 (1 port)\n");
    unsetenv("GSHMEM_IB_HCA");
}

/* One that the kernel has, and libibverbs has no driver for. */
static void unknown(void)
{
    char sys[] = "/tmp/gshmem-preflight-XXXXXX", path[100];
    static const char *const folders[] = {"class", "class/infiniband", "class/infiniband/mlx5_0",
                                          "class/infiniband/new_0"};

    CHECK(mkdtemp(sys) != NULL);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", sys, folders[i]);
        CHECK_EQ(mkdir(path, 0700), 0);
    }
    report(sys);
    CHECK_HAS(said, "[new_0] no: libibverbs does not reach it");
    CHECK(!strstr(said, "[mlx5_0]"));
    for (int i = 3; i >= 0; i--) {
        snprintf(path, sizeof path, "%s/%s", sys, folders[i]);
        CHECK_EQ(rmdir(path), 0);
    }
    CHECK_EQ(rmdir(sys), 0);
}

int main(void)
{
    near_and_slow();
    two_ports();
    a_mistake();
    unknown();
    memset(fake_devices, 0, sizeof fake_devices);
    report("/nowhere");
    CHECK_STR(said, "");
    return 0;
}

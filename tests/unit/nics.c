/* Which cards are near a GPU, by a tree of PCI devices that is made here: two sockets, a switch
 * behind a root port of each, cards of both kinds. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "../check.h"
#include "runtime/node/nics.h"

static char sys[] = "/tmp/gshmem-nics-XXXXXX";

static void make_folder(const char *below)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", sys, below);
    for (char *slash = path + sizeof sys; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    CHECK(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
}

static void write_line(const char *below, const char *name, const char *line)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s/%s", sys, below, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "%s\n", line) > 0 && fclose(f) == 0);
}

static void write_number(const char *below, const char *name, int value)
{
    char text[20];

    snprintf(text, sizeof text, "%d", value);
    write_line(below, name, text);
}

static void link_to(const char *from, const char *below)
{
    char path[400], target[400];

    snprintf(path, sizeof path, "%s/%s", sys, from);
    snprintf(target, sizeof target, "%s/%s", sys, below);
    CHECK_EQ(symlink(target, path), 0);
}

/* A device at the end of `path`, listed by its address as PCI does, on a node of memory. */
static void make_device(const char *path, int node)
{
    char below[300], listed[100];

    snprintf(below, sizeof below, "devices/%s", path);
    make_folder(below);
    write_number(below, "numa_node", node);
    snprintf(listed, sizeof listed, "bus/pci/devices/%s", strrchr(path, '/') + 1);
    link_to(listed, below);
}

/* A card of a class, behind what its device's path says; deeper than PCI knows with `under`. */
static void make_card(const char *class, const char *name, const char *path, const char *under)
{
    char folder[100], link[160], below[300];

    snprintf(folder, sizeof folder, "class/%s/%s", class, name);
    make_folder(folder);
    snprintf(below, sizeof below, "devices/%s%s", path, under);
    make_folder(below);
    snprintf(link, sizeof link, "%s/device", folder);
    link_to(link, below);
}

#define SWITCH0 "pci0000:00/0000:00:01.0/0000:01:00.0/"
#define SWITCH1 "pci0000:80/0000:80:01.0/0000:81:00.0/"
static const char gpu[] = SWITCH0 "0000:02:01.0/0000:03:00.0";
static const char near_card[] = SWITCH0 "0000:02:02.0/0000:04:00.0";
static const char port_card[] = "pci0000:00/0000:00:01.0/0000:05:00.0";
static const char node_card[] = "pci0000:40/0000:40:01.0/0000:41:00.0";
static const char internode_card[] = SWITCH1 "0000:82:01.0/0000:83:00.0";
static const char internode_gpu[] = SWITCH1 "0000:82:02.0/0000:8a:00.0";

static void make_tree(void)
{
    make_folder("bus/pci/devices");
    make_folder("class/net/lo"); /* it has no device */
    make_device(gpu, 0);
    make_device(near_card, 0);
    make_device(port_card, 0);
    make_device(node_card, 0);
    make_device(internode_card, 1);
    make_device(internode_gpu, 1);
    make_card("infiniband", "mlx5_10", internode_card, "");
    make_card("net", "ib9", internode_card, "");
    make_card("infiniband", "mlx5_2", near_card, "");
    make_card("net", "ib2", near_card, "");
    make_card("net", "eth0", node_card, "");
    make_card("infiniband", "mlx5_0", port_card, "");
    make_card("net", "eth1", internode_card, "/virtio0");        /* a second interface of a card */
    make_card("net", "wire", "platform/soc/ethernet", ""); /* none of PCI's */
}

static void check_card(const struct nic *n, const char *rdma, const char *interface,
                       enum nic_distance distance)
{
    CHECK_STR(n->rdma, rdma);
    CHECK_STR(n->interface, interface);
    CHECK_EQ(n->distance, distance);
}

static void order(void)
{
    struct nic n[NICS_MOST];

    CHECK_EQ(nics_survey(sys, "0000:03:00.0", n, NICS_MOST), 6);
    check_card(&n[0], "mlx5_2", "ib2", NIC_SAME_SWITCH);
    CHECK_STR(n[0].pci, "0000:04:00.0");
    check_card(&n[1], "mlx5_0", "", NIC_SAME_PORT);
    check_card(&n[2], "", "eth0", NIC_SAME_NODE);
    check_card(&n[3], "mlx5_10", "eth1", NIC_ELSEWHERE);
    check_card(&n[4], "", "ib9", NIC_ELSEWHERE);
    check_card(&n[5], "", "wire", NIC_UNKNOWN);
    CHECK_EQ(nics_survey(sys, "0000:03:00.0", n, 1), 1);
    check_card(&n[0], "mlx5_2", "ib2", NIC_SAME_SWITCH);
    CHECK_EQ(nics_survey(sys, "0000:8A:00.0", n, NICS_MOST), 6); /* as the driver writes it */
    check_card(&n[0], "mlx5_10", "eth1", NIC_SAME_SWITCH);
    check_card(&n[1], "", "ib9", NIC_SAME_SWITCH);
    check_card(&n[2], "mlx5_0", "", NIC_ELSEWHERE);
    CHECK_EQ(nics_survey("/nowhere", "0000:03:00.0", n, NICS_MOST), 0);
    CHECK(nics_distance_text(NIC_SAME_SWITCH)[0]);
}

/* Without a GPU, with one that is not there, and with what is no address. */
static void no_gpu(void)
{
    static const char *const none[] = {
        NULL, "", "0000:77:00.0", "../../../..", "0000:03:00.0.0", "zzzz:03:00.0"};
    struct nic n[NICS_MOST];

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_EQ(nics_survey(sys, none[i], n, NICS_MOST), 6);
        check_card(&n[0], "mlx5_0", "", NIC_UNKNOWN);
        check_card(&n[1], "mlx5_2", "ib2", NIC_UNKNOWN);
        check_card(&n[2], "mlx5_10", "eth1", NIC_UNKNOWN);
    }
}

static void nearest(void)
{
    char list[100];

    nics_nearest(sys, "0000:03:00.0", list, sizeof list);
    CHECK_STR(list, "ib2");
    nics_nearest(sys, "0000:8a:00.0", list, sizeof list);
    CHECK_STR(list, "eth1,ib9");
    nics_nearest(sys, "0000:8a:00.0", list, 7); /* whole names, as far as there is room */
    CHECK_STR(list, "eth1");
    nics_nearest(sys, "0000:77:00.0", list, sizeof list);
    CHECK_STR(list, "");
}

/* From the GPU where there is one, else from the node that all of the CPUs are of. */
static void centers(void)
{
    const struct nic_center gpu_there = {"0000:8A:00.0", 0}, nowhere = {"", -1};
    struct nic_center cpus = {"", 0};
    const char *text;
    cpu_set_t set;
    int nodes;

    CHECK_EQ(nics_distance(sys, &gpu_there, "mlx5_10", &text), NIC_SAME_SWITCH);
    CHECK_HAS(text, "PCIe switch");
    CHECK_EQ(nics_distance(sys, &gpu_there, "mlx5_2", &text), NIC_ELSEWHERE);
    CHECK_EQ(nics_distance(sys, &gpu_there, "mlx5_77", &text), NIC_UNKNOWN);
    CHECK_STR(text, "");
    CHECK_EQ(nics_distance(sys, &nowhere, "mlx5_10", &text), NIC_UNKNOWN);
    CHECK_STR(text, "");
    CHECK_EQ(nics_distance(sys, &cpus, "mlx5_2", &text), NIC_SAME_NODE);
    CHECK_EQ(nics_distance(sys, &cpus, "mlx5_10", &text), NIC_ELSEWHERE);
    CHECK_HAS(text, "another NUMA node than this PE's CPUs");

    CPU_ZERO(&set);
    CPU_SET(9, &set);
    CHECK_EQ(nics_node_of(sys, &set, &nodes), -1);
    CHECK_EQ(nodes, 0);
    make_folder("devices/system/node/node0");
    make_folder("devices/system/node/node2");
    make_folder("devices/system/node/node3");
    write_line("devices/system/node/node0", "cpulist", "0-3,8-11");
    write_line("devices/system/node/node2", "cpulist", "4-7,12");
    write_line("devices/system/node/node3", "cpulist", ""); /* memory alone */
    CHECK_EQ(nics_node_of(sys, &set, &nodes), 0);
    CHECK_EQ(nodes, 2);
    CPU_SET(0, &set);
    CHECK_EQ(nics_node_of(sys, &set, &nodes), 0);
    CPU_SET(12, &set);
    CHECK_EQ(nics_node_of(sys, &set, &nodes), -1);
    CPU_ZERO(&set);
    CHECK_EQ(nics_node_of(sys, &set, &nodes), -1);
    CPU_SET(12, &set);
    CPU_SET(5, &set);
    CHECK_EQ(nics_node_of(sys, &set, &nodes), 2);
}

static void ways(void)
{
    char why[300];

    CHECK_EQ(nics_choose_way(sys, false, why, sizeof why), NIC_BY_STAGING);
    CHECK_HAS(why, "modprobe nvidia_peermem");
    make_folder("module/nvidia_peermem");
    CHECK_EQ(nics_choose_way(sys, false, why, sizeof why), NIC_BY_PEERMEM);
    CHECK_EQ(nics_choose_way(sys, true, why, sizeof why), NIC_BY_DMA_BUF);
    CHECK_HAS(why, "not needed");
    CHECK_STR(nics_way_name(NIC_BY_PEERMEM), "peermem");
}

static int erase(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    return remove(path);
}

static void erase_all(void)
{
    nftw(sys, erase, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    CHECK(mkdtemp(sys));
    atexit(erase_all);
    make_tree();
    order();
    no_gpu();
    nearest();
    centers();
    ways();
    return 0;
}

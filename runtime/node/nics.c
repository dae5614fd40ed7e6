#define _GNU_SOURCE
#include "runtime/node/nics.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Places in the tree of devices ---- */

/* The bridges and ports a device is behind, from the root down, and itself last. */
enum { DEEPEST = 16 };

struct place {
    char step[DEEPEST][16]; /* "pci0000:00", "0000:00:01.0", … */
    int n;
    int node; /* NUMA node; -1: not known */
};

/* "0000:65:00.0". */
static bool is_address(const char *text, size_t n)
{
    static const char form[] = "xxxx:xx:xx.x";

    if (n != sizeof form - 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    }
    return true;
}

static bool is_root(const char *text, size_t n)
{
    return n == strlen("pci0000:00") && strncmp(text, "pci", 3) == 0 && text[7] == ':';
}

static int read_number(const char *path)
{
    FILE *f = fopen(path, "re");
    int value = -1;

    if (f && fscanf(f, "%d", &value) != 1)
        value = -1;
    if (f)
        fclose(f);
    return value;
}

/* The part of a link's target that PCI knows: devices of virtio or USB are below it. False: it has
 * none. */
static bool nics_find_place(const char *link, struct place *p)
{
    char real[PATH_MAX], node[PATH_MAX + 16];
    size_t end = 0;

    *p = (struct place){.node = -1};
    if (!realpath(link, real))
        return false;
    for (char *step = real; *step;) {
        size_t n = strcspn(step, "/");
        bool ours = p->n ? is_address(step, n) : is_root(step, n);
        if (p->n && !ours)
            break;
        if (ours && p->n < DEEPEST) {
            snprintf(p->step[p->n++], sizeof p->step[0], "%.*s", (int)n, step);
            end = (size_t)(step - real) + n;
        }
        step += n + (step[n] == '/');
    }
    if (p->n < 2)
        return false;
    snprintf(node, sizeof node, "%.*s/numa_node", (int)end, real);
    p->node = read_number(node);
    return true;
}

/* The last step of each is the device itself: two functions of one card share all before it. */
static enum nic_distance network_nics_distance(const struct place *a, const struct place *b)
{
    int shared = 0;

    if (!a->n || !b->n)
        return NIC_UNKNOWN;
    while (shared < a->n - 1 && shared < b->n - 1 && strcmp(a->step[shared], b->step[shared]) == 0)
        shared++;
    if (shared > 2) /* the root complex, its port, and a switch */
        return NIC_SAME_SWITCH;
    if (shared == 2)
        return NIC_SAME_PORT;
    return (a->node >= 0 && a->node == b->node) || (a->node < 0 && b->node < 0 && shared == 1)
               ? NIC_SAME_NODE
               : NIC_ELSEWHERE;
}

/* The device at that PCI address; false: there is none, or it is no address. */
static bool nics_find_device(const char *sys, const char *pci, struct place *p)
{
    char link[PATH_MAX], address[16] = "";

    *p = (struct place){.node = -1};
    for (size_t i = 0; pci && pci[i] && i < sizeof address - 1; i++)
        address[i] = (char)tolower((unsigned char)pci[i]); /* as /sys writes it */
    return is_address(address, strlen(address)) &&
           snprintf(link, sizeof link, "%s/bus/pci/devices/%s", sys, address) < (int)sizeof link &&
           nics_find_place(link, p);
}

/* ---- The place of a PE ---- */

/* A list such as "0-3,8,10-11", the system's format for CPUs. */
void nics_read_list(const char *list, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    while (isdigit((unsigned char)*list)) {
        char *end;
        long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, cpus);
        list = end + (*end == ',');
    }
}

/* Whether it contains all of `cpus`. */
static bool list_has(const char *list, const cpu_set_t *cpus)
{
    cpu_set_t of_list, both;

    nics_read_list(list, &of_list);
    CPU_AND(&both, &of_list, cpus);
    return CPU_EQUAL(&both, cpus);
}

bool nics_cpus_of_node(const char *sys, int node, char *list, size_t size)
{
    char path[PATH_MAX];
    FILE *f = NULL;
    bool found = false;

    if (snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node) <
        (int)sizeof path)
        f = fopen(path, "re");
    if (f) {
        found = fgets(list, (int)size, f) && isdigit((unsigned char)list[0]);
        fclose(f);
    }
    if (found)
        list[strcspn(list, "\n")] = 0;
    return found;
}

int nics_node_of(const char *sys, const cpu_set_t *cpus, int *nodes)
{
    enum { GAP_MOST = 64 }; /* in the numbers of nodes */
    char path[PATH_MAX], list[8192];
    int found = -1;

    *nodes = 0;
    for (int node = 0, last = 0; node - last < GAP_MOST; node++) {
        if (snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node) >=
            (int)sizeof path)
            break;
        FILE *f = fopen(path, "re");
        if (!f)
            continue;
        last = node;
        if (fgets(list, sizeof list, f) &&
            isdigit((unsigned char)list[0])) { /* otherwise the node has memory alone */
            ++*nodes;
            found = CPU_COUNT(cpus) && list_has(list, cpus) ? node : found;
        }
        fclose(f);
    }
    return found;
}

enum nic_distance nics_distance(const char *sys, const struct nic_center *center, const char *rdma,
                                const char **text)
{
    char link[PATH_MAX];
    struct place gpu, card;
    enum nic_distance d = NIC_UNKNOWN;

    *text = "";
    if (snprintf(link, sizeof link, "%s/class/infiniband/%s/device", sys, rdma) >=
            (int)sizeof link ||
        !nics_find_place(link, &card))
        return NIC_UNKNOWN;
    if (nics_find_device(sys, center->pci, &gpu)) {
        d = network_nics_distance(&gpu, &card);
        *text = nics_distance_text(d);
    } else if (center->node >= 0 && card.node >= 0) {
        d = card.node == center->node ? NIC_SAME_NODE : NIC_ELSEWHERE;
        *text = d == NIC_SAME_NODE ? "on the NUMA node of this PE's CPUs"
                                   : "on another NUMA node than this PE's CPUs";
    }
    return d;
}

int nics_node_of_device(const char *sys, const char *pci)
{
    struct place p;

    return nics_find_device(sys, pci, &p) ? p.node : -1;
}

enum nic_distance nics_between(const char *sys, const char *pci, const char *other)
{
    struct place a, b;

    return nics_find_device(sys, pci, &a) && nics_find_device(sys, other, &b)
               ? network_nics_distance(&a, &b)
               : NIC_UNKNOWN;
}

/* A number in hexadecimal that a device's file has; 0: there is none. */
static unsigned read_property(const char *sys, const char *pci, const char *name)
{
    char path[PATH_MAX];
    unsigned value = 0;
    FILE *f = NULL;

    if (snprintf(path, sizeof path, "%s/bus/pci/devices/%s/%s", sys, pci, name) < (int)sizeof path)
        f = fopen(path, "re");
    if (f && fscanf(f, "%x", &value) != 1)
        value = 0;
    if (f)
        fclose(f);
    return value;
}

int nics_gpus(const char *sys, char pci[][16], int most)
{
    enum { NVIDIA = 0x10de, DISPLAY = 0x03 };
    struct dirent **entry;
    char path[PATH_MAX];
    int n, found = 0;

    if (snprintf(path, sizeof path, "%s/bus/pci/devices", sys) >= (int)sizeof path ||
        (n = scandir(path, &entry, NULL, alphasort)) < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        if (found < most && is_address(name, strlen(name)) &&
            read_property(sys, name, "vendor") == NVIDIA &&
            read_property(sys, name, "class") >> 16 == DISPLAY)
            snprintf(pci[found++], 16, "%.15s", name);
        free(entry[i]);
    }
    free(entry);
    return found;
}

/* ---- Cards ---- */

struct survey {
    const char *sys;
    struct place gpu;
    struct nic nics[NICS_MOST];
    int n;
};

static struct nic *find_card(struct survey *s, const char *pci)
{
    for (int i = 0; pci[0] && i < s->n; i++) {
        if (strcmp(s->nics[i].pci, pci) == 0)
            return &s->nics[i];
    }
    return NULL;
}

/* Adds a card. One that does RDMA also has a network interface, which is the same card. */
static void add_card(struct survey *s, const char *class, const char *name)
{
    const bool rdma = strcmp(class, "infiniband") == 0;
    struct nic new = {.distance = NIC_UNKNOWN};
    char link[PATH_MAX];
    struct place p;

    if (strlen(name) >= sizeof new.rdma ||
        snprintf(link, sizeof link, "%s/class/%s/%s/device", s->sys, class, name) >=
            (int)sizeof link ||
        access(link, F_OK) != 0)
        return; /* an interface without a device does not lead out of the machine: lo, bridges,
                   tunnels */
    if (nics_find_place(link, &p)) {
        memcpy(new.pci, p.step[p.n - 1], sizeof new.pci);
        new.distance = network_nics_distance(&s->gpu, &p);
    }
    struct nic *card = find_card(s, new.pci);
    if (!card || (rdma ? card->rdma : card->interface)[0]) {
        if (s->n == NICS_MOST)
            return;
        card = &s->nics[s->n++];
        *card = new;
    }
    strcpy(rdma ? card->rdma : card->interface, name);
}

static void look_into(struct survey *s, const char *class)
{
    struct dirent **entry;
    char path[PATH_MAX];
    int n;

    if (snprintf(path, sizeof path, "%s/class/%s", s->sys, class) >= (int)sizeof path ||
        (n = scandir(path, &entry, NULL, alphasort)) < 0)
        return;
    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.')
            add_card(s, class, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
}

/* By name where all else is equal: names are numbered. */
static int nearer(const void *left, const void *right)
{
    const struct nic *a = left, *b = right;

    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (!a->rdma[0] != !b->rdma[0])
        return a->rdma[0] ? -1 : 1;
    int order = strverscmp(a->rdma, b->rdma);
    return order ? order : strverscmp(a->interface, b->interface);
}

int nics_survey(const char *sys, const char *pci, struct nic *nics, int most)
{
    struct survey s = {.sys = sys};

    if (!nics_find_device(sys, pci, &s.gpu))
        s.gpu.n = 0;
    look_into(&s, "infiniband");
    look_into(&s, "net");
    qsort(s.nics, (size_t)s.n, sizeof *nics, nearer);
    most = s.n < most ? s.n : most;
    memcpy(nics, s.nics, (size_t)most * sizeof *nics);
    return most;
}

void nics_nearest(const char *sys, const char *pci, char *list, size_t size)
{
    struct nic nics[NICS_MOST];
    int n = nics_survey(sys, pci, nics, NICS_MOST);
    enum nic_distance nearest = NIC_UNKNOWN;
    size_t used = 0;

    list[0] = 0;
    for (int i = 0; i < n; i++) {
        size_t more = strlen(nics[i].interface);
        if (!more || nics[i].distance == NIC_UNKNOWN)
            continue;
        if (used == 0)
            nearest = nics[i].distance;
        if (nics[i].distance != nearest || used + more + 2 > size)
            break;
        used +=
            (size_t)snprintf(list + used, size - used, "%s%s", used ? "," : "", nics[i].interface);
    }
}

const char *nics_distance_text(enum nic_distance distance)
{
    static const char *const texts[] = {
        [NIC_SAME_SWITCH] = "behind the GPU's PCIe switch",
        [NIC_SAME_PORT] = "behind the GPU's root port",
        [NIC_SAME_NODE] = "on the GPU's NUMA node",
        [NIC_ELSEWHERE] = "on another NUMA node than the GPU",
        [NIC_UNKNOWN] = "",
    };

    return texts[distance];
}

/* ---- Access to GPU memory ---- */

static bool nics_exists(const char *sys, const char *what)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", sys, what) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* dma-buf is the kernel's own method, and names the memory; peermem is a module beside the kernel
 * that knows addresses; staging works everywhere, at the cost of one more copy on each side. */
enum nic_way nics_choose_way(const char *sys, bool dma_buf, char *why, size_t why_size)
{
    bool peermem = nics_exists(sys, "module/nvidia_peermem") ||
                   nics_exists(sys, "kernel/mm/memory_peers/nv_mem"); /* its older name */

    if (dma_buf) {
        snprintf(why, why_size, "the GPU's driver exports its memory%s",
                 peermem ? "; nvidia_peermem is loaded too, and not needed" : "");
        return NIC_BY_DMA_BUF;
    }
    if (peermem) {
        snprintf(why, why_size, "the driver exports no dma-buf, and nvidia_peermem is loaded");
        return NIC_BY_PEERMEM;
    }
    snprintf(why, why_size,
             "the driver exports no dma-buf and nvidia_peermem is not loaded: every byte is copied "
             "through pinned memory (use the driver's open kernel modules, or modprobe "
             "nvidia_peermem)");
    return NIC_BY_STAGING;
}

const char *nics_way_name(enum nic_way way)
{
    static const char *const names[] = {
        [NIC_BY_DMA_BUF] = "dma-buf",
        [NIC_BY_PEERMEM] = "peermem",
        [NIC_BY_STAGING] = "staging",
    };

    return names[way];
}

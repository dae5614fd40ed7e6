#define _GNU_SOURCE
#include "transport/verbs/choose.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/known.h"

static unsigned choose_rate(const struct ibv_port_attr *attr)
{
    static const struct {
        unsigned code, tenths;
    } speeds[] = {{1, 25},   {2, 50},   {4, 100},  {8, 100},
                  {16, 140}, {32, 250}, {64, 500}, {128, 1000}};
    static const struct {
        unsigned code, lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    unsigned tenths = 0, lanes = 0;

    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        tenths = attr->active_speed == speeds[i].code ? speeds[i].tenths : tenths;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        lanes = attr->active_width == widths[i].code ? widths[i].lanes : lanes;
    return tenths * lanes / 10;
}

/* The kernel reports XDR as NDR to programs. Its files say "800 Gb/sec (4X XDR)"; those of a kernel
 * that does not know a speed say the lowest one. */
static unsigned choose_rate_in_files(const struct port *p)
{
    char path[IBV_SYSFS_PATH_MAX + 40];
    unsigned rate = 0;

    snprintf(path, sizeof path, "%s/ports/%d/rate", p->context->device->ibdev_path, p->number);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%u", &rate) != 1)
        rate = 0;
    if (f)
        fclose(f);
    return rate;
}

/* Appends to a line, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void choose_add(char *line, size_t size,
                                                             const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + used, size - used, format, args);
    va_end(args);
}

/* ---- Addresses ---- */

static void choose_addresses(const struct transport_config *c, struct port *p)
{
    const int asked = (int)c->number(SETTING_NAME(IB_GID_INDEX));

    if (asked >= 0)
        p->addresses = addresses_find(p->context, p->number, asked, asked + 1, p->address);
    if (asked < 0 || p->addresses == 0)
        p->addresses = addresses_find(p->context, p->number, 0, p->attr.gid_tbl_len, p->address);
    if (p->addresses == 0) {
        snprintf(p->why, sizeof p->why, "has no address: %s",
                 p->ethernet ? "give its network interface an IP address (ip address add)"
                             : "it has no GID yet");
        return;
    }
    if (asked < 0 || p->address[0].index == asked)
        return;
    p->mistaken = true;
    snprintf(p->why, sizeof p->why, "GSHMEM_IB_GID_INDEX=%d: it has", asked);
    for (int i = 0; i < p->addresses; i++) {
        char text[INET6_ADDRSTRLEN];
        addresses_text(&p->address[i].gid, text, sizeof text);
        choose_add(p->why, sizeof p->why, "%s %d (%s, %s)", i ? "," : "", p->address[i].index,
                   addresses_rank_text(p->address[i].rank), text);
    }
}

/* ---- Partitions ---- */

/* The upper bit says that a port is a full member; two that are not cannot communicate. */
static void choose_pkey(const struct transport_config *c, struct port *p)
{
    const int asked = (int)c->number(SETTING_NAME(IB_PKEY)) & 0x7fff;
    const int index = (int)c->number(SETTING_NAME(IB_PKEY_INDEX));
    char have[80] = "";
    int found = -1;

    p->pkey_index = (uint16_t)(index < p->attr.pkey_tbl_len ? index : 0);
    if (!asked && index > 0 && index >= p->attr.pkey_tbl_len) {
        p->mistaken = true;
        snprintf(p->why, sizeof p->why, "GSHMEM_IB_PKEY_INDEX=%d: its table has %d partitions",
                 index, p->attr.pkey_tbl_len);
    }
    if (!asked)
        return;
    for (int i = 0; i < p->attr.pkey_tbl_len && i < 65536; i++) {
        __be16 key;
        if (ibv_query_pkey(p->context, (uint8_t)p->number, i, &key) || !(ntohs(key) & 0x7fff))
            continue;
        if ((ntohs(key) & 0x7fff) == asked && (found < 0 || ntohs(key) & 0x8000))
            found = i;
        choose_add(have, sizeof have, "%s0x%04x", have[0] ? ", " : "", ntohs(key));
    }
    p->pkey_index = (uint16_t)(found < 0 ? 0 : found);
    if (found >= 0)
        return;
    p->mistaken = true;
    snprintf(p->why, sizeof p->why, "GSHMEM_IB_PKEY=0x%04x: it is in the partitions %s",
             (unsigned)c->number(SETTING_NAME(IB_PKEY)), have);
}

/* ---- Ports ---- */

static const char *choose_why_not_active(const struct port *p)
{
    switch (p->attr.state) {
    case IBV_PORT_ACTIVE:
        return NULL;
    case IBV_PORT_INIT:
    case IBV_PORT_ARMED:
        return "has a link, but no subnet manager has set it up (start opensm, or ask who runs the "
               "network)";
    default:
        return p->ethernet ? "is down (ip link set its network interface up; is the cable in?)"
                           : "is down (is the cable in, and the switch on?)";
    }
}

static void choose_query_port(const struct transport_config *c, struct port *p)
{
    if (ibv_query_port(p->context, (uint8_t)p->number, &p->attr)) {
        snprintf(p->why, sizeof p->why, "cannot be queried: %s", strerror(errno));
        return;
    }
    p->ethernet = p->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    const unsigned rate = choose_rate(&p->attr), in_files = choose_rate_in_files(p);
    p->rate = rate > in_files ? rate : in_files;
    const char *inactive = choose_why_not_active(p);
    if (inactive)
        snprintf(p->why, sizeof p->why, "%s", inactive);
    else if (p->iwarp && !cm_is_there())
        snprintf(p->why, sizeof p->why,
                 "is of iWARP, and librdmacm.so.1 is not installed, or was not "
                 "when GSHMEM was built (Debian: librdmacm1, librdmacm-dev)");
    else if (p->device_attr.max_srq == 0)
        snprintf(p->why, sizeof p->why,
                 "has no shared receive queues, without which it is not used");
    else if (!p->iwarp)
        choose_addresses(c, p);
    if (!p->why[0] && !p->iwarp)
        choose_pkey(c, p);
}

bool choose_again(const struct transport_config *c, struct port *p)
{
    p->device_attr.max_srq = 1; /* the port is in use, so that it has some */
    choose_query_port(c, p);
    return !p->why[0];
}

/* One item of GSHMEM_IB_HCA: "mlx5_0" or "mlx5_0:1". The port is no more than what atoi reads, so
 * that an item of GSHMEM_IB_HCA_BY_PE, with a number of PEs at its end, may be given, too. */
static bool choose_item_names(const char *item, size_t length, const char *device, int port)
{
    const size_t name = strcspn(item, ":,");

    return strlen(device) == name && strncmp(item, device, name) == 0 &&
           (name == length || atoi(item + name + 1) == port);
}

/* The item of "mlx5_0:1:2,mlx5_1:1:2" whose PEs this one is among: the number at its end is how
 * many PEs of the node it is for, the lowest first. NULL: of none, or the list is not one. */
static const char *choose_item_of_pe(const char *list, int turn)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        char device[IBV_SYSFS_NAME_MAX];
        int port, pes, end = 0;
        if (sscanf(at, "%63[^:,]:%d:%d%n", device, &port, &pes, &end) != 3 || port < 1 || pes < 1 ||
            (at[end] && at[end] != ','))
            return NULL;
        if (turn < pes)
            return at;
        turn -= pes;
    }
    return NULL;
}

/* Whether the settings allow a port of a device; port 0: any port of it. */
static bool choose_is_wanted(const struct transport_config *c, const char *device, int port)
{
    const char *list = c->text(SETTING_NAME(IB_HCA)), *by_pe = c->text(SETTING_NAME(IB_HCA_BY_PE));
    const int asked = (int)c->number(SETTING_NAME(IB_PORT));
    const bool others = *list == '^';

    if (asked && port && port != asked)
        return false;
    if (*by_pe) {
        const char *item = choose_item_of_pe(by_pe, c->turn);
        return item && choose_item_names(item, port ? strcspn(item, ",") : strcspn(item, ":,"),
                                         device, port);
    }
    if (!*list)
        return true;
    if (others && !port)
        return true; /* as one of its ports may be wanted */
    for (const char *at = list + others; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (choose_item_names(at, port ? length : strcspn(at, ":,"), device, port))
            return !others;
    }
    return others;
}

/* A device that is not known to keep the order of writes is taken to reorder them. */
static bool choose_may_reorder(const struct transport_config *c,
                               const struct ibv_device_attr *device)
{
    const char *order = c->text(SETTING_NAME(IB_ORDER));

    return strcmp(order, "auto") == 0 ? !known_of(device)->ordered : strcmp(order, "relaxed") == 0;
}

/* Each port opens the device for itself, so that each can be closed alone. */
static void choose_add_port(const struct transport_config *c, struct ibv_device *device,
                            struct port *p)
{
    snprintf(p->device, sizeof p->device, "%s", ibv_get_device_name(device));
    p->iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
    p->context = ibv_open_device(device);
    if (!p->context || ibv_query_device(p->context, &p->device_attr))
        snprintf(p->why, sizeof p->why, "cannot be opened: %s%s", strerror(errno),
                 errno == EACCES || errno == EPERM
                     ? " (give this user read and write rights to /dev/infiniband/uverbs*)"
                     : "");
    else
        choose_query_port(c, p);
    p->reorders = choose_may_reorder(c, &p->device_attr);
    if (p->why[0] && p->context) {
        ibv_close_device(p->context);
        p->context = NULL;
    }
}

static int choose_count_ports(struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    int ports = 1;

    if (context && !ibv_query_device(context, &attr))
        ports = attr.phys_port_cnt;
    if (context)
        ibv_close_device(context);
    return ports;
}

static int choose_compare(const void *left, const void *right)
{
    const struct port *a = left, *b = right;

    if (!a->why[0] != !b->why[0])
        return a->why[0] ? 1 : -1;
    if (a->spare != b->spare)
        return a->spare ? 1 : -1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->rate != b->rate)
        return a->rate > b->rate ? -1 : 1;
    int order = strverscmp(a->device, b->device);
    return order ? order : a->number - b->number;
}

/* A port that has less than half the rate of the fastest is left out, near or not: stripes are
 * equal, so that it would delay the others. GSHMEM_IB_HCA overrides this. A port of unknown rate
 * is newer than the table, and not slow. */
static void choose_mark_spares(const struct transport_config *c, struct port *ports, int n)
{
    const char *list = c->text(SETTING_NAME(IB_HCA));
    const bool named = (*list && *list != '^') || *c->text(SETTING_NAME(IB_HCA_BY_PE));
    unsigned fastest = 0;

    for (int i = 0; i < n; i++) {
        if (!ports[i].why[0] && ports[i].rate > fastest)
            fastest = ports[i].rate;
    }
    for (int i = 0; i < n; i++) {
        const unsigned rate = ports[i].rate;
        ports[i].spare = !ports[i].why[0] && !named && rate && 2 * rate < fastest;
    }
}

static bool choose_equally_good(const struct port *a, const struct port *b)
{
    return !a->why[0] && !b->why[0] && a->spare == b->spare && a->distance == b->distance &&
           a->rate == b->rate;
}

static void choose_reverse(struct port *first, struct port *last)
{
    for (; first < last; first++, last--) {
        const struct port p = *first;
        *first = *last;
        *last = p;
    }
}

/* Which of n equal ports a PE begins with. Launchers give PEs to the parts of a machine in turn,
 * or fill one part after the other. The number advances by one after lcm(n, parts) PEs, so that
 * the PEs of one part begin with different ports either way. */
static int choose_first_of(const struct transport_config *c, int n)
{
    const int parts = c->parts > 0 ? c->parts : 1;
    int lap = n;

    while (lap % parts)
        lap += n;
    return (c->turn + c->turn / lap) % n;
}

static void choose_share_out(const struct transport_config *c, struct port *ports, int n)
{
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && choose_equally_good(&ports[first], &ports[end]);)
            end++;
        const int by = choose_first_of(c, end - first);
        if (!by)
            continue;
        choose_reverse(&ports[first], &ports[first + by - 1]);
        choose_reverse(&ports[first + by], &ports[end - 1]);
        choose_reverse(&ports[first], &ports[end - 1]);
    }
}

/* The port's place among all devices of the machine, whatever the settings allow, so that machines
 * which are built alike agree. */
static int choose_place_of(struct ibv_device **list, const char *device, int port)
{
    int place = port - 1;

    for (struct ibv_device **d = list; d && *d; d++)
        place += 2 * (strverscmp(ibv_get_device_name(*d), device) < 0);
    return place < 255 ? place : 255;
}

int choose_ports(const struct transport_config *config, struct port *ports, int most, int *usable)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int n = 0;

    *usable = 0;
    for (struct ibv_device **d = list; d && *d; d++) {
        const char *name = ibv_get_device_name(*d);
        if (!choose_is_wanted(config, name, 0))
            continue;
        for (int number = 1, end = choose_count_ports(*d); number <= end && n < most; number++) {
            if (!choose_is_wanted(config, name, number))
                continue;
            ports[n] = (struct port){
                .number = number, .where = "", .place = choose_place_of(list, name, number)};
            if (config->distance)
                ports[n].distance = config->distance(config->context, name, &ports[n].where);
            choose_add_port(config, *d, &ports[n]);
            *usable += !ports[n++].why[0];
        }
    }
    if (list)
        ibv_free_device_list(list);
    choose_mark_spares(config, ports, n);
    qsort(ports, (size_t)n, sizeof *ports, choose_compare);
    choose_share_out(config, ports, n);
    return n;
}

void choose_release(struct port *ports, int n)
{
    for (int i = 0; i < n; i++) {
        if (ports[i].context)
            ibv_close_device(ports[i].context);
        ports[i].context = NULL;
    }
}

/* "mlx5_0 (1 port), mlx5_1 (2 ports)" */
static void choose_list_devices(char *text, size_t size)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    text[0] = 0;
    for (struct ibv_device **d = list; d && *d; d++) {
        int ports = choose_count_ports(*d);
        choose_add(text, size, "%s%s (%d port%s)", text[0] ? ", " : "", ibv_get_device_name(*d),
                   ports, ports == 1 ? "" : "s");
    }
    if (list)
        ibv_free_device_list(list);
}

bool choose_explain(const struct transport_config *config, const struct port *ports, int n,
                    char *why, size_t why_size)
{
    const char *hca = config->text(SETTING_NAME(IB_HCA));
    const char *by_pe = config->text(SETTING_NAME(IB_HCA_BY_PE));
    const int port = (int)config->number(SETTING_NAME(IB_PORT));
    char there[160];

    if (n > 0) { /* the first is the one that would be used */
        int which = 0;
        while (which < n - 1 && !ports[which].mistaken)
            which++;
        which = ports[which].mistaken ? which : 0;
        snprintf(why, why_size, "%s port %d %s", ports[which].device, ports[which].number,
                 ports[which].why);
        return ports[which].mistaken;
    }
    choose_list_devices(there, sizeof there);
    if (!there[0]) {
        snprintf(why, why_size, "there is no RDMA device");
        return false;
    }
    why[0] = 0;
    if (*by_pe)
        choose_add(why, why_size, "GSHMEM_IB_HCA_BY_PE=%s, for PE %d of this node", by_pe,
                   config->turn);
    else if (*hca)
        choose_add(why, why_size, "GSHMEM_IB_HCA=%s", hca);
    if (port)
        choose_add(why, why_size, "%sGSHMEM_IB_PORT=%d", *hca || *by_pe ? ", " : "", port);
    choose_add(why, why_size, ": there is no such port here, but %s", there);
    return true;
}

uint32_t choose_inline(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t most)
{
    static const uint32_t sizes[] = {512, 256, 192, 128, 96, 64, 48, 32, 16, 8};
    struct ibv_qp *qp;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ibv_qp_init_attr want = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1,
                    .max_recv_wr = 1,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = sizes[i]},
        };
        if (sizes[i] > most || !(qp = ibv_create_qp(pd, &want)))
            continue;
        ibv_destroy_qp(qp);
        return sizes[i];
    }
    return 0;
}

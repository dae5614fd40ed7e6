/* The RDMA devices of this machine, for gshmem-info: which ports would be used, why others would
 * not, and what to do about it. */
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "transport/verbs/choose.h"
#include "transport/verbs/known.h"
#include "transport/verbs/links.h"
#include "transport/verbs/preflight.h"

struct report {
    transport_line *line;
    void *to;
};

/* ---- One port ---- */

static void say_addresses(const struct report *r, const struct port *p)
{
    char address[INET6_ADDRSTRLEN], text[160];

    for (int i = 0; i < p->addresses; i++) {
        addresses_text(&p->address[i].gid, address, sizeof address);
        int n = snprintf(text, sizeof text, "GID %d  %s", p->address[i].index, address);
        if (p->address[i].prefix && p->ethernet)
            n += snprintf(text + n, sizeof text - (size_t)n, "/%d",
                          p->address[i].prefix - (strchr(address, '.') ? 96 : 0));
        snprintf(text + n, sizeof text - (size_t)n, " (%s)%s",
                 addresses_rank_text(p->address[i].rank),
                 i ? "" : "  <- unless another is of the peer's subnet");
        r->line(r->to, "", text);
    }
}

/* Devices do not say this: it is tried. */
static uint32_t inline_of(struct ibv_context *context)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = pd ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
    uint32_t most = cq ? choose_inline(pd, cq, 512) : 0;

    if (cq)
        ibv_destroy_cq(cq);
    if (pd)
        ibv_dealloc_pd(pd);
    return most;
}

static void say_limits(const struct report *r, const struct port *p)
{
    const struct ibv_device_attr *d = &p->device_attr;
    char text[300];

    snprintf(
        text, sizeof text,
        "at most %d queue pairs of %d requests and %d reads at a time; %d completion queues of "
        "%d; %d shared receive queues of %d; %d registrations",
        d->max_qp, d->max_qp_wr, d->max_qp_rd_atom, d->max_cq, d->max_cqe, d->max_srq,
        d->max_srq_wr, d->max_mr);
    r->line(r->to, "", text);
    if (!p->iwarp) {
        snprintf(text, sizeof text, "writes of a queue pair are %s (%s; GSHMEM_IB_ORDER)",
                 p->reorders
                     ? "taken to be placed in any order, and signals are given by the target's CPU"
                     : "placed in order",
                 known_of(d)->name);
        r->line(r->to, "", text);
    }
    snprintf(text, sizeof text, "%u B or more within a request; atomics %s", inline_of(p->context),
             d->atomic_cap == IBV_ATOMIC_NONE
                 ? "are not the NIC's, and are the target CPU's"
                 : "could be the NIC's, and are the target CPU's, as CPUs update the same words");
    r->line(r->to, "", text);
}

/* What a peer costs, by one NIC. */
static void say_cost(const struct report *r, const struct transport_config *config)
{
    const int queue_pairs = (int)config->number(SETTING_IB_QP_PER_PEER);
    uint64_t here, of_nic;
    char text[300];

    link_cost(queue_pairs, &here, &of_nic);
    snprintf(text, sizeof text,
             "a peer takes %llu KiB, and some %llu KiB of its NIC's queues, for each pair of NICs "
             "(GSHMEM_IB_QP_PER_PEER=%d): "
             "%llu and %llu MiB for 1,024 peers; more for those that are given more at once",
             (unsigned long long)here >> 10, (unsigned long long)of_nic >> 10, queue_pairs,
             (unsigned long long)here >> 10, (unsigned long long)of_nic >> 10);
    r->line(r->to, "peers", text);
}

static void say_port(const struct report *r, const struct port *p, bool used)
{
    static const char *const mtus[] = {"?", "256", "512", "1024", "2048", "4096"};
    char name[IBV_SYSFS_NAME_MAX + 16], text[400];
    const unsigned mtu = p->attr.active_mtu <= IBV_MTU_4096 ? p->attr.active_mtu : 0;

    snprintf(name, sizeof name, "%s:%d", p->device, p->number);
    if (p->why[0]) {
        snprintf(text, sizeof text, "no: %s", p->why);
        r->line(r->to, name, text);
        return;
    }
    snprintf(text, sizeof text, "%s, %u Gbit/s, MTU %s%s%s%s",
             p->iwarp      ? "active, iWARP"
             : p->ethernet ? "active, Ethernet (RoCE)"
                           : "active, InfiniBand",
             p->rate, mtus[mtu], p->where[0] ? ", " : "", p->where,
             used ? "  <- used by verbs"
             : p->spare
                 ? "; not used, as others have more than twice that rate (GSHMEM_IB_HCA names it)"
                 : "");
    r->line(r->to, name, text);
    say_addresses(r, p);
    say_limits(r, p);
}

/* ---- All ---- */

static bool preflight_is_known(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool known = false;

    for (struct ibv_device **d = list; d && *d; d++)
        known |= strcmp(ibv_get_device_name(*d), name) == 0;
    if (list)
        ibv_free_device_list(list);
    return known;
}

/* Devices that the kernel has, and libibverbs has not. */
static void say_unknown(const struct report *r, const char *sys)
{
    char path[200], text[300];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/class/infiniband", sys);
    DIR *d = opendir(path);
    while (d && (entry = readdir(d))) {
        if (entry->d_name[0] == '.' || preflight_is_known(entry->d_name))
            continue;
        snprintf(
            text, sizeof text,
            "no: libibverbs does not reach it: it has no driver for it (Debian: package "
            "ibverbs-providers; of a vendor's own: the same version as libibverbs), or see above");
        r->line(r->to, entry->d_name, text);
    }
    if (d)
        closedir(d);
}

void preflight_report(const struct transport_config *config, const char *sys, transport_line *line,
                      void *to)
{
    const struct report r = {line, to};
    struct port *ports = calloc(PORTS_MOST, sizeof *ports);
    int usable = 0, n = ports ? choose_ports(config, ports, PORTS_MOST, &usable) : 0;

    for (int i = 0; i < n; i++)
        say_port(&r, &ports[i],
                 !ports[i].spare && ports[i].ethernet == ports[0].ethernet &&
                     ports[i].iwarp == ports[0].iwarp);
    if (usable)
        say_cost(&r, config);
    if (n == 0 && ports) {
        char why[300];
        if (choose_explain(config, ports, n, why, sizeof why))
            line(to, "none", why);
    }
    choose_release(ports, n);
    free(ports);
    say_unknown(&r, sys);
}

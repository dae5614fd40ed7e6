/* The NIC that this PE uses, and what belongs to it rather than to a peer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/choose.h"
#include "transport/verbs/verbs.h"

enum { COMPLETIONS = 4096, READS_MOST = 16 };

/* ---- Which ---- */

static void describe(struct nic *nic, const char *device)
{
    char address[50];

    choose_address_text(&nic->gid, address, sizeof address);
    snprintf(nic->name, sizeof nic->name, "%s port %d, %s (GID %d)", device, nic->port, address,
             nic->gid_index);
}

static void take_port(struct nic *nic, struct port *p)
{
    const int reads = p->device_attr.max_qp_rd_atom;

    nic->context = p->context;
    p->context = NULL; /* it is the NIC's now */
    nic->port = p->number;
    nic->lid = p->attr.lid;
    nic->mtu = p->attr.active_mtu;
    nic->ethernet = p->ethernet;
    nic->iwarp = p->iwarp;
    nic->pkey_index = p->pkey_index;
    nic->gid = p->address[0].gid;
    nic->gid_index = p->address[0].index;
    nic->reads = (uint32_t)(reads < READS_MOST ? reads : READS_MOST);
    nic->receives_most = (uint32_t)p->device_attr.max_srq_wr;
    describe(nic, p->device);
}

static void take_ports(struct nic nic[NICS_MOST], int *taken, struct port *ports, int usable, char *why,
                       size_t why_size)
{
    size_t used = 0;

    for (int i = 0; i < usable && *taken < NICS_MOST; i++) {
        if (i && ports[i].ethernet != ports[0].ethernet)
            continue; /* several carry one link's data: they are of one kind */
        take_port(&nic[*taken], &ports[i]);
        snprintf(why + used, why_size - used, "%s%s", used ? "; " : "", nic[*taken].name);
        used += strlen(why + used);
        ++*taken;
    }
}

int nics_find(const struct transport_config *c, struct nic nic[NICS_MOST], char *why,
              size_t why_size)
{
    struct port *ports = calloc(PORTS_MOST, sizeof *ports);
    int usable = 0, taken = 0, n = ports ? choose_ports(c, ports, PORTS_MOST, &usable) : 0;
    bool mistaken = false;

    memset(nic, 0, NICS_MOST * sizeof *nic);
    if (usable)
        take_ports(nic, &taken, ports, usable, why, why_size);
    else if (ports)
        mistaken = choose_explain(c, ports, n, why, why_size);
    else
        snprintf(why, why_size, "out of memory");
    choose_release(ports, n);
    free(ports);
    return taken ? taken : mistaken ? -1 : 0;
}

/* ---- Receives ---- */

bool nic_receive_again(struct nic *nic, uint32_t index)
{
    struct ibv_sge sge = {(uintptr_t)&nic->inbox[index], sizeof nic->inbox[index], nic->inbox_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECEIVED | index, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(nic->srq, &wr, &bad) == 0;
}

/* Places are made for all that could be needed, whose pages are taken as they are used. */
static gshmem_status_t make_inbox(const struct verbs *v, struct nic *nic)
{
    uint64_t room = (uint64_t)v->config.n_pes * RECEIVES;

    nic->inbox_room = room < nic->receives_most ? (uint32_t)room : nic->receives_most;
    nic->inbox = calloc(nic->inbox_room, sizeof *nic->inbox);
    if (nic->inbox)
        nic->inbox_mr = ibv_reg_mr(nic->pd, nic->inbox, nic->inbox_room * sizeof *nic->inbox,
                                 IBV_ACCESS_LOCAL_WRITE);
    return nic->inbox_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

gshmem_status_t nic_add_receives(struct verbs *v, struct nic *nic, int pe)
{
    for (int i = 0; i < RECEIVES; i++) {
        if (nic->inbox_posted == nic->inbox_room)
            return v->config.fail(GSHMEM_ERR_TRANSPORT,
                                  "verbs: %s takes %u receives, which are used up with PE %d",
                                  nic->name, nic->inbox_room, pe);
        if (!nic_receive_again(nic, nic->inbox_posted))
            return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: posting a receive: %s",
                                  nic->name, strerror(errno));
        nic->inbox_posted++;
    }
    return GSHMEM_OK;
}

/* ---- Life ---- */

static gshmem_status_t reach_slots(const struct verbs *v, struct nic *nic)
{
    nic->slots_mr =
        ibv_reg_mr(nic->pd, v->slots, (size_t)SLOTS * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
    return nic->slots_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

gshmem_status_t nic_open(struct verbs *v, struct nic *nic)
{
    struct ibv_srq_init_attr receives = {.attr = {.max_wr = nic->receives_most, .max_sge = 1}};
    uint64_t most = (uint64_t)v->config.n_pes * RECEIVES;

    if (most < receives.attr.max_wr)
        receives.attr.max_wr = (uint32_t)most;
    if (!(nic->pd = ibv_alloc_pd(nic->context)) ||
        !(nic->channel = ibv_create_comp_channel(nic->context)) ||
        fcntl(nic->channel->fd, F_SETFL, O_NONBLOCK) ||
        !(nic->cq = ibv_create_cq(nic->context, COMPLETIONS, NULL, nic->channel, 0)) ||
        !(nic->srq = ibv_create_srq(nic->pd, &receives)) || make_inbox(v, nic) ||
        reach_slots(v, nic))
        return v->config.fail(GSHMEM_ERR_TRANSPORT,
                              "verbs: %s: %s (ulimit -l limits what may be pinned; "
                              "GSHMEM_TRANSPORT=tcp does without)",
                              nic->name, strerror(errno));
    return GSHMEM_OK;
}

void nic_close(struct verbs *v, struct nic *nic)
{
    memory_release(v, nic);
    if (nic->slots_mr)
        ibv_dereg_mr(nic->slots_mr);
    if (nic->inbox_mr)
        ibv_dereg_mr(nic->inbox_mr);
    if (nic->srq)
        ibv_destroy_srq(nic->srq);
    if (nic->cq)
        ibv_destroy_cq(nic->cq);
    if (nic->channel)
        ibv_destroy_comp_channel(nic->channel);
    if (nic->pd)
        ibv_dealloc_pd(nic->pd);
    ibv_close_device(nic->context);
    free(nic->inbox);
}

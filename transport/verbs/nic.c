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
    nic->pkey_index = p->pkey_index;
    nic->gid = p->address[0].gid;
    nic->gid_index = p->address[0].index;
    nic->reads = (uint32_t)(reads < READS_MOST ? reads : READS_MOST);
    nic->receives_most = (uint32_t)p->device_attr.max_srq_wr;
    describe(nic, p->device);
}

int nic_find(const struct transport_config *c, struct nic *nic, char *why, size_t why_size)
{
    struct port *ports = calloc(PORTS_MOST, sizeof *ports);
    int usable = 0, n = ports ? choose_ports(c, ports, PORTS_MOST, &usable) : 0;
    bool mistaken = false;

    *nic = (struct nic){0};
    if (usable) {
        take_port(nic, &ports[0]);
        snprintf(why, why_size, "%s", nic->name);
    } else if (ports) {
        mistaken = choose_explain(c, ports, n, why, why_size);
    } else {
        snprintf(why, why_size, "out of memory");
    }
    choose_release(ports, n);
    free(ports);
    return usable ? 1 : mistaken ? -1 : 0;
}

/* ---- Receives ---- */

bool nic_receive_again(struct verbs *v, uint32_t index)
{
    struct ibv_sge sge = {(uintptr_t)&v->inbox[index], sizeof v->inbox[index], v->inbox_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECEIVED | index, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(v->nic.srq, &wr, &bad) == 0;
}

/* Places are made for all that could be needed, whose pages are taken as they are used. */
static gshmem_status_t make_inbox(struct verbs *v)
{
    uint64_t room = (uint64_t)v->config.n_pes * RECEIVES;

    v->inbox_room = room < v->nic.receives_most ? (uint32_t)room : v->nic.receives_most;
    v->inbox = calloc(v->inbox_room, sizeof *v->inbox);
    if (v->inbox)
        v->inbox_mr = ibv_reg_mr(v->nic.pd, v->inbox, v->inbox_room * sizeof *v->inbox,
                                 IBV_ACCESS_LOCAL_WRITE);
    return v->inbox_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

gshmem_status_t nic_add_receives(struct verbs *v, int pe)
{
    for (int i = 0; i < RECEIVES; i++) {
        if (v->inbox_posted == v->inbox_room)
            return v->config.fail(GSHMEM_ERR_TRANSPORT,
                                  "verbs: %s takes %u receives, which are used up with PE %d",
                                  v->nic.name, v->inbox_room, pe);
        if (!nic_receive_again(v, v->inbox_posted))
            return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: posting a receive: %s",
                                  v->nic.name, strerror(errno));
        v->inbox_posted++;
    }
    return GSHMEM_OK;
}

/* ---- Life ---- */

static gshmem_status_t make_slots(struct verbs *v)
{
    v->slots = malloc((size_t)SLOTS * SLOT_BYTES);
    if (v->slots)
        v->slots_mr =
            ibv_reg_mr(v->nic.pd, v->slots, (size_t)SLOTS * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
    for (int i = 0; i < SLOTS; i++)
        v->slot_free[i] = i;
    v->slots_left = SLOTS;
    return v->slots_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

gshmem_status_t nic_open(struct verbs *v)
{
    struct nic *nic = &v->nic;
    struct ibv_srq_init_attr receives = {.attr = {.max_wr = nic->receives_most, .max_sge = 1}};
    uint64_t most = (uint64_t)v->config.n_pes * RECEIVES;

    if (most < receives.attr.max_wr)
        receives.attr.max_wr = (uint32_t)most;
    if (!(nic->pd = ibv_alloc_pd(nic->context)) ||
        !(nic->channel = ibv_create_comp_channel(nic->context)) ||
        fcntl(nic->channel->fd, F_SETFL, O_NONBLOCK) ||
        !(nic->cq = ibv_create_cq(nic->context, COMPLETIONS, NULL, nic->channel, 0)) ||
        !(nic->srq = ibv_create_srq(nic->pd, &receives)) || make_inbox(v) || make_slots(v))
        return v->config.fail(GSHMEM_ERR_TRANSPORT,
                              "verbs: %s: %s (ulimit -l limits what may be pinned; "
                              "GSHMEM_TRANSPORT=tcp does without)",
                              nic->name, strerror(errno));
    return GSHMEM_OK;
}

void nic_close(struct verbs *v)
{
    struct nic *nic = &v->nic;

    memory_release(v);
    if (v->slots_mr)
        ibv_dereg_mr(v->slots_mr);
    if (v->inbox_mr)
        ibv_dereg_mr(v->inbox_mr);
    if (nic->srq)
        ibv_destroy_srq(nic->srq);
    if (nic->cq)
        ibv_destroy_cq(nic->cq);
    if (nic->channel)
        ibv_destroy_comp_channel(nic->channel);
    if (nic->pd)
        ibv_dealloc_pd(nic->pd);
    if (nic->context)
        ibv_close_device(nic->context);
    free(v->slots);
    free(v->inbox);
}

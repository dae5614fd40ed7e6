/* Which NIC, which port, which address; and what belongs to the NIC rather than to a peer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "transport/verbs/verbs.h"

enum { COMPLETIONS = 4096, READS_MOST = 16 };

/* ---- Choosing ---- */

/* How good an address is: IPv4 over RoCE v2, other of RoCE v2, then v1; 0: none. */
static int rank(const struct ibv_gid_entry *e)
{
    static const unsigned char ipv4[12] = {[10] = 0xff, [11] = 0xff};
    static const unsigned char none[16];

    if (memcmp(e->gid.raw, none, 16) == 0)
        return 0;
    if (e->gid_type == IBV_GID_TYPE_IB)
        return 5;
    if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 1;
    return memcmp(e->gid.raw, ipv4, 12) == 0 ? 4 : e->gid.raw[0] == 0xfe ? 2 : 3;
}

static void describe(struct nic *nic)
{
    char address[50];
    const unsigned char *g = nic->gid.raw;

    if (g[10] == 0xff && g[11] == 0xff && g[0] == 0)
        snprintf(address, sizeof address, "%u.%u.%u.%u", g[12], g[13], g[14], g[15]);
    else
        snprintf(address, sizeof address, "%02x%02x:..:%02x%02x", g[0], g[1], g[14], g[15]);
    snprintf(nic->name, sizeof nic->name, "%s port %d, %s (GID %d)",
             ibv_get_device_name(nic->context->device), nic->port, address, nic->gid_index);
}

/* The best address of a port, or the one that was asked for. */
static bool choose_gid(struct nic *nic, int asked, int table)
{
    int best = 0;

    for (int i = asked < 0 ? 0 : asked; i < (asked < 0 ? table : asked + 1); i++) {
        struct ibv_gid_entry e;
        if (ibv_query_gid_ex(nic->context, (uint32_t)nic->port, (uint32_t)i, &e, 0) ||
            rank(&e) <= best)
            continue;
        best = rank(&e);
        nic->gid = e.gid;
        nic->gid_index = i;
    }
    return best > 0;
}

static bool choose_port(const struct transport_config *c, struct nic *nic)
{
    int asked = (int)c->number(SETTING_IB_PORT);
    struct ibv_device_attr device;

    if (ibv_query_device(nic->context, &device))
        return false;
    nic->reads =
        (uint32_t)(device.max_qp_rd_atom < READS_MOST ? device.max_qp_rd_atom : READS_MOST);
    nic->receives_most = (uint32_t)device.max_srq_wr;
    for (int port = asked ? asked : 1; port <= (asked ? asked : device.phys_port_cnt); port++) {
        struct ibv_port_attr p;
        if (ibv_query_port(nic->context, (uint8_t)port, &p) || p.state != IBV_PORT_ACTIVE)
            continue;
        nic->port = port;
        nic->lid = p.lid;
        nic->mtu = p.active_mtu;
        nic->ethernet = p.link_layer == IBV_LINK_LAYER_ETHERNET;
        if (choose_gid(nic, (int)c->number(SETTING_IB_GID_INDEX), p.gid_tbl_len))
            return true;
    }
    return false;
}

/* "mlx5_0" or "mlx5_0,mlx5_2"; empty: any. */
static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    }
    return !*list;
}

bool nic_find(const struct transport_config *c, struct nic *nic, char *why, size_t why_size)
{
    const char *wanted = c->text(SETTING_IB_HCA);
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    *nic = (struct nic){0};
    snprintf(why, why_size,
             n ? "no port of GSHMEM_IB_HCA=%s is active and has an address"
               : "there is no RDMA device",
             *wanted ? wanted : "(any)");
    for (int i = 0; i < n && !nic->context; i++) {
        if (!is_wanted(wanted, ibv_get_device_name(list[i])) ||
            list[i]->transport_type != IBV_TRANSPORT_IB ||
            !(nic->context = ibv_open_device(list[i])))
            continue;
        if (choose_port(c, nic)) {
            describe(nic);
            snprintf(why, why_size, "%s", nic->name);
        } else {
            ibv_close_device(nic->context);
            *nic = (struct nic){0};
        }
    }
    if (list)
        ibv_free_device_list(list);
    return nic->context != NULL;
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

/* The NICs that this PE uses: which ports, their receives, how they are opened and closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/choose.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/known.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/verbs.h"

enum { COMPLETIONS = 16384, WORKS_LEAST = 16, READS_MOST = 16 };

/* ---- Which ---- */

static void nic_describe(struct nic *nic, const struct port *p)
{
    const char *device = p->device;
    char address[50];

    snprintf(nic->chosen, sizeof nic->chosen, "%u Gbit/s%s%s%s", p->rate, p->where[0] ? ", " : "",
             p->where, p->reorders ? ", may reorder writes" : "");
    if (nic->iwarp) { /* its address is found when it is opened */
        snprintf(nic->name, sizeof nic->name, "%s port %d, iWARP", device, nic->port);
        return;
    }
    addresses_text(&nic->address[0].gid, address, sizeof address);
    snprintf(nic->name, sizeof nic->name, "%s port %d, %s (GID %d)", device, nic->port, address,
             nic->address[0].index);
}

static int nic_least(int a, int b)
{
    return a < b ? a : b;
}

/* All that can change while the NIC is in use. */
static void take_addresses(struct nic *nic, const struct port *p)
{
    nic->lid = p->attr.lid;
    nic->mtu = p->attr.active_mtu;
    nic->needs_grh = p->attr.flags & IBV_QPF_GRH_REQUIRED;
    nic->pkey_index = p->pkey_index;
    nic->addresses = p->addresses;
    memcpy(nic->address, p->address, sizeof nic->address);
}

void nic_ask_again(const struct verbs *v, struct nic *nic)
{
    struct port p = {.context = nic->context, .number = nic->port};

    if (!nic->iwarp && choose_again(&v->config, &p)) /* else with the next offer */
        take_addresses(nic, &p);
}

static void take_port(struct nic *nic, struct port *p)
{
    const struct known *known = known_of(&p->device_attr);

    nic->context = p->context;
    p->context = NULL; /* it is the NIC's now */
    nic->port = p->number;
    take_addresses(nic, p);
    nic->ethernet = p->ethernet;
    nic->iwarp = p->iwarp;
    nic->updates = p->device_attr.atomic_cap != IBV_ATOMIC_NONE && !p->iwarp;
    nic->reorders = p->reorders;
    nic->tells_packet = known->tells_packet;
    nic->cannot_fence = known->cannot_fence;
    nic->reads = (uint32_t)nic_least(p->device_attr.max_qp_rd_atom, READS_MOST);
    nic->reads_asked = (uint32_t)nic_least(p->device_attr.max_qp_init_rd_atom, READS_MOST);
    if (nic->reads_asked == 0) /* its driver does not say */
        nic->reads_asked = nic->reads;
    nic->sends_most = (uint32_t)nic_least(p->device_attr.max_qp_wr, SEND_DEPTH);
    nic->sends_free = nic->sends_most - nic->sends_most / 8;
    nic->receives_most = (uint32_t)p->device_attr.max_srq_wr;
    nic->completions_most = (uint32_t)p->device_attr.max_cqe;
    nic->inline_most = sizeof(struct message_bytes);
    nic->place = (uint8_t)p->place;
    nic->distance = (uint8_t)p->distance;
    nic_describe(nic, p);
}

static void take_ports(struct nic nic[NICS_MOST], int *taken, struct port *ports, int usable,
                       char *why, size_t why_size)
{
    for (int i = 0; i < usable && *taken < NICS_MOST; i++) {
        if (ports[i].spare || ports[i].ethernet != ports[0].ethernet ||
            ports[i].iwarp != ports[0].iwarp)
            continue; /* NICs share the stripes of one link: they are of one kind */
        take_port(&nic[(*taken)++], &ports[i]);
    }
    if (*taken > 1)
        snprintf(why, why_size, "%s, and %d more", nic[0].name, *taken - 1);
    else
        snprintf(why, why_size, "%s", nic[0].name);
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

struct message_bytes *nic_inbox(const struct nic *nic, uint64_t index)
{
    return &nic->inbox[index / INBOX_BLOCK][index % INBOX_BLOCK];
}

bool nic_receive_again(struct nic *nic, uint32_t index)
{
    struct ibv_sge sge = {(uintptr_t)nic_inbox(nic, index), sizeof(struct message_bytes),
                          nic->inbox_mr[index / INBOX_BLOCK]->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECEIVED | index, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(nic->srq, &wr, &bad) == 0;
}

/* At least half of the completions are kept for what is sent. */
static gshmem_status_t size_inbox(const struct verbs *v, struct nic *nic)
{
    const uint64_t wanted = (uint64_t)v->config.n_pes * RECEIVES;
    uint32_t most = nic->completions_most / 2;
    size_t blocks;

    most = nic->receives_most < most ? nic->receives_most : most;
    nic->inbox_room = wanted < most ? (uint32_t)wanted : most;
    blocks = nic->inbox_room / INBOX_BLOCK + 1;
    nic->inbox = calloc(blocks, sizeof *nic->inbox);
    nic->inbox_mr = calloc(blocks, sizeof *nic->inbox_mr);
    return nic->inbox && nic->inbox_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

/* Registers one more block of places, if the next place needs it. */
static bool add_block(struct nic *nic)
{
    const uint32_t block = nic->inbox_posted / INBOX_BLOCK,
                   left = nic->inbox_room - nic->inbox_posted;
    const size_t bytes = (left < INBOX_BLOCK ? left : INBOX_BLOCK) * sizeof(struct message_bytes);

    if (nic->inbox_posted % INBOX_BLOCK || nic->inbox_mr[block])
        return true;
    if (!nic->inbox[block] && !(nic->inbox[block] = memory_pages(bytes)))
        return false;
    nic->inbox_mr[block] = ibv_reg_mr(nic->pd, nic->inbox[block], bytes, IBV_ACCESS_LOCAL_WRITE);
    return nic->inbox_mr[block] != NULL;
}

bool nic_add_receives(struct verbs *v, struct nic *nic)
{
    errno = ENOBUFS;
    if (nic->inbox_room - nic->inbox_posted < v->share)
        return false;
    for (uint32_t i = 0; i < v->share; i++) {
        if (!add_block(nic) || !nic_receive_again(nic, nic->inbox_posted))
            return false;
        nic->inbox_posted++;
    }
    return true;
}

/* ---- Life ---- */

static gshmem_status_t reach_slots(const struct verbs *v, struct nic *nic)
{
    nic->slots_mr =
        ibv_reg_mr(nic->pd, v->slots, (size_t)SLOTS * SLOT_BYTES,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    return nic->slots_mr ? GSHMEM_OK : GSHMEM_ERR_MEMORY;
}

/* Completions for all receives, and for COMPLETIONS work requests at most. Others wait for room
 * (works_left), so that the queue never overflows. */
static uint32_t completions_of(const struct verbs *v, const struct nic *nic)
{
    uint64_t wanted = (uint64_t)v->config.n_pes * nic->sends_most;

    wanted = (wanted < COMPLETIONS ? wanted : COMPLETIONS) + nic->inbox_room;
    return wanted < nic->completions_most ? (uint32_t)wanted : nic->completions_most;
}

static bool listen_for_peers(struct nic *nic)
{
    const size_t used = strlen(nic->name);
    char address[50];

    if (!cm_open(nic))
        return false;
    addresses_text(&nic->address[0].gid, address, sizeof address);
    snprintf(nic->name + used, sizeof nic->name - used, ", %s", address);
    return true;
}

gshmem_status_t nic_open(struct verbs *v, struct nic *nic)
{
    struct ibv_srq_init_attr receives = {.attr = {.max_sge = 1}};
    uint32_t completions = 0;

    if (!size_inbox(v, nic)) {
        completions = completions_of(v, nic);
        receives.attr.max_wr = nic->inbox_room;
        nic->works_left = completions - nic->inbox_room;
        if (v->works_most && v->works_most < nic->works_left)
            nic->works_left = v->works_most < WORKS_LEAST ? WORKS_LEAST : v->works_most;
        nic->flight_most = v->flight_most;
    }
    if (!completions || !(nic->pd = ibv_alloc_pd(nic->context)) ||
        !(nic->channel = ibv_create_comp_channel(nic->context)) ||
        fcntl(nic->channel->fd, F_SETFL, O_NONBLOCK) ||
        fcntl(nic->context->async_fd, F_SETFL, O_NONBLOCK) ||
        !(nic->cq = ibv_create_cq(nic->context, (int)completions, NULL, nic->channel, 0)) ||
        !(nic->srq = ibv_create_srq(nic->pd, &receives)) || reach_slots(v, nic) ||
        (nic->iwarp && !listen_for_peers(nic)))
        return v->config.fail(GSHMEM_ERR_TRANSPORT,
                              "verbs: %s: %s (%s; GSHMEM_TRANSPORT=tcp does without)", nic->name,
                              strerror(errno),
                              errno == EADDRNOTAVAIL ? "give its network interface an IP address"
                                                     : "ulimit -l limits what may be pinned");
    return GSHMEM_OK;
}

/* iWARP's reads end with a write by the peer. */
int nic_reads_into(const struct nic *nic)
{
    return IBV_ACCESS_LOCAL_WRITE | (nic->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
}

void nic_close(struct verbs *v, struct nic *nic)
{
    cm_close(nic);
    memory_release(v, nic);
    if (nic->slots_mr)
        ibv_dereg_mr(nic->slots_mr);
    if (nic->stage_mr)
        ibv_dereg_mr(nic->stage_mr);
    for (uint32_t i = 0; nic->inbox && nic->inbox_mr && i <= nic->inbox_room / INBOX_BLOCK; i++) {
        if (nic->inbox_mr[i])
            ibv_dereg_mr(nic->inbox_mr[i]);
        free(nic->inbox[i]);
    }
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
    free(nic->inbox_mr);
}

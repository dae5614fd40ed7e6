#include "devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "call.h"
#include "transport/verbs/choose.h"
#include "transport/verbs/cm.h"

struct fake_device fake_devices[FAKE_DEVICES + 1];
int fake_open;
bool fake_connects_iwarp;

bool cm_is_there(void)
{
    return fake_connects_iwarp;
}

static struct ibv_device devices[FAKE_DEVICES];
static struct ibv_device *list[FAKE_DEVICES + 1];

static struct fake_device *of(const struct ibv_device *d)
{
    return &fake_devices[d - devices];
}

static struct fake_port *port_of(const struct ibv_context *c, unsigned port)
{
    const struct fake_device *d = of(c->device);

    CHECK(port >= 1 && port <= (unsigned)d->ports);
    return &fake_devices[d - fake_devices].port[port - 1];
}

struct ibv_device **ibv_get_device_list(int *n)
{
    FAKE_CALL(NULL);
    int i = 0;

    for (; fake_devices[i].name; i++) {
        devices[i] = (struct ibv_device){.transport_type = fake_devices[i].transport};
        strcpy(devices[i].name, fake_devices[i].name);
        if (fake_devices[i].files)
            strcpy(devices[i].ibdev_path, fake_devices[i].files);
        list[i] = &devices[i];
    }
    list[i] = NULL;
    if (n)
        *n = i;
    fake_open++;
    return list;
}

void ibv_free_device_list(struct ibv_device **l)
{
    CHECK(l == list);
    fake_open--;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
    FAKE_CALL(NULL);
    struct ibv_context *c;

    if (of(d)->cannot_open) {
        errno = of(d)->cannot_open;
        return NULL;
    }
    c = calloc(1, sizeof *c);
    c->device = d;
    fake_open++;
    return c;
}

int ibv_close_device(struct ibv_context *c)
{
    fake_open--;
    free(c);
    return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
    FAKE_CALL(ENOMEM);
    const struct fake_device *d = of(c->device);

    *a = (struct ibv_device_attr){.phys_port_cnt = (uint8_t)d->ports,
                                  .max_qp = 1000,
                                  .max_qp_wr = 2000,
                                  .max_mr = 3000,
                                  .max_cq = 4000,
                                  .max_cqe = 5000,
                                  .max_qp_rd_atom = 8,
                                  .max_srq = d->no_shared_receives ? 0 : 6000,
                                  .max_srq_wr = 7000,
                                  .atomic_cap = IBV_ATOMIC_HCA};
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t number, struct _compat_ibv_port_attr *out)
{
    FAKE_CALL(ENOMEM);
    struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)out;
    const struct fake_port *p = port_of(c, number);

    a->state = p->state;
    a->active_mtu = p->mtu;
    a->active_speed = (uint8_t)p->speed;
    a->active_width = (uint8_t)p->width;
    a->link_layer = p->link_layer ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    a->gid_tbl_len = FAKE_GIDS;
    a->pkey_tbl_len = FAKE_PKEYS;
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *e,
                      uint32_t flags, size_t size)
{
    FAKE_CALL(-1);
    static const uint32_t types[] = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_IB};
    const struct fake_port *p = port_of(c, port);

    (void)flags, (void)size;
    if (index >= FAKE_GIDS || !p->gid[index].address)
        return ENODATA;
    *e = (struct ibv_gid_entry){.gid_type = types[p->gid[index].type]};
    CHECK_EQ(inet_pton(AF_INET6, p->gid[index].address, e->gid.raw), 1);
    return 0;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *key)
{
    FAKE_CALL(ENOMEM);
    *key = htons(port_of(c, port)->pkey[index]);
    return 0;
}

/* ---- What a queue pair is tried with ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
    FAKE_CALL(NULL);
    struct ibv_pd *pd = calloc(1, sizeof *pd);

    pd->context = c;
    fake_open++;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    fake_open--;
    free(pd);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *context,
                             struct ibv_comp_channel *channel, int vector)
{
    FAKE_CALL(NULL);
    struct ibv_cq *cq = calloc(1, sizeof *cq);

    (void)n, (void)context, (void)channel, (void)vector;
    cq->context = c;
    fake_open++;
    return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    fake_open--;
    free(cq);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    FAKE_CALL(NULL);
    struct ibv_qp *qp;

    if (a->cap.max_inline_data > of(pd->context->device)->inline_most) {
        errno = EINVAL;
        return NULL;
    }
    qp = calloc(1, sizeof *qp);
    fake_open++;
    return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    fake_open--;
    free(qp);
    return 0;
}

/* librdmacm, as far as connections of iWARP's call it, within one process and over fake.c's queue pairs. */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "fake.h"

#define FAKE __attribute__((visibility("default")))

enum { IDS = 64, EVENTS = 64, TEXT = 64 };

struct id {
    struct rdma_cm_id id;
    struct id *other;
    uint16_t port, wanted;
    uint32_t queue;
    bool listens, connected;
};

struct event {
    struct rdma_cm_event event;
    unsigned char text[TEXT];
};

struct channel {
    struct rdma_event_channel channel;
    struct event *event[EVENTS];
    int first, end;
};

static struct id *ids[IDS];
static uint16_t next_port = 1000;
static struct ibv_context context;

static void happen(struct id *i, enum rdma_cm_event_type type, struct id *listener,
                   const struct rdma_conn_param *param)
{
    struct channel *c = (struct channel *)i->id.channel;
    struct event *e = calloc(1, sizeof *e);

    CHECK(c->end - c->first < EVENTS);
    e->event = (struct rdma_cm_event){.id = &i->id, .event = type, .listen_id = listener ? &listener->id : NULL};
    if (type == RDMA_CM_EVENT_REJECTED)
        e->event.status = ECONNREFUSED;
    if (param) {
        CHECK(param->private_data_len <= TEXT);
        memcpy(e->text, param->private_data, param->private_data_len);
        e->event.param.conn.private_data = e->text;
        e->event.param.conn.private_data_len = param->private_data_len;
    }
    c->event[c->end++ % EVENTS] = e;
}

FAKE struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct channel *c = calloc(1, sizeof *c);
    int fd[2];

    CHECK_EQ(pipe(fd), 0);
    close(fd[1]);
    c->channel.fd = fd[0];
    return &c->channel;
}

FAKE void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct channel *c = (struct channel *)channel;

    CHECK_EQ(c->first, c->end);
    close(channel->fd);
    free(c);
}

FAKE int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *of,
                        enum rdma_port_space space)
{
    struct id *new = calloc(1, sizeof *new);
    int at = 0;

    CHECK_EQ(space, RDMA_PS_TCP);
    while (ids[at])
        CHECK(++at < IDS);
    ids[at] = new;
    new->id = (struct rdma_cm_id){.channel = channel, .context = of};
    *id = &new->id;
    return 0;
}

/* With it go the events that nobody has been told of. */
FAKE int rdma_destroy_id(struct rdma_cm_id *id)
{
    struct channel *c = (struct channel *)id->channel;
    struct id *old = (struct id *)id;
    int kept = c->first;

    for (int i = c->first; i < c->end; i++) {
        struct event *e = c->event[i % EVENTS];
        if (e->event.id == id)
            free(e);
        else
            c->event[kept++ % EVENTS] = e;
    }
    c->end = kept;
    for (int i = 0; i < IDS; i++) {
        if (ids[i] && ids[i]->other == old)
            ids[i]->other = NULL;
        if (ids[i] == old)
            ids[i] = NULL;
    }
    free(old);
    return 0;
}

FAKE int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    (void)address;
    context.device = list[0];
    ibv_free_device_list(list);
    id->verbs = &context;
    ((struct id *)id)->port = ++next_port;
    return 0;
}

FAKE int rdma_listen(struct rdma_cm_id *id, int most)
{
    (void)most;
    ((struct id *)id)->listens = true;
    return 0;
}

FAKE __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return htobe16(((struct id *)id)->port);
}

FAKE int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
    struct id *i = (struct id *)id;

    (void)from, (void)ms;
    i->wanted = be16toh(((struct sockaddr_in *)(void *)to)->sin_port); /* where IPv6 has it too */
    happen(i, fake.refuses_connections ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL);
    return 0;
}

FAKE int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
    (void)ms;
    happen((struct id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL);
    return 0;
}

FAKE int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    struct id *i = (struct id *)id;

    i->queue = param->qp_num;
    if (fake.loses_connections)
        return 0;
    for (int n = 0; n < IDS; n++) {
        struct rdma_cm_id *new;
        if (!ids[n] || !ids[n]->listens || ids[n]->port != i->wanted)
            continue;
        rdma_create_id(ids[n]->id.channel, &new, NULL, RDMA_PS_TCP);
        i->other = (struct id *)new;
        i->other->other = i;
        happen(i->other, RDMA_CM_EVENT_CONNECT_REQUEST, ids[n], param);
        return 0;
    }
    happen(i, RDMA_CM_EVENT_REJECTED, NULL, NULL);
    return 0;
}

FAKE int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    struct id *i = (struct id *)id;

    if (!i->other) {
        errno = ECONNRESET;
        return -1;
    }
    i->queue = param->qp_num;
    fake_connect(i->queue, i->other->queue);
    i->connected = i->other->connected = true;
    happen(i, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL);
    happen(i->other, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL);
    return 0;
}

FAKE int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
    struct id *i = (struct id *)id;

    (void)data, (void)bytes;
    if (i->other)
        happen(i->other, RDMA_CM_EVENT_REJECTED, NULL, NULL);
    return 0;
}

FAKE int rdma_disconnect(struct rdma_cm_id *id)
{
    struct id *i = (struct id *)id;

    if (i->connected && i->other)
        happen(i->other, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
    i->connected = false;
    return 0;
}

FAKE int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **e)
{
    struct channel *c = (struct channel *)channel;

    if (c->first == c->end) {
        errno = EAGAIN;
        return -1;
    }
    *e = &c->event[c->first++ % EVENTS]->event;
    return 0;
}

FAKE int rdma_ack_cm_event(struct rdma_cm_event *e)
{
    free((struct event *)(void *)e);
    return 0;
}

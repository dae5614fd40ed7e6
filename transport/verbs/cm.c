/* Queue pairs of iWARP, which librdmacm connects: RDMA over TCP streams of the NIC's own.
 *
 * 1. Each PE listens at an address of its NIC, and puts that into its offers.
 * 2. Of two PEs the lower one connects, so that there is never a second connection. It sends along
 *    which queue pair of the other it means, and which offer it has read.
 * 3. Both then say that they can receive, as with any queue pair (connect.c).
 *
 * The library is opened when there is such a NIC; without its header this file is a stub. */
#define _GNU_SOURCE
#include "transport/verbs/cm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/control.h"
#include "transport/verbs/verbs.h"

#if __has_include(<rdma/rdma_cma.h>)
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

enum { RESOLVE_MS = 2000, GREETING_BYTES = 24 };

/* ---- The library ---- */

#define FUNCTIONS(X)                                                                               \
    X(create_event_channel) X(destroy_event_channel) X(create_id) X(destroy_id) X(bind_addr)       \
    X(listen) X(resolve_addr) X(resolve_route) X(connect) X(accept) X(reject) X(disconnect)        \
    X(get_cm_event) X(ack_cm_event) X(get_src_port)

static struct {
    bool tried, found;
#define X(name) __typeof__(rdma_##name) *name;
    FUNCTIONS(X)
#undef X
} cm;

bool cm_is_there(void)
{
    void *library;

    if (cm.tried)
        return cm.found;
    cm.tried = true;
    library = RTLD_DEFAULT; /* the program may have it already */
    if (!dlsym(library, "rdma_create_id") &&
        !(library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
        return false;
    cm.found = true;
#define X(name) cm.found &= (cm.name = (__typeof__(cm.name))dlsym(library, "rdma_" #name)) != NULL;
    FUNCTIONS(X)
#undef X
    return cm.found;
}

/* ---- Listening ---- */

struct cm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
};

static void to_gid(const struct sockaddr *from, union ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    if (from->sa_family == AF_INET6) {
        memcpy(gid->raw, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
        return;
    }
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
}

static void from_gid(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *to)
{
    static const unsigned char ipv4[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

    memset(to, 0, sizeof *to);
    if (memcmp(gid->raw, ipv4, 12) == 0) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, gid->raw + 12, 4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, gid->raw, 16);
    }
}

/* Listens at that address, if it belongs to this NIC. */
static bool cm_listen_at(struct nic *nic, const struct sockaddr *address)
{
    struct sockaddr_storage any_port = {0};
    struct rdma_cm_id *id;

    memcpy(&any_port, address,
           address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                         : sizeof(struct sockaddr_in6));
    if (cm.create_id(nic->cm->channel, &id, NULL, RDMA_PS_TCP))
        return false;
    if (cm.bind_addr(id, (struct sockaddr *)&any_port) || !id->verbs ||
        strcmp(ibv_get_device_name(id->verbs->device), ibv_get_device_name(nic->context->device)) ||
        cm.listen(id, 128)) {
        cm.destroy_id(id);
        return false;
    }
    nic->cm->listener = id;
    nic->lid = ntohs(cm.get_src_port(id));
    to_gid(address, &nic->address[0].gid);
    nic->address[0].index = 0;
    nic->addresses = 1;
    return true;
}

/* Whether an address may be used; those of the loopback are tried last. */
static bool is_of_use(const struct ifaddrs *i, int family, bool loopback)
{
    return i->ifa_addr && i->ifa_addr->sa_family == family && i->ifa_flags & IFF_UP &&
           !(i->ifa_flags & IFF_LOOPBACK) == !loopback &&
           (family == AF_INET ||
            !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr));
}

bool cm_open(struct nic *nic)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;

    if (!cm_is_there() || !(nic->cm = calloc(1, sizeof *nic->cm)) ||
        !(nic->cm->channel = cm.create_event_channel()) ||
        fcntl(nic->cm->channel->fd, F_SETFL, O_NONBLOCK) || getifaddrs(&all))
        return false;
    for (int f = 0; f < 4; f++) {
        for (const struct ifaddrs *i = all; i && !nic->cm->listener; i = i->ifa_next) {
            if (is_of_use(i, families[f % 2], f >= 2))
                cm_listen_at(nic, i->ifa_addr);
        }
    }
    freeifaddrs(all);
    errno = EADDRNOTAVAIL;
    return nic->cm->listener != NULL;
}

int cm_fd(const struct nic *nic)
{
    return nic->cm ? nic->cm->channel->fd : -1;
}

void cm_close(struct nic *nic)
{
    if (!nic->cm)
        return;
    if (nic->cm->listener)
        cm.destroy_id(nic->cm->listener);
    if (nic->cm->channel)
        cm.destroy_event_channel(nic->cm->channel);
    free(nic->cm);
    nic->cm = NULL;
}

/* ---- Connecting ---- */

static void cm_greet(const struct verbs *v, const struct path *p, unsigned char *text)
{
    const uint32_t number[] = {CONTROL_MAGIC, (uint32_t)v->config.pe, p->number, p->generation,
                               p->iwarp.peer_queue, p->iwarp.peer_packet};

    for (int i = 0; i < 6; i++)
        control_put32(text + 4 * i, number[i]);
}

bool cm_connect(struct verbs *v, struct path *p, const struct control *offer)
{
    struct sockaddr_storage mine, theirs;

    p->iwarp.peer_queue = offer->queue;
    p->iwarp.peer_packet = offer->packet;
    p->iwarp.connecting = true;
    v->connecting++;
    if (v->config.pe > p->link->pe)
        return true; /* the peer connects */
    from_gid(&p->nic->address[0].gid, 0, &mine);
    from_gid(&offer->address[0].gid, offer->lid, &theirs);
    return offer->addresses > 0 &&
           !cm.create_id(p->nic->cm->channel, &p->iwarp.connection, p, RDMA_PS_TCP) &&
           !cm.resolve_addr(p->iwarp.connection, (struct sockaddr *)&mine,
                            (struct sockaddr *)&theirs, RESOLVE_MS);
}

void cm_end(struct path *p)
{
    if (p->iwarp.connecting)
        p->link->verbs->connecting--;
    p->iwarp.connecting = p->iwarp.connected = false;
    if (!p->iwarp.connection)
        return;
    cm.disconnect(p->iwarp.connection);
    cm.destroy_id(p->iwarp.connection);
    p->iwarp.connection = NULL;
}

static struct rdma_conn_param cm_parameters(const struct path *p)
{
    const uint8_t reads = (uint8_t)p->nic->reads;

    return (struct rdma_conn_param){.responder_resources = reads,
                                    .initiator_depth = reads,
                                    .retry_count = 7,
                                    .srq = 1,
                                    .qp_num = p->qp->qp_num};
}

static bool cm_connect_now(struct verbs *v, struct path *p)
{
    struct rdma_conn_param param = cm_parameters(p);
    unsigned char greeting[GREETING_BYTES];

    cm_greet(v, p, greeting);
    param.private_data = greeting;
    param.private_data_len = sizeof greeting;
    return cm.connect(p->iwarp.connection, &param) == 0;
}

/* The path whose offer a peer has read, and asks to connect to; NULL: none. */
static struct path *cm_wanted(struct verbs *v, const unsigned char *text, size_t bytes)
{
    uint32_t number[6];

    if (bytes < GREETING_BYTES)
        return NULL;
    for (int i = 0; i < 6; i++)
        number[i] = control_get32(text + 4 * i);
    struct link *l = number[0] == CONTROL_MAGIC && number[1] < (uint32_t)v->config.n_pes
                         ? v->to[number[1]]
                         : NULL;
    for (int i = 0; l && i < l->paths; i++) {
        struct path *p = l->path[i];
        if (p->number == number[2] && p->generation == number[3] && p->state == PATH_OFFERED &&
            p->qp && p->qp->qp_num == number[4] && p->setup.first_packet == number[5] &&
            !p->iwarp.connection && p->link->pe < v->config.pe)
            return p;
    }
    return NULL;
}

static void cm_accept(struct verbs *v, struct rdma_cm_id *id, const unsigned char *text,
                      size_t bytes)
{
    struct path *p = cm_wanted(v, text, bytes);
    struct rdma_conn_param param;

    if (p) {
        param = cm_parameters(p);
        id->context = p;
        if (cm.accept(id, &param) == 0) {
            p->iwarp.connection = id;
            return;
        }
    }
    cm.reject(id, NULL, 0);
    cm.destroy_id(id);
}

static void cm_outcome(struct cm_event *e, enum cm_outcome outcome, const char *why)
{
    e->outcome = outcome;
    snprintf(e->why, sizeof e->why, "%s", why);
}

static void cm_take_event(struct path *p, enum rdma_cm_event_type type, int status,
                          struct cm_event *e)
{
    e->path = p;
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (cm.resolve_route(p->iwarp.connection, RESOLVE_MS))
            cm_outcome(e, CM_REFUSED, strerror(errno));
        return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        if (!cm_connect_now(p->link->verbs, p))
            cm_outcome(e, CM_REFUSED, strerror(errno));
        return;
    case RDMA_CM_EVENT_ESTABLISHED:
        p->iwarp.connected = true;
        e->outcome = CM_CONNECTED;
        return;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        cm_outcome(e, CM_ENDED, "its connection has ended");
        return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return;
    default:
        e->outcome = p->state == PATH_OFFERED ? CM_REFUSED : CM_ENDED;
        snprintf(e->why, sizeof e->why, "no connection: %s",
                 strerror(status < 0 ? -status : status));
    }
}

bool cm_next(struct verbs *v, struct nic *nic, struct cm_event *out)
{
    struct rdma_cm_event *e;
    unsigned char text[GREETING_BYTES];

    *out = (struct cm_event){.outcome = CM_NOTHING};
    if (!nic->cm || cm.get_cm_event(nic->cm->channel, &e))
        return false;
    const struct rdma_cm_event copy = *e;
    size_t bytes = copy.param.conn.private_data ? copy.param.conn.private_data_len : 0;
    bytes = bytes < sizeof text ? bytes : sizeof text;
    if (bytes)
        memcpy(text, copy.param.conn.private_data, bytes);
    cm.ack_cm_event(e); /* before its connection can be ended */
    v->events++;
    if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
        cm_accept(v, copy.id, text, bytes);
    else if (copy.id->context)
        cm_take_event(copy.id->context, copy.event, copy.status, out);
    return true;
}

#else /* ---- Without the header ---- */

bool cm_is_there(void)
{
    return false;
}

bool cm_open(struct nic *nic)
{
    (void)nic;
    errno = ENOSYS;
    return false;
}

int cm_fd(const struct nic *nic)
{
    (void)nic;
    return -1;
}

void cm_close(struct nic *nic)
{
    (void)nic;
}

bool cm_connect(struct verbs *v, struct path *p, const struct control *offer)
{
    (void)v, (void)p, (void)offer;
    return false;
}

void cm_end(struct path *p)
{
    (void)p;
}

bool cm_next(struct verbs *v, struct nic *nic, struct cm_event *out)
{
    (void)v, (void)nic, (void)out;
    return false;
}

#endif

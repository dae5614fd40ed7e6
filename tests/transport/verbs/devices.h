/* RDMA devices that are not there, as the test describes them: what libibverbs answers when it is asked
 * which there are, and no more. */
#ifndef FAKE_DEVICES_H
#define FAKE_DEVICES_H

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { FAKE_DEVICES = 8, FAKE_PORTS = 2, FAKE_GIDS = 6, FAKE_PKEYS = 4 };

struct fake_port {
    enum ibv_port_state state;
    int link_layer; /* 0: InfiniBand */
    enum ibv_mtu mtu;
    int speed, width;
    struct {
        enum { FAKE_V1, FAKE_V2, FAKE_IB } type;
        const char *address; /* NULL: none there */
    } gid[FAKE_GIDS];
    uint16_t pkey[FAKE_PKEYS];
};

struct fake_device {
    const char *name; /* NULL: the end of the list */
    enum ibv_transport_type transport;
    int cannot_open; /* an errno */
    int no_shared_receives;
    uint32_t inline_most;
    const char *files; /* its folder in /sys; NULL: it has none */
    int ports;
    struct fake_port port[FAKE_PORTS];
};

extern struct fake_device fake_devices[FAKE_DEVICES + 1];
extern bool fake_connects_iwarp; /* librdmacm is there */
extern int fake_open; /* contexts, domains, queues that have not been closed */

#endif

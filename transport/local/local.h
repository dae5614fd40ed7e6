/* The transport to PEs of this host, as local.c (loads and stores) and copies.c (a device's own memory)
 * know it. */
#ifndef GSHMEM_TRANSPORT_LOCAL_H
#define GSHMEM_TRANSPORT_LOCAL_H

#include <stdbool.h>

#include "device/device.h"
#include "transport/transport.h"

enum { LOCAL_COPIES = 16 }; /* under way at a time; a power of two */

/* A request that the device is at: it copies, and then it updates, if there is something for it to do. */
struct copying {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
    uint64_t ticket;        /* of its last copy; */
    bool copies;            /* there is one */
    bool updates;           /* an atomic, or a signal that adds: */
    struct device_update update;
    uint64_t updating;      /* its ticket; 0: it has not begun */
    uint64_t *old;          /* where the old value goes, or NULL */
    gshmem_status_t failure;
    uint64_t *flag;         /* a signal in host memory, set when the data is there; NULL: none */
    int signal_op;
    uint64_t value;         /* a signal's */
};

struct local {
    struct transport base;
    struct transport_config config;
    struct transport_request rest; /* what is left of one that takes several turns; 0 bytes: none */
    struct copying copying[LOCAL_COPIES];
    uint32_t first, end;           /* of these, counted for ever */
};

/* ---- local.c ---- */

char *local_reach(struct local *t, int pe, int segment, uint64_t offset);
gshmem_status_t local_refuse(struct local *t, int pe);
void local_store(void *to, const void *from, size_t bytes);
void local_signal(uint64_t *there, int op, uint64_t value);

/* ---- copies.c ---- */

/* Whether a request is for the device, or must wait for what the device is at. */
bool copies_take(struct local *t, const struct transport_request *r);
gshmem_status_t copies_post(struct local *t, const struct transport_request *r);
/* Ends those that are done; whether any was. */
bool copies_advance(struct local *t);
static inline bool copies_any(const struct local *t)
{
    return t->first != t->end;
}

#endif

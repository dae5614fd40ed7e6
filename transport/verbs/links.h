/* Links: how they begin, change and end. */
#ifndef GSHMEM_TRANSPORT_VERBS_LINKS_H
#define GSHMEM_TRANSPORT_VERBS_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/link.h"

gshmem_status_t link_open(struct verbs *v, int pe, struct link **out);
/* Sends the control messages that are due. */
void link_send_rest(struct verbs *v, struct link *l);
/* Tells the peer that this link has failed, so that it waits for nothing more of it. */
void link_send_broken(struct verbs *v, struct link *l);
/* A path has come or gone: which are used now, and whether any. */
void link_settle(struct verbs *v, struct link *l);
/* Ends all its operations with `status`; the transport's user is told why, unless why is NULL. */
void link_fail(struct verbs *v, struct link *l, gshmem_status_t status, const char *why);
void link_close(struct verbs *v, struct link *l);
bool link_is_busy(const struct link *l);
/* Bytes that a peer takes at first with so many queue pairs: of this PE's, and of a NIC's. */
static inline void link_cost(int queue_pairs, uint64_t *here, uint64_t *of_nic)
{
    /* as ConnectX has it: what a work request carries inline, and its head */
    enum { WORK_BYTES = 64 + sizeof(struct message_bytes) };

    *here = sizeof(struct link) + OPS_FIRST * sizeof(struct op) +
            RECEIVES * sizeof(struct message_bytes) + (unsigned)queue_pairs * sizeof(struct path);
    *of_nic = (unsigned)queue_pairs * (SEND_DEPTH * WORK_BYTES + RECEIVES * 64);
}

#endif

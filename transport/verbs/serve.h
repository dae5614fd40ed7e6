/* Messages that this PE carries out for a peer, and replies both ways. */
#ifndef GSHMEM_TRANSPORT_VERBS_SERVE_H
#define GSHMEM_TRANSPORT_VERBS_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/gpu.h"
#include "transport/verbs/message.h"

struct link;
struct verbs;

/* How far a message has been carried out; all of it zero at first. */
struct serving {
    uint64_t update;            /* the device's ticket for one that is in progress; 0: none */
    uint32_t taken;             /* bytes of its changes that are made, */
    struct message_change last; /* the last of those, */
    bool stored;                /* or a put's data is in its place */
};

/* Goes on with a message, in its turn. */
enum served serve_message(struct verbs *v, struct link *l, const struct message *m,
                          struct serving *s);
/* Sends the replies that are due. */
void serve_send_replies(struct verbs *v, struct link *l);
/* A reply of the peer's; false: it makes no sense. */
bool serve_take_reply(struct verbs *v, struct link *l, const struct message *m);

#endif

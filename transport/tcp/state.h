/* The state of the TCP transport that both directions share, and what each keeps for all its
 * streams.
 *
 * The initiator's direction (initiator.h) sends requests of this PE and receives responses, on
 * streams that this PE opened. The target's direction (target.h) receives requests of other PEs
 * and sends responses, on streams that they opened. Neither calls the other: what one has to know
 * of the other stands here. */
#ifndef GSHMEM_TRANSPORT_TCP_STATE_H
#define GSHMEM_TRANSPORT_TCP_STATE_H

#include "transport/staging.h"
#include "transport/tcp/address.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/poller.h"
#include "transport/tcp/queue.h"
#include "transport/tcp/receive_buffer.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/timer.h"
#include "transport/transport.h"

struct initiator;
struct target;

/* What is known of a PE, whichever of the two streams it came by. */
struct peer {
    bool admitted; /* it has opened its stream and proven its key; nobody else can be that PE */
    bool active;   /* the stream that this PE opened to it carries requests */
    bool refuses;  /* it has given this PE up, and ends both streams */
    bool given_up; /* it has failed as far as this job is concerned, and nothing is taken from it */
};

/* All streams that this PE opened. */
struct initiators {
    struct initiator *first;   /* list of all */
    struct initiator *staging; /* list of those that wait for copies or for staging buffers */
    bool held_back;            /* some have bytes in the queue that nothing else will send */
    bool unacknowledged;       /* some have received unordered puts and not acknowledged them */
    struct timer retry;        /* the next attempt to connect */
    uint64_t began;            /* ns, when this PE was ready for its peers */
};

/* When responses are sent: at once, or together with later ones. */
struct response_delay {
    struct target *delayed;   /* list: the response waits for a round in which nothing arrives */
    uint64_t delayed_since;   /* ns, when the first joined that list, */
    uint32_t delayed_round;   /* and in which round; */
    uint64_t computes_since;  /* ns, the same, or the end of the last post behind it */
    uint32_t prompt;          /* so many of the next responses are not delayed */
    struct target *unawaited; /* list: nobody waits for the response */
};

/* Who connects to this PE. */
struct admission {
    struct stream listener[ADDRESS_MOST]; /* one for each address */
    int listeners;
    bool connection_waits; /* a listener has a connection to accept */
    bool paused;           /* nothing is accepted until the next tick: descriptors ran out */
    int strangers;         /* streams whose PE is not proven, */
    int without_hello;     /* and those of them that have not sent a valid hello */
    bool await_key;        /* some hellos wait for the key of the PE that they name */
    uint64_t refusals;     /* connections refused; the first one was logged */
};

/* All streams that other PEs opened. */
struct targets {
    struct target *first;   /* list of all, strangers included */
    struct target *staging; /* list of those that wait for copies or for staging buffers */
    bool closing;           /* some are to be dropped at the end of the round */
    struct response_delay delay;
    struct admission admission;
};

struct tcp {
    struct transport base;
    struct transport_config config;
    struct poller poller;
    struct socket_options socket;
    struct staging staging; /* buffers for device memory */
    struct initiator **to;  /* [PE]: the stream that this PE opened to it, or NULL */
    struct target **from;   /* [PE]: the stream that it has opened, or NULL */
    struct peer *peer;      /* [PE] */
    bool giving_up;         /* some peers that were given up may still have streams */
    int *failed;            /* the PEs of which the peers are notified, in this order, */
    int failures;           /* and their number */
    struct initiators initiators;
    struct targets targets;
    uint32_t unawaited_since; /* the round since which a response or acknowledgement is put off that
                                 nobody waits for */
    int updates;              /* atomics of peers that the device is carrying out */
    int events;               /* what happened in this round of progress */
    struct timer tick;        /* runs while a peer owes something, or strangers are connected */
    int tick_ms;
};

static inline void tcp_start_ticking(struct tcp *t)
{
    if (!t->tick.periodic)
        timer_set_period(&t->tick, t->tick_ms);
}

/* A response or an acknowledgement is put off, as nobody waits for it. */
static inline void tcp_put_off(struct tcp *t)
{
    if (!t->targets.delay.unawaited && !t->initiators.unacknowledged)
        t->unawaited_since = t->poller.round;
}

/* Both streams of a pair lead to the same node. Probes on one are enough to notice that the node
 * has vanished, so that the stream that the peer opened is not probed while the other one is
 * active. */
static inline void tcp_spare_probes(struct tcp *t, int pe)
{
    const struct stream *accepted = (const struct stream *)t->from[pe]; /* its first member */

    if (accepted && t->peer[pe].active)
        socket_probe(accepted->fd, false);
}

#endif

/* What the parts of the network know of each other: network.c (its life, and driving), requests.c (the
 * requests of threads), failures.c (who is lost) and proxy/service.c (requests of kernels). */
#ifndef GSHMEM_RUNTIME_NETWORK_PARTS_H
#define GSHMEM_RUNTIME_NETWORK_PARTS_H

#include "runtime/base/mutex.h"
#include "runtime/job.h"
#include "runtime/network/network.h"
#include "runtime/network/nics.h"
#include "runtime/proxy/channel.h"
#include "runtime/proxy/pages.h"
#include "runtime/proxy/proxy.h"

enum { RAISED_MOST = 8 };

/* A failure of a kernel's operation on its way to the error policy. */
struct raised {
    gshmem_status_t status;
    struct proxy_answer then;
    char text[200];
};

struct peer_key {
    bool known;
    unsigned char key[TRANSPORT_KEY_BYTES];
};

struct network {
    struct transport *remote;   /* to other hosts; NULL if there are none */
    struct transport *local; /* to this node, for kernels; NULL if there are none */
    struct transport_config config;
    char nearest[256]; /* what GSHMEM_TCP_IF=nearest comes to */
    struct nic_center center; /* where this PE is, as far as NICs are concerned */
    struct mutex lock; /* transports, channels, flights, and the starter's fetch */
    _Atomic int at_the_door; /* threads that wait for the lock, to post */
    _Atomic int wanted;      /* 1 + a PE of which the starter is to be asked, for who holds the lock; 0: none */
    _Atomic bool asking;     /* a thread does, without the lock */
    _Atomic int asked;       /* 1 + the PE of which it was asked last, */
    _Atomic int answer;      /* and the status of that */
    _Atomic uint32_t fences; /* of all contexts */
    struct flight *spare;
    struct transport_request to_heap; /* of puts into heaps, but for what each has of its own */
    _Atomic(struct errand *) idle_errand;
    struct job *job;
    struct keys keys;
    struct peer_key *key; /* [PE]: those agreed on with each, when first asked for */
    _Atomic bool ending;
    _Atomic bool *refused; /* [PE]: it has given this PE up, */
    _Atomic bool refusals; /* and some have */
    bool *told;           /* [PE]: the transport has been asked to tell others that it is lost, */
    uint32_t losses_told; /* and how many losses there were then */
    uint64_t looked;      /* ns, when the proxy last looked whether the next PE of the node lives */
    struct proxy proxy;

    struct proxy_way way; /* how commands of kernels get on */
    struct proxy_channel **channel;
    int channels;
    int channels_room;
    uint32_t *asleep; /* shared with kernels; NULL while there are none */
    struct pages pages;
    struct raised raise[RAISED_MOST]; /* for the proxy thread, which holds no lock then */
    _Atomic int raised;
};

/* What transports call: see struct transport_config. */
void network_lose(void *context, int pe, gshmem_status_t status, const char *why);
void network_be_refused(void *context, int pe);
void network_be_told(void *context, int from, int pe);

/* With the lock held, and without a wait: whether that PE is known to run the same program. */
bool network_runs_same(struct network *n, int pe);
void network_wait_to_enter(struct network *n);

/* Takes the lock, even from a proxy that is at it without a pause. */
static inline void network_enter(struct network *n)
{
    if (!mutex_try(&n->lock))
        network_wait_to_enter(n);
}

/* network_round, if no other thread has the lock: who has it drives for all. */
bool network_try_round(struct network *n);

/* With the lock held: whether what a PE has published is known, or the starter has been asked in vain. If not, it has to
 * be asked first, which may take its time: who drives asks once it has given the lock back, and the caller, with a
 * kernel's command or the greeting of a PE, comes again in a later round. */
static inline bool network_has_met(struct network *n, int pe)
{
    if (GSHMEM_LIKELY(job_has_blob(n->job, pe)) || atomic_load_explicit(&n->asked, memory_order_acquire) == pe + 1)
        return true;
    if (!atomic_load_explicit(&n->asking, memory_order_relaxed))
        atomic_store_explicit(&n->wanted, pe + 1, memory_order_relaxed);
    return false;
}

/* Before a lock is taken to post to a PE: asks the starter for what it has published, the first time. That may wait
 * for a launcher, while nobody could drive the network. */
gshmem_status_t network_look_up(struct network *n, int pe);
static inline gshmem_status_t network_meet(struct network *n, int pe)
{
    return GSHMEM_LIKELY(job_has_blob(n->job, pe)) ? GSHMEM_OK : network_look_up(n, pe);
}

#endif

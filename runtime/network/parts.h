/* What the parts of the network share: life.c (its start), ends.c (its end), choose.c (which
 * transports), network.c (progress), requests.c (the requests of threads), failures.c (failed PEs),
 * lanes.c (several proxies); and proxy/service.c (requests of kernels). */
#ifndef GSHMEM_RUNTIME_NETWORK_PARTS_H
#define GSHMEM_RUNTIME_NETWORK_PARTS_H

#include "runtime/base/atomic_type.h"
#include "runtime/base/mutex.h"
#include "runtime/job/job.h"
#include "runtime/network/blobs.h"
#include "runtime/network/keys.h"
#include "runtime/network/lanes.h"
#include "transport/transport.h"
#include "runtime/node/nics.h"
#include "runtime/network/proxy_thread.h"
#include "runtime/stats/stats.h"

struct peer_key {
    bool known;
    unsigned char key[TRANSPORT_KEY_BYTES];
};

struct network {
    struct transport *remote;   /* to other nodes; NULL if there are none */
    struct transport *local; /* to this node, for kernels; NULL if there are none */
    struct transport_config config;
    char nearest[256]; /* the interfaces that GSHMEM_TCP_IF=nearest stands for */
    struct nic_center center; /* this PE's place, for the distance of NICs */
    struct mutex lock; /* covers transports, channels, flights, and what the bootstrap has
                          returned */
    _Atomic int at_the_door; /* threads that wait for the lock, to post */
    _Atomic int wanted;      /* 1 + a PE of which the bootstrap is to be asked, set by the lock's
                                holder; 0: none */
    _Atomic bool asking;     /* a thread asks, without the lock */
    _Atomic int asked;       /* 1 + the PE about which the bootstrap was asked last */
    _Atomic int answer;      /* the status of that */
    _Atomic uint32_t fences; /* of all contexts */
    struct flight *spare;
    struct open_batch *open;     /* all open batches; those of which nothing is in flight; */
    struct open_batch *due;
    struct open_batch **open_to; /* and by PE. NULL before the first small operation */
    union record_memory *spare_records; /* of batches that are not open, */
    uint32_t open_batches;              /* and how many are */
    uint64_t batched_bytes;             /* posted since a thread that fills them made progress */
    bool due_anew;                      /* since it was attempted to post those that are due */
    struct biased_thread *batch_owners; /* threads that have owned batches */
    bool batches_have_owners;           /* biased_lock_prepare */
    struct transport_request to_heap; /* a put into a heap, with the fields that are the same for
                                         all */
    _Atomic(struct errand *) idle_errand;
    /* fetches.h */
    _Atomic(struct fetch *) fetches; /* that wait to be posted, the last one first; */
    struct fetch *fetches_full;      /* those for which there was no room, the first one first */
    _Atomic uint32_t returning; /* threads whose fetches are complete, and that have not seen it */
    _Atomic bool attended;      /* one that waits for a fetch sleeps until something arrives */
    _Atomic uint32_t landings;  /* others sleep on this word, */
    bool sleepers_landed;       /* and fetches of some of these are complete */
    struct job *job;
    struct stats_block *counts; /* of the lock's holder */
    bool for_update; /* the lock's holder makes progress until a peer updates this PE's memory */
    struct node *node;   /* the job's, and so is this: */
    struct blobs *blobs;
    _Atomic bool *lost;  /* the node's: a put need not ask for the node */
    struct keys keys; /* of lane 0 */
    struct peer_key *key; /* [PE]: the keys agreed on, each computed at its first use */
    _Atomic bool ending;   /* of lane 0 */
    _Atomic bool *refused; /* [PE]: that PE has declared this PE dead; all lanes have the same */
    _Atomic bool refusals; /* of lane 0: whether some PE has */
    bool *notified;           /* [PE]: the transport has been asked to pass on this PE's failure */
    uint32_t losses_notified; /* how many failures there were then */
    uint64_t looked;      /* ns, when the proxy last tested whether the next PE of the node lives */
    _Atomic uint64_t helped; /* of a further lane: ns, when a waiting thread last made a round, */
    _Atomic uint32_t vain;   /* and the rounds in vain since one that was not */
    _Atomic bool used;       /* of a lane with kernels: it has had something to do */
    struct proxy proxy;
    struct network_source *source; /* of requests of kernels; NULL while there are none */
    /* lanes.h. Functions of network.h take lane 0, except those that a proxy and a source call. */
    struct network *first; /* lane 0 */
    int number;            /* of this lane, from 0 */
    int lanes;             /* lane 0 has all of them, and each of the others itself alone */
    struct network *lane[LANES_MOST];
};

/* What transports call: see struct transport_config. */
void network_lose(void *context, int pe, gshmem_status_t status, const char *why);
void network_be_refused(void *context, int pe);
void network_be_notified(void *context, int from, int pe);

/* With the lock held, and without a wait: whether that PE is known to run the same program. */
bool network_runs_same(struct network *n, int pe);
void network_wait_to_enter(struct network *n);

/* Takes the lock, also from a proxy that makes progress without a pause. */
static inline void network_enter(struct network *n)
{
    if (!mutex_try(&n->lock))
        network_wait_to_enter(n);
}

/* network_round, if no other thread has the lock: its holder makes progress for all. */
bool network_try_round(struct network *n);
/* The same for a thread that waits, and a further lane: if its proxy does not make progress, and
 * the lane has something to do, as far as can be known. Otherwise now and then: what arrives wakes
 * a proxy that sleeps, and so does a command, except one of a GPU or of PTX. now: the clock. */
bool network_drive_further(struct network *n, uint64_t now);
/* Whether something that its source has posted is not complete. */
bool network_pending(const struct network *n);
/* network_drive for a thread whose fetch waits to be posted: posts all that do (fetches.h). */
void network_drive_fetches(struct network *n);
/* A round by a thread that does not wait: the proxy stands aside. The bootstrap is not asked. */
void network_drive_on(struct network *n);
/* Sends what was held back: now, also where another thread has the lock, which may only post. */
void network_send(struct network *n);

/* ---- requests.c, for open_batches.c ---- */

struct flight;
struct landing;
struct pending;
struct wait;
struct where_wait;
/* Whether there may be requests to that PE; asks the bootstrap for it, the first time. */
gshmem_status_t network_may_post(struct network *n, int pe, const char *call);
/* With the lock held, which it releases: network_post_landing; l may be NULL. */
gshmem_status_t network_post_held(struct network *n, struct pending *pending,
                                  struct transport_request *request, struct landing *l,
                                  const char *call);
/* With the lock held: a flight for a request that will be posted later; NULL: out of memory. */
struct flight *network_take_off(struct network *n, struct pending *pending, int pe);
/* Posts it; l->landed is called if it was posted. */
gshmem_status_t network_post_flight(struct network *n, struct transport_request *request,
                                    struct flight *flight, struct landing *l);
/* Ends it: the next quiet reports the failure. */
void network_fail_flight(struct flight *flight, gshmem_status_t status);
/* The result of a call whose request to that PE the transport has refused. */
gshmem_status_t network_explain(struct network *n, int pe, gshmem_status_t status,
                                const char *call);
/* With the lock held, which it releases meanwhile: the queue to the request's PE is full. Makes
 * progress and attempts it again, until the attempt does not return TRANSPORT_FULL. */
typedef gshmem_status_t network_attempt(struct network *n, void *of);
gshmem_status_t network_when_there_is_room(struct network *n,
                                           const struct transport_request *request,
                                           const char *call, network_attempt *attempt, void *of);

/* ---- open_batches.c, with the lock held ---- */

/* Posts the open batches to that PE; TRANSPORT_FULL: not all of them, for now. */
gshmem_status_t open_batches_post_to(struct network *n, int pe);
/* Posts those of which nothing is in flight; or all. */
void open_batches_post_due(struct network *n);
void open_batches_post_all(struct network *n);
/* Whether no thread is writing a record of an open batch: a signal handler may have interrupted
 * one. */
bool open_batches_are_free(const struct network *n);
/* Ends those that are open: the network ends. */
void open_batches_end(struct network *n);

/* ---- fetches.c, with the lock held ---- */

/* Whether fetches wait to be posted. */
static inline bool fetches_wait(const struct network *n)
{
    return atomic_load_explicit(&n->fetches, memory_order_relaxed) || n->fetches_full;
}

/* Also without the lock: whether some thread's fetch is complete and the thread has not gone on
 * yet. It may be about to make the next one. */
static inline bool fetches_return(const struct network *n)
{
    return atomic_load_explicit(&n->returning, memory_order_relaxed) != 0;
}

/* Posts those that wait. The next progress sends them. */
bool fetches_post(struct network *n);
/* After progress: releases the lock, and wakes the threads that sleep and whose fetches are
 * complete, by one system call for all. */
void fetches_give(struct network *n);

/* ---- batch_owners.c, with the lock held ---- */

struct biased_thread;
struct open_batch;
/* From now on no other thread owns it. */
void batch_disown(struct open_batch *b);
/* The same of all that are open, or of those that are due. */
void batches_disown(struct network *n, bool due);
/* Enters it in any case, for open_batch_leave: no other thread owns it any more. */
struct biased_thread *batch_enter(struct open_batch *b);
/* By a thread that has entered it without being its owner: it owns it from now on, if it may. */
void batch_own(struct network *n, struct open_batch *b);

/* ---- requests_shown.c ---- */

/* For waits for room in the queue to a PE, and until a request is sent, whose object is the
 * request; and until requests are complete, whose object is a struct pending. */
void network_show_room(const struct wait *w, struct where_wait *record);
void network_show_sending(const struct wait *w, struct where_wait *record);
void network_show_pending(const struct wait *w, struct where_wait *record);

/* With the lock held: counts a request that a transport has taken. */
static inline void network_count(struct network *n, const struct transport_request *r,
                                 enum stats_path path, bool internal)
{
    const bool update = transport_effect(r) == TRANSPORT_ATOMIC,
               put = transport_effect(r) == TRANSPORT_PUT, batch = r->kind == TRANSPORT_BATCH;
    const enum stats_kind kind = internal           ? STATS_INTERNAL
                                 : put              ? STATS_PUT
                                 : update && r->old ? STATS_FETCH
                                 : update           ? STATS_ATOMIC
                                                    : STATS_GET;

    const bool signals = put && r->signal_op, data = r->bytes || !signals;
    const uint64_t bytes = batch    ? r->elements * r->element_bytes
                           : update ? atomic_type_bytes(r->type)
                                    : r->bytes;
    uint64_t more = 0; /* what a signal adds to what the peer has had */

    /* a signal without data is no put */
    if (signals) {
        stats_add_operation(n->counts, internal ? STATS_INTERNAL : STATS_SIGNAL, path,
                            sizeof(uint64_t));
        more = 1;
    }
    if (data)
        stats_add_operation(n->counts, kind, path, bytes);
    stats_add_peer(n->counts, r->pe, data + more, (data ? bytes : 0) + more * sizeof(uint64_t));
}

/* With the lock held: whether the blob that a PE has published is known, or the bootstrap was asked
 * in vain. If not, the bootstrap has to be asked first, which may take time. The thread that makes
 * progress asks after it has released the lock; the caller, which has a kernel's command or a PE's
 * connection request, tries again in a later round. */
static inline bool network_has_met(struct network *n, int pe)
{
    if (GSHMEM_LIKELY(blobs_has(n->blobs, pe)) ||
        atomic_load_explicit(&n->asked, memory_order_acquire) == pe + 1)
        return true;
    if (!atomic_load_explicit(&n->asking, memory_order_relaxed))
        atomic_store_explicit(&n->wanted, pe + 1, memory_order_relaxed);
    return false;
}

/* Before the lock is taken to post to a PE: asks the bootstrap for that PE's blob, the first time.
 * That may wait for a launcher, during which no thread could make progress if the lock were
 * held. */
gshmem_status_t network_look_up(struct network *n, int pe);
static inline gshmem_status_t network_meet(struct network *n, int pe)
{
    return GSHMEM_LIKELY(blobs_has(n->blobs, pe)) ? GSHMEM_OK : network_look_up(n, pe);
}

/* acquire: pairs with the release in proxy_start */
static inline bool network_has_proxy(const struct network *n)
{
    return atomic_load_explicit(&n->proxy.runs, memory_order_acquire);
}

/* With the lock held: what a PE has published. TRANSPORT_FULL: the bootstrap is asked first,
 * without the lock. */
gshmem_status_t network_recall(struct network *n, int pe, struct pe_blob *blob);

extern const struct proxy_work network_proxy_work;

/* ---- choose.c ---- */

/* Opens n->remote, as the settings and this machine allow. */
gshmem_status_t network_choose(struct network *n);
/* As in struct transport_config; distance: `context` is a struct nic_center. */
int network_distance(void *context, const char *device, const char **text);

#endif

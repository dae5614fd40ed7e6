/* Requests to PEs that are not mapped, from threads and from kernels, and the threads that make
 * progress.
 *
 * A thread that waits for anything makes progress while it waits, so that a response is received by
 * the thread that needs it. When no thread waits, the proxy thread makes progress, and sleeps until
 * something arrives. One lock covers the transports and the kernels' channels; with several proxies
 * each lane has its own (lanes.h). Requests in flight are counted in the context, or the channel,
 * that issued them.
 *
 * A job on one node has a network, too, but no thread and no transport unless it has kernels. */
#ifndef GSHMEM_RUNTIME_NETWORK_NETWORK_H
#define GSHMEM_RUNTIME_NETWORK_NETWORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "runtime/network/keys.h"
#include "transport/transport.h"

struct gshmem_ctx;
struct job;
struct network;
struct open_batch_table;

/* A thread that waits only until its data has been sent. The fields belong to the holder of the
 * network's lock, until `gone` is set. */
struct departure {
    gshmem_status_t status; /* the first failure */
    _Atomic bool gone;
};

/* What is to be done when a request is complete, before its completion shows in its context: with
 * the network's lock held. */
struct landing {
    void (*landed)(struct landing *l, gshmem_status_t status);
};

/* A request in flight: its place in the order in which its context issued. */
struct flight {
    struct network *network;
    struct pending *pending;
    int pe;
    struct flight *next; /* the one issued after it, or the next spare one */
    union {
        struct departure *departure; /* NULL: no thread waits for it */
        struct landing *landing;     /* of network_post_landing */
    };
    bool sent;   /* it has no source, or its source may be reused */
    bool landed;
    uint64_t id; /* in the trace */
};

/* What a context has in flight. Positions count what it has issued. `done` is the position up to
 * which all requests are complete, though the network may complete them in any other order. All
 * fields except the atomics belong to the holder of the network's lock, which alone writes the
 * atomics, too, except `reported`. */
struct pending {
    _Atomic uint64_t issued; /* kernels read these four through struct gshmem_host_operations */
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
    _Atomic uint64_t reported;
    struct flight *first; /* requests that are not complete, in the order of their positions */
    struct flight *last;
    uint64_t sent; /* the position before which sources may be reused, when last looked at; */
    struct flight *last_sent; /* and the flight before that position, if sent > done */
    _Atomic uint8_t held; /* TRANSPORT_HELD within a session, else 0: further flags of its
                             requests */
    bool internal; /* its requests are the library's own, for the counts */
    int landed_from; /* the PE of the request that was completed last */
    /* Of contexts, which have a view: their open batches (open_batches.h), once they
     * have had small operations; and where else this pointer is stored then. */
    _Atomic(struct open_batch_table *) batches;
    _Atomic(struct open_batch_table *) *batches_copy;
    const struct gshmem_ctx *view;
};

static inline bool pending_any(const struct pending *p)
{
    return atomic_load_explicit(&p->done, memory_order_relaxed) !=
           atomic_load_explicit(&p->issued, memory_order_relaxed);
}

/* Whether all that was issued up to that position is complete, the data of gets included. */
static inline bool pending_is_done(const struct pending *p, uint64_t position)
{
    /* acquire: pairs with the release in requests_land */
    return atomic_load_explicit(&p->done, memory_order_acquire) >= position;
}

/* Before the PEs' blobs are exchanged: sets j->network, and opens a transport if there are other
 * nodes. *address and the public key are for this PE's blob; *lane_bytes of the address, at its
 * end, are for further lanes. uid: the id with which the job was started, or NULL. */
gshmem_status_t network_open(struct job *j, const gshmem_uniqueid_t *uid, void *address,
                             size_t capacity, size_t *bytes, size_t *lane_bytes,
                             unsigned char public_key[X25519_BYTES]);
/* Once memory is mapped: serves peers and starts the proxy thread, if there are other nodes. */
gshmem_status_t network_start(struct job *j);
/* Whether there are other nodes. */
bool network_is_needed(const struct network *n);
/* Notifies other nodes that this PE's gshmem_init or gshmem_finalize failed: for them it is a
 * failed PE. */
void network_fail(struct job *j);
/* In a child of fork: closes what would show peers that its parent lives. */
void network_leave_parent(struct job *j);
/* Whether this thread can take the network's lock, and those of open batches: a signal handler that
 * has interrupted the holder of one cannot. */
bool network_can_enter(struct job *j);
/* Sends what PEs may still wait for, and makes no more progress. State that other threads may be
 * using stays. */
void network_rest(struct job *j);
/* Ends the rest. The caller has made sure that no PE needs another any more. */
void network_stop(struct job *j);

/* The choices of GSHMEM_TRANSPORT. */

/* Whether this machine has what the verbs transport needs, and the reason, for people. Needs no
 * job. */
bool network_verbs_usable(char *why, size_t why_size);
/* The verbs transport's report on this machine's NICs; nothing where its module cannot be
 * loaded. */
void network_verbs_report(transport_line *line, void *to);

/* Whether a job on that many nodes might use NICs, by its settings and by what this machine has.
 * Needs no job. */
bool network_may_have_nics(int hosts);
/* Whether this PE's NICs make atomics: see transport_ops.updates. */
int network_nics_update(struct network *n, char *why, size_t why_size);

/* Whether a NIC has registered some of these bytes of this PE's symmetric memory: then their pages
 * must stay. */
bool network_pins(struct network *n, const void *mine, size_t bytes);

/* From now on there is other memory, or none, at these addresses of the device's, on this PE and on
 * all others. No PE has an operation in flight that uses them, and all PEs call this. */
void network_forget(struct network *n, const void *mine, size_t bytes);

/* Finds out for the map whether that PE runs the same program, so that its variables have the same
 * offsets. Asks the bootstrap, which may take time. If there is no response it remains unknown. */
void network_learn_program(struct network *n, int pe);

/* Whether that PE has failed: it has died, or some PE has declared it dead. */
bool network_lost(const struct network *n, int pe);
bool network_any_lost(const struct network *n);
/* From now on peers may leave: streams that they close are no failure. */
void network_expect_end(struct network *n);
bool network_expects_end(const struct network *n);

/* A fence, of any context: what is posted later stays behind what was posted before, also where it
 * is marked loose. Records of an open batch are in the order of the context's calls. */
void network_fence(struct network *n);

/* Posts a request of a context (its epoch, done and tag are filled in here). Where the queue to
 * that PE is full, makes progress until there is room. `call` is for messages. */
gshmem_status_t network_post(struct network *n, struct pending *pending,
                             struct transport_request *request, const char *call);
/* The same; l->landed is called when the request is complete, if it was posted. */
gshmem_status_t network_post_landing(struct network *n, struct pending *pending,
                                     struct transport_request *request, struct landing *l,
                                     const char *call);
/* Whether the transport to other nodes takes batches of puts and updates, of TRANSPORT_COPIED bytes
 * at least; and whether small operations of threads are collected in them. */
bool network_takes_batches(const struct network *n);
bool network_opens_batches(const struct network *n);
/* The bytes that the records of a batch may take that does this to each element; 0: the transport
 * takes none such. */
size_t network_batch_bytes(const struct network *n, int each);
/* Whether some of these bytes of this process are device memory. */
bool network_is_on_device(const struct network *n, const void *at, size_t bytes);
/* A put into another PE's heap, by a short path, for data that the transport copies, or that stays
 * where it is until the put is complete. */
gshmem_status_t network_put_to_heap(struct pending *pending, int pe, uint64_t offset,
                                    const void *source, size_t bytes);
/* Posts a put, and waits until its source may be used again. */
gshmem_status_t network_put(struct network *n, struct pending *pending,
                            struct transport_request *request, const char *call);
/* Waits until everything that was issued in `pending` before the call is complete; returns the last
 * failure since the last quiet. */
gshmem_status_t network_quiet(struct pending *pending, const char *call);
/* The same, but failures stay for the next quiet. */
gshmem_status_t network_drain(struct pending *pending, const char *call);
/* From now on the context's requests may wait for more of them, until the stop, which sends them. A
 * wait sends them, too. */
void network_session_start(struct pending *pending);
void network_session_stop(struct pending *pending);

/* Waits until the sources of all puts that were issued in `pending` before the call may be reused.
 * Failures stay for the next quiet. */
gshmem_status_t network_flush(struct pending *pending, const char *call);

/* Posts a request and waits until this request is complete. For what a caller must have on return:
 * the bytes of a get, *value of an atomic that fetches (NULL if it does not). */
gshmem_status_t network_errand(struct network *n, struct transport_request *request,
                               const char *call, uint64_t *value);

/* A get into memory that the caller does not keep if the call fails: `to` is written on success,
 * and not by a response that comes after the wait was cut short. */
gshmem_status_t network_fetch(struct network *n, struct transport_request *get, void *to,
                              const char *call);

/* network_errand for a request that may fail because the PE has left: a failure is not logged. */
gshmem_status_t network_remark(struct network *n, struct transport_request *request,
                               const char *call);

/* The same for many requests of one call: a record for them, apart from the program's requests,
 * whose failures are not this call's. NULL: out of memory, which was logged. */
struct pending *network_errands_begin(struct network *n, const char *call);
/* Waits until they are complete, and frees the record. Returns `status`, that of the posts, or
 * otherwise the first failure. */
gshmem_status_t network_errands_end(struct network *n, struct pending *pending,
                                    gshmem_status_t status, const char *call);

/* ---- Kernels ---- */

/* Where requests come from beside the program's threads: the channels of kernels (proxy/service.h),
 * of which the network knows no more than this. */
struct network_source {
    /* With the network's lock held. take: posts what has come; whether there was anything.
     * publish: transports have made progress. fall_asleep: from now on the source wakes the proxy
     * when something comes; whether something has come already. wake_up: ends that. */
    bool (*take)(struct network_source *s);
    void (*publish)(struct network_source *s);
    bool (*fall_asleep)(struct network_source *s);
    void (*wake_up)(struct network_source *s);
    /* Without it. raise: hands failures to the error policy, which may take time. look_after:
     * regularly, for the watchdog, and for who waits for a PE that has died. */
    void (*raise)(struct network_source *s);
    void (*look_after)(struct network_source *s);
    /* Set by take: something waits for another lane, which does not wake this one's proxy, so that
     * the proxy goes on. A thread that waits may sleep. */
    bool restless;
    /* Set by take and publish: something that was posted is not complete. */
    _Atomic bool pending;
};

/* How many lanes there are (lanes.h), and one of them. Each serves a source of its own. */
int network_lanes(const struct network *n);
struct network *network_lane(struct network *n, int number);
/* Takes requests from the source too, and reaches this node's PEs for it. Starts the lane's proxy
 * if it does not run. */
gshmem_status_t network_serve(struct network *lane, struct network_source *s);
/* Whether requests to this node's PEs are still being carried out. */
bool network_local_busy(struct network *lane);

/* ---- For the proxy ---- */

/* One round: takes commands, and makes progress in the transports. Returns whether anything
 * happened. */
bool network_round(struct network *n);
/* Asks the bootstrap for what kernels and other PEs need of it (network_has_met), which may take
 * time. */
bool network_ask(struct network *n);
int network_wait_fd(const struct network *n);
/* Hands failures of the source's requests to the error policy, which may take time. */
void network_raise(struct network *n);
/* Tells the source that the proxy sleeps; false: there is work after all. */
bool network_fall_asleep(struct network *n);
void network_wake_up(struct network *n);
/* Whether a spinning proxy would take the CPU from the PEs that it works for. */
bool network_shares_cpu(const struct network *n);
/* Lets the source look for what concerns kernels: the end of the job, PEs that have died. */
void network_look_after(struct network *n);
/* Tests for PEs of this node that have died, and notifies other nodes of failed PEs. */
void network_look_around(struct network *n);

/* ---- Waits ---- */

/* What for a thread makes progress. */
enum network_purpose {
    NETWORK_FOR_OTHERS,
    NETWORK_FOR_REQUESTS, /* it waits for what it has issued, or for other PEs, */
    NETWORK_FOR_UPDATE,   /* or until a peer updates a variable of this PE's */
};

/* One round of progress if no other thread makes progress; returns whether anything happened. For
 * waits. */
bool network_drive(struct network *n, enum network_purpose for_what);
/* Call before a sleep on network_wait_fd: whether there is something to do already. */
bool network_arm(struct network *n);
/* Sleeps until something arrives, at most for that time. */
void network_sleep(struct network *n, uint64_t ns);

#endif

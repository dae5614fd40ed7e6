/* Requests to PEs that are not mapped, from threads and from kernels, and who carries those out.
 *
 * Transports are driven by whoever has time: a thread that waits for anything drives them while it
 * waits, so that an answer is taken by the thread that needs it; when nobody waits, the proxy thread
 * does, asleep until something arrives. One lock covers the transports and the kernels' channels;
 * requests in flight are counted in the context, or the channel, that issued them.
 *
 * A job on one node has a network too, but no thread and no transport unless it has kernels. */
#ifndef GSHMEM_RUNTIME_NETWORK_NETWORK_H
#define GSHMEM_RUNTIME_NETWORK_NETWORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/device/state.h"
#include "runtime/network/keys.h"
#include "transport/transport.h"

struct job;
struct network;
struct proxy_channel;

/* A thread that waits for no more than that its data has left. All belongs to who holds the network's
 * lock, until it is gone. */
struct departure {
    gshmem_status_t status; /* a failure that came first */
    _Atomic bool gone;
};

/* A request on its way: its place in the order in which its context issued. */
struct flight {
    struct network *network;
    struct pending *pending;
    int pe;
    struct flight *next; /* issued after it, or the next spare one */
    struct departure *departure; /* NULL: nobody waits for it */
    bool landed;
};

/* What a context has in flight. Positions count what it issued; `done` is the position up to which
 * all is done, though the network may finish things in any other order. All but the atomics belongs
 * to who holds the network's lock, who alone writes these, but for `told`. */
struct pending {
    _Atomic uint64_t issued; /* as in struct gshmem_host_operations, which kernels see here: these four */
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
    _Atomic uint64_t told;
    struct flight *first; /* not done, in the order of their positions */
    struct flight *last;
};

static inline bool pending_any(const struct pending *p)
{
    return atomic_load_explicit(&p->done, memory_order_relaxed) !=
           atomic_load_explicit(&p->issued, memory_order_relaxed);
}

/* Before the PEs' blobs are exchanged: sets j->network, and opens a transport if there are other
 * hosts: *address and the public key are this PE's part of its blob. uid: what the job was begun with, or
 * NULL. */
gshmem_status_t network_open(struct job *j, const gshmem_uniqueid_t *uid, void *address, size_t capacity,
                             size_t *bytes, unsigned char public_key[X25519_BYTES]);
/* Once memory is mapped: serves peers and starts the proxy thread, if there are other hosts. */
gshmem_status_t network_start(struct job *j);
/* Whether there are other hosts. */
bool network_is_needed(const struct network *n);
/* Tells other hosts that this PE's gshmem_init or gshmem_finalize failed: it is lost to them. */
void network_fail(struct job *j);
/* In a child of fork: leaves nothing open that shows peers that its parent lives. */
void network_leave_parent(struct job *j);
/* Whether this thread can have the network's lock: a signal's handler that has interrupted who holds it never can. */
bool network_can_enter(struct job *j);
/* Sends what is still to be sent to PEs that may wait for it, and drives no more; what other threads may be at stays. */
void network_rest(struct job *j);
/* Ends what is left of it. The caller has made sure that all PEs are done with each other. */
void network_stop(struct job *j);

/* The choices of GSHMEM_TRANSPORT. */
enum { TRANSPORT_AUTO, TRANSPORT_ONLY_TCP, TRANSPORT_VERBS };

/* Whether this machine has what the verbs transport needs, and why, for people. Needs no job. */
bool network_verbs_usable(char *why, size_t why_size);
/* What it has to say of this machine's NICs; nothing where its module cannot be loaded. */
void network_verbs_report(transport_line *line, void *to);

/* Whether a job on so many hosts might use NICs, by its settings and what
 * this machine shows. Needs no job. */
bool network_may_have_nics(int hosts);
/* Whether this PE's NICs make atomics: see transport_ops.updates. */
int network_nics_update(struct network *n, char *why, size_t why_size);

/* Whether a NIC holds some of these bytes of this PE's symmetric memory: then their pages must stay. */
bool network_pins(struct network *n, const void *mine, size_t bytes);

/* From here on there is other memory, or none, at these addresses of the device's, of this PE and of all
 * others: no PE has anything under way with them, and all call this. */
void network_forget(struct network *n, const void *mine, size_t bytes);

/* Learns for the map whether that PE runs the same program, so that variables have the same places:
 * asks the starter, which may take its time. Where there is no answer it stays unknown. */
void network_learn_program(struct network *n, int pe);

/* Whether that PE is lost to the job: it has died, or somebody has given it up. */
bool network_lost(const struct network *n, int pe);
bool network_any_lost(const struct network *n);
/* From here on peers may go: what they leave open is no failure to speak of. */
void network_expect_end(struct network *n);

/* A fence, of any context: what is posted from here on is not loose towards what was before. */
void network_fence(struct network *n);

/* Posts a request of a context (its epoch, done and tag are filled in here); where the queue to that
 * PE is full, drives until there is room. `call` is for messages. */
gshmem_status_t network_post(struct network *n, struct pending *pending,
                             struct transport_request *request, const char *call);
/* A put into another PE's heap in one go, for most of them: of what is copied on its way, or stays
 * where it is until it is done. */
gshmem_status_t network_put_to_heap(struct pending *pending, int pe, uint64_t offset,
                                    const void *source, size_t bytes);
/* Posts a put, and waits until its source may be used again. */
gshmem_status_t network_put(struct network *n, struct pending *pending,
                            struct transport_request *request, const char *call);
/* Waits until all that was issued in `pending` before the call is done; returns the last failure
 * since the last quiet. */
gshmem_status_t network_quiet(struct pending *pending, const char *call);

/* Posts a request and waits until it is done, and it alone. For what a caller must have on return:
 * the bytes of a get, *value of an atomic that fetches (NULL if it does not). */
gshmem_status_t network_errand(struct network *n, struct transport_request *request,
                               const char *call, uint64_t *value);

/* The same for what nobody relies on: the PE may have left, which is not said. */
void network_remark(struct network *n, struct transport_request *request, const char *call);

/* The same for many requests of one call: a place for what they have under way, apart from what the program has, whose
 * failures are not this call's. NULL: out of memory, which has been said. */
struct pending *network_errands_begin(struct network *n, const char *call);
/* Waits until they are done, and gives the place back. Returns `status`, of the posts, or else the first failure. */
gshmem_status_t network_errands_end(struct network *n, struct pending *pending, gshmem_status_t status,
                                    const char *call);

/* ---- Kernels ---- */

/* Starts the proxy if need be, and lets channels reach this node's PEs too. *asleep is shared with
 * kernels: whether the proxy wants to be woken. */
gshmem_status_t network_serve_kernels(struct network *n, struct gshmem_response *response,
                                      uint32_t *asleep);
/* Whether commands that have been taken are still carried out on this node. */
bool network_local_busy(struct network *n);
/* Begins to take commands off a channel; ends it. */
gshmem_status_t network_add_channel(struct network *n, struct proxy_channel *c);
void network_remove_channel(struct network *n, struct proxy_channel *c);
/* For a thread of the host device that waits: wakes the proxy, or does its work. */
void network_help(struct network *n);
/* For one that waits for what other PEs bring: the same, but nothing where they are all on this node
 * and the proxy sleeps, which it does when all commands have been taken. */
void network_receive(struct network *n);

/* ---- For the proxy ---- */

/* One round: takes commands, and drives the transports. Whether anything happened. */
bool network_round(struct network *n);
int network_wait_fd(const struct network *n);
/* Hands failures of kernels' operations to the error policy, which may take its time. */
void network_raise(struct network *n);
/* Tells kernels that the proxy sleeps; false: there is work after all. */
bool network_fall_asleep(struct network *n);
void network_wake_up(struct network *n);
/* Whether a spinning proxy would be in the way of those it works for. */
bool network_shares_cpu(const struct network *n);
/* Tells kernels if the job has been ended, or a PE has died. */
void network_look_after(struct network *n);
/* Looks who of this node has died, and tells other hosts who is lost. */
void network_look_around(struct network *n);

/* ---- Waits ---- */

/* One round of progress if no other thread is at it; whether anything happened. For waits. */
bool network_drive(struct network *n);
/* Before a sleep on network_wait_fd: whether there is something to do already. */
bool network_arm(struct network *n);
/* Sleeps until something arrives, at most that long. */
void network_sleep(struct network *n, uint64_t ns);

#endif

/* The PEs that share one machine, and the memory they share.
 *
 * One file without a name (a memfd) holds the memory of all PEs of a node: the lowest PE, the
 * leader, makes it and sends its descriptor to the others over a Unix socket. Every PE maps the
 * whole of it once, so that peers' heaps never need a mapping of their own:
 *
 *     control | slot of PE 0: system, data, heap, NIC heap | slot of PE 1 | …
 *
 * Slots are in the order of the PEs' indices on the node.
 * The file is sparse; memory is allocated when it is first touched. */
#ifndef GSHMEM_RUNTIME_NODE_NODE_H
#define GSHMEM_RUNTIME_NODE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "device/card.h"
#include "gshmem/status.h"
#include "runtime/node/await.h"
#include "runtime/node/handover.h"
#include "runtime/node/liveness.h"
#include "runtime/node/rendezvous.h"

/* Decided by the leader, the same for all PEs of the node. All sizes are multiples of 2 MiB. */
struct node_layout {
    uint64_t control_bytes;
    uint64_t system_bytes; /* of a slot: the library's own symmetric memory */
    uint64_t data_bytes;   /* of a slot: room for the program's global and static variables */
    uint64_t heap_bytes;   /* of a slot: the limit of the symmetric heap */
    uint64_t nic_bytes;    /* of a slot: the limit of the NIC heap (memory/README.md) */
};

enum node_state {
    NODE_ABSENT, /* the PE has not joined yet */
    NODE_HERE,   /* the fields below are valid, and the PE's lock tells whether it lives */
    NODE_LEFT,   /* the PE has left in good order */
    NODE_FAILED, /* its gshmem_init or gshmem_finalize failed: for the others it is a failed PE,
                    like one that died */
};

/* Bit i % 64 of word i / 64 for CPU i; all zero: not known. */
struct node_cpus {
    uint64_t word[16];
};

/* What a PE shows the others of its node; only the PE itself writes it. */
struct node_member {
    _Alignas(64) _Atomic uint32_t state; /* enum node_state */
    int32_t pe;
    int32_t pid;
    uint32_t data_segments;    /* how many, and a digest of their sizes and the program's
                                  identity */
    uint64_t data_digest;      /* data is symmetric between PEs with the same digest */
    struct handover_address handover; /* where to send a descriptor to this PE */
    struct device_card card;
    struct node_cpus cpus;     /* the CPUs that it may run on */
    _Atomic int32_t cpu;       /* 1 + the CPU on which it last waited for long; 0: not known */
    uint64_t heap_base;        /* the result of place_wanted */
};
_Static_assert(sizeof(struct node_member) % 64 == 0, "two PEs do not share a cache line");

struct node_control {
    _Atomic uint32_t aborted;  /* 1 + exit status: some PE has ended the job; waits must stop */
    int32_t aborted_by;        /* the PE that ended it */
    char why[184];
    _Atomic uint32_t losses;   /* how many PEs have failed: see node_lose */
    struct node_member member[];
};

struct where_page;

struct node {
    int index;             /* this PE's index among the PEs of this node */
    int n;                 /* how many PEs there are */
    int *pe;               /* [n]: their PEs, ascending */
    int sharers;           /* PEs that use this machine's CPUs: more than n, where its nodes are
                              pretended */
    int cpus;              /* CPUs that the sharers may use; the same on all PEs of the node
                              (node_join) */
    bool oversubscribed;          /* there are more PEs than CPUs, so that a PE that waits must let
                                     others run; the same on all PEs of the node */
    bool apart;            /* each node of this machine has CPUs of its own */
    bool contained;        /* all nodes of the job are on one machine, as containers can be */
    int before;            /* if so: how many PEs are on the nodes before this one */
    int fd;
    char *arena;
    size_t arena_bytes;
    struct node_layout layout;
    struct node_control *control;
    struct liveness liveness;
    _Atomic bool *lost;    /* [PE of the job], behind the control's members: whether it has
                              failed */
    struct rendezvous rendezvous; /* the leader's, until all PEs have the descriptor */
    int *index_of;         /* [PE of the job]: its index on this node, -1 if it is on another one */
    struct where_page *page; /* what this PE's threads wait for: where_page.h; NULL: not yet */
    size_t page_offset;      /* of each PE's, in its system part */
    /* Bits of the page's records that kernels have, until the job ends; under the lock of
     * runtime/proxy/shown.c. */
    uint32_t kernel_records;
};

/* The offsets of a slot's parts in the arena. */
static inline size_t node_slot_bytes(const struct node_layout *l)
{
    return l->system_bytes + l->data_bytes + l->heap_bytes + l->nic_bytes;
}

static inline size_t node_system_offset(const struct node_layout *l, int index)
{
    return l->control_bytes + (size_t)index * node_slot_bytes(l);
}

static inline size_t node_data_offset(const struct node_layout *l, int index)
{
    return node_system_offset(l, index) + l->system_bytes;
}

static inline size_t node_heap_offset(const struct node_layout *l, int index)
{
    return node_data_offset(l, index) + l->data_bytes;
}

static inline size_t node_nic_offset(const struct node_layout *l, int index)
{
    return node_heap_offset(l, index) + l->heap_bytes;
}

/* This machine's memory, or a container's limit. */
uint64_t node_memory_bytes(void);

/* What a slot has to have room for: the rooms above say so, and the leader's word counts. */
struct node_needs {
    uint64_t system_bytes;
    uint64_t data_bytes;
    bool nic_heap; /* as large as the heap */
};

/* Finds this node's PEs; the leader makes the shared memory. *address is what the leader publishes
 * for the others (zero for them). */
gshmem_status_t node_open(struct node *node, const struct bootstrap *b,
                          const struct node_needs *needs, struct rendezvous_address *address);
/* Sends the descriptor to the others, or receives it from the leader, and maps the memory. */
gshmem_status_t node_share(struct node *node, const struct rendezvous_address *leader);
/* What a PE shows of itself: as in node_member. */
struct node_self {
    int pe;
    uint32_t data_segments;
    uint64_t data_digest;
    uint64_t heap_base;
};

/* Shows this PE to the others of its node and waits until all of them have joined. From then on all
 * have the same `cpus` and `oversubscribed`, which decide how they synchronize; before, each has
 * its own estimate. */
gshmem_status_t node_join(struct node *node, const struct node_self *self, await_fn *await);
/* Tells the node that this PE's gshmem_init or gshmem_finalize failed, so that no PE waits for
 * it. */
void node_fail(struct node *node, int pe);
/* Tells the node that this PE leaves in good order, unless its start-up failed. */
void node_leave(struct node *node);
/* The same, and unmaps the memory. */
void node_stop(struct node *node);
/* A number for this machine, which its containers share; 0: not known. It does not distinguish
 * nodes: machines that were copied while they ran have the same number. */
uint64_t node_machine(void);
/* A number that is the same on PEs that may use the same CPUs. */
uint64_t node_cpus_digest(void);
/* All nodes are on this machine, and their PEs share its CPUs. */
void node_join_machine(struct node *node, const struct bootstrap *b);
/* How many of the shared CPUs are for the PEs of this node. */
static inline int node_cpus(const struct node *node)
{
    int cpus = node->contained ? node->cpus * node->n / node->sharers : node->cpus;

    return cpus > 1 ? cpus : 1;
}
/* Which of the `cpus` shared CPUs is this PE's. PEs of a node stay together where nodes share CPUs:
 * a yield lets only PEs of the same node run (wait.c). */
int node_turn(const struct node *node, const struct bootstrap *b, int cpus);

/* Declares a PE failed: it has died, or, on another node, cannot be reached any more. All PEs of
 * this node act on it, since they wait for each other, too. Returns whether this was not known
 * yet. */
bool node_lose(struct node *node, int pe);
/* How many PEs have failed: a PE that finds more than before looks up which. */
static inline uint32_t node_losses(const struct node *node)
{
    /* acquire: pairs with the release in node_lose */
    return atomic_load_explicit(&node->control->losses, memory_order_acquire);
}
static inline bool node_lost(const struct node *node, int pe)
{
    return atomic_load_explicit(&node->lost[pe], memory_order_relaxed);
}

/* Ends the job on this node: every wait stops with GSHMEM_ERR_ABORTED. The first call counts. */
void node_abort(struct node *node, int pe, int exit_status, const char *why);

/* Whether the job was ended in this way, and with which status. */
bool node_exit_status(const struct node *node, int *exit_status);

/* Whether the PE with this index on the node still runs (or has left in good order). One system
 * call; for the slow part of waits. */
bool node_alive(struct node *node, int index);
/* What has become of a PE that does not run: "has died", for messages. */
const char *node_fate(const struct node *node, int index);
/* Whether this PE has failed in gshmem_init or gshmem_finalize, and so PEs of its node may not have
 * finished with it. */
bool node_has_failed(const struct node *node);

#endif

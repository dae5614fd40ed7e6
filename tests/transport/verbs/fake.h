/* A NIC that is not there: libibverbs as far as the verbs transport calls it, within one process.
 *
 * It is stricter than a NIC, and slower where one may be: keys, bounds and rights are checked, a
 * queue pair takes what its size says and no more, nothing moves before fake_run, whose order
 * between queue pairs is drawn, and reads come back as late as the rules allow, behind writes that
 * do not wait for them. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "call.h"

void fake_begin(unsigned seed); /* no devices are open, nothing is planned */
void fake_end(void);            /* fails the test if something has been left */
/* Carries out what has been posted, in part or as a whole; whether there was something. */
bool fake_run(void);
/* The same for one NIC; with fake.apart, for which each queue pair's peer is of the same NIC. */
bool fake_run_nic(int device);

/* The nth work request from now on (1: the next) ends with that status, and its queue pair with it.
 */
void fake_fail(int nth, enum ibv_wc_status status);
/* The nth call from now on of ibv_post_send takes all but its last work request, and answers that.
 */
void fake_refuse_post(int nth, int error);
/* The nth registration from now on fails with ENOMEM. */
void fake_refuse_memory(int nth);

/* So many queue pairs from now on cannot be made, with ENOMEM. */
void fake_refuse_pairs(int n);
/* The nth queue pair from now on that is told of its peer finds no way to it. */
void fake_refuse_way(int nth);
/* Queue pairs that are told of their peers from now on find their way only when they may, as long as the kernel looks
 * for a neighbour that does not answer; not within a call of this thread's, which could not go on. */
void fake_hold_ways(bool hold);
bool fake_holds_ways(void);
/* A port's link goes down, which it says, or comes back; or it is cut off without a word. */
void fake_port(int device, bool up);
void fake_cut(int device);
/* Two queue pairs of iWARP's are each other's from here on. */
void fake_connect(uint32_t a, uint32_t b);
/* What all who have that device open hear. */
void fake_event(int device, struct ibv_async_event e);

enum { FAKE_DEVICES = 8, FAKE_GIDS = 3 };

extern struct fake_count {
    int posts; /* calls of ibv_post_send */
    int works; /* work requests */
    int writes, reads, sends, updates;
    int signalled;
    int registered; /* there are now */
    int partial_pages; /* registrations that begin within a page, which something else may lie on */
    bool fork_safe; /* libibverbs has been asked to be, before anything was registered */
    int of_device[FAKE_DEVICES]; /* work requests of each */
    /* What may be changed before PEs are opened: */
    int devices, inline_most, sends_most, completions_most, receives_most;
    bool atomics;         /* NICs make them */
    bool soft;            /* they are soft-RoCE, which must not be asked to wait for reads */
    bool loses_answers;   /* where a queue pair breaks, what it had just done is not reported */
    bool tells_no_packet; /* ibv_query_qp fails */
    bool copies_packet;   /* it answers the packet that a queue pair began with, as Intel's driver does */
    uint64_t pins_most; /* bytes that a PE may register, as a limit of its user's; 0: any */
    bool iwarp; /* NICs are of it: writes are placed late, and fake_cm.c connects queue pairs */
    bool gids_moved; /* they have other places in the port's table than at first, and the old ones are empty */
    bool moves;      /* each time that a port comes back they do */
    int lid;
    bool needs_grh; /* of InfiniBand's ports */
    bool late;     /* completions can be polled some polls later than they are there */
    bool reorders; /* writes are placed newest first, */
    int orderly;   /* but not by so many of the first devices */
    /* `late`, `moves` and `reorders` begin as set where the environment's FAKE_NIC names them. */
    bool refuses_connections, loses_connections;
    int infiniband; /* what ports that are asked from now on are of; else Ethernet */
    bool rails;     /* devices of one number reach each other, and no others; */
    bool rails_told; /* and their addresses say so */
    int dma_bufs, peermems; /* registrations of a GPU's memory, counted */
    int no_dma_buf, peermem; /* whether such can be made */
    bool apart;       /* a thread for each NIC, with a lock of its own; works are not counted */
    int gids; /* how many addresses the port has: of RoCE v1, then v2 of IPv6, then v2 of IPv4 */
} fake;

/* The most that a NIC of one PE has in flight now: work requests, and bytes of writes and reads. */
struct fake_flight {
    uint64_t bytes;
    uint32_t works;
};
struct fake_flight fake_most_in_flight(void);

/* Called after each write that was placed later than it came; or NULL. */
extern void (*fake_look)(void);
/* For tests with memory of a (simulated) GPU: which that is, and a descriptor of it, or -1. */
extern bool (*fake_is_gpu)(const void *at, size_t bytes);
extern int (*fake_export)(const void *at, size_t bytes, uint64_t *offset);
/* And what NICs do to it, if not at once: they write, or read, which all that was written before is pushed by. */
extern void (*fake_gpu_write)(void *at, const void *data, size_t bytes);
extern void (*fake_gpu_read)(void);

#endif

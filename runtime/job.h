/* The job object: everything a PE knows hangs from it, and goes when it goes.
 *
 * One exists between the first gshmem_init and the last gshmem_finalize. */
#ifndef GSHMEM_RUNTIME_JOB_H
#define GSHMEM_RUNTIME_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/host.h"
#include "runtime/memory/data.h"
#include "runtime/network.h"
#include "runtime/nics.h"

struct team;
struct device_heap;
struct heap;
struct registrations;
struct symmetric;
struct context;

enum { TEAM_MAX = 256 };

/* PEs of the job that have made a team of themselves without one that contains them: facade.h. */
struct active_set {
    int start, log_stride, size;
    gshmem_team_t team;
};

struct job {
    int pe;
    int n_pes;
    int thread_level;
    struct bootstrap *bootstrap; /* outlives the job object */
    struct host host;            /* the PEs on this machine and the memory they share */
    struct network *network;     /* to PEs on other hosts, and what kernels ask of any */
    struct kernels *kernels;     /* what they see of the job; NULL where no module has kernels */
    struct heap *heap;           /* what is allocated in the symmetric heap in host memory */
    struct device *device;       /* where kernels run */
    enum nic_way nic_way;        /* how NICs get at its memory, where that is its own */
    struct device_heap *device_heap; /* the symmetric heap in the device's own memory, and what is */
    struct heap *device_objects;     /* allocated in it; NULL where the device has none */
    struct heap *nic_objects;        /* and in what NICs update; NULL where none can */
    struct registrations *registered; /* memory of the program's own, */
    struct symmetric *symmetric;      /* and what of it is symmetric */
    struct data_segments data;   /* the program's variables */

    /* Where each PE's segments are mapped here, by PE of the job; 0: not mapped. */
    uintptr_t *heap_peer;
    uintptr_t *data_peer;
    uintptr_t *system_peer; /* the library's own part: team_sync blocks, one per team slot */

    struct team *team[TEAM_MAX];  /* by gshmem_team_t; NULL: no such team */
    uint64_t splitting[TEAM_MAX / 64]; /* parents of teams being made by threads of this PE, */
    bool offering;                     /* and whether one of these threads offers slots now */
    struct active_set active[TEAM_MAX]; /* those this PE is in, */
    uint32_t n_active;                  /* and how many: raised when one is complete */
    struct context *contexts;      /* those the program has made, so that finalize can free them, */
    struct context *left_contexts; /* and those it has destroyed, with something still under way */
    pthread_mutex_t lock;         /* teams, contexts and allocation; never held while waiting */
};

/* What a PE publishes at start-up. Only as much of it as is used is sent: `transport` is the end. */
struct job_blob {
    struct rendezvous_address rendezvous; /* of the leader of its host */
    unsigned char secret[32];             /* the job's: PE 0's counts, the others' are zero */
    uint64_t data_digest;                 /* as in host_member */
    uint64_t machine;                     /* host_machine */
    uint32_t data_segments;
    uint32_t transport_bytes;
    unsigned char transport[TRANSPORT_ADDRESS_MAX];
};
_Static_assert(sizeof(struct job_blob) <= BOOTSTRAP_BLOB_MAX, "a blob fits what a bootstrap carries");

/* The blob of a PE, from the starter. Not for two threads at once. */
gshmem_status_t job_fetch(struct job *j, int pe, struct job_blob *blob);

/* The one job of this process, NULL when not initialised. */
extern struct job *job;

/* The job, if it has begun; it does not end, and none begins, until it is let go of. */
struct job *job_hold(void);
void job_let_go(void);

/* Makes the job's tables of where peers are mapped, from the host's memory. */
gshmem_status_t job_map_peers(struct job *j);

/* Fails with GSHMEM_ERR_STATE and a line naming `call` if there is no job. */
gshmem_status_t job_require(const char *call);

/* Tells every PE on this machine and the starter that the job is over, and exits. */
void job_abort(int exit_status, const char *why) __attribute__((noreturn));

#endif

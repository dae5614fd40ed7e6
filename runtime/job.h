/* The job object: everything a PE knows hangs from it, and goes when it goes.
 *
 * One exists between the first gshmem_init and the last gshmem_finalize. */
#ifndef GSHMEM_RUNTIME_JOB_H
#define GSHMEM_RUNTIME_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "runtime/network/keys.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/nics.h"

struct job_blob;
struct team;
struct device_heap;
struct heap;
struct registrations;
struct symmetric;
struct context;
struct lock_turn;

enum { TEAM_MAX = 256 };

/* PEs of the job that have made a team of themselves without one that contains them: runtime/facades/extensions.h. */
struct active_set {
    int start, log_stride, size;
    gshmem_team_t team;
};

struct job {
    int pe;
    int n_pes;
    int thread_level;
    atomic_bool own_memory; /* operations of this PE on itself take memory that is not symmetric, too */
    struct bootstrap *bootstrap; /* outlives the job object */
    struct node node;            /* the PEs on this machine and the memory they share */
    struct network *network;     /* to PEs on other hosts, and what kernels ask of any */
    struct kernels *kernels;     /* what they see of the job; NULL where no module has kernels */
    struct heap *heap;           /* what is allocated in the symmetric heap in host memory */
    struct device *device;       /* where kernels run */
    enum nic_way nic_way;        /* how NICs get at its memory, where that is its own, */
    bool flushes;                /* and whether what they write there is flushed before kernels use it */
    struct device_heap *device_heap; /* the symmetric heap in the device's own memory, and what is */
    struct heap *device_objects;     /* allocated in it; NULL where the device has none */
    struct heap *nic_objects;        /* and in what NICs update; NULL where none can */
    struct registrations *registered; /* memory of the program's own, */
    struct symmetric *symmetric;      /* and what of it is symmetric */
    struct data_segments data;   /* the program's variables */
    struct memory_map map;       /* where all that is symmetric is, of all PEs */
    void *placed; /* this PE's heap once more, where GSHMEM_HEAP_BASE has it; NULL: there is none */
    size_t placed_bytes;

    struct team *team[TEAM_MAX];  /* by gshmem_team_t; NULL: no such team */
    int claims;                   /* how many of them not all members are known to have: runtime/teams/slots.h */
    struct active_set active[TEAM_MAX]; /* those this PE is in, and whose teams stay, */
    uint32_t n_active;                  /* and how many: raised when one is complete */
    struct context *contexts;      /* those the program has made, so that finalize can free them, */
    struct context *left_contexts; /* and those it has destroyed, with something still under way */
    atomic_bool over;             /* the process ends, and what it has mapped stays until then: job_stay */
    atomic_int leaving;           /* this PE leaves: an enum departure_way, */
    bool *told_left;              /* and has told PE 0 of those on its node that do; departures.c */
    struct lock_turn *turns;      /* threads of this PE that have, or wait for, a lock: lock.c */
    struct job_blob *_Atomic *blob; /* [PE]: those fetched from the starter; NULL where all PEs are on one node */
    pthread_mutex_t fetching;       /* held while the starter is asked, which may take its time */
    pthread_mutex_t lock;         /* teams, contexts, turns and allocation; never held while waiting */
};

/* What a PE publishes at start-up. Only as much of it as is used is sent: `transport` is the end. */
struct job_blob {
    struct rendezvous_address rendezvous; /* of the leader of its node */
    unsigned char public_key[X25519_BYTES]; /* keys.h; zero where the job is on one node */
    uint64_t data_digest;                 /* as in node_member */
    uint64_t machine;                     /* node_machine, */
    uint64_t cpus;                        /* node_cpus_digest */
    uint32_t data_segments;
    uint32_t transport_bytes;
    unsigned char transport[TRANSPORT_ADDRESS_MAX];
};
_Static_assert(sizeof(struct job_blob) <= BOOTSTRAP_BLOB_MAX,
               "struct job_blob is larger than BOOTSTRAP_BLOB_MAX, the most that bootstraps and their modules carry: "
               "take a field out, make TRANSPORT_ADDRESS_MAX smaller, or raise BOOTSTRAP_BLOB_MAX and "
               "BOOTSTRAP_VERSION");

/* The blob of a PE, from the starter the first time. That may wait for a launcher: not with a lock held that others
 * need meanwhile, unless job_has_blob. */
gshmem_status_t job_fetch(struct job *j, int pe, struct job_blob *blob);

void job_forget_blobs(struct job *j);
static inline bool job_has_blob(const struct job *j, int pe)
{
    /* acquire: pairs with the release in job_fetch */
    return !j->blob || atomic_load_explicit(&j->blob[pe], memory_order_acquire);
}

/* The one job of this process, NULL when not initialised. */
extern struct job *job;
extern bool job_forked; /* this process is a child, made by fork, of one that had started */

/* The job, if it has begun; it does not end, and none begins, until it is let go of. */
struct job *job_hold(void);
void job_let_go(void);

/* Fails with GSHMEM_ERR_STATE and a line naming `call` if there is no job. */
gshmem_status_t job_require(const char *call);

/* What a process shows of an exit status: its low 8 bits, where a failure must not become 0. */
static inline int job_exit_code(int status)
{
    return status == 0 || status & 0xff ? status & 0xff : 1;
}

/* This thread ends the process, and has taken it out of the job; what the job is made of stays mapped. */
void job_end_with_process(struct job *j);
static inline bool job_is_over(const struct job *j)
{
    return atomic_load_explicit(&j->over, memory_order_relaxed);
}
/* Of a call in a job that is over so. Fails in the thread that ends the process; another one, whose waits and failures
 * concern nobody any more, stays here until the process has gone. */
gshmem_status_t job_stay(const char *call);

/* This thread has begun to end the job and, with a status, this process; others leave it the job, which it still uses. */
void job_begin_to_end(void);
bool job_ends_elsewhere(void); /* whether another thread of this process has */

/* Tells every PE on this machine and the starter that the job is over, and exits. */
void job_abort(int exit_status, const char *why) __attribute__((noreturn));

/* Whether the error policy is to end the job at a failure that nobody is told of (error.c). */
bool error_ends_job(void);

#endif

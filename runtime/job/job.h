/* The job object: everything a PE knows hangs from it, and is freed with it.
 *
 * It holds pointers: what is behind one is defined by the room that it belongs to. One job exists
 * between the first gshmem_init and the last gshmem_finalize. */
#ifndef GSHMEM_RUNTIME_JOB_JOB_H
#define GSHMEM_RUNTIME_JOB_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

struct active_sets;
struct answer;
struct blobs;
struct bootstrap;
struct checked;
struct context;
struct data_segments;
struct departures;
struct pretended;
struct device;
struct device_heap;
struct heap;
struct indexed_windows;
struct kernels;
struct lock_turn;
struct memory_map;
struct network;
struct node;
struct observer;
struct queue_pairs;
struct registrations;
struct stats;
struct symmetric;
struct team;
struct team_ids;
struct wait_hooks;
struct races;

/* Team slots. Those of the first range have more memory for rounds than later ones, and all pSync
 * arrays have a bit for each of them. */
enum { TEAM_RANGE = 256, TEAM_RANGES = 16, TEAM_MAX = TEAM_RANGES * TEAM_RANGE };

struct job {
    int pe;
    int n_pes;
    int thread_level;
    atomic_bool own_memory; /* operations of this PE on itself take memory that is not symmetric,
                               too */
    struct bootstrap *bootstrap; /* outlives the job object */
    uint64_t number;             /* the same on all PEs: jobs of the same name differ by it */
    struct node *node;           /* the PEs on this node and the memory they share */
    struct network *network;     /* requests to PEs on other nodes, and kernels' commands to any */
    struct kernels *_Atomic kernels; /* the kernels' view of the job; NULL where no module has
                                        kernels. A module that is loaded late makes it */
    struct heap *heap;           /* objects in the symmetric heap in host memory */
    struct checked *checked;     /* the program's objects, for GSHMEM_CHECK=memory; else NULL */
    struct races *races;         /* who has accessed what, for GSHMEM_CHECK=races; else NULL */
    struct stats *stats;         /* what this PE has done, in numbers */
    bool observed;               /* GSHMEM_CHECK=memory or =races, GSHMEM_TRACE or GSHMEM_STATS: the
                                    tables that inline code reads say "not mapped", so that each
                                    operation goes out of line */
    bool gpu_kernels;            /* a module of the program has kernels for GPUs */
    struct device *device;       /* where kernels run */
    int nic_way;                 /* an enum nic_way: how NICs access the device's memory, where
                                    it has its own */
    bool flushes;                /* whether what NICs write there is flushed before kernels use
                                    it */
    struct device_heap *device_heap; /* the symmetric heap in the device's own memory; NULL where it
                                        has none */
    struct heap *device_objects;     /* objects in that heap */
    struct heap *nic_objects;        /* objects in the NIC heap; NULL where there is none */
    struct registrations *registered; /* memory of the program's own that is registered */
    struct symmetric *symmetric;      /* memory of the program's own that is symmetric */
    struct data_segments *data;  /* the program's variables */
    struct memory_map *map;      /* where all symmetric memory is, of all PEs */
    void *placed; /* this PE's heap at the address of GSHMEM_HEAP_BASE; NULL: there is none */
    size_t placed_bytes;

    struct team *team[TEAM_MAX];  /* by gshmem_team_t; NULL: no such team */
    _Atomic uint64_t teams[TEAM_MAX / 64]; /* a bit for each slot in use: team_next */
    /* Offsets in each PE's system memory: the blocks of the host device's kernels, and the host's
     * blocks of slots beyond the first range. Their pages exist once they are touched. */
    uint64_t kernels_at, later_at;
    int claims;                   /* how many of them may not be claimed by all members yet:
                                     runtime/teams/slots.h */
    struct active_sets *active_sets; /* runtime/teams/slots.h */
    struct team_ids *team_ids;     /* runtime/teams/unique_id.h */
    struct context *contexts;      /* contexts that the program has made, which finalize destroys */
    struct context *left_contexts; /* contexts that it has destroyed, with requests still in
                                      flight */
    struct {
        uint64_t handle; /* 0: there is none */
        uint32_t hints;
    } region; /* of NVSHMEM's regions, that of the host: teams/regions.c */
    struct indexed_windows *indexed; /* memory of indexed operations in flight */
    struct queue_pairs *queue_pairs; /* contexts that kernels name by numbers; NULL: none */
    atomic_bool over;             /* the process ends, and the job stays mapped until then:
                                     job_stay */
    struct departures *departures; /* whether this PE leaves, and who knows of it */
    struct pretended *pretended;   /* nodes that GSHMEM_PRETENDED_NODES makes of those there are */
    struct lock_turn *turns;      /* threads of this PE that have a lock, or wait for one: lock.c */
    struct answer *answer;        /* the thread that tells where the job stands; NULL: none */
    struct blobs *blobs;          /* what each PE has published at start-up */
    pthread_mutex_t lock;         /* teams, contexts, turns and allocation; never held while
                                     waiting */

    const struct observer *observer; /* of teams and contexts: teams/observer.h */
    const struct wait_hooks *waits; /* what waits ask of the rooms above them: network/wait.h */
    /* Tells every PE on this machine and the bootstrap that the job is over. *exit_status becomes
     * that of the first PE that ended the job. */
    void (*abort)(struct job *j, int *exit_status, const char *why);
    /* The same for PEs of this node alone, with any locks held. */
    void (*end_node)(struct job *j, int exit_status, const char *why);
    /* Whether a PE has done either; *exit_status: with which. */
    bool (*has_ended)(const struct job *j, int *exit_status);
};

/* The one job of this process, NULL when not initialised. */
extern struct job *job;
extern bool job_forked; /* this process is a child, made by fork, of one that had a job */

/* Held while a job begins or ends. Recursive: a library that is loaded while a job begins may
 * register kernels. */
extern pthread_mutex_t job_life;
extern int job_depth; /* gshmem_init calls not yet finalized; for who holds job_life */

/* The job, if it has begun. It does not end, and none begins, until it is released. */
struct job *job_hold(void);
void job_let_go(void);

/* Fails with GSHMEM_ERR_STATE and a line naming `call` if there is no job. */
gshmem_status_t job_require(const char *call);

/* What the system shows of an exit status: its low 8 bits, where a failure must not become 0. */
static inline int job_exit_code(int status)
{
    return status == 0 || status & 0xff ? status & 0xff : 1;
}

/* This thread ends the process, and has taken it out of the job; the job's memory stays mapped. */
void job_end_with_process(struct job *j);
static inline bool job_is_over(const struct job *j)
{
    return atomic_load_explicit(&j->over, memory_order_relaxed);
}
/* For a call in a job that has ended in this way. Fails in the thread that ends the process; any
 * other thread, whose waits and failures do not matter any more, stays here until the process is
 * gone. */
gshmem_status_t job_stay(const char *call);

/* This thread has begun to end the job and, with a status, this process; others leave that to it,
 * and it still uses the job. */
void job_begin_to_end(void);
bool job_ends_elsewhere(void); /* whether another thread of this process has done so */

/* Tells every PE on this machine and the bootstrap that the job is over, and exits. */
void job_abort(int exit_status, const char *why) __attribute__((noreturn));

/* GSHMEM_CHECK=strict: from now on the first failure ends the job, or does not. */
void error_be_strict(bool strict);

/* Whether the error policy ends the job at a failure that no caller gets (error.c). */
bool error_ends_job(void);
/* gshmem_raise for a failure of another thread, which has called unseen_hand_over: other failures
 * of this thread stay unseen. */
void error_raise_for(gshmem_status_t status, const char *text);

#endif

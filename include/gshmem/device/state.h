/* What a kernel knows of the job: where peers are mapped, its channels, its teams, its failure.
 *
 * The library makes one state and copies it to every module that has device code. nvcc's modules
 * keep it in constant memory of their own; therefore nothing has to be linked with -rdc. Kernels
 * can dereference all pointers. The proxy also reads and writes memory that is marked "shared"
 * (pinned host memory for a GPU); all other memory belongs to the device. Plain data, the same for
 * all compilers. */
#ifndef GSHMEM_DEVICE_STATE_H
#define GSHMEM_DEVICE_STATE_H

#include "gshmem/channel.h"
#include "gshmem/context.h"

#define GSHMEM_DEVICE_STATE_VERSION 10u

/* A channel, and up to which position its commands are complete. Positions are counted in slots: a
 * command is complete when `done` is beyond its last slot. A command before the ring's tail has
 * been taken from the ring and posted; the source of a small put may then be reused. */
struct gshmem_device_channel {
    struct gshmem_channel ring;
    const uint64_t *done;   /* shared: every position before it is complete; with GSHMEM_DONE_FAILED
                               as its top bit */
    uint64_t *done_copy;    /* an earlier value of done, with that bit */
    const uint64_t *failed; /* shared: failures so far << 8 | the last one's gshmem_status_t */
    uint64_t *failed_seen;  /* the value of `failed` that a quiet has returned */
    const uint32_t *asleep; /* shared: not 0: the proxy that takes from it has to be woken (host
                               device alone). All channels of a proxy have the same word */
};
#define GSHMEM_DONE_FAILED (UINT64_C(1) << 63) /* `failed` is not 0 */

/* What the host has issued on a context to PEs that it has not mapped. Shared; kernels write only
 * `reported`. */
struct gshmem_host_operations {
    uint64_t issued; /* operations so far */
    uint64_t done;   /* how many of them are complete, counted from the first */
    uint64_t failed; /* 0, or the last failure: in its low byte a gshmem_status_t, above it the PE
                        (24 bits) and the number of the failure, which makes each value unique */
    uint64_t reported;   /* the value of `failed` that a quiet has returned */
};

/* A response slot: here the proxy stores the response for which a thread waits, a fetched value or
 * the status of one operation. The thread claims a slot, and with it the slot's next tag. The
 * response has arrived when `answer` has that tag. */
#define GSHMEM_RESPONSES 1024u
struct gshmem_response {
    uint64_t value[2];
    uint64_t answer; /* tag << 8 | gshmem_status_t; written last */
    uint64_t unused;
};

/* The source of a put of at most this many bytes may be reused when the proxy has taken the
 * command. */
#define GSHMEM_COPIED 4096u

struct gshmem_device_job;

/* A context as kernels use it. The default context is in the state, others are behind their
 * handle. */
struct gshmem_device_ctx {
    /* [pe of the team]: where it is mapped for kernels; 0: the proxy carries out the operation. */
    struct gshmem_segment heap, data, system;
    int32_t n_pes; /* 0: not usable */
    int32_t my_pe;
    gshmem_team_t team;
    uint32_t channels; /* a power of two; a block always uses the same one */
    uint32_t proxied;  /* 0: all of its memory is mapped, and fences need no command */
    uint32_t own;      /* 1: operations of my_pe on itself take memory that is not symmetric, too */
    const struct gshmem_device_channel *channel;
    struct gshmem_host_operations *host; /* NULL: the host reaches all PEs by loads and stores */
    const int32_t *world; /* [pe of the team]: its number in the job */
    const struct gshmem_device_job *job;
};

/* The memory by which the members of a team synchronize: one block for each team, in the system
 * memory of each member, to which other members write. All zero is the clean state. In a round some
 * other members notify this one, one member on each link (gshmem/device/round.h). Rounds of even
 * and odd number use the memory in turn. The block of a team has the words, and twice as many bytes
 * of data as the team says (sync_data): more in the first teams than in later ones. */
#define GSHMEM_DEVICE_SYNC_TEAMS  256
#define GSHMEM_DEVICE_SYNC_BYTES  16384
#define GSHMEM_DEVICE_LATER_BYTES 4096 /* the block of a later team */
#define GSHMEM_DEVICE_SYNC_LINKS  24
struct gshmem_device_sync {
    uint64_t word[2][GSHMEM_DEVICE_SYNC_LINKS]; /* round << 32 | signature of the call; written
                                                   last */
};

/* Memory of this PE for data that a large collective gets from other PEs and works on. Each of the
 * first 16 teams has such memory. Later teams use the data of their own blocks, which is free
 * between two rounds without data. */
#define GSHMEM_DEVICE_SCRATCH_TEAMS 16
#define GSHMEM_DEVICE_SCRATCH_BYTES 262144

/* How many rounds the collectives of a team have completed on this PE; with the device, zero at
 * first. */
struct gshmem_device_rounds {
    uint64_t last; /* the number of the last round */
    /* For a call of a warpgroup, of which a team has one at a time: */
    uint64_t arrived; /* its warps that have come */
    uint64_t left;    /* calls so far << 8 | the status of the last one */
};

struct gshmem_device_team {
    struct gshmem_device_ctx ctx; /* its PEs, on the channels of the default context */
    struct gshmem_device_sync *sync;     /* this PE's block in system memory; ctx.system has peers'
                                            blocks */
    size_t sync_data; /* bytes of the data of a round, behind the words: for even rounds, then for
                         odd ones */
    struct gshmem_device_rounds *rounds;
    char *scratch; /* free between the rounds of a call */
    size_t scratch_bytes;
    const uint64_t *failure; /* shared: 0, or the gshmem_status_t with which all its collectives
                                end; above its byte (gshmem_failure_left): the PE that has left the
                                job, and how */
    uint64_t *waiting;       /* shared: the round in which a thread has waited for long; 0: none */
    uint64_t multicast;       /* the address that stands for the beginning of the members' heaps */
    uint64_t multicast_bytes; /* how many bytes of them it covers; 0: there is none */
};

/* NVSHMEM's queue pairs: contexts that kernels name by their numbers, 0 … n - 1. An entry is
 * written before `n` includes it. A table that has become too small is replaced, and stays until
 * the job ends. */
struct gshmem_device_pairs {
    uint64_t n;
    const gshmem_ctx_t *ctx;
};

struct gshmem_device_job {
    const uint64_t *failure; /* shared: 0, or the gshmem_status_t with which waits end: the job was
                                aborted, or a PE has died on which a wait may depend */
    struct gshmem_response *response; /* shared: [GSHMEM_RESPONSES] */
    uint32_t *response_owner;         /* tag << 1 | whether the slot is taken */
    const struct gshmem_device_team *const *team; /* [team handle]; NULL: none */
    uint32_t teams;
    const struct gshmem_device_pairs *pairs; /* NULL: none */
};

struct gshmem_device_state {
    uint32_t size; /* of this struct */
    uint32_t version;
    struct gshmem_device_ctx ctx; /* the default context; n_pes is 0 while there is no job */
    uint32_t flushes; /* 1: what NICs have written to this GPU's memory is visible only after the
                         proxy has flushed it */
    uint32_t direct; /* 0: there is no job, or the proxy compares the objects of waits and
                        collectives with those that the program has (GSHMEM_CHECK=memory) */
};

/* What a wait in a kernel is for. */
enum gshmem_shown {
    GSHMEM_SHOWN_PROXY,
    GSHMEM_SHOWN_VARIABLE,
    GSHMEM_SHOWN_COLLECTIVE,
    GSHMEM_SHOWN_WARPGROUP, /* for the other warps of a call by a warpgroup */
};
/* Added to it the first time that a wait shows itself. */
#define GSHMEM_SHOWN_FIRST 16

/* A module with device code, registered by its static constructor. */
struct gshmem_device_module {
    uint32_t size; /* of this struct */
    uint32_t version;
    const char *device; /* what its code was compiled for: "cuda" or "host" */
    /* Copies the state to where the module's kernels read it; returns 0, or the device's error. */
    int (*fill)(const struct gshmem_device_state *state);
    struct gshmem_device_module *next; /* the library's */
};

#ifdef __cplusplus
extern "C" {
#endif

/* May be called at any time, before init and after: the state of a module that is loaded while a
 * job runs is filled in at once. Unregister a module before it is unloaded. */
GSHMEM_API void gshmem_device_register(struct gshmem_device_module *module);
GSHMEM_API void gshmem_device_unregister(struct gshmem_device_module *module);

/* For kernels of the host device, which run on the CPU; not for programs to call. A thread that has
 * written a command calls wake if the word of the channel says that its proxy sleeps: that proxy is
 * woken, and the thread does its work if the proxy has not polled for 3 us. A wait for the proxy
 * calls help, which does the same for the first proxy, and of the others does the work where there
 * is some, but wakes none. A wait for other PEs calls receive, which does so if the wait may need
 * the proxy. */
GSHMEM_API void gshmem_device_wake(const uint32_t *asleep);
GSHMEM_API void gshmem_device_help(void);
GSHMEM_API void gshmem_device_receive(void);
/* For kernels of the host device: whether the job is traced; then each post finds its channel full
 * by the copy of its tail, and calls trace_post with the tail and the position behind the
 * command. */
GSHMEM_API int gshmem_device_traced(void);
GSHMEM_API void gshmem_device_trace_post(const uint64_t *tail, uint64_t end, unsigned block,
                                         unsigned thread);
/* Called after the line that says what was wrong with a call in a kernel of the host device: logs
 * which kernel, block and thread called. */
GSHMEM_API void gshmem_device_say_where(const char *where);
/* Shows a long wait in a kernel of the host device to gshmem-where. kind: an enum gshmem_shown,
 * perhaps with GSHMEM_SHOWN_FIRST; object: the variable, a word of the team's
 * gshmem_device_sync, or its gshmem_device_rounds; where: which kernel, block and thread. */
GSHMEM_API void gshmem_device_show_wait(int kind, const void *object, const char *where);
/* For a call in a kernel of the host device while there is no job: logs that, once. */
GSHMEM_API void gshmem_device_without_job(const char *where, int raises);

#ifdef __cplusplus
}
#endif
#endif

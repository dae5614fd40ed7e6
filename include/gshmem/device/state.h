/* What a kernel knows of the job: where peers are mapped, its channels, its teams, how it ends.
 *
 * The library makes one of these and hands a copy to every module that has device code: nvcc's
 * modules keep it in constant memory of their own, which is why nothing has to be linked with -rdc.
 * Pointers are such as kernels can follow; "shared" memory is read and written by the proxy too
 * (pinned host memory for a GPU), all else lies with the device. Plain data, the same for all
 * compilers. */
#ifndef GSHMEM_DEVICE_STATE_H
#define GSHMEM_DEVICE_STATE_H

#include "gshmem/channel.h"
#include "gshmem/context.h"

#define GSHMEM_DEVICE_STATE_VERSION 6u

/* A channel and how far its commands have come. Positions are counted in slots: a command is done
 * when `done` is beyond its last one. What the proxy has taken off the ring (its tail) has been
 * posted: the source of a small put may be reused. */
struct gshmem_device_channel {
    struct gshmem_channel ring;
    const uint64_t *done;   /* shared: every position before it is done; GSHMEM_DONE_FAILED or-ed */
    uint64_t *done_copy;    /* a value that done has had, with that bit */
    const uint64_t *failed; /* shared: failures so far << 8 | the last one's gshmem_status_t */
    uint64_t *failed_seen;  /* the value of it that a quiet has answered with */
};
#define GSHMEM_DONE_FAILED (UINT64_C(1) << 63) /* `failed` is not 0 */

/* What the host has issued on a context to PEs that it has not mapped. Shared; `told` alone is written by
 * kernels, too. */
struct gshmem_host_operations {
    uint64_t issued; /* operations so far, */
    uint64_t done;   /* and how many of the first of them are done */
    uint64_t failed; /* 0, or the last failure: in its low byte a gshmem_status_t, above it the PE (24 bits) and
                        the number of the failure, so that no two are equal */
    uint64_t told;   /* the value of it that a quiet has answered with */
};

/* Where answers come that a thread waits for: a fetched value, or the status of one operation. Who
 * asks takes a slot, and its next tag with it; the answer has come when the slot has that tag. */
#define GSHMEM_RESPONSES 1024u
struct gshmem_response {
    uint64_t value[2];
    uint64_t answer; /* tag << 8 | gshmem_status_t; written last */
    uint64_t unused;
};

/* A source of a put of at most this many bytes may be reused when its command was taken. */
#define GSHMEM_COPIED 4096u

struct gshmem_device_job;

/* A context as kernels use it. The default one lies in the state, others behind their handle. */
struct gshmem_device_ctx {
    /* [pe of the team]: where it is mapped for kernels; 0: the proxy carries it out. */
    struct gshmem_segment heap, data, system;
    int32_t n_pes; /* 0: not usable */
    int32_t my_pe;
    gshmem_team_t team;
    uint32_t channels; /* a power of two; a block always uses the same one */
    uint32_t proxied;  /* 0: all of its memory is mapped, so that no fence need be told the proxy */
    uint32_t own;      /* 1: operations of my_pe on itself take memory that is not symmetric, too */
    const struct gshmem_device_channel *channel;
    struct gshmem_host_operations *host; /* NULL: the host reaches all PEs by loads and stores */
    const int32_t *world; /* [pe of the team]: its number in the job */
    const struct gshmem_device_job *job;
};

/* What the members of a team write to each other, in the system memory of each: one of these for
 * each team. All zero is the clean state. In a round each member hears from some others, one on each
 * link (gshmem/device/round.h); memory is used in turn by rounds of even and odd number. */
#define GSHMEM_DEVICE_SYNC_BYTES 16384
#define GSHMEM_DEVICE_SYNC_LINKS 24
#define GSHMEM_DEVICE_SYNC_DATA  8000
struct gshmem_device_sync {
    uint64_t word[2][GSHMEM_DEVICE_SYNC_LINKS]; /* round << 32 | signature of the call; written last */
    char data[2][GSHMEM_DEVICE_SYNC_DATA];      /* what was brought to the round */
};

/* Memory for what a large collective brings from elsewhere to work on, the PE's own, of each of the
 * first teams. Later ones use what rounds leave free of their blocks. */
#define GSHMEM_DEVICE_SCRATCH_TEAMS 16
#define GSHMEM_DEVICE_SCRATCH_BYTES 262144

/* How far the collectives of a team have come on this PE; with the device, zero at first. */
struct gshmem_device_rounds {
    uint64_t last; /* the number of the last round */
};

struct gshmem_device_team {
    struct gshmem_device_ctx ctx; /* its PEs, on the channels of the default context */
    struct gshmem_device_sync *sync;     /* this PE's block in system memory; peers' by ctx.system */
    struct gshmem_device_rounds *rounds;
    char *scratch; /* free between the rounds of a call */
    size_t scratch_bytes;
    const uint64_t *failure; /* shared: 0, or the gshmem_status_t all its collectives end with; above its byte
                                (gshmem_failure_left): the PE that has left the job, and how */
    uint64_t *waiting;       /* shared: the round that a thread has waited in for long; 0: none */
    uint64_t multicast;       /* the address that stands for the members' heaps, for the first */
    uint64_t multicast_bytes; /* so many bytes of them; 0: there is none */
};

struct gshmem_device_job {
    const uint64_t *failure; /* shared: 0, or the gshmem_status_t that waits end with: the job was
                                aborted, or a PE that may be waited for has died */
    const uint32_t *asleep;  /* shared: the proxy wants to be woken (host device alone) */
    struct gshmem_response *response; /* shared: [GSHMEM_RESPONSES] */
    uint32_t *response_owner;         /* tag << 1 | whether somebody has it */
    const struct gshmem_device_team *const *team; /* [team handle]; NULL: none */
    uint32_t teams;
};

struct gshmem_device_state {
    uint32_t size; /* of this struct */
    uint32_t version;
    struct gshmem_device_ctx ctx; /* the default context; n_pes is 0 while there is no job */
    uint32_t flushes; /* 1: what NICs have written to this GPU's memory is seen when the proxy has flushed it */
};

/* A module with device code, registered by its static constructor. */
struct gshmem_device_module {
    uint32_t size; /* of this struct */
    uint32_t version;
    const char *device; /* what its code was compiled for: "cuda" or "host" */
    /* Copies the state to where the module's kernels read it; 0, or the device's error. */
    int (*fill)(const struct gshmem_device_state *state);
    struct gshmem_device_module *next; /* the library's */
};

#ifdef __cplusplus
extern "C" {
#endif

/* May be called at any time, before init and after: a module loaded while a job runs is filled at
 * once. Unregister before it is unloaded. */
GSHMEM_API void gshmem_device_register(struct gshmem_device_module *module);
GSHMEM_API void gshmem_device_unregister(struct gshmem_device_module *module);

/* For waits on the host device, which are the CPU's, and not for programs to call. help, for what the
 * proxy does: wakes it, and lends it a hand where it shares the CPU. receive, for what other PEs
 * bring: the same if the proxy may have a part in it. */
GSHMEM_API void gshmem_device_help(void);
GSHMEM_API void gshmem_device_receive(void);
/* After the line that says what was wrong with a call in a kernel of the host device: which kernel, block and
 * thread called. */
GSHMEM_API void gshmem_device_say_where(const char *where);
/* For a call in a kernel of the host device, and in which, while there is no job: says so, once. */
GSHMEM_API void gshmem_device_without_job(const char *where, int raises);

#ifdef __cplusplus
}
#endif
#endif

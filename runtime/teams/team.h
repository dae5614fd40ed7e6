/* Teams: their PEs, in order, and the memory through which their collectives synchronize. */
#ifndef GSHMEM_RUNTIME_TEAMS_TEAM_H
#define GSHMEM_RUNTIME_TEAMS_TEAM_H

#include "gshmem.h"
#include "runtime/job/job.h"

struct multicast;
struct group;       /* runtime/teams/group.h */
struct kernel_team; /* runtime/proxy/kernels.h */

/* The first slot of a team that is not predefined. */
enum { TEAM_FIRST_OWN = GSHMEM_TEAM_SAME_INDEX + 1 };

struct team {
    gshmem_team_t id; /* its slot, the same on all members, and the index of its sync blocks */
    int my_pe;
    int n_pes;
    int *members; /* [n_pes]: PEs of the job */
    gshmem_team_config_t config;
    int contexts; /* contexts made from it and not yet destroyed */

    /* How inline code reaches the members' symmetric memory, by PE of the team. */
    struct gshmem_ctx view;
    bool owns_tables; /* false where view's tables are the job's own */

    bool passing;     /* the team of an active set, for one collective alone: active.c */
    bool data_mapped; /* all members run the same program, so its variables are symmetric */

    struct group *group;        /* how the members synchronize */
    struct multicast *multicast; /* runtime/teams/multicast.h; NULL: it has none */
    struct kernel_team *kernel; /* the kernels' view of it; NULL where there are no kernels */
};

/* The team of a handle: NULL, after one logged line that names `call`, if there is none. */
struct team *team_find(gshmem_team_t handle, const char *call);

/* Makes WORLD, SHARED, HOST and SAME_INDEX once memory is mapped; frees all teams. */
gshmem_status_t team_start(struct job *j);
void team_stop(struct job *j);

/* Makes the team of these PEs of the job, without a handle. It owns members, which are freed with
 * it, also when it cannot be made. NULL: out of memory, logged with `call`. */
struct team *team_create(struct job *j, int *members, int n, const char *call);
/* Assigns a slot, which determines its handle and its sync blocks. */
void team_install(struct job *j, struct team *t, gshmem_team_t slot);
void team_free(struct job *j, struct team *t);

/* Its slot is free again. With the job's lock. */
void team_remove(struct job *j, gshmem_team_t slot);

/* The first slot in use from `slot` on; -1: there is none. */
static inline int team_next(const struct job *j, int slot)
{
    for (int w = slot / 64; w < TEAM_MAX / 64; w++, slot = w * 64) {
        /* relaxed: threads that need more than a look have the job's lock */
        const uint64_t left =
            atomic_load_explicit(&j->teams[w], memory_order_relaxed) >> slot % 64;
        if (left)
            return slot + __builtin_ctzll(left);
    }
    return -1;
}
#define TEAM_FOR_ALL(j, i) for (int i = team_next(j, 0); i >= 0; i = team_next(j, i + 1))

/* Bytes that sync blocks need in the system part of a PE's memory: at its beginning, those of slots
 * of the first range and the inboxes; and from job->later_at on, those of later slots. */
size_t team_system_bytes(void);
size_t team_later_bytes(void);
/* Where a slot's block is in there; `inner`: the block of the inner group of internode groups. */
uint64_t team_block_offset(const struct job *j, gshmem_team_t slot, bool inner);

/* PE of the job with number pe in the team, or -1. */
static inline int team_world_pe(const struct team *t, int pe)
{
    return pe >= 0 && pe < t->n_pes ? t->members[pe] : -1;
}

#endif

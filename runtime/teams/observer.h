/* The functions by which the proxy learns of teams and contexts, which it publishes to kernels.
 * start.c enters them as job->observer. In a job without kernels they do
 * nothing, but for what kernels of other PEs find of a team. */
#ifndef GSHMEM_RUNTIME_TEAMS_OBSERVER_H
#define GSHMEM_RUNTIME_TEAMS_OBSERVER_H

#include <stdbool.h>

#include "gshmem/base.h"
#include "gshmem/status.h"

struct context;
struct job;
struct kernel_context;
struct team;

struct observer {
    /* A team: made (false: out of memory), published under its handle, with its multicast address,
     * hidden, and freed. */
    bool (*make_team)(struct job *j, struct team *t);
    void (*show_team)(struct job *j, struct team *t);
    void (*show_multicast)(struct job *j, struct team *t);
    void (*hide_team)(struct job *j, gshmem_team_t handle);
    void (*free_team)(struct team *t);

    /* A context. open_context: without an effect where it has been opened before; called again
     * under the job's lock. close_context: false, without an effect, while commands are in flight;
     * end_context: after network_stop, when there are none. */
    gshmem_status_t (*open_context)(struct job *j, struct context *c);
    bool (*close_context)(struct job *j, struct context *c);
    void (*end_context)(struct job *j, struct context *c);
    /* More queue pairs have been made, which kernels may name from now on; called under the job's
     * lock. */
    gshmem_status_t (*show_queue_pairs)(struct job *j);
    /* Waits for the commands that kernels have written for it; last: kernels have ended. */
    gshmem_status_t (*quiet)(struct kernel_context *k, const char *call, bool last);
    /* Waits until the sources of their puts may be reused. */
    gshmem_status_t (*flush)(struct kernel_context *k, const char *call);

    /* Operations of this PE on itself take any memory from now on. */
    gshmem_status_t (*take_own_memory)(struct job *j);
};

#endif

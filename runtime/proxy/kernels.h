/* The kernels' view of the job: the state that modules with device code get, the views of teams and
 * contexts in it, and the channels that it names.
 *
 * Made when the job starts, or when the first such module is registered; a program without one has
 * none of this. Kernels run while it changes. Invariant: an entry is complete before a pointer to
 * it is stored. */
#ifndef GSHMEM_PROXY_KERNELS_H
#define GSHMEM_PROXY_KERNELS_H

#include "gshmem/device/state.h"
#include "runtime/job/job.h"
#include "runtime/teams/observer.h"

struct context;
struct kernel_team;
struct kernel_context;
struct team;

/* If there are modules with device code: makes j->kernels, and gives the state to all of them. */
gshmem_status_t kernels_start(struct job *j);
const struct gshmem_device_state *kernels_state(const struct job *j);
/* What gshmem_device_register does; returns the status. */
gshmem_status_t kernels_add_module(struct gshmem_device_module *m);
/* In the default context, operations of this PE on itself take any memory
 * (gshmem_path_own_memory). */
gshmem_status_t kernels_take_own_memory(struct job *j);
/* Takes the state away from modules: kernels of programs that continue find no job. */
void kernels_retire(struct job *j);
/* Frees everything, after network_stop. */
void kernels_stop(struct job *j);

extern const struct observer kernels_observer; /* of teams and contexts: the functions below */

/* A team's view: made with the team (false: out of memory), published under its handle, hidden, and
 * freed. Where there are no kernels, a team that is installed has clear words, and the others do
 * nothing. */
bool kernels_make_team(struct job *j, struct team *t);
/* The team has its slot: kernels of its members may synchronize from here on, this PE's once it has
 * some (kernels_show_team). */
void kernels_install_team(struct job *j, struct team *t);
void kernels_show_team(struct job *j, struct team *t);
void kernels_show_multicast(struct job *j, struct team *t);
/* PEs of other nodes are mapped from now on. */
gshmem_status_t kernels_show_domain(struct job *j);
void kernels_hide_team(struct job *j, gshmem_team_t handle);
void kernels_free_team(struct team *t);

/* A context's view, with a channel of its own; sets c->view.device. close: false, without an
 * effect, while commands are in flight. end: after network_stop, when there are none. */
gshmem_status_t kernels_open_context(struct job *j, struct context *c);
bool kernels_close_context(struct job *j, struct context *c);
void kernels_end_context(struct job *j, struct context *c);

/* Enters all queue pairs of the job in the table in which kernels look them up. */
gshmem_status_t kernels_show_queue_pairs(struct job *j);

/* Waits until all commands that kernels have written for this context are posted, so that what is
 * posted after the network's next fence keeps the order. Commands to PEs of this node must be
 * complete, since the host's own operations on these are stores. */
gshmem_status_t kernels_fence(struct kernel_context *k, const char *call);
/* Waits until all commands that kernels have written for this context are complete. last: kernels
 * have ended, so that a slot which one of them began to write stays incomplete. */
gshmem_status_t kernels_quiet(struct kernel_context *k, const char *call, bool last);
/* Waits until the sources of their puts may be reused. */
gshmem_status_t kernels_flush(struct kernel_context *k, const char *call);

/* Notifies kernels that wait, if the job has been ended or a PE has died. The proxy calls it
 * regularly. */
void kernels_look_after(struct job *j);

/* Bytes that the kernels' sync blocks of all teams need in the system part of a PE's memory. */
size_t kernels_system_bytes(void);
/* The team in whose block, for kernels, that is; -1: none. And the offset in the block. */
int kernels_team_of_sync(const struct job *j, const void *sync);
int kernels_find_sync(const struct job *j, const void *sync, uint64_t *in_block);
/* The team whose kernels use these rounds; on the host device. */
int kernels_team_of_rounds(const struct gshmem_device_rounds *rounds);

#endif

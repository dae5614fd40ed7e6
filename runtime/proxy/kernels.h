/* What kernels see of the job: the state that modules with device code are given, the views of teams
 * and contexts in it, and the channels that it names.
 *
 * Made when the job starts, or when the first such module comes; a program that has none has none of
 * this. Kernels run while it changes: an entry is whole before a pointer to it appears. */
#ifndef GSHMEM_PROXY_KERNELS_H
#define GSHMEM_PROXY_KERNELS_H

#include "gshmem/device/state.h"
#include "runtime/job.h"

struct context;
struct kernel_team;
struct kernel_context;
struct team;

/* If there are modules with device code: makes j->kernels, and gives all of them the state. */
gshmem_status_t kernels_start(struct job *j);
const struct gshmem_device_state *kernels_state(const struct job *j);
/* Operations in the default context take any memory of this PE's own with itself (gshmem_path_own_memory). */
gshmem_status_t kernels_take_own_memory(struct job *j);
/* Takes the state away from them: kernels of programs that go on find no job. */
void kernels_retire(struct job *j);
/* Frees it, after network_stop. */
void kernels_stop(struct job *j);

/* A team's view: made with it (false: out of memory), shown under its handle, hidden, and freed. All
 * but make do nothing where there are no kernels. */
bool kernels_make_team(struct job *j, struct team *t);
void kernels_show_team(struct job *j, struct team *t);
void kernels_show_multicast(struct job *j, struct team *t);
/* PEs of other hosts have come to be mapped. */
gshmem_status_t kernels_show_domain(struct job *j);
void kernels_hide_team(struct job *j, gshmem_team_t handle);
void kernels_free_team(struct team *t);

/* A context's view, with a channel of its own; sets c->view.device. close: false, and nothing is
 * done, while commands are under way; end: after network_stop, when there are none. */
gshmem_status_t kernels_open_context(struct job *j, struct context *c);
bool kernels_close_context(struct job *j, struct context *c);
void kernels_end_context(struct job *j, struct context *c);

/* Waits until all commands that kernels have written for this context are posted, so that what is posted
 * behind the network's next fence keeps their order; those to PEs of this node until they are done, since the
 * node's own operations on these are stores. */
gshmem_status_t kernels_fence(struct kernel_context *k, const char *call);
/* Waits until all commands are done that kernels have written for this context. last: kernels have
 * ended, and what one of them began but never wrote will not come. */
gshmem_status_t kernels_quiet(struct kernel_context *k, const char *call, bool last);

/* Tells kernels that wait, if the job has been ended or a PE has died. For the proxy, now and then. */
void kernels_look_after(struct job *j);

/* Bytes of a slot's system part that the kernels' sync blocks of all teams need, and where they begin. */
size_t kernels_system_bytes(void);

#endif

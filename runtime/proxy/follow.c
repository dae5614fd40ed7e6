/* GSHMEM_CHECK=races: what kernels of the host device tell of their operations
 * (gshmem/device/follow.h). */
#include "runtime/proxy/follow.h"

#include <stdatomic.h>

#include "gshmem.h"
#include "gshmem/races.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/proxy/modules.h"
#include "runtime/races/races.h"
#include "runtime/teams/team.h"

/* Of the modules of this process those that were compiled so, all for the host device. */
static atomic_uint followed_modules;

void follow_modules(struct job *j)
{
    const char *device = j->device->ops->name;
    const unsigned followed = j->device->ops == &device_host ? atomic_load(&followed_modules) : 0;

    if (!j->races || modules_count(device) <= followed || !races_turn_off(j))
        return;
    log_error("GSHMEM_CHECK=races: the program has kernels that are not followed, so that the job "
              "is not checked: compile them by gshmemcc --device=host --check=races");
}

void gshmem_path_follow(enum gshmem_followed what, const void *there, const void *local,
                        size_t bytes, int pe)
{
    if (what == GSHMEM_FOLLOWED_MODULE)
        atomic_fetch_add(&followed_modules, 1);
    if (what == GSHMEM_FOLLOWED_MODULE_GONE)
        atomic_fetch_sub(&followed_modules, 1);
    if (!job || !job->races)
        return;
    switch (what) {
    case GSHMEM_FOLLOWED_MODULE:
    case GSHMEM_FOLLOWED_MODULE_GONE:
        break;
    case GSHMEM_FOLLOWED_PUT:
    case GSHMEM_FOLLOWED_PUT_NBI:
        races_put(what == GSHMEM_FOLLOWED_PUT ? "put" : "put_nbi", there, local, bytes, pe,
                  what == GSHMEM_FOLLOWED_PUT_NBI);
        break;
    case GSHMEM_FOLLOWED_PUT_SIGNAL:
    case GSHMEM_FOLLOWED_PUT_SIGNAL_NBI:
        races_put_signalled(what == GSHMEM_FOLLOWED_PUT_SIGNAL ? "put_signal" : "put_signal_nbi",
                            there, local, bytes, pe, what == GSHMEM_FOLLOWED_PUT_SIGNAL_NBI);
        break;
    case GSHMEM_FOLLOWED_GET:
    case GSHMEM_FOLLOWED_GET_NBI:
        races_get(what == GSHMEM_FOLLOWED_GET ? "get" : "get_nbi", (void *)(uintptr_t)local,
                  there, bytes, pe, what == GSHMEM_FOLLOWED_GET_NBI);
        break;
    case GSHMEM_FOLLOWED_SIGNAL:
        races_atomic("signal", GSHMEM_AMO_ADD, there, bytes, pe, false);
        break;
    case GSHMEM_FOLLOWED_ATOMIC:
    case GSHMEM_FOLLOWED_ATOMIC_FETCH:
        races_atomic("atomic", GSHMEM_AMO_ADD, there, bytes, pe,
                     what == GSHMEM_FOLLOWED_ATOMIC_FETCH);
        break;
    case GSHMEM_FOLLOWED_FETCH:
        races_atomic("atomic_fetch", GSHMEM_AMO_FETCH, there, bytes, pe, true);
        break;
    case GSHMEM_FOLLOWED_SEEN:
        races_see(there, bytes, pe);
        break;
    case GSHMEM_FOLLOWED_SEEN_LATER:
        races_see_later(there, bytes, pe);
        break;
    case GSHMEM_FOLLOWED_FENCE:
        races_fence();
        break;
    case GSHMEM_FOLLOWED_QUIET:
        races_quiet();
        break;
    case GSHMEM_FOLLOWED_FLUSH:
        races_flush();
        break;
    case GSHMEM_FOLLOWED_ARRIVE:
        races_arrive_kernel(pe);
        break;
    case GSHMEM_FOLLOWED_LEAVE:
        races_leave_kernel(pe, job->team[pe]->members, job->team[pe]->n_pes);
        break;
    case GSHMEM_FOLLOWED_READ:
        races_collective("collective", NULL, 0, there, bytes);
        break;
    case GSHMEM_FOLLOWED_WRITE:
        races_collective("collective", there, bytes, NULL, 0);
        break;
    }
}

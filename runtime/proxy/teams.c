/* Kernels' teams: a view of each, shown to kernels that may be running; and who of them has died.
 */
#include <assert.h>

#include "runtime/proxy/parts.h"
#include "runtime/team/team.h"

static_assert(sizeof(struct gshmem_device_sync) <= GSHMEM_DEVICE_SYNC_BYTES, "a team's block");

enum { LOOKS_AT_ONCE = 8 }; /* PEs whose life is asked for at a time: a system call each */

size_t kernels_system_bytes(void)
{
    return (size_t)TEAM_MAX * GSHMEM_DEVICE_SYNC_BYTES;
}

static struct gshmem_device_sync *sync_block(const struct job *j, gshmem_team_t slot)
{
    return (struct gshmem_device_sync *)(j->system_peer[j->pe] + team_system_bytes() +
                                         (size_t)slot * GSHMEM_DEVICE_SYNC_BYTES);
}

/* ---- Views ---- */

static struct gshmem_segment segment(const struct kernels *k, uintptr_t base, size_t bytes,
                                     const uintptr_t *peer)
{
    return (struct gshmem_segment){base, bytes, k->mapped ? peer : k->nowhere};
}

struct gshmem_device_ctx kernels_view(const struct job *j, const struct team *t,
                                      const struct kernel_context *on)
{
    const uintptr_t *system = t->kernel->system ? t->kernel->system : j->system_peer;
    const struct kernels *k = j->kernels;

    return (struct gshmem_device_ctx){
        .heap = segment(k, t->view.heap.base, t->view.heap.bytes, t->view.heap.peer),
        .data = segment(k, t->view.data.base, t->view.data.bytes, t->view.data.peer),
        .system = segment(k, j->system_peer[j->pe], j->host.layout.system_bytes, system),
        .n_pes = t->n_pes,
        .my_pe = t->my_pe,
        .team = t->view.team,
        .channels = (uint32_t)on->channels,
        .channel = on->channel,
        .world = t->members,
        .job = &k->device->job,
    };
}

/* With the device, in one piece. */
struct team_of_device {
    struct gshmem_device_team team;
    struct gshmem_device_rounds rounds;
    uintptr_t system[];
};

bool kernels_make_team(struct job *j, struct team *t)
{
    struct kernels *k = j->kernels;
    size_t n = t->owns_tables ? (size_t)t->n_pes : 0;

    if (!k)
        return true;
    struct kernel_team *made = t->kernel = calloc(1, sizeof *made);
    if (!made)
        return false;
    struct team_of_device *d = memory_of_device(sizeof *d + n * sizeof d->system[0]);
    made->failure = memory_shared(sizeof *made->failure);
    made->view = d ? &d->team : NULL;
    if (!d || !made->failure)
        return false;
    made->rounds = &d->rounds;
    made->system = n ? d->system : NULL;
    for (size_t i = 0; i < n; i++)
        d->system[i] = j->system_peer[t->members[i]];
    return true;
}

void kernels_show_team(struct job *j, struct team *t)
{
    struct kernels *k = j->kernels;

    if (!k)
        return;
    for (int i = 0; i < t->n_pes; i++) {
        if (k->dead[t->members[i]])
            *t->kernel->failure = GSHMEM_ERR_PEER_DEAD;
    }
    /* What an earlier team left there; as with the host's blocks, its members are done with it. */
    if (t->id > GSHMEM_TEAM_HOST)
        memset(sync_block(j, t->id), 0, GSHMEM_DEVICE_SYNC_BYTES);
    *t->kernel->view = (struct gshmem_device_team){
        .ctx = kernels_view(j, t, k->context),
        .sync = sync_block(j, t->id),
        .rounds = t->kernel->rounds,
        .failure = t->kernel->failure,
    };
    /* release: a kernel that finds it by its handle sees all of it */
    __atomic_store_n(&k->device->team[t->id], t->kernel->view, __ATOMIC_RELEASE);
}

void kernels_hide_team(struct job *j, gshmem_team_t handle)
{
    if (j->kernels)
        __atomic_store_n(&j->kernels->device->team[handle], NULL, __ATOMIC_RELAXED);
}

void kernels_free_team(struct team *t)
{
    if (!t->kernel)
        return;
    memory_free_of_device(t->kernel->view);
    memory_free_shared(t->kernel->failure);
    free(t->kernel);
    t->kernel = NULL;
}

/* ---- Failure ---- */

static void fail_all(struct job *j, gshmem_status_t status)
{
    /* relaxed: it tells of nothing but itself */
    gshmem_store_relaxed(&j->kernels->shared->failure, (uint64_t)status);
    for (int i = 0; i < TEAM_MAX; i++) {
        if (j->team[i] && j->team[i]->kernel)
            gshmem_store_relaxed(j->team[i]->kernel->failure, (uint64_t)status);
    }
}

static void mark_dead(struct job *j, int pe)
{
    struct kernels *k = j->kernels;

    k->dead[pe] = true;
    gshmem_store_relaxed(&k->shared->failure, GSHMEM_ERR_PEER_DEAD);
    for (int i = 0; i < TEAM_MAX; i++) {
        const struct team *t = j->team[i];
        for (int m = 0; t && t->kernel && m < t->n_pes; m++) {
            if (t->members[m] == pe)
                gshmem_store_relaxed(t->kernel->failure, GSHMEM_ERR_PEER_DEAD);
        }
    }
    log_error("kernels: PE %d has died or cannot be reached: their waits end", pe);
}

/* A few PEs of this host at a time, and all of the others, which costs no system calls. */
static void look_for_dead(struct job *j)
{
    struct kernels *k = j->kernels;
    int n = j->host.n < LOOKS_AT_ONCE ? j->host.n : LOOKS_AT_ONCE;

    for (int i = 0; i < n; i++) {
        k->looked_at = (k->looked_at + 1) % j->host.n;
        int pe = j->host.pe[k->looked_at];
        if (!k->dead[pe] && !host_alive(&j->host, k->looked_at))
            mark_dead(j, pe);
    }
    for (int pe = 0; network_any_lost(j->network) && pe < j->n_pes; pe++) {
        if (!k->dead[pe] && network_lost(j->network, pe))
            mark_dead(j, pe);
    }
}

void kernels_look_after(struct job *j)
{
    struct kernels *k = j->kernels;
    int ignored;

    if (k->shared->failure == GSHMEM_ERR_ABORTED)
        return;
    pthread_mutex_lock(&j->lock);
    if (host_exit_status(&j->host, &ignored))
        fail_all(j, GSHMEM_ERR_ABORTED);
    else
        look_for_dead(j);
    pthread_mutex_unlock(&j->lock);
}

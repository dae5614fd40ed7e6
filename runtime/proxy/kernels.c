#include "runtime/proxy/kernels.h"

#include <assert.h>
#include <stddef.h>

#include "runtime/base/settings.h"
#include "runtime/context.h"
#include "runtime/proxy/channel.h"
#include "runtime/proxy/memory.h"
#include "runtime/proxy/modules.h"
#include "runtime/team/team.h"
#include "runtime/wait.h"

static_assert(sizeof(struct gshmem_device_sync) <= GSHMEM_DEVICE_SYNC_BYTES, "a team's block");

enum {
    SLOTS_LOG2 = 10,       /* of a channel */
    UNWRITTEN_S = 10,      /* how long a quiet waits for what a kernel began to write, */
    UNWRITTEN_LAST_S = 2,  /* and where kernels have ended */
    LOOKS_AT_ONCE = 8,     /* PEs whose life is asked for at a time: a system call each */
};

/* What both sides see of a channel. */
struct channel_shared {
    _Alignas(KERNEL_LINE) uint64_t tail;
    _Alignas(KERNEL_LINE) uint64_t done;
    _Alignas(KERNEL_LINE) uint64_t failed;
    _Alignas(KERNEL_LINE) uint64_t ring[(1 << SLOTS_LOG2) * GSHMEM_SLOT_WORDS];
};

/* What its producers share with each other. */
struct channel_of_device {
    _Alignas(KERNEL_LINE) uint64_t ticket;
    _Alignas(KERNEL_LINE) uint64_t tail_copy;
    _Alignas(KERNEL_LINE) uint64_t done_copy;
    _Alignas(KERNEL_LINE) uint64_t failed_seen;
};

struct kernel_channel {
    struct proxy_channel proxy;
    struct channel_shared *shared;
    struct channel_of_device *device;
    uint64_t told;  /* failures that a quiet of the host has answered with */
    bool abandoned; /* what is not done will never be */
};

struct kernel_context {
    struct gshmem_device_ctx *view;
    struct gshmem_device_channel *channel; /* [channels], with the device */
    int channels;
    struct kernel_channel own[];
};

struct kernel_team {
    struct gshmem_device_team *view;
    struct gshmem_device_rounds *rounds;
    uint64_t *failure;
    uintptr_t *system; /* [n_pes]; NULL: the job's table */
};

struct job_shared {
    _Alignas(KERNEL_LINE) uint64_t failure;
    _Alignas(KERNEL_LINE) uint32_t asleep;
    _Alignas(KERNEL_LINE) struct gshmem_response response[GSHMEM_RESPONSES];
};

struct job_of_device {
    struct gshmem_device_job job;
    uint32_t response_owner[GSHMEM_RESPONSES];
    const struct gshmem_device_team *team[TEAM_MAX];
};

struct kernels {
    struct gshmem_device_state state;
    struct job_shared *shared;
    struct job_of_device *device;
    struct kernel_context *context; /* the default one */
    uintptr_t *nowhere;             /* [PE of the job]: 0, for kernels that are not to map anything */
    bool mapped;
    int looked_at;                  /* the PE of this host whose life was asked for last */
    bool *dead;                     /* [PE of the job] */
};

size_t kernels_system_bytes(void)
{
    return (size_t)TEAM_MAX * GSHMEM_DEVICE_SYNC_BYTES;
}

static struct gshmem_device_sync *sync_block(const struct job *j, gshmem_team_t slot)
{
    return (struct gshmem_device_sync *)(j->system_peer[j->pe] + team_system_bytes() +
                                         (size_t)slot * GSHMEM_DEVICE_SYNC_BYTES);
}

/* ---- Channels and contexts ---- */

static bool make_channel(struct kernel_channel *c, struct gshmem_device_channel *view)
{
    c->shared = memory_shared(sizeof *c->shared);
    c->device = memory_of_device(sizeof *c->device);
    c->proxy.passage = calloc(1 << SLOTS_LOG2, sizeof *c->proxy.passage);
    if (!c->shared || !c->device || !c->proxy.passage)
        return false;
    c->proxy.ring = c->shared->ring;
    c->proxy.slots_log2 = SLOTS_LOG2;
    c->proxy.tail = &c->shared->tail;
    c->proxy.done = &c->shared->done;
    c->proxy.failed = &c->shared->failed;
    *view = (struct gshmem_device_channel){
        .ring = {.ring = c->shared->ring,
                 .tail = &c->shared->tail,
                 .ticket = &c->device->ticket,
                 .tail_copy = &c->device->tail_copy,
                 .slots = 1 << SLOTS_LOG2,
                 .slots_log2 = SLOTS_LOG2},
        .done = &c->shared->done,
        .done_copy = &c->device->done_copy,
        .failed = &c->shared->failed,
        .failed_seen = &c->device->failed_seen,
    };
    return true;
}

static void free_context(struct job *j, struct kernel_context *k)
{
    if (!k)
        return;
    for (int i = 0; i < k->channels; i++) {
        struct kernel_channel *c = &k->own[i];
        if (j->network)
            network_remove_channel(j->network, &c->proxy);
        memory_free_shared(c->shared);
        memory_free_of_device(c->device);
        free(c->proxy.passage);
    }
    memory_free_of_device(k->channel);
    memory_free_of_device(k->view);
    free(k);
}

/* Channels and their views; what else there is to know of a context is filled in by fill_context. */
static gshmem_status_t make_context(struct job *j, int channels, struct kernel_context **out)
{
    struct kernel_context *k = calloc(1, sizeof *k + (size_t)channels * sizeof k->own[0]);
    gshmem_status_t status = GSHMEM_OK;
    bool made = k != NULL;

    if (k) {
        k->channels = channels;
        k->view = memory_of_device(sizeof *k->view);
        k->channel = memory_of_device((size_t)channels * sizeof *k->channel);
        made = k->view && k->channel;
    }
    for (int i = 0; i < channels && made; i++)
        made = make_channel(&k->own[i], &k->channel[i]);
    if (!made)
        status = fail(GSHMEM_ERR_MEMORY, "out of memory for %d channels of kernels", channels);
    for (int i = 0; i < channels && !status; i++)
        status = network_add_channel(j->network, &k->own[i].proxy);
    if (status)
        free_context(j, k);
    else
        *out = k;
    return status;
}

static struct gshmem_segment segment(const struct kernels *k, uintptr_t base, size_t bytes,
                                     const uintptr_t *peer)
{
    return (struct gshmem_segment){base, bytes, k->mapped ? peer : k->nowhere};
}

/* The PEs of a team, on the channels of a context. */
static struct gshmem_device_ctx fill_context(const struct job *j, const struct team *t,
                                             const uintptr_t *system,
                                             const struct kernel_context *on)
{
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

static const uintptr_t *system_table(const struct job *j, const struct team *t)
{
    return t->kernel->system ? t->kernel->system : j->system_peer;
}

gshmem_status_t kernels_open_context(struct job *j, struct context *c)
{
    const struct team *t = j->team[c->view.team];
    gshmem_status_t status;

    if (!j->kernels)
        return GSHMEM_OK;
    if ((status = make_context(j, 1, &c->kernel)))
        return status;
    *c->kernel->view = fill_context(j, t, system_table(j, t), c->kernel);
    c->view.device = c->kernel->view;
    return GSHMEM_OK;
}

void kernels_end_context(struct job *j, struct context *c)
{
    c->view.device = NULL;
    free_context(j, c->kernel);
    c->kernel = NULL;
}

bool kernels_close_context(struct job *j, struct context *c)
{
    for (int i = 0; c->kernel && i < c->kernel->channels; i++) {
        const struct kernel_channel *own = &c->kernel->own[i];
        if ((gshmem_load_acquire(own->proxy.done) & ~GSHMEM_DONE_FAILED) !=
            gshmem_load_relaxed(&own->device->ticket))
            return false;
    }
    kernels_end_context(j, c);
    return true;
}

/* ---- Quiet, for the host ---- */

/* What a wait knows of a place that a kernel has taken and not written. */
struct unwritten {
    uint64_t position;
    uint64_t since; /* ns; 0: there is none */
};

/* Whether the proxy has come to a place that nothing was written to for so long. */
static bool never_written(const struct kernel_channel *c, struct unwritten *u, uint64_t ns)
{
    uint64_t tail = gshmem_load_relaxed(c->proxy.tail), now = clock_ns();
    struct gshmem_slot slot;

    if (gshmem_channel_read(c->proxy.ring, tail, c->proxy.slots_log2, &slot)) {
        u->since = 0;
    } else if (!u->since || u->position != tail) {
        u->position = tail;
        u->since = now;
    }
    return u->since && now - u->since > ns;
}

/* Until all positions before `target` are done. A kernel that was ended between taking a place and
 * writing it leaves one behind that all others wait for. */
static gshmem_status_t wait_for(struct kernel_channel *c, uint64_t target, const char *call, bool last)
{
    const uint64_t most = (last ? UNWRITTEN_LAST_S : UNWRITTEN_S) * UINT64_C(1000000000);
    struct unwritten u = {.since = 0};
    gshmem_status_t status = GSHMEM_OK;
    uint64_t done = 0;
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    /* acquire: pairs with the release in channel_publish */
    while (!status && !c->abandoned &&
           (done = gshmem_load_acquire(c->proxy.done) & ~GSHMEM_DONE_FAILED) < target) {
        status = wait_slowly(&w);
        if (!status && never_written(c, &u, most)) {
            c->abandoned = last;
            return fail(GSHMEM_ERR_DEVICE,
                        "%s: of %llu operations in kernels the first was begun and never came: its "
                        "kernel has ended or does not run",
                        call, (unsigned long long)(target - done));
        }
    }
    return status;
}

gshmem_status_t kernels_quiet(struct kernel_context *k, const char *call, bool last)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < k->channels && !status; i++) {
        struct kernel_channel *c = &k->own[i];
        status = wait_for(c, gshmem_load_relaxed(&c->device->ticket), call, last);
        uint64_t failed = gshmem_load_relaxed(&c->shared->failed);
        if (!status && failed >> 8 != c->told)
            status = (gshmem_status_t)(failed & 255);
        c->told = failed >> 8;
    }
    return status;
}

/* ---- Teams ---- */

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
        .ctx = fill_context(j, t, system_table(j, t), k->context),
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

/* ---- The state ---- */

static gshmem_status_t make_tables(struct kernels *k, int n_pes)
{
    k->shared = memory_shared(sizeof *k->shared);
    k->device = memory_of_device(sizeof *k->device);
    k->nowhere = memory_of_device((size_t)n_pes * sizeof *k->nowhere);
    k->dead = calloc((size_t)n_pes, sizeof *k->dead);
    if (!k->shared || !k->device || !k->nowhere || !k->dead)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of the job");
    k->device->job = (struct gshmem_device_job){
        .failure = &k->shared->failure,
        .asleep = &k->shared->asleep,
        .response = k->shared->response,
        .response_owner = k->device->response_owner,
        .team = k->device->team,
        .teams = TEAM_MAX,
    };
    return GSHMEM_OK;
}

static gshmem_status_t make_teams(struct job *j)
{
    bool made = true;

    pthread_mutex_lock(&j->lock);
    for (int i = 0; i < TEAM_MAX && made; i++) {
        struct team *t = j->team[i];
        made = !t || kernels_make_team(j, t);
        if (t && made)
            kernels_show_team(j, t);
    }
    pthread_mutex_unlock(&j->lock);
    if (made)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of teams");
}

static gshmem_status_t make_contexts(struct job *j)
{
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&j->lock);
    for (struct context *c = j->contexts; c && !status; c = c->next)
        status = kernels_open_context(j, c);
    pthread_mutex_unlock(&j->lock);
    return status;
}

static gshmem_status_t make(struct job *j)
{
    int64_t channels = settings_number(SETTING_CHANNELS);
    struct kernels *k = j->kernels;
    gshmem_status_t status;

    if (channels & (channels - 1))
        return fail(GSHMEM_ERR_ARGUMENT, "GSHMEM_CHANNELS=%lld: it must be a power of two",
                    (long long)channels);
    k->mapped = settings_number(SETTING_MAPPED) != 0;
    if ((status = make_tables(k, j->n_pes)) ||
        (status = network_serve_kernels(j->network, k->shared->response, &k->shared->asleep)) ||
        (status = make_context(j, (int)channels, &k->context)) || (status = make_teams(j)) ||
        (status = make_contexts(j)))
        return status;
    k->state = (struct gshmem_device_state){
        .size = sizeof k->state,
        .version = GSHMEM_DEVICE_STATE_VERSION,
        .ctx = fill_context(j, j->team[GSHMEM_TEAM_WORLD], j->system_peer, k->context),
    };
    context_serve_kernels(k->context, &k->state.ctx);
    log_info("kernels: %lld channels of %d commands; PEs of this host are %s", (long long)channels,
             1 << SLOTS_LOG2, k->mapped ? "mapped" : "reached through the proxy (GSHMEM_MAPPED=0)");
    return GSHMEM_OK;
}

gshmem_status_t kernels_start(struct job *j)
{
    gshmem_status_t status;

    if (!modules_any())
        return GSHMEM_OK;
    if (!(j->kernels = calloc(1, sizeof *j->kernels)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of the job");
    if ((status = make(j)))
        return status;
    return modules_fill(&j->kernels->state);
}

const struct gshmem_device_state *kernels_state(const struct job *j)
{
    return &j->kernels->state;
}

void kernels_retire(struct job *j)
{
    const struct gshmem_device_state none = {.size = sizeof none,
                                             .version = GSHMEM_DEVICE_STATE_VERSION};

    if (j->kernels)
        modules_fill(&none);
}

void kernels_stop(struct job *j)
{
    struct kernels *k = j->kernels;

    if (!k)
        return;
    free_context(j, k->context);
    memory_free_shared(k->shared);
    memory_free_of_device(k->device);
    memory_free_of_device(k->nowhere);
    free(k->dead);
    free(k);
    j->kernels = NULL;
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

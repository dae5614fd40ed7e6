#include "runtime/proxy/kernels.h"

#include <stdlib.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/proxy/follow.h"
#include "runtime/proxy/modules.h"
#include "runtime/proxy/parts.h"
#include "runtime/proxy/kernel_trace.h"
#include "runtime/teams/context.h"
#include "runtime/teams/team.h"

static gshmem_status_t kernels_make_tables(struct device *d, struct kernels *k, int n_pes)
{
    k->shared = memory_shared(d, sizeof *k->shared);
    k->device = memory_of_device(d, sizeof *k->device);
    k->nowhere = memory_of_device(d, (size_t)n_pes * sizeof *k->nowhere);
    k->dead = calloc((size_t)n_pes, sizeof *k->dead);
    if (!k->shared || !k->device || !k->nowhere || !k->dead ||
        !departures_watch_begin(&k->left, n_pes))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of the job");
    const struct gshmem_device_job seen = {
        .failure = &k->shared->failure,
        .response = k->shared->response,
        .response_owner = k->device->response_owner,
        .team = k->device->team,
        .teams = TEAM_MAX,
    };
    return memory_tell(d, &k->device->job, &seen, sizeof seen);
}

static gshmem_status_t make_teams(struct job *j)
{
    bool made = true;

    for (int i = team_next(j, 0); i >= 0 && made; i = team_next(j, i + 1)) {
        made = kernels_make_view(j, j->team[i]);
        if (made)
            kernels_show_team(j, j->team[i]);
    }
    if (made)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of teams");
}

static gshmem_status_t make_contexts(struct job *j)
{
    gshmem_status_t status = GSHMEM_OK;

    for (struct context *c = j->contexts; c && !status; c = c->next)
        status = kernels_make_context_view(j, c);
    return status;
}

/* Those that other threads are making get their views when they enter the job's lists, which the
 * same lock covers. */
static gshmem_status_t make_views(struct job *j)
{
    gshmem_status_t status;

    pthread_mutex_lock(&j->lock);
    if (!(status = make_teams(j)) && !(status = make_contexts(j)) &&
        !(status = kernels_fill_queue_pairs(j)))
        /* release: pairs with the acquire in kernels_of */
        atomic_store_explicit(&j->kernels->complete, true, memory_order_release);
    pthread_mutex_unlock(&j->lock);
    return status;
}

/* A fence that the host made while there were no kernels has only begun an epoch of lane 0: what
 * came before it is in no order with what kernels will post on other lanes. */
static gshmem_status_t drain_before_lanes(struct job *j)
{
    const char *call = "the start of kernels";
    gshmem_status_t status = GSHMEM_OK;

    if (network_lanes(j->network) == 1)
        return GSHMEM_OK;
    pthread_mutex_lock(&j->lock);
    for (struct context *c = j->contexts; c && !status; c = c->next)
        status = network_drain(c->pending, call);
    pthread_mutex_unlock(&j->lock);
    return status ? status : network_drain(context_default_pending(), call);
}

static void kernels_look_after_all(struct network_source *source)
{
    struct service *s = (struct service *)source;

    kernels_look_after(s->job);
}

static gshmem_status_t kernels_make(struct job *j)
{
    int64_t channels = settings_number(SETTING_CHANNELS);
    const int lanes = network_lanes(j->network);
    struct kernels *k = j->kernels;
    gshmem_status_t status;

    if (channels & (channels - 1))
        return fail(GSHMEM_ERR_ARGUMENT, "GSHMEM_CHANNELS=%lld: it must be a power of two",
                    (long long)channels);
    if (lanes > 1 && (channels > (int64_t)GSHMEM_FENCE_CHANNELS || channels < lanes))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "GSHMEM_PROXIES=%d with GSHMEM_CHANNELS=%lld: with more than one proxy there "
                    "must be a channel for each, and at most %u in all",
                    lanes, (long long)channels, (unsigned)GSHMEM_FENCE_CHANNELS);
    /* Where operations are observed, kernels reach no object by themselves: the proxy sees them. */
    k->mapped = settings_number(SETTING_MAPPED) == CHOICE_MAPPED_ON && !j->observed;
    k->service->team_of_sync = kernels_team_of_sync;
    if ((status = drain_before_lanes(j)) ||
        (status = kernels_make_tables(j->device, k, j->n_pes)) ||
        (status = service_start(k->service, j, k->shared->response, k->shared->asleep,
                                kernels_look_after_all)) ||
        (status = kernels_make_context(j, (int)channels, context_default_pending(), &k->context)) ||
        (status = make_views(j)))
        return status;
    k->state = (struct gshmem_device_state){
        .size = sizeof k->state,
        .version = GSHMEM_DEVICE_STATE_VERSION,
        .ctx = kernels_view(j, j->team[GSHMEM_TEAM_WORLD], k->context),
    };
    k->state.ctx.own = j->own_memory;
    k->state.flushes = j->flushes;
    k->state.direct = !j->checked;
    context_serve_kernels(k->context, &k->state.ctx);
    kernel_trace_enter(k->shared->response, sizeof k->shared->response, TRACE_NETWORK,
                       "an answer");
    if (k->state.ctx.host)
        kernel_trace_enter(k->state.ctx.host, sizeof *k->state.ctx.host, TRACE_NETWORK, "quiet");
    kernel_trace_begin(kernels_find_sync);
    log_info("kernels: %lld channels of %d commands; PEs of this node are %s", (long long)channels,
             1 << CHANNEL_SLOTS_LOG2,
             k->mapped ? "mapped"
                       : "reached through the proxy (GSHMEM_MAPPED, GSHMEM_CHECK, GSHMEM_TRACE, "
                         "GSHMEM_STATS)");
    return GSHMEM_OK;
}

static void kernels_watch_forks(void)
{
    pthread_atfork(NULL, NULL, modules_leave_parent);
}

gshmem_status_t kernels_start(struct job *j)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gshmem_status_t status;

    if (!modules_any(j->device->ops->name))
        return GSHMEM_OK;
    follow_modules(j);
    pthread_once(&once, kernels_watch_forks); /* after the handler that gives a child its own
                                                 variables */
    struct kernels *k = calloc(1, sizeof *k);
    if (!k)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for kernels' view of the job");
    j->kernels = k;
    if ((status = kernels_make(j)))
        return status;
    return modules_fill(&j->kernels->state);
}

gshmem_status_t kernels_take_own_memory(struct job *j)
{
    if (!kernels_of(j))
        return GSHMEM_OK;
    j->kernels->state.ctx.own = 1;
    return modules_fill(&j->kernels->state);
}

const struct observer kernels_observer = {
    .make_team = kernels_make_team,
    .show_team = kernels_install_team,
    .show_multicast = kernels_show_multicast,
    .hide_team = kernels_hide_team,
    .free_team = kernels_free_team,
    .open_context = kernels_open_context,
    .close_context = kernels_close_context,
    .end_context = kernels_end_context,
    .show_queue_pairs = kernels_show_queue_pairs,
    .quiet = kernels_quiet,
    .flush = kernels_flush,
    .take_own_memory = kernels_take_own_memory,
};

const struct gshmem_device_state *kernels_state(const struct job *j)
{
    return &j->kernels->state;
}

static void fill_none(void)
{
    const struct gshmem_device_state none = {.size = sizeof none,
                                             .version = GSHMEM_DEVICE_STATE_VERSION};

    modules_fill(&none);
}

/* Kernels of the host device that the program has not waited for read the state while it changes:
 * of theirs one word changes, as long as there is memory behind the pointers. */
void kernels_retire(struct job *j)
{
    if (!j->kernels)
        return;
    if (j->device->ops != &device_host) {
        fill_none();
        return;
    }
    struct gshmem_device_state state = j->kernels->state;
    state.ctx.n_pes = 0;
    modules_fill(&state);
}

void kernels_stop(struct job *j)
{
    struct kernels *k = j->kernels;

    if (!k)
        return;
    if (j->device->ops == &device_host)
        fill_none();
    kernels_free_context(j, k->context);
    kernels_free_queue_pairs(j);
    if (k->shared)
        kernel_trace_forget(k->shared->response);
    kernel_trace_forget(k->state.ctx.host);
    memory_free_shared(j->device, k->shared);
    memory_free_of_device(j->device, k->device);
    memory_free_of_device(j->device, k->nowhere);
    free(k->dead);
    departures_watch_end(&k->left);
    service_stop(k->service);
    free(k);
    j->kernels = NULL;
}

/* ---- Modules that come while there is a job, and threads of the host device ---- */

static gshmem_status_t fill_late(struct job *j, struct gshmem_device_module *module)
{
    follow_modules(j);
    kernel_trace_begin(kernels_find_sync);
    return module_fill(module, kernels_state(j));
}

gshmem_status_t kernels_add_module(struct gshmem_device_module *module)
{
    if (!modules_enter(module))
        return GSHMEM_OK;
    struct job *j = job_hold();
    gshmem_status_t status = GSHMEM_OK;
    if (j && !j->kernels)
        status = kernels_start(j);
    else if (j && kernels_of(j))
        status = fill_late(j, module);
    else if (j)
        status = fail(GSHMEM_ERR_STATE, "the start of kernels has failed before, and those of a "
                                        "module that is loaded now find no job");
    job_let_go();
    return status;
}

void gshmem_device_register(struct gshmem_device_module *module)
{
    gshmem_raise(kernels_add_module(module));
}

void gshmem_device_wake(const uint32_t *asleep)
{
    struct job *j = job;
    struct kernels *k = j ? kernels_of(j) : NULL;

    if (k)
        service_wake(k->service, asleep);
}

void gshmem_device_help(void)
{
    struct job *j = job;

    struct kernels *k = j ? kernels_of(j) : NULL;

    if (k)
        service_help(k->service);
}

void gshmem_device_receive(void)
{
    struct job *j = job;

    struct kernels *k = j ? kernels_of(j) : NULL;

    if (k)
        service_receive(k->service);
}

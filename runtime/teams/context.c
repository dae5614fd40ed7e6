#include "runtime/teams/context.h"

#include <stdatomic.h>
#include <stdio.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/teams/queue_pairs.h"
#include "runtime/teams/team.h"
#include "runtime/teams/observer.h"

/* Programs have their addresses, from before there is a job (gshmem/context.h). */
struct context context_default;
static struct context no_context;

struct gshmem_ctx *const gshmem_ctx_default = &context_default.view;
struct gshmem_ctx *const gshmem_ctx_none = &no_context.view;

gshmem_status_t context_start(struct job *j)
{
    struct pending *pending =
        j->device->ops->allocate(j->device, DEVICE_MEMORY_SHARED, sizeof *pending);

    if (!pending)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for the default context");
    context_default =
        (struct context){.view = j->team[GSHMEM_TEAM_WORLD]->view, .pending = pending};
    pending->view = &context_default.view;
    pending->batches_copy = &context_default.batches;
    return GSHMEM_OK;
}

struct pending *context_default_pending(void)
{
    return context_default.pending;
}

void context_serve_kernels(struct kernel_context *k, const struct gshmem_device_ctx *view)
{
    context_default.kernel = k;
    context_default.view.device = view;
}

struct own_context {
    struct context context;
    struct pending pending;
};

/* A handle is the context's address, also in kernels. */
static struct context *new_context(struct job *j, const struct team *team)
{
    struct own_context *c = j->device->ops->allocate(j->device, DEVICE_MEMORY_SHARED, sizeof *c);

    if (!c)
        return NULL;
    c->context.view = team->view;
    c->context.members = team == j->team[GSHMEM_TEAM_WORLD] ? NULL : team->members;
    c->context.pending = &c->pending;
    c->pending.view = &c->context.view;
    c->pending.batches_copy = &c->context.batches;
    return &c->context;
}

static void free_context(struct job *j, struct context *c)
{
    open_batches_free(c->pending);
    j->device->ops->release(j->device, DEVICE_MEMORY_SHARED, c);
}

static void free_list(struct job *j, struct context *c)
{
    while (c) {
        struct context *next = c->next;
        j->observer->end_context(j, c);
        free_context(j, c);
        c = next;
    }
}

/* A child's copy of its parent's requests in flight, kept where a leak checker finds it. */
static struct pending *volatile parents_pending;

void context_leave_parent(struct job *j)
{
    parents_pending = context_default.pending;
    context_default = (struct context){.view = {.n_pes = 0}};
    /* a child has no mapping of memory that a GPU's driver has pinned */
    for (struct context *c = j->device->ops == &device_host ? j->contexts : NULL; c; c = c->next)
        c->view.n_pes = 0;
}

void context_stop(struct job *j)
{
    struct pending *pending = context_default.pending;

    context_default = (struct context){.view = {.n_pes = 0}};
    if (pending) {
        open_batches_free(pending);
        j->device->ops->release(j->device, DEVICE_MEMORY_SHARED, pending);
    }
    free_list(j, j->contexts);
    free_list(j, j->left_contexts);
    j->contexts = j->left_contexts = NULL;
    queue_pairs_free(j);
}

gshmem_status_t context_quiet_all(struct job *j, const char *call)
{
    gshmem_status_t status = context_quiet(&context_default, call, true);

    for (struct context *c = j->contexts; c; c = c->next) {
        gshmem_status_t one = context_quiet(c, call, true);
        status = status ? status : one;
    }
    return status;
}

struct context *context_find_none(gshmem_ctx_t handle, const char *call)
{
    if (!job_require(call) && handle == GSHMEM_CTX_INVALID)
        fail(GSHMEM_ERR_ARGUMENT, "%s: the context is GSHMEM_CTX_INVALID", call);
    return NULL;
}

/* ---- Objects that are checked ---- */

static bool is_in_heap(const struct location *l)
{
    const bool heap = l->segment == SEGMENT_HEAP || l->segment == SEGMENT_DEVICE ||
                      l->segment == SEGMENT_NIC;

    return heap && !l->reserved && l->offset < job->map->segment[l->segment].own_bytes;
}

gshmem_status_t context_check(const struct location *l, const void *mine, size_t bytes,
                              const char *call, bool here)
{
    if (!job->checked || l->reserved)
        return GSHMEM_OK;
    if (l->segment >= SEGMENT_DATA && l->segment < SEGMENT_MAX)
        return checked_variable(job->checked, mine, bytes, call, here);
    return is_in_heap(l) ? checked_access(job->checked, mine, bytes, call, here) : GSHMEM_OK;
}

gshmem_status_t context_check_own(const void *mine, size_t bytes, const char *call)
{
    struct location l;

    if (GSHMEM_LIKELY(!job || !job->checked) || bytes == 0)
        return GSHMEM_OK;
    if (map_find(job->map, mine, bytes, &l))
        return context_check(&l, mine, bytes, call, true);
    return job->own_memory ? GSHMEM_OK : context_refuse(&l, mine, bytes, job->pe, call);
}

gshmem_status_t context_check_local(const void *local, size_t bytes, const char *call, bool here)
{
    struct location l;
    char side[96];

    if (!job->checked || !map_find(job->map, local, bytes, &l) || !is_in_heap(&l))
        return GSHMEM_OK;
    snprintf(side, sizeof side, "%s: the local side", call);
    return checked_access(job->checked, local, bytes, side, here);
}

/* ---- Addresses that inline code could not resolve ---- */

bool context_look_up(const struct gshmem_ctx *ctx, const void *mine, size_t bytes, int pe,
                     struct location *l)
{
    const int world = job->team[ctx->team]->members[pe];

    map_resolve(job->map, mine, bytes, world, l);
    if (GSHMEM_UNLIKELY(l->way == WAY_UNKNOWN_PROGRAM)) {
        network_learn_program(job->network, world);
        map_resolve(job->map, mine, bytes, world, l);
    }
    return location_is_reached(l);
}

static gshmem_status_t refuse_unreachable(const struct location *l, size_t bytes, int pe,
                                          const char *call)
{
    if (atomicity_is_device(l->atomicity))
        return fail(GSHMEM_ERR_UNREACHABLE,
                    "%s of %zu B: the GPU memory of PE %d cannot be reached from this PE "
                    "(GSHMEM_LOG=info says why)",
                    call, bytes, pe);
    return fail(GSHMEM_ERR_UNREACHABLE, "%s of %zu B: PE %d cannot be reached from this PE", call,
                bytes, pe);
}

static gshmem_status_t refuse_past_end(const struct location *l, const void *address, size_t bytes,
                                       const char *call)
{
    const struct segment *s = &job->map->segment[l->segment];

    return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                "%s of %zu B at %p: it would run past the end of the %s (%p)", call, bytes, address,
                s->variables ? "program's variables" : "symmetric heap",
                (void *)(s->base + (l->offset < s->own_bytes ? s->own_bytes : s->bytes)));
}

gshmem_status_t context_refuse(const struct location *l, const void *address, size_t bytes, int pe,
                               const char *call)
{
    switch (l->reserved ? WAY_NOT_SYMMETRIC : (enum way)l->way) {
    case WAY_PAST_END:
        return refuse_past_end(l, address, bytes, call);
    case WAY_UNREGISTERED:
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s of %zu B at %p: it is not all in a buffer that "
                    "gshmem_buffer_register_symmetric has made symmetric",
                    call, bytes, address);
    case WAY_UNKNOWN_PROGRAM:
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "%s of %zu B at %p: it is a variable of the program, and whether PE %d runs "
                    "the same one is not known; a line above says why",
                    call, bytes, address, pe);
    case WAY_OTHER_PROGRAM:
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s of %zu B at %p: it is a variable of the program, and PE %d runs another "
                    "program",
                    call, bytes, address, pe);
    case WAY_MAPPED:
    case WAY_DEVICE:
    case WAY_NETWORK:
    case WAY_UNREACHABLE:
        return refuse_unreachable(l, bytes, pe, call);
    case WAY_NOT_SYMMETRIC:
        break;
    }
    return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                "%s of %zu B at %p with PE %d: that address is not symmetric: it is neither from "
                "gshmem_malloc nor a global or static variable of the program",
                call, bytes, address, pe);
}

gshmem_status_t context_update_device(const struct location *l, enum gshmem_amo op, int type,
                                      uint64_t operand, uint64_t compare, uint64_t *old)
{
    const struct device_update update = {
        .op = op, .type = type, .at = l->at, .operand = operand, .compare = compare};

    return job->device->ops->update(job->device, &update, old);
}

gshmem_status_t context_refuse_device(const void *address, const char *call)
{
    return fail(
        GSHMEM_ERR_UNSUPPORTED,
        "%s: the object at %p is in GPU memory, which this call is not made on: take it from "
        "gshmem_malloc_with_hints(…, GSHMEM_MALLOC_HOST)",
        call, address);
}

/* Memory of this PE's own. A range that begins in a symmetric segment and is not within it runs
 * past its end, and is refused. */
static bool resolve_own(const void *mine, struct location *l)
{
    if (!mine || l->segment != SEGMENT_NONE)
        return false;
    const bool of_device = job->device->ops->owns(job->device, mine, 1);
    l->at = (void *)(uintptr_t)mine;
    l->way = of_device ? WAY_DEVICE : WAY_MAPPED;
    l->atomicity = of_device ? ATOMICITY_GPU : ATOMICITY_CPU;
    return true;
}

gshmem_status_t gshmem_path_own_memory(void)
{
    gshmem_status_t status = job_require("nvshmem_init");

    if (status)
        return status;
    job->own_memory = true;
    return job->observer->take_own_memory(job);
}

gshmem_status_t context_resolve_any(struct context *c, const void *mine, size_t bytes, int pe,
                                    const char *call, struct location *l)
{
    static char nothing;
    const struct gshmem_ctx *ctx = &c->view;

    if (pe < 0 || pe >= ctx->n_pes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s of %zu B with PE %d: the %s has PEs 0..%d", call,
                    bytes, pe, ctx->team == GSHMEM_TEAM_WORLD ? "job" : "context's team",
                    ctx->n_pes - 1);
    if (context_look_up(ctx, mine, bytes, pe, l))
        return context_check(l, mine, bytes, call, true);
    if (pe == ctx->my_pe && job->own_memory && resolve_own(mine, l))
        return GSHMEM_OK;
    if (bytes > 0)
        return context_refuse(l, mine, bytes, pe, call);
    /* an object of 0 bytes may have any address, NULL included */
    *l = (struct location){.at = &nothing, .pe = l->pe, .segment = SEGMENT_NONE, .way = WAY_MAPPED};
    return GSHMEM_OK;
}

/* ---- The program's contexts ---- */

static gshmem_status_t context_create(gshmem_team_t handle, long options, gshmem_ctx_t *ctx,
                                      const char *call)
{
    const long known = GSHMEM_CTX_SERIALIZED | GSHMEM_CTX_PRIVATE | GSHMEM_CTX_NOSTORE;
    struct team *team = team_find(handle, call);

    if (!team)
        return last_error_status();
    if (!ctx)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: ctx is NULL", call);
    if (options & ~known)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: options %#lx has bits that are no GSHMEM_CTX_… option", call, options);
    struct context *c = new_context(job, team);
    if (!c)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory", call);
    c->view.options = (uint32_t)options;
    gshmem_status_t status = job->observer->open_context(job, c);
    pthread_mutex_lock(&job->lock);
    if (!status) /* again: another thread may have loaded the first kernels meanwhile */
        status = job->observer->open_context(job, c);
    if (!status) {
        c->next = job->contexts;
        job->contexts = c;
        team->contexts++;
    }
    pthread_mutex_unlock(&job->lock);
    if (status) {
        free_context(job, c);
        return status;
    }
    *ctx = &c->view;
    return GSHMEM_OK;
}

gshmem_status_t gshmem_team_create_ctx(gshmem_team_t team, long options, gshmem_ctx_t *ctx)
{
    return context_create(team, options, ctx, "gshmem_team_create_ctx");
}

gshmem_status_t gshmem_ctx_create(long options, gshmem_ctx_t *ctx)
{
    return context_create(GSHMEM_TEAM_WORLD, options, ctx, "gshmem_ctx_create");
}

/* After a quiet that was cut short, requests may still be in flight, and complete into the record
 * later: it is kept then. */
static void context_let_go(struct context *c)
{
    c->view.n_pes = 0;
    if (!pending_any(c->pending) && job->observer->close_context(job, c)) {
        free_context(job, c);
        return;
    }
    pthread_mutex_lock(&job->lock);
    c->next = job->left_contexts;
    job->left_contexts = c;
    pthread_mutex_unlock(&job->lock);
}

gshmem_status_t gshmem_ctx_destroy(gshmem_ctx_t ctx)
{
    struct context *c = NULL;
    gshmem_status_t status = job_require("gshmem_ctx_destroy");

    if (status || ctx == GSHMEM_CTX_INVALID)
        return status;
    if (ctx == GSHMEM_CTX_DEFAULT)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_ctx_destroy: the default context stays");

    pthread_mutex_lock(&job->lock);
    for (struct context **at = &job->contexts; *at && !c; at = c ? at : &(*at)->next) {
        if (&(*at)->view == ctx) {
            c = *at;
            *at = c->next;
            job->team[c->view.team]->contexts--;
        }
    }
    pthread_mutex_unlock(&job->lock);
    if (!c)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_ctx_destroy: %p is no context, or was destroyed before", (void *)ctx);
    status = context_quiet(c, "gshmem_ctx_destroy", true);
    context_let_go(c);
    return status;
}

/* A context that was made from the team; GSHMEM_CTX_INVALID if there is none. */
static gshmem_ctx_t find_of_team(gshmem_team_t team)
{
    struct context *c;

    pthread_mutex_lock(&job->lock);
    for (c = job->contexts; c && c->view.team != team; c = c->next)
        ;
    pthread_mutex_unlock(&job->lock);
    return c ? &c->view : GSHMEM_CTX_INVALID;
}

gshmem_status_t gshmem_path_close_contexts(gshmem_team_t team)
{
    gshmem_status_t status = job_require("gshmem_team_destroy"), one;
    gshmem_ctx_t ctx;

    while (job && (ctx = find_of_team(team)) != GSHMEM_CTX_INVALID) {
        one = gshmem_ctx_destroy(ctx);
        status = status ? status : one;
    }
    return status;
}

gshmem_status_t gshmem_ctx_get_team(gshmem_ctx_t ctx, gshmem_team_t *team)
{
    if (!team)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_ctx_get_team: team is NULL");
    if (ctx == GSHMEM_CTX_INVALID) {
        *team = GSHMEM_TEAM_INVALID;
        return GSHMEM_OK;
    }
    const struct context *c = context_find(ctx, "gshmem_ctx_get_team");
    if (!c)
        return last_error_status();
    *team = c->view.team;
    return GSHMEM_OK;
}

void gshmem_ctx_session_start(gshmem_ctx_t ctx, long options)
{
    struct context *c = context_find(ctx, "gshmem_ctx_session_start");

    (void)options; /* the standard's say which operations follow, which makes no difference here */
    if (c)
        network_session_start(c->pending);
    else
        gshmem_raise(last_error_status());
}

void gshmem_ctx_session_stop(gshmem_ctx_t ctx)
{
    struct context *c = context_find(ctx, "gshmem_ctx_session_stop");

    if (c)
        network_session_stop(c->pending);
    else
        gshmem_raise(last_error_status());
}

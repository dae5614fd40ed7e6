/* The collectives of the API: each checks its arguments, determines what all members must agree on,
 * and lets the table choose the algorithm.
 *
 * A PE whose arguments are refused still takes part in one round, so that the others learn of it
 * instead of waiting. */
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/device.h"
#include "runtime/collectives/places.h"
#include "runtime/collectives/table.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/node/choose_device.h"
#include "runtime/node/node.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"
#include "runtime/teams/team.h"

/* ---- The beginning of all calls ---- */

static gshmem_status_t collective_refuse(const struct call *c, gshmem_status_t status)
{
    if (GSHMEM_LIKELY(!job->races))
        return group_refuse(c->group, c->name, status);
    const uint32_t round = races_arrive(c->team);
    status = group_refuse(c->group, c->name, status);
    races_leave(c->team, round, NULL, 0, status);
    return status;
}

/* The team of the handle, ready for a round; NULL after a logged failure. */
static inline struct team *collective_begin(struct call *c, gshmem_team_t handle)
{
    struct team *t = team_find(handle, c->name);

    if (GSHMEM_UNLIKELY(!t))
        return NULL;
    c->group = t->group;
    c->team = handle;
    if (GSHMEM_UNLIKELY(t->group->broken || node_losses(t->group->node) != t->group->losses) &&
        group_check(t->group, c->name))
        return NULL;
    return t;
}

static inline gshmem_status_t collective_perform(struct call *c, size_t brought)
{
    if (GSHMEM_UNLIKELY(c->group->internode != NULL))
        return table_internode_algorithm(c->what, brought)(c);
    return table_algorithm(c->what, brought, c->group->n, c->group->oversubscribed)(c);
}

/* GSHMEM_CHECK=races: what the call reads and writes of this PE, from before its first round until
 * after its last. Of a broadcast the members know what the root did, of a scan what the members
 * before them did. */
static void collective_follow(const struct call *c)
{
    const bool broadcast = c->what == COLLECTIVE_BROADCAST, root = c->group->my == c->root;

    races_collective(c->name, broadcast && root && c->spare_root ? NULL : c->dest.mine, c->to,
                     broadcast && !root ? NULL : c->source.mine, c->from);
}

static gshmem_status_t collective_followed(struct call *c, size_t brought)
{
    const struct team *t = job->team[c->team];
    const bool scan = c->what == COLLECTIVE_INSCAN || c->what == COLLECTIVE_EXSCAN;
    gshmem_status_t status;

    collective_follow(c);
    const uint32_t round = races_arrive(c->team);
    status = collective_perform(c, brought);
    if (c->what == COLLECTIVE_BROADCAST)
        races_leave(c->team, round, &t->members[c->root], 1, status);
    else
        races_leave(c->team, round, t->members, scan ? t->my_pe : t->n_pes, status);
    collective_follow(c);
    return status;
}

static inline gshmem_status_t collective_run(struct call *c, uint64_t hash, size_t brought)
{
    c->signature = signature_make(c->what, hash);
    return GSHMEM_UNLIKELY(job->races != NULL) ? collective_followed(c, brought)
                                               : collective_perform(c, brought);
}

/* *product becomes a * b, unless it overflows: a size beyond all memory is refused with an error of
 * its own. */
static inline gshmem_status_t collective_multiply(const struct call *c, size_t a, size_t b,
                                                  size_t *product)
{
    if (GSHMEM_LIKELY(!__builtin_mul_overflow(a, b, product)))
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT, "%s: %zu times %zu bytes are more than there can be", c->name,
                a, b);
}

/* ---- sync and barrier ---- */

static inline gshmem_status_t sync_team(gshmem_team_t team, const char *name)
{
    struct call c = {.name = name};
    uint32_t round = 0;

    if (!collective_begin(&c, team))
        return last_error_status();
    if (GSHMEM_UNLIKELY(job->races != NULL))
        round = races_arrive(team);
    gshmem_status_t status = group_meet(c.group, signature_make(COLLECTIVE_SYNC, 0), name);
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_leave(team, round, job->team[team]->members, job->team[team]->n_pes, status);
    return status ? status : device_settle();
}

gshmem_status_t gshmem_team_sync(gshmem_team_t team)
{
    const char *call = "gshmem_team_sync";
    RANGE(call);

    return sync_team(team, call);
}

gshmem_status_t gshmem_sync_all(void)
{
    const char *call = "gshmem_sync_all";
    RANGE(call);

    return sync_team(GSHMEM_TEAM_WORLD, call);
}

static gshmem_status_t barrier_team(gshmem_team_t team, const char *call)
{
    RANGE(call);
    gshmem_status_t status = job ? gshmem_quiet() : job_require(call), met;

    if (!job)
        return status;
    if (GSHMEM_UNLIKELY(job->checked != NULL))
        checked_review(job->checked, call);
    met = sync_team(team, call); /* also where the quiet failed, since others wait for this PE */
    return status ? status : met;
}

gshmem_status_t gshmem_barrier(gshmem_team_t team)
{
    return barrier_team(team, "gshmem_barrier");
}

gshmem_status_t gshmem_barrier_all(void)
{
    return barrier_team(GSHMEM_TEAM_WORLD, "gshmem_barrier_all");
}

/* ---- Objects in the device's memory ---- */

/* One of the two is enough: the members' kernels report what is wrong with the other. */
static inline bool is_for_device(const void *dest, const void *source)
{
    return GSHMEM_UNLIKELY(job && job->device_heap) &&
           (atomicity_is_device(map_atomicity(job->map, dest)) ||
            atomicity_is_device(map_atomicity(job->map, source)));
}

/* ---- Moving data ---- */

static gshmem_status_t collective_broadcast(gshmem_team_t team, void *dest, const void *source,
                                            size_t bytes, int root, bool spare_root)
{
    struct call c = {.name = "gshmem_broadcastmem",
                     .what = COLLECTIVE_BROADCAST,
                     .spare_root = spare_root};
    struct team *t = collective_begin(&c, team);
    gshmem_status_t status;
    RANGE(c.name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return device_collective(c.name, &(struct device_request){DEVICE_BROADCAST, .pe = root,
                                                                  .team = team,
                                                                  .dest = (uintptr_t)dest,
                                                                  .source = (uintptr_t)source,
                                                                  .n = bytes});
    if (root < 0 || root >= t->n_pes)
        return collective_refuse(&c, fail(GSHMEM_ERR_ARGUMENT,
                                          "%s: root is PE %d, and team %d has PEs 0..%d", c.name,
                                          root, team, t->n_pes - 1));
    if ((status = places_find(&c, t, dest, bytes, source, bytes, true)))
        return collective_refuse(&c, status);
    c.bytes = bytes;
    c.root = root;
    return collective_run(&c, signature_mix(signature_mix(0, bytes), (uint64_t)root), bytes);
}

gshmem_status_t gshmem_broadcastmem(gshmem_team_t team, void *dest, const void *source,
                                    size_t bytes, int root)
{
    return collective_broadcast(team, dest, source, bytes, root, false);
}

gshmem_status_t gshmem_path_broadcast_others(gshmem_team_t team, void *dest, const void *source,
                                             size_t bytes, int root)
{
    return collective_broadcast(team, dest, source, bytes, root, true);
}

/* room: the bytes of the caller's dest; SIZE_MAX: it has as many as symmetric memory. */
static gshmem_status_t collective_collect(gshmem_team_t team, void *dest, size_t room,
                                          const void *source, size_t bytes)
{
    struct call c = {.name = "gshmem_collectmem", .what = COLLECTIVE_COLLECT};
    struct team *t = collective_begin(&c, team);
    gshmem_status_t status;
    RANGE(c.name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return device_collective(c.name, &(struct device_request){DEVICE_COLLECT, .team = team,
                                                                  .dest = (uintptr_t)dest,
                                                                  .source = (uintptr_t)source,
                                                                  .n = bytes});
    /* 1: dest is needed on all PEs, before they know how many bytes of it. */
    if ((status = places_find_one(&c, t, &c.dest, "dest", dest, dest ? 1 : 0)) ||
        (status = places_find_one(&c, t, &c.source, "source", source, bytes)))
        return collective_refuse(&c, status);
    c.bytes = bytes;
    c.bounded = room != SIZE_MAX || job->checked;
    c.dest.room = room < c.dest.room ? room : c.dest.room;
    c.from = bytes;
    if (GSHMEM_UNLIKELY(job->races != NULL)) {
        collective_follow(&c);
        const uint32_t round = races_arrive(team);
        status = collect_sized(&c);
        races_leave(team, round, t->members, t->n_pes, status);
        return status;
    }
    return collect_sized(&c);
}

gshmem_status_t gshmem_collectmem(gshmem_team_t team, void *dest, const void *source, size_t bytes)
{
    return collective_collect(team, dest, SIZE_MAX, source, bytes);
}

gshmem_status_t gshmem_path_collect(gshmem_team_t team, void *dest, size_t room,
                                    const void *source, size_t bytes)
{
    return collective_collect(team, dest, room, source, bytes);
}

gshmem_status_t gshmem_fcollectmem(gshmem_team_t team, void *dest, const void *source, size_t bytes)
{
    struct call c = {.name = "gshmem_fcollectmem", .what = COLLECTIVE_FCOLLECT};
    struct team *t = collective_begin(&c, team);
    gshmem_status_t status;
    size_t all;
    RANGE(c.name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return device_collective(c.name, &(struct device_request){DEVICE_FCOLLECT, .team = team,
                                                                  .dest = (uintptr_t)dest,
                                                                  .source = (uintptr_t)source,
                                                                  .n = bytes});
    if ((status = collective_multiply(&c, bytes, (size_t)t->n_pes, &all)) ||
        (status = places_find(&c, t, dest, all, source, bytes, false)))
        return collective_refuse(&c, status);
    c.bytes = bytes;
    return collective_run(&c, signature_mix(0, bytes), bytes);
}

gshmem_status_t gshmem_alltoallmem(gshmem_team_t team, void *dest, const void *source, size_t bytes)
{
    struct call c = {.name = "gshmem_alltoallmem", .what = COLLECTIVE_ALLTOALL};
    struct team *t = collective_begin(&c, team);
    gshmem_status_t status;
    size_t all;
    RANGE(c.name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return device_collective(c.name, &(struct device_request){DEVICE_ALLTOALL, .team = team,
                                                                  .dest = (uintptr_t)dest,
                                                                  .source = (uintptr_t)source,
                                                                  .n = bytes});
    if ((status = collective_multiply(&c, bytes, (size_t)t->n_pes, &all)) ||
        (status = places_find(&c, t, dest, all, source, all, false)))
        return collective_refuse(&c, status);
    c.bytes = bytes;
    return collective_run(&c, signature_mix(0, bytes), all);
}

/* The bytes from the first of n elements, a stride apart, to the end of the last. */
static gshmem_status_t find_extent(const struct call *c, size_t n, ptrdiff_t stride, size_t element,
                                   size_t *bytes)
{
    size_t last;
    gshmem_status_t status;

    *bytes = 0;
    if (n == 0)
        return GSHMEM_OK;
    if ((status = collective_multiply(c, n - 1, (size_t)stride, &last)))
        return status;
    if (last == SIZE_MAX)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: %zu elements with a stride of %td are more than there can be", c->name, n,
                    stride);
    return collective_multiply(c, last + 1, element, bytes);
}

/* Whether an element of one array overlaps an element of the other: two arrays of n elements, which
 * are a_step and b_step bytes apart. An array of fields of the other's elements overlaps none of
 * them. */
static bool elements_overlap(uintptr_t a, size_t a_step, uintptr_t b, size_t b_step, size_t element,
                             size_t n)
{
    size_t i = 0, j = 0;

    while (i < n && j < n) {
        const uintptr_t in_a = a + i * a_step, in_b = b + j * b_step;
        if (in_a + element <= in_b)
            i++;
        else if (in_b + element <= in_a)
            j++;
        else
            return true;
    }
    return false;
}

gshmem_status_t gshmem_alltoallsmem(gshmem_team_t team, void *dest, const void *source,
                                    ptrdiff_t dst, ptrdiff_t sst, size_t element, size_t n)
{
    struct call c = {.name = "gshmem_alltoallsmem", .what = COLLECTIVE_ALLTOALLS};
    struct team *t = collective_begin(&c, team);
    size_t elements, all, to, from;
    gshmem_status_t status;
    RANGE(c.name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return device_collective(c.name, &(struct device_request){DEVICE_ALLTOALLS, .team = team,
                                                                  .dest = (uintptr_t)dest,
                                                                  .source = (uintptr_t)source,
                                                                  .dst = dst, .sst = sst,
                                                                  .element = element, .n = n});
    if (dst < 1 || sst < 1)
        return collective_refuse(&c,
                                 fail(GSHMEM_ERR_ARGUMENT,
                                      "%s: strides are dst %td and sst %td, and must be at least 1",
                                      c.name, dst, sst));
    if ((status = collective_multiply(&c, n, (size_t)t->n_pes, &elements)) ||
        (status = collective_multiply(&c, elements, element, &all)) ||
        (status = find_extent(&c, elements, dst, element, &to)) ||
        (status = find_extent(&c, elements, sst, element, &from)) ||
        (status = places_find_both(&c, t, dest, to, source, from)))
        return collective_refuse(&c, status);
    if (places_overlap(dest, to, source, from) &&
        elements_overlap((uintptr_t)dest, (size_t)dst * element, (uintptr_t)source,
                         (size_t)sst * element, element, elements))
        return collective_refuse(&c,
                                 places_refuse_overlap(&c, t, dest, to, source, from, false));
    c.bytes = n * element;
    c.n = n;
    c.element = element;
    c.dst = dst;
    c.sst = sst;
    uint64_t hash = signature_mix(signature_mix(element, n), (uint64_t)dst);
    return collective_run(&c, signature_mix(hash, (uint64_t)sst), all);
}

/* ---- Combining data ---- */

/* Fills in the kernel and sizes: dest has n elements, source `parts` times as many. */
static inline gshmem_status_t prepare_combination(struct call *c, const struct team *t,
                                                  enum gshmem_type type, enum gshmem_op op,
                                                  void *dest, const void *source, size_t n,
                                                  size_t parts)
{
    size_t all;
    gshmem_status_t status;

    c->combine = combine_find(type, op);
    c->element = combine_bytes(type);
    c->n = n;
    if (!c->combine)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %s is not defined for %s", c->name,
                    combine_op_name(op), combine_type_name(type));
    if ((status = collective_multiply(c, n, c->element, &c->bytes)) ||
        (status = collective_multiply(c, c->bytes, parts, &all)))
        return status;
    return places_find(c, t, dest, c->bytes, source, all, true);
}

static enum device_call combination(enum collective what)
{
    switch (what) {
    case COLLECTIVE_REDUCE:
        return DEVICE_REDUCE;
    case COLLECTIVE_REDUCESCATTER:
        return DEVICE_REDUCESCATTER;
    case COLLECTIVE_INSCAN:
        return DEVICE_INSCAN;
    default:
        return DEVICE_EXSCAN;
    }
}

static gshmem_status_t combine_by_device(const struct call *c, gshmem_team_t team,
                                         enum gshmem_type type, enum gshmem_op op, void *dest,
                                         const void *source, size_t n)
{
    const struct device_request request = {
        .call = combination(c->what),
        .team = team,
        .type = (int32_t)type,
        .op = (int32_t)op,
        .dest = (uintptr_t)dest,
        .source = (uintptr_t)source,
        .n = n,
    };

    return device_collective(c->name, &request);
}

static inline gshmem_status_t combine_over(struct call *c, gshmem_team_t team,
                                           enum gshmem_type type, enum gshmem_op op, void *dest,
                                           const void *source, size_t n)
{
    struct team *t = collective_begin(c, team);
    gshmem_status_t status;
    RANGE(c->name);

    if (!t)
        return last_error_status();
    if (is_for_device(dest, source))
        return combine_by_device(c, team, type, op, dest, source, n);
    size_t parts = c->what == COLLECTIVE_REDUCESCATTER ? (size_t)t->n_pes : 1;
    if ((status = prepare_combination(c, t, type, op, dest, source, n, parts)))
        return collective_refuse(c, status);
    return collective_run(c, signature_mix(signature_mix(0, n), (uint64_t)type << 8 | (uint64_t)op),
                          c->bytes * parts);
}

gshmem_status_t gshmem_reduce(gshmem_team_t team, enum gshmem_type type, enum gshmem_op op,
                              void *dest, const void *source, size_t n)
{
    struct call c = {.name = "gshmem_reduce", .what = COLLECTIVE_REDUCE};

    return combine_over(&c, team, type, op, dest, source, n);
}

gshmem_status_t gshmem_reducescatter(gshmem_team_t team, enum gshmem_type type, enum gshmem_op op,
                                     void *dest, const void *source, size_t n)
{
    struct call c = {.name = "gshmem_reducescatter", .what = COLLECTIVE_REDUCESCATTER};

    return combine_over(&c, team, type, op, dest, source, n);
}

gshmem_status_t gshmem_inscan(gshmem_team_t team, enum gshmem_type type, void *dest,
                              const void *source, size_t n)
{
    struct call c = {.name = "gshmem_inscan", .what = COLLECTIVE_INSCAN};

    return combine_over(&c, team, type, GSHMEM_OP_SUM, dest, source, n);
}

gshmem_status_t gshmem_exscan(gshmem_team_t team, enum gshmem_type type, void *dest,
                              const void *source, size_t n)
{
    struct call c = {.name = "gshmem_exscan", .what = COLLECTIVE_EXSCAN};

    return combine_over(&c, team, type, GSHMEM_OP_SUM, dest, source, n);
}

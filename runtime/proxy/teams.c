/* Kernels' teams: a view of each, published to kernels that may be running; and which of their PEs
 * have died. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"
#include "runtime/proxy/kernel_trace.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"
#include "runtime/proxy/shown.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/team.h"

static_assert(GSHMEM_DEVICE_SYNC_TEAMS == TEAM_RANGE, "the first range has larger blocks");

/* Blocks of the first range, scratch memory, blocks of later slots. */
enum {
    SCRATCH_AT = GSHMEM_DEVICE_SYNC_TEAMS * GSHMEM_DEVICE_SYNC_BYTES,
    LATER_AT = SCRATCH_AT + GSHMEM_DEVICE_SCRATCH_TEAMS * GSHMEM_DEVICE_SCRATCH_BYTES,
    BLOCKS_END = LATER_AT + (TEAM_MAX - GSHMEM_DEVICE_SYNC_TEAMS) * GSHMEM_DEVICE_LATER_BYTES,
};

enum { LOOKS_AT_ONCE = 8 }; /* PEs whose liveness is tested at a time: a system call each */

size_t kernels_system_bytes(void)
{
    return BLOCKS_END;
}

/* Where a PE's blocks begin, for kernels: in host memory, or before its heap in the device's
 * memory. */
static uintptr_t sync_blocks(const struct job *j)
{
    const struct segment *s = j->map->segment;

    return j->device_heap ? s[SEGMENT_DEVICE].base : s[SEGMENT_SYSTEM].base + j->kernels_at;
}

static struct gshmem_device_sync *sync_block(const struct job *j, gshmem_team_t slot)
{
    const size_t at = slot < GSHMEM_DEVICE_SYNC_TEAMS
                          ? (size_t)slot * GSHMEM_DEVICE_SYNC_BYTES
                          : LATER_AT + (size_t)(slot - GSHMEM_DEVICE_SYNC_TEAMS) *
                                           GSHMEM_DEVICE_LATER_BYTES;

    return (struct gshmem_device_sync *)(sync_blocks(j) + at);
}

/* Bytes of the data of a round. */
static size_t sync_data(gshmem_team_t slot)
{
    const size_t block = slot < GSHMEM_DEVICE_SYNC_TEAMS ? GSHMEM_DEVICE_SYNC_BYTES
                                                         : GSHMEM_DEVICE_LATER_BYTES;

    return (block - sizeof(struct gshmem_device_sync)) / 2;
}

int kernels_find_sync(const struct job *j, const void *sync, uint64_t *in_block)
{
    const uintptr_t at = (uintptr_t)sync - sync_blocks(j);

    *in_block = at < LATER_AT ? at % GSHMEM_DEVICE_SYNC_BYTES
                              : (at - LATER_AT) % GSHMEM_DEVICE_LATER_BYTES;
    if (at < SCRATCH_AT)
        return (int)(at / GSHMEM_DEVICE_SYNC_BYTES);
    if (at < LATER_AT || at >= BLOCKS_END)
        return -1;
    return GSHMEM_DEVICE_SYNC_TEAMS + (int)((at - LATER_AT) / GSHMEM_DEVICE_LATER_BYTES);
}

int kernels_team_of_sync(const struct job *j, const void *sync)
{
    uint64_t in_block;

    return kernels_find_sync(j, sync, &in_block);
}

/* Behind all blocks; or both halves of what the team's own rounds use, which are one array. */
static void give_scratch(const struct job *j, gshmem_team_t slot, struct gshmem_device_team *view)
{
    if (slot < GSHMEM_DEVICE_SCRATCH_TEAMS) {
        view->scratch =
            (char *)sync_block(j, 0) + SCRATCH_AT + (size_t)slot * GSHMEM_DEVICE_SCRATCH_BYTES;
        view->scratch_bytes = GSHMEM_DEVICE_SCRATCH_BYTES;
    } else {
        view->scratch = (char *)(view->sync + 1);
        view->scratch_bytes = 2 * view->sync_data;
    }
}

/* ---- Views ---- */

static struct gshmem_segment segment(const struct kernels *k, uintptr_t base, size_t bytes,
                                     const uintptr_t *peer)
{
    return (struct gshmem_segment){base, bytes, k->mapped ? peer : k->nowhere};
}

/* This PE's own memory, as kernels see it. Kernels on a GPU do not see the program's variables. */
static struct gshmem_device_ctx own_memory(const struct job *j, const struct team *t)
{
    const struct kernels *k = j->kernels;
    const struct kernel_tables *tables = &t->kernel->tables;
    const struct segment *d = &j->map->segment[SEGMENT_DEVICE];
    const struct segment *system = &j->map->segment[SEGMENT_SYSTEM];
    const struct segment *heap = &j->map->segment[SEGMENT_HEAP];
    const struct segment *data = &j->map->segment[SEGMENT_DATA];

    if (j->device_heap)
        return (struct gshmem_device_ctx){
            .heap = segment(k, d->base + d->reserved, d->bytes - d->reserved, tables->heap),
            .data = {0, 0, k->nowhere},
            .system = segment(k, d->base, d->reserved, tables->system),
        };
    return (struct gshmem_device_ctx){
        .heap = segment(k, heap->base, heap->bytes, tables->heap),
        .data = segment(k, data->base, data->bytes, tables->data),
        .system = segment(k, system->base, system->bytes, tables->system),
    };
}

/* Whether some of the memory that kernels may access on the team's PEs is not mapped for them, or
 * is updated by NICs. This is not tested again when more is mapped later (kernels_show_domain):
 * fences are then commands without need. */
static bool is_proxied(const struct job *j, const struct team *t)
{
    const struct kernel_tables *tables = &t->kernel->tables;
    bool mapped = j->kernels->mapped && !j->node->layout.nic_bytes;

    for (int i = 0; i < t->n_pes && mapped; i++)
        mapped = j->device_heap ? j->map->segment[SEGMENT_DEVICE].loaded[t->members[i]] != 0
                                : tables->heap[i] && (tables->data[i] || !t->view.data.bytes);
    return !mapped;
}

struct gshmem_device_ctx kernels_view(const struct job *j, const struct team *t,
                                      const struct kernel_context *on)
{
    const struct kernels *k = j->kernels;
    struct gshmem_device_ctx view = own_memory(j, t);

    view.n_pes = t->n_pes;
    view.my_pe = t->my_pe;
    view.team = t->view.team;
    view.channels = (uint32_t)on->channels;
    view.channel = on->channel;
    view.host = on->host;
    view.proxied = is_proxied(j, t);
    view.world = t->kernel->tables.world;
    view.job = &k->device->job;
    return view;
}

/* In the device's memory, in one allocation; tables follow it, if it needs any of its own. */
struct team_of_device {
    struct gshmem_device_team team;
    struct gshmem_device_rounds rounds;
    uintptr_t table[];
};

int kernels_team_of_rounds(const struct gshmem_device_rounds *rounds)
{
    const char *d = (const char *)rounds - offsetof(struct team_of_device, rounds);

    return ((const struct team_of_device *)(const void *)d)->team.ctx.team;
}

/* CPU threads read the job's tables, and need one of their own for the system memory of some
 * PEs. */
static void make_tables_for_cpu(struct job *j, struct team *t, struct team_of_device *d)
{
    t->kernel->tables = (struct kernel_tables){t->view.heap.peer, t->view.data.peer,
                                               j->map->segment[SEGMENT_SYSTEM].mapped,
                                               t->members};
    if (!t->owns_tables)
        return;
    for (int i = 0; i < t->n_pes; i++)
        d->table[i] = map_mapped(j->map, SEGMENT_SYSTEM, t->members[i]);
    t->kernel->tables.system = d->table;
}

/* A GPU cannot read the job's tables. */
static bool make_tables_for_gpu(struct job *j, struct team *t, struct team_of_device *d)
{
    const struct segment *s = &j->map->segment[SEGMENT_DEVICE];
    size_t n = (size_t)t->n_pes, bytes = 3 * n * sizeof(uintptr_t);
    uintptr_t *table = calloc(3 * n, sizeof *table);
    int32_t *world = (int32_t *)(table + 2 * n);

    if (!table)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uintptr_t system = s->loaded[t->members[i]];
        table[i] = system ? system + s->reserved : 0;
        table[n + i] = system;
        world[i] = t->members[i];
    }
    t->kernel->tables = (struct kernel_tables){d->table, NULL, d->table + n,
                                               (const int32_t *)(d->table + 2 * n)};
    bool written = memory_tell(j->device, d->table, table, bytes) == GSHMEM_OK;
    free(table);
    return written;
}

static bool make_view(struct job *j, struct team *t)
{
    size_t n = j->device_heap ? 3 * (size_t)t->n_pes : t->owns_tables ? (size_t)t->n_pes : 0;

    struct kernel_team *made = t->kernel = calloc(1, sizeof *made);
    if (!made)
        return false;
    struct team_of_device *d = memory_of_device(j->device, sizeof *d + n * sizeof d->table[0]);
    made->device = j->device;
    made->failure = memory_shared(j->device, 2 * sizeof *made->failure);
    made->waiting = made->failure ? made->failure + 1 : NULL;
    made->view = d ? &d->team : NULL;
    if (!d || !made->failure)
        return false;
    made->rounds = &d->rounds;
    kernel_trace_enter(made->rounds, sizeof *made->rounds, TRACE_BLOCKS, "warps of a warpgroup");
    if (j->device_heap)
        return make_tables_for_gpu(j, t, d);
    make_tables_for_cpu(j, t, d);
    return true;
}

bool kernels_make_view(struct job *j, struct team *t)
{
    const bool made = t->kernel || make_view(j, t);

    if (!made)
        kernels_free_team(t);
    return made;
}

bool kernels_make_team(struct job *j, struct team *t)
{
    return !kernels_of(j) || kernels_make_view(j, t);
}

/* Clears the words that an earlier team left there; as with the host's blocks, its members are done
 * with them, and the members of this team synchronize before any of them sends a word. This PE may
 * have no kernels yet when the others' kernels send theirs. */
static void clear_words(struct job *j, gshmem_team_t slot)
{
    j->device->ops->fill(j->device, sync_block(j, slot), 0,
                         sizeof(struct gshmem_device_sync));
}

void kernels_install_team(struct job *j, struct team *t)
{
    if (t->id >= TEAM_FIRST_OWN)
        clear_words(j, t->id);
    if (!kernels_of(j))
        return;
    if (kernels_make_view(j, t)) /* now, where another thread has loaded the first kernels since
                                    kernels_make_team */
        kernels_show_team(j, t);
    else
        gshmem_raise(fail(GSHMEM_ERR_MEMORY,
                          "kernels: out of memory for team %d, which they do not find", t->id));
}

void kernels_show_team(struct job *j, struct team *t)
{
    struct kernels *k = j->kernels;

    for (int i = 0; i < t->n_pes; i++) {
        if (k->dead[t->members[i]])
            *t->kernel->failure = GSHMEM_ERR_PEER_DEAD;
    }
    /* what an earlier team has left there */
    atomic_store_explicit(&k->service->unsent[t->id], 0, memory_order_relaxed);
    struct gshmem_device_team view = {
        .ctx = kernels_view(j, t, k->context),
        .sync = sync_block(j, t->id),
        .sync_data = sync_data(t->id),
        .rounds = t->kernel->rounds,
        .failure = t->kernel->failure,
        .waiting = t->kernel->waiting,
        .multicast = multicast_base(t),
        .multicast_bytes = k->mapped ? multicast_bytes(t) : 0,
    };
    give_scratch(j, t->id, &view);
    memory_tell(j->device, t->kernel->view, &view, sizeof view);
    memory_tell_pointer(j->device, &k->device->team[t->id], (uintptr_t)t->kernel->view);
}

/* The address first: kernels read the length before they use it. */
void kernels_show_multicast(struct job *j, struct team *t)
{
    const uint64_t base = multicast_base(t), bytes = multicast_bytes(t);

    if (!kernels_of(j) || !j->kernels->mapped || !t->kernel)
        return;
    memory_tell(j->device, &t->kernel->view->multicast, &base, sizeof base);
    memory_tell(j->device, &t->kernel->view->multicast_bytes, &bytes, sizeof bytes);
}

/* Each entry of a table is stored by itself: kernels that read meanwhile use the old path or the
 * new one. */
gshmem_status_t kernels_show_domain(struct job *j)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!j->kernels)
        return GSHMEM_OK;
    pthread_mutex_lock(&j->lock);
    TEAM_FOR_ALL (j, i) {
        struct team *t = j->team[i];
        if (t->kernel && t->kernel->view &&
            !make_tables_for_gpu(j, t, (struct team_of_device *)(void *)t->kernel->view))
            status =
                fail(GSHMEM_ERR_MEMORY, "showing kernels the PEs of team %d: out of memory", i);
    }
    pthread_mutex_unlock(&j->lock);
    return status;
}

void kernels_hide_team(struct job *j, gshmem_team_t handle)
{
    if (kernels_of(j))
        memory_tell_pointer(j->device, &j->kernels->device->team[handle], 0);
}

void kernels_free_team(struct team *t)
{
    if (!t->kernel)
        return;
    kernel_trace_forget(t->kernel->rounds);
    memory_free_of_device(t->kernel->device, t->kernel->view);
    memory_free_shared(t->kernel->device, t->kernel->failure);
    free(t->kernel);
    t->kernel = NULL;
}

/* ---- Failure ---- */

static void fail_all(struct job *j, gshmem_status_t status)
{
    /* relaxed: no other data depends on it */
    gshmem_store_relaxed(&j->kernels->shared->failure, (uint64_t)status);
    TEAM_FOR_ALL (j, i) {
        if (j->team[i]->kernel)
            gshmem_store_relaxed(j->team[i]->kernel->failure, (uint64_t)status);
    }
}

static void mark_dead(struct job *j, int pe)
{
    struct kernels *k = j->kernels;

    k->dead[pe] = true;
    node_lose(j->node, pe); /* so that commands to that PE fail */
    gshmem_store_relaxed(&k->shared->failure, GSHMEM_ERR_PEER_DEAD);
    TEAM_FOR_ALL (j, i) {
        const struct team *t = j->team[i];
        for (int m = 0; t->kernel && m < t->n_pes; m++) {
            if (t->members[m] == pe)
                gshmem_store_relaxed(t->kernel->failure, GSHMEM_ERR_PEER_DEAD);
        }
    }
    log_error("kernels: PE %d has died or cannot be reached: their waits end", pe);
}

/* Collectives of a team fail here from the first word on that was not sent. The other members learn
 * of it when this PE leaves. */
static void fail_unsent(struct job *j)
{
    struct service *s = j->kernels->service;

    /* acquire: pairs with the release in note_unsent */
    if (!atomic_exchange_explicit(&s->any_unsent, false, memory_order_acquire))
        return;
    TEAM_FOR_ALL (j, i) {
        const gshmem_status_t status =
            (gshmem_status_t)atomic_exchange_explicit(&s->unsent[i], 0, memory_order_relaxed);
        const struct team *t = j->team[i];
        if (!status || !t->kernel || gshmem_load_relaxed(t->kernel->failure))
            continue;
        gshmem_store_relaxed(t->kernel->failure, (uint64_t)status);
        log_error("kernels: a collective of team %d has sent another PE nothing (%s): its "
                  "collectives fail in kernels of this PE",
                  i, gshmem_status_text(status));
    }
}

/* A few PEs of this node at a time, and all PEs of other nodes, which costs no system calls. */
static void look_for_dead(struct job *j)
{
    struct kernels *k = j->kernels;
    int n = j->node->n < LOOKS_AT_ONCE ? j->node->n : LOOKS_AT_ONCE, ignored;

    for (int i = 0; i < n; i++) {
        k->looked_at = (k->looked_at + 1) % j->node->n;
        int pe = j->node->pe[k->looked_at];
        if (k->dead[pe] || node_alive(j->node, k->looked_at))
            continue;
        if (node_exit_status(j->node, &ignored)) { /* it may have ended the job before it died */
            fail_all(j, GSHMEM_ERR_ABORTED);
            return;
        }
        mark_dead(j, pe);
    }
    for (int pe = 0; network_any_lost(j->network) && pe < j->n_pes; pe++) {
        if (!k->dead[pe] && network_lost(j->network, pe))
            mark_dead(j, pe);
    }
}

/* Whether a kernel of the team has waited in one round for a tenth of GSHMEM_PEER_TIMEOUT. Until
 * then it may wait for a PE that is late to send its word, although all have come, and the one that
 * has left had all of its own. */
static bool waits_in_vain(struct kernel_team *k, uint64_t now)
{
    const uint64_t round = gshmem_load_relaxed(k->waiting);
    const uint64_t limit = (uint64_t)settings_number(SETTING_PEER_TIMEOUT) * 100 * CLOCK_MS;

    if (round != k->waited)
        k->waited_looks = (struct clock_looks){0, 0};
    k->waited = round;
    return clock_looks_add(&k->waited_looks, now) >= limit && round;
}

/* Kernels that wait for a PE that has left fail and report it, unless what they wait for came
 * before. */
static void show_departed(struct job *j, uint64_t now)
{
    const unsigned char *way = j->kernels->left.way;

    TEAM_FOR_ALL (j, i) {
        const struct team *t = j->team[i];
        const bool fails = t->kernel && waits_in_vain(t->kernel, now);
        for (int m = 0; fails && m < t->n_pes && !*t->kernel->failure; m++) {
            const int pe = t->members[m];
            if (way[pe]) /* release: pairs with the acquire of the failure word in
                            gshmem_kernel_receive, which then polls once more: a word that this
                            PE has sent before it left is still seen */
                gshmem_store_release(
                    t->kernel->failure,
                    gshmem_failure_left(GSHMEM_ERR_PEER_DEAD, (uint32_t)pe, way[pe]));
        }
    }
}

static bool any_waits(const struct job *j)
{
    TEAM_FOR_ALL (j, i) {
        if (j->team[i]->kernel && gshmem_load_relaxed(j->team[i]->kernel->waiting))
            return true;
    }
    return false;
}

/* A request is posted without the lock, which threads hold while they wait for other PEs. */
static void look_for_departed(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    const bool waits = any_waits(j);
    pthread_mutex_unlock(&j->lock);
    const uint64_t now = clock_ns();
    j->kernels->any_left |= departures_watch_look(j, &j->kernels->left, waits, now);
    if (!j->kernels->any_left)
        return;
    pthread_mutex_lock(&j->lock);
    show_departed(j, now);
    pthread_mutex_unlock(&j->lock);
}

void kernels_look_after(struct job *j)
{
    struct kernels *k = j->kernels;
    int ignored;

    service_watch(k->service, shown_channel);
    if (k->shared->failure == GSHMEM_ERR_ABORTED)
        return;
    pthread_mutex_lock(&j->lock);
    if (node_exit_status(j->node, &ignored))
        fail_all(j, GSHMEM_ERR_ABORTED);
    else
        look_for_dead(j);
    fail_unsent(j);
    shown_teams(j);
    pthread_mutex_unlock(&j->lock);
    look_for_departed(j);
}

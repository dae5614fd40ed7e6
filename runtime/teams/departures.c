/* PEs that have left the job while other PEs still wait for them.
 *
 * 1. A PE that leaves takes part in a collective of its own, COLLECTIVE_FINALIZE, and serves the
 *    puts and gets of the others until they arrive, too.
 * 2. Its slots tell the PEs of its node that it has left, how, and at which rounds of their teams
 *    it has arrived.
 * 3. A PE of another node that waits finds the same in PE 0's table of PEs that have left, and then
 *    in the slots of these.
 *
 * Both sides send messages to PE 0 only when they have waited for a while, and only one PE of each
 * node does: a job that ends at once, or waits only briefly, sends nothing for this. */
#include "runtime/teams/departures.h"

#include <stdlib.h>

#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/node/threads.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/team.h"
#include "runtime/where/record.h"

enum {
    TELL_NS = 600 * 1000 * 1000, /* how long a PE that has left waits for the others before it
                                    notifies PE 0 */
    ASK_NS = 400 * 1000 * 1000,  /* how long other PEs wait before they read PE 0's table, and
                                    between two reads */
    HOSTS_ASKING = 32,           /* nodes by which both times grow once more, since all of them send
                                    to PE 0 */
    ALONE_NS = 2000 * 1000 * 1000, /* how long the last PE waits before that is reported */
};

static const char *const way_name[] = {
    [LEFT_BY_EXIT] = "by exit(0)",
    [LEFT_BY_RETURN] = "by a return from main",
    [LEFT_BY_END] = "by exit(0) or a return from main",
    [LEFT_BY_FINALIZE] = "by gshmem_finalize",
};

size_t departures_system_bytes(int n_pes)
{
    return (size_t)n_pes;
}

static uint64_t for_so_many_hosts(uint64_t ns)
{
    return ns * (1 + (uint64_t)job->bootstrap->n_hosts / HOSTS_ASKING);
}

/* PE 0's table, if PE 0 is on this node. */
static _Atomic unsigned char *table_here(const struct job *j)
{
    const uintptr_t system = map_mapped(j->map, SEGMENT_SYSTEM, 0);

    return system ? (_Atomic unsigned char *)(system + j->departures->table) : NULL;
}

static struct group *world(const struct job *j)
{
    return j->team[GSHMEM_TEAM_WORLD]->group;
}

gshmem_status_t departures_say(const char *call, int pe, enum departure_way way)
{
    const char *how = way > LEFT_NOT && way <= LEFT_BY_FINALIZE ? way_name[way] : "in good order";

    return fail(GSHMEM_ERR_PEER_DEAD,
                "%s: PE %d has left the job %s, and takes part in this call no more: PEs must "
                "make the same collective calls, and give back locks, before they leave",
                call, pe, how);
}

gshmem_status_t departures_fail(const char *call, int pe, enum departure_way way)
{
    gshmem_status_t status = departures_say(call, pe, way);

    if (error_ends_job())
        job_abort(1, last_error_text());
    return status;
}

/* A PE of this node that leaves has arrived at its last round; its slot says how, without a
 * message. */
enum departure_way departures_way(int pe, uint64_t noted)
{
    return (enum departure_way)(job->node->index_of[pe] < 0 ? (int)noted
                                                            : group_left(world(job), pe));
}

/* ---- On the side of a PE that leaves ---- */

void departures_begin(struct job *j, enum departure_way way)
{
    _Atomic unsigned char *table = table_here(j);

    j->departures->leaving = way;
    if (j->node->page)
        j->node->page->leaving = WHERE_LEAVES;
    if (table) /* relaxed: a PE that reads it reads the slots before it acts on it */
        atomic_store_explicit(&table[j->pe], (unsigned char)way, memory_order_relaxed);
}

gshmem_status_t departures_start(struct job *j)
{
    if (j->node->index_of[0] >= 0)
        return GSHMEM_OK;
    j->departures->notified = calloc((size_t)j->node->n, 1);
    return j->departures->notified ? GSHMEM_OK
                                   : fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
}

void departures_stop(struct job *j)
{
    free(j->departures->notified);
    j->departures->notified = NULL;
}

/* Notifies PE 0 for all PEs of this node that have left; the first of them does. If that fails, PE
 * 0 may have completed its own finalize, or has failed, which ends more. Without memory for it, the
 * next check tries again. */
static void departures_tell(struct job *j)
{
    static const unsigned char way_byte[] = {0, 1, 2, 3, 4};
    const struct node *node = j->node;
    struct departures *d = j->departures;

    if (!d->notified)
        return;
    for (int i = 0; i < node->index; i++) {
        if (group_left(world(j), node->pe[i]))
            return;
    }
    for (int i = node->index; i < node->n; i++) {
        int way = i == node->index ? d->leaving : group_left(world(j), node->pe[i]);
        struct transport_request put = {.kind = TRANSPORT_PUT,
                                        .pe = 0,
                                        .segment = SEGMENT_SYSTEM,
                                        .offset = d->table + (size_t)node->pe[i],
                                        .local = (void *)(uintptr_t)&way_byte[way],
                                        .bytes = 1};
        if (!way || d->notified[i])
            continue;
        d->notified[i] =
            network_remark(j->network, &put, "gshmem_finalize") != GSHMEM_ERR_MEMORY;
    }
}

/* ---- On the side of a PE that waits ---- */

/* Without a line where it fails: a wait asks again and again. */
static gshmem_status_t departures_fetch(struct job *j, int pe, size_t offset, void *to,
                                        size_t bytes, const char *call)
{
    struct transport_request get = {
        .pe = pe, .segment = SEGMENT_SYSTEM, .offset = offset, .bytes = bytes};
    gshmem_status_t status;

    this_thread.unheeded = true;
    status = network_fetch(j->network, &get, to, call);
    this_thread.unheeded = false;
    return status;
}

/* Whether to ask about PEs of other nodes: after a while, and not too often. */
static bool is_due(const struct wait *w, uint64_t now)
{
    const uint64_t pause = for_so_many_hosts(ASK_NS);

    if (!network_is_needed(job->network) || now - w->since < pause ||
        now - this_thread.asked < pause)
        return false;
    this_thread.asked = now;
    return true;
}

/* PE 0's table; NULL: there is nothing in it, or PE 0 cannot be reached. The caller frees it. */
static unsigned char *departures_ask(struct job *j, const char *call)
{
    _Atomic unsigned char *here = table_here(j);
    unsigned char *table = malloc((size_t)j->n_pes);

    if (!table)
        return NULL;
    for (int pe = 0; here && pe < j->n_pes; pe++)
        table[pe] = atomic_load_explicit(&here[pe], memory_order_relaxed);
    if (here ||
        departures_fetch(j, 0, j->departures->table, table, (size_t)j->n_pes, call) == GSHMEM_OK)
        return table;
    free(table);
    return NULL;
}

/* Whether a PE of another node has left without notifying PE 0. A PE whose gshmem_finalize fails
 * does not notify PE 0, and may say goodbye before other PEs learn of the failure. It does not
 * count as lost then, but each get from it fails. */
static bool departures_has_gone(struct job *j, int pe, const char *call)
{
    unsigned char byte;

    return departures_fetch(j, pe, j->departures->table, &byte, sizeof byte, call) ==
               GSHMEM_ERR_PEER_DEAD &&
           !network_lost(j->network, pe);
}

/* Whether another PE of this node waits in the same round, and asks for both. */
static bool other_asks(const struct group *g)
{
    for (int i = 0; i < g->my; i++) {
        if (job->node->index_of[g->pe[i]] >= 0 && group_has_come(g, i))
            return true;
    }
    return false;
}

/* Members on other nodes, by words of theirs. */
static gshmem_status_t check_away(const struct wait *w, const struct group *g)
{
    const int awaited = group_awaited(g);
    unsigned char *table = other_asks(g) ? NULL : departures_ask(job, w->what);
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; table && i < g->n && !status; i++) {
        int pe = g->pe[i];
        uint64_t word;
        if (table[pe] && job->node->index_of[pe] < 0 && (awaited < 0 || i == awaited) &&
            departures_fetch(job, pe, group_word_offset(g), &word, sizeof word, w->what) ==
                GSHMEM_OK &&
            group_cannot_come(g, word))
            status = departures_fail(w->what, pe, (enum departure_way)table[pe]);
    }
    free(table);
    return status;
}

/* The PE of another node that is waited for: the root of a rooted round, or the leader whose word
 * this leader waits for; -1: none, or what it has sent is here. */
static int awaited_away(const struct group *g)
{
    const int root = group_awaited(g);

    if (root < 0)
        return internode_awaited(g);
    return job->node->index_of[g->pe[root]] >= 0 || rooted_has_come(g, root) ? -1 : g->pe[root];
}

/* Asks that PE. A get that fails makes it count as lost, and the wait fails at its next look at its
 * peers. Its message may have arrived before it left. */
static gshmem_status_t check_awaited(const struct wait *w, const struct group *g)
{
    const int pe = awaited_away(g);

    if (pe < 0 || !departures_has_gone(job, pe, w->what) || awaited_away(g) != pe)
        return GSHMEM_OK;
    return departures_fail(w->what, pe, LEFT_BY_FINALIZE);
}

/* Whether a member on this node, which has left the job, will never arrive at the round that is in
 * progress. In a rooted one it is not waited for, unless it is the root and has not given. */
static bool never_comes(const struct group *g, int i)
{
    const int awaited = group_awaited(g);

    return awaited < 0 ? group_cannot_come(g, group_word(g, i))
                       : i == awaited && !rooted_has_come(g, i);
}

/* Members on this node, in a round that is in progress. */
static gshmem_status_t check_here(const struct wait *w, const struct group *g)
{
    for (int i = 0; i < g->n; i++) {
        if (job->node->index_of[g->pe[i]] < 0)
            continue;
        int way = group_left(world(job), g->pe[i]);
        if (way && never_comes(g, i))
            return departures_fail(w->what, g->pe[i], (enum departure_way)way);
    }
    return GSHMEM_OK;
}

/* Where no round is in progress all members have arrived at the latest. */
static gshmem_status_t check_team(const struct wait *w, uint64_t now)
{
    const struct group *g = job->team[w->team]->group;
    gshmem_status_t status = GSHMEM_OK;

    if (group_under_way(g))
        status = check_here(w, g);
    else if (g->internode && group_under_way(internode_neighbours(g)))
        return check_here(w, internode_neighbours(g));
    else
        return GSHMEM_OK;
    if (status || !g->internode || !is_due(w, now))
        return status;
    /* In a rooted round nobody of a node knows who else waits: they ask one after another. */
    if (group_awaited(g) >= 0 &&
        now - w->since < ASK_NS * (1 + (uint64_t)internode_neighbours(g)->my))
        return GSHMEM_OK;
    if (!internode_ends(g))
        status = check_away(w, g);
    return status ? status : check_awaited(w, g);
}

/* How a PE of another node has left: as PE 0's table says (NULL: there is none), or else as a get
 * from that PE shows. */
static int departures_way_of(const unsigned char *table, int pe, const char *call)
{
    if (table && (table[pe] || !network_any_lost(job->network)))
        return table[pe];
    return departures_has_gone(job, pe, call) ? LEFT_BY_FINALIZE : LEFT_NOT;
}

static int departures_ask_of(int pe, const char *call)
{
    unsigned char *table = departures_ask(job, call);
    int way = departures_way_of(table, pe, call);

    free(table);
    return way;
}

static gshmem_status_t departures_check_one(const struct wait *w, uint64_t now)
{
    int way = LEFT_NOT;

    if (job->node->index_of[w->only] >= 0) {
        way = group_left(world(job), w->only);
    } else if (is_due(w, now)) {
        way = departures_ask_of(w->only, w->what);
    }
    if (!way)
        return GSHMEM_OK;
    this_thread.left = w->only;
    this_thread.left_by = way;
    return fail_silently(GSHMEM_ERR_PEER_DEAD, "%s: PE %d has left the job", w->what, w->only);
}

/* Whether all other PEs are known to have left; PEs of other nodes are asked about at intervals. */
static bool all_have_left(const struct wait *w, uint64_t now)
{
    const struct node *node = job->node;
    unsigned char *table;
    bool all = true;

    for (int i = 0; i < node->n; i++) {
        if (i != node->index && !group_left(world(job), node->pe[i]))
            return false;
    }
    if (node->n == job->n_pes)
        return true;
    if (!is_due(w, now))
        return false;
    table = departures_ask(job, w->what);
    for (int pe = 0; all && pe < job->n_pes; pe++)
        all = node->index_of[pe] >= 0 || departures_way_of(table, pe, w->what);
    free(table);
    return all;
}

/* Everything that PEs have sent is complete before they leave. Only this PE's other threads, and
 * its kernels, could still make the update. */
static gshmem_status_t check_update(const struct wait *w, uint64_t now)
{
    if (now - w->since < ASK_NS || now - this_thread.looked < ASK_NS || !all_have_left(w, now))
        return GSHMEM_OK;
    this_thread.looked = now;
    /* A GPU may be running work of the program's of which this library knows nothing. */
    if (job->n_pes > 1 && !job->kernels && !job->device->ops->own_heap &&
        threads_of_program() == 0) {
        this_thread.left = WAIT_FOR_UPDATE;
        this_thread.left_by = LEFT_BY_END;
        return fail_silently(GSHMEM_ERR_PEER_DEAD, "%s: all other PEs have left the job", w->what);
    }
    if (now - w->since >= ALONE_NS && !atomic_exchange(&job->departures->said_alone, true))
        log_warn("%s: %s: only another thread, a kernel or a signal's handler of this PE can end "
                 "this wait",
                 w->what,
                 job->n_pes > 1 ? "all other PEs have left the job" : "this PE is the only one");
    return GSHMEM_OK;
}

gshmem_status_t departures_fail_alone(const char *call, gshmem_status_t status, const char *what)
{
    if (status != GSHMEM_ERR_PEER_DEAD || this_thread.left != WAIT_FOR_UPDATE ||
        this_thread.left_by == LEFT_NOT)
        return status;
    this_thread.left_by = LEFT_NOT;
    fail(GSHMEM_ERR_PEER_DEAD,
         "%s: all other PEs have left the job, and nobody is left who could change %s", call, what);
    if (error_ends_job())
        job_abort(1, last_error_text());
    return GSHMEM_ERR_PEER_DEAD;
}

gshmem_status_t departures_fail_found(const char *call, gshmem_status_t status, int pe)
{
    if (status != GSHMEM_ERR_PEER_DEAD || this_thread.left != pe || this_thread.left_by == LEFT_NOT)
        return status;
    enum departure_way way = (enum departure_way)this_thread.left_by;
    this_thread.left_by = LEFT_NOT;
    return departures_fail(call, pe, way);
}

gshmem_status_t departures_check(const struct wait *w, uint64_t now)
{
    if (!job->team[GSHMEM_TEAM_WORLD] || w->team < 0 || w->team >= TEAM_MAX || !job->team[w->team])
        return GSHMEM_OK;
    if (job->departures->leaving) {
        if (network_is_needed(job->network) && now - w->since >= for_so_many_hosts(TELL_NS))
            departures_tell(job);
        return w->team == GSHMEM_TEAM_WORLD && world(job)->internode && is_due(w, now)
                   ? check_awaited(w, world(job))
                   : GSHMEM_OK;
    }
    if (w->only == WAIT_FOR_UPDATE)
        return check_update(w, now);
    return w->only >= 0 ? departures_check_one(w, now) : check_team(w, now);
}

/* ---- Without a wait: for kernels' collectives ---- */

bool departures_watch_begin(struct departures_watch *w, int n_pes)
{
    *w = (struct departures_watch){.way = calloc(2, (size_t)n_pes), .pending.internal = true};
    w->table = w->way ? w->way + n_pes : NULL;
    return w->way;
}

void departures_watch_end(struct departures_watch *w)
{
    free(w->way);
    w->way = NULL;
}

static bool departures_note(struct departures_watch *w, int pe, int way)
{
    bool news = way && !w->way[pe];

    if (news)
        w->way[pe] = (unsigned char)way;
    return news;
}

/* The result of an earlier request has arrived, or is there anyway. A request that failed has
 * brought nothing. */
static bool note_table(struct job *j, struct departures_watch *w)
{
    const _Atomic unsigned char *here = table_here(j);
    bool news = false;

    if (!here && (pending_any(&w->pending) || !w->asked))
        return false;
    for (int pe = 0; pe < j->n_pes; pe++) {
        if (j->node->index_of[pe] < 0)
            news |= departures_note(
                w, pe, here ? atomic_load_explicit(&here[pe], memory_order_acquire) : w->table[pe]);
    }
    return news;
}

static void ask_for_table(struct job *j, struct departures_watch *w)
{
    struct transport_request get = {.kind = TRANSPORT_GET,
                                    .pe = 0,
                                    .segment = SEGMENT_SYSTEM,
                                    .offset = j->departures->table,
                                    .local = w->table,
                                    .bytes = (size_t)j->n_pes};

    network_post(j->network, &w->pending, &get, "a collective in a kernel");
}

bool departures_watch_look(struct job *j, struct departures_watch *w, bool asks, uint64_t now)
{
    bool news = false;

    if (!w->way || j->departures->leaving || !j->team[GSHMEM_TEAM_WORLD])
        return false;
    for (int i = 0; i < j->node->n; i++) {
        if (i != j->node->index)
            news |= departures_note(w, j->node->pe[i], group_left(world(j), j->node->pe[i]));
    }
    if (!network_is_needed(j->network))
        return news;
    news |= note_table(j, w);
    if (asks && !table_here(j) && now - w->asked >= ASK_NS && !pending_any(&w->pending)) {
        w->asked = now;
        ask_for_table(j, w);
    }
    return news;
}

#include "runtime/collectives/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/job.h"
#include "runtime/wait.h"

/* What leaders may hear in place of a signature, and is none (see signature_make): that there are two
 * different ones; that the sender's group is broken for good, and, above these bits, why. */
enum { MIXED = 2, BROKEN = 4, BROKEN_BITS = 3 };

struct far {
    struct group *local;      /* the members on this host */
    int *local_pe;            /* [local->n]: PEs of the job */
    int hosts;
    int my_host;              /* among them, in the order of their first members */
    int *leader;              /* [hosts]: the member that speaks for it */
    bool *away;               /* [n] */
    int n_away;
    struct team_sync *copies; /* [n_away]: where notes from other hosts are put */
    struct pending pending;
};

bool far_is_away(const struct group *g, int i)
{
    return g->far && g->far->away[i];
}

/* ---- Making ---- */

static int host_of(const struct job *j, int pe)
{
    return j->bootstrap->host[pe];
}

/* Leaders in the order of the members, and the members on this host. */
static void sort_members(struct far *f, const struct group *g, const struct job *j)
{
    int n_local = 0;

    for (int i = 0; i < g->n; i++) {
        int h = 0;
        while (h < f->hosts && host_of(j, g->pe[f->leader[h]]) != host_of(j, g->pe[i]))
            h++;
        if (h == f->hosts)
            f->leader[f->hosts++] = i;
        f->away[i] = j->host.index_of[g->pe[i]] < 0;
        f->n_away += f->away[i];
        if (!f->away[i]) {
            f->my_host = h;
            f->local_pe[n_local++] = g->pe[i];
        }
    }
}

static int my_place(const struct far *f, const struct job *j, int n)
{
    for (int i = 0; i < n; i++) {
        if (f->local_pe[i] == j->pe)
            return i;
    }
    return -1;
}

bool far_prepare(struct group *g, const struct job *j)
{
    bool far = false;

    for (int i = 0; i < g->n && !far; i++)
        far = j->host.index_of[g->pe[i]] < 0;
    if (!far)
        return true;

    struct far *f = g->far = calloc(1, sizeof *f);
    if (!f)
        return false;
    f->leader = malloc((size_t)g->n * sizeof *f->leader);
    f->local_pe = malloc((size_t)g->n * sizeof *f->local_pe);
    f->away = calloc((size_t)g->n, sizeof *f->away);
    if (!f->leader || !f->local_pe || !f->away)
        return false;
    sort_members(f, g, j);
    int n_local = g->n - f->n_away;
    f->local = group_create(n_local, my_place(f, j, n_local), f->local_pe,
                            j->host.crowded ? j->host.cpus : 0);
    f->copies = calloc((size_t)f->n_away, sizeof *f->copies);
    g->meet = meet_far;
    return f->local && f->copies;
}

void far_free(struct far *f)
{
    if (!f)
        return;
    group_destroy(f->local);
    free(f->leader);
    free(f->local_pe);
    free(f->away);
    free(f->copies);
    free(f);
}

/* The inner group's blocks lie behind those of all teams. */
void far_install(struct group *g, const struct job *j, int slot)
{
    struct far *f = g->far;
    int copy = 0;

    for (int i = 0; i < g->n; i++) {
        if (f->away[i])
            g->sync[i] = &f->copies[copy++];
    }
    for (int i = 0; i < f->local->n; i++)
        f->local->sync[i] =
            (struct team_sync *)j->system_peer[f->local_pe[i]] + TEAM_MAX + slot;
    f->local->team = slot;
}

/* ---- Between hosts ---- */

static uint64_t block_offset(const struct group *g, size_t within)
{
    return (uint64_t)g->team * sizeof(struct team_sync) + within;
}

static gshmem_status_t tell(struct group *g, int leader, int step, uint64_t word, const char *call)
{
    size_t parity = word >> 32 & 1; /* of the round */
    uint64_t offset =
        block_offset(g, offsetof(struct team_sync, step) +
                            (size_t)step * sizeof g->sync[0]->step[0] + parity * 8);
    struct transport_request signal = {
        .kind = TRANSPORT_PUT,
        .pe = g->pe[leader],
        .segment = SEGMENT_SYSTEM,
        .offset = offset,
        .signal_op = GSHMEM_SIGNAL_SET,
        .signal_segment = SEGMENT_SYSTEM,
        .signal_offset = offset,
        .signal_value = word,
    };

    return network_post(job->network, &g->far->pending, &signal, call);
}

static bool is_broken(uint64_t word)
{
    return ((uint32_t)word & ((1u << BROKEN_BITS) - 1)) == BROKEN;
}

/* For good: no member of this host comes to another round. All leaders that would wait for this one
 * hear of it whatever they wait for, and tell the others in turn: some may have nothing to do with
 * who was lost. */
static gshmem_status_t break_off(struct group *g, gshmem_status_t status, const char *call)
{
    struct far *f = g->far;
    uint32_t word = (uint32_t)status << BROKEN_BITS | BROKEN;
    char why[256];

    snprintf(why, sizeof why, "%s", last_error_text());
    g->broken = status;
    for (int step = 0, distance = 1; f->local->my == 0 && distance < f->hosts; step++, distance *= 2) {
        int to = f->leader[(f->my_host + distance) % f->hosts];
        for (uint64_t parity = 0; parity < 2 && !network_lost(job->network, g->pe[to]); parity++)
            tell(g, to, step, parity << 32 | word, call); /* who cannot be told has gone itself */
    }
    return fail_silently(status, "%s", why);
}

/* Dissemination as in group.c, among leaders; the words arrive as signals. */
static gshmem_status_t meet_leaders(struct group *g, uint32_t *heard, const char *call)
{
    struct far *f = g->far;
    unsigned int parity = g->round & 1;
    gshmem_status_t status;
    struct wait w;

    wait_begin(&w, call, g->team);
    for (int step = 0, distance = 1; distance < f->hosts; step++, distance *= 2) {
        int to = f->leader[(f->my_host + distance) % f->hosts];
        _Atomic uint64_t *from = &g->sync[g->my]->step[step].word[parity];
        uint64_t word;

        if ((status = tell(g, to, step, (uint64_t)g->round << 32 | *heard, call)))
            return status;
        /* acquire: pairs with the release by which the transport stores a signal */
        while ((word = atomic_load_explicit(from, memory_order_acquire)) >> 32 != g->round &&
               !is_broken(word)) {
            if ((status = wait_step(&w)))
                return status;
        }
        if (is_broken(word))
            return fail((gshmem_status_t)((uint32_t)word >> BROKEN_BITS),
                        "%s on team %d: PE %d, on another host, cannot reach all of its members", call,
                        g->team, g->pe[f->leader[(f->my_host + f->hosts - distance) % f->hosts]]);
        if ((uint32_t)word != *heard)
            *heard = MIXED;
    }
    return GSHMEM_OK;
}

/* Copies of the notes of members on other hosts, `bytes` of their data. */
static gshmem_status_t fetch_notes(struct group *g, size_t bytes, const char *call)
{
    size_t at = offsetof(struct team_sync, note) + (g->round & 1) * sizeof(struct note);
    struct far *f = g->far;
    gshmem_status_t status = GSHMEM_OK, waited;

    for (int i = 0; i < g->n && !status; i++) {
        struct transport_request get = {
            .kind = TRANSPORT_GET,
            .flags = TRANSPORT_MORE,
            .pe = g->pe[i],
            .segment = SEGMENT_SYSTEM,
            .offset = block_offset(g, at),
            .local = &g->sync[i]->note[g->round & 1],
            .bytes = offsetof(struct note, data) + bytes,
        };
        if (f->away[i])
            status = network_post(job->network, &f->pending, &get, call);
    }
    waited = network_quiet(&f->pending, call);
    return status ? status : waited;
}

/* How much of a note this round's readers will want. */
static size_t bytes_wanted(struct group *g, uint32_t signature)
{
    size_t brought = g->brought;

    g->brought = NOTE_BYTES;
    switch ((enum collective)(signature >> 1 & 15)) {
    case COLLECTIVE_SYNC:
    case COLLECTIVE_DESTROY:
    case COLLECTIVE_REFUSED:
        return SIZE_MAX; /* not even who wrote it */
    default:
        return brought;
    }
}

/* ---- One round ---- */

/* All neighbours have arrived: their leader asks the other hosts, and passes the answer on. */
static gshmem_status_t ask_others(struct group *g, uint32_t *heard, const char *call)
{
    struct group *local = g->far->local;
    gshmem_status_t status = GSHMEM_OK, met;

    if (local->my == 0) {
        status = meet_leaders(g, heard, call);
        group_note(local)->value = (uint64_t)status << 32 | *heard;
    }
    if ((met = group_meet(local, signature_make(COLLECTIVE_SYNC, 0), call)))
        return met;
    uint64_t answer = group_read(local, 0)->value;
    *heard = (uint32_t)answer;
    if (answer >> 32 && !status)
        status = fail_silently((gshmem_status_t)(answer >> 32),
                               "%s on team %d: PE %d could not meet the other hosts", call, g->team,
                               local->pe[0]);
    return status;
}

gshmem_status_t meet_far(struct group *g, uint32_t signature, const char *call)
{
    size_t wanted = bytes_wanted(g, signature);
    uint32_t heard = signature;
    gshmem_status_t status, local;

    /* release: a member on another host that fetches this note does so after it was told, in the end
     * by this store's host, that this PE has arrived */
    atomic_store_explicit(&g->sync[g->my]->note[g->round & 1].word,
                          (uint64_t)g->round << 32 | signature, memory_order_release);
    local = group_meet(g->far->local, signature, call);
    if (local && local != GSHMEM_ERR_MISMATCH)
        return break_off(g, local, call);
    if (local)
        heard = MIXED;
    if ((status = ask_others(g, &heard, call)))
        return break_off(g, status, call);
    if (local)
        return local; /* and has been explained */
    if (heard != signature)
        wanted = 0;
    if (wanted != SIZE_MAX && (status = fetch_notes(g, wanted, call)))
        return break_off(g, status, call);
    return heard == signature ? GSHMEM_OK : group_explain_mismatch(g, signature, call);
}

/* When all have met once more, all that they wanted from each other's blocks has been fetched. The
 * words that this member told are heard by then, but not yet answered for; the group is theirs. */
gshmem_status_t far_farewell(struct group *g, const char *call)
{
    gshmem_status_t status = group_meet(g, signature_make(COLLECTIVE_SYNC, 0), call);

    if (!status)
        status = network_quiet(&g->far->pending, call);
    return status ? status : group_farewell(g->far->local, call);
}

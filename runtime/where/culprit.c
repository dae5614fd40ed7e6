/* Which PE blocks a job: follows which PE waits for which.
 *
 * 1. A wait names the PEs that it is for, except a wait for a variable, which any PE may change.
 *    For answers of the network a PE needs to be in no call: such a wait leads nowhere while the PE
 *    lives.
 * 2. A PE that is waited for and does not wait itself is the culprit: it has died, is stopped, or
 *    is elsewhere in its program.
 * 3. Where each PE that is waited for waits as well, they wait for each other: a cycle. A PE whose
 *    other threads wait, and not the main one, is in a cycle only if none of its threads runs.
 * 4. Where there are only waits for variables, PEs outside of calls may be meant; if there are
 *    none, nobody is left who could end the waits. A variable that is not symmetric nobody else can
 *    update. */
#include <stdlib.h>

#include "runtime/where/where.h"

/* A member has arrived if it waits in a collective of the same team, and not in an earlier round:
 * a kernel's record outlives its wait, in a PE that is stopped for as long as that lasts. */
static bool has_arrived(const struct where_pe *p, const struct where_wait *w)
{
    for (int i = 0; i < p->n_waits; i++) {
        const struct where_wait *own = &p->waits[i];
        if (own->kind == WHERE_COLLECTIVE && own->team == w->team &&
            (!own->round || !w->round || own->round >= w->round))
            return true;
    }
    return false;
}

int where_next_peer(const struct where_job *job, const struct where_wait *w, int *at)
{
    while (*at < w->peers) {
        const int pe = where_peer(w, (*at)++);
        if (pe < 0 || pe >= job->n_pes) {
            if (*at > WHERE_PEERS) /* beyond the list they go on in one direction */
                *at = w->peers;
            continue;
        }
        if (w->kind != WHERE_COLLECTIVE || !has_arrived(&job->pe[pe], w))
            return pe;
    }
    return -1;
}

static bool is_of_network(const struct where_wait *w)
{
    return w->kind == WHERE_NETWORK || w->kind == WHERE_ROOM;
}

/* The next PE because of which this wait goes on, from number *at on; -1: no more. */
static int culprit_next_peer(const struct where_job *job, const struct where_wait *w, int *at)
{
    int pe;

    if (w->kind == WHERE_VARIABLE || w->kind == WHERE_THREAD || w->kind == WHERE_UNKNOWN)
        return -1;
    while ((pe = where_next_peer(job, w, at)) >= 0) {
        const enum where_state state = job->pe[pe].state;
        if (!is_of_network(w) || (state != STATE_WAITS && state != STATE_OUTSIDE))
            return pe;
    }
    return -1;
}

const struct where_wait *culprit_wait_for(const struct where_job *job, int pe, int other)
{
    const struct where_pe *p = &job->pe[pe];

    for (int i = 0; i < p->n_waits; i++) {
        int at = 0, peer;
        while ((peer = culprit_next_peer(job, &p->waits[i], &at)) >= 0) {
            if (peer == other)
                return &p->waits[i];
        }
    }
    return NULL;
}

/* Whether one of its threads is in a wait at least. */
static bool is_in_wait(const struct where_pe *p)
{
    return p->state == STATE_WAITS || (p->state == STATE_OUTSIDE && p->n_waits);
}

struct search {
    const struct where_job *job;
    bool threads; /* waits of PEs whose main thread does not wait count as well */
    char *mark; /* [pe]: 0 not visited, 1 on the path, 2 done */
    int *path;  /* PEs on the path from the first */
    int depth;
    int *cycle; /* the first cycle that was found */
    int n_cycle;
    char *reached; /* [pe]: waited for, directly or through others */
};

/* Depth first, without recursion: a job may have many thousands of PEs. */
struct step {
    int pe, wait, at;
};

static void note_cycle(struct search *s, int to)
{
    int first = s->depth - 1;

    if (s->n_cycle)
        return;
    while (first > 0 && s->path[first] != to)
        first--;
    for (int i = first; i < s->depth; i++)
        s->cycle[s->n_cycle++] = s->path[i];
}

/* The next PE that the PE of this step waits for; -1: no more. */
static int culprit_advance(const struct search *s, struct step *step)
{
    const struct where_pe *p = &s->job->pe[step->pe];

    const bool waits = p->state == STATE_WAITS || (s->threads && is_in_wait(p));

    while (waits && step->wait < p->n_waits) {
        int pe = culprit_next_peer(s->job, &p->waits[step->wait], &step->at);
        if (pe >= 0)
            return pe;
        step->wait++;
        step->at = 0;
    }
    return -1;
}

static void follow(struct search *s, struct step *stack, int from)
{
    stack[0] = (struct step){from, 0, 0};
    s->depth = 1;
    s->path[0] = from;
    s->mark[from] = 1;
    while (s->depth) {
        struct step *top = &stack[s->depth - 1];
        const int pe = culprit_advance(s, top);
        if (pe < 0) {
            s->mark[top->pe] = 2;
            s->depth--;
            continue;
        }
        s->reached[pe] = 1;
        if (s->mark[pe] == 1)
            note_cycle(s, pe);
        if (s->mark[pe])
            continue;
        s->mark[pe] = 1;
        s->path[s->depth] = pe;
        stack[s->depth++] = (struct step){pe, 0, 0};
    }
}

static bool waits_for_variable(const struct where_pe *p)
{
    for (int i = 0; i < p->n_waits; i++) {
        if (p->waits[i].kind == WHERE_VARIABLE)
            return true;
    }
    return false;
}

static bool culprit_is(const struct search *s, int pe, enum where_state state, bool reached)
{
    return s->job->pe[pe].state == state && (!reached || s->reached[pe]);
}

bool culprit_has_free_thread(const struct where_pe *p, bool runs)
{
    for (uint32_t i = 0; p->stacks && i < p->stacks->threads; i++) {
        const struct where_thread *t = &p->stacks->thread[i];
        int wait = 0;
        while (wait < p->n_waits && where_thread_of(&p->waits[wait]) != t->tid)
            wait++;
        if (wait == p->n_waits && (!runs || t->state == 'R'))
            return true;
    }
    return false;
}

static bool culprit_runs(const struct where_pe *p)
{
    return culprit_has_free_thread(p, true);
}

static bool is_idle(const struct where_pe *p)
{
    return p->n_waits == 0;
}

/* Takes PEs outside of calls that are waited for, and of which that holds; NULL: all. */
static bool take_outside(const struct search *s, bool (*holds)(const struct where_pe *),
                         struct culprit *out)
{
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        if (culprit_is(s, pe, STATE_OUTSIDE, true) && (!holds || holds(&s->job->pe[pe])))
            out->pe[out->n++] = pe;
    }
    out->kind = CULPRIT_STATE;
    out->state = STATE_OUTSIDE;
    return out->n > 0;
}

/* Takes all PEs of that state, of those that are waited for or of all; false: there are none. */
static bool take_state(const struct search *s, enum where_state state, bool reached,
                       struct culprit *out)
{
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        if (culprit_is(s, pe, state, reached))
            out->pe[out->n++] = pe;
    }
    out->kind = CULPRIT_STATE;
    out->state = state;
    return out->n > 0;
}

/* threads: whether PEs may be in it that are outside of calls. */
static bool take_cycle(const struct search *s, bool threads, struct culprit *out)
{
    bool any = false;

    for (int i = 0; i < s->n_cycle; i++)
        any = any || s->job->pe[s->cycle[i]].state == STATE_OUTSIDE;
    if (any && !threads)
        return false;
    out->n = s->n_cycle;
    for (int i = 0; i < s->n_cycle; i++)
        out->pe[i] = s->cycle[i];
    out->kind = CULPRIT_CYCLE;
    return out->n > 0;
}

/* Whether the oldest wait is for a variable of the PE's own, which another of its threads may
 * update at best. */
static bool waits_for_own(const struct where_pe *p)
{
    return p->state == STATE_WAITS && p->waits[0].kind == WHERE_VARIABLE && p->waits[0].at &&
           p->waits[0].segment < 0;
}

static bool take_own(const struct search *s, struct culprit *out)
{
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes && !out->n; pe++) {
        if (waits_for_own(&s->job->pe[pe]))
            out->pe[out->n++] = pe;
    }
    out->kind = CULPRIT_OWN;
    return out->n > 0;
}

static bool take_variables(const struct search *s, struct culprit *out)
{
    int first = 0;

    while (first < s->job->n_pes &&
           !(is_in_wait(&s->job->pe[first]) && waits_for_variable(&s->job->pe[first])))
        first++;
    if (first == s->job->n_pes)
        return false;
    out->waiter = first;
    if (take_state(s, STATE_OUTSIDE, false, out) || take_state(s, STATE_ABSENT, false, out)) {
        out->kind = CULPRIT_MAYBE;
        return true;
    }
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        if (s->job->pe[pe].state == STATE_WAITS && waits_for_variable(&s->job->pe[pe]))
            out->pe[out->n++] = pe;
    }
    out->kind = CULPRIT_VARIABLE;
    return true;
}

/* PEs that wait for something of their own, as for another of their threads, or for the network:
 * those that are waited for, or all. */
static bool take_inner_waits(const struct search *s, bool reached, struct culprit *out)
{
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        const struct where_pe *p = &s->job->pe[pe];
        struct step step = {pe, 0, 0};
        if (culprit_is(s, pe, STATE_WAITS, reached) && !waits_for_variable(p) &&
            culprit_advance(s, &step) < 0 &&
            (reached || is_of_network(&p->waits[0]) || p->waits[0].kind == WHERE_THREAD))
            out->pe[out->n++] = pe;
    }
    out->kind = reached ? CULPRIT_STATE : CULPRIT_INNER;
    out->state = STATE_WAITS;
    return out->n > 0;
}

static void culprit_decide(const struct search *s, struct culprit *out)
{
    /* What has happened to a PE explains more than who waits for whom, whoever waits for it. */
    if (take_state(s, STATE_DIED, false, out) || take_state(s, STATE_FAILED, false, out) ||
        take_state(s, STATE_STOPPED, false, out) || take_state(s, STATE_SILENT, true, out) ||
        take_state(s, STATE_LEFT, true, out) || take_cycle(s, false, out) ||
        take_state(s, STATE_ABSENT, true, out) || take_outside(s, is_idle, out) ||
        take_outside(s, culprit_runs, out) || take_cycle(s, true, out) ||
        take_outside(s, NULL, out) || take_inner_waits(s, true, out) || take_own(s, out) ||
        take_inner_waits(s, false, out) || take_variables(s, out) ||
        take_state(s, STATE_SILENT, false, out))
        return;
    out->kind = CULPRIT_NONE;
    out->n = 0;
}

/* From each PE that has not been visited. The cycle that an earlier search has found stays. */
static void search_all(struct search *s, struct step *stack, bool threads)
{
    memset(s->mark, 0, (size_t)s->job->n_pes);
    s->threads = threads;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        if (!s->mark[pe])
            follow(s, stack, pe);
    }
}

bool culprit_find(const struct where_job *job, struct culprit *out)
{
    const size_t n = (size_t)job->n_pes;
    struct search s = {.job = job,
                       .mark = calloc(n, 1),
                       .path = calloc(n, sizeof(int)),
                       .cycle = calloc(n, sizeof(int)),
                       .reached = calloc(n, 1)};
    struct step *stack = calloc(n, sizeof *stack);
    const bool ok = s.mark && s.path && s.cycle && s.reached && stack;

    *out = (struct culprit){.kind = CULPRIT_NONE, .waiter = -1, .pe = calloc(n, sizeof(int))};
    for (int pe = 0; pe < job->n_pes; pe++)
        out->waiting += is_in_wait(&job->pe[pe]);
    if (ok && out->pe) {
        search_all(&s, stack, false);
        search_all(&s, stack, true);
        culprit_decide(&s, out);
    }
    free(s.mark);
    free(s.path);
    free(s.cycle);
    free(s.reached);
    free(stack);
    return ok && out->pe;
}

/* Which PE blocks a job: follows which PE waits for which.
 *
 * 1. A wait names the PEs that it is for, except a wait for a variable, which any PE may change.
 * 2. A PE that is waited for and does not wait itself is the culprit: it has died, is stopped, or
 *    is elsewhere in its program.
 * 3. Where each PE that is waited for waits as well, they wait for each other: a cycle.
 * 4. Where there are only waits for variables, PEs outside of calls may be meant; if there are
 *    none, nobody is left who could end the waits. A variable that is not symmetric nobody else can
 *    update. */
#include <stdlib.h>

#include "runtime/where/where.h"

/* A member has arrived if it waits in a collective of the same team. */
static bool has_arrived(const struct where_pe *p, const struct where_wait *w)
{
    for (int i = 0; i < p->n_waits; i++) {
        if (p->waits[i].kind == WHERE_COLLECTIVE && p->waits[i].team == w->team)
            return true;
    }
    return false;
}

/* The next PE that this wait is for, from number *at on; -1: no more. */
static int culprit_next_peer(const struct where_job *job, const struct where_wait *w, int *at)
{
    if (w->kind == WHERE_VARIABLE || w->kind == WHERE_THREAD || w->kind == WHERE_UNKNOWN)
        return -1;
    while (*at < w->peers && *at < WHERE_PEERS) {
        const int pe = w->peer[(*at)++];
        if (pe < 0 || pe >= job->n_pes)
            continue;
        if (w->kind != WHERE_COLLECTIVE || !has_arrived(&job->pe[pe], w))
            return pe;
    }
    return -1;
}

struct search {
    const struct where_job *job;
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

    while (p->state == STATE_WAITS && step->wait < p->n_waits) {
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

static bool take_cycle(const struct search *s, struct culprit *out)
{
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
    bool any = false;

    for (int pe = 0; pe < s->job->n_pes && !any; pe++)
        any = s->job->pe[pe].state == STATE_WAITS && waits_for_variable(&s->job->pe[pe]);
    if (!any)
        return false;
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

/* PEs that are waited for, and wait for something of their own, as for another of their threads. */
static bool take_inner_waits(const struct search *s, struct culprit *out)
{
    out->n = 0;
    for (int pe = 0; pe < s->job->n_pes; pe++) {
        struct step step = {pe, 0, 0};
        if (culprit_is(s, pe, STATE_WAITS, true) && !waits_for_variable(&s->job->pe[pe]) &&
            culprit_advance(s, &step) < 0)
            out->pe[out->n++] = pe;
    }
    out->kind = CULPRIT_STATE;
    out->state = STATE_WAITS;
    return out->n > 0;
}

static void culprit_decide(const struct search *s, struct culprit *out)
{
    /* What has happened to a PE explains more than who waits for whom, whoever waits for it. */
    if (take_state(s, STATE_DIED, false, out) || take_state(s, STATE_FAILED, false, out) ||
        take_state(s, STATE_STOPPED, false, out) || take_state(s, STATE_SILENT, true, out) ||
        take_state(s, STATE_LEFT, true, out) || take_cycle(s, out) ||
        take_state(s, STATE_ABSENT, true, out) || take_state(s, STATE_OUTSIDE, true, out) ||
        take_inner_waits(s, out) || take_own(s, out) || take_variables(s, out) ||
        take_state(s, STATE_SILENT, false, out))
        return;
    out->kind = CULPRIT_NONE;
    out->n = 0;
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
    for (int pe = 0; ok && out->pe && pe < job->n_pes; pe++) {
        out->waiting += job->pe[pe].state == STATE_WAITS;
        if (job->pe[pe].state == STATE_WAITS && out->waiter < 0)
            out->waiter = pe;
        if (!s.mark[pe])
            follow(&s, stack, pe);
    }
    if (ok && out->pe)
        culprit_decide(&s, out);
    free(s.mark);
    free(s.path);
    free(s.cycle);
    free(s.reached);
    free(stack);
    return ok && out->pe;
}

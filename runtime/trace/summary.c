/* Where the time of each PE went, and the longest waits of the job. */
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/traced.h"

enum { LONGEST = 10 };

struct share {
    double total, calls, exposed;
    uint64_t operations, bytes;
};

/* Whether the program itself called it. A round outside of a marked call is one, too: not all
 * calls are marked. */
static bool is_call(const struct interval *i)
{
    return i->depth == 0 && !i->is_wait;
}

/* How long all threads of the PE that call GSHMEM were in calls at the same time: no part of the
 * program computed then. */
struct edge {
    double ns;
    int by;
};

static int by_edge(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return y->by - x->by; /* one begins where another ends: without a gap */
}

static int calling_threads(const struct interval *of, size_t n, uint32_t threads)
{
    bool *calls = calloc(threads ? threads : 1, sizeof *calls);
    int count = 0;

    for (size_t i = 0; i < n && calls; i++) {
        count += is_call(&of[i]) && !calls[of[i].thread];
        calls[of[i].thread] |= is_call(&of[i]);
    }
    free(calls);
    return count;
}

static double exposed(const struct interval *of, size_t n, uint32_t threads)
{
    struct edge *edge = malloc((2 * n + 1) * sizeof *edge);
    const int all = calling_threads(of, n, threads);
    double sum = 0, since = 0;
    size_t edges = 0;
    int inside = 0;

    if (!edge)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_call(&of[i]))
            continue;
        edge[edges++] = (struct edge){of[i].begin, 1};
        edge[edges++] = (struct edge){of[i].end, -1};
    }
    qsort(edge, edges, sizeof *edge, by_edge);
    for (size_t i = 0; i < edges; i++) {
        if (inside == all)
            sum += edge[i].ns - since;
        inside += edge[i].by;
        since = edge[i].ns;
    }
    free(edge);
    return sum;
}

static struct share summary_share(const struct traced *t, const struct intervals *s, int pe)
{
    const struct traced_pe *p = &t->pe[pe];
    const struct interval *of = s->of + s->first[pe];
    const size_t n = s->first[pe + 1] - s->first[pe];
    struct share share = {.total = p->end - p->begin};

    for (size_t i = 0; i < n; i++)
        share.calls += is_call(&of[i]) ? of[i].end - of[i].begin : 0;
    share.exposed = exposed(of, n, p->threads);
    for (size_t i = 0; i < p->n; i++) {
        const enum trace_what what = item_what(&p->item[i]);
        if (what != TRACE_POSTED && what != TRACE_TAKEN && what != TRACE_COPIED)
            continue;
        if (what == TRACE_COPIED && (p->item[i].event->id >> 32 & 0xfff))
            continue; /* the proxy took it, which has been counted */
        share.operations++;
        share.bytes += p->item[i].event->bytes;
    }
    return share;
}

/* ---- The longest waits ---- */

static int by_length(const void *a, const void *b)
{
    const struct interval *x = *(const struct interval *const *)a;
    const struct interval *y = *(const struct interval *const *)b;
    const double more = (x->end - x->begin) - (y->end - y->begin);

    return more > 0 ? -1 : more < 0;
}

static void write_cause(const struct traced *t, const struct interval *i, const struct cause *c,
                        FILE *to)
{
    if (i->is_open)
        fprintf(to, "not ended");
    else if (c->pe < 0)
        fprintf(to, "it is not known what ended it");
    else if (i->round)
        fprintf(to, "PE %d arrived last", t->pe[c->pe].pe);
    else if (c->step && i->awaited == TRACE_NETWORK)
        fprintf(to, "for an answer of PE %d", item_peer(c->step->item));
    else if (c->step)
        fprintf(to, "ended by a %s of PE %d", traced_op(item_op(c->step->item)),
                t->pe[c->pe].pe);
    else
        fprintf(to, "for PE %d", t->pe[c->pe].pe);
}

/* Rounds, and waits that are in none. */
static bool counts_as_wait(const struct intervals *s, const struct interval *i)
{
    if (i->round)
        return true;
    if (!i->is_wait)
        return false;
    for (const struct interval *around = i + 1; around < s->of + s->first[i->pe + 1]; around++) {
        if (around->thread == i->thread && around->depth < i->depth && around->begin <= i->begin)
            return !around->round;
    }
    return true;
}

static void write_longest(const struct traced *t, const struct intervals *s, FILE *to)
{
    const struct interval **wait = malloc((s->n ? s->n : 1) * sizeof *wait);
    size_t n = 0;

    for (size_t i = 0; i < s->n && wait; i++) {
        if (counts_as_wait(s, &s->of[i]))
            wait[n++] = &s->of[i];
    }
    if (n)
        qsort(wait, n, sizeof *wait, by_length);
    fprintf(to, "\nThe longest waits\n");
    for (size_t i = 0; i < n && i < LONGEST; i++) {
        const struct cause c = intervals_cause(s, t, wait[i]);
        fprintf(to, "%12.3f ms  PE %d in %s, at %.3f ms: ", (wait[i]->end - wait[i]->begin) / 1e6,
                t->pe[wait[i]->pe].pe, wait[i]->name, wait[i]->begin / 1e6);
        write_cause(t, wait[i], &c, to);
        putc('\n', to);
    }
    free(wait);
}

/* ---- Operations that did not come through ---- */

static bool has_step(const struct step *s, size_t n, enum trace_what what)
{
    for (size_t i = 0; i < n; i++) {
        if (item_what(s[i].item) == what)
            return true;
    }
    return false;
}

/* What was given to the network, and not carried out by the target, whose trace is there. */
static bool is_lost(const struct traced *t, const struct step *s, size_t n)
{
    const int peer = item_peer(step_of_op(s, n)->item);

    return has_step(s, n, TRACE_SENT) && !has_step(s, n, TRACE_EFFECT) && peer >= 0 &&
           peer < t->n_pes && t->at[peer] >= 0 && !t->pe[t->at[peer]].overwritten;
}

static void write_lost(const struct traced *t, FILE *to)
{
    size_t lost = 0, first = 0;

    for (size_t i = 0, n; i < t->steps; i += n) {
        n = traced_run(t, i);
        if (!is_lost(t, &t->step[i], n))
            continue;
        if (lost++ == 0)
            first = i;
    }
    if (!lost)
        return;
    const struct step *s = step_of_op(&t->step[first], traced_run(t, first));
    fprintf(to,
            "\n%zu operations were sent and not carried out; the first: a %s of %u bytes by "
            "PE %d, to PE %d, at %.3f ms (id %llx)\n",
            lost, traced_op(item_op(s->item)), s->item->event->bytes, t->pe[s->pe].pe,
            item_peer(s->item), s->ns / 1e6, (unsigned long long)s->id);
}

void summary_write(const struct traced *t, const struct intervals *s, FILE *to)
{
    double most = 0, sum = 0;

    fprintf(to, "Job %016llx: %d PEs", (unsigned long long)t->job, t->n_pes);
    if (t->clocks > 1)
        fprintf(to, ", %d clocks that are compared to within %.1f us", t->clocks, t->error / 1e3);
    fprintf(to, "\n\n%6s %12s %11s %10s %10s %11s %12s\n", "PE", "total ms", "computing",
            "in calls", "exposed", "operations", "bytes");
    for (int i = 0; i < t->n; i++) {
        const struct share a = summary_share(t, s, i);
        const double all = a.total > 0 ? a.total : 1, computes = all - a.exposed;
        fprintf(to, "%6d %12.3f %10.1f%% %9.1f%% %9.1f%% %11llu %12llu%s\n", t->pe[i].pe,
                a.total / 1e6, 100 * computes / all, 100 * a.calls / all, 100 * a.exposed / all,
                (unsigned long long)a.operations, (unsigned long long)a.bytes,
                t->pe[i].head->ended_ns ? "" : "  (ended without gshmem_finalize)");
        sum += computes;
        most = computes > most ? computes : most;
    }
    fprintf(to,
            "\nin calls: of all threads; exposed: all threads that call GSHMEM were in calls\n");
    if (sum > 0)
        fprintf(to, "load balance: the PE that computes most does %.2f times the mean\n",
                most * t->n / sum);
    write_longest(t, s, to);
    write_lost(t, to);
}

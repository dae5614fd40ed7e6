/* Where the time of each PE went, and the longest waits of the job. */
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/traced.h"

enum { LONGEST = 10 };

struct share {
    double total, calls, kernels, exposed;
    uint64_t operations, bytes;
};

/* Whether the program itself called it. A round outside of a marked call is one, too: not all
 * calls are marked. */
static bool is_call(const struct interval *i)
{
    return i->calls == 0 && !i->of_program && !i->is_wait && !i->place;
}

/* ---- What a PE did at each moment ---- */

/* How many there are of each: threads in calls, of GSHMEM or for kernels; those in calls of GSHMEM;
 * blocks of kernels; of these, idle ones. */
enum { IN_CALLS, IN_GSHMEM, BLOCKS, IDLE, COUNTS };

struct edge {
    double ns;
    int by, of; /* of: one of the counts */
};

struct edges {
    struct edge *of;
    size_t n;
};

static int by_edge(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return y->by - x->by; /* one begins where another ends: without a gap */
}

static void edges_add(struct edges *e, const struct interval *i, int of)
{
    e->of[e->n++] = (struct edge){i->begin, 1, of};
    e->of[e->n++] = (struct edge){i->end, -1, of};
}

/* A launch of so many blocks is told as a whole: it stands for one that is never idle. */
static bool counts_as_block(const struct interval *i)
{
    return i->kind == INTERVAL_BLOCK ||
           (i->kind == INTERVAL_LAUNCH && i->object > KERNEL_BLOCKS_MOST);
}

static void edges_find(struct edges *e, const struct interval *of, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_call(&of[i])) {
            edges_add(e, &of[i], IN_CALLS);
            if (!of[i].for_kernels)
                edges_add(e, &of[i], IN_GSHMEM);
        } else if (counts_as_block(&of[i])) {
            edges_add(e, &of[i], BLOCKS);
        } else if (of[i].kind == INTERVAL_IDLE) {
            edges_add(e, &of[i], IDLE);
        }
    }
    qsort(e->of, e->n, sizeof *e->of, by_edge);
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

/* Exposed: all threads that make calls were in calls, all blocks of kernels waited, and somebody
 * did so for GSHMEM. No part of the program computed then. */
static void find_exposed(struct share *share, const struct interval *of, size_t n,
                         uint32_t threads)
{
    struct edges e = {.of = malloc((4 * n + 1) * sizeof *e.of)};
    const int all = calling_threads(of, n, threads);
    int now[COUNTS] = {0};
    double since = 0;

    if (!e.of)
        return;
    edges_find(&e, of, n);
    for (size_t i = 0; i < e.n; i++) {
        const double for_ns = e.of[i].ns - since;
        if (now[BLOCKS] > now[IDLE])
            share->kernels += for_ns;
        else if (now[IN_CALLS] == all && (now[IN_GSHMEM] || now[IDLE]))
            share->exposed += for_ns;
        now[e.of[i].of] += e.of[i].by;
        since = e.of[i].ns;
    }
    free(e.of);
}

static struct share summary_share(const struct traced *t, const struct intervals *s, int pe)
{
    const struct traced_pe *p = &t->pe[pe];
    const struct interval *of = s->of + s->first[pe];
    const size_t n = s->first[pe + 1] - s->first[pe];
    struct share share = {.total = p->end - p->begin};

    for (size_t i = 0; i < n; i++)
        share.calls += is_call(&of[i]) && !of[i].for_kernels ? of[i].end - of[i].begin : 0;
    find_exposed(&share, of, n, p->threads);
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
    if (!i->is_wait || i->awaited == TRACE_BLOCKS)
        return false;
    if (i->place)
        return true;
    for (const struct interval *around = i + 1; around < s->of + s->first[i->pe + 1]; around++) {
        if (around->thread == i->thread && around->depth < i->depth && around->begin <= i->begin)
            return !around->round;
    }
    return true;
}

/* Threads of a block mostly wait for the same: the longest stands for those that it overlaps. */
static bool is_listed(const struct interval *const *listed, size_t n, const struct interval *i)
{
    const uint64_t block = i->place - kernel_thread_of(i->place);

    for (size_t j = 0; j < n && i->place; j++) {
        const struct interval *w = listed[j];
        if (w->pe == i->pe && w->place - kernel_thread_of(w->place) == block &&
            w->begin < i->end && i->begin < w->end)
            return true;
    }
    return false;
}

/* In which kernel it was. */
static void write_place(const struct intervals *s, const struct interval *i, FILE *to)
{
    const struct interval *launch =
        i->place ? intervals_launch(s, i->pe, kernel_launch_of(i->place)) : NULL;

    if (i->place)
        fprintf(to, " (kernel %s, block %lld, thread %u)", launch ? launch->name : "unknown",
                (long long)kernel_block_of(i->place), kernel_thread_of(i->place));
}

static void write_longest(const struct traced *t, const struct intervals *s, FILE *to)
{
    const struct interval **wait = malloc((s->n ? s->n : 1) * sizeof *wait);
    const struct interval *listed[LONGEST];
    size_t n = 0, lines = 0;

    for (size_t i = 0; i < s->n && wait; i++) {
        if (counts_as_wait(s, &s->of[i]))
            wait[n++] = &s->of[i];
    }
    if (n)
        qsort(wait, n, sizeof *wait, by_length);
    fprintf(to, "\nThe longest waits\n");
    for (size_t i = 0; i < n && lines < LONGEST; i++) {
        if (is_listed(listed, lines, wait[i]))
            continue;
        listed[lines++] = wait[i];
        const struct cause c = intervals_cause(s, t, wait[i]);
        fprintf(to, "%12.3f ms  PE %d in %s", (wait[i]->end - wait[i]->begin) / 1e6,
                t->pe[wait[i]->pe].pe, wait[i]->name);
        write_place(s, wait[i], to);
        fprintf(to, ", at %.3f ms: ", wait[i]->begin / 1e6);
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
           peer < t->n_pes && t->at[peer] >= 0 && !t->pe[t->at[peer]].overwritten &&
           !t->pe[t->at[peer]].lost;
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
    fprintf(to, "\n\n%6s %12s %11s %10s %10s %10s %11s %12s\n", "PE", "total ms", "computing",
            "kernels", "in calls", "exposed", "operations", "bytes");
    for (int i = 0; i < t->n; i++) {
        const struct share a = summary_share(t, s, i);
        const double all = a.total > 0 ? a.total : 1, computes = all - a.exposed;
        fprintf(to, "%6d %12.3f %10.1f%% %9.1f%% %9.1f%% %9.1f%% %11llu %12llu%s\n", t->pe[i].pe,
                a.total / 1e6, 100 * computes / all, 100 * a.kernels / all, 100 * a.calls / all,
                100 * a.exposed / all, (unsigned long long)a.operations,
                (unsigned long long)a.bytes,
                t->pe[i].head->ended_ns ? "" : "  (ended without gshmem_finalize)");
        sum += computes;
        most = computes > most ? computes : most;
    }
    fprintf(to,
            "\nkernels: they computed on the host device; in calls: of all threads; exposed: all "
            "threads that call GSHMEM were in calls, and all blocks of kernels waited\n");
    if (sum > 0)
        fprintf(to, "load balance: the PE that computes most does %.2f times the mean\n",
                most * t->n / sum);
    write_longest(t, s, to);
    write_lost(t, to);
}

bool numbers_write(const struct traced *t, const struct intervals *s, FILE *to)
{
    fprintf(to, "{\"gshmem_trace\":1,\"job\":\"%016llx\",\"n_pes\":%d,\"PEs\":[",
            (unsigned long long)t->job, t->n_pes);
    for (int i = 0; i < t->n; i++) {
        const struct share a = summary_share(t, s, i);
        fprintf(to,
                "%s\n{\"pe\":%d,\"total_ns\":%.0f,\"computes_ns\":%.0f,\"kernels_ns\":%.0f,"
                "\"calls_ns\":%.0f,\"exposed_ns\":%.0f,\"operations\":%llu,\"bytes\":%llu}",
                i ? "," : "", t->pe[i].pe, a.total, a.total - a.exposed, a.kernels, a.calls,
                a.exposed, (unsigned long long)a.operations, (unsigned long long)a.bytes);
    }
    fputs("]}\n", to);
    return fflush(to) == 0 && !ferror(to);
}

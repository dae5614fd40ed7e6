/* The critical path: from the end of the job back to its beginning, always to what the PE waited
 * for last. */
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/traced.h"

enum segment_kind { COMPUTES, CALLS, TRAVELS };

struct segment {
    double begin, end;
    int pe; /* index in traced.pe */
    int from; /* of what travels: whose operation */
    enum segment_kind kind;
    const char *name;
    const struct step *step;
};

struct path {
    struct segment *of; /* the last first */
    size_t n, room;
    double share[3]; /* by kind */
};

static bool path_add(struct path *p, struct segment segment)
{
    if (segment.end <= segment.begin)
        return true;
    if (p->n == p->room) {
        const size_t more = p->room ? 2 * p->room : 256;
        struct segment *of = realloc(p->of, more * sizeof *of);
        if (!of)
            return false;
        p->of = of;
        p->room = more;
    }
    p->share[segment.kind] += segment.end - segment.begin;
    p->of[p->n++] = segment;
    return true;
}

static bool can_wait(const struct interval *i)
{
    return i->round || (i->is_wait && i->awaited != TRACE_BLOCKS);
}

/* The last wait of the PE that ends at or before that time, and after it began. */
static const struct interval *last_wait(const struct intervals *s, int pe, double ns)
{
    size_t low = s->first[pe], high = s->first[pe + 1];

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->of[middle].end <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > s->first[pe]; low--) {
        if (can_wait(&s->of[low - 1]))
            return &s->of[low - 1];
    }
    return NULL;
}

/* A time before that one, by as little as makes a difference. */
static double just_before(double ns)
{
    return ns - (ns / 1e15 > 1e-3 ? ns / 1e15 : 1e-3);
}

/* What a wait adds to the path; *pe and *ns: where the path goes on. */
static bool follow_wait(struct path *p, const struct traced *t, const struct intervals *s,
                   const struct interval *w, int *pe, double *ns)
{
    const struct cause c = intervals_cause(s, t, w);

    if (c.pe < 0 || c.ns <= w->begin || c.ns >= w->end) {
        /* nobody was waited for: it took its time */
        *ns = w->begin < *ns ? w->begin : just_before(*ns);
        return path_add(p, (struct segment){w->begin, w->end, *pe, *pe, CALLS, w->name, NULL});
    }
    if (!path_add(p, (struct segment){c.ns, w->end, *pe, c.pe, TRAVELS, w->name, c.step}))
        return false;
    *pe = c.pe;
    *ns = c.ns;
    return true;
}

static bool find_path(struct path *p, const struct traced *t, const struct intervals *s)
{
    int pe = 0;

    for (int i = 1; i < t->n; i++)
        pe = t->pe[i].end > t->pe[pe].end ? i : pe;
    double ns = t->pe[pe].end;
    /* no wait comes twice, but in a damaged trace */
    for (size_t steps = 0; ns > 0 && steps <= s->n; steps++) {
        const struct interval *w = last_wait(s, pe, ns);
        const double from = w ? w->end : t->pe[pe].begin;
        if (!path_add(p, (struct segment){from, ns, pe, pe, COMPUTES, "computes", NULL}))
            return false;
        if (!w)
            return true;
        if (!follow_wait(p, t, s, w, &pe, &ns))
            return false;
    }
    return true;
}

static void write_segment(const struct traced *t, const struct segment *g, FILE *to)
{
    fprintf(to, "%12.3f %12.3f ms  PE %d ", g->begin / 1e6, (g->end - g->begin) / 1e6,
            t->pe[g->pe].pe);
    if (g->kind == COMPUTES)
        fprintf(to, "computes\n");
    else if (g->kind == CALLS)
        fprintf(to, "in %s\n", g->name);
    else if (g->step)
        fprintf(to, "in %s, until a %s of PE %d%s\n", g->name,
                traced_op(item_op(g->step->item)), t->pe[g->from].pe,
                item_what(g->step->item) == TRACE_DONE ? " is done" : " has come");
    else
        fprintf(to, "in %s, after PE %d has arrived\n", g->name, t->pe[g->from].pe);
}

void path_write(const struct traced *t, const struct intervals *s, FILE *to)
{
    struct path p = {0};

    if (!find_path(&p, t, s)) {
        fprintf(stderr, "gshmem-trace: there is no memory for the critical path\n");
    } else {
        const double all = p.share[COMPUTES] + p.share[CALLS] + p.share[TRAVELS];
        fprintf(to, "Critical path: %.3f ms: computing %.1f%%, in calls %.1f%%, after what came "
                    "from others %.1f%%\n%12s %12s\n",
                all / 1e6, 100 * p.share[COMPUTES] / (all > 0 ? all : 1),
                100 * p.share[CALLS] / (all > 0 ? all : 1),
                100 * p.share[TRAVELS] / (all > 0 ? all : 1), "from ms", "for ms");
        for (size_t i = p.n; i > 0; i--)
            write_segment(t, &p.of[i - 1], to);
    }
    free(p.of);
}

/* One clock for all PEs. PEs that were started by the same boot of a machine share one. For others
 * the operations between them tell how far their clocks are apart: what PE a has posted takes
 * effect at PE b later, and is done for a later still. Each such operation bounds the difference
 * from both sides; the narrowest bounds of all count. */
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/traced.h"

/* ---- Operations by their ids ---- */

static int by_id(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item; /* of one PE: as they were written */
}

static void collect_steps(struct traced *t)
{
    size_t n = 0;

    for (int i = 0; i < t->n; i++) {
        for (size_t j = 0; j < t->pe[i].n; j++)
            n += item_is_step(&t->pe[i].item[j]);
    }
    free(t->step);
    t->step = malloc((n ? n : 1) * sizeof *t->step);
    t->steps = 0;
    for (int i = 0; i < t->n && t->step; i++) {
        for (size_t j = 0; j < t->pe[i].n; j++) {
            const struct item *item = &t->pe[i].item[j];
            if (item_is_step(item) && item->event->id)
                t->step[t->steps++] = (struct step){item->event->id, item->ns, i, item};
        }
    }
    qsort(t->step, t->steps, sizeof *t->step, by_id);
}

size_t traced_run(const struct traced *t, size_t i)
{
    size_t n = 1;

    while (i + n < t->steps && t->step[i + n].id == t->step[i].id)
        n++;
    return n;
}

size_t traced_steps(const struct traced *t, uint64_t id, const struct step **first)
{
    size_t low = 0, high = t->steps;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t->step[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    *first = &t->step[low];
    return low < t->steps && t->step[low].id == id ? traced_run(t, low) : 0;
}

/* ---- Bounds ---- */

#define UNKNOWN_NS 1e9
#define DRIFT_NS 1e9 /* shorter jobs: clocks do not drift by what could be told */

struct bound {
    double least, most; /* of (clock b - clock a), in ns */
};

/* Narrows by one operation of a PE of clock a on one of clock b. */
static void narrow(const struct traced *t, const struct step *s, size_t n, int a, int b,
                   struct bound *by)
{
    double posted = 0, effect = 0, done = 0;
    bool has_posted = false, has_effect = false, has_done = false;

    for (size_t i = 0; i < n; i++) {
        const enum trace_what what = item_what(s[i].item);
        const int clock = t->pe[s[i].pe].clock;
        if (what == TRACE_EFFECT && clock == b && !has_effect) {
            effect = s[i].ns;
            has_effect = true;
        } else if (clock == a && (what == TRACE_POSTED || what == TRACE_TAKEN)) {
            posted = s[i].ns;
            has_posted = true;
        } else if (clock == a && what == TRACE_DONE) {
            done = s[i].ns;
            has_done = true;
        }
    }
    if (has_posted && has_effect && effect - posted < by->most)
        by->most = effect - posted;
    if (has_done && has_effect && effect - done > by->least)
        by->least = effect - done;
}

/* Between two clocks, by operations in both directions that began in a part of clock a's time. */
static struct bound compare_clocks(const struct traced *t, int a, int b, double from, double to)
{
    struct bound ab = {-1e18, 1e18}, ba = ab;

    for (size_t i = 0, n; i < t->steps; i += n) {
        n = traced_run(t, i);
        if (t->step[i].ns < from || t->step[i].ns > to)
            continue;
        narrow(t, &t->step[i], n, a, b, &ab);
        narrow(t, &t->step[i], n, b, a, &ba);
    }
    if (-ba.most > ab.least)
        ab.least = -ba.most;
    if (-ba.least < ab.most)
        ab.most = -ba.least;
    return ab;
}

/* From both sides. A clock that drifts much meanwhile may have them the wrong way round. */
static bool is_bounded(const struct bound *b)
{
    return b->least > -1e17 && b->most < 1e17;
}

static double width_of(const struct bound *b)
{
    return b->most > b->least ? b->most - b->least : b->least - b->most;
}

static double middle_of(const struct bound *b)
{
    return (b->least + b->most) / 2;
}

static void number_clocks(struct traced *t)
{
    for (int i = 0; i < t->n; i++) {
        t->pe[i].clock = -1;
        for (int j = 0; j < i && t->pe[i].clock < 0; j++) {
            if (t->pe[i].head->boot[0] && !strcmp(t->pe[i].head->boot, t->pe[j].head->boot))
                t->pe[i].clock = t->pe[j].clock;
        }
        if (t->pe[i].clock < 0)
            t->pe[i].clock = t->clocks++;
    }
}

/* Adds to all times of a clock: `by` at the time `at`, and `drift` more for each ns after it. */
static void move(struct traced *t, int clock, double by, double drift, double at)
{
    for (int i = 0; i < t->n; i++) {
        struct traced_pe *p = &t->pe[i];
        if (p->clock != clock)
            continue;
        p->begin += by + drift * (p->begin - at);
        p->end += by + drift * (p->end - at);
        for (size_t j = 0; j < p->n; j++)
            p->item[j].ns += by + drift * (p->item[j].ns - at);
    }
}

/* Where no operation connects a clock with those before it, by the time of day. */
static double by_realtime(const struct traced *t, int clock)
{
    for (int i = 0; i < t->n; i++) {
        const struct traced_pe *p = &t->pe[i], *first = &t->pe[0];
        const int64_t later = (int64_t)(p->head->begun_realtime - first->head->begun_realtime);
        if (p->clock == clock)
            return first->begin + (double)later - p->begin;
    }
    return 0;
}

/* The clock before it that operations compare best with. */
static int nearest_clock(const struct traced *t, int clock, struct bound *best)
{
    int nearest = 0;

    *best = (struct bound){-1e18, 1e18};
    for (int known = 0; known < clock; known++) {
        const struct bound b = compare_clocks(t, known, clock, -1e18, 1e18);
        if (width_of(&b) < width_of(best)) {
            *best = b;
            nearest = known;
        }
    }
    return nearest;
}

/* How the clock drifts: by the difference at the job's beginning and at its end, where both are
 * known and far enough apart. Then *whole is the bound at the time *at. */
static double find_drift(const struct traced *t, int nearest, int clock, struct bound *whole,
                         double *at)
{
    double begin = 1e18, end = -1e18;

    for (int i = 0; i < t->n; i++) {
        if (t->pe[i].clock != nearest)
            continue;
        begin = t->pe[i].begin < begin ? t->pe[i].begin : begin;
        end = t->pe[i].end > end ? t->pe[i].end : end;
    }
    const double part = (end - begin) / 4;
    const struct bound first = compare_clocks(t, nearest, clock, begin, begin + part);
    const struct bound last = compare_clocks(t, nearest, clock, end - part, end);
    if (part < DRIFT_NS / 4 || !is_bounded(&first) || !is_bounded(&last))
        return 0;
    const double drift = (middle_of(&last) - middle_of(&first)) / (end - begin - part);
    const double width = width_of(&last) > width_of(&first) ? width_of(&last) : width_of(&first);
    *whole = (struct bound){middle_of(&first) - width / 2, middle_of(&first) + width / 2};
    *at = begin + part / 2 + middle_of(&first); /* by this clock */
    return drift;
}

/* Returns how wrong it may be. */
static double align_clock(struct traced *t, int clock)
{
    struct bound by;
    double at = 0;
    const int nearest = nearest_clock(t, clock, &by);
    const double drift = find_drift(t, nearest, clock, &by, &at);
    const double error = is_bounded(&by) ? width_of(&by) / 2 : UNKNOWN_NS;

    move(t, clock, is_bounded(&by) ? -middle_of(&by) : by_realtime(t, clock), -drift, at);
    collect_steps(t);
    return error;
}

void traced_align(struct traced *t)
{
    number_clocks(t);
    collect_steps(t);
    for (int clock = 1; clock < t->clocks; clock++) {
        align_clock(t, clock);
        const double error = align_clock(t, clock); /* closer, now that the drift is out of it */
        t->error = error > t->error ? error : t->error;
    }
    if (t->error >= UNKNOWN_NS)
        fprintf(stderr, "gshmem-trace: no operation shows how the clocks of two machines differ: "
                        "the time of day is taken\n");
    t->zero = t->pe[0].begin;
    for (int i = 0; i < t->n; i++) {
        if (t->pe[i].begin < t->zero)
            t->zero = t->pe[i].begin;
    }
    for (int i = 0; i < t->clocks; i++)
        move(t, i, -t->zero, 0, 0);
    collect_steps(t);
}

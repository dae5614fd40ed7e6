/* Calls and waits of each thread, from their events, and what ended them. */
#include <stdlib.h>

#include "runtime/trace/traced.h"

/* ---- From events to intervals ---- */

enum { DEEPEST = 64 };

struct nest {
    struct interval open[DEEPEST];
    int depth;
    const struct item *seen; /* the last variable that a wait of this thread has found */
};

bool intervals_add(struct intervals *s, size_t *room, const struct interval *i)
{
    if (s->n == *room) {
        const size_t more = *room ? 2 * *room : 1024;
        struct interval *of = realloc(s->of, more * sizeof *of);
        if (!of)
            return false;
        s->of = of;
        *room = more;
    }
    s->of[s->n++] = *i;
    return true;
}

static void intervals_open(struct nest *t, const struct traced_pe *p, int pe,
                           const struct item *item)
{
    const bool is_wait = item_what(item) == TRACE_WAIT;
    const bool is_round = item_what(item) == TRACE_ROUND;
    const int depth = t->depth++;

    t->seen = NULL;
    if (depth >= DEEPEST) /* it is not kept; its end is counted */
        return;
    const struct interval *around = depth ? &t->open[depth - 1] : NULL;
    t->open[depth] = (struct interval){
        .begin = item->ns,
        .name = traced_name(p, item->event->at),
        .pe = pe,
        .thread = item->thread,
        .depth = depth,
        .calls = around ? around->calls + !around->of_program : 0,
        .of_program = item_what(item) == TRACE_CALL && item->event->id == TRACE_OF_PROGRAM,
        .is_wait = is_wait,
        .awaited = is_wait ? (enum trace_awaited)item->event->id : TRACE_PEERS,
        .only = is_wait || is_round ? item_peer(item) : -1,
        .for_kernels = item_what(item) == TRACE_CALL && item->event->id == TRACE_FOR_KERNELS,
        .round = is_round ? item->event->id : 0,
        .made = is_round ? item->event->bytes : 0,
    };
}

/* The innermost call, or wait. A trace whose oldest events are overwritten has ends without a
 * beginning. */
static bool intervals_close(struct intervals *s, size_t *room, struct nest *t,
                            const struct item *item)
{
    const bool of_wait = item_what(item) == TRACE_WAKE, of_round = item_what(item) == TRACE_MET;

    if (t->depth > DEEPEST) { /* it was not kept */
        t->depth--;
        return true;
    }
    if (t->depth == 0)
        return true;
    struct interval *i = &t->open[t->depth - 1];
    if (i->is_wait != of_wait || (i->round != 0) != of_round)
        return true;
    t->depth--;
    i->end = item->ns;
    i->seen = t->seen;
    return intervals_add(s, room, i);
}

static bool take_item(struct intervals *s, size_t *room, struct nest *t, const struct traced_pe *p,
                      int pe, const struct item *item)
{
    switch (item_what(item)) {
    case TRACE_CALL:
    case TRACE_WAIT:
    case TRACE_ROUND:
        intervals_open(t, p, pe, item);
        return true;
    case TRACE_RETURN:
    case TRACE_WAKE:
    case TRACE_MET:
        return intervals_close(s, room, t, item);
    case TRACE_SEEN:
        t->seen = item;
        return true;
    default:
        return true;
    }
}

const struct interval *intervals_launch(const struct intervals *s, int pe, uint32_t launch)
{
    for (size_t i = s->first[pe]; i < s->first[pe + 1]; i++) {
        if (s->of[i].kind == INTERVAL_LAUNCH && kernel_launch_of(s->of[i].place) == launch)
            return &s->of[i];
    }
    return NULL;
}

/* ---- All of a PE ---- */

static int by_end(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;

    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return y->depth - x->depth; /* what is within comes first */
}

static bool read_pe(struct intervals *s, size_t *room, const struct traced *t, int pe)
{
    const struct traced_pe *p = &t->pe[pe];
    struct nest *thread = calloc(p->threads ? p->threads : 1, sizeof *thread);
    const size_t first = s->n;
    bool good = thread != NULL;

    for (size_t i = 0; i < p->n && good; i++)
        good = take_item(s, room, &thread[p->item[i].thread], p, pe, &p->item[i]);
    for (uint32_t i = 0; i < p->threads && good; i++) {
        for (int d = thread[i].depth < DEEPEST ? thread[i].depth : DEEPEST; d > 0 && good; d--) {
            struct interval *open = &thread[i].open[d - 1];
            open->end = p->end;
            open->is_open = true;
            good = intervals_add(s, room, open);
        }
    }
    free(thread);
    good = good && intervals_of_kernels(s, room, p, pe);
    if (s->n > first)
        qsort(s->of + first, s->n - first, sizeof *s->of, by_end);
    return good;
}

/* ---- Tables for what ended them ---- */

static int compare_rounds(const struct arrival *a, uint64_t round, uint32_t made)
{
    if (a->round != round)
        return a->round < round ? -1 : 1;
    return a->made < made ? -1 : a->made > made;
}

static int by_round(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;
    const int order = compare_rounds(x, y->round, y->made);

    return order ? order : x->ns > y->ns ? -1 : x->ns < y->ns;
}

/* Of each collective the member that arrived last. */
static bool find_arrivals(struct intervals *s, const struct traced *t)
{
    size_t kept = 0;

    if (!(s->last = malloc((s->n ? s->n : 1) * sizeof *s->last)))
        return false;
    for (size_t i = 0; i < s->n; i++) {
        /* of a rooted round the root alone is waited for */
        if (s->of[i].round && (s->of[i].only < 0 || s->of[i].only == t->pe[s->of[i].pe].pe))
            s->last[s->rounds++] =
                (struct arrival){s->of[i].round, s->of[i].made, s->of[i].begin, s->of[i].pe};
    }
    qsort(s->last, s->rounds, sizeof *s->last, by_round);
    for (size_t i = 0; i < s->rounds; i++) {
        if (i == 0 || compare_rounds(&s->last[kept - 1], s->last[i].round, s->last[i].made))
            s->last[kept++] = s->last[i];
    }
    s->rounds = kept;
    return true;
}

static int by_target(const void *a, const void *b)
{
    const struct update *x = a, *y = b;

    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return x->step->ns < y->step->ns ? -1 : x->step->ns > y->step->ns;
}

/* Whose memory the step has changed, as an index in t->pe; -1: nobody's that is traced. */
static int target_of(const struct traced *t, const struct step *s)
{
    const enum trace_what what = item_what(s->item);
    const int peer = item_peer(s->item);

    if (item_op(s->item) == TRACE_GET)
        return -1;
    if (what == TRACE_EFFECT || what == TRACE_SIGNALED)
        return s->pe;
    if (what == TRACE_COPIED || what == TRACE_COPIED_SIGNAL)
        return peer >= 0 && peer < t->n_pes ? t->at[peer] : -1;
    return -1;
}

static bool find_updates(struct intervals *s, const struct traced *t)
{
    if (!(s->update = malloc((t->steps ? t->steps : 1) * sizeof *s->update)))
        return false;
    for (size_t i = 0; i < t->steps; i++) {
        const int target = target_of(t, &t->step[i]);
        if (target >= 0)
            s->update[s->updates++] = (struct update){&t->step[i], target};
    }
    qsort(s->update, s->updates, sizeof *s->update, by_target);
    return true;
}

bool intervals_find(struct intervals *s, const struct traced *t)
{
    size_t room = 0;

    *s = (struct intervals){.first = calloc((size_t)t->n + 1, sizeof *s->first)};
    if (!s->first)
        return false;
    for (int i = 0; i < t->n; i++) {
        s->first[i] = s->n;
        if (!read_pe(s, &room, t, i))
            return false;
    }
    s->first[t->n] = s->n;
    return find_arrivals(s, t) && find_updates(s, t);
}

void intervals_free(struct intervals *s)
{
    free(s->of);
    free(s->first);
    free(s->update);
    free(s->last);
}

/* ---- What ended a wait ---- */

/* An update is written to the trace so much later than it was made, at most. */
enum { LATE_NS = 5000 };

static const struct cause unknown = {.pe = -1};

/* The member that arrived last. */
static struct cause of_collective(const struct intervals *s, const struct interval *i)
{
    size_t low = 0, high = s->rounds;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (compare_rounds(&s->last[middle], i->round, i->made) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->rounds && compare_rounds(&s->last[low], i->round, i->made) == 0)
        return (struct cause){.pe = s->last[low].pe, .ns = s->last[low].ns};
    return unknown;
}

/* Where the address of a variable of that PE is in symmetric memory. */
static bool find_object(const struct traced_pe *p, uint64_t address, uint64_t *at)
{
    for (int i = 0; i < TRACE_SEGMENTS; i++) {
        const struct trace_segment *s = &p->head->segment[i];
        if (address < s->base || address - s->base >= s->bytes)
            continue;
        *at = trace_at(i, address - s->base);
        return true;
    }
    return false;
}

/* How many updates come before that time at that PE, and at those before it. */
static size_t updates_before(const struct intervals *s, int pe, double ns)
{
    size_t low = 0, high = s->updates;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct update *u = &s->update[middle];
        if (u->target < pe || (u->target == pe && u->step->ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct cause begin_of(const struct traced *t, const struct step *last)
{
    const struct step *first;

    if (traced_steps(t, last->id, &first) == 0)
        return unknown;
    return (struct cause){.pe = first->pe, .ns = first->ns, .step = last};
}

/* The last update of the variable before the wait saw it. */
static struct cause of_variable(const struct intervals *s, const struct traced *t,
                                const struct interval *i)
{
    const uint64_t address = i->seen ? i->seen->event->at : i->object;
    const double seen = i->seen ? i->seen->ns : i->end;
    uint64_t at;

    if (!address || !find_object(&t->pe[i->pe], address, &at))
        return unknown;
    for (size_t j = updates_before(s, i->pe, seen + LATE_NS); j > 0; j--) {
        const struct update *u = &s->update[j - 1];
        const struct trace_event *e = u->step->item->event;
        if (u->target != i->pe)
            return unknown;
        if (at >= e->at && at - e->at < (e->bytes ? e->bytes : 1))
            return begin_of(t, u->step);
    }
    return unknown;
}

/* The operation of this PE that was the last to be done. */
static struct cause of_network(const struct traced *t, const struct interval *i)
{
    const struct traced_pe *p = &t->pe[i->pe];
    size_t low = 0, high = p->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (p->item[middle].ns <= i->end)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && p->item[low - 1].ns >= i->begin; low--) {
        const struct step *first;
        const struct item *item = &p->item[low - 1];
        if (item_what(item) != TRACE_DONE || traced_steps(t, item->event->id, &first) == 0)
            continue;
        for (const struct step *s = first; s < t->step + t->steps && s->id == first->id; s++) {
            if (s->item == item)
                return begin_of(t, s);
        }
    }
    return unknown;
}

struct cause intervals_cause(const struct intervals *s, const struct traced *t,
                             const struct interval *i)
{
    if (i->round)
        return of_collective(s, i);
    if (!i->is_wait)
        return unknown;
    switch (i->awaited) {
    case TRACE_VARIABLE:
        return of_variable(s, t, i);
    case TRACE_NETWORK:
        return of_network(t, i);
    case TRACE_PEERS: {
        const struct cause word = i->place ? of_variable(s, t, i) : unknown;
        if (word.pe >= 0) /* the round's, which the PE has put */
            return word;
        break;
    }
    case TRACE_BLOCKS:
        return unknown;
    }
    if (i->only >= 0 && i->only < t->n_pes && t->at[i->only] >= 0)
        return (struct cause){.pe = t->at[i->only], .ns = i->end};
    return unknown;
}

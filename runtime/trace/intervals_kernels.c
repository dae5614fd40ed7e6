/* Launches, blocks, waits and ranges of kernels, from their events. */
#include <stdlib.h>

#include "runtime/trace/traced.h"

enum { DEEPEST = 64 };

/* What is open at one place. */
struct nest {
    struct interval open[DEEPEST];
    int depth;
    int dropped; /* ranges that were deeper, and have not ended */
};

static bool is_of_kernel(const struct item *i)
{
    return item_what(i) >= TRACE_LAUNCH && item_what(i) < TRACE_WHATS;
}

static int kernel_by_place(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a, *y = *(const struct item *const *)b;

    if (item_place(x) != item_place(y))
        return item_place(x) < item_place(y) ? -1 : 1;
    return x < y ? -1 : x > y; /* the PE's items are by time */
}

static void kernel_open(struct nest *t, const struct traced_pe *p, int pe, const struct item *item)
{
    const enum trace_what what = item_what(item);
    const bool is_wait = what == TRACE_KERNEL_WAIT;

    if (t->depth == DEEPEST) {
        t->dropped += what == TRACE_KERNEL_CALL;
        return;
    }
    t->open[t->depth] = (struct interval){
        .kind = what == TRACE_LAUNCH  ? INTERVAL_LAUNCH
                : what == TRACE_BLOCK ? INTERVAL_BLOCK
                                      : INTERVAL_CALL,
        .place = item_place(item),
        .begin = item->ns,
        .name = traced_name(p, item_name(item)),
        .pe = pe,
        .thread = item->thread,
        .depth = t->depth,
        .is_wait = is_wait,
        .awaited = is_wait ? (enum trace_awaited)item_op(item) : TRACE_PEERS,
        .only = is_wait ? item_peer(item) : -1,
        .object = item_object(item),
    };
    t->depth++;
}

/* Ends the innermost one of that kind, and what is left open within it. */
static bool kernel_close(struct intervals *s, size_t *room, struct nest *t, enum interval_kind kind,
                         bool is_wait, double ns)
{
    int d = t->depth;

    while (d > 0 && (t->open[d - 1].kind != kind || t->open[d - 1].is_wait != is_wait))
        d--;
    for (; d > 0 && t->depth >= d; t->depth--) {
        t->open[t->depth - 1].end = ns;
        if (!intervals_add(s, room, &t->open[t->depth - 1]))
            return false;
    }
    return true;
}

static bool kernel_idle_ends(struct intervals *s, size_t *room, struct interval *idle, double ns)
{
    const bool was = idle->kind == INTERVAL_IDLE;

    idle->end = ns;
    idle->kind = INTERVAL_CALL;
    if (!was)
        return true;
    struct interval whole = *idle;
    whole.kind = INTERVAL_IDLE;
    return intervals_add(s, room, &whole);
}

static bool take_kernel_item(struct intervals *s, size_t *room, struct nest *t,
                             struct interval *idle, const struct traced_pe *p, int pe,
                             const struct item *item)
{
    switch (item_what(item)) {
    case TRACE_LAUNCH:
    case TRACE_BLOCK:
    case TRACE_KERNEL_WAIT:
    case TRACE_KERNEL_CALL:
        kernel_open(t, p, pe, item);
        return true;
    case TRACE_LAUNCH_END:
        return kernel_close(s, room, t, INTERVAL_LAUNCH, false, item->ns);
    case TRACE_BLOCK_END:
        return kernel_idle_ends(s, room, idle, item->ns) &&
               kernel_close(s, room, t, INTERVAL_BLOCK, false, item->ns);
    case TRACE_KERNEL_WAKE:
        return kernel_close(s, room, t, INTERVAL_CALL, true, item->ns);
    case TRACE_KERNEL_RETURN:
        if (t->dropped) {
            t->dropped--;
            return true;
        }
        return kernel_close(s, room, t, INTERVAL_CALL, false, item->ns);
    case TRACE_IDLE:
        *idle = (struct interval){.kind = INTERVAL_IDLE,
                                  .place = item_place(item),
                                  .begin = item->ns,
                                  .name = traced_name(p, item_name(item)),
                                  .pe = pe,
                                  .thread = item->thread};
        return true;
    case TRACE_BUSY:
        return kernel_idle_ends(s, room, idle, item->ns);
    default:
        return true;
    }
}

/* What is open at one place when its events, or the trace, end. */
static bool kernel_leave(struct intervals *s, size_t *room, struct nest *t, struct interval *idle,
                         double end)
{
    t->dropped = 0;
    for (; t->depth > 0; t->depth--) {
        t->open[t->depth - 1].end = end;
        t->open[t->depth - 1].is_open = true;
        if (!intervals_add(s, room, &t->open[t->depth - 1]))
            return false;
    }
    return kernel_idle_ends(s, room, idle, end);
}

/* Threads of kernels take turns on threads of the system: their events are told apart by places. */
bool intervals_of_kernels(struct intervals *s, size_t *room, const struct traced_pe *p, int pe)
{
    const struct item **of = malloc((p->n ? p->n : 1) * sizeof *of);
    struct nest *nest = calloc(1, sizeof *nest);
    struct interval idle = {0};
    size_t n = 0;
    bool good = of && nest;

    for (size_t i = 0; i < p->n && good; i++) {
        if (is_of_kernel(&p->item[i]))
            of[n++] = &p->item[i];
    }
    if (n)
        qsort(of, n, sizeof *of, kernel_by_place);
    for (size_t i = 0; i < n && good; i++) {
        good = take_kernel_item(s, room, nest, &idle, p, pe, of[i]);
        if (good && (i + 1 == n || item_place(of[i + 1]) != item_place(of[i])))
            good = kernel_leave(s, room, nest, &idle, p->end);
    }
    free(of);
    free(nest);
    return good;
}

#include "events.h"

#include <stdio.h>
#include <stdlib.h>

#include "chance.h"

static struct {
    struct event *heap; /* the first is the earliest, and each is before its two children */
    size_t n, room;
    struct chance ties;
} events;

void events_begin(uint64_t seed)
{
    events.ties = chance_begin(seed, 1);
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->tie < b->tie);
}

void events_add(uint64_t at, void (*fire)(void *object, uint64_t number), void *object,
                uint64_t number)
{
    const struct event e = {at, chance_next(&events.ties), fire, object, number};

    if (events.n == events.room) {
        events.room = events.room ? 2 * events.room : 1024;
        events.heap = realloc(events.heap, events.room * sizeof *events.heap);
        if (!events.heap) {
            perror("simulation: events");
            exit(2);
        }
    }
    size_t i = events.n++;
    for (; i && is_before(&e, &events.heap[(i - 1) / 2]); i = (i - 1) / 2)
        events.heap[i] = events.heap[(i - 1) / 2];
    events.heap[i] = e;
}

uint64_t events_next(void)
{
    return events.n ? events.heap[0].at : UINT64_MAX;
}

bool events_take(struct event *out)
{
    if (!events.n)
        return false;
    *out = events.heap[0];
    const struct event last = events.heap[--events.n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < events.n; i = child) {
        if (child + 1 < events.n && is_before(&events.heap[child + 1], &events.heap[child]))
            child++;
        if (!is_before(&events.heap[child], &last))
            break;
        events.heap[i] = events.heap[child];
    }
    if (events.n)
        events.heap[i] = last;
    return true;
}

const struct event *events_all(size_t *n)
{
    *n = events.n;
    return events.heap;
}

/* The heap is none any more. */
void events_remove(size_t at)
{
    events.heap[at] = events.heap[--events.n];
}

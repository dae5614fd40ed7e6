/* Which tracks the kernels of a PE have. */
#include <stdlib.h>

#include "runtime/trace/traced.h"

static int by_begin(const void *a, const void *b)
{
    const struct interval *x = *(const struct interval *const *)a;
    const struct interval *y = *(const struct interval *const *)b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_launch(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;

    return x->launch < y->launch ? -1 : x->launch > y->launch;
}

/* Each launch gets the lowest lane that is free when it begins. */
static void give_lanes(struct tracks *k, const struct interval **launch, double *until, size_t n)
{
    size_t lanes = 0;

    for (size_t i = 0; i < n; i++) {
        size_t l = 0;
        while (l < lanes && until[l] > launch[i]->begin)
            l++;
        lanes += l == lanes;
        until[l] = launch[i]->end;
        k->lane[k->launches++] =
            (struct lane){launch[i]->begin, kernel_launch_of(launch[i]->place), (uint32_t)l};
    }
}

static bool find_lanes(struct tracks *k, const struct intervals *s, int pe)
{
    const size_t from = s->first[pe], most = s->first[pe + 1] - from;
    const struct interval **launch = malloc((most + 1) * sizeof *launch);
    double *until = malloc((most + 1) * sizeof *until);
    size_t n = 0;

    k->lane = malloc((most + 1) * sizeof *k->lane);
    const bool good = launch && until && k->lane;
    for (size_t i = 0; i < most && good; i++) {
        if (s->of[from + i].kind == INTERVAL_LAUNCH)
            launch[n++] = &s->of[from + i];
    }
    if (good) {
        qsort(launch, n, sizeof *launch, by_begin);
        give_lanes(k, launch, until, n);
        qsort(k->lane, k->launches, sizeof *k->lane, by_launch);
    }
    free(launch);
    free(until);
    return good;
}

/* The lane of a launch whose beginning is not in the trace is the first. */
static uint64_t tracks_key_of(const struct tracks *k, uint64_t place)
{
    const struct lane wanted = {.launch = kernel_launch_of(place)};
    const struct lane *lane = bsearch(&wanted, k->lane, k->launches, sizeof *k->lane, by_launch);
    const uint64_t number = lane ? lane->lane + 1 : 1;
    const int64_t block = kernel_block_of(place);

    return block < 0 ? kernel_place_of_launch(number)
                     : kernel_place(number, (uint64_t)block, kernel_thread_of(place));
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

bool tracks_find(struct tracks *k, const struct traced *t, const struct intervals *s, int pe)
{
    const struct traced_pe *p = &t->pe[pe];
    const size_t from = s->first[pe], n = s->first[pe + 1] - from;
    size_t keys = 0;

    *k = (struct tracks){.key = malloc((n + p->n + 1) * sizeof *k->key)};
    if (!k->key || !find_lanes(k, s, pe))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->of[from + i].place)
            k->key[keys++] = tracks_key_of(k, s->of[from + i].place);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (item_what(&p->item[i]) == TRACE_KERNEL)
            k->key[keys++] = tracks_key_of(k, p->item[i].event->at & ~UINT64_C(1023));
    }
    qsort(k->key, keys, sizeof *k->key, by_key);
    for (size_t i = 0; i < keys; i++) {
        if (i == 0 || k->key[i] != k->key[k->n - 1])
            k->key[k->n++] = k->key[i];
    }
    return true;
}

void tracks_free(struct tracks *k)
{
    free(k->key);
    free(k->lane);
}

size_t tracks_number(const struct tracks *k, uint64_t place)
{
    const uint64_t key = tracks_key_of(k, place);
    const uint64_t *found = bsearch(&key, k->key, k->n, sizeof *k->key, by_key);

    return found ? (size_t)(found - k->key) : k->n;
}

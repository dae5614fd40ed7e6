/* Percentiles by nearest rank: each number printed is one that was measured, the mean excepted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"

bool statistic_parse(const char *name, size_t length, struct statistic *s)
{
    static const struct {
        const char *name;
        double percent;
    } known[] = {{"median", 50}, {"min", 0}, {"max", 100}, {"mean", -1}};
    struct statistic found = {0};
    char *end;

    if (length == 0 || length >= sizeof(found.name))
        return false;
    memcpy(found.name, name, length);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(found.name, known[i].name)) {
            found.percent = known[i].percent;
            *s = found;
            return true;
        }
    if (found.name[0] != 'p' || strspn(found.name + 1, "0123456789.") != length - 1)
        return false;
    found.percent = strtod(found.name + 1, &end);
    if (*end || end == found.name + 1 || found.percent >= 100)
        return false;
    *s = found;
    return true;
}

bool samples_add(struct samples *s, double value)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        double *grown = realloc(s->value, capacity * sizeof(*grown));
        if (!grown)
            return false;
        s->value = grown;
        s->capacity = capacity;
    }
    s->value[s->n++] = value;
    return true;
}

void samples_clear(struct samples *s)
{
    s->n = 0;
}

void samples_free(struct samples *s)
{
    free(s->value);
    *s = (struct samples){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void samples_sort(struct samples *s)
{
    if (s->n)
        qsort(s->value, s->n, sizeof(s->value[0]), compare);
}

double samples_statistic(const struct samples *s, const struct statistic *statistic)
{
    if (s->n == 0)
        return NAN;
    if (statistic->percent < 0) {
        double sum = 0;
        for (size_t i = 0; i < s->n; i++)
            sum += s->value[i];
        return sum / (double)s->n;
    }
    double rank = ceil(statistic->percent / 100 * (double)s->n);
    return s->value[rank < 1 ? 0 : (size_t)rank - 1];
}

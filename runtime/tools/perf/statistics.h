/* What many samples say in a few numbers. */
#ifndef PERF_STATISTICS_H
#define PERF_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

enum { STATISTICS_MAX = 12 };

struct statistic {
    char name[16];  /* as asked for, and the head of its column */
    double percent; /* of the samples that are no larger; < 0: the mean */
};

/* "median", "min", "max", "mean", or "p" and a percentage below 100: p99, p99.9 */
bool statistic_parse(const char *name, size_t length, struct statistic *s);

struct samples {
    double *value;
    size_t n;
    size_t capacity;
};

bool samples_add(struct samples *s, double value); /* false: out of memory */
void samples_clear(struct samples *s);
void samples_free(struct samples *s);
/* Sorts; after it samples_statistic may be asked for any number of them. */
void samples_sort(struct samples *s);
double samples_statistic(const struct samples *s, const struct statistic *statistic);

#endif

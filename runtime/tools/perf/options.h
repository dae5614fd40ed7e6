/* The command line of gshmem-perf. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "statistics.h"

enum { SIZES_MAX = 128, SELECTED_MAX = 64 };

struct benchmark;

struct options {
    bool help;
    bool version;
    bool list;
    bool csv;
    const char *plot; /* the folder for pictures; NULL: none are drawn */
    bool each;       /* time single operations, not blocks of them */
    int rounds;      /* blocks measured */
    int least;       /* operations measured, where they are timed one by one */
    double block_ns; /* that a block should take */
    int iterations;  /* operations in a block; 0: as many as take that long */
    int warmup;      /* operations before the first block, where `iterations` are given */
    size_t least_size, most_size, factor; /* --min_msg_size and so on; 0: not given */
    size_t window;   /* bytes of buffers that operations take turns on; 0: always the same one */
    int n_sizes;     /* 0: each benchmark's own */
    size_t size[SIZES_MAX];
    int n_late; /* the same of the microseconds by which a PE is late */
    size_t late[SIZES_MAX];
    int n_threads; /* and of threads */
    size_t threads[SIZES_MAX];
    int n_statistics;
    struct statistic statistic[STATISTICS_MAX];
    bool irregular; /* all rows of irregular programs */
    bool by_threads; /* all rows of threads, which are in no other choice */
    int n_selected; /* 0: all, or those */
    const struct benchmark *selected[SELECTED_MAX];
};

/* False if the command line is wrong; *why then says what and how to do better. */
bool perf_options_parse(struct options *o, int argc, char **argv, char *why, size_t why_size);

bool options_selected(const struct options *o, const struct benchmark *what);
/* Whether several threads will call the library. */
bool options_need_threads(const struct options *o);

/* "8,1M", "1-64K" (doubling), "8-1M*8": at most SIZES_MAX sizes; their number, or -1. */
int sizes_parse(const char *text, size_t size[SIZES_MAX]);

void options_help(FILE *to);
void options_list(FILE *to);

#endif

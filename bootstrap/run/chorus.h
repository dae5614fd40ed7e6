/* Lines that PEs have alike (runtime/base/alike.h): the first is written at once, those that are equal are counted. */
#ifndef GSHMEM_BOOTSTRAP_RUN_CHORUS_H
#define GSHMEM_BOOTSTRAP_RUN_CHORUS_H

#include <stdbool.h>
#include <stddef.h>

struct chorus {
    int in;  /* what PEs send */
    int out; /* what they send by; every PE holds it */
    int n_lines;
    struct chorus_line *line;
};

bool chorus_open(struct chorus *c); /* errno says why not */
void chorus_take(struct chorus *c); /* all that has come */
/* Says how often each was heard, where that has not been said. */
void chorus_count(struct chorus *c);
bool chorus_is_counting(const struct chorus *c);
void chorus_close(struct chorus *c);

#endif

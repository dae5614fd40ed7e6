/* Lines that several PEs write alike (runtime/base/alike.h): the first is written at once, and the
 * others are counted. */
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
/* Some of what has arrived; false: that was all. */
bool chorus_take(struct chorus *c);
/* Writes how often each line has arrived since that was last written. */
void chorus_count(struct chorus *c);
bool chorus_is_counting(const struct chorus *c);
void chorus_close(struct chorus *c);

#endif

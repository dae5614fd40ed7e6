/* --tag-output: a process that reads what PEs write and passes it on, line by line, each with its
 * PE's number. It is a process of its own because standard output may be slow or stuck, and the
 * launcher must never be. */
#ifndef GSHMEM_BOOTSTRAP_RUN_OUTPUT_H
#define GSHMEM_BOOTSTRAP_RUN_OUTPUT_H

#include <stdbool.h>

/* A pipe for each PE's standard output and error. */
struct output {
    int n;            /* PEs; 0: no tags, so no pipes */
    int (*reader)[2]; /* [pe][0]: output, [pe][1]: error */
    int (*writer)[2];
};

bool output_open(struct output *o, int n_pes); /* false: all is said */
void output_close_readers(struct output *o);
void output_close_writers(struct output *o);
void output_close_writer(struct output *o, int pe);
void output_free(struct output *o);

/* What the output process exits with where it could not pass all on, and has said why. */
enum { OUTPUT_LOST = 3 };

/* Passes lines on until all processes that had a PE's pipes have closed them. */
int output_run(struct output *o);

#endif

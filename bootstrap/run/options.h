/* gshmemrun's command line. */
#ifndef GSHMEM_BOOTSTRAP_RUN_OPTIONS_H
#define GSHMEM_BOOTSTRAP_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_PES_MAX = 65536 };

struct options {
    int n_pes;
    int n_nodes;
    int per_node; /* PEs that a node may have; 0: any number */
    int places;   /* for PEs, by -H; 0: not said */
    bool tag_output;
    bool bind_core;
    int64_t timeout_ms; /* -1: none */
    char **set;         /* "VAR=VALUE" from -x, n_set of them */
    size_t n_set;
    char **program; /* what to start, and its arguments, up to a NULL */
};

/* True: start the job. False: exit with *status, all is said. */
bool options_parse(int argc, char **argv, struct options *o, int *status);
void options_free(struct options *o);

#endif

/* Starts the processes of a job: finds the program, makes their environment, and lets each begin
 * with the descriptors, signals, limits and CPUs it should have. */
#ifndef GSHMEM_BOOTSTRAP_RUN_SPAWN_H
#define GSHMEM_BOOTSTRAP_RUN_SPAWN_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "bootstrap/run/bind.h"
#include "bootstrap/run/options.h"

struct spawner {
    const struct options *options;
    char path[PATH_MAX];  /* of the program */
    struct rlimit nofile; /* as gshmemrun was started with: PEs get the same */
    sigset_t mask;        /* likewise */

    int lifeline[2]; /* a pipe: PEs hold its reading end, and gshmemrun alone the other */
    int log;         /* what PEs send lines by that they have alike, from chorus.h */
    int wire_number; /* the descriptor that is the wire in every PE */
    char **environment;
    char within_text[40], pe_text[40], n_pes_text[40], wire_text[80], lifeline_text[80],
        log_text[100];
    struct bind_core *cores;
    int n_cores;
    char *stack; /* of a child until it is another program */
};

/* Where the program is. Otherwise all is said, and *status is what to exit with. */
bool spawn_find(const char *program, char path[PATH_MAX], int *status);
/* Raises the limit of open descriptors as far as it goes; false, and all said, if it cannot hold
 * the job. *before is what it was. */
bool spawn_raise_limit(const struct options *options, struct rlimit *before);

/* Prepares s, of which options, path, nofile and mask are set. False: all is said. */
bool spawner_prepare(struct spawner *s);
/* Starts one PE with this end of its wire. Returns its pid, or 0 with a status to exit with. */
pid_t spawner_start(struct spawner *s, int pe, int wire, const int stdio[3], int *status);
void spawner_free(struct spawner *s);

#endif

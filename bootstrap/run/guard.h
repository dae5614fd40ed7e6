/* The guard: the process that a user starts, sees and signals.
 *
 * It is the parent of the launcher and does almost nothing, so that almost nothing can happen to
 * it. It hands on signals, and exits with the job's status. When the launcher is killed, all that
 * it started falls to the guard, which ends it; when the guard is killed, the launcher does. */
#ifndef GSHMEM_BOOTSTRAP_RUN_GUARD_H
#define GSHMEM_BOOTSTRAP_RUN_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct guard {
    sigset_t mask;   /* of signals, as gshmemrun was started with */
    sigset_t waited; /* signals to hand on, and SIGCHLD */
    int orders[2];   /* the pipe to the launcher */
    pid_t launcher;
    pid_t output;   /* 0: none */
    pid_t *spare;   /* children that are none of ours: of who became gshmemrun by exec */
    size_t n_spare; /* and the output process, which ends by itself */
    bool strangers; /* some were there before */
    bool lost;      /* some output could not be passed on, which has been said */
    bool hurried;   /* the job was not left to end by itself */
};

/* Before any child is started. False: all is said. */
bool guard_prepare(struct guard *g);
/* Starts another process of gshmemrun: its pid, 0 in the child, -1 when all is said. */
pid_t guard_fork(struct guard *g, const char *name);
/* The output process: it is left to end by itself. False: all is said. */
bool guard_spare(struct guard *g, pid_t output);
/* Waits for the job; returns what to exit with. */
int guard_wait(struct guard *g);
void guard_free(struct guard *g);

#endif

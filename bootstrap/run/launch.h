/* The launcher: the process that starts the PEs, serves their wires, and watches over them. */
#ifndef GSHMEM_BOOTSTRAP_RUN_LAUNCH_H
#define GSHMEM_BOOTSTRAP_RUN_LAUNCH_H

#include "bootstrap/run/options.h"
#include "bootstrap/run/output.h"
#include "bootstrap/run/spawn.h"

/* Runs a job from begin to end; returns what gshmemrun shall exit with. orders: a pipe on which the
 * guard sends signals to hand on, a byte each; its end means that the guard is dead. */
int launch(const struct options *options, struct spawner *spawner, struct output *output,
           int orders);

#endif

/* The bootstraps that are part of libgshmem; the others are modules. */
#ifndef GSHMEM_BOOTSTRAP_BUILTIN_H
#define GSHMEM_BOOTSTRAP_BUILTIN_H

#include "bootstrap/bootstrap.h"

extern const struct bootstrap_ops bootstrap_run;    /* gshmemrun */
extern const struct bootstrap_ops bootstrap_pmi;    /* PMI-1 wire: hydra, srun --mpi=pmi2 */
extern const struct bootstrap_ops bootstrap_uid;    /* a unique id carried by the program */
extern const struct bootstrap_ops bootstrap_single; /* a job of one */

#endif

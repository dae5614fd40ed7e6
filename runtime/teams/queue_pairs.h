/* NVSHMEM's queue pairs: contexts that kernels name by numbers, and which end with the job. */
#ifndef GSHMEM_RUNTIME_TEAMS_QUEUE_PAIRS_H
#define GSHMEM_RUNTIME_TEAMS_QUEUE_PAIRS_H

#include "gshmem/base.h"

struct job;

struct queue_pairs {
    size_t n;
    gshmem_ctx_t ctx[]; /* [number - GSHMEM_QUEUE_PAIRS_FROM] */
};

void queue_pairs_free(struct job *j);

#endif

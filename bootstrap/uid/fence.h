/* The rounds: PE 0 collects the blobs of all PEs and sends all to all. */
#ifndef GSHMEM_UID_FENCE_H
#define GSHMEM_UID_FENCE_H

#include "bootstrap/uid/wire.h"

/* Returns when the blobs of this round are in u->blobs. */
gshmem_status_t uid_fence_round(struct uid *u);

#endif

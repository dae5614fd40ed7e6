/* The start of PE 1 and on. */
#ifndef GSHMEM_UID_JOIN_H
#define GSHMEM_UID_JOIN_H

#include "bootstrap/uid/wire.h"

/* Finds PE 0, proves to know the secret, and receives the map of nodes. */
gshmem_status_t uid_join_open(struct uid *u);

#endif

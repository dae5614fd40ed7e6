/* The start of PE 0. */
#ifndef GSHMEM_UID_ROOT_H
#define GSHMEM_UID_ROOT_H

#include "bootstrap/uid/wire.h"

/* Lets all PEs in and sends them the map of nodes. */
gshmem_status_t uid_root_open(struct uid *u);

#endif

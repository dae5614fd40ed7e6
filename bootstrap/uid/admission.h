/* PE 0 lets the job's PEs in, and turns strangers away. */
#ifndef GSHMEM_UID_ADMISSION_H
#define GSHMEM_UID_ADMISSION_H

#include "bootstrap/uid/wire.h"

/* Returns when all PEs have joined at one of these sockets. */
gshmem_status_t uid_admission_wait(struct uid *u, const int *listener, int listeners);

#endif

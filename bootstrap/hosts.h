/* Numbers the hosts of a job from what its starter tells of them.
 *
 * Two PEs share a host when the starter gives their hosts the same name or number. Hosts are
 * numbered 0, 1, … in the order of their lowest PEs, as bootstrap.h asks. Also compiled into
 * modules, so it uses bootstrap.h and libc alone. */
#ifndef GSHMEM_BOOTSTRAP_HOSTS_H
#define GSHMEM_BOOTSTRAP_HOSTS_H

#include "bootstrap/bootstrap.h"

enum { HOSTS_NAME_BYTES = 96 };

/* What PEs of this host, and they alone, have in common: its name. Names of 63 bytes and more may have been cut, as
 * Kubernetes does, and be those of several hosts: the boot's number follows such a one. */
void hosts_own_name(char name[HOSTS_NAME_BYTES]);

/* name[pe]: the host's name. Sets host[pe] and returns how many hosts there are, or 0 when out of
 * memory. */
int hosts_by_name(const char *const *name, int n_pes, int *host);

/* number[pe]: any number in 0 … limit-1 that PEs of one host have in common. number may be host. */
int hosts_by_number(const int *number, int limit, int n_pes, int *host);

/* For a starter that does not say who shares a host: takes a round to exchange host names. b->ops,
 * pe and n_pes are set. Returns how many hosts there are; 0: out of memory; -1: the status is
 * *status. */
int hosts_by_exchange(struct bootstrap *b, int *host, gshmem_status_t *status);

#endif

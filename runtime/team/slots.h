/* Team slots: how the members of a new team agree on one that is free on all of them. */
#ifndef GSHMEM_RUNTIME_SLOTS_H
#define GSHMEM_RUNTIME_SLOTS_H

#include "runtime/team/team.h"

/* Collective over parent: installs t in the lowest slot that is free on all PEs that pass a team;
 * PEs that pass NULL take part without one. Fails on all of them alike. */
gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call);

#endif

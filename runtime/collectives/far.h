/* Groups whose members are on several hosts: how they meet over the network.
 *
 * The members on one host are a group of their own, which meets in memory; the first of each, the
 * leaders, tell each other who has arrived; then each lets its neighbours go. Notes of members on
 * other hosts are fetched when all have arrived, into copies, so that what reads notes need not know
 * where they are from. */
#ifndef GSHMEM_RUNTIME_FAR_H
#define GSHMEM_RUNTIME_FAR_H

#include <stdbool.h>

#include "runtime/collectives/group.h"

struct job;
struct far;

/* Makes g far if its members are not all on this host. False: out of memory. */
bool far_prepare(struct group *g, const struct job *j);
void far_free(struct far *f);

/* Gives g and its inner group their blocks; `slot` is the team's. */
void far_install(struct group *g, const struct job *j, int slot);

/* The way to meet, and to part, of far groups. */
gshmem_status_t meet_far(struct group *g, uint32_t signature, const char *call);
gshmem_status_t far_farewell(struct group *g, const char *call);

/* Whether member i is on another host: it has no memory here. */
bool far_is_away(const struct group *g, int i);

#endif

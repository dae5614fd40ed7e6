/* Which PEs verbs reaches, and by which NICs. */
#ifndef GSHMEM_TRANSPORT_VERBS_REACH_H
#define GSHMEM_TRANSPORT_VERBS_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "transport/verbs/rails.h"

struct verbs;

/* Appends to the address of the transport below, of *bytes bytes, that this PE uses verbs. */
gshmem_status_t reach_publish(const struct verbs *v, void *address, size_t capacity, size_t *bytes);
/* Which of this PE's NICs could talk to which of that one's, the best pair first; 0: none, and why.
 * `here`: it is of this node, or this PE. *updater: the pair whose other end makes atomics there,
 * or -1. Less than 0: the starter is being asked for what that PE published. */
int reach_find(const struct verbs *v, int pe, bool here, struct rail rail[RAILS_MOST], int *updater,
               char *why, size_t why_size);
/* Which of this PE's NICs makes atomics in its memory; and what PEs have in common whose such NICs
 * can be taken to reach each other: they are the only ones, or of one network and rail. */
int reach_updater(const struct verbs *v, uint32_t *fabric);

#endif

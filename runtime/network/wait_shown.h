/* For functions that describe a wait: what they enter in its record, which gshmem-where shows. */
#ifndef GSHMEM_RUNTIME_NETWORK_WAIT_SHOWN_H
#define GSHMEM_RUNTIME_NETWORK_WAIT_SHOWN_H

#include <stddef.h>

struct where_wait;

/* For what fills in a record: enters one PE more that is waited for. */
void wait_show_peer(struct where_wait *record, int pe);
/* Enters a symmetric object of this PE's own. */
void wait_show_object(struct where_wait *record, const void *at, size_t bytes);

#endif

/* What a long wait shows of itself: to the watchdog's line, and in its record to who asks where the
 * job stands. */
#ifndef GSHMEM_RUNTIME_NETWORK_WAIT_SHOWN_H
#define GSHMEM_RUNTIME_NETWORK_WAIT_SHOWN_H

#include <stddef.h>
#include <stdint.h>

struct wait;
struct where_wait;

/* Refreshes the wait's record; now and then, once it is long. */
void wait_show(struct wait *w, uint64_t now);
/* One line for a wait that is longer than GSHMEM_WATCHDOG. */
void wait_watch(struct wait *w, uint64_t waited);

/* For what fills in a record: enters one PE more that is waited for. */
void wait_show_peer(struct where_wait *record, int pe);
/* Enters a symmetric object of this PE's own. */
void wait_show_object(struct where_wait *record, const void *at, size_t bytes);

#endif

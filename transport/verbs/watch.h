/* NICs' events, peers that are unresponsive, and paths that are tried again. */
#ifndef GSHMEM_TRANSPORT_VERBS_WATCH_H
#define GSHMEM_TRANSPORT_VERBS_WATCH_H

struct verbs;

/* Takes NICs' events, and looks for peers that owe something and send nothing. */
void watch_poll(struct verbs *v);
/* To be called now and then: the same, and tries paths that are down. */
void watch_retry(struct verbs *v);

#endif

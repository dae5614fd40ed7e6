/* Control messages of a peer: to whom each belongs. */
#ifndef GSHMEM_TRANSPORT_VERBS_RECEIVE_H
#define GSHMEM_TRANSPORT_VERBS_RECEIVE_H

#include <stddef.h>

struct verbs;

void receive_control(struct verbs *v, int from, const unsigned char *text, size_t bytes);

#endif

/* Two transports over verbs on the fake of libibverbs, for who has a runtime of its own. */
#ifndef COST_PAIR_H
#define COST_PAIR_H

#include "transport/transport.h"

/* Opens both, with a segment of that number, and lets them talk; the one of PE 0 drives the fake
 * NIC with its own progress. */
struct transport *pair_open(int segment);
/* What the NICs and PE 1 have to do; not counted. */
void aside(void);
/* The word at that offset of PE 1's segment. */
uint64_t pair_word(uint64_t offset);
/* Drives both until all that was posted is done. */
void pair_settle(void);

#endif

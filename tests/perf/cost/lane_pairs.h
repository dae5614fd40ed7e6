/* For each lane two transports over verbs on the fake of libibverbs: PE 2i is lane i of a PE, and puts
 * to PE 2i + 1. Each lane has a NIC of its own; progress of PE 2i's transport also drives the NIC and
 * the other transport. */
#ifndef LANE_PAIRS_H
#define LANE_PAIRS_H

#include "transport/transport.h"

enum { LANE_PAIRS_MOST = 4 };

/* segment: the number of the one that each PE has. They have met when it returns. */
void lane_pairs_open(int lanes, int segment);
struct transport *lane_pair(int lane);
const char *lane_pairs_memory(int pe, uint64_t offset);
/* What the threads that drive the lanes have taken of CPUs in rounds that did something, in ns: neither
 * spins nor waits for a CPU are in it. */
uint64_t lane_pairs_cpu_ns(void);

#endif

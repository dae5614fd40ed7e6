/* Which CPU a PE runs on. Each PE has one of the machine's CPUs as its home (node_turn), and as
 * long as there are enough CPUs no two PEs have the same. Nobody is bound: a PE goes home when
 * the system has moved it to where it is in the way, and if the system moves it again it comes
 * back less and less often. */
#ifndef GSHMEM_RUNTIME_NODE_AFFINITY_H
#define GSHMEM_RUNTIME_NODE_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

struct bootstrap;
struct node;

/* Finds the home of this thread's PE, and moves it there if PEs share CPUs: the system takes
 * tenths of a second to spread processes that never sleep, and until then every round waits for
 * the PEs of the fullest CPU (docs/decisions/0004). */
void affinity_begin(const struct node *node, const struct bootstrap *b);

/* In the waits of that thread, where PEs share CPUs: from time to time, goes home. */
void affinity_return(uint64_t now);

/* In its long waits, where each PE has a CPU and the job one node: tells the others on which CPU
 * this PE is, and goes home if another PE is on the same. */
void affinity_separate(struct node *node, uint64_t now);

#endif

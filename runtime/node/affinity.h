/* Where PEs share CPUs, each has one of them for its home (node_turn): it begins there, and goes back when
 * the system has moved it. Nobody is bound: where others need that CPU the system moves it again, and it comes
 * back less and less often. */
#ifndef GSHMEM_RUNTIME_NODE_AFFINITY_H
#define GSHMEM_RUNTIME_NODE_AFFINITY_H

#include <stdint.h>

struct bootstrap;
struct node;

/* Moves this thread home, if PEs share CPUs. Left alone the system takes tenths of a second to
 * spread processes that never sleep, and until then every round waits for those of the fullest CPU
 * (docs/decisions/0004). */
void affinity_begin(const struct node *node, const struct bootstrap *b);

/* From time to time, in the waits of the thread that found it: back, if it is elsewhere. */
void affinity_return(uint64_t now);

#endif

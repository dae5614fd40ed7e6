/* Where PEs share CPUs, each has one of them for its home (host_turn): it begins there, and goes back when
 * the system has moved it. Nobody is bound: where others need that CPU the system moves it again, and it comes
 * back less and less often. */
#ifndef GSHMEM_RUNTIME_HOME_H
#define GSHMEM_RUNTIME_HOME_H

#include <stdint.h>

struct bootstrap;
struct host;

/* Moves this thread home, if PEs share CPUs. Left alone the system takes tenths of a second to
 * spread processes that never sleep, and until then every round waits for those of the fullest CPU
 * (docs/decisions/0004). */
void home_find(const struct host *host, const struct bootstrap *b);

/* From time to time, in the waits of the thread that found it: back, if it is elsewhere. */
void home_return(uint64_t now);

#endif

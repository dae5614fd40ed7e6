/* What a job's start and its collectives cost as it grows. */
#ifndef TEST_SIMULATION_GROWTH_H
#define TEST_SIMULATION_GROWTH_H

#include <stdbool.h>

/* Instead of the programs of program.h: start-up, collectives, end. alltoall: that too, for which
 * each PE connects to each other. */
void growth_begin(bool alltoall);
bool growth_has_ended(void);
/* A line for each phase: messages, bytes, virtual time and memory. */
void growth_print(void);

#endif

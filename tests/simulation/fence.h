/* The bootstrap of the simulation: a table of what each PE has published, and a fence. The launcher
 * that it stands for never fails, and hears of deaths. */
#ifndef TEST_SIMULATION_FENCE_H
#define TEST_SIMULATION_FENCE_H

#include "bootstrap/bootstrap.h"

#define FENCE_MODULE "/simulation"

extern const struct bootstrap_ops fence_ops;

/* For PEs that nothing but their start-up may fail for. */
void fence_begin(uint64_t seed);
/* A PE has died: a fence that waits for it ends. */
void fence_lose(int pe);

#endif

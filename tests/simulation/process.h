/* What a process of the simulation sees of the system, beside what is in the seam. */
#ifndef TEST_SIMULATION_PROCESS_H
#define TEST_SIMULATION_PROCESS_H

#include <stdint.h>

struct pe;

/* What that PE's clock shows at a virtual time, and the reverse. */
uint64_t process_clock(const struct pe *pe, uint64_t time);
uint64_t process_time_at(const struct pe *pe, uint64_t clock);

#endif

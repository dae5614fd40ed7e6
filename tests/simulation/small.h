/* Small programs of two PEs, a letter for each operation, and what must be true of them. */
#ifndef TEST_SIMULATION_SMALL_H
#define TEST_SIMULATION_SMALL_H

#include <stdbool.h>
#include <stddef.h>

/* Starts both PEs, which connect to each other and then wait. kernels: they have some. */
void small_start(bool kernels);
bool small_has_started(void);
/* "pfs.w": what PE 0 does, and PE 1; an x behind it: PE 1 dies at any time. False: it is none. */
bool small_choose(const char *program);
/* Whether PE 1 dies. */
bool small_dies(void);

/* For struct exploration. */
void small_begin(void);
void small_check(void);
bool small_has_ended(void);

/* The letters and what they do, for people. */
extern const char small_letters[];

#endif

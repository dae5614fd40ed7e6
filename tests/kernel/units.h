/* What the translation units of units.cu, and the library that it loads, do for each other. */
#ifndef GSHMEM_TESTS_UNITS_H
#define GSHMEM_TESTS_UNITS_H

#include <stdint.h>

/* Launches a kernel of its own unit, which puts `value` with a signal to word `which` of the next
 * PE's words, and waits until it has come from the one before. */
typedef void units_pass_t(uint64_t *words, uint64_t *signal, int which, uint64_t value);

units_pass_t units_pass_first, units_pass_second;
extern "C" units_pass_t units_pass_library;

#endif

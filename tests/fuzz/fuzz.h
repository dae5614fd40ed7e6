/* A fuzz target, and what drives it: libFuzzer (-Dfuzz=true, with clang), or driver.c, which needs
 * nothing and does less. */
#ifndef GSHMEM_TESTS_FUZZ_H
#define GSHMEM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Plays one input; aborts when something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Writes the number-th sensible input, from which a search may start; returns its length, or 0 when
 * there are no more. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity);

#endif
